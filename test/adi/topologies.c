/* SPDX-License-Identifier: BSD-3-Clause */
/* Process topologies: grids, graphs, distributed graphs, and MPI_Dims_create. */
#include "check_mpi.h"

#include <string.h>

static int rank, size;
/* Variables, because gcc warns of a constant that is no address. */
static int *unweighted = MPI_UNWEIGHTED, *no_weights = MPI_WEIGHTS_EMPTY;

static void check_dims(int nnodes, int ndims, const int *given, const int *expected)
{
	int dims[8] = { 0 };
	if (given)
		memcpy(dims, given, (size_t)ndims * sizeof(int));
	CHECK(!MPI_Dims_create(nnodes, ndims, dims));
	for (int i = 0; i < ndims; i++)
		CHECK(dims[i] == expected[i]);
}

static void check_dims_create(void)
{
	check_dims(6, 2, NULL, (int[]){ 3, 2 });
	check_dims(7, 2, NULL, (int[]){ 7, 1 });
	check_dims(6, 3, (int[]){ 0, 3, 0 }, (int[]){ 2, 3, 1 });
	check_dims(16, 3, NULL, (int[]){ 4, 2, 2 });
	check_dims(36, 3, NULL, (int[]){ 4, 3, 3 });
	check_dims(60, 3, NULL, (int[]){ 5, 4, 3 });
	check_dims(1, 3, NULL, (int[]){ 1, 1, 1 });
	check_dims(1024, 4, NULL, (int[]){ 8, 8, 4, 4 });
	check_dims(99999, 2, NULL, (int[]){ 369, 271 });
	check_dims(2147483647, 2, NULL, (int[]){ 2147483647, 1 });
	check_dims(735134400, 5, NULL, (int[]){ 68, 65, 56, 55, 54 }); /* found by trying all products */
	int wrong[2] = { 0, 3 }, negative[2] = { -1, 0 };
	CHECK(MPI_Dims_create(7, 2, wrong) == MPI_ERR_DIMS);
	CHECK(MPI_Dims_create(7, 2, negative) == MPI_ERR_DIMS);
}

/* A message along every shift of a grid arrives where MPI_Cart_shift says. */
static void check_shifts(MPI_Comm cart, int ndims, const int *dims, const int *periods)
{
	int me, coords[4], back;
	MPI_Comm_rank(cart, &me);
	CHECK(!MPI_Cart_coords(cart, me, ndims, coords));
	CHECK(!MPI_Cart_rank(cart, coords, &back));
	CHECK(back == me);
	for (int i = 0; i < ndims; i++) {
		for (int disp = -2; disp <= 2; disp++) {
			int source, dest, got = -1, to[4], expected;
			CHECK(!MPI_Cart_shift(cart, i, disp, &source, &dest));
			memcpy(to, coords, sizeof to);
			to[i] += disp;
			if (periods[i] || (to[i] >= 0 && to[i] < dims[i]))
				CHECK(!MPI_Cart_rank(cart, to, &expected));
			else
				expected = MPI_PROC_NULL;
			CHECK(dest == expected);
			CHECK(!MPI_Sendrecv(&me, 1, MPI_INT, dest, 1, &got, 1, MPI_INT, source, 1, cart, MPI_STATUS_IGNORE));
			CHECK(source == MPI_PROC_NULL ? got == -1 : got == source);
		}
	}
	int source, dest;
	CHECK(MPI_Cart_shift(cart, ndims, 1, &source, &dest) == MPI_ERR_DIMS);
}

static void check_grid(int ndims, const int *dims, const int *periods)
{
	int n = 1, status, got_dims[4], got_periods[4], coords[4], got;
	for (int i = 0; i < ndims; i++)
		n *= dims[i];
	MPI_Comm cart, copy;
	if (n > size) {
		CHECK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &cart) == MPI_ERR_DIMS);
		return;
	}
	CHECK(!MPI_Cart_map(MPI_COMM_WORLD, ndims, dims, periods, &got));
	CHECK(got == (rank < n ? rank : MPI_UNDEFINED));
	CHECK(!MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 1, &cart));
	CHECK((cart == MPI_COMM_NULL) == (rank >= n));
	if (cart == MPI_COMM_NULL)
		return;
	CHECK(!MPI_Comm_dup(cart, &copy));
	MPI_Comm_free(&cart);
	CHECK(!MPI_Topo_test(copy, &status));
	CHECK(status == MPI_CART);
	CHECK(!MPI_Cartdim_get(copy, &got));
	CHECK(got == ndims);
	CHECK(!MPI_Cart_get(copy, 4, got_dims, got_periods, coords));
	for (int i = 0; i < ndims; i++)
		CHECK(got_dims[i] == dims[i] && got_periods[i] == periods[i]);
	check_shifts(copy, ndims, dims, periods);
	MPI_Comm_free(&copy);
}

static void check_sub(void)
{
	int dims[3] = { size > 3 ? 2 : 1, 1, size > 1 ? 2 : 1 }, periods[3] = { 0, 1, 1 }, remain[3] = { 0, 1, 1 },
	    none[3] = { 0 };
	MPI_Comm cart, row, point;
	CHECK(!MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &cart));
	if (cart == MPI_COMM_NULL)
		return;
	int coords[3], got_dims[2], got_periods[2], row_coords[2], n, ndims;
	CHECK(!MPI_Cart_coords(cart, rank, 3, coords));
	CHECK(!MPI_Cart_sub(cart, remain, &row));
	CHECK(!MPI_Cart_get(row, 2, got_dims, got_periods, row_coords));
	CHECK(got_dims[0] == 1 && got_dims[1] == dims[2] && got_periods[0] == 1);
	CHECK(row_coords[0] == coords[1] && row_coords[1] == coords[2]);
	MPI_Comm_size(row, &n);
	CHECK(n == dims[2]);
	CHECK(!MPI_Cart_sub(cart, none, &point));
	MPI_Comm_size(point, &n);
	CHECK(!MPI_Cartdim_get(point, &ndims));
	CHECK(n == 1 && ndims == 0);
	MPI_Comm_free(&row);
	MPI_Comm_free(&point);
	MPI_Comm_free(&cart);
}

/* A ring in which node 0 also has an edge to itself. */
static void check_graph(void)
{
	int *index = malloc((size_t)size * sizeof(int)), *edges = malloc((size_t)(2 * size + 1) * sizeof(int)), n = 0;
	int nnodes, nedges, neighbors[3], count, status;
	for (int i = 0; i < size; i++) {
		edges[n++] = (i + size - 1) % size;
		edges[n++] = (i + 1) % size;
		if (!i)
			edges[n++] = 0;
		index[i] = n;
	}
	MPI_Comm graph;
	CHECK(!MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
	CHECK(!MPI_Topo_test(graph, &status));
	CHECK(status == MPI_GRAPH);
	CHECK(!MPI_Graphdims_get(graph, &nnodes, &nedges));
	CHECK(nnodes == size && nedges == n);
	int *got_index = malloc((size_t)size * sizeof(int)), *got_edges = malloc((size_t)n * sizeof(int));
	CHECK(!MPI_Graph_get(graph, size, n, got_index, got_edges));
	CHECK(!memcmp(got_index, index, (size_t)size * sizeof(int)) && !memcmp(got_edges, edges, (size_t)n * sizeof(int)));
	CHECK(!MPI_Graph_neighbors_count(graph, rank, &count));
	CHECK(count == (rank ? 2 : 3));
	CHECK(!MPI_Graph_neighbors(graph, rank, 3, neighbors));
	CHECK(neighbors[0] == (rank + size - 1) % size && neighbors[1] == (rank + 1) % size);
	CHECK(MPI_Cartdim_get(graph, &count) == MPI_ERR_TOPOLOGY);
	edges[0] = size;
	MPI_Comm wrong;
	CHECK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &wrong) == MPI_ERR_ARG);
	MPI_Comm_free(&graph);
	free(index), free(edges), free(got_index), free(got_edges);
}

/* Edges from each process to the two above it, said by themselves. */
static void check_adjacent(void)
{
	int sources[2] = { (rank + size - 1) % size, (rank + size - 2 + size) % size };
	int destinations[2] = { (rank + 1) % size, (rank + 2) % size }, weights[2] = { 5, 7 };
	int in, out, weighted, got_sources[2], got_weights[2], got_destinations[2], other_weights[2];
	MPI_Comm graph;
	CHECK(!MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 2, destinations, weights, MPI_INFO_NULL,
					      0, &graph));
	CHECK(!MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
	CHECK(in == 2 && out == 2 && weighted);
	CHECK(!MPI_Dist_graph_neighbors(graph, 2, got_sources, got_weights, 2, got_destinations, other_weights));
	CHECK(!memcmp(got_sources, sources, sizeof sources) && !memcmp(got_destinations, destinations, sizeof destinations));
	CHECK(got_weights[0] == 5 && got_weights[1] == 7 && other_weights[1] == 7);
	MPI_Comm_free(&graph);
	CHECK(!MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, unweighted, 0, NULL, unweighted, MPI_INFO_NULL, 0,
					      &graph));
	CHECK(!MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
	CHECK(in == 2 && out == 0 && !weighted);
	MPI_Comm_free(&graph);
	sources[0] = size;
	CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 0, NULL, no_weights, MPI_INFO_NULL, 0,
					     &graph) == MPI_ERR_RANK);
}

/* Each process says edges from its right neighbour to all processes; the weight names both ends. */
static void check_distributed(void)
{
	int source = (rank + 1) % size, degree = size, in, out, weighted;
	int *destinations = malloc((size_t)size * sizeof(int)), *weights = malloc((size_t)size * sizeof(int));
	int *sources = malloc((size_t)size * sizeof(int)), *got_weights = malloc((size_t)size * sizeof(int));
	for (int i = 0; i < size; i++) {
		destinations[i] = size - 1 - i;
		weights[i] = 100 * source + destinations[i];
	}
	MPI_Comm graph, copy;
	CHECK(!MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, destinations, weights, MPI_INFO_NULL, 0, &graph));
	CHECK(!MPI_Comm_dup(graph, &copy));
	MPI_Comm_free(&graph);
	CHECK(!MPI_Dist_graph_neighbors_count(copy, &in, &out, &weighted));
	CHECK(in == size && out == size && weighted);
	CHECK(!MPI_Dist_graph_neighbors(copy, size, sources, got_weights, size, destinations, weights));
	for (int i = 0, seen = 0; i < size; i++) {
		CHECK(got_weights[i] == 100 * sources[i] + rank);
		CHECK(weights[i] == 100 * rank + destinations[i]);
		seen += sources[i];
		CHECK(i < size - 1 || seen == size * (size - 1) / 2);
	}
	MPI_Comm_free(&copy);
	CHECK(!MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, unweighted, MPI_INFO_NULL, 0, &graph));
	CHECK(!MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
	CHECK(in == 0 && out == 0 && !weighted);
	MPI_Comm_free(&graph);
	free(destinations), free(weights), free(sources), free(got_weights);
}

int main(void)
{
	CHECK(!MPI_Init(NULL, NULL));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int status;
	CHECK(!MPI_Topo_test(MPI_COMM_WORLD, &status));
	CHECK(status == MPI_UNDEFINED);
	CHECK(MPI_Cartdim_get(MPI_COMM_WORLD, &status) == MPI_ERR_TOPOLOGY);
	check_dims_create();
	check_grid(1, (int[]){ size }, (int[]){ 1 });
	check_grid(2, (int[]){ 2, 2 }, (int[]){ 0, 1 });
	check_grid(3, (int[]){ 1, 3, 2 }, (int[]){ 1, 1, 0 });
	check_grid(2, (int[]){ 2, 1 }, (int[]){ 1, 0 });
	check_grid(0, NULL, NULL);
	check_sub();
	check_graph();
	check_adjacent();
	check_distributed();
	return MPI_Finalize();
}
