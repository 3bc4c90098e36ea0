/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives on Cartesian topologies (periodic ones of extent 1 and 2 too, where a rank is a neighbour in both
 * directions), graphs and distributed graphs with repeated edges. What is expected follows from the lists of neighbours alone: the
 * k-th message from a to b is the k-th in the order of b's receives; in a Cartesian topology a block sent in one direction of a
 * dimension arrives as the block of the other direction.
 */
#include "kinds.h"

static MPI_Comm comm;
static int rank, size;
static int sources, destinations, source[64], destination[64];
/* Which block of its destinations each source sends to this rank: index among the blocks of the source. */
static int index_there[64];

/* Messages that rank a sends as its block i have the value value(a, i, .): block number in place of the destination. */
static void put_block(int *buf, const struct kind *kind, int displ, int units, int from, int block)
{
	put(buf, kind, displ, units, from, block);
}

static int units_of(int shape, int units, int from, int block)
{
	return shape ? (from * 5 + block * 3) % (units + 1) : units;
}

static void run_alltoall(int form, int shape, const struct kind *send, const struct kind *receive, int units)
{
	int going[64], coming[64];
	unsigned state = 9;
	for (int i = 0; i < destinations; i++)
		going[i] = units_of(shape, units, rank, i);
	for (int i = 0; i < sources; i++)
		coming[i] = source[i] < 0 ? units : units_of(shape, units, source[i], index_there[i]);
	struct layout out = make_layout(send, destinations, going, shape ? &state : NULL);
	struct layout in = make_layout(receive, sources, coming, shape ? &state : NULL);
	int *from = make_buffer(send, out.elements), *to = make_buffer(receive, in.elements);
	int *expected = make_buffer(receive, in.elements);
	MPI_Aint out_bytes[64], in_bytes[64];
	MPI_Datatype out_types[64], in_types[64];
	for (int i = 0; i < destinations; i++) {
		put_block(from, send, out.displs[i], going[i], rank, i);
		out_bytes[i] = (MPI_Aint)out.displs[i] * send->extent * (MPI_Aint)sizeof(int);
		out_types[i] = send->type;
	}
	for (int i = 0; i < sources; i++) {
		if (source[i] >= 0)
			put_block(expected, receive, in.displs[i], coming[i], source[i], index_there[i]);
		in_bytes[i] = (MPI_Aint)in.displs[i] * receive->extent * (MPI_Aint)sizeof(int);
		in_types[i] = receive->type;
	}
	if (shape == 0)
		RUN(form, Neighbor_alltoall, Ineighbor_alltoall, from, elements_of(send, units), send->type, to,
		    elements_of(receive, units), receive->type, comm);
	else if (shape == 1)
		RUN(form, Neighbor_alltoallv, Ineighbor_alltoallv, from, out.counts, out.displs, send->type, to, in.counts, in.displs,
		    receive->type, comm);
	else
		RUN(form, Neighbor_alltoallw, Ineighbor_alltoallw, from, out.counts, out_bytes, out_types, to, in.counts, in_bytes,
		    in_types, comm);
	check_equal(to, expected, receive, in.elements);
	free(from);
	free(to);
	free(expected);
	free_layout(&out);
	free_layout(&in);
}

static void run_allgather(int form, int shape, const struct kind *send, const struct kind *receive, int units)
{
	int coming[64], own = units_of(shape, units, rank, 0);
	unsigned state = 9;
	for (int i = 0; i < sources; i++)
		coming[i] = source[i] < 0 ? units : units_of(shape, units, source[i], 0);
	struct layout in = make_layout(receive, sources, coming, shape ? &state : NULL);
	int *from = make_buffer(send, elements_of(send, own)), *to = make_buffer(receive, in.elements);
	int *expected = make_buffer(receive, in.elements);
	put_block(from, send, 0, own, rank, 0);
	for (int i = 0; i < sources; i++)
		if (source[i] >= 0)
			put_block(expected, receive, in.displs[i], coming[i], source[i], 0);
	if (shape == 0)
		RUN(form, Neighbor_allgather, Ineighbor_allgather, from, elements_of(send, own), send->type, to,
		    elements_of(receive, units), receive->type, comm);
	else
		RUN(form, Neighbor_allgatherv, Ineighbor_allgatherv, from, elements_of(send, own), send->type, to, in.counts, in.displs,
		    receive->type, comm);
	check_equal(to, expected, receive, in.elements);
	free(from);
	free(to);
	free(expected);
	free_layout(&in);
}

static void run_all(void)
{
	static const int sizes[] = { 0, 1, 4, 3000 };
	for (int i = 0; i < 4; i++)
		for (int pair = 0; pair < KINDS * KINDS; pair += 3)
			for (int form = 0; form < FORMS; form++)
				for (int shape = 0; shape < 3; shape++) {
					run_alltoall(form, shape, &kinds[pair / KINDS], &kinds[pair % KINDS], sizes[i]);
					run_allgather(form, shape, &kinds[pair / KINDS], &kinds[pair % KINDS], sizes[i]);
				}
}

static void test_cart(int ndims, const int *dims, const int *periods)
{
	int ranks = 1;
	for (int d = 0; d < ndims; d++)
		ranks *= dims[d];
	if (ranks > size)
		return;
	CHECK(!MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &comm));
	if (comm == MPI_COMM_NULL)
		return;
	MPI_Comm_rank(comm, &rank);
	sources = destinations = 2 * ndims;
	for (int d = 0; d < ndims; d++) {
		MPI_Cart_shift(comm, d, 1, &source[2 * d], &source[2 * d + 1]);
		index_there[2 * d] = 2 * d + 1;
		index_there[2 * d + 1] = 2 * d;
	}
	for (int i = 0; i < sources; i++)
		if (source[i] == MPI_PROC_NULL)
			source[i] = -1;
	run_all();
	MPI_Comm_free(&comm);
}

/* A pseudorandom multigraph, the same at all ranks: edge e goes from head[e] to tail[e]. The lists of each rank keep the order of
 * the edges. */
static void test_dist_graph(int edges, unsigned seed)
{
	int head[64], tail[64], there[64], weights[64];
	unsigned state = seed;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	sources = destinations = 0;
	for (int e = 0; e < edges; e++) {
		head[e] = (int)(next_random(&state) % (unsigned)size);
		tail[e] = (int)(next_random(&state) % (unsigned)size);
		there[e] = 0;
		weights[e] = 1;
		for (int f = 0; f < e; f++)
			there[e] += head[f] == head[e];
	}
	for (int e = 0; e < edges; e++) {
		if (tail[e] == rank) {
			index_there[sources] = there[e];
			source[sources++] = head[e];
		}
		if (head[e] == rank)
			destination[destinations++] = tail[e];
	}
	CHECK(!MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sources, source, weights, destinations, destination,
					      weights, MPI_INFO_NULL, 0, &comm));
	run_all();
	MPI_Comm_free(&comm);
}

/* A graph in which each rank has an edge to the next, twice, and to itself: symmetric. */
static void test_graph(void)
{
	int index[64], edges[64 * 5], n = 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int r = 0; r < size; r++) {
		edges[n++] = r;
		edges[n++] = (r + 1) % size;
		edges[n++] = (r + size - 1) % size;
		index[r] = n;
	}
	CHECK(!MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm));
	sources = destinations = 3;
	for (int i = 0; i < 3; i++) {
		source[i] = edges[3 * rank + i];
		/* The k-th message from this neighbour is the k-th of its blocks to this rank. */
		int k = 0, j = 0;
		for (int before = 0; before < i; before++)
			k += edges[3 * rank + before] == source[i];
		for (j = 0; edges[3 * source[i] + j] != rank || k-- > 0; j++)
			;
		index_there[i] = j;
	}
	run_all();
	MPI_Comm_free(&comm);
}

/* The displacements are addresses, relative to MPI_BOTTOM. */
static void test_bottom(void)
{
	int out[2], in[2], me, counts[2] = { 1, 1 };
	MPI_Datatype types[2] = { MPI_INT, MPI_INT };
	MPI_Aint from[2], to[2];
	MPI_Comm cart;
	MPI_Request request;
	MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){ size }, (int[]){ 1 }, 0, &cart);
	MPI_Comm_rank(cart, &me);
	for (int i = 0; i < 2; i++) {
		MPI_Get_address(&out[i], &from[i]);
		MPI_Get_address(&in[i], &to[i]);
		out[i] = 2 * me + i;
	}
	int left = (me + size - 1) % size, right = (me + 1) % size;
	in[0] = in[1] = -1;
	MPI_Neighbor_alltoallw(MPI_BOTTOM, counts, from, types, MPI_BOTTOM, counts, to, types, cart);
	CHECK(size < 3 || (in[0] == 2 * left + 1 && in[1] == 2 * right));
	CHECK(in[0] >= 0 && in[1] >= 0);
	in[0] = in[1] = -1;
	MPI_Ineighbor_alltoallw(MPI_BOTTOM, counts, from, types, MPI_BOTTOM, counts, to, types, cart, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK(size < 3 || (in[0] == 2 * left + 1 && in[1] == 2 * right));
	CHECK(in[0] >= 0 && in[1] >= 0);
	MPI_Comm_free(&cart);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	make_kinds();
	test_cart(1, (int[]){ size }, (int[]){ 1 });
	test_cart(1, (int[]){ size }, (int[]){ 0 });
	test_cart(2, (int[]){ 1, size }, (int[]){ 1, 1 });
	test_cart(3, (int[]){ 1, 1, 1 }, (int[]){ 1, 0, 1 });
	test_cart(2, (int[]){ 2, 2 }, (int[]){ 1, 1 });
	test_cart(2, (int[]){ 2, 1 }, (int[]){ 1, 1 });
	test_cart(2, (int[]){ 2, 3 }, (int[]){ 0, 1 });
	for (unsigned seed = 1; seed < 5; seed++)
		test_dist_graph((int)(3 * seed), seed);
	test_dist_graph(0, 1);
	test_graph();
	test_bottom();
	free_kinds();
	MPI_Finalize();
	return 0;
}
