/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles: the objects behind CUcontext, CUstream and so on. All live in equal slots of one reserved range of address
 * space, so that any value a program passes can be checked without touching memory that is not ours: it must be the
 * address of a slot, and the slot must hold a live object of the kind wanted. Slots are reused oldest first, so that a
 * handle used after its destruction is found out, as a rule.
 */
#ifndef SOFTGPU_HANDLE_H
#define SOFTGPU_HANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANDLE_SLOT_BYTES 512

enum handle_kind {
	HANDLE_NONE, HANDLE_CONTEXT, HANDLE_STREAM, HANDLE_EVENT, HANDLE_MODULE, HANDLE_FUNCTION, HANDLE_LIBRARY,
	HANDLE_KERNEL, HANDLE_POOL, HANDLE_LINK,
	HANDLE_MEMORY,
	HANDLE_GRAPH, HANDLE_GRAPH_NODE, HANDLE_GRAPH_EXEC, HANDLE_USER_OBJECT,
	HANDLE_GREEN_CONTEXT, HANDLE_RESOURCE_DESCRIPTOR, HANDLE_NOTIFICATION,
	HANDLE_ARRAY, HANDLE_MIPMAP, HANDLE_TEXTURE, HANDLE_TEXTURE_REFERENCE, HANDLE_SURFACE_REFERENCE,
};

/* First member of every object. */
typedef struct handle {
	uint32_t kind;       /* HANDLE_NONE once destroyed; read and written atomically */
	uint32_t reserved;
	struct handle *next; /* of the free slots */
} handle_t;

/* A zeroed object of size bytes (at most a slot). NULL: no memory. Any thread. */
void *handle_new(enum handle_kind kind, size_t size);

/*
 * From now on handle_valid is false; the slot stays with the caller until handle_release. False if it was so already.
 */
bool handle_retire(void *object);

/* Gives the slot of a retired object back. */
void handle_release(void *object);

/* True if pointer is a live object of this kind; pointer may be anything. */
bool handle_valid(const void *pointer, enum handle_kind kind);

#endif
