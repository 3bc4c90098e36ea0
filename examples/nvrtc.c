/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvrtc: a kernel compiled from text at run time (NVRTC) and launched through the driver API alone: no CUDA runtime at all.
 * Evaluates a polynomial at many points and checks it against the CPU.
 */
#include <cuda.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

#define POINTS 4096

static const char source[] =
	"extern \"C\" __global__ void polynomial(double *y, const double *x, int n)\n"
	"{\n"
	"	int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"	if (i < n)\n"
	"		y[i] = ((3.0 * x[i] - 2.0) * x[i] + 1.0) * x[i] - 5.0;\n"
	"}\n";

static void check(CUresult result, const char *call)
{
	if (result == CUDA_SUCCESS)
		return;
	const char *text = NULL;
	cuGetErrorString(result, &text);
	fprintf(stderr, "nvrtc: %s: error %d: %s\n", call, (int)result, text ? text : "unknown");
	exit(EXIT_FAILURE);
}
#define CHECK(call) check((call), #call)

/* The PTX of the source above; the caller frees it. */
static char *compile(void)
{
	nvrtcProgram program;
	const char *options[] = { "--gpu-architecture=compute_75", "--fmad=false" };
	if (nvrtcCreateProgram(&program, source, "polynomial.cu", 0, NULL, NULL) != NVRTC_SUCCESS ||
	    nvrtcCompileProgram(program, 2, options) != NVRTC_SUCCESS) {
		fprintf(stderr, "nvrtc: the kernel does not compile\n");
		exit(EXIT_FAILURE);
	}
	size_t size;
	nvrtcGetPTXSize(program, &size);
	char *ptx = malloc(size);
	if (!ptx || nvrtcGetPTX(program, ptx) != NVRTC_SUCCESS) {
		fprintf(stderr, "nvrtc: no PTX\n");
		exit(EXIT_FAILURE);
	}
	nvrtcDestroyProgram(&program);
	return ptx;
}

int main(void)
{
	static double x[POINTS], y[POINTS];
	for (int i = 0; i < POINTS; i++)
		x[i] = (i - POINTS / 2) / 256.0;
	char *ptx = compile();

	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr device_x, device_y;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&kernel, module, "polynomial"));
	CHECK(cuMemAlloc(&device_x, sizeof x));
	CHECK(cuMemAlloc(&device_y, sizeof y));
	CHECK(cuMemcpyHtoD(device_x, x, sizeof x));
	int n = POINTS;
	void *arguments[] = { &device_y, &device_x, &n };
	CHECK(cuLaunchKernel(kernel, (POINTS + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
	CHECK(cuMemcpyDtoH(y, device_y, sizeof y));
	CHECK(cuMemFree(device_x));
	CHECK(cuMemFree(device_y));
	CHECK(cuModuleUnload(module));
	CHECK(cuDevicePrimaryCtxRelease(device));
	free(ptx);

	for (int i = 0; i < POINTS; i++) {
		double want = ((3.0 * x[i] - 2.0) * x[i] + 1.0) * x[i] - 5.0;
		if (y[i] != want) {
			fprintf(stderr, "nvrtc: y[%d] = %.17g, want %.17g\n", i, y[i], want);
			return EXIT_FAILURE;
		}
	}
	printf("nvrtc: %d points, bit for bit as on the CPU\n", POINTS);
	return EXIT_SUCCESS;
}
