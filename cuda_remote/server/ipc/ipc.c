/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPC: device memory and events of another session on this host. What a session maps is charged to it as well as to the session
 * that has allocated it: that one may free it while it stays mapped here.
 */
#include "cuda_remote/server/ipc/meeting.h"
#include "cuda_remote/server/placed/placed_ipc.h"

#include <stdlib.h>
#include <string.h>

struct server_opened {
	struct server_opened *next;
	CUdeviceptr address;
	uint64_t bytes;
	CUcontext context;
	uint32_t gpu;
	bool pooled; /* memory of a pool */
	unsigned references;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct server_opened *opened;

CUresult serve_ipc_get_memory(struct server_call *call)
{
	struct rc_wire_address args;
	struct rc_wire_shared handle;
	CUipcMemHandle native;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (server_placed_at(args.address)) {
		CUresult placed = server_placed_export(args.address, &handle);
		return placed == CUDA_SUCCESS ? server_give_bytes(call, &handle, sizeof handle) : placed;
	}
	if (!driver.cuIpcGetMemHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	server_order_release(call); /* the driver may wait for kernels */
	CUresult result = driver.cuIpcGetMemHandle(&native, args.address);
	if (result == CUDA_SUCCESS)
		result = meeting_export(MEETING_MEMORY, &native, &handle);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &handle, sizeof handle) : result;
}

static CUresult note_open(CUdeviceptr address, uint64_t bytes, uint32_t gpu, bool pooled)
{
	CUcontext context = NULL;
	CUresult result = CUDA_SUCCESS;
	driver.cuCtxGetCurrent(&context);
	pthread_mutex_lock(&lock);
	struct server_opened *entry = opened;
	while (entry && (entry->address != address || entry->context != context))
		entry = entry->next;
	if (!entry && !server_quota_charge(gpu, bytes)) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (!entry) {
		entry = malloc(sizeof *entry);
		if (entry) {
			*entry = (struct server_opened){ opened, address, bytes, context, gpu, pooled, 0 };
			opened = entry;
		} else {
			server_quota_release(gpu, bytes);
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result == CUDA_SUCCESS)
		entry->references++;
	pthread_mutex_unlock(&lock);
	return result;
}

/* Address, size and GPU of an allocation. Attributes of a pointer need no current context. */
static CUresult describe(CUdeviceptr address, CUdeviceptr *base, size_t *bytes, uint32_t *gpu)
{
	int device;
	CUresult result = driver.cuPointerGetAttribute(base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
	if (result == CUDA_SUCCESS)
		result = driver.cuPointerGetAttribute(bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
	if (result == CUDA_SUCCESS)
		result = driver.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
	*gpu = server_quota_gpu();
	for (uint32_t i = 0; result == CUDA_SUCCESS && i < worker.gpus; i++)
		if (worker.device[i] == device)
			*gpu = server_quota_index(i);
	return result;
}

CUresult server_ipc_opened(CUdeviceptr address, bool pooled, struct rc_wire_opened *answer)
{
	CUdeviceptr base;
	size_t bytes;
	uint32_t gpu;
	CUresult result = describe(address, &base, &bytes, &gpu);
	if (result == CUDA_SUCCESS && base != address)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = note_open(base, bytes, gpu, pooled);
	if (result == CUDA_SUCCESS)
		*answer = (struct rc_wire_opened){ base, bytes };
	return result;
}

/* Removes *at. Under the lock. */
static struct server_opened *take(struct server_opened **at)
{
	struct server_opened *gone = *at;
	*at = gone->next;
	return gone;
}

/* Frees a record. Its memory is no longer charged. */
static void discard(struct server_opened *entry)
{
	server_quota_release(entry->gpu, entry->bytes);
	free(entry);
}

static void forget(struct server_opened **at)
{
	discard(take(at));
}

static void note_close(CUdeviceptr address)
{
	CUcontext context = NULL;
	driver.cuCtxGetCurrent(&context);
	pthread_mutex_lock(&lock);
	struct server_opened **at = &opened;
	while (*at && ((*at)->address != address || (*at)->context != context))
		at = &(*at)->next;
	if (*at && !--(*at)->references)
		forget(at);
	pthread_mutex_unlock(&lock);
}

struct server_opened *server_ipc_freeing(CUdeviceptr address)
{
	pthread_mutex_lock(&lock);
	struct server_opened **at = &opened;
	while (*at && ((*at)->address != address || !(*at)->pooled))
		at = &(*at)->next;
	struct server_opened *found = *at;
	if (found)
		take(at);
	pthread_mutex_unlock(&lock);
	return found;
}

void server_ipc_freed(struct server_opened *entry, CUresult result)
{
	if (entry && result != CUDA_SUCCESS) {
		pthread_mutex_lock(&lock);
		entry->next = opened;
		opened = entry;
		pthread_mutex_unlock(&lock);
	} else if (entry) {
		discard(entry);
	}
}

void server_ipc_rename(CUcontext from, CUcontext to)
{
	placed_ipc_rename(from, to);
	pthread_mutex_lock(&lock);
	for (struct server_opened *each = opened; each; each = each->next)
		if (each->context == from)
			each->context = to;
	pthread_mutex_unlock(&lock);
}

void server_ipc_forget(CUcontext context)
{
	placed_ipc_forget(context);
	pthread_mutex_lock(&lock);
	for (struct server_opened **at = &opened; *at;) {
		if ((*at)->context == context)
			forget(at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&lock);
}

static CUresult open_placed(const struct placed_exported *exported, struct meeting_found *found, struct rc_wire_opened *answer)
{
	CUdeviceptr address;
	bool sound = exported->offset <= exported->extent && exported->bytes <= exported->extent - exported->offset;
	CUresult result = sound ? placed_ipc_import(exported, found->file, &address) : CUDA_ERROR_INVALID_VALUE;
	meeting_done(found);
	if (result != CUDA_SUCCESS)
		return result;
	result = note_open(address, exported->extent, server_quota_gpu(), false); /* the mapping keeps all of it */
	if (result == CUDA_SUCCESS)
		*answer = (struct rc_wire_opened){ address, exported->bytes };
	else
		(void)placed_ipc_close(address);
	return result;
}

static CUresult open_memory(const struct rc_wire_open *args, struct rc_wire_opened *answer)
{
	struct meeting_found found;
	CUipcMemHandle native;
	CUdeviceptr address;
	CUresult result = meeting_import(MEETING_MEMORY, &args->handle, &found);
	if (result != CUDA_SUCCESS)
		return result;
	struct placed_exported exported;
	memcpy(&exported, found.native, sizeof exported);
	if (placed_ipc_is_placed(&exported, found.file))
		return open_placed(&exported, &found, answer);
	memcpy(&native, found.native, sizeof native);
	result = driver.cuIpcOpenMemHandle_v2(&address, native, args->flags);
	meeting_done(&found);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_ipc_opened(address, false, answer);
	if (result != CUDA_SUCCESS)
		(void)driver.cuIpcCloseMemHandle(address);
	return result;
}

CUresult serve_ipc_open_memory(struct server_call *call)
{
	struct rc_wire_open args;
	struct rc_wire_opened answer;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuIpcOpenMemHandle_v2 || !driver.cuIpcCloseMemHandle || !driver.cuPointerGetAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	server_order_release(call);
	CUresult result = open_memory(&args, &answer);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &answer, sizeof answer) : result;
}

CUresult serve_ipc_close_memory(struct server_call *call)
{
	struct rc_wire_address args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	CUresult result = placed_ipc_close(args.address);
	if (result == CUDA_ERROR_NOT_FOUND)
		result = driver.cuIpcCloseMemHandle ? driver.cuIpcCloseMemHandle(args.address) : CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		note_close(args.address);
	return result;
}

CUresult serve_ipc_get_event(struct server_call *call)
{
	struct rc_wire_event args;
	struct rc_wire_shared handle;
	CUipcEventHandle native;
	void *event;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_EVENT, args.event, &event);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuIpcGetEventHandle ? driver.cuIpcGetEventHandle(&native, event) : CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = meeting_export(MEETING_EVENT, &native, &handle);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &handle, sizeof handle) : result;
}

CUresult serve_ipc_open_event(struct server_call *call)
{
	struct rc_wire_open args;
	struct meeting_found found;
	CUipcEventHandle native;
	CUevent event;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuIpcOpenEventHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	server_order_release(call);
	CUresult result = meeting_import(MEETING_EVENT, &args.handle, &found);
	if (result != CUDA_SUCCESS)
		return result;
	memcpy(&native, found.native, sizeof native);
	result = driver.cuIpcOpenEventHandle(&event, native);
	meeting_done(&found);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_object_bind(RC_KIND_EVENT, args.event, event, NULL);
	if (result != CUDA_SUCCESS)
		driver.cuEventDestroy_v2(event);
	return result;
}
