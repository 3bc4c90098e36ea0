/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory pools of another session on this host, and the allocations in them. */
#include "cuda_remote/server/ipc/meeting.h"

#include <string.h>

_Static_assert(sizeof(CUmemPoolPtrExportData) == CU_IPC_HANDLE_SIZE, "in the place of a driver's handle");

/* How a pool is known to meeting.c: by its handle. */
static void name_of(uint64_t pool, uint8_t *native)
{
	memset(native, 0, CU_IPC_HANDLE_SIZE);
	memcpy(native, &pool, sizeof pool);
}

CUresult serve_pool_destroy(struct server_call *call)
{
	struct rc_args_cuMemPoolDestroy args;
	uint8_t native[CU_IPC_HANDLE_SIZE];
	void *pool;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_POOL, args.pool, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	if (!driver.cuMemPoolDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* In the call order: no later call finds a pool that is being destroyed. */
	struct server_hidden hidden;
	server_object_hide(args.pool, &hidden);
	name_of(args.pool, native);
	meeting_end(MEETING_POOL, native);
	server_order_release(call);
	result = driver.cuMemPoolDestroy(pool);
	if (result == CUDA_SUCCESS)
		server_object_ended(&hidden);
	else
		server_object_show(&hidden);
	return result;
}

CUresult serve_pool_export(struct server_call *call)
{
	uint64_t handle;
	uint8_t native[CU_IPC_HANDLE_SIZE];
	struct rc_wire_shared shared;
	void *pool;
	int file;
	if (!server_take_into(call, &handle, sizeof handle))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_POOL, handle, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	if (!driver.cuMemPoolExportToShareableHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = driver.cuMemPoolExportToShareableHandle(&file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (result != CUDA_SUCCESS)
		return result;
	name_of(handle, native);
	result = meeting_export_file(MEETING_POOL, native, file, &shared);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &shared, sizeof shared) : result;
}

CUresult serve_pool_import(struct server_call *call)
{
	struct rc_wire_import args;
	struct meeting_found found;
	CUmemoryPool pool;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemPoolImportFromShareableHandle || !driver.cuMemPoolDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	server_order_release(call);
	CUresult result = meeting_import(MEETING_POOL, &args.handle, &found);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)found.file,
							   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	meeting_done(&found);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_object_bind(RC_KIND_POOL, args.object, pool, NULL);
	if (result != CUDA_SUCCESS)
		driver.cuMemPoolDestroy(pool);
	return result;
}

CUresult serve_pool_export_pointer(struct server_call *call)
{
	struct rc_wire_address args;
	struct rc_wire_shared shared;
	CUmemPoolPtrExportData native;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemPoolExportPointer)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuMemPoolExportPointer(&native, args.address);
	if (result == CUDA_SUCCESS)
		result = meeting_export(MEETING_POINTER, &native, &shared);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &shared, sizeof shared) : result;
}

static CUresult import_pointer(CUmemoryPool pool, const struct rc_wire_shared *handle, struct rc_wire_opened *answer)
{
	struct meeting_found found;
	CUmemPoolPtrExportData native;
	CUdeviceptr address;
	CUresult result = meeting_import(MEETING_POINTER, handle, &found);
	if (result != CUDA_SUCCESS)
		return result;
	memcpy(&native, found.native, sizeof native);
	meeting_done(&found);
	result = driver.cuMemPoolImportPointer(&address, pool, &native);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_ipc_opened(address, true, answer);
	if (result != CUDA_SUCCESS)
		(void)driver.cuMemFree_v2(address);
	return result;
}

CUresult serve_pool_import_pointer(struct server_call *call)
{
	struct rc_wire_import args;
	struct rc_wire_opened answer;
	void *pool;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemPoolImportPointer || !driver.cuPointerGetAttribute || !driver.cuMemFree_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_object(RC_KIND_POOL, args.object, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	server_order_release(call);
	result = import_pointer(pool, &args.handle, &answer);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &answer, sizeof answer) : result;
}
