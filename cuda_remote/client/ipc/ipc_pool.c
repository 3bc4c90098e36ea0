/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory pools of other processes, and the addresses of allocations in them. */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/ipc/handle_file.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/session.h"

#include <string.h>

_Static_assert(sizeof(struct rc_wire_shared) == sizeof(CUmemPoolPtrExportData), "a handle takes the place of CUDA's");

/* Asks the worker for the handle of an object or an address. */
static CUresult ask_handle(const struct rc_route *route, enum rc_call call, uint64_t of, struct rc_wire_shared *handle)
{
	struct {
		struct rc_wire_call head;
		uint64_t of;
	} message = { .of = of };
	struct rc_link *link;
	CUresult result = rc_link_get(route, false, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, call, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS && link->reply_len != sizeof *handle)
		result = rc_link_broken(link, call);
	if (result == CUDA_SUCCESS)
		memcpy(handle, link->reply, sizeof *handle);
	return result;
}

CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool pool, CUmemAllocationHandleType type,
					  unsigned long long flags)
{
	struct rc_route route = { NULL, 0, false };
	struct rc_wire_shared handle;
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&route, RC_KIND_POOL, (uint64_t)(uintptr_t)pool);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shareable || flags || rc_host_pool_is(pool))
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = ask_handle(&route, RC_CALL_pool_export, (uint64_t)(uintptr_t)pool, &handle);
	return result == CUDA_SUCCESS ? rc_handle_file_make(&handle, shareable) : result;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable, CUmemAllocationHandleType type,
					    unsigned long long flags)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_import call;
	} message = { .call = { .object = 0 } };
	struct rc_link *link;
	CUresult result = rc_link_get(&(struct rc_route){ NULL, 0, false }, false, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pool || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = rc_handle_file_read((int)(intptr_t)shareable, &message.call.handle);
	if (result == CUDA_SUCCESS)
		result = rc_handle_new(RC_KIND_POOL, link->session, &message.call.object);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_call(link, RC_CALL_pool_import, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS)
		*pool = (CUmemoryPool)(uintptr_t)message.call.object;
	else
		rc_handle_delete(message.call.object);
	return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer)
{
	struct rc_route route = { NULL, 0, false };
	struct rc_wire_shared handle;
	struct rc_process *process;
	struct rc_span span;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!data || !rc_memory_find(pointer, &span) || span.base != pointer || !span.pooled || span.imported || span.host_pool)
		return CUDA_ERROR_INVALID_VALUE;
	result = rc_route_address(&route, pointer);
	if (result == CUDA_SUCCESS)
		result = ask_handle(&route, RC_CALL_pool_export_pointer, pointer, &handle);
	if (result == CUDA_SUCCESS)
		memcpy(data, &handle, sizeof handle);
	return result;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_import call;
	} message = { .call = { .object = (uint64_t)(uintptr_t)pool } };
	struct rc_route route = { NULL, 0, false };
	struct rc_wire_opened answer;
	struct rc_context *context;
	struct rc_link *link;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_CONTEXT) /* a pool is of a device */
		result = rc_route_handle(&route, RC_KIND_POOL, message.call.object);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, false, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pointer || !data || rc_host_pool_is(pool))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&message.call.handle, data, sizeof *data);
	result = rc_link_call(link, RC_CALL_pool_import_pointer, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
	if (link->reply_len != sizeof answer)
		return rc_link_broken(link, RC_CALL_pool_import_pointer);
	memcpy(&answer, link->reply, sizeof answer);
	result = rc_ipc_keep(link, RC_CALL_pool_import_pointer, &answer, true);
	if (result == CUDA_SUCCESS)
		*pointer = answer.address;
	return result; /* after a failure the worker keeps the memory to the session's end */
}
