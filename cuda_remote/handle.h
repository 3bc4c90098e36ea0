/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles: the objects behind CUcontext, CUstream and so on. All live in slots of equal size in one reserved range of
 * addresses. So any value that a program passes can be checked without reading foreign memory: it must be the address
 * of a slot, and the slot must hold a live object of the wanted kind. The slot that was freed first is reused first, so
 * that the use of a destroyed handle is usually detected.
 */
#ifndef RC_HANDLE_H
#define RC_HANDLE_H

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
	uint32_t kind;       /* enum handle_kind; HANDLE_NONE once retired; atomic */
	uint32_t reserved;
	struct handle *next; /* in the list of free slots */
} handle_t;

/* Returns a zeroed object of size bytes (at most HANDLE_SLOT_BYTES), or NULL: no memory. Any thread. */
void *handle_new(enum handle_kind kind, size_t size);

/*
 * Makes handle_valid return false for the object; the caller keeps the slot until handle_release. Returns false if the
 * object was retired before.
 */
bool handle_retire(void *object);

/* Frees the slot of a retired object. */
void handle_release(void *object);

/* True if pointer is a live object of this kind. pointer may have any value. */
bool handle_valid(const void *pointer, enum handle_kind kind);

#endif
