/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes of parts of arrays: MPI 5.0, sections 5.1.3 (subarray) and 5.1.4 (darray). */
#include "adi/bindings/functions.h"
#include "adi/datatype/build.h"

#include <stdlib.h>
#include <string.h>

/* Replaces *type, whose reference it drops, by a type that was made of it. */
static int replace(int class, struct adi_type **type, struct adi_type *const *made)
{
	adi_type_release(*type);
	*type = class ? NULL : *made;
	return class;
}

/* Moves *type by bytes and gives it the bounds 0 and extent. */
static int place(struct adi_type **type, MPI_Count by, MPI_Count extent)
{
	struct adi_type_contents *contents = adi_contents_new(MPI_COMBINER_HINDEXED, true, 1, 1, ADI_DISPLACEMENTS);
	struct adi_type *made;
	if (contents) {
		adi_contents_part(contents, 0, *type);
		contents->displacements[0] = by;
	}
	int class = replace(adi_type_make(contents, &made), type, &made);
	return class ? class : replace(adi_type_resized(*type, 0, extent, &made), type, &made);
}

/* Wraps an array type around the type with its data, which it takes over. arguments, sizes: owned by the new type. */
static int wrap(struct adi_type *data, int combiner, bool large, struct adi_type *old, int *arguments, MPI_Count *sizes,
		MPI_Datatype *newtype)
{
	struct adi_type *made;
	struct adi_type_contents *contents = adi_contents_new(combiner, large, 1, 1, 0);
	if (contents) {
		adi_contents_part(contents, 0, data);
		adi_object_retain(&old->object);
		contents->old = old;
		contents->arguments = arguments;
		contents->sizes = sizes;
	} else {
		free(arguments);
		free(sizes);
	}
	adi_type_release(data);
	int class = adi_type_make(contents, &made);
	if (!class)
		*newtype = adi_type_handle(made);
	return class;
}

static int error_size(void)
{
	return adi_error(MPI_ERR_VALUE_TOO_LARGE, "the size of the array does not fit MPI_Count");
}

static int check_order(int order)
{
	return order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN ?
		       MPI_SUCCESS :
		       adi_error(MPI_ERR_ARG, "order is %d; valid: MPI_ORDER_C, MPI_ORDER_FORTRAN", order);
}

static int check_subarray(int ndims, struct adi_array sizes, struct adi_array subsizes, struct adi_array starts, int order)
{
	if (ndims < 1)
		return adi_error(MPI_ERR_ARG, "ndims is %d; valid: 1 and above", ndims);
	if (!sizes.values || !subsizes.values || !starts.values)
		return adi_error(MPI_ERR_ARG, "array_of_%s is NULL",
				 !sizes.values ? "sizes" : !subsizes.values ? "subsizes" : "starts");
	for (int i = 0; i < ndims; i++) {
		long long size = adi_at(sizes, i), sub = adi_at(subsizes, i), start = adi_at(starts, i);
		if (size < 1)
			return adi_error(MPI_ERR_ARG, "array_of_sizes[%d] is %lld; valid: 1 and above", i, size);
		if (sub < 1 || sub > size)
			return adi_error(MPI_ERR_ARG, "array_of_subsizes[%d] is %lld; valid: 1 to %lld", i, sub, size);
		if (start < 0 || start > size - sub)
			return adi_error(MPI_ERR_ARG, "array_of_starts[%d] is %lld; valid: 0 to %lld", i, start, size - sub);
	}
	return check_order(order);
}

/* *data: the type of the subarray. */
static int subarray(int ndims, struct adi_array sizes, struct adi_array subsizes, struct adi_array starts, int order,
		    struct adi_type *old, struct adi_type **data)
{
	MPI_Count stride = old->extent, begin = 0;
	adi_object_retain(&old->object);
	*data = old;
	for (int k = 0; k < ndims; k++) {
		int i = order == MPI_ORDER_C ? ndims - 1 - k : k;
		MPI_Count n = adi_at(subsizes, i), by;
		struct adi_type *made;
		int class = replace(adi_type_vector(n, 1, stride, *data, &made), data, &made);
		if (class)
			return class;
		if (__builtin_mul_overflow(adi_at(starts, i), stride, &by) || __builtin_add_overflow(begin, by, &begin) ||
		    __builtin_mul_overflow(stride, adi_at(sizes, i), &stride)) {
			adi_type_release(*data);
			return error_size();
		}
	}
	return place(data, begin, stride);
}

int mpi_type_create_subarray(int ndims, struct adi_array sizes, struct adi_array subsizes, struct adi_array starts, int order,
			     struct adi_type *oldtype, MPI_Datatype *newtype, bool large)
{
	struct adi_type *data;
	int class = check_subarray(ndims, sizes, subsizes, starts, order);
	if (!class)
		class = subarray(ndims, sizes, subsizes, starts, order, oldtype, &data);
	if (class)
		return class;
	int *arguments = malloc(2 * sizeof *arguments);
	MPI_Count *kept = calloc((size_t)ndims, 3 * sizeof *kept);
	if (!arguments || !kept) {
		free(arguments);
		free(kept);
		adi_type_release(data);
		return adi_error(MPI_ERR_NO_MEM, "no memory for a datatype");
	}
	arguments[0] = ndims;
	arguments[1] = order;
	for (int i = 0; i < ndims; i++) {
		kept[i] = adi_at(sizes, i);
		kept[ndims + i] = adi_at(subsizes, i);
		kept[2 * ndims + i] = adi_at(starts, i);
	}
	return wrap(data, MPI_COMBINER_SUBARRAY, large, oldtype, arguments, kept, newtype);
}

/* One dimension of a distributed array: the blocks of process `at` of `processes`. */
struct dimension {
	MPI_Count size, block; /* elements */
	MPI_Count processes, at;
};

static int check_dimension(int i, MPI_Count size, int distribution, int argument, int processes)
{
	if (size < 1)
		return adi_error(MPI_ERR_ARG, "array_of_gsizes[%d] is %lld; valid: 1 and above", i, (long long)size);
	if (processes < 1)
		return adi_error(MPI_ERR_ARG, "array_of_psizes[%d] is %d; valid: 1 and above", i, processes);
	if (distribution == MPI_DISTRIBUTE_NONE)
		return processes == 1 ? MPI_SUCCESS :
					adi_error(MPI_ERR_ARG,
						  "array_of_psizes[%d] is %d; valid with MPI_DISTRIBUTE_NONE: 1", i, processes);
	if (distribution != MPI_DISTRIBUTE_BLOCK && distribution != MPI_DISTRIBUTE_CYCLIC)
		return adi_error(MPI_ERR_ARG, "array_of_distribs[%d] is %d; valid: MPI_DISTRIBUTE_BLOCK, _CYCLIC, _NONE", i,
				 distribution);
	if (argument == MPI_DISTRIBUTE_DFLT_DARG)
		return MPI_SUCCESS;
	if (argument < 1)
		return adi_error(MPI_ERR_ARG, "array_of_dargs[%d] is %d; valid: 1 and above, or MPI_DISTRIBUTE_DFLT_DARG", i,
				 argument);
	if (distribution == MPI_DISTRIBUTE_BLOCK && (MPI_Count)argument * processes < size)
		return adi_error(MPI_ERR_ARG, "array_of_dargs[%d] is %d; valid: at least %lld elements for each of %d processes", i,
				 argument, (long long)((size + processes - 1) / processes), processes);
	return MPI_SUCCESS;
}

static MPI_Count block_size(MPI_Count size, int distribution, int argument, int processes)
{
	if (distribution == MPI_DISTRIBUTE_NONE)
		return size;
	if (argument != MPI_DISTRIBUTE_DFLT_DARG)
		return argument;
	return distribution == MPI_DISTRIBUTE_BLOCK ? (size - 1) / processes + 1 : 1;
}

/* The full blocks of the process, and the rest of a block at the end of the dimension. */
static int two_parts(const struct dimension *dim, MPI_Count full, MPI_Count rest, MPI_Count extent, struct adi_type *old,
		     struct adi_type **made)
{
	struct adi_type *blocks;
	MPI_Count turn = dim->processes * dim->block, at = (dim->at + full * dim->processes) * dim->block;
	int class = adi_type_vector(full, dim->block, turn * extent, old, &blocks);
	if (class)
		return class;
	struct adi_type_contents *contents =
		adi_contents_new(MPI_COMBINER_STRUCT, true, 2, 2, ADI_LENGTHS | ADI_DISPLACEMENTS);
	if (contents) {
		contents->lengths[0] = full ? 1 : 0;
		contents->displacements[0] = dim->at * dim->block * extent;
		adi_contents_part(contents, 0, blocks);
		contents->lengths[1] = rest;
		contents->displacements[1] = rest ? at * extent : 0;
		adi_contents_part(contents, 1, old);
	}
	adi_type_release(blocks);
	return adi_type_make(contents, made);
}

/* Replaces *type by its distribution along one dimension, with the bounds of the whole dimension. */
static int distribute(const struct dimension *dim, struct adi_type **type)
{
	MPI_Count extent = (*type)->extent, whole, turn, full = 0, rest = 0, first;
	if (__builtin_mul_overflow(dim->size, extent, &whole) || __builtin_mul_overflow(dim->processes, dim->block, &turn) ||
	    __builtin_mul_overflow(turn, extent ? extent : 1, &first)) {
		adi_type_release(*type);
		return error_size();
	}
	first = dim->at * dim->block;
	if (first < dim->size) {
		MPI_Count left = dim->size - first; /* elements from the first block on */
		full = left / turn;
		rest = left % turn;
		if (rest >= dim->block) {
			full++;
			rest = 0;
		}
	}
	struct adi_type *made;
	int class = replace(two_parts(dim, full, rest, extent, *type, &made), type, &made);
	return class ? class : replace(adi_type_resized(*type, 0, whole, &made), type, &made);
}

static int check_darray(int size, int rank, int ndims, struct adi_array gsizes, const int distribs[], const int dargs[],
			const int psizes[], int order)
{
	if (size < 1)
		return adi_error(MPI_ERR_ARG, "size is %d; valid: 1 and above", size);
	if (rank < 0 || rank >= size)
		return adi_error(MPI_ERR_RANK, "rank is %d; valid: 0 to %d", rank, size - 1);
	if (ndims < 1)
		return adi_error(MPI_ERR_ARG, "ndims is %d; valid: 1 and above", ndims);
	if (!gsizes.values || !distribs || !dargs || !psizes)
		return adi_error(MPI_ERR_ARG, "array_of_%s is NULL",
				 !gsizes.values ? "gsizes" : !distribs ? "distribs" : !dargs ? "dargs" : "psizes");
	MPI_Count processes = 1;
	for (int i = 0; i < ndims; i++) {
		int class = check_dimension(i, adi_at(gsizes, i), distribs[i], dargs[i], psizes[i]);
		if (class)
			return class;
		processes = processes > size ? processes : processes * psizes[i];
	}
	if (processes != size)
		return adi_error(MPI_ERR_ARG, "the product of array_of_psizes is not size, which is %d", size);
	return check_order(order);
}

int mpi_type_create_darray(int size, int rank, int ndims, struct adi_array gsizes, const int distribs[], const int dargs[],
			   const int psizes[], int order, struct adi_type *oldtype, MPI_Datatype *newtype, bool large)
{
	int class = check_darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order);
	if (class)
		return class;
	int *arguments = calloc((size_t)ndims, 4 * sizeof *arguments); /* and position of the process in each dimension */
	int *kept = calloc(3 * (size_t)ndims + 4, sizeof *kept);
	MPI_Count *sizes = calloc((size_t)ndims, sizeof *sizes);
	if (!arguments || !kept || !sizes) {
		free(arguments);
		free(kept);
		free(sizes);
		return adi_error(MPI_ERR_NO_MEM, "no memory for a datatype");
	}
	int *at = arguments, group = size, rest = rank;
	for (int i = 0; i < ndims; i++) { /* the last dimension varies fastest, in either order */
		group /= psizes[i];
		at[i] = rest / group;
		rest %= group;
	}
	adi_object_retain(&oldtype->object);
	struct adi_type *data = oldtype;
	for (int k = 0; k < ndims && !class; k++) {
		int i = order == MPI_ORDER_C ? ndims - 1 - k : k;
		struct dimension dim = { adi_at(gsizes, i), block_size(adi_at(gsizes, i), distribs[i], dargs[i], psizes[i]),
					 psizes[i], at[i] };
		class = distribute(&dim, &data);
	}
	free(arguments);
	if (class) {
		free(kept);
		free(sizes);
		return class;
	}
	memcpy(kept, (int[]){ size, rank, ndims }, 3 * sizeof *kept);
	memcpy(kept + 3, distribs, (size_t)ndims * sizeof *kept);
	memcpy(kept + 3 + ndims, dargs, (size_t)ndims * sizeof *kept);
	memcpy(kept + 3 + 2 * ndims, psizes, (size_t)ndims * sizeof *kept);
	kept[3 + 3 * ndims] = order;
	for (int i = 0; i < ndims; i++)
		sizes[i] = adi_at(gsizes, i);
	return wrap(data, MPI_COMBINER_DARRAY, large, oldtype, kept, sizes, newtype);
}
