/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVIDIA's run-time compiler works without a GPU. If a program compiles for machine code (--gpu-architecture=sm_75), it
 * gets code that only a GPU executes. The compiler also keeps the PTX of that compilation, and cuModuleLoadData accepts
 * PTX in place of machine code. So if the program's device is a software GPU, here or on a server, these stand-ins return
 * the PTX of a program that was compiled for machine code. A program compiled for compute_75 has no machine code, with
 * them or without.
 *
 * Interfaces: nvrtc.h of CUDA 13.0, whose nvrtcProgram is a pointer and whose nvrtcResult is an enum with 0 for
 * success.
 */
#include "cuda_remote/softgpu/nvrtc/driver.h"
#include "cuda_remote/softgpu/nvrtc/toolkit.h"

#include <string.h>

enum { NVRTC_INTERNAL_ERROR = 11 };

int nvrtcGetCUBINSize(void *program, size_t *size);
int nvrtcGetCUBIN(void *program, char *code);

static int call_size(int index, const char *name, void *program, size_t *size)
{
	int (*function)(void *, size_t *);
	*(void **)&function = toolkit_function(index, name);
	return function ? function(program, size) : NVRTC_INTERNAL_ERROR;
}

static int call_code(int index, const char *name, void *program, char *code)
{
	int (*function)(void *, char *);
	*(void **)&function = toolkit_function(index, name);
	return function ? function(program, code) : NVRTC_INTERNAL_ERROR;
}

static int get_size(int index, void *program, size_t *size)
{
	int result = call_size(index, "nvrtcGetCUBINSize", program, size);
	return result || !*size || !standin_is_software_gpu() ? result :
								call_size(index, "nvrtcGetPTXSize", program, size);
}

static int get_code(int index, void *program, char *code)
{
	size_t size = 0;
	int result = call_size(index, "nvrtcGetCUBINSize", program, &size);
	if (result)
		return result;
	return call_code(index, size && standin_is_software_gpu() ? "nvrtcGetPTX" : "nvrtcGetCUBIN", program, code);
}

/* ---- for programs that are linked with NVRTC ---- */

__attribute__((visibility("default"))) int nvrtcGetCUBINSize(void *program, size_t *size)
{
	return get_size(toolkit_index_for_caller(__func__, "libnvrtc.so", __builtin_return_address(0)), program, size);
}

__attribute__((visibility("default"))) int nvrtcGetCUBIN(void *program, char *code)
{
	return get_code(toolkit_index_for_caller(__func__, "libnvrtc.so", __builtin_return_address(0)), program, code);
}

/* ---- for programs that look functions up: a function for each library ---- */

#define STANDIN(n)                                                                                                     \
	static int get_size_##n(void *program, size_t *size)                                                           \
	{                                                                                                              \
		return get_size(n, program, size);                                                                     \
	}                                                                                                              \
	static int get_code_##n(void *program, char *code)                                                             \
	{                                                                                                              \
		return get_code(n, program, code);                                                                     \
	}
STANDIN(0)
STANDIN(1)
STANDIN(2)
STANDIN(3)

void *nvrtc_standin(const char *name, int index)
{
	static int (*const sizes[TOOLKIT_LIBRARIES])(void *, size_t *) = { get_size_0, get_size_1, get_size_2,
									   get_size_3 };
	static int (*const codes[TOOLKIT_LIBRARIES])(void *, char *) = { get_code_0, get_code_1, get_code_2,
									 get_code_3 };
	if (!strcmp(name, "nvrtcGetCUBINSize"))
		return (void *)sizes[index];
	return !strcmp(name, "nvrtcGetCUBIN") ? (void *)codes[index] : NULL;
}
