/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the runtime and the driver know of the same kernel: its handle, and its function in graphs, in two devices and in
 * a green context; what the driver logs and notifies.
 */
#include "program.cuh"

#include <cstring>
#include <cuda.h>

__device__ int counter;

__global__ void count(int by)
{
	counter += by;
}

__global__ void other(void)
{
}

#define DRIVER(name) static decltype(&name) driver_##name
DRIVER(cuKernelGetFunction);
DRIVER(cuKernelGetName);
DRIVER(cuLaunchKernel);
DRIVER(cuDeviceGetDevResource);
DRIVER(cuDevSmResourceSplitByCount);
DRIVER(cuDevResourceGenerateDesc);
DRIVER(cuGreenCtxCreate);
DRIVER(cuGreenCtxDestroy);
DRIVER(cuCtxFromGreenCtx);
DRIVER(cuCtxSetCurrent);
DRIVER(cuCtxCreate_v4);
DRIVER(cuCtxDestroy);
DRIVER(cuDeviceGetLuid);

template <typename T> static void find(T &function, const char *name)
{
	void *address;
	cudaDriverEntryPointQueryResult found;
	CHECK(cudaGetDriverEntryPointByVersion(name, &address, CUDART_VERSION, cudaEnableDefault, &found));
	EXPECT(found == cudaDriverEntryPointSuccess);
	function = (T)address;
}

static int counted(void)
{
	int value;
	CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
	return value;
}

static void launch(const void *kernel, int by)
{
	void *arguments[] = { &by };
	CHECK(cudaLaunchKernel(kernel, 1, 1, arguments, 0, 0));
}

static cudaKernel_t a_kernel_has_one_handle(void)
{
	cudaKernel_t kernel, again;
	cudaFuncAttributes attributes;
	CUfunction function;
	const char *name;
	int by = 100;
	void *arguments[] = { &by };
	skip_if_not_across("kernels' handles", cudaGetKernel(&kernel, (const void *)count));
	CHECK(cudaGetKernel(&again, (const void *)count));
	EXPECT(kernel == again);
	CHECK(cudaGetKernel(&again, (const void *)kernel));
	EXPECT(kernel == again);
	CHECK(cudaGetKernel(&again, (const void *)other));
	EXPECT(kernel != again);
	EXPECT_ERROR(cudaErrorInvalidValue, cudaGetKernel(NULL, (const void *)count));
	EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaGetKernel(&again, &by));
	/* As a stub's address, and as the driver's: always the same variable. */
	count<<<1, 1>>>(1);
	launch((const void *)kernel, 10);
	EXPECT(driver_cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);
	EXPECT(driver_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == CUDA_SUCCESS);
	EXPECT(counted() == 111);
	CHECK(cudaFuncGetAttributes(&attributes, (const void *)kernel));
	EXPECT(attributes.maxThreadsPerBlock == 1024);
	EXPECT(driver_cuKernelGetName(&name, kernel) == CUDA_SUCCESS && strstr(name, "count"));
	return kernel;
}

static void the_handle_is_good_in_each_device(cudaKernel_t kernel)
{
	CUfunction function;
	int by = 1000;
	void *arguments[] = { &by };
	CHECK(cudaSetDevice(1));
	EXPECT(counted() == 0);
	launch((const void *)kernel, 1);
	count<<<1, 1>>>(2);
	EXPECT(driver_cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);
	EXPECT(driver_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == CUDA_SUCCESS);
	EXPECT(counted() == 1003);
	CHECK(cudaSetDevice(0));
	EXPECT(counted() == 111);
	/* A reset gives the variables their first values; the handle stays. */
	CHECK(cudaDeviceReset());
	launch((const void *)kernel, 7);
	EXPECT(counted() == 7);
}

/* In a context that the program made there is no such handle; the kernel can be launched. */
static void a_context_of_the_programs_own_has_the_stubs_alone(void)
{
	CUcontext context;
	cudaKernel_t kernel;
	EXPECT(driver_cuCtxCreate_v4(&context, NULL, 0, 0) == CUDA_SUCCESS);
	EXPECT_ERROR(cudaErrorNotSupported, cudaGetKernel(&kernel, (const void *)count));
	count<<<1, 1>>>(3);
	EXPECT(counted() == 3);
	EXPECT(driver_cuCtxDestroy(context) == CUDA_SUCCESS);
	CHECK(cudaSetDevice(0));
	EXPECT(counted() == 7);
}

static void a_graphs_kernel_is_the_programs(cudaKernel_t kernel)
{
	cudaGraph_t graph;
	cudaGraphNode_t node, captured;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	size_t nodes = 1;
	int by = 20, before = counted();
	void *arguments[] = { &by };
	cudaKernelNodeParams params = {}, told;
	params.func = (void *)count;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = arguments;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	CHECK(cudaGraphKernelNodeGetParams(node, &told));
	EXPECT(told.func == (void *)count && told.gridDim.x == 1 && *(int *)told.kernelParams[0] == 20);
	params.func = (void *)kernel;
	CHECK(cudaGraphKernelNodeSetParams(node, &params));
	CHECK(cudaGraphKernelNodeGetParams(node, &told));
	EXPECT(told.func == (void *)count);
	CHECK(cudaGraphKernelNodeSetParams(node, &told));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, 0));
	EXPECT(counted() == before + 20);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	other<<<1, 1, 0, stream>>>();
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphGetNodes(graph, &captured, &nodes));
	CHECK(cudaGraphKernelNodeGetParams(captured, &told));
	EXPECT(told.func == (void *)other);
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(stream));
}

/* A green context has the primary context's modules and memory. */
static void a_green_context_has_the_same_variables(void)
{
	CUdevResource all, part;
	CUdevResourceDesc descriptor;
	CUgreenCtx green;
	CUcontext context;
	unsigned groups = 1;
	int device = -1, before = counted();
	CUresult result = driver_cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
	if (result == CUDA_ERROR_NOT_SUPPORTED && getenv("HEADRACE_TEST_REMOTE"))
		return; /* green contexts do not cross the connection */
	EXPECT(result == CUDA_SUCCESS);
	EXPECT(driver_cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, 1) == CUDA_SUCCESS);
	EXPECT(driver_cuDevResourceGenerateDesc(&descriptor, &part, 1) == CUDA_SUCCESS);
	EXPECT(driver_cuGreenCtxCreate(&green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS);
	EXPECT(driver_cuCtxFromGreenCtx(&context, green) == CUDA_SUCCESS);
	EXPECT(driver_cuCtxSetCurrent(context) == CUDA_SUCCESS);
	CHECK(cudaGetDevice(&device));
	EXPECT(device == 0);
	count<<<1, 1>>>(5);
	EXPECT(counted() == before + 5);
	CHECK(cudaSetDevice(0));
	EXPECT(counted() == before + 5);
	EXPECT(driver_cuGreenCtxDestroy(green) == CUDA_SUCCESS);
}

static void heard(void *data, cudaLogLevel level, char *message, size_t length)
{
	if (level == cudaLogLevelWarning && length == strlen(message) && strstr(message, "cuDeviceGetLuid"))
		++*(int *)data;
}

static void the_drivers_log_is_the_runtimes(void)
{
	int count_of_messages = 0;
	char text[256];
	size_t size = sizeof text;
	cudaLogIterator at;
	cudaLogsCallbackHandle handle;
	char luid[8];
	unsigned mask;
	CHECK(cudaLogsRegisterCallback(heard, &count_of_messages, &handle));
	CHECK(cudaLogsCurrent(&at, 0));
	EXPECT(driver_cuDeviceGetLuid(luid, &mask, 0) == CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(count_of_messages == 1);
	CHECK(cudaLogsDumpToMemory(&at, text, &size, 0));
	EXPECT(!strcmp(text, "warning: cuDeviceGetLuid is not supported\n") && size == strlen(text));
	CHECK(cudaLogsUnregisterCallback(handle));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaLogsUnregisterCallback(handle));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaLogsCurrent(NULL, 0));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaLogsDumpToFile(NULL, "/nowhere/at/all", 0));
}

static void never(cudaAsyncNotificationInfo_t *, void *, cudaAsyncCallbackHandle_t)
{
	EXPECT(!"called");
}

static void notifications_and_flushes(void)
{
	cudaAsyncCallbackHandle_t handle;
	CHECK(cudaDeviceRegisterAsyncNotification(1, never, NULL, &handle));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaDeviceUnregisterAsyncNotification(0, handle));
	CHECK(cudaDeviceUnregisterAsyncNotification(1, handle));
	EXPECT_ERROR(cudaErrorInvalidDevice, cudaDeviceRegisterAsyncNotification(5, never, NULL, &handle));
	CHECK(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
						 cudaFlushGPUDirectRDMAWritesToOwner));
	EXPECT_ERROR(cudaErrorInvalidValue,
		     cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
							(cudaFlushGPUDirectRDMAWritesScope)1));
}

int main()
{
	setenv("HEADRACE_SOFTGPU_DEVICES", "2", 1);
#define FIND(name) find(driver_##name, #name)
	FIND(cuKernelGetFunction);
	FIND(cuKernelGetName);
	FIND(cuLaunchKernel);
	FIND(cuDeviceGetDevResource);
	FIND(cuDevSmResourceSplitByCount);
	FIND(cuDevResourceGenerateDesc);
	FIND(cuGreenCtxCreate);
	FIND(cuGreenCtxDestroy);
	FIND(cuCtxFromGreenCtx);
	FIND(cuCtxSetCurrent);
	find(driver_cuCtxCreate_v4, "cuCtxCreate");
	find(driver_cuCtxDestroy, "cuCtxDestroy");
	FIND(cuDeviceGetLuid);
	cudaKernel_t kernel = a_kernel_has_one_handle();
	the_handle_is_good_in_each_device(kernel);
	a_context_of_the_programs_own_has_the_stubs_alone();
	a_graphs_kernel_is_the_programs(kernel);
	a_green_context_has_the_same_variables();
	the_drivers_log_is_the_runtimes();
	notifications_and_flushes();
	return 0;
}
