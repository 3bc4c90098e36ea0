/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's handles. Creating or deleting one takes a mutex. Looking one up, which is more frequent, does not. */
#include "cuda_remote/client/green/green.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/session.h"

#include <pthread.h>

struct entry {
	uint32_t word;
	uint32_t next_free; /* index; 0 ends the list */
	void *data;         /* atomic */
	struct rc_session *session;
	struct rc_recording recording; /* of an event */
};
#include "cuda_remote/handle_table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_unused = 1;
/* Free entries. They are reused oldest first, so that the use of a deleted handle is detected for as long as possible. The worker
 * binds most handles in the call order. An entry is free for these once the call that ends its former object has a number. The
 * worker binds the handles of pinned memory at once, perhaps before it has issued all calls that name the entry's former object.
 * So an entry is free for these only if the worker has issued all such calls: it is new, or has only had pinned memory, which the
 * client's thread has waited for the worker to end. */
static struct list {
	uint32_t first, last; /* indexes; 0: the list is empty */
} in_order, at_once;

CUresult rc_handle_check(enum rc_kind kind, uint64_t handle)
{
	if (kind == RC_KIND_STREAM && rc_stream_is_special(handle))
		return CUDA_SUCCESS;
	if (kind == RC_KIND_FUNCTION && rc_kernel_find(handle))
		return CUDA_SUCCESS;
	if (handle >> 40 == (uint64_t)kind && entry_find(handle))
		return CUDA_SUCCESS;
	if (kind == RC_KIND_STREAM && rc_green_orphan(handle))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return kind == RC_KIND_CONTEXT ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
}

struct rc_session *rc_handle_session(uint64_t handle)
{
	uint64_t module = rc_handle_module(handle);
	struct entry *entry = entry_find(module ? module : handle);
	return entry ? entry->session : NULL;
}

static void take(struct list *list)
{
	list->first = entry_at(list->first)->next_free;
	if (!list->first)
		list->last = 0;
}

static void put(struct list *list, uint32_t index)
{
	entry_at(index)->next_free = 0;
	if (list->last)
		entry_at(list->last)->next_free = index;
	else
		list->first = index;
	list->last = index;
}

static struct list *list_of(enum rc_kind kind)
{
	return kind == RC_KIND_PINNED ? &at_once : &in_order;
}

CUresult rc_handle_new(enum rc_kind kind, struct rc_session *session, uint64_t *handle)
{
	pthread_mutex_lock(&lock);
	struct list *list = list_of(kind);
	/* After 16 million handles: the entry was deleted long ago. */
	if (!list->first && next_unused == RC_HANDLE_COUNT)
		list = list == &in_order ? &at_once : &in_order;
	uint32_t index = list->first ? list->first : next_unused;
	struct entry *entry = index < RC_HANDLE_COUNT ? entry_make(index) : NULL;
	if (!entry) {
		pthread_mutex_unlock(&lock);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (list->first)
		take(list);
	else
		next_unused++;
	uint16_t generation = (uint16_t)(entry->word + 1);
	entry->data = NULL;
	entry->session = session;
	entry->recording = (struct rc_recording){ 0 };
	*handle = rc_handle_make(kind, index, generation);
	__atomic_store_n(&entry->word, handle_word(*handle), __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* The entries were never used: handles that follow one another are taken before the program makes any other. */
CUresult rc_handle_row(enum rc_kind kind, struct rc_session *session, uint32_t n, uint64_t *first)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (next_unused + n > RC_HANDLE_COUNT)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		struct entry *entry = entry_make(next_unused + i);
		if (!entry) {
			result = CUDA_ERROR_OUT_OF_MEMORY;
			break;
		}
		entry->session = session;
		__atomic_store_n(&entry->word, handle_word(rc_handle_make(kind, 0, 1)), __ATOMIC_RELEASE);
	}
	*first = rc_handle_make(kind, next_unused, 1);
	next_unused += result == CUDA_SUCCESS ? n : 0;
	pthread_mutex_unlock(&lock);
	return result;
}

static uint64_t ends; /* atomic */

uint64_t rc_handle_ends(void)
{
	/* Orders nothing: CUDA does not let one thread end what another uses without synchronization of their own. */
	return __atomic_load_n(&ends, __ATOMIC_RELAXED);
}

static bool graphs_refer_to(enum rc_kind kind)
{
	return kind == RC_KIND_CONTEXT || kind == RC_KIND_MODULE || kind == RC_KIND_LIBRARY || kind == RC_KIND_EVENT ||
	       kind == RC_KIND_ARRAY;
}

static void delete_to(struct list *list, uint64_t handle)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_find(handle);
	if (entry) {
		__atomic_store_n(&entry->word, entry->word & 0xffff, __ATOMIC_RELEASE);
		if (graphs_refer_to(rc_handle_kind(handle)))
			__atomic_add_fetch(&ends, 1, __ATOMIC_RELAXED);
		put(list, rc_handle_index(handle));
	}
	pthread_mutex_unlock(&lock);
}

void rc_handle_delete(uint64_t handle)
{
	delete_to(list_of(rc_handle_kind(handle)), handle);
}

void rc_handle_delete_posted(uint64_t pinned)
{
	delete_to(&in_order, pinned);
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
	struct entry *entry = handle >> 40 == (uint64_t)kind ? entry_find(handle) : NULL;
	return entry ? __atomic_load_n(&entry->data, __ATOMIC_ACQUIRE) : NULL;
}

struct rc_recording *rc_handle_recording(uint64_t event)
{
	struct entry *entry = event >> 40 == (uint64_t)RC_KIND_EVENT ? entry_find(event) : NULL;
	return entry ? &entry->recording : NULL;
}

void rc_handle_each(enum rc_kind kind, void (*visit)(uint64_t handle, void *data, void *context), void *context)
{
	for (uint32_t i = 1; i < RC_HANDLE_COUNT; i++) {
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
