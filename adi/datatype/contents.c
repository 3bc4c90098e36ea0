/* SPDX-License-Identifier: BSD-3-Clause */
/* How a datatype was constructed: MPI 5.0, section 5.1.13. */
#include "adi/bindings/functions.h"
#include "adi/datatype/build.h"

/* Where the arguments of a constructor go, in the standard's order. Arrays may be NULL: the arguments are counted only. */
struct arguments {
	bool large;
	MPI_Count integers, addresses, counts, types; /* number stored so far */
	int *integer;
	MPI_Aint *address;
	MPI_Count *count;
	MPI_Datatype *type;
};

static void put_integer(struct arguments *to, int value)
{
	if (to->integer)
		to->integer[to->integers] = value;
	to->integers++;
}

static void put_large(struct arguments *to, MPI_Count value)
{
	if (to->count)
		to->count[to->counts] = value;
	to->counts++;
}

/* An argument that is int in the constructor, or MPI_Count if its name ends in _c. */
static void put_count(struct arguments *to, MPI_Count value)
{
	if (to->large)
		put_large(to, value);
	else
		put_integer(to, (int)value);
}

/* An argument that is MPI_Aint in the constructor, or MPI_Count if its name ends in _c. */
static void put_address(struct arguments *to, MPI_Count value)
{
	if (to->large) {
		put_large(to, value);
		return;
	}
	if (to->address)
		to->address[to->addresses] = (MPI_Aint)value;
	to->addresses++;
}

static void put_lists(struct arguments *to, const struct adi_type_contents *contents, bool bytes)
{
	put_count(to, contents->n);
	if (!contents->lengths)
		put_count(to, contents->length);
	for (MPI_Count i = 0; contents->lengths && i < contents->n; i++)
		put_count(to, contents->lengths[i]);
	for (MPI_Count i = 0; i < contents->n; i++)
		(bytes ? put_address : put_count)(to, contents->displacements[i]);
}

static void put_vector(struct arguments *to, const struct adi_type_contents *contents, bool bytes)
{
	put_count(to, contents->n);
	put_count(to, contents->length);
	(bytes ? put_address : put_count)(to, contents->stride);
}

static void put_subarray(struct arguments *to, const struct adi_type_contents *contents)
{
	int ndims = contents->arguments[0];
	put_integer(to, ndims);
	for (int i = 0; i < 3 * ndims; i++)
		put_count(to, contents->sizes[i]);
	put_integer(to, contents->arguments[1]);
}

static void put_darray(struct arguments *to, const struct adi_type_contents *contents)
{
	int ndims = contents->arguments[2];
	for (int i = 0; i < 3; i++)
		put_integer(to, contents->arguments[i]);
	for (int i = 0; i < ndims; i++)
		put_count(to, contents->sizes[i]);
	for (int i = 3; i < 3 * ndims + 4; i++)
		put_integer(to, contents->arguments[i]);
}

static void put_numbers(struct arguments *to, const struct adi_type_contents *contents)
{
	switch (contents->combiner) {
	case MPI_COMBINER_CONTIGUOUS:
		put_count(to, contents->length);
		break;
	case MPI_COMBINER_VECTOR:
	case MPI_COMBINER_HVECTOR:
		put_vector(to, contents, contents->combiner == MPI_COMBINER_HVECTOR);
		break;
	case MPI_COMBINER_INDEXED:
	case MPI_COMBINER_INDEXED_BLOCK:
		put_lists(to, contents, false);
		break;
	case MPI_COMBINER_HINDEXED:
	case MPI_COMBINER_HINDEXED_BLOCK:
	case MPI_COMBINER_STRUCT:
		put_lists(to, contents, true);
		break;
	case MPI_COMBINER_RESIZED:
		put_address(to, contents->sizes[0]);
		put_address(to, contents->sizes[1]);
		break;
	case MPI_COMBINER_SUBARRAY:
		put_subarray(to, contents);
		break;
	case MPI_COMBINER_DARRAY:
		put_darray(to, contents);
		break;
	case MPI_COMBINER_F90_REAL:
	case MPI_COMBINER_F90_COMPLEX:
		put_integer(to, contents->arguments[0]);
		put_integer(to, contents->arguments[1]);
		break;
	case MPI_COMBINER_F90_INTEGER:
		put_integer(to, contents->arguments[0]);
		break;
	}
}

static void count_arguments(const struct adi_type_contents *contents, struct arguments *counted)
{
	*counted = (struct arguments){ .large = contents->large };
	put_numbers(counted, contents);
	int combiner = contents->combiner;
	bool none = combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
		    combiner == MPI_COMBINER_F90_INTEGER;
	counted->types = none ? 0 : contents->parts;
}

static int error_large(const char *function)
{
	return adi_error(MPI_ERR_TYPE, "datatype was constructed with large counts: call %s", function);
}

/* num_large_counts is NULL in MPI_Type_get_envelope. */
int mpi_type_get_envelope(struct adi_type *datatype, MPI_Count *num_integers, MPI_Count *num_addresses,
			  MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner)
{
	struct arguments counted = { 0 };
	if (datatype->contents)
		count_arguments(datatype->contents, &counted);
	if (counted.counts && !num_large_counts)
		return error_large("MPI_Type_get_envelope_c");
	*num_integers = counted.integers;
	*num_addresses = counted.addresses;
	if (num_large_counts)
		*num_large_counts = counted.counts;
	*num_datatypes = counted.types;
	*combiner = datatype->contents ? datatype->contents->combiner : MPI_COMBINER_NAMED;
	return MPI_SUCCESS;
}

static int check_room(const char *what, MPI_Count have, MPI_Count need, const void *array)
{
	if (have < need)
		return adi_error(MPI_ERR_ARG, "max_%s is %lld; valid: %lld and above", what, (long long)have, (long long)need);
	return need && !array ? adi_error(MPI_ERR_ARG, "array_of_%s is NULL", what) : MPI_SUCCESS;
}

/* Derived types are new objects, which the program frees. */
static int put_types(const struct adi_type_contents *contents, MPI_Count n, MPI_Datatype *to)
{
	MPI_Count done = 0;
	for (; done < n; done++) {
		struct adi_type *type = contents->old ? contents->old : contents->part[done];
		struct adi_type *shown = adi_type_freeable(type) ? adi_type_twin(type) : type;
		if (!shown)
			break;
		to[done] = adi_type_handle(shown);
	}
	if (done == n)
		return MPI_SUCCESS;
	while (done-- > 0) {
		struct adi_type *shown = adi_object_at(to[done], ADI_TYPE);
		if (shown && adi_type_freeable(shown))
			adi_type_release(shown);
	}
	return adi_error(MPI_ERR_NO_MEM, "no memory for a datatype");
}

/* array_of_large_counts is NULL in MPI_Type_get_contents. */
int mpi_type_get_contents(struct adi_type *datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
			  MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
			  MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[])
{
	const struct adi_type_contents *contents = datatype->contents;
	struct arguments need;
	if (!contents)
		return adi_error(MPI_ERR_TYPE, "datatype is %s; valid: derived datatypes", datatype->name);
	count_arguments(contents, &need);
	if (need.counts && !max_large_counts && !array_of_large_counts)
		return error_large("MPI_Type_get_contents_c");
	int class = check_room("integers", max_integers, need.integers, array_of_integers);
	if (!class)
		class = check_room("addresses", max_addresses, need.addresses, array_of_addresses);
	if (!class)
		class = check_room("large_counts", max_large_counts, need.counts, array_of_large_counts);
	if (!class)
		class = check_room("datatypes", max_datatypes, need.types, array_of_datatypes);
	if (!class)
		class = put_types(contents, need.types, array_of_datatypes);
	if (class)
		return class;
	struct arguments to = { .large = contents->large, .integer = array_of_integers, .address = array_of_addresses,
				.count = array_of_large_counts };
	put_numbers(&to, contents);
	return MPI_SUCCESS;
}
