/* SPDX-License-Identifier: BSD-3-Clause */
/* Device and host memory: allocation, registration, attributes of pointers. */
#include "cuda_remote/runtime/runtime.h"

RUNTIME_API cudaError_t cudaMalloc(void **pointer, size_t size)
{
	CUdeviceptr address = 0;
	if (!pointer)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	/* 0 bytes: NULL and no error; the driver would return an error. */
	CUresult result = size ? runtime_driver.cuMemAlloc_v2(&address, size) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		*pointer = (void *)(uintptr_t)address;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaFree(void *pointer)
{
	/* Programs call cudaFree(0) to create a context early. */
	cudaError_t error = runtime_enter();
	if (error || !pointer)
		return error;
	return runtime_done(runtime_driver.cuMemFree_v2(runtime_address(pointer)));
}

RUNTIME_API cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned flags)
{
	CUdeviceptr address;
	if (!pointer || !size)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuMemAllocManaged(&address, size, flags);
	if (result == CUDA_SUCCESS)
		*pointer = (void *)(uintptr_t)address;
	return runtime_done(result);
}

/* Allocates rows of width bytes, *pitch bytes apart. For an empty area *pointer is NULL and *pitch is 0. */
static cudaError_t alloc_pitched(void **pointer, size_t *pitch, size_t width, size_t rows)
{
	enum { ELEMENT = 4 }; /* bytes that a thread reads at once; the driver accepts 4, 8 or 16 */
	CUdeviceptr address = 0;
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	size_t row = 0;
	CUresult result = CUDA_SUCCESS;
	if (width && rows)
		result = runtime_driver.cuMemAllocPitch_v2(&address, &row, width, rows, ELEMENT);
	if (result == CUDA_SUCCESS) {
		*pointer = (void *)(uintptr_t)address;
		*pitch = row;
	}
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
	if (!pointer || !pitch)
		return runtime_fail(cudaErrorInvalidValue);
	return alloc_pitched(pointer, pitch, width, height);
}

RUNTIME_API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
	void *pointer;
	size_t pitch, rows;
	if (!pitched)
		return runtime_fail(cudaErrorInvalidValue);
	if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
		return runtime_fail(cudaErrorMemoryAllocation);
	cudaError_t error = alloc_pitched(&pointer, &pitch, extent.width, rows);
	if (error)
		return error;
	*pitched = (struct cudaPitchedPtr){
		.ptr = pointer, .pitch = pitch, .xsize = extent.width, .ysize = extent.height
	};
	return cudaSuccess;
}

RUNTIME_API cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
	if (!available || !total)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuMemGetInfo_v2(available, total));
}

_Static_assert(cudaHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE && cudaHostAllocMapped == CU_MEMHOSTALLOC_DEVICEMAP &&
	       cudaHostAllocWriteCombined == CU_MEMHOSTALLOC_WRITECOMBINED &&
	       cudaHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE &&
	       cudaHostRegisterMapped == CU_MEMHOSTREGISTER_DEVICEMAP &&
	       cudaHostRegisterIoMemory == CU_MEMHOSTREGISTER_IOMEMORY &&
	       cudaHostRegisterReadOnly == CU_MEMHOSTREGISTER_READ_ONLY,
	       "flags of host memory are passed through");

RUNTIME_API cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags)
{
	void *memory = NULL;
	if (!pointer || flags & ~(unsigned)(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = size ? runtime_driver.cuMemHostAlloc(&memory, size, flags) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		*pointer = memory;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaMallocHost(void **pointer, size_t size)
{
	return cudaHostAlloc(pointer, size, cudaHostAllocDefault);
}

RUNTIME_API cudaError_t cudaFreeHost(void *pointer)
{
	cudaError_t error = runtime_enter();
	if (error || !pointer)
		return error;
	return runtime_done(runtime_driver.cuMemFreeHost(pointer));
}

RUNTIME_API cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags)
{
	if (!pointer || !size)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuMemHostRegister_v2(pointer, size, flags));
}

RUNTIME_API cudaError_t cudaHostUnregister(void *pointer)
{
	if (!pointer)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuMemHostUnregister(pointer));
}

RUNTIME_API cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	CUdeviceptr address;
	if (!device || !host)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuMemHostGetDevicePointer_v2(&address, host, flags);
	if (result == CUDA_SUCCESS)
		*device = (void *)(uintptr_t)address;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaHostGetFlags(unsigned *flags, void *host)
{
	if (!flags || !host)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuMemHostGetFlags(flags, host));
}

static enum cudaMemoryType memory_type(unsigned type, unsigned managed)
{
	if (managed)
		return cudaMemoryTypeManaged;
	switch (type) {
	case CU_MEMORYTYPE_HOST: return cudaMemoryTypeHost;
	case CU_MEMORYTYPE_DEVICE: return cudaMemoryTypeDevice;
	default: return cudaMemoryTypeUnregistered;
	}
}

RUNTIME_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
	/* The driver returns 0 for an unknown pointer: host memory that is not registered. */
	unsigned type = 0, managed = 0;
	int device = cudaInvalidDeviceId;
	CUdeviceptr device_pointer = 0;
	void *host_pointer = NULL;
	CUpointer_attribute names[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
					CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
					CU_POINTER_ATTRIBUTE_HOST_POINTER };
	void *values[] = { &type, &managed, &device, &device_pointer, &host_pointer };
	if (!attributes)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuPointerGetAttributes(sizeof names / sizeof *names, names, values,
								runtime_address(pointer));
	if (result != CUDA_SUCCESS)
		return runtime_done(result);
	*attributes = (struct cudaPointerAttributes){ .type = memory_type(type, managed),
		.device = cudaInvalidDeviceId };
	if (attributes->type == cudaMemoryTypeUnregistered)
		attributes->hostPointer = (void *)(uintptr_t)pointer;
	else {
		attributes->device = device;
		attributes->devicePointer = (void *)(uintptr_t)device_pointer;
		attributes->hostPointer = host_pointer;
	}
	return cudaSuccess;
}

_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation) &&
	       (int)cudaMemLocationTypeDevice == (int)CU_MEM_LOCATION_TYPE_DEVICE &&
	       (int)cudaMemLocationTypeHost == (int)CU_MEM_LOCATION_TYPE_HOST, "locations are passed through");

RUNTIME_API cudaError_t cudaMemAdvise(const void *pointer, size_t size, enum cudaMemoryAdvise advice,
				      struct cudaMemLocation location)
{
	cudaError_t error = runtime_enter();
	CUmemLocation where = { .type = (CUmemLocationType)location.type, .id = location.id };
	if (error)
		return error;
	return runtime_done(runtime_driver.cuMemAdvise_v2(runtime_address(pointer), size, (CUmem_advise)advice, where));
}

RUNTIME_API cudaError_t cudaMemRangeGetAttribute(void *data, size_t data_size, enum cudaMemRangeAttribute attribute,
						 const void *pointer, size_t size)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuMemRangeGetAttribute(data, data_size,
			(CUmem_range_attribute)attribute, runtime_address(pointer), size));
}

RUNTIME_API cudaError_t cudaMemRangeGetAttributes(void **data, size_t *data_sizes,
		enum cudaMemRangeAttribute *attributes, size_t count, const void *pointer, size_t size)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuMemRangeGetAttributes(data, data_sizes,
			(CUmem_range_attribute *)attributes, count, runtime_address(pointer), size));
}

/* ---- memory of another process ---- */

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle) &&
	       sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "IPC handles are passed through");

RUNTIME_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuIpcGetMemHandle((CUipcMemHandle *)handle,
			runtime_address(pointer)));
}

RUNTIME_API cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned flags)
{
	CUdeviceptr address;
	if (!pointer)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUipcMemHandle driver;
	__builtin_memcpy(&driver, &handle, sizeof driver);
	CUresult result = runtime_driver.cuIpcOpenMemHandle_v2(&address, driver, flags);
	if (result == CUDA_SUCCESS)
		*pointer = (void *)(uintptr_t)address;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuIpcCloseMemHandle(runtime_address(pointer)));
}
