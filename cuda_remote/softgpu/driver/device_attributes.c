/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the devices say of themselves. An attribute that the table does not name is 0: the feature is not there (arrays
 * and textures, virtual memory management, clusters, IPC, multicast …).
 */
#include "cuda_remote/softgpu/driver/device.h"

#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/engine.h"
#include "cuda_remote/softgpu/memory/space.h"

#include <stdio.h>
#include <unistd.h>

#define ATTRIBUTE(name) CU_DEVICE_ATTRIBUTE_##name

static const struct {
	CUdevice_attribute attribute;
	int value;
} constants[] = {
	{ ATTRIBUTE(MAX_THREADS_PER_BLOCK), DEVICE_MAX_THREADS },
	{ ATTRIBUTE(MAX_BLOCK_DIM_X), DEVICE_MAX_THREADS },
	{ ATTRIBUTE(MAX_BLOCK_DIM_Y), DEVICE_MAX_THREADS },
	{ ATTRIBUTE(MAX_BLOCK_DIM_Z), DEVICE_MAX_BLOCK_Z },
	{ ATTRIBUTE(MAX_GRID_DIM_X), 2147483647 },
	{ ATTRIBUTE(MAX_GRID_DIM_Y), DEVICE_MAX_GRID_YZ },
	{ ATTRIBUTE(MAX_GRID_DIM_Z), DEVICE_MAX_GRID_YZ },
	{ ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK), DEVICE_SHARED_BYTES },
	{ ATTRIBUTE(TOTAL_CONSTANT_MEMORY), 65536 },
	{ ATTRIBUTE(WARP_SIZE), 32 },
	{ ATTRIBUTE(MAX_PITCH), 2147483647 },
	{ ATTRIBUTE(MAX_REGISTERS_PER_BLOCK), DEVICE_REGISTERS_SM },
	{ ATTRIBUTE(TEXTURE_ALIGNMENT), SOFTGPU_GRANULE },
	{ ATTRIBUTE(SURFACE_ALIGNMENT), SOFTGPU_GRANULE },
	{ ATTRIBUTE(TEXTURE_PITCH_ALIGNMENT), 32 },
	{ ATTRIBUTE(GPU_OVERLAP), 1 },
	{ ATTRIBUTE(ASYNC_ENGINE_COUNT), 2 },
	{ ATTRIBUTE(CAN_MAP_HOST_MEMORY), 1 },
	{ ATTRIBUTE(COMPUTE_MODE), CU_COMPUTEMODE_DEFAULT },
	{ ATTRIBUTE(CONCURRENT_KERNELS), 1 },
	{ ATTRIBUTE(UNIFIED_ADDRESSING), 1 },
	{ ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR), DEVICE_THREADS_SM },
	{ ATTRIBUTE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), DEVICE_SHARED_SM },
	{ ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR), DEVICE_REGISTERS_SM },
	{ ATTRIBUTE(MAX_BLOCKS_PER_MULTIPROCESSOR), DEVICE_BLOCKS_SM },
	{ ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), DEVICE_SHARED_OPTIN },
	{ ATTRIBUTE(RESERVED_SHARED_MEMORY_PER_BLOCK), DEVICE_SHARED_RESERVED },
	{ ATTRIBUTE(STREAM_PRIORITIES_SUPPORTED), 1 },
	{ ATTRIBUTE(GLOBAL_L1_CACHE_SUPPORTED), 1 },
	{ ATTRIBUTE(LOCAL_L1_CACHE_SUPPORTED), 1 },
	{ ATTRIBUTE(MANAGED_MEMORY), 1 },
	{ ATTRIBUTE(CONCURRENT_MANAGED_ACCESS), 1 },
	{ ATTRIBUTE(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST), 1 },
	{ ATTRIBUTE(MEMORY_POOLS_SUPPORTED), 1 },
	{ ATTRIBUTE(MEMPOOL_SUPPORTED_HANDLE_TYPES), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR },
	{ ATTRIBUTE(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 1 },
	{ ATTRIBUTE(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), 1 },
	{ ATTRIBUTE(HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 1 },
	{ ATTRIBUTE(IPC_EVENT_SUPPORTED), 1 },
	{ ATTRIBUTE(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO), 2 },
	{ ATTRIBUTE(HOST_NATIVE_ATOMIC_SUPPORTED), 1 },
	{ ATTRIBUTE(HOST_REGISTER_SUPPORTED), 1 },
	{ ATTRIBUTE(READ_ONLY_HOST_REGISTER_SUPPORTED), 1 },
	{ ATTRIBUTE(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM), 1 },
	{ ATTRIBUTE(COOPERATIVE_LAUNCH), 1 },
	{ ATTRIBUTE(CAN_USE_STREAM_MEM_OPS_V1), 1 },
	{ ATTRIBUTE(CAN_USE_64_BIT_STREAM_MEM_OPS_V1), 1 },
	{ ATTRIBUTE(CAN_USE_STREAM_WAIT_VALUE_NOR_V1), 1 },
	{ ATTRIBUTE(CAN_USE_64_BIT_STREAM_MEM_OPS), 1 },
	{ ATTRIBUTE(CAN_USE_STREAM_WAIT_VALUE_NOR), 1 },
	{ ATTRIBUTE(MEM_SYNC_DOMAIN_COUNT), 1 },
	{ ATTRIBUTE(NUMA_ID), -1 },
	/* Not to be known: given as two channels of DDR4-3200, so that a program's peak bandwidth is not 0. */
	{ ATTRIBUTE(MEMORY_CLOCK_RATE), 1600000 },
	{ ATTRIBUTE(GLOBAL_MEMORY_BUS_WIDTH), 128 },
};

/* kHz, as the kernel tells it of the first processor; 1 GHz where it does not. */
static int clock_rate(void)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	double mhz = 0;
	char line[256];
	while (file && !mhz && fgets(line, sizeof line, file))
		if (sscanf(line, "cpu MHz : %lf", &mhz) != 1)
			mhz = 0;
	if (file)
		fclose(file);
	return mhz > 1 ? (int)(mhz * 1000) : 1000000;
}

static int cache_size(void)
{
	long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
	return bytes > 0 && bytes < 2147483647 ? (int)bytes : 0;
}

static int value_of(CUdevice_attribute attribute, CUdevice device)
{
	switch (attribute) {
	case ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR):
		return (int)device_capability() / 10;
	case ATTRIBUTE(COMPUTE_CAPABILITY_MINOR):
		return (int)device_capability() % 10;
	case ATTRIBUTE(MULTIPROCESSOR_COUNT):
		return (int)softgpu_threads();
	case ATTRIBUTE(CLOCK_RATE):
		return clock_rate();
	case ATTRIBUTE(L2_CACHE_SIZE):
		return cache_size();
	case ATTRIBUTE(PCI_BUS_ID): {
		char text[16];
		unsigned bus = 0;
		if (!cuDeviceGetPCIBusId(text, sizeof text, device))
			sscanf(text, "0000:%x", &bus);
		return (int)bus;
	}
	default:
		for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
			if (constants[i].attribute == attribute)
				return constants[i].value;
		return 0;
	}
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!pi || attrib < 1 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pi = value_of(attrib, dev);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!pi || type < 0 || type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pi = 0;
	return CUDA_SUCCESS;
}

/* The two queries that CUDA had before cuDeviceGetAttribute. */
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	if (!minor)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = cuDeviceGetAttribute(major, ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR), dev);
	return result ? result : cuDeviceGetAttribute(minor, ATTRIBUTE(COMPUTE_CAPABILITY_MINOR), dev);
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = DEVICE_MAX_THREADS,
		.maxThreadsDim = { DEVICE_MAX_THREADS, DEVICE_MAX_THREADS, DEVICE_MAX_BLOCK_Z },
		.maxGridSize = { 2147483647, DEVICE_MAX_GRID_YZ, DEVICE_MAX_GRID_YZ },
		.sharedMemPerBlock = DEVICE_SHARED_BYTES,
		.totalConstantMemory = 65536,
		.SIMDWidth = 32,
		.memPitch = 2147483647,
		.regsPerBlock = DEVICE_REGISTERS_SM,
		.clockRate = clock_rate(),
		.textureAlign = SOFTGPU_GRANULE,
	};
	return CUDA_SUCCESS;
}
