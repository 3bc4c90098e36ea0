/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVIDIA's run-time compiler works without a GPU. If a program compiles for machine code (--gpu-architecture=sm_75), it
 * gets code that only a GPU executes. The compiler also keeps the PTX of that compilation, and cuModuleLoadData accepts
 * PTX in place of machine code. So if this library is loaded before the compiler's (LD_PRELOAD) and the program's device is
 * a software GPU, here or on a server, nvrtcGetCUBIN returns the PTX of a program that was compiled for machine code. A
 * program compiled for compute_75 has no machine code, with this library or without it.
 *
 * Interfaces: nvrtc.h of CUDA 13.0, whose nvrtcProgram is a pointer and whose nvrtcResult is an enum with 0 for
 * success.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { NVRTC_INTERNAL_ERROR = 11 };

int nvrtcGetCUBINSize(void *program, size_t *size);
int nvrtcGetCUBIN(void *program, char *code);

static int call_size(const char *name, void *program, size_t *size)
{
	int (*function)(void *, size_t *);
	*(void **)&function = dlsym(RTLD_NEXT, name);
	return function ? function(program, size) : NVRTC_INTERNAL_ERROR;
}

static int call_code(const char *name, void *program, char *code)
{
	int (*function)(void *, char *);
	*(void **)&function = dlsym(RTLD_NEXT, name);
	return function ? function(program, code) : NVRTC_INTERNAL_ERROR;
}

/* True if the device of the current context, or else the first device, is a software GPU (cuDeviceGetName). */
static bool is_software_gpu(void)
{
	int (*init)(unsigned), (*current)(int *), (*get)(int *, int), (*get_name)(char *, int, int);
	int device;
	char name[64] = "";
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
	if (!driver)
		return false;
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&current = dlsym(driver, "cuCtxGetDevice");
	*(void **)&get = dlsym(driver, "cuDeviceGet");
	*(void **)&get_name = dlsym(driver, "cuDeviceGetName");
	bool known = init && current && get && get_name && !init(0) && (!current(&device) || !get(&device, 0)) &&
		     !get_name(name, sizeof name, device);
	dlclose(driver);
	return known && !strcmp(name, "Headrace Software GPU");
}

__attribute__((visibility("default"))) int nvrtcGetCUBINSize(void *program, size_t *size)
{
	int result = call_size("nvrtcGetCUBINSize", program, size);
	return result || !*size || !is_software_gpu() ? result : call_size("nvrtcGetPTXSize", program, size);
}

__attribute__((visibility("default"))) int nvrtcGetCUBIN(void *program, char *code)
{
	size_t size = 0;
	int result = call_size("nvrtcGetCUBINSize", program, &size);
	if (result)
		return result;
	return call_code(size && is_software_gpu() ? "nvrtcGetPTX" : "nvrtcGetCUBIN", program, code);
}
