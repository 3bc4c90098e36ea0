/* SPDX-License-Identifier: BSD-3-Clause */
/* What devices and contexts tell of themselves, with two devices; and pools by location. */
#include "driver.h"

#include <stdbool.h>

static void atomic_operations_are_told(void)
{
	const CUatomicOperation operations[] = { CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_INTEGER_INCREMENT,
						 CU_ATOMIC_OPERATION_CAS, CU_ATOMIC_OPERATION_FLOAT_MAX };
	unsigned told[4];
	OK(cuDeviceGetHostAtomicCapabilities(told, operations, 4, 0));
	CHECK(told[0] & CU_ATOMIC_CAPABILITY_SIGNED && told[0] & CU_ATOMIC_CAPABILITY_SCALAR_64);
	CHECK(!(told[1] & CU_ATOMIC_CAPABILITY_SCALAR_64)); /* PTX: atom.inc is u32 */
	CHECK(!(told[2] & CU_ATOMIC_CAPABILITY_REDUCTION)); /* red has no cas */
	CHECK(told[3] == 0);
	OK(cuDeviceGetP2PAtomicCapabilities(told, operations, 4, 0, 1));
	EXPECT(cuDeviceGetP2PAtomicCapabilities(told, operations, 4, 1, 1), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuDeviceGetHostAtomicCapabilities(told, operations, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDeviceGetHostAtomicCapabilities(told, operations, 4, 2), CUDA_ERROR_INVALID_DEVICE);
}

static void settings_of_core_dumps_say_that_there_are_none(void)
{
	bool on = true;
	char file[8] = "x";
	size_t size = sizeof on;
	OK(cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size));
	CHECK(!on && size == sizeof on);
	size = sizeof file;
	OK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, file, &size));
	CHECK(!file[0]);
	EXPECT(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size), CUDA_ERROR_NOT_SUPPORTED);
}

static void multiprocessors_are_counted(CUcontext context)
{
	CUdevResource resource;
	CUgreenCtx green;
	int count;
	CUexecAffinityParam affinity;
	OK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	OK(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(resource.type == CU_DEV_RESOURCE_TYPE_SM && resource.sm.smCount == (unsigned)count);
	OK(cuCtxGetDevResource(context, &resource, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(resource.sm.smCount == (unsigned)count);
	EXPECT(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_INVALID), CUDA_ERROR_INVALID_RESOURCE_TYPE);
	OK(cuStreamGetGreenCtx(CU_STREAM_LEGACY, &green));
	CHECK(!green);
	EXPECT(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
}

static void pools_are_found_by_location(void)
{
	CUmemLocation second = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 };
	CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST };
	CUmemoryPool by_location, of_device, own, now;
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = second };
	OK(cuMemGetDefaultMemPool(&by_location, &second, CU_MEM_ALLOCATION_TYPE_PINNED));
	OK(cuDeviceGetDefaultMemPool(&of_device, 1));
	CHECK(by_location == of_device);
	OK(cuMemPoolCreate(&own, &properties));
	OK(cuMemSetMemPool(&second, CU_MEM_ALLOCATION_TYPE_PINNED, own));
	OK(cuDeviceGetMemPool(&now, 1));
	CHECK(now == own);
	EXPECT(cuDeviceSetMemPool(0, own), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolDestroy(own));
	OK(cuMemGetMemPool(&now, &second, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(now == of_device);
	EXPECT(cuMemGetMemPool(&now, &host, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_NOT_SUPPORTED);
}

/* The sum of what the two devices' memory has, each counted by itself. */
static void devices_have_memory_of_their_own(CUcontext first)
{
	CUcontext second;
	CUdeviceptr here, there;
	size_t before[2], after[2], total;
	uint32_t value;
	int can;
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuMemGetInfo(&before[0], &total));
	OK(cuMemAlloc(&here, 1 << 20));
	OK(cuCtxPushCurrent(second));
	OK(cuMemGetInfo(&before[1], &total));
	OK(cuMemAlloc(&there, 1 << 20));
	OK(cuMemGetInfo(&after[1], &total));
	CHECK(before[1] - after[1] == 1 << 20);
	OK(cuCtxPopCurrent(NULL));
	OK(cuMemGetInfo(&after[0], &total));
	CHECK(before[0] - after[0] == 1 << 20);
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK(can);
	OK(cuCtxEnablePeerAccess(second, 0));
	EXPECT(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	OK(cuMemsetD32(here, 5, 1));
	OK(cuMemcpyPeer(there, second, here, first, 4));
	OK(cuMemcpyDtoH(&value, there, 4));
	CHECK(value == 5);
	/* A synchronous copy inside a device returns before it is done, unless the memory says otherwise. */
	unsigned on = 1;
	bool told = false;
	OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, here));
	CHECK(!told);
	OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, here));
	OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, here));
	CHECK(told);
	EXPECT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_IS_MANAGED, here), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxDisablePeerAccess(second));
	EXPECT(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuMemFree(here));
	OK(cuMemFree(there));
	OK(cuDevicePrimaryCtxRelease(1));
}

int main(void)
{
	setenv("HEADRACE_SOFTGPU_DEVICES", "2", 1);
	setenv("HEADRACE_SOFTGPU_MEMORY", "64M", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	CUcontext context = start();
	atomic_operations_are_told();
	settings_of_core_dumps_say_that_there_are_none();
	multiprocessors_are_counted(context);
	pools_are_found_by_location();
	devices_have_memory_of_their_own(context);
	return 0;
}
