/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of several threads, each of which checks every byte: complete [ROUNDS [SEED]]. A thread copies memory of each kind and of
 * random lengths to the device, writes the source again as soon as CUDA lets it, moves the bytes on in a stream that does not wait
 * for the default stream, and brings them back in one of several ways. Meanwhile the other threads keep the default stream busy.
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>

enum { THREADS = 4, BYTES = 700000, SPACE = 2 * BYTES };
enum source { ALLOCATED, REGISTERED, PAGEABLE, SOURCES };

static CUcontext context;
static unsigned rounds = 40, first_seed = 1;

struct worker {
	unsigned number, seed, round;
	size_t width, height, gap, bytes;
	enum source source, target;
	unsigned way;         /* in which the bytes come back */
	bool asynchronous;    /* the copy to the device */
	CUstream stream, blocking;
	CUevent event;
	CUdeviceptr first, second, third;
	CUarray array;
	uint8_t *from[SOURCES], *to[SOURCES];
};

static unsigned draw(struct worker *worker, unsigned below)
{
	return (unsigned)rand_r(&worker->seed) % below;
}

static uint8_t pattern(const struct worker *worker, size_t i)
{
	return (uint8_t)(worker->number * 61 + worker->round * 17 + i * 7 + (i >> 9));
}

static void draw_shape(struct worker *worker)
{
	static const size_t most[] = { 16, 4096, 65536, 65536 + 4096, BYTES };
	worker->bytes = 1 + draw(worker, (unsigned)most[draw(worker, 5)]);
	worker->height = worker->gap = 0;
	worker->width = worker->bytes;
	if (!draw(worker, 3)) {
		worker->height = 1 + draw(worker, 9);
		worker->width = worker->bytes / worker->height + 1;
		worker->gap = draw(worker, 2) ? draw(worker, 40) : 0;
		worker->bytes = worker->width * worker->height;
	}
	worker->source = (enum source)draw(worker, SOURCES);
}

static size_t place(const struct worker *worker, size_t i)
{
	return i / worker->width * (worker->width + worker->gap) + i % worker->width;
}

static CUDA_MEMCPY2D box(const struct worker *worker)
{
	return (CUDA_MEMCPY2D){ .srcPitch = worker->width + worker->gap, .dstPitch = worker->width + worker->gap,
				.WidthInBytes = worker->width, .Height = worker->height ? worker->height : 1 };
}

/* Copies to the device. True if the copy may still be in the default stream when the call returns. */
static bool copy_up(struct worker *worker, bool asynchronous)
{
	const uint8_t *from = worker->from[worker->source];
	CUDA_MEMCPY2D copy = box(worker);
	copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = from;
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = worker->first;
	if (asynchronous && worker->height)
		OK(cuMemcpy2DAsync(&copy, worker->stream));
	else if (asynchronous)
		OK(cuMemcpyHtoDAsync(worker->first, from, worker->bytes, worker->stream));
	else if (worker->height)
		OK(cuMemcpy2D(&copy));
	else
		OK(cuMemcpyHtoD(worker->first, from, worker->bytes));
	return !asynchronous && worker->source == PAGEABLE && worker->bytes <= 65536;
}

/* The same through an array, whose bytes then go to the same place of the device. */
static bool array_up(struct worker *worker, bool asynchronous)
{
	const uint8_t *from = worker->from[worker->source];
	if (asynchronous)
		OK(cuMemcpyHtoAAsync(worker->array, 0, from, worker->bytes, worker->stream));
	else
		OK(cuMemcpyHtoA(worker->array, 0, from, worker->bytes));
	bool may_pend = !asynchronous && worker->source == PAGEABLE;
	if (may_pend)
		OK(cuStreamSynchronize(NULL));
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = worker->array,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = worker->first,
			       .WidthInBytes = worker->bytes, .Height = 1 };
	copy.dstPitch = worker->bytes;
	OK(cuMemcpy2DAsync(&copy, worker->stream));
	return false;
}

static void send(struct worker *worker)
{
	bool asynchronous = worker->asynchronous = !draw(worker, 3), array = !worker->height && worker->bytes <= 65536 && !draw(worker, 4);
	uint8_t *from = worker->from[worker->source];
	bool may_pend = array ? array_up(worker, asynchronous) : copy_up(worker, asynchronous);
	/* Pageable memory has been read; pinned memory too, if the call is not asynchronous. */
	if (!asynchronous || worker->source == PAGEABLE)
		memset(from, 0xee, SPACE);
	if (may_pend)
		OK(cuStreamSynchronize(NULL));
	OK(cuMemcpyDtoDAsync(worker->second, worker->first, SPACE, worker->stream));
}

static void check(const struct worker *worker, const uint8_t *to)
{
	for (size_t i = 0; i < worker->bytes; i++) {
		if (to[place(worker, i)] == pattern(worker, i))
			continue;
		fprintf(stderr, "seed %u, thread %u, round %u: from memory %d, %s, to memory %d, way %u: byte %zu of %zu (rows %zu, "
			"gap %zu) is %d, want %d\n", first_seed, worker->number, worker->round, worker->source,
			worker->asynchronous ? "asynchronous" : "waiting", worker->target, worker->way, i, worker->bytes,
			worker->height, worker->gap, to[place(worker, i)], pattern(worker, i));
		exit(1);
	}
}

/* Brings the bytes back, and checks them as soon as CUDA says that they are there. */
static void receive(struct worker *worker)
{
	enum source kind = worker->target = (enum source)draw(worker, SOURCES);
	uint8_t *to = worker->to[kind];
	CUDA_MEMCPY2D copy = box(worker);
	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = worker->second;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = to;
	memset(to, 0, SPACE);
	unsigned way = worker->way = draw(worker, 6);
	if (way == 0) {
		OK(cuStreamSynchronize(worker->stream));
		if (worker->height)
			OK(cuMemcpy2D(&copy));
		else
			OK(cuMemcpyDtoH(to, worker->second, worker->bytes));
		check(worker, to);
		return;
	}
	if (worker->height)
		OK(cuMemcpy2DAsync(&copy, worker->stream));
	else
		OK(cuMemcpyDtoHAsync(to, worker->second, worker->bytes, worker->stream));
	if (way == 1) {
		OK(cuEventRecord(worker->event, worker->stream));
		OK(cuEventSynchronize(worker->event));
	} else if (way == 2) {
		while (cuStreamQuery(worker->stream) == CUDA_ERROR_NOT_READY)
			;
	} else if (way == 3 && kind == REGISTERED) {
		OK(cuMemHostUnregister(to));
		check(worker, to);
		OK(cuMemHostRegister(to, SPACE, 0));
	} else if (way == 4 && kind != PAGEABLE) {
		/* To the device once more, in another stream, which waits for the copy. */
		OK(cuEventRecord(worker->event, worker->stream));
		OK(cuStreamWaitEvent(worker->blocking, worker->event, 0));
		OK(cuMemcpyHtoDAsync(worker->third, to, SPACE, worker->blocking));
		OK(cuMemcpyDtoHAsync(to, worker->third, SPACE, worker->blocking));
		OK(cuStreamSynchronize(worker->blocking));
	} else {
		OK(cuStreamSynchronize(worker->stream));
	}
	check(worker, to);
}

static void prepare(struct worker *worker)
{
	CUDA_ARRAY_DESCRIPTOR like = { .Width = 65536, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1 };
	worker->seed = first_seed * 1000 + worker->number;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&worker->blocking, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&worker->event, CU_EVENT_DISABLE_TIMING));
	OK(cuMemAlloc(&worker->first, SPACE));
	OK(cuMemAlloc(&worker->second, SPACE));
	OK(cuMemAlloc(&worker->third, SPACE));
	OK(cuArrayCreate(&worker->array, &like));
	for (enum source i = 0; i < SOURCES; i++) {
		uint8_t **both[] = { &worker->from[i], &worker->to[i] };
		for (int side = 0; side < 2; side++) {
			if (i == ALLOCATED)
				OK(cuMemAllocHost((void **)both[side], SPACE));
			else
				CHECK((*both[side] = malloc(SPACE)));
			if (i == REGISTERED)
				OK(cuMemHostRegister(*both[side], SPACE, 0));
		}
	}
}

static void finish(struct worker *worker)
{
	OK(cuMemHostUnregister(worker->from[REGISTERED]));
	OK(cuMemHostUnregister(worker->to[REGISTERED]));
	OK(cuMemFreeHost(worker->from[ALLOCATED]));
	OK(cuMemFreeHost(worker->to[ALLOCATED]));
	for (enum source i = REGISTERED; i < SOURCES; i++) {
		free(worker->from[i]);
		free(worker->to[i]);
	}
	OK(cuArrayDestroy(worker->array));
	OK(cuMemFree(worker->first));
	OK(cuMemFree(worker->second));
	OK(cuMemFree(worker->third));
	OK(cuEventDestroy(worker->event));
	OK(cuStreamDestroy(worker->stream));
	OK(cuStreamDestroy(worker->blocking));
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	prepare(worker);
	for (worker->round = 0; worker->round < rounds; worker->round++) {
		draw_shape(worker);
		for (size_t i = 0; i < worker->bytes; i++)
			worker->from[worker->source][place(worker, i)] = pattern(worker, i);
		if (!draw(worker, 3)) /* the default stream waits for it */
			OK(cuMemsetD8Async(worker->third, 1, SPACE, worker->blocking));
		send(worker);
		receive(worker);
	}
	finish(worker);
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker workers[THREADS] = { { .number = 0 } };
	pthread_t threads[THREADS];
	rounds = argc > 1 ? (unsigned)atoi(argv[1]) : rounds;
	first_seed = argc > 2 ? (unsigned)atoi(argv[2]) : first_seed;
	context = start();
	kernel("nothing");
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].number = i;
		CHECK(!pthread_create(&threads[i], NULL, work, &workers[i]));
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
