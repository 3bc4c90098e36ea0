/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of copies in streams, waits for events of other servers, and a ring of both. */
#include "test/cuda/remote/peer.h"

/* The copy reads the source when its stream arrives, and its stream waits for it. The call does not. */
void a_copy_is_in_its_streams_order(int from, int to, int stream_of)
{
	struct held held;
	struct place *place = &places[stream_of];
	CUstream stream = place->stream;
	use(from);
	OK(cuMemsetD32(places[from].memory, 1, WORDS));
	OK(cuCtxSynchronize());
	use(to);
	OK(cuMemsetD32(places[to].memory, 2, WORDS));
	OK(cuCtxSynchronize());
	use(stream_of);
	hold_stream(&held, stream);
	OK(cuMemcpyPeerAsync(places[to].memory, places[to].context, places[from].memory, places[from].context, BYTES, stream));
	OK(cuEventRecord(place->event, stream));
	EXPECT(cuEventQuery(place->event), CUDA_ERROR_NOT_READY);
	/* Other streams do not wait for it. */
	OK(cuMemsetD32Async(places[from].memory, 3, WORDS, places[from].other));
	OK(cuStreamSynchronize(places[from].other));
	expect_word(places[to].memory, 2);
	EXPECT(cuEventQuery(place->event), CUDA_ERROR_NOT_READY);
	release(&held);
	OK(cuEventSynchronize(place->event));
	expect_word(places[to].memory, 3);
	expect_word(places[to].memory + BYTES - 4, 3);
}

void events_of_another_server(void)
{
	struct held held;
	struct place *a = &places[0], *b = &places[1];
	CUevent none;
	use(0);
	OK(cuEventCreate(&none, CU_EVENT_DISABLE_TIMING));
	use(1);
	/* An event that was never recorded is complete. */
	OK(cuStreamWaitEvent(b->stream, none, 0));
	OK(cuStreamSynchronize(b->stream));
	use(0);
	hold_stream(&held, a->stream);
	OK(cuEventRecord(a->event, a->stream));
	use(1);
	OK(cuStreamWaitEvent(b->stream, a->event, 0));
	OK(cuStreamWaitEvent(NULL, a->event, 0));
	OK(cuEventRecord(b->event, b->stream));
	EXPECT(cuEventQuery(b->event), CUDA_ERROR_NOT_READY);
	EXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	/* The wait is for the record before it, not for a later one. */
	use(0);
	OK(cuEventRecord(a->event, a->other));
	OK(cuEventSynchronize(a->event));
	EXPECT(cuEventQuery(b->event), CUDA_ERROR_NOT_READY);
	use(1);
	OK(cuStreamWaitEvent(b->other, a->event, 0));
	OK(cuStreamSynchronize(b->other));
	/* Once the wait is issued the event may be destroyed. */
	use(0);
	OK(cuEventDestroy(none));
	release(&held);
	OK(cuEventSynchronize(b->event));
	OK(cuStreamSynchronize(a->stream));
	use(1);
	OK(cuStreamSynchronize(NULL));
	EXPECT(cuStreamWaitEvent(b->stream, none, 0), CUDA_ERROR_INVALID_HANDLE);
}

/* Streams of two servers that wait for each other in turns, several at once, and no host function blocks another. */
void waits_cross(void)
{
	for (int round = 0; round < 50; round++)
		for (int i = 0; i < DEVICES; i++) {
			struct place *here = &places[i], *next = &places[(i + 1) % DEVICES];
			use(i);
			OK(cuEventRecord(here->event, here->stream));
			OK(cuStreamWaitEvent(next->other, here->event, 0));
			OK(cuStreamWaitEvent(next->stream, here->event, 0));
			use((i + 1) % DEVICES);
			OK(cuEventRecord(next->event, next->other));
			OK(cuStreamWaitEvent(here->stream, next->event, 0));
		}
	for (int i = 0; i < DEVICES; i++) {
		OK(cuStreamSynchronize(places[i].stream));
		OK(cuStreamSynchronize(places[i].other));
	}
}

/* Two threads copy between the default streams of the same servers, in opposite directions. */
static void *opposite(void *argument)
{
	int from = argument ? 1 : 0, to = 1 - from;
	for (int round = 0; round < 40; round++) {
		use(round % DEVICES);
		OK(cuMemcpyDtoD(places[to].memory + (from ? 4096 : 0), places[from].memory + (from ? 4096 : 0), 4096));
	}
	return NULL;
}

void threads_do_not_block_each_other(void)
{
	pthread_t threads[2];
	fill(11);
	OK(cuMemcpyHtoD(places[0].memory, there, 8192));
	OK(cuMemcpyHtoD(places[1].memory + 4096, there, 4096));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, opposite, i ? places : NULL));
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < DEVICES; i++) {
		use(i);
		OK(cuCtxSynchronize());
	}
	expect_at(places[1].memory, there, 4096);
	expect_at(places[0].memory + 4096, there, 4096);
}

/* Memory, contexts and streams may be given up while a copy that uses them is under way. */
void ends_wait_for_copies(void)
{
	for (int round = 0; round < 5; round++) {
		CUcontext made;
		CUdeviceptr extra;
		CUstream stream;
		OK(cuCtxCreate(&made, NULL, 0, 0));
		OK(cuMemAlloc(&extra, BYTES));
		OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		OK(cuMemsetD32Async(extra, (uint32_t)round, WORDS, stream));
		OK(cuMemcpyDtoDAsync(places[1].memory, extra, BYTES, stream));
		OK(cuStreamDestroy(stream));
		if (round % 2)
			OK(cuMemFree(extra));
		OK(cuCtxDestroy(made));
		expect_word(places[1].memory, (uint32_t)round);
		expect_word(places[1].memory + BYTES - 4, (uint32_t)round);
	}
	/* The target too: a copy into freed memory would fail, and a later call would report it. */
	for (int round = 0; round < 5; round++) {
		CUdeviceptr extra;
		use(0);
		OK(cuMemAlloc(&extra, BYTES));
		use(1);
		OK(cuMemcpyDtoDAsync(extra, places[1].memory, BYTES, places[1].stream));
		OK(cuMemFree(extra));
		OK(cuCtxSynchronize());
		use(0);
		OK(cuCtxSynchronize());
	}
}

static void capture_fails(CUstream stream)
{
	CUgraph graph;
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

/* What a capture forbids is refused between servers too. Other streams copy meanwhile. Graphs of several servers: peer_graphs.c. */
void captures_forbid(void)
{
	struct place *a = &places[0], *b = &places[1];
	CUgraph graph;
	use(0);
	OK(cuMemsetD32(a->memory, 77, 4));
	OK(cuCtxSynchronize());
	OK(cuStreamBeginCapture(a->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(cuStreamWaitEvent(a->stream, b->event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	capture_fails(a->stream);
	OK(cuStreamBeginCapture(a->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuEventRecord(a->event, a->stream));
	use(1);
	OK(cuStreamWaitEvent(b->stream, a->event, 0));
	OK(cuMemsetD32Async(b->memory, 1, 4, b->stream));
	use(0);
	EXPECT(cuStreamEndCapture(a->stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	OK(cuEventRecord(a->event, a->other));
	OK(cuStreamBeginCapture(a->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemcpyPeerAsync(b->memory, b->context, a->memory, a->context, 16, a->other));
	OK(cuStreamSynchronize(a->other));
	OK(cuStreamEndCapture(a->stream, &graph));
	OK(cuGraphDestroy(graph));
	expect_word(b->memory + 12, 77);
}

void ring_round(uint32_t round, uint32_t words)
{
	for (int i = 0; i < DEVICES; i++) {
		struct place *here = &places[i], *next = &places[(i + 1) % DEVICES];
		OK(cuCtxSetCurrent(here->context));
		OK(cuMemsetD32Async(here->memory + 4 * (size_t)i, round, 1, here->stream));
		OK(cuMemcpyAsync(next->memory, here->memory, 4 * (size_t)words, here->stream));
		OK(cuEventRecord(here->event, here->stream));
		OK(cuStreamWaitEvent(next->stream, here->event, 0));
	}
}

void ring(void)
{
	fill(21);
	uint32_t words = 100000;
	OK(cuMemcpyHtoD(places[0].memory, there, 4 * words));
	for (uint32_t round = 1; round <= 30; round++)
		ring_round(round, words);
	for (int i = 0; i < DEVICES; i++) {
		OK(cuCtxSetCurrent(places[i].context));
		OK(cuStreamSynchronize(places[i].stream));
	}
	OK(cuMemcpyDtoH(back, places[0].memory, 4 * words));
	for (uint32_t i = 0; i < words; i++)
		CHECK(back[i] == (i < DEVICES ? 30 : there[i]));
}
