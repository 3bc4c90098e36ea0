/* SPDX-License-Identifier: BSD-3-Clause */
/* What a context owns beside streams, events and modules, and takes along when it goes: arrays, textures, surfaces. */
#ifndef SOFTGPU_OWNED_H
#define SOFTGPU_OWNED_H

#include "cuda_remote/softgpu/driver/context/context.h"

/* Part of each such object. */
typedef struct owned {
	struct owned *previous, *next; /* of the context's, under its lock */
	CUcontext context;
	/* Destroys the object; it is not among the context's any more, whose work is done. */
	void (*destroy)(struct owned *owned);
} owned_t;

/* The object that a part is in. */
#define OWNER_OF(owned, type) ((type *)(void *)((char *)(owned) - offsetof(type, owned)))

/* Puts an object among its context's; owned->context and ->destroy are set. */
void owned_add(owned_t *owned);
/* Waits for the context's work, takes the object out and destroys it. */
void owned_destroy(owned_t *owned);
/* When the context goes away. */
void owned_destroy_all(CUcontext context);

#endif
