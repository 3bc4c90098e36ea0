/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries that the program loads, with the driver's handles. Also the versions, and the profiler's start and stop. */
#include "cuda_remote/runtime/runtime.h"

_Static_assert(sizeof(enum cudaJitOption) == sizeof(CUjit_option) &&
	       (int)cudaJitOverrideDirectiveValues == (int)CU_JIT_OVERRIDE_DIRECTIVE_VALUES &&
	       (int)cudaLibraryBinaryIsPreserved == (int)CU_LIBRARY_BINARY_IS_PRESERVED,
	       "options of the compiler are passed through");

RUNTIME_API cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit,
		void **jit_values, unsigned jit_count, enum cudaLibraryOption *options, void **values, unsigned count)
{
	cudaError_t error = runtime_enter();
	return error ? error
		     : runtime_done(runtime_driver.cuLibraryLoadData(library, code, (CUjit_option *)jit, jit_values,
				       jit_count, (CUlibraryOption *)options, values, count));
}

RUNTIME_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *file, enum cudaJitOption *jit,
						void **jit_values, unsigned jit_count, enum cudaLibraryOption *options,
						void **values, unsigned count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuLibraryLoadFromFile(library, file, (CUjit_option *)jit,
			jit_values, jit_count, (CUlibraryOption *)options, values, count));
}

RUNTIME_API cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuLibraryUnload(library));
}

RUNTIME_API cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	if (!kernel)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuLibraryGetKernel(kernel, library, name);
	return result == CUDA_SUCCESS ? runtime_fail(runtime_symbol_remember(*kernel)) : runtime_done(result);
}

RUNTIME_API cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuLibraryGetKernelCount(count, library));
}

RUNTIME_API cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned size, cudaLibrary_t library)
{
	unsigned count = 0;
	cudaError_t error = cudaLibraryGetKernelCount(&count, library);
	if (error)
		return error;
	CUresult result = runtime_driver.cuLibraryEnumerateKernels(kernels, size, library);
	if (result != CUDA_SUCCESS)
		return runtime_done(result);
	for (unsigned i = 0; i < size && i < count && !error; i++)
		error = runtime_symbol_remember(kernels[i]);
	return runtime_fail(error);
}

RUNTIME_API cudaError_t cudaLibraryGetGlobal(void **pointer, size_t *size, cudaLibrary_t library, const char *name)
{
	cudaError_t error = runtime_enter();
	return error ? error
		     : runtime_done(runtime_driver.cuLibraryGetGlobal((CUdeviceptr *)pointer, size, library, name));
}

RUNTIME_API cudaError_t cudaLibraryGetManaged(void **pointer, size_t *size, cudaLibrary_t library, const char *name)
{
	cudaError_t error = runtime_enter();
	return error ? error
		     : runtime_done(runtime_driver.cuLibraryGetManaged((CUdeviceptr *)pointer, size, library, name));
}

RUNTIME_API cudaError_t cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library, const char *symbol)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuLibraryGetUnifiedFunction(function, library, symbol));
}

RUNTIME_API cudaError_t cudaKernelSetAttributeForDevice(
		cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int ordinal)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuKernelSetAttribute(
			(CUfunction_attribute)attribute, value, kernel, device));
}

RUNTIME_API cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return runtime_fail(cudaErrorInvalidValue);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

RUNTIME_API cudaError_t cudaDriverGetVersion(int *version)
{
	if (!version)
		return runtime_fail(cudaErrorInvalidValue);
	*version = 0; /* CUDA's result if there is no driver */
	return runtime_driver_open() ? cudaSuccess : runtime_done(runtime_driver.cuDriverGetVersion(version));
}

/*
 * These calls are for a profiling tool that is attached to the driver. A driver without them cannot have such a tool:
 * nothing to do.
 */
static cudaError_t profiler_told(CUresult result)
{
	return result == CUDA_ERROR_NOT_SUPPORTED ? cudaSuccess : runtime_done(result);
}

RUNTIME_API cudaError_t cudaProfilerStart(void)
{
	cudaError_t error = runtime_enter();
	return error ? error : profiler_told(runtime_driver.cuProfilerStart());
}

RUNTIME_API cudaError_t cudaProfilerStop(void)
{
	cudaError_t error = runtime_enter();
	return error ? error : profiler_told(runtime_driver.cuProfilerStop());
}
