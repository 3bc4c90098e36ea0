/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device resources (cuda.h, "Green Contexts"): multiprocessors and their division. A part may have any number of them,
 * as the multiprocessors here share no hardware.
 */
#include "cuda_remote/softgpu/driver/device/device_resource.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/engine.h"

#include <string.h>

#define SECRET_MAGIC UINT32_C(0x5e50c3d1)

/* The content of a CUdevResource's padding: the origin of its multiprocessors. */
typedef struct secret {
	uint32_t magic;
	int32_t device;
	uint64_t split;  /* number of the split that made this part; 0: not split */
	uint32_t part;   /* number of the part; UINT32_MAX: the multiprocessors that the split left over */
} secret_t;

_Static_assert(sizeof(secret_t) <= sizeof(((CUdevResource *)0)->_internal_padding), "it fits");

static secret_t secret_of(const CUdevResource *resource)
{
	secret_t secret;
	memcpy(&secret, resource->_internal_padding, sizeof secret);
	return secret;
}

static void fill(CUdevResource *resource, const secret_t *secret, unsigned multiprocessors)
{
	memset(resource, 0, sizeof *resource);
	if (!multiprocessors)
		return; /* CU_DEV_RESOURCE_TYPE_INVALID */
	resource->type = CU_DEV_RESOURCE_TYPE_SM;
	memcpy(resource->_internal_padding, secret, sizeof *secret);
	resource->sm = (CUdevSmResource){
		.smCount = multiprocessors, .minSmPartitionSize = 1, .smCoscheduledAlignment = 1
	};
}

void device_resource(CUdevice device, CUdevResource *resource)
{
	fill(resource, &(secret_t){ .magic = SECRET_MAGIC, .device = device }, softgpu_threads());
}

CUdevice device_resource_device(const CUdevResource *resource)
{
	return secret_of(resource).device;
}

void device_resource_provision(CUdevResource *resource)
{
	fill(resource, &(secret_t){ .magic = SECRET_MAGIC, .device = device_resource_device(resource) },
	     resource->sm.smCount);
}

/* CUDA_ERROR_INVALID_RESOURCE_TYPE; CUDA_ERROR_INVALID_VALUE: not from this driver, or changed by the program. */
static CUresult check(const CUdevResource *resource)
{
	if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	secret_t secret = secret_of(resource);
	bool ours = secret.magic == SECRET_MAGIC && device_valid(secret.device) && resource->sm.smCount &&
		    resource->sm.smCount <= softgpu_threads();
	return ours ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	device_resource(device, resource);
	return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups, const CUdevResource *input,
				     CUdevResource *remaining, unsigned int useFlags, unsigned int minCount)
{
	static uint64_t next_split;
	const unsigned known = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
			       CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
	CUresult error = init_check();
	if (error)
		return error;
	if (!nbGroups || !input || (useFlags & ~known) || (result && !*nbGroups))
		return CUDA_ERROR_INVALID_VALUE;
	error = check(input);
	if (error)
		return error;
	unsigned all = input->sm.smCount, size = minCount ? minCount : 1;
	if (size > all)
		return CUDA_ERROR_INVALID_VALUE;
	secret_t secret = secret_of(input);
	if (secret.split) /* a part can be split again only through a green context */
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	unsigned groups = all / size;
	if (result && groups > *nbGroups)
		groups = *nbGroups;
	secret.split = __atomic_add_fetch(&next_split, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < groups && result; i++) {
		secret.part = i;
		fill(&result[i], &secret, size);
	}
	*nbGroups = groups;
	secret.part = UINT32_MAX;
	if (remaining)
		fill(remaining, &secret, all - groups * size);
	return CUDA_SUCCESS;
}

/* True if two parts may be in one descriptor: different parts of one split. */
static bool apart(const CUdevResource *a, const CUdevResource *b)
{
	secret_t first = secret_of(a), second = secret_of(b);
	return first.split && first.split == second.split && first.device == second.device && first.part != second.part;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!phDesc || !resources || !nbResources)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned sum = 0;
	for (unsigned i = 0; i < nbResources; i++) {
		result = check(&resources[i]);
		if (result)
			return result;
		for (unsigned j = 0; j < i; j++)
			if (!apart(&resources[i], &resources[j]))
				return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		sum += resources[i].sm.smCount;
	}
	CUdevResourceDesc desc = handle_new(HANDLE_RESOURCE_DESCRIPTOR, sizeof *desc);
	if (!desc)
		return CUDA_ERROR_OUT_OF_MEMORY;
	secret_t secret = secret_of(&resources[0]);
	fill(&desc->resource, &secret, sum);
	*phDesc = desc;
	return CUDA_SUCCESS;
}
