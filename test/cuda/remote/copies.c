/* SPDX-License-Identifier: BSD-3-Clause */
/* Every byte of a copy arrives, whatever its size, shape, direction and kind of host memory. */
#include "test/cuda/softgpu/driver.h"

#include <stdbool.h>
#include <string.h>

static uint8_t pattern(uint64_t i, unsigned seed)
{
	return (uint8_t)((i * 2654435761u >> 7) + seed * 31 + i);
}

static void fill(uint8_t *bytes, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = pattern(i, seed);
}

static void expect(const uint8_t *bytes, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] != pattern(i, seed)) {
			fprintf(stderr, "byte %zu of %zu is %u, want %u\n", i, size, bytes[i], pattern(i, seed));
			exit(1);
		}
	}
}

static void sizes(void)
{
	static const size_t all[] = { 1, 7, 4096, 65535, 65536, 65537, 524288, 524289, 3 * 524288 + 17, 20000003 };
	unsigned seed = 1;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		size_t size = all[i];
		uint8_t *there = malloc(size), *back = malloc(size + 1);
		CUdeviceptr a, b;
		OK(cuMemAlloc(&a, size));
		OK(cuMemAlloc(&b, size));
		fill(there, size, ++seed);
		back[size] = 0x5a;
		OK(cuMemcpyHtoD(a, there, size));
		memset(there, 0, size); /* the call has taken the bytes */
		OK(cuMemcpyDtoD(b, a, size));
		OK(cuMemcpyDtoH(back, b, size));
		expect(back, size, seed);
		CHECK(back[size] == 0x5a);
		OK(cuMemFree(a));
		OK(cuMemFree(b));
		free(there);
		free(back);
	}
}

/* Odd offsets within one allocation. */
static void pieces(void)
{
	enum { SIZE = 1 << 20 };
	static uint8_t there[SIZE], back[SIZE];
	CUdeviceptr device;
	OK(cuMemAlloc(&device, SIZE));
	fill(there, SIZE, 77);
	for (size_t at = 0, n = 1; at < SIZE; at += n, n = n * 3 + 1)
		OK(cuMemcpyHtoD(device + at, there + at, n < SIZE - at ? n : SIZE - at));
	for (size_t at = 0, n = 5; at < SIZE; at += n, n = n * 2 + 3)
		OK(cuMemcpyDtoH(back + at, device + at, n < SIZE - at ? n : SIZE - at));
	expect(back, SIZE, 77);
	OK(cuMemFree(device));
}

/* Many asynchronous copies, read only after the stream was waited for. */
static void asynchronous(void)
{
	enum { COPIES = 300, SIZE = 70001 };
	CUstream stream[2];
	CUdeviceptr device;
	uint8_t *host;
	OK(cuMemHostAlloc((void **)&host, (size_t)COPIES * SIZE, 0));
	OK(cuMemAlloc(&device, (size_t)COPIES * SIZE));
	OK(cuStreamCreate(&stream[0], CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&stream[1], CU_STREAM_NON_BLOCKING));
	fill(host, (size_t)COPIES * SIZE, 3);
	for (int i = 0; i < COPIES; i++)
		OK(cuMemcpyHtoDAsync(device + (size_t)i * SIZE, host + (size_t)i * SIZE, SIZE, stream[i % 2]));
	OK(cuStreamSynchronize(stream[0]));
	OK(cuStreamSynchronize(stream[1]));
	memset(host, 0, (size_t)COPIES * SIZE);
	for (int i = 0; i < COPIES; i++)
		OK(cuMemcpyDtoHAsync(host + (size_t)i * SIZE, device + (size_t)i * SIZE, SIZE, stream[i % 2]));
	OK(cuStreamSynchronize(stream[0]));
	OK(cuStreamSynchronize(stream[1]));
	expect(host, (size_t)COPIES * SIZE, 3);
	OK(cuStreamDestroy(stream[0]));
	OK(cuStreamDestroy(stream[1]));
	OK(cuMemFree(device));
	OK(cuMemFreeHost(host));
}

/* What each kind of waiting promises: bytes of copies before it are there. */
static void arrival(void)
{
	enum { SIZE = 1 << 20 };
	CUstream stream;
	CUevent event;
	CUdeviceptr device;
	uint32_t *host;
	OK(cuMemHostAlloc((void **)&host, SIZE, 0));
	OK(cuMemAlloc(&device, SIZE));
	OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (unsigned round = 0; round < 20; round++) {
		host[0] = host[SIZE / 4 - 1] = 0;
		OK(cuMemsetD32Async(device, 1000 + round, SIZE / 4, stream));
		OK(cuMemcpyDtoHAsync(host, device, SIZE, stream));
		OK(cuMemsetD32Async(device, 7, SIZE / 4, stream));
		OK(cuEventRecord(event, stream));
		CUresult result;
		switch (round % 5) {
		case 0: OK(cuStreamSynchronize(stream)); break;
		case 1: OK(cuEventSynchronize(event)); break;
		case 2: OK(cuCtxSynchronize()); break;
		case 3:
			while ((result = cuEventQuery(event)) == CUDA_ERROR_NOT_READY)
				;
			OK(result);
			break;
		case 4:
			while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
				;
			OK(result);
		}
		CHECK(host[0] == 1000 + round && host[SIZE / 4 - 1] == 1000 + round);
	}
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(device));
	OK(cuMemFreeHost(host));
}

/* Copies to the same host memory end in the order they were given in, whether anybody waits between them or not. */
static void same_place(void)
{
	enum { N = 20000, TIMES = 50 };
	CUstream stream;
	CUdeviceptr device;
	uint32_t *host;
	OK(cuMemHostAlloc((void **)&host, N * 4, 0));
	OK(cuMemAlloc(&device, N * 4));
	OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	for (unsigned i = 1; i <= TIMES; i++) {
		OK(cuMemsetD32Async(device, 2 * i, N, stream));
		OK(cuMemcpyDtoHAsync(host, device, N * 4, stream));
		OK(cuMemsetD32Async(device, 2 * i + 1, N, stream));
		OK(cuMemcpyDtoH(host, device, N * 4));
		CHECK(host[0] == 2 * i + 1 && host[N - 1] == 2 * i + 1);
	}
	for (unsigned i = 1; i <= TIMES; i++) {
		OK(cuMemsetD32Async(device, i, N, stream));
		OK(cuMemcpyDtoHAsync(host, device, N * 4, stream));
	}
	OK(cuStreamSynchronize(stream));
	CHECK(host[0] == TIMES && host[N - 1] == TIMES);
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(device));
	OK(cuMemFreeHost(host));
}

/* From a device to the host and on from there, in a stream's order: the second copy takes what the first brought. */
static void through_the_host(void)
{
	enum { N = 40000 };
	CUstream stream;
	CUdeviceptr from, to;
	uint32_t *host, back[2];
	OK(cuMemHostAlloc((void **)&host, N * 4, 0));
	OK(cuMemAlloc(&from, N * 4));
	OK(cuMemAlloc(&to, N * 4));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 1; i <= 20; i++) {
		size_t n = i % 2 ? N : 16;
		OK(cuMemsetD32Async(from, i, N, stream));
		OK(cuMemcpyDtoHAsync(host, from, n * 4, stream));
		OK(cuMemcpyHtoDAsync(to, host, n * 4, stream));
		OK(cuStreamSynchronize(stream));
		OK(cuMemcpyDtoH(&back[0], to, 4));
		OK(cuMemcpyDtoH(&back[1], to + (n - 1) * 4, 4));
		CHECK(back[0] == i && back[1] == i);
	}
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(from));
	OK(cuMemFree(to));
	OK(cuMemFreeHost(host));
}

static uint8_t box_at(size_t x, size_t y, size_t z)
{
	return (uint8_t)(x * 3 + y * 5 + z * 11 + 1);
}

/* A box within a larger one on both sides, and nothing touched beside it. */
static void box(size_t width, size_t height, size_t depth)
{
	const size_t pitch[2] = { width + 13, width + 40 }, rows[2] = { height + 2, height + 1 };
	const size_t host_size = pitch[0] * rows[0] * (depth + 1), device_size = pitch[1] * rows[1] * (depth + 1);
	uint8_t *host = malloc(host_size), *back = malloc(host_size);
	CUdeviceptr device;
	OK(cuMemAlloc(&device, device_size));
	OK(cuMemsetD8(device, 0xee, device_size));
	memset(host, 0xdd, host_size);
	for (size_t z = 0; z < depth; z++)
		for (size_t y = 0; y < height; y++)
			for (size_t x = 0; x < width; x++)
				host[((z + 1) * rows[0] + y + 1) * pitch[0] + x + 5] = box_at(x, y, z);
	CUDA_MEMCPY3D up = {
		.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = pitch[0], .srcHeight = rows[0],
		.srcXInBytes = 5, .srcY = 1, .srcZ = 1,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = device, .dstPitch = pitch[1], .dstHeight = rows[1],
		.dstXInBytes = 16, .dstY = 1, .dstZ = 0,
		.WidthInBytes = width, .Height = height, .Depth = depth,
	};
	CUDA_MEMCPY3D down = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = device, .srcPitch = pitch[1], .srcHeight = rows[1],
		.srcXInBytes = 16, .srcY = 1, .srcZ = 0,
		.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .dstPitch = pitch[0], .dstHeight = rows[0],
		.dstXInBytes = 5, .dstY = 1, .dstZ = 1,
		.WidthInBytes = width, .Height = height, .Depth = depth,
	};
	OK(cuMemcpy3D(&up));
	memset(back, 0xdd, host_size);
	OK(cuMemcpy3D(&down));
	CHECK(!memcmp(host, back, host_size));
	uint8_t *all = malloc(device_size);
	OK(cuMemcpyDtoH(all, device, device_size));
	size_t touched = 0;
	for (size_t i = 0; i < device_size; i++)
		touched += all[i] != 0xee;
	size_t same = 0; /* bytes of the box that happen to be 0xee */
	for (size_t z = 0; z < depth; z++)
		for (size_t y = 0; y < height; y++)
			for (size_t x = 0; x < width; x++)
				same += box_at(x, y, z) == 0xee;
	CHECK(touched + same == width * height * depth);
	OK(cuMemFree(device));
	free(all);
	free(back);
	free(host);
}

static void two_dimensions(void)
{
	uint8_t host[10][8], back[10][8];
	CUdeviceptr device;
	size_t pitch;
	OK(cuMemAllocPitch(&device, &pitch, 8, 10, 4));
	CHECK(pitch >= 8);
	for (int y = 0; y < 10; y++)
		for (int x = 0; x < 8; x++)
			host[y][x] = (uint8_t)(y * 8 + x);
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = 8,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = device, .dstPitch = pitch,
			       .WidthInBytes = 8, .Height = 10 };
	OK(cuMemcpy2D(&copy));
	CUDA_MEMCPY2D down = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = device, .srcPitch = pitch,
			       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .dstPitch = 8,
			       .WidthInBytes = 8, .Height = 10 };
	OK(cuMemcpy2DUnaligned(&down));
	CHECK(!memcmp(host, back, sizeof host));
	OK(cuMemFree(device));
}

/* The kind of each pointer found out: device, host; and host to host. */
static void any_kind(void)
{
	uint8_t there[1000], back[1000];
	CUdeviceptr device;
	OK(cuMemAlloc(&device, 1000));
	fill(there, 1000, 9);
	OK(cuMemcpy(device, (CUdeviceptr)(uintptr_t)there, 1000));
	OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, device, 1000));
	expect(back, 1000, 9);
	memset(back, 0, sizeof back);
	OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, (CUdeviceptr)(uintptr_t)there, 1000));
	expect(back, 1000, 9);
	OK(cuMemFree(device));
}

static void wrong(void)
{
	uint8_t host[64];
	CUdeviceptr device;
	OK(cuMemAlloc(&device, 64));
	EXPECT(cuMemcpyHtoD(device, host, 65), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyDtoH(host, device + 1, 64), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)host, host, 8), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoD(device, NULL, 8), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyDtoD(device + 32, device, 64), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD32(device, 0, 17), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD32(device + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyHtoD(device, host, 0));
	OK(cuMemFree(device));
	EXPECT(cuMemFree(device), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoD(device, host, 64), CUDA_ERROR_INVALID_VALUE);
}

/* A small copy after a long one into the same memory, which has not arrived yet. */
static void small_after_long(void)
{
	enum { N = 100000, SMALL = 16 };
	CUstream stream;
	CUdeviceptr device, small;
	uint32_t *host = malloc(N * 4);
	CHECK(host);
	OK(cuMemHostRegister(host, N * 4, CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemAlloc(&device, N * 4));
	OK(cuMemAlloc(&small, SMALL * 4));
	OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	for (uint32_t i = 1; i <= 50; i++) {
		OK(cuMemsetD32Async(device, 2 * i, N, stream));
		OK(cuMemsetD32Async(small, 2 * i + 1, SMALL, stream));
		OK(cuMemcpyDtoHAsync(host, device, N * 4, stream));
		OK(cuMemcpyDtoH(host, small, SMALL * 4));
		CHECK(host[0] == 2 * i + 1 && host[SMALL - 1] == 2 * i + 1 && host[SMALL] == 2 * i && host[N - 1] == 2 * i);
	}
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(device));
	OK(cuMemFree(small));
	OK(cuMemHostUnregister(host));
	free(host);
}

/* Rows of a few bytes, of which one chunk has many. */
static void many_rows(void)
{
	enum { HEIGHT = 300, DEPTH = 400 };
	static const size_t widths[] = { 1, 2, 3, 4, 8, 12, 16, 20 };
	for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
		size_t pitch = widths[i] + 5, all = pitch * HEIGHT * DEPTH;
		uint8_t *there = malloc(all), *back = calloc(1, all);
		CUdeviceptr device;
		CHECK(there && back);
		OK(cuMemAlloc(&device, all));
		fill(there, all, 9 + (unsigned)i);
		CUDA_MEMCPY3D copy = { .WidthInBytes = widths[i], .Height = HEIGHT, .Depth = DEPTH, .srcPitch = pitch, .dstPitch = pitch,
				       .srcHeight = HEIGHT, .dstHeight = HEIGHT, .srcHost = there, .dstDevice = device,
				       .srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_DEVICE };
		OK(cuMemcpy3D(&copy));
		copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = device;
		copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = back;
		OK(cuMemcpy3D(&copy));
		for (size_t at = 0; at < all; at++)
			CHECK(back[at] == (at % pitch < widths[i] ? there[at] : 0));
		OK(cuMemFree(device));
		free(there);
		free(back);
	}
}

int main(void)
{
	start();
	sizes();
	pieces();
	asynchronous();
	arrival();
	same_place();
	small_after_long();
	many_rows();
	through_the_host();
	box(1, 1, 1);
	box(100, 7, 3);
	box(3, 5000, 2);
	box(70000, 20, 2);
	box(600000, 3, 2);
	two_dimensions();
	any_kind();
	wrong();
	return 0;
}
