/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributed graph topologies: MPI 5.0, sections 8.5.4, 8.5.5 and 8.5.8. A process has its own edges only. */
#include "adi/bindings/functions.h"
#include "adi/comm/edges.h"
#include "adi/comm/topology.h"

#include <stdlib.h>
#include <string.h>

int adi_no_memory_for_edges(int64_t n)
{
	return adi_error(MPI_ERR_NO_MEM, "no memory for %lld edges", (long long)n);
}

int adi_check_edges(const struct adi_comm *comm, int n, const int *ranks, const char *argument)
{
	if (n < 0)
		return adi_error(MPI_ERR_ARG, "the number of %s (%s) is %d; valid: 0 and above", argument,
				 !strcmp(argument, "sources") ? "indegree" : "outdegree", n);
	if (n && !ranks)
		return adi_error(MPI_ERR_ARG, "%s is a null pointer, and there are %d", argument, n);
	for (int i = 0; i < n; i++)
		if (ranks[i] < 0 || ranks[i] >= comm->size)
			return adi_error(MPI_ERR_RANK, "%s[%d] is %d; valid: ranks from 0 to %d", argument, i, ranks[i],
					 comm->size - 1);
	return MPI_SUCCESS;
}

int adi_check_weights(int n, const int *weights, const char *argument)
{
	if (n && (!weights || weights == MPI_WEIGHTS_EMPTY))
		return adi_error(MPI_ERR_ARG,
				 "%s is %s, and there are %d edges; valid: weights of all edges, or MPI_UNWEIGHTED",
				 argument, weights ? "MPI_WEIGHTS_EMPTY" : "a null pointer", n);
	for (int i = 0; weights != MPI_UNWEIGHTED && i < n; i++)
		if (weights[i] < 0)
			return adi_error(MPI_ERR_ARG, "%s[%d] is %d; valid: 0 and above", argument, i, weights[i]);
	return MPI_SUCCESS;
}

/* Copies of the neighbours, and of their weights unless there are none. */
static bool copy_side(int n, const int *ranks, const int *weights, bool weighted, int **ranks_copy, int **weights_copy)
{
	*ranks_copy = adi_topology_copy(ranks, n);
	if (weighted)
		*weights_copy = adi_topology_copy(weights, n);
	return *ranks_copy && (!weighted || *weights_copy);
}

int mpi_dist_graph_create_adjacent(struct adi_comm *comm_old, int indegree, const int sources[], const int sourceweights[],
				   int outdegree, const int destinations[], const int destweights[], struct adi_info *info,
				   int reorder, MPI_Comm *comm_dist_graph)
{
	(void)info;
	(void)reorder;
	*comm_dist_graph = MPI_COMM_NULL;
	bool weighted = sourceweights != MPI_UNWEIGHTED || destweights != MPI_UNWEIGHTED;
	int class = adi_topology_check(comm_old);
	if (!class)
		class = adi_check_edges(comm_old, indegree, sources, "sources");
	if (!class)
		class = adi_check_edges(comm_old, outdegree, destinations, "destinations");
	if (!class && weighted &&
	    ((indegree && sourceweights == MPI_UNWEIGHTED) || (outdegree && destweights == MPI_UNWEIGHTED)))
		class = adi_error(MPI_ERR_ARG,
				  "only one of sourceweights and destweights is MPI_UNWEIGHTED; valid: both or none");
	if (!class)
		class = adi_check_weights(indegree, sourceweights, "sourceweights");
	if (!class)
		class = adi_check_weights(outdegree, destweights, "destweights");
	if (class)
		return class;
	struct adi_topology *graph = adi_topology_new(MPI_DIST_GRAPH);
	if (!graph)
		return adi_no_memory_for_edges(indegree);
	graph->weighted = weighted;
	graph->n_sources = indegree;
	graph->n_destinations = outdegree;
	if (copy_side(indegree, sources, sourceweights, weighted, &graph->sources, &graph->source_weights) &&
	    copy_side(outdegree, destinations, destweights, weighted, &graph->destinations, &graph->destination_weights))
		return adi_topology_comm(comm_old, comm_old->size, graph, comm_dist_graph);
	adi_topology_release(graph);
	return adi_no_memory_for_edges((int64_t)indegree + outdegree);
}

int mpi_dist_graph_neighbors_count(struct adi_comm *comm, int *indegree, int *outdegree, int *weighted)
{
	const struct adi_topology *graph;
	int class = adi_topology_take(comm, MPI_DIST_GRAPH, &graph);
	if (class)
		return class;
	*indegree = graph->n_sources;
	*outdegree = graph->n_destinations;
	*weighted = graph->weighted;
	return MPI_SUCCESS;
}

/* The first max neighbours and, if the graph has weights and the program wants them, their weights. */
static int copy_out(int n, const int *ranks, const int *weights, int max, const char *argument, int *to, int *weights_to)
{
	if (max < 0)
		return adi_error(MPI_ERR_ARG, "%s is %d; valid: 0 and above", argument, max);
	size_t bytes = (size_t)(n < max ? n : max) * sizeof(int);
	if (bytes && !to)
		return adi_error(MPI_ERR_ARG, "%s is a null pointer, and %s is %d", !strcmp(argument, "maxindegree") ? "sources" :
				 "destinations", argument, max);
	if (bytes)
		memcpy(to, ranks, bytes);
	if (bytes && weights && !weights_to)
		return adi_error(MPI_ERR_ARG, "%s is a null pointer; valid: an array, or MPI_UNWEIGHTED",
				 !strcmp(argument, "maxindegree") ? "sourceweights" : "destweights");
	if (bytes && weights && weights_to != MPI_UNWEIGHTED && weights_to != MPI_WEIGHTS_EMPTY)
		memcpy(weights_to, weights, bytes);
	return MPI_SUCCESS;
}

int mpi_dist_graph_neighbors(struct adi_comm *comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
			     int destinations[], int destweights[])
{
	const struct adi_topology *graph;
	int class = adi_topology_take(comm, MPI_DIST_GRAPH, &graph);
	if (!class)
		class = copy_out(graph->n_sources, graph->sources, graph->source_weights, maxindegree, "maxindegree",
				 sources, sourceweights);
	if (!class)
		class = copy_out(graph->n_destinations, graph->destinations, graph->destination_weights, maxoutdegree,
				 "maxoutdegree", destinations, destweights);
	return class;
}
