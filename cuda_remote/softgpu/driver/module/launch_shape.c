/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of dimensions and copies of parameters, for launches in streams and for kernel nodes. */
#include "cuda_remote/softgpu/driver/module/launch_shape.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/module/occupancy.h"

#include <string.h>

/* ---- clusters */
bool launch_required_cluster(const struct CUfunc_st *function, unsigned cluster[3])
{
	const uint32_t *text = function->info.required_cluster;
	bool any = false;
	for (int i = 0; i < 3; i++) {
		cluster[i] = text[0] ? text[i] : (unsigned)__atomic_load_n(&function->required_cluster[i], __ATOMIC_RELAXED);
		any |= cluster[i] != 0;
	}
	return any;
}

CUresult launch_cluster(const struct CUfunc_st *function, const unsigned given[3], unsigned cluster[3])
{
	unsigned required[3];
	bool requires = launch_required_cluster(function, required), gives = given[0] || given[1] || given[2];
	bool wide = __atomic_load_n(&function->wide_cluster, __ATOMIC_RELAXED);
	uint64_t most = wide ? SOFTGPU_CLUSTER_MAX : SOFTGPU_CLUSTER_PORTABLE, size = 1;
	if (requires && gives && memcmp(required, given, sizeof required))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	for (int i = 0; i < 3; i++) {
		cluster[i] = requires ? required[i] : gives ? given[i] : 1;
		if (!cluster[i] || cluster[i] > most)
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		size *= cluster[i];
	}
	bool fits = size <= most && (!function->info.max_cluster || size <= function->info.max_cluster);
	return fits && (size == 1 || device_capability() >= 90) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

static CUresult check_cluster(const struct CUfunc_st *function, const launch_shape_t *shape)
{
	unsigned cluster[3];
	CUresult result = launch_cluster(function, shape->cluster, cluster);
	for (int i = 0; i < 3 && !result; i++)
		if (shape->grid[i] % cluster[i])
			result = CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return result;
}

CUresult launch_make(const struct CUfunc_st *function, const launch_shape_t *shape, softgpu_launch_t *launch)
{
	unsigned cluster[3];
	CUresult result = check_cluster(function, shape);
	if (result)
		return result;
	bool explicit = shape->cluster[0] || launch_required_cluster(function, cluster);
	if (!explicit && function->info.explicit_cluster)
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	*launch = (softgpu_launch_t){ .kernel = function->kernel, .dynamic_shared = shape->dynamic_shared,
				      .cooperative = shape->cooperative };
	memcpy(launch->grid, shape->grid, sizeof shape->grid);
	memcpy(launch->block, shape->block, sizeof shape->block);
	return explicit ? launch_cluster(function, shape->cluster, launch->cluster) : CUDA_SUCCESS;
}

CUresult launch_check_shape(const struct CUfunc_st *function, const launch_shape_t *shape)
{
	const unsigned *grid = shape->grid, *block = shape->block;
	const softgpu_kernel_info_t *info = &function->info;
	if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2] || grid[0] > 2147483647u ||
	    grid[1] > DEVICE_MAX_GRID_YZ || grid[2] > DEVICE_MAX_GRID_YZ || block[0] > DEVICE_MAX_THREADS ||
	    block[1] > DEVICE_MAX_THREADS || block[2] > DEVICE_MAX_BLOCK_Z)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned threads = block[0] * block[1] * block[2];
	if (threads > DEVICE_MAX_THREADS)
		return CUDA_ERROR_INVALID_VALUE;
	if (info->required_block[0] && memcmp(block, info->required_block, sizeof info->required_block))
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > info->max_threads)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	int most = __atomic_load_n(&function->max_dynamic_shared, __ATOMIC_RELAXED);
	if (shape->dynamic_shared > (unsigned)most)
		return CUDA_ERROR_INVALID_VALUE;
	if (info->static_shared + (uint64_t)shape->dynamic_shared > DEVICE_SHARED_OPTIN)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	CUresult result = check_cluster(function, shape);
	if (result || !shape->cooperative)
		return result;
	uint64_t resident = (uint64_t)occupancy_blocks(function, threads, shape->dynamic_shared) * softgpu_threads();
	uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
	return blocks > resident ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

/* Finds the buffer and its size in extra's list of names and values. */
static CUresult read_extra(void **extra, const void **buffer, size_t *size)
{
	*buffer = NULL;
	*size = 0;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			*size = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult launch_copy_parameters(const struct CUfunc_st *function, void **parameters, void **extra,
				unsigned char *block)
{
	if (!function->info.parameters)
		return CUDA_SUCCESS;
	if (extra && !parameters) {
		const void *buffer;
		size_t size;
		CUresult result = read_extra(extra, &buffer, &size);
		if (result || !buffer || size < function->parameter_end)
			return result ? result : CUDA_ERROR_INVALID_VALUE;
		memcpy(block, buffer, function->parameter_end);
		return CUDA_SUCCESS;
	}
	if (!parameters)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < function->info.parameters; i++) {
		const function_parameter_t *parameter = &function->parameters[i];
		if (!parameters[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(block + parameter->offset, parameters[i], parameter->size);
	}
	return CUDA_SUCCESS;
}
