/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Dist_graph_create (MPI 5.0, section 8.5.4): any process may say any edge. Each process tells source and destination of
 * each of its edges. First all exchange how many edges are for whom, then the edges. The neighbours of a process stand in
 * the order of the ranks that said them, then in the order in which they were said.
 */
#include "adi/bindings/functions.h"
#include "adi/collective/schedule.h"
#include "adi/comm/edges.h"
#include "adi/comm/topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Wire format: an edge, sent to the rank at one of its ends. */
struct edge {
	int32_t peer; /* rank of the other end; the receiver checks it */
	int32_t weight;
	int32_t incoming; /* 1: peer is the source; 0: the destination */
};
static_assert(sizeof(struct edge) == 12, "wire format");

/* Edges that go to, or come from, each process. */
struct bundle {
	int32_t *n;        /* [size]: edges of each process */
	size_t *first;     /* [size + 1]: place of its first edge */
	struct edge *edge; /* [first[size]], by process */
};

/* What the program has said. */
struct said {
	int n;
	const int *sources, *degrees, *destinations, *weights;
};

static void bundle_end(struct bundle *bundle)
{
	free(bundle->n);
	free(bundle->first);
	free(bundle->edge);
}

static int bundle_start(struct bundle *bundle, int size)
{
	*bundle = (struct bundle){ calloc((size_t)size, sizeof *bundle->n), calloc((size_t)size + 1, sizeof *bundle->first),
				   NULL };
	return bundle->n && bundle->first ? MPI_SUCCESS : adi_no_memory_for_edges(size);
}

/* Makes room for the edges that n tells. */
static int bundle_room(struct bundle *bundle, int size)
{
	for (int i = 0; i < size; i++) {
		if (bundle->n[i] < 0)
			return adi_error(MPI_ERR_OTHER, "process %d announced %d edges", i, bundle->n[i]);
		bundle->first[i + 1] = bundle->first[i] + (size_t)bundle->n[i];
	}
	bundle->edge = malloc((bundle->first[size] + 1) * sizeof *bundle->edge);
	return bundle->edge ? MPI_SUCCESS : adi_no_memory_for_edges((int64_t)bundle->first[size]);
}

static int check_said(const struct adi_comm *comm, const struct said *said)
{
	int class = adi_check_edges(comm, said->n, said->sources, "sources");
	if (!class && said->n && !said->degrees)
		class = adi_error(MPI_ERR_ARG, "degrees is a null pointer and n is %d", said->n);
	int64_t total = 0;
	for (int i = 0; !class && i < said->n; i++) {
		if (said->degrees[i] < 0)
			class = adi_error(MPI_ERR_ARG, "degrees[%d] is %d; valid: 0 and above", i, said->degrees[i]);
		total += said->degrees[i];
	}
	/* A process is told of both ends. */
	if (!class && total > INT32_MAX / 2)
		class = adi_error(MPI_ERR_ARG, "degrees name %lld edges; valid: at most %d", (long long)total,
				  INT32_MAX / 2);
	if (!class)
		class = adi_check_edges(comm, (int)total, said->destinations, "destinations");
	return class ? class : adi_check_weights((int)total, said->weights, "weights");
}

/* Sorts the edges that the program said by whom they are for. */
static int pack(const struct said *said, int size, struct bundle *out)
{
	for (int i = 0, k = 0; i < said->n; i++) {
		out->n[said->sources[i]] += said->degrees[i];
		for (int end = k + said->degrees[i]; k < end; k++)
			out->n[said->destinations[k]]++;
	}
	int class = bundle_room(out, size);
	size_t *next = class ? NULL : malloc((size_t)size * sizeof *next);
	if (!next)
		return class ? class : adi_no_memory_for_edges(size);
	memcpy(next, out->first, (size_t)size * sizeof *next);
	for (int i = 0, k = 0; i < said->n; i++) {
		int source = said->sources[i];
		for (int end = k + said->degrees[i]; k < end; k++) {
			int destination = said->destinations[k],
			    weight = said->weights == MPI_UNWEIGHTED ? 0 : said->weights[k];
			out->edge[next[source]++] = (struct edge){ destination, weight, 0 };
			out->edge[next[destination]++] = (struct edge){ source, weight, 1 };
		}
	}
	free(next);
	return MPI_SUCCESS;
}

static int no_schedule(void)
{
	return adi_error(MPI_ERR_NO_MEM, "no memory for the exchange of edges");
}

static int exchange_numbers(struct adi_comm *comm, const struct bundle *out, struct bundle *in)
{
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (!schedule)
		return no_schedule();
	for (int i = 0; i < comm->size; i++)
		adi_schedule_receive(schedule, &in->n[i], sizeof in->n[i], adi_type_byte, i);
	for (int i = 0; i < comm->size; i++)
		adi_schedule_send(schedule, &out->n[i], sizeof out->n[i], adi_type_byte, i);
	return adi_schedule_wait(schedule);
}

static int exchange_edges(struct adi_comm *comm, const struct bundle *out, struct bundle *in)
{
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (!schedule)
		return no_schedule();
	size_t bytes = sizeof(struct edge);
	for (int i = 0; i < comm->size; i++)
		if (in->n[i])
			adi_schedule_receive(schedule, in->edge + in->first[i], (MPI_Count)(bytes * (size_t)in->n[i]),
					     adi_type_byte, i);
	for (int i = 0; i < comm->size; i++)
		if (out->n[i])
			adi_schedule_send(schedule, out->edge + out->first[i], (MPI_Count)(bytes * (size_t)out->n[i]),
					  adi_type_byte, i);
	return adi_schedule_wait(schedule);
}

static int *new_ints(size_t n)
{
	return malloc((n + 1) * sizeof(int));
}

static bool make_room(struct adi_topology *graph, size_t n)
{
	graph->sources = new_ints(n);
	graph->destinations = new_ints(n);
	if (graph->weighted) {
		graph->source_weights = new_ints(n);
		graph->destination_weights = new_ints(n);
	}
	return graph->sources && graph->destinations &&
	       (!graph->weighted || (graph->source_weights && graph->destination_weights));
}

/* Makes the topology of the edges that came in. */
static int unpack(const struct bundle *in, int size, bool weighted, struct adi_topology **made)
{
	size_t n = in->first[size];
	struct adi_topology *graph = n <= INT32_MAX ? adi_topology_new(MPI_DIST_GRAPH) : NULL;
	if (!graph)
		return adi_no_memory_for_edges((int64_t)n);
	graph->weighted = weighted;
	int class = make_room(graph, n) ? MPI_SUCCESS : adi_no_memory_for_edges((int64_t)n);
	for (size_t i = 0; !class && i < n; i++) {
		const struct edge *edge = &in->edge[i];
		if (edge->peer < 0 || edge->peer >= size)
			class = adi_error(MPI_ERR_OTHER, "an edge to rank %d was received; the communicator has %d",
					  edge->peer, size);
		int *ranks = edge->incoming ? graph->sources : graph->destinations;
		int *weights = edge->incoming ? graph->source_weights : graph->destination_weights;
		int place = edge->incoming ? graph->n_sources++ : graph->n_destinations++;
		ranks[place] = edge->peer;
		if (weighted)
			weights[place] = edge->weight;
	}
	if (class)
		adi_topology_release(graph);
	else
		*made = graph;
	return class;
}

/* Collects the edges of this process. */
static int collect(struct adi_comm *comm, const struct said *said, struct adi_topology **graph)
{
	struct bundle out, in;
	int class = bundle_start(&out, comm->size);
	int second = bundle_start(&in, comm->size);
	if (!class)
		class = second;
	if (!class)
		class = pack(said, comm->size, &out);
	if (!class)
		class = exchange_numbers(comm, &out, &in);
	if (!class)
		class = bundle_room(&in, comm->size);
	if (!class)
		class = exchange_edges(comm, &out, &in);
	if (!class)
		class = unpack(&in, comm->size, said->weights != MPI_UNWEIGHTED, graph);
	bundle_end(&out);
	bundle_end(&in);
	return class;
}

int mpi_dist_graph_create(struct adi_comm *comm_old, int n, const int sources[], const int degrees[],
			  const int destinations[], const int weights[], struct adi_info *info, int reorder,
			  MPI_Comm *comm_dist_graph)
{
	(void)info;
	(void)reorder;
	*comm_dist_graph = MPI_COMM_NULL;
	struct said said = { n, sources, degrees, destinations, weights };
	struct adi_topology *graph = NULL;
	int class = adi_topology_check(comm_old);
	if (!class)
		class = check_said(comm_old, &said);
	if (!class)
		class = collect(comm_old, &said, &graph);
	return class ? class : adi_topology_comm(comm_old, comm_old->size, graph, comm_dist_graph);
}
