/* SPDX-License-Identifier: BSD-3-Clause */
/* cuGetExportTable, which has five tables: allocation at addresses that the caller chooses (placed_memory.h), the files
 * behind handles for other processes (handle_files.h), memory that stays mapped (kept_memory.h), words that streams wait
 * for (written_memory.h), and launches that another call follows (call_follows.h). */
#include "cuda_remote/call_follows.h"
#include "cuda_remote/handle_files.h"
#include "cuda_remote/kept_memory.h"
#include "cuda_remote/written_memory.h"
#include "cuda_remote/softgpu/driver/stream/memop.h"
#include "cuda_remote/placed_memory.h"

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/driver/ipc_handle.h"
#include "cuda_remote/softgpu/space/space.h"

#include <errno.h>
#include <string.h>

static CUresult result_of(int error)
{
	switch (error) {
	case 0:
		return CUDA_SUCCESS;
	case -EEXIST:
		return CUDA_ERROR_ALREADY_MAPPED;
	case -EINVAL:
		return CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
}

static CUresult window(CUdeviceptr base, size_t bytes)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	return result ? result : result_of(softgpu_space_window(context->physical, base, bytes));
}

static CUresult budget(size_t more, size_t less)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (more && less)
		return CUDA_ERROR_INVALID_VALUE;
	return result_of(softgpu_space_budget(context->physical, more, less));
}

static CUresult place(CUdeviceptr address, size_t bytes)
{
	CUcontext context;
	CUresult result = context_enter_unsafe(&context);
	if (result)
		return result;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	softgpu_allocation_t want = { .base = address, .size = bytes, .kind = SOFTGPU_SPACE_DEVICE,
				      .device = context->physical, .owner = context };
	return result_of(softgpu_space_place(&want));
}

static CUresult keep(const void *memory)
{
	return result_of(softgpu_space_keep((uint64_t)(uintptr_t)memory, false));
}

static CUresult give(const void *memory)
{
	return result_of(softgpu_space_keep((uint64_t)(uintptr_t)memory, true));
}

CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	static const struct rc_placed_memory placed = { sizeof placed, SOFTGPU_GRANULE, SOFTGPU_PLACE_SMALL,
							SOFTGPU_SPACE_PAGE, SOFTGPU_GRANULE, window, budget,
							place };
	static const struct rc_handle_files files = { sizeof files, ipc_file, ipc_offer };
	static const struct rc_kept_memory kept = { sizeof kept, keep, give };
	static const struct rc_written_memory written = { sizeof written, memop_look };
	static const struct rc_call_follows follows = { sizeof follows, queue_call_follows };
	static const CUuuid written_id = RC_WRITTEN_MEMORY_UUID, follows_id = RC_CALL_FOLLOWS_UUID;
	static const CUuuid placed_id = RC_PLACED_MEMORY_UUID, files_id = RC_HANDLE_FILES_UUID, kept_id = RC_KEPT_MEMORY_UUID;
	CUresult result = init_check();
	if (result)
		return result;
	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	if (!memcmp(pExportTableId, &placed_id, sizeof placed_id))
		*ppExportTable = &placed;
	else if (!memcmp(pExportTableId, &files_id, sizeof files_id))
		*ppExportTable = &files;
	else if (!memcmp(pExportTableId, &kept_id, sizeof kept_id))
		*ppExportTable = &kept;
	else if (!memcmp(pExportTableId, &written_id, sizeof written_id))
		*ppExportTable = &written;
	else if (!memcmp(pExportTableId, &follows_id, sizeof follows_id))
		*ppExportTable = &follows;
	else
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}
