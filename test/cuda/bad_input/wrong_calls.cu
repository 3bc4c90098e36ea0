/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes typical wrong calls of the runtime and driver API and prints what each returns, and what cudaPeekAtLastError and
 * cudaGetLastError return after it. Between them it prints the results of right calls and what is in memory. The lines
 * must not depend on where the device is (wrong_calls_test.sh), so they have no addresses.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime.h>

static void print_runtime(int line, const char *text, cudaError_t result)
{
	cudaError_t peeked = cudaPeekAtLastError(), last = cudaGetLastError(), again = cudaGetLastError();
	printf("%d: %s: %s; last %s, %s, %s\n", line, text, cudaGetErrorName(result), cudaGetErrorName(peeked),
	       cudaGetErrorName(last), cudaGetErrorName(again));
}

#define R(...) print_runtime(__LINE__, #__VA_ARGS__, (__VA_ARGS__))

/* The driver's functions, found as a program without -lcuda finds them. */
#define FUNCTIONS(F)                                                                                                             \
	F(cuCtxCreate_v4) F(cuCtxDestroy_v2) F(cuCtxGetCurrent) F(cuCtxPopCurrent_v2) F(cuCtxPushCurrent_v2) F(cuCtxSetCacheConfig)    \
	F(cuCtxSetCurrent) F(cuCtxSetLimit) F(cuCtxSynchronize) F(cuDeviceGet) F(cuDeviceGetAttribute) F(cuDeviceGetName)            \
	F(cuDevicePrimaryCtxRelease_v2) F(cuDeviceTotalMem_v2) F(cuEventCreate) F(cuEventDestroy_v2) F(cuEventElapsedTime)           \
	F(cuEventQuery) F(cuEventRecord) F(cuEventRecordWithFlags) F(cuEventSynchronize) F(cuFuncGetAttribute)                       \
	F(cuFuncSetAttribute) F(cuFuncSetCacheConfig) F(cuGetErrorName) F(cuGraphAddEmptyNode) F(cuGraphCreate) F(cuGraphDestroy)    \
	F(cuGraphExecDestroy) F(cuGraphInstantiateWithFlags) F(cuGraphLaunch) F(cuLaunchCooperativeKernel) F(cuLaunchHostFunc)       \
	F(cuLaunchKernel) F(cuMemAlloc_v2) F(cuMemAllocAsync) F(cuMemAllocPitch_v2) F(cuMemFree_v2) F(cuMemFreeAsync)                \
	F(cuMemFreeHost) F(cuMemGetAddressRange_v2) F(cuMemHostGetDevicePointer_v2) F(cuMemHostRegister_v2) F(cuMemHostUnregister)   \
	F(cuMemPoolDestroy) F(cuMemPoolTrimTo) F(cuMemcpy2DAsync_v2) F(cuMemcpy3D_v2) F(cuMemcpyAsync) F(cuMemcpyDtoDAsync_v2)        \
	F(cuMemcpyDtoD_v2) F(cuMemcpyDtoHAsync_v2) F(cuMemcpyDtoH_v2) F(cuMemcpyHtoDAsync_v2) F(cuMemcpyHtoD_v2)                     \
	F(cuMemcpyPeerAsync) F(cuMemcpyPeer) F(cuMemsetD16Async) F(cuMemsetD2D32Async) F(cuMemsetD2D8Async) F(cuMemsetD32Async)       \
	F(cuMemsetD32_v2) F(cuMemsetD8Async) F(cuMemsetD8_v2) F(cuModuleGetFunction) F(cuModuleGetGlobal_v2) F(cuModuleLoadData)      \
	F(cuModuleUnload) F(cuPointerGetAttribute) F(cuStreamAddCallback) F(cuStreamBeginCapture_v2) F(cuStreamCopyAttributes)       \
	F(cuStreamCreate) F(cuStreamCreateWithPriority) F(cuStreamDestroy_v2) F(cuStreamEndCapture) F(cuStreamGetFlags)              \
	F(cuStreamQuery) F(cuStreamSetAttribute) F(cuStreamSynchronize) F(cuStreamWaitEvent) F(cuStreamWaitValue32_v2)               \
	F(cuStreamWriteValue32_v2) F(cuArrayCreate_v2) F(cuArrayDestroy) F(cuMemcpyHtoA_v2) F(cuMemcpyAtoH_v2) F(cuMemcpyHtoAAsync_v2) \
	F(cuMemcpyAtoHAsync_v2) F(cuMemcpyAtoA_v2) F(cuMemcpyDtoA_v2) F(cuMemPrefetchAsync_v2) F(cuMemcpy2D_v2) F(cuMemcpy3DAsync_v2) \
	F(cuMemcpy3DPeerAsync) F(cuStreamAttachMemAsync) F(cuCtxRecordEvent) F(cuCtxWaitEvent) F(cuLaunchKernelEx)                   \
	F(cuStreamBatchMemOp_v2) F(cuGraphUpload) F(cuOccupancyMaxActiveBlocksPerMultiprocessor) F(cuStreamGetCtx) F(cuInit)         \
	F(cuDeviceCanAccessPeer) F(cuCtxEnablePeerAccess) F(cuTexObjectDestroy) F(cuMemcpy)                                          \
	F(cuCtxResetPersistingL2Cache) F(cuStreamIsCapturing) F(cuThreadExchangeStreamCaptureMode)

/* The name behind cuda.h's macros, with the prototype of that name. */
#define DECLARE(name) static decltype(&name) p_##name;
FUNCTIONS(DECLARE)

static void find_functions()
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name)                                                                                      \
	p_##name = library ? reinterpret_cast<decltype(p_##name)>(dlsym(library, #name)) : nullptr;    \
	if (!p_##name) {                                                                               \
		fprintf(stderr, "no %s: %s\n", #name, dlerror());                                      \
		exit(1);                                                                               \
	}
	FUNCTIONS(FIND)
}

static void print_driver(int line, const char *text, CUresult result)
{
	const char *name = "(no name)";
	p_cuGetErrorName(result, &name);
	printf("%d: %s: %s; last %s\n", line, text, name, cudaGetErrorName(cudaPeekAtLastError()));
}

#define D(name, ...) print_driver(__LINE__, #name "(" #__VA_ARGS__ ")", p_##name(__VA_ARGS__))

__global__ void add_one(int *values, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		values[i] += 1;
}

__global__ void store(int *where)
{
	*where = 7;
}

__global__ void __launch_bounds__(128) bounded(int *values)
{
	values[threadIdx.x] = 1;
}

__device__ int variable[4];

static int *device;   /* 16 integers of 4 bytes */
static int *other;    /* the same */
static int host[16];
static int *pinned;

/* A right piece of work, and what it leaves: a refusal of an earlier call must not show here. */
static void works(int line)
{
	int sum = 0;
	cudaError_t result[6];
	memset(host, 0, sizeof host);
	result[0] = cudaMemset(device, 0, 64);
	add_one<<<1, 16>>>(device, 16);
	result[1] = cudaGetLastError();
	result[2] = cudaMemcpyAsync(other, device, 64, cudaMemcpyDeviceToDevice, nullptr);
	result[3] = cudaStreamSynchronize(nullptr);
	result[4] = cudaMemcpy(host, other, 64, cudaMemcpyDeviceToHost);
	result[5] = cudaDeviceSynchronize();
	for (int value : host)
		sum += value;
	printf("%d: works:", line);
	for (cudaError_t each : result)
		printf(" %s", cudaGetErrorName(each));
	printf(", sum %d\n", sum);
	(void)cudaGetLastError();
}

#define WORKS() works(__LINE__)

#define LAUNCH(...)                                                                       \
	do {                                                                              \
		__VA_ARGS__;                                                              \
		print_runtime(__LINE__, "launch " #__VA_ARGS__, cudaPeekAtLastError());   \
	} while (0)

static void launches()
{
	LAUNCH(add_one<<<0, 1>>>(device, 0));
	LAUNCH(add_one<<<1, 0>>>(device, 0));
	LAUNCH(add_one<<<1, 2048>>>(device, 0));
	LAUNCH(add_one<<<dim3(1, 65536), 1>>>(device, 0));
	LAUNCH(add_one<<<dim3(1, 1, 65536), 1>>>(device, 0));
	LAUNCH(add_one<<<1, dim3(1, 1, 65)>>>(device, 0));
	LAUNCH(add_one<<<1, 1, 1 << 20>>>(device, 0));
	LAUNCH(add_one<<<1, 1, 49153>>>(device, 0));
	LAUNCH(bounded<<<1, 129>>>(device));
	WORKS();
	R(cudaFuncSetAttribute((const void *)add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24));
	R(cudaFuncSetAttribute((const void *)add_one, (cudaFuncAttribute)77, 1));
	R(cudaFuncSetAttribute((const void *)add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
	R(cudaFuncSetCacheConfig((const void *)add_one, (cudaFuncCache)99));
	R(cudaFuncSetAttribute((const void *)host, cudaFuncAttributeMaxDynamicSharedMemorySize, 1));
	R(cudaLaunchKernel((const void *)host, 1, 1, nullptr, 0, nullptr));
	R(cudaLaunchKernel(nullptr, 1, 1, nullptr, 0, nullptr));
	int blocks = 0, processors = 0, count = 0;
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_one, 0, 0));
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_one, 64, 0));
	R(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
	void *arguments[] = { &device, &count };
	R(cudaLaunchCooperativeKernel((const void *)add_one, blocks * processors + 1, 64, arguments, 0, nullptr));
	R(cudaLaunchCooperativeKernel((const void *)add_one, 1, 64, arguments, 0, nullptr));
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute = {};
	config.gridDim = 3;
	config.blockDim = 32;
	config.attrs = &attribute;
	config.numAttrs = 1;
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = 2;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	R(cudaLaunchKernelExC(&config, (const void *)add_one, arguments));
	R(cudaLaunchKernelExC(nullptr, (const void *)add_one, arguments));
	WORKS();
}

static void memory()
{
	void *p = nullptr;
	size_t pitch;
	R(cudaMalloc(&p, (size_t)1 << 60));
	R(cudaMalloc(nullptr, 16));
	R(cudaMalloc(&p, 0));
	R(cudaMallocPitch(&p, &pitch, (size_t)1 << 40, 1 << 20));
	R(cudaMallocHost(nullptr, 16));
	R(cudaMallocManaged(&p, 64, 99));
	R(cudaMallocManaged(&p, 0));
	R(cudaFree(host));
	R(cudaFree((char *)device + 4));
	R(cudaFree((void *)16));
	R(cudaFreeHost(host));
	R(cudaFreeHost(device));
	R(cudaFreeArray((cudaArray_t)host));
	R(cudaFree(nullptr));
	R(cudaFreeHost(nullptr));
	R(cudaHostAlloc(&p, 64, 0x4000));
	R(cudaHostRegister(nullptr, 64, 0));
	R(cudaHostRegister(host, 0, 0));
	R(cudaHostUnregister(host));
	R(cudaHostGetDevicePointer(&p, host, 0));
	R(cudaHostGetDevicePointer(&p, pinned, 1));
	unsigned flags;
	R(cudaHostGetFlags(&flags, host));
	R(cudaMalloc(&p, 64));
	R(cudaFree(p));
	R(cudaFree(p));
	R(cudaMemset(p, 0, 64));
	R(cudaMemcpy(p, host, 64, cudaMemcpyHostToDevice));
	R(cudaMemcpy(host, p, 64, cudaMemcpyDeviceToHost));
	R(cudaMemcpy(p, device, 64, cudaMemcpyDeviceToDevice));
	R(cudaMallocHost(&p, 64));
	R(cudaFreeHost(p));
	R(cudaFreeHost(p));
	R(cudaMallocAsync(&p, 64, nullptr));
	R(cudaFreeAsync(p, nullptr));
	R(cudaFreeAsync(p, nullptr));
	R(cudaStreamSynchronize(nullptr));
	R(cudaFreeAsync(p, nullptr));
	R(cudaFreeAsync(host, nullptr));
	R(cudaFreeAsync((char *)device + 4, nullptr));
	R(cudaFreeAsync(nullptr, nullptr));
	R(cudaMallocAsync(&p, (size_t)1 << 60, nullptr));
	R(cudaMallocFromPoolAsync(&p, 64, nullptr, nullptr));
	cudaMemPool_t pool;
	R(cudaDeviceGetDefaultMemPool(&pool, 0));
	R(cudaMemPoolDestroy(pool));
	R(cudaMemPoolDestroy(nullptr));
	R(cudaMemPrefetchAsync(device, 64, cudaMemLocation{ cudaMemLocationTypeDevice, 0 }, 0, nullptr));
	R(cudaMemPrefetchAsync(host, 64, cudaMemLocation{ cudaMemLocationTypeDevice, 0 }, 0, nullptr));
	R(cudaMemAdvise(device, 64, cudaMemAdviseSetReadMostly, cudaMemLocation{ cudaMemLocationTypeDevice, 0 }));
	R(cudaStreamAttachMemAsync(nullptr, device, 0, cudaMemAttachHost));
	WORKS();
}

static void copies()
{
	const size_t far = (size_t)1 << 30;
	R(cudaMemcpy(device, host, 64, (cudaMemcpyKind)99));
	R(cudaMemcpy(nullptr, host, 64, cudaMemcpyHostToDevice));
	R(cudaMemcpy(device, nullptr, 64, cudaMemcpyHostToDevice));
	R(cudaMemcpy(device, host, far, cudaMemcpyHostToDevice));
	R(cudaMemcpy(host, device, far, cudaMemcpyDeviceToHost));
	R(cudaMemcpy(device, other, far, cudaMemcpyDeviceToDevice));
	R(cudaMemcpy(host, device, 64, cudaMemcpyHostToDevice));
	R(cudaMemcpy(device, host, 64, cudaMemcpyDeviceToHost));
	R(cudaMemcpy(device, host, 64, cudaMemcpyDeviceToDevice));
	R(cudaMemcpyAsync(device, other, far, cudaMemcpyDeviceToDevice, nullptr));
	R(cudaMemcpyAsync(device, pinned, far, cudaMemcpyHostToDevice, nullptr));
	R(cudaMemcpyAsync(pinned, device, far, cudaMemcpyDeviceToHost, nullptr));
	R(cudaMemcpyAsync(device, host, far, cudaMemcpyHostToDevice, nullptr));
	R(cudaMemcpyAsync(host, device, far, cudaMemcpyDeviceToHost, nullptr));
	R(cudaMemcpyAsync(device, pinned, 128, cudaMemcpyHostToDevice, (cudaStream_t)host));
	R(cudaMemcpyAsync(nullptr, pinned, 64, cudaMemcpyDefault, nullptr));
	R(cudaMemcpyAsync((void *)8, (void *)16, 64, cudaMemcpyDeviceToDevice, nullptr));
	WORKS();
	R(cudaMemset(nullptr, 0, 64));
	R(cudaMemset(device, 0, far));
	R(cudaMemset(host, 0, 64));
	R(cudaMemsetAsync(nullptr, 0, 64, nullptr));
	R(cudaMemsetAsync(device, 0, far, nullptr));
	R(cudaMemsetAsync(host, 0, 64, nullptr));
	R(cudaMemsetAsync((char *)device + 60, 0, 8, nullptr));
	R(cudaMemset(device, 0, 0));
	R(cudaMemset(nullptr, 0, 0));
	R(cudaMemset2D(device, 8, 0, 16, 2));
	R(cudaMemset2D(device, 8, 0, 8, 1 << 20));
	R(cudaMemset2DAsync(device, 8, 0, 16, 2, nullptr));
	R(cudaMemset2DAsync(device, 8, 0, 8, 1 << 20, nullptr));
	R(cudaMemset3D(make_cudaPitchedPtr(device, 8, 8, 1), 0, make_cudaExtent(16, 1, 1)));
	WORKS();
	R(cudaMemcpy2D(device, 8, host, 16, 16, 2, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(device, 16, host, 8, 16, 2, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(device, 16, host, 16, 16, 1 << 20, cudaMemcpyHostToDevice));
	R(cudaMemcpy2D(host, 16, device, 16, 16, 1 << 20, cudaMemcpyDeviceToHost));
	R(cudaMemcpy2DAsync(device, 8, pinned, 16, 16, 2, cudaMemcpyHostToDevice, nullptr));
	R(cudaMemcpy2DAsync(device, 16, other, 16, 16, 1 << 20, cudaMemcpyDeviceToDevice, nullptr));
	R(cudaMemcpy2DAsync(device, (size_t)1 << 40, other, (size_t)1 << 40, 16, 2, cudaMemcpyDeviceToDevice, nullptr));
	R(cudaMemcpy2D(device, 16, host, 16, 16, 2, (cudaMemcpyKind)99));
	cudaMemcpy3DParms parameters = {};
	R(cudaMemcpy3D(&parameters));
	R(cudaMemcpy3D(nullptr));
	parameters.srcPtr = make_cudaPitchedPtr(host, 16, 16, 1);
	parameters.dstPtr = make_cudaPitchedPtr(device, 16, 16, 1);
	parameters.extent = make_cudaExtent(16, 1 << 20, 1);
	parameters.kind = cudaMemcpyHostToDevice;
	R(cudaMemcpy3D(&parameters));
	parameters.srcPtr = make_cudaPitchedPtr(other, 16, 16, 1);
	parameters.kind = cudaMemcpyDeviceToDevice;
	R(cudaMemcpy3DAsync(&parameters, nullptr));
	R(cudaMemcpyPeer(device, 99, other, 0, 64));
	R(cudaMemcpyPeerAsync(device, 0, other, 0, far, nullptr));
	R(cudaMemcpyPeerAsync(device, 0, other, 99, 64, nullptr));
	R(cudaMemcpyToSymbol(variable, host, 64));
	R(cudaMemcpyToSymbol(variable, host, 8, 12));
	R(cudaMemcpyToSymbol((const void *)host, host, 8));
	R(cudaMemcpyFromSymbol(host, variable, 16, 8));
	void *address;
	R(cudaGetSymbolAddress(&address, (const void *)host));
	cudaPointerAttributes attributes;
	R(cudaPointerGetAttributes(&attributes, host));
	R(cudaPointerGetAttributes(nullptr, host));
	WORKS();
}

static void arrays()
{
	cudaArray_t array, second;
	cudaChannelFormatDesc format = cudaCreateChannelDesc<int>(), wrong = { 7, 0, 0, 0, cudaChannelFormatKindSigned };
	R(cudaMallocArray(&array, &wrong, 4, 4));
	R(cudaMallocArray(&array, &format, 0, 4));
	R(cudaMallocArray(&array, &format, 1 << 20, 1 << 20));
	R(cudaMallocArray(&array, &format, 4, 4));
	R(cudaMallocArray(&second, &format, 4, 4));
	R(cudaMemcpy2DToArray(array, 0, 0, host, 16, 32, 4, cudaMemcpyHostToDevice));
	R(cudaMemcpy2DToArray(array, 0, 3, host, 16, 16, 4, cudaMemcpyHostToDevice));
	R(cudaMemcpy2DToArray(array, 0, 0, host, 8, 16, 4, cudaMemcpyHostToDevice));
	R(cudaMemcpy2DToArray(array, 2, 0, host, 16, 4, 4, cudaMemcpyHostToDevice));
	R(cudaMemcpy2DToArrayAsync(array, 0, 0, pinned, 16, 32, 4, cudaMemcpyHostToDevice, nullptr));
	R(cudaMemcpy2DToArrayAsync(array, 0, 0, device, 16, 16, 5, cudaMemcpyDeviceToDevice, nullptr));
	R(cudaMemcpy2DFromArray(host, 16, array, 0, 0, 32, 4, cudaMemcpyDeviceToHost));
	R(cudaMemcpy2DFromArrayAsync(pinned, 16, array, 0, 0, 16, 5, cudaMemcpyDeviceToHost, nullptr));
	R(cudaMemcpy2DArrayToArray(array, 0, 0, second, 0, 2, 16, 4));
	R(cudaMemcpy2DToArray(nullptr, 0, 0, host, 16, 16, 4, cudaMemcpyHostToDevice));
	cudaResourceDesc resource = {};
	cudaTextureDesc texture = {};
	cudaTextureObject_t object;
	cudaSurfaceObject_t surface;
	R(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
	resource.resType = (cudaResourceType)9;
	R(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
	resource.resType = cudaResourceTypeLinear;
	R(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
	R(cudaCreateSurfaceObject(&surface, &resource));
	R(cudaDestroyTextureObject(123456));
	R(cudaDestroySurfaceObject(123456));
	R(cudaFreeArray(second));
	R(cudaMemcpy2DToArray(second, 0, 0, host, 16, 16, 4, cudaMemcpyHostToDevice));
	R(cudaMemcpy2DToArrayAsync(second, 0, 0, pinned, 16, 16, 4, cudaMemcpyHostToDevice, nullptr));
	R(cudaFreeArray(array));
	R(cudaFreeArray(nullptr));
	WORKS();
}

static void CUDART_CB nothing(void *)
{
}

static void streams()
{
	cudaStream_t stream, gone, non_blocking;
	cudaEvent_t event, untimed, gone_event, unrecorded;
	float ms;
	R(cudaStreamCreate(nullptr));
	R(cudaStreamCreateWithFlags(&stream, 77));
	R(cudaStreamCreate(&stream));
	R(cudaStreamCreate(&gone));
	R(cudaStreamCreateWithFlags(&non_blocking, cudaStreamNonBlocking));
	R(cudaStreamDestroy(gone));
	R(cudaStreamDestroy(gone));
	R(cudaStreamDestroy(nullptr));
	R(cudaStreamSynchronize(gone));
	R(cudaStreamQuery(gone));
	R(cudaStreamQuery((cudaStream_t)host));
	LAUNCH(add_one<<<1, 1, 0, gone>>>(device, 1));
	R(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, gone));
	R(cudaMemcpyAsync(pinned, device, 64, cudaMemcpyDeviceToHost, gone));
	R(cudaMemcpyAsync(device, other, 64, cudaMemcpyDeviceToDevice, gone));
	R(cudaMemsetAsync(device, 0, 64, gone));
	R(cudaLaunchHostFunc(gone, nothing, nullptr));
	R(cudaLaunchHostFunc(stream, nullptr, nullptr));
	R(cudaStreamAddCallback(stream, nullptr, nullptr, 0));
	R(cudaEventCreate(nullptr));
	R(cudaEventCreateWithFlags(&event, 0x80));
	R(cudaEventCreate(&event));
	R(cudaEventCreate(&unrecorded));
	R(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	R(cudaEventCreate(&gone_event));
	R(cudaEventDestroy(gone_event));
	R(cudaEventDestroy(gone_event));
	R(cudaEventDestroy(nullptr));
	R(cudaEventRecord(gone_event, stream));
	R(cudaEventRecord(event, gone));
	R(cudaEventRecord(nullptr, stream));
	R(cudaEventRecordWithFlags(event, stream, 0x40));
	R(cudaEventQuery(gone_event));
	R(cudaEventSynchronize(gone_event));
	R(cudaStreamWaitEvent(stream, gone_event, 0));
	R(cudaStreamWaitEvent(gone, event, 0));
	R(cudaStreamWaitEvent(stream, event, 0x40));
	R(cudaStreamWaitEvent(stream, unrecorded, 0));
	R(cudaEventRecord(event, stream));
	R(cudaEventRecord(untimed, stream));
	R(cudaStreamSynchronize(stream));
	R(cudaEventElapsedTime(&ms, event, untimed));
	R(cudaEventElapsedTime(&ms, event, unrecorded));
	R(cudaEventElapsedTime(nullptr, event, event));
	R(cudaEventElapsedTime(&ms, event, gone_event));
	unsigned flags;
	int priority;
	R(cudaStreamGetFlags(gone, &flags));
	R(cudaStreamGetPriority(stream, nullptr));
	R(cudaStreamCreateWithPriority(&gone, 0, -100));
	R(cudaStreamGetPriority(gone, &priority));
	R(cudaStreamCopyAttributes(stream, (cudaStream_t)host));
	cudaStreamAttrValue value = {};
	R(cudaStreamSetAttribute(stream, (cudaStreamAttrID)99, &value));
	R(cudaStreamGetAttribute(stream, (cudaStreamAttrID)99, &value));
	value.syncPolicy = (cudaSynchronizationPolicy)77;
	R(cudaStreamSetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &value));
	WORKS();
	cudaGraph_t graph = nullptr;
	cudaStreamCaptureStatus status;
	void *nothing;
	R(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
	R(cudaStreamEndCapture(stream, &graph));
	R(cudaStreamBeginCapture(stream, (cudaStreamCaptureMode)9));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	R(cudaStreamSynchronize(stream));
	R(cudaStreamIsCapturing(stream, &status));
	R(cudaStreamEndCapture(stream, &graph));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	R(cudaMemsetAsync(device, 0, 64, nullptr));
	R(cudaStreamEndCapture(stream, &graph));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	R(cudaMemcpyAsync(device, other, (size_t)1 << 30, cudaMemcpyDeviceToDevice, stream));
	R(cudaMemsetAsync(nullptr, 0, 64, stream));
	LAUNCH(add_one<<<1, 2048, 0, stream>>>(device, 1));
	R(cudaEventQuery(event));
	R(cudaStreamWaitEvent(stream, unrecorded, 0));
	R(cudaMalloc(&nothing, 0));
	R(cudaStreamEndCapture(stream, &graph));
	R(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	R(cudaEventRecord(event, stream));
	R(cudaEventSynchronize(event));
	R(cudaStreamWaitEvent(non_blocking, event, 0));
	R(cudaStreamEndCapture(stream, &graph));
	R(cudaStreamDestroy(non_blocking));
	R(cudaStreamDestroy(stream));
	R(cudaEventDestroy(event));
	R(cudaEventDestroy(unrecorded));
	R(cudaEventDestroy(untimed));
	WORKS();
}

static void graphs()
{
	cudaGraph_t graph, gone;
	cudaGraphExec_t exec, gone_exec;
	cudaGraphNode_t node, second;
	R(cudaGraphCreate(&graph, 7));
	R(cudaGraphCreate(&graph, 0));
	R(cudaGraphCreate(&gone, 0));
	R(cudaGraphDestroy(gone));
	R(cudaGraphDestroy(gone));
	R(cudaGraphAddEmptyNode(&node, gone, nullptr, 0));
	R(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
	R(cudaGraphAddEmptyNode(&second, graph, nullptr, 1));
	R(cudaGraphAddDependencies(graph, &node, &node, nullptr, 1));
	cudaKernelNodeParams kernel = {};
	R(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &kernel));
	int n = 1;
	void *arguments[] = { &device, &n };
	kernel.func = (void *)add_one;
	kernel.gridDim = 1;
	kernel.blockDim = 4096;
	kernel.kernelParams = arguments;
	R(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &kernel));
	R(cudaGraphInstantiate(&gone_exec, graph, 0));
	cudaMemsetParams fill = {};
	fill.dst = device;
	fill.elementSize = 3;
	fill.width = 1;
	fill.height = 1;
	R(cudaGraphAddMemsetNode(&second, graph, nullptr, 0, &fill));
	R(cudaGraphAddMemcpyNode1D(&second, graph, nullptr, 0, device, other, (size_t)1 << 30, cudaMemcpyDeviceToDevice));
	R(cudaGraphInstantiate(&exec, gone, 0));
	R(cudaGraphInstantiate(&exec, graph, 0x4000));
	R(cudaGraphLaunch(nullptr, nullptr));
	R(cudaGraphLaunch((cudaGraphExec_t)host, nullptr));
	R(cudaGraphExecDestroy((cudaGraphExec_t)host));
	R(cudaGraphExecDestroy(nullptr));
	R(cudaGraphDestroyNode(nullptr));
	R(cudaGraphDestroy(graph));
	WORKS();
}

static void devices()
{
	int value;
	cudaDeviceProp properties;
	R(cudaSetDevice(99));
	R(cudaSetDevice(-1));
	R(cudaGetDeviceProperties(&properties, 99));
	R(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0));
	R(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
	R(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
	R(cudaDeviceCanAccessPeer(&value, 0, 99));
	R(cudaDeviceEnablePeerAccess(0, 0));
	R(cudaDeviceEnablePeerAccess(99, 0));
	R(cudaDeviceDisablePeerAccess(99));
	R(cudaDeviceSetLimit((cudaLimit)99, 1));
	R(cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)1 << 60));
	R(cudaDeviceSetLimit(cudaLimitStackSize, (size_t)1 << 40));
	R(cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
	R(cudaDeviceSetCacheConfig((cudaFuncCache)99));
	R(cudaSetDeviceFlags(0x4000));
	R(cudaDeviceGetPCIBusId((char *)&value, 1, 0));
	R(cudaDeviceGetByPCIBusId(&value, "nonsense"));
	WORKS();
}

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			  ".visible .entry empty() {\n\tret;\n}\n"
			  ".visible .entry takes(.param .u64 a) {\n\tret;\n}\n.visible .global .u32 word;\n";

static void driver_objects()
{
	CUmodule module, gone;
	CUfunction empty, takes;
	CUdeviceptr address;
	CUstream stream;
	size_t size;
	int value;
	D(cuModuleLoadData, &module, "nonsense");
	D(cuModuleLoadData, &module, nullptr);
	D(cuModuleLoadData, &module, ptx);
	D(cuModuleLoadData, &gone, ptx);
	D(cuModuleUnload, gone);
	D(cuModuleUnload, gone);
	D(cuModuleGetFunction, &empty, gone, "empty");
	D(cuModuleGetFunction, &empty, module, "absent");
	D(cuModuleGetFunction, &empty, module, "empty");
	D(cuModuleGetFunction, &takes, module, "takes");
	D(cuModuleGetGlobal_v2, &address, &size, module, "absent");
	D(cuModuleGetGlobal_v2, &address, &size, module, "word");
	D(cuMemFree_v2, address);
	D(cuLaunchKernel, nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
	D(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, (CUstream)host, nullptr, nullptr);
	D(cuLaunchKernel, takes, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
	D(cuLaunchKernel, empty, 1, 1, 1, 1025, 1, 1, 0, nullptr, nullptr, nullptr);
	D(cuLaunchKernel, empty, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
	D(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 1 << 30, nullptr, nullptr, nullptr);
	D(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
	CUlaunchConfig config = {};
	CUlaunchAttribute attribute = {};
	config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	attribute.id = (CUlaunchAttributeID)99;
	D(cuLaunchKernelEx, &config, empty, nullptr, nullptr);
	D(cuLaunchKernelEx, nullptr, empty, nullptr, nullptr);
	config.attrs = nullptr;
	D(cuLaunchKernelEx, &config, empty, nullptr, nullptr);
	D(cuFuncGetAttribute, &value, (CUfunction_attribute)99, empty);
	D(cuFuncSetAttribute, empty, CU_FUNC_ATTRIBUTE_BINARY_VERSION, 1);
	D(cuFuncSetCacheConfig, empty, (CUfunc_cache)99);
	D(cuFuncSetCacheConfig, nullptr, CU_FUNC_CACHE_PREFER_L1);
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor, &value, empty, 0, 0);
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor, &value, nullptr, 32, 0);
	D(cuStreamCreate, &stream, 0x70);
	D(cuStreamCreate, &stream, 0);
	D(cuStreamAddCallback, stream, nullptr, nullptr, 0);
	D(cuStreamAddCallback, stream, nullptr, nullptr, 9);
	D(cuStreamDestroy_v2, stream);
	D(cuCtxSetCacheConfig, (CUfunc_cache)99);
	D(cuCtxSetLimit, (CUlimit)99, 1);
	D(cuCtxSynchronize);
	D(cuModuleUnload, module);
	D(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
	WORKS();
}

static void driver_memory()
{
	CUdeviceptr a = (CUdeviceptr)device, b = (CUdeviceptr)other, p = 0, base;
	size_t size, pitch;
	const size_t far = (size_t)1 << 30;
	CUcontext context;
	D(cuCtxGetCurrent, &context);
	D(cuMemAlloc_v2, &p, 0);
	D(cuMemAlloc_v2, nullptr, 64);
	D(cuMemAlloc_v2, &p, (size_t)1 << 60);
	D(cuMemAllocPitch_v2, &p, &pitch, 64, 1, 3);
	D(cuMemFree_v2, 0);
	D(cuMemFree_v2, a + 4);
	D(cuMemFreeAsync, a + 4, nullptr);
	D(cuMemGetAddressRange_v2, &base, &size, 64);
	D(cuMemcpyHtoD_v2, a, host, far);
	D(cuMemcpyHtoD_v2, a + 60, host, 8);
	D(cuMemcpyDtoH_v2, host, 0, 64);
	D(cuMemcpyDtoD_v2, a, b, far);
	D(cuMemcpyDtoD_v2, a, 64, 64);
	D(cuMemcpyDtoDAsync_v2, a, b, far, nullptr);
	D(cuMemcpyDtoDAsync_v2, a, b, 64, (CUstream)host);
	D(cuMemcpyHtoDAsync_v2, a, pinned, far, nullptr);
	D(cuMemcpyHtoDAsync_v2, a + 60, pinned, 8, nullptr);
	D(cuMemcpyHtoDAsync_v2, a + 60, host, 8, nullptr);
	D(cuMemcpyDtoHAsync_v2, pinned, a + 60, 8, nullptr);
	D(cuMemcpyDtoHAsync_v2, host, a + 60, 8, nullptr);
	D(cuMemcpyDtoHAsync_v2, host, a, 64, (CUstream)host);
	D(cuMemcpyAsync, a, b, far, nullptr);
	D(cuMemcpy, a, b, far);
	D(cuMemcpyPeerAsync, a, context, b, context, far, nullptr);
	D(cuMemcpyPeerAsync, a, (CUcontext)host, b, context, 64, nullptr);
	D(cuMemcpyPeer, a, context, b, context, far);
	D(cuMemsetD8_v2, a, 0, far);
	D(cuMemsetD32_v2, a + 2, 0, 4);
	D(cuMemsetD16Async, a + 1, 0, 4, nullptr);
	D(cuMemsetD32Async, a + 2, 0, 4, nullptr);
	D(cuMemsetD32Async, a, 0, far, nullptr);
	D(cuMemsetD32Async, a, 0, (size_t)1 << 62, nullptr);
	D(cuMemsetD2D8Async, a, 8, 0, 16, 2, nullptr);
	D(cuMemsetD2D32Async, a, 6, 0, 1, 2, nullptr);
	D(cuMemsetD2D32Async, a, 8, 0, 2, 1 << 20, nullptr);
	D(cuMemsetD2D8Async, a, 8, 0, 8, 2, (CUstream)host);
	D(cuMemsetD8Async, 0, 0, 16, nullptr);
	D(cuMemsetD8Async, 0, 0, 0, nullptr);
	CUDA_MEMCPY2D box = {};
	D(cuMemcpy2DAsync_v2, nullptr, nullptr);
	box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	box.srcDevice = b;
	box.dstDevice = a;
	box.WidthInBytes = 16;
	box.Height = 2;
	box.srcPitch = 8;
	box.dstPitch = 16;
	D(cuMemcpy2DAsync_v2, &box, nullptr);
	D(cuMemcpy2D_v2, &box);
	box.srcPitch = 16;
	box.Height = 1 << 20;
	D(cuMemcpy2DAsync_v2, &box, nullptr);
	D(cuMemcpy2D_v2, &box);
	box.Height = 2;
	box.srcMemoryType = (CUmemorytype)9;
	D(cuMemcpy2DAsync_v2, &box, nullptr);
	box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	D(cuMemcpy2DAsync_v2, &box, nullptr);
	box.srcMemoryType = CU_MEMORYTYPE_HOST;
	D(cuMemcpy2DAsync_v2, &box, nullptr);
	CUDA_MEMCPY3D solid = {};
	solid.srcMemoryType = solid.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	solid.srcDevice = b;
	solid.dstDevice = a;
	solid.WidthInBytes = 8;
	solid.Height = 2;
	solid.Depth = 2;
	solid.srcPitch = solid.dstPitch = 8;
	solid.srcHeight = 1;
	solid.dstHeight = 2;
	D(cuMemcpy3DAsync_v2, &solid, nullptr);
	solid.srcHeight = 2;
	solid.srcLOD = 1;
	D(cuMemcpy3DAsync_v2, &solid, nullptr);
	solid.srcLOD = 0;
	solid.Depth = 1 << 20;
	D(cuMemcpy3DAsync_v2, &solid, nullptr);
	D(cuStreamWaitValue32_v2, nullptr, a + 2, 0, 0);
	D(cuStreamWaitValue32_v2, nullptr, a, 0, 0x77);
	D(cuStreamWaitValue32_v2, nullptr, 64, 0, 0);
	D(cuStreamWriteValue32_v2, nullptr, a + 2, 0, 0);
	D(cuStreamWriteValue32_v2, nullptr, 64, 0, 0);
	D(cuStreamWriteValue32_v2, nullptr, a, 0, 0x77);
	D(cuStreamBatchMemOp_v2, nullptr, 1, nullptr, 0);
	CUstreamBatchMemOpParams operation = {};
	operation.operation = (CUstreamBatchMemOpType)77;
	D(cuStreamBatchMemOp_v2, nullptr, 1, &operation, 0);
	WORKS();
	D(cuMemAlloc_v2, &p, 64);
	D(cuMemFree_v2, p);
	D(cuMemFree_v2, p);
	D(cuMemsetD8Async, p, 0, 64, nullptr);
	D(cuMemcpyDtoDAsync_v2, p, a, 64, nullptr);
	D(cuMemcpyDtoDAsync_v2, a, p, 64, nullptr);
	D(cuMemcpyHtoDAsync_v2, p, pinned, 64, nullptr);
	D(cuMemcpyHtoDAsync_v2, p, host, 64, nullptr);
	D(cuMemcpyDtoHAsync_v2, pinned, p, 64, nullptr);
	D(cuMemcpyDtoHAsync_v2, host, p, 64, nullptr);
	D(cuMemcpyHtoD_v2, p, host, 64);
	D(cuMemcpyDtoH_v2, host, p, 64);
	D(cuStreamWriteValue32_v2, nullptr, p, 0, 0);
	D(cuMemAllocAsync, &p, 64, nullptr);
	D(cuMemFreeAsync, p, nullptr);
	D(cuMemFreeAsync, p, nullptr);
	D(cuMemFree_v2, p);
	D(cuStreamSynchronize, nullptr);
	D(cuMemsetD8Async, p, 0, 64, nullptr);
	D(cuMemcpyDtoDAsync_v2, p, a, 64, nullptr);
	D(cuMemcpyDtoHAsync_v2, host, p, 64, nullptr);
	WORKS();
}

/* Objects of one context in another one. */
static void driver_contexts()
{
	CUcontext primary, second, popped;
	CUstream stream, own_stream;
	CUevent event, own_event;
	CUmodule module;
	CUfunction empty;
	CUdeviceptr memory;
	D(cuCtxGetCurrent, &primary);
	D(cuCtxCreate_v4, &second, nullptr, 0, 77);
	D(cuCtxCreate_v4, &second, nullptr, 0xff00, 0);
	D(cuCtxCreate_v4, &second, nullptr, 0, 0);
	D(cuStreamCreate, &stream, 0);
	D(cuEventCreate, &event, 0);
	D(cuModuleLoadData, &module, ptx);
	D(cuModuleGetFunction, &empty, module, "empty");
	D(cuMemAlloc_v2, &memory, 64);
	D(cuEventRecord, event, nullptr);
	D(cuCtxPopCurrent_v2, &popped);
	D(cuStreamCreate, &own_stream, 0);
	D(cuEventCreate, &own_event, 0);
	D(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
	D(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, own_stream, nullptr, nullptr);
	D(cuEventRecord, event, nullptr);
	D(cuEventRecord, event, own_stream);
	D(cuEventRecord, own_event, stream);
	D(cuEventRecordWithFlags, event, own_stream, 0);
	D(cuStreamWaitEvent, own_stream, event, 0);
	D(cuStreamWaitEvent, stream, own_event, 0);
	D(cuStreamCopyAttributes, stream, own_stream);
	D(cuMemsetD8Async, memory, 0, 64, own_stream);
	D(cuMemsetD8Async, memory, 0, 65, own_stream);
	D(cuMemcpyDtoDAsync_v2, memory, (CUdeviceptr)device, 64, own_stream);
	D(cuStreamSynchronize, stream);
	WORKS();
	D(cuCtxDestroy_v2, second);
	D(cuCtxDestroy_v2, second);
	D(cuCtxSetCurrent, second);
	D(cuCtxPushCurrent_v2, second);
	D(cuStreamSynchronize, stream);
	D(cuStreamDestroy_v2, stream);
	D(cuEventRecord, event, nullptr);
	D(cuEventDestroy_v2, event);
	D(cuEventQuery, event);
	D(cuModuleUnload, module);
	D(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
	D(cuMemsetD8Async, memory, 0, 64, nullptr);
	D(cuMemFree_v2, memory);
	D(cuMemcpyDtoDAsync_v2, memory, (CUdeviceptr)device, 64, nullptr);
	D(cuCtxSetCurrent, nullptr);
	D(cuCtxPopCurrent_v2, &popped);
	D(cuMemsetD8Async, (CUdeviceptr)device, 0, 64, nullptr);
	D(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
	D(cuStreamCreate, &stream, 0);
	D(cuEventCreate, &event, 0);
	D(cuMemAlloc_v2, &memory, 64);
	D(cuStreamSynchronize, nullptr);
	D(cuStreamSynchronize, own_stream);
	D(cuEventRecord, own_event, own_stream);
	D(cuMemcpyDtoDAsync_v2, (CUdeviceptr)device, (CUdeviceptr)other, 64, own_stream);
	D(cuCtxSetCurrent, primary);
	D(cuStreamDestroy_v2, own_stream);
	D(cuEventDestroy_v2, own_event);
	D(cuMemcpyPeerAsync, (CUdeviceptr)device, second, (CUdeviceptr)other, primary, 64, nullptr);
	WORKS();
}

/* A kernel's fault stays with the context. */
static void fault()
{
	cudaStream_t stream;
	void *p;
	R(cudaStreamCreate(&stream));
	LAUNCH(store<<<1, 1>>>((int *)64));
	R(cudaDeviceSynchronize());
	R(cudaDeviceSynchronize());
	LAUNCH(store<<<1, 1>>>(device));
	R(cudaMalloc(&p, 64));
	R(cudaFree(device));
	R(cudaMemset(other, 0, 64));
	R(cudaMemcpy(host, other, 64, cudaMemcpyDeviceToHost));
	R(cudaMemcpyAsync(other, pinned, 64, cudaMemcpyHostToDevice, stream));
	R(cudaStreamQuery(stream));
	R(cudaStreamSynchronize(stream));
	R(cudaStreamDestroy(stream));
	R(cudaGetDeviceCount((int *)host));
	R(cudaDeviceReset());
	R(cudaMalloc(&p, 64));
	R(cudaMemset(p, 0, 64));
	R(cudaFree(p));
}

int main()
{
	setvbuf(stdout, nullptr, _IOLBF, 0);
	find_functions();
	R(cudaMalloc(&device, 64));
	R(cudaMalloc(&other, 64));
	R(cudaMallocHost(&pinned, 64));
	WORKS();
	launches();
	memory();
	copies();
	arrays();
	streams();
	graphs();
	devices();
	driver_objects();
	driver_memory();
	driver_contexts();
	fault();
	return 0;
}
