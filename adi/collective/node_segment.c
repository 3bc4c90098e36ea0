/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the shared segment of a communicator. Rank 0 makes a memfd and tells the others its process, descriptor and a random
 * cookie; they open it through /proc. If any rank fails (another process namespace, no memfd, no memory), no rank uses a segment.
 * Then the ranks exchange their machines, for collectives in two levels.
 */
#include "config.h"

#include "adi/collective/node.h"
#include "adi/collective/two_level.h"

#include "headrace/channel.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Collectives that a communicator does with messages first: many are freed after one or two. */
#define FIRST_CALLS 2

struct offer {
	uint64_t cookie[2];
	struct adi_machine machine;
	int64_t pid;
	int64_t fd; /* -1: rank 0 has no segment */
	int64_t oversubscribed;
};

static size_t bytes_of(int ranks)
{
	return sizeof(struct node_shared) + (size_t)ranks * (sizeof(struct node_member) + NODE_DATA);
}

static void unmap(struct node_state *node)
{
	if (node->shared)
		munmap(node->shared, node->bytes);
	node->shared = NULL;
}

static int map(struct node_state *node, int fd, int ranks)
{
	void *memory = mmap(NULL, node->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	node->shared = memory;
	node->chunks = (char *)&node->shared->member[ranks];
	return 0;
}

static int make_offer(struct node_state *node, struct offer *offer, int ranks)
{
	int fd = memfd_create("headrace-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING), error;
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)node->bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		error = -errno;
	else
		error = map(node, fd, ranks);
	if (!error && getrandom(offer->cookie, sizeof offer->cookie, 0) != sizeof offer->cookie)
		error = -EIO;
	if (error) {
		close(fd);
		return error;
	}
	memcpy(node->shared->cookie, offer->cookie, sizeof offer->cookie);
	offer->pid = getpid();
	offer->fd = fd;
	return 0;
}

/* The number of the process could mean another one here: so size and cookie are compared. */
static int take_offer(struct node_state *node, const struct offer *offer, int ranks)
{
	char path[64];
	struct stat status;
	if (offer->fd < 0 || !adi_machine_same(&offer->machine, &adi_job.machine))
		return -ENODEV;
	snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)offer->pid, (long long)offer->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int error = fstat(fd, &status) ? -errno : 0;
	if (!error && (!S_ISREG(status.st_mode) || status.st_size != (off_t)node->bytes))
		error = -ESTALE;
	if (!error)
		error = map(node, fd, ranks);
	if (!error && memcmp(node->shared->cookie, offer->cookie, sizeof offer->cookie))
		error = -ESTALE;
	close(fd);
	return error;
}

/* So that deaths are noticed: see node.h. */
static int open_connections(const struct adi_comm *comm)
{
	for (int i = 0; i < (comm->rank ? 1 : comm->size); i++) {
		struct adi_peer *peer = &adi_job.peer[adi_comm_world(comm, i)];
		int error = peer->error;
		if (!error && peer->vc)
			error = ch3_vc_open(peer->vc);
		if (error)
			return error;
	}
	return 0;
}

/* All ranks must agree on whether the machines are known, and from which nonblocking collective on: some ranks may have started
 * more of them than others, and these have one level. */
static int find_levels(struct adi_comm *comm, struct node_state *node)
{
	struct adi_levels *levels;
	int class = adi_levels_make(comm, &levels);
	int64_t most[2] = { class, comm->collectives[false] };
	int last = adi_allreduce_max(most, 2, comm);
	node->levels = levels;
	node->levels_from = (uint32_t)most[1];
	return class ? class : last ? last : (int)most[0];
}

static int share(struct adi_comm *comm, struct node_state *node)
{
	struct offer offer = { .machine = adi_job.machine, .fd = -1, .oversubscribed = adi_job.oversubscribed };
	bool possible = comm->size <= NODE_RANKS_MAX && hr_channel_conn_bytes(ch3_channel(adi_job.engine), HR_TRANSPORT_SHM);
	int error = possible ? 0 : -ENODEV;
	node->bytes = bytes_of(comm->size);
	if (!error && comm->rank == 0)
		error = make_offer(node, &offer, comm->size);
	int class = adi_bcast(&offer, sizeof offer, 0, comm);
	node->oversubscribed = offer.oversubscribed;
	if (!class && !error && comm->rank != 0)
		error = take_offer(node, &offer, comm->size);
	int64_t failed = error || class;
	int last = adi_allreduce_max(&failed, 1, comm);
	if (offer.fd >= 0 && comm->rank == 0)
		close((int)offer.fd);
	if (error)
		hr_log(HR_LOG_INFO, "collectives of communicator %s use messages, not shared memory: %s", adi_comm_text(comm),
		       strerror(-error));
	node->state = failed ? NODE_NEVER : NODE_SHARED;
	memcpy(node->cookie, offer.cookie, sizeof node->cookie);
	if (class || last)
		return class ? class : last;
	return failed ? find_levels(comm, node) : adi_class(open_connections(comm));
}

void adi_node_make(struct adi_comm *comm, struct node_state *node)
{
	if (node->calls++ < FIRST_CALLS)
		return;
	if (share(comm, node) == MPI_SUCCESS) {
		if (node->state == NODE_NEVER)
			unmap(node);
		return;
	}
	/* Other ranks may have succeeded: they must not wait for this one. */
	if (node->shared)
		atomic_store_explicit(&node->shared->broken, NODE_GIVEN_UP, memory_order_relaxed);
	unmap(node);
	adi_levels_free(node->levels);
	node->levels = NULL;
	node->state = NODE_BROKEN;
}

struct node_state *adi_node_find(struct adi_comm *comm)
{
	struct node_state *node = calloc(1, sizeof *node);
	/* The others would wait for this rank in a segment that it cannot use. */
	if (!node)
		adi_abort(MPI_ERR_NO_MEM, "no memory for a communicator");
	node->state = comm->inter || comm->size < 2 ? NODE_NEVER : NODE_FIRST_CALLS;
	node->next_root = -1;
	comm->node = node;
	return node;
}

void adi_node_end(struct adi_comm *comm)
{
	struct node_state *node = comm->node;
	comm->node = NULL;
	if (!node)
		return;
	unmap(node);
	adi_levels_free(node->levels);
	free(node);
}
