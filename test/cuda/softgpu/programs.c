/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PTX text through the whole software GPU: results, sticky faults, messages in the JIT log, and work in many streams.
 */
#include "driver.h"

static const char text[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".global .u32 total;\n"
	".visible .entry add(.param .u64 out, .param .u32 n)\n{\n"
	"	.reg .pred %p;\n	.reg .b32 %r<6>;\n	.reg .b64 %d<4>;\n"
	"	ld.param.u64 %d1, [out];\n	ld.param.u32 %r1, [n];\n"
	"	mov.u32 %r2, %ctaid.x;\n	mov.u32 %r3, %ntid.x;\n	mov.u32 %r4, %tid.x;\n"
	"	mad.lo.u32 %r5, %r2, %r3, %r4;\n	setp.ge.u32 %p, %r5, %r1;\n	@%p bra done;\n"
	"	mul.wide.u32 %d2, %r5, 4;\n	add.u64 %d3, %d1, %d2;\n	ld.global.u32 %r2, [%d3];\n"
	"	add.u32 %r2, %r2, %r5;\n	st.global.u32 [%d3], %r2;\n	red.global.add.u32 [total], 1;\n"
	"done:\n	ret;\n}\n"
	".visible .entry store(.param .u64 at)\n{\n	.reg .b64 %d<2>;\n	ld.param.u64 %d1, [at];\n"
	"	st.global.u32 [%d1], 7;\n	ret;\n}\n";

static CUmodule module;
static CUfunction add, store;

static void load_program(void)
{
	OK(cuModuleLoadData(&module, text));
	OK(cuModuleGetFunction(&add, module, "add"));
	OK(cuModuleGetFunction(&store, module, "store"));
}

static void kernels_compute_in_many_streams(void)
{
	enum { STREAMS = 8, COUNT = 5000, ROUNDS = 5 };
	CUstream streams[STREAMS];
	CUdeviceptr data[STREAMS], total;
	static uint32_t back[COUNT];
	uint32_t count = COUNT, sum;
	size_t bytes;
	for (int i = 0; i < STREAMS; i++) {
		OK(cuStreamCreate(&streams[i], i % 2));
		OK(cuMemAlloc(&data[i], sizeof back));
		OK(cuMemsetD32Async(data[i], (unsigned)i, COUNT, streams[i]));
		for (int round = 0; round < ROUNDS; round++) {
			void *parameters[] = { &data[i], &count };
			OK(cuLaunchKernel(add, (COUNT + 63) / 64, 1, 1, 64, 1, 1, 0, streams[i], parameters, NULL));
		}
	}
	for (int i = 0; i < STREAMS; i++) {
		OK(cuMemcpyDtoHAsync(back, data[i], sizeof back, streams[i]));
		for (uint32_t n = 0; n < COUNT; n++)
			CHECK(back[n] == (uint32_t)i + ROUNDS * n);
		OK(cuMemFree(data[i]));
		OK(cuStreamDestroy(streams[i]));
	}
	OK(cuModuleGetGlobal(&total, &bytes, module, "total"));
	CHECK(bytes == 4);
	OK(cuMemcpyDtoH(&sum, total, 4));
	CHECK(sum == STREAMS * ROUNDS * COUNT);
}

static CUresult store_at(CUdeviceptr at)
{
	void *parameters[] = { &at };
	OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	return cuCtxSynchronize();
}

static void again(void)
{
	CUcontext context;
	OK(cuDevicePrimaryCtxReset(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	load_program();
}

static void wrong_addresses_are_faults_that_stay(void)
{
	CUdeviceptr data, freed;
	OK(cuMemAlloc(&data, 100));
	OK(store_at(data + 96));
	EXPECT(store_at(data + 100), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuMemFree(data), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	again();
	OK(cuMemAlloc(&freed, 4096));
	OK(store_at(freed));
	OK(cuMemFree(freed));
	EXPECT(store_at(freed), CUDA_ERROR_ILLEGAL_ADDRESS);
	again();
	EXPECT(store_at(0), CUDA_ERROR_ILLEGAL_ADDRESS);
	again();
	uint32_t ours;
	EXPECT(store_at((CUdeviceptr)(uintptr_t)&ours), CUDA_ERROR_ILLEGAL_ADDRESS);
	again();
	OK(cuMemAlloc(&data, 100));
	EXPECT(store_at(data + 2), CUDA_ERROR_MISALIGNED_ADDRESS);
	again();
}

static void what_cannot_run_is_named_with_its_line(void)
{
	static const char wrong[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
				    ".visible .entry bad()\n{\n	.reg .b32 %r;\n	frobnicate.u32 %r, 1;\n	ret;\n}\n";
	char error[500] = "";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { error, (void *)sizeof error };
	CUmodule none;
	EXPECT(cuModuleLoadDataEx(&none, wrong, 2, options, values), CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(error, "frobnicate") && strstr(error, "7"));
	CHECK((size_t)values[1] == strlen(error));
	values[1] = (void *)8;
	EXPECT(cuModuleLoadDataEx(&none, wrong, 2, options, values), CUDA_ERROR_INVALID_PTX);
	CHECK(strlen(error) == 7);
}

int main(void)
{
	start();
	load_program();
	kernels_compute_in_many_streams();
	wrong_addresses_are_faults_that_stay();
	what_cannot_run_is_named_with_its_line();
	OK(cuDevicePrimaryCtxRelease(0));
	return 0;
}
