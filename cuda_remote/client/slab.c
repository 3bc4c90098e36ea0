/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small managed and pinned memory on servers of this host. To pass memory to a worker takes a memfd, two mappings and
 * the registration with the worker's driver. So small allocations are parts of larger memory, the slabs, which are
 * passed once. A driver that checks the bounds of each registered range, as the software GPU does, gets each allocation
 * by itself.
 */
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/window.h"

#include <pthread.h>
#include <stdlib.h>

#define GRANULE 512                     /* drivers align allocations to it */
#define PAGE ((uint64_t)2 << 20)        /* of a slab: shared by smaller allocations */
#define LARGEST ((uint64_t)1 << 20)     /* allocation that is part of a slab */
#define SLAB_MOST ((uint64_t)32 << 20)  /* bytes of a slab */
#define UNUSED_MOST SLAB_MOST           /* bytes of slabs without an allocation that are kept */

struct rc_slab {
	struct rc_slab *next;
	struct rc_span memory;   /* as an allocation of its own, which is in no table */
	struct rc_window window; /* which addresses of it are in use */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rc_slab *slabs;  /* the last made first */
static uint64_t unused;        /* bytes of slabs without an allocation */
static bool refused;           /* the workers did not take a slab: no more are made */

static uint64_t rounded(uint64_t size)
{
	return (size + GRANULE - 1) / GRANULE * GRANULE;
}

static void slab_end(struct rc_slab *slab)
{
	rc_pinned_end_unused(&slab->memory); /* the ends of the allocations have waited for work */
	rc_window_close(&slab->window);
	free(slab);
}

/* Under the lock. NULL: there is no memory, or a worker does not take a slab of this size. */
static struct rc_slab *slab_new(uint64_t size)
{
	struct rc_slab *slab = calloc(1, sizeof *slab);
	if (!slab)
		return NULL;
	slab->memory = (struct rc_span){ .size = size, .kind = RC_MEMORY_MANAGED };
	if (rc_pinned_make_divisible(&slab->memory) != CUDA_SUCCESS) {
		free(slab);
		return NULL;
	}
	slab->window = (struct rc_window){ .base = slab->memory.base, .bytes = slab->memory.size, .granule = GRANULE,
					   .small = LARGEST, .page = PAGE, .unit = GRANULE };
	if (rc_window_open(&slab->window)) {
		slab->window = (struct rc_window){ 0 };
		slab_end(slab);
		return NULL;
	}
	slab->next = slabs;
	slabs = slab;
	unused += slab->memory.size;
	return slab;
}

/* Each slab is twice as large as the one before, as long as the workers take it. Under the lock. */
static struct rc_slab *slab_add(void)
{
	uint64_t size = slabs ? 2 * slabs->memory.size : PAGE;
	struct rc_slab *slab = slab_new(size < SLAB_MOST ? size : SLAB_MOST);
	if (!slab && size > PAGE)
		slab = slab_new(PAGE);
	refused = !slab;
	return slab;
}

/* Parts of a slab that a lost session shares are not given back, so no more are taken. Under the lock. */
static uint64_t take_from(struct rc_slab *slab, uint64_t size)
{
	return rc_pinned_any_lost(&slab->memory) ? 0 : rc_window_take(&slab->window, size);
}

bool rc_slab_take(struct rc_span *span)
{
	uint64_t size = rounded(span->size), address = 0;
	if (!size || size > LARGEST)
		return false;
	pthread_mutex_lock(&lock);
	struct rc_slab *slab = slabs;
	while (slab && !(address = take_from(slab, size)))
		slab = slab->next;
	if (!slab && !refused && (slab = slab_add()))
		address = take_from(slab, size);
	if (address && slab->window.used == size)
		unused -= slab->memory.size;
	pthread_mutex_unlock(&lock);
	if (!address)
		return false;
	span->base = address;
	span->slab = slab;
	span->pinned = slab->memory.pinned;
	span->shared_with = slab->memory.shared_with;
	span->mapped_by = slab->memory.mapped_by;
	span->place = 0;
	return true;
}

void rc_slab_give(const struct rc_span *span)
{
	struct rc_slab *slab = span->slab, **at = &slabs;
	pthread_mutex_lock(&lock);
	rc_window_give(&slab->window, span->base, rounded(span->size));
	bool ends = !slab->window.used && unused + slab->memory.size > UNUSED_MOST;
	if (!slab->window.used && !ends)
		unused += slab->memory.size;
	while (ends && *at != slab)
		at = &(*at)->next;
	if (ends)
		*at = slab->next;
	pthread_mutex_unlock(&lock);
	if (ends)
		slab_end(slab);
}

bool rc_slab_end_unused(void)
{
	struct rc_slab *ended = NULL;
	pthread_mutex_lock(&lock);
	for (struct rc_slab **at = &slabs; *at;) {
		struct rc_slab *slab = *at;
		if (slab->window.used) {
			at = &slab->next;
			continue;
		}
		*at = slab->next;
		slab->next = ended;
		ended = slab;
	}
	unused = 0;
	pthread_mutex_unlock(&lock);
	bool any = ended;
	while (ended) {
		struct rc_slab *next = ended->next;
		slab_end(ended);
		ended = next;
	}
	return any;
}

uint64_t rc_slab_base(const struct rc_span *span)
{
	return span->slab->memory.base;
}
