/* SPDX-License-Identifier: BSD-3-Clause */
/* Graph topologies: MPI 5.0, sections 8.5.3, 8.5.5 and 8.5.8. Every process has the whole graph. */
#include "adi/bindings/functions.h"
#include "adi/comm/topology.h"

#include <stdlib.h>
#include <string.h>

int adi_graph_check(int nnodes, const int *index, const int *edges, int most)
{
	if (nnodes < 0 || nnodes > most)
		return adi_error(MPI_ERR_ARG, "nnodes is %d; valid: 0 to %d, the size of the communicator", nnodes, most);
	if (nnodes && !index)
		return adi_error(MPI_ERR_ARG, "index is a null pointer and nnodes is %d", nnodes);
	for (int i = 0, before = 0; i < nnodes; before = index[i++])
		if (index[i] < before)
			return adi_error(MPI_ERR_ARG, "index[%d] is %d; valid: at least %d, the one before", i, index[i],
					 before);
	int nedges = nnodes ? index[nnodes - 1] : 0;
	if (nedges && !edges)
		return adi_error(MPI_ERR_ARG, "edges is a null pointer and there are %d edges", nedges);
	for (int i = 0; i < nedges; i++)
		if (edges[i] < 0 || edges[i] >= nnodes)
			return adi_error(MPI_ERR_ARG, "edges[%d] is %d; valid: nodes below %d", i, edges[i], nnodes);
	return MPI_SUCCESS;
}

/* The neighbours of a node; returns their number. */
static int neighbors_of(const struct adi_topology *graph, int node, const int **neighbors)
{
	int first = node ? graph->index[node - 1] : 0;
	*neighbors = graph->edges + first;
	return graph->index[node] - first;
}

static struct adi_topology *new_graph(int nnodes, const int *index, const int *edges, int rank)
{
	struct adi_topology *graph = adi_topology_new(MPI_GRAPH);
	if (!graph)
		return NULL;
	graph->nnodes = nnodes;
	graph->nedges = index[nnodes - 1];
	graph->index = adi_topology_copy(index, nnodes);
	graph->edges = adi_topology_copy(edges, graph->nedges);
	if (graph->index && graph->edges) {
		const int *neighbors;
		graph->n_sources = neighbors_of(graph, rank, &neighbors);
		graph->sources = adi_topology_copy(neighbors, graph->n_sources);
	}
	if (graph->sources)
		return graph;
	adi_topology_release(graph);
	return NULL;
}

int mpi_graph_create(struct adi_comm *comm_old, int nnodes, const int indx[], const int edges[], int reorder,
		     MPI_Comm *comm_graph)
{
	(void)reorder;
	*comm_graph = MPI_COMM_NULL;
	int class = adi_topology_check(comm_old);
	if (!class)
		class = adi_graph_check(nnodes, indx, edges, comm_old->size);
	if (class)
		return class;
	struct adi_topology *graph = NULL;
	if (comm_old->rank < nnodes && !(graph = new_graph(nnodes, indx, edges, comm_old->rank)))
		return adi_error(MPI_ERR_NO_MEM, "no memory for a graph of %d nodes", nnodes);
	return adi_topology_comm(comm_old, nnodes, graph, comm_graph);
}

int mpi_graph_map(struct adi_comm *comm, int nnodes, const int indx[], const int edges[], int *newrank)
{
	int class = adi_topology_check(comm);
	if (!class)
		class = adi_graph_check(nnodes, indx, edges, comm->size);
	if (!class)
		*newrank = comm->rank < nnodes ? comm->rank : MPI_UNDEFINED;
	return class;
}

int mpi_graphdims_get(struct adi_comm *comm, int *nnodes, int *nedges)
{
	const struct adi_topology *graph;
	int class = adi_topology_take(comm, MPI_GRAPH, &graph);
	if (class)
		return class;
	*nnodes = graph->nnodes;
	*nedges = graph->nedges;
	return MPI_SUCCESS;
}

static int copy_out(const int *from, int n, int max, const char *max_name, const char *argument, int *to)
{
	int class = adi_check_room(to, argument, n, max, max_name);
	if (!class && n)
		memcpy(to, from, (size_t)n * sizeof *to);
	return class;
}

int mpi_graph_get(struct adi_comm *comm, int maxindex, int maxedges, int indx[], int edges[])
{
	const struct adi_topology *graph;
	int class = adi_topology_take(comm, MPI_GRAPH, &graph);
	if (!class)
		class = copy_out(graph->index, graph->nnodes, maxindex, "maxindex", "index", indx);
	return class ? class : copy_out(graph->edges, graph->nedges, maxedges, "maxedges", "edges", edges);
}

int mpi_graph_neighbors_count(struct adi_comm *comm, int rank, int *nneighbors)
{
	const struct adi_topology *graph;
	const int *neighbors;
	int class = adi_topology_take(comm, MPI_GRAPH, &graph);
	if (!class)
		class = adi_check_rank(comm, rank, "rank", false, false);
	if (!class)
		*nneighbors = neighbors_of(graph, rank, &neighbors);
	return class;
}

int mpi_graph_neighbors(struct adi_comm *comm, int rank, int maxneighbors, int neighbors[])
{
	const struct adi_topology *graph;
	const int *found;
	int class = adi_topology_take(comm, MPI_GRAPH, &graph);
	if (!class)
		class = adi_check_rank(comm, rank, "rank", false, false);
	if (class)
		return class;
	int n = neighbors_of(graph, rank, &found);
	return copy_out(found, n, maxneighbors, "maxneighbors", "neighbors", neighbors);
}
