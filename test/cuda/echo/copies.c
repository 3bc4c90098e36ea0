/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copies DRIVER CLIENT ROUNDS SEED: calls each form of cuMemcpy and cuMemset ROUNDS times with random places and sizes, directly
 * in a driver, and through the client and a worker that has loaded the same driver. The client sends other calls for a copy, so
 * the test compares effects: after each call the results are equal, and all bytes of both sides' memory.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PITCH 256
#define ROWS 48
#define SLICES 12
#define BOX_BYTES (PITCH * ROWS * SLICES)
#define BYTES (BOX_BYTES + 16384) /* of each region: copies of whole regions travel in several chunks */

enum region { PAGEABLE, PINNED, DEVICE, OTHER, MANAGED, LINE, FLAT, BOX, REGIONS };
#define BIT(region) (1u << (region))
#define HOSTS (BIT(PAGEABLE) | BIT(PINNED))
#define DEVICES (BIT(DEVICE) | BIT(OTHER) | BIT(MANAGED))
#define MEMORY (HOSTS | DEVICES)
#define ARRAYS (BIT(LINE) | BIT(FLAT) | BIT(BOX))

#define FORMS(F) \
	F(cuMemcpy) F(cuMemcpy_ptds) F(cuMemcpyAsync) F(cuMemcpyAsync_ptsz) F(cuMemcpyHtoD_v2) F(cuMemcpyHtoD_v2_ptds) \
	F(cuMemcpyHtoDAsync_v2) F(cuMemcpyHtoDAsync_v2_ptsz) F(cuMemcpyDtoH_v2) F(cuMemcpyDtoH_v2_ptds) F(cuMemcpyDtoHAsync_v2) \
	F(cuMemcpyDtoHAsync_v2_ptsz) F(cuMemcpyDtoD_v2) F(cuMemcpyDtoD_v2_ptds) F(cuMemcpyDtoDAsync_v2) \
	F(cuMemcpyDtoDAsync_v2_ptsz) F(cuMemcpyPeer) F(cuMemcpyPeer_ptds) F(cuMemcpyPeerAsync) F(cuMemcpyPeerAsync_ptsz) \
	F(cuMemcpyAtoA_v2) F(cuMemcpyAtoA_v2_ptds) F(cuMemcpyAtoD_v2) F(cuMemcpyAtoD_v2_ptds) F(cuMemcpyDtoA_v2) \
	F(cuMemcpyDtoA_v2_ptds) F(cuMemcpyAtoA) F(cuMemcpyAtoH) F(cuMemcpyAtoHAsync) F(cuMemcpyHtoA) F(cuMemcpyHtoAAsync) \
	F(cuMemcpyAtoH_v2) F(cuMemcpyAtoH_v2_ptds) F(cuMemcpyAtoHAsync_v2) F(cuMemcpyAtoHAsync_v2_ptsz) F(cuMemcpyHtoA_v2) \
	F(cuMemcpyHtoA_v2_ptds) F(cuMemcpyHtoAAsync_v2) F(cuMemcpyHtoAAsync_v2_ptsz) F(cuMemcpy2D_v2) F(cuMemcpy2D_v2_ptds) \
	F(cuMemcpy2DUnaligned_v2) F(cuMemcpy2DUnaligned_v2_ptds) F(cuMemcpy2DAsync_v2) F(cuMemcpy2DAsync_v2_ptsz) F(cuMemcpy2D) \
	F(cuMemcpy2DUnaligned) F(cuMemcpy2DAsync) F(cuMemcpy3D) F(cuMemcpy3DAsync) F(cuMemcpy3D_v2) F(cuMemcpy3D_v2_ptds) \
	F(cuMemcpy3DAsync_v2) F(cuMemcpy3DAsync_v2_ptsz) F(cuMemcpy3DPeer) F(cuMemcpy3DPeer_ptds) F(cuMemcpy3DPeerAsync) \
	F(cuMemcpy3DPeerAsync_ptsz) F(cuMemcpyBatchAsync) F(cuMemcpyBatchAsync_ptsz) F(cuMemcpyBatchAsync_v2) \
	F(cuMemcpyBatchAsync_v2_ptsz) F(cuMemcpy3DBatchAsync) F(cuMemcpy3DBatchAsync_ptsz) F(cuMemcpy3DBatchAsync_v2) \
	F(cuMemcpy3DBatchAsync_v2_ptsz) F(cuMemsetD8_v2) F(cuMemsetD8_v2_ptds) F(cuMemsetD8Async) F(cuMemsetD8Async_ptsz) \
	F(cuMemsetD16_v2) F(cuMemsetD16_v2_ptds) F(cuMemsetD16Async) F(cuMemsetD16Async_ptsz) F(cuMemsetD32_v2) \
	F(cuMemsetD32_v2_ptds) F(cuMemsetD32Async) F(cuMemsetD32Async_ptsz) F(cuMemsetD2D8_v2) F(cuMemsetD2D8_v2_ptds) \
	F(cuMemsetD2D8Async) F(cuMemsetD2D8Async_ptsz) F(cuMemsetD2D16_v2) F(cuMemsetD2D16_v2_ptds) F(cuMemsetD2D16Async) \
	F(cuMemsetD2D16Async_ptsz) F(cuMemsetD2D32_v2) F(cuMemsetD2D32_v2_ptds) F(cuMemsetD2D32Async) F(cuMemsetD2D32Async_ptsz)
#define OTHERS(F) \
	F(cuInit) F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent) F(cuCtxSynchronize) F(cuMemAlloc_v2) F(cuMemHostAlloc) \
	F(cuMemAllocManaged) F(cuArray3DCreate_v2) F(cuStreamCreate) F(cuDevicePrimaryCtxReset_v2)

struct side {
	struct {
#define POINTER(name) __typeof__(&name) name;
		FORMS(POINTER) OTHERS(POINTER)
	} f;
	CUcontext context;
	CUstream stream;
	uint64_t base[REGIONS]; /* of an array: its handle */
};

/* One call; the same for both sides. */
struct op {
	enum region to, from;
	size_t to_at, from_at, n;                          /* of a line of bytes */
	size_t to_x, to_y, to_z, from_x, from_y, from_z, width, height, depth;
	bool in_stream, unified;
	uint32_t value;
};

static uint64_t state;

static uint64_t draw_below(uint64_t end)
{
	state += 0x9e3779b97f4a7c15ull;
	uint64_t x = (state ^ state >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (x ^ x >> 31) % end;
}

/* ---- the calls ---- */

#define TO(s, o) ((s)->base[(o)->to] + (o)->to_at)
#define FROM(s, o) ((s)->base[(o)->from] + (o)->from_at)
#define TO_HOST(s, o) ((void *)(uintptr_t)TO(s, o))
#define FROM_HOST(s, o) ((const void *)(uintptr_t)FROM(s, o))
#define TO_ARRAY(s, o) ((CUarray)(uintptr_t)(s)->base[(o)->to])
#define FROM_ARRAY(s, o) ((CUarray)(uintptr_t)(s)->base[(o)->from])
#define STREAM(s, o) ((o)->in_stream ? (s)->stream : NULL)
#define RUN(name, ...) \
	static CUresult run_##name(const struct side *s, const struct op *o) \
	{ \
		return s->f.name(__VA_ARGS__); \
	}
#define FOUR(sync, async, ...) \
	RUN(sync, __VA_ARGS__) RUN(sync##_ptds, __VA_ARGS__) \
	RUN(async, __VA_ARGS__, STREAM(s, o)) RUN(async##_ptsz, __VA_ARGS__, STREAM(s, o))

FOUR(cuMemcpy, cuMemcpyAsync, TO(s, o), FROM(s, o), o->n)
FOUR(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, TO(s, o), FROM_HOST(s, o), o->n)
FOUR(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, TO_HOST(s, o), FROM(s, o), o->n)
FOUR(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, TO(s, o), FROM(s, o), o->n)
FOUR(cuMemcpyPeer, cuMemcpyPeerAsync, TO(s, o), s->context, FROM(s, o), s->context, o->n)
RUN(cuMemcpyAtoA_v2, TO_ARRAY(s, o), o->to_at, FROM_ARRAY(s, o), o->from_at, o->n)
RUN(cuMemcpyAtoA_v2_ptds, TO_ARRAY(s, o), o->to_at, FROM_ARRAY(s, o), o->from_at, o->n)
RUN(cuMemcpyAtoA, TO_ARRAY(s, o), (unsigned)o->to_at, FROM_ARRAY(s, o), (unsigned)o->from_at, (unsigned)o->n)
RUN(cuMemcpyAtoD_v2, TO(s, o), FROM_ARRAY(s, o), o->from_at, o->n)
RUN(cuMemcpyAtoD_v2_ptds, TO(s, o), FROM_ARRAY(s, o), o->from_at, o->n)
RUN(cuMemcpyDtoA_v2, TO_ARRAY(s, o), o->to_at, FROM(s, o), o->n)
RUN(cuMemcpyDtoA_v2_ptds, TO_ARRAY(s, o), o->to_at, FROM(s, o), o->n)
FOUR(cuMemcpyAtoH_v2, cuMemcpyAtoHAsync_v2, TO_HOST(s, o), FROM_ARRAY(s, o), o->from_at, o->n)
FOUR(cuMemcpyHtoA_v2, cuMemcpyHtoAAsync_v2, TO_ARRAY(s, o), o->to_at, FROM_HOST(s, o), o->n)
RUN(cuMemcpyAtoH, TO_HOST(s, o), FROM_ARRAY(s, o), (unsigned)o->from_at, (unsigned)o->n)
RUN(cuMemcpyAtoHAsync, TO_HOST(s, o), FROM_ARRAY(s, o), (unsigned)o->from_at, (unsigned)o->n, STREAM(s, o))
RUN(cuMemcpyHtoA, TO_ARRAY(s, o), (unsigned)o->to_at, FROM_HOST(s, o), (unsigned)o->n)
RUN(cuMemcpyHtoAAsync, TO_ARRAY(s, o), (unsigned)o->to_at, FROM_HOST(s, o), (unsigned)o->n, STREAM(s, o))

static CUmemorytype type_of(const struct op *o, enum region region)
{
	if (BIT(region) & ARRAYS)
		return CU_MEMORYTYPE_ARRAY;
	return o->unified ? CU_MEMORYTYPE_UNIFIED : BIT(region) & HOSTS ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

/* Fills what a struct of any version of 2D or 3D has in common. Unified memory is named by srcDevice. */
#define FILL(c, s, o) \
	do { \
		(c).srcXInBytes = (o)->from_x; \
		(c).srcY = (o)->from_y; \
		(c).srcMemoryType = type_of(o, (o)->from); \
		(c).srcPitch = PITCH; \
		(c).dstXInBytes = (o)->to_x; \
		(c).dstY = (o)->to_y; \
		(c).dstMemoryType = type_of(o, (o)->to); \
		(c).dstPitch = PITCH; \
		(c).WidthInBytes = (o)->width; \
		(c).Height = (o)->height; \
		if ((c).srcMemoryType == CU_MEMORYTYPE_ARRAY) \
			(c).srcArray = FROM_ARRAY(s, o); \
		else if ((c).srcMemoryType == CU_MEMORYTYPE_HOST) \
			(c).srcHost = FROM_HOST(s, o); \
		else \
			(c).srcDevice = (__typeof__((c).srcDevice))FROM(s, o); \
		if ((c).dstMemoryType == CU_MEMORYTYPE_ARRAY) \
			(c).dstArray = TO_ARRAY(s, o); \
		else if ((c).dstMemoryType == CU_MEMORYTYPE_HOST) \
			(c).dstHost = TO_HOST(s, o); \
		else \
			(c).dstDevice = (__typeof__((c).dstDevice))TO(s, o); \
	} while (0)
#define FILL_3D(c, s, o) \
	do { \
		FILL(c, s, o); \
		(c).srcZ = (o)->from_z; \
		(c).dstZ = (o)->to_z; \
		(c).srcHeight = (c).dstHeight = ROWS; \
		(c).Depth = (o)->depth; \
	} while (0)
#define SHAPED(name, type, fill, ...) \
	static CUresult run_##name(const struct side *s, const struct op *o) \
	{ \
		type copy = { 0 }; \
		fill(copy, s, o); \
		return s->f.name(&copy __VA_ARGS__); \
	}
#define IN_STREAM , STREAM(s, o)
SHAPED(cuMemcpy2D_v2, CUDA_MEMCPY2D, FILL)
SHAPED(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, FILL)
SHAPED(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, FILL)
SHAPED(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, FILL)
SHAPED(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, FILL, IN_STREAM)
SHAPED(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, FILL, IN_STREAM)
SHAPED(cuMemcpy2D, CUDA_MEMCPY2D_v1, FILL)
SHAPED(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1, FILL)
SHAPED(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1, FILL, IN_STREAM)
SHAPED(cuMemcpy3D, CUDA_MEMCPY3D_v1, FILL_3D)
SHAPED(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1, FILL_3D, IN_STREAM)
SHAPED(cuMemcpy3D_v2, CUDA_MEMCPY3D, FILL_3D)
SHAPED(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, FILL_3D)
SHAPED(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, FILL_3D, IN_STREAM)
SHAPED(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, FILL_3D, IN_STREAM)
#define FILL_PEER(c, s, o) \
	do { \
		FILL_3D(c, s, o); \
		(c).srcContext = (c).dstContext = (s)->context; \
	} while (0)
SHAPED(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, FILL_PEER)
SHAPED(cuMemcpy3DPeer_ptds, CUDA_MEMCPY3D_PEER, FILL_PEER)
SHAPED(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, FILL_PEER, IN_STREAM)
SHAPED(cuMemcpy3DPeerAsync_ptsz, CUDA_MEMCPY3D_PEER, FILL_PEER, IN_STREAM)

/* Two halves of a copy, as a batch. These calls accept no default stream. */
#define BATCH(name, ...) \
	static CUresult run_##name(const struct side *s, const struct op *o) \
	{ \
		size_t half = o->n / 2, sizes[2] = { half, o->n - half }, index = 0, failed; \
		CUdeviceptr to[2] = { TO(s, o), TO(s, o) + half }, from[2] = { FROM(s, o), FROM(s, o) + half }; \
		CUmemcpyAttributes attributes = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM }; \
		(void)failed; \
		if (!half) \
			return CUDA_SUCCESS; \
		return s->f.name(to, from, sizes, 2, &attributes, &index, 1, __VA_ARGS__ s->stream); \
	}
BATCH(cuMemcpyBatchAsync, &failed, )
BATCH(cuMemcpyBatchAsync_ptsz, &failed, )
BATCH(cuMemcpyBatchAsync_v2, )
BATCH(cuMemcpyBatchAsync_v2_ptsz, )

/* Memory only: the software GPU refuses arrays in batches. */
static CUmemcpy3DOperand operand(uint64_t address, size_t x, size_t y, size_t z)
{
	CUmemcpy3DOperand made = { .type = CU_MEMCPY_OPERAND_TYPE_POINTER };
	made.op.ptr.ptr = address + x + PITCH * (y + ROWS * z);
	made.op.ptr.rowLength = PITCH;
	made.op.ptr.layerHeight = ROWS;
	return made;
}

#define BATCH_3D(name, ...) \
	static CUresult run_##name(const struct side *s, const struct op *o) \
	{ \
		size_t failed; \
		CUDA_MEMCPY3D_BATCH_OP op = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM }; \
		op.src = operand(FROM(s, o), o->from_x, o->from_y, o->from_z); \
		op.dst = operand(TO(s, o), o->to_x, o->to_y, o->to_z); \
		op.extent = (CUextent3D){ o->width, o->height, o->depth }; \
		(void)failed; \
		return s->f.name(1, &op, __VA_ARGS__ 0, s->stream); \
	}
BATCH_3D(cuMemcpy3DBatchAsync, &failed, )
BATCH_3D(cuMemcpy3DBatchAsync_ptsz, &failed, )
BATCH_3D(cuMemcpy3DBatchAsync_v2, )
BATCH_3D(cuMemcpy3DBatchAsync_v2_ptsz, )

/* Fills: n bytes, and boxes of width bytes. */
FOUR(cuMemsetD8_v2, cuMemsetD8Async, TO(s, o), (unsigned char)o->value, o->n)
FOUR(cuMemsetD16_v2, cuMemsetD16Async, TO(s, o), (unsigned short)o->value, o->n / 2)
FOUR(cuMemsetD32_v2, cuMemsetD32Async, TO(s, o), o->value, o->n / 4)
FOUR(cuMemsetD2D8_v2, cuMemsetD2D8Async, TO(s, o), PITCH, (unsigned char)o->value, o->width, o->height)
FOUR(cuMemsetD2D16_v2, cuMemsetD2D16Async, TO(s, o), PITCH, (unsigned short)o->value, o->width / 2, o->height)
FOUR(cuMemsetD2D32_v2, cuMemsetD2D32Async, TO(s, o), PITCH, o->value, o->width / 4, o->height)

/* ---- which arguments a form takes ---- */

static const struct form {
	const char *name;
	CUresult (*run)(const struct side *s, const struct op *o);
} forms[] = {
#define ENTRY(name) { #name, run_##name },
	FORMS(ENTRY)
};

struct takes {
	unsigned to, from;
	bool box, deep, unified;
};

static struct takes takes_of(const char *name)
{
	bool old = !strstr(name, "_v2") && !strstr(name, "Peer");
	if (!strncmp(name, "cuMemset", 8))
		return (struct takes){ .to = DEVICES, .from = BIT(PAGEABLE), .box = strstr(name, "D2D") };
	if (strstr(name, "Peer") && !strstr(name, "3D"))
		return (struct takes){ DEVICES, DEVICES, false, false, false };
	if (strstr(name, "3DBatch"))
		return (struct takes){ MEMORY, MEMORY, true, true, false };
	if (strstr(name, "3D"))
		return (struct takes){ (old ? HOSTS : MEMORY) | BIT(BOX), (old ? HOSTS : MEMORY) | BIT(BOX), true, true, !old };
	if (strstr(name, "2D"))
		return (struct takes){ (old ? HOSTS : MEMORY) | BIT(FLAT), (old ? HOSTS : MEMORY) | BIT(FLAT), true, false, !old };
	const char *way = name + strlen("cuMemcpy");
	if (!*way || strncmp(way + 1, "to", 2) != 0)
		return (struct takes){ MEMORY, MEMORY, false, false, false };
	const unsigned sets[2] = { (unsigned char)way[3], (unsigned char)way[0] };
	unsigned found[2];
	for (int i = 0; i < 2; i++)
		found[i] = sets[i] == 'A' ? BIT(LINE) : sets[i] == 'D' ? DEVICES : HOSTS;
	return (struct takes){ found[0], found[1], false, false, false };
}

static enum region draw_region(unsigned set)
{
	for (;;) {
		enum region region = (enum region)draw_below(REGIONS);
		if (set & BIT(region))
			return region;
	}
}

static void draw_op(const struct takes *takes, struct op *o)
{
	memset(o, 0, sizeof *o);
	o->to = draw_region(takes->to);
	/* A copy within one region could overlap itself, which CUDA does not define. But a call that takes one-dimensional arrays
	 * only has no other region. */
	do
		o->from = draw_region(takes->from);
	while (o->from == o->to && takes->from != BIT(LINE));
	o->in_stream = draw_below(2);
	o->unified = takes->unified && draw_below(2);
	o->value = (uint32_t)draw_below(UINT32_MAX);
	if (!takes->box) {
		size_t most = draw_below(3) ? 2048 : BYTES / 2;
		if (takes->to == BIT(LINE) || takes->from == BIT(LINE))
			most = 8192;
		o->n = 4 + draw_below(most / 4) * 4;
		size_t room = takes->to == BIT(LINE) || takes->from == BIT(LINE) ? 16384 : BYTES;
		o->to_at = draw_below((room / 2 - o->n) / 4 + 1) * 4;
		o->from_at = room / 2 + draw_below((room / 2 - o->n) / 4 + 1) * 4;
		return;
	}
	o->width = 4 + draw_below(PITCH / 4 - 1) * 4;
	o->height = 1 + draw_below(ROWS);
	o->depth = takes->deep ? 1 + draw_below(SLICES) : 1;
	o->to_x = draw_below((PITCH - o->width) / 4 + 1) * 4;
	o->from_x = draw_below((PITCH - o->width) / 4 + 1) * 4;
	o->to_y = draw_below(ROWS - o->height + 1);
	o->from_y = draw_below(ROWS - o->height + 1);
	if (takes->deep) {
		o->to_z = draw_below(SLICES - o->depth + 1);
		o->from_z = draw_below(SLICES - o->depth + 1);
	}
	if (!(BIT(o->to) & ARRAYS))
		o->to_at = draw_below((BYTES - BOX_BYTES) / 4 + 1) * 4;
	if (!(BIT(o->from) & ARRAYS))
		o->from_at = draw_below((BYTES - BOX_BYTES) / 4 + 1) * 4;
}

/* ---- the two sides ---- */

static void must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: CUresult %d\n", what, (int)result);
	exit(1);
}
#define MUST(call) must(call, #call)

static void make_array(struct side *s, enum region region, size_t width, size_t height, size_t depth)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { width, height, depth, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0 };
	CUarray array;
	MUST(s->f.cuArray3DCreate_v2(&array, &descriptor));
	s->base[region] = (uint64_t)(uintptr_t)array;
}

/* Writes the bytes of a region, or reads them. */
static void move(struct side *s, enum region region, uint8_t *bytes, bool write)
{
	struct op o = { .to = write ? region : PAGEABLE, .from = write ? PAGEABLE : region, .width = PITCH,
			.height = region == LINE ? 1 : ROWS, .depth = region == BOX ? SLICES : 1, .n = BYTES };
	struct side view = *s;
	view.base[PAGEABLE] = (uint64_t)(uintptr_t)bytes;
	o.n = region == LINE ? 16384 : BYTES;
	if (region == LINE)
		MUST(write ? run_cuMemcpyHtoA_v2(&view, &o) : run_cuMemcpyAtoH_v2(&view, &o));
	else if (BIT(region) & ARRAYS)
		MUST(run_cuMemcpy3D_v2(&view, &o));
	else if (BIT(region) & HOSTS)
		memcpy(write ? (void *)(uintptr_t)s->base[region] : bytes, write ? bytes : (void *)(uintptr_t)s->base[region], BYTES);
	else
		MUST(write ? run_cuMemcpyHtoD_v2(&view, &o) : run_cuMemcpyDtoH_v2(&view, &o));
}

static uint8_t *random_bytes(void)
{
	static uint8_t bytes[BYTES];
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)draw_below(256);
	return bytes;
}

static void make(struct side *s)
{
	void *pinned;
	MUST(s->f.cuInit(0));
	MUST(s->f.cuDevicePrimaryCtxRetain(&s->context, 0));
	MUST(s->f.cuCtxSetCurrent(s->context));
	MUST(s->f.cuStreamCreate(&s->stream, 0));
	s->base[PAGEABLE] = (uint64_t)(uintptr_t)calloc(1, BYTES);
	MUST(s->f.cuMemHostAlloc(&pinned, BYTES, 0));
	s->base[PINNED] = (uint64_t)(uintptr_t)pinned;
	for (int region = DEVICE; region <= OTHER; region++) {
		CUdeviceptr address;
		MUST(s->f.cuMemAlloc_v2(&address, BYTES));
		s->base[region] = address;
	}
	CUdeviceptr managed;
	MUST(s->f.cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	s->base[MANAGED] = managed;
	make_array(s, LINE, 4096, 0, 0);
	make_array(s, FLAT, PITCH / 4, ROWS, 0);
	make_array(s, BOX, PITCH / 4, ROWS, SLICES);
}

/* Returns the first region that differs; REGIONS: none. */
static enum region compare(struct side *direct, struct side *remote)
{
	static uint8_t a[BYTES], b[BYTES];
	for (int region = 0; region < REGIONS; region++) {
		memset(a, 0, sizeof a);
		memset(b, 0, sizeof b);
		move(direct, (enum region)region, a, false);
		move(remote, (enum region)region, b, false);
		if (memcmp(a, b, sizeof a))
			return (enum region)region;
	}
	return REGIONS;
}

static unsigned step(struct side *direct, struct side *remote, const struct form *form)
{
	struct takes takes = takes_of(form->name);
	struct op o;
	draw_op(&takes, &o);
	CUresult a = form->run(direct, &o), b = form->run(remote, &o);
	CUresult end_a = direct->f.cuCtxSynchronize(), end_b = remote->f.cuCtxSynchronize();
	enum region differs = compare(direct, remote);
	if (a == b && end_a == end_b && a == CUDA_SUCCESS && end_a == CUDA_SUCCESS && differs == REGIONS)
		return 0;
	printf("%s, from region %d to region %d, %zu bytes, %zu x %zu x %zu%s: direct %d and %d, remote %d and %d, region %d differs\n",
	       form->name, (int)o.from, (int)o.to, o.n, o.width, o.height, o.depth, o.unified ? ", unified" : "", (int)a,
	       (int)end_a, (int)b, (int)end_b, differs == REGIONS ? -1 : (int)differs);
	return 1;
}

int main(int argc, char **argv)
{
	static struct side direct, remote;
	unsigned different = 0;
	if (argc < 5) {
		printf("usage: %s DRIVER CLIENT ROUNDS SEED\n", argv[0]);
		return 2;
	}
	void *driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	/* Not linked: the driver's calls of its own functions must not reach the client's. */
	void *client = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	must(driver ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND, argv[1]);
	must(client ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND, argv[2]);
	state = strtoull(argv[4], NULL, 0);
#define OPEN(name) \
	direct.f.name = (__typeof__(&name))dlsym(driver, #name); \
	remote.f.name = (__typeof__(&name))dlsym(client, #name); \
	must(direct.f.name && remote.f.name ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, #name);
	FORMS(OPEN)
	OTHERS(OPEN)
	make(&direct);
	make(&remote);
	for (int region = 0; region < REGIONS; region++) {
		uint8_t *bytes = random_bytes();
		move(&direct, (enum region)region, bytes, true);
		move(&remote, (enum region)region, bytes, true);
	}
	unsigned rounds = (unsigned)strtoul(argv[3], NULL, 10), n = sizeof forms / sizeof forms[0];
	for (unsigned i = 0; i < rounds && different < 20; i++)
		for (unsigned form = 0; form < n && different < 20; form++)
			different += step(&direct, &remote, &forms[form]);
	printf("%u forms, %u calls of each, seed %s: %u differences\n", n, rounds, argv[4], different);
	direct.f.cuDevicePrimaryCtxReset_v2(0);
	remote.f.cuDevicePrimaryCtxReset_v2(0);
	free((void *)(uintptr_t)direct.base[PAGEABLE]);
	free((void *)(uintptr_t)remote.base[PAGEABLE]);
	return different != 0;
}
