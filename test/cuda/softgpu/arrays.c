/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays: which can be created, every shape of copy to, from and between them, and the objects that refer to them. */
#include "driver.h"

static CUarray array_of(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
			unsigned flags)
{
	CUarray array;
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { width, height, depth, format, channels, flags };
	OK(cuArray3DCreate(&array, &descriptor));
	return array;
}

static void descriptors_are_checked_and_told_again(void)
{
	static const struct {
		CUDA_ARRAY3D_DESCRIPTOR descriptor;
		CUresult want;
	} cases[] = {
		{ { 100, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, CUDA_SUCCESS },
		{ { 100, 30, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUDA_ARRAY3D_SURFACE_LDST }, CUDA_SUCCESS },
		{ { 10, 20, 30, CU_AD_FORMAT_HALF, 2, 0 }, CUDA_SUCCESS },
		{ { 10, 0, 7, CU_AD_FORMAT_SIGNED_INT16, 1, CUDA_ARRAY3D_LAYERED }, CUDA_SUCCESS },
		{ { 10, 5, 7, CU_AD_FORMAT_UNORM_INT8X2, 2, CUDA_ARRAY3D_LAYERED }, CUDA_SUCCESS },
		{ { 16, 16, 6, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_CUBEMAP }, CUDA_SUCCESS },
		{ { 16, 16, 12, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED }, CUDA_SUCCESS },
		{ { 8, 8, 0, CU_AD_FORMAT_UNORM_INT_101010_2, 4, CUDA_ARRAY3D_TEXTURE_GATHER }, CUDA_SUCCESS },
		{ { 0, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, CUDA_ERROR_INVALID_VALUE },
		{ { 8, 8, 0, CU_AD_FORMAT_FLOAT, 3, 0 }, CUDA_ERROR_INVALID_VALUE },
		{ { 8, 8, 0, (CUarray_format)0x44, 1, 0 }, CUDA_ERROR_INVALID_VALUE },
		{ { 8, 0, 8, CU_AD_FORMAT_FLOAT, 1, 0 }, CUDA_ERROR_INVALID_VALUE },
		{ { 8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED }, CUDA_ERROR_INVALID_VALUE },
		{ { 16, 15, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP }, CUDA_ERROR_INVALID_VALUE },
		{ { 16, 16, 7, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP }, CUDA_ERROR_INVALID_VALUE },
		{ { 16, 16, 8, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED },
		  CUDA_ERROR_INVALID_VALUE },
		{ { 131073, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0 }, CUDA_ERROR_INVALID_VALUE },
		{ { 8, 8, 20000, CU_AD_FORMAT_FLOAT, 1, 0 }, CUDA_ERROR_INVALID_VALUE },
		{ { 8, 0, 0, CU_AD_FORMAT_UNORM_INT8X2, 4, 0 }, CUDA_ERROR_INVALID_VALUE },
		{ { 8, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0x8000 }, CUDA_ERROR_INVALID_VALUE },
		{ { 8, 8, 0, CU_AD_FORMAT_NV12, 1, 0 }, CUDA_ERROR_NOT_SUPPORTED },
		{ { 8, 8, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0 }, CUDA_ERROR_NOT_SUPPORTED },
		{ { 8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE }, CUDA_ERROR_NOT_SUPPORTED },
	};
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		CUarray array = NULL;
		CUDA_ARRAY3D_DESCRIPTOR told;
		CUDA_ARRAY_DESCRIPTOR flat;
		CUresult got = cuArray3DCreate(&array, &cases[n].descriptor);
		if (got != cases[n].want) {
			fprintf(stderr, "case %zu: %d, want %d\n", n, (int)got, (int)cases[n].want);
			exit(1);
		}
		if (got)
			continue;
		OK(cuArray3DGetDescriptor(&told, array));
		CHECK(told.Width == cases[n].descriptor.Width && told.Height == cases[n].descriptor.Height &&
		      told.Depth == cases[n].descriptor.Depth && told.Format == cases[n].descriptor.Format &&
		      told.NumChannels == cases[n].descriptor.NumChannels && told.Flags == cases[n].descriptor.Flags);
		OK(cuArrayGetDescriptor(&flat, array));
		CHECK(flat.Width == told.Width && flat.Height == told.Height);
		OK(cuArrayDestroy(array));
		EXPECT(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
		EXPECT(cuArray3DGetDescriptor(&told, array), CUDA_ERROR_INVALID_HANDLE);
	}
}

static void arrays_count_against_the_device_and_are_nobodys_to_free(void)
{
	size_t before, after, total;
	OK(cuMemGetInfo(&before, &total));
	CUarray array = array_of(1024, 256, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	OK(cuMemGetInfo(&after, &total));
	CHECK(before - after >= 1024 * 256 * 4);
	CUarray plane;
	CUDA_ARRAY_SPARSE_PROPERTIES sparse;
	CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
	EXPECT(cuArrayGetPlane(&plane, array, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuArrayGetSparseProperties(&sparse, array), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuArrayGetMemoryRequirements(&requirements, array, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(array));
	OK(cuMemGetInfo(&after, &total));
	CHECK(before == after);
}

static void rows_go_in_and_out(void)
{
	unsigned char host[64], back[64];
	CUdeviceptr device;
	CUstream stream;
	CUarray one = array_of(16, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0), two = array_of(16, 0, 0, CU_AD_FORMAT_SIGNED_INT32,
										   1, 0);
	CUarray flat = array_of(16, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0), wide = array_of(8, 0, 0, CU_AD_FORMAT_FLOAT, 2, 0);
	for (int n = 0; n < 64; n++)
		host[n] = (unsigned char)(n * 5 + 1);
	OK(cuMemAlloc(&device, 64));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemcpyHtoA(one, 0, host, 64));
	OK(cuMemcpyAtoA(two, 16, one, 8, 32));
	OK(cuMemcpyAtoD(device, two, 16, 32));
	OK(cuMemcpyDtoH(back, device, 32));
	CHECK(!memcmp(back, host + 8, 32));
	OK(cuMemcpyDtoA(one, 4, device, 16));
	OK(cuMemcpyAtoHAsync(back, one, 0, 64, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(!memcmp(back, host, 4) && !memcmp(back + 4, host + 8, 16) && !memcmp(back + 20, host + 20, 44));
	OK(cuMemcpyHtoAAsync(one, 60, host, 4, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyAtoH(back, one, 56, 8));
	CHECK(!memcmp(back, host + 56, 4) && !memcmp(back + 4, host, 4));
	EXPECT(cuMemcpyHtoA(one, 4, host, 64), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoA(one, 2, host, 4), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoA(one, 0, host, 6), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoA(flat, 0, host, 64), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoA(NULL, 0, host, 64), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuMemcpyAtoA(wide, 0, one, 0, 8), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(one));
	OK(cuArrayDestroy(two));
	OK(cuArrayDestroy(flat));
	OK(cuArrayDestroy(wide));
	OK(cuMemFree(device));
	OK(cuStreamDestroy(stream));
}

/* A box from host to array, part of it to another array of another width, from there to pitched device memory, back. */
static void boxes_keep_their_place(void)
{
	enum { W = 10, H = 6, D = 4 };
	static unsigned short host[D][H][W], back[D][H][W];
	CUarray a = array_of(W, H, D, CU_AD_FORMAT_UNSIGNED_INT16, 1, 0);
	CUarray b = array_of(W + 3, H, D + 1, CU_AD_FORMAT_UNSIGNED_INT16, 1, CUDA_ARRAY3D_LAYERED);
	CUdeviceptr device;
	for (int n = 0; n < W * H * D; n++)
		host[n / W / H][n / W % H][n % W] = (unsigned short)(n * 97);
	OK(cuMemAlloc(&device, 64 * 8 * D));
	CUDA_MEMCPY3D in = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = W * 2, .srcHeight = H,
			     .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a, .WidthInBytes = W * 2, .Height = H,
			     .Depth = D };
	OK(cuMemcpy3D(&in));
	CUDA_MEMCPY3D across = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a, .srcXInBytes = 4, .srcY = 1,
				 .srcZ = 1,
				 .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = b, .dstXInBytes = 10, .dstY = 2,
				 .dstZ = 3,
				 .WidthInBytes = 12, .Height = 4, .Depth = 2 };
	OK(cuMemcpy3D(&across));
	CUDA_MEMCPY3D out = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = b, .srcXInBytes = 10, .srcY = 2,
			      .srcZ = 3,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = device, .dstPitch = 64,
			      .dstHeight = 8,
			      .WidthInBytes = 12, .Height = 4, .Depth = 2 };
	OK(cuMemcpy3DAsync(&out, NULL));
	CUDA_MEMCPY3D down = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = device, .srcPitch = 64,
			       .srcHeight = 8,
			       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .dstPitch = W * 2, .dstHeight = H,
			       .WidthInBytes = 12, .Height = 4, .Depth = 2 };
	OK(cuMemcpy3D(&down));
	for (int n = 0; n < 6 * 4 * 2; n++)
		CHECK(back[n / 24][n / 6 % 4][n % 6] == host[n / 24 + 1][n / 6 % 4 + 1][n % 6 + 2]);
	CUDA_MEMCPY2D flat = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a, .srcXInBytes = 6, .srcY = 5,
			       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .WidthInBytes = 14, .Height = 1 };
	OK(cuMemcpy2D(&flat));
	CHECK(!memcmp(back, &host[0][5][3], 14));
	flat.WidthInBytes = 16;
	EXPECT(cuMemcpy2D(&flat), CUDA_ERROR_INVALID_VALUE);
	flat.WidthInBytes = 13;
	EXPECT(cuMemcpy2DUnaligned(&flat), CUDA_ERROR_INVALID_VALUE);
	across.dstZ = 4;
	EXPECT(cuMemcpy3D(&across), CUDA_ERROR_INVALID_VALUE);
	across.dstArray = (CUarray)&across;
	EXPECT(cuMemcpy3D(&across), CUDA_ERROR_INVALID_HANDLE);
	OK(cuArrayDestroy(a));
	OK(cuArrayDestroy(b));
	OK(cuMemFree(device));
}

static void levels_halve(void)
{
	CUmipmappedArray mipmap;
	CUarray level;
	CUDA_ARRAY3D_DESCRIPTOR told, descriptor = { 20, 9, 0, CU_AD_FORMAT_FLOAT, 1, 0 };
	static const size_t want[5][2] = { { 20, 9 }, { 10, 4 }, { 5, 2 }, { 2, 1 }, { 1, 1 } };
	OK(cuMipmappedArrayCreate(&mipmap, &descriptor, 99));
	for (unsigned n = 0; n < 5; n++) {
		float up[20], down[20];
		OK(cuMipmappedArrayGetLevel(&level, mipmap, n));
		OK(cuArray3DGetDescriptor(&told, level));
		CHECK(told.Width == want[n][0] && told.Height == want[n][1] && told.Depth == 0);
		for (int i = 0; i < 20; i++)
			up[i] = (float)(100 * n + (unsigned)i);
		CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = up,
				       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
				       .dstArray = level, .dstY = told.Height - 1, .WidthInBytes = told.Width * 4,
					       .Height = 1 };
		OK(cuMemcpy2D(&copy));
		CUDA_MEMCPY2D back = { .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = down,
				       .srcMemoryType = CU_MEMORYTYPE_ARRAY,
				       .srcArray = level, .srcY = told.Height - 1, .WidthInBytes = told.Width * 4,
					       .Height = 1 };
		OK(cuMemcpy2D(&back));
		CHECK(!memcmp(up, down, told.Width * 4));
		EXPECT(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
	}
	EXPECT(cuMipmappedArrayGetLevel(&level, mipmap, 5), CUDA_ERROR_INVALID_VALUE);
	OK(cuMipmappedArrayDestroy(mipmap));
	EXPECT(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuArray3DGetDescriptor(&told, level), CUDA_ERROR_INVALID_HANDLE);
	CUDA_ARRAY3D_DESCRIPTOR layers = { 8, 8, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED };
	OK(cuMipmappedArrayCreate(&mipmap, &layers, 2));
	OK(cuMipmappedArrayGetLevel(&level, mipmap, 1));
	OK(cuArray3DGetDescriptor(&told, level));
	CHECK(told.Width == 4 && told.Height == 4 && told.Depth == 3);
	EXPECT(cuMipmappedArrayGetLevel(&level, mipmap, 2), CUDA_ERROR_INVALID_VALUE);
	OK(cuMipmappedArrayDestroy(mipmap));
}

static void objects_are_checked_and_told_again(void)
{
	CUtexObject texture = 0;
	CUsurfObject surface = 0;
	CUDA_RESOURCE_DESC told;
	CUDA_TEXTURE_DESC told_texture;
	CUDA_RESOURCE_VIEW_DESC told_view;
	CUarray ints = array_of(16, 8, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
	CUarray bytes = array_of(16, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0);
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = ints };
	CUDA_TEXTURE_DESC linear = { .filterMode = CU_TR_FILTER_MODE_LINEAR, .maxAnisotropy = 3 };
	CUDA_TEXTURE_DESC point = { .addressMode = { CU_TR_ADDRESS_MODE_BORDER }, .flags = CU_TRSF_READ_AS_INTEGER };
	EXPECT(cuTexObjectCreate(&texture, &resource, &linear, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexObjectCreate(&texture, &resource, &point, NULL));
	OK(cuTexObjectGetResourceDesc(&told, texture));
	CHECK(told.resType == CU_RESOURCE_TYPE_ARRAY && told.res.array.hArray == ints);
	OK(cuTexObjectGetTextureDesc(&told_texture, texture));
	CHECK(told_texture.addressMode[0] == CU_TR_ADDRESS_MODE_BORDER &&
	      told_texture.flags == CU_TRSF_READ_AS_INTEGER);
	EXPECT(cuTexObjectGetResourceViewDesc(&told_view, texture), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuTexObjectGetResourceDesc(NULL, texture), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuTexObjectGetTextureDesc(NULL, texture), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuSurfObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexObjectDestroy(texture));
	EXPECT(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuTexObjectGetTextureDesc(&told_texture, texture), CUDA_ERROR_INVALID_VALUE);
	OK(cuSurfObjectCreate(&surface, &resource));
	OK(cuSurfObjectGetResourceDesc(&told, surface));
	EXPECT(cuSurfObjectGetResourceDesc(NULL, surface), CUDA_ERROR_INVALID_VALUE);
	CHECK(told.res.array.hArray == ints);
	OK(cuSurfObjectDestroy(surface));
	resource.res.array.hArray = bytes;
	EXPECT(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexObjectCreate(&texture, &resource, &linear, NULL)); /* bytes that become floats */
	OK(cuTexObjectDestroy(texture));
	linear.flags = CU_TRSF_READ_AS_INTEGER;
	EXPECT(cuTexObjectCreate(&texture, &resource, &linear, NULL), CUDA_ERROR_INVALID_VALUE);
	CUDA_RESOURCE_VIEW_DESC view = { .format = CU_RES_VIEW_FORMAT_UINT_1X32, .width = 16, .height = 8 };
	OK(cuTexObjectCreate(&texture, &resource, &point, &view));
	OK(cuTexObjectGetResourceViewDesc(&told_view, texture));
	EXPECT(cuTexObjectGetResourceViewDesc(NULL, texture), CUDA_ERROR_INVALID_VALUE);
	CHECK(told_view.format == CU_RES_VIEW_FORMAT_UINT_1X32 && told_view.width == 16);
	OK(cuTexObjectDestroy(texture));
	view.width = 15;
	EXPECT(cuTexObjectCreate(&texture, &resource, &point, &view), CUDA_ERROR_INVALID_VALUE);
	view = (CUDA_RESOURCE_VIEW_DESC){ .format = CU_RES_VIEW_FORMAT_UINT_1X8, .width = 16, .height = 8 };
	EXPECT(cuTexObjectCreate(&texture, &resource, &point, &view), CUDA_ERROR_INVALID_VALUE);
	view = (CUDA_RESOURCE_VIEW_DESC){ .format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1, .width = 64, .height = 32 };
	EXPECT(cuTexObjectCreate(&texture, &resource, &point, &view), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuArrayDestroy(ints));
	OK(cuArrayDestroy(bytes));
	EXPECT(cuTexObjectCreate(&texture, &resource, &point, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void linear_memory_must_be_there_and_aligned(void)
{
	CUdeviceptr memory;
	CUtexObject texture;
	CUDA_TEXTURE_DESC point = { .flags = CU_TRSF_READ_AS_INTEGER };
	OK(cuMemAlloc(&memory, 4096));
	CUDA_RESOURCE_DESC row = { .resType = CU_RESOURCE_TYPE_LINEAR, .res.linear = { memory, CU_AD_FORMAT_FLOAT, 1,
										       4096 } };
	OK(cuTexObjectCreate(&texture, &row, &point, NULL));
	OK(cuTexObjectDestroy(texture));
	row.res.linear.sizeInBytes = 4100;
	EXPECT(cuTexObjectCreate(&texture, &row, &point, NULL), CUDA_ERROR_INVALID_VALUE);
	row.res.linear.sizeInBytes = 64;
	row.res.linear.devPtr = memory + 16;
	EXPECT(cuTexObjectCreate(&texture, &row, &point, NULL), CUDA_ERROR_INVALID_VALUE);
	CUDA_RESOURCE_DESC rows = { .resType = CU_RESOURCE_TYPE_PITCH2D,
				    .res.pitch2D = { memory, CU_AD_FORMAT_UNSIGNED_INT8, 4, 20, 32, 128 } };
	OK(cuTexObjectCreate(&texture, &rows, &point, NULL));
	OK(cuTexObjectDestroy(texture));
	rows.res.pitch2D.height = 33;
	EXPECT(cuTexObjectCreate(&texture, &rows, &point, NULL), CUDA_ERROR_INVALID_VALUE);
	rows.res.pitch2D.height = 2;
	rows.res.pitch2D.pitchInBytes = 100;
	EXPECT(cuTexObjectCreate(&texture, &rows, &point, NULL), CUDA_ERROR_INVALID_VALUE);
	rows.res.pitch2D.pitchInBytes = 64;
	EXPECT(cuTexObjectCreate(&texture, &rows, &point, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(memory));
	EXPECT(cuTexObjectCreate(&texture, &row, &point, NULL), CUDA_ERROR_INVALID_VALUE);
	size_t most;
	OK(cuDeviceGetTexture1DLinearMaxWidth(&most, CU_AD_FORMAT_FLOAT, 4, 0));
	CHECK(most == 1u << 28);
}

static void a_context_takes_its_arrays_along(void)
{
	CUcontext context, before;
	size_t free_before, free_after, total;
	CUtexObject texture;
	OK(cuCtxGetCurrent(&before));
	OK(cuMemGetInfo(&free_before, &total));
	OK(cuCtxCreate(&context, NULL, 0, 0));
	CUarray array = array_of(1000, 100, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array };
	CUDA_TEXTURE_DESC point = { .flags = 0 };
	OK(cuTexObjectCreate(&texture, &resource, &point, NULL));
	OK(cuCtxDestroy(context));
	OK(cuCtxSetCurrent(before));
	EXPECT(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemGetInfo(&free_after, &total));
	CHECK(free_before == free_after);
}

static void a_capture_takes_copies_and_refuses_arrays(void)
{
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	unsigned host[4] = { 1, 2, 3, 4 }, back[4] = { 0 };
	CUarray array = array_of(4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0), other;
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { 4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0 };
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(cuMemcpyHtoAAsync(array, 0, host, 16, stream));
	OK(cuMemcpyAtoHAsync(back, array, 4, 12, stream));
	EXPECT(cuMemcpyAtoHAsync(back, array, 8, 12, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamEndCapture(stream, &graph));
	CHECK(back[0] == 0);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(back[0] == 2 && back[2] == 4 && back[3] == 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	EXPECT(cuArray3DCreate(&other, &descriptor), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK(cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS);
	OK(cuArrayDestroy(array));
	OK(cuStreamDestroy(stream));
}

int main(void)
{
	start();
	descriptors_are_checked_and_told_again();
	arrays_count_against_the_device_and_are_nobodys_to_free();
	rows_go_in_and_out();
	boxes_keep_their_place();
	levels_halve();
	objects_are_checked_and_told_again();
	linear_memory_must_be_there_and_aligned();
	a_capture_takes_copies_and_refuses_arrays();
	a_context_takes_its_arrays_along();
	return 0;
}
