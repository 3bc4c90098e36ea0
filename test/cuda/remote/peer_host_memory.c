/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinned, pageable and managed memory in copies of several servers, and a stream of one server with memory of another. */
#include "test/cuda/remote/peer.h"

#define TAIL 4096 /* words */

/* What one server writes to pinned memory another one reads after it, whether the two have mapped the memory or not. */
void pinned_memory_is_awaited(int from, int to)
{
	struct place *a = &places[from], *b = &places[to];
	void *pinned;
	use(from);
	OK(cuMemHostAlloc(&pinned, BYTES, CU_MEMHOSTALLOC_PORTABLE));
	for (uint32_t round = 1; round <= 10; round++) {
		use(from);
		OK(cuMemsetD32Async(a->memory, round, WORDS, a->stream));
		OK(cuMemcpyDtoHAsync(pinned, a->memory, BYTES, a->stream));
		OK(cuEventRecord(a->event, a->stream));
		use(to);
		OK(cuStreamWaitEvent(b->stream, a->event, 0));
		OK(cuMemcpyHtoDAsync(b->memory, pinned, BYTES, b->stream));
		OK(cuStreamSynchronize(b->stream));
		expect_word(b->memory, round);
		expect_word(b->memory + BYTES - 4, round);
	}
	OK(cuMemFreeHost(pinned));
}

/* Two servers copy to the same memory, which neither has mapped. An event orders the copies. The second one is short, so that its
 * bytes are there before the last ones of the first copy, if nothing keeps them back. */
void copies_into_the_same_memory(int first, int second)
{
	struct place *a = &places[first], *b = &places[second];
	uint32_t *to = malloc(BYTES);
	CHECK(to);
	use(first);
	OK(cuMemHostRegister(to, BYTES, CU_MEMHOSTREGISTER_PORTABLE));
	for (uint32_t round = 1; round <= 10; round++) {
		use(first);
		OK(cuMemsetD32Async(a->memory, round, WORDS, a->stream));
		OK(cuMemcpyDtoHAsync(to, a->memory, BYTES, a->stream));
		OK(cuEventRecord(a->event, a->stream));
		use(second);
		OK(cuMemsetD32Async(b->memory, 1000 + round, WORDS, b->stream));
		OK(cuStreamWaitEvent(b->stream, a->event, 0));
		OK(cuMemcpyDtoHAsync(to + WORDS - TAIL, b->memory, 4 * TAIL, b->stream));
		OK(cuStreamSynchronize(b->stream));
		use(first);
		OK(cuStreamSynchronize(a->stream));
		for (uint32_t i = 0; i < WORDS; i++)
			CHECK(to[i] == (i < WORDS - TAIL ? round : 1000 + round));
	}
	OK(cuMemHostUnregister(to));
	free(to);
}

/* The calls do not wait for the stream, and the copies have its order. */
void memory_of_another_server(int streams, int memory)
{
	struct held held;
	const size_t size = 100000, words = size / 4;
	uint32_t *pinned;
	fill(41);
	use(streams);
	OK(cuMemHostAlloc((void **)&pinned, 3 * size, CU_MEMHOSTALLOC_PORTABLE));
	memset(pinned, 0, 3 * size);
	CUstream stream = places[streams].stream;
	CUdeviceptr at = places[memory].memory;
	hold_stream(&held, stream);
	OK(cuMemcpyHtoDAsync(at, pinned, size, stream));
	OK(cuMemcpyDtoDAsync(at + size, at, size, stream));
	OK(cuMemcpyPeerAsync(at + 2 * size, places[memory].context, at + size, places[memory].context, size, stream));
	OK(cuMemcpyDtoHAsync(pinned + words, at + 2 * size, size, stream));
	/* Every second word of 100 words, as rows; and then what the host has got goes up again. */
	CUDA_MEMCPY2D rows = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = at + size, .srcPitch = 8,
			       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = pinned + 2 * words, .dstPitch = 4,
			       .WidthInBytes = 4, .Height = 100 };
	OK(cuMemcpy2DAsync(&rows, stream));
	OK(cuMemcpyHtoDAsync(places[streams].memory, pinned + words, size, stream));
	uint32_t small[] = { 1, 2, 3, 4, 5 }; /* is read during the call */
	CUDA_MEMCPY2D spread = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = small, .srcPitch = 8,
				 .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = at + 3 * size, .dstPitch = 12,
				 .WidthInBytes = 4, .Height = 3 };
	OK(cuMemcpy2DAsync(&spread, stream));
	memset(small, 0, sizeof small);
	memcpy(pinned, there, size);
	release(&held);
	OK(cuStreamSynchronize(stream));
	CHECK(!memcmp(pinned + words, there, size));
	for (uint32_t i = 0; i < 100; i++)
		CHECK(pinned[2 * words + i] == there[2 * i]);
	expect_at(places[streams].memory, there, size);
	for (uint32_t i = 0; i < 3; i++)
		expect_word(at + 3 * size + 12 * i, 2 * i + 1);
	/* cuMemFreeHost waits for the copies; otherwise a fault would follow. */
	for (int i = 0; i < 20; i++)
		OK(cuMemcpyDtoHAsync(pinned, at, 3 * size, stream));
	OK(cuMemFreeHost(pinned));
	OK(cuStreamSynchronize(stream));
}

/* Managed memory of a server that the current context does not belong to. The host may use the memory when a call returns that is
 * not asynchronous, also where CUDA lets the call return early for other memory. */
void managed_memory_of_another_server(int current, int memory)
{
	const CUcontext of_target = places[memory].context;
	CUdeviceptr managed;
	use(memory);
	CUresult made = cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL);
	if (made == CUDA_ERROR_NOT_SUPPORTED)
		return; /* a server that maps no pinned memory has none */
	CHECK(made == CUDA_SUCCESS);
	volatile uint32_t *words = (uint32_t *)(uintptr_t)managed;
	for (int how = 0; how < 6; how++) {
		CUdeviceptr from = places[how < 4 ? memory : current].memory;
		CUcontext of_source = places[how < 4 ? memory : current].context;
		bool done = false;
		use(current);
		OK(cuMemsetD32(places[current].memory, 500, WORDS));
		OK(cuCtxSynchronize());
		use(memory);
		OK(cuMemsetD32(places[memory].memory, 500, WORDS));
		OK(cuMemsetD32(managed, 1, WORDS));
		OK(cuCtxSynchronize());
		OK(cuLaunchHostFunc(NULL, note_late, &done));
		use(current);
		switch (how) {
		case 0:
			OK(cuMemsetD32(managed, 500, WORDS));
			break;
		case 1:
			OK(cuMemcpy(managed, from, BYTES));
			break;
		case 2:
		case 4:
			OK(cuMemcpyDtoD(managed, from, BYTES));
			break;
		default:
			OK(cuMemcpyPeer(managed, of_target, from, of_source, BYTES));
		}
		CHECK(words[0] == 500 && words[WORDS - 1] == 500);
		words[7] = 9;
		use(memory);
		OK(cuCtxSynchronize());
		CHECK(words[7] == 9);
	}
	OK(cuMemFree(managed));
}

/* A small copy is behind a kernel of the first server. The kernel ends by a copy from the second server, whose stream the program
 * lets go on after it has changed the source: by the end of a host function, or by a call. */
void source_changes(bool by_call)
{
	struct place *first = &places[0], *second = &places[1];
	CUdeviceptr flag = first->memory + 4096, value = second->memory, gate = second->memory + 4096;
	struct held held;
	uint32_t *source;
	use(0);
	OK(cuMemHostAlloc((void **)&source, 64, 0));
	for (uint32_t round = 1; round <= 5; round++) {
		use(0);
		source[0] = 1;
		OK(cuMemsetD32(flag, 0, 1));
		OK(cuCtxSynchronize());
		hold(first->stream, flag);
		OK(cuMemcpyHtoDAsync(first->memory, source, 64, first->stream));
		use(1);
		OK(cuMemsetD32(gate, 0, 1));
		OK(cuMemsetD32(value, 1, 1));
		OK(cuCtxSynchronize());
		if (by_call)
			OK(cuStreamWaitValue32(second->stream, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
		else
			hold_stream(&held, second->stream);
		OK(cuMemcpyPeerAsync(flag, first->context, value, second->context, 4, second->stream));
		source[0] = 100 + round;
		if (by_call)
			OK(cuStreamWriteValue32(second->other, gate, 1, 0));
		else
			release(&held);
		use(0);
		OK(cuStreamSynchronize(first->stream));
		expect_word(first->memory, 100 + round);
	}
	OK(cuMemFreeHost(source));
}
