/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Alltoall with one copy: each rank reads its blocks out of the buffers of the others (process_vm_readv). Two steps of the shared
 * segment (node.h). In the first each rank says where its buffer is. In the second it says whether it could read all its blocks; as
 * each rank waits for all others there, no buffer is used after the collective. If a rank could not read, all ranks do the
 * collective again through the segment.
 */
#include "config.h"

#include "adi/collective/blocks.h"
#include "adi/collective/node.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Where a rank's data are. Addresses are of that rank's process. */
struct offer {
	uint64_t pid;
	uint64_t buf;    /* of block 0; 0: the blocks cannot be read, because they are not one behind the other */
	uint64_t cookie; /* of the segment's cookie in the process's own memory, by which a reader recognises the process */
};
_Static_assert(sizeof(struct offer) <= NODE_INLINE, "the offer lies in the slot");

/* How far a rank has come. The worst state of all ranks counts. */
enum state {
	READ,        /* it has read all blocks */
	NOT_NOW,     /* it, or a rank from which it reads, has data that are not contiguous */
	NEVER,       /* the system does not allow it */
	WRONG_BYTES, /* blocks have different sizes */
};

static bool is_flat(const struct adi_blocks *blocks)
{
	return blocks->type->contiguous && adi_blocks_joined(blocks);
}

static int offer_blocks(const struct adi_comm *comm, struct node_state *node, const struct adi_blocks *send, MPI_Count bytes)
{
	int class = adi_node_begin(comm, node, sizeof(struct offer));
	if (class)
		return class;
	struct offer offer = { .pid = (uint64_t)getpid(), .cookie = (uint64_t)(uintptr_t)node->cookie };
	if (is_flat(send))
		offer.buf = (uint64_t)adi_block_at(send, 0) + (uint64_t)send->type->true_lb;
	memcpy(adi_node_data(node, comm->rank, sizeof offer), &offer, sizeof offer);
	adi_node_publish(comm, node, (size_t)bytes);
	return MPI_SUCCESS;
}

/* Reads this rank's block, and the cookie, in one call. Returns a negated errno value. */
static int pull(const struct node_state *node, const struct offer *offer, int rank, char *to, size_t bytes)
{
	uint64_t cookie[2] = { 0 };
	struct iovec here[2] = { { to, bytes }, { cookie, sizeof cookie } };
	struct iovec there[2] = { { (void *)(uintptr_t)(offer->buf + (uint64_t)rank * bytes), bytes },
				  { (void *)(uintptr_t)offer->cookie, sizeof cookie } };
	ssize_t n = process_vm_readv((pid_t)offer->pid, here, 2, there, 2, 0);
	if (n < 0)
		return -errno;
	return n == (ssize_t)(bytes + sizeof cookie) && !memcmp(cookie, node->cookie, sizeof cookie) ? 0 : -EFAULT;
}

static enum state read_block(const struct adi_comm *comm, const struct node_state *node, int i, const struct adi_blocks *receive,
			     MPI_Count bytes)
{
	struct offer offer;
	memcpy(&offer, adi_node_data(node, i, sizeof offer), sizeof offer);
	if (!offer.buf || !is_flat(receive))
		return NOT_NOW;
	int error = pull(node, &offer, comm->rank, (char *)adi_block_at(receive, i) + receive->type->true_lb,
			 (size_t)bytes);
	if (error)
		hr_log(HR_LOG_INFO, "collectives of communicator %s copy through the segment: process_vm_readv: %s",
		       adi_comm_text(comm), strerror(-error));
	return error ? NEVER : READ;
}

/* Waits for the offers of the other ranks, and reads each rank's block when its offer has arrived. */
static int read_all(const struct adi_comm *comm, const struct node_state *node, const struct adi_blocks *receive, MPI_Count bytes,
		    enum state *worst)
{
	for (int step = 1; step < comm->size; step++) {
		int i = (comm->rank + step) % comm->size;
		int class = adi_node_await(comm, node, i, (size_t)bytes);
		if (class && class != MPI_ERR_TRUNCATE)
			return class;
		enum state state = class ? WRONG_BYTES : *worst == READ ? read_block(comm, node, i, receive, bytes) : *worst;
		*worst = state > *worst ? state : *worst;
	}
	return MPI_SUCCESS;
}

/* The worst state of all ranks. No rank uses the buffers of others afterwards. */
static int agree(const struct adi_comm *comm, struct node_state *node, enum state *worst)
{
	uint32_t word = *worst;
	int class = adi_node_begin(comm, node, sizeof word);
	if (class)
		return class;
	memcpy(adi_node_data(node, comm->rank, sizeof word), &word, sizeof word);
	adi_node_publish(comm, node, sizeof word);
	class = adi_node_await_all(comm, node, sizeof word);
	for (int i = 0; i < comm->size && !class; i++) {
		memcpy(&word, adi_node_data(node, i, sizeof word), sizeof word);
		if (word > (uint32_t)*worst)
			*worst = word < WRONG_BYTES ? (enum state)word : WRONG_BYTES;
	}
	return class;
}

int adi_node_alltoall_direct(struct adi_comm *comm, const struct adi_blocks *send, const struct adi_blocks *receive,
			     MPI_Count bytes, bool *done)
{
	struct node_state *node = comm->node;
	enum state worst = READ;
	*done = false;
	if (node->no_direct)
		return MPI_SUCCESS;
	int class = offer_blocks(comm, node, send, bytes);
	if (!class)
		class = adi_node_copy_own(send, comm->rank, receive, comm->rank);
	int other = class == MPI_ERR_PROC_ABORTED ? class : read_all(comm, node, receive, bytes, &worst);
	if (other)
		return other;
	other = agree(comm, node, &worst);
	class = class ? class : other;
	node->no_direct = worst == NEVER;
	*done = worst == READ || class;
	if (!class && worst == WRONG_BYTES)
		class = adi_error(MPI_ERR_TRUNCATE,
				  "the blocks of the ranks of communicator %s have different sizes; they must agree",
				  adi_comm_text(comm));
	return class;
}
