/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between servers in all directions, as rows and boxes, by all kinds of calls. */
#include "test/cuda/remote/peer.h"

/* cuMemcpy is what cudaMemcpyDefault becomes: it finds out what each address is. */
void default_copies_in_all_directions(void)
{
	static const size_t sizes[] = { 4, 1000, 65537, BYTES };
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int from = 0; from < DEVICES; from++) {
			int to = (from + 1) % DEVICES;
			size_t size = sizes[i];
			fill((uint32_t)(7 * i) + (uint32_t)from);
			use((int)i % DEVICES);
			OK(cuMemcpy(places[from].memory, (CUdeviceptr)(uintptr_t)there, size));
			OK(cuMemcpy(places[to].memory, places[from].memory, size));
			memset(back, 0, size);
			OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, places[to].memory, size));
			CHECK(!memcmp(there, back, size));
			use(to);
			OK(cuMemsetD8(places[from].memory, 1, size));
			OK(cuCtxSynchronize()); /* for the fill, which neither its call nor the stream of the copy waits for */
			OK(cuMemcpyAsync(places[from].memory, places[to].memory, size, places[to].stream));
			OK(cuStreamSynchronize(places[to].stream));
			expect_at(places[from].memory, there, size);
		}
}

void peer_copies(void)
{
	struct place *a = &places[0], *b = &places[1];
	fill(99);
	use(2);
	OK(cuMemcpyHtoD(a->memory, there, BYTES));
	OK(cuMemcpyPeer(b->memory, b->context, a->memory, a->context, BYTES));
	expect_at(b->memory, there, BYTES);
	OK(cuMemsetD8(a->memory, 5, BYTES));
	OK(cuCtxSynchronize());
	OK(cuMemcpyPeerAsync(a->memory + 4, a->context, b->memory, b->context, BYTES - 4, places[2].stream));
	OK(cuStreamSynchronize(places[2].stream));
	expect_at(a->memory + 4, there, BYTES - 4);
	expect_word(a->memory, 0x05050505);
	OK(cuMemcpyDtoD(places[2].memory, a->memory + 4, 400));
	expect_at(places[2].memory, there, 400);
	OK(cuMemcpyPeer(b->memory, b->context, a->memory, a->context, 0));
	EXPECT(cuMemcpyPeer(b->memory, (CUcontext)1, a->memory, a->context, 4), CUDA_ERROR_INVALID_CONTEXT);
	EXPECT(cuMemcpyPeer(b->memory + 8, b->context, a->memory, a->context, BYTES), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyDtoD(b->memory, a->memory + 8, BYTES), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSynchronize());
}

/* A box in a and the same box in b, with other pitches; the bytes around it must stay. */
static void one_box(size_t width, size_t height, size_t depth, size_t rows_a, size_t rows_b, int how)
{
	size_t pitch_a = width + 5, pitch_b = width + 32, slice = width * height;
	struct place *a = &places[0], *b = &places[1];
	CUDA_MEMCPY3D in = {
		.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = there, .srcPitch = width, .srcHeight = height,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = a->memory, .dstPitch = pitch_a, .dstHeight = rows_a,
		.dstXInBytes = 3, .dstY = 1, .WidthInBytes = width, .Height = height, .Depth = depth,
	};
	CUDA_MEMCPY3D across = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = a->memory, .srcPitch = pitch_a, .srcHeight = rows_a,
		.srcXInBytes = 3, .srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = b->memory, .dstPitch = pitch_b, .dstHeight = rows_b,
		.dstXInBytes = 9, .dstY = 2, .WidthInBytes = width, .Height = height, .Depth = depth,
	};
	CUDA_MEMCPY3D_PEER peer = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = a->memory, .srcPitch = pitch_a, .srcHeight = rows_a,
		.srcXInBytes = 3, .srcY = 1, .srcContext = a->context,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = b->memory, .dstPitch = pitch_b, .dstHeight = rows_b,
		.dstXInBytes = 9, .dstY = 2, .dstContext = b->context, .WidthInBytes = width, .Height = height, .Depth = depth,
	};
	CUDA_MEMCPY3D out = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = b->memory, .srcPitch = pitch_b, .srcHeight = rows_b,
		.srcXInBytes = 9, .srcY = 2, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .dstPitch = width,
		.dstHeight = height, .WidthInBytes = width, .Height = height, .Depth = depth,
	};
	CHECK((rows_b * depth + 2) * pitch_b + 9 <= BYTES && rows_b >= height + 2 && rows_a >= height + 1);
	use(0);
	OK(cuMemcpy3D(&in));
	use(1);
	OK(cuMemsetD8(b->memory, 0xaa, BYTES));
	OK(cuCtxSynchronize());
	if (how == 0)
		OK(cuMemcpy3D(&across));
	else if (how == 1)
		OK(cuMemcpy3DAsync(&across, b->stream));
	else if (how == 2)
		OK(cuMemcpy3DPeer(&peer));
	else
		OK(cuMemcpy3DPeerAsync(&peer, b->stream));
	OK(cuStreamSynchronize(b->stream));
	memset(back, 0, slice * depth);
	OK(cuMemcpy3D(&out));
	CHECK(!memcmp(back, there, slice * depth));
	/* What lies before and behind each row. */
	OK(cuMemcpyDtoH(back, b->memory, BYTES));
	const uint8_t *all = (const uint8_t *)back;
	size_t inside = 0;
	for (size_t i = 0; i < BYTES; i++) {
		size_t x = i % pitch_b, y = i / pitch_b % rows_b, z = i / pitch_b / rows_b;
		bool in_box = x >= 9 && x < 9 + width && y >= 2 && y < 2 + height && z < depth;
		inside += in_box;
		CHECK(in_box || all[i] == 0xaa);
	}
	CHECK(inside == slice * depth);
}

void boxes(void)
{
	fill(3);
	for (int how = 0; how < 4; how++) {
		one_box(100, 7, 1, 8, 9, how);
		one_box(33, 5, 6, 6, 7, how);
		one_box(300000, 4, 3, 5, 6, how);
		one_box(1000, 1500, 4, 1501, 1502, how);
	}
	CUDA_MEMCPY2D flat = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = places[2].memory, .srcPitch = 64,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = places[0].memory, .dstPitch = 48,
		.WidthInBytes = 48, .Height = 10,
	};
	OK(cuMemcpyHtoD(places[2].memory, there, 640));
	OK(cuMemcpy2D(&flat));
	OK(cuMemcpyDtoH(back, places[0].memory, 480));
	for (size_t y = 0; y < 10; y++)
		CHECK(!memcmp((uint8_t *)back + 48 * y, (uint8_t *)there + 64 * y, 48));
}
