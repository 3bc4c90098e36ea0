/* SPDX-License-Identifier: BSD-3-Clause */
/* Constructors of derived datatypes, and their bounds: MPI 5.0, sections 5.1.2 and 5.1.6 to 5.1.8. */
#include "adi/bindings/functions.h"
#include "adi/core/entry.h"
#include "adi/datatype/build.h"

#include <stdlib.h>

/* What the blocks of a type amount to so far. Sums that overflow set overflow. */
struct bounds {
	bool overflow, bounded, data;
	MPI_Count lb, ub;           /* explicit bounds; valid if bounded */
	MPI_Count true_lb, true_ub; /* valid if data */
	MPI_Count padded_ub;        /* the last byte of the blocks with their padding, and 1; valid if data */
	MPI_Count next;             /* where the next block continues the run; valid if data */
	bool run;
	MPI_Count size, elements, external;
	int align, depth;
	enum adi_basic basic;
	const struct adi_type *leaf;
};

static MPI_Count plus(struct bounds *bounds, MPI_Count a, MPI_Count b)
{
	MPI_Count sum;
	bounds->overflow |= __builtin_add_overflow(a, b, &sum);
	return sum;
}

static MPI_Count times(struct bounds *bounds, MPI_Count a, MPI_Count b)
{
	MPI_Count product;
	bounds->overflow |= __builtin_mul_overflow(a, b, &product);
	return product;
}

/* Widens the bounds by a block's, whose first element is at bytes behind the origin. */
static void widen(struct bounds *bounds, const struct adi_type *part, MPI_Count length, MPI_Count at)
{
	MPI_Count last = times(bounds, length - 1, part->extent);
	MPI_Count low = plus(bounds, at, last < 0 ? last : 0), high = plus(bounds, at, last > 0 ? last : 0);
	if (part->bounded) {
		MPI_Count lb = plus(bounds, low, part->lb);
		MPI_Count ub = plus(bounds, high, plus(bounds, part->lb, part->extent));
		bounds->lb = bounds->bounded && bounds->lb < lb ? bounds->lb : lb;
		bounds->ub = bounds->bounded && bounds->ub > ub ? bounds->ub : ub;
		bounds->bounded = true;
	}
	if (part->size) {
		MPI_Count lb = plus(bounds, low, part->true_lb);
		MPI_Count ub = plus(bounds, high, plus(bounds, part->true_lb, part->true_extent));
		bounds->true_lb = bounds->data && bounds->true_lb < lb ? bounds->true_lb : lb;
		MPI_Count padded_ub = plus(bounds, high, plus(bounds, part->lb, part->extent));
		bounds->true_ub = bounds->data && bounds->true_ub > ub ? bounds->true_ub : ub;
		bounds->padded_ub = bounds->data && bounds->padded_ub > padded_ub ? bounds->padded_ub : padded_ub;
		bounds->data = true;
	}
}

/* Adds n blocks of a part; stride in bytes. */
static void add(struct bounds *bounds, const struct adi_type *part, MPI_Count n, MPI_Count length, MPI_Count at,
		MPI_Count stride)
{
	if (!n || !length)
		return;
	MPI_Count block = times(bounds, length, part->size);
	if (part->size) {
		bool joined = (part->contiguous || (part->run && length == 1)) && (n == 1 || stride == block);
		MPI_Count begin = plus(bounds, at, part->true_lb);
		bool first = !bounds->data;
		bounds->run = joined && (first || (bounds->run && begin == bounds->next));
		bounds->next = plus(bounds, begin, times(bounds, n, block));
		bounds->basic = first || bounds->basic == part->basic ? part->basic : ADI_BASIC_NONE;
		bounds->leaf = first || bounds->leaf == part->leaf ? part->leaf : NULL;
		bounds->align = bounds->align > part->align ? bounds->align : part->align;
	}
	widen(bounds, part, length, at);
	if (n > 1)
		widen(bounds, part, length, plus(bounds, at, times(bounds, n - 1, stride)));
	MPI_Count copies = times(bounds, n, length);
	bounds->size = plus(bounds, bounds->size, times(bounds, copies, part->size));
	bounds->elements = plus(bounds, bounds->elements, times(bounds, copies, part->elements));
	bounds->external = plus(bounds, bounds->external, times(bounds, copies, part->external));
}

static void add_blocks(struct bounds *bounds, const struct adi_type_contents *contents)
{
	if (!contents->lengths && !contents->displacements) {
		add(bounds, contents->part[0], contents->n, contents->length, 0,
		    times(bounds, contents->stride, contents->unit));
	} else {
		for (MPI_Count i = 0; i < contents->n; i++) {
			times(bounds, contents->displacements ? contents->displacements[i] : i, contents->unit);
			if (bounds->overflow)
				break;
			struct adi_block block = adi_contents_block(contents, i);
			add(bounds, block.type, 1, block.length, block.at, 0);
		}
	}
	for (MPI_Count i = 0; i < contents->parts; i++)
		if (contents->part[i]->depth > bounds->depth)
			bounds->depth = contents->part[i]->depth;
}

void adi_type_bound(struct adi_type *type, MPI_Count lb, MPI_Count extent)
{
	type->bounded = true;
	type->lb = lb;
	type->extent = extent;
	type->contiguous = type->run && extent == type->size;
}

/*
 * The extent of a type without explicit bounds: from its first byte to the end of its blocks, padded to its alignment. The
 * blocks end with their own padding, as in Open MPI, although the definition in MPI 5.0, section 5.1.6, is of the basic elements
 * alone. The two differ only if a block is not aligned. Programs that lay out memory by extents need an extent that is
 * not less than a block's displacement and extent.
 */
static MPI_Count extent_of(struct bounds *bounds)
{
	MPI_Count bytes = 0;
	bounds->overflow |= __builtin_sub_overflow(bounds->padded_ub, bounds->true_lb, &bytes);
	MPI_Count rest = bounds->align ? bytes % bounds->align : 0;
	return rest ? plus(bounds, bytes, bounds->align - rest) : bytes;
}

int adi_type_make(struct adi_type_contents *contents, struct adi_type **made)
{
	struct bounds bounds = { .run = true };
	struct adi_type *type = contents ? calloc(1, sizeof *type) : NULL;
	if (!type) {
		adi_contents_release(contents);
		return adi_error(MPI_ERR_NO_MEM, "no memory for a datatype");
	}
	add_blocks(&bounds, contents);
	MPI_Count true_extent = 0;
	bounds.overflow |= __builtin_sub_overflow(bounds.true_ub, bounds.true_lb, &true_extent);
	adi_object_init(&type->object, ADI_TYPE);
	type->contents = contents;
	type->basic = bounds.basic;
	type->leaf = bounds.leaf;
	type->size = bounds.size;
	type->elements = bounds.elements;
	type->external = bounds.external;
	type->true_lb = bounds.true_lb;
	type->true_extent = true_extent;
	type->align = bounds.align;
	type->depth = bounds.depth + 1;
	type->run = bounds.run;
	type->lb = bounds.bounded ? bounds.lb : bounds.true_lb;
	if (bounds.bounded)
		bounds.overflow |= __builtin_sub_overflow(bounds.ub, bounds.lb, &type->extent);
	else
		type->extent = extent_of(&bounds);
	type->bounded = bounds.bounded;
	type->contiguous = type->run && type->extent == type->size;
	if (!type->size)
		type->contiguous = true;
	if (!bounds.overflow && type->depth <= ADI_TYPE_DEPTH) {
		*made = type;
		return MPI_SUCCESS;
	}
	int depth = type->depth;
	adi_type_release(type);
	return depth > ADI_TYPE_DEPTH ?
		       adi_error(MPI_ERR_TYPE, "the datatype is nested more than %d levels deep", ADI_TYPE_DEPTH) :
		       adi_error(MPI_ERR_VALUE_TOO_LARGE, "the size or a bound of the datatype does not fit MPI_Count");
}

/* Makes a type and stores its handle. */
static int make(struct adi_type_contents *contents, MPI_Datatype *newtype)
{
	struct adi_type *made;
	int class = adi_type_make(contents, &made);
	if (!class)
		*newtype = adi_type_handle(made);
	return class;
}

static struct adi_type_contents *vector(int combiner, bool large, MPI_Count n, MPI_Count length, MPI_Count stride,
					MPI_Count unit, struct adi_type *old)
{
	struct adi_type_contents *contents = adi_contents_new(combiner, large, n, 1, 0);
	if (!contents)
		return NULL;
	adi_contents_part(contents, 0, old);
	contents->length = length;
	contents->stride = stride;
	contents->unit = unit;
	return contents;
}

int adi_type_vector(MPI_Count n, MPI_Count length, MPI_Count stride, struct adi_type *old, struct adi_type **made)
{
	return adi_type_make(vector(MPI_COMBINER_HVECTOR, true, n, length, stride, 1, old), made);
}

static int check_length(MPI_Count length)
{
	return length < 0 ? adi_error(MPI_ERR_ARG, "blocklength is %lld; valid: 0 and above", (long long)length) : MPI_SUCCESS;
}

int mpi_type_contiguous(MPI_Count count, struct adi_type *oldtype, MPI_Datatype *newtype, bool large)
{
	return make(vector(MPI_COMBINER_CONTIGUOUS, large, 1, count, 0, 1, oldtype), newtype);
}

int mpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, struct adi_type *oldtype, MPI_Datatype *newtype,
		    bool large)
{
	int class = check_length(blocklength);
	return class ? class : make(vector(MPI_COMBINER_VECTOR, large, count, blocklength, stride, oldtype->extent, oldtype),
				    newtype);
}

int mpi_type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, struct adi_type *oldtype,
			    MPI_Datatype *newtype, bool large)
{
	int class = check_length(blocklength);
	return class ? class : make(vector(MPI_COMBINER_HVECTOR, large, count, blocklength, stride, 1, oldtype), newtype);
}

/* The lists of a constructor, as the program passed them. lengths.values NULL: all blocks have length. */
struct lists {
	MPI_Count count, length;
	struct adi_array lengths, displacements;
	MPI_Count unit;
};

static int check_lists(const struct lists *lists, bool each)
{
	if (lists->count && each && !lists->lengths.values)
		return adi_error(MPI_ERR_ARG, "array_of_blocklengths is NULL, count is %lld", (long long)lists->count);
	if (lists->count && !lists->displacements.values)
		return adi_error(MPI_ERR_ARG, "array_of_displacements is NULL, count is %lld", (long long)lists->count);
	for (MPI_Count i = 0; each && i < lists->count; i++)
		if (adi_at(lists->lengths, i) < 0)
			return adi_error(MPI_ERR_ARG, "array_of_blocklengths[%lld] is %lld; valid: 0 and above", (long long)i,
					 (long long)adi_at(lists->lengths, i));
	return each ? MPI_SUCCESS : check_length(lists->length);
}

/* Contents with the lists and room for parts. */
static struct adi_type_contents *list(int combiner, bool large, const struct lists *lists, MPI_Count parts)
{
	bool each = lists->lengths.values;
	struct adi_type_contents *contents = adi_contents_new(combiner, large, lists->count, parts,
							      ADI_DISPLACEMENTS | (each ? ADI_LENGTHS : 0));
	if (!contents)
		return NULL;
	contents->length = lists->length;
	contents->unit = lists->unit;
	for (MPI_Count i = 0; i < lists->count; i++) {
		contents->displacements[i] = adi_at(lists->displacements, i);
		if (each)
			contents->lengths[i] = adi_at(lists->lengths, i);
	}
	return contents;
}

static int indexed(int combiner, bool large, const struct lists *lists, bool each, struct adi_type *old, MPI_Datatype *newtype)
{
	int class = check_lists(lists, each);
	if (class)
		return class;
	struct adi_type_contents *contents = list(combiner, large, lists, 1);
	if (contents)
		adi_contents_part(contents, 0, old);
	return make(contents, newtype);
}

int mpi_type_indexed(MPI_Count count, struct adi_array lengths, struct adi_array displacements, struct adi_type *oldtype,
		     MPI_Datatype *newtype, bool large)
{
	struct lists lists = { count, 1, lengths, displacements, oldtype->extent };
	return indexed(MPI_COMBINER_INDEXED, large, &lists, true, oldtype, newtype);
}

int mpi_type_create_hindexed(MPI_Count count, struct adi_array lengths, struct adi_array displacements, struct adi_type *oldtype,
			     MPI_Datatype *newtype, bool large)
{
	struct lists lists = { count, 1, lengths, displacements, 1 };
	return indexed(MPI_COMBINER_HINDEXED, large, &lists, true, oldtype, newtype);
}

int mpi_type_create_indexed_block(MPI_Count count, MPI_Count blocklength, struct adi_array displacements,
				  struct adi_type *oldtype, MPI_Datatype *newtype, bool large)
{
	struct lists lists = { count, blocklength, { 0 }, displacements, oldtype->extent };
	return indexed(MPI_COMBINER_INDEXED_BLOCK, large, &lists, false, oldtype, newtype);
}

int mpi_type_create_hindexed_block(MPI_Count count, MPI_Count blocklength, struct adi_array displacements,
				   struct adi_type *oldtype, MPI_Datatype *newtype, bool large)
{
	struct lists lists = { count, blocklength, { 0 }, displacements, 1 };
	return indexed(MPI_COMBINER_HINDEXED_BLOCK, large, &lists, false, oldtype, newtype);
}

int mpi_type_create_struct(MPI_Count count, struct adi_array lengths, struct adi_array displacements, const MPI_Datatype types[],
			   MPI_Datatype *newtype, bool large)
{
	struct lists lists = { count, 1, lengths, displacements, 1 };
	int class = check_lists(&lists, true);
	if (class)
		return class;
	if (count && !types)
		return adi_error(MPI_ERR_ARG, "array_of_types is NULL, count is %lld", (long long)count);
	struct adi_type_contents *contents = list(MPI_COMBINER_STRUCT, large, &lists, count);
	for (MPI_Count i = 0; contents && i < count; i++) {
		struct adi_type *part;
		class = adi_type_take(types[i], "array_of_types[]", &part);
		if (class) {
			adi_contents_release(contents);
			return class;
		}
		adi_contents_part(contents, i, part);
	}
	return make(contents, newtype);
}

static int resized(bool large, struct adi_type *old, MPI_Count lb, MPI_Count extent, struct adi_type **made)
{
	MPI_Count ub;
	if (__builtin_add_overflow(lb, extent, &ub))
		return adi_error(MPI_ERR_ARG, "lb + extent does not fit MPI_Count: lb is %lld, extent is %lld", (long long)lb,
				 (long long)extent);
	struct adi_type_contents *contents = adi_contents_new(MPI_COMBINER_RESIZED, large, 1, 1, 0);
	if (contents)
		adi_contents_part(contents, 0, old);
	if (contents && !(contents->sizes = malloc(2 * sizeof *contents->sizes))) {
		adi_contents_release(contents);
		contents = NULL;
	}
	if (contents) {
		contents->sizes[0] = lb;
		contents->sizes[1] = extent;
	}
	int class = adi_type_make(contents, made);
	if (!class)
		adi_type_bound(*made, lb, extent);
	return class;
}

int adi_type_resized(struct adi_type *old, MPI_Count lb, MPI_Count extent, struct adi_type **made)
{
	return resized(true, old, lb, extent, made);
}

int mpi_type_create_resized(struct adi_type *oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype, bool large)
{
	struct adi_type *made;
	int class = resized(large, oldtype, lb, extent, &made);
	if (!class)
		*newtype = adi_type_handle(made);
	return class;
}
