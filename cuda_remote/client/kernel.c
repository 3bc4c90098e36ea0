/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of functions and kernels, answered from the reply to their module's load; and setting their attributes. */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"

#include <stdlib.h>
#include <string.h>

static CUresult kernel_get(uint64_t handle, struct rc_kernel **kernel)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	*kernel = rc_kernel_find(handle);
	return *kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult kernel_name(const char **name, uint64_t handle)
{
	struct rc_kernel *kernel;
	if (!name || !handle)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = kernel_get(handle, &kernel);
	if (result == CUDA_SUCCESS)
		*name = kernel->name;
	return result;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	return kernel_name(name, (uint64_t)(uintptr_t)function);
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	return kernel_name(name, (uint64_t)(uintptr_t)kernel);
}

static CUresult kernel_parameter(uint64_t handle, size_t index, size_t *offset, size_t *size)
{
	struct rc_kernel *kernel;
	if (!offset)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = kernel_get(handle, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if (index >= kernel->parameters)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = kernel->parameter[index].offset;
	if (size)
		*size = kernel->parameter[index].size;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
	return kernel_parameter((uint64_t)(uintptr_t)function, index, offset, size);
}

/* The client knows the answer without a context, but CUDA does not give it. */
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS && !rc_context_current())
		result = CUDA_ERROR_INVALID_CONTEXT;
	return result != CUDA_SUCCESS ? result :
	       kernel_parameter((uint64_t)(uintptr_t)kernel, index, offset, size);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	struct rc_kernel *kernel;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = kernel_get((uint64_t)(uintptr_t)function, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if (kernel->module->library)
		return cuLibraryGetModule(module, rc_kernel_library(kernel));
	*module = (CUmodule)(uintptr_t)kernel->module->handle;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel handle)
{
	struct rc_kernel *kernel;
	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = kernel_get((uint64_t)(uintptr_t)handle, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if (!kernel->module->library)
		return CUDA_ERROR_INVALID_HANDLE;
	*library = rc_kernel_library(kernel);
	return CUDA_SUCCESS;
}

/* A kernel's handle is accepted wherever a function's is, so the kernel on the current context's server is its function. */
CUresult cuKernelGetFunction(CUfunction *function, CUkernel handle)
{
	struct rc_kernel *kernel;
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = kernel_get((uint64_t)(uintptr_t)handle, &kernel);
	if (result == CUDA_SUCCESS)
		result = rc_kernel_on(rc_context_session(), &kernel);
	if (result == CUDA_SUCCESS)
		*function = (CUfunction)(uintptr_t)kernel->handle;
	return result;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	struct rc_kernel *kernel;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = kernel_get((uint64_t)(uintptr_t)function, &kernel);
	if (result == CUDA_SUCCESS)
		*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return result;
}

CUresult cuFuncLoad(CUfunction function)
{
	struct rc_kernel *kernel;
	return kernel_get((uint64_t)(uintptr_t)function, &kernel);
}

/* session: of the device that is asked about, or NULL. */
static CUresult kernel_attribute(int *value, CUfunction_attribute attribute, uint64_t handle, struct rc_session *session)
{
	struct rc_kernel *kernel;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = kernel_get(handle, &kernel);
	if (result == CUDA_SUCCESS)
		result = rc_kernel_on(session, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if ((unsigned)attribute >= RC_KERNEL_ATTRIBUTES || !(kernel->known & 1u << attribute))
		return CUDA_ERROR_INVALID_VALUE;
	*value = __atomic_load_n(&kernel->attribute[attribute], __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	return kernel_attribute(value, attribute, (uint64_t)(uintptr_t)function, NULL);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice number)
{
	struct rc_device *device;
	CUresult result = rc_device_get(number, &device);
	return result == CUDA_SUCCESS ? kernel_attribute(value, attribute, (uint64_t)(uintptr_t)kernel, device->session) : result;
}

/* The attribute of a library's kernel has a value for each device. The client knows the largest one if several were set. */
static void note_dynamic(struct rc_kernel *kernel, uint32_t bytes, uint32_t device)
{
	uint32_t before = __atomic_load_n(&kernel->set_on, __ATOMIC_RELAXED);
	bool several = before && before != device + 1;
	__atomic_store_n(&kernel->set_on, several ? RC_SET_ON_SEVERAL : device + 1, __ATOMIC_RELAXED);
	if (!several || bytes > __atomic_load_n(&kernel->dynamic_most, __ATOMIC_RELAXED))
		__atomic_store_n(&kernel->dynamic_most, bytes, __ATOMIC_RELAXED);
}

static CUresult kernel_set(uint64_t handle, CUfunction_attribute attribute, int value, const struct rc_device *device)
{
	struct rc_kernel *kernel;
	CUresult result = kernel_get(handle, &kernel);
	if (result == CUDA_SUCCESS)
		result = rc_kernel_on(device->session, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	struct {
		struct rc_wire_call head;
		struct rc_wire_function_attribute call;
	} message = { .call = { kernel->handle, attribute, value, (uint32_t)device->ordinal, 0 } };
	struct rc_link *link;
	struct rc_route route = { NULL, 0, false };
	result = rc_route_handle(&route, RC_KIND_FUNCTION, kernel->handle);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_function_attribute, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS && (unsigned)attribute < RC_KERNEL_ATTRIBUTES)
		__atomic_store_n(&kernel->attribute[attribute], value, __ATOMIC_RELAXED);
	if (result == CUDA_SUCCESS && attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		note_dynamic(kernel, (uint32_t)value, (uint32_t)device->ordinal);
	__atomic_store_n(&kernel->resident, 0, __ATOMIC_RELAXED); /* the attribute may change how many blocks fit */
	return result;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	struct rc_context *context;
	struct rc_device *device;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(context->device, &device);
	return result == CUDA_SUCCESS ? kernel_set((uint64_t)(uintptr_t)function, attribute, value, device) : result;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice number)
{
	struct rc_device *device;
	CUresult result = rc_device_get(number, &device);
	return result == CUDA_SUCCESS ? kernel_set((uint64_t)(uintptr_t)kernel, attribute, value, device) : result;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	struct rc_kernel *kernel;
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = kernel_get((uint64_t)(uintptr_t)function, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	struct {
		struct rc_wire_call head;
		struct rc_wire_function_attribute call;
	} message = { .call = { kernel->handle, 0, (int)config, 0, 0 } };
	struct rc_link *link;
	struct rc_route route = { NULL, 0, false };
	result = rc_route_handle(&route, RC_KIND_FUNCTION, kernel->handle);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_post(link, RC_CALL_function_cache, 0, &message.head, sizeof message, NULL, 0);
	return result;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice number)
{
	struct rc_device *device;
	CUresult result = rc_device_get(number, &device);
	return result == CUDA_SUCCESS ? cuFuncSetCacheConfig((CUfunction)kernel, config) : result;
}

/* Changes nothing: no current GPU has more than one bank size. */
CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
	struct rc_kernel *kernel;
	if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return kernel_get((uint64_t)(uintptr_t)function, &kernel);
}
