/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies of communicators: MPI 5.0, chapter 8. */
#ifndef ADI_COMM_TOPOLOGY_H
#define ADI_COMM_TOPOLOGY_H

#include "adi/comm/comm.h"

/* Duplicates of a communicator share its topology, which never changes. All arrays are owned. */
struct adi_topology {
	int references;
	int kind; /* MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH */

	/* MPI_CART */
	int ndims;
	int *dims, *periods; /* [ndims]; periods are 0 or 1 */
	int *coords;         /* [ndims], of this process */

	/* MPI_GRAPH */
	int nnodes, nedges;
	int *index; /* [nnodes] */
	int *edges; /* [nedges] */

	/* The neighbours of this process. MPI_CART and MPI_GRAPH: destinations is NULL, and the destinations are the
	 * sources. */
	int n_sources, n_destinations;
	int *sources, *destinations;
	bool weighted;
	int *source_weights, *destination_weights; /* MPI_DIST_GRAPH if weighted; else NULL */
};

/*
 * The neighbours of this process in the order of neighbourhood collectives (MPI 5.0, section 8.6): Cartesian: for each
 * dimension the one below and the one above, MPI_PROC_NULL where there is none; the sources are the destinations. In a
 * periodic dimension of one or two processes both neighbours of a dimension are the same process: what it sends downwards
 * arrives as what comes from above, so messages to and from that process are to be matched crosswise. The arrays live as
 * long as comm. Returns MPI_ERR_TOPOLOGY if comm has no topology.
 */
int adi_topology_neighbors(struct adi_comm *comm, int *n_sources, const int **sources, int *n_destinations,
			   const int **destinations);

/* A topology of one reference, all zero but kind. NULL: no memory. */
struct adi_topology *adi_topology_new(int kind);
/* topology may be NULL. retain returns it. */
struct adi_topology *adi_topology_retain(struct adi_topology *topology);
void adi_topology_release(struct adi_topology *topology);
/* A copy of n values, never NULL but without memory. */
int *adi_topology_copy(const int *values, int n);

/* Error class if there are n > 0 results and no place for them, or for fewer only. */
int adi_check_room(const int *place, const char *argument, int n, int max, const char *max_name);

/* The topology of comm if it is of this kind; else MPI_ERR_TOPOLOGY. */
int adi_topology_take(const struct adi_comm *comm, int kind, const struct adi_topology **topology);

/*
 * Makes a communicator of the first n processes of the old one, with the topology, which it takes over, and stores its
 * handle. Others get MPI_COMM_NULL, and the topology is released. Collective over comm_old.
 */
int adi_topology_comm(struct adi_comm *comm_old, int n, struct adi_topology *topology, MPI_Comm *newcomm);
/* Error class if comm is an intercommunicator. */
int adi_topology_check(const struct adi_comm *comm);

/* cart.c: checks dims of a grid, at most `most` processes; *n: their number. */
int adi_grid_check(int ndims, const int *dims, const int *periods, int most, int *n);
/* graph.c: the same for a graph. */
int adi_graph_check(int nnodes, const int *index, const int *edges, int most);

#endif
