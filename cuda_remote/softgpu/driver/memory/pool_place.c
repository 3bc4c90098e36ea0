/* SPDX-License-Identifier: BSD-3-Clause */
/* The places of pools. */
#include "cuda_remote/softgpu/driver/memory/pool_place.h"

#include "cuda_remote/softgpu/driver/device/device.h"

#include <stdio.h>
#include <unistd.h>

/* Indices behind those of pinned and of managed memory of devices. */
enum { PINNED_HOST = 2 * SOFTGPU_MAX_DEVICES, MANAGED_HOST, MANAGED_ANYWHERE, MANAGED_NODES };
_Static_assert(MANAGED_NODES + POOL_NODES == POOL_PLACES, "an index for each place");

pool_place_t pool_place_device(CUdevice device)
{
	return (pool_place_t){ SOFTGPU_SPACE_DEVICE, device, (unsigned)device };
}

/* Node 0 exists on a host without NUMA too. */
static bool node_exists(int node)
{
	char path[64];
	snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
	return !node || (node > 0 && node < POOL_NODES && !access(path, F_OK));
}

static CUresult find_managed(const CUmemLocation *location, pool_place_t *place)
{
	*place = (pool_place_t){ SOFTGPU_SPACE_MANAGED, -1, MANAGED_ANYWHERE };
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_NONE:
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_DEVICE:
		if (!device_valid(location->id))
			return CUDA_ERROR_INVALID_DEVICE;
		place->device = location->id;
		place->index = SOFTGPU_MAX_DEVICES + (unsigned)location->id;
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
		place->index = MANAGED_HOST;
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		if (!node_exists(location->id))
			return CUDA_ERROR_INVALID_VALUE;
		place->index = MANAGED_NODES + (unsigned)location->id;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult find_pinned(const CUmemLocation *location, pool_place_t *place)
{
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		*place = pool_place_device(location->id);
		return device_valid(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
		*place = (pool_place_t){ SOFTGPU_SPACE_HOST, -1, PINNED_HOST };
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return CUDA_ERROR_NOT_SUPPORTED; /* memory is not bound to nodes */
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult pool_place_find(const CUmemLocation *location, CUmemAllocationType type, pool_place_t *place)
{
	switch (type) {
	case CU_MEM_ALLOCATION_TYPE_PINNED:
		return find_pinned(location, place);
	case CU_MEM_ALLOCATION_TYPE_MANAGED:
		return find_managed(location, place);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
