/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allgather and allgatherv: MPI 5.0, section 6.7. Every rank knows the size of each block, so the same algorithms serve both forms.
 *
 * spread    each rank sends its block to all others at once; also between the groups of an intercommunicator
 * doubling  recursive doubling: in each round a rank exchanges all blocks that it has with the rank at twice the distance; equal
 *           blocks and a power of two of ranks only
 * Bruck     as doubling, for any number of ranks: a rank keeps the blocks in order of the distance to their rank (Bruck et al.,
 *           1997)
 * ring      each round passes one block on to the next rank
 * two-level the blocks of each machine are gathered at its leader; the leaders exchange them and broadcast all on their machines
 */
#include "adi/bindings/functions.h"
#include "adi/collective/blocks.h"
#include "adi/collective/two_level.h"

/* send: one block. receive: one block of each rank. in_place: the own block stands in receive already, and send is that block. */
struct allgather {
	struct adi_comm *comm;
	bool in_place;
	struct adi_blocks send, receive;
};

static void copy_own(struct adi_schedule *schedule, const struct allgather *args)
{
	if (!args->in_place)
		adi_block_copy(schedule, &args->send, 0, &args->receive, args->comm->rank);
}

static void doubling(struct adi_schedule *schedule, const struct allgather *args)
{
	const struct adi_blocks *to = &args->receive;
	int n = args->comm->size, rank = args->comm->rank;
	copy_own(schedule, args);
	for (int blocks = 1; blocks < n; blocks *= 2) {
		int peer = rank ^ blocks, mine = rank & -blocks, theirs = peer & -blocks;
		adi_schedule_receive(schedule, adi_block_at(to, theirs), blocks * to->count, to->type, peer);
		adi_schedule_send(schedule, adi_block_at(to, mine), blocks * to->count, to->type, peer);
		adi_schedule_round(schedule);
	}
}

/* The blocks of n ranks, rank first and those behind it, without the first skip of them. */
static MPI_Count bytes_from(const struct allgather *args, int skip, int n)
{
	MPI_Count bytes = 0;
	for (int i = skip; i < n; i++)
		bytes += adi_block_bytes(&args->receive, (args->comm->rank + i) % args->comm->size);
	return bytes;
}

static void bruck(struct adi_schedule *schedule, const struct allgather *args)
{
	int n = args->comm->size, rank = args->comm->rank;
	char *packed = adi_schedule_memory(schedule, (size_t)bytes_from(args, 0, n));
	if (!packed)
		return;
	copy_own(schedule, args);
	adi_blocks_pack(schedule, &args->send, 0, 1, packed);
	MPI_Count have = bytes_from(args, 0, 1);
	for (int blocks = 1; blocks < n; blocks *= 2) {
		int more = blocks < n - blocks ? blocks : n - blocks;
		MPI_Count coming = bytes_from(args, blocks, blocks + more), going = bytes_from(args, 0, more);
		if (coming)
			adi_schedule_receive(schedule, packed + have, coming, adi_type_byte, (rank + blocks) % n);
		if (going)
			adi_schedule_send(schedule, packed, going, adi_type_byte, (rank + n - blocks) % n);
		adi_schedule_round(schedule);
		have += coming;
	}
	MPI_Count own = bytes_from(args, 0, 1), to_end = bytes_from(args, 0, n - rank);
	adi_blocks_unpack(schedule, packed + own, &args->receive, rank + 1, n - rank - 1);
	adi_blocks_unpack(schedule, packed + to_end, &args->receive, 0, rank);
}

static void ring(struct adi_schedule *schedule, const struct allgather *args)
{
	int n = args->comm->size, rank = args->comm->rank, next = (rank + 1) % n, previous = (rank + n - 1) % n;
	for (int i = 0; i < n - 1; i++) {
		adi_block_receive(schedule, &args->receive, (rank + n - i - 1) % n, previous);
		if (i)
			adi_block_send(schedule, &args->receive, (rank + n - i) % n, next);
		else
			adi_block_send(schedule, &args->send, 0, next);
		if (!i)
			copy_own(schedule, args);
		adi_schedule_round(schedule);
	}
}

static void spread(struct adi_schedule *schedule, const struct allgather *args)
{
	if (!args->in_place) {
		adi_exchange(schedule, args->comm, &args->send, &args->receive);
		return;
	}
	int n = args->comm->size, rank = args->comm->rank;
	for (int i = 1; i < n; i++)
		adi_block_receive(schedule, &args->receive, (rank + n - i) % n, (rank + n - i) % n);
	for (int i = 1; i < n; i++)
		adi_block_send(schedule, &args->send, 0, (rank + i) % n);
}

/* Up to this number, each leader sends to all others at once. */
#define SPREAD_MACHINES 8

/* The blocks of machine i are bytes counts[i] at displs[i] of packed; this machine's are there. */
static void among_leaders(const struct adi_two_level *way, char *packed, const MPI_Count *counts, const MPI_Count *displs)
{
	int mine = way->leaders->comm.rank;
	struct allgather args = { .comm = &way->leaders->comm, .in_place = true };
	args.receive = (struct adi_blocks){ .buf = (uintptr_t)packed, .unit = 1, .counts = { counts, sizeof *counts },
					    .displs = { displs, sizeof *displs }, .type = adi_type_byte };
	args.send = (struct adi_blocks){ .buf = (uintptr_t)(packed + displs[mine]), .count = counts[mine], .type = adi_type_byte };
	adi_schedule_among(way->schedule, way->leaders);
	if (way->leaders->comm.size <= SPREAD_MACHINES)
		spread(way->schedule, &args);
	else
		bruck(way->schedule, &args);
	adi_schedule_round(way->schedule);
}

/* The leader gets the blocks of its machine, one behind the other. */
static void gather_local(const struct adi_two_level *way, const struct allgather *args, char *to, MPI_Count bytes)
{
	const struct adi_comm *local = &way->local->comm;
	adi_schedule_among(way->schedule, way->local);
	if (!way->leaders)
		adi_block_send(way->schedule, &args->send, 0, way->top);
	for (int i = 0; way->leaders && i < local->size; i++)
		if (i != local->rank)
			adi_schedule_receive(way->schedule, to + i * bytes, bytes, adi_type_byte, i);
	if (way->leaders)
		adi_blocks_pack(way->schedule, &args->send, 0, 1, to + local->rank * bytes);
	adi_schedule_round(way->schedule);
}

static void two_level(struct adi_schedule *schedule, const struct allgather *args, const struct adi_levels *levels)
{
	struct adi_two_level way;
	MPI_Count bytes = adi_block_bytes(&args->receive, 0), all = bytes * args->comm->size, at = 0;
	MPI_Count *counts = adi_schedule_memory(schedule, 2 * (size_t)levels->machines * sizeof *counts);
	char *packed = adi_schedule_memory(schedule, (size_t)all);
	if (!counts || !packed || !adi_two_level_start(&way, schedule, levels, 0))
		return;
	MPI_Count *displs = counts + levels->machines;
	for (int i = 0; i < levels->machines; i++, at += counts[i - 1]) {
		counts[i] = levels->ranks[i] * bytes;
		displs[i] = at;
	}
	gather_local(&way, args, packed + displs[levels->mine], bytes);
	if (way.leaders)
		among_leaders(&way, packed, counts, displs);
	adi_schedule_among(schedule, way.local);
	adi_build_bcast(schedule, packed, all, adi_type_byte, 0);
	adi_schedule_round(schedule);
	if (levels->blocks)
		adi_blocks_unpack(schedule, packed, &args->receive, 0, args->comm->size);
	for (int i = 0; !levels->blocks && i < args->comm->size; i++)
		adi_blocks_unpack(schedule, packed + displs[levels->machine[i]] + levels->place[i] * bytes, &args->receive, i, 1);
}

static int build_levels(const struct allgather *args, const struct adi_levels *levels, struct adi_schedule **made)
{
	*made = adi_schedule_new(args->comm);
	if (!*made)
		return adi_error_no_schedule();
	two_level(*made, args, levels);
	return MPI_SUCCESS;
}

static int build(const struct allgather *args, struct adi_schedule **made)
{
	const struct adi_comm *comm = args->comm;
	bool equal = !args->receive.counts.values;
	MPI_Count all = equal ? adi_block_bytes(&args->receive, 0) * comm->size : comm->inter ? 0 : bytes_from(args, 0, comm->size);
	struct adi_schedule *schedule = adi_schedule_new(args->comm);
	if (!schedule)
		return adi_error_no_schedule();
	enum adi_algorithm way = adi_choose(ADI_COLLECTIVE_ALLGATHER, comm, all / comm->size, ADI_ALGORITHM_SPREAD);
	if (way == ADI_ALGORITHM_SPREAD)
		spread(schedule, args);
	else if (way == ADI_ALGORITHM_RING)
		ring(schedule, args);
	else if (way == ADI_ALGORITHM_DOUBLING && equal && !(comm->size & (comm->size - 1)))
		doubling(schedule, args);
	else
		bruck(schedule, args);
	*made = schedule;
	return MPI_SUCCESS;
}

/* Takes the block to send, after those to receive. */
static int take_send(struct allgather *args, const void *buf, MPI_Count count, MPI_Datatype type)
{
	args->in_place = buf == MPI_IN_PLACE && !args->comm->inter;
	int rank = args->comm->rank;
	if (!args->in_place) {
		int class = adi_blocks_same(&args->send, ADI_SENDS, buf, count, type);
		return class || args->comm->inter ? class : adi_check_alias(&args->send, 0, &args->receive, rank);
	}
	args->send = (struct adi_blocks){ .buf = (uintptr_t)adi_block_at(&args->receive, rank), .type = args->receive.type,
					  .count = adi_block_count(&args->receive, rank) };
	return MPI_SUCCESS;
}

static int take_allgather(struct allgather *args, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			  MPI_Count recvcount, MPI_Datatype recvtype)
{
	int class = adi_blocks_equal(&args->receive, ADI_RECEIVES, recvbuf, recvcount, recvtype);
	return class ? class : take_send(args, sendbuf, sendcount, sendtype);
}

static int allgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		     MPI_Datatype recvtype, struct adi_comm *comm, struct adi_schedule **made)
{
	struct allgather args = { .comm = comm };
	int class = take_allgather(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
	if (class)
		return class;
	MPI_Count bytes = adi_block_bytes(&args.receive, 0);
	const struct adi_levels *levels = NULL;
	if (bytes > 0)
		class = adi_two_level_known(comm, ADI_COLLECTIVE_ALLGATHER, (size_t)bytes, false, &levels);
	if (class)
		return class;
	return levels ? build_levels(&args, levels, made) : build(&args, made);
}

static int take_allgatherv(struct allgather *args, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			   struct adi_array recvcounts, struct adi_array displs, MPI_Datatype recvtype)
{
	int class = adi_blocks_v(&args->receive, ADI_RECEIVES, recvbuf, recvcounts, displs, recvtype, adi_peers(args->comm));
	return class ? class : take_send(args, sendbuf, sendcount, sendtype);
}

static int allgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, struct adi_array recvcounts,
		      struct adi_array displs, MPI_Datatype recvtype, struct adi_comm *comm, struct adi_schedule **made)
{
	struct allgather args = { .comm = comm };
	int class = take_allgatherv(&args, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
	return class ? class : build(&args, made);
}

/* Bytes of the longest block. */
static MPI_Count longest(const struct adi_blocks *blocks, int n)
{
	MPI_Count most = 0;
	for (int i = 0; i < n; i++)
		most = adi_block_bytes(blocks, i) > most ? adi_block_bytes(blocks, i) : most;
	return most;
}

int mpi_allgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		  MPI_Datatype recvtype, struct adi_comm *comm)
{
	struct allgather args = { .comm = comm };
	struct adi_schedule *schedule = NULL;
	int class = take_allgather(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
	if (class)
		return class;
	MPI_Count bytes = adi_block_bytes(&args.receive, 0);
	adi_blocks_hold(&args.send, &args.receive, adi_peers(comm));
	if (adi_choose_node(ADI_COLLECTIVE_ALLGATHER, comm, bytes, -1)) {
		class = adi_node_allgather(comm, args.in_place ? NULL : &args.send, &args.receive, bytes);
	} else {
		const struct adi_levels *levels = NULL;
		if (bytes > 0)
			class = adi_two_level_use(comm, ADI_COLLECTIVE_ALLGATHER, (size_t)bytes, false, &levels);
		if (!class)
			class = levels ? build_levels(&args, levels, &schedule) : build(&args, &schedule);
	}
	return adi_blocks_end(class, schedule, &args.send, &args.receive, adi_peers(comm));
}

int mpi_iallgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_allgather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		       MPI_Datatype recvtype, struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}

int mpi_allgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
		   struct adi_array recvcounts, struct adi_array displs, MPI_Datatype recvtype, struct adi_comm *comm)
{
	struct allgather args = { .comm = comm };
	struct adi_schedule *schedule = NULL;
	int class = take_allgatherv(&args, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
	if (class)
		return class;
	MPI_Count most = comm->inter ? 0 : longest(&args.receive, comm->size);
	adi_blocks_hold(&args.send, &args.receive, adi_peers(comm));
	if (adi_choose_node(ADI_COLLECTIVE_ALLGATHER, comm, most, -1))
		class = adi_node_allgatherv(comm, args.in_place ? NULL : &args.send, &args.receive, most);
	else
		class = build(&args, &schedule);
	return adi_blocks_end(class, schedule, &args.send, &args.receive, adi_peers(comm));
}

int mpi_iallgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
		    struct adi_array recvcounts, struct adi_array displs, MPI_Datatype recvtype, struct adi_comm *comm,
		    MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_allgatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			struct adi_array recvcounts, struct adi_array displs, MPI_Datatype recvtype, struct adi_comm *comm,
			struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}
