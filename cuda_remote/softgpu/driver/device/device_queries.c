/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of devices and contexts that are not attributes: atomic operations, texture width, affinity. */
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"

#include <string.h>

static CUresult check(CUdevice device)
{
	CUresult result = init_check();
	if (result)
		return result;
	return device_valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/*
 * Atomic operations of kernels are the processor's, on host memory and on memory of every device: those of PTX for
 * compute capability 9.0, except vectors and 128-bit words.
 */
static unsigned atomic_capability(CUatomicOperation operation)
{
	const unsigned words = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
	const unsigned both = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED;
	switch (operation) {
	case CU_ATOMIC_OPERATION_INTEGER_ADD:
	case CU_ATOMIC_OPERATION_INTEGER_MIN:
	case CU_ATOMIC_OPERATION_INTEGER_MAX:
		return words | both | CU_ATOMIC_CAPABILITY_REDUCTION;
	case CU_ATOMIC_OPERATION_INTEGER_INCREMENT:
	case CU_ATOMIC_OPERATION_INTEGER_DECREMENT:
		return CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION;
	case CU_ATOMIC_OPERATION_AND:
	case CU_ATOMIC_OPERATION_OR:
	case CU_ATOMIC_OPERATION_XOR:
		return words | CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION;
	case CU_ATOMIC_OPERATION_EXCHANGE:
	case CU_ATOMIC_OPERATION_CAS:
		return words | CU_ATOMIC_CAPABILITY_UNSIGNED;
	case CU_ATOMIC_OPERATION_FLOAT_ADD:
		return words | CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_REDUCTION;
	default:
		return 0;
	}
}

static CUresult atomic_capabilities(unsigned *capabilities, const CUatomicOperation *operations, unsigned count)
{
	if (!capabilities || !operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		if ((int)operations[i] < 0 || operations[i] >= CU_ATOMIC_OPERATION_MAX)
			return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = atomic_capability(operations[i]);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
					   unsigned int count, CUdevice dev)
{
	CUresult result = check(dev);
	return result ? result : atomic_capabilities(capabilities, operations, count);
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
					  unsigned int count, CUdevice srcDevice, CUdevice dstDevice)
{
	CUresult result = check(srcDevice);
	if (!result)
		result = check(dstDevice);
	if (!result && srcDevice == dstDevice)
		result = CUDA_ERROR_INVALID_DEVICE;
	return result ? result : atomic_capabilities(capabilities, operations, count);
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format, unsigned numChannels,
					    CUdevice dev)
{
	int width;
	CUresult result = check(dev);
	if (!result)
		result = cuDeviceGetAttribute(&width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, dev);
	if (result)
		return result;
	if (!maxWidthInElements || (numChannels != 1 && numChannels != 2 && numChannels != 4) ||
	    format < CU_AD_FORMAT_UNSIGNED_INT8)
		return CUDA_ERROR_INVALID_VALUE;
	if (!width)
		return CUDA_ERROR_NOT_SUPPORTED;
	*maxWidthInElements = (size_t)width;
	return CUDA_SUCCESS;
}

/* Every context has all multiprocessors. */
CUresult cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	return pExecAffinity && type == CU_EXEC_AFFINITY_TYPE_SM_COUNT ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
								       : CUDA_ERROR_INVALID_VALUE;
}
