/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between arrays and memory of several servers. */
#include "test/cuda/remote/peer.h"

#define ACROSS 700u
#define DOWN 300u
#define DEEP 3u

static CUarray make_array(int device, size_t width, size_t height, size_t depth)
{
	CUarray array;
	CUDA_ARRAY3D_DESCRIPTOR like = { .Width = width, .Height = height, .Depth = depth, .Format = CU_AD_FORMAT_UNSIGNED_INT32,
					 .NumChannels = 1 };
	use(device);
	OK(cuArray3DCreate(&array, &like));
	return array;
}

static void rows_between_servers(void)
{
	CUarray one = make_array(0, 64, 0, 0), other = make_array(1, 64, 0, 0);
	fill(31);
	OK(cuMemcpyHtoD(places[1].memory, there, 1024));
	OK(cuMemcpyDtoA(one, 0, places[1].memory, 256));
	OK(cuMemcpyAtoA(other, 4, one, 8, 128));
	OK(cuMemcpyAtoD(places[2].memory + 4, other, 4, 128));
	use(2);
	OK(cuCtxSynchronize());
	use(1);
	OK(cuCtxSynchronize());
	expect_at(places[2].memory + 4, there + 2, 128);
	EXPECT(cuMemcpyDtoA(one, 0, places[1].memory, 260), CUDA_ERROR_INVALID_VALUE);
	use(0);
	OK(cuArrayDestroy(one));
	use(1);
	OK(cuArrayDestroy(other));
}

/* From memory of server 1 to an array of server 0, from there to an array of server 2, and to the host, in a stream of server 1.
 * Earlier work of the stream is held, so no call may wait. */
static void boxes_between_arrays(void)
{
	struct held held;
	CUarray one = make_array(0, ACROSS, DOWN, DEEP), other = make_array(2, ACROSS + 5, DOWN + 7, DEEP + 1);
	uint32_t *pinned;
	const size_t row = 4 * ACROSS, size = row * DOWN * DEEP;
	fill(32);
	use(1);
	OK(cuMemHostAlloc((void **)&pinned, size, CU_MEMHOSTALLOC_PORTABLE));
	memset(pinned, 0, size);
	hold_stream(&held, places[1].stream);
	CUDA_MEMCPY3D up = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = places[1].memory, .srcPitch = row,
			     .srcHeight = DOWN, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = one, .WidthInBytes = row,
			     .Height = DOWN, .Depth = DEEP };
	OK(cuMemcpyHtoDAsync(places[1].memory, there, 64, places[1].other));
	OK(cuMemcpy3DAsync(&up, places[1].stream));
	CUDA_MEMCPY3D_PEER across = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = one, .srcContext = places[0].context,
				      .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = other, .dstXInBytes = 20, .dstY = 7,
				      .dstZ = 1, .dstContext = places[2].context, .WidthInBytes = row, .Height = DOWN,
				      .Depth = DEEP };
	OK(cuMemcpy3DPeerAsync(&across, places[1].stream));
	CUDA_MEMCPY3D down = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = other, .srcXInBytes = 20, .srcY = 7, .srcZ = 1,
			       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = pinned, .dstPitch = row, .dstHeight = DOWN,
			       .WidthInBytes = row, .Height = DOWN, .Depth = DEEP };
	OK(cuMemcpy3DAsync(&down, places[1].stream));
	OK(cuMemcpyHtoDAsync(places[1].memory, there, size, places[1].other)); /* before the first copy reads it */
	OK(cuStreamSynchronize(places[1].other));
	CHECK(!pinned[1]);
	release(&held);
	OK(cuStreamSynchronize(places[1].stream));
	CHECK(!memcmp(pinned, there, size));
	OK(cuMemcpy3DAsync(&up, places[1].stream)); /* which the end of the array waits for */
	use(0);
	OK(cuArrayDestroy(one));
	use(2);
	OK(cuArrayDestroy(other));
	OK(cuMemFreeHost(pinned));
	use(1);
	OK(cuStreamSynchronize(places[1].stream));
}

/* An array of server 0 and memory that is not pinned, in a stream of server 1. */
static void arrays_and_pageable_memory(CUstream stream)
{
	CUarray array = make_array(0, ACROSS, DOWN, 0);
	const size_t row = 4 * ACROSS, size = row * DOWN;
	CUDA_MEMCPY2D up = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = there, .srcPitch = row,
			     .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = array, .WidthInBytes = row, .Height = DOWN };
	CUDA_MEMCPY2D down = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = array, .dstMemoryType = CU_MEMORYTYPE_HOST,
			       .dstHost = back, .dstPitch = row, .WidthInBytes = row, .Height = DOWN };
	CUDA_MEMCPY2D across = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = places[1].memory, .srcPitch = row,
				 .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = array, .WidthInBytes = row, .Height = DOWN };
	for (uint32_t round = 0; round < 3; round++) {
		fill(60 + round);
		use(1);
		OK(cuMemsetD32Async(places[1].memory, round, WORDS, stream));
		OK(cuMemcpy2DAsync(&up, stream));
		memset(back, 0, size);
		OK(cuMemcpy2DAsync(&down, stream));
		OK(cuStreamSynchronize(stream));
		CHECK(!memcmp(back, there, size));
		OK(cuMemsetD32Async(places[1].memory, 70 + round, WORDS, stream));
		OK(cuMemcpy2DAsync(&across, stream));
		OK(cuMemcpy2DAsync(&down, stream));
		OK(cuStreamSynchronize(stream));
		CHECK(back[0] == 70 + round && back[size / 4 - 1] == 70 + round);
	}
	down.WidthInBytes++;
	EXPECT(cuMemcpy2DAsync(&down, stream), CUDA_ERROR_INVALID_VALUE);
	CUgraph graph;
	down.WidthInBytes--;
	if (stream) {
		CUgraphExec exec;
		OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
		OK(cuMemcpy2DAsync(&up, stream));
		OK(cuMemcpy2DAsync(&across, stream));
		OK(cuMemcpy2DAsync(&down, stream));
		OK(cuStreamEndCapture(stream, &graph));
		OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
		OK(cuMemsetD32Async(places[1].memory, 80, WORDS, stream));
		OK(cuGraphLaunch(exec, stream));
		OK(cuStreamSynchronize(stream));
		CHECK(back[0] == 80 && back[size / 4 - 1] == 80);
		OK(cuGraphExecDestroy(exec));
		OK(cuGraphDestroy(graph));
	}
	use(0);
	OK(cuArrayDestroy(array));
}

void arrays_between_servers(void)
{
	rows_between_servers();
	boxes_between_arrays();
	arrays_and_pageable_memory(places[1].stream);
	arrays_and_pageable_memory(NULL);
}
