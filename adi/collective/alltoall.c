/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Alltoall, alltoallv and alltoallw: MPI 5.0, section 6.8. All forms exchange blocks (exchange.c). Alltoall of small blocks on many
 * ranks takes fewer messages: a block that goes to the rank d after its own travels along the powers of two that are in d
 * (Bruck et al., 1997), and all blocks that take the same step go in one message.
 */
#include "adi/bindings/functions.h"
#include "adi/collective/blocks.h"

struct alltoall {
	struct adi_comm *comm;
	bool in_place;
	struct adi_blocks send, receive;
};

/* Copies the blocks d with (d & bit) != 0. Block d is at d * bytes in `all`; in `part` the copied blocks are contiguous. to_part:
 * the direction. Returns the size of `part`, bytes. */
static MPI_Count copy_runs(struct adi_schedule *schedule, char *all, char *part, int n, int bit, MPI_Count bytes, bool to_part)
{
	MPI_Count at = 0;
	for (int d = bit; d < n; d += 2 * bit) {
		MPI_Count run = (bit < n - d ? bit : n - d) * bytes;
		char *block = all + d * bytes;
		adi_schedule_copy(schedule, to_part ? block : part + at, run, adi_type_byte, to_part ? part + at : block, run,
				  adi_type_byte);
		at += run;
	}
	return at;
}

static void bruck(struct adi_schedule *schedule, const struct alltoall *args, MPI_Count bytes)
{
	int n = args->comm->size, rank = args->comm->rank;
	const struct adi_blocks *from = args->in_place ? &args->receive : &args->send;
	char *all = adi_schedule_memory(schedule, (size_t)(n * bytes));
	char *going = adi_schedule_memory(schedule, (size_t)(n * bytes)),
	     *coming = adi_schedule_memory(schedule, (size_t)(n * bytes));
	if (!all || !going || !coming)
		return;
	adi_blocks_pack(schedule, from, rank, n - rank, all);
	adi_blocks_pack(schedule, from, 0, rank, all + (n - rank) * bytes);
	for (int bit = 1; bit < n; bit *= 2) {
		MPI_Count part = copy_runs(schedule, all, going, n, bit, bytes, true);
		adi_schedule_receive(schedule, coming, part, adi_type_byte, (rank + n - bit) % n);
		adi_schedule_send(schedule, going, part, adi_type_byte, (rank + bit) % n);
		adi_schedule_round(schedule);
		copy_runs(schedule, all, coming, n, bit, bytes, false);
	}
	for (int d = 0; d < n; d++)
		adi_blocks_unpack(schedule, all + d * bytes, &args->receive, (rank + n - d) % n, 1);
}

static int build(const struct alltoall *args, enum adi_algorithm way, MPI_Count bytes, struct adi_schedule **made)
{
	struct adi_schedule *schedule = adi_schedule_new(args->comm);
	if (!schedule)
		return adi_error_no_schedule();
	if (way == ADI_ALGORITHM_BRUCK)
		bruck(schedule, args, bytes);
	else if (args->in_place)
		adi_exchange_in_place(schedule, args->comm, &args->receive);
	else
		adi_exchange(schedule, args->comm, &args->send, &args->receive);
	*made = schedule;
	return MPI_SUCCESS;
}

static int take_alltoall(struct alltoall *args, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			 MPI_Count recvcount, MPI_Datatype recvtype, MPI_Count *bytes)
{
	args->in_place = sendbuf == MPI_IN_PLACE && !args->comm->inter;
	int class = adi_blocks_equal(&args->receive, ADI_RECEIVES, recvbuf, recvcount, recvtype);
	if (!class && !args->in_place)
		class = adi_blocks_equal(&args->send, ADI_SENDS, sendbuf, sendcount, sendtype);
	if (!class && !args->in_place)
		class = adi_check_alias(&args->send, 0, &args->receive, 0);
	*bytes = class ? 0 : adi_block_bytes(&args->receive, 0);
	return class;
}

static int build_alltoall(const struct alltoall *args, MPI_Count bytes, struct adi_schedule **made)
{
	return build(args, adi_choose(ADI_COLLECTIVE_ALLTOALL, args->comm, bytes, ADI_ALGORITHM_SPREAD), bytes, made);
}

static int alltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		    MPI_Datatype recvtype, struct adi_comm *comm, struct adi_schedule **made)
{
	struct alltoall args = { .comm = comm };
	MPI_Count bytes;
	int class = take_alltoall(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, &bytes);
	return class ? class : build_alltoall(&args, bytes, made);
}

static int take_alltoallv(struct alltoall *args, const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
			  MPI_Datatype sendtype, void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls,
			  MPI_Datatype recvtype)
{
	const struct adi_comm *comm = args->comm;
	args->in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	int class = adi_blocks_v(&args->receive, ADI_RECEIVES, recvbuf, recvcounts, rdispls, recvtype, adi_peers(comm));
	if (!class && !args->in_place)
		class = adi_blocks_v(&args->send, ADI_SENDS, sendbuf, sendcounts, sdispls, sendtype, adi_peers(comm));
	if (!class && !args->in_place && !comm->inter)
		class = adi_check_alias(&args->send, comm->rank, &args->receive, comm->rank);
	return class;
}

static int alltoallv(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls, MPI_Datatype sendtype,
		     void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls, MPI_Datatype recvtype,
		     struct adi_comm *comm, struct adi_schedule **made)
{
	struct alltoall args = { .comm = comm };
	int class = take_alltoallv(&args, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype);
	return class ? class : build(&args, ADI_ALGORITHM_SPREAD, 0, made);
}

static int take_alltoallw(struct alltoall *args, const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
			  const MPI_Datatype *sendtypes, void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls,
			  const MPI_Datatype *recvtypes)
{
	const struct adi_comm *comm = args->comm;
	args->in_place = sendbuf == MPI_IN_PLACE && !comm->inter;
	int class = adi_blocks_w(&args->receive, ADI_RECEIVES, recvbuf, recvcounts, rdispls, recvtypes, adi_peers(comm));
	if (!class && !args->in_place)
		class = adi_blocks_w(&args->send, ADI_SENDS, sendbuf, sendcounts, sdispls, sendtypes, adi_peers(comm));
	if (!class && !args->in_place && !comm->inter)
		class = adi_check_alias(&args->send, comm->rank, &args->receive, comm->rank);
	return class;
}

static int alltoallw(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls, const MPI_Datatype *sendtypes,
		     void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls, const MPI_Datatype *recvtypes,
		     struct adi_comm *comm, struct adi_schedule **made)
{
	struct alltoall args = { .comm = comm };
	int class = take_alltoallw(&args, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes);
	return class ? class : build(&args, ADI_ALGORITHM_SPREAD, 0, made);
}

int mpi_alltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		 MPI_Datatype recvtype, struct adi_comm *comm)
{
	struct alltoall args = { .comm = comm };
	struct adi_schedule *schedule = NULL;
	MPI_Count bytes;
	int class = take_alltoall(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, &bytes);
	if (class)
		return class;
	adi_blocks_hold(&args.send, &args.receive, adi_peers(comm));
	if (adi_choose_node(ADI_COLLECTIVE_ALLTOALL, comm, bytes, -1))
		class = adi_node_alltoall(comm, args.in_place ? NULL : &args.send, &args.receive, bytes);
	else
		class = build_alltoall(&args, bytes, &schedule);
	return adi_blocks_end(class, schedule, &args.send, &args.receive, adi_peers(comm));
}

int mpi_ialltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		  MPI_Datatype recvtype, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_alltoall_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		      MPI_Datatype recvtype, struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}

int mpi_alltoallv(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls, MPI_Datatype sendtype,
		  void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls, MPI_Datatype recvtype,
		  struct adi_comm *comm)
{
	struct alltoall args = { .comm = comm };
	struct adi_schedule *schedule = NULL;
	int class = take_alltoallv(&args, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype);
	if (class)
		return class;
	adi_blocks_hold(&args.send, &args.receive, adi_peers(comm));
	if (!args.in_place && adi_choose_node(ADI_COLLECTIVE_ALLTOALL, comm, ADI_UNKNOWN_BYTES, -1))
		class = adi_node_alltoallv(comm, &args.send, &args.receive);
	else
		class = build(&args, ADI_ALGORITHM_SPREAD, 0, &schedule);
	return adi_blocks_end(class, schedule, &args.send, &args.receive, adi_peers(comm));
}

int mpi_ialltoallv(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls, MPI_Datatype sendtype,
		   void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls, MPI_Datatype recvtype,
		   struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_alltoallv_init(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls, MPI_Datatype sendtype,
		       void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls, MPI_Datatype recvtype,
		       struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}

int mpi_alltoallw(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls, const MPI_Datatype *sendtypes,
		  void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls, const MPI_Datatype *recvtypes,
		  struct adi_comm *comm)
{
	struct alltoall args = { .comm = comm };
	struct adi_schedule *schedule = NULL;
	int class = take_alltoallw(&args, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes);
	if (class)
		return class;
	adi_blocks_hold(&args.send, &args.receive, adi_peers(comm));
	if (!args.in_place && adi_choose_node(ADI_COLLECTIVE_ALLTOALL, comm, ADI_UNKNOWN_BYTES, -1))
		class = adi_node_alltoallv(comm, &args.send, &args.receive);
	else
		class = build(&args, ADI_ALGORITHM_SPREAD, 0, &schedule);
	return adi_blocks_end(class, schedule, &args.send, &args.receive, adi_peers(comm));
}

int mpi_ialltoallw(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
		   const MPI_Datatype *sendtypes, void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls,
		   const MPI_Datatype *recvtypes, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_alltoallw_init(const void *sendbuf, struct adi_array sendcounts, struct adi_array sdispls,
		       const MPI_Datatype *sendtypes, void *recvbuf, struct adi_array recvcounts, struct adi_array rdispls,
		       const MPI_Datatype *recvtypes, struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}
