/* SPDX-License-Identifier: BSD-3-Clause */
/* Device queries, answered from the worker's reply to hello; and the calls of cudaProfiler.h. */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/session.h"

/* cudaProfiler.h, unlike cuda.h, does not make its functions visible. */
#pragma GCC visibility push(default)
#include <cudaProfiler.h>
#pragma GCC visibility pop
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Abilities that a program can use if the device's server maps its memory (pinned.c). */
static bool needs_mapping(CUdevice_attribute attribute)
{
	switch ((int)attribute) {
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
	case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED:
		return true;
	default:
		return false;
	}
}

/* True if the server is on this host and lets kernels use memory of the program at the program's address. */
static bool can_map(const struct rc_device *device)
{
	return device->session->local && device->session->pinned &&
	       device->wire.attribute[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] &&
	       device->wire.attribute[CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM];
}

/* Abilities that the device may have but that a program cannot use. They are reported as absent. */
static bool cannot_be_forwarded(CUdevice_attribute attribute)
{
	switch ((int)attribute) {
	case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
	case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
	case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
	case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES:
	case CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
		return true;
	default:
		return false;
	}
}

int rc_device_attribute(const struct rc_device *device, CUdevice_attribute attribute)
{
	if ((unsigned)attribute >= RC_DEVICE_ATTRIBUTES || !device->wire.known[attribute])
		return 0;
	if (cannot_be_forwarded(attribute)) /* -1: the host does not support NUMA, as cuda.h defines it */
		return attribute == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID ? -1 : 0;
	if ((int)attribute == CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED) /* such pools are the client's (host_pool.c) */
		return rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
	if (attribute == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) /* others do not cross the connection */
		return device->wire.attribute[attribute] & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	if ((attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY || attribute == CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) &&
	    !can_map(device) && !device->session->local)
		return rc_mirror_supported(device->session);
	return needs_mapping(attribute) && !can_map(device) ? 0 : device->wire.attribute[attribute];
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice number)
{
	struct rc_device *device;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(number, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if ((unsigned)attribute >= RC_DEVICE_ATTRIBUTES || !device->wire.known[attribute])
		return CUDA_ERROR_INVALID_VALUE;
	*value = rc_device_attribute(device, attribute);
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	struct rc_process *process;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	/* Before cuInit: the CUDA version that this library is built for. */
	*version = rc_process_get(&process) == CUDA_SUCCESS ? process->driver_version : CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	struct rc_process *process;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		*count = process->devices;
	return result;
}

CUresult cuDeviceGet(CUdevice *number, int ordinal)
{
	struct rc_device *device;
	if (!number)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(ordinal, &device);
	if (result == CUDA_SUCCESS)
		*number = ordinal;
	return result;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice number)
{
	struct rc_device *device;
	if (!name || len < 1)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(number, &device);
	if (result == CUDA_SUCCESS)
		snprintf(name, (size_t)len, "%s", device->wire.name);
	return result;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice number)
{
	struct rc_device *device;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(number, &device);
	if (result == CUDA_SUCCESS)
		memcpy(uuid->bytes, device->wire.uuid, sizeof uuid->bytes);
	return result;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice number)
{
	return cuDeviceGetUuid_v2(uuid, number);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice number)
{
	struct rc_device *device;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(number, &device);
	if (result == CUDA_SUCCESS)
		*bytes = device->wire.memory;
	return result;
}

/* CUDA 2's call, with a 32-bit size: 4 GiB or more are reported as UINT32_MAX. */
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice number)
{
	struct rc_device *device;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(number, &device);
	if (result != CUDA_SUCCESS)
		return result;
	*major = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	*minor = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice number)
{
	struct rc_device *device;
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(number, &device);
	if (result != CUDA_SUCCESS)
		return result;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
		.sharedMemPerBlock = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
		.totalConstantMemory = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
		.SIMDWidth = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
		.memPitch = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH),
		.regsPerBlock = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
		.clockRate = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
		.textureAlign = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
	};
	for (int i = 0; i < 3; i++) {
		prop->maxThreadsDim[i] = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
		prop->maxGridSize[i] = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
	}
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice number)
{
	struct rc_device *device;
	if (!id || len < 1)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(number, &device);
	if (result == CUDA_SUCCESS && snprintf(id, (size_t)len, "%s", device->wire.pci) >= len)
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

/* "domain:bus:device.function", hexadecimal; the domain and the function may be left out. */
static bool parse_pci(const char *text, unsigned id[4])
{
	id[0] = id[3] = 0;
	char rest;
	int n = sscanf(text, "%x:%x:%x.%x%c", &id[0], &id[1], &id[2], &id[3], &rest);
	if (n == 4 || n == 3)
		return true;
	id[0] = id[3] = 0;
	n = sscanf(text, "%x:%x.%x%c", &id[1], &id[2], &id[3], &rest);
	return n == 3 || n == 2;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *number, const char *text)
{
	struct rc_process *process;
	unsigned wanted[4], found[4];
	if (!number || !text)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!parse_pci(text, wanted))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < process->devices; i++) {
		if (parse_pci(process->device[i].wire.pci, found) && !memcmp(found, wanted, sizeof found)) {
			*number = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice number, CUdevice peer)
{
	struct rc_device *device, *other;
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(number, &device);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(peer, &other);
	if (result == CUDA_SUCCESS)
		*can = device->session == other->session && device->wire.peers[other->ordinal];
	return result;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice number, CUdevice peer)
{
	struct rc_device *device, *other;
	if (!value || (unsigned)attribute < 1 || (unsigned)attribute >= sizeof device->wire.p2p[0])
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(number, &device);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(peer, &other);
	if (result != CUDA_SUCCESS)
		return result;
	if (device == other)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = device->session == other->session ? device->wire.p2p[other->ordinal][attribute] : 0;
	return CUDA_SUCCESS;
}

/* No profiler can be attached to the forwarding driver. Start and stop do nothing, as in CUDA without a profiler. */
CUresult cuProfilerInitialize(const char *config, const char *output, CUoutput_mode mode)
{
	(void)config;
	(void)output;
	(void)mode;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuProfilerStart(void)
{
	struct rc_context *context;
	return rc_context_get(&context);
}

CUresult cuProfilerStop(void)
{
	struct rc_context *context;
	return rc_context_get(&context);
}

/* Devices of two servers have no atomic operations on each other's memory. */
CUresult device_check_atomics(unsigned *capabilities, const CUatomicOperation *operations, unsigned count, CUdevice from,
			      CUdevice to)
{
	struct rc_device *device, *other;
	CUresult result = rc_device_get(from, &device);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(to, &other);
	if (result != CUDA_SUCCESS || device->session == other->session)
		return result;
	if (!capabilities || !operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	memset(capabilities, 0, count * sizeof *capabilities);
	return RC_ANSWERED;
}
