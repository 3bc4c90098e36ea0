/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints from the device: three lines by printf, then a failed assertion. The driver is the software GPU itself. */
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
	".visible .entry check() {\n"
	"	.reg .b64 a, n; .reg .b32 l;\n"
	"	mov.u64 a, text; cvta.global.u64 a, a; mov.u32 l, 42; mov.u64 n, 1;\n"
	"	{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n"
	"	st.param.b64 [p0], a; st.param.b64 [p1], a; st.param.b32 [p2], l; st.param.b64 [p3], a; st.param.b64 [p4], n;\n"
	"	call.uni __assertfail, (p0, p1, p2, p3, p4); }\n"
	"	ret;\n}\n";

int main(void)
{
	CUmodule module;
	CUfunction print, check;
	start();
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&print, module, "print"));
	OK(cuModuleGetFunction(&check, module, "check"));
	for (int i = 0; i < 3; i++) {
		OK(cuLaunchKernel(print, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		OK(cuCtxSynchronize());
		printf("host %d\n", i);
	}
	OK(cuLaunchKernel(check, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
	return 0;
}
