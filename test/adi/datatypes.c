/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes through MPI's functions: random types against their type maps, packed, unpacked, sent to this rank and to the next,
 * and constructed again from their envelope and contents; names, predefined types, Fortran's types, external32, and errors.
 */
#include "test/adi/check_mpi.h"
#include "test/adi/type_map.h"

#define ROUNDS 1500
#define MESSAGES 150
#define MOST_BYTES 3000000

static void make_contiguous(int count, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!MPI_Type_contiguous(count, old, made));
}

static void make_vector(int count, int length, int stride, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!MPI_Type_vector(count, length, stride, old, made));
}

static void make_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!MPI_Type_create_hvector(count, length, stride, old, made));
}

static void make_indexed(int count, const int *lengths, const int *displacements, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!MPI_Type_indexed(count, lengths, displacements, old, made));
}

static void make_hindexed(int count, const int *lengths, const MPI_Aint *displacements, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!MPI_Type_create_hindexed(count, lengths, displacements, old, made));
}

static void make_indexed_block(int count, int length, const int *displacements, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!MPI_Type_create_indexed_block(count, length, displacements, old, made));
}

static void make_hindexed_block(int count, int length, const MPI_Aint *displacements, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!MPI_Type_create_hindexed_block(count, length, displacements, old, made));
}

static void make_struct(int count, const int *lengths, const MPI_Aint *displacements, const MPI_Datatype *types,
			MPI_Datatype *made)
{
	CHECK(!MPI_Type_create_struct(count, lengths, displacements, types, made));
}

static void make_resized(MPI_Datatype old, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *made)
{
	CHECK(!MPI_Type_create_resized(old, lb, extent, made));
}

static void make_subarray(int n, const int *sizes, const int *subsizes, const int *starts, int order, MPI_Datatype old,
			  MPI_Datatype *made)
{
	CHECK(!MPI_Type_create_subarray(n, sizes, subsizes, starts, order, old, made));
}

static void make_darray(int size, int rank, int n, const int *sizes, const int *distribs, const int *arguments,
			const int *processes, int order, MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!MPI_Type_create_darray(size, rank, n, sizes, distribs, arguments, processes, order, old, made));
}

static void make_dup(MPI_Datatype old, MPI_Datatype *made)
{
	CHECK(!MPI_Type_dup(old, made));
}

static void free_type(MPI_Datatype *type)
{
	CHECK(!MPI_Type_free(type) && *type == MPI_DATATYPE_NULL);
}

static void free_derived(MPI_Datatype *type)
{
	int ni, na, nd, combiner;
	CHECK(!MPI_Type_get_envelope(*type, &ni, &na, &nd, &combiner));
	if (combiner != MPI_COMBINER_NAMED)
		free_type(type);
}

/* Constructs a type again from its envelope and contents. */
static MPI_Datatype again(MPI_Datatype type)
{
	int ni, na, nd, combiner;
	MPI_Datatype made = type;
	CHECK(!MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
	CHECK(combiner != MPI_COMBINER_NAMED);
	int *i = calloc((size_t)ni + 1, sizeof *i);
	MPI_Aint *a = calloc((size_t)na + 1, sizeof *a);
	MPI_Datatype *d = calloc((size_t)nd + 1, sizeof *d);
	CHECK(!MPI_Type_get_contents(type, ni, na, nd, i, a, d));
	switch (combiner) {
	case MPI_COMBINER_DUP:
		make_dup(d[0], &made);
		break;
	case MPI_COMBINER_CONTIGUOUS:
		make_contiguous(i[0], d[0], &made);
		break;
	case MPI_COMBINER_VECTOR:
		make_vector(i[0], i[1], i[2], d[0], &made);
		break;
	case MPI_COMBINER_HVECTOR:
		make_hvector(i[0], i[1], a[0], d[0], &made);
		break;
	case MPI_COMBINER_INDEXED:
		make_indexed(i[0], i + 1, i + 1 + i[0], d[0], &made);
		break;
	case MPI_COMBINER_HINDEXED:
		make_hindexed(i[0], i + 1, a, d[0], &made);
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		make_indexed_block(i[0], i[1], i + 2, d[0], &made);
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		make_hindexed_block(i[0], i[1], a, d[0], &made);
		break;
	case MPI_COMBINER_STRUCT:
		make_struct(i[0], i + 1, a, d, &made);
		break;
	case MPI_COMBINER_RESIZED:
		make_resized(d[0], a[0], a[1], &made);
		break;
	case MPI_COMBINER_SUBARRAY:
		make_subarray(i[0], i + 1, i + 1 + i[0], i + 1 + 2 * i[0], i[1 + 3 * i[0]], d[0], &made);
		break;
	case MPI_COMBINER_DARRAY:
		make_darray(i[0], i[1], i[2], i + 3, i + 3 + i[2], i + 3 + 2 * i[2], i + 3 + 3 * i[2], i[3 + 4 * i[2]], d[0],
			    &made);
		break;
	default:
		CHECK(!"a combiner that was not used");
	}
	for (int k = 0; k < nd; k++)
		free_derived(&d[k]);
	free(i);
	free(a);
	free(d);
	return made;
}

static void check_bounds(const struct map *map, MPI_Datatype type)
{
	int size;
	MPI_Aint lb, extent, true_lb, true_extent;
	MPI_Count lb_x, extent_x;
	CHECK(!MPI_Type_size(type, &size) && (size_t)size == map->size);
	CHECK(!MPI_Type_get_extent(type, &lb, &extent) && lb == map->lb && extent == map->ub - map->lb);
	CHECK(!MPI_Type_get_extent_c(type, &lb_x, &extent_x) && lb_x == map->lb && extent_x == extent);
	CHECK(!MPI_Type_get_true_extent(type, &true_lb, &true_extent));
	CHECK(true_lb == map->true_lb && true_extent == map->true_ub - map->true_lb);
}

static void check_data(const struct map *map, MPI_Datatype type, int count)
{
	size_t first, room = memory_of(map, count, &first), bytes = map->size * (size_t)count;
	char *memory = malloc(room), *unpacked = calloc(1, room), *reference = calloc(1, room);
	char *data = malloc(bytes + 1), *packed = malloc(bytes + 1);
	int position = 0, size;
	bool overlaps = map_overlaps(map, count);
	fill(memory, room, 3);
	map_pack(map, count, memory + first, data);
	map_unpack(map, count, reference + first, data, bytes);
	CHECK(!MPI_Pack_size(count, type, MPI_COMM_SELF, &size) && (size_t)size >= bytes);
	CHECK(!MPI_Pack(memory + first, count, type, packed, (int)bytes, &position, MPI_COMM_SELF));
	CHECK((size_t)position == bytes && !memcmp(packed, data, bytes));
	position = 0;
	CHECK(!MPI_Unpack(packed, (int)bytes, &position, unpacked + first, count, type, MPI_COMM_SELF));
	CHECK((size_t)position == bytes && (overlaps || !memcmp(unpacked, reference, room)));
	memset(unpacked, 0, room);
	MPI_Status status;
	CHECK(!MPI_Sendrecv(memory + first, count, type, 0, 5, unpacked + first, count, type, 0, 5, MPI_COMM_SELF, &status));
	CHECK(overlaps || !memcmp(unpacked, reference, room));
	CHECK(!MPI_Get_elements(&status, type, &size) && size == count * map->n);
	memset(packed, 0, bytes);
	CHECK(!MPI_Sendrecv(memory + first, count, type, 0, 6, packed, (int)bytes, MPI_BYTE, 0, 6, MPI_COMM_SELF, &status));
	CHECK(!memcmp(packed, data, bytes));
	free(memory);
	free(unpacked);
	free(reference);
	free(data);
	free(packed);
}

static void check_random(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		random_state = 77 + (uint64_t)round;
		struct tested type = random_type(3);
		if (type.map.n <= MOST_ELEMENTS) {
			check_bounds(&type.map, type.handle);
			MPI_Datatype other = again(type.handle);
			CHECK(!MPI_Type_commit(&type.handle) && !MPI_Type_commit(&other));
			check_bounds(&type.map, other);
			check_data(&type.map, type.handle, between(0, 3));
			free_type(&type.handle);
			type.handle = other;
			check_data(&type.map, other, between(0, 3));
		}
		tested_free(&type, true);
	}
}

/* Sends count elements to the next rank, which receives them as the same type or as bytes. */
static void check_message(const struct map *map, MPI_Datatype type, int count, int round)
{
	int rank, size, got, n = count * map->n;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	size_t first, room = memory_of(map, count, &first), bytes = map->size * (size_t)count;
	char *mine = malloc(room), *theirs = malloc(room), *got_here = calloc(1, room + bytes), *reference = calloc(1, room);
	char *data = malloc(bytes + 1);
	bool overlaps = map_overlaps(map, count);
	MPI_Status status;
	fill(mine, room, (unsigned)rank + 5);
	fill(theirs, room, (unsigned)previous + 5);
	map_pack(map, count, theirs + first, data);
	map_unpack(map, count, reference + first, data, bytes);
	CHECK(!MPI_Sendrecv(mine + first, count, type, next, round, got_here + first, count, type, previous, round,
			    MPI_COMM_WORLD, &status));
	CHECK(overlaps || !memcmp(got_here, reference, room));
	CHECK(!MPI_Get_elements(&status, type, &got) && got == n);
	CHECK(!MPI_Sendrecv(mine + first, count, type, next, round, got_here, (int)bytes, MPI_BYTE, previous, round,
			    MPI_COMM_WORLD, &status));
	CHECK(!memcmp(got_here, data, bytes));
	CHECK(!MPI_Get_count(&status, MPI_BYTE, &got) && (size_t)got == bytes);
	memset(got_here, 0, room);
	CHECK(!MPI_Sendrecv(data, (int)bytes, MPI_BYTE, previous, round, got_here + first, count, type, next, round,
			    MPI_COMM_WORLD, &status));
	/* The data come from the next rank, which had them from this one. */
	map_pack(map, count, mine + first, data);
	memset(reference, 0, room);
	map_unpack(map, count, reference + first, data, bytes);
	CHECK(overlaps || !memcmp(got_here, reference, room));
	free(mine);
	free(theirs);
	free(got_here);
	free(reference);
	free(data);
}

static void check_messages(void)
{
	for (int round = 0; round < MESSAGES; round++) {
		random_state = 3 + (uint64_t)round; /* the same on all ranks */
		struct tested type = random_type(2);
		size_t extent = (size_t)labs(type.map.ub - type.map.lb) + (size_t)(type.map.true_ub - type.map.true_lb) + 1;
		int most = (int)(MOST_BYTES / extent), count = round % 3 ? 1 + (int)below(3) : 1 + (int)below((unsigned)most);
		CHECK(!MPI_Type_commit(&type.handle));
		if (type.map.n <= MOST_ELEMENTS && (size_t)count * (size_t)type.map.n < 1000000)
			check_message(&type.map, type.handle, count, round);
		tested_free(&type, true);
	}
}

static void check_external(void)
{
	struct record {
		int i;
		double d;
		long l;
		unsigned char c;
		long double x;
	} in = { 0x01020304, -2.0, -5, 'x', 1.5L }, out;
	MPI_Datatype type, types[] = { MPI_INT, MPI_DOUBLE, MPI_LONG, MPI_UNSIGNED_CHAR, MPI_LONG_DOUBLE };
	MPI_Aint at[] = { offsetof(struct record, i), offsetof(struct record, d), offsetof(struct record, l),
			  offsetof(struct record, c), offsetof(struct record, x) }, size, position = 0;
	static const unsigned char known[] = { 1, 2, 3, 4, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfb, 'x',
					       0x3f, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	unsigned char data[sizeof known];
	CHECK(!MPI_Type_create_struct(5, (int[]){ 1, 1, 1, 1, 1 }, at, types, &type) && !MPI_Type_commit(&type));
	CHECK(!MPI_Pack_external_size("external32", 1, type, &size) && size == sizeof known);
	CHECK(!MPI_Pack_external("external32", &in, 1, type, data, sizeof data, &position) && position == sizeof known);
	CHECK(!memcmp(data, known, sizeof known));
	position = 0;
	CHECK(!MPI_Unpack_external("external32", data, sizeof data, &position, &out, 1, type) && position == sizeof known);
	CHECK(out.i == in.i && out.d == in.d && out.l == in.l && out.c == in.c && out.x == in.x);
	position = 0;
	CHECK(MPI_Pack_external("internal", &in, 1, type, data, sizeof data, &position) == MPI_ERR_UNSUPPORTED_DATAREP);
	CHECK(MPI_Pack_external("external32", &in, 1, type, data, 3, &position) == MPI_ERR_TRUNCATE && position == 0);
	free_type(&type);
}

static void check_names(void)
{
	static const struct {
		MPI_Datatype type;
		const char *name;
		int size, extent;
	} known[] = {
		{ MPI_INT, "MPI_INT", 4, 4 },
		{ MPI_DOUBLE_INT, "MPI_DOUBLE_INT", 12, 16 },
		{ MPI_SHORT_INT, "MPI_SHORT_INT", 6, 8 },
		{ MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", 20, 32 },
		{ MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", 16, 16 },
		{ MPI_COMPLEX32, "MPI_COMPLEX32", 32, 32 },
		{ MPI_LOGICAL, "MPI_LOGICAL", 4, 4 },
		{ MPI_PACKED, "MPI_PACKED", 1, 1 },
	};
	char name[MPI_MAX_OBJECT_NAME];
	int len, size;
	MPI_Aint lb, extent;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		CHECK(!MPI_Type_get_name(known[i].type, name, &len) && !strcmp(name, known[i].name) && len == (int)strlen(name));
		CHECK(!MPI_Type_size(known[i].type, &size) && size == known[i].size);
		CHECK(!MPI_Type_get_extent(known[i].type, &lb, &extent) && lb == 0 && extent == known[i].extent);
	}
	CHECK(!MPI_Type_get_name(MPI_DATATYPE_NULL, name, &len) && !strcmp(name, "MPI_DATATYPE_NULL"));
	MPI_Datatype dup;
	CHECK(!MPI_Type_dup(MPI_INT, &dup) && !MPI_Type_get_name(dup, name, &len) && len == 0);
	CHECK(!MPI_Type_set_name(dup, "mine") && !MPI_Type_get_name(dup, name, &len) && !strcmp(name, "mine") && len == 4);
	free_type(&dup);
}

static void check_fortran(void)
{
	MPI_Datatype a, b, pair;
	int ni, na, nd, combiner, size, i[2];
	CHECK(!MPI_Type_create_f90_real(10, MPI_UNDEFINED, &a) && !MPI_Type_create_f90_real(10, MPI_UNDEFINED, &b) && a == b);
	CHECK(!MPI_Type_size(a, &size) && size == 8);
	CHECK(!MPI_Type_get_envelope(a, &ni, &na, &nd, &combiner));
	CHECK(ni == 2 && !na && !nd && combiner == MPI_COMBINER_F90_REAL);
	CHECK(!MPI_Type_get_contents(a, 2, 0, 0, i, NULL, NULL) && i[0] == 10 && i[1] == MPI_UNDEFINED);
	CHECK(MPI_Type_free(&a) == MPI_ERR_TYPE);
	CHECK(!MPI_Type_create_f90_integer(9, &a) && !MPI_Type_size(a, &size) && size == 4);
	CHECK(MPI_Type_create_f90_real(100, 1, &a) == MPI_ERR_ARG);
	CHECK(!MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &a) && !MPI_Type_size(a, &size) && size == 8);
	CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &a) == MPI_ERR_ARG);
	CHECK(!MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair) && pair == MPI_DOUBLE_INT);
	CHECK(!MPI_Type_get_value_index(MPI_CHAR, MPI_INT, &pair) && pair == MPI_DATATYPE_NULL);
}

static void check_large(void)
{
	MPI_Datatype type, of;
	MPI_Count ni, na, nc, nd, size, counts[3];
	int small, combiner;
	CHECK(!MPI_Type_vector_c(3, 1, (MPI_Count)1 << 33, MPI_INT, &type));
	CHECK(!MPI_Type_get_envelope_c(type, &ni, &na, &nc, &nd, &combiner));
	CHECK(ni == 0 && na == 0 && nc == 3 && nd == 1 && combiner == MPI_COMBINER_VECTOR);
	CHECK(!MPI_Type_get_contents_c(type, 0, 0, 3, 1, NULL, NULL, counts, &of));
	CHECK(counts[0] == 3 && counts[1] == 1 && counts[2] == (MPI_Count)1 << 33 && of == MPI_INT);
	CHECK(MPI_Type_get_envelope(type, &small, &small, &small, &combiner) == MPI_ERR_TYPE);
	free_type(&type);
	CHECK(!MPI_Type_contiguous_c((MPI_Count)1 << 32, MPI_INT, &type));
	CHECK(!MPI_Type_size(type, &small) && small == MPI_UNDEFINED);
	CHECK(!MPI_Type_size_c(type, &size) && size == (MPI_Count)1 << 34);
	CHECK(MPI_Type_contiguous_c((MPI_Count)1 << 40, type, &of) == MPI_ERR_VALUE_TOO_LARGE);
	free_type(&type);
}

static void check_errors(void)
{
	MPI_Datatype type = MPI_INT, bad;
	int buf[4], position = 0;
	CHECK(MPI_Type_free(&type) == MPI_ERR_TYPE);
	CHECK(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &bad) == MPI_ERR_TYPE);
	CHECK(MPI_Type_contiguous(-1, MPI_INT, &bad) == MPI_ERR_COUNT);
	CHECK(MPI_Type_vector(1, -1, 1, MPI_INT, &bad) == MPI_ERR_ARG);
	CHECK(MPI_Type_indexed(2, (int[]){ 1, -1 }, (int[]){ 0, 0 }, MPI_INT, &bad) == MPI_ERR_ARG);
	CHECK(MPI_Type_create_subarray(1, (int[]){ 4 }, (int[]){ 3 }, (int[]){ 2 }, MPI_ORDER_C, MPI_INT, &bad) == MPI_ERR_ARG);
	CHECK(!MPI_Type_contiguous(2, MPI_INT, &type));
	CHECK(MPI_Pack(buf, 1, type, buf + 2, 8, &position, MPI_COMM_SELF) == MPI_ERR_TYPE); /* not committed */
	CHECK(!MPI_Type_commit(&type));
	CHECK(MPI_Pack(buf, 1, type, buf + 2, 7, &position, MPI_COMM_SELF) == MPI_ERR_TRUNCATE && position == 0);
	free_type(&type);
}

/* Blocks that are not aligned: the extent reaches to the end of the last block with its padding. */
static void check_unaligned_blocks(void)
{
	const MPI_Aint expected[] = { 68, 480, 136 };
	MPI_Datatype type[3];
	CHECK(!MPI_Type_create_hvector(3, 4, 25, MPI_INT, &type[0]));
	CHECK(!MPI_Type_create_hvector(2, 3, 4 * 68 + 1, type[0], &type[1]));
	CHECK(!MPI_Type_contiguous(2, type[0], &type[2]));
	for (int i = 0; i < 3; i++) {
		MPI_Aint lb, extent;
		CHECK(!MPI_Type_get_extent(type[i], &lb, &extent) && lb == 0 && extent == expected[i]);
	}
	for (int i = 0; i < 3; i++)
		MPI_Type_free(&type[i]);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	check_names();
	check_fortran();
	check_large();
	check_unaligned_blocks();
	check_external();
	check_errors();
	check_random();
	check_messages();
	MPI_Aint address;
	CHECK(!MPI_Get_address(argv, &address) && MPI_Aint_diff(MPI_Aint_add(address, 24), address) == 24);
	MPI_Finalize();
	return 0;
}
