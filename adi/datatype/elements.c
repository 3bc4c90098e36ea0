/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of elements in a message: MPI 5.0, sections 3.2.5, 5.1.11 and 12.3. */
#include "adi/bindings/functions.h"
#include "adi/datatype/build.h"
#include "adi/message/request.h"

/* Bytes of the value of a pair. */
static MPI_Count value_bytes(const struct adi_type *pair)
{
	bool same = pair->basic == ADI_BASIC_2INT || pair->basic == ADI_BASIC_2FLOAT || pair->basic == ADI_BASIC_2DOUBLE;
	return same ? pair->size / 2 : pair->size - (MPI_Count)sizeof(int);
}

static bool is_vector(const struct adi_type_contents *contents)
{
	return !contents->lengths && !contents->displacements;
}

/* The basic elements in the first bytes of elements of a type; -1: the bytes end inside a basic element. */
static MPI_Count elements_in(const struct adi_type *type, MPI_Count bytes)
{
	MPI_Count sum = 0;
	for (;;) { /* goes down to the part of the type where the bytes end */
		if (!bytes)
			return sum;
		if (!type->size)
			return -1;
		sum += bytes / type->size * type->elements;
		bytes %= type->size;
		if (!bytes)
			return sum;
		const struct adi_type_contents *contents = type->contents;
		if (!contents)
			return type->elements == 2 && bytes == value_bytes(type) ? sum + 1 : -1;
		if (is_vector(contents)) {
			type = contents->part[0];
			continue;
		}
		struct adi_block block;
		for (MPI_Count i = 0;; i++) {
			block = adi_contents_block(contents, i);
			if (bytes < block.length * block.type->size)
				break;
			bytes -= block.length * block.type->size;
			sum += block.length * block.type->elements;
		}
		type = block.type;
	}
}

/* The bytes of the first basic elements. The type has elements. */
static MPI_Count bytes_of(const struct adi_type *type, MPI_Count elements)
{
	MPI_Count sum = 0;
	while (elements) {
		sum += elements / type->elements * type->size;
		elements %= type->elements;
		if (!elements)
			break;
		const struct adi_type_contents *contents = type->contents;
		if (!contents)
			return sum + value_bytes(type);
		if (is_vector(contents)) {
			type = contents->part[0];
			continue;
		}
		struct adi_block block;
		for (MPI_Count i = 0;; i++) {
			block = adi_contents_block(contents, i);
			if (elements < block.length * block.type->elements)
				break;
			elements -= block.length * block.type->elements;
			sum += block.length * block.type->size;
		}
		type = block.type;
	}
	return sum;
}

static int check_status(const MPI_Status *status)
{
	return status ? MPI_SUCCESS : adi_error(MPI_ERR_ARG, "status is MPI_STATUS_IGNORE; valid: a status");
}

int mpi_get_count(const MPI_Status *status, struct adi_type *datatype, MPI_Count *count)
{
	int class = check_status(status);
	if (class)
		return class;
	uint64_t bytes = adi_status_bytes(status), size = (uint64_t)datatype->size;
	if (!bytes)
		*count = 0;
	else
		*count = size && bytes % size == 0 ? (MPI_Count)(bytes / size) : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

int mpi_get_elements(const MPI_Status *status, struct adi_type *datatype, MPI_Count *count)
{
	int class = check_status(status);
	if (class)
		return class;
	MPI_Count elements = elements_in(datatype, (MPI_Count)adi_status_bytes(status));
	*count = elements < 0 ? MPI_UNDEFINED : elements;
	return MPI_SUCCESS;
}

int mpi_status_set_elements(MPI_Status *status, struct adi_type *datatype, MPI_Count count)
{
	MPI_Count bytes;
	int class = check_status(status);
	if (class)
		return class;
	if (count && !datatype->elements)
		return adi_error(MPI_ERR_ARG, "count is %lld; valid with a datatype without data: 0", (long long)count);
	if (count && __builtin_mul_overflow(count / datatype->elements + 1, datatype->size, &bytes))
		return adi_error(MPI_ERR_ARG, "count is %lld; the size of the data does not fit MPI_Count", (long long)count);
	adi_status_set_bytes(status, (uint64_t)bytes_of(datatype, count));
	return MPI_SUCCESS;
}
