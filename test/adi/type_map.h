/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random datatypes, each with its type map as MPI 5.0, section 5.1 defines it: a list of basic elements and their
 * displacements. The program that includes this file defines the make_* functions, which construct the datatype that is tested.
 */
#ifndef TEST_ADI_TYPE_MAP_H
#define TEST_ADI_TYPE_MAP_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ELEMENTS 3000

struct element {
	ptrdiff_t at;
	int size, align;
};

struct map {
	struct element *element;
	int n;
	bool bounded;         /* explicit bounds */
	ptrdiff_t lb, ub;     /* also where they are not explicit */
	ptrdiff_t true_lb, true_ub;
	ptrdiff_t padded_ub;  /* of the parts, if any; valid if n is not 0 */
	size_t size;
};

struct tested {
	MPI_Datatype handle;
	struct map map;
};

/* Each stores a new datatype. */
static void make_contiguous(int count, MPI_Datatype old, MPI_Datatype *made);
static void make_vector(int count, int length, int stride, MPI_Datatype old, MPI_Datatype *made);
static void make_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype *made);
static void make_indexed(int count, const int *lengths, const int *displacements, MPI_Datatype old, MPI_Datatype *made);
static void make_hindexed(int count, const int *lengths, const MPI_Aint *displacements, MPI_Datatype old, MPI_Datatype *made);
static void make_indexed_block(int count, int length, const int *displacements, MPI_Datatype old, MPI_Datatype *made);
static void make_hindexed_block(int count, int length, const MPI_Aint *displacements, MPI_Datatype old, MPI_Datatype *made);
static void make_struct(int count, const int *lengths, const MPI_Aint *displacements, const MPI_Datatype *types,
			MPI_Datatype *made);
static void make_resized(MPI_Datatype old, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *made);
static void make_subarray(int n, const int *sizes, const int *subsizes, const int *starts, int order, MPI_Datatype old,
			  MPI_Datatype *made);
static void make_darray(int size, int rank, int n, const int *sizes, const int *distribs, const int *arguments,
			const int *processes, int order, MPI_Datatype old, MPI_Datatype *made);
static void make_dup(MPI_Datatype old, MPI_Datatype *made);
static void free_type(MPI_Datatype *type);

/* A generator of our own: the same numbers everywhere. */
static uint64_t random_state = 1;

static unsigned below(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % n;
}

static int between(int low, int high)
{
	return low + (int)below((unsigned)(high - low + 1));
}

/* Adds count elements of a map, at a displacement in bytes. */
static void map_add(struct map *map, const struct map *old, int count, ptrdiff_t at)
{
	ptrdiff_t extent = old->ub - old->lb;
	for (int k = 0; k < count; k++) {
		ptrdiff_t by = at + k * extent;
		if (old->bounded) {
			ptrdiff_t lb = old->lb + by, ub = old->ub + by;
			map->lb = map->bounded && map->lb < lb ? map->lb : lb;
			map->ub = map->bounded && map->ub > ub ? map->ub : ub;
			map->bounded = true;
		}
		if (old->n && (!map->n || map->padded_ub < old->ub + by))
			map->padded_ub = old->ub + by;
		map->element = realloc(map->element, ((size_t)map->n + (size_t)old->n + 1) * sizeof *map->element);
		for (int i = 0; i < old->n; i++) {
			map->element[map->n] = old->element[i];
			map->element[map->n++].at += by;
		}
	}
}

static void map_finish(struct map *map)
{
	int align = 1;
	map->size = 0;
	map->true_lb = map->true_ub = 0;
	for (int i = 0; i < map->n; i++) {
		const struct element *e = &map->element[i];
		map->size += (size_t)e->size;
		if (!i || e->at < map->true_lb)
			map->true_lb = e->at;
		if (!i || e->at + e->size > map->true_ub)
			map->true_ub = e->at + e->size;
		if (e->align > align)
			align = e->align;
	}
	if (!map->bounded) {
		ptrdiff_t end = map->padded_ub > map->true_ub ? map->padded_ub : map->true_ub;
		ptrdiff_t bytes = (end - map->true_lb + align - 1) / align * align;
		map->lb = map->true_lb;
		map->ub = map->lb + bytes;
	}
}

static void map_bound(struct map *map, ptrdiff_t lb, ptrdiff_t extent)
{
	map->bounded = true;
	map->lb = lb;
	map->ub = lb + extent;
}

static struct tested tested_basic(void)
{
	static const struct {
		MPI_Datatype handle;
		int n, size[2], at, align;
	} basic[] = {
		{ MPI_CHAR, 1, { 1 }, 0, 1 },         { MPI_SHORT, 1, { 2 }, 0, 2 },
		{ MPI_INT, 1, { 4 }, 0, 4 },          { MPI_DOUBLE, 1, { 8 }, 0, 8 },
		{ MPI_LONG_DOUBLE, 1, { 16 }, 0, 16 }, { MPI_DOUBLE_INT, 2, { 8, 4 }, 8, 8 },
		{ MPI_SHORT_INT, 2, { 2, 4 }, 4, 4 }, { MPI_FLOAT_INT, 2, { 4, 4 }, 4, 4 },
		{ MPI_BYTE, 1, { 1 }, 0, 1 },         { MPI_C_DOUBLE_COMPLEX, 1, { 16 }, 0, 8 },
	};
	unsigned i = below(sizeof basic / sizeof *basic);
	struct tested made = { .handle = basic[i].handle };
	made.map.element = malloc(2 * sizeof *made.map.element);
	made.map.n = basic[i].n;
	made.map.element[0] = (struct element){ 0, basic[i].size[0], basic[i].align };
	made.map.element[1] = (struct element){ basic[i].at, basic[i].size[1], basic[i].align };
	map_finish(&made.map);
	return made;
}

/* A list of blocks, with displacements in units of bytes. */
struct blocks {
	int n, length[8], place[8];
	MPI_Aint at[8];
};

static struct blocks random_blocks(ptrdiff_t unit, bool same)
{
	struct blocks blocks = { .n = between(0, 6) };
	int regular = between(0, 2), step = between(1, 9);
	for (int i = 0; i < blocks.n; i++) {
		blocks.length[i] = same && i ? blocks.length[0] : between(0, 3);
		blocks.place[i] = regular ? i * step : between(-9, 25);
		blocks.at[i] = blocks.place[i] * unit;
	}
	return blocks;
}

static void random_vector(const struct tested *old, struct tested *made)
{
	ptrdiff_t extent = old->map.ub - old->map.lb;
	int count = between(0, 6), length = between(0, 4), stride = between(-6, 8), kind = between(0, 2);
	ptrdiff_t bytes = kind == 0 ? 0 : kind == 1 ? stride * extent : stride * 3;
	if (kind == 0) {
		make_contiguous(count, old->handle, &made->handle);
		map_add(&made->map, &old->map, count, 0);
		return;
	}
	if (kind == 1)
		make_vector(count, length, stride, old->handle, &made->handle);
	else
		make_hvector(count, length, bytes, old->handle, &made->handle);
	for (int i = 0; i < count; i++)
		map_add(&made->map, &old->map, length, i * bytes);
}

static void random_indexed(const struct tested *old, struct tested *made)
{
	int kind = between(0, 3);
	bool same = kind >= 2;
	struct blocks b = random_blocks(kind & 1 ? between(1, 8) : old->map.ub - old->map.lb, same);
	int length = b.n ? b.length[0] : 1;
	if (kind == 0)
		make_indexed(b.n, b.length, b.place, old->handle, &made->handle);
	else if (kind == 1)
		make_hindexed(b.n, b.length, b.at, old->handle, &made->handle);
	else if (kind == 2)
		make_indexed_block(b.n, length, b.place, old->handle, &made->handle);
	else
		make_hindexed_block(b.n, length, b.at, old->handle, &made->handle);
	for (int i = 0; i < b.n; i++)
		map_add(&made->map, &old->map, b.length[i], b.at[i]);
}

/* Adds the elements of old whose index in each dimension is chosen. */
static void add_chosen(struct map *map, const struct map *old, int n, const int *sizes, bool (*chosen)(void *, int, int),
		       void *argument, int order)
{
	int total = 1;
	for (int d = 0; d < n; d++)
		total *= sizes[d];
	for (int i = 0; i < total; i++) {
		int rest = i;
		bool in = true;
		for (int k = 0; k < n; k++) {
			int d = order == MPI_ORDER_C ? n - 1 - k : k;
			in &= chosen(argument, d, rest % sizes[d]);
			rest /= sizes[d];
		}
		if (in)
			map_add(map, old, 1, i * (old->ub - old->lb));
	}
	map_bound(map, 0, total * (old->ub - old->lb));
}

struct subarray {
	int sizes[3], subsizes[3], starts[3];
};

static bool in_subarray(void *argument, int d, int index)
{
	struct subarray *s = argument;
	return index >= s->starts[d] && index < s->starts[d] + s->subsizes[d];
}

static void random_subarray(const struct tested *old, struct tested *made)
{
	struct subarray s;
	int n = between(1, 3), order = below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	for (int d = 0; d < n; d++) {
		s.sizes[d] = between(1, 6);
		s.subsizes[d] = between(1, s.sizes[d]);
		s.starts[d] = between(0, s.sizes[d] - s.subsizes[d]);
	}
	make_subarray(n, s.sizes, s.subsizes, s.starts, order, old->handle, &made->handle);
	add_chosen(&made->map, &old->map, n, s.sizes, in_subarray, &s, order);
}

struct darray {
	int sizes[3], distribs[3], arguments[3], processes[3], at[3], block[3];
};

static bool in_darray(void *argument, int d, int index)
{
	struct darray *a = argument;
	return index / a->block[d] % a->processes[d] == a->at[d];
}

static void random_darray(const struct tested *old, struct tested *made)
{
	struct darray a;
	int n = between(1, 3), size = 1, order = below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	for (int d = 0; d < n; d++) {
		a.sizes[d] = between(1, 7);
		a.distribs[d] = (int[]){ MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE }[below(3)];
		a.processes[d] = a.distribs[d] == MPI_DISTRIBUTE_NONE ? 1 : between(1, 3);
		int least = (a.sizes[d] + a.processes[d] - 1) / a.processes[d];
		bool cyclic = a.distribs[d] == MPI_DISTRIBUTE_CYCLIC;
		a.block[d] = a.distribs[d] == MPI_DISTRIBUTE_NONE ? a.sizes[d] : cyclic ? 1 : least;
		a.arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
		if (below(2) && a.distribs[d] != MPI_DISTRIBUTE_NONE)
			a.block[d] = a.arguments[d] = cyclic ? between(1, 4) : least + between(0, 2);
		size *= a.processes[d];
	}
	int rank = between(0, size - 1), rest = rank;
	for (int d = n - 1; d >= 0; d--) {
		a.at[d] = rest % a.processes[d];
		rest /= a.processes[d];
	}
	make_darray(size, rank, n, a.sizes, a.distribs, a.arguments, a.processes, order, old->handle, &made->handle);
	add_chosen(&made->map, &old->map, n, a.sizes, in_darray, &a, order);
}

static struct tested random_type(int depth);

static void tested_free(struct tested *type, bool derived)
{
	if (derived)
		free_type(&type->handle);
	free(type->map.element);
}

static void random_struct(const struct tested *old, int depth, struct tested *made)
{
	struct blocks b = random_blocks(1, false);
	struct tested part[8];
	MPI_Datatype types[8];
	bool derived[8];
	ptrdiff_t next = 0;
	bool packed = below(2);
	for (int i = 0; i < b.n; i++) {
		derived[i] = i && depth > 0 && below(2);
		part[i] = i == 0 ? *old : derived[i] ? random_type(depth - 1) : tested_basic();
		types[i] = part[i].handle;
		if (packed) /* often one behind the other */
			b.at[i] = next;
		next += b.length[i] * (part[i].map.ub - part[i].map.lb);
	}
	make_struct(b.n, b.length, b.at, types, &made->handle);
	for (int i = 0; i < b.n; i++) {
		map_add(&made->map, &part[i].map, b.length[i], b.at[i]);
		if (i)
			tested_free(&part[i], derived[i]);
	}
}

/* A derived datatype. Its parts are freed. */
static struct tested random_type(int depth)
{
	bool nested = depth > 0 && below(3);
	struct tested old = nested ? random_type(depth - 1) : tested_basic(), made = { 0 };
	switch (old.map.n > 300 ? 6 : below(8)) {
	case 0:
	case 1:
		random_vector(&old, &made);
		break;
	case 2:
		random_indexed(&old, &made);
		break;
	case 3:
		random_struct(&old, depth, &made);
		break;
	case 4:
		random_subarray(&old, &made);
		break;
	case 5:
		random_darray(&old, &made);
		break;
	case 6: {
		int lb = between(-9, 9), extent = between(-5, 90);
		make_resized(old.handle, lb, extent, &made.handle);
		map_add(&made.map, &old.map, 1, 0);
		map_bound(&made.map, lb, extent);
		break;
	}
	default:
		make_dup(old.handle, &made.handle);
		map_add(&made.map, &old.map, 1, 0);
	}
	map_finish(&made.map);
	tested_free(&old, nested);
	return made;
}

/* Memory that the data of count elements lie in: *first bytes before the buffer's address. */
static size_t memory_of(const struct map *map, int count, size_t *first)
{
	ptrdiff_t last = (count ? count - 1 : 0) * (map->ub - map->lb);
	ptrdiff_t low = map->true_lb + (last < 0 ? last : 0), high = map->true_ub + (last > 0 ? last : 0);
	*first = low < 0 ? (size_t)-low : 0;
	return *first + (size_t)(high > 0 ? high : 0) + 16;
}

/* What packing count elements gives. */
static void map_pack(const struct map *map, int count, const char *buf, char *data)
{
	for (int k = 0; k < count; k++)
		for (int i = 0; i < map->n; i++) {
			const struct element *e = &map->element[i];
			memcpy(data, buf + k * (map->ub - map->lb) + e->at, (size_t)e->size);
			data += e->size;
		}
}

/* Unpacks the first bytes of count elements. */
static void map_unpack(const struct map *map, int count, char *buf, const char *data, size_t bytes)
{
	for (int k = 0; k < count; k++)
		for (int i = 0; i < map->n && bytes; i++) {
			const struct element *e = &map->element[i];
			size_t n = bytes < (size_t)e->size ? bytes : (size_t)e->size;
			memcpy(buf + k * (map->ub - map->lb) + e->at, data, n);
			data += n;
			bytes -= n;
		}
}

/* Whether a byte of memory belongs to two elements. To receive such data is an error: MPI 5.0, section 5.1.10. */
static bool map_overlaps(const struct map *map, int count)
{
	size_t first, room = memory_of(map, count, &first);
	char *used = calloc(1, room);
	bool overlaps = false;
	for (int k = 0; k < count && !overlaps; k++)
		for (int i = 0; i < map->n && !overlaps; i++) {
			char *at = used + first + k * (map->ub - map->lb) + map->element[i].at;
			overlaps = memchr(at, 1, (size_t)map->element[i].size);
			memset(at, 1, (size_t)map->element[i].size);
		}
	free(used);
	return overlaps;
}

#endif
