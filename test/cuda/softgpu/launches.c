/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, contexts, and the checks of a launch. */
#include "driver.h"

#include <sys/wait.h>
#include <unistd.h>

static CUresult shape(const char *name, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		      unsigned shared)
{
	return cuLaunchKernel(kernel(name), gx, gy, gz, bx, by, bz, shared, NULL, NULL, NULL);
}

static void dimensions_are_checked(void)
{
	OK(shape("nothing", 1, 1, 1, 512, 1, 1, 0));
	OK(shape("nothing", 2147483647, 65535, 65535, 1, 1, 1, 0));
	EXPECT(shape("nothing", 0, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(shape("nothing", 1, 1, 0, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(shape("nothing", 1, 1, 1, 1, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(shape("nothing", 2147483648u, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(shape("nothing", 1, 65536, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(shape("nothing", 1, 1, 65536, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(shape("nothing", 1, 1, 1, 1025, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(shape("nothing", 1, 1, 1, 1, 1, 65, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(shape("nothing", 1, 1, 1, 1024, 1024, 64, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(shape("nothing", 1, 1, 1, 33, 32, 1, 0), CUDA_ERROR_INVALID_VALUE);
	/* The kernel's own limit is 512 threads. */
	EXPECT(shape("nothing", 1, 1, 1, 513, 1, 1, 0), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	OK(cuCtxSynchronize());
}

/* The double's kernels have 1 KiB of static shared memory. */
static void dynamic_shared_memory_must_be_asked_for(void)
{
	CUfunction function = kernel("nothing");
	int value;
	OK(shape("nothing", 1, 1, 1, 1, 1, 1, 47 << 10));
	EXPECT(shape("nothing", 1, 1, 1, 1, 1, 1, (47 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
	CHECK(value == 47 << 10);
	OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 << 10));
	OK(shape("nothing", 1, 1, 1, 1, 1, 1, 200 << 10));
	EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 << 10),
	       CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
}

static void parameters_come_in_two_forms(void)
{
	void *memory;
	OK(cuMemHostAlloc(&memory, 64, 0));
	uint32_t *record = memory, value = 5;
	memset(record, 0, 64);
	struct {
		uint64_t log;
		uint32_t value;
	} block = { (uint64_t)(uintptr_t)record, 6 };
	size_t size = 12;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };
	void *list[] = { &block.log, &value };
	CUfunction function = kernel("append");
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, list, NULL));
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	value = 0; /* was copied */
	block.value = 0;
	OK(cuCtxSynchronize());
	CHECK(record[0] == 2 && record[1] == 5 && record[2] == 6);
	size = 11;
	EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, list, extra), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, list, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, (CUstream)memory, list, NULL), CUDA_ERROR_INVALID_HANDLE);
	size_t offset, bytes;
	OK(cuFuncGetParamInfo(function, 1, &offset, &bytes));
	CHECK(offset == 8 && bytes == 4);
	EXPECT(cuFuncGetParamInfo(function, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeHost(memory));
}

static void attributes_that_need_more_than_there_is_are_refused(void)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
	CUlaunchConfig config = { .gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1,
				  .blockDimZ = 1, .attrs = &attribute, .numAttrs = 1 };
	CUfunction function = kernel("nothing");
	attribute.value.clusterDim.x = attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
	OK(cuLaunchKernelEx(&config, function, NULL, NULL));
	attribute.value.clusterDim.x = 3;
	EXPECT(cuLaunchKernelEx(&config, function, NULL, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	OK(cuLaunchKernelEx(&config, function, NULL, NULL));
	attribute.id = (CUlaunchAttributeID)99;
	EXPECT(cuLaunchKernelEx(&config, function, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	attribute.value.cooperative = 1;
	OK(cuLaunchKernelEx(&config, function, NULL, NULL));
	config.gridDimX = 1000000;
	EXPECT(cuLaunchKernelEx(&config, function, NULL, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	EXPECT(cuLaunchKernelEx(NULL, function, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSynchronize());
}

/* 32 registers, 1 KiB static shared memory, at most 512 threads: 2048 threads of a multiprocessor are the limit. */
static void occupancy_follows_the_model(void)
{
	CUfunction function = kernel("nothing");
	int blocks, grid, block;
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
	CHECK(blocks == 8);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 32, 0));
	CHECK(blocks == 32);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 100 << 10));
	CHECK(blocks == 2);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 600, 0));
	CHECK(blocks == 0);
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 0));
	CHECK(block == 512 && grid == 8);
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 100));
	CHECK(block <= 100 && block * (grid / 2) >= 1984);
	EXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 0, 0), CUDA_ERROR_INVALID_VALUE);
	size_t shared; /* what a launch may use: more only if the function has asked for it */
	for (int asked = 0; asked < 2; asked++) {
		OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, asked ? 100 << 10 : 1024));
		OK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, function, 1, 256));
		CHECK(shared == (size_t)((asked ? 227 : 48) << 10) - 1024);
	}
	CUlaunchConfig config = {
		.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 128, .blockDimY = 2, .blockDimZ = 1
	};
	OK(cuOccupancyMaxActiveClusters(&blocks, function, &config));
	CHECK(blocks == 16);
}

static void contexts_form_a_stack(CUcontext primary)
{
	CUcontext a, b, now;
	CUdevice device;
	OK(cuCtxCreate(&a, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
	OK(cuCtxCreate(&b, NULL, 0, 1));
	OK(cuCtxGetDevice(&device));
	CHECK(device == 1);
	OK(cuCtxPopCurrent(&now));
	CHECK(now == b);
	OK(cuCtxGetCurrent(&now));
	CHECK(now == a);
	OK(cuCtxPushCurrent(b));
	/* A stream of one context cannot be used with a module of another. */
	EXPECT(cuLaunchKernel(kernel("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	CUdeviceptr left;
	OK(cuMemAlloc(&left, 1 << 20));
	size_t free_bytes, total;
	OK(cuMemGetInfo(&free_bytes, &total));
	CHECK(free_bytes == total - (1 << 20));
	OK(cuCtxDestroy(b));
	OK(cuCtxGetCurrent(&now));
	CHECK(now == a);
	EXPECT(cuCtxPushCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxCreate(&b, NULL, 0, 1));
	OK(cuMemGetInfo(&free_bytes, &total));
	CHECK(free_bytes == total); /* the memory of the destroyed context is free again */
	OK(cuCtxEnablePeerAccess(a, 0));
	EXPECT(cuCtxEnablePeerAccess(a, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	OK(cuCtxDisablePeerAccess(a));
	EXPECT(cuCtxDisablePeerAccess(a), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxDestroy(b));
	OK(cuCtxDestroy(a));
	EXPECT(cuCtxDestroy(primary), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuCtxCreate(&a, NULL, 0x3, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuCtxCreate(&a, NULL, 0, 7), CUDA_ERROR_INVALID_DEVICE);
	OK(cuCtxSetCurrent(NULL));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(primary));
}

static void limits_are_kept(void)
{
	size_t value;
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 5000));
	OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	CHECK(value == 5000);
	EXPECT(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
	EXPECT(cuCtxSetLimit((CUlimit)77, 1), CUDA_ERROR_INVALID_VALUE);
}

static void devices_describe_themselves(void)
{
	int count, value, peer;
	char name[64], bus[16];
	CUuuid first, second;
	CUdevice device;
	OK(cuDeviceGetCount(&count));
	CHECK(count == 2);
	EXPECT(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceGetName(name, 9, 0));
	CHECK(!strcmp(name, "Headrace"));
	OK(cuDeviceGetUuid(&first, 0));
	OK(cuDeviceGetUuid(&second, 1));
	CHECK(memcmp(&first, &second, sizeof first));
	OK(cuDeviceGetPCIBusId(bus, sizeof bus, 1));
	OK(cuDeviceGetByPCIBusId(&device, bus));
	CHECK(device == 1);
	EXPECT(cuDeviceGetByPCIBusId(&device, "0000:01:00.0"), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuDeviceGetByPCIBusId(&device, "nonsense"), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	CHECK(value == 32);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
	CHECK(value == 1);
	EXPECT(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceCanAccessPeer(&peer, 0, 1));
	CHECK(peer == 1);
}

static void call_of_the_future(const char *name, CUresult wanted)
{
	void *function;
	CUdriverProcAddressQueryResult status;
	OK(cuGetProcAddress(name, &function, CUDA_VERSION, 0, &status));
	CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
	EXPECT(((CUresult (*)(void *, unsigned))function)(NULL, 0), wanted);
}

/* In a child process each: calls before cuInit, and after a fork. */
static int in_child(int (*test)(void))
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child)
		_exit(test());
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int calls_before_init_are_refused(void)
{
	int count;
	CUdeviceptr memory;
	EXPECT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	EXPECT(cuMemAlloc(&memory, 1), CUDA_ERROR_NOT_INITIALIZED);
	EXPECT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	OK(cuDriverGetVersion(&count));
	CHECK(count == 13000);
	OK(cuInit(0));
	EXPECT(cuMemAlloc(&memory, 1), CUDA_ERROR_INVALID_CONTEXT);
	return 0;
}

static int no_device_is_visible(void)
{
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	EXPECT(cuInit(0), CUDA_ERROR_NO_DEVICE);
	setenv("CUDA_VISIBLE_DEVICES", "7", 1);
	EXPECT(cuInit(0), CUDA_ERROR_NO_DEVICE);
	return 0;
}

static int devices_are_hidden_and_reordered(void)
{
	setenv("CUDA_VISIBLE_DEVICES", "1,0,9,1", 1);
	OK(cuInit(0));
	int count, bus;
	OK(cuDeviceGetCount(&count));
	CHECK(count == 2);
	OK(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0));
	CHECK(bus == 0xE1);
	return 0;
}

static int nothing_works_in_a_forked_child(void)
{
	CUdeviceptr memory;
	EXPECT(cuMemAlloc(&memory, 1), CUDA_ERROR_NOT_INITIALIZED);
	EXPECT(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
	return 0;
}

int main(void)
{
	setenv("HEADRACE_SOFTGPU_DEVICES", "2", 1);
	setenv("HEADRACE_SOFTGPU_MEMORY", "64M", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	CHECK(!in_child(calls_before_init_are_refused));
	CHECK(!in_child(no_device_is_visible));
	CHECK(!in_child(devices_are_hidden_and_reordered));
	CUcontext context = start();
	CHECK(!in_child(nothing_works_in_a_forked_child));
	devices_describe_themselves();
	dimensions_are_checked();
	dynamic_shared_memory_must_be_asked_for();
	parameters_come_in_two_forms();
	attributes_that_need_more_than_there_is_are_refused();
	occupancy_follows_the_model();
	contexts_form_a_stack(context);
	limits_are_kept();
	call_of_the_future("cuGraphicsUnregisterResource", CUDA_ERROR_NOT_SUPPORTED);
	OK(cuDevicePrimaryCtxRelease(0));
	EXPECT(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
	return 0;
}
