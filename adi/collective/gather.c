/* SPDX-License-Identifier: BSD-3-Clause */
/* Gather and gatherv: MPI 5.0, section 6.5. Linear: the root receives from each rank. Binomial tree, for small blocks of equal size
 * on many ranks: an inner rank receives the packed blocks of its subtree and sends them on together with its own. */
#include "adi/bindings/functions.h"
#include "adi/collective/blocks.h"

/* The arguments of this process, as far as they are significant. */
struct gather {
	struct adi_comm *comm;
	int root;
	bool sends, receives; /* sends is false too if the root's block is in place */
	struct adi_blocks send, receive;
};

static int take_send(struct gather *gather, const void *buf, MPI_Count count, MPI_Datatype type)
{
	bool root = adi_at_root(gather->comm, gather->root);
	gather->sends = gather->comm->inter ? gather->root >= 0 : !(root && buf == MPI_IN_PLACE);
	gather->receives = root;
	return gather->sends ? adi_blocks_same(&gather->send, ADI_SENDS, buf, count, type) : MPI_SUCCESS;
}

static void gather_linear(struct adi_schedule *schedule, const struct gather *gather)
{
	const struct adi_comm *comm = gather->comm;
	bool to_itself = gather->receives && !comm->inter;
	for (int i = 0; gather->receives && i < adi_peers(comm); i++)
		if (!to_itself || i != comm->rank)
			adi_block_receive(schedule, &gather->receive, i, i);
	if (to_itself && gather->sends)
		adi_block_copy(schedule, &gather->send, 0, &gather->receive, comm->rank);
	else if (gather->sends)
		adi_block_send(schedule, &gather->send, 0, gather->root);
}

/* The root has the relative rank 0. It receives the subtree of each child in place if its ranks do not wrap around. */
static void binomial_root(struct adi_schedule *schedule, const struct gather *gather, MPI_Count bytes)
{
	int n = gather->comm->size, root = gather->root;
	const struct adi_blocks *to = &gather->receive;
	char *wrapped = NULL;
	int wrapped_first = 0, wrapped_n = 0;
	for (int bit = 1; bit < n; bit *= 2) {
		int blocks = bit < n - bit ? bit : n - bit, first = (root + bit) % n;
		if (first + blocks <= n) {
			adi_schedule_receive(schedule, adi_block_at(to, first), blocks * to->count, to->type, first);
			continue;
		}
		wrapped = adi_schedule_memory(schedule, (size_t)(blocks * bytes));
		wrapped_first = first;
		wrapped_n = blocks;
		adi_schedule_receive(schedule, wrapped, blocks * bytes, adi_type_byte, first);
	}
	if (gather->sends)
		adi_block_copy(schedule, &gather->send, 0, to, root);
	adi_schedule_round(schedule);
	if (!wrapped)
		return;
	int before_end = n - wrapped_first;
	adi_blocks_unpack(schedule, wrapped, to, wrapped_first, before_end);
	adi_blocks_unpack(schedule, wrapped + before_end * bytes, to, 0, wrapped_n - before_end);
}

static void binomial_inner(struct adi_schedule *schedule, const struct gather *gather, MPI_Count bytes)
{
	int n = gather->comm->size, relative = (gather->comm->rank - gather->root + n) % n;
	int lowest = relative & -relative, parent = (gather->comm->rank + n - lowest) % n;
	int blocks = lowest < n - relative ? lowest : n - relative;
	if (blocks == 1) {
		adi_block_send(schedule, &gather->send, 0, parent);
		return;
	}
	char *packed = adi_schedule_memory(schedule, (size_t)(blocks * bytes));
	if (!packed)
		return;
	for (int bit = 1; bit < blocks; bit *= 2) {
		int below = bit < blocks - bit ? bit : blocks - bit;
		adi_schedule_receive(schedule, packed + bit * bytes, below * bytes, adi_type_byte, (gather->comm->rank + bit) % n);
	}
	adi_blocks_pack(schedule, &gather->send, 0, 1, packed);
	adi_schedule_round(schedule);
	adi_schedule_send(schedule, packed, blocks * bytes, adi_type_byte, parent);
}

static int build(const struct gather *gather, enum adi_algorithm way, MPI_Count bytes, struct adi_schedule **made)
{
	struct adi_schedule *schedule = *made = adi_schedule_new(gather->comm);
	if (!schedule)
		return adi_error_no_schedule();
	if (way == ADI_ALGORITHM_LINEAR)
		gather_linear(schedule, gather);
	else if (gather->receives)
		binomial_root(schedule, gather, bytes);
	else
		binomial_inner(schedule, gather, bytes);
	return MPI_SUCCESS;
}

/* The root's own block is copied. */
static int check_alias(const struct gather *args)
{
	bool copies = args->sends && args->receives && !args->comm->inter;
	return copies ? adi_check_alias(&args->send, 0, &args->receive, args->comm->rank) : MPI_SUCCESS;
}

static int take_gather(struct gather *args, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
		       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Count *bytes)
{
	int class = adi_check_root(args->comm, args->root);
	if (!class)
		class = take_send(args, sendbuf, sendcount, sendtype);
	if (!class && args->receives)
		class = adi_blocks_equal(&args->receive, ADI_RECEIVES, recvbuf, recvcount, recvtype);
	if (!class)
		class = check_alias(args);
	*bytes = class ? 0 : adi_block_bytes(args->receives ? &args->receive : &args->send, 0);
	return class;
}

static int build_gather(const struct gather *args, MPI_Count bytes, struct adi_schedule **made)
{
	return build(args, adi_choose(ADI_COLLECTIVE_GATHER, args->comm, bytes, ADI_ALGORITHM_LINEAR), bytes, made);
}

static int gather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		  MPI_Datatype recvtype, int root, struct adi_comm *comm, struct adi_schedule **made)
{
	struct gather args = { .comm = comm, .root = root };
	MPI_Count bytes;
	int class = take_gather(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, &bytes);
	return class ? class : build_gather(&args, bytes, made);
}

int mpi_gather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
	       MPI_Datatype recvtype, int root, struct adi_comm *comm)
{
	struct gather args = { .comm = comm, .root = root };
	struct adi_schedule *schedule = NULL;
	MPI_Count bytes;
	int class = take_gather(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, &bytes);
	if (class)
		return class;
	adi_blocks_hold(&args.send, &args.receive, adi_peers(comm));
	if (adi_choose_node(ADI_COLLECTIVE_GATHER, comm, bytes, -1))
		class = adi_node_gather(comm, args.sends ? &args.send : NULL, &args.receive, bytes, root);
	else
		class = build_gather(&args, bytes, &schedule);
	return adi_blocks_end(class, schedule, &args.send, &args.receive, adi_peers(comm));
}

int mpi_igather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		MPI_Datatype recvtype, int root, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_gather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		    MPI_Datatype recvtype, int root, struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}

static int take_gatherv(struct gather *args, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			struct adi_array recvcounts, struct adi_array displs, MPI_Datatype recvtype)
{
	int class = adi_check_root(args->comm, args->root);
	if (!class)
		class = take_send(args, sendbuf, sendcount, sendtype);
	if (!class && args->receives)
		class = adi_blocks_v(&args->receive, ADI_RECEIVES, recvbuf, recvcounts, displs, recvtype, adi_peers(args->comm));
	if (!class)
		class = check_alias(args);
	return class;
}

static int gatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, struct adi_array recvcounts,
		   struct adi_array displs, MPI_Datatype recvtype, int root, struct adi_comm *comm, struct adi_schedule **made)
{
	struct gather args = { .comm = comm, .root = root };
	int class = take_gatherv(&args, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
	return class ? class : build(&args, ADI_ALGORITHM_LINEAR, 0, made);
}

int mpi_gatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, struct adi_array recvcounts,
		struct adi_array displs, MPI_Datatype recvtype, int root, struct adi_comm *comm)
{
	struct gather args = { .comm = comm, .root = root };
	struct adi_schedule *schedule = NULL;
	int class = take_gatherv(&args, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
	if (class)
		return class;
	adi_blocks_hold(&args.send, &args.receive, adi_peers(comm));
	if (adi_choose_node(ADI_COLLECTIVE_GATHER, comm, ADI_UNKNOWN_BYTES, -1))
		class = adi_node_gatherv(comm, args.sends ? &args.send : NULL, &args.receive, root);
	else
		class = build(&args, ADI_ALGORITHM_LINEAR, 0, &schedule);
	return adi_blocks_end(class, schedule, &args.send, &args.receive, adi_peers(comm));
}

int mpi_igatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, struct adi_array recvcounts,
		 struct adi_array displs, MPI_Datatype recvtype, int root, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_gatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, struct adi_array recvcounts,
		     struct adi_array displs, MPI_Datatype recvtype, int root, struct adi_comm *comm, struct adi_info *info,
		     MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}
