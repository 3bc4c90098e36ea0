/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter and scatterv: MPI 5.0, section 6.6. Linear: the root sends to each rank. Binomial tree, for small blocks of equal size on
 * many ranks: an inner rank receives the packed blocks of its subtree and sends each child the blocks of the child's subtree. */
#include "adi/bindings/functions.h"
#include "adi/collective/blocks.h"

/* The arguments of this process, as far as they are significant. */
struct scatter {
	struct adi_comm *comm;
	int root;
	bool sends, receives; /* receives is false too if the root's block is in place */
	struct adi_blocks send, receive;
};

static int take_receive(struct scatter *scatter, void *buf, MPI_Count count, MPI_Datatype type)
{
	bool root = adi_at_root(scatter->comm, scatter->root);
	scatter->receives = scatter->comm->inter ? scatter->root >= 0 : !(root && buf == MPI_IN_PLACE);
	scatter->sends = root;
	return scatter->receives ? adi_blocks_same(&scatter->receive, ADI_RECEIVES, buf, count, type) : MPI_SUCCESS;
}

static void scatter_linear(struct adi_schedule *schedule, const struct scatter *scatter)
{
	const struct adi_comm *comm = scatter->comm;
	bool to_itself = scatter->sends && !comm->inter;
	for (int i = 0; scatter->sends && i < adi_peers(comm); i++)
		if (!to_itself || i != comm->rank)
			adi_block_send(schedule, &scatter->send, i, i);
	if (to_itself && scatter->receives)
		adi_block_copy(schedule, &scatter->send, comm->rank, &scatter->receive, 0);
	else if (scatter->receives)
		adi_block_receive(schedule, &scatter->receive, 0, scatter->root);
}

/* The root has the relative rank 0. It sends the subtree of each child, the largest first, from its place if its ranks do not wrap
 * around. */
static void binomial_root(struct adi_schedule *schedule, const struct scatter *scatter, MPI_Count bytes)
{
	int n = scatter->comm->size, root = scatter->root, highest = 1;
	const struct adi_blocks *from = &scatter->send;
	while (highest * 2 < n)
		highest *= 2;
	for (int bit = highest; bit && bit < n; bit /= 2) {
		int blocks = bit < n - bit ? bit : n - bit, first = (root + bit) % n;
		if (first + blocks <= n) {
			adi_schedule_send(schedule, adi_block_at(from, first), blocks * from->count, from->type, first);
			continue;
		}
		char *wrapped = adi_schedule_memory(schedule, (size_t)(blocks * bytes));
		if (!wrapped)
			return;
		adi_blocks_pack(schedule, from, first, n - first, wrapped);
		adi_blocks_pack(schedule, from, 0, blocks - (n - first), wrapped + (n - first) * bytes);
		adi_schedule_send(schedule, wrapped, blocks * bytes, adi_type_byte, first);
	}
	if (scatter->receives)
		adi_block_copy(schedule, from, root, &scatter->receive, 0);
}

static void binomial_inner(struct adi_schedule *schedule, const struct scatter *scatter, MPI_Count bytes)
{
	int n = scatter->comm->size, relative = (scatter->comm->rank - scatter->root + n) % n;
	int lowest = relative & -relative, parent = (scatter->comm->rank + n - lowest) % n;
	int blocks = lowest < n - relative ? lowest : n - relative, highest = 1;
	if (blocks == 1) {
		adi_block_receive(schedule, &scatter->receive, 0, parent);
		return;
	}
	char *packed = adi_schedule_memory(schedule, (size_t)(blocks * bytes));
	if (!packed)
		return;
	adi_schedule_receive(schedule, packed, blocks * bytes, adi_type_byte, parent);
	adi_schedule_round(schedule);
	while (highest * 2 < blocks)
		highest *= 2;
	for (int bit = highest; bit; bit /= 2) {
		int below = bit < blocks - bit ? bit : blocks - bit;
		adi_schedule_send(schedule, packed + bit * bytes, below * bytes, adi_type_byte, (scatter->comm->rank + bit) % n);
	}
	adi_blocks_unpack(schedule, packed, &scatter->receive, 0, 1);
}

static int build(const struct scatter *scatter, enum adi_algorithm way, MPI_Count bytes, struct adi_schedule **made)
{
	struct adi_schedule *schedule = *made = adi_schedule_new(scatter->comm);
	if (!schedule)
		return adi_error_no_schedule();
	adi_schedule_root(schedule, scatter->root);
	if (way == ADI_ALGORITHM_LINEAR)
		scatter_linear(schedule, scatter);
	else if (scatter->sends)
		binomial_root(schedule, scatter, bytes);
	else
		binomial_inner(schedule, scatter, bytes);
	return MPI_SUCCESS;
}

/* The root's own block is copied. */
static int check_alias(const struct scatter *args)
{
	bool copies = args->sends && args->receives && !args->comm->inter;
	return copies ? adi_check_alias(&args->send, args->comm->rank, &args->receive, 0) : MPI_SUCCESS;
}

static int take_scatter(struct scatter *args, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			MPI_Count recvcount, MPI_Datatype recvtype, MPI_Count *bytes)
{
	int class = adi_check_root(args->comm, args->root);
	if (!class)
		class = take_receive(args, recvbuf, recvcount, recvtype);
	if (!class && args->sends)
		class = adi_blocks_equal(&args->send, ADI_SENDS, sendbuf, sendcount, sendtype);
	if (!class)
		class = check_alias(args);
	*bytes = class ? 0 : adi_block_bytes(args->sends ? &args->send : &args->receive, 0);
	return class;
}

static int build_scatter(const struct scatter *args, MPI_Count bytes, struct adi_schedule **made)
{
	return build(args, adi_choose(ADI_COLLECTIVE_SCATTER, args->comm, bytes, ADI_ALGORITHM_LINEAR), bytes, made);
}

static int scatter(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, int root, struct adi_comm *comm, struct adi_schedule **made)
{
	struct scatter args = { .comm = comm, .root = root };
	MPI_Count bytes;
	int class = take_scatter(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, &bytes);
	return class ? class : build_scatter(&args, bytes, made);
}

static int take_scatterv(struct scatter *args, const void *sendbuf, struct adi_array sendcounts, struct adi_array displs,
			 MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype)
{
	int class = adi_check_root(args->comm, args->root);
	if (!class)
		class = take_receive(args, recvbuf, recvcount, recvtype);
	if (!class && args->sends)
		class = adi_blocks_v(&args->send, ADI_SENDS, sendbuf, sendcounts, displs, sendtype, adi_peers(args->comm));
	if (!class)
		class = check_alias(args);
	return class;
}

static int scatterv(const void *sendbuf, struct adi_array sendcounts, struct adi_array displs, MPI_Datatype sendtype, void *recvbuf,
		    MPI_Count recvcount, MPI_Datatype recvtype, int root, struct adi_comm *comm, struct adi_schedule **made)
{
	struct scatter args = { .comm = comm, .root = root };
	int class = take_scatterv(&args, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype);
	return class ? class : build(&args, ADI_ALGORITHM_LINEAR, 0, made);
}

int mpi_scatter(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		MPI_Datatype recvtype, int root, struct adi_comm *comm)
{
	struct scatter args = { .comm = comm, .root = root };
	struct adi_schedule *schedule = NULL;
	MPI_Count bytes;
	int class = take_scatter(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, &bytes);
	if (class)
		return class;
	adi_blocks_hold(&args.send, &args.receive, adi_peers(comm));
	if (adi_choose_node(ADI_COLLECTIVE_SCATTER, comm, bytes, root))
		class = adi_node_scatter(comm, &args.send, args.receives ? &args.receive : NULL, bytes, root);
	else
		class = build_scatter(&args, bytes, &schedule);
	return adi_blocks_end(class, schedule, &args.send, &args.receive, adi_peers(comm));
}

int mpi_iscatter(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		 MPI_Datatype recvtype, int root, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_scatter_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		     MPI_Datatype recvtype, int root, struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}

int mpi_scatterv(const void *sendbuf, struct adi_array sendcounts, struct adi_array displs, MPI_Datatype sendtype,
		 void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, struct adi_comm *comm)
{
	struct scatter args = { .comm = comm, .root = root };
	struct adi_schedule *schedule = NULL;
	int class = take_scatterv(&args, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype);
	if (class)
		return class;
	adi_blocks_hold(&args.send, &args.receive, adi_peers(comm));
	if (adi_choose_node(ADI_COLLECTIVE_SCATTER, comm, ADI_UNKNOWN_BYTES, root))
		class = adi_node_scatterv(comm, &args.send, args.receives ? &args.receive : NULL, root);
	else
		class = build(&args, ADI_ALGORITHM_LINEAR, 0, &schedule);
	return adi_blocks_end(class, schedule, &args.send, &args.receive, adi_peers(comm));
}

int mpi_iscatterv(const void *sendbuf, struct adi_array sendcounts, struct adi_array displs, MPI_Datatype sendtype,
		  void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, struct adi_comm *comm,
		  MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, &schedule);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_scatterv_init(const void *sendbuf, struct adi_array sendcounts, struct adi_array displs, MPI_Datatype sendtype,
		      void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, struct adi_comm *comm,
		      struct adi_info *info, MPI_Request *request)
{
	(void)info;
	struct adi_schedule *schedule;
	int class = scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, &schedule);
	return class ? class : adi_schedule_persistent(schedule, request);
}
