/* SPDX-License-Identifier: BSD-3-Clause */
/* What the driver's tests share: checks that print where they failed, and a context. */
#ifndef TEST_SOFTGPU_DRIVER_H
#define TEST_SOFTGPU_DRIVER_H

#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(call, wanted)                                                                           \
	do {                                                                                           \
		CUresult got_ = (call), wanted_ = (wanted);                                            \
		if (got_ != wanted_) {                                                                 \
			const char *g_ = "?", *w_ = "?";                                               \
			cuGetErrorName(got_, &g_);                                                     \
			cuGetErrorName(wanted_, &w_);                                                  \
			fprintf(stderr, "%s:%d: %s: %s, want %s\n", __FILE__, __LINE__, #call, g_, w_); \
			exit(1);                                                                       \
		}                                                                                      \
	} while (0)
#define OK(call) EXPECT(call, CUDA_SUCCESS)

#define CHECK(condition)                                                                          \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

/* Retains the primary context of device 0 and makes it current. */
static inline CUcontext start(void)
{
	CUcontext context;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	return context;
}

/* Destroys the context with its modules and memory, so that a leak is the driver's. */
static inline void end(void)
{
	cuDevicePrimaryCtxReset(0);
}

/* A kernel of the engine double (see engine_double.c). */
static inline CUfunction kernel(const char *name)
{
	static CUmodule module;
	CUfunction function;
	if (!module) {
		OK(cuModuleLoadData(&module,
				"double\nappend wait fault write nothing increase meet choose decrease\n"));
		atexit(end);
	}
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static inline CUresult launch(const char *name, CUstream stream, void *first, void *second)
{
	void *parameters[] = { first, second };
	return cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* Appends value to a log in stream. */
static inline void append(CUstream stream, CUdeviceptr log, uint32_t value)
{
	OK(launch("append", stream, &log, &value));
}

/* Blocks a stream until the flag is set. */
static inline void hold(CUstream stream, CUdeviceptr flag)
{
	OK(launch("wait", stream, &flag, NULL));
}

/* Sets the flag, which is in pinned or managed memory. */
static inline void let_go(uint32_t *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

#endif
