/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gatherv, scatterv, allgatherv, alltoallv and alltoallw of ranks on one machine: sizes around the limits between the parts of the shared
 * segment, and between the segment and messages, short and long blocks in one call, empty blocks. With the argument "segment":
 * a performance variable must show that short blocks are no messages.
 */
#include "test/adi/check_mpi.h"

#include <stdio.h>
#include <string.h>

enum { RANKS_MAX = 8 };

static int rank, size;
/* Limits: of the slot, of what bypasses the caches, of a slot's chunk, of a block in one step, of a step; about those of alltoallv with
 * 2 to 5 ranks. */
static const int lengths[] = { 0, 1, 40, 47, 48, 49, 2047, 2048, 2049, 4000, 8191, 8192, 8193, 30000, 52420, 65475, 65535, 65536, 65537,
			       87360, 87400, 131060, 131072, 262128, 262129, 262143, 262144, 262145, 300000 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Bytes from one rank to another in a turn. way: 0, the same for all; 1, different ones; 2, one rank has an empty block. */
static int bytes_between(int turn, int way, int from, int to)
{
	if (way == 2 && (from + to + turn) % 3 == 0)
		return 0;
	return lengths[(turn + (way ? 5 * from + 7 * to : 0)) % LENGTHS];
}

static void fill_bytes(unsigned char *data, int bytes, int turn, int from, int to)
{
	unsigned value = (unsigned)(turn * 31 + from * 7 + to * 3 + 1);
	for (int i = 0; i < bytes; i++)
		data[i] = (unsigned char)(value + (unsigned)i * 5 + (unsigned)i / 251);
}

static void check_bytes(const unsigned char *data, int bytes, int turn, int from, int to)
{
	static unsigned char expected[300001];
	fill_bytes(expected, bytes, turn, from, to);
	CHECK(!memcmp(data, expected, (size_t)bytes));
}

/* A buffer with a block for each rank, with gaps of a few bytes, which nobody may change. */
struct blocks {
	unsigned char *data;
	int counts[RANKS_MAX], displs[RANKS_MAX];
	size_t all;
};

static void make(struct blocks *blocks)
{
	blocks->all = 3;
	for (int i = 0; i < size; i++) {
		blocks->displs[i] = (int)blocks->all;
		blocks->all += (size_t)blocks->counts[i] + 3;
	}
	blocks->data = malloc(blocks->all);
	memset(blocks->data, 0xee, blocks->all);
}

static void drop(struct blocks *blocks)
{
	size_t at = 0;
	for (int i = 0; i <= size; i++) {
		for (int k = 0; k < 3; k++)
			CHECK(blocks->data[at + (size_t)k] == 0xee);
		if (i < size)
			at = (size_t)blocks->displs[i] + (size_t)blocks->counts[i];
	}
	free(blocks->data);
}

static void gather(int turn, int way, int root, bool all)
{
	struct blocks blocks;
	int own = bytes_between(turn, way, rank, root);
	unsigned char *mine = malloc((size_t)own + 1);
	fill_bytes(mine, own, turn, rank, root);
	for (int i = 0; i < size; i++)
		blocks.counts[i] = bytes_between(turn, way, i, root);
	make(&blocks);
	if (all)
		MPI_Allgatherv(mine, own, MPI_BYTE, blocks.data, blocks.counts, blocks.displs, MPI_BYTE, MPI_COMM_WORLD);
	else
		MPI_Gatherv(mine, own, MPI_BYTE, blocks.data, blocks.counts, blocks.displs, MPI_BYTE, root, MPI_COMM_WORLD);
	for (int i = 0; i < size && (all || rank == root); i++)
		check_bytes(blocks.data + blocks.displs[i], blocks.counts[i], turn, i, root);
	drop(&blocks);
	free(mine);
}

static void scatter(int turn, int way, int root)
{
	struct blocks blocks;
	int own = bytes_between(turn, way, root, rank);
	unsigned char *mine = malloc((size_t)own + 1);
	mine[own] = 0xee;
	for (int i = 0; i < size; i++)
		blocks.counts[i] = bytes_between(turn, way, root, i);
	make(&blocks);
	for (int i = 0; i < size; i++)
		fill_bytes(blocks.data + blocks.displs[i], blocks.counts[i], turn, root, i);
	MPI_Scatterv(blocks.data, blocks.counts, blocks.displs, MPI_BYTE, mine, own, MPI_BYTE, root, MPI_COMM_WORLD);
	check_bytes(mine, own, turn, root, rank);
	CHECK(mine[own] == 0xee);
	drop(&blocks);
	free(mine);
}

static void alltoall(int turn, int way)
{
	struct blocks out, in;
	for (int i = 0; i < size; i++) {
		out.counts[i] = bytes_between(turn, way, rank, i);
		in.counts[i] = bytes_between(turn, way, i, rank);
	}
	make(&out);
	make(&in);
	for (int i = 0; i < size; i++)
		fill_bytes(out.data + out.displs[i], out.counts[i], turn, rank, i);
	MPI_Alltoallv(out.data, out.counts, out.displs, MPI_BYTE, in.data, in.counts, in.displs, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		check_bytes(in.data + in.displs[i], in.counts[i], turn, i, rank);
	drop(&out);
	drop(&in);
}

/* Odd ranks' bytes are received with a byte of gap behind each of them. The type of an empty block is not looked at. */
static void alltoallw(int turn, int way)
{
	struct blocks out, in;
	MPI_Datatype spaced, out_types[RANKS_MAX], in_types[RANKS_MAX];
	int counts[RANKS_MAX];
	MPI_Type_create_resized(MPI_BYTE, 0, 2, &spaced);
	MPI_Type_commit(&spaced);
	for (int i = 0; i < size; i++) {
		out.counts[i] = bytes_between(turn, way, rank, i);
		counts[i] = bytes_between(turn, way, i, rank);
		in.counts[i] = i % 2 ? 2 * counts[i] : counts[i];
		out_types[i] = out.counts[i] ? MPI_BYTE : MPI_DATATYPE_NULL;
		in_types[i] = !counts[i] ? MPI_DATATYPE_NULL : i % 2 ? spaced : MPI_BYTE;
	}
	make(&out);
	make(&in);
	for (int i = 0; i < size; i++)
		fill_bytes(out.data + out.displs[i], out.counts[i], turn, rank, i);
	MPI_Alltoallw(out.data, out.counts, out.displs, out_types, in.data, counts, in.displs, in_types, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++) {
		unsigned char *at = in.data + in.displs[i];
		for (int k = 0; i % 2 && k < counts[i]; k++) {
			CHECK(at[2 * k + 1] == 0xee);
			at[k] = at[2 * k];
		}
		check_bytes(at, counts[i], turn, i, rank);
	}
	drop(&out);
	drop(&in);
	MPI_Type_free(&spaced);
}

static void all(int turn, int way)
{
	for (int root = 0; root < size; root++) {
		gather(turn, way, root, false);
		scatter(turn, way, root);
	}
	gather(turn, way, 0, true);
	alltoall(turn, way);
	alltoallw(turn, way);
}

/* ---- whether blocks are messages ---- */

static unsigned long long sent(void)
{
	static MPI_T_pvar_session session;
	static MPI_T_pvar_handle handle;
	unsigned long long value;
	int index, count, provided;
	if (!handle) {
		MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
		CHECK(MPI_T_pvar_get_index("bytes_sent", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
		MPI_T_pvar_session_create(&session);
		MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
	}
	CHECK(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS);
	return value;
}

static void in_segment(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	unsigned long long before = sent();
	for (int turn = 1; turn <= 13; turn++) /* up to 30,000 bytes */
		all(turn, 0);
	if (size == 2) { /* long blocks of two ranks too: 300,000 bytes */
		alltoall(LENGTHS - 1, 0);
		alltoallw(LENGTHS - 1, 0);
	}
	CHECK(sent() == before);
	if (size > 1) {
		MPI_Barrier(MPI_COMM_WORLD);
		all(LENGTHS - 1, 0); /* 300,000 bytes; this rank sends some of them as messages */
		CHECK(sent() > before + 300000);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(size <= RANKS_MAX);
	for (int way = 0; way < 3; way++)
		for (int turn = 0; turn < LENGTHS; turn++)
			all(turn, way);
	if (argc > 1 && !strcmp(argv[1], "segment") && size > 1)
		in_segment();
	MPI_Finalize();
	return 0;
}
