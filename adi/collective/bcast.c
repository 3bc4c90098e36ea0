/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Bcast: MPI 5.0, section 6.4. Algorithms: linear, the root sends to each rank; binomial tree; a binomial scatter and a ring
 * allgather (van de Geijn); a chain of all ranks, through which the data flow in segments. The latter two cut the data into pieces
 * of bytes, so data that are not contiguous go through a packed copy.
 */
#include "adi/bindings/functions.h"
#include "adi/collective/node.h"
#include "adi/collective/reduction.h"
#include "adi/collective/two_level.h"

#define CHAIN_SEGMENT 65536

/* Bytes one behind the other, and this rank's place relative to the root. */
struct bytes {
	struct adi_schedule *schedule;
	char *at;
	MPI_Count n;
	int size, root, relative;
};

static int rank_of(const struct bytes *bytes, int relative)
{
	return (relative + bytes->root) % bytes->size;
}

static void send_range(const struct bytes *bytes, MPI_Count lo, MPI_Count hi, int relative)
{
	if (hi > lo)
		adi_schedule_send(bytes->schedule, bytes->at + lo, hi - lo, adi_type_byte, rank_of(bytes, relative));
}

static void receive_range(const struct bytes *bytes, MPI_Count lo, MPI_Count hi, int relative)
{
	if (hi > lo)
		adi_schedule_receive(bytes->schedule, bytes->at + lo, hi - lo, adi_type_byte, rank_of(bytes, relative));
}

static MPI_Count least(MPI_Count a, MPI_Count b)
{
	return a < b ? a : b;
}

/* ---- algorithms ---- */

static void build_binomial(struct adi_schedule *schedule, void *buf, MPI_Count count, struct adi_type *type, int root)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	int relative = (comm->rank - root + comm->size) % comm->size, mask = 1;
	while (mask < comm->size && !(relative & mask))
		mask *= 2;
	if (relative) {
		adi_schedule_receive(schedule, buf, count, type, (relative - mask + root) % comm->size);
		adi_schedule_round(schedule);
	}
	for (mask /= 2; mask > 0; mask /= 2)
		if (relative + mask < comm->size)
			adi_schedule_send(schedule, buf, count, type, (relative + mask + root) % comm->size);
	adi_schedule_round(schedule);
}

/* For few ranks: the root sends a short message in less time than an inner rank of a tree needs to pass it on, above all if the
 * inner rank has to wait for a processor. */
static void build_linear(struct adi_schedule *schedule, void *buf, MPI_Count count, struct adi_type *type, int root)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	if (comm->rank != root)
		adi_schedule_receive(schedule, buf, count, type, root);
	for (int i = 1; i < comm->size && comm->rank == root; i++)
		adi_schedule_send(schedule, buf, count, type, (root + i) % comm->size);
	adi_schedule_round(schedule);
}

/* Chunk i belongs to relative rank i. After the scatter, a rank has the chunks of its subtree. */
static void build_scatter(const struct bytes *bytes, MPI_Count chunk)
{
	int mask = 1, relative = bytes->relative;
	while (mask < bytes->size && !(relative & mask))
		mask *= 2;
	if (relative) {
		int end = relative + mask;
		receive_range(bytes, least(bytes->n, relative * chunk), least(bytes->n, end * chunk), relative - mask);
		adi_schedule_round(bytes->schedule);
	}
	for (mask /= 2; mask > 0; mask /= 2) {
		int child = relative + mask, end = child + mask;
		if (child < bytes->size)
			send_range(bytes, least(bytes->n, child * chunk), least(bytes->n, end * chunk), child);
	}
	adi_schedule_round(bytes->schedule);
}

static void build_scatter_ring(const struct bytes *bytes)
{
	MPI_Count chunk = (bytes->n + bytes->size - 1) / bytes->size;
	build_scatter(bytes, chunk);
	int left = (bytes->relative + bytes->size - 1) % bytes->size, right = (bytes->relative + 1) % bytes->size;
	for (int step = 0; step < bytes->size - 1; step++) {
		int in = (left - step + bytes->size) % bytes->size, out = (bytes->relative - step + bytes->size) % bytes->size;
		/* The root has all chunks, so nobody sends to it. */
		if (bytes->relative != 0)
			receive_range(bytes, least(bytes->n, in * chunk), least(bytes->n, (in + 1) * chunk), left);
		if (right != 0)
			send_range(bytes, least(bytes->n, out * chunk), least(bytes->n, (out + 1) * chunk), right);
		adi_schedule_round(bytes->schedule);
	}
}

static void build_chain(const struct bytes *bytes)
{
	bool first = bytes->relative == 0, last = bytes->relative == bytes->size - 1;
	MPI_Count segments = (bytes->n + CHAIN_SEGMENT - 1) / CHAIN_SEGMENT;
	for (MPI_Count i = 0; i <= segments; i++) {
		if (!first && i < segments)
			receive_range(bytes, i * CHAIN_SEGMENT, least(bytes->n, (i + 1) * CHAIN_SEGMENT), bytes->relative - 1);
		if (!last && i > 0)
			send_range(bytes, (i - 1) * CHAIN_SEGMENT, least(bytes->n, i * CHAIN_SEGMENT), bytes->relative + 1);
		adi_schedule_round(bytes->schedule);
	}
}

void adi_build_bcast(struct adi_schedule *schedule, void *buf, MPI_Count count, struct adi_type *type, int root)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	struct bytes bytes = { .schedule = schedule, .n = count * type->size, .size = comm->size, .root = root };
	bytes.relative = (comm->rank - root + comm->size) % comm->size;
	if (comm->size == 1)
		return;
	enum adi_algorithm algorithm = adi_select(ADI_COLLECTIVE_BCAST, (size_t)bytes.n, comm->size, false, 0);
	if (algorithm == ADI_ALGORITHM_LINEAR) {
		build_linear(schedule, buf, count, type, root);
		return;
	}
	if (algorithm == ADI_ALGORITHM_BINOMIAL || bytes.n == 0) {
		build_binomial(schedule, buf, count, type, root);
		return;
	}
	bytes.at = type->contiguous ? (char *)buf + type->true_lb : adi_schedule_memory(schedule, (size_t)bytes.n);
	if (!type->contiguous && bytes.relative == 0)
		adi_schedule_copy(schedule, buf, count, type, bytes.at, bytes.n, adi_type_byte);
	if (algorithm == ADI_ALGORITHM_CHAIN)
		build_chain(&bytes);
	else
		build_scatter_ring(&bytes);
	if (!type->contiguous && bytes.relative != 0)
		adi_schedule_copy(schedule, bytes.at, bytes.n, adi_type_byte, buf, count, type);
}

/* The root sends to rank 0 of the other group, which broadcasts. */
static void build_inter(struct adi_schedule *schedule, void *buf, MPI_Count count, struct adi_type *type, int root)
{
	const struct adi_comm *comm = adi_schedule_comm(schedule);
	if (root == MPI_ROOT) {
		adi_schedule_send(schedule, buf, count, type, 0);
	} else if (root != MPI_PROC_NULL) {
		if (comm->rank == 0)
			adi_schedule_receive(schedule, buf, count, type, root);
		adi_schedule_round(schedule);
		adi_schedule_inside(schedule, true);
		adi_build_bcast(schedule, buf, count, type, 0);
		adi_schedule_inside(schedule, false);
	}
}

/* ---- MPI functions ---- */

static int check(void *buf, MPI_Count count, MPI_Datatype datatype, int root, const struct adi_comm *comm, struct adi_type **type)
{
	int class = adi_check_root(comm, root);
	*type = adi_type_byte;
	if (class || (comm->inter && root == MPI_PROC_NULL))
		return class;
	class = adi_check_count(count, "count");
	if (!class)
		class = adi_type_take_committed(datatype, "datatype", type);
	return class ? class : adi_check_buffer(buf, count, *type, false, "buffer");
}

/* levels: NULL: one level. */
static int build(struct adi_schedule **made, const struct adi_levels *levels, void *buf, MPI_Count count, struct adi_type *type,
		 int root, struct adi_comm *comm)
{
	struct adi_schedule *schedule = *made = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	if (comm->inter)
		build_inter(schedule, buf, count, type, root);
	else if (count > 0 && levels)
		adi_two_level_bcast(schedule, levels, buf, count, type, root);
	else if (count > 0)
		adi_build_bcast(schedule, buf, count, type, root);
	return MPI_SUCCESS;
}

/* Each of two ranks chooses the segment or a message by its own count. If the counts disagree, the choices may disagree too. Then
 * the receiver does as the root does, so that neither waits for the other. */

/* This rank has used the segment, which has ended with the error `class`. The root sends a message: receives it. */
static int take_message(struct adi_comm *comm, void *buf, MPI_Count count, struct adi_type *type, int root, int class)
{
	struct adi_schedule *schedule = adi_schedule_new(comm);
	if (!schedule)
		return adi_error_no_schedule();
	comm->collectives[true]--; /* the message has the number of this collective */
	adi_schedule_receive(schedule, buf, count, type, root);
	int other = adi_schedule_wait(schedule);
	return other ? other : class;
}

/* This rank expects a message. Returns an error if the root uses the segment. */
static int expect_message(struct adi_comm *comm, int root)
{
	bool wrote;
	int class = adi_node_wrote(comm, comm->node, root, &wrote);
	adi_node_leave(comm, comm->node);
	if (class || !wrote)
		return class;
	adi_schedule_none(comm);
	return adi_error(MPI_ERR_TRUNCATE,
			 "rank %d of communicator %s broadcasts fewer bytes than this rank has counted; they must "
			 "agree", root, adi_comm_text(comm));
}

static int bcast(void *buf, MPI_Count count, struct adi_type *type, int root, struct adi_comm *comm)
{
	const struct adi_levels *levels = NULL;
	int class = MPI_SUCCESS;
	size_t bytes = (size_t)(count * type->size);
	if (adi_node_possible(comm) && adi_node_use(comm, ADI_COLLECTIVE_BCAST, bytes, false, root)) {
		bool message;
		class = adi_node_bcast(comm, buf, count, type, root, &message);
		return message ? take_message(comm, buf, count, type, root, class) : class;
	}
	if (comm->size == 2 && comm->rank != root && comm->node && ((struct node_state *)comm->node)->state == NODE_SHARED)
		class = expect_message(comm, root);
	if (!class && adi_blocking_choice(comm))
		class = adi_two_level_use(comm, ADI_COLLECTIVE_BCAST, bytes, false, &levels);
	if (class)
		return class;
	struct adi_schedule *schedule;
	class = build(&schedule, levels, buf, count, type, root, comm);
	return class ? class : adi_schedule_wait(schedule);
}

int mpi_bcast(void *buf, MPI_Count count, MPI_Datatype datatype, int root, struct adi_comm *comm)
{
	struct adi_type *type;
	int class = check(buf, count, datatype, root, comm, &type);
	if (class)
		return class;
	/* While this thread waits, another one may free the type. */
	adi_object_retain(&type->object);
	class = bcast(buf, count, type, root, comm);
	adi_type_release(type);
	return class;
}

/* The schedule of a nonblocking or persistent broadcast. */
static int make(struct adi_schedule **made, void *buf, MPI_Count count, MPI_Datatype datatype, int root, struct adi_comm *comm)
{
	struct adi_type *type;
	int class = check(buf, count, datatype, root, comm, &type);
	if (class)
		return class;
	const struct adi_levels *levels;
	class = adi_two_level_known(comm, ADI_COLLECTIVE_BCAST, (size_t)(count * type->size), false, &levels);
	if (!class)
		class = build(made, levels, buf, count, type, root, comm);
	if (!class)
		adi_schedule_root(*made, root);
	return class;
}

int mpi_ibcast(void *buf, MPI_Count count, MPI_Datatype datatype, int root, struct adi_comm *comm, MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = make(&schedule, buf, count, datatype, root, comm);
	return class ? class : adi_schedule_start(schedule, request);
}

int mpi_bcast_init(void *buf, MPI_Count count, MPI_Datatype datatype, int root, struct adi_comm *comm, struct adi_info *info,
		   MPI_Request *request)
{
	struct adi_schedule *schedule;
	int class = make(&schedule, buf, count, datatype, root, comm);
	(void)info;
	return class ? class : adi_schedule_persistent(schedule, request);
}
