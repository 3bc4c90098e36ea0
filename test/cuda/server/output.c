/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints from the device: three lines by printf, long ones, then an assertion that two threads of three fail. With an argument: one
 * line, and the assertion, which an allocation reports. The driver is the software GPU itself. */
#include "test/cuda/softgpu/driver.h"

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 list);\n"
	".extern .func __assertfail (.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);\n"
	".global .align 1 .b8 hello[15] = {108, 105, 110, 101, 32, 102, 114, 111, 109, 32, 71, 80, 85, 10, 0};\n"
	".global .align 1 .b8 text[6] = {49, 32, 62, 32, 50, 0};\n"
	".visible .entry print() {\n"
	"	.reg .b64 a, n; .reg .b32 r;\n"
	"	mov.u64 a, hello; cvta.global.u64 a, a; mov.u64 n, 0;\n"
	"	{ .param .b64 p; .param .b64 q; .param .b32 s; st.param.b64 [p], a; st.param.b64 [q], n; call.uni (s), vprintf, (p, q); ld.param.b32 r, [s]; }\n"
	"	ret;\n}\n"
	".visible .entry say(.param .u64 f, .param .u64 l) {\n"
	"	.reg .b64 a, n; .reg .b32 r;\n"
	"	ld.param.u64 a, [f]; ld.param.u64 n, [l];\n"
	"	{ .param .b64 p; .param .b64 q; .param .b32 s; st.param.b64 [p], a; st.param.b64 [q], n; call.uni (s), vprintf, (p, q); ld.param.b32 r, [s]; }\n"
	"	ret;\n}\n"
	".visible .entry check() {\n"
	"	.reg .b64 a, n; .reg .b32 l; .reg .pred p;\n"
	"	mov.u32 l, %tid.x; setp.eq.u32 p, l, 1; @p ret;\n"
	"	mov.u64 a, text; cvta.global.u64 a, a; mov.u32 l, 42; mov.u64 n, 1;\n"
	"	{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n"
	"	st.param.b64 [p0], a; st.param.b64 [p1], a; st.param.b32 [p2], l; st.param.b64 [p3], a; st.param.b64 [p4], n;\n"
	"	call.uni __assertfail, (p0, p1, p2, p3, p4); }\n"
	"	ret;\n}\n";

enum { LONG = 6000 };

/* A format of LONG characters, and a string of as many: whole, a part of it, and in a field that is too wide. */
static void print_long_texts(CUfunction say)
{
	static const char *const formats[] = { "<%s>\n", "<%.5000s>\n", "<%2000000000s>\n" };
	static char text[LONG + 1];
	CUdeviceptr device, format, list = 0;
	void *parameters[] = { &device, &list };
	memset(text, 'f', LONG);
	OK(cuMemAlloc(&device, sizeof text));
	OK(cuMemcpyHtoD(device, text, sizeof text));
	OK(cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemAlloc(&format, 32));
	OK(cuMemAlloc(&list, 8));
	OK(cuMemsetD8(device, 's', LONG));
	OK(cuMemcpyHtoD(list, &device, sizeof device));
	parameters[0] = &format;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		OK(cuMemcpyHtoD(format, formats[i], strlen(formats[i]) + 1));
		OK(cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
		OK(cuCtxSynchronize());
	}
}

/* The call that returns the failure is none that waits for work, and the program makes no other one after it. */
static void failure_is_found_by_an_allocation(CUfunction print, CUfunction check)
{
	CUdeviceptr memory;
	CUresult result;
	OK(cuLaunchKernel(print, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuLaunchKernel(check, 1, 1, 1, 3, 1, 1, 0, NULL, NULL, NULL));
	do
		result = cuMemAlloc(&memory, 64 << 20);
	while (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(result, CUDA_ERROR_ASSERT);
}

int main(int argc, char **argv)
{
	(void)argv;
	CUmodule module;
	CUfunction print, check, say;
	start();
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&print, module, "print"));
	OK(cuModuleGetFunction(&check, module, "check"));
	OK(cuModuleGetFunction(&say, module, "say"));
	if (argc > 1) {
		failure_is_found_by_an_allocation(print, check);
		return 0;
	}
	for (int i = 0; i < 3; i++) {
		OK(cuLaunchKernel(print, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		OK(cuCtxSynchronize());
		printf("host %d\n", i);
	}
	print_long_texts(say);
	OK(cuLaunchKernel(check, 1, 1, 1, 3, 1, 1, 0, NULL, NULL, NULL));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
	return 0;
}
