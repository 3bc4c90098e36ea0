/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host functions and host memory of executable graphs. The worker's graph calls the worker where the program's graph has a
 * host function, or reads or writes memory of the host. The worker then sends a HOST packet with the id of the entry, as for
 * host functions of streams (hostfn.c). So a copy reads its source, and writes its destination, when the graph has come to
 * it. Each launch allows the worker to name each entry once: a server cannot touch memory of a graph that does not run.
 */
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/graph/graph_client.h"
#include "cuda_remote/client/hostfn.h"
#include "cuda_remote/client/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum kind { HOST_FUNCTION, HOST_COPY, HOST_READ, HOST_WRITE };

struct rc_graph_host {
	struct rc_graph_host *next;     /* of the table's bucket */
	struct rc_graph_host *older;    /* of the executable graph's */
	uint64_t id;
	struct rc_session *session;
	uint32_t node;                  /* number of the graph's node */
	enum kind kind;
	CUhostFn function;
	void *argument;
	struct rc_graph_side to, from;
	uint64_t width, height, depth;
	uint64_t launches;              /* that have not come to it */
	bool running;                   /* one has, and is being served; the entry stays */
	bool disabled;                  /* launches skip it */
	bool retired;                   /* no further launch */
};

#define BUCKETS 1024 /* a power of two: the bits of ids in wire.h do not matter */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rc_graph_host *buckets[BUCKETS];
static pthread_cond_t served = PTHREAD_COND_INITIALIZER;
static uint64_t last_id;
static uint64_t unfinished; /* launches of all entries; atomic */

bool rc_graph_host_any(void)
{
	/* Acquire pairs with the release in rc_graph_host_run: what a function wrote is seen. */
	return __atomic_load_n(&unfinished, __ATOMIC_ACQUIRE) > 0;
}

static CUresult add(rc_graph_hosts_t *hosts, const struct rc_graph_host *what, uint64_t *id)
{
	struct rc_graph_host *host = malloc(sizeof *host);
	bool copies = what->kind != HOST_FUNCTION;
	CUresult result = copies ? rc_host_start_both(what->session) : rc_host_start(what->session);
	if (!host || result != CUDA_SUCCESS) {
		free(host);
		return host ? result : CUDA_ERROR_OUT_OF_MEMORY;
	}
	*host = *what;
	pthread_mutex_lock(&lock);
	*id = host->id = RC_HOST_OF_GRAPH | (copies ? RC_HOST_COPY : 0) | ++last_id;
	host->next = buckets[last_id % BUCKETS];
	buckets[last_id % BUCKETS] = host;
	host->older = hosts->first;
	hosts->first = host;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult rc_graph_host_function(rc_graph_hosts_t *hosts, struct rc_session *session, uint32_t node, CUhostFn function,
				void *argument, uint64_t *id)
{
	return add(hosts, &(struct rc_graph_host){ .session = session, .node = node, .kind = HOST_FUNCTION,
						   .function = function, .argument = argument }, id);
}

CUresult rc_graph_host_copy(rc_graph_hosts_t *hosts, struct rc_session *session, uint32_t node,
			    const CUDA_MEMCPY3D *copy, const struct rc_graph_side *to, const struct rc_graph_side *from,
			    bool disabled, uint64_t *id)
{
	enum kind kind = to->host && from->host ? HOST_COPY : from->host ? HOST_READ : HOST_WRITE;
	return add(hosts, &(struct rc_graph_host){ .session = session, .node = node, .kind = kind, .to = *to, .from = *from,
						   .width = copy->WidthInBytes, .height = copy->Height,
						   .depth = copy->Depth, .disabled = disabled }, id);
}

static void remove_and_free(struct rc_graph_host *host)
{
	struct rc_graph_host **at = &buckets[host->id % BUCKETS];
	while (*at != host)
		at = &(*at)->next;
	*at = host->next;
	free(host);
}

static void hosts_count(rc_graph_hosts_t *hosts, bool up)
{
	pthread_mutex_lock(&lock);
	for (struct rc_graph_host *host = hosts->first; host; host = host->older) {
		if (host->disabled || (!up && !host->launches)) /* the session was lost meanwhile */
			continue;
		host->launches += up ? 1 : (uint64_t)-1;
		__atomic_add_fetch(&unfinished, up ? 1 : (uint64_t)-1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
}

void rc_graph_hosts_launch(rc_graph_hosts_t *hosts)
{
	if (hosts->first)
		hosts_count(hosts, true);
}

void rc_graph_hosts_not_launched(rc_graph_hosts_t *hosts)
{
	if (hosts->first)
		hosts_count(hosts, false);
}

/* An entry that launches have not come to yet is freed when the last of them has. Under the lock. */
static void retire(struct rc_graph_host *host)
{
	host->retired = true;
	if (!host->launches)
		remove_and_free(host);
}

void rc_graph_hosts_retire(rc_graph_hosts_t *hosts, uint32_t node)
{
	bool newest = true;
	pthread_mutex_lock(&lock);
	for (struct rc_graph_host **at = &hosts->first; *at;) {
		struct rc_graph_host *host = *at;
		if (host->node != node || newest) {
			newest = newest && host->node != node;
			at = &host->older;
			continue;
		}
		*at = host->older;
		retire(host);
	}
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static void retire_list(struct rc_graph_host *host)
{
	for (struct rc_graph_host *older; host; host = older) {
		older = host->older;
		retire(host);
	}
}

void rc_graph_hosts_retire_from(rc_graph_hosts_t *hosts, struct rc_graph_host *newest)
{
	pthread_mutex_lock(&lock);
	struct rc_graph_host **at = &hosts->first;
	while (*at != newest)
		at = &(*at)->older;
	*at = NULL;
	retire_list(newest);
	pthread_mutex_unlock(&lock);
}

void rc_graph_hosts_undo(rc_graph_hosts_t *hosts, const struct rc_graph_host *before)
{
	pthread_mutex_lock(&lock);
	while (hosts->first != before) {
		struct rc_graph_host *host = hosts->first;
		hosts->first = host->older;
		retire(host);
	}
	pthread_mutex_unlock(&lock);
}

void rc_graph_hosts_end(rc_graph_hosts_t *hosts)
{
	pthread_mutex_lock(&lock);
	retire_list(hosts->first);
	hosts->first = NULL;
	pthread_mutex_unlock(&lock);
}

/* ---- what the worker asks for ---- */

static struct rc_graph_host *find(const struct rc_session *session, uint64_t id)
{
	struct rc_graph_host *host = buckets[id % BUCKETS];
	while (host && host->id != id)
		host = host->next;
	return host && host->session == session && host->launches ? host : NULL;
}

static uint64_t bytes_of(const struct rc_graph_host *host)
{
	return host->width * host->height * host->depth;
}

bool rc_graph_host_expects(const struct rc_session *session, uint64_t id, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	const struct rc_graph_host *host = find(session, id);
	bool expects = host && (host->kind == HOST_WRITE ? bytes == bytes_of(host) : !bytes);
	pthread_mutex_unlock(&lock);
	return expects;
}

static uint8_t *row_of(const struct rc_graph_side *side, uint64_t y, uint64_t z)
{
	const struct rc_wire_side *at = &side->wire;
	return (uint8_t *)(uintptr_t)(at->address + ((at->z + z) * at->height + at->y + y) * at->pitch + at->x);
}

/* Copies rows; a side that is NULL is the packed bytes instead. */
static void copy_rows(const struct rc_graph_host *host, bool to_packed, bool from_packed, uint8_t *packed)
{
	for (uint64_t z = 0; z < host->depth; z++)
		for (uint64_t y = 0; y < host->height; y++) {
			uint8_t *to = to_packed ? packed : row_of(&host->to, y, z);
			const uint8_t *from = from_packed ? packed : row_of(&host->from, y, z);
			memmove(to, from, host->width);
			packed += to_packed || from_packed ? host->width : 0;
		}
}

/* Takes an entry that a launch has come to. NULL: none, or the server names it once more than it may. */
static struct rc_graph_host *begin(const struct rc_session *session, uint64_t id)
{
	pthread_mutex_lock(&lock);
	struct rc_graph_host *host = find(session, id);
	if (host && host->running)
		host = NULL;
	if (host)
		host->running = true;
	pthread_mutex_unlock(&lock);
	return host;
}

/* Release pairs with the acquire in rc_graph_host_any. */
static void finish(struct rc_graph_host *host)
{
	pthread_mutex_lock(&lock);
	host->running = false;
	if (!--host->launches && host->retired)
		remove_and_free(host);
	pthread_cond_broadcast(&served);
	pthread_mutex_unlock(&lock);
	__atomic_sub_fetch(&unfinished, 1, __ATOMIC_RELEASE);
}

int rc_graph_host_run(const struct rc_session *session, uint64_t id, uint8_t *bytes, uint8_t **answer, size_t *len)
{
	struct rc_graph_host *host = begin(session, id);
	*answer = NULL;
	*len = 0;
	if (!host)
		return -1;
	bool enough = host->kind != HOST_READ || (*answer = malloc(bytes_of(host) + 1));
	if (host->kind == HOST_FUNCTION) {
		graph_driver_in_callback(true);
		host->function(host->argument);
		graph_driver_in_callback(false);
	} else if (host->kind == HOST_COPY) {
		copy_rows(host, false, false, NULL);
	} else if (host->kind == HOST_READ && enough) {
		*len = bytes_of(host);
		copy_rows(host, true, false, *answer);
	} else if (bytes) {
		copy_rows(host, false, true, bytes);
	}
	finish(host);
	return enough ? 0 : -1;
}

/* An entry that is being served ends by itself. */
void rc_graph_host_session_lost(const struct rc_session *session)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < BUCKETS; i++)
		for (struct rc_graph_host *host = buckets[i], *next; host; host = next) {
			next = host->next;
			uint64_t keep = host->running ? 1 : 0;
			if (host->session != session || host->launches <= keep)
				continue;
			__atomic_sub_fetch(&unfinished, host->launches - keep, __ATOMIC_RELAXED);
			host->launches = keep;
			if (host->retired && !keep)
				remove_and_free(host);
		}
	pthread_mutex_unlock(&lock);
}

/* ---- memory that the program frees ---- */

static bool side_overlaps(const struct rc_graph_host *host, const struct rc_graph_side *side, uint64_t address, uint64_t size)
{
	uint64_t first = (uint64_t)(uintptr_t)row_of(side, 0, 0);
	uint64_t end = (uint64_t)(uintptr_t)row_of(side, host->height - 1, host->depth - 1) + host->width;
	return side->host && first < address + size && address < end;
}

/* An entry that launches have not come to, with memory of the range. Under the lock. */
static struct rc_graph_host *user_of(uint64_t address, uint64_t size)
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct rc_graph_host *host = buckets[i]; host; host = host->next)
			if (host->launches && host->kind != HOST_FUNCTION &&
			    (side_overlaps(host, &host->to, address, size) || side_overlaps(host, &host->from, address, size)))
				return host;
	return NULL;
}

bool rc_graph_host_pending(uint64_t address, uint64_t size)
{
	if (!rc_graph_host_any())
		return false;
	pthread_mutex_lock(&lock);
	bool found = user_of(address, size);
	pthread_mutex_unlock(&lock);
	return found;
}

void rc_graph_host_forget(uint64_t address, uint64_t size)
{
	struct rc_graph_host *host;
	pthread_mutex_lock(&lock);
	while ((host = user_of(address, size))) {
		if (host->running) {
			pthread_cond_wait(&served, &lock);
			continue;
		}
		__atomic_sub_fetch(&unfinished, host->launches, __ATOMIC_RELEASE);
		host->launches = 0;
		if (host->retired)
			remove_and_free(host);
	}
	pthread_mutex_unlock(&lock);
}
