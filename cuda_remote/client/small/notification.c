/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous notifications. CUDA's only notification says that a process exceeds its memory budget of a device. A session
 * has a quota instead, and an allocation beyond it fails: callbacks are registered but never called.
 */
#include "cuda_remote/client/session.h"

#include <pthread.h>
#include <stdlib.h>

struct CUasyncCallbackEntry_st {
	struct CUasyncCallbackEntry_st *next;
	CUdevice device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUasyncCallbackEntry_st *entries;

CUresult cuDeviceRegisterAsyncNotification(CUdevice number, CUasyncCallback function, void *data, CUasyncCallbackHandle *handle)
{
	struct rc_device *device;
	(void)data;
	CUresult result = rc_device_get(number, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!function || !handle)
		return CUDA_ERROR_INVALID_VALUE;
	struct CUasyncCallbackEntry_st *entry = malloc(sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	entry->device = number;
	pthread_mutex_lock(&lock);
	entry->next = entries;
	entries = entry;
	pthread_mutex_unlock(&lock);
	*handle = entry;
	return CUDA_SUCCESS;
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice number, CUasyncCallbackHandle handle)
{
	struct rc_device *device;
	CUresult result = rc_device_get(number, &device);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct CUasyncCallbackEntry_st **at = &entries, *found;
	while (*at && *at != handle)
		at = &(*at)->next;
	found = *at && (*at)->device == number ? *at : NULL;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&lock);
	free(found);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
