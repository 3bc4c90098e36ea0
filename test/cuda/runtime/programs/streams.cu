/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams keep their order and events join them; host functions run in their place; timing makes sense. */
#include "program.cuh"

#include <atomic>
#include <vector>

__global__ void append(int *log, int *used, int value)
{
	log[(*used)++] = value;
}

__global__ void add(int *values, int n, int what)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		values[i] += what;
}

static void in_order(void)
{
	int *log, *used, host[64];
	cudaStream_t stream;
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&log, sizeof host));
	CHECK(cudaMalloc(&used, sizeof *used));
	CHECK(cudaMemsetAsync(used, 0, sizeof *used, stream));
	for (int i = 0; i < 64; i++)
		append<<<1, 1, 0, stream>>>(log, used, i * i);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(host, log, sizeof host, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaStreamQuery(stream));
	for (int i = 0; i < 64; i++)
		EXPECT(host[i] == i * i);
	CHECK(cudaFree(log));
	CHECK(cudaFree(used));
	CHECK(cudaStreamDestroy(stream));
}

/* Work of two streams that meets in a third. */
static void joined_by_events(void)
{
	const int n = 20000;
	int *a, *b;
	std::vector<int> host_a(n), host_b(n);
	cudaStream_t first, second, last;
	cudaEvent_t first_done, second_done, start, stop;
	CHECK(cudaStreamCreate(&first));
	CHECK(cudaStreamCreate(&second));
	CHECK(cudaStreamCreateWithPriority(&last, cudaStreamNonBlocking, 0));
	CHECK(cudaEventCreateWithFlags(&first_done, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&second_done, cudaEventDisableTiming));
	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreate(&stop));
	CHECK(cudaMalloc(&a, n * sizeof *a));
	CHECK(cudaMalloc(&b, n * sizeof *b));
	CHECK(cudaEventRecord(start, first));
	CHECK(cudaMemsetAsync(a, 0, n * sizeof *a, first));
	CHECK(cudaMemsetAsync(b, 0, n * sizeof *b, second));
	for (int i = 0; i < 10; i++) {
		add<<<8, 64, 0, first>>>(a, n, 1);
		add<<<8, 64, 0, second>>>(b, n, 2);
	}
	CHECK(cudaEventRecord(first_done, first));
	CHECK(cudaEventRecord(second_done, second));
	CHECK(cudaStreamWaitEvent(last, first_done, 0));
	CHECK(cudaStreamWaitEvent(last, second_done, 0));
	add<<<8, 64, 0, last>>>(a, n, 100);
	add<<<8, 64, 0, last>>>(b, n, 100);
	CHECK(cudaMemcpyAsync(host_a.data(), a, n * sizeof *a, cudaMemcpyDeviceToHost, last));
	CHECK(cudaMemcpyAsync(host_b.data(), b, n * sizeof *b, cudaMemcpyDeviceToHost, last));
	CHECK(cudaEventRecord(stop, last));
	CHECK(cudaEventSynchronize(stop));
	CHECK(cudaEventQuery(stop));
	for (int i = 0; i < n; i++)
		EXPECT(host_a[i] == 110 && host_b[i] == 120);
	float ms = -1;
	CHECK(cudaEventElapsedTime(&ms, start, stop));
	EXPECT(ms >= 0);
	EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, first_done, stop));
	EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaGetLastError());
	CHECK(cudaEventDestroy(first_done));
	CHECK(cudaEventDestroy(second_done));
	CHECK(cudaEventDestroy(start));
	CHECK(cudaEventDestroy(stop));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaStreamDestroy(first));
	CHECK(cudaStreamDestroy(second));
	CHECK(cudaStreamDestroy(last));
}

static std::atomic<int> calls, seen;

static void on_host(void *data)
{
	*(int *)data = ++calls;
}

static void CUDART_CB on_stream(cudaStream_t stream, cudaError_t status, void *data)
{
	if (status == cudaSuccess && stream == *(cudaStream_t *)data)
		seen = ++calls;
}

static void host_functions(void)
{
	int first = 0, last = 0, one = 1, back = 0, *cell;
	cudaStream_t stream;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&cell, sizeof *cell));
	CHECK(cudaLaunchHostFunc(stream, on_host, &first));
	CHECK(cudaMemcpyAsync(cell, &one, sizeof one, cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamAddCallback(stream, on_stream, &stream, 0));
	add<<<1, 1, 0, stream>>>(cell, 1, 41);
	CHECK(cudaLaunchHostFunc(stream, on_host, &last));
	CHECK(cudaMemcpyAsync(&back, cell, sizeof back, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(first == 1 && seen == 2 && last == 3 && back == 42);
	CHECK(cudaFree(cell));
	CHECK(cudaStreamDestroy(stream));
}

/* Blocking streams and the legacy stream wait for each other. */
static void legacy_stream(void)
{
	int *cell, host = 0;
	cudaStream_t stream;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&cell, sizeof *cell));
	CHECK(cudaMemset(cell, 0, sizeof *cell));
	for (int i = 0; i < 20; i++) {
		add<<<1, 1, 0, stream>>>(cell, 1, 1);
		add<<<1, 1>>>(cell, 1, 1);
		add<<<1, 1, 0, cudaStreamLegacy>>>(cell, 1, 1);
	}
	CHECK(cudaMemcpy(&host, cell, sizeof host, cudaMemcpyDeviceToHost));
	EXPECT(host == 60);
	CHECK(cudaFree(cell));
	CHECK(cudaStreamDestroy(stream));
}

static void what_a_stream_is(void)
{
	int least, greatest, priority;
	unsigned flags;
	unsigned long long id, other;
	cudaStream_t stream;
	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	EXPECT(greatest <= least);
	CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
	CHECK(cudaStreamGetPriority(stream, &priority));
	EXPECT(priority == greatest);
	CHECK(cudaStreamGetFlags(stream, &flags));
	EXPECT(flags == cudaStreamNonBlocking);
	CHECK(cudaStreamGetId(stream, &id));
	CHECK(cudaStreamGetId(0, &other));
	EXPECT(id != other);
	CHECK(cudaStreamDestroy(stream));
	EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaStreamDestroy(0));
	EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaGetLastError());
}

static void memory_in_stream_order(void)
{
	int *cells, host[256], supported;
	cudaStream_t stream;
	CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
	if (!supported) {
		EXPECT_ERROR(cudaErrorNotSupported, cudaMallocAsync(&cells, sizeof host, 0));
		EXPECT_ERROR(cudaErrorNotSupported, cudaGetLastError());
		return;
	}
	CHECK(cudaStreamCreate(&stream));
	for (int round = 0; round < 3; round++) {
		CHECK(cudaMallocAsync(&cells, sizeof host, stream));
		CHECK(cudaMemsetAsync(cells, 0, sizeof host, stream));
		add<<<2, 64, 0, stream>>>(cells, 256, round + 5);
		CHECK(cudaMemcpyAsync(host, cells, sizeof host, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaFreeAsync(cells, stream));
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < 256; i++)
			EXPECT(host[i] == round + 5);
	}
	CHECK(cudaStreamDestroy(stream));
}

int main()
{
	in_order();
	joined_by_events();
	host_functions();
	legacy_stream();
	what_a_stream_is();
	memory_in_stream_order();
	CHECK(cudaGetLastError());
	return 0;
}
