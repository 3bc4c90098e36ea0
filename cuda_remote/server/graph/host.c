/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host functions and host memory of graphs. Each node that needs the client is a place, which lives as long as the executable
 * graph and its launches. A change of the node gives the place a new version; launches that began before the change use the
 * earlier ones. The driver runs the launches of an executable graph one after another: when a version runs, or is skipped, the
 * earlier versions are not in use any more.
 *
 * The memory of a copy is pinned: a driver may read pageable memory when the graph is launched, which is before the client has
 * filled it. Versions are freed on threads of the driver too, where no driver function may be called. So a freed version's memory
 * waits, and a later version is made in it or ends its pinning.
 */
#include "cuda_remote/server/graph/graph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct host_version {
	struct host_version *older;
	uint64_t function; /* the client's id */
	uint64_t bytes;
	uint64_t born;     /* launches of the executable graph before the version */
	bool read;
	struct host_memory *memory; /* NULL: no bytes */
};

/* Pinned memory of a version. */
struct host_memory {
	struct host_memory *next; /* in the list of those that wait */
	struct server_slot area;
};

struct host_place {
	struct host_place *next;
	struct host_version *now; /* the newest version */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all versions' lists */
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static struct host_memory *freed; /* under memory_lock, as the next two */
static size_t freed_bytes;
static bool ending;                    /* a thread ends memory */
#define FREED_BYTES ((size_t)64 << 20) /* if more was freed, the next version has it ended */

static void memory_end(struct host_memory *memory)
{
	server_slot_unlist(&memory->area);
	munmap(memory->area.memory, memory->area.size);
	free(memory);
}

/* Takes a memory of this size that was freed and is pinned in the current context. NULL: none. The list *unused: what to end. */
static struct host_memory *memory_take(size_t size, CUcontext current, struct host_memory **unused)
{
	struct host_memory *found = NULL;
	pthread_mutex_lock(&memory_lock);
	bool full = freed_bytes > (ending ? server_limit(SERVER_LIMIT_ARGUMENTS) : FREED_BYTES);
	for (struct host_memory **at = &freed; *at;) {
		struct host_memory *memory = *at;
		bool fits = !found && memory->area.size == size && memory->area.pinned == current &&
			    server_slot_is_pinned(&memory->area);
		if (!fits && !full && server_slot_is_pinned(&memory->area)) {
			at = &memory->next;
			continue;
		}
		*at = memory->next;
		freed_bytes -= memory->area.size;
		memory->next = fits ? NULL : *unused;
		*(fits ? &found : unused) = memory;
	}
	pthread_mutex_unlock(&memory_lock);
	return found;
}

static void end_all(struct host_memory *list)
{
	for (struct host_memory *next; list; list = next) {
		next = list->next;
		memory_end(list);
	}
}

static void *end_apart(void *list)
{
	/* The driver takes memory out of its list in a current context. */
	(void)driver.cuCtxSetCurrent(__atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED));
	end_all(list);
	(void)driver.cuCtxSetCurrent(NULL);
	pthread_mutex_lock(&memory_lock);
	ending = false;
	pthread_mutex_unlock(&memory_lock);
	return NULL;
}

/* False: there is a thread that ends memory, or there can be none. */
static bool start_end(struct host_memory *list)
{
	pthread_t thread;
	pthread_attr_t attr;
	pthread_mutex_lock(&memory_lock);
	bool first = !ending;
	ending = true;
	pthread_mutex_unlock(&memory_lock);
	if (!first)
		return false;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	bool started = !pthread_create(&thread, &attr, end_apart, list);
	pthread_attr_destroy(&attr);
	pthread_mutex_lock(&memory_lock);
	ending &= started;
	pthread_mutex_unlock(&memory_lock);
	return started;
}

/* The driver waits for the context's work before it ends a pinning, and that work may wait for a later call. So what was freed is
 * kept, up to a limit, and then ended by a thread. If that thread has to wait, more is kept; up to the session's limit. */
static struct host_memory *memory_again(size_t size, CUcontext current)
{
	struct host_memory *unused = NULL, *found = memory_take(size, current, &unused);
	if (unused && !start_end(unused))
		end_all(unused);
	return found;
}

static CUresult memory_new(uint64_t bytes, struct host_memory **made)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
	CUcontext current;
	CUresult result = driver.cuCtxGetCurrent(&current);
	if (result != CUDA_SUCCESS)
		return result;
	struct host_memory *memory = memory_again(size, current);
	if (memory) {
		memset(memory->area.memory, 0, size);
		*made = memory;
		return CUDA_SUCCESS;
	}
	memory = calloc(1, sizeof *memory);
	void *place = memory ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
	result = place == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : server_slot_list(&memory->area, place, size);
	if (result == CUDA_SUCCESS) {
		*made = memory;
		return CUDA_SUCCESS;
	}
	if (place != MAP_FAILED)
		munmap(place, size);
	free(memory);
	return result;
}

/* Any thread. */
static void memory_free(struct host_memory *memory)
{
	if (!memory)
		return;
	pthread_mutex_lock(&memory_lock);
	memory->next = freed;
	freed = memory;
	freed_bytes += memory->area.size;
	pthread_mutex_unlock(&memory_lock);
}

/* What counts against the session's limit: whole pages. */
static size_t counted(uint64_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return (bytes + page - 1) / page * page;
}

CUresult host_version_new(uint64_t function, uint64_t bytes, bool read, struct host_version **made)
{
	if (bytes && !server_limit_take(SERVER_LIMIT_ARGUMENTS, counted(bytes)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct host_version *version = calloc(1, sizeof *version);
	CUresult result = version ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (version && bytes)
		result = memory_new(bytes, &version->memory);
	if (result != CUDA_SUCCESS) {
		free(version);
		server_limit_return(SERVER_LIMIT_ARGUMENTS, counted(bytes));
		return result;
	}
	version->function = function;
	version->bytes = bytes;
	version->read = read;
	*made = version;
	return CUDA_SUCCESS;
}

void host_version_free(struct host_version *version)
{
	for (struct host_version *older; version; version = older) {
		older = version->older;
		server_limit_return(SERVER_LIMIT_ARGUMENTS, counted(version->bytes));
		memory_free(version->memory);
		free(version);
	}
}

void *host_version_memory(struct host_version *version)
{
	return version->memory->area.memory;
}

void host_skip(void *argument)
{
	struct host_version *version = argument;
	pthread_mutex_lock(&lock);
	struct host_version *older = version->older;
	version->older = NULL;
	pthread_mutex_unlock(&lock);
	host_version_free(older);
}

void host_run(void *argument)
{
	struct host_version *version = argument;
	host_skip(version);
	uint8_t *memory = version->bytes ? host_version_memory(version) : NULL;
	server_host_ask(version->function, version->read ? NULL : memory, version->read ? memory : NULL, version->bytes);
}

CUresult host_place_new(struct host_place **list, struct host_version *version, struct host_place **made)
{
	struct host_place *place = calloc(1, sizeof *place);
	if (!place)
		return CUDA_ERROR_OUT_OF_MEMORY;
	place->now = version;
	place->next = *list;
	*list = *made = place;
	return CUDA_SUCCESS;
}

void host_place_born(struct host_place *place, uint64_t launches)
{
	pthread_mutex_lock(&lock);
	place->now->born = launches;
	pthread_mutex_unlock(&lock);
}

void host_place_change(struct host_place *place, struct host_version *version, uint64_t launches, bool replaced)
{
	pthread_mutex_lock(&lock);
	struct host_version *before = place->now, *unused = NULL;
	version->born = launches;
	version->older = before;
	if (replaced && before->born == launches) { /* no launch has used it */
		version->older = before->older;
		before->older = NULL;
		unused = before;
	}
	place->now = version;
	pthread_mutex_unlock(&lock);
	host_version_free(unused);
}

static void free_all(void *list)
{
	for (struct host_place *place = list, *next; place; place = next) {
		next = place->next;
		host_version_free(place->now);
		free(place);
	}
}

CUresult host_places_keep(CUgraph graph, struct host_place **list, CUuserObject *keeper)
{
	CUuserObject object;
	if (!*list)
		return CUDA_SUCCESS;
	if (!driver.cuUserObjectCreate || !driver.cuUserObjectRelease || !driver.cuGraphRetainUserObject)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuUserObjectCreate(&object, *list, free_all, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	if (result != CUDA_SUCCESS)
		return result;
	*list = NULL;
	result = driver.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
	if (result != CUDA_SUCCESS)
		driver.cuUserObjectRelease(object, 1);
	else
		*keeper = object;
	return result;
}

void host_places_drop(struct host_place **list)
{
	free_all(*list);
	*list = NULL;
}
