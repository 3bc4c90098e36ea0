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

/* The kernels append, wait, write, nothing, shaped, increase, increase_at and meet of engine_double.c, and its variable, for other
 * drivers. */
static const char test_ptx[] =
	".version 6.3\n.target sm_70\n.address_size 64\n.visible .global .align 16 .attribute(.managed) .b8 cell[16];\n"
#define TEST_ENTRY(name, second) \
	".visible .entry " name "(.param .u64 address" second ")\n{\n.reg .pred %p;\n.reg .u32 %n, %v;\n.reg .u64 %a, %t;\n" \
	"ld.param.u64 %a, [address];\n"
	TEST_ENTRY("append", ", .param .u32 value")
	"ld.param.u32 %v, [value];\natom.global.add.u32 %n, [%a], 1;\nadd.u32 %n, %n, 1;\nmul.wide.u32 %t, %n, 4;\n"
	"add.u64 %a, %a, %t;\nst.global.u32 [%a], %v;\nret;\n}\n"
	TEST_ENTRY("wait", "")
	"again:\nld.volatile.global.u32 %v, [%a];\nsetp.eq.u32 %p, %v, 0;\n@%p bra again;\nret;\n}\n"
	TEST_ENTRY("write", ", .param .u32 bytes")
	"ld.param.u32 %n, [bytes];\nmov.u32 %v, 165;\n"
	"again:\nsetp.eq.u32 %p, %n, 0;\n@%p ret;\nst.global.u8 [%a], %v;\nadd.u64 %a, %a, 1;\nsub.u32 %n, %n, 1;\nbra again;\n}\n"
	".visible .entry nothing()\n{\nret;\n}\n"
	".visible .entry shaped()\n.reqntid 32\n{\nret;\n}\n"
	TEST_ENTRY("increase", ", .param .u32 value")
	"ld.param.u32 %v, [value];\nred.global.add.u32 [%a], %v;\nret;\n}\n"
	TEST_ENTRY("increase_at", ", .param .u32 value")
	"ld.param.u32 %v, [value];\nld.global.u64 %a, [%a];\nred.global.add.u32 [%a], %v;\nret;\n}\n"
	TEST_ENTRY("meet", ", .param .u32 wanted")
	"ld.param.u32 %n, [wanted];\nred.global.add.u32 [%a], 1;\n"
	"again:\nld.volatile.global.u32 %v, [%a];\nsetp.lt.u32 %p, %v, %n;\n@%p bra again;\nret;\n}\n";
#undef TEST_ENTRY

/* HEADRACE_TEST_PTX is set for a driver whose engine is not the double. */
static inline const char *test_program(const char *of_double)
{
	return getenv("HEADRACE_TEST_PTX") ? test_ptx : of_double;
}

/* A kernel of the engine double (see engine_double.c). */
static inline CUfunction kernel(const char *name)
{
	static CUmodule module;
	CUfunction function;
	if (!module) {
		OK(cuModuleLoadData(&module,
				test_program("double\nappend wait fault write nothing increase increase_at meet choose decrease "
					     "shaped\n")));
		atexit(end);
	}
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

/* A launch that only the driver refuses: no attribute of a function says which shape its blocks must have. */
static inline CUresult launch_of_a_wrong_shape(CUstream stream)
{
	return cuLaunchKernel(kernel("shaped"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
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
