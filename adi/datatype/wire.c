/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A datatype as bytes: words of 8 bytes. First MAGIC and the number of types, then the types; a type names others by their
 * index and stands behind them. The last is the one that is meant. Of derived types only the type map is kept:
 *
 *   NAMED, the handle's value
 *   VECTOR, n, length, stride in bytes, part
 *   LIST, n, parts (1 or n), then n times length, displacement in bytes, then parts
 *   RESIZED, lb, extent, part
 */
#include "adi/datatype/build.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC 0x4d50495459504531
enum { NAMED = 1, VECTOR, LIST, RESIZED };

/* The types of a tree, each once, parts before the types that they are of; and a table to find their indices. */
struct set {
	const struct adi_type **type;
	size_t n, room;
	size_t *slot; /* [2 * room]: index + 1, or 0 */
	bool failed;
};

static size_t *slot_of(struct set *set, const struct adi_type *type)
{
	size_t mask = 2 * set->room - 1, i = ((uintptr_t)type >> 4) * 0x9e3779b97f4a7c15 >> 20 & mask;
	while (set->slot[i] && set->type[set->slot[i] - 1] != type)
		i = (i + 1) & mask;
	return &set->slot[i];
}

static bool set_grow(struct set *set)
{
	size_t room = set->room ? 2 * set->room : 16;
	void *type = realloc(set->type, room * sizeof *set->type);
	size_t *slot = calloc(2 * room, sizeof *slot);
	set->type = type ? type : set->type;
	if (!type || !slot) {
		free(slot);
		return false;
	}
	free(set->slot);
	set->slot = slot;
	set->room = room;
	for (size_t i = 0; i < set->n; i++)
		*slot_of(set, set->type[i]) = i + 1;
	return true;
}

/* The type that has the data of a type: combiners that change nothing are left out. */
static const struct adi_type *plain(const struct adi_type *type)
{
	while (type->contents) {
		switch (type->contents->combiner) {
		case MPI_COMBINER_DUP:
		case MPI_COMBINER_SUBARRAY:
		case MPI_COMBINER_DARRAY:
		case MPI_COMBINER_F90_REAL:
		case MPI_COMBINER_F90_COMPLEX:
		case MPI_COMBINER_F90_INTEGER:
			type = type->contents->part[0];
			break;
		default:
			return type;
		}
	}
	return type;
}

static void collect(struct set *set, const struct adi_type *type)
{
	type = plain(type);
	if (set->n == set->room && !set_grow(set))
		set->failed = true;
	if (set->failed || *slot_of(set, type))
		return;
	for (MPI_Count i = 0; type->contents && i < type->contents->parts; i++)
		collect(set, type->contents->part[i]);
	if (set->failed || (set->n == set->room && !set_grow(set))) {
		set->failed = true;
		return;
	}
	set->type[set->n++] = type;
	*slot_of(set, type) = set->n;
}

/* The words as they are written. word NULL: they are counted only. */
struct words {
	size_t n;
	char *to;
};

static void put(struct words *words, MPI_Count value)
{
	if (words->to)
		memcpy(words->to + words->n * sizeof value, &value, sizeof value);
	words->n++;
}

static void put_part(struct words *words, struct set *set, const struct adi_type *part)
{
	put(words, (MPI_Count)*slot_of(set, plain(part)) - 1);
}

static void put_type(struct words *words, struct set *set, const struct adi_type *type)
{
	const struct adi_type_contents *contents = type->contents;
	if (!contents) {
		put(words, NAMED);
		put(words, type->object.constant);
	} else if (contents->combiner == MPI_COMBINER_RESIZED) {
		put(words, RESIZED);
		put(words, type->lb);
		put(words, type->extent);
		put_part(words, set, contents->part[0]);
	} else if (!contents->lengths && !contents->displacements) {
		put(words, VECTOR);
		put(words, contents->n);
		put(words, contents->length);
		put(words, contents->stride * contents->unit);
		put_part(words, set, contents->part[0]);
	} else {
		put(words, LIST);
		put(words, contents->n);
		put(words, contents->parts);
		for (MPI_Count i = 0; i < contents->n; i++) {
			struct adi_block block = adi_contents_block(contents, i);
			put(words, block.length);
			put(words, block.at);
		}
		for (MPI_Count i = 0; i < contents->parts; i++)
			put_part(words, set, contents->part[i]);
	}
}

static void put_all(struct words *words, struct set *set)
{
	put(words, MAGIC);
	put(words, (MPI_Count)set->n);
	for (size_t i = 0; i < set->n; i++)
		put_type(words, set, set->type[i]);
}

size_t adi_type_wire(const struct adi_type *type, void *to, size_t max)
{
	struct set set = { 0 };
	struct words words = { 0 };
	collect(&set, type);
	if (!set.failed) {
		put_all(&words, &set);
		if (to && words.n * sizeof(MPI_Count) <= max) {
			words = (struct words){ .to = to };
			put_all(&words, &set);
		}
	}
	free(set.type);
	free(set.slot);
	return words.n * sizeof(MPI_Count);
}

/* The words that are left to read, and the types that were made. */
struct reading {
	const char *at;
	size_t left;
	bool failed;
	struct adi_type **type;
	MPI_Count types;
};

/* 0 at the end. */
static MPI_Count get(struct reading *in)
{
	MPI_Count value = 0;
	if (!in->left) {
		in->failed = true;
		return 0;
	}
	memcpy(&value, in->at, sizeof value);
	in->at += sizeof value;
	in->left--;
	return value;
}

static MPI_Count get_natural(struct reading *in)
{
	MPI_Count value = get(in);
	in->failed |= value < 0;
	return in->failed ? 0 : value;
}

static struct adi_type *get_part(struct reading *in)
{
	MPI_Count i = get_natural(in);
	in->failed |= i >= in->types;
	return in->failed ? NULL : in->type[i];
}

static int error_wire(void)
{
	return adi_error(MPI_ERR_TYPE, "the description of a datatype from another process is damaged");
}

static int read_named(struct reading *in, struct adi_type **made)
{
	uint64_t handle = (uint64_t)get(in) - (uintptr_t)MPI_DATATYPE_NULL;
	if (in->failed || handle > 255 || !adi_type_constants[handle])
		return error_wire();
	*made = adi_type_constants[handle];
	adi_object_retain(&(*made)->object);
	return MPI_SUCCESS;
}

static int read_vector(struct reading *in, struct adi_type **made)
{
	MPI_Count n = get_natural(in), length = get_natural(in), stride = get(in);
	struct adi_type *part = get_part(in);
	return in->failed ? error_wire() : adi_type_vector(n, length, stride, part, made);
}

static int read_list(struct reading *in, struct adi_type **made)
{
	MPI_Count n = get_natural(in), parts = get_natural(in);
	if (in->failed || (parts != 1 && parts != n) || (size_t)n > in->left / 2 || (size_t)parts > in->left)
		return error_wire();
	struct adi_type_contents *contents =
		adi_contents_new(parts == 1 ? MPI_COMBINER_HINDEXED : MPI_COMBINER_STRUCT, true, n, parts,
				 ADI_LENGTHS | ADI_DISPLACEMENTS);
	for (MPI_Count i = 0; contents && i < n; i++) {
		contents->lengths[i] = get_natural(in);
		contents->displacements[i] = get(in);
	}
	for (MPI_Count i = 0; contents && i < parts; i++) {
		struct adi_type *part = get_part(in);
		if (part)
			adi_contents_part(contents, i, part);
	}
	if (in->failed) {
		adi_contents_release(contents);
		return error_wire();
	}
	return adi_type_make(contents, made);
}

static int read_resized(struct reading *in, struct adi_type **made)
{
	MPI_Count lb = get(in), extent = get(in);
	struct adi_type *part = get_part(in);
	return in->failed ? error_wire() : adi_type_resized(part, lb, extent, made);
}

static int read_type(struct reading *in, struct adi_type **made)
{
	switch (get(in)) {
	case NAMED:
		return read_named(in, made);
	case VECTOR:
		return read_vector(in, made);
	case LIST:
		return read_list(in, made);
	case RESIZED:
		return read_resized(in, made);
	}
	return error_wire();
}

int adi_type_from_wire(const void *bytes, size_t len, struct adi_type **type)
{
	struct reading in = { .at = bytes, .left = len / sizeof(MPI_Count), .failed = len % sizeof(MPI_Count) };
	MPI_Count magic = get(&in), n = get_natural(&in);
	if (in.failed || magic != MAGIC || n < 1 || (size_t)n > in.left / 2)
		return error_wire();
	in.type = calloc((size_t)n, sizeof *in.type);
	if (!in.type)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a datatype");
	int class = MPI_SUCCESS;
	while (!class && in.types < n) {
		class = read_type(&in, &in.type[in.types]);
		in.types += !class;
	}
	if (!class && in.left)
		class = error_wire();
	if (!class) {
		*type = in.type[n - 1];
		(*type)->committed = true;
		adi_object_retain(&(*type)->object);
	}
	for (MPI_Count i = 0; i < in.types; i++)
		adi_type_release(in.type[i]);
	free(in.type);
	return class;
}
