/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Scan and MPI_Exscan: MPI 5.0, sections 6.11 and 6.12. Algorithm of Hillis and Steele (1986): before the round with distance
 * d, each rank has the result over itself and the d - 1 ranks before it. It sends it to the rank d after it, and combines it with
 * what the rank d before it sends, in the order of ranks.
 */
#include "adi/bindings/functions.h"
#include "adi/collective/reduction.h"

/* partial: the result over this rank and those before it; may be the receive buffer of a scan. before: exclusive scan: the result
 * over those before it, or NULL. */
static void build_prefix(struct adi_schedule *schedule, const struct adi_reduction *reduction, char *partial, char *before)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	MPI_Count count = reduction->count;
	struct adi_type *type = reduction->type;
	char *arrived = comm->rank > 0 ? adi_schedule_elements(schedule, count, type) : NULL;
	adi_schedule_copy(schedule, reduction->send, count, type, partial, count, type);
	for (int distance = 1; distance < comm->size; distance *= 2) {
		bool receives = comm->rank >= distance;
		if (receives)
			adi_schedule_receive(schedule, arrived, count, type, comm->rank - distance);
		if (comm->rank + distance < comm->size)
			adi_schedule_send(schedule, partial, count, type, comm->rank + distance);
		adi_schedule_round(schedule);
		if (!receives)
			continue;
		if (before && distance == 1)
			adi_schedule_copy(schedule, arrived, count, type, before, count, type);
		else if (before)
			adi_schedule_reduce(schedule, arrived, before, count, type, reduction->op);
		adi_schedule_reduce(schedule, arrived, partial, count, type, reduction->op);
	}
}

static int build(struct adi_schedule **made, bool exclusive, const void *send, void *receive, MPI_Count count,
		 MPI_Datatype datatype, struct adi_op *op, struct adi_comm *comm)
{
	struct adi_reduction reduction;
	if (comm->inter)
		return adi_error(MPI_ERR_COMM, "comm %s is an intercommunicator; valid: intracommunicators", adi_comm_text(comm));
	int class = adi_reduction_take(&reduction, count, datatype, op);
	if (!class && exclusive && comm->rank == 0) { /* Its receive buffer is not significant. */
		reduction.send = send == MPI_IN_PLACE ? receive : send;
		class = adi_check_buffer(reduction.send, count, reduction.type, false, "sendbuf");
		if (!class && send == receive && count > 0 && !reduction.type->contents)
			class = adi_error(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same buffer; valid: MPI_IN_PLACE");
	} else if (!class) {
		class = adi_reduction_buffers(&reduction, send, receive, true);
	}
	if (class)
		return class;
	struct adi_schedule *schedule = *made = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	if (count == 0)
		return MPI_SUCCESS;
	char *partial = exclusive ? adi_schedule_elements(schedule, count, reduction.type) : receive;
	build_prefix(schedule, &reduction, partial, exclusive ? reduction.receive : NULL);
	return MPI_SUCCESS;
}

int mpi_scan(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op, struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	int class = build(&schedule, false, send, receive, count, datatype, op, comm);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_iscan(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op, struct adi_comm *comm,
	      MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = build(&schedule, false, send, receive, count, datatype, op, comm);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_scan_init(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op,
		  struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = build(&schedule, false, send, receive, count, datatype, op, comm);
	(void)info;
	return class ? class : adi_schedule_persistent(schedule, request);
}

int mpi_exscan(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op, struct adi_comm *comm)
{
	struct adi_schedule *schedule;
	int class = build(&schedule, true, send, receive, count, datatype, op, comm);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_iexscan(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op,
		struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = build(&schedule, true, send, receive, count, datatype, op, comm);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_exscan_init(const void *send, void *receive, MPI_Count count, MPI_Datatype datatype, struct adi_op *op,
		    struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = build(&schedule, true, send, receive, count, datatype, op, comm);
	(void)info;
	return class ? class : adi_schedule_persistent(schedule, request);
}
