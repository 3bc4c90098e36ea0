/* SPDX-License-Identifier: BSD-3-Clause */
/* The last error of each thread, and the names and texts of errors. */
#include "cuda_remote/runtime/error.h"

#include "cuda_remote/runtime/unsupported.h"
#include "rdma_channel/base/log.h"

#include <stdbool.h>
#include <stddef.h>

static __thread cudaError_t last_error;

/* Without a default: -Wswitch names a code that error_list.h lacks. */
static const char *error_name(cudaError_t error)
{
	switch (error) {
#define ERROR(code, text) case code: return #code;
#include "cuda_remote/runtime/error_list.h"
#undef ERROR
	}
	return NULL;
}

static const char *error_text(cudaError_t error)
{
	switch (error) {
#define ERROR(code, text) case code: return text;
#include "cuda_remote/runtime/error_list.h"
#undef ERROR
	}
	return NULL;
}

/*
 * The two enumerations give the same number to the same error. The few errors of the driver that the runtime has no
 * name for become cudaErrorUnknown.
 */
cudaError_t runtime_error_translate(CUresult result)
{
	cudaError_t error = (cudaError_t)result;
	return error_name(error) ? error : cudaErrorUnknown;
}

static bool is_sticky(cudaError_t error)
{
	switch ((int)error) {
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorContained:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case cudaErrorTensorMemoryLeak:
	case cudaErrorMpsClientTerminated:
	case cudaErrorExternalDevice:
		return true;
	default:
		return false;
	}
}

cudaError_t runtime_fail(cudaError_t error)
{
	if (error != cudaSuccess && error != cudaErrorNotReady && !is_sticky(last_error))
		last_error = error;
	return error;
}

cudaError_t runtime_done(CUresult result)
{
	return result == CUDA_SUCCESS ? cudaSuccess : runtime_fail(runtime_error_translate(result));
}

void runtime_error_clear(void)
{
	if (is_sticky(last_error))
		last_error = cudaSuccess;
}

int runtime_unsupported(const char *name, char *logged)
{
	if (!__atomic_exchange_n(logged, 1, __ATOMIC_RELAXED))
		hr_log(HR_LOG_WARN, "%s: not supported by this CUDA runtime", name);
	return runtime_fail(cudaErrorNotSupported);
}

RUNTIME_API cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error;
	if (!is_sticky(error))
		last_error = cudaSuccess;
	return error;
}

RUNTIME_API cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

RUNTIME_API const char *cudaGetErrorName(cudaError_t error)
{
	const char *name = error_name(error);
	return name ? name : "unrecognized error code";
}

RUNTIME_API const char *cudaGetErrorString(cudaError_t error)
{
	const char *text = error_text(error);
	return text ? text : "unrecognized error code";
}
