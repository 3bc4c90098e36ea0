/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of copies, memory operations of streams, and advice for managed memory. */
#include "driver.h"

#include <stdbool.h>

static CUstream stream;

static void copies_of_a_batch_take_their_own_attributes(void)
{
	enum { COPIES = 3, BYTES = 100000 };
	static char host[COPIES][BYTES], back[COPIES][BYTES];
	CUdeviceptr device[COPIES], to[COPIES], from[COPIES], pinned;
	size_t sizes[COPIES] = { BYTES, 1, BYTES }, starts[2] = { 0, 2 };
	uint32_t *flag;
	CUmemcpyAttributes attributes[2] = { { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL },
					     { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM } };
	OK(cuMemHostAlloc((void **)&flag, 4, 0));
	OK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
	*flag = 0;
	for (int i = 0; i < COPIES; i++) {
		OK(cuMemAlloc(&device[i], BYTES));
		OK(cuMemsetD8(device[i], 0, BYTES));
		memset(host[i], i + 1, BYTES);
		to[i] = device[i];
		from[i] = (CUdeviceptr)(uintptr_t)host[i];
	}
	OK(cuCtxSynchronize());
	memset((void *)(uintptr_t)pinned, 2, BYTES);
	from[1] = pinned;
	/*
	 * The stream is blocked: the first two sources are read before the call returns, the third when the stream
	 * reaches it.
	 */
	hold(stream, (CUdeviceptr)(uintptr_t)flag);
	OK(cuMemcpyBatchAsync(to, from, sizes, COPIES, attributes, starts, 2, stream));
	memset(host[0], 77, BYTES);
	memset((void *)(uintptr_t)pinned, 77, BYTES);
	memset(host[2], 33, BYTES);
	let_go(flag);
	OK(cuStreamSynchronize(stream));
	for (int i = 0; i < COPIES; i++)
		OK(cuMemcpyDtoH(back[i], device[i], BYTES));
	CHECK(back[0][0] == 1 && back[0][BYTES - 1] == 1);
	CHECK(back[1][0] == 2 && back[1][1] == 0);
	CHECK(back[2][0] == 33 && back[2][BYTES - 1] == 33);
	/* One wrong copy, and none is made. */
	OK(cuMemsetD8(device[0], 9, BYTES));
	OK(cuCtxSynchronize());
	sizes[2] = BYTES + 1;
	EXPECT(cuMemcpyBatchAsync(to, from, sizes, COPIES, attributes, starts, 2, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(back[0], device[0], 1));
	CHECK(back[0][0] == 9);
	sizes[2] = BYTES;
	starts[0] = 1;
	EXPECT(cuMemcpyBatchAsync(to, from, sizes, COPIES, attributes, starts, 2, stream), CUDA_ERROR_INVALID_VALUE);
	starts[0] = 0;
	starts[1] = COPIES;
	EXPECT(cuMemcpyBatchAsync(to, from, sizes, COPIES, attributes, starts, 2, stream), CUDA_ERROR_INVALID_VALUE);
	starts[1] = 1;
	attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	EXPECT(cuMemcpyBatchAsync(to, from, sizes, COPIES, attributes, starts, 2, stream), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyBatchAsync(to, from, sizes, COPIES, attributes, starts, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	for (int i = 0; i < COPIES; i++)
		OK(cuMemFree(device[i]));
	OK(cuMemFreeHost(flag));
	OK(cuMemFreeHost((void *)(uintptr_t)pinned));
}

static void boxes_of_a_batch_have_rows_and_layers(void)
{
	unsigned char host[2][4][6], back[64];
	CUdeviceptr device;
	for (int i = 0; i < 48; i++)
		((unsigned char *)host)[i] = (unsigned char)i;
	OK(cuMemAlloc(&device, 64));
	OK(cuMemsetD8(device, 99, 64));
	OK(cuCtxSynchronize());
	/* 3 x 2 x 2 bytes out of 6 x 4 x 2 into rows of 5 and layers of 3 rows. */
	CUDA_MEMCPY3D_BATCH_OP op = { .extent = { 3, 2, 2 },
				      .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL };
	op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)&host[0][1][2];
	op.src.op.ptr.rowLength = 6;
	op.src.op.ptr.layerHeight = 4;
	op.dst.op.ptr.ptr = device;
	op.dst.op.ptr.rowLength = 5;
	op.dst.op.ptr.layerHeight = 3;
	OK(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(back, device, 64));
	for (int at = 0; at < 64; at++) {
		int z = at / 15, y = at % 15 / 5, x = at % 5;
		bool copied = z < 2 && y < 2 && x < 3;
		CHECK(back[at] == (copied ? host[z][1 + y][2 + x] : 99));
	}
	op.extent.width = 0;
	EXPECT(cuMemcpy3DBatchAsync(1, &op, 0, stream), CUDA_ERROR_INVALID_VALUE);
	op.extent.width = 6; /* more than a row of the target */
	EXPECT(cuMemcpy3DBatchAsync(1, &op, 0, stream), CUDA_ERROR_INVALID_VALUE);
	op.extent.width = 3;
	op.extent.depth = 5; /* more than the allocation */
	EXPECT(cuMemcpy3DBatchAsync(1, &op, 0, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(device));
}

/* A stream waits for a value that the word has only after it was set to last. */
static void wait_ends_with(unsigned how, uint64_t wanted, bool wide, uint64_t not_yet, uint64_t last)
{
	uint64_t *word;
	OK(cuMemHostAlloc((void **)&word, 8, 0));
	*word = not_yet;
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)word, log;
	OK(cuMemAlloc(&log, 64));
	OK(cuMemsetD8(log, 0, 64));
	OK(cuCtxSynchronize());
	if (wide)
		OK(cuStreamWaitValue64(stream, at, wanted, how));
	else
		OK(cuStreamWaitValue32(stream, at, (uint32_t)wanted, how));
	append(stream, log, 1);
	/* The host thread works on meanwhile, and another stream too. */
	CUstream other;
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	append(other, log, 2);
	OK(cuStreamSynchronize(other));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	if (wide)
		OK(cuStreamWriteValue64(other, at, last, 0));
	else
		OK(cuStreamWriteValue32(other, at, (uint32_t)last, 0));
	OK(cuStreamSynchronize(stream));
	uint32_t order[3];
	OK(cuMemcpyDtoH(order, log, sizeof order));
	CHECK(order[0] == 2 && order[1] == 2 && order[2] == 1);
	OK(cuStreamDestroy(other));
	OK(cuMemFree(log));
	OK(cuMemFreeHost(word));
}

static void streams_wait_for_words(void)
{
	wait_ends_with(CU_STREAM_WAIT_VALUE_GEQ, 5, false, 4, 5);
	wait_ends_with(CU_STREAM_WAIT_VALUE_GEQ, 5, false, 0x80000006u, 0x80000004u);
	wait_ends_with(CU_STREAM_WAIT_VALUE_GEQ, 0xfffffff0u, false, 0xffffffefu, 3); /* 3 is behind it, around zero */
	wait_ends_with(CU_STREAM_WAIT_VALUE_EQ, 7, false, 8, 7);
	wait_ends_with(CU_STREAM_WAIT_VALUE_AND, 6, false, 9, 2);
	wait_ends_with(CU_STREAM_WAIT_VALUE_NOR, 0xffff0000u, false, 0xffffu, 0xfffeu);
	wait_ends_with(CU_STREAM_WAIT_VALUE_GEQ, UINT64_C(1) << 40, true, 1u << 31,
		       (UINT64_C(1) << 40) + 1);
	wait_ends_with(CU_STREAM_WAIT_VALUE_NOR, UINT64_C(0xffffffff), true, UINT64_C(0xffffffff00000000),
		       UINT64_C(0x7fffffff00000000));
	CUdeviceptr word;
	OK(cuMemAlloc(&word, 8));
	EXPECT(cuStreamWaitValue32(stream, word + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWaitValue64(stream, word + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue32(stream, word + 8, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWaitValue32(stream, word, 0, 4), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue32(stream, word, 0, 2), CUDA_ERROR_INVALID_VALUE);
	static uint32_t pageable;
	EXPECT(cuStreamWriteValue32(stream, (CUdeviceptr)(uintptr_t)&pageable, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CUstreamBatchMemOpParams list[3] = { { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32 },
					     { .operation = CU_STREAM_MEM_OP_BARRIER },
					     { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32 } };
	list[0].writeValue.address = list[2].waitValue.address = word;
	list[0].writeValue.value = 12;
	list[2].waitValue.value = 12;
	list[2].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	OK(cuStreamBatchMemOp(stream, 3, list, 0));
	OK(cuStreamSynchronize(stream));
	list[1].operation = (CUstreamBatchMemOpType)99;
	list[0].writeValue.value = 13;
	EXPECT(cuStreamBatchMemOp(stream, 3, list, 0), CUDA_ERROR_INVALID_VALUE);
	uint32_t value;
	OK(cuMemcpyDtoH(&value, word, 4));
	CHECK(value == 12);
	OK(cuMemFree(word));
}

static int32_t range_is(CUmem_range_attribute attribute, CUdeviceptr at, size_t bytes)
{
	int32_t value = -99;
	OK(cuMemRangeGetAttribute(&value, sizeof value, attribute, at, bytes));
	return value;
}

static void managed_memory_remembers_what_was_advised(void)
{
	enum { PART = 65536 };
	CUdeviceptr m, again;
	CUmemLocation device = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
	CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST }, none = { .type = CU_MEM_LOCATION_TYPE_INVALID };
	OK(cuMemAllocManaged(&m, 4 * PART, CU_MEM_ATTACH_GLOBAL));
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 4 * PART) == 0);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, 4 * PART) == CU_DEVICE_INVALID);
	OK(cuMemAdvise(m + PART, 2 * PART, CU_MEM_ADVISE_SET_READ_MOSTLY, none));
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + PART, 2 * PART) == 1);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + PART, 2 * PART + 1) == 0);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + PART - 1, 2) == 0);
	OK(cuMemAdvise(m + 2 * PART, PART, CU_MEM_ADVISE_UNSET_READ_MOSTLY, none));
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + PART, PART) == 1);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 2 * PART, 1) == 0);
	OK(cuMemAdvise(m, 4 * PART, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, 4 * PART) == 0);
	OK(cuMemAdvise(m, PART, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, PART) == CU_DEVICE_CPU);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, m, PART) == CU_MEM_LOCATION_TYPE_HOST);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, 2 * PART) == CU_DEVICE_INVALID);
	OK(cuMemAdvise(m, 4 * PART, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
	OK(cuMemAdvise(m, 4 * PART, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
	OK(cuMemAdvise(m, 16, CU_MEM_ADVISE_UNSET_ACCESSED_BY, device));
	int32_t by[3];
	OK(cuMemRangeGetAttribute(by, sizeof by, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m + PART, PART));
	CHECK(by[0] == 0 && by[1] == CU_DEVICE_CPU && by[2] == CU_DEVICE_INVALID);
	OK(cuMemRangeGetAttribute(by, sizeof by, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, PART));
	CHECK(by[0] == CU_DEVICE_CPU && by[1] == CU_DEVICE_INVALID);
	OK(cuMemPrefetchAsync(m, PART, device, 0, NULL));
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m, PART) == 0);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m, 2 * PART) == CU_DEVICE_INVALID);
	CUdeviceptr parts[2] = { m, m + PART };
	size_t sizes[2] = { PART, PART }, starts[2] = { 0, 1 };
	CUmemLocation where[2] = { host, device };
	OK(cuMemPrefetchBatchAsync(parts, sizes, 2, where, starts, 2, 0, stream));
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m, PART) == CU_DEVICE_CPU);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m + PART, PART) == 0);
	sizes[1] = 4 * PART;
	EXPECT(cuMemPrefetchBatchAsync(parts, sizes, 2, where, starts, 2, 0, stream), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemDiscardBatchAsync(parts, sizes, 2, 0, stream), CUDA_ERROR_INVALID_VALUE);
	sizes[1] = PART;
	OK(cuMemDiscardBatchAsync(parts, sizes, 2, 0, stream));
	int32_t small;
	EXPECT(cuMemRangeGetAttribute(&small, 2, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemRangeGetAttribute(&small, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 4 * PART + 1),
	       CUDA_ERROR_INVALID_VALUE);
	/* New memory at the same address has no advice. */
	OK(cuMemFree(m));
	OK(cuMemAllocManaged(&again, 4 * PART, CU_MEM_ATTACH_GLOBAL));
	CHECK(again == m);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + PART, PART) == 0);
	CHECK(range_is(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m, PART) == CU_DEVICE_INVALID);
	OK(cuMemFree(again));
}

static void a_wait_for_freed_memory_is_a_fault(void)
{
	CUdeviceptr word;
	OK(cuMemAllocAsync(&word, 4, stream));
	OK(cuMemsetD32Async(word, 0, 1, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
	CUstream other;
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	/* The fault is the context's, so a wait for the other stream could return it too. */
	OK(cuMemFreeAsync(word, other));
	EXPECT(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Each copy of a captured batch becomes a node, which reads its source when the graph runs. */
static void batches_are_captured(void)
{
	CUdeviceptr device[2], from[2];
	size_t sizes[2] = { 4096, 16 }, starts[2] = { 0, 1 }, nodes = 0;
	unsigned char *host, back[4096];
	CUgraph graph;
	CUgraphExec exec;
	CUmemcpyAttributes attributes[2] = { { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM },
					     { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY } };
	OK(cuMemHostAlloc((void **)&host, 8192, 0));
	OK(cuMemAlloc(&device[0], 4096));
	OK(cuMemAlloc(&device[1], 4096));
	from[0] = (CUdeviceptr)(uintptr_t)host;
	from[1] = from[0] + 4096;
	/* Two layers of two rows of four bytes, from rows of 8 and layers of 4 rows. */
	CUDA_MEMCPY3D_BATCH_OP box = { .src = { .type = CU_MEMCPY_OPERAND_TYPE_POINTER,
						.op.ptr = { .ptr = from[1], .rowLength = 8, .layerHeight = 4 } },
				       .dst = { .type = CU_MEMCPY_OPERAND_TYPE_POINTER,
						.op.ptr = { .ptr = device[1] + 64, .rowLength = 4, .layerHeight = 2 } },
				       .extent = { 4, 2, 2 }, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemcpyBatchAsync(device, from, sizes, 2, attributes, starts, 2, stream));
	OK(cuMemcpy3DBatchAsync(1, &box, 0, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	CHECK(nodes == 3);
	OK(cuGraphInstantiate(&exec, graph, 0));
	for (int turn = 1; turn < 3; turn++) {
		for (int i = 0; i < 8192; i++)
			host[i] = (unsigned char)(i * 7 * turn);
		OK(cuGraphLaunch(exec, stream));
		OK(cuStreamSynchronize(stream));
		OK(cuMemcpyDtoH(back, device[0], 4096));
		CHECK(!memcmp(back, host, 4096));
		OK(cuMemcpyDtoH(back, device[1], 96));
		CHECK(!memcmp(back, host + 4096, 16));
		for (int i = 0; i < 4; i++)
			CHECK(!memcmp(back + 64 + 4 * i, host + 4096 + 8 * (i % 2) + 32 * (i / 2), 4));
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	/* A copy that reads its source at once cannot be captured. */
	attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(cuMemcpyBatchAsync(device, from, sizes, 2, attributes, starts, 2, stream),
	       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuMemFree(device[0]));
	OK(cuMemFree(device[1]));
	OK(cuMemFreeHost(host));
}

int main(void)
{
	start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	copies_of_a_batch_take_their_own_attributes();
	boxes_of_a_batch_have_rows_and_layers();
	batches_are_captured();
	streams_wait_for_words();
	managed_memory_remembers_what_was_advised();
	a_wait_for_freed_memory_is_a_fault();
	return 0;
}
