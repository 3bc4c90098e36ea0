/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a session may hold and touch: session connections | descriptors | arguments | replies | stream | credit | placed |
 * grant. The script has set the limits; "grant" wants a server with two GPUs.
 */
#include "test/cuda/server/raw_client.h"

#include <cuda.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static raw_t raw;
static uint64_t number;
static uint32_t context;

#define CHECK(condition) RAW_CHECK(raw, condition)

static void begin(uint32_t gpu)
{
	CHECK(!raw_connect(&raw, NULL, gpu));
	context = raw_hello(&raw, ++number, 0, NULL);
	CHECK(context);
}

/* The failure of an earlier call without reply, as a query of the per-thread default stream tells it. No work is in that stream. */
static CUresult told(void)
{
	struct rc_args_cuStreamQuery own = { .hStream = (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD };
	return (CUresult)raw_call(&raw, ++number, RC_CALL_cuStreamQuery, context, &own, sizeof own, NULL, 0);
}

static bool answers(raw_t *on)
{
	return raw_call_hello(on, ++number) == 0;
}

/* HEADRACE_SESSION_CONNECTIONS=3: the fourth further connection is refused, and none of the others suffers. */
static void connections(void)
{
	raw_t more[4];
	begin(RC_SERVER_ALL_GPUS);
	for (int i = 0; i < 3; i++)
		CHECK(!raw_connect(&more[i], &raw, RC_SERVER_ALL_GPUS) && answers(&more[i]));
	CHECK(raw_connect(&more[3], &raw, RC_SERVER_ALL_GPUS) == -EBUSY);
	CHECK(answers(&raw) && answers(&more[2]));
	raw_close(&more[0]);
	int error = -EBUSY;
	for (int i = 0; i < 100 && error == -EBUSY; i++)
		error = raw_connect(&more[3], &raw, RC_SERVER_ALL_GPUS);
	CHECK(!error && answers(&more[3]));
}

/* The worker runs out of descriptors; once there are some again it accepts connections again. */
static void descriptors(void)
{
	enum { MANY = 64 };
	static raw_t more[MANY];
	int n = 0;
	begin(RC_SERVER_ALL_GPUS);
	/* After the first refusal the worker may still close a descriptor of an earlier set-up, and have room for one connection more. */
	for (int refused = 0; n < MANY && refused < 4;) {
		if (raw_connect(&more[n], &raw, RC_SERVER_ALL_GPUS))
			refused++;
		else
			n++;
	}
	CHECK(n < MANY);
	printf("%d further connections\n", n);
	while (n)
		raw_close(&more[--n]);
	int error = -1;
	for (int i = 0; i < 50 && error; i++)
		error = raw_connect(&more[0], &raw, RC_SERVER_ALL_GPUS);
	CHECK(!error && answers(&more[0]));
}

/* HEADRACE_SESSION_ARGUMENTS=1M: a call with more is refused, the session goes on. */
static void arguments(void)
{
	size_t size = 4 << 20;
	char *image = calloc(1, size);
	memset(image, ' ', size - 1);
	memcpy(image, "double\nnothing\n", 15);
	begin(RC_SERVER_ALL_GPUS);
	struct rc_wire_load load = { .handle = rc_handle_make(RC_KIND_MODULE, 50, 1), .image = size };
	CHECK(raw_call(&raw, ++number, RC_CALL_module_load, context, &load, sizeof load, image, size) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(strstr(raw.text[1], "HEADRACE_SESSION_ARGUMENTS"));
	CHECK(answers(&raw));
	image[500000] = '\0';
	for (int i = 0; i < 8; i++)
		CHECK(raw_load(&raw, ++number, context, image, 500001, NULL, NULL) == CUDA_SUCCESS);
	free(image);
}

/* HEADRACE_SESSION_REPLIES=64k: who asks on and on and never reads loses its session. */
static void replies(void)
{
	begin(RC_SERVER_ALL_GPUS);
	raw.deaf = true;
	for (int i = 0; i < 20000 && !raw.failed; i++)
		raw_send_hello(&raw, ++number);
	raw.deaf = false;
	sleep(3); /* the worker reads on meanwhile */
	CHECK(raw_await_end(&raw, 20000));
	CHECK(raw.replies < number - 1);
	raw_close(&raw);
	number = 0;
	begin(RC_SERVER_ALL_GPUS);
}

/* A thread destroys the stream of a copy whose chunks another thread is still sending. */
static void stream(void)
{
	static const uint8_t bytes[RC_CHUNK_MAX];
	raw_t other;
	uint64_t size = 4 * RC_CHUNK_MAX, address = 0;
	begin(RC_SERVER_ALL_GPUS);
	CHECK(!raw_connect(&other, &raw, RC_SERVER_ALL_GPUS));
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&address, raw.results, sizeof address);
	struct rc_args_cuStreamCreate create = { .phStream = rc_handle_make(RC_KIND_STREAM, 77, 1) };
	CHECK(!raw_send(&raw, ++number, RC_CALL_cuStreamCreate, context, &create, sizeof create, NULL, 0));
	struct rc_wire_copy copy = { .copy = 9, .stream = create.phStream, .box = { address, size, size, size, 1, 1 } };
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_up, context, &copy, sizeof copy, NULL, 0));
	struct rc_wire_chunk chunk = { 9, 0 };
	CHECK(!raw_packet(&raw, RC_PACKET_CHUNK, &chunk, sizeof chunk, bytes, sizeof bytes));
	struct rc_args_cuStreamDestroy_v2 destroy = { .hStream = create.phStream };
	CHECK(!raw_send(&other, ++number, RC_CALL_cuStreamDestroy_v2, context, &destroy, sizeof destroy, NULL, 0));
	CHECK(answers(&other));
	for (chunk.offset = RC_CHUNK_MAX; chunk.offset < size; chunk.offset += RC_CHUNK_MAX)
		CHECK(!raw_packet(&raw, RC_PACKET_CHUNK, &chunk, sizeof chunk, bytes, sizeof bytes));
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_up_end, context, &chunk.copy, sizeof chunk.copy, NULL, 0));
	CHECK(told() == CUDA_ERROR_INVALID_HANDLE);
	CHECK(answers(&raw) && answers(&other));
}

/* A stream that waits until the word at address is 1. */
static uint64_t held_stream(uint64_t address)
{
	struct {
		struct rc_wire_memops args;
		struct rc_wire_memop wait;
	} hold = { { .count = 1 }, { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .flags = CU_STREAM_WAIT_VALUE_EQ, address, 1, 0 } };
	struct rc_args_cuStreamCreate create = { .Flags = CU_STREAM_NON_BLOCKING, .phStream = rc_handle_make(RC_KIND_STREAM, 78, 1) };
	uint32_t zero = 0;
	struct rc_wire_copy clear = { .box = { address, sizeof zero, sizeof zero, sizeof zero, 1, 1 } };
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_up, context, &clear, sizeof clear, &zero, sizeof zero));
	CHECK(!raw_send(&raw, ++number, RC_CALL_cuStreamCreate, context, &create, sizeof create, NULL, 0));
	hold.args.stream = create.phStream;
	CHECK(!raw_send(&raw, ++number, RC_CALL_stream_memory, context, &hold, sizeof hold, NULL, 0));
	return create.phStream;
}

/* Chunks beyond the window, while the device reads none: the worker ends the session and does not wait. What the client may
 * send does not hold up other connections. */
static void window_of_chunks(void)
{
	static const uint8_t bytes[RC_CHUNK_MAX];
	raw_t other;
	uint64_t size = (RC_WINDOW + 1) * (uint64_t)RC_CHUNK_MAX, address = 0;
	begin(RC_SERVER_ALL_GPUS);
	CHECK(!raw_connect(&other, &raw, RC_SERVER_ALL_GPUS));
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&address, raw.results, sizeof address);
	struct rc_wire_copy copy = { .copy = 9, .stream = held_stream(address), .box = { address, size, size, size, 1, 1 } };
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_up, context, &copy, sizeof copy, NULL, 0));
	struct rc_wire_chunk chunk = { 9, 0 };
	for (; chunk.offset < RC_WINDOW * (uint64_t)RC_CHUNK_MAX; chunk.offset += RC_CHUNK_MAX)
		CHECK(!raw_packet(&raw, RC_PACKET_CHUNK, &chunk, sizeof chunk, bytes, sizeof bytes));
	CHECK(answers(&other));
	CHECK(!raw.freed && !raw.failed);
	(void)raw_packet(&raw, RC_PACKET_CHUNK, &chunk, sizeof chunk, bytes, sizeof bytes);
	CHECK(raw_await_end(&raw, 20000));
}

/* A part of a copy to an array takes a slot, also if it is refused. A part without a free slot ends the session. */
static void parts_of_arrays(void)
{
	static const uint8_t bytes[RC_CHUNK_MAX];
	uint64_t size = (RC_WINDOW + 1) * (uint64_t)RC_CHUNK_MAX, address = 0;
	struct rc_wire_array part = { 77, 1 };
	CUDA_MEMCPY3D nothing;
	memset(&nothing, 0, sizeof nothing);
	begin(RC_SERVER_ALL_GPUS);
	for (unsigned i = 1; i <= 2 * RC_WINDOW; i++) {
		CHECK(!raw_send(&raw, ++number, RC_CALL_array_up, context, &part, sizeof part, &nothing, sizeof nothing));
		CHECK(told() == CUDA_ERROR_INVALID_VALUE && raw.reply.freed == i);
	}
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&address, raw.results, sizeof address);
	struct rc_wire_copy copy = { .copy = 9, .stream = held_stream(address), .box = { address, size, size, size, 1, 1 } };
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_up, context, &copy, sizeof copy, NULL, 0));
	struct rc_wire_chunk chunk = { 9, 0 };
	for (; chunk.offset < RC_WINDOW * (uint64_t)RC_CHUNK_MAX; chunk.offset += RC_CHUNK_MAX)
		CHECK(!raw_packet(&raw, RC_PACKET_CHUNK, &chunk, sizeof chunk, bytes, sizeof bytes));
	(void)raw_send(&raw, ++number, RC_CALL_array_up, context, &part, sizeof part, &nothing, sizeof nothing);
	CHECK(raw_await_end(&raw, 20000));
}

/* Chunks in a staging area that the connection does not have, and credits that nobody can have. */
static void staging(void)
{
	struct rc_wire_staging area = { rc_handle_make(RC_KIND_PINNED, 5, 1) };
	begin(RC_SERVER_ALL_GPUS);
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_staging, context, &area, sizeof area, NULL, 0));
	CHECK(told() == CUDA_ERROR_INVALID_HANDLE);
	uint64_t size = 2 * RC_CHUNK_MAX, address = 0;
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&address, raw.results, sizeof address);
	struct rc_wire_copy copy = { .copy = 9, .box = { address, size, size, size, 1, 1 }, .staged = 1 };
	CHECK(raw_call(&raw, ++number, RC_CALL_copy_down, context, &copy, sizeof copy, NULL, 0) == CUDA_ERROR_INVALID_VALUE);
	copy.staged = 0; /* too long for a reply */
	CHECK(raw_call(&raw, ++number, RC_CALL_copy_down_reply, context, &copy, sizeof copy, NULL, 0) == CUDA_ERROR_INVALID_VALUE);
	copy.staged = 1;
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_up, context, &copy, sizeof copy, NULL, 0));
	struct rc_wire_staged chunk = { 9, 0, RC_CHUNK_MAX };
	CHECK(!raw_packet(&raw, RC_PACKET_STAGED, &chunk, sizeof chunk, NULL, 0));
	CHECK(raw_await_end(&raw, 20000));
	for (unsigned type = RC_PACKET_CREDIT; type <= RC_PACKET_FETCH; type++) {
		struct rc_wire_credit credit = { 1, 0 };
		raw_close(&raw);
		number = 0;
		begin(RC_SERVER_ALL_GPUS);
		CHECK(!raw_packet(&raw, type, &credit, sizeof credit, NULL, 0));
		CHECK(raw_await_end(&raw, 20000));
	}
}

/* The client's checks are the worker's too. */
static void attributes(void)
{
	struct rc_args_cuStreamGetAttribute get = { .attr = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT };
	CHECK(raw_call(&raw, ++number, RC_CALL_cuStreamGetAttribute, context, &get, sizeof get, NULL, 0) ==
	      CUDA_ERROR_INVALID_VALUE);
	uint64_t create = rc_handle_make(RC_KIND_POOL, 5, 1);
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = { .type = CU_MEM_LOCATION_TYPE_HOST } };
	CHECK(raw_call(&raw, ++number, RC_CALL_pool_create, context, &create, sizeof create, &properties,
		       sizeof properties) == CUDA_ERROR_NOT_SUPPORTED);
	properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	properties.location.id = 1;
	CHECK(raw_call(&raw, ++number, RC_CALL_pool_create, context, &create, sizeof create, &properties,
		       sizeof properties) == CUDA_ERROR_INVALID_DEVICE);
	properties.location.id = 0;
	properties.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	CHECK(raw_call(&raw, ++number, RC_CALL_pool_create, context, &create, sizeof create, &properties,
		       sizeof properties) == CUDA_ERROR_NOT_SUPPORTED);
}

/* Handles for other sessions: invented ones, those of other kinds, and messages that are too short. */
static void sharing(void)
{
	static const enum rc_call calls[] = { RC_CALL_ipc_open_memory, RC_CALL_ipc_open_event, RC_CALL_virtual_import,
					      RC_CALL_pool_import, RC_CALL_pool_import_pointer };
	static const enum rc_call exports[] = { RC_CALL_ipc_get_memory, RC_CALL_ipc_get_event, RC_CALL_virtual_export,
						RC_CALL_pool_export, RC_CALL_pool_export_pointer, RC_CALL_ipc_close_memory };
	struct rc_wire_shared good;
	struct rc_wire_open open;
	uint64_t size = 4096, address = 0, none = 0;
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&address, raw.results, sizeof address);
	CHECK(!raw_call(&raw, ++number, RC_CALL_ipc_get_memory, context, &address, sizeof address, NULL, 0));
	memcpy(&good, raw.results, sizeof good);
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		CHECK(raw_call(&raw, ++number, calls[i], context, &good, sizeof good, NULL, 0) != CUDA_SUCCESS); /* too short */
		for (unsigned byte = 0; byte < 48; byte++) {
			open = (struct rc_wire_open){ .handle = good, .event = rc_handle_make(RC_KIND_EVENT, 900, 1) };
			((uint8_t *)&open.handle)[byte] ^= 0x80;
			CHECK(raw_call(&raw, ++number, calls[i], context, &open, sizeof open, NULL, 0) != CUDA_SUCCESS);
		}
	}
	/* The worker's own memory: CUDA refuses that too. */
	open = (struct rc_wire_open){ .handle = good };
	CHECK(raw_call(&raw, ++number, RC_CALL_ipc_open_memory, context, &open, sizeof open, NULL, 0) ==
	      CUDA_ERROR_INVALID_CONTEXT);
	for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++) {
		CHECK(raw_call(&raw, ++number, exports[i], context, &none, sizeof none, NULL, 0) != CUDA_SUCCESS);
		CHECK(raw_call(&raw, ++number, exports[i], context, NULL, 0, NULL, 0) != CUDA_SUCCESS);
	}
	CHECK(answers(&raw));
}

/* The result of a call that places memory: it has no reply, so the next call that waits for work tells it. */
static CUresult place(uint64_t address, uint64_t bytes)
{
	struct rc_wire_place place = { address, bytes };
	CHECK(!raw_send(&raw, ++number, RC_CALL_memory_place, context, &place, sizeof place, NULL, 0));
	return told();
}

static CUresult budget(uint64_t least, uint64_t most, uint64_t less)
{
	struct rc_wire_budget args = { least, most, less };
	return (CUresult)raw_call(&raw, ++number, RC_CALL_memory_budget, context, &args, sizeof args, NULL, 0);
}

static CUresult window(uint64_t base, uint64_t bytes)
{
	struct rc_wire_window args = { base, bytes };
	return (CUresult)raw_call(&raw, ++number, RC_CALL_memory_window, context, &args, sizeof args, NULL, 0);
}

/* A client that names addresses and sizes that it may not use. The worker's own memory is never in a window. */
static void placed(void)
{
	const uint64_t base = 50ull << 40, bytes = 1ull << 30, page = 2 << 20;
	uint64_t wrong[] = { base - 512, base + bytes, base + 1, base + 256, 0, 512, UINT64_MAX, UINT64_MAX - 511,
			     (uint64_t)(uintptr_t)&raw };
	begin(RC_SERVER_ALL_GPUS);
	CHECK(place(base, 512) == CUDA_ERROR_INVALID_VALUE); /* no window yet */
	CHECK(budget(512, 512, 0) == CUDA_ERROR_INVALID_VALUE);
	CHECK(window(base + 4096, bytes) == CUDA_ERROR_INVALID_VALUE);
	CHECK(window(base, bytes + 1) == CUDA_ERROR_INVALID_VALUE);
	CHECK(window(base, 0) == CUDA_ERROR_INVALID_VALUE);
	CHECK(window(base, UINT64_MAX - page + 1) == CUDA_ERROR_INVALID_VALUE);
	CHECK(window(0, 1ull << 47) != CUDA_SUCCESS); /* all addresses, with the worker's own memory */
	CHECK(window(base, bytes) == CUDA_SUCCESS);
	CHECK(window(base + 2 * bytes, bytes) == CUDA_ERROR_ALREADY_MAPPED); /* a second one */
	CHECK(budget(2, 1, 0) == CUDA_ERROR_INVALID_VALUE);
	CHECK(budget(1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
	CHECK(budget(512, 512, 512) == CUDA_ERROR_INVALID_VALUE);
	CHECK(budget(1ull << 62, UINT64_MAX, 0) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(budget(8 * page, 8 * page, 0) == CUDA_SUCCESS);
	CHECK(budget(0, 0, 9 * page) == CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		CHECK(place(wrong[i], 512) == CUDA_ERROR_INVALID_VALUE);
	CHECK(place(base, 0) == CUDA_ERROR_INVALID_VALUE);
	CHECK(place(base, UINT64_MAX) == CUDA_ERROR_INVALID_VALUE);
	CHECK(place(base, 8 * page + 1) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(place(base, 3 * page) == CUDA_SUCCESS);
	CHECK(place(base + 2 * page, 512) == CUDA_ERROR_ALREADY_MAPPED);
	CHECK(place(base, 3 * page) == CUDA_ERROR_ALREADY_MAPPED);
	struct rc_wire_address inner = { base + 512 };
	CHECK(!raw_send(&raw, ++number, RC_CALL_memory_unplace, context, &inner, sizeof inner, NULL, 0));
	CHECK(told() == CUDA_ERROR_INVALID_VALUE);
	inner.address = base;
	CHECK(!raw_send(&raw, ++number, RC_CALL_memory_unplace, context, &inner, sizeof inner, NULL, 0));
	CHECK(answers(&raw));
	CHECK(budget(0, 0, 8 * page) == CUDA_SUCCESS);
}

static CUresult make_managed(uint64_t address, uint64_t bytes)
{
	struct rc_wire_place args = { address, bytes };
	return (CUresult)raw_call(&raw, ++number, RC_CALL_managed_make, context, &args, sizeof args, NULL, 0);
}

/* Sends a record of changes that says bytes, and has sent bytes of value. The result is that of the next waiting call. */
static CUresult push(uint64_t address, uint64_t bytes, size_t sent, uint8_t value)
{
	struct {
		struct rc_wire_change record;
		uint8_t bytes[4096];
	} payload = { { address, bytes }, { 0 } };
	memset(payload.bytes, value, sizeof payload.bytes);
	CHECK(!raw_send(&raw, ++number, RC_CALL_managed_push, context, NULL, 0, &payload, sizeof payload.record + sent));
	return told();
}

static void device_sets(uint64_t address, uint8_t value)
{
	struct rc_args_cuMemsetD8_v2 args = { .dstDevice = address, .N = 4, .uc = value };
	CHECK(!raw_send(&raw, ++number, RC_CALL_cuMemsetD8_v2, context, &args, sizeof args, NULL, 0));
	struct rc_wire_context whole = { rc_handle_make(RC_KIND_CONTEXT, context, 1) };
	CHECK(raw_call(&raw, ++number, RC_CALL_context_synchronize, context, &whole, sizeof whole, NULL, 0) == CUDA_SUCCESS);
}

/* What the next answer to managed_pull says of bytes that client and device have both changed. */
static uint64_t both_changed(void)
{
	struct rc_wire_pull pull = { 0 };
	struct rc_wire_pulled answer;
	CHECK(raw_call(&raw, ++number, RC_CALL_managed_pull, context, &pull, sizeof pull, NULL, 0) == CUDA_SUCCESS);
	CHECK(raw.results_len >= sizeof answer);
	memcpy(&answer, raw.results, sizeof answer);
	return answer.both;
}

/* A change of the client that meets one of the device, which the client has not fetched. */
static void changed_by_both(uint64_t base)
{
	device_sets(base + 100, 5);
	CHECK(push(base + 96, 4, 4, 7) == CUDA_SUCCESS && push(base + 104, 40, 40, 7) == CUDA_SUCCESS && !both_changed());
	device_sets(base + 100, 6);
	CHECK(push(base + 98, 4, 4, 8) == CUDA_SUCCESS && both_changed() == base + 100 && !both_changed());
	device_sets(base + 140, 9);
	CHECK(push(base, 4096, 4096, 9) == CUDA_SUCCESS && !both_changed()); /* both have set the same value */
	device_sets(base + 140, 10);
	CHECK(push(base, 4096, 4096, 11) == CUDA_SUCCESS && both_changed() == base + 140 && !both_changed());
	device_sets(base + 4092, 10);
	CHECK(push(base + 4000, 95, 95, 12) == CUDA_SUCCESS && both_changed() == base + 4092);
}

static CUresult free_by(enum rc_call call, uint64_t address)
{
	struct rc_wire_address args = { address };
	return (CUresult)raw_call(&raw, ++number, call, context, &args, sizeof args, NULL, 0);
}

/* Changes of managed memory: only of this session's, and within one allocation. */
static void managed(void)
{
	const uint64_t base = 50ull << 40, page = 2 << 20;
	begin(RC_SERVER_ALL_GPUS);
	CHECK(window(base, 512 * page) == CUDA_SUCCESS && budget(2 * page, 2 * page, 0) == CUDA_SUCCESS);
	CHECK(make_managed(base + 512, 4096) == CUDA_ERROR_INVALID_VALUE);
	CHECK(make_managed(base, 0) == CUDA_ERROR_INVALID_VALUE);
	CHECK(make_managed(base, 3 * page) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(make_managed(base + 512 * page, 4096) == CUDA_ERROR_INVALID_VALUE);
	CHECK(make_managed(base, 8192) == CUDA_SUCCESS);
	CHECK(make_managed(base, 8192) == CUDA_ERROR_ALREADY_MAPPED);
	CHECK(place(base + 8192, 4096) == CUDA_SUCCESS);
	CHECK(push(base, 4096, 4096, 1) == CUDA_SUCCESS);
	CHECK(push(base + 4097, 4096, 4096, 2) == CUDA_ERROR_INVALID_VALUE);
	CHECK(push(base + 8192, 16, 16, 2) == CUDA_ERROR_INVALID_VALUE);
	CHECK(push((uint64_t)(uintptr_t)&raw, 16, 16, 2) == CUDA_ERROR_INVALID_VALUE);
	CHECK(push(UINT64_MAX - 7, 16, 16, 2) == CUDA_ERROR_INVALID_VALUE);
	CHECK(push(base, UINT64_MAX, 16, 2) == CUDA_ERROR_INVALID_VALUE);
	CHECK(push(base, 17, 16, 2) == CUDA_ERROR_INVALID_VALUE);
	CHECK(push(base, 0, 16, 2) == CUDA_ERROR_INVALID_VALUE);
	struct rc_wire_pull pull = { 0 };
	for (unsigned i = 0; i < 4; i++, pull.from = i == 3 ? UINT64_MAX : base + 4096 * i) {
		CHECK(raw_call(&raw, ++number, RC_CALL_managed_pull, context, &pull, sizeof pull, NULL, 0) == CUDA_SUCCESS);
		CHECK(raw.results_len == sizeof(struct rc_wire_pulled)); /* the device has changed nothing */
	}
	changed_by_both(base);
	CHECK(free_by(RC_CALL_memory_free, base) == CUDA_ERROR_INVALID_VALUE);
	CHECK(free_by(RC_CALL_managed_free, base + 4096) == CUDA_ERROR_INVALID_VALUE);
	CHECK(free_by(RC_CALL_managed_free, base + 8192) == CUDA_ERROR_INVALID_VALUE);
	CHECK(free_by(RC_CALL_managed_free, base) == CUDA_SUCCESS);
	CHECK(push(base, 16, 16, 2) == CUDA_ERROR_INVALID_VALUE);
	CHECK(answers(&raw));
}

static CUresult mirror_pinned(uint32_t index, uint64_t address, uint64_t bytes)
{
	struct rc_wire_pin args = { rc_handle_make(RC_KIND_PINNED, index, 1), bytes, address, RC_PIN_WHOLE, 0 };
	return (CUresult)raw_call(&raw, ++number, RC_CALL_pinned_mirror, 0, &args, sizeof args, NULL, 0);
}

static CUresult ask_whether_free(uint64_t address, uint64_t bytes)
{
	struct rc_wire_pin args = { 0, bytes, address, RC_PIN_WHOLE, 0 };
	return (CUresult)raw_call(&raw, ++number, RC_CALL_pinned_mirror, 0, &args, sizeof args, NULL, 0);
}

static CUresult free_pinned(uint32_t index)
{
	struct rc_wire_pinned_free args = { rc_handle_make(RC_KIND_PINNED, index, 1), 0 };
	return (CUresult)raw_call(&raw, ++number, RC_CALL_pinned_free, 0, &args, sizeof args, NULL, 0);
}

/* Mirrors of pinned memory: only where the worker has no memory, and within the session's limit, which is 64 KB here. */
static void pinned(void)
{
	const uint64_t base = 40ull << 40;
	begin(RC_SERVER_ALL_GPUS);
	CHECK(mirror_pinned(1, 4096, 4096) == CUDA_ERROR_INVALID_VALUE);
	CHECK(mirror_pinned(1, base, 0) == CUDA_ERROR_INVALID_VALUE);
	CHECK(mirror_pinned(1, base, UINT64_MAX) == CUDA_ERROR_INVALID_VALUE);
	CHECK(mirror_pinned(1, UINT64_MAX - 8, 4) == CUDA_ERROR_INVALID_VALUE);
	CHECK(mirror_pinned(1, base, 60 << 10) == CUDA_ERROR_OUT_OF_MEMORY); /* the twin counts too */
	CHECK(ask_whether_free(base, 60 << 20) == CUDA_SUCCESS); /* takes no memory */
	for (int round = 0; round < 10; round++) {
		CHECK(mirror_pinned(1, base + 100, 8000) == CUDA_SUCCESS);
		CHECK(mirror_pinned(1, base + (1 << 20), 4096) == CUDA_ERROR_INVALID_HANDLE);
		CHECK(mirror_pinned(2, base + 8150, 8) == CUDA_ERROR_ALREADY_MAPPED); /* in a page of the first */
		CHECK(ask_whether_free(base - 4096, 8192) == CUDA_ERROR_ALREADY_MAPPED);
		CHECK(push(base + 99, 8, 8, 1) == CUDA_ERROR_INVALID_VALUE);
		CHECK(push(base + 8096, 8, 8, 1) == CUDA_ERROR_INVALID_VALUE);
		CHECK(push(base + 8092, 8, 8, 1) == CUDA_SUCCESS);
		CHECK(free_by(RC_CALL_managed_free, base + 100) == CUDA_ERROR_INVALID_VALUE);
		CHECK(free_by(RC_CALL_memory_free, base + 100) == CUDA_ERROR_INVALID_VALUE);
		CHECK(free_pinned(2) == CUDA_ERROR_INVALID_HANDLE);
		CHECK(free_pinned(1) == CUDA_SUCCESS);
		CHECK(push(base + 100, 8, 8, 1) == CUDA_ERROR_INVALID_VALUE);
	}
	CHECK(answers(&raw));
}

/* The worker unmaps a staging area with its connection, so a mirror must not become one. */
static void mirror_as_staging(void)
{
	struct rc_wire_staging area = { rc_handle_make(RC_KIND_PINNED, 1, 1) };
	begin(RC_SERVER_ALL_GPUS);
	CHECK(mirror_pinned(1, 40ull << 40, RC_WINDOW * RC_CHUNK_MAX) == CUDA_SUCCESS);
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_staging, context, &area, sizeof area, NULL, 0));
	CHECK(told() == CUDA_ERROR_INVALID_VALUE);
	CHECK(push(40ull << 40, 8, 8, 1) == CUDA_SUCCESS);
	CHECK(free_pinned(1) == CUDA_SUCCESS);
	CHECK(answers(&raw));
}

/* The session was given GPU 1 of two. Only its primary context has a handle. */
static void grant(void)
{
	uint32_t devices = 0;
	raw_t all;
	CHECK(!raw_connect(&all, NULL, RC_SERVER_ALL_GPUS));
	raw_hello(&all, 1, 0, &devices);
	CHECK(devices == 2);
	struct rc_wire_device first, second;
	memcpy(&first, all.results + sizeof(struct rc_wire_hello), sizeof first);
	memcpy(&second, all.results + sizeof(struct rc_wire_hello) + sizeof first, sizeof second);
	raw_close(&all);
	CHECK(!raw_connect(&raw, NULL, 1));
	context = raw_hello(&raw, ++number, 0, &devices);
	CHECK(context && devices == 1);
	struct rc_wire_device only;
	memcpy(&only, raw.results + sizeof(struct rc_wire_hello), sizeof only);
	CHECK(!memcmp(only.uuid, second.uuid, sizeof only.uuid) && memcmp(only.uuid, first.uuid, sizeof only.uuid));
	struct rc_wire_context_create create = { rc_handle_make(RC_KIND_CONTEXT, 3, 1), 0, 1 };
	CHECK(raw_call(&raw, ++number, RC_CALL_context_create, 0, &create, sizeof create, NULL, 0) == CUDA_ERROR_INVALID_VALUE);
	struct rc_args_cuDeviceGetExecAffinitySupport ask = { .dev = 1 };
	CHECK(raw_call(&raw, ++number, RC_CALL_cuDeviceGetExecAffinitySupport, context, &ask, sizeof ask, NULL, 0) ==
	      CUDA_ERROR_INVALID_DEVICE);
	/* Every context but the one that hello named. */
	for (uint32_t i = rc_handle_index(RAW_PRIMARY) - 2; i < rc_handle_index(RAW_PRIMARY) + 4; i++)
		if (i != context)
			CHECK(raw_call(&raw, ++number, RC_CALL_cuMemGetInfo_v2, i, NULL, 0, NULL, 0) ==
			      (i ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT));
	CHECK(raw_call(&raw, ++number, RC_CALL_cuMemGetInfo_v2, context, NULL, 0, NULL, 0) == CUDA_SUCCESS);
	attributes();
	sharing();
}

/* Begins an asynchronous copy to the host. unkept: of which the worker holds two windows. */
static void copy_down(uint64_t copy, uint64_t stream, uint64_t address, uint64_t size, bool unkept)
{
	struct rc_wire_copy args = { .copy = copy, .stream = stream, .unkept = unkept,
				     .box = { address, size, size, size, 1, 1 } };
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_down_later, context, &args, sizeof args, NULL, 0));
}

/* Waits for the stream. Returns the number of messages that its client then waits for. */
static uint64_t shipped(uint64_t stream)
{
	struct rc_args_cuStreamSynchronize args = { .hStream = stream };
	CHECK(!raw_call(&raw, ++number, RC_CALL_cuStreamSynchronize, context, &args, sizeof args, NULL, 0));
	return raw.reply.shipped;
}

/*
 * A client that has waited for a stream waits for a number of messages of the data connection. They must be those that were counted
 * first: the bytes of a copy that is counted later do not overtake them. While the client does not read, the queue becomes: a copy
 * `first`, a copy through the lane of stream 0, a copy `second`, the beginning of a copy that waits for that lane, a copy `small`. When
 * `second` is being sent, the lane is free and that copy is counted, after `small`.
 */
static void counted_in_order(void)
{
	enum { FIRST = 1, LANE, SECOND, WAITING, SMALL };
	static raw_t data;
	uint64_t size = 32 << 20, address = 0, streams[2], before, all;
	unsigned at = 0;
	begin(RC_SERVER_ALL_GPUS);
	CHECK(!raw_connect(&data, &raw, RC_SERVER_ALL_GPUS) && answers(&data));
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&address, raw.results, sizeof address);
	for (uint32_t i = 0; i < 2; i++) {
		struct rc_args_cuStreamCreate create = { .Flags = CU_STREAM_NON_BLOCKING,
							 .phStream = rc_handle_make(RC_KIND_STREAM, 77 + i, 1) };
		streams[i] = create.phStream;
		CHECK(!raw_send(&raw, ++number, RC_CALL_cuStreamCreate, context, &create, sizeof create, NULL, 0));
	}
	data.deaf = true;
	CHECK(!raw_send(&data, ++number, RC_CALL_data_connection, context, NULL, 0, NULL, 0));
	copy_down(FIRST, streams[1], address, size, false);
	shipped(streams[1]);
	copy_down(LANE, streams[0], address, 65536, true);
	shipped(streams[0]);
	copy_down(SECOND, streams[1], address, size, false);
	shipped(streams[1]);
	copy_down(WAITING, streams[0], address, 65536, true);
	for (int i = 0; i < 100; i++) /* the stream comes to the copy meanwhile; if not, this test shows nothing */
		CHECK(answers(&raw));
	copy_down(SMALL, streams[1], address, 4096, false);
	before = shipped(streams[1]);
	for (; !at; raw_poll(&data, 10))
		for (unsigned i = 0; i < data.chunks && !at; i++)
			at = data.copy[i] == LANE ? i : 0;
	all = shipped(streams[0]);
	CHECK(all == before + 1);
	while (data.chunks < all && !data.failed)
		raw_poll(&data, 10);
	for (at = 0; at < all && data.copy[at] != SMALL; at++)
		;
	CHECK(at < before && data.copy[all - 1] == WAITING);
}

/* A copy whose number is that of a copy under way is refused. The copy under way ends as if there had been no other one: its stream,
 * which waits for the client to read, goes on. */
static void named_twice(void)
{
	static raw_t data;
	uint64_t size = 32 << 20, address = 0;
	begin(RC_SERVER_ALL_GPUS);
	CHECK(!raw_connect(&data, &raw, RC_SERVER_ALL_GPUS) && answers(&data));
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&address, raw.results, sizeof address);
	data.deaf = true;
	CHECK(!raw_send(&data, ++number, RC_CALL_data_connection, context, NULL, 0, NULL, 0));
	copy_down(1, 0, address, size, true);
	copy_down(1, 0, address, size, true);
	struct rc_wire_copy up = { .copy = 1, .box = { address, size, size, size, 1, 1 } };
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_up_later, context, &up, sizeof up, NULL, 0));
	/* A call that does not wait for the stream reports the first failure. */
	CHECK(told() == CUDA_ERROR_INVALID_VALUE);
	CHECK(answers(&raw));
	/* The chunks of the copy, and two messages that say what was refused. */
	while (data.chunks < size / RC_CHUNK_MAX + 2 && !data.failed)
		raw_poll(&data, 10);
	CHECK(!data.failed && shipped(0) == data.chunks);
	copy_down(2, 0, address, 4096, true);
	CHECK(shipped(0) == size / RC_CHUNK_MAX + 3);
}

static CUresult copy_early(uint64_t copy, uint64_t address, uint64_t width, size_t bytes)
{
	static uint8_t payload[RC_INLINE_COPY + 1];
	struct rc_wire_copy args = { .copy = copy, .box = { address, width, width, width, 1, 1 } };
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_up_early, context, &args, sizeof args, payload, bytes));
	return told();
}

static CUresult change_early(uint64_t copy, size_t bytes)
{
	static const uint8_t payload[64] = { 9 };
	struct rc_wire_early_change args = { copy };
	CHECK(!raw_send(&raw, ++number, RC_CALL_copy_early_change, context, &args, sizeof args, payload, bytes));
	return told();
}

static CUresult early_done(uint64_t first, uint64_t count)
{
	struct rc_wire_early_done args = { first, count };
	return (CUresult)raw_call(&raw, ++number, RC_CALL_copy_early_done, context, &args, sizeof args, NULL, 0);
}

/* Early copies: what does not fit is refused, and a change of a copy that is complete, or that never was, has no effect. */
static void early(void)
{
	uint64_t size = 1 << 20, address = 0;
	begin(RC_SERVER_ALL_GPUS);
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&address, raw.results, sizeof address);
	CHECK(copy_early(0, address, 64, 64) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy_early(1, address, 64, 63) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy_early(1, address, RC_INLINE_COPY + 1, RC_INLINE_COPY + 1) == CUDA_ERROR_INVALID_VALUE);
	CHECK(change_early(1, 64) == CUDA_SUCCESS);
	CHECK(early_done(1, 1) == CUDA_SUCCESS && (raw.results[0] & 1));
	CHECK(copy_early(1, address, 64, 64) == CUDA_SUCCESS);
	(void)shipped(0);
	CHECK(change_early(1, 63) == CUDA_ERROR_INVALID_VALUE);
	CHECK(change_early(1, 64) == CUDA_SUCCESS);
	CHECK(change_early(1 + RC_EARLY_COPIES, 64) == CUDA_SUCCESS);
	CHECK(early_done(1, 10) == CUDA_SUCCESS && raw.results[0] == 0xff && raw.results[1] == 3);
	CHECK(early_done(UINT64_MAX, RC_EARLY_COPIES) == CUDA_SUCCESS);
	CHECK(early_done(1, RC_EARLY_COPIES + 1) == CUDA_ERROR_INVALID_VALUE);
	struct rc_wire_copy down = { .box = { address, 64, 64, 64, 1, 1 } };
	CHECK(!raw_call(&raw, ++number, RC_CALL_copy_down_reply, context, &down, sizeof down, NULL, 0));
	CHECK(!raw.results[0] && answers(&raw));
}

/* Sends what the connection holds back, and reads nothing. */
static void flush(raw_t *on)
{
	while (!ch3_flush(on->vc))
		sched_yield();
}

/* False: the call came so early that the worker has ended the session. */
static bool call_arrives_in_credit(void)
{
	enum { MANY = 4000 };
	static const uint8_t bytes[64];
	static raw_t asking;
	uint64_t size = sizeof bytes, address = 0;
	number = 0;
	begin(RC_SERVER_ALL_GPUS);
	CHECK(!raw_connect(&asking, &raw, RC_SERVER_ALL_GPUS));
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &size, sizeof size, NULL, 0));
	memcpy(&address, raw.results, sizeof address);
	struct rc_wire_copy copy = { .copy = 9, .box = { address, size, size, size, 1, 1 } };
	struct rc_wire_chunk chunk = { 9, 0 };
	CHECK(!raw_send(&asking, ++number, RC_CALL_copy_up, context, &copy, sizeof copy, NULL, 0));
	CHECK(!raw_packet(&asking, RC_PACKET_CHUNK, &chunk, sizeof chunk, bytes, sizeof bytes));
	CHECK(!raw_send(&asking, ++number, RC_CALL_copy_up_end, context, &chunk.copy, sizeof chunk.copy, NULL, 0));
	asking.deaf = true;
	for (int i = 0; i < MANY; i++)
		CHECK(!raw_send_hello(&asking, ++number));
	struct rc_wire_credit want = { 1, 0 };
	CHECK(!raw_packet(&asking, RC_PACKET_WANT, &want, sizeof want, NULL, 0));
	flush(&asking);
	for (int i = 0; i < 100; i++) /* the worker begins to send the CREDIT meanwhile */
		CHECK(answers(&raw));
	struct rc_args_cuStreamSynchronize wait = { .hStream = 0 };
	raw_send(&asking, ++number, RC_CALL_cuStreamSynchronize, context, &wait, sizeof wait, NULL, 0);
	flush(&asking);
	bool answered = raw_await(&asking, MANY + 1);
	CHECK(answered || asking.failed);
	CHECK(!answered || (asking.freed == 1 && !asking.reply.result && answers(&raw) && answers(&asking)));
	raw_close(&asking);
	raw_close(&raw);
	return answered;
}

/* A client has asked for slots. While the worker sends the CREDIT, which the full connection holds up, the client's next call
 * arrives, which the worker executes outside of CH3's progress. */
static void call_behind_credit(void)
{
	while (!call_arrives_in_credit())
		;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = { { "connections", connections }, { "descriptors", descriptors }, { "arguments", arguments },
		      { "replies", replies }, { "stream", stream }, { "window", window_of_chunks }, { "parts", parts_of_arrays },
		      { "staging", staging }, { "credit", call_behind_credit }, { "counted", counted_in_order },
		      { "twice", named_twice }, { "early", early },
		      { "placed", placed }, { "managed", managed }, { "pinned", pinned }, { "area", mirror_as_staging },
		      { "grant", grant } };
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		if (argc == 2 && !strcmp(argv[1], tests[i].name)) {
			tests[i].run();
			return 0;
		}
	return 2;
}
