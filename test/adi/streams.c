/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datatypes of adi/datatype against type maps: bounds, layouts, streams in fragments of random size, pieces, copies between
 * two types, and types from the wire, damaged ones too. Built with the sources of adi/datatype and adi/core/object.c; no MPI runs.
 */
#include "adi/bindings/functions.h"
#include "adi/datatype/build.h"
#include "adi/message/request.h"
#include "test/adi/type_map.h"

#include <stdarg.h>

#define ROUNDS 4000

#define CHECK(condition)                                                                                       \
	do {                                                                                                   \
		if (!(condition)) {                                                                            \
			fprintf(stderr, "%s:%d: round %d: not true: %s\n", __FILE__, __LINE__, turn, #condition); \
			exit(1);                                                                               \
		}                                                                                              \
	} while (0)

static int turn;

/* What the other units of the library give to adi/datatype. */
int adi_error(int class, const char *format, ...)
{
	(void)format;
	return class;
}

int adi_attributes_copy(struct adi_object *from, struct adi_attributes *old, struct adi_attributes *new)
{
	(void)from;
	(void)old;
	(void)new;
	return MPI_SUCCESS;
}

int adi_attributes_delete(struct adi_object *object, struct adi_attributes *attributes)
{
	(void)object;
	(void)attributes;
	return MPI_SUCCESS;
}

uint64_t adi_status_bytes(const MPI_Status *status)
{
	return (uint32_t)status->MPI_internal[0] | (uint64_t)(uint32_t)status->MPI_internal[1] << 32;
}

static struct adi_type *take(MPI_Datatype handle)
{
	struct adi_type *type;
	CHECK(!adi_type_take(handle, "datatype", &type));
	return type;
}

#define INTS(array) ((struct adi_array){ array, 4 })
#define AINTS(array) ((struct adi_array){ array, 8 })

static void make_contiguous(int count, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!mpi_type_contiguous(count, take(old), made, false));
}

static void make_vector(int count, int length, int stride, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!mpi_type_vector(count, length, stride, take(old), made, false));
}

static void make_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!mpi_type_create_hvector(count, length, stride, take(old), made, false));
}

static void make_indexed(int count, const int *lengths, const int *displacements, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!mpi_type_indexed(count, INTS(lengths), INTS(displacements), take(old), made, false));
}

static void make_hindexed(int count, const int *lengths, const MPI_Aint *displacements, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!mpi_type_create_hindexed(count, INTS(lengths), AINTS(displacements), take(old), made, false));
}

static void make_indexed_block(int count, int length, const int *displacements, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!mpi_type_create_indexed_block(count, length, INTS(displacements), take(old), made, false));
}

static void make_hindexed_block(int count, int length, const MPI_Aint *displacements, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!mpi_type_create_hindexed_block(count, length, AINTS(displacements), take(old), made, false));
}

static void make_struct(int count, const int *lengths, const MPI_Aint *displacements, const MPI_Datatype *types,
			MPI_Datatype *made)
{
	CHECK(!mpi_type_create_struct(count, INTS(lengths), AINTS(displacements), types, made, false));
}

static void make_resized(MPI_Datatype old, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *made)
{
	CHECK(!mpi_type_create_resized(take(old), lb, extent, made, false));
}

static void make_subarray(int n, const int *sizes, const int *subsizes, const int *starts, int order, MPI_Datatype old,
			  MPI_Datatype *made)
{
	CHECK(!mpi_type_create_subarray(n, INTS(sizes), INTS(subsizes), INTS(starts), order, take(old), made, false));
}

static void make_darray(int size, int rank, int n, const int *sizes, const int *distribs, const int *arguments,
			const int *processes, int order, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!mpi_type_create_darray(size, rank, n, INTS(sizes), distribs, arguments, processes, order, take(old), made,
				      false));
}

static void make_dup(MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!mpi_type_dup(take(old), made));
}

static void free_type(MPI_Datatype *type)
{
	CHECK(!mpi_type_free(type));
}

/* count elements in memory, their packed bytes, and memory that they are unpacked to. */
struct sample {
	int count;
	size_t first, room, bytes;
	bool overlaps;
	char *memory, *data, *clean, *unpacked;
};

static struct sample sample_make(const struct map *map, int count)
{
	struct sample s = { .count = count, .bytes = map->size * (size_t)count };
	s.room = memory_of(map, count, &s.first);
	s.overlaps = map_overlaps(map, count);
	s.memory = malloc(s.room);
	s.data = malloc(s.bytes + 1);
	s.clean = calloc(1, s.room);
	s.unpacked = calloc(1, s.room);
	for (size_t i = 0; i < s.room; i++)
		s.memory[i] = (char)below(256);
	map_pack(map, count, s.memory + s.first, s.data);
	map_unpack(map, count, s.unpacked + s.first, s.data, s.bytes);
	return s;
}

static void sample_free(struct sample *s)
{
	free(s->memory);
	free(s->data);
	free(s->clean);
	free(s->unpacked);
}

static size_t random_size(size_t bytes)
{
	return below(3) ? 1 + below(40) : 1 + below((unsigned)bytes + 1);
}

static void check_bounds(const struct map *map, struct adi_type *type)
{
	CHECK((size_t)type->size == map->size && type->lb == map->lb && type->extent == map->ub - map->lb);
	CHECK(type->true_lb == map->true_lb && type->true_extent == map->true_ub - map->true_lb);
	CHECK(type->elements == map->n);
	bool contiguous = map->ub - map->lb == (ptrdiff_t)map->size;
	ptrdiff_t next = map->true_lb;
	for (int i = 0; i < map->n; i++) {
		contiguous &= map->element[i].at == next;
		next += map->element[i].size;
	}
	CHECK(!map->n || type->contiguous == contiguous);
}

static void check_fragments(struct adi_type *type, struct sample *s)
{
	struct adi_stream pack, unpack;
	char *data = malloc(s->bytes + 1);
	memset(s->clean, 0, s->room);
	CHECK(!adi_stream_start(&pack, s->memory + s->first, s->count, type));
	CHECK(!adi_stream_start(&unpack, s->clean + s->first, s->count, type));
	CHECK(pack.bytes == s->bytes);
	while (pack.at < pack.bytes) {
		size_t max = random_size(s->bytes), at = pack.at, n = adi_stream_pack(&pack, data + at, max);
		CHECK(n == (max < s->bytes - at ? max : s->bytes - at));
		CHECK(adi_stream_unpack(&unpack, data + at, n) == n);
	}
	CHECK(!memcmp(data, s->data, s->bytes));
	CHECK(s->overlaps || !memcmp(s->clean, s->unpacked, s->room));
	for (int i = 0; i < 4 && s->bytes; i++) {
		size_t at = below((unsigned)s->bytes), n = random_size(s->bytes);
		adi_stream_seek(&pack, at);
		n = adi_stream_pack(&pack, data, n);
		CHECK(!memcmp(data, s->data + at, n));
	}
	free(data);
}

static void check_pieces(struct adi_type *type, struct sample *s)
{
	struct adi_stream stream;
	struct iovec piece[9];
	size_t done = 0, bytes;
	CHECK(!adi_stream_start(&stream, s->memory + s->first, s->count, type));
	while (done < s->bytes) {
		size_t max = random_size(s->bytes), sum = 0;
		int most = between(1, 9), n = adi_stream_pieces(&stream, piece, most, max, &bytes);
		CHECK(n > 0 && n <= most && bytes <= max && stream.at == done + bytes);
		CHECK(n == most || bytes == max || done + bytes == s->bytes);
		for (int i = 0; i < n; i++) {
			CHECK(!memcmp(piece[i].iov_base, s->data + done + sum, piece[i].iov_len));
			sum += piece[i].iov_len;
		}
		CHECK(sum == bytes);
		done += bytes;
	}
	CHECK(adi_stream_pieces(&stream, piece, 9, 100, &bytes) == 0 && bytes == 0);
}

/* A type from the wire touches no memory outside its span. */
static void check_damaged(struct adi_type *type)
{
	MPI_Count first, count = between(1, 3), span = adi_type_span(type, count, &first);
	if (span < 100000 && type->size < 100000) {
		struct adi_stream stream;
		char *memory = calloc(1, (size_t)span + 1);
		char *data = calloc(1, (size_t)(count * type->size) + 1);
		CHECK(!adi_stream_start(&stream, (char *)((uintptr_t)memory - (uintptr_t)first), count, type));
		CHECK(adi_stream_pack(&stream, data, stream.bytes) == stream.bytes);
		adi_stream_seek(&stream, 0);
		CHECK(adi_stream_unpack(&stream, data, stream.bytes) == stream.bytes);
		free(memory);
		free(data);
	}
	adi_type_release(type);
}

static void check_wire(const struct map *map, struct adi_type *type, struct sample *s)
{
	size_t bytes = adi_type_wire(type, NULL, 0);
	char *wire = malloc(bytes);
	struct adi_type *other;
	CHECK(bytes && adi_type_wire(type, wire, bytes) == bytes);
	CHECK(!adi_type_from_wire(wire, bytes, &other));
	check_bounds(map, other);
	CHECK(other->committed && other->basic == type->basic && other->external == type->external);
	check_fragments(other, s);
	adi_type_release(other);
	for (int i = 0; i < 20; i++) {
		char *damaged = malloc(bytes);
		memcpy(damaged, wire, bytes);
		for (int k = between(1, 3); k > 0; k--)
			damaged[below((unsigned)bytes) & (below(2) ? ~7u : ~0u)] ^= (char)(1 << below(8));
		size_t len = below(4) ? bytes : below((unsigned)bytes);
		if (!adi_type_from_wire(damaged, len, &other))
			check_damaged(other);
		free(damaged);
	}
	free(wire);
}

static void check_elements(const struct map *map, struct adi_type *type)
{
	MPI_Status status;
	MPI_Count got;
	size_t bytes = 0;
	for (int i = 0; i < 2 * map->n; i++) {
		adi_status_set_bytes(&status, bytes);
		CHECK(!mpi_get_elements(&status, type, &got) && got == i);
		adi_status_set_bytes(&status, UINT64_MAX);
		CHECK(!mpi_status_set_elements(&status, type, i) && adi_status_bytes(&status) == bytes);
		CHECK(!mpi_get_count(&status, type, &got));
		CHECK(got == (bytes % map->size ? MPI_UNDEFINED : (MPI_Count)(bytes / map->size)));
		size_t size = (size_t)map->element[i % map->n].size;
		if (size > 1) {
			adi_status_set_bytes(&status, bytes + 1);
			CHECK(!mpi_get_elements(&status, type, &got) && got == MPI_UNDEFINED);
		}
		bytes += size;
	}
}

static void check_copy(const struct tested *from, const struct tested *to)
{
	struct sample source = sample_make(&from->map, between(0, 3)), target = sample_make(&to->map, between(0, 3));
	int class = adi_type_copy(source.memory + source.first, source.count, take(from->handle), target.clean + target.first,
				  target.count, take(to->handle));
	if (source.bytes > target.bytes) {
		CHECK(class == MPI_ERR_TRUNCATE);
	} else {
		CHECK(!class);
		memset(target.unpacked, 0, target.room);
		map_unpack(&to->map, target.count, target.unpacked + target.first, source.data, source.bytes);
		CHECK(target.overlaps || !memcmp(target.clean, target.unpacked, target.room));
	}
	sample_free(&source);
	sample_free(&target);
}

/* external32 and back gives the same memory, where nothing was shortened. */
static void check_external(struct adi_type *type, struct sample *s)
{
	MPI_Count bytes, at = 0;
	CHECK(!mpi_pack_external_size("external32", s->count, type, &bytes) && bytes == s->count * type->external);
	char *data = malloc((size_t)bytes + 1);
	memset(s->memory, 0, s->room);
	CHECK(!mpi_pack_external("external32", s->memory + s->first, s->count, type, data, bytes, &at) && at == bytes);
	for (MPI_Count i = 0; i < bytes; i++)
		CHECK(!data[i]);
	at = 0;
	CHECK(!mpi_unpack_external("external32", data, bytes, &at, s->memory + s->first, s->count, type) && at == bytes);
	for (size_t i = 0; i < s->room; i++)
		CHECK(!s->memory[i]);
	at = 1;
	CHECK(!bytes || mpi_unpack_external("external32", data, bytes, &at, s->memory, s->count, type) == MPI_ERR_TRUNCATE);
	free(data);
}

static void check_type(const struct tested *tested)
{
	struct adi_type *type = take(tested->handle);
	MPI_Datatype handle = tested->handle;
	MPI_Count first;
	struct sample s = sample_make(&tested->map, between(0, 4));
	check_bounds(&tested->map, type);
	CHECK(!mpi_type_commit(&handle));
	check_fragments(type, &s);
	check_pieces(type, &s);
	check_wire(&tested->map, type, &s);
	check_elements(&tested->map, type);
	check_external(type, &s);
	if (s.count && s.bytes) {
		MPI_Count span = adi_type_span(type, s.count, &first);
		CHECK((size_t)first + s.first < s.room && first + (MPI_Count)s.first >= 0);
		CHECK((size_t)(first + (MPI_Count)s.first + span) <= s.room);
	}
	sample_free(&s);
}

/* A vector with a huge count needs no memory. */
static void check_huge(void)
{
	MPI_Datatype vector, all;
	struct adi_stream stream;
	struct iovec piece[4];
	size_t bytes;
	CHECK(!mpi_type_vector((MPI_Count)1 << 40, 1, 3, take(MPI_INT), &vector, true));
	CHECK(!mpi_type_contiguous(1000, take(vector), &all, true));
	CHECK(!adi_stream_start(&stream, NULL, 1, take(all)));
	CHECK(stream.bytes == (size_t)4000 << 40);
	adi_stream_seek(&stream, ((size_t)4 << 40) + 4000);
	CHECK(adi_stream_pieces(&stream, piece, 4, 1000, &bytes) == 4 && bytes == 16);
	CHECK((uintptr_t)piece[0].iov_base == (uintptr_t)(12 * (((size_t)1 << 40) + 1000) - 8));
	CHECK(mpi_type_contiguous((MPI_Count)1 << 60, take(vector), &vector, true) == MPI_ERR_VALUE_TOO_LARGE);
	CHECK(adi_stream_start(&stream, NULL, (MPI_Count)1 << 60, take(all)) == MPI_ERR_COUNT);
	free_type(&vector);
	free_type(&all);
}

/* The deepest datatype can be packed and sent to another process. */
static void check_deep(void)
{
	MPI_Datatype deep = MPI_SHORT_INT, next;
	struct adi_stream stream;
	struct adi_type *other;
	MPI_Aint at[] = { 3 };
	char memory[3 * ADI_TYPE_DEPTH + 8] = { 0 }, data[6];
	for (int level = 0; level < ADI_TYPE_DEPTH; level++) { /* a pair, each time 3 bytes further */
		CHECK(!mpi_type_create_hindexed_block(1, 1, AINTS(at), take(deep), &next, false));
		if (level)
			free_type(&deep);
		deep = next;
	}
	CHECK(mpi_type_dup(take(deep), &next) == MPI_ERR_TYPE);
	size_t bytes = adi_type_wire(take(deep), NULL, 0);
	char *wire = malloc(bytes);
	CHECK(adi_type_wire(take(deep), wire, bytes) == bytes);
	CHECK(!adi_type_from_wire(wire, bytes, &other));
	memcpy(memory + 3 * ADI_TYPE_DEPTH, "ab--wxyz", 8);
	CHECK(!adi_stream_start(&stream, memory, 1, other) && adi_stream_pack(&stream, data, 6) == 6);
	CHECK(!memcmp(data, "abwxyz", 6));
	adi_type_release(other);
	free(wire);
	free_type(&deep);
}

int main(void)
{
	struct tested last = tested_basic();
	bool derived = false;
	check_huge();
	check_deep();
	for (turn = 0; turn < ROUNDS; turn++) {
		random_state = (uint64_t)turn + 1;
		struct tested type = random_type(3);
		if (type.map.n <= MOST_ELEMENTS) {
			check_type(&type);
			check_copy(&type, &last);
			check_copy(&last, &type);
		}
		tested_free(&last, derived);
		last = type;
		derived = true;
		if (last.map.n > MOST_ELEMENTS) {
			tested_free(&last, true);
			last = tested_basic();
			derived = false;
		}
	}
	tested_free(&last, derived);
	return 0;
}
