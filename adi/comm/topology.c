/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies: their life, and what is the same for all kinds. */
#include "adi/comm/topology.h"
#include "adi/bindings/functions.h"
#include "adi/comm/agree.h"

#include <stdlib.h>
#include <string.h>

struct adi_topology *adi_topology_new(int kind)
{
	struct adi_topology *topology = calloc(1, sizeof *topology);
	if (!topology)
		return NULL;
	topology->references = 1;
	topology->kind = kind;
	return topology;
}

struct adi_topology *adi_topology_retain(struct adi_topology *topology)
{
	if (topology)
		topology->references++;
	return topology;
}

void adi_topology_release(struct adi_topology *topology)
{
	if (!topology || --topology->references)
		return;
	free(topology->dims);
	free(topology->periods);
	free(topology->coords);
	free(topology->index);
	free(topology->edges);
	free(topology->sources);
	free(topology->destinations);
	free(topology->source_weights);
	free(topology->destination_weights);
	free(topology);
}

int *adi_topology_copy(const int *values, int n)
{
	int *copy = malloc((size_t)(n ? n : 1) * sizeof *copy);
	if (copy && n)
		memcpy(copy, values, (size_t)n * sizeof *copy);
	return copy;
}

int adi_check_room(const int *place, const char *argument, int n, int max, const char *max_name)
{
	if (max < n)
		return adi_error(MPI_ERR_ARG, "%s is %d; valid: at least %d, the number of %s", max_name, max, n, argument);
	return n && !place ? adi_error(MPI_ERR_ARG, "%s is a null pointer, and there are %d", argument, n) : MPI_SUCCESS;
}

int adi_topology_take(const struct adi_comm *comm, int kind, const struct adi_topology **topology)
{
	if (!comm->topology || comm->topology->kind != kind)
		return adi_error(MPI_ERR_TOPOLOGY, "comm has %s; valid: %s topology",
				 comm->topology ? "a topology of another kind" : "no topology",
				 kind == MPI_CART    ? "a Cartesian"
				 : kind == MPI_GRAPH ? "a graph"
						     : "a distributed graph");
	*topology = comm->topology;
	return MPI_SUCCESS;
}

int adi_topology_check(const struct adi_comm *comm)
{
	return comm->inter ? adi_error(MPI_ERR_COMM, "the communicator is an intercommunicator; valid: an intracommunicator")
			   : MPI_SUCCESS;
}

/* The group of the first n > 0 processes of a communicator. A new reference; NULL: no memory. */
static struct adi_group *first_processes(struct adi_comm *comm, int n)
{
	if (n == comm->size) {
		adi_object_retain(&comm->local->object);
		return comm->local;
	}
	int *world = malloc((size_t)n * sizeof *world);
	for (int i = 0; world && i < n; i++)
		world[i] = adi_group_world(comm->local, i);
	return world ? adi_group_derived(comm->local, n, world) : NULL;
}

int adi_topology_comm(struct adi_comm *comm_old, int n, struct adi_topology *topology, MPI_Comm *newcomm)
{
	*newcomm = MPI_COMM_NULL;
	if (comm_old->rank >= n) {
		adi_topology_release(topology);
		return MPI_SUCCESS;
	}
	struct adi_group *group = first_processes(comm_old, n);
	struct adi_comm *created;
	int class = group ? adi_agree_comm(adi_place_ordered(comm_old), group, comm_old, &created)
			  : adi_error(MPI_ERR_NO_MEM, "no memory for a group of %d processes", n);
	adi_group_release(group);
	if (class) {
		adi_topology_release(topology);
		return class;
	}
	created->topology = topology;
	*newcomm = adi_comm_handle(created);
	return MPI_SUCCESS;
}

int adi_topology_neighbors(struct adi_comm *comm, int *n_sources, const int **sources, int *n_destinations,
			   const int **destinations)
{
	const struct adi_topology *topology = comm->topology;
	if (!topology)
		return adi_error(MPI_ERR_TOPOLOGY, "comm has no topology; valid: a communicator with a topology");
	bool same = !topology->destinations;
	*n_sources = topology->n_sources;
	*sources = topology->sources;
	*n_destinations = same ? topology->n_sources : topology->n_destinations;
	*destinations = same ? topology->sources : topology->destinations;
	return MPI_SUCCESS;
}

int mpi_topo_test(struct adi_comm *comm, int *status)
{
	*status = comm->topology ? comm->topology->kind : MPI_UNDEFINED;
	return MPI_SUCCESS;
}
