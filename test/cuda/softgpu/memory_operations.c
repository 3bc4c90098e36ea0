/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream memory operations: writes of values and waits for values. */
#include "graph.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

static CUcontext context;
static CUstream stream, other;
static uint32_t *word;
static uint64_t *wide;
static CUdeviceptr word_at, wide_at;
/* What the stream writes before each wait. */
static uint32_t *reached, marks;
static CUdeviceptr reached_at;

/* The stream has come to what follows all that was submitted so far but the last, which is a wait. That it is not over is
 * seen for as long as some looks at the word take; a slow machine only sees less. */
static void expect_waiting(void)
{
	while (__atomic_load_n(reached, __ATOMIC_ACQUIRE) != marks)
		sched_yield();
	nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
}

/* A wait with these flags blocks while the word is held, and ends once it is passed. */
static void expect_wait(uint32_t value, unsigned flags, uint32_t held, uint32_t passed)
{
	*word = held;
	OK(cuStreamWriteValue32(stream, reached_at, ++marks, 0));
	OK(cuStreamWaitValue32(stream, word_at, value, flags));
	expect_waiting();
	__atomic_store_n(word, passed, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize(stream));
}

static void waits_compare_as_asked(void)
{
	expect_wait(5, CU_STREAM_WAIT_VALUE_GEQ, 4, 5);
	expect_wait(5, CU_STREAM_WAIT_VALUE_GEQ, 0xFFFFFFF0u, 6);
	/* Cyclic: 3 is 0x13 ahead of 0xFFFFFFF0. */
	expect_wait(0xFFFFFFF0u, CU_STREAM_WAIT_VALUE_GEQ, 0xFFFFFFEFu, 3);
	expect_wait(7, CU_STREAM_WAIT_VALUE_EQ, 8, 7);
	expect_wait(6, CU_STREAM_WAIT_VALUE_AND, 9, 2);
	expect_wait(0xFFFFFFF0u, CU_STREAM_WAIT_VALUE_NOR, 0xFu, 0xEu);
	*wide = UINT64_C(1) << 40;
	OK(cuStreamWriteValue32(stream, reached_at, ++marks, 0));
	OK(cuStreamWaitValue64(stream, wide_at, UINT64_C(1) << 41, CU_STREAM_WAIT_VALUE_GEQ));
	expect_waiting();
	__atomic_store_n(wide, UINT64_C(3) << 40, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize(stream));
}

static void one_stream_waits_for_another(void)
{
	*word = 0;
	*wide = 0;
	OK(cuStreamWaitValue32(stream, word_at, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamWriteValue64(stream, wide_at, UINT64_C(0x1122334455667788), 0));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	OK(cuStreamWriteValue32(other, word_at, 1, 0));
	OK(cuStreamSynchronize(stream));
	CHECK(*wide == UINT64_C(0x1122334455667788));
}

/* More than the streams that can run kernels at once. */
static void any_number_of_streams_waits_for_one(void)
{
	enum { MANY = 200 };
	CUstream waiting[MANY];
	*word = 0;
	for (int i = 0; i < MANY; i++) {
		OK(cuStreamCreate(&waiting[i], CU_STREAM_NON_BLOCKING));
		OK(cuStreamWaitValue32(waiting[i], word_at, 1, CU_STREAM_WAIT_VALUE_EQ));
	}
	uint32_t *flag = words(1);
	hold(other, at(flag)); /* so that no call of this thread writes the value */
	OK(cuStreamWriteValue32(other, word_at, 1, 0));
	let_go(flag);
	CHECK(comes_to(word, 1));
	for (int i = 0; i < MANY; i++) {
		OK(cuStreamSynchronize(waiting[i]));
		OK(cuStreamDestroy(waiting[i]));
	}
	OK(cuStreamSynchronize(other));
	OK(cuMemFreeHost(flag));
}

static void batches_keep_their_order(void)
{
	CUstreamBatchMemOpParams batch[4] = {
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = word_at, .value = 3 } },
		{ .memoryBarrier = { .operation = CU_STREAM_MEM_OP_BARRIER, .flags =
				CU_STREAM_MEMORY_BARRIER_TYPE_SYS } },
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = word_at, .value = 4,
				 .flags = CU_STREAM_WAIT_VALUE_EQ } },
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = wide_at, .value64 = 5 } },
	};
	*wide = 0;
	OK(cuStreamBatchMemOp(stream, 4, batch, 0));
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 3)
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
	CHECK(*wide == 0);
	__atomic_store_n(word, 4, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize(stream));
	CHECK(*wide == 5);
	EXPECT(cuStreamBatchMemOp(stream, 0, batch, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamBatchMemOp(stream, 256, batch, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamBatchMemOp(stream, 1, batch, 1), CUDA_ERROR_INVALID_VALUE);
	batch[1].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
	EXPECT(cuStreamBatchMemOp(stream, 2, batch, 0), CUDA_ERROR_NOT_SUPPORTED);
}

static void wrong_addresses_and_flags_are_refused(void)
{
	CUdeviceptr managed;
	uint32_t pageable;
	EXPECT(cuStreamWriteValue32(stream, word_at + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue64(stream, wide_at + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue32(stream, (CUdeviceptr)(uintptr_t)&pageable, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue32(stream, word_at, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER),
			CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWaitValue32(stream, word_at, 1, 4), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWaitValue32(stream, word_at, 1, CU_STREAM_WAIT_VALUE_FLUSH), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
	EXPECT(cuStreamWaitValue32(stream, managed, 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(managed));
}

/* A device with read access to memory can wait for a value in it; a device without access cannot. */
static void what_is_only_read_is_waited_for_and_not_written(void)
{
	enum { BYTES = 2 << 20 };
	CUmemAllocationProp where = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemAccessDesc access = { .location = where.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READ };
	CUmemGenericAllocationHandle memory;
	CUdeviceptr mapped;
	OK(cuMemCreate(&memory, BYTES, &where, 0));
	OK(cuMemAddressReserve(&mapped, BYTES, 0, 0, 0));
	OK(cuMemMap(mapped, BYTES, 0, memory, 0));
	EXPECT(cuStreamWaitValue32(stream, mapped, 0, CU_STREAM_WAIT_VALUE_EQ), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemSetAccess(mapped, BYTES, &access, 1));
	OK(cuStreamWaitValue32(stream, mapped, 0, CU_STREAM_WAIT_VALUE_EQ));
	EXPECT(cuStreamWriteValue32(stream, mapped, 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamSynchronize(stream));
	OK(cuMemUnmap(mapped, BYTES));
	OK(cuMemAddressFree(mapped, BYTES));
	OK(cuMemRelease(memory));
	void *host = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(host != MAP_FAILED);
	OK(cuMemHostRegister(host, 4096, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY));
	OK(cuStreamWaitValue32(stream, at(host), 0, CU_STREAM_WAIT_VALUE_EQ));
	EXPECT(cuStreamWriteValue32(stream, at(host), 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamSynchronize(stream));
	OK(cuMemHostUnregister(host));
	munmap(host, 4096);
}

/* Registered memory that the program has unmapped: an error at the call or in the stream, without any access. */
static void registered_memory_that_is_gone_is_not_touched(void)
{
	void *host = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUcontext own;
	CUstream late;
	CHECK(host != MAP_FAILED);
	OK(cuCtxCreate(&own, NULL, 0, 0));
	OK(cuStreamCreate(&late, CU_STREAM_NON_BLOCKING));
	OK(cuMemHostRegister(host, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	*word = 0;
	OK(cuStreamWaitValue32(late, word_at, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamWriteValue32(late, at(host), 1, 0));
	munmap(host, 4096);
	EXPECT(cuStreamWriteValue32(late, at(host), 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWaitValue32(late, at(host), 1, 0), CUDA_ERROR_INVALID_VALUE);
	let_go(word);
	EXPECT(cuStreamSynchronize(late), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuCtxDestroy(own));
	OK(cuCtxSetCurrent(context));
}

static void the_device_says_what_it_can(void)
{
	int value;
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
	CHECK(value == 1);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 0));
	CHECK(value == 1);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0));
	CHECK(value == 0);
}

static CUdeviceptr shared_memory;
static uint32_t shared;

static void *share(void *unused)
{
	CUipcMemHandle handle;
	(void)unused;
	OK(cuCtxSetCurrent(context));
	OK(cuIpcGetMemHandle(&handle, shared_memory));
	__atomic_store_n(&shared, 1, __ATOMIC_RELEASE);
	return NULL;
}

static uint32_t *begun; /* words that each stream sets before it waits */

static void CUDA_CB wait_for_word(void *data)
{
	__atomic_store_n(&begun[1], 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n((uint32_t *)data, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
}

/*
 * Memory is made sharable while nothing runs. A stream that waits for what the program does only afterwards does not
 * run: what it waits for may be what another process does with that memory. What the host writes meanwhile, its own
 * memory, a module's variables and a conditional handle's value, is not in the pages (of 2 MiB) that are moved for it.
 */
static void who_waits_does_not_hold_up_sharing(void)
{
	CUgraph graph;
	CUgraphNode node;
	CUstream third;
	CUdeviceptr managed, cell;
	CUgraphConditionalHandle condition;
	CUmodule module;
	pthread_t thread;
	*word = 0;
	OK(cuMemAlloc(&shared_memory, 100));
	OK(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
	CHECK(shared_memory >> 21 != word_at >> 21 && shared_memory >> 21 != managed >> 21);
	OK(cuModuleLoadData(&module, "double\nnothing\n"));
	OK(cuModuleGetGlobal(&cell, NULL, module, "cell"));
	CHECK(shared_memory >> 21 != cell >> 21);
	OK(cuModuleUnload(module));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&condition, graph, context, 0, 0));
	CHECK(shared_memory >> 21 != condition >> 21);
	OK(cuGraphDestroy(graph));
	begun = words(3);
	CUstreamBatchMemOpParams wait[] = {
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = at(&begun[2]),
				  .value = 1 } },
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = word_at, .value = 1,
				 .flags = CU_STREAM_WAIT_VALUE_GEQ } },
	};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = { .ctx = context, .count = 2, .paramArray = wait };
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
	CUgraphExec exec = instantiated(graph);
	OK(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWriteValue32(stream, at(&begun[0]), 1, 0));
	OK(cuStreamWaitValue32(stream, word_at, 1, CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuLaunchHostFunc(other, wait_for_word, word));
	OK(cuGraphLaunch(exec, third));
	for (int i = 0; i < 3; i++)
		CHECK(comes_to(&begun[i], 1));
	CHECK(!pthread_create(&thread, NULL, share, NULL));
	CHECK(comes_to(&shared, 1));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	EXPECT(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	EXPECT(cuStreamQuery(third), CUDA_ERROR_NOT_READY);
	let_go(word);
	OK(cuStreamSynchronize(stream));
	OK(cuStreamSynchronize(other));
	OK(cuStreamSynchronize(third));
	CHECK(!pthread_join(thread, NULL));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(third));
	OK(cuMemFree(shared_memory));
	OK(cuMemFree(managed));
}

/* A stream looks at the word while the program ends the registration and unmaps the memory. The call that ends the registration
 * waits for the memory's context only, and the stream is of another context. */
static void registered_memory_may_go_while_a_stream_waits_for_it(void)
{
	for (int i = 0; i < 500; i++) {
		CUcontext own;
		CUstream waits;
		CUdeviceptr address;
		OK(cuCtxCreate(&own, NULL, 0, 0));
		OK(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
		void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(memory != MAP_FAILED);
		OK(cuCtxSetCurrent(context));
		OK(cuMemHostRegister(memory, 4096, CU_MEMHOSTREGISTER_PORTABLE));
		OK(cuCtxSetCurrent(own));
		OK(cuMemHostGetDevicePointer(&address, memory, 0));
		OK(cuStreamWaitValue32(waits, address, 1, CU_STREAM_WAIT_VALUE_EQ));
		nanosleep(&(struct timespec){ 0, 20000 + 61 * i }, NULL);
		OK(cuCtxSetCurrent(context));
		OK(cuMemHostUnregister(memory));
		munmap(memory, 4096);
		OK(cuCtxSetCurrent(own));
		EXPECT(cuStreamSynchronize(waits), CUDA_ERROR_ILLEGAL_ADDRESS);
		OK(cuCtxDestroy(own));
	}
	OK(cuCtxSetCurrent(context));
}

int main(void)
{
	void *memory;
	context = start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocHost(&memory, 64));
	word = memory;
	wide = (uint64_t *)memory + 2;
	reached = (uint32_t *)memory + 12;
	word_at = (CUdeviceptr)(uintptr_t)word;
	wide_at = (CUdeviceptr)(uintptr_t)wide;
	reached_at = (CUdeviceptr)(uintptr_t)reached;
	waits_compare_as_asked();
	one_stream_waits_for_another();
	any_number_of_streams_waits_for_one();
	batches_keep_their_order();
	wrong_addresses_and_flags_are_refused();
	what_is_only_read_is_waited_for_and_not_written();
	registered_memory_that_is_gone_is_not_touched();
	registered_memory_may_go_while_a_stream_waits_for_it();
	the_device_says_what_it_can();
	who_waits_does_not_hold_up_sharing();
	return 0;
}
