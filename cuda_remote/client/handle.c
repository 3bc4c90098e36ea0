/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's handles. Creating or deleting one takes a mutex. Looking one up, which is more frequent, does not. */
#include "cuda_remote/client/client.h"

#include <pthread.h>

struct entry {
	uint32_t word;
	uint32_t next_free; /* index; 0 ends the list */
	void *data;         /* atomic */
};
#include "cuda_remote/handle_table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_unused = 1, first_free, last_free;

static bool is_kind(enum rc_kind kind, uint64_t handle)
{
	uint64_t found = handle >> 40;
	/* A library's kernel is accepted wherever a function is. */
	return found == (uint64_t)kind || (kind == RC_KIND_FUNCTION && found == RC_KIND_KERNEL);
}

CUresult rc_handle_check(enum rc_kind kind, uint64_t handle)
{
	if (kind == RC_KIND_STREAM && rc_stream_is_special(handle))
		return CUDA_SUCCESS;
	if (is_kind(kind, handle) && entry_find(handle))
		return CUDA_SUCCESS;
	return kind == RC_KIND_CONTEXT ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
}

CUresult rc_handle_new(enum rc_kind kind, uint64_t *handle)
{
	pthread_mutex_lock(&lock);
	uint32_t index = first_free ? first_free : next_unused;
	struct entry *entry = index < RC_HANDLE_WORKER ? entry_make(index) : NULL;
	if (!entry) {
		pthread_mutex_unlock(&lock);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (first_free) {
		first_free = entry->next_free;
		if (!first_free)
			last_free = 0;
	} else {
		next_unused++;
	}
	uint16_t generation = (uint16_t)(entry->word + 1);
	entry->data = NULL;
	*handle = rc_handle_make(kind, index, generation);
	__atomic_store_n(&entry->word, handle_word(*handle), __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult rc_handle_adopt(enum rc_kind kind, uint64_t handle)
{
	uint32_t index = rc_handle_index(handle);
	if (handle >> 40 != (uint64_t)kind || index < RC_HANDLE_WORKER)
		return CUDA_ERROR_UNKNOWN;
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_make(index);
	if (entry) {
		entry->data = NULL;
		__atomic_store_n(&entry->word, handle_word(handle), __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return entry ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Freed entries are reused oldest first, so that the use of a deleted handle is detected for as long as possible. */
void rc_handle_delete(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_find(handle);
	if (entry) {
		uint32_t index = rc_handle_index(handle);
		__atomic_store_n(&entry->word, entry->word & 0xffff, __ATOMIC_RELEASE);
		entry->next_free = 0;
		if (index < RC_HANDLE_WORKER) {
			if (last_free)
				entry_at(last_free)->next_free = index;
			else
				first_free = index;
			last_free = index;
		}
	}
	pthread_mutex_unlock(&lock);
}

void rc_handle_attach(uint64_t handle, void *data)
{
	struct entry *entry = entry_find(handle);
	if (entry)
		__atomic_store_n(&entry->data, data, __ATOMIC_RELEASE);
}

/* Acquire pairs with the release in rc_handle_attach: what data points to is complete. */
void *rc_handle_data(enum rc_kind kind, uint64_t handle)
{
	struct entry *entry = is_kind(kind, handle) ? entry_find(handle) : NULL;
	return entry ? __atomic_load_n(&entry->data, __ATOMIC_ACQUIRE) : NULL;
}

static void each_between(enum rc_kind kind, uint32_t first, uint32_t end,
			 void (*visit)(uint64_t handle, void *data, void *context), void *context)
{
	for (uint32_t i = first; i < end; i++) {
		struct entry *entry = entry_at(i);
		if (!entry) {
			i |= CHUNK - 1;
			continue;
		}
		uint32_t word = __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE);
		if (word >> 16 == (uint32_t)kind)
			visit((uint64_t)word << RC_HANDLE_INDEX_BITS | i, __atomic_load_n(&entry->data, __ATOMIC_ACQUIRE),
			      context);
	}
}

void rc_handle_each(enum rc_kind kind, void (*visit)(uint64_t handle, void *data, void *context), void *context)
{
	each_between(kind, 1, RC_HANDLE_COUNT, visit, context);
}
