/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that a context owns: events, arrays, textures and surfaces, modules, mappings of other processes' memory, and
 * memory of graphs. Each such object contains an owned_t with the function that destroys it. When the context is
 * destroyed, it destroys what is left, in the order of enum owned_kind. The context itself knows no kind of object.
 *
 * One lock guards each list. Any thread may call anything here except owned_list_init and owned_destroy_all.
 */
#ifndef SOFTGPU_OWNED_H
#define SOFTGPU_OWNED_H

#include "cuda_remote/softgpu/driver/queue/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The order of destruction: a module's memory goes after the textures that were bound to it. */
enum owned_kind { OWNED_EVENT, OWNED_TEXTURE, OWNED_MODULE, OWNED_MAPPING, OWNED_GRAPH_MEMORY, OWNED_KINDS };

typedef struct owned {
	struct owned *previous, *next; /* in the list, under its lock */
	struct owned_list *list;       /* NULL: not owned (any more) */
	enum owned_kind kind;
	/* Destroys the object, which is in no list any more. */
	void (*destroy)(struct owned *owned);
} owned_t;

/* A context's objects. */
typedef struct owned_list {
	pthread_mutex_t lock;
	queue_group_t *group; /* the context's streams */
	owned_t *first[OWNED_KINDS];
} owned_list_t;

/* The object that contains an owned_t as its member "owned". */
#define OWNER_OF(owned, type) ((type *)(void *)((char *)(owned) - offsetof(type, owned)))

void owned_list_init(owned_list_t *list, queue_group_t *group);

/* Adds an object to its context's list. */
void owned_add(owned_list_t *list, owned_t *owned, enum owned_kind kind, void (*destroy)(owned_t *owned));

/*
 * Takes the object out of its list, so that the caller may destroy it. False: another thread has taken it and destroys
 * it; the caller must leave the object alone.
 */
bool owned_take(owned_t *owned);

/* Takes the object, waits for all work of its context, then destroys it. */
void owned_destroy(owned_t *owned);

/* The context is being destroyed: destroys every object. No other thread adds objects any more. */
void owned_destroy_all(owned_list_t *list);

#endif
