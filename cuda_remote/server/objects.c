/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of the client's objects. Look-ups take no lock: an entry is complete before its word makes it live, and its
 * chunk is never freed. A client that destroys an object while another of its threads uses it harms only itself. */
#include "cuda_remote/server/internal.h"

struct entry {
	uint32_t word;
	void *object, *data;
	CUcontext context;  /* the context that was current when the handle was made */
	uint64_t owner;     /* of an alias: the handle of the object that it ends with; 0: none */
	bool owns;          /* aliases were made of this object */
};
#include "cuda_remote/handle_table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread CUcontext current; /* the context that server_object_context last returned to this thread */

static void entry_set(struct entry *entry, uint64_t handle, void *object, void *data)
{
	entry->object = object;
	entry->data = data;
	entry->context = current;
	entry->owner = 0;
	entry->owns = false;
	__atomic_store_n(&entry->word, handle_word(handle), __ATOMIC_RELEASE);
}

struct server_kernel *server_object_kernel(uint64_t handle)
{
	uint64_t holder = rc_handle_module(handle);
	struct entry *entry = holder ? entry_find(holder) : NULL;
	struct server_module *module = entry ? entry->data : NULL;
	uint32_t ordinal = rc_handle_ordinal(handle);
	return module && ordinal < module->n ? &module->kernel[ordinal] : NULL;
}

/* A library's kernel is accepted wherever a function is. */
static CUresult kernel_object(enum rc_kind kind, uint64_t handle, void **object)
{
	struct server_kernel *kernel = server_object_kernel(handle);
	enum rc_kind found = rc_handle_kind(handle);
	if (!kernel || (kind == RC_KIND_KERNEL && found != kind))
		return CUDA_ERROR_INVALID_HANDLE;
	if (kind == RC_KIND_FUNCTION && found == RC_KIND_KERNEL)
		return driver.cuKernelGetFunction ? driver.cuKernelGetFunction((CUfunction *)object, kernel->object) :
						    CUDA_ERROR_NOT_SUPPORTED;
	*object = kernel->object;
	return CUDA_SUCCESS;
}

CUresult server_object(enum rc_kind kind, uint64_t handle, void **object)
{
	if (kind == RC_KIND_STREAM && rc_stream_is_special(handle)) {
		*object = (void *)(uintptr_t)handle;
		return CUDA_SUCCESS;
	}
	if (kind == RC_KIND_FUNCTION || kind == RC_KIND_KERNEL)
		return kernel_object(kind, handle, object);
	struct entry *entry = entry_find(handle);
	if (!entry || rc_handle_kind(handle) != kind)
		return kind == RC_KIND_CONTEXT ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
	*object = entry->object;
	return CUDA_SUCCESS;
}

void *server_object_data(enum rc_kind kind, uint64_t handle)
{
	struct entry *entry = rc_handle_kind(handle) == kind ? entry_find(handle) : NULL;
	return entry ? entry->data : NULL;
}

CUresult server_object_bind(enum rc_kind kind, uint64_t handle, void *object, void *data)
{
	uint32_t index = rc_handle_index(handle);
	if (handle >> 40 != (uint64_t)kind || !index)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_make(index);
	CUresult result = !entry ? CUDA_ERROR_OUT_OF_MEMORY : entry->word >> 16 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		entry_set(entry, handle, object, data);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult server_object_bind_alias(enum rc_kind kind, uint64_t handle, void *object, void *data, uint64_t owner)
{
	CUresult result = server_object_bind(kind, handle, object, data);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_find(owner);
	if (entry)
		entry->owns = true;
	entry_find(handle)->owner = owner;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

void server_object_replace(uint64_t handle, void *object)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_find(handle);
	if (entry)
		entry->object = object;
	pthread_mutex_unlock(&lock);
}

void server_object_set_context(uint64_t handle, CUcontext context)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_find(handle);
	if (entry)
		entry->context = context;
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static void entry_clear(struct entry *entry)
{
	__atomic_store_n(&entry->word, entry->word & 0xffff, __ATOMIC_RELEASE);
}

/* Ends the aliases of an object that ends. An alias's own aliases end with it. Under the lock. */
static void clear_aliases(uint64_t owner)
{
	for (uint32_t i = 1; i < RC_HANDLE_COUNT; i++) {
		struct entry *entry = entry_at(i);
		if (!entry) {
			i |= CHUNK - 1;
			continue;
		}
		if (!(entry->word >> 16) || entry->owner != owner)
			continue;
		uint64_t alias = (uint64_t)entry->word << RC_HANDLE_INDEX_BITS | i;
		bool owns = entry->owns;
		struct server_module *module = rc_handle_kind(alias) == RC_KIND_MODULE ? entry->data : NULL;
		entry_clear(entry);
		if (module)
			server_module_free(module);
		if (owns)
			clear_aliases(alias);
	}
}

void server_object_hide(uint64_t handle, struct server_hidden *hidden)
{
	*hidden = (struct server_hidden){ .handle = handle, .contexts_ended = server_contexts_ended() };
	pthread_mutex_lock(&lock);
	struct entry *entry = entry_find(handle);
	if (entry) {
		*hidden = (struct server_hidden){ handle, hidden->contexts_ended, entry->object, entry->data, entry->context,
						  entry->owner, entry->owns, true };
		entry_clear(entry);
	}
	pthread_mutex_unlock(&lock);
}

void server_object_ended(const struct server_hidden *hidden)
{
	if (!hidden->owns)
		return;
	pthread_mutex_lock(&lock);
	clear_aliases(hidden->handle);
	pthread_mutex_unlock(&lock);
}

/* If a context has ended meanwhile, the object may have ended with it. Then the handle stays hidden. */
void server_object_show(const struct server_hidden *hidden)
{
	pthread_mutex_lock(&lock);
	struct entry *entry = hidden->found ? entry_at(rc_handle_index(hidden->handle)) : NULL;
	if (entry && !(entry->word >> 16) && hidden->contexts_ended == server_contexts_ended()) {
		entry_set(entry, hidden->handle, hidden->object, hidden->data);
		entry->context = hidden->context;
		entry->owner = hidden->owner;
		entry->owns = hidden->owns;
	}
	pthread_mutex_unlock(&lock);
}

void server_object_unbind(uint64_t handle)
{
	struct server_hidden hidden;
	server_object_hide(handle, &hidden);
	server_object_ended(&hidden);
}

static bool ends_with_context(unsigned kind)
{
	switch (kind) {
	case RC_KIND_STREAM:
	case RC_KIND_EVENT:
	case RC_KIND_MODULE:
	case RC_KIND_ARRAY:
	case RC_KIND_MIPMAP:
	case RC_KIND_TEXTURE_REF:
	case RC_KIND_SURFACE_REF:
		return true;
	default:
		return false;
	}
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
		if (entry->context != context || !ends_with_context(kind))
			continue;
		struct server_module *module = kind == RC_KIND_MODULE ? entry->data : NULL;
		uint64_t handle = (uint64_t)entry->word << RC_HANDLE_INDEX_BITS | i;
		bool owns = entry->owns;
		entry_clear(entry);
		if (module)
			server_module_free(module);
		/* A level of a mipmapped array may have been fetched while another context was current. */
		if (owns)
			clear_aliases(handle);
	}
	pthread_mutex_unlock(&lock);
}

size_t server_object_contexts(CUcontext *contexts, size_t max)
{
	size_t n = 0;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 1; i < RC_HANDLE_COUNT; i++) {
		struct entry *entry = entry_at(i);
		if (!entry)
			i |= CHUNK - 1;
		else if (entry->word >> 16 == RC_KIND_CONTEXT && !entry->data && n++ < max)
			contexts[n - 1] = entry->object;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

CUresult server_object_context(uint32_t index, CUcontext *context)
{
	struct entry *entry = index && index < RC_HANDLE_COUNT ? entry_at(index) : NULL;
	if (index && (!entry || __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE) >> 16 != RC_KIND_CONTEXT || entry->data))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	current = *context = index ? entry->object : NULL;
	return CUDA_SUCCESS;
}
