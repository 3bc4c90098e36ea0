/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory. The client chooses the addresses, if the driver has the interface of placed_memory.h or virtual memory
 * management (placed/). The implementation checks each address and size, and that the budget is kept. Else the driver chooses
 * the addresses, and each allocation is answered.
 */
#include "cuda_remote/server/placed/placed_virtual.h"

#include "rdma_channel/base/setting.h"

enum { BY_DRIVER, PLACED }; /* values of the setting; others: always by virtual memory management */
HR_SETTING(placed_setting, "HEADRACE_PLACED_MEMORY", "1", 0, 2,
	   "1: clients choose the addresses of their allocations, if the driver can do that; 2: the same, always by virtual memory management; 0: the driver chooses them");

#define AHEAD_PAGES 8 /* of the budget that the client may have beyond what it needs, where it counts in pages */

static const struct rc_placed_memory *placed; /* NULL: the driver cannot do it */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The driver's own implementation. */
static const struct rc_placed_memory *driver_placed(void)
{
	static const CUuuid id = RC_PLACED_MEMORY_UUID;
	const void *table;
	if (!driver.cuGetExportTable || driver.cuGetExportTable(&table, &id) != CUDA_SUCCESS)
		return NULL;
	const struct rc_placed_memory *found = table;
	return found->size == sizeof *found ? found : NULL;
}

static void find_placed(void)
{
	uint64_t wanted;
	if (hr_setting_u64(&placed_setting, &wanted) || wanted == BY_DRIVER)
		return;
	if (wanted == PLACED)
		placed = driver_placed();
	if (!placed)
		placed = placed_virtual_find();
}

static CUresult find(void)
{
	pthread_once(&once, find_placed);
	return placed && driver.cuMemGetInfo_v2 && driver.cuMemFree_v2 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult serve_memory_window(struct server_call *call)
{
	struct rc_wire_window args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = find();
	if (result == CUDA_SUCCESS)
		result = placed->window(args.base, args.bytes);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_wire_placing placing = { placed->granule, placed->small, placed->page, placed->unit };
	return server_give_bytes(call, &placing, sizeof placing);
}

/* Sets bytes aside, and charges the session's quota with them. */
static CUresult budget_take(uint64_t bytes)
{
	uint32_t gpu = server_quota_gpu();
	if (!server_quota_charge(gpu, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = placed->budget(bytes, 0);
	if (result != CUDA_SUCCESS)
		server_quota_release(gpu, bytes);
	return result;
}

/* Sets aside what is needed, and a few pages beyond that, one by one: small allocations will need them. */
static CUresult budget_pages(uint64_t least, uint64_t most, uint64_t *added)
{
	CUresult result = least ? budget_take(least) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		return result;
	*added = least;
	for (int i = 0; i < AHEAD_PAGES && most - *added >= placed->page && budget_take(placed->page) == CUDA_SUCCESS; i++)
		*added += placed->page;
	return CUDA_SUCCESS;
}

/* Adds as much as is free, between least and most. */
static CUresult budget_more(uint64_t least, uint64_t most, uint64_t *added)
{
	size_t available, total;
	CUresult result = driver.cuMemGetInfo_v2(&available, &total);
	if (result != CUDA_SUCCESS)
		return result;
	*added = (most < available ? most : available) / placed->unit * placed->unit;
	if (*added < least)
		*added = least;
	if (!*added)
		return CUDA_SUCCESS;
	if (placed->unit == placed->page)
		return budget_pages(least, *added, added);
	result = budget_take(*added);
	/* Another thread may have allocated meanwhile. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && least && *added > least) {
		*added = least;
		result = budget_take(least);
	}
	return result;
}

static CUresult budget_less(uint64_t bytes)
{
	CUresult result = placed->budget(0, bytes);
	if (result == CUDA_SUCCESS)
		server_quota_release(server_quota_gpu(), bytes);
	return result;
}

CUresult serve_memory_budget(struct server_call *call)
{
	struct rc_wire_budget args;
	uint64_t added = 0;
	if (!server_take_into(call, &args, sizeof args) || args.least > args.most || (args.most && args.less))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = find();
	if (result == CUDA_SUCCESS && (args.least % placed->unit || args.less % placed->unit))
		result = CUDA_ERROR_INVALID_VALUE;
	if (args.less)
		server_quota_returned();
	if (result == CUDA_SUCCESS)
		result = args.less ? budget_less(args.less) : budget_more(args.least, args.most, &added);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &added, sizeof added) : result;
}

bool server_memory_is_placed(void)
{
	return find() == CUDA_SUCCESS;
}

bool server_memory_is_virtual(void)
{
	return find() == CUDA_SUCCESS && placed->unit == placed->page;
}

CUresult server_memory_place(uint64_t address, uint64_t bytes)
{
	CUresult result = find();
	if (result == CUDA_SUCCESS)
		result = placed->place(address, bytes);
	if (result == CUDA_SUCCESS)
		server_usage_placed(address, bytes);
	return result;
}

CUresult serve_memory_place(struct server_call *call)
{
	struct rc_wire_place args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	return server_memory_place(args.address, args.bytes);
}

/* The client knows that no work uses the memory, so the driver does not wait, and the call keeps its place in the order. */
CUresult serve_memory_unplace(struct server_call *call)
{
	struct rc_wire_address args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (server_mirror_at(args.address))
		return CUDA_ERROR_INVALID_VALUE;
	return server_usage_unplace(args.address);
}

CUresult serve_memory_free(struct server_call *call)
{
	struct rc_wire_address args;
	if (!server_take_into(call, &args, sizeof args) || server_mirror_at(args.address))
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	return driver.cuMemFree_v2 ? driver.cuMemFree_v2(args.address) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult serve_memory_alloc(struct server_call *call)
{
	struct rc_wire_bytes args;
	CUdeviceptr address;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver.cuMemAlloc_v2 ? driver.cuMemAlloc_v2(&address, args.bytes) : CUDA_ERROR_NOT_SUPPORTED;
	return result == CUDA_SUCCESS ? server_give_bytes(call, &address, sizeof address) : result;
}

CUresult serve_memory_alloc_pitch(struct server_call *call)
{
	struct rc_wire_rows args;
	CUdeviceptr address;
	size_t pitch;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver.cuMemAllocPitch_v2 ?
				  driver.cuMemAllocPitch_v2(&address, &pitch, args.width, args.height, args.element) :
				  CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = server_give_bytes(call, &address, sizeof address);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &pitch, sizeof pitch) : result;
}

/* Only CU_POINTER_ATTRIBUTE_SYNC_MEMOPS can be set. NVIDIA's driver refuses it for memory that the worker has mapped (placed/).
 * The worker then reports success: the client itself waits in synchronous calls on memory with this attribute. */
CUresult serve_pointer_attribute(struct server_call *call)
{
	struct rc_args_cuPointerSetAttribute args;
	unsigned value;
	if (!server_take_into(call, &args, sizeof args) || !server_take_into(call, &value, sizeof value) ||
	    args.attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	if (server_placed_at(args.ptr))
		return CUDA_SUCCESS;
	return driver.cuPointerSetAttribute ? driver.cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, args.ptr) :
					      CUDA_ERROR_NOT_SUPPORTED;
}
