/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes: files that processes find each other's queues by, their locks and their memory. */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- locks ---- */

int vd_shared_lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	int error = pthread_mutexattr_init(&attr);
	if (error)
		return error;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	error = pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return error;
}

void vd_lock(pthread_mutex_t *lock)
{
	/* What a process that dies under a lock leaves is whole enough: every change becomes visible by the one store
	 * that ends it (a count, a state, a key). */
	int error = pthread_mutex_lock(lock);
	if (error == EOWNERDEAD)
		error = pthread_mutex_consistent(lock);
	if (error) {
		fprintf(stderr, "verbs double: lock: %s\n", strerror(error));
		abort();
	}
}

void vd_unlock(pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
}

/* ---- memory in the node ---- */

uint32_t vd_power_of_two(uint32_t at_least)
{
	uint32_t size = 1;
	while (size < at_least)
		size *= 2;
	return size;
}

static unsigned class_of(uint64_t bytes, uint64_t *rounded)
{
	unsigned class = 8; /* no smaller than 256 bytes */
	while ((1ull << class) < bytes)
		class++;
	*rounded = 1ull << class;
	return class;
}

uint64_t vd_arena_take(struct vd_context *context, uint64_t bytes)
{
	uint64_t rounded;
	unsigned class = class_of(bytes, &rounded);
	if (class >= VD_ARENA_CLASSES)
		return 0;
	uint64_t offset = context->arena_free[class];
	if (offset) {
		memcpy(&context->arena_free[class], vd_arena_at(context->node, offset), sizeof(uint64_t));
		return offset;
	}
	if (context->arena_used == 0)
		context->arena_used = 256; /* so that no block is at 0 */
	if (rounded > VD_ARENA_BYTES - context->arena_used)
		return 0;
	offset = context->arena_used;
	context->arena_used += rounded;
	return offset;
}

void vd_arena_give(struct vd_context *context, uint64_t offset, uint64_t bytes)
{
	uint64_t rounded;
	unsigned class = class_of(bytes, &rounded);
	if (!offset)
		return;
	memcpy(vd_arena_at(context->node, offset), &context->arena_free[class], sizeof(uint64_t));
	context->arena_free[class] = offset;
}

/* ---- our own node ---- */

/* A lock on the whole file that belongs to the process, not to its children: gone when the process is. */
static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

static bool is_owned(int fd)
{
	struct flock lock = whole_file();
	return fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* Nodes that this process has open: their locks do not show to the process itself, and closing any descriptor of such
 * a file would release them. */
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vd_context *own[VD_NODES];

/* Makes the file of node id if no living process has it. */
static int try_id(struct vd_context *context, unsigned id)
{
	snprintf(context->path, sizeof context->path, "%s/node-%u", context->set.dir, id);
	if (own[id])
		return EEXIST;
	int old = open(context->path, O_RDWR | O_CLOEXEC);
	if (old >= 0) {
		bool owned = is_owned(old);
		close(old);
		if (owned)
			return EEXIST;
		/* Its peers may still map the file of a dead process: they keep it, we get another. */
		unlink(context->path);
	}
	context->node_fd = open(context->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (context->node_fd < 0)
		return errno;
	struct flock lock = whole_file();
	if (ftruncate(context->node_fd, sizeof(struct vd_node)) < 0 || fcntl(context->node_fd, F_SETLK, &lock) < 0) {
		int error = errno;
		unlink(context->path);
		close(context->node_fd);
		return error;
	}
	return 0;
}

static int choose_id(struct vd_context *context, uint32_t *id)
{
	char name[160];
	if (mkdir(context->set.dir, 0700) < 0 && errno != EEXIST)
		return errno;
	snprintf(name, sizeof name, "%s/lock", context->set.dir);
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	int error = flock(fd, LOCK_EX) < 0 ? errno : EEXIST;
	for (*id = 1; error == EEXIST && *id < VD_NODES; ++*id) {
		error = try_id(context, *id);
		if (!error)
			break;
	}
	close(fd);
	return error == EEXIST ? ENOSPC : error;
}

static int fill_node(struct vd_context *context, uint32_t id)
{
	struct vd_node *node = context->node;
	int error = vd_shared_lock_init(&node->access);
	if (!error)
		error = vd_shared_lock_init(&node->async_lock);
	node->pid = getpid();
	node->id = id;
	node->device = context->device;
	memcpy(node->port_state, context->set.port_state, sizeof node->port_state);
	node->async_fd = VD_NOWHERE;
	/* Release: a peer that sees the size (vd_peer_get) sees what stands above. */
	__atomic_store_n(&node->size, sizeof *node, __ATOMIC_RELEASE);
	return error;
}

static int map_own(struct vd_context *context, uint32_t id)
{
	void *map = mmap(NULL, sizeof(struct vd_node), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 context->node_fd, 0);
	if (map == MAP_FAILED)
		return errno;
	context->node = map;
	int error = fill_node(context, id);
	if (error)
		munmap(map, sizeof *context->node);
	return error;
}

int vd_node_open(struct vd_context *context)
{
	/* Where the kernel lets only parents look into a process, allow it to the user's other processes. Fails where
	 * it is not needed. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	pthread_mutex_lock(&own_lock);
	uint32_t id = 0;
	int error = choose_id(context, &id);
	if (!error) {
		error = map_own(context, id);
		if (error) {
			unlink(context->path);
			close(context->node_fd);
		} else {
			own[id] = context;
		}
	}
	pthread_mutex_unlock(&own_lock);
	return error;
}

void vd_node_close(struct vd_context *context)
{
	pthread_mutex_lock(&own_lock);
	own[context->node->id] = NULL;
	unlink(context->path);
	munmap(context->node, sizeof *context->node);
	close(context->node_fd);
	pthread_mutex_unlock(&own_lock);
}

/* ---- peers' nodes ---- */

static struct vd_node *map_file(int fd)
{
	struct stat status;
	if (fstat(fd, &status) < 0 || status.st_size != sizeof(struct vd_node))
		return NULL;
	void *map = mmap(NULL, sizeof(struct vd_node), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (map == MAP_FAILED)
		return NULL;
	struct vd_node *node = map;
	/* Acquire: pairs with fill_node. */
	if (__atomic_load_n(&node->size, __ATOMIC_ACQUIRE) == sizeof *node)
		return node;
	munmap(map, sizeof *node);
	return NULL;
}

static struct vd_peer *add_peer(struct vd_context *context, struct vd_node *node, const struct stat *status)
{
	struct vd_peer *peer = node ? calloc(1, sizeof *peer) : NULL;
	if (!peer)
		return NULL;
	*peer = (struct vd_peer){ .next = context->peers, .node = node, .dev = status->st_dev, .ino = status->st_ino,
				  .users = 1 };
	context->peers = peer;
	return peer;
}

/* A node of this process is mapped once more, by the descriptor that its context holds. */
static struct vd_peer *get_own(struct vd_context *context, unsigned id)
{
	struct stat status;
	struct vd_context *other = own[id];
	if (fstat(other->node_fd, &status) < 0)
		return NULL;
	for (struct vd_peer *peer = context->peers; peer; peer = peer->next) {
		if (peer->dev == status.st_dev && peer->ino == status.st_ino) {
			peer->users++;
			return peer;
		}
	}
	return add_peer(context, map_file(other->node_fd), &status);
}

static struct vd_peer *get_other(struct vd_context *context, unsigned id)
{
	char name[160];
	struct stat status;
	snprintf(name, sizeof name, "%s/node-%u", context->set.dir, id);
	int fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	struct vd_peer *peer = NULL;
	if (!fstat(fd, &status)) {
		for (peer = context->peers; peer; peer = peer->next)
			if (peer->dev == status.st_dev && peer->ino == status.st_ino)
				break;
		if (peer)
			peer->users++;
		else if (is_owned(fd))
			peer = add_peer(context, map_file(fd), &status);
	}
	close(fd);
	return peer;
}

struct vd_peer *vd_peer_get(struct vd_context *context, uint32_t qp_number)
{
	unsigned id = qp_number / VD_QPS;
	if (id < 1 || id >= VD_NODES)
		return NULL;
	pthread_mutex_lock(&own_lock);
	struct vd_peer *peer = own[id] ? get_own(context, id) : get_other(context, id);
	pthread_mutex_unlock(&own_lock);
	return peer;
}

void vd_peer_put(struct vd_context *context, struct vd_peer *peer)
{
	if (--peer->users > 0)
		return;
	struct vd_peer **link = &context->peers;
	while (*link != peer)
		link = &(*link)->next;
	*link = peer->next;
	vd_forget_fds(peer);
	munmap(peer->node, sizeof *peer->node);
	free(peer);
}

bool vd_peer_is_gone(struct vd_context *context, const struct vd_peer *peer)
{
	char name[160];
	struct stat status;
	unsigned id = peer->node->id;
	pthread_mutex_lock(&own_lock);
	bool gone = true;
	if (own[id]) {
		gone = fstat(own[id]->node_fd, &status) < 0 || status.st_ino != peer->ino;
	} else {
		snprintf(name, sizeof name, "%s/node-%u", context->set.dir, id);
		int fd = open(name, O_RDWR | O_CLOEXEC);
		gone = fd < 0 || fstat(fd, &status) < 0 || status.st_ino != peer->ino || !is_owned(fd);
		if (fd >= 0)
			close(fd);
	}
	pthread_mutex_unlock(&own_lock);
	return gone;
}
