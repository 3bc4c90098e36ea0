/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules and their functions: loading, unloading and look-up. */
#include "cuda_remote/softgpu/driver/module/module.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/module/image.h"
#include "cuda_remote/softgpu/space/space.h"

#include <stdlib.h>
#include <string.h>

static void function_free(CUfunction function)
{
	if (!function)
		return;
	free(function->parameters);
	free(function->old_launch);
	if (handle_retire(function))
		handle_release(function);
}

static CUresult function_new(CUmodule module, const softgpu_kernel_t *kernel, CUfunction *output)
{
	static uint64_t last_id;
	CUfunction function = handle_new(HANDLE_FUNCTION, sizeof *function);
	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	function->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	function->module = module;
	function->kernel = kernel;
	softgpu_kernel_info(kernel, &function->info);
	uint32_t count = function->info.parameters;
	function->parameters = calloc(count ? count : 1, sizeof *function->parameters);
	CUresult result = function->parameters ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < count && !result; i++) {
		size_t offset, size;
		result = softgpu_kernel_parameter(kernel, i, &offset, &size);
		if (!result &&
		    (size > function->info.parameter_bytes || offset > function->info.parameter_bytes - size))
			result = CUDA_ERROR_INVALID_IMAGE;
		if (result)
			break;
		function->parameters[i] = (function_parameter_t){ (uint32_t)offset, (uint32_t)size };
		if (offset + size > function->parameter_end)
			function->parameter_end = (uint32_t)(offset + size);
	}
	if (result) {
		function_free(function);
		return result;
	}
	function->max_dynamic_shared = (int)(function->info.static_shared < DEVICE_SHARED_BYTES ?
					     DEVICE_SHARED_BYTES - function->info.static_shared : 0);
	function->carveout = CU_SHAREDMEM_CARVEOUT_DEFAULT;
	*output = function;
	return CUDA_SUCCESS;
}

static void free_functions(CUmodule module)
{
	for (unsigned i = 0; i < module->count; i++)
		function_free(module->functions[i]);
	free(module->functions);
}

static CUresult make_functions(CUmodule module)
{
	unsigned count = 0;
	while (softgpu_program_kernel(module->program, count))
		count++;
	module->functions = calloc(count ? count : 1, sizeof *module->functions);
	if (!module->functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (; module->count < count; module->count++) {
		CUresult result = function_new(module, softgpu_program_kernel(module->program, module->count),
					       &module->functions[module->count]);
		if (result)
			return result;
	}
	return CUDA_SUCCESS;
}

static void free_references(struct module_reference *reference)
{
	for (struct module_reference *next; reference; reference = next) {
		next = reference->next;
		handle_retire(reference);
		handle_release(reference);
	}
}

/* All work that used the module is complete. */
static void destroy_owned(owned_t *owned)
{
	CUmodule module = OWNER_OF(owned, struct CUmod_st);
	handle_retire(module);
	if (module->library)
		library_forget(module->library, module);
	free_references(module->first_texture);
	free_references(module->first_surface);
	free_functions(module);
	softgpu_program_unload(module->program);
	handle_release(module);
}

void module_unload(CUmodule module)
{
	if (handle_retire(module))
		owned_destroy(&module->owned);
}

CUresult module_load(CUcontext context, const fatbin_ptx_t *ptx, CUlibrary library, softgpu_log_t *log,
		     CUmodule *output)
{
	CUmodule module = handle_new(HANDLE_MODULE, sizeof *module);
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->context = context;
	module->library = library;
	softgpu_space_module_owner(context->physical, context);
	CUresult result = image_program(ptx, log, &module->program);
	if (result)
		goto undo_handle;
	result = make_functions(module);
	if (result)
		goto undo_program;
	owned_add(&context->owned, &module->owned, OWNED_MODULE, destroy_owned);
	*output = module;
	return CUDA_SUCCESS;
undo_program:
	free_functions(module);
	softgpu_program_unload(module->program);
undo_handle:
	handle_retire(module);
	handle_release(module);
	return result;
}

CUfunction module_find(CUmodule module, const char *name)
{
	const softgpu_kernel_t *kernel = softgpu_program_find(module->program, name);
	for (unsigned i = 0; i < module->count && kernel; i++)
		if (module->functions[i]->kernel == kernel)
			return module->functions[i];
	return NULL;
}

/* Loads the output of image_from_memory or image_from_file, frees it, and copies the logs to the program. */
static CUresult finish_load(CUcontext context, CUresult result, image_jit_t *jit, fatbin_ptx_t *ptx, CUmodule *module)
{
	if (!result) {
		result = module_load(context, ptx, NULL, &jit->log, module);
		free(ptx->text);
	}
	return image_jit_end(jit, result);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
			    void **optionValues)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	image_jit_t jit;
	fatbin_ptx_t ptx;
	result = image_jit_begin(&jit, numOptions, options, optionValues);
	if (result)
		return result;
	return finish_load(context, image_from_memory(image, &jit.log, &ptx), &jit, &ptx, module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	image_jit_t jit;
	fatbin_ptx_t ptx;
	result = image_jit_begin(&jit, 0, NULL, NULL);
	if (result)
		return result;
	return finish_load(context, image_from_file(fname, &jit.log, &ptx), &jit, &ptx, module);
}

CUresult cuModuleUnload(CUmodule hmod)
{
	CUresult result = context_enter_handle(hmod, HANDLE_MODULE);
	if (result)
		return result;
	if (hmod->library)
		return CUDA_ERROR_NOT_PERMITTED;
	module_unload(hmod);
	return CUDA_SUCCESS;
}

/* A module is checked and decoded completely when it is loaded. */
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	CUresult result = context_enter_handle(hmod, HANDLE_MODULE);
	if (result)
		return result;
	if (!hfunc || !name)
		return CUDA_ERROR_INVALID_VALUE;
	CUfunction function = module_find(hmod, name);
	if (!function)
		return CUDA_ERROR_NOT_FOUND;
	*hfunc = function;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	CUresult result = context_enter_handle(mod, HANDLE_MODULE);
	if (result)
		return result;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = mod->count;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	CUresult result = context_enter_handle(mod, HANDLE_MODULE);
	if (result)
		return result;
	if (!functions)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numFunctions && i < mod->count; i++)
		functions[i] = mod->functions[i];
	return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	CUresult result = context_enter_handle(hmod, HANDLE_MODULE);
	if (result)
		return result;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address, size;
	result = softgpu_program_variable(hmod->program, name, &address, &size);
	if (result)
		return result;
	if (dptr)
		*dptr = address;
	if (bytes)
		*bytes = size;
	return CUDA_SUCCESS;
}
