/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of CUDA 12's runtime interface that a test needs, declared here, as CUDA 13's headers declare these functions
 * otherwise. Offsets, sizes and numbers were compared with the headers of CUDA 12.0 to 12.9.
 */
#ifndef TEST_RUNTIME_CUDA12_ABI_H
#define TEST_RUNTIME_CUDA12_ABI_H

#include <stddef.h>

/* Members of cudaDeviceProp whose values are attributes: offset, bytes, the attribute's number, name. */
#define DEVICE_PROP_MEMBERS \
	MEMBER(296, 8, 8, "sharedMemPerBlock") \
	MEMBER(304, 4, 12, "regsPerBlock") \
	MEMBER(308, 4, 10, "warpSize") \
	MEMBER(312, 8, 11, "memPitch") \
	MEMBER(320, 4, 1, "maxThreadsPerBlock") \
	MEMBER(324, 4, 2, "maxThreadsDim[0]") \
	MEMBER(328, 4, 3, "maxThreadsDim[1]") \
	MEMBER(332, 4, 4, "maxThreadsDim[2]") \
	MEMBER(336, 4, 5, "maxGridSize[0]") \
	MEMBER(340, 4, 6, "maxGridSize[1]") \
	MEMBER(344, 4, 7, "maxGridSize[2]") \
	MEMBER(348, 4, 13, "clockRate") \
	MEMBER(352, 8, 9, "totalConstMem") \
	MEMBER(360, 4, 75, "major") \
	MEMBER(364, 4, 76, "minor") \
	MEMBER(368, 8, 14, "textureAlignment") \
	MEMBER(376, 8, 51, "texturePitchAlignment") \
	MEMBER(384, 4, 15, "deviceOverlap") \
	MEMBER(388, 4, 16, "multiProcessorCount") \
	MEMBER(392, 4, 17, "kernelExecTimeoutEnabled") \
	MEMBER(396, 4, 18, "integrated") \
	MEMBER(400, 4, 19, "canMapHostMemory") \
	MEMBER(404, 4, 20, "computeMode") \
	MEMBER(408, 4, 21, "maxTexture1D") \
	MEMBER(412, 4, 77, "maxTexture1DMipmap") \
	MEMBER(416, 4, 69, "maxTexture1DLinear") \
	MEMBER(420, 4, 22, "maxTexture2D[0]") \
	MEMBER(424, 4, 23, "maxTexture2D[1]") \
	MEMBER(428, 4, 73, "maxTexture2DMipmap[0]") \
	MEMBER(432, 4, 74, "maxTexture2DMipmap[1]") \
	MEMBER(436, 4, 70, "maxTexture2DLinear[0]") \
	MEMBER(440, 4, 71, "maxTexture2DLinear[1]") \
	MEMBER(444, 4, 72, "maxTexture2DLinear[2]") \
	MEMBER(448, 4, 45, "maxTexture2DGather[0]") \
	MEMBER(452, 4, 46, "maxTexture2DGather[1]") \
	MEMBER(456, 4, 24, "maxTexture3D[0]") \
	MEMBER(460, 4, 25, "maxTexture3D[1]") \
	MEMBER(464, 4, 26, "maxTexture3D[2]") \
	MEMBER(468, 4, 47, "maxTexture3DAlt[0]") \
	MEMBER(472, 4, 48, "maxTexture3DAlt[1]") \
	MEMBER(476, 4, 49, "maxTexture3DAlt[2]") \
	MEMBER(480, 4, 52, "maxTextureCubemap") \
	MEMBER(484, 4, 42, "maxTexture1DLayered[0]") \
	MEMBER(488, 4, 43, "maxTexture1DLayered[1]") \
	MEMBER(492, 4, 27, "maxTexture2DLayered[0]") \
	MEMBER(496, 4, 28, "maxTexture2DLayered[1]") \
	MEMBER(500, 4, 29, "maxTexture2DLayered[2]") \
	MEMBER(504, 4, 53, "maxTextureCubemapLayered[0]") \
	MEMBER(508, 4, 54, "maxTextureCubemapLayered[1]") \
	MEMBER(512, 4, 55, "maxSurface1D") \
	MEMBER(516, 4, 56, "maxSurface2D[0]") \
	MEMBER(520, 4, 57, "maxSurface2D[1]") \
	MEMBER(524, 4, 58, "maxSurface3D[0]") \
	MEMBER(528, 4, 59, "maxSurface3D[1]") \
	MEMBER(532, 4, 60, "maxSurface3D[2]") \
	MEMBER(536, 4, 61, "maxSurface1DLayered[0]") \
	MEMBER(540, 4, 62, "maxSurface1DLayered[1]") \
	MEMBER(544, 4, 63, "maxSurface2DLayered[0]") \
	MEMBER(548, 4, 64, "maxSurface2DLayered[1]") \
	MEMBER(552, 4, 65, "maxSurface2DLayered[2]") \
	MEMBER(556, 4, 66, "maxSurfaceCubemap") \
	MEMBER(560, 4, 67, "maxSurfaceCubemapLayered[0]") \
	MEMBER(564, 4, 68, "maxSurfaceCubemapLayered[1]") \
	MEMBER(568, 8, 30, "surfaceAlignment") \
	MEMBER(576, 4, 31, "concurrentKernels") \
	MEMBER(580, 4, 32, "ECCEnabled") \
	MEMBER(584, 4, 33, "pciBusID") \
	MEMBER(588, 4, 34, "pciDeviceID") \
	MEMBER(592, 4, 50, "pciDomainID") \
	MEMBER(596, 4, 35, "tccDriver") \
	MEMBER(600, 4, 40, "asyncEngineCount") \
	MEMBER(604, 4, 41, "unifiedAddressing") \
	MEMBER(608, 4, 36, "memoryClockRate") \
	MEMBER(612, 4, 37, "memoryBusWidth") \
	MEMBER(616, 4, 38, "l2CacheSize") \
	MEMBER(620, 4, 108, "persistingL2CacheMaxSize") \
	MEMBER(624, 4, 39, "maxThreadsPerMultiProcessor") \
	MEMBER(628, 4, 78, "streamPrioritiesSupported") \
	MEMBER(632, 4, 79, "globalL1CacheSupported") \
	MEMBER(636, 4, 80, "localL1CacheSupported") \
	MEMBER(640, 8, 81, "sharedMemPerMultiprocessor") \
	MEMBER(648, 4, 82, "regsPerMultiprocessor") \
	MEMBER(652, 4, 83, "managedMemory") \
	MEMBER(656, 4, 84, "isMultiGpuBoard") \
	MEMBER(660, 4, 85, "multiGpuBoardGroupID") \
	MEMBER(664, 4, 86, "hostNativeAtomicSupported") \
	MEMBER(668, 4, 87, "singleToDoublePrecisionPerfRatio") \
	MEMBER(672, 4, 88, "pageableMemoryAccess") \
	MEMBER(676, 4, 89, "concurrentManagedAccess") \
	MEMBER(680, 4, 90, "computePreemptionSupported") \
	MEMBER(684, 4, 91, "canUseHostPointerForRegisteredMem") \
	MEMBER(688, 4, 95, "cooperativeLaunch") \
	MEMBER(696, 8, 97, "sharedMemPerBlockOptin") \
	MEMBER(704, 4, 100, "pageableMemoryAccessUsesHostPageTables") \
	MEMBER(708, 4, 101, "directManagedMemAccessFromHost") \
	MEMBER(712, 4, 106, "maxBlocksPerMultiProcessor") \
	MEMBER(716, 4, 109, "accessPolicyMaxWindowSize") \
	MEMBER(720, 8, 111, "reservedSharedMemPerBlock") \
	MEMBER(728, 4, 99, "hostRegisterSupported") \
	MEMBER(732, 4, 112, "sparseCudaArraySupported") \
	MEMBER(736, 4, 113, "hostRegisterReadOnlySupported") \
	MEMBER(740, 4, 114, "timelineSemaphoreInteropSupported") \
	MEMBER(744, 4, 115, "memoryPoolsSupported") \
	MEMBER(748, 4, 116, "gpuDirectRDMASupported") \
	MEMBER(752, 4, 117, "gpuDirectRDMAFlushWritesOptions") \
	MEMBER(756, 4, 118, "gpuDirectRDMAWritesOrdering") \
	MEMBER(760, 4, 119, "memoryPoolSupportedHandleTypes") \
	MEMBER(764, 4, 121, "deferredMappingCudaArraySupported") \
	MEMBER(768, 4, 125, "ipcEventSupported") \
	MEMBER(772, 4, 120, "clusterLaunch") \
	MEMBER(776, 4, 129, "unifiedFunctionPointers")

enum {
	DEVICE_PROP_BYTES = 1032,
	DEVICE_PROP_BYTES_11 = 728,  /* in CUDA 11 */
	DEVICE_PROP_TOTAL_MEMORY = 288, /* offset of totalGlobalMem */
	POINTER_ATTRIBUTES_BYTES = 24,
	RESOURCE_DESC_BYTES = 64,
	RESOURCE_VIEW_DESC_BYTES = 48
};

enum { SUCCESS, INVALID_VALUE, INVALID_DEVICE = 101, CONTEXT_IS_DESTROYED = 709, NOT_SUPPORTED = 801 }; /* cudaError_t */
enum { CPU_DEVICE = -1, LOCATION_DEVICE = 1, LOCATION_HOST = 2 };
enum { ADVISE_PREFERRED_LOCATION = 3, RANGE_PREFERRED_LOCATION = 2, RANGE_LAST_PREFETCH = 4 };
enum { CAPTURE_RELAXED = 2, CAPTURE_ACTIVE = 1, SET_DEPENDENCIES = 1 };
enum { MEMORY_TYPE_DEVICE = 2 };

typedef void *stream_t, *event_t, *graph_t, *node_t;

typedef struct location {
	int type, id;
} location_t;

typedef struct edge_data {
	unsigned char from_port, to_port, type, reserved[5];
} edge_data_t;

typedef struct dim {
	unsigned x, y, z;
} dim_t;

typedef struct copy_attributes {
	int order;
	location_t from, to;
	unsigned flags;
} copy_attributes_t;

typedef struct pointer_attributes {
	int type, device;
	void *device_pointer, *host_pointer;
} pointer_attributes_t;

/* A texture of linear memory. */
typedef struct linear_resource {
	int type, pad;
	void *pointer;
	int bits[4], kind; /* of a texel */
	size_t size;
	char rest[RESOURCE_DESC_BYTES - 48];
} linear_resource_t;

typedef struct texture_desc {
	int address_mode[3], filter_mode, read_mode, srgb;
	float border[4];
	int normalized;
	unsigned anisotropy;
	int mipmap_filter;
	float bias, least, most;
	int no_trilinear_optimization, seamless;
} texture_desc_t;

typedef struct view_desc {
	int format;
	size_t width, height, depth;
	unsigned first_level, last_level, first_layer, last_layer;
} view_desc_t;

_Static_assert(sizeof(linear_resource_t) == RESOURCE_DESC_BYTES && sizeof(view_desc_t) == RESOURCE_VIEW_DESC_BYTES &&
	       sizeof(pointer_attributes_t) == POINTER_ATTRIBUTES_BYTES, "sizes in CUDA 12");

int cudaRuntimeGetVersion(int *version);
int cudaGetLastError(void);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaGetDeviceProperties(void *prop, int device);
int cudaGetDeviceProperties_v2(void *prop, int device);
int cudaChooseDevice(int *device, const void *prop);
int cudaMalloc(void **pointer, size_t size);
int cudaMallocManaged(void **pointer, size_t size, unsigned flags);
int cudaFree(void *pointer);
int cudaMemcpy(void *to, const void *from, size_t size, int kind);
int cudaPointerGetAttributes(void *attributes, const void *pointer);
int cudaMemAdvise(const void *pointer, size_t size, int advice, int device);
int cudaMemAdvise_v2(const void *pointer, size_t size, int advice, location_t location);
int cudaMemPrefetchAsync(const void *pointer, size_t size, int device, stream_t stream);
int cudaMemPrefetchAsync_ptsz(const void *pointer, size_t size, int device, stream_t stream);
int cudaMemPrefetchAsync_v2(const void *pointer, size_t size, location_t location, unsigned flags, stream_t stream);
int cudaMemRangeGetAttribute(void *data, size_t size, int attribute, const void *pointer, size_t count);
int cudaMemcpyBatchAsync(void **to, void **from, size_t *sizes, size_t count, copy_attributes_t *attributes,
			 size_t *starts, size_t attribute_count, size_t *failed, stream_t stream);
int cudaMemcpyBatchAsync_ptsz(void **to, void **from, size_t *sizes, size_t count, copy_attributes_t *attributes,
			      size_t *starts, size_t attribute_count, size_t *failed, stream_t stream);

int cudaStreamCreate(stream_t *stream);
int cudaStreamDestroy(stream_t stream);
int cudaStreamSynchronize(stream_t stream);
int cudaEventCreate(event_t *event);
int cudaEventRecord(event_t event, stream_t stream);
int cudaEventDestroy(event_t event);
int cudaEventElapsedTime(float *milliseconds, event_t start, event_t end);
int cudaEventElapsedTime_v2(float *milliseconds, event_t start, event_t end);

int cudaGraphCreate(graph_t *graph, unsigned flags);
int cudaGraphDestroy(graph_t graph);
int cudaGraphAddEmptyNode(node_t *node, graph_t graph, const node_t *dependencies, size_t count);
int cudaGraphAddNode(node_t *node, graph_t graph, const node_t *dependencies, size_t count, void *params);
int cudaGraphAddNode_v2(node_t *node, graph_t graph, const node_t *dependencies, const edge_data_t *data, size_t count,
			void *params);
int cudaGraphAddDependencies(graph_t graph, const node_t *from, const node_t *to, size_t count);
int cudaGraphAddDependencies_v2(graph_t graph, const node_t *from, const node_t *to, const edge_data_t *data,
				size_t count);
int cudaGraphRemoveDependencies(graph_t graph, const node_t *from, const node_t *to, size_t count);
int cudaGraphRemoveDependencies_v2(graph_t graph, const node_t *from, const node_t *to, const edge_data_t *data,
				   size_t count);
int cudaGraphGetEdges(graph_t graph, node_t *from, node_t *to, size_t *count);
int cudaGraphGetEdges_v2(graph_t graph, node_t *from, node_t *to, edge_data_t *data, size_t *count);
int cudaGraphNodeGetDependencies(node_t node, node_t *nodes, size_t *count);
int cudaGraphNodeGetDependencies_v2(node_t node, node_t *nodes, edge_data_t *data, size_t *count);
int cudaGraphNodeGetDependentNodes(node_t node, node_t *nodes, size_t *count);
int cudaGraphNodeGetDependentNodes_v2(node_t node, node_t *nodes, edge_data_t *data, size_t *count);
int cudaGraphKernelNodeCopyAttributes(node_t one, node_t other);
int cudaStreamBeginCapture(stream_t stream, int mode);
int cudaStreamEndCapture(stream_t stream, graph_t *graph);
int cudaStreamGetCaptureInfo(stream_t stream, int *status, unsigned long long *id);
int cudaStreamGetCaptureInfo_ptsz(stream_t stream, int *status, unsigned long long *id);
int cudaStreamGetCaptureInfo_v2(stream_t stream, int *status, unsigned long long *id, graph_t *graph,
				const node_t **dependencies, size_t *count);
int cudaStreamGetCaptureInfo_v3(stream_t stream, int *status, unsigned long long *id, graph_t *graph,
				const node_t **dependencies, const edge_data_t **data, size_t *count);
int cudaStreamUpdateCaptureDependencies(stream_t stream, node_t *dependencies, size_t count, unsigned flags);
int cudaStreamUpdateCaptureDependencies_v2(stream_t stream, node_t *dependencies, const edge_data_t *data,
					   size_t count, unsigned flags);

int cudaCreateTextureObject(unsigned long long *object, const void *resource, const texture_desc_t *texture,
			    const void *view);
int cudaDestroyTextureObject(unsigned long long object);
int cudaGetTextureObjectResourceDesc(void *resource, unsigned long long object);
int cudaGetTextureObjectResourceViewDesc(void *view, unsigned long long object);
int cudaMallocArray(void **array, const int channel[5], size_t width, size_t height, unsigned flags);
int cudaFreeArray(void *array);

int cudaDeviceGetLimit(size_t *value, int limit);
int cudaThreadExit(void);
int cudaThreadSynchronize(void);
int cudaThreadSetLimit(int limit, size_t value);
int cudaThreadGetLimit(size_t *value, int limit);
int cudaThreadGetCacheConfig(int *config);
int cudaThreadSetCacheConfig(int config);
int cudaSetDoubleForDevice(double *value);
int cudaSetDoubleForHost(double *value);
int cudaLaunchCooperativeKernelMultiDevice(void *launches, unsigned count, unsigned flags);
int cudaSignalExternalSemaphoresAsync_v2(const void *semaphores, const void *params, unsigned count, stream_t stream);

void **__cudaRegisterFatBinary(const void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const void *host, char *device, const char *name, int threads, void *tid,
			    void *bid, void *block, void *grid, int *warp);
unsigned __cudaPushCallConfiguration(dim_t grid, dim_t block, size_t shared, stream_t stream);
int __cudaPopCallConfiguration(dim_t *grid, dim_t *block, size_t *shared, stream_t *stream);
int cudaLaunchKernel(const void *kernel, dim_t grid, dim_t block, void **args, size_t shared, stream_t stream);

#endif
