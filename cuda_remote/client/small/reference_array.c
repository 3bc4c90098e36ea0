/* SPDX-License-Identifier: BSD-3-Clause */
/* Which array a texture or surface reference refers to: the driver's answer would be the driver's own object. */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"

#include <pthread.h>
#include <stdlib.h>

struct reference {
	struct reference *next;
	enum rc_kind kind, of; /* TEXTURE_REF or SURFACE_REF; ARRAY or MIPMAP */
	uint64_t handle, array;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reference *references;

/* Removes what is kept of this reference, and of those that have ended. */
static void forget(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	for (struct reference **at = &references; *at;) {
		struct reference *entry = *at;
		if (entry->handle != handle && rc_handle_check(entry->kind, entry->handle) == CUDA_SUCCESS) {
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		free(entry);
	}
	pthread_mutex_unlock(&lock);
}

static CUresult keep(enum rc_kind kind, const void *reference, enum rc_kind of, const void *array)
{
	struct reference *entry = malloc(sizeof *entry);
	uint64_t handle = (uint64_t)(uintptr_t)reference;
	forget(handle);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	*entry = (struct reference){ references, kind, of, handle, (uint64_t)(uintptr_t)array };
	references = entry;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* CUDA_ERROR_INVALID_VALUE: the reference refers to something else, or to nothing. */
static CUresult find(enum rc_kind kind, const void *reference, enum rc_kind of, uint64_t *array)
{
	uint64_t handle = (uint64_t)(uintptr_t)reference;
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_handle_check(kind, handle);
	if (result != CUDA_SUCCESS)
		return result;
	result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (const struct reference *entry = references; entry; entry = entry->next)
		if (entry->handle == handle && entry->of == of) {
			*array = entry->array;
			result = CUDA_SUCCESS;
		}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- hooks ---- */

CUresult reference_done_array(CUtexref reference, CUarray array, unsigned flags)
{
	(void)flags;
	return keep(RC_KIND_TEXTURE_REF, reference, RC_KIND_ARRAY, array);
}

CUresult reference_done_mipmap(CUtexref reference, CUmipmappedArray array, unsigned flags)
{
	(void)flags;
	return keep(RC_KIND_TEXTURE_REF, reference, RC_KIND_MIPMAP, array);
}

CUresult reference_done_surface(CUsurfref reference, CUarray array, unsigned flags)
{
	(void)flags;
	return keep(RC_KIND_SURFACE_REF, reference, RC_KIND_ARRAY, array);
}

/* A module's reference ends with the module. */
CUresult reference_check_destroy(CUtexref reference)
{
	return rc_alias_is((uint64_t)(uintptr_t)reference) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult reference_done_address(size_t *offset, CUtexref reference, CUdeviceptr address, size_t bytes)
{
	(void)offset;
	(void)address;
	(void)bytes;
	forget((uint64_t)(uintptr_t)reference);
	return CUDA_SUCCESS;
}

CUresult reference_done_address_2d(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR *shape, CUdeviceptr address, size_t pitch)
{
	(void)shape;
	return reference_done_address(NULL, reference, address, pitch);
}

/* ---- calls ---- */

CUresult cuTexRefGetArray(CUarray *array, CUtexref reference)
{
	uint64_t found;
	CUresult result = find(RC_KIND_TEXTURE_REF, reference, RC_KIND_ARRAY, &found);
	if (result != CUDA_SUCCESS)
		return result;
	if (!array)
		return CUDA_ERROR_INVALID_VALUE;
	*array = (CUarray)(uintptr_t)found;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *array, CUtexref reference)
{
	uint64_t found;
	CUresult result = find(RC_KIND_TEXTURE_REF, reference, RC_KIND_MIPMAP, &found);
	if (result != CUDA_SUCCESS)
		return result;
	if (!array)
		return CUDA_ERROR_INVALID_VALUE;
	*array = (CUmipmappedArray)(uintptr_t)found;
	return CUDA_SUCCESS;
}

CUresult cuSurfRefGetArray(CUarray *array, CUsurfref reference)
{
	uint64_t found;
	CUresult result = find(RC_KIND_SURFACE_REF, reference, RC_KIND_ARRAY, &found);
	if (result != CUDA_SUCCESS)
		return result;
	if (!array)
		return CUDA_ERROR_INVALID_VALUE;
	*array = (CUarray)(uintptr_t)found;
	return CUDA_SUCCESS;
}
