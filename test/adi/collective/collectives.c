/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcast, barrier and reductions: blocking, nonblocking and persistent, at all roots, in place and not, with all operations and
 * kinds of elements, with sizes around the limits between algorithms, in intracommunicators and intercommunicators. Results are
 * compared with what each rank computes alone. With the argument "few": only some sizes, in MPI_COMM_WORLD.
 */
#include "test/adi/check_mpi.h"
#include "test/adi/collective/reference.h"

#include <string.h>

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static MPI_Comm comm;
static int rank, size;
static bool few;

static void finish(enum form form, MPI_Request *request)
{
	if (form == PERSISTENT)
		CHECK(MPI_Start(request) == MPI_SUCCESS);
	CHECK(MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
	if (form == PERSISTENT)
		MPI_Request_free(request);
	CHECK(*request == MPI_REQUEST_NULL);
}

/* Calls the form of a collective: CALL(form, Reduce, Ireduce, arguments...). */
#define CALL(form, name, nonblocking, ...)                                                           \
	do {                                                                                         \
		MPI_Request request_;                                                                \
		if ((form) == BLOCKING)                                                              \
			CHECK(MPI_##name(__VA_ARGS__) == MPI_SUCCESS);                               \
		else if ((form) == NONBLOCKING)                                                      \
			CHECK(MPI_##nonblocking(__VA_ARGS__, &request_) == MPI_SUCCESS);             \
		else                                                                                 \
			CHECK(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request_) == MPI_SUCCESS); \
		if ((form) != BLOCKING)                                                              \
			finish(form, &request_);                                                     \
	} while (0)

/* ---- one reduction in all its forms ---- */

struct reduction {
	const struct kind *kind;
	MPI_Datatype type;
	MPI_Op op;
	int count;
	char *mine, *result, *expected; /* [count + 1] elements; the last one of result is a guard */
};

static size_t bytes(const struct reduction *r, int count)
{
	return (size_t)count * r->kind->size;
}

static void make(struct reduction *r, int total)
{
	r->mine = calloc((size_t)total + 1, r->kind->size);
	r->result = calloc((size_t)total + 1, r->kind->size);
	r->expected = calloc((size_t)total + 1, r->kind->size);
	r->kind->fill(r->mine, total, rank);
}

static void drop(struct reduction *r)
{
	free(r->mine);
	free(r->result);
	free(r->expected);
}

/* What ranks 0 to last give together, in order. */
static void expect(struct reduction *r, int total, int last)
{
	char *next = calloc((size_t)total + 1, r->kind->size);
	r->kind->fill(r->expected, total, last);
	for (int i = last - 1; i >= 0; i--) {
		r->kind->fill(next, total, i);
		r->kind->combine(r->op, next, r->expected, total);
	}
	free(next);
}

static void prepare(struct reduction *r, int total, bool in_place)
{
	memset(r->result, 0x5a, bytes(r, total + 1));
	if (in_place)
		memcpy(r->result, r->mine, bytes(r, total));
}

static void compare(const struct reduction *r, int at, int count)
{
	CHECK(r->kind->equal(r->result, r->expected + bytes(r, at), count));
}

static void test_reduce(struct reduction *r, enum form form, bool in_place)
{
	expect(r, r->count, size - 1);
	for (int root = 0; root < size; root++) {
		bool here = rank == root;
		prepare(r, r->count, in_place && here);
		CALL(form, Reduce, Ireduce, in_place && here ? MPI_IN_PLACE : r->mine, here ? r->result : NULL, r->count, r->type, r->op,
		     root, comm);
		if (here)
			compare(r, 0, r->count);
	}
}

static void test_all(struct reduction *r, enum form form, bool in_place)
{
	void *send = in_place ? MPI_IN_PLACE : r->mine;
	expect(r, r->count, size - 1);
	prepare(r, r->count, in_place);
	CALL(form, Allreduce, Iallreduce, send, r->result, r->count, r->type, r->op, comm);
	compare(r, 0, r->count);
	CHECK((unsigned char)r->result[bytes(r, r->count)] == 0x5a);

	expect(r, r->count, rank);
	prepare(r, r->count, in_place);
	CALL(form, Scan, Iscan, send, r->result, r->count, r->type, r->op, comm);
	compare(r, 0, r->count);
	CHECK((unsigned char)r->result[bytes(r, r->count)] == 0x5a);

	prepare(r, r->count, in_place);
	CALL(form, Exscan, Iexscan, send, r->result, r->count, r->type, r->op, comm);
	if (rank > 0) {
		expect(r, r->count, rank - 1);
		compare(r, 0, r->count);
	}
}

static void test_scatter(const struct reduction *of, enum form form, bool in_place)
{
	struct reduction r = *of;
	int *counts = calloc((size_t)size, sizeof *counts), total = 0, before = 0;
	for (int i = 0; i < size; i++) {
		counts[i] = i % 3 == 1 ? 0 : of->count + i; /* some ranks get nothing */
		before += i < rank ? counts[i] : 0;
		total += counts[i];
	}
	int most = total > size * of->count ? total : size * of->count;
	make(&r, most);
	expect(&r, most, size - 1);
	void *send = in_place ? MPI_IN_PLACE : r.mine;
	prepare(&r, total, in_place);
	CALL(form, Reduce_scatter, Ireduce_scatter, send, r.result, counts, r.type, r.op, comm);
	compare(&r, before, counts[rank]);
	prepare(&r, size * of->count, in_place);
	CALL(form, Reduce_scatter_block, Ireduce_scatter_block, send, r.result, of->count, r.type, r.op, comm);
	compare(&r, rank * of->count, of->count);
	drop(&r);
	free(counts);
}

static void test_reduction(const struct kind *kind, MPI_Datatype type, MPI_Op op, int count)
{
	for (int form = BLOCKING; form < FORMS; form++) {
		for (int in_place = 0; in_place < 2; in_place++) {
			struct reduction r = { kind, type, op, count, NULL, NULL, NULL };
			make(&r, count);
			test_reduce(&r, form, in_place);
			test_all(&r, form, in_place);
			test_scatter(&r, form, in_place);
			drop(&r);
		}
	}
}

/* ---- operations of the program ---- */

/* Matrices of 2 x 2: their product does not commute. The datatype may have gaps. */
static void multiply(void *in, void *inout, int *len, MPI_Datatype *type)
{
	MPI_Aint lb, extent;
	MPI_Type_get_extent(*type, &lb, &extent);
	for (int i = 0; i < *len; i++)
		matrix_product((unsigned *)(void *)((char *)in + i * extent), (unsigned *)(void *)((char *)inout + i * extent));
}

static void multiply_large(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
	int n = (int)*len;
	multiply(in, inout, &n, type);
}

static void test_own_operations(void)
{
	static const int counts[] = { 0, 1, 5, 64, 1000, 5000 };
	MPI_Datatype whole, gaps, six;
	MPI_Op op, large;
	int commutes = 1;
	MPI_Type_contiguous(4, MPI_UNSIGNED, &whole);
	MPI_Type_contiguous(4, MPI_UNSIGNED, &six);
	MPI_Type_create_resized(six, 0, 24, &gaps);
	MPI_Type_commit(&whole);
	MPI_Type_commit(&gaps);
	MPI_Op_create(multiply, 0, &op);
	MPI_Op_create_c(multiply_large, 0, &large);
	MPI_Op_commutative(op, &commutes);
	CHECK(!commutes);
	for (size_t i = few ? 2 : 0; i < sizeof counts / sizeof *counts; i += few ? 3 : 1) {
		test_reduction(&kind_matrix, whole, i % 2 ? op : large, counts[i]);
		test_reduction(&kind_matrix_with_gap, gaps, i % 2 ? large : op, counts[i]);
	}
	MPI_Type_free(&whole);
	MPI_Type_free(&gaps);
	MPI_Type_free(&six);
	MPI_Op_free(&op);
	MPI_Op_free(&large);
	CHECK(op == MPI_OP_NULL);
}

/* ---- broadcast and barrier ---- */

static void test_bcast_bytes(enum form form, int count)
{
	unsigned char *buf = malloc((size_t)count + 1);
	for (int root = 0; root < size; root++) {
		memset(buf, 0xff, (size_t)count + 1);
		if (rank == root)
			fill(buf, (size_t)count, (unsigned)root + 1);
		CALL(form, Bcast, Ibcast, buf, count, MPI_BYTE, root, comm);
		CHECK(filled(buf, (size_t)count, (unsigned)root + 1) && buf[count] == 0xff);
	}
	free(buf);
}

/* The root sends columns of a matrix, the others receive rows. */
static void test_bcast_types(enum form form, int n)
{
	MPI_Datatype vector, column;
	int *matrix = malloc((size_t)n * (size_t)n * sizeof *matrix);
	MPI_Type_vector(n, 1, n, MPI_INT, &vector);
	MPI_Type_create_resized(vector, 0, sizeof(int), &column);
	MPI_Type_free(&vector);
	MPI_Type_commit(&column);
	for (int root = 0; root < size; root++) {
		for (int i = 0; i < n * n; i++)
			matrix[i] = rank == root ? i : -1;
		if (rank == root)
			CALL(form, Bcast, Ibcast, matrix, n, column, root, comm);
		else if (rank % 2)
			CALL(form, Bcast, Ibcast, matrix, n * n, MPI_INT, root, comm);
		else
			CALL(form, Bcast, Ibcast, matrix, n, column, root, comm);
		for (int i = 0; i < n * n; i++)
			CHECK(matrix[i] == (rank != root && rank % 2 ? i % n * n + i / n : i));
	}
	MPI_Type_free(&column);
	free(matrix);
}

static void test_bcast_and_barrier(void)
{
	static const int counts[] = { 0, 1, 48, 49, 2048, 2049, 8192, 8193, 16384, 16385, 65536, 65537, 300001 };
	for (int form = BLOCKING; form < FORMS; form++) {
		for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
			test_bcast_bytes(form, counts[i]);
		test_bcast_types(form, 5);
		test_bcast_types(form, 60);
		test_bcast_types(form, 200);
		for (int i = 0; i < 20; i++)
			CALL(form, Barrier, Ibarrier, comm);
	}
}

/* ---- intercommunicators ---- */

static void test_inter_reduce(MPI_Comm inter, const struct reduction *r, bool low, int low_size)
{
	int others = low ? size - low_size : low_size;
	for (int form = BLOCKING; form < FORMS; form++) {
		for (int root = 0; root < size; root++) {
			bool root_is_low = root < low_size, here = rank == root;
			int number = root_is_low ? root : root - low_size, given = low == root_is_low ? MPI_PROC_NULL : number;
			CALL(form, Reduce, Ireduce, r->mine, r->result, r->count, r->type, r->op, here ? MPI_ROOT : given, inter);
			if (here)
				compare(r, 0, r->count);
		}
		memset(r->result, 0, bytes(r, r->count));
		CALL(form, Allreduce, Iallreduce, r->mine, r->result, r->count, r->type, r->op, inter);
		compare(r, 0, r->count);
		CALL(form, Barrier, Ibarrier, inter);
	}
	CHECK(others > 0);
}

static void test_inter_scatter(MPI_Comm inter, const struct kind *kind, const int *range, int low_size)
{
	int mine = rank < low_size ? low_size : size - low_size, place = rank < low_size ? rank : rank - low_size;
	int total = low_size * (size - low_size) * 3, each = total / mine;
	struct reduction r = { kind, MPI_INT, MPI_SUM, total, NULL, NULL, NULL };
	make(&r, total);
	char *next = calloc((size_t)total, kind->size);
	kind->fill(r.expected, total, range[0]);
	for (int i = range[0] + 1; i < range[1]; i++) {
		kind->fill(next, total, i);
		kind->combine(MPI_SUM, next, r.expected, total);
	}
	int *counts = malloc((size_t)mine * sizeof *counts);
	for (int i = 0; i < mine; i++)
		counts[i] = each;
	for (int form = BLOCKING; form < FORMS; form++) {
		CALL(form, Reduce_scatter_block, Ireduce_scatter_block, r.mine, r.result, each, MPI_INT, MPI_SUM, inter);
		compare(&r, place * each, each);
		memset(r.result, 0, bytes(&r, total));
		CALL(form, Reduce_scatter, Ireduce_scatter, r.mine, r.result, counts, MPI_INT, MPI_SUM, inter);
		compare(&r, place * each, each);
	}
	free(counts);
	free(next);
	drop(&r);
}

static void test_inter_bcast(MPI_Comm inter, bool low, int low_size)
{
	int data[100];
	for (int form = BLOCKING; form < FORMS; form++) {
		for (int root = 0; root < size; root++) {
			bool root_is_low = root < low_size;
			int number = root_is_low ? root : root - low_size, given = low == root_is_low ? MPI_PROC_NULL : number;
			for (int i = 0; i < 100; i++)
				data[i] = rank == root ? root + i : -1;
			CALL(form, Bcast, Ibcast, data, 100, MPI_INT, rank == root ? MPI_ROOT : given, inter);
			for (int i = 0; i < 100; i++)
				CHECK(data[i] == (low == root_is_low && rank != root ? -1 : root + i));
		}
	}
}

static void test_inter(int count)
{
	int low_size = (size + 1) / 3, range[2];
	bool low = rank < low_size;
	MPI_Comm half, inter;
	MPI_Comm_split(comm, low, rank, &half);
	MPI_Intercomm_create(half, 0, comm, low ? low_size : 0, 5, &inter);
	/* Each group gets what the other has. */
	range[0] = low ? low_size : 0;
	range[1] = low ? size : low_size;
	struct reduction r = { &kind_int32, MPI_INT, MPI_SUM, count, NULL, NULL, NULL };
	make(&r, count);
	int *next = calloc((size_t)count + 1, sizeof *next);
	for (int i = range[0]; i < range[1]; i++) {
		kind_int32.fill(next, count, i);
		for (int j = 0; j < count; j++)
			((int *)(void *)r.expected)[j] += next[j];
	}
	test_inter_bcast(inter, low, low_size);
	test_inter_reduce(inter, &r, low, low_size);
	test_inter_scatter(inter, &kind_int32, range, low_size);
	free(next);
	drop(&r);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

/* ---- all of it in one communicator ---- */

static void test_kinds(void)
{
	for (int k = 0; kinds[k].kind; k++)
		for (int i = 0; i < operations_of(kinds[k].kind); i++)
			test_reduction(kinds[k].kind, kinds[k].type, operation_of(kinds[k].kind, i), 13);
}

static void test_sizes(void)
{
	static const int counts[] = { 0, 1, 2, 6, 7, 12, 13, 128, 129, 1024, 1025, 2048, 2049, 8192, 8193, 30001 };
	for (size_t i = few ? 1 : 0; i < sizeof counts / sizeof *counts; i += few ? 7 : 1)
		test_reduction(&kind_int64, MPI_INT64_T, MPI_SUM, counts[i]);
	test_reduction(&kind_double, MPI_DOUBLE, MPI_PROD, 3000);
}

static void test_communicator(MPI_Comm of)
{
	comm = of;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	test_sizes();
	test_own_operations();
	test_bcast_and_barrier();
	if (size > 1)
		test_inter(500);
}

int main(int argc, char **argv)
{
	few = argc > 1 && !strcmp(argv[1], "few");
	MPI_Init(&argc, &argv);
	MPI_Comm part;
	int world, n;
	test_communicator(MPI_COMM_WORLD);
	if (few) {
		MPI_Finalize();
		return 0;
	}
	test_kinds();
	/* Ranks in reverse order, without the last one. */
	MPI_Comm_rank(MPI_COMM_WORLD, &world);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	MPI_Comm_split(MPI_COMM_WORLD, world == n - 1 && n > 1 ? MPI_UNDEFINED : 0, -world, &part);
	if (part != MPI_COMM_NULL) {
		test_communicator(part);
		MPI_Comm_free(&part);
	}
	MPI_Finalize();
	return 0;
}
