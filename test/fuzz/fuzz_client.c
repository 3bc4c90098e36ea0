/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library with a server that sends anything: replies, chunks of copies, text and HOST packets from the
 * input, some of them as a correct server sends them. The CUDA program is always the same.
 */
#include "cuda_remote/client/session.c" /* its static state is reset before each input */
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/memory.h"
#include "test/fuzz/input.h"

#include <sys/mman.h>
#include <sys/socket.h>

#define COPY_BYTES 70000u

/* ---- the server ---- */

struct connection {
	ch3_t *engine;
	ch3_vc_t *vc;
	bool failed;
};

static struct connection connections[2];
static int n_connections;  /* atomic */
static bool stop;          /* atomic */
static struct fuzz_input input;
static uint64_t last_copy;

static void send_reply(struct connection *to, const struct rc_wire_call *call, int32_t result, const void *results, size_t len)
{
	uint8_t header[CH3_HEADER_MAX];
	struct rc_wire_reply head = { .number = call->number, .failed = call->number, .result = result,
				      .function = call->function };
	size_t inside = len < RC_REPLY_INLINE ? len : RC_REPLY_INLINE;
	struct iovec rest = { (uint8_t *)(uintptr_t)results + inside, len - inside };
	memcpy(header, &head, sizeof head);
	memcpy(header + sizeof head, results, inside);
	ch3_send(to->vc, RC_PACKET_REPLY, header, sizeof head + inside, &rest, rest.iov_len ? 1 : 0,
		 CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
}

/* Sends what a correct server answers, with some of the bytes changed by the input. */
static void reply_nearly(struct connection *to, const struct rc_wire_call *call)
{
	static union {
		uint8_t bytes[4096];
		struct {
			struct rc_wire_hello head;
			struct rc_wire_device device;
		} hello;
		struct {
			struct rc_wire_module head;
			struct rc_wire_kernel kernel;
			uint32_t parameters[4];
			char name[8];
		} module;
		uint64_t words[3];
	} answer;
	size_t len = 0;
	memset(&answer, 0, sizeof answer);
	if (call->function == RC_CALL_hello) {
		answer.hello.head = (struct rc_wire_hello){ 1, CUDA_VERSION, 1u << 24, 1u << 24 };
		len = sizeof answer.hello;
	} else if (call->function == RC_CALL_module_load) {
		answer.module.head = (struct rc_wire_module){ .kernels = 1 };
		answer.module.kernel = (struct rc_wire_kernel){ .name = 1, .parameters = 2, .block = 12 };
		memcpy(answer.module.parameters, (uint32_t[]){ 0, 8, 8, 4 }, 16);
		answer.module.name[0] = 'k';
		len = offsetof(__typeof__(answer.module), name) + 1;
	} else if (call->function == RC_CALL_module_global || call->function == RC_CALL_cuMemGetInfo_v2) {
		answer.words[0] = 0x800000000;
		answer.words[1] = 64;
		len = 16;
	} else if (call->function == RC_CALL_memory_window) {
		answer.words[0] = 512;
		answer.words[1] = 1 << 20;
		answer.words[2] = 2 << 20;
		len = 24;
	} else if (call->function == RC_CALL_memory_budget) {
		answer.words[0] = (COPY_BYTES + 511) / 512 * 512;
		len = 8;
	} else if (call->function == RC_CALL_memory_alloc || call->function == RC_CALL_cuCtxGetLimit) {
		answer.words[0] = 0x700000000;
		len = 8;
	} else if (call->function == RC_CALL_cuOccupancyMaxActiveBlocksPerMultiprocessor) {
		answer.words[0] = 2;
		len = 4;
	}
	for (uint8_t changes = fuzz_u8(&input) % 4; changes && len; changes--)
		answer.bytes[fuzz_u16(&input) % len] = fuzz_u8(&input);
	send_reply(to, call, 0, answer.bytes, len);
}

static void send_one(struct connection *to, const struct rc_wire_call *call, uint8_t what, bool *answered)
{
	static uint8_t bytes[RC_CHUNK_MAX];
	if (what % 8 < 3) {
		reply_nearly(to, call);
		*answered = true;
	} else if (what % 8 == 3) {
		size_t len = fuzz_take(&input, bytes, fuzz_u16(&input) % 3000);
		send_reply(to, call, what & 8 ? (int8_t)fuzz_u8(&input) : 0, bytes, len);
		*answered = true;
	} else if (what % 8 < 6) {
		struct rc_wire_chunk chunk = { last_copy - (what >> 3) % 4, (uint64_t)fuzz_u16(&input) * (what & 32 ? 64 : 1) };
		struct iovec iov = { bytes, fuzz_u16(&input) * (what & 64 ? 8u : 1u) % (RC_CHUNK_MAX + 1) };
		ch3_send(to->vc, RC_PACKET_CHUNK, &chunk, sizeof chunk, &iov, 1, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	} else {
		/* The client would print a text, so it has no payload here. A HOST packet has any bytes. */
		uint8_t header[CH3_HEADER_MAX];
		size_t len = fuzz_take(&input, header, fuzz_u8(&input) % 48);
		enum rc_packet type = what % 8 == 6 ? RC_PACKET_HOST : RC_PACKET_TEXT;
		if (what & 8)
			type = what & 16 ? RC_PACKET_STAGED : RC_PACKET_CREDIT;
		ch3_send(to->vc, type, header, len, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	}
}

static int on_call(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct connection *from = context;
	struct rc_wire_call call;
	bool answered = false;
	(void)sink;
	memcpy(&call, incoming->header, sizeof call);
	if (call.function == RC_CALL_copy_down || call.function == RC_CALL_copy_down_later)
		memcpy(&last_copy, (const uint8_t *)incoming->header + sizeof call, sizeof last_copy);
	if (!(call.flags & RC_CALL_WAIT))
		return 0;
	while (!answered && input.left) {
		bool sent = false, elsewhere = n_connections == 2 && fuzz_u8(&input) % 8 == 7;
		send_one(elsewhere ? &connections[from == &connections[0]] : from, &call, fuzz_u8(&input), &sent);
		answered = sent && !elsewhere;
	}
	return answered ? 0 : -ECONNRESET; /* the input has ended */
}

static void on_chunk_up(void *context, int error, size_t bytes)
{
	(void)context;
	(void)error;
	(void)bytes;
}

static int on_other(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)incoming;
	sink->done = on_chunk_up;
	return 0;
}

static void on_server_failure(void *context, ch3_vc_t *vc, int error)
{
	struct connection *connection = context;
	(void)vc;
	(void)error;
	connection->failed = true;
}

static void *server_run(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		int n = __atomic_load_n(&n_connections, __ATOMIC_ACQUIRE), ran = 0;
		for (int i = 0; i < n; i++)
			if (!connections[i].failed)
				ran += ch3_progress_poll(connections[i].engine) > 0;
		if (!ran)
			sched_yield();
	}
	return NULL;
}

/* Replaces the handshake (linked with --wrap): connects to the server above. */
int __wrap_rc_door_connect(const rc_door_connect_t *wanted, rc_door_welcome_t *welcome);
int __wrap_rc_door_connect(const rc_door_connect_t *wanted, rc_door_welcome_t *welcome)
{
	int fds[2];
	struct connection *fresh = &connections[n_connections];
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	hr_connect_attr_t connect = HR_CONNECT_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	if (n_connections == 2)
		return -ECONNREFUSED;
	*fresh = (struct connection){ 0 };
	*welcome = (rc_door_welcome_t){ .gpus = 1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) || ch3_open(&attr, &fresh->engine, &welcome->card))
		abort();
	ch3_on_failure(fresh->engine, on_server_failure, fresh);
	ch3_register(fresh->engine, RC_PACKET_CALL, on_call, fresh);
	ch3_register(fresh->engine, RC_PACKET_CHUNK, on_other, fresh);
	ch3_register(fresh->engine, RC_PACKET_HOST_DONE, on_other, fresh);
	ch3_register(fresh->engine, RC_PACKET_WANT, on_other, fresh);
	welcome->fd = fds[0];
	connect.fd = fds[1];
	if (ch3_connect(fresh->engine, wanted->card, &connect, fresh, &fresh->vc))
		abort();
	__atomic_add_fetch(&n_connections, 1, __ATOMIC_RELEASE);
	return 0;
}

/* ---- the program ---- */

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n";

static void use_module(void)
{
	static uint8_t argument[65536];
	void *arguments[4096];
	CUmodule module;
	CUfunction function;
	CUdeviceptr global;
	size_t offset, size, count = 0;
	int value;
	char log[64] = "";
	CUjit_option option[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof log };
	if (cuModuleLoadDataEx(&module, ptx, 2, option, values) != CUDA_SUCCESS)
		return;
	if (cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS) {
		while (cuFuncGetParamInfo(function, count, &offset, &size) == CUDA_SUCCESS && count < 4096)
			arguments[count++] = argument;
		for (int i = 0; i < 16; i++)
			cuFuncGetAttribute(&value, (CUfunction_attribute)i, function);
		if (count < 4096)
			cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
		cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 32, 0);
	}
	cuModuleGetGlobal_v2(&global, &size, module, "g");
	cuModuleUnload(module);
}

static void *kept; /* pinned memory that the library has not unmapped */

static void use_memory(void)
{
	CUdeviceptr device;
	size_t unused, total;
	void *pinned = NULL, *pageable = malloc(COPY_BYTES);
	if (cuMemAlloc_v2(&device, COPY_BYTES) == CUDA_SUCCESS && pageable) {
		CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = device, .srcPitch = 128,
				       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = pageable, .dstPitch = 160,
				       .WidthInBytes = 100, .Height = 400 };
		cuMemHostAlloc(&pinned, COPY_BYTES, 0);
		if (pinned)
			cuMemcpyDtoHAsync_v2(pinned, device, COPY_BYTES, NULL);
		cuMemcpyDtoH_v2(pageable, device, COPY_BYTES);
		cuMemcpy2D_v2(&copy);
		cuMemHostRegister(pageable, COPY_BYTES, 0);
		cuMemcpyDtoHAsync_v2(pageable, device, 3000, NULL);
		cuStreamSynchronize(NULL);
		cuMemHostUnregister(pageable);
		/* A lost session keeps pinned memory mapped. */
		if (pinned && cuMemFreeHost(pinned) != CUDA_SUCCESS)
			kept = pinned;
		cuMemFree_v2(device);
	}
	cuMemGetInfo_v2(&unused, &total);
	free(pageable);
}

static void program(void)
{
	CUcontext context;
	size_t limit_now;
	if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
	    cuCtxSetCurrent(context) != CUDA_SUCCESS)
		return;
	use_module();
	use_memory();
	cuCtxGetLimit(&limit_now, CU_LIMIT_STACK_SIZE);
	cuCtxSynchronize();
}

/* ---- resets the library, so that each input finds it as it was loaded ---- */

static void forget_handle(uint64_t handle, void *data, void *context)
{
	(void)data;
	(void)context;
	rc_handle_delete(handle);
}

static void start_over(void)
{
	struct rc_thread *thread = rc_thread_get();
	rc_copy_forget(0, UINT64_MAX);
	rc_module_forget_context((CUcontext)(uintptr_t)primaries[0]);
	rc_memory_forget_context((CUcontext)(uintptr_t)primaries[0], true);
	/* The handles of primary contexts stay, as after a cuInit that has failed. */
	for (int kind = RC_KIND_STREAM; kind < RC_KINDS; kind++)
		rc_handle_each((enum rc_kind)kind, forget_handle, NULL);
	if (thread->link[0])
		rc_link_close(thread->link[0]);
	if (process.session[0].first)
		rc_link_close(process.session[0].first);
	*thread = (struct rc_thread){ 0 };
	free(process.device);
	memset(&process, 0, sizeof process);
	state = STATE_NEW;
}

/* When a session is lost the library keeps contexts and pinned memory on purpose, so leaks are not checked. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	pthread_t server_thread;
	setenv("HEADRACE_TRANSPORT", "tcp", 1);
	setenv("HEADRACE_SERVER", "unix:/nowhere", 1);
	setenv("HEADRACE_TIMEOUT_MS", "100", 1);
	input = (struct fuzz_input){ data, size };
	n_connections = 0;
	stop = false;
	if (pthread_create(&server_thread, NULL, server_run, NULL))
		abort();
	program();
	start_over();
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(server_thread, NULL);
	for (int i = 0; i < n_connections; i++)
		ch3_close(connections[i].engine);
	if (kept)
		munmap(kept, COPY_BYTES);
	kept = NULL;
	return 0;
}
