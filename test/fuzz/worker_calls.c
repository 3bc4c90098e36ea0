/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls to a worker with arguments that are nearly right: see worker_calls.h. */
#include "test/fuzz/worker_calls.h"

#include <cuda.h>

#define BYTES (2u << 20) /* of an allocation of virtual memory */

struct calls_told calls_told;

static void take_fixed(struct made_call *to, enum rc_call function, const void *fixed, size_t size)
{
	to->function = function;
	to->words = (unsigned)(size / 8);
	memcpy(to->word, fixed, size);
}

static void take_more(struct made_call *to, const void *more, size_t size)
{
	memcpy(to->payload + to->len, more, size);
	to->len += size;
}

/* A call whose fixed arguments are a struct. */
#define FIXED(to, function, ...) \
	do { \
		__typeof__(__VA_ARGS__) fixed_ = __VA_ARGS__; \
		take_fixed(to, function, &fixed_, sizeof fixed_); \
	} while (0)
#define MORE(to, ...) \
	do { \
		__typeof__(__VA_ARGS__) more_ = __VA_ARGS__; \
		take_more(to, &more_, sizeof more_); \
	} while (0)

static void take_word(struct made_call *to, enum rc_call function, uint64_t word)
{
	take_fixed(to, function, &word, sizeof word);
}

/* ---- memory ---- */

static void placed(struct made_call *to, uint8_t what, uint8_t which)
{
	uint64_t page = calls_told.page, at = CALLS_WINDOW + which % 16 * page;
	switch (what % 5) {
	case 0:
		FIXED(to, RC_CALL_memory_budget,
		      (struct rc_wire_budget){ (1 + which % 4) * page, (1 + which / 4 % 8) * page, 0 });
		break;
	case 1: FIXED(to, RC_CALL_memory_budget, (struct rc_wire_budget){ 0, 0, (1 + which % 2) * page }); break;
	case 2:
		FIXED(to, RC_CALL_memory_place, (struct rc_wire_place){ at, 4096u << which / 32 });
		calls_told.address = at;
		break;
	case 3:
		FIXED(to, which % 2 ? RC_CALL_memory_unplace : RC_CALL_memory_free,
		      (struct rc_wire_address){ calls_told.address });
		break;
	default: FIXED(to, RC_CALL_memory_alloc_pitch, (struct rc_wire_rows){ 1 + which, 1 + which % 64, 4u << which % 3, 0 });
	}
}

/* Mirrors of managed memory. */
static void managed(struct made_call *to, uint8_t what, uint8_t which)
{
	uint64_t at = CALLS_WINDOW + CALLS_WINDOW_BYTES / 2 + which % 4 * calls_told.page;
	uint64_t bytes = 1 + which * 3u;
	switch (what % 6) {
	case 0: to->function = RC_CALL_managed_info; break;
	case 1: FIXED(to, RC_CALL_managed_make, (struct rc_wire_place){ at, RC_MIRROR_PAGE * (1u + which / 64) }); break;
	case 2:
		to->function = RC_CALL_managed_push;
		for (unsigned i = 0; i < 1 + which % 3u; i++) {
			MORE(to, (struct rc_wire_change){ at + i * 1000u, bytes });
			memset(to->payload + to->len, which, bytes);
			to->len += bytes;
		}
		break;
	case 5: /* pinned memory that gets a mirror: free addresses, and some that the worker uses; or the question for free ones */
		FIXED(to, RC_CALL_pinned_mirror,
		      (struct rc_wire_pin){ which % 16 ? calls_handle(RC_KIND_PINNED, which) : 0, bytes,
					    which % 8 ? at + CALLS_WINDOW_BYTES + which : (uint64_t)(uintptr_t)to,
					    RC_PIN_WHOLE, 0 });
		break;
	case 3: FIXED(to, RC_CALL_managed_pull, (struct rc_wire_pull){ which % 2 ? at : 0 }); break;
	default: FIXED(to, RC_CALL_managed_free, (struct rc_wire_address){ at });
	}
}

static void virtual(struct made_call *to, uint8_t what, uint8_t which)
{
	uint64_t memory = calls_handle(RC_KIND_ALLOCATION, which), at = calls_told.reserved + which / 4 % 2 * BYTES;
	CUmemLocation device = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
	switch (what % 11) {
	case 0: FIXED(to, RC_CALL_virtual_reserve, (struct rc_wire_reserve){ 2 * BYTES, 0, 0 }); break;
	case 1: FIXED(to, RC_CALL_virtual_unreserve, (struct rc_wire_range){ calls_told.reserved, 2 * BYTES }); break;
	case 2:
		FIXED(to, RC_CALL_cuMemCreate, (struct rc_args_cuMemCreate){ memory, BYTES, 0 });
		MORE(to, (CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = device,
						.requestedHandleTypes = which & 16 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0 });
		break;
	case 3: FIXED(to, RC_CALL_virtual_release, (struct rc_wire_memory){ memory }); break;
	case 4: FIXED(to, RC_CALL_virtual_properties, (struct rc_wire_memory){ memory }); break;
	case 5: FIXED(to, RC_CALL_virtual_export, (struct rc_wire_memory){ memory }); break;
	case 6: FIXED(to, RC_CALL_virtual_import, (struct rc_wire_import){ calls_told.allocation, memory }); break;
	case 7: FIXED(to, RC_CALL_virtual_map, (struct rc_wire_map){ at, BYTES, 0, memory }); break;
	case 8: FIXED(to, RC_CALL_virtual_unmap, (struct rc_wire_range){ at, BYTES }); break;
	case 9:
		FIXED(to, RC_CALL_cuMemSetAccess, (struct rc_args_cuMemSetAccess){ at, BYTES, 1 });
		MORE(to, (CUmemAccessDesc){ device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE });
		break;
	default:
		FIXED(to, RC_CALL_cuMemGetAccess, (struct rc_args_cuMemGetAccess){ at });
		MORE(to, device);
	}
}

static void pool(struct made_call *to, uint8_t what, uint8_t which)
{
	uint64_t pool = calls_handle(RC_KIND_POOL, which);
	switch (what % 8) {
	case 0:
		take_word(to, RC_CALL_pool_create, pool);
		MORE(to, (CUmemPoolProps){ .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
					   .handleTypes = which & 16 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0 });
		break;
	case 1: take_word(to, RC_CALL_pool_export, pool); break;
	case 2: FIXED(to, RC_CALL_pool_import, (struct rc_wire_import){ calls_told.pool, pool }); break;
	case 3: FIXED(to, RC_CALL_memory_alloc_async, (struct rc_wire_alloc){ 4096, 0, which & 8 ? pool : 0 }); break;
	case 4: FIXED(to, RC_CALL_memory_free_async, (struct rc_wire_free){ calls_told.pooled, 0 }); break;
	case 5: FIXED(to, RC_CALL_pool_export_pointer, (struct rc_wire_address){ calls_told.pooled }); break;
	case 6: FIXED(to, RC_CALL_pool_import_pointer, (struct rc_wire_import){ calls_told.pointer, pool }); break;
	default: take_word(to, RC_CALL_cuMemPoolDestroy, pool);
	}
}

static void ipc(struct made_call *to, uint8_t what, uint8_t which)
{
	uint64_t event = calls_handle(RC_KIND_EVENT, which);
	switch (what % 6) {
	case 0: FIXED(to, RC_CALL_ipc_get_memory, (struct rc_wire_address){ calls_told.address }); break;
	case 1:
		FIXED(to, RC_CALL_ipc_open_memory,
		      (struct rc_wire_open){ calls_told.memory, 0, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 0 });
		break;
	case 2: FIXED(to, RC_CALL_ipc_close_memory, (struct rc_wire_address){ calls_told.opened }); break;
	case 3:
		FIXED(to, RC_CALL_cuEventCreate,
		      (struct rc_args_cuEventCreate){ event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS });
		break;
	case 4: FIXED(to, RC_CALL_ipc_get_event, (struct rc_wire_event){ event }); break;
	default: FIXED(to, RC_CALL_ipc_open_event, (struct rc_wire_open){ calls_told.event, event, 0, 0 });
	}
}

/* ---- copies ---- */

/* Rows of device memory with gaps between them, or without. */
static struct rc_wire_box rows(uint8_t which)
{
	struct rc_wire_box box = { calls_told.address, 64u << which % 2, 0, 64, 1u + which / 2 % 8, 1u + which / 16 % 2 };
	box.slice = box.pitch * box.height;
	return box;
}

static void copy(struct made_call *to, uint8_t what, uint8_t which)
{
	struct rc_wire_copy args = { .copy = 1 + which % 4u, .box = rows(which), .unkept = which >> 7 };
	struct rc_wire_copy_pinned pinned = { .pinned = CALLS_STAGING, .offset = which * 8u, .box = args.box, .to_device = which & 1 };
	uint64_t bytes = args.box.width * args.box.height * args.box.depth;
	pinned.pitch = pinned.box.width;
	pinned.slice = pinned.pitch * pinned.box.height;
	switch (what % 13) {
	case 0: take_fixed(to, RC_CALL_copy_up_later, &args, sizeof args); break;
	case 1: take_fixed(to, RC_CALL_copy_down_later, &args, sizeof args); break;
	case 2: take_fixed(to, RC_CALL_copy_down, &args, sizeof args); break;
	case 3: take_fixed(to, RC_CALL_copy_down_reply, &args, sizeof args); break;
	case 4: take_fixed(to, RC_CALL_copy_pinned, &pinned, sizeof pinned); break;
	case 5: take_fixed(to, RC_CALL_copy_pinned_wait, &pinned, sizeof pinned); break;
	case 6: FIXED(to, RC_CALL_copy_across, (struct rc_wire_across){ 0, args.box, rows(which ^ 1) }); break;
	case 7: take_word(to, RC_CALL_copy_up_settled, which % 4); break;
	case 8: /* several chunks of rows or of bytes */
		args.box = (struct rc_wire_box){ calls_told.address, which & 4 ? 300000 : 0, 0, 200000u + which, 1u + (which & 4) / 2u, 1 };
		take_fixed(to, which & 1 ? RC_CALL_copy_up_later : RC_CALL_copy_down_later, &args, sizeof args);
		break;
	case 9: /* early copies, and changes of them */
	case 10:
		args.copy = 1 + which % 4u;
		args.unkept = 0;
		if (what % 2)
			take_fixed(to, RC_CALL_copy_up_early, &args, sizeof args);
		else
			take_word(to, RC_CALL_copy_early_change, args.copy);
		memset(to->payload, which, to->len = bytes);
		break;
	case 11: FIXED(to, RC_CALL_copy_early_done, (struct rc_wire_early_done){ which % 8u, which / 8u }); break;
	default:
		args.copy = args.unkept = 0;
		take_fixed(to, RC_CALL_copy_up, &args, sizeof args);
		memset(to->payload, which, to->len = bytes);
	}
}

/* Between an array (up: its target) and host memory, or device memory. */
static CUDA_MEMCPY3D array_side(uint64_t array, bool up, bool device, uint8_t which)
{
	CUDA_MEMCPY3D copy = { .WidthInBytes = 16u + which % 2 * 48u, .Height = 1u + which / 2 % 4, .Depth = 1 };
	CUmemorytype other = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	copy.srcMemoryType = up ? other : CU_MEMORYTYPE_ARRAY;
	copy.dstMemoryType = up ? CU_MEMORYTYPE_ARRAY : other;
	*(up ? &copy.dstArray : &copy.srcArray) = (CUarray)(uintptr_t)array;
	*(up ? &copy.srcPitch : &copy.dstPitch) = copy.WidthInBytes;
	*(up ? &copy.srcHeight : &copy.dstHeight) = copy.Height;
	if (device)
		*(up ? &copy.srcDevice : &copy.dstDevice) = calls_told.address;
	return copy;
}

static void array(struct made_call *to, uint8_t what, uint8_t which)
{
	uint64_t array = calls_handle(RC_KIND_ARRAY, which / 64);
	bool up = what % 7 == 2 || what % 7 == 4 || (what % 7 == 6 && which & 32);
	CUDA_MEMCPY3D copy = array_side(array, up, what % 7 == 2 && which & 32, which);
	struct rc_wire_copy later = { .copy = 1 + which % 4u, .unkept = !up,
				      .box = { 0, copy.WidthInBytes, copy.WidthInBytes * copy.Height, copy.WidthInBytes, copy.Height, 1 } };
	size_t bytes = copy.WidthInBytes * copy.Height;
	switch (what % 7) {
	case 0:
		take_word(to, RC_CALL_cuArray3DCreate_v2, array);
		MORE(to, (CUDA_ARRAY3D_DESCRIPTOR){ 16, 4, which & 1 ? 2 : 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0 });
		return;
	case 1: take_word(to, RC_CALL_cuArrayDestroy, array); return;
	case 2: FIXED(to, RC_CALL_array_up, (struct rc_wire_array){ 0, which & 16 ? 1 : 0 }); break;
	case 3: take_word(to, RC_CALL_array_down, 0); break;
	case 4: take_fixed(to, RC_CALL_array_up_later, &later, sizeof later); break;
	case 5: take_fixed(to, RC_CALL_array_down_later, &later, sizeof later); break;
	default: FIXED(to, RC_CALL_array_pinned, (struct rc_wire_array_pinned){ 0, CALLS_STAGING, which * 4u });
	}
	take_more(to, &copy, sizeof copy);
	if (what % 7 == 2 && copy.srcMemoryType == CU_MEMORYTYPE_HOST) {
		memset(to->payload + to->len, which, bytes);
		to->len += bytes;
	}
}

/* ---- work ---- */

static void memory_operations(struct made_call *to, uint8_t which)
{
	struct rc_wire_memop operation[2] = {
		{ CU_STREAM_MEM_OP_WRITE_VALUE_32, 0, calls_told.address, which, 0 },
		{ CU_STREAM_MEM_OP_WRITE_VALUE_64, 0, calls_told.address + 8, which, 0 }, /* a wait could be for ever */
	};
	if (which & 1)
		for (int i = 0; i < 2; i++)
			operation[i].pinned = CALLS_STAGING, operation[i].address = which * 4u;
	FIXED(to, RC_CALL_stream_memory, (struct rc_wire_memops){ 0, 2, 0 });
	take_more(to, operation, sizeof operation);
}

/* Executable graphs of a kernel, a fill and a copy, one after the other. Fill and copy have one row or two; each node may be
 * disabled. */
static void graph(struct made_call *to, uint8_t what, uint8_t which)
{
	uint32_t rows = 1 + what / 6 % 2;
	struct {
		struct rc_wire_graph graph;
		struct rc_wire_node kernel_node;
		struct rc_wire_graph_kernel kernel;
		uint64_t parameters[2];
		struct rc_wire_node fill_node;
		struct rc_wire_graph_fill fill;
		struct rc_wire_node copy_node;
		struct rc_wire_graph_copy copy;
		struct rc_wire_graph_edge edge[2];
	} body = {
		.graph = { 3, 2 }, .edge = { { 0, 1, { 0 } }, { 1, 2, { 0 } } },
		.kernel_node = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .flags = which & 1 },
		.kernel = { .function = calls_told.kernel, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .parameters = 12 },
		.parameters = { calls_told.address, 7 },
		.fill_node = { .type = CU_GRAPH_NODE_TYPE_MEMSET, .flags = which >> 1 & 1 },
		.fill = { .to = calls_told.address, .pitch = 64, .width = 16, .height = rows, .value = 3, .element = 4 },
		.copy_node = { .type = CU_GRAPH_NODE_TYPE_MEMCPY, .flags = which & 1 },
		.copy = { .width = 64, .height = rows, .depth = 1, .function = which & 12 ? 0 : 9, .kind = which / 4 % 4 % 3u,
			  .to = { .address = calls_told.address }, .from = { .address = calls_told.address + 64 } },
	};
	static const uint32_t numbers[3] = { 0, 1, 2 };
	uint64_t exec = calls_handle(RC_KIND_GRAPH_EXEC, which / 16);
	switch (what % 6) {
	case 0:
		FIXED(to, RC_CALL_graph_instantiate, (struct rc_wire_graph_new){ exec, 0, 0 });
		take_more(to, &body, sizeof body);
		break;
	case 1:
		FIXED(to, RC_CALL_graph_update, (struct rc_wire_graph_new){ exec, 0, 0 });
		take_more(to, &body, sizeof body);
		take_more(to, numbers, sizeof numbers);
		break;
	case 2:
		FIXED(to, RC_CALL_graph_node, (struct rc_wire_graph_change){ exec, which & 2 ? 2 : 1, 0 });
		if (which & 2)
			take_more(to, &body.copy_node, sizeof body.copy_node + sizeof body.copy);
		else
			take_more(to, &body.fill_node, sizeof body.fill_node + sizeof body.fill);
		break;
	case 3: take_word(to, RC_CALL_graph_destroy, exec); break;
	default: FIXED(to, RC_CALL_graph_launch, (struct rc_wire_graph_launch){ exec, 0 });
	}
}

/* Tensor maps, and other addresses in them: also maps of any bytes. */
static void tensor(struct made_call *to, uint8_t what, uint8_t which)
{
	struct rc_wire_tensor map = { .address = calls_told.address, .rank = 1 + which % RC_TENSOR_RANK_MAX, .type = which / 8 % 16,
				      .swizzle = which / 128 };
	struct rc_wire_tensor_address other = { .address = calls_told.address + 4096 };
	for (unsigned i = 0; i < map.rank; i++) {
		map.dimensions[i] = 64;
		map.box[i] = i < 2 ? 8 : 1;
		map.steps[i] = 1;
		if (i > 0)
			map.strides[i - 1] = 1024u << 6 * (i - 1);
	}
	/* The arguments are longer than a header. */
	to->function = what % 3 ? RC_CALL_tensor_map_address : RC_CALL_tensor_map;
	if (what % 3 == 0) {
		take_more(to, &map, sizeof map);
		return;
	}
	memcpy(other.map, calls_told.tensor, sizeof other.map);
	if (what % 3 == 2)
		memset(other.map + which % sizeof other.map, which, sizeof other.map - which % sizeof other.map);
	take_more(to, &other, sizeof other);
}

static void launch(struct made_call *to, uint8_t which)
{
	struct {
		uint64_t data;
		uint32_t value;
	} __attribute__((packed)) parameters = { calls_told.address, which };
	FIXED(to, RC_CALL_launch, (struct rc_wire_launch){ .function = calls_told.kernel, .grid = { 1, 1, 1 },
							   .block = { 1u + which % 64, 1, 1 }, .parameters = 12 });
	take_more(to, &parameters, sizeof parameters);
}

void calls_make(struct fuzz_input *input, struct made_call *to)
{
	uint8_t topic = fuzz_u8(input), what = fuzz_u8(input), which = fuzz_u8(input);
	to->words = 0;
	to->len = 0;
	switch (topic % 11) {
	case 0: placed(to, what, which); break;
	case 1: managed(to, what, which); break;
	case 2: virtual(to, what, which); break;
	case 3: pool(to, what, which); break;
	case 4: ipc(to, what, which); break;
	case 5: copy(to, what, which); break;
	case 6: array(to, what, which); break;
	case 7: graph(to, what, which); break;
	case 8: memory_operations(to, which); break;
	case 9: launch(to, which); break;
	default: tensor(to, what, which);
	}
}

void calls_answered(enum rc_call function, const uint8_t *results, size_t n)
{
	void *to;
	size_t size = sizeof(struct rc_wire_shared);
	switch (function) {
	case RC_CALL_ipc_get_memory: to = &calls_told.memory; break;
	case RC_CALL_ipc_get_event: to = &calls_told.event; break;
	case RC_CALL_virtual_export: to = &calls_told.allocation; break;
	case RC_CALL_pool_export: to = &calls_told.pool; break;
	case RC_CALL_pool_export_pointer: to = &calls_told.pointer; break;
	case RC_CALL_virtual_reserve: to = &calls_told.reserved, size = 8; break;
	case RC_CALL_ipc_open_memory: to = &calls_told.opened, size = 8; break;
	case RC_CALL_memory_alloc_async: to = &calls_told.pooled, size = 8; break;
	case RC_CALL_tensor_map: to = calls_told.tensor, size = sizeof calls_told.tensor; break;
	case RC_CALL_memory_alloc:
	case RC_CALL_memory_alloc_pitch: to = &calls_told.address, size = 8; break;
	default: return;
	}
	if (n >= size)
		memcpy(to, results, size);
	if (function == RC_CALL_memory_alloc_async)
		calls_told.address = calls_told.pooled;
}

void calls_forget(void)
{
	uint64_t page = calls_told.page;
	memset(&calls_told, 0, sizeof calls_told);
	calls_told.page = page;
}
