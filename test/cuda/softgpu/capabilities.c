/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of devices and contexts, with two devices; pools by location. */
#include "driver.h"

#include <stdbool.h>
#include <unistd.h>

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

static CUresult get(bool global, CUcoredumpSettings attribute, void *value, size_t size)
{
	return global ? cuCoredumpGetAttributeGlobal(attribute, value, &size)
		      : cuCoredumpGetAttribute(attribute, value, &size);
}

static CUresult set(bool global, CUcoredumpSettings attribute, void *value, size_t size)
{
	return global ? cuCoredumpSetAttributeGlobal(attribute, value, &size)
		      : cuCoredumpSetAttribute(attribute, value, &size);
}

/* The defaults are cuda.h's. */
static void core_dumps_cannot_be_enabled_and_their_settings_are_kept(void)
{
	bool on = true, yes = true, no = false;
	char name[1024], long_name[1025], host[256], want[1024];
	int flags;
	size_t size = 0;
	OK(get(false, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, sizeof on));
	CHECK(!on);
	OK(get(true, CU_COREDUMP_TRIGGER_HOST, &on, sizeof on));
	CHECK(on);
	OK(get(true, CU_COREDUMP_FILE, name, sizeof name));
	CHECK(!gethostname(host, sizeof host));
	snprintf(want, sizeof want, "core.cuda.%s.%d", host, (int)getpid());
	CHECK(!strcmp(name, want));
	for (int global = 0; global < 2; global++) {
		EXPECT(set(global, CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, sizeof yes), CUDA_ERROR_NOT_SUPPORTED);
		OK(set(global, CU_COREDUMP_ENABLE_ON_EXCEPTION, &no, sizeof no));
	}
	/* A context's own settings are its own; for the others it returns the process's. */
	OK(set(true, CU_COREDUMP_FILE, (char[]){ "everywhere" }, 11));
	OK(get(false, CU_COREDUMP_FILE, name, sizeof name));
	CHECK(!strcmp(name, "everywhere"));
	OK(set(false, CU_COREDUMP_FILE, (char[]){ "here" }, 5));
	OK(get(false, CU_COREDUMP_FILE, name, sizeof name));
	CHECK(!strcmp(name, "here"));
	OK(get(true, CU_COREDUMP_FILE, name, sizeof name));
	CHECK(!strcmp(name, "everywhere"));
	EXPECT(get(true, CU_COREDUMP_FILE, name, 5), CUDA_ERROR_INVALID_VALUE);
	memset(long_name, 'x', sizeof long_name);
	EXPECT(set(true, CU_COREDUMP_FILE, long_name, sizeof long_name), CUDA_ERROR_INVALID_VALUE);
	/* Setting one value does not make the other values the context's. */
	OK(set(true, CU_COREDUMP_TRIGGER_HOST, &no, sizeof no));
	OK(get(false, CU_COREDUMP_TRIGGER_HOST, &on, sizeof on));
	CHECK(!on);
	/* The flags and the older setting are the same setting. */
	OK(set(true, CU_COREDUMP_LIGHTWEIGHT, &yes, sizeof yes));
	OK(get(true, CU_COREDUMP_GENERATION_FLAGS, &flags, sizeof flags));
	CHECK(flags == CU_COREDUMP_LIGHTWEIGHT_FLAGS);
	flags = CU_COREDUMP_SKIP_ABORT;
	OK(set(true, CU_COREDUMP_GENERATION_FLAGS, &flags, sizeof flags));
	OK(get(true, CU_COREDUMP_LIGHTWEIGHT, &on, sizeof on));
	CHECK(!on);
	flags = 1 << 20;
	EXPECT(set(true, CU_COREDUMP_GENERATION_FLAGS, &flags, sizeof flags), CUDA_ERROR_INVALID_VALUE);
	EXPECT(set(false, CU_COREDUMP_PIPE, (char[]){ "pipe" }, 5), CUDA_ERROR_NOT_PERMITTED);
	EXPECT(set(false, CU_COREDUMP_ENABLE_USER_TRIGGER, &no, sizeof no), CUDA_ERROR_NOT_PERMITTED);
	OK(cuCoredumpGetAttribute(CU_COREDUMP_PIPE, NULL, &size));
	CHECK(size == 1024);
	EXPECT(get(true, 99, &on, sizeof on), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuCoredumpSetAttributeGlobal(CU_COREDUMP_TRIGGER_HOST, &on, NULL), CUDA_ERROR_INVALID_VALUE);
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
	int known;
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
	OK(cuMemGetMemPool(&now, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(now != of_device);
	OK(cuDeviceGetAttribute(&known, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 1));
	CHECK(known == 1);
}

/* Each device's memory is counted separately. */
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
	/* A synchronous copy within a device returns before it is complete, unless the memory has SYNC_MEMOPS. */
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
	core_dumps_cannot_be_enabled_and_their_settings_are_kept();
	multiprocessors_are_counted(context);
	pools_are_found_by_location();
	devices_have_memory_of_their_own(context);
	end();
	return 0;
}
