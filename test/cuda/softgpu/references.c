/* SPDX-License-Identifier: BSD-3-Clause */
/* Texture and surface references of a module: bound by cuTexRefSet… and cuSurfRefSetArray, read by a kernel. */
#include "driver.h"

/* CUDA calls them deprecated, and has them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const char ptx[] =
	".version 8.4\n.target sm_75\n.address_size 64\n"
	".global .texref colours;\n.global .surfref target;\n.global .u32 plain;\n"
	".visible .entry fetch(.param .u64 out)\n{\n"
	".reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<9>;\n"
	"ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n"
	"cvt.rn.f32.u32 %f1, %r1; add.f32 %f1, %f1, 0f3f000000; mov.f32 %f2, 0f3f000000;\n"
	"tex.2d.v4.u32.f32 {%r2,%r3,%r4,%r5}, [colours, {%f1,%f2}];\n"
	"st.global.u32 [%d1], %r2; ret;\n}\n"
	".visible .entry store()\n{\n.reg .b32 %r<9>;\n"
	"mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; add.u32 %r3, %r1, 500; sust.b.1d.b32.trap [target, {%r2}], {%r3}; ret;\n}\n";

static CUdeviceptr out;
static CUmodule module;

static void run(const char *name, unsigned threads)
{
	CUfunction function;
	void *parameters[] = { &out };
	OK(cuModuleGetFunction(&function, module, name));
	OK(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
}

static void read_back(unsigned *values, unsigned count)
{
	run("fetch", count);
	OK(cuMemcpyDtoH(values, out, count * 4));
}

static void an_array_is_read_with_the_modes_that_were_set(CUtexref reference)
{
	unsigned host[8], got[8];
	CUarray array, told;
	CUaddress_mode mode;
	CUarray_format format;
	int channels;
	unsigned flags;
	CUDA_ARRAY_DESCRIPTOR descriptor = { 4, 1, CU_AD_FORMAT_UNSIGNED_INT32, 1 };
	for (unsigned n = 0; n < 8; n++)
		host[n] = 1000 + n;
	OK(cuArrayCreate(&array, &descriptor));
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host,
			       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			       .dstArray = array, .WidthInBytes = 16, .Height = 1 };
	OK(cuMemcpy2D(&copy));
	EXPECT(cuTexRefGetArray(&told, reference), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexRefSetArray(reference, array, CU_TRSA_OVERRIDE_FORMAT));
	OK(cuTexRefSetFlags(reference, CU_TRSF_READ_AS_INTEGER));
	read_back(got, 8);
	for (unsigned n = 0; n < 8; n++)
		CHECK(got[n] == 1000 + (n < 4 ? n : 3));
	OK(cuTexRefSetAddressMode(reference, 0, CU_TR_ADDRESS_MODE_BORDER));
	read_back(got, 8);
	CHECK(got[3] == 1003 && got[4] == 0 && got[7] == 0);
	OK(cuTexRefGetArray(&told, reference));
	CHECK(told == array);
	OK(cuTexRefGetAddressMode(&mode, reference, 0));
	CHECK(mode == CU_TR_ADDRESS_MODE_BORDER);
	OK(cuTexRefGetFormat(&format, &channels, reference));
	CHECK(format == CU_AD_FORMAT_UNSIGNED_INT32 && channels == 1);
	OK(cuTexRefGetFlags(&flags, reference));
	CHECK(flags == CU_TRSF_READ_AS_INTEGER);
	EXPECT(cuTexRefSetAddressMode(reference, 3, CU_TR_ADDRESS_MODE_CLAMP), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(array));
}

static void linear_memory_is_read_from_its_offset(CUtexref reference)
{
	unsigned host[16], got[4];
	size_t offset;
	CUdeviceptr memory, told;
	for (unsigned n = 0; n < 16; n++)
		host[n] = 70 + n;
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemcpyHtoD(memory, host, 64));
	OK(cuTexRefSetFormat(reference, CU_AD_FORMAT_UNSIGNED_INT32, 1));
	OK(cuTexRefSetAddress(&offset, reference, memory + 16, 16));
	CHECK(offset == 16);
	read_back(got, 4);
	CHECK(got[0] == 70 && got[3] == 73);
	OK(cuTexRefGetAddress(&told, reference));
	CHECK(told == memory + 16);
	EXPECT(cuTexRefSetAddress(NULL, reference, memory + 16, 16), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuTexRefSetAddress(&offset, reference, memory, 128), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(memory));
}

static void a_surface_is_written(void)
{
	CUsurfref reference, again;
	CUarray array, plain, told;
	unsigned got[8];
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { 8, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST };
	OK(cuModuleGetSurfRef(&reference, module, "target"));
	OK(cuModuleGetSurfRef(&again, module, "target"));
	CHECK(reference == again);
	EXPECT(cuSurfRefGetArray(&told, reference), CUDA_ERROR_INVALID_VALUE);
	OK(cuArray3DCreate(&array, &descriptor));
	descriptor.Flags = 0;
	OK(cuArray3DCreate(&plain, &descriptor));
	EXPECT(cuSurfRefSetArray(reference, plain, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuSurfRefSetArray(reference, array, 0));
	OK(cuSurfRefGetArray(&told, reference));
	CHECK(told == array);
	run("store", 8);
	OK(cuMemcpyAtoH(got, array, 0, 32));
	for (unsigned n = 0; n < 8; n++)
		CHECK(got[n] == 500 + n);
	OK(cuArrayDestroy(array));
	OK(cuArrayDestroy(plain));
}

int main(void)
{
	CUtexref reference, again, lone;
	CUsurfref surface;
	start();
	OK(cuModuleLoadData(&module, ptx));
	OK(cuMemAlloc(&out, 64));
	EXPECT(cuModuleGetTexRef(&reference, module, "nothing"), CUDA_ERROR_NOT_FOUND);
	EXPECT(cuModuleGetTexRef(&reference, module, "plain"), CUDA_ERROR_NOT_FOUND);
	EXPECT(cuModuleGetSurfRef(&surface, module, "colours"), CUDA_ERROR_NOT_FOUND);
	EXPECT(cuModuleGetTexRef(NULL, module, "colours"), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuModuleGetTexRef(&reference, module, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuModuleGetSurfRef(NULL, module, "target"), CUDA_ERROR_INVALID_VALUE);
	OK(cuModuleGetTexRef(&reference, module, "colours"));
	OK(cuModuleGetTexRef(&again, module, "colours"));
	CHECK(reference == again);
	an_array_is_read_with_the_modes_that_were_set(reference);
	linear_memory_is_read_from_its_offset(reference);
	a_surface_is_written();
	EXPECT(cuTexRefDestroy(reference), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexRefCreate(&lone));
	OK(cuTexRefSetMaxAnisotropy(lone, 4));
	OK(cuTexRefDestroy(lone));
	OK(cuModuleUnload(module));
	EXPECT(cuTexRefSetFlags(reference, 0), CUDA_ERROR_INVALID_HANDLE);
	return 0;
}
