/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be checked is refused at the call itself; what fails on the server comes back with the next call that waits. */
#include "test/cuda/softgpu/driver.h"

#include <sys/wait.h>
#include <unistd.h>

static void launches(void)
{
	CUfunction nothing = kernel("nothing"), append = kernel("append");
	CUstream stream;
	void *none[1] = { NULL };
	OK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	EXPECT(cuLaunchKernel(nothing, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(nothing, 1, 1, 1, 1, 0, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(nothing, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(nothing, 1, 1, 1, 64, 64, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(nothing, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 1u << 30, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, NULL, none, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuLaunchKernel((CUfunction)0x1234, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamCreate(&stream, 0));
	OK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	OK(cuStreamDestroy(stream));
	EXPECT(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxSynchronize());
}

/* A grid that cannot be resident at once is refused, however often the kernel was launched with other shapes. */
static void cooperative_launches(void)
{
	CUfunction nothing = kernel("nothing");
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = { .cooperative = 1 } };
	CUlaunchConfig config = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1,
				  .blockDimZ = 1, .attrs = &attribute, .numAttrs = 1 };
	int blocks, processors;
	OK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	for (unsigned threads = 32; threads <= 512; threads *= 4) {
		OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, (int)threads, 0));
		unsigned most = (unsigned)(blocks * processors);
		for (int i = 0; i < 2; i++) {
			OK(cuLaunchCooperativeKernel(nothing, most, 1, 1, threads, 1, 1, 0, NULL, NULL));
			EXPECT(cuLaunchCooperativeKernel(nothing, most + 1, 1, 1, threads, 1, 1, 0, NULL, NULL),
			       CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
		}
		config.blockDimX = threads;
		config.gridDimX = most;
		OK(cuLaunchKernelEx(&config, nothing, NULL, NULL));
		config.gridDimX++;
		EXPECT(cuLaunchKernelEx(&config, nothing, NULL, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	}
	OK(cuCtxSynchronize());
}

static unsigned called;

static void count_message(void *data, CUlogLevel level, char *text, size_t length)
{
	called += data == &called && level == CU_LOG_LEVEL_WARNING && strlen(text) == length;
}

/* What the client refuses and logs is in its log, whatever is printed. */
static void messages(void)
{
	CUlogsCallbackHandle callback;
	CUlogIterator since;
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW };
	CUlaunchConfig config = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1,
				  .blockDimZ = 1, .attrs = &attribute, .numAttrs = 1 };
	char text[1000];
	size_t size = sizeof text;
	OK(cuLogsRegisterCallback(count_message, &called, &callback));
	OK(cuLogsCurrent(&since, 0));
	EXPECT(cuLaunchKernelEx(&config, kernel("nothing"), NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuLogsDumpToMemory(&since, text, &size, 0));
	CHECK(size == strlen(text) && strstr(text, "warning: launch attribute 1 ") && called == 1);
	OK(cuLogsUnregisterCallback(callback));
	EXPECT(cuLogsUnregisterCallback(callback), CUDA_ERROR_INVALID_VALUE);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/* A context that was attached to twice is destroyed by the third detach. */
static void uses_of_a_context(void)
{
	CUcontext context, same, before;
	OK(cuCtxGetCurrent(&before));
	EXPECT(cuCtxAttach(&same, 0), CUDA_ERROR_INVALID_CONTEXT); /* a primary context */
	OK(cuCtxCreate(&context, NULL, 0, 0));
	for (int i = 0; i < 2; i++) {
		OK(cuCtxAttach(&same, 0));
		CHECK(same == context);
	}
	for (int i = 0; i < 3; i++)
		OK(cuCtxDetach(context));
	EXPECT(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(before));
}
#pragma GCC diagnostic pop

static void handles(void)
{
	CUevent event;
	CUstream stream;
	float ms;
	const char *name;
	EXPECT(cuFuncGetName(&name, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuKernelGetName(&name, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamSynchronize((CUstream)0xdeadbeef), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamCreate(&stream, 0x80), CUDA_ERROR_INVALID_VALUE);
	OK(cuEventCreate(&event, 0));
	EXPECT(cuEventRecord((CUevent)&stream, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuStreamSynchronize((CUstream)event), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuEventElapsedTime(&ms, event, event), CUDA_ERROR_INVALID_HANDLE); /* never recorded */
	OK(cuEventDestroy(event));
	EXPECT(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuCtxSetCurrent((CUcontext)0x77), CUDA_ERROR_INVALID_CONTEXT);
	EXPECT(cuModuleUnload((CUmodule)0x77), CUDA_ERROR_INVALID_HANDLE);
}

static void streams_tell_what_they_are(void)
{
	CUstream stream;
	unsigned flags;
	int priority;
	unsigned long long id, other;
	CUdevice device = -1;
	CUcontext context, now;
	CUstreamCaptureStatus status;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamGetFlags(stream, &flags));
	OK(cuStreamGetPriority(stream, &priority));
	OK(cuStreamGetId(stream, &id));
	OK(cuStreamGetId(NULL, &other));
	OK(cuStreamGetDevice(stream, &device));
	OK(cuStreamGetCtx(stream, &context));
	OK(cuCtxGetCurrent(&now));
	OK(cuStreamIsCapturing(stream, &status));
	CHECK(flags == CU_STREAM_NON_BLOCKING && priority == 0 && id != other && device == 0 && context == now);
	CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	EXPECT(cuStreamGetFlags(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamGetPriority(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamGetId(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamGetDevice(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamGetCtx(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamIsCapturing(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy(stream));
	EXPECT(cuStreamGetFlags(stream, &flags), CUDA_ERROR_INVALID_HANDLE);
}

static void modules(void)
{
	CUmodule module;
	CUfunction function;
	CUdeviceptr cell;
	size_t size;
	EXPECT(cuModuleLoadData(&module, "double\nerror nothing works\n"), CUDA_ERROR_INVALID_PTX);
	EXPECT(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
	EXPECT(cuModuleLoad(&module, "/nonexistent/file"), CUDA_ERROR_FILE_NOT_FOUND);
	char log[200] = "";
	CUjit_option names[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof log };
	EXPECT(cuModuleLoadDataEx(&module, "double\nerror nothing works\n", 2, names, values), CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(log, "not a program"));
	OK(cuModuleLoadData(&module, "double\nappend nothing\n"));
	EXPECT(cuModuleGetFunction(&function, module, "missing"), CUDA_ERROR_NOT_FOUND);
	EXPECT(cuModuleGetGlobal(&cell, &size, module, "missing"), CUDA_ERROR_NOT_FOUND);
	OK(cuModuleGetGlobal(&cell, &size, module, "cell"));
	CHECK(size == 16);
	uint8_t there[16] = "fifteen letters", back[16];
	OK(cuMemcpyHtoD(cell, there, 16));
	OK(cuMemcpyDtoH(back, cell, 16));
	CHECK(!memcmp(there, back, 16));
	OK(cuModuleGetFunction(&function, module, "append"));
	size_t offset, bytes;
	OK(cuFuncGetParamInfo(function, 1, &offset, &bytes));
	CHECK(offset == 8 && bytes == 4);
	EXPECT(cuFuncGetParamInfo(function, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
	OK(cuModuleUnload(module));
	EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuMemcpyHtoD(cell, there, 16), CUDA_ERROR_INVALID_VALUE);
}

/* The next call that waits for work, and no earlier call, returns the first failure of the calls that do not wait. It returns the
 * failure once. This call and the calls before it are executed. */
static void latched(void)
{
	CUdeviceptr device;
	CUmodule module;
	size_t free_before, free_after = 0, total;
	uint8_t bytes[2] = { 0 };
	OK(cuMemAlloc(&device, 4096));
	OK(cuMemGetInfo(&free_before, &total));
	OK(launch_of_a_wrong_shape(NULL));
	OK(cuMemsetD8(device, 1, 4096));
	OK(cuMemGetInfo(&free_after, &total));
	CHECK(free_after == free_before);
	OK(cuModuleLoadData(&module, "double\nnothing\n"));
	OK(cuModuleUnload(module));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(bytes, device, sizeof bytes));
	CHECK(bytes[0] == 1 && bytes[1] == 1);
	OK(launch_of_a_wrong_shape(NULL));
	EXPECT(cuMemcpyDtoH(bytes, device, sizeof bytes), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(device));
}

/* A wait that tells of an earlier call's failure has waited. */
static void told_after_the_wait(void)
{
	CUdeviceptr word;
	CUstream stream;
	uint32_t value = 0;
	OK(cuMemAlloc(&word, 4));
	OK(cuMemsetD32(word, 0, 1));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(launch_of_a_wrong_shape(stream));
	for (int i = 0; i < 1000; i++)
		OK(cuMemsetD32Async(word, (unsigned)i, 1, stream));
	EXPECT(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamQuery(stream));
	OK(cuMemcpyDtoH(&value, word, 4));
	CHECK(value == 999);
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(word));
}

/* A context ends in spite of an earlier failure, and the failure ends with it. */
static void ends_with_its_context(void)
{
	CUcontext before, context;
	CUmodule module;
	CUfunction function;
	OK(cuCtxGetCurrent(&before));
	OK(cuCtxCreate(&context, NULL, 0, 0));
	OK(cuModuleLoadData(&module, "double\nshaped\n"));
	OK(cuModuleGetFunction(&function, module, "shaped"));
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuCtxDestroy(context));
	EXPECT(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(before));
	OK(cuCtxSynchronize());
}

/* Frees and calls that do not wait leave the report to the next call that waits. It is made once. */
static void latched_once(void)
{
	CUdeviceptr device, freed;
	CUstream stream;
	uint32_t word;
	void *host;
	OK(cuMemAlloc(&device, 4096));
	OK(cuMemAlloc(&freed, 4096));
	OK(cuMemHostAlloc(&host, 4096, 0));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 2; i++)
		OK(launch_of_a_wrong_shape(stream));
	OK(cuMemsetD32Async(device, 7, 1024, NULL));
	OK(launch("nothing", stream, NULL, NULL));
	OK(cuMemFree(freed));
	OK(cuMemFreeHost(host));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSynchronize());
	EXPECT(cuMemFree(freed), CUDA_ERROR_INVALID_VALUE); /* it has ended */
	OK(cuMemcpyDtoH(&word, device + 4092, 4));
	CHECK(word == 7); /* calls that do not wait are executed */
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(device));
}

/* A faulting kernel is told by the call that waits for it, and from then on by all. */
static void sticky(void)
{
	uint32_t code = CUDA_ERROR_ILLEGAL_ADDRESS;
	size_t free_bytes, total;
	CUdeviceptr device;
	OK(launch("fault", NULL, &code, NULL));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuMemAlloc(&device, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuMemGetInfo(&free_bytes, &total), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* A child of fork is told so, and harms nothing of its parent. */
static void in_a_child(void)
{
	CUdeviceptr device;
	OK(cuMemAlloc(&device, 64));
	pid_t child = fork();
	if (!child) {
		size_t free_bytes, total;
		int wrong = cuMemGetInfo(&free_bytes, &total) != CUDA_ERROR_NOT_INITIALIZED ||
			    cuInit(0) != CUDA_ERROR_NOT_INITIALIZED;
		_exit(wrong);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	OK(cuMemFree(device));
	OK(cuCtxSynchronize());
}

static void before_init(void)
{
	int count;
	CUdeviceptr device;
	CUstream stream;
	EXPECT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	EXPECT(cuMemAlloc(&device, 16), CUDA_ERROR_NOT_INITIALIZED);
	EXPECT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	OK(cuInit(0));
	EXPECT(cuMemAlloc(&device, 16), CUDA_ERROR_INVALID_CONTEXT);
	EXPECT(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
	CUdevice number;
	EXPECT(cuDeviceGet(&number, 1000), CUDA_ERROR_INVALID_DEVICE);
}

int main(void)
{
	before_init();
	start();
	launches();
	cooperative_launches();
	messages();
	uses_of_a_context();
	handles();
	streams_tell_what_they_are();
	modules();
	latched();
	told_after_the_wait();
	ends_with_its_context();
	latched_once();
	in_a_child();
	sticky();
	return 0;
}
