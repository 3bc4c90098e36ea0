/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, their attributes and properties. The driver is asked once for each; later calls use the cached value. */
#include "cuda_remote/runtime/array/channel_format.h"

#include <pthread.h>
#include <string.h>

enum { ATTRIBUTES = 256 }; /* above every enumerator of CUdevice_attribute in 13.x */

struct device {
	CUdevice handle;
	/* The value plus ATTRIBUTE_KNOWN; 0: not cached. Orders nothing: racing threads store the same value. */
	_Atomic uint64_t attributes[ATTRIBUTES];
	pthread_mutex_t lock;   /* guards what follows */
	bool have_properties;
	struct cudaDeviceProp properties;
};

#define ATTRIBUTE_KNOWN (UINT64_C(1) << 32)

static struct device devices[RUNTIME_MAX_DEVICES];
static int device_count;
static cudaError_t device_error;
static pthread_once_t devices_once = PTHREAD_ONCE_INIT;

static void find_devices(void)
{
	device_error = runtime_driver_init();
	if (device_error)
		return;
	int count = 0;
	device_error = runtime_error_translate(runtime_driver.cuDeviceGetCount(&count));
	if (!device_error && count == 0)
		device_error = cudaErrorNoDevice;
	for (int i = 0; !device_error && i < count && i < RUNTIME_MAX_DEVICES; i++) {
		pthread_mutex_init(&devices[i].lock, NULL);
		device_error = runtime_error_translate(runtime_driver.cuDeviceGet(&devices[i].handle, i));
		if (!device_error)
			device_count++;
	}
}

/* Lists the driver's devices, once in the process. If that fails, later calls return the same error. */
static cudaError_t devices_ready(void)
{
	pthread_once(&devices_once, find_devices);
	return device_error;
}

cudaError_t runtime_device(int ordinal, CUdevice *device)
{
	cudaError_t error = devices_ready();
	if (error)
		return error;
	if (ordinal < 0 || ordinal >= device_count)
		return cudaErrorInvalidDevice;
	*device = devices[ordinal].handle;
	return cudaSuccess;
}

int runtime_device_ordinal(CUdevice device)
{
	for (int i = 0; devices_ready() == cudaSuccess && i < device_count; i++)
		if (devices[i].handle == device)
			return i;
	return -1;
}

static CUresult query_attribute(int ordinal, int attribute, int *value)
{
	if (attribute <= 0 || attribute >= ATTRIBUTES)
		return CUDA_ERROR_INVALID_VALUE;
	_Atomic uint64_t *known = &devices[ordinal].attributes[attribute];
	uint64_t cached = atomic_load_explicit(known, memory_order_relaxed);
	if (!cached) {
		CUresult result = runtime_driver.cuDeviceGetAttribute(value, (CUdevice_attribute)attribute,
								      devices[ordinal].handle);
		if (result != CUDA_SUCCESS)
			return result;
		cached = ATTRIBUTE_KNOWN | (uint32_t)*value;
		atomic_store_explicit(known, cached, memory_order_relaxed);
	}
	*value = (int)(uint32_t)cached;
	return CUDA_SUCCESS;
}

int runtime_device_attribute(int ordinal, enum cudaDeviceAttr attribute)
{
	int value = 0;
	return query_attribute(ordinal, (int)attribute, &value) == CUDA_SUCCESS ? value : 0;
}

RUNTIME_API cudaError_t cudaGetDeviceCount(int *count)
{
	if (!count)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = devices_ready();
	*count = error ? 0 : device_count;
	return runtime_fail(error);
}

RUNTIME_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int ordinal)
{
	CUdevice device;
	if (!value)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_device(ordinal, &device);
	if (error)
		return runtime_fail(error);
	return runtime_done(query_attribute(ordinal, (int)attribute, value));
}

/*
 * cudaDeviceProp from attributes. INT fields are int, SIZE ones size_t; cudaDevAttr* and CU_DEVICE_ATTRIBUTE_* have the
 * same numbers.
 */
#define INT(field, attribute) { offsetof(struct cudaDeviceProp, field), false, attribute }
#define SIZE(field, attribute) { offsetof(struct cudaDeviceProp, field), true, attribute }
static const struct property {
	size_t offset;
	bool is_size;
	int attribute;
} properties[] = {
	SIZE(sharedMemPerBlock, cudaDevAttrMaxSharedMemoryPerBlock),
	INT(regsPerBlock, cudaDevAttrMaxRegistersPerBlock),
	INT(warpSize, cudaDevAttrWarpSize),
	SIZE(memPitch, cudaDevAttrMaxPitch),
	INT(maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock),
	INT(maxThreadsDim[0], cudaDevAttrMaxBlockDimX),
	INT(maxThreadsDim[1], cudaDevAttrMaxBlockDimY),
	INT(maxThreadsDim[2], cudaDevAttrMaxBlockDimZ),
	INT(maxGridSize[0], cudaDevAttrMaxGridDimX),
	INT(maxGridSize[1], cudaDevAttrMaxGridDimY),
	INT(maxGridSize[2], cudaDevAttrMaxGridDimZ),
	SIZE(totalConstMem, cudaDevAttrTotalConstantMemory),
	INT(major, cudaDevAttrComputeCapabilityMajor),
	INT(minor, cudaDevAttrComputeCapabilityMinor),
	SIZE(textureAlignment, cudaDevAttrTextureAlignment),
	SIZE(texturePitchAlignment, cudaDevAttrTexturePitchAlignment),
	INT(multiProcessorCount, cudaDevAttrMultiProcessorCount),
	INT(integrated, cudaDevAttrIntegrated),
	INT(canMapHostMemory, cudaDevAttrCanMapHostMemory),
	INT(maxTexture1D, cudaDevAttrMaxTexture1DWidth),
	INT(maxTexture1DMipmap, cudaDevAttrMaxTexture1DMipmappedWidth),
	INT(maxTexture2D[0], cudaDevAttrMaxTexture2DWidth),
	INT(maxTexture2D[1], cudaDevAttrMaxTexture2DHeight),
	INT(maxTexture2DMipmap[0], cudaDevAttrMaxTexture2DMipmappedWidth),
	INT(maxTexture2DMipmap[1], cudaDevAttrMaxTexture2DMipmappedHeight),
	INT(maxTexture2DLinear[0], cudaDevAttrMaxTexture2DLinearWidth),
	INT(maxTexture2DLinear[1], cudaDevAttrMaxTexture2DLinearHeight),
	INT(maxTexture2DLinear[2], cudaDevAttrMaxTexture2DLinearPitch),
	INT(maxTexture2DGather[0], cudaDevAttrMaxTexture2DGatherWidth),
	INT(maxTexture2DGather[1], cudaDevAttrMaxTexture2DGatherHeight),
	INT(maxTexture3D[0], cudaDevAttrMaxTexture3DWidth),
	INT(maxTexture3D[1], cudaDevAttrMaxTexture3DHeight),
	INT(maxTexture3D[2], cudaDevAttrMaxTexture3DDepth),
	INT(maxTexture3DAlt[0], cudaDevAttrMaxTexture3DWidthAlt),
	INT(maxTexture3DAlt[1], cudaDevAttrMaxTexture3DHeightAlt),
	INT(maxTexture3DAlt[2], cudaDevAttrMaxTexture3DDepthAlt),
	INT(maxTextureCubemap, cudaDevAttrMaxTextureCubemapWidth),
	INT(maxTexture1DLayered[0], cudaDevAttrMaxTexture1DLayeredWidth),
	INT(maxTexture1DLayered[1], cudaDevAttrMaxTexture1DLayeredLayers),
	INT(maxTexture2DLayered[0], cudaDevAttrMaxTexture2DLayeredWidth),
	INT(maxTexture2DLayered[1], cudaDevAttrMaxTexture2DLayeredHeight),
	INT(maxTexture2DLayered[2], cudaDevAttrMaxTexture2DLayeredLayers),
	INT(maxTextureCubemapLayered[0], cudaDevAttrMaxTextureCubemapLayeredWidth),
	INT(maxTextureCubemapLayered[1], cudaDevAttrMaxTextureCubemapLayeredLayers),
	INT(maxSurface1D, cudaDevAttrMaxSurface1DWidth),
	INT(maxSurface2D[0], cudaDevAttrMaxSurface2DWidth),
	INT(maxSurface2D[1], cudaDevAttrMaxSurface2DHeight),
	INT(maxSurface3D[0], cudaDevAttrMaxSurface3DWidth),
	INT(maxSurface3D[1], cudaDevAttrMaxSurface3DHeight),
	INT(maxSurface3D[2], cudaDevAttrMaxSurface3DDepth),
	INT(maxSurface1DLayered[0], cudaDevAttrMaxSurface1DLayeredWidth),
	INT(maxSurface1DLayered[1], cudaDevAttrMaxSurface1DLayeredLayers),
	INT(maxSurface2DLayered[0], cudaDevAttrMaxSurface2DLayeredWidth),
	INT(maxSurface2DLayered[1], cudaDevAttrMaxSurface2DLayeredHeight),
	INT(maxSurface2DLayered[2], cudaDevAttrMaxSurface2DLayeredLayers),
	INT(maxSurfaceCubemap, cudaDevAttrMaxSurfaceCubemapWidth),
	INT(maxSurfaceCubemapLayered[0], cudaDevAttrMaxSurfaceCubemapLayeredWidth),
	INT(maxSurfaceCubemapLayered[1], cudaDevAttrMaxSurfaceCubemapLayeredLayers),
	SIZE(surfaceAlignment, cudaDevAttrSurfaceAlignment),
	INT(concurrentKernels, cudaDevAttrConcurrentKernels),
	INT(ECCEnabled, cudaDevAttrEccEnabled),
	INT(pciBusID, cudaDevAttrPciBusId),
	INT(pciDeviceID, cudaDevAttrPciDeviceId),
	INT(pciDomainID, cudaDevAttrPciDomainId),
	INT(tccDriver, cudaDevAttrTccDriver),
	INT(asyncEngineCount, cudaDevAttrAsyncEngineCount),
	INT(unifiedAddressing, cudaDevAttrUnifiedAddressing),
	INT(memoryBusWidth, cudaDevAttrGlobalMemoryBusWidth),
	INT(l2CacheSize, cudaDevAttrL2CacheSize),
	INT(persistingL2CacheMaxSize, cudaDevAttrMaxPersistingL2CacheSize),
	INT(maxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerMultiProcessor),
	INT(streamPrioritiesSupported, cudaDevAttrStreamPrioritiesSupported),
	INT(globalL1CacheSupported, cudaDevAttrGlobalL1CacheSupported),
	INT(localL1CacheSupported, cudaDevAttrLocalL1CacheSupported),
	SIZE(sharedMemPerMultiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor),
	INT(regsPerMultiprocessor, cudaDevAttrMaxRegistersPerMultiprocessor),
	INT(managedMemory, cudaDevAttrManagedMemory),
	INT(isMultiGpuBoard, cudaDevAttrIsMultiGpuBoard),
	INT(multiGpuBoardGroupID, cudaDevAttrMultiGpuBoardGroupID),
	INT(hostNativeAtomicSupported, cudaDevAttrHostNativeAtomicSupported),
	INT(pageableMemoryAccess, cudaDevAttrPageableMemoryAccess),
	INT(concurrentManagedAccess, cudaDevAttrConcurrentManagedAccess),
	INT(computePreemptionSupported, cudaDevAttrComputePreemptionSupported),
	INT(canUseHostPointerForRegisteredMem, cudaDevAttrCanUseHostPointerForRegisteredMem),
	INT(cooperativeLaunch, cudaDevAttrCooperativeLaunch),
	SIZE(sharedMemPerBlockOptin, cudaDevAttrMaxSharedMemoryPerBlockOptin),
	INT(pageableMemoryAccessUsesHostPageTables, cudaDevAttrPageableMemoryAccessUsesHostPageTables),
	INT(directManagedMemAccessFromHost, cudaDevAttrDirectManagedMemAccessFromHost),
	INT(maxBlocksPerMultiProcessor, cudaDevAttrMaxBlocksPerMultiprocessor),
	INT(accessPolicyMaxWindowSize, cudaDevAttrMaxAccessPolicyWindowSize),
	SIZE(reservedSharedMemPerBlock, cudaDevAttrReservedSharedMemoryPerBlock),
	INT(hostRegisterSupported, cudaDevAttrHostRegisterSupported),
	INT(sparseCudaArraySupported, cudaDevAttrSparseCudaArraySupported),
	INT(hostRegisterReadOnlySupported, cudaDevAttrHostRegisterReadOnlySupported),
	INT(timelineSemaphoreInteropSupported, cudaDevAttrTimelineSemaphoreInteropSupported),
	INT(memoryPoolsSupported, cudaDevAttrMemoryPoolsSupported),
	INT(gpuDirectRDMASupported, cudaDevAttrGPUDirectRDMASupported),
	INT(gpuDirectRDMAFlushWritesOptions, cudaDevAttrGPUDirectRDMAFlushWritesOptions),
	INT(gpuDirectRDMAWritesOrdering, cudaDevAttrGPUDirectRDMAWritesOrdering),
	INT(memoryPoolSupportedHandleTypes, cudaDevAttrMemoryPoolSupportedHandleTypes),
	INT(deferredMappingCudaArraySupported, cudaDevAttrDeferredMappingCudaArraySupported),
	INT(ipcEventSupported, cudaDevAttrIpcEventSupport),
	INT(clusterLaunch, cudaDevAttrClusterLaunch),
	INT(unifiedFunctionPointers, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS),
#ifdef RUNTIME_CUDA_12
	INT(clockRate, cudaDevAttrClockRate),
	INT(deviceOverlap, cudaDevAttrGpuOverlap),
	INT(kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout),
	INT(computeMode, cudaDevAttrComputeMode),
	INT(maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth),
	INT(memoryClockRate, cudaDevAttrMemoryClockRate),
	INT(singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio),
	/* cooperativeMultiDeviceLaunch stays 0: cudaLaunchCooperativeKernelMultiDevice is not supported. */
#else
	INT(deviceNumaConfig, cudaDevAttrNumaConfig),
	INT(deviceNumaId, cudaDevAttrNumaId),
	INT(mpsEnabled, cudaDevAttrMpsEnabled),
	INT(hostNumaId, cudaDevAttrHostNumaId),
	INT(gpuPciDeviceID, cudaDevAttrGpuPciDeviceId),
	INT(gpuPciSubsystemID, cudaDevAttrGpuPciSubsystemId),
	INT(hostNumaMultinodeIpcSupported, cudaDevAttrHostNumaMultinodeIpcSupported),
#endif
};
#undef INT
#undef SIZE

static cudaError_t fill_properties(int ordinal, struct cudaDeviceProp *prop)
{
	CUdevice device = devices[ordinal].handle;
	memset(prop, 0, sizeof *prop);
	CUresult result = runtime_driver.cuDeviceGetName(prop->name, sizeof prop->name, device);
	if (result == CUDA_SUCCESS)
		result = runtime_driver.cuDeviceTotalMem_v2(&prop->totalGlobalMem, device);
	if (result == CUDA_SUCCESS)
		result = runtime_driver.cuDeviceGetUuid_v2(&prop->uuid, device);
	if (result != CUDA_SUCCESS)
		return runtime_error_translate(result);
	for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
		int value = 0;
		if (query_attribute(ordinal, properties[i].attribute, &value) != CUDA_SUCCESS)
			value = 0; /* an attribute that this driver does not know yet */
		char *field = (char *)prop + properties[i].offset;
		size_t wide = (unsigned)value;
		memcpy(field, properties[i].is_size ? (void *)&wide : (void *)&value,
		       properties[i].is_size ? sizeof wide : sizeof value);
	}
	return cudaSuccess;
}

RUNTIME_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int ordinal)
{
	CUdevice device;
	if (!prop)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_device(ordinal, &device);
	if (error)
		return runtime_fail(error);
	struct device *d = &devices[ordinal];
	pthread_mutex_lock(&d->lock);
	if (!d->have_properties) {
		error = fill_properties(ordinal, &d->properties);
		d->have_properties = !error;
	}
	if (!error)
		*prop = d->properties;
	pthread_mutex_unlock(&d->lock);
	return runtime_fail(error);
}

/*
 * How well a device matches: one point for each requested property (not 0) that the device has in at least this amount.
 */
static int device_score(const struct cudaDeviceProp *wish, const struct cudaDeviceProp *have)
{
	const size_t pairs[][2] = {
		{ wish->totalGlobalMem, have->totalGlobalMem },
		{ wish->sharedMemPerBlock, have->sharedMemPerBlock },
		{ (size_t)wish->regsPerBlock, (size_t)have->regsPerBlock },
		{ (size_t)wish->maxThreadsPerBlock, (size_t)have->maxThreadsPerBlock },
		{ wish->totalConstMem, have->totalConstMem },
		{ (size_t)wish->multiProcessorCount, (size_t)have->multiProcessorCount },
		{ (size_t)wish->major * 100 + (size_t)wish->minor, (size_t)have->major * 100 + (size_t)have->minor },
	};
	int score = 0;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		score += pairs[i][0] && pairs[i][1] >= pairs[i][0];
	return score;
}

RUNTIME_API cudaError_t cudaChooseDevice(int *ordinal, const struct cudaDeviceProp *prop)
{
	if (!ordinal || !prop)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = devices_ready();
	int best = -1;
	for (int i = 0; !error && i < device_count; i++) {
		struct cudaDeviceProp have;
		error = cudaGetDeviceProperties(&have, i);
		int score = error ? -1 : device_score(prop, &have);
		if (score > best) {
			best = score;
			*ordinal = i;
		}
	}
	return runtime_fail(error);
}

RUNTIME_API cudaError_t cudaDeviceGetByPCIBusId(int *ordinal, const char *bus_id)
{
	CUdevice device;
	if (!ordinal || !bus_id)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = devices_ready();
	if (!error)
		error = runtime_error_translate(runtime_driver.cuDeviceGetByPCIBusId(&device, bus_id));
	if (!error && runtime_device_ordinal(device) < 0)
		error = cudaErrorInvalidDevice;
	if (!error)
		*ordinal = runtime_device_ordinal(device);
	return runtime_fail(error);
}

RUNTIME_API cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int length, int ordinal)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	if (error)
		return runtime_fail(error);
	if (!bus_id || length <= 0)
		return runtime_fail(cudaErrorInvalidValue);
	return runtime_done(runtime_driver.cuDeviceGetPCIBusId(bus_id, length, device));
}

RUNTIME_API cudaError_t cudaDeviceCanAccessPeer(int *can, int ordinal, int peer)
{
	CUdevice device, peer_device;
	if (!can)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_device(ordinal, &device);
	if (!error)
		error = runtime_device(peer, &peer_device);
	if (error)
		return runtime_fail(error);
	return runtime_done(runtime_driver.cuDeviceCanAccessPeer(can, device, peer_device));
}

RUNTIME_API cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int ordinal, int peer)
{
	CUdevice device, peer_device;
	if (!value)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_device(ordinal, &device);
	if (!error)
		error = runtime_device(peer, &peer_device);
	if (error)
		return runtime_fail(error);
	return runtime_done(runtime_driver.cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attribute, device,
								   peer_device));
}

_Static_assert((int)cudaAtomicOperationFloatMax == (int)CU_ATOMIC_OPERATION_FLOAT_MAX &&
	       sizeof(enum cudaAtomicOperation) == sizeof(CUatomicOperation), "operations are passed through");

RUNTIME_API cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned *capabilities,
							    const enum cudaAtomicOperation *operations, unsigned count,
							    int ordinal)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuDeviceGetHostAtomicCapabilities(
				       capabilities, (const CUatomicOperation *)operations, count, device));
}

RUNTIME_API cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned *capabilities,
							   const enum cudaAtomicOperation *operations, unsigned count,
							   int ordinal, int peer)
{
	CUdevice device, peer_device;
	cudaError_t error = runtime_device(ordinal, &device);
	if (!error)
		error = runtime_device(peer, &peer_device);
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuDeviceGetP2PAtomicCapabilities(
				       capabilities, (const CUatomicOperation *)operations, count, device, peer_device));
}

RUNTIME_API cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const struct cudaChannelFormatDesc *channel,
							     int ordinal)
{
	CUdevice device;
	if (!width || !channel)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_device(ordinal, &device);
	if (error)
		return runtime_fail(error);
	CUarray_format format;
	unsigned channels;
	if (!channel_to_format(channel, &format, &channels))
		return runtime_fail(cudaErrorInvalidChannelDescriptor);
	return runtime_done(runtime_driver.cuDeviceGetTexture1DLinearMaxWidth(width, format, channels, device));
}
