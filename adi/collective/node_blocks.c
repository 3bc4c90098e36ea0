/* SPDX-License-Identifier: BSD-3-Clause */
/* Gather, scatter, allgather and alltoall of small blocks in a shared segment, each in one step: node.h has the protocol. A rank
 * writes all that it sends into its slot, and reads its blocks from the slots of the others. */
#include "adi/collective/blocks.h"
#include "adi/collective/node.h"

#include <string.h>

/* Writes n blocks from first on, one behind the other. */
static int put(const struct adi_blocks *from, int first, int n, char *to)
{
	MPI_Count bytes = adi_block_bytes(from, first);
	if (from->type->contiguous && (n == 1 || adi_blocks_joined(from))) {
		memcpy(to, (char *)adi_block_at(from, first) + from->type->true_lb, (size_t)(n * bytes));
		return MPI_SUCCESS;
	}
	int class = MPI_SUCCESS;
	for (int i = first; i < first + n && !class; i++, to += bytes)
		class = adi_type_copy(adi_block_at(from, i), from->count, from->type, to, bytes, adi_type_byte);
	return class;
}

static int get(const char *from, const struct adi_blocks *to, int i)
{
	MPI_Count bytes = adi_block_bytes(to, i);
	if (!to->type->contiguous)
		return adi_type_copy(from, bytes, adi_type_byte, adi_block_at(to, i), to->count, to->type);
	memcpy((char *)adi_block_at(to, i) + to->type->true_lb, from, (size_t)bytes);
	return MPI_SUCCESS;
}

/* Begins a step with n blocks to write. A rank that cannot read its own data writes nothing, which is an error at the others. */
static int begin(const struct adi_comm *comm, struct node_state *node, const struct adi_blocks *send, int first, int n, size_t bytes)
{
	int class = adi_node_begin(comm, node);
	if (class)
		return class;
	class = n ? put(send, first, n, adi_node_data(node, comm->rank, bytes)) : MPI_SUCCESS;
	adi_node_publish(comm, node, class ? 0 : bytes);
	return class;
}

int adi_node_allgather(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes)
{
	struct node_state *node = comm->node;
	if (node->state == NODE_BROKEN)
		return adi_node_error_broken(comm);
	int class = begin(comm, node, send ? send : receive, send ? 0 : comm->rank, 1, (size_t)bytes);
	if (!class)
		class = adi_node_await_all(comm, node, (size_t)bytes);
	for (int i = 0; i < comm->size && !class; i++)
		if (send || i != comm->rank)
			class = get(adi_node_data(node, i, (size_t)bytes), receive, i);
	adi_node_end_step(comm, node);
	return class;
}

int adi_node_alltoall(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes)
{
	struct node_state *node = comm->node;
	if (node->state == NODE_BROKEN)
		return adi_node_error_broken(comm);
	size_t all = (size_t)(comm->size * bytes);
	int class = begin(comm, node, send ? send : receive, 0, comm->size, all);
	if (!class)
		class = adi_node_await_all(comm, node, all);
	for (int i = 0; i < comm->size && !class; i++)
		if (send || i != comm->rank)
			class = get(adi_node_data(node, i, all) + comm->rank * bytes, receive, i);
	adi_node_end_step(comm, node);
	return class;
}

int adi_node_gather(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes, int root)
{
	struct node_state *node = comm->node;
	if (node->state == NODE_BROKEN)
		return adi_node_error_broken(comm);
	int class = begin(comm, node, send, 0, send ? 1 : 0, (size_t)bytes);
	if (!class && comm->rank == root)
		class = adi_node_await_all(comm, node, (size_t)bytes);
	for (int i = 0; i < comm->size && comm->rank == root && !class; i++)
		if (send || i != root)
			class = get(adi_node_data(node, i, (size_t)bytes), receive, i);
	adi_node_end_step(comm, node);
	return class;
}

int adi_node_scatter(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive, MPI_Count bytes, int root)
{
	struct node_state *node = comm->node;
	if (node->state == NODE_BROKEN)
		return adi_node_error_broken(comm);
	size_t all = (size_t)(comm->size * bytes);
	int class = MPI_SUCCESS;
	if (comm->rank == root) {
		class = begin(comm, node, send, 0, comm->size, all);
	} else {
		node->seq++;
		class = adi_node_await(comm, node, root, all);
	}
	if (!class && receive)
		class = get(adi_node_data(node, root, all) + comm->rank * bytes, receive, 0);
	adi_node_end_step(comm, node);
	return class;
}
