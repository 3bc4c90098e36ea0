/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tensor maps: which are valid, and the tiles that kernels copy with them. The tile in shared memory is written out and
 * compared, element by element, with the rules of the Programming Guide.
 */
#include "driver.h"

#include "cuda_remote/softgpu/tensor_map.h"

#include <stdbool.h>

#define BYTES 16384

/* A kernel for tensors of so many dimensions: what is done between shared memory and the tensor, of 128 threads. */
static CUmodule module_new(unsigned rank, const char *target, const char *operation)
{
	static const char *const text =
		".version 8.6\n.target %s\n.address_size 64\n"
		".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes, .param .u32 p0,\n"
		" .param .u32 p1, .param .u32 p2, .param .u32 p3, .param .u32 p4)\n{\n"
		".reg .pred %%p<4>; .reg .b16 %%h<2>; .reg .b32 %%r<16>; .reg .b64 %%a<8>;\n"
		".shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;\n"
		"ld.param.u64 %%a0, [out]; cvta.to.global.u64 %%a0, %%a0; ld.param.u32 %%r0, [bytes];\n"
		"ld.param.u32 %%r1, [p0]; ld.param.u32 %%r2, [p1]; ld.param.u32 %%r3, [p2]; ld.param.u32 %%r4, [p3];\n"
		"ld.param.u32 %%r5, [p4]; mov.b64 %%a1, map; cvta.param.u64 %%a1, %%a1; mov.u32 %%r6, tile;\n"
		"mov.u32 %%r7, bar; mov.u32 %%r8, %%tid.x; setp.eq.u32 %%p0, %%r8, 0; mov.b16 %%h0, %%h1;\n"
		/* The tile is 0xEE before, or what out has. */
		"shl.b32 %%r9, %%r8, 2;\n"
		"FILL: add.u32 %%r10, %%r6, %%r9; cvt.u64.u32 %%a2, %%r9; add.u64 %%a2, %%a2, %%a0;\n"
		"ld.global.b32 %%r11, [%%a2]; st.shared.b32 [%%r10], %%r11; add.u32 %%r9, %%r9, 512;\n"
		"setp.lt.u32 %%p1, %%r9, 16384; @%%p1 bra FILL;\n"
		"@%%p0 mbarrier.init.shared.b64 [%%r7], 1; bar.sync 0; prefetch.tensormap [%%a1];\n"
		"@%%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%%r7], %%r0;\n"
		"%s\n"
		"bar.sync 0; shl.b32 %%r9, %%r8, 2;\n"
		"OUT: add.u32 %%r10, %%r6, %%r9; cvt.u64.u32 %%a2, %%r9; add.u64 %%a2, %%a2, %%a0;\n"
		"ld.shared.b32 %%r11, [%%r10]; st.global.b32 [%%a2], %%r11; add.u32 %%r9, %%r9, 512;\n"
		"setp.lt.u32 %%p1, %%r9, 16384; @%%p1 bra OUT; ret;\n}\n";
	char operands[64] = "", body[4096], all[8192];
	for (unsigned i = 0; i < rank; i++)
		snprintf(operands + strlen(operands), sizeof operands - strlen(operands), "%s%%r%u", i ? "," : "",
			 i + 1);
	snprintf(body, sizeof body, operation, rank, operands, rank, operands);
	snprintf(all, sizeof all, text, target, body);
	CUmodule module;
	OK(cuModuleLoadData(&module, all));
	return module;
}

#define LOAD "@%%p0 cp.async.bulk.prefetch.tensor.%ud.L2.global.tile [%%a1, {%s}];\n" \
	"@%%p0 cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes" \
	" [%%r6], [%%a1, {%s}], [%%r7];\n" \
	"WAIT: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r7], 0; @!%%p2 bra WAIT;"
#define STORE "@%%p0 cp.async.bulk.tensor.%ud.global.shared::cta.bulk_group [%%a1, {%s}], [%%r6];\n" \
	"@%%p0 cp.async.bulk.commit_group; @%%p0 cp.async.bulk.wait_group 0;"
#define REDUCE(op) "@%%p0 cp.reduce.async.bulk.tensor.%ud.global.shared::cta." op ".bulk_group [%%a1, {%s}], [%%r6];"

/* What a test makes a map of. */
typedef struct shape {
	CUtensorMapDataType type;
	unsigned rank, element;
	cuuint64_t dimensions[5], strides[4];
	cuuint32_t box[5], steps[5];
	CUtensorMapSwizzle swizzle;
	CUtensorMapFloatOOBfill fill;
} shape_t;

static CUresult encode(CUtensorMap *map, const shape_t *shape, CUdeviceptr memory)
{
	return cuTensorMapEncodeTiled(map, shape->type, shape->rank, (void *)(uintptr_t)memory, shape->dimensions,
				      shape->strides, shape->box, shape->steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
				      shape->swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, shape->fill);
}

static CUresult run(CUmodule module, const CUtensorMap *map, CUdeviceptr out, uint32_t bytes, const int32_t *at)
{
	CUfunction function;
	int32_t where[5];
	memcpy(where, at, sizeof where);
	void *parameters[] = { (void *)(uintptr_t)map, &out, &bytes, &where[0], &where[1], &where[2], &where[3],
			       &where[4] };
	OK(cuModuleGetFunction(&function, module, "k"));
	OK(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
	return cuCtxSynchronize();
}

static unsigned count_in(const shape_t *shape, unsigned i)
{
	return i ? (shape->box[i] + shape->steps[i] - 1) / shape->steps[i] : shape->box[0];
}

static uint32_t tile_bytes(const shape_t *shape)
{
	uint32_t bytes = shape->element;
	for (unsigned i = 0; i < shape->rank; i++)
		bytes *= count_in(shape, i);
	return bytes;
}

/*
 * Element number n of the tile, the first dimension first: its place in shared memory, which is aligned to 1024 bytes,
 * and in the tensor; false: it is outside of that. The places of swizzled chunks are those of the Programming Guide's
 * tables: chunk x of row y of 128 bytes is at chunk x ^ (y % 8), of 64 at x ^ (y / 2 % 4), of 32 at x ^ (y / 4 % 2).
 */
static int place(const shape_t *shape, const int32_t *at, uint32_t n, uint32_t *in_tile, uint64_t *in_tensor)
{
	uint32_t row = n / shape->box[0], x = n % shape->box[0] * shape->element, chunk = x / 16;
	int inside = 1;
	*in_tensor = 0;
	for (unsigned i = 0, rest = n; i < shape->rank; i++) {
		int64_t c = at[i] + (int64_t)(rest % count_in(shape, i)) * (i ? shape->steps[i] : 1);
		rest /= count_in(shape, i);
		inside &= c >= 0 && c < (int64_t)shape->dimensions[i];
		*in_tensor += (uint64_t)c * (i ? shape->strides[i - 1] : shape->element);
	}
	if (shape->swizzle == CU_TENSOR_MAP_SWIZZLE_128B)
		chunk ^= row % 8;
	else if (shape->swizzle == CU_TENSOR_MAP_SWIZZLE_64B)
		chunk ^= row / 2 % 4;
	else if (shape->swizzle == CU_TENSOR_MAP_SWIZZLE_32B)
		chunk ^= row / 4 % 2;
	*in_tile = row * shape->box[0] * shape->element + chunk * 16 + x % 16;
	return inside;
}

static CUdeviceptr tensor, out;
#define TENSOR_BYTES 65536

static unsigned char *bytes_at(CUdeviceptr address)
{
	return (unsigned char *)(uintptr_t)address;
}

static void prepare(void)
{
	for (uint32_t i = 0; i < TENSOR_BYTES; i++)
		bytes_at(tensor)[i] = (unsigned char)(i * 2654435761u >> 13);
	memset(bytes_at(out), 0xEE, BYTES);
}

/* All of shared memory after the load of a tile from this position. */
static void expect_tile(const shape_t *shape, const int32_t *at, unsigned char *want)
{
	memset(want, 0xEE, BYTES);
	for (uint32_t n = 0; n < tile_bytes(shape) / shape->element; n++) {
		uint32_t in_tile;
		uint64_t in_tensor;
		int inside = place(shape, at, n, &in_tile, &in_tensor);
		if (inside)
			memcpy(want + in_tile, bytes_at(tensor) + in_tensor, shape->element);
		else
			memset(want + in_tile, shape->fill ? 0xFF : 0, shape->element);
	}
}

/* Loads a tile from this position and compares all of shared memory. */
static void check_load(const shape_t *shape, const int32_t *at)
{
	CUtensorMap map;
	unsigned char want[BYTES];
	prepare();
	OK(encode(&map, shape, tensor));
	CUmodule module = module_new(shape->rank, "sm_90", LOAD);
	OK(run(module, &map, out, tile_bytes(shape), at));
	expect_tile(shape, at, want);
	CHECK(!memcmp(want, bytes_at(out), BYTES));
	OK(cuModuleUnload(module));
}

static const shape_t plain = { CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, 4, { 100, 60 }, { 400 }, { 16, 12 }, { 1, 1 }, 0,
			       0 };
static const shape_t five = { CU_TENSOR_MAP_DATA_TYPE_UINT16, 5, 2, { 24, 5, 4, 6, 3 }, { 48, 256, 1040, 6400 },
			      { 8, 3, 2, 4, 2 }, { 1, 1, 1, 1, 1 }, 0, 0 };
static const shape_t line = { CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, 1, { 1000 }, { 0 }, { 64 }, { 1 }, 0, 0 };

static void tiles_are_loaded_and_what_is_outside_is_filled(void)
{
	check_load(&plain, (int32_t[5]){ 5, 7 });
	check_load(&plain, (int32_t[5]){ -3, -2 });
	check_load(&plain, (int32_t[5]){ 95, 55 });
	check_load(&plain, (int32_t[5]){ 100, 0 });
	check_load(&plain, (int32_t[5]){ -2147483647 - 1, 2147483647 });
	check_load(&line, (int32_t[5]){ 990 });
	check_load(&five, (int32_t[5]){ 8, 1, 1, 2, 1 });
	check_load(&five, (int32_t[5]){ 20, -1, 3, 4, -1 });
	shape_t doubles = { CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 3, 8, { 10, 9, 8 }, { 96, 1024 }, { 4, 3, 2 }, { 1, 1, 1 },
			    0, 0 };
	check_load(&doubles, (int32_t[5]){ 8, 7, 7 });
	shape_t nan = { CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, 2, { 20, 10 }, { 64 }, { 16, 4 }, { 1, 1 }, 0,
			CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA };
	check_load(&nan, (int32_t[5]){ 10, 8 });
}

/* The last of three blocks loads a tile for itself and the first one. Each writes its shared memory out. */
static void a_tile_goes_to_several_blocks_of_a_cluster(void)
{
	static const char *const load =
		"mov.u32 %%r12, %%cluster_ctarank; mul.wide.u32 %%a3, %%r12, 16384; setp.eq.and.u32 %%p3, %%r12, 2, %%p0;\n"
		"barrier.cluster.arrive; barrier.cluster.wait; add.u64 %%a0, %%a0, %%a3; mov.b16 %%h0, 5;\n"
		"@%%p3 cp.async.bulk.prefetch.tensor.%ud.L2.global.tile [%%a1, {%s}];\n"
		"@%%p3 cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
		" [%%r6], [%%a1, {%s}], [%%r7], %%h0;\n"
		"setp.eq.u32 %%p3, %%r12, 1; @%%p3 bra END;\n"
		"WAIT: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r7], 0; @!%%p2 bra WAIT; END:";
	CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { 3, 1, 1 } };
	CUlaunchConfig config = { .gridDimX = 3, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 128, .blockDimY = 1,
				  .blockDimZ = 1, .attrs = &cluster, .numAttrs = 1 };
	CUtensorMap map;
	CUfunction function;
	unsigned char want[BYTES];
	int32_t at[5] = { 5, 7 };
	uint32_t bytes = tile_bytes(&plain);
	void *parameters[] = { &map, &out, &bytes, &at[0], &at[1], &at[2], &at[3], &at[4] };
	prepare();
	OK(encode(&map, &plain, tensor));
	CUmodule module = module_new(plain.rank, "sm_90", load);
	OK(cuModuleGetFunction(&function, module, "k"));
	OK(cuLaunchKernelEx(&config, function, parameters, NULL));
	OK(cuCtxSynchronize());
	expect_tile(&plain, at, want);
	CHECK(!memcmp(want, bytes_at(out), BYTES));
	CHECK(!memcmp(want, bytes_at(out) + 2 * BYTES, BYTES));
	memset(want, 0xEE, BYTES);
	CHECK(!memcmp(want, bytes_at(out) + BYTES, BYTES));
	OK(cuModuleUnload(module));
}

static void steps_leave_elements_out(void)
{
	shape_t stepping = { CU_TENSOR_MAP_DATA_TYPE_UINT32, 3, 4, { 32, 20, 12 }, { 128, 2560 }, { 8, 9, 5 },
			     { 7, 2, 3 }, 0, 0 };
	check_load(&stepping, (int32_t[5]){ 3, 1, 2 });
	check_load(&stepping, (int32_t[5]){ 28, 15, -3 });
}

static void swizzled_chunks_are_where_the_guide_says(void)
{
	shape_t swizzled = { CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, 2, { 128, 64 }, { 256 }, { 64, 24 }, { 1, 1 },
			     CU_TENSOR_MAP_SWIZZLE_128B, 0 };
	check_load(&swizzled, (int32_t[5]){ 32, 5 });
	swizzled.box[0] = 32;
	swizzled.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
	check_load(&swizzled, (int32_t[5]){ 100, 50 });
	swizzled.box[0] = 16;
	swizzled.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
	swizzled.box[1] = 11;
	check_load(&swizzled, (int32_t[5]){ -4, 3 });
}

/* What is to become of a word; how it is done. */
static uint32_t stored(uint32_t before, uint32_t with)
{
	(void)before;
	return with;
}

static uint32_t added(uint32_t before, uint32_t with)
{
	return before + with;
}

static uint32_t exclusive(uint32_t before, uint32_t with)
{
	return before ^ with;
}

static uint32_t least(uint32_t before, uint32_t with)
{
	return (int32_t)before < (int32_t)with ? before : with;
}

/* Stores what out has as a tile, or reduces what is there with it. */
static void check_store(const shape_t *shape, const int32_t *at, const char *operation,
			uint32_t (*result)(uint32_t before, uint32_t with))
{
	CUtensorMap map;
	unsigned char *want = malloc(TENSOR_BYTES);
	prepare();
	for (uint32_t i = 0; i < BYTES; i++)
		bytes_at(out)[i] = (unsigned char)(i * 40503u >> 7);
	memcpy(want, bytes_at(tensor), TENSOR_BYTES);
	for (uint32_t n = 0; n < tile_bytes(shape) / shape->element; n++) {
		uint32_t in_tile, a, b;
		uint64_t in_tensor;
		if (!place(shape, at, n, &in_tile, &in_tensor))
			continue;
		a = b = 0;
		memcpy(&a, want + in_tensor, shape->element);
		memcpy(&b, bytes_at(out) + in_tile, shape->element);
		a = result(a, b);
		memcpy(want + in_tensor, &a, shape->element);
	}
	OK(encode(&map, shape, tensor));
	CUmodule module = module_new(shape->rank, "sm_90", operation);
	OK(run(module, &map, out, 0, at));
	CHECK(!memcmp(want, bytes_at(tensor), TENSOR_BYTES));
	OK(cuModuleUnload(module));
	free(want);
}

static void tiles_are_stored_inside_the_tensor_alone(void)
{
	check_store(&plain, (int32_t[5]){ 95, 55 }, STORE, stored);
	check_store(&plain, (int32_t[5]){ -3, -2 }, STORE, stored);
	check_store(&five, (int32_t[5]){ 20, -1, 3, 4, -1 }, STORE, stored);
	shape_t swizzled = { CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, 4, { 64, 64 }, { 256 }, { 32, 20 }, { 1, 1 },
			     CU_TENSOR_MAP_SWIZZLE_128B, 0 };
	check_store(&swizzled, (int32_t[5]){ 40, 3 }, STORE, stored);
	check_store(&swizzled, (int32_t[5]){ 40, 50 }, REDUCE("add"), added);
	check_store(&swizzled, (int32_t[5]){ 40, 50 }, REDUCE("xor"), exclusive);
	swizzled.type = CU_TENSOR_MAP_DATA_TYPE_INT32;
	check_store(&swizzled, (int32_t[5]){ -9, 9 }, REDUCE("min"), least);
}

/* The address alone changes. */
static void a_maps_address_is_replaced(void)
{
	CUtensorMap map, moved;
	unsigned char here[64];
	OK(encode(&map, &line, tensor));
	OK(encode(&moved, &line, tensor + 4096));
	OK(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)(tensor + 4096)));
	CHECK(!memcmp(&map, &moved, sizeof map));
	/* Of objects of Python's cuda.core, whose maps are aligned to 16 bytes. */
	CUtensorMap at_16[2];
	void *place = (unsigned char *)at_16 + 16;
	OK(encode(place, &line, tensor));
	OK(cuTensorMapReplaceAddress(place, (void *)(uintptr_t)(tensor + 4096)));
	CHECK(!memcmp(place, &moved, sizeof moved));
	EXPECT(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)(tensor + 8)), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuTensorMapReplaceAddress(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	memset(&moved, 0, sizeof moved);
	EXPECT(cuTensorMapReplaceAddress(&moved, (void *)(uintptr_t)tensor), CUDA_ERROR_INVALID_VALUE);
	prepare();
	memcpy(here, bytes_at(tensor) + 4096, sizeof here);
	CUmodule module = module_new(1, "sm_90", LOAD);
	OK(run(module, &map, out, 64, (int32_t[5]){ 0 }));
	CHECK(!memcmp(here, bytes_at(out), sizeof here));
	OK(cuModuleUnload(module));
}

/*
 * A kernel makes of the map of one tensor that of another one: in shared memory, by a copy to global memory, there, and by a
 * generic address. It is then the map that the driver makes of the other tensor, and a tile of that one is loaded.
 */
static void a_kernel_changes_a_map(void)
{
	/* $ stands for a percent sign. */
	static const char *const text =
		"{ .shared .align 128 .b8 own[128]; .reg .b32 s<3>; .reg .b64 m<4>; .reg .pred q;\n"
		"mov.u32 s0, own; mov.u32 s1, s0; mov.b64 m0, $a1;\n"
		"COPY: ld.b64 m1, [m0]; st.shared.b64 [s1], m1; add.u64 m0, m0, 8; add.u32 s1, s1, 8; add.u32 s2, s0, 128;\n"
		"setp.lt.u32 q, s1, s2; @q bra COPY; add.u64 m2, $a0, 16384; cvt.u64.u32 m3, s0; mov.b64 m0, %llu;\n"
		"mov.u32 s1, 90; bar.sync 0;\n"
		"@$p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [m3], m0;\n"
		"@$p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [s0], 0, s1;\n"
		"@$p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [s0], 4, 1;\n"
		"@$p0 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [m3], 3, 0; bar.sync 0;\n"
		"setp.lt.u32 q, $r8, 32;\n"
		"@q tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [m2], [s0], 128;\n"
		"@$p0 tensormap.replace.tile.global_stride.global.b1024.b64 [m2], 0, 448; cvta.global.u64 m1, m2;\n"
		"@$p0 tensormap.replace.tile.global_dim.b1024.b32 [m1], 1, 50;\n"
		"fence.proxy.tensormap::generic.acquire.gpu [m1], 128;\n"
		"@$p0 cp.async.bulk.prefetch.tensor.$ud.L2.global.tile [m1, {$s}];\n"
		"@$p0 cp.async.bulk.tensor.$ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
		" [$r6], [m1, {$s}], [$r7]; }\n"
		"WAIT: mbarrier.try_wait.parity.shared.b64 $p2, [$r7], 0; @!$p2 bra WAIT;";
	const int32_t at[5] = { 80, 45 };
	char with_address[2048], operation[4096];
	unsigned char want[BYTES];
	CUtensorMap map, changed;
	size_t n = 0;
	shape_t other = plain;
	other.dimensions[0] = 90;
	other.dimensions[1] = 50;
	other.strides[0] = 448;
	prepare();
	OK(encode(&map, &plain, tensor));
	OK(encode(&changed, &other, tensor + 4096));
	snprintf(with_address, sizeof with_address, text, (unsigned long long)tensor + 4096);
	for (const char *each = with_address; *each; each++) {
		bool percent = *each == '$', doubled = percent && strncmp(each, "$ud.", 4) && strncmp(each, "$s}", 3);
		operation[n++] = percent ? '%' : *each;
		if (doubled)
			operation[n++] = '%';
	}
	operation[n] = 0;
	CUmodule module = module_new(2, "sm_90a", operation);
	OK(run(module, &map, out, tile_bytes(&other), at));
	CHECK(!memcmp(bytes_at(out) + BYTES, &changed, sizeof changed));
	tensor += 4096;
	expect_tile(&other, at, want);
	tensor -= 4096;
	CHECK(!memcmp(want, bytes_at(out), BYTES));
	OK(cuModuleUnload(module));
}

#define REFUSED(field, value, wanted)                          \
	do {                                                   \
		shape_t shape_ = plain;                        \
		shape_.field = value;                          \
		EXPECT(encode(&map, &shape_, tensor), wanted); \
	} while (0)

static void what_cannot_be_is_refused(void)
{
	CUtensorMap map;
	REFUSED(rank, 0, CUDA_ERROR_INVALID_VALUE);
	REFUSED(rank, 6, CUDA_ERROR_INVALID_VALUE);
	REFUSED(dimensions[1], 0, CUDA_ERROR_INVALID_VALUE);
	REFUSED(dimensions[0], (UINT64_C(1) << 32) + 1, CUDA_ERROR_INVALID_VALUE);
	REFUSED(strides[0], 408, CUDA_ERROR_INVALID_VALUE);
	REFUSED(strides[0], UINT64_C(1) << 40, CUDA_ERROR_INVALID_VALUE);
	REFUSED(box[0], 0, CUDA_ERROR_INVALID_VALUE);
	REFUSED(box[1], 257, CUDA_ERROR_INVALID_VALUE);
	REFUSED(box[0], 15, CUDA_ERROR_INVALID_VALUE); /* 60 bytes */
	REFUSED(steps[1], 0, CUDA_ERROR_INVALID_VALUE);
	REFUSED(steps[1], 9, CUDA_ERROR_INVALID_VALUE);
	REFUSED(swizzle, CU_TENSOR_MAP_SWIZZLE_32B, CUDA_ERROR_INVALID_VALUE); /* a row of 64 bytes */
	REFUSED(swizzle, 7, CUDA_ERROR_INVALID_VALUE);
	REFUSED(type, 16, CUDA_ERROR_INVALID_VALUE);
	shape_t integers = plain;
	integers.type = CU_TENSOR_MAP_DATA_TYPE_INT32;
	integers.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
	EXPECT(encode(&map, &integers, tensor), CUDA_ERROR_INVALID_VALUE);
	EXPECT(encode(&map, &plain, tensor + 8), CUDA_ERROR_INVALID_VALUE);
	EXPECT(encode(NULL, &plain, tensor), CUDA_ERROR_INVALID_VALUE);
	/* And what this device does not do. */
	REFUSED(type, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CUDA_ERROR_NOT_SUPPORTED);
	REFUSED(swizzle, CU_TENSOR_MAP_SWIZZLE_128B, CUDA_ERROR_NOT_SUPPORTED);
	REFUSED(swizzle, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B, CUDA_ERROR_NOT_SUPPORTED);
	REFUSED(fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA, CUDA_ERROR_NOT_SUPPORTED);
}

/* Runs in a context of its own, which the fault destroys. */
static void check_fault_of(CUresult wanted, const shape_t *shape, unsigned rank, CUdeviceptr memory,
			   const char *operation, uint64_t change)
{
	CUcontext context;
	CUdeviceptr own;
	CUtensorMap map;
	OK(cuCtxCreate(&context, NULL, 0, 0));
	OK(cuMemAlloc(&own, BYTES));
	memset(&map, 0, sizeof map);
	if (shape)
		OK(encode(&map, shape, memory ? memory : own));
	map.opaque[0] ^= change;
	CUmodule module = module_new(rank, "sm_90", operation);
	EXPECT(run(module, &map, own, shape ? tile_bytes(shape) : 0, (int32_t[5]){ 0 }), wanted);
	OK(cuCtxDestroy(context));
}

static void check_fault(CUresult wanted, const shape_t *shape, unsigned rank, CUdeviceptr memory, const char *operation)
{
	check_fault_of(wanted, shape, rank, memory, operation, 0);
}

/* A kernel can write what the driver does not encode: here a swizzle that moves chunks out of the tile. */
static void check_swizzle_of_short_rows(void)
{
	CUcontext context;
	CUdeviceptr own;
	CUtensorMap map;
	softgpu_tensor_map_t content;
	OK(cuCtxCreate(&context, NULL, 0, 0));
	OK(cuMemAlloc(&own, BYTES));
	OK(encode(&map, &plain, own));
	memcpy(&content, &map, sizeof content);
	content.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
	memcpy(&map, &content, sizeof content);
	CUmodule module = module_new(plain.rank, "sm_90", LOAD);
	EXPECT(run(module, &map, own, tile_bytes(&plain), (int32_t[5]){ 0 }), CUDA_ERROR_ILLEGAL_INSTRUCTION);
	OK(cuCtxDestroy(context));
}

static void faults_are_found(void)
{
	shape_t long_rows = plain, large = plain, halves = line;
	halves.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
	halves.element = 2;
	long_rows.strides[0] = 65536; /* the second row lies behind the allocation */
	large.box[0] = large.box[1] = 256;
	check_fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, NULL, 2, 0, LOAD);
	check_fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, &plain, 3, 0, LOAD);
	check_fault_of(CUDA_ERROR_ILLEGAL_INSTRUCTION, &plain, 2, 0, LOAD, 1); /* not what the driver wrote */
	check_fault(CUDA_ERROR_ILLEGAL_ADDRESS, &long_rows, 2, 0, LOAD);
	check_fault(CUDA_ERROR_ILLEGAL_ADDRESS, &plain, 2, 4096, LOAD);
	check_fault(CUDA_ERROR_ILLEGAL_ADDRESS, &long_rows, 2, 0, STORE);
	check_fault(CUDA_ERROR_ILLEGAL_ADDRESS, &large, 2, 0, LOAD); /* more than there is of shared memory */
	check_fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, &line, 1, 0, REDUCE("add")); /* of bytes */
	check_swizzle_of_short_rows();
	/* The map is a parameter, which a kernel cannot change; and no place for a map. */
	check_fault(CUDA_ERROR_ILLEGAL_ADDRESS, &plain, 2, 0, "tensormap.replace.tile.global_address.b1024.b64 [%%a1], %%a0;");
	check_fault(CUDA_ERROR_MISALIGNED_ADDRESS, &plain, 2, 0,
		    "tensormap.replace.tile.global_dim.global.b1024.b32 [%%a0+8], 0, %%r0;");
	/* Bits are combined in words of 32 and 64 of them alone. */
	check_fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, &line, 1, 0, REDUCE("and"));
	check_fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, &halves, 1, 0, REDUCE("or"));
	check_fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, &halves, 1, 0, REDUCE("xor"));
}

int main(void)
{
	setenv("HEADRACE_SOFTGPU_CAPABILITY", "90", 1);
	start();
	int supported;
	OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0));
	CHECK(supported);
	OK(cuMemAllocManaged(&tensor, TENSOR_BYTES, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAllocManaged(&out, 3 * BYTES, CU_MEM_ATTACH_GLOBAL));
	tiles_are_loaded_and_what_is_outside_is_filled();
	a_tile_goes_to_several_blocks_of_a_cluster();
	steps_leave_elements_out();
	swizzled_chunks_are_where_the_guide_says();
	tiles_are_stored_inside_the_tensor_alone();
	a_maps_address_is_replaced();
	a_kernel_changes_a_map();
	what_cannot_be_is_refused();
	faults_are_found();
	return 0;
}
