/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies in default streams, and those that wait for all work of contexts. */
#include "test/cuda/remote/peer.h"

#include <unistd.h>

/* In the default stream, a copy comes after the earlier work of both devices' default streams, and before the later. */
void default_streams_of_both(int current)
{
	struct held held;
	use(0);
	OK(cuMemsetD32(places[0].memory, 1, WORDS));
	OK(cuCtxSynchronize());
	hold_stream(&held, NULL);
	OK(cuMemsetD32Async(places[0].memory, 7, WORDS, NULL));
	use(1);
	OK(cuMemsetD32Async(places[1].memory, 5, WORDS, NULL));
	use(current);
	OK(cuMemcpyDtoD(places[1].memory, places[0].memory, BYTES - 4));
	use(0);
	OK(cuMemsetD32Async(places[0].memory, 8, WORDS, NULL));
	use(1);
	OK(cuMemsetD32Async(places[1].memory, 9, 1, NULL));
	EXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	release(&held);
	OK(cuStreamSynchronize(NULL));
	expect_word(places[1].memory, 9);
	expect_word(places[1].memory + 4, 7);
	expect_word(places[1].memory + BYTES - 8, 7);
	expect_word(places[1].memory + BYTES - 4, 5);
	use(0);
	OK(cuStreamSynchronize(NULL));
	expect_word(places[0].memory, 8);
}

/* Work in the current context's default stream comes before a copy in it and after it, whichever stream is held. */
void ordered_with_current(int which)
{
	struct held held;
	use(0);
	OK(cuMemsetD32(places[0].memory, 7, WORDS));
	OK(cuCtxSynchronize());
	use(1);
	OK(cuMemsetD32(places[1].memory, 5, WORDS));
	OK(cuCtxSynchronize());
	use(which);
	hold_stream(&held, NULL);
	use(2);
	OK(cuMemcpyDtoDAsync(places[1].memory, places[0].memory, BYTES, NULL));
	EXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	use(1);
	EXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	OK(cuMemcpyDtoHAsync(back, places[1].memory, 4, places[1].other));
	OK(cuStreamSynchronize(places[1].other));
	CHECK(back[0] == 5);
	release(&held);
	use(2);
	OK(cuStreamSynchronize(NULL));
	expect_word(places[1].memory, 7);
	expect_word(places[1].memory + BYTES - 4, 7);
}

/* A copy within one server, in the default stream of a context of another: the copy is in that stream's order. */
void default_stream_of_another_server(int current, int memory)
{
	struct held held;
	const size_t half = BYTES / 8 * 4;
	struct place *place = &places[memory];
	for (int how = 0; how < 4; how++) {
		uint32_t value = 100 + (uint32_t)how;
		use(memory);
		OK(cuMemsetD32(place->memory, 1, WORDS));
		OK(cuMemsetD32(place->memory, value, 4));
		OK(cuCtxSynchronize());
		use(current);
		hold_stream(&held, NULL);
		if (how == 0)
			OK(cuMemcpyDtoDAsync(place->memory + half, place->memory, half, NULL));
		else if (how == 1)
			OK(cuMemcpyDtoD(place->memory + half, place->memory, half));
		else if (how == 2)
			OK(cuMemcpyAsync(place->memory + half, place->memory, half, NULL));
		else
			OK(cuMemcpyPeerAsync(place->memory + half, place->context, place->memory, place->context, half, NULL));
		OK(cuEventRecord(places[current].event, NULL));
		usleep(20000); /* time for a copy that does not wait */
		use(memory);
		OK(cuMemcpyDtoHAsync(back, place->memory + half, 4, place->other));
		OK(cuStreamSynchronize(place->other));
		CHECK(back[0] == 1);
		release(&held);
		OK(cuEventSynchronize(places[current].event));
		OK(cuMemcpyDtoHAsync(back, place->memory + half, 20, place->other));
		OK(cuStreamSynchronize(place->other));
		CHECK(back[0] == value && back[3] == value && back[4] == 1);
	}
}

/* The calls that name contexts and are not asynchronous wait for all work of both contexts, and of the current one. */
void peer_copies_wait(void)
{
	struct place *a = &places[0], *b = &places[1];
	CUDA_MEMCPY3D_PEER box = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = a->memory, .srcContext = a->context,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = b->memory, .dstContext = b->context,
		.WidthInBytes = 64, .Height = 1, .Depth = 1,
	};
	for (int round = 0; round < 4; round++) {
		bool done[DEVICES] = { false };
		for (int i = 0; i < DEVICES; i++) {
			use(i);
			OK(cuLaunchHostFunc(places[i].stream, note_late, &done[i]));
		}
		if (round % 2)
			OK(cuMemcpy3DPeer(&box));
		else
			OK(cuMemcpyPeer(b->memory, b->context, a->memory, a->context, 64));
		for (int i = 0; i < DEVICES; i++)
			CHECK(__atomic_load_n(&done[i], __ATOMIC_ACQUIRE));
	}
}

/* cuMemcpyPeer within one server waits for the work of the current context, which is of another. */
void peer_copy_waits_for_current(int current, int memory)
{
	bool done = false;
	struct place *place = &places[memory];
	use(current);
	OK(cuLaunchHostFunc(places[current].stream, note_late, &done));
	OK(cuMemcpyPeer(place->memory + 4096, place->context, place->memory, place->context, 64));
	CHECK(__atomic_load_n(&done, __ATOMIC_ACQUIRE));
}
