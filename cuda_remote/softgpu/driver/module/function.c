/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes, names and parameters of functions and kernels. */
#include "cuda_remote/softgpu/driver/module/module.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/driver/module/launch_shape.h"

CUresult function_resolve(CUfunction handle, CUcontext context, CUfunction *function)
{
	if (handle_valid(handle, HANDLE_FUNCTION)) {
		*function = handle;
		return CUDA_SUCCESS;
	}
	CUkernel kernel = (CUkernel)(void *)handle;
	if (!handle_valid(kernel, HANDLE_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	CUmodule module;
	CUresult result = library_module(kernel->library, context, &module);
	if (!result)
		*function = module->functions[kernel->index];
	return result;
}

CUresult function_attribute(CUfunction function, CUfunction_attribute attribute, int *value)
{
	const softgpu_kernel_info_t *info = &function->info;
	unsigned cluster[3];
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = (int)info->max_threads;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*value = (int)info->static_shared;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		*value = (int)info->constant_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*value = (int)info->local_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = (int)info->registers;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*value = (int)info->ptx_version;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = (int)device_capability();
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = __atomic_load_n(&function->max_dynamic_shared, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*value = __atomic_load_n(&function->carveout, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		*value = info->explicit_cluster;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		launch_required_cluster(function, cluster);
		*value = (int)cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*value = __atomic_load_n(&function->wide_cluster, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*value = __atomic_load_n(&function->cluster_policy, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	default:
		if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		*value = 0; /* no cache modes */
		return CUDA_SUCCESS;
	}
}

/* cuda.h: a size that the kernel's text requires cannot be changed; what the values are is checked by launches. */
static CUresult require_cluster(CUfunction function, int dimension, int value)
{
	if (function->info.required_cluster[0])
		return CUDA_ERROR_NOT_PERMITTED;
	if (value < 0)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&function->required_cluster[dimension], value, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult function_set_attribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || (uint64_t)value + function->info.static_shared > DEVICE_SHARED_OPTIN)
			return CUDA_ERROR_INVALID_VALUE;
		__atomic_store_n(&function->max_dynamic_shared, value, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < CU_SHAREDMEM_CARVEOUT_DEFAULT || value > CU_SHAREDMEM_CARVEOUT_MAX_SHARED)
			return CUDA_ERROR_INVALID_VALUE;
		__atomic_store_n(&function->carveout, value, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		return require_cluster(function, (int)attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, value);
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		__atomic_store_n(&function->wide_cluster, value != 0, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		if (value < CU_CLUSTER_SCHEDULING_POLICY_DEFAULT || value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
			return CUDA_ERROR_INVALID_VALUE;
		__atomic_store_n(&function->cluster_policy, value, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Every call on a function handle begins with this. */
static CUresult enter(CUfunction handle, CUfunction *function)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	return result ? result : function_resolve(handle, context, function);
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	CUresult result = enter(hfunc, &hfunc);
	if (result)
		return result;
	return pi ? function_attribute(hfunc, attrib, pi) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	CUresult result = enter(hfunc, &hfunc);
	return result ? result : function_set_attribute(hfunc, attrib, value);
}

/* cuda.h: only a preference. It has no effect here. */
CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	CUresult result = enter(hfunc, &hfunc);
	if (result)
		return result;
	return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* As cuCtxSetSharedMemConfig. */
CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
	CUresult result = enter(hfunc, &hfunc);
	if (result)
		return result;
	return config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	CUresult result = enter(hfunc, &hfunc);
	if (result)
		return result;
	if (!hmod)
		return CUDA_ERROR_INVALID_VALUE;
	*hmod = hfunc->module;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	if (!name || !hfunc) /* NVIDIA's driver has this error for a null handle in this call */
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = enter(hfunc, &hfunc);
	if (result)
		return result;
	*name = hfunc->info.name;
	return CUDA_SUCCESS;
}

static CUresult parameter(const struct CUfunc_st *function, size_t index, size_t *offset, size_t *size)
{
	if (!offset || index >= function->info.parameters)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = function->parameters[index].offset;
	if (size)
		*size = function->parameters[index].size;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	CUresult result = enter(func, &func);
	return result ? result : parameter(func, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	CUresult result = enter(function, &function);
	if (result)
		return result;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
	return enter(function, &function);
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (!result)
		result = init_check_handle(kernel, HANDLE_KERNEL);
	if (result)
		return result;
	return pFunc ? function_resolve((CUfunction)(void *)kernel, context, pFunc) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	CUresult result = init_check_handle(kernel, HANDLE_KERNEL);
	if (result)
		return result;
	if (!pLib)
		return CUDA_ERROR_INVALID_VALUE;
	*pLib = kernel->library;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
	if (!name || !hfunc) /* as cuFuncGetName */
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = init_check_handle(hfunc, HANDLE_KERNEL);
	if (result)
		return result;
	*name = hfunc->name;
	return CUDA_SUCCESS;
}

/*
 * A kernel's function on a device: in the current context if that is of this device, else in the device's primary
 * context, which must be active.
 */
static CUresult kernel_on(CUkernel kernel, CUdevice device, CUfunction *function)
{
	CUresult result = init_check_handle(kernel, HANDLE_KERNEL);
	if (result)
		return result;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	CUcontext context = context_current();
	if (context && context->device == device)
		return context_error(context) ? context_error(context)
					      : function_resolve((CUfunction)(void *)kernel, context, function);
	unsigned flags;
	int active;
	result = cuDevicePrimaryCtxGetState(device, &flags, &active);
	if (result || !active)
		return result ? result : CUDA_ERROR_INVALID_CONTEXT;
	result = cuDevicePrimaryCtxRetain(&context, device);
	if (result)
		return result;
	result = function_resolve((CUfunction)(void *)kernel, context, function);
	cuDevicePrimaryCtxRelease_v2(device);
	return result;
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	CUfunction function;
	CUresult result = kernel_on(kernel, dev, &function);
	if (result)
		return result;
	return pi ? function_attribute(function, attrib, pi) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	CUfunction function;
	CUresult result = kernel_on(kernel, dev, &function);
	return result ? result : function_set_attribute(function, attrib, val);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	CUfunction function;
	CUresult result = kernel_on(kernel, dev, &function);
	return result ? result : cuFuncSetCacheConfig(function, config);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	CUfunction function;
	CUresult result = cuKernelGetFunction(&function, kernel);
	return result ? result : parameter(function, paramIndex, paramOffset, paramSize);
}
