/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel launches. Each is one driver call: the CUfunction is found without a lock, in the context of the thread's last
 * call. Whether that context is still current is checked only if the launch fails in a way that a changed context would
 * explain (the program has changed it through the driver). Then the launch is repeated in the current context.
 */
#include "cuda_remote/runtime/registration.h"
#include "cuda_remote/runtime/default_stream.h"

struct launch {
	dim3 grid, block;
	size_t shared; /* bytes, dynamic */
	CUstream stream;
	void **args;
	const cudaLaunchAttribute *attributes;
	unsigned attribute_count;
	bool cooperative;
};

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "attributes are passed through as they are");

static CUresult issue(CUfunction function, const struct launch *l)
{
	if (l->shared > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (l->cooperative)
		return runtime_driver.cuLaunchCooperativeKernel(function, l->grid.x, l->grid.y, l->grid.z, l->block.x,
				l->block.y, l->block.z, (unsigned)l->shared, l->stream, l->args);
	if (!l->attribute_count)
		return runtime_driver.cuLaunchKernel(function, l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y,
				l->block.z, (unsigned)l->shared, l->stream, l->args, NULL);
	CUlaunchConfig config = {
		.gridDimX = l->grid.x, .gridDimY = l->grid.y, .gridDimZ = l->grid.z,
		.blockDimX = l->block.x, .blockDimY = l->block.y, .blockDimZ = l->block.z,
		.sharedMemBytes = (unsigned)l->shared, .hStream = l->stream,
		.attrs = (CUlaunchAttribute *)(uintptr_t)l->attributes, .numAttrs = l->attribute_count,
	};
	return runtime_driver.cuLaunchKernelEx(&config, function, l->args, NULL);
}

static bool within(unsigned value, int device, enum cudaDeviceAttr limit)
{
	return value >= 1 && value <= (unsigned)runtime_device_attribute(device, limit);
}

static bool dimensions_fit(const struct launch *l, int device)
{
	return within(l->grid.x, device, cudaDevAttrMaxGridDimX) && within(l->grid.y, device, cudaDevAttrMaxGridDimY) &&
	       within(l->grid.z, device, cudaDevAttrMaxGridDimZ) &&
	       within(l->block.x, device, cudaDevAttrMaxBlockDimX) &&
	       within(l->block.y, device, cudaDevAttrMaxBlockDimY) &&
	       within(l->block.z, device, cudaDevAttrMaxBlockDimZ) &&
	       (uint64_t)l->block.x * l->block.y * l->block.z <=
			(uint64_t)runtime_device_attribute(device, cudaDevAttrMaxThreadsPerBlock);
}

/*
 * The driver returns "invalid value" for bad dimensions as for any bad argument; the runtime has its own error for
 * them.
 */
static cudaError_t launched(CUresult result, const struct launch *l, int device)
{
	if (result == CUDA_ERROR_INVALID_VALUE && !dimensions_fit(l, device))
		return runtime_fail(cudaErrorInvalidConfiguration);
	return runtime_done(result);
}

/* True if the launch went to a context that is not current. */
static bool context_was_wrong(CUresult result, struct runtime_context *context)
{
	CUcontext current = NULL;
	if (result != CUDA_ERROR_INVALID_CONTEXT && result != CUDA_ERROR_CONTEXT_IS_DESTROYED &&
	    result != CUDA_ERROR_INVALID_HANDLE)
		return false;
	if (runtime_driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS)
		return false;
	/* Orders nothing: the value is only compared. */
	return !context->primary || current != atomic_load_explicit(&context->handle, memory_order_relaxed);
}

static cudaError_t launch_slowly(struct runtime_symbol *symbol, const struct launch *l)
{
	struct runtime_context *context;
	uint64_t function;
	cudaError_t error = runtime_context_enter(&context);
	if (error)
		return error;
	error = runtime_symbol_resolve(symbol, context, &function);
	if (error)
		return runtime_fail(error);
	return launched(issue((CUfunction)(uintptr_t)function, l), l, context->device);
}

static cudaError_t launch(struct runtime_symbol *symbol, const struct launch *l)
{
	if (!symbol || symbol->kind != RUNTIME_KERNEL)
		return runtime_fail(cudaErrorInvalidDeviceFunction);
	struct runtime_context *context = runtime_thread_context;
	uint64_t function = context ? runtime_symbol_resolved(symbol, context) : 0;
	if (function) {
		CUresult result = issue((CUfunction)(uintptr_t)function, l);
		if (result == CUDA_SUCCESS)
			return cudaSuccess;
		if (!context_was_wrong(result, context))
			return launched(result, l, context->device);
	}
	return launch_slowly(symbol, l);
}

RUNTIME_API cudaError_t PRIVATE_NAME(__cudaLaunchKernel)(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
							 size_t shared, cudaStream_t stream)
{
	struct launch l = {
		.grid = grid, .block = block, .shared = shared, .stream = DRIVER_STREAM(stream), .args = args
	};
	return launch((struct runtime_symbol *)kernel, &l);
}

RUNTIME_API cudaError_t PRIVATE_NAME(cudaLaunchKernel)(const void *kernel, dim3 grid, dim3 block, void **args,
						       size_t shared, cudaStream_t stream)
{
	struct launch l = {
		.grid = grid, .block = block, .shared = shared, .stream = DRIVER_STREAM(stream), .args = args
	};
	return launch(runtime_symbol_find(kernel), &l);
}

RUNTIME_API cudaError_t cudaLaunchCooperativeKernel(
		const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	struct launch l = { .grid = grid, .block = block, .shared = shared, .stream = DRIVER_STREAM(stream), .args = args,
			    .cooperative = true };
	return launch(runtime_symbol_find(kernel), &l);
}

RUNTIME_API cudaError_t PRIVATE_NAME(cudaLaunchKernelExC)(
		const cudaLaunchConfig_t *config, const void *kernel, void **args)
{
	if (!config || (config->numAttrs && !config->attrs))
		return runtime_fail(cudaErrorInvalidValue);
	struct launch l = { .grid = config->gridDim, .block = config->blockDim, .shared = config->dynamicSmemBytes,
			    .stream = DRIVER_STREAM(config->stream), .args = args, .attributes = config->attrs,
			    .attribute_count = config->numAttrs };
	return launch(runtime_symbol_find(kernel), &l);
}
