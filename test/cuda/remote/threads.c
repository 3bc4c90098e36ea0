/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of different threads reach the device in the order in which the threads made them. Threads that end leave their connections
 * to other threads, and nothing else. */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 200

static CUcontext context;
static CUstream stream;
static CUdeviceptr log_memory;
static uint32_t next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Launches that do not wait, from whichever thread has the lock, into one stream: the device has to see them in the order of
 * the lock. */
static void *appender(void *argument)
{
	(void)argument;
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		uint32_t value = ++next;
		OK(launch("append", stream, &log_memory, &value));
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void in_order(void)
{
	pthread_t threads[THREADS];
	uint32_t log[THREADS * ROUNDS + 1];
	OK(cuMemAlloc(&log_memory, sizeof log));
	OK(cuMemsetD8(log_memory, 0, sizeof log));
	OK(cuStreamCreate(&stream, 0));
	kernel("append"); /* loaded before there is more than one thread */
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, appender, NULL));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(log, log_memory, sizeof log));
	CHECK(log[0] == THREADS * ROUNDS);
	for (uint32_t i = 1; i <= THREADS * ROUNDS; i++)
		CHECK(log[i] == i);
	OK(cuMemFree(log_memory));
	OK(cuStreamDestroy(stream));
}

/* One thread copies back asynchronously and records, the other waits for the event and reads. */
static struct {
	CUdeviceptr device;
	uint32_t *host;
	CUevent event;
	int turn;
} shared;

enum { WORDS = 200000, EXCHANGES = 50 };

static void wait_turn(int turn)
{
	while (__atomic_load_n(&shared.turn, __ATOMIC_ACQUIRE) != turn)
		sched_yield();
}

static void *producer(void *argument)
{
	(void)argument;
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < EXCHANGES; i++) {
		wait_turn(2 * i);
		OK(cuMemsetD32Async(shared.device, (unsigned)i + 1, WORDS, stream));
		OK(cuMemcpyDtoHAsync(shared.host, shared.device, WORDS * 4, stream));
		OK(cuEventRecord(shared.event, stream));
		__atomic_store_n(&shared.turn, 2 * i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void across(void)
{
	pthread_t thread;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&shared.device, WORDS * 4));
	OK(cuMemHostAlloc((void **)&shared.host, WORDS * 4, 0));
	OK(cuEventCreate(&shared.event, 0));
	CHECK(!pthread_create(&thread, NULL, producer, NULL));
	for (int i = 0; i < EXCHANGES; i++) {
		wait_turn(2 * i + 1);
		OK(cuEventSynchronize(shared.event));
		CHECK(shared.host[0] == (uint32_t)i + 1 && shared.host[WORDS - 1] == (uint32_t)i + 1);
		__atomic_store_n(&shared.turn, 2 * i + 2, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
	OK(cuEventDestroy(shared.event));
	OK(cuMemFreeHost(shared.host));
	OK(cuMemFree(shared.device));
	OK(cuStreamDestroy(stream));
}

/* Each thread has memory, a stream and copies of its own, all at once. */
static void *worker(void *argument)
{
	uint32_t seed = (uint32_t)(uintptr_t)argument;
	enum { N = 300000 };
	CUstream own;
	CUdeviceptr device;
	uint32_t *host = malloc(N * 4);
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, N * 4));
	for (uint32_t round = 0; round < 15; round++) {
		for (uint32_t i = 0; i < N; i++)
			host[i] = i * seed + round;
		OK(cuMemcpyHtoDAsync(device, host, N * 4, own));
		memset(host, 0, N * 4);
		OK(cuMemcpyDtoHAsync(host, device, N * 4, own));
		OK(cuStreamSynchronize(own));
		for (uint32_t i = 0; i < N; i++)
			CHECK(host[i] == i * seed + round);
	}
	OK(cuMemFree(device));
	OK(cuStreamDestroy(own));
	free(host);
	return NULL;
}

static void at_once(void)
{
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, worker, (void *)(i + 3)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A thread that waits for the device does not hold up the others. */
static CUstream blocked;

static void *waiter(void *argument)
{
	(void)argument;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamSynchronize(blocked));
	return NULL;
}

static void waiting_holds_nobody_up(void)
{
	pthread_t thread;
	CUdeviceptr flag;
	CUstream other;
	uint32_t one = 1;
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemsetD32(flag, 0, 1));
	OK(cuStreamCreate(&blocked, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuCtxSynchronize());
	OK(launch("wait", blocked, &flag, NULL));
	CHECK(!pthread_create(&thread, NULL, waiter, NULL));
	CHECK(cuStreamQuery(blocked) == CUDA_ERROR_NOT_READY);
	OK(cuMemcpyHtoDAsync(flag, &one, 4, other)); /* lets the kernel end */
	OK(cuStreamSynchronize(other));
	pthread_join(thread, NULL);
	OK(cuStreamQuery(blocked));
	OK(cuStreamDestroy(blocked));
	OK(cuStreamDestroy(other));
	OK(cuMemFree(flag));
}

/* A context that ends on one thread and is followed by another: whoever had the first current works in the second. */
static CUcontext own[2];
static pthread_barrier_t meet;

static void *follower(void *argument)
{
	(void)argument;
	for (int i = 0; i < 2; i++) {
		CUdeviceptr device;
		uint32_t value = 0;
		pthread_barrier_wait(&meet);
		OK(cuCtxSetCurrent(own[i]));
		OK(cuMemAlloc(&device, 4));
		OK(cuMemsetD32(device, 17, 1));
		OK(cuMemcpyDtoH(&value, device, 4));
		CHECK(value == 17);
		OK(cuMemFree(device));
		OK(cuCtxSynchronize());
		pthread_barrier_wait(&meet);
	}
	return NULL;
}

static void context_after_context(void)
{
	pthread_t thread;
	CHECK(!pthread_barrier_init(&meet, NULL, 2));
	CHECK(!pthread_create(&thread, NULL, follower, NULL));
	for (int i = 0; i < 2; i++) {
		OK(cuCtxCreate(&own[i], NULL, 0, 0));
		pthread_barrier_wait(&meet);
		pthread_barrier_wait(&meet);
		OK(cuCtxDestroy(own[i]));
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&meet);
	OK(cuCtxSetCurrent(context));
}

/* Contexts come and go while another thread copies in its own. */
static bool enough;

static void *passing(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		CUcontext passing_by;
		OK(cuCtxCreate(&passing_by, NULL, 0, 0));
		OK(cuCtxDestroy(passing_by));
	}
	return NULL;
}

static void contexts_pass_by(void)
{
	enum { N = 1000000 };
	pthread_t thread;
	CUdeviceptr device;
	uint32_t *there = malloc(N * 4), *back = malloc(N * 4);
	OK(cuMemAlloc(&device, N * 4));
	CHECK(!pthread_create(&thread, NULL, passing, NULL));
	for (uint32_t round = 1; round <= 30; round++) {
		for (uint32_t i = 0; i < N; i++)
			there[i] = i * round;
		OK(cuMemcpyHtoD(device, there, N * 4));
		OK(cuMemcpyDtoH(back, device, N * 4));
		for (uint32_t i = 0; i < N; i++)
			CHECK(back[i] == i * round);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	OK(cuMemFree(device));
	free(there);
	free(back);
}

/* What one thread frees another may be given at once. */
static void *taker(void *argument)
{
	size_t size = (size_t)(uintptr_t)argument;
	uint8_t byte = 0;
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < 300; i++) {
		CUdeviceptr device;
		OK(cuMemAlloc(&device, size));
		OK(cuMemcpyHtoD(device + size - 1, &byte, 1));
		OK(cuMemFree(device));
	}
	return NULL;
}

static void given_again(void)
{
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, taker, (void *)((i + 1) * 1000)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A failure on one thread, of a call that does not wait, comes back with the next call that does on another. */
enum { FAILURES = 300 };

static void *failing(void *argument)
{
	(void)argument;
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < FAILURES; i++) {
		wait_turn(2 * i);
		OK(launch_of_a_wrong_shape(NULL));
		__atomic_store_n(&shared.turn, 2 * i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void failure_is_heard(void)
{
	pthread_t thread;
	shared.turn = 0;
	CHECK(!pthread_create(&thread, NULL, failing, NULL));
	for (int i = 0; i < FAILURES; i++) {
		wait_turn(2 * i + 1);
		CHECK(cuCtxSynchronize() != CUDA_SUCCESS);
		OK(cuCtxSynchronize());
		__atomic_store_n(&shared.turn, 2 * i + 2, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
}

/* ---- short threads ---- */

static unsigned connects; /* atomic: of the process */

/* Takes the place of the C library's for the client library. */
__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	__atomic_add_fetch(&connects, 1, __ATOMIC_RELAXED);
	return (int)syscall(SYS_connect, fd, address, len);
}

static unsigned connects_since(unsigned before)
{
	return __atomic_load_n(&connects, __ATOMIC_RELAXED) - before;
}

/* Connections that ended threads leave and that are kept. */
static unsigned kept_most(void)
{
	const char *setting = getenv("HEADRACE_IDLE_CONNECTIONS");
	return setting && *setting ? (unsigned)atoi(setting) : 64;
}

static void run_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, run, argument));
	pthread_join(thread, NULL);
}

/* Most do not wait for what they have launched. */
static void *short_thread(void *argument)
{
	uint32_t value = (uint32_t)(uintptr_t)argument;
	CUcontext current;
	CUdeviceptr none;
	OK(cuCtxGetCurrent(&current));
	CHECK(!current);
	EXPECT(cuMemAlloc(&none, 4), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(context));
	OK(launch("append", stream, &log_memory, &value));
	if (value % 8 == 0) {
		uint32_t seen;
		OK(cuStreamSynchronize(stream));
		OK(cuMemcpyDtoH(&seen, log_memory, sizeof seen));
		CHECK(seen == value);
	}
	return NULL;
}

static void short_threads(void)
{
	enum { SHORT = 1000 };
	static uint32_t log[SHORT + 1];
	uint32_t n = kept_most() ? SHORT : 50; /* if each connects, they take long on a loaded machine */
	unsigned before = 0;
	OK(cuMemAlloc(&log_memory, sizeof log));
	OK(cuMemsetD8(log_memory, 0, sizeof log));
	OK(cuStreamCreate(&stream, 0));
	for (uintptr_t i = 1; i <= n; i++) {
		run_thread(short_thread, (void *)i);
		if (i == 8)
			before = connects_since(0);
	}
	CHECK(connects_since(before) == (kept_most() ? 0 : n - 8));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(log, log_memory, sizeof log));
	CHECK(log[0] == n);
	for (uint32_t i = 1; i <= n; i++)
		CHECK(log[i] == i);
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(log_memory));
}

/* More threads at a time than connections are kept, several times. */
enum { AT_ONCE = 8 };

static void *one_of_many(void *argument)
{
	CUdeviceptr counter = *(CUdeviceptr *)argument;
	uint32_t one = 1;
	OK(cuCtxSetCurrent(context));
	OK(launch("increase", NULL, &counter, &one));
	pthread_barrier_wait(&meet); /* all have a connection */
	OK(cuStreamSynchronize(NULL));
	return NULL;
}

static void many_at_once(void)
{
	enum { TIMES = 4 };
	pthread_t threads[AT_ONCE];
	CUdeviceptr counter;
	uint32_t sum = 0;
	unsigned kept = kept_most() < AT_ONCE ? kept_most() : AT_ONCE;
	OK(cuMemAlloc(&counter, sizeof sum));
	OK(cuMemsetD32(counter, 0, 1));
	kernel("increase");
	CHECK(!pthread_barrier_init(&meet, NULL, AT_ONCE));
	for (int i = 0; i < TIMES; i++) {
		unsigned before = connects_since(0);
		for (int j = 0; j < AT_ONCE; j++)
			CHECK(!pthread_create(&threads[j], NULL, one_of_many, &counter));
		for (int j = 0; j < AT_ONCE; j++)
			pthread_join(threads[j], NULL);
		CHECK(!i || connects_since(before) == AT_ONCE - kept);
	}
	pthread_barrier_destroy(&meet);
	OK(cuMemcpyDtoH(&sum, counter, sizeof sum));
	CHECK(sum == TIMES * AT_ONCE);
	OK(cuMemFree(counter));
}

/* A thread leaves a context current, another capture mode, a capture, and a failure. The next one starts afresh. */
static CUstream captured;
static CUcontext left_current;

static void *leaves_things(void *argument)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr none;
	(void)argument;
	OK(cuCtxSetCurrent(context));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	EXPECT(cuMemAlloc(&none, (size_t)1 << 60), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuCtxCreate(&left_current, NULL, 0, 0));
	OK(cuMemAlloc(&none, 4)); /* in the new context, on this connection */
	OK(cuMemsetD32(none, 1, 1));
	return NULL;
}

static void *finds_nothing(void *argument)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
	CUdeviceptr device;
	CUcontext current;
	CUgraph graph;
	uint32_t value = 0;
	(void)argument;
	OK(cuCtxGetCurrent(&current));
	CHECK(!current);
	EXPECT(cuMemAlloc(&device, 4), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuCtxSetCurrent(context));
	EXPECT(cuStreamEndCapture(captured, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	OK(cuMemAlloc(&device, 4));
	OK(cuMemsetD32(device, 23, 1));
	OK(cuMemcpyDtoH(&value, device, 4));
	CHECK(value == 23);
	OK(cuCtxDestroy(left_current));
	OK(cuMemcpyDtoH(&value, device, 4)); /* it was of the other context */
	OK(cuMemFree(device));
	return NULL;
}

static void nothing_is_left(void)
{
	unsigned before;
	OK(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
	run_thread(leaves_things, NULL);
	before = connects_since(0);
	run_thread(finds_nothing, NULL);
	CHECK(!kept_most() || !connects_since(before));
	OK(cuStreamDestroy(captured));
}

/* The per-thread default stream of a thread is no other thread's, also if the first one has ended and its work has not. */
static CUdeviceptr gate;

static void *waits_in_own_stream(void *by_kernel)
{
	OK(cuCtxSetCurrent(context));
	if (by_kernel)
		OK(launch("wait", CU_STREAM_PER_THREAD, &gate, NULL));
	else
		OK(cuStreamWaitValue32(CU_STREAM_PER_THREAD, gate, 1, CU_STREAM_WAIT_VALUE_GEQ));
	return NULL;
}

static void *opens_from_own_stream(void *argument)
{
	uint32_t one = 1;
	(void)argument;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamQuery(CU_STREAM_PER_THREAD));
	OK(cuMemcpyHtoDAsync(gate, &one, 4, CU_STREAM_PER_THREAD));
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	return NULL;
}

/* A thread that has waited for its stream leaves its connection to the next one. */
static void *waits_for_own_stream(void *argument)
{
	CUdeviceptr counter = *(CUdeviceptr *)argument;
	uint32_t one = 1, sum;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamQuery(CU_STREAM_PER_THREAD));
	OK(launch("increase", CU_STREAM_PER_THREAD, &counter, &one));
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	OK(cuMemcpyHtoDAsync(counter + 4, &one, 4, CU_STREAM_PER_THREAD));
	OK(cuMemcpyDtoHAsync(&sum, counter, 4, CU_STREAM_PER_THREAD)); /* to pageable memory: waits */
	return NULL;
}

/* The same in another context. */
static void *waits_in_context(void *argument)
{
	CUevent event;
	OK(cuCtxSetCurrent(argument));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(event, CU_STREAM_PER_THREAD));
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	OK(cuEventDestroy(event));
	return NULL;
}

/* The stream is empty, but it has another attribute than that of a new thread. */
static void *changes_own_stream(void *argument)
{
	CUstreamAttrValue value = { .syncPolicy = CU_SYNC_POLICY_YIELD };
	(void)argument;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamSetAttribute(CU_STREAM_PER_THREAD, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	return NULL;
}

static void *finds_a_new_stream(void *argument)
{
	CUstreamAttrValue value = { .syncPolicy = CU_SYNC_POLICY_YIELD };
	(void)argument;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamGetAttribute(CU_STREAM_PER_THREAD, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	CHECK(value.syncPolicy == CU_SYNC_POLICY_AUTO);
	return NULL;
}

static void empty_own_streams(void)
{
	CUdeviceptr counter;
	uint32_t sum;
	OK(cuMemAlloc(&counter, 8));
	OK(cuMemsetD32(counter, 0, 1));
	run_thread(waits_for_own_stream, &counter);
	unsigned before = connects_since(0);
	for (int i = 0; i < 20; i++)
		run_thread(waits_for_own_stream, &counter);
	CHECK(!kept_most() || !connects_since(before));
	OK(cuMemcpyDtoH(&sum, counter, 4));
	CHECK(sum == 21);
	OK(cuMemFree(counter));
	CUcontext another;
	OK(cuCtxCreate(&another, NULL, 0, 0));
	before = connects_since(0);
	for (int i = 0; i < 20; i++)
		run_thread(waits_in_context, i % 2 ? another : context);
	CHECK(!kept_most() || !connects_since(before));
	OK(cuCtxDestroy(another));
	OK(cuCtxSetCurrent(context));
	run_thread(changes_own_stream, NULL);
	run_thread(finds_a_new_stream, NULL);
}

static void own_streams(void)
{
	OK(cuMemAlloc(&gate, 4));
	for (uintptr_t i = 0; i < 2; i++) {
		OK(cuMemsetD32(gate, 0, 1));
		OK(cuCtxSynchronize());
		run_thread(waits_in_own_stream, (void *)i);
		run_thread(opens_from_own_stream, NULL);
		OK(cuCtxSynchronize());
	}
	OK(cuMemFree(gate));
}

/* The argument: only the threads that end. */
int main(int n, char **argument)
{
	(void)argument;
	context = start();
	CHECK(connects_since(0)); /* they are counted */
	if (n == 1) {
		context_after_context(); /* first: the second context has to get the first one's index */
		in_order();
		across();
		at_once();
		waiting_holds_nobody_up();
		contexts_pass_by();
		given_again();
		failure_is_heard();
	}
	short_threads();
	many_at_once();
	nothing_is_left();
	own_streams();
	empty_own_streams();
	return 0;
}
