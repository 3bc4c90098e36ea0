/* SPDX-License-Identifier: BSD-3-Clause */
/* A session that may have 16 MiB of the device's memory: what counts, what is refused, what cuMemGetInfo shows. */
#include "test/cuda/softgpu/driver.h"

#define MIB ((size_t)1 << 20)

static void check_info(size_t left)
{
	size_t free_bytes, total;
	OK(cuMemGetInfo(&free_bytes, &total));
	CHECK(total == 16 * MIB && free_bytes == left);
}

static void check_linear(void)
{
	CUdeviceptr a, b;
	OK(cuMemAlloc(&a, 12 * MIB));
	check_info(4 * MIB);
	CHECK(cuMemAlloc(&b, 5 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc(&b, 4 * MIB));
	check_info(0);
	OK(cuMemFree(a));
	OK(cuMemFree(b));
	check_info(16 * MIB);
	/* As much as the number of bytes can say, so that a sum would overflow. */
	OK(cuMemAlloc(&a, MIB));
	CHECK(cuMemAlloc(&b, SIZE_MAX - MIB / 2) != CUDA_SUCCESS);
	OK(cuMemFree(a));
	check_info(16 * MIB);
}

static void check_pitch(void)
{
	CUdeviceptr a;
	size_t pitch;
	CHECK(cuMemAllocPitch(&a, &pitch, MIB, 17, 4) == CUDA_ERROR_OUT_OF_MEMORY);
	check_info(16 * MIB);
	OK(cuMemAllocPitch(&a, &pitch, MIB, 15, 4));
	check_info(16 * MIB - 15 * pitch);
	OK(cuMemFree(a));
	check_info(16 * MIB);
}

static void check_pools(void)
{
	CUdeviceptr a, b;
	CUmemoryPool pool;
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	OK(cuMemAllocAsync(&a, 10 * MIB, NULL));
	CHECK(cuMemAllocAsync(&b, 7 * MIB, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemPoolCreate(&pool, &props));
	CHECK(cuMemAllocFromPoolAsync(&b, 7 * MIB, pool, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAllocFromPoolAsync(&b, 6 * MIB, pool, NULL));
	check_info(0);
	OK(cuMemFreeAsync(a, NULL));
	OK(cuMemFreeAsync(b, NULL));
	OK(cuStreamSynchronize(NULL));
	check_info(16 * MIB);
	OK(cuMemPoolDestroy(pool));
}

static void check_context(void)
{
	CUdeviceptr a;
	CUcontext primary, second;
	OK(cuCtxGetCurrent(&primary));
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuMemAlloc(&a, 12 * MIB));
	check_info(4 * MIB);
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(primary));
	check_info(16 * MIB);
}

static void check_arrays(void)
{
	CUarray plain, box;
	CUmipmappedArray mipmapped;
	CUDA_ARRAY_DESCRIPTOR flat = { .Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2 };
	CUDA_ARRAY3D_DESCRIPTOR cube = { .Width = 128, .Height = 128, .Depth = 64, .Format = CU_AD_FORMAT_HALF,
					 .NumChannels = 4 };
	CUDA_ARRAY3D_DESCRIPTOR square = { .Width = 512, .Height = 512, .Format = CU_AD_FORMAT_UNSIGNED_INT8,
					   .NumChannels = 1 };
	OK(cuArrayCreate(&plain, &flat));
	check_info(8 * MIB);
	OK(cuArray3DCreate(&box, &cube));
	check_info(0);
	CHECK(cuMipmappedArrayCreate(&mipmapped, &square, 1) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuArrayDestroy(box));
	check_info(8 * MIB);
	OK(cuMipmappedArrayCreate(&mipmapped, &square, 3));
	check_info(8 * MIB - 512 * 512 - 256 * 256 - 128 * 128);
	OK(cuMipmappedArrayDestroy(mipmapped));
	flat.Height = 1025;
	CHECK(cuArrayCreate(&plain, &flat) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuArrayDestroy(plain));
	check_info(16 * MIB);
}

/* Memory of a context's limits, and an array that ends with the context. */
static void check_limits(void)
{
	CUarray array;
	CUcontext primary, second;
	CUDA_ARRAY_DESCRIPTOR flat = { .Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_UNSIGNED_INT16, .NumChannels = 1 };
	OK(cuCtxGetCurrent(&primary));
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 10 * MIB));
	check_info(6 * MIB);
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 12 * MIB));
	check_info(4 * MIB);
	CHECK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 5 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 17 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	check_info(4 * MIB);
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB));
	OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 5 * MIB));
	check_info(3 * MIB);
	OK(cuArrayCreate(&array, &flat));
	check_info(MIB);
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(primary));
	check_info(16 * MIB);
}

/* With the driver of keeping.c: memory that a pool keeps counts, and is given back before an allocation is refused. */
static void check_kept(void)
{
	CUdeviceptr memory;
	CUmemoryPool pool;
	cuuint64_t threshold = UINT64_MAX;
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	OK(cuMemAllocAsync(&memory, 10 * MIB, NULL));
	OK(cuMemFreeAsync(memory, NULL));
	OK(cuStreamSynchronize(NULL));
	check_info(6 * MIB);
	OK(cuMemAllocAsync(&memory, 14 * MIB, NULL));
	check_info(2 * MIB);
	threshold = 1;
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	OK(cuMemFreeAsync(memory, NULL));
	OK(cuStreamSynchronize(NULL));
	check_info(2 * MIB);
	CHECK(cuMemAllocAsync(&memory, 3 * MIB, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAlloc(&memory, 3 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAllocAsync(&memory, 2 * MIB, NULL));
	check_info(0);
}

/* Each declaration takes 20 MiB, or a size that the server does not compute. */
static void check_declarations(void)
{
	static const char *const declarations[] = {
		".global .b8 x[20971520]", ".global .b8 x[0x1400000]", ".global .b8 x[0b1010000000000000000000000]",
		".global .b8 x[0120000000U]", ".global .b8 x[20 * 1024*1024]", ".const .b8 x[20971519 + 1]", ".global .b8 x[(5 << 22)]",
		".global .b8 x[20971520+0]", ".global .bf16 x[10485760]", ".global .v2 .bf16x2 x[2621440]", ".global .align 8 .f64 y, x[2621440]",
	};
	for (size_t i = 0; i < sizeof declarations / sizeof *declarations; i++) {
		char text[256];
		CUmodule module;
		snprintf(text, sizeof text, ".version 7.8\n.target sm_90\n.address_size 64\n%s;\n", declarations[i]);
		CUresult result = cuModuleLoadData(&module, text);
		if (result != CUDA_ERROR_OUT_OF_MEMORY)
			fprintf(stderr, "%s: %d\n", declarations[i], (int)result);
		CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
	}
	check_info(16 * MIB);
}

/* With the software GPU: a module's variables count while it is loaded, a library's while it is. */
static void check_variables(void)
{
	static const char text[] =
		".version 7.8\n.target sm_75\n.address_size 64\n"
		"/* .global .u32 comment[1000000]; */\n"
		".visible .global .align 4 .b8 table[4096][2560];\n"
		".visible .const .align 4 .u32 few[] = { 1, 2, 3 }; .global .v4 .f32 pair[2], one = { 1.0, 2.0, 3.0, 4.0 };\n"
		".visible .entry load(.param .u64 .ptr .global .align 8 from) {\n"
		"\t.reg .u64 a; .reg .u32 b; ld.param.u64 a, [from]; ld.global.u32 b, [a]; st.global.u32 [table], b; ret;\n}\n";
	const size_t bytes = 10 * MIB + 3 * 4 + 3 * 16;
	CUmodule module, other;
	CUlibrary library;
	CUcontext primary, second;
	CUdeviceptr a;
	OK(cuModuleLoadData(&module, text));
	check_info(16 * MIB - bytes);
	CHECK(cuModuleLoadData(&other, text) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAlloc(&a, 7 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	check_info(16 * MIB - bytes);
	OK(cuModuleUnload(module));
	check_info(16 * MIB);
	OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	check_info(16 * MIB - bytes);
	OK(cuLibraryUnload(library));
	check_info(16 * MIB);
	CHECK(cuModuleLoadData(&module, "nonsense") != CUDA_SUCCESS);
	/* The client has memory set aside, which it gives back. */
	OK(cuMemAlloc(&a, 12 * MIB));
	OK(cuMemFree(a));
	OK(cuModuleLoadData(&module, text));
	OK(cuModuleUnload(module));
	OK(cuCtxGetCurrent(&primary));
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuModuleLoadData(&module, text));
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(primary));
	check_info(16 * MIB);
}

/* quota [kept | variables] */
int main(int argc, char **argv)
{
	start();
	if (argc > 1 && !strcmp(argv[1], "kept")) {
		check_kept();
		end();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "variables")) {
		check_variables();
		check_declarations();
		end();
		return 0;
	}
	check_info(16 * MIB);
	check_linear();
	check_pitch();
	check_pools();
	check_context();
	check_arrays();
	check_limits();
	end();
	return 0;
}
