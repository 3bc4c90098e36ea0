/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections of arrays as buffers: MPI 5.0, section 19.1.12. */
#include "adi/fortran/sections.h"

#include <pthread.h>

/* An array with an assumed size has the extent -1 in its last dimension. */
static bool is_contiguous(const CFI_cdesc_t *buffer)
{
	CFI_index_t bytes = (CFI_index_t)buffer->elem_len;
	bool contiguous = true;
	for (int i = 0; i < buffer->rank; i++) {
		if (buffer->dim[i].extent == 0)
			return true;
		if (buffer->dim[i].extent != 1 && buffer->dim[i].sm != bytes)
			contiguous = false;
		bytes *= buffer->dim[i].extent;
	}
	return contiguous || bytes == 0;
}

static int refused(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static int code;
	pthread_mutex_lock(&mutex);
	if (!code && PMPI_Add_error_code(MPI_ERR_BUFFER, &code) == MPI_SUCCESS)
		PMPI_Add_error_string(code, "a buffer is a section of an array that is not contiguous, which this function takes "
					    "only while it does not return, or only with another datatype");
	int result = code ? code : MPI_ERR_BUFFER;
	pthread_mutex_unlock(&mutex);
	return result;
}

int hrf_contiguous(const CFI_cdesc_t *buffer)
{
	return is_contiguous(buffer) ? MPI_SUCCESS : refused();
}

bool hrf_ignored(const MPI_Fint *comm, const MPI_Fint *root, enum hrf_buffer buffer)
{
	MPI_Comm handle = hrf_comm(*comm);
	int inter, rank;
	if (PMPI_Comm_test_inter(handle, &inter) != MPI_SUCCESS || PMPI_Comm_rank(handle, &rank) != MPI_SUCCESS)
		return true;
	if (!inter)
		return buffer == HRF_OF_ROOT && rank != *root;
	bool is_root = *root == MPI_ROOT, is_other = !is_root && *root != MPI_PROC_NULL;
	return !(is_root && buffer != HRF_OF_OTHERS) && !(is_other && buffer != HRF_OF_ROOT);
}

int hrf_section_error(int code, const MPI_Fint *comm, const MPI_Fint *win)
{
	if (win)
		PMPI_Win_call_errhandler(hrf_win(*win), code);
	else
		PMPI_Comm_call_errhandler(comm ? hrf_comm(*comm) : MPI_COMM_WORLD, code);
	return code;
}

/* The parts of a message in a section: runs of elements along one dimension each. */
struct parts {
	int n;
	int length[CFI_MAX_RANK + 1];
	MPI_Aint place[CFI_MAX_RANK + 1];
	MPI_Datatype type[CFI_MAX_RANK + 1];
};

static int add_part(struct parts *parts, MPI_Count count, MPI_Aint stride, MPI_Aint place, MPI_Datatype type)
{
	parts->length[parts->n] = 1;
	parts->place[parts->n] = place;
	parts->type[parts->n] = MPI_DATATYPE_NULL;
	return PMPI_Type_create_hvector_c(count, 1, stride, type, &parts->type[parts->n++]);
}

/*
 * Makes a datatype for the first `units` elements of the datatype `unit` in a section. Each element of the section holds `per` of
 * them. whole[0] describes one element of the section, whole[i] all elements of the dimensions below i.
 */
static int describe(const CFI_cdesc_t *buffer, MPI_Count units, MPI_Count per, MPI_Datatype unit, MPI_Aint unit_bytes,
		    MPI_Datatype *made)
{
	struct parts parts = { .n = 0 };
	MPI_Datatype whole[CFI_MAX_RANK];
	MPI_Count elements[CFI_MAX_RANK]; /* in whole[i] */
	MPI_Count left = units / per, rest = units % per;
	MPI_Aint place = 0;
	int dims = 0, class = PMPI_Type_create_hvector_c(per, 1, unit_bytes, unit, &whole[0]);
	elements[0] = 1;
	if (class == MPI_SUCCESS)
		dims = 1;
	for (int i = 1; i < buffer->rank && class == MPI_SUCCESS; i++) {
		MPI_Count extent = buffer->dim[i - 1].extent;
		class = PMPI_Type_create_hvector_c(extent, 1, buffer->dim[i - 1].sm, whole[i - 1], &whole[i]);
		elements[i] = elements[i - 1] * extent;
		dims += class == MPI_SUCCESS;
	}
	for (int i = buffer->rank - 1; i >= 0 && class == MPI_SUCCESS; i--) {
		MPI_Count n = left / elements[i];
		left %= elements[i];
		if (n)
			class = add_part(&parts, n, buffer->dim[i].sm, place, whole[i]);
		place += n * buffer->dim[i].sm;
	}
	if (rest && class == MPI_SUCCESS)
		class = add_part(&parts, rest, unit_bytes, place, unit);
	if (class == MPI_SUCCESS)
		class = PMPI_Type_create_struct(parts.n, parts.length, parts.place, parts.type, made);
	if (class == MPI_SUCCESS)
		class = PMPI_Type_commit(made);
	while (dims > 0)
		PMPI_Type_free(&whole[--dims]);
	while (parts.n > 0)
		if (parts.type[--parts.n] != MPI_DATATYPE_NULL)
			PMPI_Type_free(&parts.type[parts.n]);
	return class;
}

int hrf_section(struct hrf_section *section, const CFI_cdesc_t *buffer, MPI_Count count, MPI_Fint datatype)
{
	*section = (struct hrf_section){ buffer->base_addr, (int)count, count, datatype, MPI_DATATYPE_NULL };
	MPI_Datatype type = hrf_type(datatype);
	/* The C function reports wrong counts and datatypes. */
	if (is_contiguous(buffer) || count <= 0 || type == MPI_DATATYPE_NULL)
		return MPI_SUCCESS;
	MPI_Count size, lower, extent;
	MPI_Count bytes = (MPI_Count)buffer->elem_len, elements = 1;
	if (PMPI_Type_size_c(type, &size) != MPI_SUCCESS || PMPI_Type_get_extent_c(type, &lower, &extent) != MPI_SUCCESS || !size)
		return MPI_SUCCESS;
	/* Each element of the section consists of whole elements of the datatype, without gaps. */
	if (lower || extent != size || bytes % size)
		return refused();
	for (int i = 0; i < buffer->rank; i++)
		elements = buffer->dim[i].extent < 0 ? -1 : elements * buffer->dim[i].extent;
	if (elements >= 0 && (count + bytes / size - 1) / (bytes / size) > elements)
		return refused();
	int class = describe(buffer, count, bytes / size, type, (MPI_Aint)size, &section->made);
	if (class != MPI_SUCCESS)
		return class;
	section->count = 1;
	section->count_c = 1;
	section->datatype = PMPI_Type_toint(section->made);
	return MPI_SUCCESS;
}

void hrf_section_end(struct hrf_section *section)
{
	if (section->made != MPI_DATATYPE_NULL)
		PMPI_Type_free(&section->made);
}
