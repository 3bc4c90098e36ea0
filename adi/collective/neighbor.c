/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives: MPI 5.0, section 8.6. Each rank sends a block to each of its destinations and receives one from each
 * of its sources, all at once.
 *
 * A rank may be a neighbour several times. Messages between the same two ranks pair in the order in which they were posted. Of a
 * graph this is the order of the lists of neighbours. In a Cartesian topology what was sent in the negative direction of a
 * dimension arrives as the block of the positive direction, so receives are posted with the two directions in turn.
 */
#include "adi/bindings/functions.h"
#include "adi/collective/blocks.h"
#include "adi/comm/topology.h"

struct neighbors {
	int sources, destinations;
	const int *source, *destination;
	bool cartesian;
};

static int take_neighbors(struct adi_comm *comm, struct neighbors *neighbors)
{
	int class = adi_topology_neighbors(comm, &neighbors->sources, &neighbors->source, &neighbors->destinations,
					   &neighbors->destination);
	neighbors->cartesian = !class && comm->topology->kind == MPI_CART;
	return class;
}

static int build(struct adi_comm *comm, const struct neighbors *neighbors, const struct adi_blocks *send,
		 const struct adi_blocks *receive, struct adi_schedule **made)
{
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	for (int i = 0; i < neighbors->sources; i++) {
		int from = neighbors->cartesian ? i ^ 1 : i;
		adi_block_receive(schedule, receive, from, neighbors->source[from]);
	}
	for (int i = 0; i < neighbors->destinations; i++)
		adi_block_send(schedule, send, i, neighbors->destination[i]);
	*made = schedule;
	return MPI_SUCCESS;
}

static int neighbor_allgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			      MPI_Datatype recvtype, struct adi_comm *comm, struct adi_schedule **made)
{
	struct neighbors neighbors;
	struct adi_blocks send, receive;
	int class = take_neighbors(comm, &neighbors);
	if (!class)
		class = adi_blocks_same(&send, ADI_SENDS, sendbuf, neighbors.destinations ? sendcount : 0, sendtype);
	if (!class)
		class = adi_blocks_equal(&receive, ADI_RECEIVES, recvbuf, neighbors.sources ? recvcount : 0, recvtype);
	return class ? class : build(comm, &neighbors, &send, &receive, made);
}

static int neighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			       struct adi_array recvcounts, struct adi_array displs, MPI_Datatype recvtype, struct adi_comm *comm,
			       struct adi_schedule **made)
{
	struct neighbors neighbors;
	struct adi_blocks send, receive;
	int class = take_neighbors(comm, &neighbors);
	if (!class)
		class = adi_blocks_same(&send, ADI_SENDS, sendbuf, neighbors.destinations ? sendcount : 0, sendtype);
	if (!class)
		class = adi_blocks_v(&receive, ADI_RECEIVES, recvbuf, recvcounts, displs, recvtype, neighbors.sources);
	return class ? class : build(comm, &neighbors, &send, &receive, made);
}

static int neighbor_alltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			     MPI_Datatype recvtype, struct adi_comm *comm, struct adi_schedule **made)
{
	struct neighbors neighbors;
	struct adi_blocks send, receive;
	int class = take_neighbors(comm, &neighbors);
	if (!class)
		class = adi_blocks_equal(&send, ADI_SENDS, sendbuf, neighbors.destinations ? sendcount : 0, sendtype);
	if (!class)
		class = adi_blocks_equal(&receive, ADI_RECEIVES, recvbuf, neighbors.sources ? recvcount : 0, recvtype);
	return class ? class : build(comm, &neighbors, &send, &receive, made);
}

static int neighbor_alltoallv(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls, MPI_Datatype sendtype,
			      void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls, MPI_Datatype recvtype,
			      struct adi_comm *comm, struct adi_schedule **made)
{
	struct neighbors neighbors;
	struct adi_blocks send, receive;
	int class = take_neighbors(comm, &neighbors);
	if (!class)
		class = adi_blocks_v(&send, ADI_SENDS, sendbuf, sendcounts, sdispls, sendtype, neighbors.destinations);
	if (!class)
		class = adi_blocks_v(&receive, ADI_RECEIVES, recvbuf, recvcounts, rdispls, recvtype, neighbors.sources);
	return class ? class : build(comm, &neighbors, &send, &receive, made);
}

static int neighbor_alltoallw(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
			      const MPI_Datatype *sendtypes, void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls,
			      const MPI_Datatype *recvtypes, struct adi_comm *comm, struct adi_schedule **made)
{
	struct neighbors neighbors;
	struct adi_blocks send, receive;
	int class = take_neighbors(comm, &neighbors);
	if (!class)
		class = adi_blocks_w(&send, ADI_SENDS, sendbuf, sendcounts, sdispls, sendtypes, neighbors.destinations);
	if (!class)
		class = adi_blocks_w(&receive, ADI_RECEIVES, recvbuf, recvcounts, rdispls, recvtypes, neighbors.sources);
	return class ? class : build(comm, &neighbors, &send, &receive, made);
}

int mpi_neighbor_allgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			   MPI_Count recvcount, MPI_Datatype recvtype, struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	int class = neighbor_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_ineighbor_allgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			    MPI_Count recvcount, MPI_Datatype recvtype, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = neighbor_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_neighbor_allgather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
				MPI_Count recvcount, MPI_Datatype recvtype, struct adi_comm *comm, struct adi_info *info,
				MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = neighbor_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}

int mpi_neighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			    struct adi_array recvcounts, struct adi_array displs, MPI_Datatype recvtype,
			    struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	int class = neighbor_allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, &schedule);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_ineighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			     struct adi_array recvcounts, struct adi_array displs, MPI_Datatype recvtype,
			     struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = neighbor_allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_neighbor_allgatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
				 struct adi_array recvcounts, struct adi_array displs, MPI_Datatype recvtype,
				 struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = neighbor_allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}

int mpi_neighbor_alltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			  MPI_Count recvcount, MPI_Datatype recvtype, struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	int class = neighbor_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_ineighbor_alltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			   MPI_Count recvcount, MPI_Datatype recvtype, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = neighbor_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_neighbor_alltoall_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			       MPI_Count recvcount, MPI_Datatype recvtype, struct adi_comm *comm, struct adi_info *info,
			       MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = neighbor_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}

int mpi_neighbor_alltoallv(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
			   MPI_Datatype sendtype, void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls,
			   MPI_Datatype recvtype, struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	int class = neighbor_alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
				       &schedule);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_ineighbor_alltoallv(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
			    MPI_Datatype sendtype, void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls,
			    MPI_Datatype recvtype, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = neighbor_alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
				       &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_neighbor_alltoallv_init(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
				MPI_Datatype sendtype, void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls,
				MPI_Datatype recvtype, struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = neighbor_alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
				       &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}

int mpi_neighbor_alltoallw(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
			   const MPI_Datatype *sendtypes, void *recvbuf, struct adi_array recvcounts,
			   struct adi_array rdispls, const MPI_Datatype *recvtypes, struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	int class = neighbor_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
				       &schedule);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_ineighbor_alltoallw(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
			    const MPI_Datatype *sendtypes, void *recvbuf, struct adi_array recvcounts,
			    struct adi_array rdispls, const MPI_Datatype *recvtypes, struct adi_comm *comm,
			    MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = neighbor_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
				       &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_neighbor_alltoallw_init(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
				const MPI_Datatype *sendtypes, void *recvbuf, struct adi_array recvcounts,
				struct adi_array rdispls, const MPI_Datatype *recvtypes, struct adi_comm *comm,
				struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = neighbor_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
				       &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}
