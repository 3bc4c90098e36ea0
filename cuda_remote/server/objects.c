/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of the client's objects. Look-ups take no lock: an entry is complete before its word makes it live, and its
 * chunk is never freed. A client that destroys an object while another of its threads uses it harms only itself. */
#include "cuda_remote/server/internal.h"

struct entry {
	uint32_t word;
	uint32_t next_free; /* index, in the list of free entries that the worker may choose; 0 ends the list */
	void *object, *data;
	CUcontext context;  /* the context that was current when the handle was made */
};
#include "cuda_remote/handle_table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_unused = RC_HANDLE_WORKER, first_free;
static __thread CUcontext current; /* the context that server_object_context last returned to this thread */

static void entry_set(struct entry *entry, uint64_t handle, void *object, void *data)
{
	entry->object = object;
	entry->data = data;
	entry->context = current;
	__atomic_store_n(&entry->word, handle_word(handle), __ATOMIC_RELEASE);
}

CUresult server_object(enum rc_kind kind, uint64_t handle, void **object)
{
	if (kind == RC_KIND_STREAM && rc_stream_is_special(handle)) {
		*object = (void *)(uintptr_t)handle;
		return CUDA_SUCCESS;
	}
	struct entry *entry = entry_find(handle);
	uint64_t found = handle >> 40;
	if (entry && kind == RC_KIND_FUNCTION && found == RC_KIND_KERNEL) {
		if (!driver.cuKernelGetFunction)
			return CUDA_ERROR_NOT_SUPPORTED;
		return driver.cuKernelGetFunction((CUfunction *)object, entry->object);
	}
	if (!entry || found != (uint64_t)kind)
		return kind == RC_KIND_CONTEXT ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
	*object = entry->object;
	return CUDA_SUCCESS;
}

void *server_object_data(enum rc_kind kind, uint64_t handle)
{
	struct entry *entry = handle >> 40 == (uint64_t)kind ? entry_find(handle) : NULL;
	return entry ? entry->data : NULL;
}

CUresult server_object_bind(enum rc_kind kind, uint64_t handle, void *object)
{
	uint32_t index = rc_handle_index(handle);
	if (handle >> 40 != (uint64_t)kind || !index || index >= RC_HANDLE_WORKER)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_make(index);
	CUresult result = !entry ? CUDA_ERROR_OUT_OF_MEMORY : entry->word >> 16 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		entry_set(entry, handle, object, NULL);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult server_object_new(enum rc_kind kind, void *object, void *data, uint64_t *handle)
{
	pthread_mutex_lock(&lock);
	uint32_t index = first_free ? first_free : next_unused;
	struct entry *entry = index < RC_HANDLE_COUNT ? entry_make(index) : NULL;
	if (entry) {
		if (first_free)
			first_free = entry->next_free;
		else
			next_unused++;
		*handle = rc_handle_make(kind, index, (uint16_t)(entry->word + 1));
		entry_set(entry, *handle, object, data);
	}
	pthread_mutex_unlock(&lock);
	return entry ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void server_object_replace(uint64_t handle, void *object)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_find(handle);
	if (entry)
		entry->object = object;
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static void entry_clear(struct entry *entry, uint32_t index)
{
	__atomic_store_n(&entry->word, entry->word & 0xffff, __ATOMIC_RELEASE);
	if (index >= RC_HANDLE_WORKER) {
		entry->next_free = first_free;
		first_free = index;
	}
}

void server_object_unbind(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_find(handle);
	if (entry)
		entry_clear(entry, rc_handle_index(handle));
	pthread_mutex_unlock(&lock);
}

void server_object_unbind_context(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 1; i < RC_HANDLE_COUNT; i++) {
		struct entry *entry = entry_at(i);
		if (!entry) {
			i |= CHUNK - 1;
			continue;
		}
		unsigned kind = entry->word >> 16;
		if (entry->context != context || (kind != RC_KIND_STREAM && kind != RC_KIND_EVENT && kind != RC_KIND_MODULE &&
						  kind != RC_KIND_FUNCTION))
			continue;
		struct server_module *module = kind == RC_KIND_MODULE ? entry->data : NULL;
		entry_clear(entry, i);
		if (module) {
			/* server_module_free takes the lock itself, to unbind the handles of the module's functions. */
			pthread_mutex_unlock(&lock);
			server_module_free(module);
			pthread_mutex_lock(&lock);
		}
	}
	pthread_mutex_unlock(&lock);
}

CUresult server_object_context(uint32_t index, CUcontext *context)
{
	struct entry *entry = index && index < RC_HANDLE_COUNT ? entry_at(index) : NULL;
	if (index && (!entry || __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE) >> 16 != RC_KIND_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	current = *context = index ? entry->object : NULL;
	return CUDA_SUCCESS;
}
