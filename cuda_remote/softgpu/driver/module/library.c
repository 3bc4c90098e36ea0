/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries and kernels, which belong to the process; a library loads a module in each context that uses it. */
#include "cuda_remote/softgpu/driver/module/module.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/module/image.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/space/space.h"

#include <stdlib.h>
#include <string.h>

static void kernels_free(CUlibrary library)
{
	for (unsigned i = 0; i < library->count; i++) {
		CUkernel kernel = library->kernels[i];
		free(kernel->name);
		if (handle_retire(kernel))
			handle_release(kernel);
	}
	free(library->kernels);
}

static CUresult kernel_add(CUlibrary library, const char *name)
{
	CUkernel kernel = handle_new(HANDLE_KERNEL, sizeof *kernel);
	if (!kernel)
		return CUDA_ERROR_OUT_OF_MEMORY;
	kernel->library = library;
	kernel->index = library->count;
	kernel->name = strdup(name);
	library->kernels[library->count++] = kernel;
	return kernel->name ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Creates a handle for each kernel of a loaded program. */
static CUresult make_kernels(CUlibrary library, softgpu_program_t *program)
{
	unsigned count = 0;
	while (softgpu_program_kernel(program, count))
		count++;
	library->kernels = calloc(count ? count : 1, sizeof *library->kernels);
	if (!library->kernels)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < count; i++) {
		softgpu_kernel_info_t info;
		softgpu_kernel_info(softgpu_program_kernel(program, i), &info);
		CUresult result = kernel_add(library, info.name);
		if (result)
			return result;
	}
	return CUDA_SUCCESS;
}

/*
 * Checks the text and lists its kernels. If a context is current, the module is loaded there for later use; else a
 * program is loaded and unloaded again.
 */
static CUresult inspect(CUlibrary library, softgpu_log_t *log)
{
	CUcontext context = context_current();
	CUmodule module;
	if (context && !context_error(context)) {
		CUresult result = module_load(context, &library->ptx, library, log, &module);
		if (result)
			return result;
		library->modules = module;
		return make_kernels(library, module->program);
	}
	softgpu_program_t *program;
	softgpu_space_module_owner(0, NULL);
	CUresult result = image_program(&library->ptx, log, &program);
	if (result)
		return result;
	result = make_kernels(library, program);
	softgpu_program_unload(program);
	return result;
}

static void library_free(CUlibrary library)
{
	for (CUmodule next, module = library->modules; module; module = next) {
		next = module->next_of_library;
		module_unload(module);
	}
	kernels_free(library);
	free(library->ptx.text);
	pthread_mutex_destroy(&library->lock);
	handle_retire(library);
	handle_release(library);
}

/* Takes ownership of ptx->text. */
static CUresult library_new(const fatbin_ptx_t *ptx, softgpu_log_t *log, CUlibrary *output)
{
	CUlibrary library = handle_new(HANDLE_LIBRARY, sizeof *library);
	if (!library) {
		free(ptx->text);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	library->ptx = *ptx;
	pthread_mutex_init(&library->lock, NULL);
	CUresult result = inspect(library, log);
	if (result) {
		library_free(library);
		return result;
	}
	*output = library;
	return CUDA_SUCCESS;
}

/* The image is always copied, so the program may free it with or without the option. */
static CUresult check_options(const CUlibraryOption *options, unsigned count)
{
	if (count && !options)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		if (options[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult load(CUlibrary *library, const void *code, const char *file, CUjit_option *options, void **values,
		     unsigned count)
{
	image_jit_t jit;
	fatbin_ptx_t ptx;
	CUresult result = image_jit_begin(&jit, count, options, values);
	if (result)
		return result;
	result = code ? image_from_memory(code, &jit.log, &ptx) : image_from_file(file, &jit.log, &ptx);
	if (!result)
		result = library_new(&ptx, &jit.log, library);
	return image_jit_end(&jit, result);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
			   unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
			   unsigned int numLibraryOptions)
{
	(void)libraryOptionValues;
	CUresult result = init_check();
	if (!result)
		result = check_options(libraryOptions, numLibraryOptions);
	if (result)
		return result;
	if (!library || !code)
		return CUDA_ERROR_INVALID_VALUE;
	return load(library, code, NULL, jitOptions, jitOptionsValues, numJitOptions);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
			       void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
			       void **libraryOptionValues, unsigned int numLibraryOptions)
{
	(void)libraryOptionValues;
	CUresult result = init_check();
	if (!result)
		result = check_options(libraryOptions, numLibraryOptions);
	if (result)
		return result;
	if (!library || !fileName)
		return CUDA_ERROR_INVALID_VALUE;
	return load(library, NULL, fileName, jitOptions, jitOptionsValues, numJitOptions);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	CUresult result = init_check_handle(library, HANDLE_LIBRARY);
	if (!result)
		library_free(library);
	return result;
}

CUresult library_module(CUlibrary library, CUcontext context, CUmodule *module)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&library->lock);
	CUmodule found = library->modules;
	while (found && found->context != context)
		found = found->next_of_library;
	if (!found) {
		result = module_load(context, &library->ptx, library, NULL, &found);
		if (!result) {
			found->next_of_library = library->modules;
			library->modules = found;
		}
	}
	pthread_mutex_unlock(&library->lock);
	if (!result)
		*module = found;
	return result;
}

void library_forget(CUlibrary library, CUmodule module)
{
	pthread_mutex_lock(&library->lock);
	for (CUmodule *at = &library->modules; *at; at = &(*at)->next_of_library)
		if (*at == module) {
			*at = module->next_of_library;
			break;
		}
	pthread_mutex_unlock(&library->lock);
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	CUresult result = init_check_handle(library, HANDLE_LIBRARY);
	if (result)
		return result;
	if (!pKernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < library->count; i++)
		if (!strcmp(library->kernels[i]->name, name)) {
			*pKernel = library->kernels[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	CUresult result = init_check_handle(lib, HANDLE_LIBRARY);
	if (result)
		return result;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = lib->count;
	return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	CUresult result = init_check_handle(lib, HANDLE_LIBRARY);
	if (result)
		return result;
	if (!kernels)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numKernels && i < lib->count; i++)
		kernels[i] = lib->kernels[i];
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!pMod)
		return CUDA_ERROR_INVALID_VALUE;
	return handle_valid(library, HANDLE_LIBRARY) ? library_module(library, context, pMod)
						     : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUmodule module;
	CUresult result = cuLibraryGetModule(&module, library);
	return result ? result : cuModuleGetGlobal_v2(dptr, bytes, module, name);
}

/* The host can access any variable; a managed variable is like any other. */
CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	return cuLibraryGetGlobal(dptr, bytes, library, name);
}

/* The device has no unified function pointers (cuda.h): none is ever found. */
CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
	CUresult result = init_check_handle(library, HANDLE_LIBRARY);
	if (result)
		return result;
	return fptr && symbol ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}
