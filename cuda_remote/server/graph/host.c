/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host functions and host memory of graphs. Each node that needs the client is a place, which lives as long as the executable
 * graph and its launches. A change of the node gives the place a new version; launches that began before the change use the
 * earlier ones. The driver runs the launches of an executable graph one after another: when a version runs, or is skipped, the
 * earlier versions are not in use any more.
 */
#include "cuda_remote/server/graph/graph.h"

#include <stdlib.h>

struct host_version {
	struct host_version *older;
	uint64_t function; /* the client's id */
	uint64_t bytes;
	uint64_t born;     /* launches of the executable graph before the version */
	bool read;
	_Alignas(16) uint8_t memory[];
};

struct host_place {
	struct host_place *next;
	struct host_version *now; /* the newest version */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all versions' lists */

CUresult host_version_new(uint64_t function, uint64_t bytes, bool read, struct host_version **made)
{
	if (bytes && !server_limit_take(SERVER_LIMIT_ARGUMENTS, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct host_version *version = calloc(1, sizeof *version + bytes); /* the client may read all of it */
	if (!version) {
		server_limit_return(SERVER_LIMIT_ARGUMENTS, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
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
		server_limit_return(SERVER_LIMIT_ARGUMENTS, version->bytes);
		free(version);
	}
}

void *host_version_memory(struct host_version *version)
{
	return version->memory;
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
	server_host_ask(version->function, version->bytes && !version->read ? version->memory : NULL,
			version->bytes && version->read ? version->memory : NULL, version->bytes);
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

CUresult host_places_keep(CUgraph graph, struct host_place **list)
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
	return result;
}

void host_places_drop(struct host_place **list)
{
	free_all(*list);
	*list = NULL;
}
