/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and waits between the GPUs of three servers.
 *	peer all      copies in all shapes and directions, their order in streams, waits for events, a ring; the second server
 *	              maps no pinned memory
 *	peer defaults the order of copies in default streams; also for three GPUs of one server
 *	peer beside   copies in default streams; the current context is of another GPU of the target's server
 *	peer events   waits for events of another server, until a line comes from stdin
 *	peer shapes   only the copies, and the ring
 *	peer source   the source of a copy to a server changes before a copy from another server lets its stream go on
 *	peer waiting  with drivers that wait for all streams before they allocate memory or load code (refusing.c)
 *	peer queues   with drivers whose streams share a hardware queue (refusing.c)
 *	peer death    writes a line and reads one from stdin; by then the second server's workers must have been killed
 */
#include "test/cuda/softgpu/driver.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#define DEVICES 3
#define BYTES ((9u << 20) + 12) /* several pieces of a copy by way of the client, and a rest */
#define WORDS (BYTES / 4)
#define TAIL 4096 /* words */

static struct place {
	CUcontext context;
	CUstream stream, other; /* neither waits for the default stream */
	CUevent event;
	CUdeviceptr memory;
} places[DEVICES];

static uint32_t *there, *back; /* WORDS words */

static void use(int device)
{
	OK(cuCtxSetCurrent(places[device].context));
}

static void set_up(void)
{
	there = malloc(BYTES);
	back = malloc(BYTES);
	for (int i = 0; i < DEVICES; i++) {
		struct place *place = &places[i];
		OK(cuDevicePrimaryCtxRetain(&place->context, i));
		use(i);
		OK(cuStreamCreate(&place->stream, CU_STREAM_NON_BLOCKING));
		OK(cuStreamCreate(&place->other, CU_STREAM_NON_BLOCKING));
		OK(cuEventCreate(&place->event, 0));
		OK(cuMemAlloc(&place->memory, BYTES));
	}
}

static void tear_down(struct place *place)
{
	OK(cuCtxSetCurrent(place->context));
	OK(cuMemFree(place->memory));
	OK(cuEventDestroy(place->event));
	OK(cuStreamDestroy(place->other));
	OK(cuStreamDestroy(place->stream));
	OK(cuCtxSynchronize());
}

static void fill(uint32_t seed)
{
	for (uint32_t i = 0; i < WORDS; i++)
		there[i] = i * 2654435761u + seed;
}

/* Reads device memory; whatever is current. */
static void expect_at(CUdeviceptr at, const void *bytes, size_t size)
{
	memset(back, 0xee, size);
	OK(cuMemcpyDtoH(back, at, size));
	CHECK(!memcmp(back, bytes, size));
}

static void expect_word(CUdeviceptr at, uint32_t value)
{
	uint32_t found;
	OK(cuMemcpyDtoH(&found, at, 4));
	CHECK(found == value);
}

/* ---- a stream that waits until the test lets it go on ---- */

struct held {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool released;
};

static void hold_function(void *argument)
{
	struct held *held = argument;
	pthread_mutex_lock(&held->lock);
	while (!held->released)
		pthread_cond_wait(&held->changed, &held->lock);
	pthread_mutex_unlock(&held->lock);
}

static void hold_stream(struct held *held, CUstream stream)
{
	pthread_mutex_init(&held->lock, NULL);
	pthread_cond_init(&held->changed, NULL);
	held->released = false;
	OK(cuLaunchHostFunc(stream, hold_function, held));
}

static void release(struct held *held)
{
	pthread_mutex_lock(&held->lock);
	held->released = true;
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
}

/* ---- shapes and directions ---- */

/* cuMemcpy is what cudaMemcpyDefault becomes: it finds out what each address is. */
static void default_copies_in_all_directions(void)
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

static void peer_copies(void)
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

static void note_late(void *done)
{
	usleep(20000); /* time in which a call that does not wait would return */
	__atomic_store_n((bool *)done, true, __ATOMIC_RELEASE);
}

/* The calls that name contexts and are not asynchronous wait for all work of both contexts, and of the current one. */
static void peer_copies_wait(void)
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

static void boxes(void)
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

/* ---- order ---- */

/* The copy reads the source when its stream arrives, and its stream waits for it. The call does not. */
static void a_copy_is_in_its_streams_order(int from, int to, int stream_of)
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

/* In the default stream, a copy comes after the earlier work of both devices' default streams, and before the later. */
static void default_streams_of_both(int current)
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

static void events_of_another_server(void)
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
static void waits_cross(void)
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

static void threads_do_not_block_each_other(void)
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
static void ends_wait_for_copies(void)
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

/* ---- pinned memory ---- */

/* What one server writes to pinned memory another one reads after it, whether the two have mapped the memory or not. */
static void pinned_memory_is_awaited(int from, int to)
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
static void copies_into_the_same_memory(int first, int second)
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

/* ---- captures ---- */

static void capture_fails(CUstream stream)
{
	CUgraph graph;
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

/* What a capture forbids is refused between servers too. Other streams copy meanwhile. Graphs of several servers: peer_graphs.c. */
static void captures_forbid(void)
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

/* ---- arrays ---- */

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

static void arrays_between_servers(void)
{
	rows_between_servers();
	boxes_between_arrays();
	arrays_and_pageable_memory(places[1].stream);
	arrays_and_pageable_memory(NULL);
}

/* ---- a stream of one server, memory of another ---- */

/* The calls do not wait for the stream, and the copies have its order. */
static void memory_of_another_server(int streams, int memory)
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

/* A copy within one server, in the default stream of a context of another: the copy is in that stream's order. */
static void default_stream_of_another_server(int current, int memory)
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

/* cuMemcpyPeer within one server waits for the work of the current context, which is of another. */
static void peer_copy_waits_for_current(int current, int memory)
{
	bool done = false;
	struct place *place = &places[memory];
	use(current);
	OK(cuLaunchHostFunc(places[current].stream, note_late, &done));
	OK(cuMemcpyPeer(place->memory + 4096, place->context, place->memory, place->context, 64));
	CHECK(__atomic_load_n(&done, __ATOMIC_ACQUIRE));
}

/* Managed memory of a server that the current context does not belong to. The host may use the memory when a call returns that is
 * not asynchronous, also where CUDA lets the call return early for other memory. */
static void managed_memory_of_another_server(int current, int memory)
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

/* ---- the ring ---- */

/* One round: every server passes its block on to the next and then marks it. Events order what streams do not. */
static void ring_round(uint32_t round, uint32_t words)
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

static void ring(void)
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

static void shapes(void)
{
	set_up();
	default_copies_in_all_directions();
	peer_copies();
	boxes();
	a_copy_is_in_its_streams_order(0, 1, 2);
	ring();
	for (int i = 0; i < DEVICES; i++)
		tear_down(&places[i]);
}

static void defaults(void)
{
	set_up();
	for (int current = 0; current < DEVICES; current++)
		default_streams_of_both(current);
	for (int i = 0; i < DEVICES; i++)
		tear_down(&places[i]);
}

/* Work in the current context's default stream comes before a copy in it and after it, whichever stream is held. */
static void ordered_with_current(int which)
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

static void beside(void)
{
	set_up();
	for (int round = 0; round < 3; round++)
		for (int which = 0; which < DEVICES; which++)
			ordered_with_current(which);
	default_streams_of_both(2);
	for (int i = 0; i < DEVICES; i++)
		tear_down(&places[i]);
}

static void events(void)
{
	CUcontext contexts[2];
	CUstream streams[2];
	CUevent event;
	struct pollfd line = { 0, POLLIN, 0 };
	for (int i = 0; i < 2; i++) {
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		OK(cuCtxSetCurrent(contexts[i]));
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	}
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	do {
		OK(cuCtxSetCurrent(contexts[1]));
		OK(cuEventRecord(event, streams[1]));
		OK(cuCtxSetCurrent(contexts[0]));
		OK(cuStreamWaitEvent(streams[0], event, 0));
		OK(cuStreamSynchronize(streams[0]));
	} while (poll(&line, 1, 10) == 0);
}

static void all(void)
{
	set_up();
	default_copies_in_all_directions();
	peer_copies();
	peer_copies_wait();
	boxes();
	a_copy_is_in_its_streams_order(0, 1, 0);
	a_copy_is_in_its_streams_order(0, 1, 1);
	a_copy_is_in_its_streams_order(0, 1, 2);
	default_streams_of_both(0);
	default_streams_of_both(1);
	default_streams_of_both(2);
	events_of_another_server();
	waits_cross();
	threads_do_not_block_each_other();
	ends_wait_for_copies();
	pinned_memory_is_awaited(0, 1);
	pinned_memory_is_awaited(1, 0);
	pinned_memory_is_awaited(0, 2);
	copies_into_the_same_memory(0, 1);
	copies_into_the_same_memory(2, 0);
	captures_forbid();
	arrays_between_servers();
	memory_of_another_server(0, 1);
	memory_of_another_server(1, 2);
	default_stream_of_another_server(0, 1);
	default_stream_of_another_server(1, 2);
	peer_copy_waits_for_current(0, 1);
	managed_memory_of_another_server(0, 1);
	managed_memory_of_another_server(1, 2);
	ring();
	for (int i = 0; i < DEVICES; i++)
		tear_down(&places[i]);
}

/* The script delays what the first server sends. */
static void same_memory(void)
{
	set_up();
	peer_copies(); /* which opens the links */
	copies_into_the_same_memory(0, 1);
	copies_into_the_same_memory(0, 2);
	for (int i = 0; i < DEVICES; i++)
		tear_down(&places[i]);
}

/* ---- drivers that wait ---- */

static void *load(void *text)
{
	CUmodule module;
	use(1);
	OK(cuModuleLoadData(&module, text));
	return module;
}

/* The driver of server 1, which loads code, waits for stream 1, and stream 1 waits for a copy. */
static void code_is_loaded(void)
{
	struct held held;
	pthread_t thread;
	void *module;
	fill(51);
	use(0);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	hold_stream(&held, places[0].stream);
	OK(cuEventRecord(places[0].event, places[0].stream));
	use(1);
	OK(cuStreamWaitEvent(places[1].stream, places[0].event, 0));
	OK(cuMemcpyPeerAsync(places[1].memory, places[1].context, places[0].memory, places[0].context, BYTES, places[1].stream));
	CHECK(!pthread_create(&thread, NULL, load, (void *)(uintptr_t)test_program("double\nappend nothing\n")));
	usleep(200000); /* time for the load to begin; the results are the same if it begins later */
	release(&held);
	OK(cuStreamSynchronize(places[1].stream));
	CHECK(!pthread_join(thread, &module));
	expect_at(places[1].memory, there, BYTES);
	use(1);
	OK(cuModuleUnload(module));
}

/* Each copy needs a gate in the stream. The server must not allocate memory for gates then: its driver would wait for streams. */
static void many_are_held(void)
{
	struct held held;
	use(0);
	hold_stream(&held, places[0].stream);
	OK(cuEventRecord(places[0].event, places[0].stream));
	use(1);
	OK(cuStreamWaitEvent(places[1].stream, places[0].event, 0));
	for (int i = 0; i < 1500; i++)
		OK(cuMemcpyPeerAsync(places[1].memory, places[1].context, places[0].memory, places[0].context, 4,
				     places[1].stream));
	release(&held);
	OK(cuStreamSynchronize(places[1].stream));
}

static void waiting(void)
{
	set_up();
	fill(50);
	use(0);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	/* The links are being opened. */
	OK(cuMemcpyPeerAsync(places[1].memory, places[1].context, places[0].memory, places[0].context, BYTES, places[0].stream));
	OK(cuEventRecord(places[0].event, places[0].stream));
	use(1);
	OK(cuStreamWaitEvent(places[1].stream, places[0].event, 0));
	OK(cuMemcpyPeerAsync(places[2].memory, places[2].context, places[1].memory, places[1].context, BYTES, places[1].stream));
	OK(cuStreamSynchronize(places[1].stream));
	expect_at(places[2].memory, there, BYTES);
	many_are_held();
	code_is_loaded();
	for (int i = 0; i < DEVICES; i++)
		tear_down(&places[i]);
}

/* ---- streams that share a hardware queue ---- */

/* Work of one queue is done in the order of the calls, so all this ends if nothing waits in it for work that is issued later.
 * Each copy has a stream that waits for it, at the source, at the target, or at a third server. */
static void one_queue(void)
{
	fill(70);
	use(0);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	for (int round = 0; round < 4; round++)
		for (int i = 0; i < DEVICES; i++) {
			struct place *here = &places[i], *next = &places[(i + 1) % DEVICES];
			CUstream stream = places[(i + round) % DEVICES].stream;
			use((i + round) % DEVICES);
			OK(cuMemcpyPeerAsync(next->memory, next->context, here->memory, here->context, BYTES, stream));
			OK(cuEventRecord(places[(i + round) % DEVICES].event, stream));
			for (int other = 0; other < DEVICES; other++) {
				OK(cuStreamWaitEvent(places[other].other, places[(i + round) % DEVICES].event, 0));
				OK(cuStreamWaitEvent(places[other].stream, places[(i + round) % DEVICES].event, 0));
			}
		}
	for (int i = 0; i < DEVICES; i++) {
		use(i);
		OK(cuStreamSynchronize(places[i].stream));
		expect_at(places[i].memory, there, BYTES);
	}
}

static void queues(void)
{
	set_up();
	boxes();
	one_queue();
	waits_cross();
	ring();
	for (int i = 0; i < DEVICES; i++)
		tear_down(&places[i]);
}

/* ---- a server dies ---- */

/* What the lost server held up fails, at most two operations of each round. Each failure is reported by one call, which may
 * return before later ones occur. Then the session works. */
static void recovers(int device)
{
	int failures = 0;
	use(device);
	for (CUresult result = CUDA_ERROR_UNKNOWN; result != CUDA_SUCCESS; failures += result != CUDA_SUCCESS) {
		result = cuCtxSynchronize();
		CHECK(result == CUDA_SUCCESS || (result == CUDA_ERROR_DEVICE_UNAVAILABLE && failures < 6));
	}
	CHECK(failures);
	OK(cuCtxSynchronize());
}

static void death(void)
{
	struct held held;
	set_up();
	fill(5);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	ring_round(1, WORDS);
	use(2);
	OK(cuStreamSynchronize(places[2].stream));
	expect_at(places[2].memory + 12, there + 3, BYTES - 12);
	/* The second server's stream is held, and so is what waits for it. */
	use(1);
	hold_stream(&held, places[1].stream);
	for (uint32_t round = 2; round < 5; round++)
		ring_round(round, WORDS);
	puts("ready");
	fflush(stdout);
	CHECK(getchar() == '\n');
	release(&held);
	use(1);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	EXPECT(cuMemcpyDtoD(places[0].memory, places[1].memory, 4), CUDA_ERROR_DEVICE_UNAVAILABLE);
	EXPECT(cuMemcpyPeer(places[1].memory, places[1].context, places[0].memory, places[0].context, 4),
	       CUDA_ERROR_DEVICE_UNAVAILABLE);
	use(0);
	EXPECT(cuStreamWaitEvent(places[0].stream, places[1].event, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
	recovers(2);
	recovers(0);
	OK(cuMemcpyHtoD(places[0].memory, there, BYTES));
	OK(cuMemcpyPeerAsync(places[2].memory, places[2].context, places[0].memory, places[0].context, BYTES,
			     places[0].stream));
	OK(cuEventRecord(places[0].event, places[0].stream));
	OK(cuStreamWaitEvent(places[2].stream, places[0].event, 0));
	use(2);
	OK(cuStreamSynchronize(places[2].stream));
	expect_at(places[2].memory, there, BYTES);
	tear_down(&places[2]);
	tear_down(&places[0]);
}

/* A small copy is behind a kernel of the first server. The kernel ends by a copy from the second server, whose stream the program
 * lets go on after it has changed the source: by the end of a host function, or by a call. */
static void source_changes(bool by_call)
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

static void source(void)
{
	set_up();
	use(0);
	kernel("wait");
	source_changes(true);
	source_changes(false);
	for (int i = 0; i < DEVICES; i++)
		tear_down(&places[i]);
}

int main(int argc, char **argv)
{
	CUresult result = cuInit(0);
	if (argc == 2 && !strcmp(argv[1], "refused")) {
		EXPECT(result, CUDA_ERROR_INVALID_VALUE);
		return 0;
	}
	OK(result);
	if (argc == 2 && !strcmp(argv[1], "all"))
		all();
	else if (argc == 2 && !strcmp(argv[1], "defaults"))
		defaults();
	else if (argc == 2 && !strcmp(argv[1], "beside"))
		beside();
	else if (argc == 2 && !strcmp(argv[1], "events"))
		events();
	else if (argc == 2 && !strcmp(argv[1], "shapes"))
		shapes();
	else if (argc == 2 && !strcmp(argv[1], "same-memory"))
		same_memory();
	else if (argc == 2 && !strcmp(argv[1], "source"))
		source();
	else if (argc == 2 && !strcmp(argv[1], "waiting"))
		waiting();
	else if (argc == 2 && !strcmp(argv[1], "queues"))
		queues();
	else if (argc == 2 && !strcmp(argv[1], "death"))
		death();
	else
		return 2;
	free(there);
	free(back);
	return 0;
}
