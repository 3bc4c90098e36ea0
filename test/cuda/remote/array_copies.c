/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between host memory and arrays that are larger than one message: wide rows, many rows, many slices, gaps on the host.
 * array_copies parts: one copy of 8 MB each way, of which the script counts the messages.
 */
#include "test/cuda/softgpu/driver.h"

struct shape {
	size_t width, height, depth;     /* of the array, in elements of 4 bytes; 0: it has no such dimension */
	size_t x, y, z, w, h, d;         /* of the box, in elements */
	size_t gap, rows;                /* on the host: bytes behind each row, rows behind each slice */
};

static const struct shape shapes[] = {
	{ 100000, 0, 0, 0, 0, 0, 100000, 1, 1, 0, 0 },
	{ 100000, 0, 0, 7, 0, 0, 70001, 1, 1, 0, 0 },
	{ 40000, 5, 0, 3, 1, 0, 39000, 4, 1, 12, 0 },
	{ 300, 700, 0, 0, 0, 0, 300, 700, 1, 0, 0 },
	{ 300, 700, 0, 5, 9, 0, 291, 688, 1, 20, 0 },
	{ 33, 17, 200, 0, 0, 0, 33, 17, 200, 0, 0 },
	{ 33, 17, 200, 1, 2, 3, 31, 14, 190, 4, 3 },
	{ 128, 200, 3, 0, 1, 1, 128, 199, 2, 8, 1 },
	{ 2000, 1500, 0, 1, 2, 0, 1999, 1498, 1, 8, 0 }, /* more parts than a connection has slots */
	{ 16000, 30, 3, 0, 0, 0, 16000, 30, 3, 0, 0 },
	{ 64, 256, 70, 0, 0, 0, 64, 256, 70, 0, 0 },
};

static const struct shape in_parts = { 1024, 2048, 0, 0, 0, 0, 1024, 2048, 1, 0, 0 };

static uint32_t value(size_t i)
{
	return (uint32_t)(i * 2654435761u + 17);
}

static CUDA_MEMCPY3D box_of(const struct shape *shape)
{
	return (CUDA_MEMCPY3D){ .WidthInBytes = shape->w * 4, .Height = shape->h, .Depth = shape->d };
}

static void to_array(const struct shape *shape, CUarray array, uint32_t *host, CUstream stream)
{
	CUDA_MEMCPY3D copy = box_of(shape);
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = host;
	copy.srcPitch = copy.WidthInBytes + shape->gap;
	copy.srcHeight = shape->h + shape->rows;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.dstXInBytes = shape->x * 4;
	copy.dstY = shape->y;
	copy.dstZ = shape->z;
	OK(cuMemcpy3DAsync(&copy, stream));
}

/* From the array to a host box of the same shape, which begins one row and one element later. */
static void to_host(const struct shape *shape, CUarray array, uint32_t *host, CUstream stream)
{
	CUDA_MEMCPY3D copy = box_of(shape);
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = host;
	copy.dstPitch = copy.WidthInBytes + shape->gap + 4;
	copy.dstHeight = shape->h + shape->rows + 1;
	copy.dstXInBytes = 4;
	copy.dstY = 1;
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	copy.srcXInBytes = shape->x * 4;
	copy.srcY = shape->y;
	copy.srcZ = shape->z;
	OK(cuMemcpy3DAsync(&copy, stream));
	OK(cuStreamSynchronize(stream));
}

static void expect_box(const struct shape *shape, const uint32_t *back, const uint32_t *there)
{
	size_t pitch = shape->w + shape->gap / 4, back_pitch = pitch + 1;
	for (size_t z = 0; z < shape->d; z++)
		for (size_t y = 0; y < shape->h; y++) {
			const uint32_t *row = back + (z * (shape->h + shape->rows + 1) + y + 1) * back_pitch;
			CHECK(row[0] == 0xdeadbeef);
			CHECK(!memcmp(row + 1, there + (z * (shape->h + shape->rows) + y) * pitch, shape->w * 4));
			for (size_t x = 1 + shape->w; x < back_pitch; x++)
				CHECK(row[x] == 0xdeadbeef);
		}
}

enum memory { PAGEABLE, REGISTERED, PINNED };

static uint32_t *memory_new(enum memory kind, size_t bytes)
{
	void *memory = NULL;
	if (kind == PINNED)
		OK(cuMemHostAlloc(&memory, bytes, 0));
	else
		memory = malloc(bytes);
	CHECK(memory);
	if (kind == REGISTERED)
		OK(cuMemHostRegister(memory, bytes, 0));
	return memory;
}

static void memory_free(enum memory kind, uint32_t *memory)
{
	if (kind == PINNED) {
		OK(cuMemFreeHost(memory));
		return;
	}
	if (kind == REGISTERED)
		OK(cuMemHostUnregister(memory));
	free(memory);
}

static void one(const struct shape *shape, CUstream stream, enum memory kind)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { shape->width, shape->height, shape->depth, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0 };
	size_t pitch = shape->w + shape->gap / 4, room = pitch * (shape->h + shape->rows) * shape->d;
	size_t back_room = (pitch + 1) * (shape->h + shape->rows + 1) * shape->d + 1;
	uint32_t *there = memory_new(kind, room * 4), *back = memory_new(kind, back_room * 4);
	CUarray array;
	OK(cuArray3DCreate(&array, &descriptor));
	for (size_t i = 0; i < room; i++)
		there[i] = value(i);
	for (size_t i = 0; i < back_room; i++)
		back[i] = 0xdeadbeef;
	to_array(shape, array, there, stream);
	to_host(shape, array, back, stream);
	expect_box(shape, back, there);
	CUDA_MEMCPY3D copy = box_of(shape);
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.dstXInBytes = (shape->width - shape->w + 1) * 4;
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = there;
	EXPECT(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(array));
	EXPECT(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_HANDLE);
	memory_free(kind, there);
	memory_free(kind, back);
}

/* The bytes are read during the call, but a host function that comes before may still write them. */
static void write_value(void *data)
{
	*(uint32_t *)data = 4711;
}

static void after_a_host_function(CUstream stream)
{
	CUDA_ARRAY_DESCRIPTOR descriptor = { 1, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1 };
	uint32_t *host, back = 0;
	CUarray array;
	OK(cuMemHostAlloc((void **)&host, 4, 0));
	OK(cuArrayCreate(&array, &descriptor));
	*host = 1;
	OK(cuLaunchHostFunc(stream, write_value, host));
	OK(cuMemcpyHtoAAsync(array, 0, host, 4, stream));
	OK(cuMemcpyAtoHAsync(&back, array, 0, 4, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(back == 4711);
	OK(cuArrayDestroy(array));
	OK(cuMemFreeHost(host));
}

static void numbers_of_others_are_refused(void)
{
	CUDA_ARRAY_DESCRIPTOR descriptor = { 4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1 };
	CUDA_TEXTURE_DESC texture = { 0 };
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUtexObject object;
	OK(cuArrayCreate(&resource.res.array.hArray, &descriptor));
	OK(cuTexObjectCreate(&object, &resource, &texture, NULL));
	EXPECT(cuTexObjectDestroy(object + 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuSurfObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexObjectDestroy(object));
	EXPECT(cuTexObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(resource.res.array.hArray));
	EXPECT(cuTexObjectCreate(&object, &resource, &texture, NULL), CUDA_ERROR_INVALID_HANDLE);
}

/* Parts that wait in a held stream, as many as there are slots, keep their bytes, although the host's are changed. */
static void behind_a_held_stream(void)
{
	enum { WIDTH = 1024, HEIGHT = 1024 };
	CUDA_ARRAY_DESCRIPTOR descriptor = { WIDTH, HEIGHT, CU_AD_FORMAT_UNSIGNED_INT32, 1 };
	uint32_t *host = malloc(WIDTH * HEIGHT * 4);
	CUdeviceptr flag;
	CUstream held, other;
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			       .WidthInBytes = WIDTH * 4, .Height = HEIGHT };
	CUDA_MEMCPY2D back = { .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = host, .srcMemoryType = CU_MEMORYTYPE_ARRAY,
			       .WidthInBytes = WIDTH * 4, .Height = HEIGHT };
	CHECK(host);
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&flag, 4));
	OK(cuArrayCreate(&copy.dstArray, &descriptor));
	back.srcArray = copy.dstArray;
	for (uint32_t round = 1; round <= 3; round++) {
		OK(cuMemsetD32(flag, 0, 1));
		OK(cuCtxSynchronize());
		OK(cuStreamWaitValue32(held, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
		for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
			host[i] = round * i;
		OK(cuMemcpy2DAsync(&copy, held));
		memset(host, 0, WIDTH * HEIGHT * 4);
		OK(cuStreamWriteValue32(other, flag, 1, 0));
		OK(cuMemcpy2DAsync(&back, held));
		OK(cuStreamSynchronize(held));
		for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
			CHECK(host[i] == round * i);
	}
	OK(cuArrayDestroy(copy.dstArray));
	OK(cuMemFree(flag));
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(other));
	free(host);
}

/* Copies of 8 MB, from pinned memory to an array and back, and a small one, behind a held stream: no call waits, and the source is
 * read when the stream gets there. A host function that is later in the stream finds the bytes. */
struct seen {
	const uint32_t *memory;
	uint32_t last;
};

static void look(void *argument)
{
	struct seen *seen = argument;
	seen->last = seen->memory[1024 * 2048 - 1];
}

static void no_call_waits(enum memory kind)
{
	enum { WIDTH = 1024, HEIGHT = 2048, WORDS = WIDTH * HEIGHT };
	CUDA_ARRAY_DESCRIPTOR descriptor = { WIDTH, HEIGHT, CU_AD_FORMAT_UNSIGNED_INT32, 1 }, row = { 16, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1 };
	uint32_t *from = memory_new(kind, WORDS * 4), *to = memory_new(kind, WORDS * 4);
	uint32_t *small = memory_new(kind, 64);
	struct seen seen = { .memory = to };
	CUdeviceptr flag;
	CUarray little;
	CUstream held, other;
	CUDA_MEMCPY2D up = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			     .WidthInBytes = WIDTH * 4, .Height = HEIGHT };
	CUDA_MEMCPY2D down = { .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to, .srcMemoryType = CU_MEMORYTYPE_ARRAY,
			       .WidthInBytes = WIDTH * 4, .Height = HEIGHT };
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&flag, 4));
	OK(cuArrayCreate(&up.dstArray, &descriptor));
	OK(cuArrayCreate(&little, &row));
	down.srcArray = up.dstArray;
	for (uint32_t round = 1; round <= 3; round++) {
		OK(cuMemsetD32(flag, 0, 1));
		OK(cuCtxSynchronize());
		OK(cuStreamWaitValue32(held, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
		memset(from, 0, WORDS * 4);
		memset(small, 0, 64);
		OK(cuMemcpy2DAsync(&up, held));
		OK(cuMemcpyHtoAAsync(little, 0, small, 64, held));
		OK(cuMemcpy2DAsync(&down, held));
		OK(cuLaunchHostFunc(held, look, &seen));
		OK(cuMemcpyAtoHAsync(to, little, 0, 64, held));
		for (uint32_t i = 0; i < WORDS; i++)
			from[i] = round * i + 1;
		for (uint32_t i = 0; i < 16; i++)
			small[i] = 77 * round + i;
		OK(cuStreamWriteValue32(other, flag, 1, 0));
		OK(cuStreamSynchronize(held));
		CHECK(seen.last == round * (WORDS - 1) + 1);
		for (uint32_t i = 0; i < WORDS; i++)
			CHECK(to[i] == (i < 16 ? 77 * round + i : round * i + 1));
	}
	OK(cuArrayDestroy(up.dstArray));
	OK(cuArrayDestroy(little));
	OK(cuMemFree(flag));
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(other));
	memory_free(kind, from);
	memory_free(kind, to);
	memory_free(kind, small);
}

int main(int argc, char **argv)
{
	CUstream stream;
	start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (argc > 1 && !strcmp(argv[1], "parts")) {
		one(&in_parts, stream, PAGEABLE);
		return 0;
	}
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (enum memory kind = PAGEABLE; kind <= PINNED; kind++)
			one(&shapes[i], stream, kind);
	no_call_waits(REGISTERED);
	no_call_waits(PINNED);
	after_a_host_function(stream);
	behind_a_held_stream();
	numbers_of_others_are_refused();
	OK(cuStreamDestroy(stream));
	return 0;
}
