/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches: the limits of device and kernel are checked here, and parameters are packed in the kernel's layout. */
#include "cuda_remote/api/attributes.h"
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/green/green.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct launch {
	CUfunction function;
	CUstream stream;
	uint32_t grid[3], block[3], cluster[3], shared, flags;
	void **parameters, **extra;
	const CUlaunchAttribute *attributes;
	uint32_t n_attributes;
};

#define PORTABLE_CLUSTER 8 /* blocks: CUDA's limit for every device that has clusters */
#define INLINE_PARAMETERS (RC_CALL_INLINE - sizeof(struct rc_wire_launch))

static CUresult launch_check(const struct launch *launch, const struct rc_kernel *kernel)
{
	uint64_t stream = (uint64_t)(uintptr_t)launch->stream;
	CUresult result = rc_context_current() ? rc_handle_check(RC_KIND_STREAM, stream) : CUDA_ERROR_INVALID_CONTEXT;
	if (result == CUDA_SUCCESS)
		result = rc_route_same(RC_KIND_STREAM, stream, CUDA_ERROR_INVALID_HANDLE);
	if (result == CUDA_SUCCESS)
		result = rc_route_in_stream(RC_KIND_FUNCTION, kernel->handle, launch->stream);
	if (result != CUDA_SUCCESS)
		return result;
	return rc_launch_check_shape(kernel, launch->grid, launch->block, launch->shared, launch->cluster);
}

/* The grid must consist of whole clusters, of the size that the kernel requires, if any. They may be larger than those of every
 * device only if the kernel allows it. The driver checks the rest. */
static CUresult check_cluster(const struct rc_kernel *kernel, const uint32_t *grid, const uint32_t *given)
{
	const int first = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, wide = CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
	bool gives = given[0] || given[1] || given[2], whole = true;
	uint64_t size = 1;
	for (int i = 0; i < 3; i++) {
		uint32_t required = 0; /* 0: none */
		if (kernel->known & 1u << (first + i))
			required = (uint32_t)__atomic_load_n(&kernel->attribute[first + i], __ATOMIC_RELAXED);
		uint32_t blocks = gives ? given[i] : required ? required : 1;
		whole &= (blocks == 1 || (blocks && grid[i] % blocks == 0)) && (!required || blocks == required);
		size = size * blocks > UINT32_MAX ? UINT32_MAX : size * blocks;
	}
	bool too_wide = size > PORTABLE_CLUSTER && kernel->known & 1u << wide &&
			!__atomic_load_n(&kernel->attribute[wide], __ATOMIC_RELAXED);
	return whole && !too_wide ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

/* Returns how much dynamic shared memory a block of the kernel may have, bytes. If the driver did not say, the program may have set the
 * attribute all the same. */
static uint64_t dynamic_shared_max(const struct rc_kernel *kernel, const struct rc_device *device)
{
	uint32_t fixed = 0;
	if (kernel->known & 1u << CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		return __atomic_load_n(&kernel->dynamic_most, __ATOMIC_RELAXED);
	if (kernel->known & 1u << CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
		fixed = (uint32_t)kernel->attribute[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
	uint32_t most = device->max_shared_optin > device->max_shared ? device->max_shared_optin : device->max_shared;
	return most > fixed ? most - fixed : 0;
}

CUresult rc_launch_check_shape(const struct rc_kernel *kernel, const uint32_t *grid, const uint32_t *block, uint32_t shared,
			       const uint32_t *cluster)
{
	struct rc_context *context;
	struct rc_device *device;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(context->device, &device);
	if (result != CUDA_SUCCESS)
		return result;
	for (int i = 0; i < 3; i++)
		if (!grid[i] || grid[i] > device->max_grid[i] || !block[i] || block[i] > device->max_block[i])
			return CUDA_ERROR_INVALID_VALUE;
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
	if (threads > device->max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	if (kernel->known & 1u << CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
	    threads > (uint64_t)kernel->attribute[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (shared > dynamic_shared_max(kernel, device))
		return CUDA_ERROR_INVALID_VALUE;
	return check_cluster(kernel, grid, cluster);
}

/*
 * The blocks of a cooperative launch must all be resident. The server's driver knows how many fit; its last answer is kept
 * with the kernel: 16 bits of blocks, 11 of threads, 9 of the device, 28 of dynamic shared memory.
 */
static CUresult check_cooperative(struct rc_kernel *kernel, const struct launch *launch)
{
	struct rc_context *context;
	struct rc_device *device;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(context->device, &device);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
	uint64_t key = (uint64_t)launch->shared << 36 | (uint64_t)context->device << 27 | threads << 16;
	uint64_t known = __atomic_load_n(&kernel->resident, __ATOMIC_RELAXED);
	bool fits = threads < 1u << 11 && launch->shared < 1u << 28 && context->device < 1 << 9;
	if (!fits || known >> 16 << 16 != key) {
		int blocks;
		result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch->function, (int)threads, launch->shared);
		if (result != CUDA_SUCCESS)
			return result == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : result; /* the driver will say */
		known = key | ((unsigned)blocks & 0xffff);
		if (fits)
			__atomic_store_n(&kernel->resident, known, __ATOMIC_RELAXED);
	}
	unsigned multiprocessors = rc_green_multiprocessors(launch->stream);
	if (!multiprocessors)
		multiprocessors = (unsigned)rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	uint64_t most = (known & 0xffff) * multiprocessors;
	return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2] > most ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE :
										     CUDA_SUCCESS;
}

/* The parameter block that a launch gives by its argument "extra". */
static CUresult extra_block(void **extra, const void **block, size_t *size)
{
	*block = NULL;
	*size = 0;
	for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*block = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1])
			*size = *(size_t *)extra[i + 1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	return *block || !*size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rc_launch_pack(const struct rc_kernel *kernel, void **parameters, void **extra, uint8_t *to)
{
	if (extra && extra[0] != CU_LAUNCH_PARAM_END) {
		const void *block;
		size_t size;
		CUresult result = extra_block(extra, &block, &size);
		if (result != CUDA_SUCCESS)
			return result;
		/* The block may be shorter by the padding at its end. */
		for (uint32_t i = 0; i < kernel->parameters; i++)
			if (kernel->parameter[i].offset + kernel->parameter[i].size > size)
				return CUDA_ERROR_INVALID_VALUE;
		memset(to, 0, kernel->block);
		memcpy(to, block, size < kernel->block ? size : kernel->block);
		return CUDA_SUCCESS;
	}
	if (kernel->parameters && !parameters)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < kernel->parameters; i++)
		if (!parameters[i])
			return CUDA_ERROR_INVALID_VALUE;
	memset(to, 0, kernel->block);
	for (uint32_t i = 0; i < kernel->parameters; i++)
		memcpy(to + kernel->parameter[i].offset, parameters[i], kernel->parameter[i].size);
	return CUDA_SUCCESS;
}

static launch_shape_t launch_shape(const struct launch *launch)
{
	return (launch_shape_t){ .grid = { launch->grid[0], launch->grid[1], launch->grid[2] },
				 .block = { launch->block[0], launch->block[1], launch->block[2] },
				 .dynamic_shared = launch->shared, .cooperative = launch->flags & RC_LAUNCH_COOPERATIVE };
}

static CUresult launch(const struct launch *launch)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_launch call;
		uint8_t parameters[INLINE_PARAMETERS];
	} message;
	_Static_assert(sizeof message == CH3_HEADER_MAX, "a launch fills CH3's header");
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_kernel *kernel = rc_kernel_find((uint64_t)(uintptr_t)launch->function);
	if (!kernel)
		return rc_context_current() ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
	result = rc_kernel_on(rc_context_session(), &kernel);
	if (result == CUDA_SUCCESS && launch->parameters && launch->extra)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = launch_check(launch, kernel);
	if (result == CUDA_SUCCESS && launch->flags & RC_LAUNCH_COOPERATIVE)
		result = check_cooperative(kernel, launch);
	if (result != CUDA_SUCCESS)
		return result;
	bool captured;
	result = rc_capture_launch(launch->stream, (CUfunction)(uintptr_t)kernel->handle, launch_shape(launch), launch->parameters,
				   launch->extra, launch->attributes, launch->n_attributes, &captured);
	if (result != CUDA_SUCCESS || captured)
		return result;
	bool small = kernel->block <= INLINE_PARAMETERS;
	uint8_t *block = small ? message.parameters : malloc(kernel->block);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	message.call = (struct rc_wire_launch){
		.function = kernel->handle, .stream = (uint64_t)(uintptr_t)launch->stream,
		.grid = { launch->grid[0], launch->grid[1], launch->grid[2] },
		.block = { launch->block[0], launch->block[1], launch->block[2] },
		.shared = launch->shared, .flags = launch->flags, .parameters = kernel->block,
		.attributes = launch->n_attributes,
	};
	struct rc_link *link;
	result = rc_launch_pack(kernel, launch->parameters, launch->extra, block);
	/* It makes calls of its own, so it comes before rc_link_get. */
	if (result == CUDA_SUCCESS && rc_memory_any_unmapped())
		rc_unmapped_launch(rc_context_session(), kernel, block);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	if (result == CUDA_SUCCESS) {
		struct iovec iov[] = { { block, small ? 0 : kernel->block },
				       { (void *)(uintptr_t)launch->attributes, launch->n_attributes * sizeof *launch->attributes } };
		size_t len = sizeof message.head + sizeof message.call + (small ? kernel->block : 0);
		int skip = small + (small && !launch->n_attributes);
		result = rc_link_post(link, RC_CALL_launch, 0, &message.head, len, iov + small, 2 - skip);
	}
	if (!small)
		free(block);
	return result;
}

static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ, unsigned blockDimX,
			unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes, CUstream hStream, void **kernelParams,
			void **extra)
{
	return launch(&(struct launch){ .function = f, .stream = hStream, .grid = { gridDimX, gridDimY, gridDimZ },
					.block = { blockDimX, blockDimY, blockDimZ }, .shared = sharedMemBytes,
					.parameters = kernelParams, .extra = extra });
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ, unsigned blockDimX,
			     unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes, CUstream hStream,
			     void **kernelParams, void **extra)
{
	return cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, own(hStream),
			      kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ, unsigned blockDimX,
				   unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes, CUstream hStream,
				   void **kernelParams)
{
	return launch(&(struct launch){ .function = f, .stream = hStream, .grid = { gridDimX, gridDimY, gridDimZ },
					.block = { blockDimX, blockDimY, blockDimZ }, .shared = sharedMemBytes,
					.flags = RC_LAUNCH_COOPERATIVE, .parameters = kernelParams });
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ,
					unsigned blockDimX, unsigned blockDimY, unsigned blockDimZ, unsigned sharedMemBytes,
					CUstream hStream, void **kernelParams)
{
	return cuLaunchCooperativeKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
					 own(hStream), kernelParams);
}

/* A device that has no clusters of several blocks. */
static CUresult check_cluster_device(unsigned x, unsigned y, unsigned z)
{
	struct rc_context *context;
	struct rc_device *device;
	if (x <= 1 && y <= 1 && z <= 1)
		return CUDA_SUCCESS;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(context->device, &device);
	if (result == CUDA_SUCCESS && !rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
		result = CUDA_ERROR_NOT_SUPPORTED;
	return result;
}

static CUresult check_attribute(const CUlaunchAttribute *attribute)
{
	const CUlaunchAttributeValue *value = &attribute->value;
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
		return check_cluster_device(value->clusterDim.x, value->clusterDim.y, value->clusterDim.z);
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
		return check_cluster_device(value->preferredClusterDim.x, value->preferredClusterDim.y, value->preferredClusterDim.z);
	return attribute->id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Adds an attribute to kept, or sets its flag in launch. Refuses those that are not forwarded (api/attributes.h). */
static CUresult keep_attribute(const CUlaunchAttribute *attribute, struct launch *launch, CUlaunchAttribute *kept)
{
	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		if (attribute->value.cooperative)
			launch->flags |= RC_LAUNCH_COOPERATIVE;
		return CUDA_SUCCESS;
	default:
		break;
	}
	if (!rc_launch_attribute_travels(attribute->id)) {
		hr_log_once(HR_LOG_WARN, "launch attribute %d is not supported by the forwarding driver; launch without it",
			    (int)attribute->id);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
		launch->cluster[0] = attribute->value.clusterDim.x;
		launch->cluster[1] = attribute->value.clusterDim.y;
		launch->cluster[2] = attribute->value.clusterDim.z;
	}
	kept[launch->n_attributes++] = *attribute;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	CUlaunchAttribute kept[RC_LAUNCH_ATTRIBUTES_MAX];
	if (!config || config->numAttrs > sizeof kept / sizeof kept[0] || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	struct launch this = { .function = f, .stream = config->hStream,
			       .grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
			       .block = { config->blockDimX, config->blockDimY, config->blockDimZ },
			       .shared = config->sharedMemBytes, .parameters = kernelParams, .extra = extra,
			       .attributes = kept };
	for (unsigned i = 0; i < config->numAttrs; i++) {
		CUresult result = check_attribute(&config->attrs[i]);
		if (result == CUDA_SUCCESS)
			result = keep_attribute(&config->attrs[i], &this, kept);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return launch(&this);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	CUlaunchConfig mine = *config;
	mine.hStream = own(config->hStream);
	return cuLaunchKernelEx(&mine, f, kernelParams, extra);
}

/* ---- occupancy ---- */

/* A library's kernel is of no server: the server of the current context is asked. True: *function was of another server and
 * was exchanged, or that failed. */
static bool exchange(CUfunction *function, CUresult *result)
{
	struct rc_kernel *kernel = rc_kernel_find((uint64_t)(uintptr_t)*function), *here = kernel;
	if (!kernel || !kernel->module->library)
		return false;
	*result = rc_kernel_on(rc_context_session(), &here);
	*function = (CUfunction)(uintptr_t)here->handle;
	return *result != CUDA_SUCCESS || here != kernel;
}

bool peer_occupancy(uint16_t flags, int *blocks, CUfunction function, int threads, size_t shared, CUresult *result)
{
	(void)flags;
	if (!exchange(&function, result))
		return false;
	if (*result == CUDA_SUCCESS)
		*result = cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
	return true;
}

bool peer_occupancy_flags(uint16_t flags, int *blocks, CUfunction function, int threads, size_t shared, unsigned how,
			  CUresult *result)
{
	(void)flags;
	if (!exchange(&function, result))
		return false;
	if (*result == CUDA_SUCCESS)
		*result = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, how);
	return true;
}

bool peer_occupancy_shared(uint16_t flags, size_t *shared, CUfunction function, int blocks, int threads, CUresult *result)
{
	(void)flags;
	if (!exchange(&function, result))
		return false;
	if (*result == CUDA_SUCCESS)
		*result = cuOccupancyAvailableDynamicSMemPerBlock(shared, function, blocks, threads);
	return true;
}

/* The block size with the most resident threads. */

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
						   CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
						   int blockSizeLimit, unsigned flags)
{
	struct rc_context *context;
	struct rc_device *device;
	int kernel_limit;
	if (!minGridSize || !blockSize)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(context->device, &device);
	if (result == CUDA_SUCCESS)
		result = cuFuncGetAttribute(&kernel_limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, func);
	if (result != CUDA_SUCCESS)
		return result;
	int warp = rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	int limit = kernel_limit < (int)device->max_threads ? kernel_limit : (int)device->max_threads;
	if (blockSizeLimit > 0 && blockSizeLimit < limit)
		limit = blockSizeLimit;
	int best = 0, best_blocks = 0;
	for (int rounded = (limit + warp - 1) / warp * warp; rounded > 0; rounded -= warp) {
		int size = rounded < limit ? rounded : limit, blocks;
		size_t dynamic = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
		result = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, func, size, dynamic, flags);
		if (result != CUDA_SUCCESS)
			return result;
		if (blocks * size > best_blocks * best) {
			best = size;
			best_blocks = blocks;
		}
		if (best_blocks * best >= rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR))
			break;
	}
	*minGridSize = best_blocks * rc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	*blockSize = best;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
					  CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
					  int blockSizeLimit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
							 dynamicSMemSize, blockSizeLimit, CU_OCCUPANCY_DEFAULT);
}

/* ---- occupancy of clusters: the driver answers ---- */

static CUresult ask_clusters(enum rc_call call, int *answer, CUfunction function, const CUlaunchConfig *config)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_launch call;
	} message;
	CUlaunchAttribute kept[RC_LAUNCH_ATTRIBUTES_MAX];
	if (!answer || !config || config->numAttrs > sizeof kept / sizeof kept[0] || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	struct launch this = { .function = function };
	struct rc_kernel *kernel = rc_kernel_find((uint64_t)(uintptr_t)function);
	CUresult result = kernel ? rc_kernel_on(rc_context_session(), &kernel) : CUDA_SUCCESS;
	uint64_t handle = kernel ? kernel->handle : (uint64_t)(uintptr_t)function;
	for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++)
		result = keep_attribute(&config->attrs[i], &this, kept);
	struct rc_route route = { NULL, 0, false };
	struct rc_link *link;
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&route, RC_KIND_FUNCTION, handle);
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&route, RC_KIND_STREAM, (uint64_t)(uintptr_t)config->hStream);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	message.call = (struct rc_wire_launch){
		.function = handle, .stream = (uint64_t)(uintptr_t)config->hStream,
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.shared = config->sharedMemBytes, .flags = this.flags, .attributes = this.n_attributes,
	};
	struct iovec iov = { kept, this.n_attributes * sizeof *kept };
	result = rc_link_call(link, call, 0, &message.head, sizeof message, &iov, 1);
	if (result == CUDA_SUCCESS && link->reply_len != sizeof *answer)
		result = rc_link_broken(link, call);
	if (result == CUDA_SUCCESS)
		memcpy(answer, link->reply, sizeof *answer);
	return result;
}

CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	return ask_clusters(RC_CALL_occupancy_clusters, numClusters, func, config);
}

CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	return ask_clusters(RC_CALL_occupancy_cluster_size, clusterSize, func, config);
}
