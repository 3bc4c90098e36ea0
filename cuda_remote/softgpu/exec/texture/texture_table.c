/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of texture and surface objects: handle to image and sampler. */
#include "cuda_remote/softgpu/exec/texture/texture_table.h"

#include <pthread.h>
#include <stdlib.h>

#define INDEX_BITS 20 /* a million objects, CUDA's limit */
#define INDEX_MASK ((UINT64_C(1) << INDEX_BITS) - 1)

/* A handle is an index of slots and, above it, how often that slot was used before. */
static struct {
	pthread_mutex_t lock;
	struct texture *slots[INDEX_MASK + 1]; /* [0] stays empty; each is written once, read without the lock */
	uint64_t used;
	struct texture *first_free, *last_free;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct texture *new_slot(void)
{
	if (table.used == INDEX_MASK)
		return NULL;
	struct texture *texture = calloc(1, sizeof *texture);
	if (!texture)
		return NULL;
	uint64_t index = ++table.used;
	texture->next = NULL;
	/* Orders the zeroed texture before its slot; pairs with the acquire in slot_of. */
	__atomic_store_n(&table.slots[index], texture, __ATOMIC_RELEASE);
	texture->generation = index;
	return texture;
}

static struct texture *slot_of(uint64_t handle)
{
	/* Pairs with the release in new_slot. */
	struct texture *texture = __atomic_load_n(&table.slots[handle & INDEX_MASK], __ATOMIC_ACQUIRE);
	/* Relaxed: a thread that has the handle got it after it was stored here. */
	bool live = texture && handle && __atomic_load_n(&texture->handle, __ATOMIC_RELAXED) == handle;
	return live ? texture : NULL;
}

/* A texture not in use keeps in generation the handle that it gets next. */
uint64_t softgpu_texture_create(enum softgpu_texture_kind kind, void *user)
{
	pthread_mutex_lock(&table.lock);
	struct texture *texture = table.first_free;
	if (texture) {
		table.first_free = texture->next;
		if (!table.first_free)
			table.last_free = NULL;
	} else {
		texture = new_slot();
	}
	uint64_t handle = texture ? texture->generation : 0;
	if (texture) {
		texture->kind = kind;
		texture->user = user;
		texture->bound = false;
		__atomic_store_n(&texture->handle, handle, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&table.lock);
	return handle;
}

void softgpu_texture_bind(uint64_t handle, const softgpu_image_t *image, const softgpu_sampler_t *sampler)
{
	struct texture *texture = slot_of(handle);
	if (!texture)
		return;
	texture->bound = image != NULL;
	if (image)
		texture->image = *image;
	if (sampler)
		texture->sampler = *sampler;
	/* UINT64_MAX is no generation of memory, so the first use looks the memory up. */
	__atomic_store_n(&texture->generation, UINT64_MAX, __ATOMIC_RELAXED);
}

void softgpu_texture_destroy(uint64_t handle)
{
	pthread_mutex_lock(&table.lock);
	struct texture *texture = slot_of(handle);
	if (texture) {
		__atomic_store_n(&texture->handle, 0, __ATOMIC_RELAXED);
		texture->kind = SOFTGPU_TEXTURE_NONE;
		texture->generation = handle + INDEX_MASK + 1;
		texture->next = NULL;
		if (table.last_free)
			table.last_free->next = texture;
		else
			table.first_free = texture;
		table.last_free = texture;
	}
	pthread_mutex_unlock(&table.lock);
}

enum softgpu_texture_kind softgpu_texture_kind(uint64_t handle)
{
	const struct texture *texture = slot_of(handle);
	return texture ? texture->kind : SOFTGPU_TEXTURE_NONE;
}

void *softgpu_texture_user(uint64_t handle)
{
	const struct texture *texture = slot_of(handle);
	return texture ? texture->user : NULL;
}

struct texture *texture_find(uint64_t handle)
{
	struct texture *texture = slot_of(handle);
	return texture && texture->bound ? texture : NULL;
}
