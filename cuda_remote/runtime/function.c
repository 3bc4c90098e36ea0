/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels: launch configurations of <<<>>>, attributes, occupancy. */
#include "cuda_remote/runtime/registration.h"
#include "cuda_remote/runtime/runtime.h"

#include <string.h>

/* A stack of launch configurations: the argument of a kernel may itself be computed by a launch. */
enum { MAX_NESTED = 32 };

struct call_configuration {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
};

static __thread struct call_configuration pending[MAX_NESTED];
static __thread unsigned pending_count;

/* If the result is not 0, compiled code does not call the kernel's host function. */
RUNTIME_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
	if (pending_count == MAX_NESTED)
		return runtime_fail(cudaErrorInvalidConfiguration);
	pending[pending_count++] = (struct call_configuration){ grid, block, shared, stream };
	return 0;
}

RUNTIME_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (!pending_count)
		return runtime_fail(cudaErrorMissingConfiguration);
	const struct call_configuration *top = &pending[--pending_count];
	*grid = top->grid;
	*block = top->block;
	*shared = top->shared;
	*(cudaStream_t *)stream = top->stream;
	return cudaSuccess;
}

RUNTIME_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	struct runtime_symbol *symbol = runtime_symbol_find(host);
	if (!symbol || symbol->kind != RUNTIME_KERNEL)
		return runtime_fail(cudaErrorInvalidDeviceFunction);
	*kernel = (cudaKernel_t)symbol;
	return cudaSuccess;
}

cudaError_t runtime_function(const void *kernel, CUfunction *function)
{
	struct runtime_context *context;
	uint64_t value;
	struct runtime_symbol *symbol = runtime_symbol_find(kernel);
	if (!symbol || symbol->kind != RUNTIME_KERNEL)
		return runtime_fail(cudaErrorInvalidDeviceFunction);
	cudaError_t error = runtime_context_enter(&context);
	if (error)
		return error;
	error = runtime_symbol_resolve(symbol, context, &value);
	if (!error)
		*function = (CUfunction)(uintptr_t)value;
	return runtime_fail(error);
}

RUNTIME_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *kernel)
{
	CUfunction f;
	if (!function)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_function(kernel, &f);
	if (error)
		return error;
	*function = f;
	return runtime_fail(runtime_symbol_remember(f));
}

RUNTIME_API cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *entry)
{
	struct runtime_context *context;
	const char *name;
	if (!kernel)
		return runtime_fail(cudaErrorInvalidValue);
	struct runtime_symbol *symbol = runtime_symbol_find(entry);
	if (!symbol || symbol->kind != RUNTIME_KERNEL)
		return runtime_fail(cudaErrorInvalidDeviceFunction);
	cudaError_t error = runtime_context_enter(&context);
	if (error)
		return error;
	if (symbol->module)
		return runtime_fail(runtime_symbol_kernel(symbol, context, kernel));
	/* A handle of the driver, for a kernel or a function. */
	CUkernel handle = (CUkernel)(uintptr_t)symbol->host;
	if (runtime_driver.cuKernelGetName(&name, handle) != CUDA_SUCCESS)
		return runtime_fail(cudaErrorInvalidDeviceFunction);
	*kernel = handle;
	return cudaSuccess;
}

/* The field of cudaFuncAttributes for each attribute of the driver, and its width. */
#define FIELD(field, attribute) { offsetof(struct cudaFuncAttributes, field), \
	sizeof(((struct cudaFuncAttributes *)0)->field), attribute }
static const struct function_field {
	size_t offset, size;
	CUfunction_attribute attribute;
} function_fields[] = {
	FIELD(sharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
	FIELD(constSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES),
	FIELD(localSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
	FIELD(maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
	FIELD(numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS),
	FIELD(ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION),
	FIELD(binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION),
	FIELD(cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA),
	FIELD(maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
	FIELD(preferredShmemCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
	FIELD(clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET),
	FIELD(requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
	FIELD(requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
	FIELD(requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH),
	FIELD(clusterSchedulingPolicyPreference, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE),
	FIELD(nonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED),
};
#undef FIELD

RUNTIME_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
	CUfunction function;
	if (!attributes)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_function(kernel, &function);
	if (error)
		return error;
	struct cudaFuncAttributes filled;
	memset(&filled, 0, sizeof filled);
	for (size_t i = 0; i < sizeof function_fields / sizeof *function_fields; i++) {
		const struct function_field *field = &function_fields[i];
		int value = 0;
		CUresult result = runtime_driver.cuFuncGetAttribute(&value, field->attribute, function);
		/* Some drivers do not know the attributes of clusters yet. */
		if (result != CUDA_SUCCESS && field->attribute < CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)
			return runtime_done(result);
		size_t wide = (unsigned)value;
		memcpy((char *)&filled + field->offset, field->size == sizeof wide ? (void *)&wide : (void *)&value,
		       field->size);
	}
	*attributes = filled;
	return cudaSuccess;
}

_Static_assert((int)cudaFuncAttributeMaxDynamicSharedMemorySize ==
			(int)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
	       (int)cudaFuncAttributeClusterSchedulingPolicyPreference ==
			(int)CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
	       "runtime and driver number a kernel's attributes alike");

RUNTIME_API cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
	CUfunction function;
	cudaError_t error = runtime_function(kernel, &function);
	return error ? error
		     : runtime_done(runtime_driver.cuFuncSetAttribute(
				       function, (CUfunction_attribute)attribute, value));
}

RUNTIME_API cudaError_t cudaFuncSetCacheConfig(const void *kernel, enum cudaFuncCache config)
{
	CUfunction function;
	cudaError_t error = runtime_function(kernel, &function);
	return error ? error : runtime_done(runtime_driver.cuFuncSetCacheConfig(function, (CUfunc_cache)config));
}

RUNTIME_API cudaError_t cudaFuncSetSharedMemConfig(const void *kernel, enum cudaSharedMemConfig config)
{
	CUfunction function;
	cudaError_t error = runtime_function(kernel, &function);
	return error ? error : runtime_done(runtime_driver.cuFuncSetSharedMemConfig(function, (CUsharedconfig)config));
}

RUNTIME_API cudaError_t cudaFuncGetName(const char **name, const void *kernel)
{
	CUfunction function;
	struct runtime_symbol *symbol = runtime_symbol_find(kernel);
	if (!name)
		return runtime_fail(cudaErrorInvalidValue);
	if (symbol && symbol->name && symbol->kind == RUNTIME_KERNEL) {
		*name = symbol->name;
		return cudaSuccess;
	}
	cudaError_t error = runtime_function(kernel, &function);
	return error ? error : runtime_done(runtime_driver.cuFuncGetName(name, function));
}

RUNTIME_API cudaError_t cudaFuncGetParamInfo(const void *kernel, size_t index, size_t *offset, size_t *size)
{
	CUfunction function;
	cudaError_t error = runtime_function(kernel, &function);
	return error ? error : runtime_done(runtime_driver.cuFuncGetParamInfo(function, index, offset, size));
}

RUNTIME_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel,
									       int block_size, size_t shared,
									       unsigned flags)
{
	CUfunction function;
	if (!blocks)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_function(kernel, &function);
	if (error)
		return error;
	return runtime_done(runtime_driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function,
			block_size, shared, flags));
}

RUNTIME_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int block_size,
								      size_t shared)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block_size, shared,
			cudaOccupancyDefault);
}

RUNTIME_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *shared, const void *kernel, int blocks,
								  int block_size)
{
	CUfunction function;
	if (!shared)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_function(kernel, &function);
	if (error)
		return error;
	return runtime_done(
			runtime_driver.cuOccupancyAvailableDynamicSMemPerBlock(shared, function, blocks, block_size));
}

static CUlaunchConfig driver_config(const cudaLaunchConfig_t *config)
{
	return (CUlaunchConfig){
		.gridDimX = config->gridDim.x, .gridDimY = config->gridDim.y, .gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x, .blockDimY = config->blockDim.y, .blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned)config->dynamicSmemBytes, .hStream = config->stream,
		.attrs = (CUlaunchAttribute *)(uintptr_t)config->attrs, .numAttrs = config->numAttrs,
	};
}

RUNTIME_API cudaError_t cudaOccupancyMaxPotentialClusterSize(
		int *size, const void *kernel, const cudaLaunchConfig_t *config)
{
	CUfunction function;
	if (!size || !config)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_function(kernel, &function);
	CUlaunchConfig driver = driver_config(config);
	return error ? error : runtime_done(runtime_driver.cuOccupancyMaxPotentialClusterSize(size, function, &driver));
}

RUNTIME_API cudaError_t cudaOccupancyMaxActiveClusters(
		int *clusters, const void *kernel, const cudaLaunchConfig_t *config)
{
	CUfunction function;
	if (!clusters || !config)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_function(kernel, &function);
	CUlaunchConfig driver = driver_config(config);
	return error ? error : runtime_done(runtime_driver.cuOccupancyMaxActiveClusters(clusters, function, &driver));
}
