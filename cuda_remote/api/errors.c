/* SPDX-License-Identifier: BSD-3-Clause */
/* cuGetErrorName and cuGetErrorString, the same for every libcuda.so.1 here. */
#include "cuda_remote/api/exports.h"

#include <string.h>

/* Texts by code; a code of the header that is not here is described by its name. */
static const struct {
	CUresult code;
	const char *text;
} texts[] = {
	{ CUDA_SUCCESS, "no error" },
	{ CUDA_ERROR_INVALID_VALUE, "invalid argument" },
	{ CUDA_ERROR_OUT_OF_MEMORY, "out of memory" },
	{ CUDA_ERROR_NOT_INITIALIZED, "initialization error" },
	{ CUDA_ERROR_DEINITIALIZED, "driver shutting down" },
	{ CUDA_ERROR_PROFILER_DISABLED, "profiler disabled while using external profiling tool" },
	{ CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library" },
	{ CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "API call requires a newer driver" },
	{ CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable" },
	{ CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected" },
	{ CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal" },
	{ CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid" },
	{ CUDA_ERROR_INVALID_CONTEXT, "invalid device context" },
	{ CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed" },
	{ CUDA_ERROR_UNMAP_FAILED, "unmapping of buffer object failed" },
	{ CUDA_ERROR_ARRAY_IS_MAPPED, "array is mapped" },
	{ CUDA_ERROR_ALREADY_MAPPED, "resource already mapped" },
	{ CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device" },
	{ CUDA_ERROR_NOT_MAPPED, "resource not mapped" },
	{ CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered" },
	{ CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture" },
	{ CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "exclusive-thread device already in use by a different thread" },
	{ CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices" },
	{ CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed" },
	{ CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found" },
	{ CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain." },
	{ CUDA_ERROR_JIT_COMPILATION_DISABLED, "PTX JIT compilation was disabled" },
	{ CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid" },
	{ CUDA_ERROR_FILE_NOT_FOUND, "file not found" },
	{ CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found" },
	{ CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object initialization failed" },
	{ CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS" },
	{ CUDA_ERROR_INVALID_HANDLE, "invalid resource handle" },
	{ CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state" },
	{ CUDA_ERROR_NOT_FOUND, "named symbol not found" },
	{ CUDA_ERROR_NOT_READY, "device not ready" },
	{ CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered" },
	{ CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch" },
	{ CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated" },
	{ CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled" },
	{ CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled" },
	{ CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process" },
	{ CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed" },
	{ CUDA_ERROR_ASSERT, "device-side assert triggered" },
	{ CUDA_ERROR_TOO_MANY_PEERS, "peer mapping resources exhausted" },
	{ CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped" },
	{ CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region" },
	{ CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error" },
	{ CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered" },
	{ CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address" },
	{ CUDA_ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space" },
	{ CUDA_ERROR_INVALID_PC, "invalid program counter" },
	{ CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure" },
	{ CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch" },
	{ CUDA_ERROR_NOT_PERMITTED, "operation not permitted" },
	{ CUDA_ERROR_NOT_SUPPORTED, "operation not supported" },
	{ CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized" },
	{ CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination" },
	{ CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "forward compatibility was attempted on non supported HW" },
	{ CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing" },
	{ CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture" },
	{ CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences" },
	{ CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began" },
	{ CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work" },
	{ CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream" },
	{ CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream" },
	{ CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream" },
	{ CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "attempt to terminate a thread-local capture sequence from another thread" },
	{ CUDA_ERROR_TIMEOUT, "wait operation timed out" },
	{ CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph update was not performed because it included changes which violated "
						"constraints specific to instantiated graph update" },
	{ CUDA_ERROR_EXTERNAL_DEVICE, "an async error has occurred in external entity outside of CUDA" },
	{ CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size" },
	{ CUDA_ERROR_UNKNOWN, "unknown error" },
};

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < rc_exports_errors_count; i++) {
		if (rc_exports_errors[i].code == error) {
			*pStr = rc_exports_errors[i].name;
			return CUDA_SUCCESS;
		}
	}
	*pStr = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	CUresult result = cuGetErrorName(error, pStr);
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (texts[i].code == error)
			*pStr = texts[i].text;
	return CUDA_SUCCESS;
}
