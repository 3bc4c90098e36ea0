/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory operations of streams over a worker. While a stream waits for a value, other streams and other calls go on: the value
 * that ends the wait comes from another stream, from a copy, or from the program's own store to pinned memory.
 */
#include "test/cuda/softgpu/driver.h"

#include <stdbool.h>

static CUstream stream, other;

enum writer { STREAM, COPY, STORE, WRITERS };

static void write_last(enum writer writer, CUdeviceptr at, uint64_t last, bool wide)
{
	switch (writer) {
	case STREAM:
		if (wide)
			OK(cuStreamWriteValue64(other, at, last, 0));
		else
			OK(cuStreamWriteValue32(other, at, (uint32_t)last, 0));
		break;
	case COPY:
		OK(cuMemcpyHtoDAsync(at, &last, wide ? 8 : 4, other));
		break;
	default:
		__atomic_store_n((uint64_t *)(uintptr_t)at, last, __ATOMIC_RELEASE);
	}
}

/* The stream waits until the word satisfies the condition, which it does only after the last write. */
static void wait_ends_with(enum writer writer, unsigned how, uint64_t wanted, bool wide, uint64_t not_yet, uint64_t last)
{
	CUdeviceptr at, log;
	void *pinned;
	uint32_t order[3];
	OK(cuMemAlloc(&log, 64));
	OK(cuMemsetD8(log, 0, 64));
	if (writer == STORE) {
		OK(cuMemHostAlloc(&pinned, 64, 0));
		*(uint64_t *)pinned = not_yet;
		at = (CUdeviceptr)(uintptr_t)pinned;
	} else {
		OK(cuMemAlloc(&at, 8));
		OK(cuMemcpyHtoD(at, &not_yet, 8));
	}
	OK(cuCtxSynchronize());
	if (wide)
		OK(cuStreamWaitValue64(stream, at, wanted, how));
	else
		OK(cuStreamWaitValue32(stream, at, (uint32_t)wanted, how));
	append(stream, log, 1);
	append(other, log, 2);
	OK(cuStreamSynchronize(other));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	write_last(writer, at, last, wide);
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(order, log, sizeof order));
	CHECK(order[0] == 2 && order[1] == 2 && order[2] == 1);
	OK(cuMemFree(log));
	if (writer == STORE)
		OK(cuMemFreeHost(pinned));
	else
		OK(cuMemFree(at));
}

static void every_condition(void)
{
	for (int writer = STREAM; writer < WRITERS; writer++) {
		wait_ends_with(writer, CU_STREAM_WAIT_VALUE_GEQ, 5, false, 4, 5);
		wait_ends_with(writer, CU_STREAM_WAIT_VALUE_EQ, 1ull << 40, true, 1, 1ull << 40);
		wait_ends_with(writer, CU_STREAM_WAIT_VALUE_AND, 8, false, 7, 12);
		wait_ends_with(writer, CU_STREAM_WAIT_VALUE_NOR, 0xf0, false, 0xffffff0f, 0xffffff0e);
	}
}

static void a_batch_is_one_after_the_other(void)
{
	CUdeviceptr at;
	uint32_t value[4], *pinned;
	CUstreamBatchMemOpParams list[4] = { 0 };
	OK(cuMemAlloc(&at, 16));
	OK(cuMemsetD8(at, 0, 16));
	OK(cuMemAllocHost((void **)&pinned, 16));
	memset(pinned, 0, 16);
	OK(cuCtxSynchronize());
	list[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	list[0].writeValue.address = at;
	list[0].writeValue.value = 7;
	list[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
	list[2].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	list[2].waitValue.address = at;
	list[2].waitValue.value = 7;
	list[2].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	list[3].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	list[3].writeValue.address = (CUdeviceptr)(uintptr_t)(pinned + 2);
	list[3].writeValue.value64 = 0x900000008;
	OK(cuStreamBatchMemOp(stream, 4, list, 0));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(value, at, 16));
	CHECK(value[0] == 7 && !value[1] && !pinned[1] && pinned[2] == 8 && pinned[3] == 9);
	EXPECT(cuStreamBatchMemOp(stream, 0, list, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamBatchMemOp(stream, 4, list, 1), CUDA_ERROR_INVALID_VALUE);
	list[3].operation = (CUstreamBatchMemOpType)99;
	EXPECT(cuStreamBatchMemOp(stream, 4, list, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(at));
	OK(cuMemFreeHost(pinned));
}

static void what_is_refused(void)
{
	CUdeviceptr at;
	CUgraph graph;
	static uint32_t pageable;
	OK(cuMemAlloc(&at, 64));
	EXPECT(cuStreamWriteValue32(stream, at + 64, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue32(stream, at + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue64(stream, at + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue64(stream, at + 64 - 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue32(stream, (CUdeviceptr)(uintptr_t)&pageable, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWaitValue32(stream, at, 1, 77), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWaitValue32(stream, at, 1, CU_STREAM_WAIT_VALUE_FLUSH), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuStreamWriteValue32((CUstream)(uintptr_t)12345, at, 1, 0), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(cuStreamWriteValue32(stream, at + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamEndCapture(stream, &graph)); /* the error does not end the capture */
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(at));
}

int main(void)
{
	int has;
	start();
	OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
	CHECK(has);
	OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 0));
	CHECK(has);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	every_condition();
	a_batch_is_one_after_the_other();
	what_is_refused();
	return 0;
}
