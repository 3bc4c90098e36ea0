/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Barrier: dissemination barrier (Hensgen, Finkel and Manber, 1988). In round k every rank sends to the rank 2^k
 * after it and waits for the message of the rank 2^k before it. After ceil(log2 n) rounds every rank has received,
 * directly or through others, a message from every rank. */
#include "adi/adi.h"

static int barrier_round(struct adi_comm *comm, int distance, int tag)
{
	int to = comm->first + (comm->rank + distance) % comm->size;
	int from = comm->first + (comm->rank + comm->size - distance) % comm->size;
	struct adi_request send = { .magic = ADI_REQUEST_MAGIC }, receive = { .magic = ADI_REQUEST_MAGIC };
	adi_receive(&receive, comm, comm->context + 1, from, tag, NULL, 0);
	adi_send(&send, comm, comm->context + 1, to, tag, NULL, 0);
	int class = adi_request_wait(&send);
	if (class && adi_receive_cancel(&receive))
		return class;
	int other = adi_request_wait(&receive);
	return class ? class : other;
}

int adi_barrier(struct adi_comm *comm)
{
	int class = MPI_SUCCESS;
	for (int distance = 1, round = 0; !class && distance < comm->size; distance *= 2, round++)
		class = barrier_round(comm, distance, round);
	return class;
}

int PMPI_Barrier(MPI_Comm comm)
{
	int class = adi_check_running("MPI_Barrier");
	if (class)
		return class;
	struct adi_comm *found = adi_comm_find(comm);
	if (!found)
		return adi_raise(NULL, "MPI_Barrier", MPI_ERR_COMM, "%p is not a communicator", (void *)comm);
	class = adi_barrier(found);
	return class ? adi_raise(found, "MPI_Barrier", class, "%s", adi_class_text(class)) : MPI_SUCCESS;
}
ADI_PROFILED(Barrier);
