/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends any sequence of calls, with any arguments, to a worker in this process that has the software GPU, over a
 * client's connection. All functions of the table of calls occur. The lengths of their arguments come from the table
 * (api/fuzz.h), the arguments from the input: numbers, handles, device addresses and images that are sometimes valid. Some
 * calls are nearly right (worker_calls.h). Between the calls it sends the packets of a copy's chunks, in messages and in a
 * staging area, as the protocol wants or not.
 * With FUZZ_DATA there is a data connection, which sends the bytes that the worker asks for, or refuses to. Without it, the calls
 * that wait for other workers are made, at a worker all of whose gates are open: with it these would wait for ever.
 * HEADRACE_FUZZ_DRIVER: path of a libcuda.so.1 other than this build's software GPU. HEADRACE_FUZZ_CALLS=1: prints, at the
 * end, how often each function was called and how often it succeeded.
 */
#define _GNU_SOURCE /* memfd_create */
#include "cuda_remote/api/fuzz.h"
#include "cuda_remote/door/wire.h"
#include "cuda_remote/server/internal.h"
#include "test/fuzz/worker_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef FUZZ_DATA
#define FUZZ_DATA 0
#endif
#define CALLS_MAX 24
#define HANDLES CALLS_HANDLES
#define PACKETS 240 /* function bytes from here on are packets that are no calls */
#define MADE 248    /* and from here on, calls that are nearly right */
#define STAGING CALLS_STAGING
#define PRIMARY CALLS_PRIMARY

static const struct shape {
	const char *name;
	unsigned fixed; /* bytes of the function's fixed arguments; 0: any number */
	bool more;      /* arguments of variable length follow */
} shapes[] = {
#define SHAPE(name, mode, fixed, more) { #name, fixed, more },
	RC_FUZZ_CALLS(SHAPE)
};

static const char ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 g[4];\n"
	".visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .u64 %rd<3>;\n.reg .u32 %r<3>;\n"
	"ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nst.global.u32 [%rd1], %r1;\nret;\n}\n";

/* Sends nothing: the worker would redirect the process's stdout, which the fuzzer uses. */
int __wrap_server_output_ship(struct server_thread *thread);
int __wrap_server_output_ship(struct server_thread *thread)
{
	(void)thread;
	return 0;
}

/* ---- the client ---- */

struct client {
	ch3_t *engine;
	ch3_vc_t *vc;
	bool failed, answered, credited;
	pthread_t thread;
};

static uint64_t number;

/* How often each function was called, and how often it failed. */
static unsigned calls_sent[RC_CALLS], calls_failed[RC_CALLS];

/* Counts the failures of calls without a reply. */
void __real_server_latch_set(uint64_t call, uint16_t function, CUresult result);
void __wrap_server_latch_set(uint64_t call, uint16_t function, CUresult result);
void __wrap_server_latch_set(uint64_t call, uint16_t function, CUresult result)
{
	__atomic_add_fetch(&calls_failed[function], 1, __ATOMIC_RELAXED);
	__real_server_latch_set(call, function, result);
}

static void print_calls(void)
{
	unsigned sent = 0, succeeded = 0;
	for (int i = 1; i < RC_CALLS; i++) {
		fprintf(stderr, "%9u calls, %9u succeeded: %s\n", calls_sent[i], calls_sent[i] - calls_failed[i], rc_call_names[i]);
		sent += calls_sent[i] > 0;
		succeeded += calls_sent[i] > calls_failed[i];
	}
	fprintf(stderr, "of %d functions %u were called, %u succeeded\n", RC_CALLS - 1, sent, succeeded);
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	struct client *client = context;
	(void)vc;
	(void)error;
	client->failed = true;
}

static uint16_t last_function;

static uint8_t reply_bytes[4096];

static int on_reply(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct client *client = context;
	size_t n = incoming->header_len - sizeof(struct rc_wire_reply);
	struct rc_wire_reply head;
	memcpy(&head, incoming->header, sizeof head);
	memset(reply_bytes, 0, sizeof reply_bytes);
	memcpy(reply_bytes, (const uint8_t *)incoming->header + sizeof(struct rc_wire_reply), n);
	(void)sink; /* what follows the header is dropped */
	if (head.result == CUDA_SUCCESS)
		calls_answered((enum rc_call)last_function, reply_bytes, n);
	else
		__atomic_add_fetch(&calls_failed[last_function], 1, __ATOMIC_RELAXED);
	client->answered = true;
	return 0;
}

static int on_other(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)incoming;
	(void)sink;
	return 0;
}

/* The answer to a WANT. */
static int on_credit(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct client *client = context;
	(void)incoming;
	(void)sink;
	client->credited = true;
	return 0;
}

/* Answers a HOST packet at once, as if the host function had returned. */
static int on_host(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	return ch3_send(incoming->vc, RC_PACKET_HOST_DONE, incoming->header, incoming->header_len, NULL, 0,
			CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
}

static void *serve_run(void *argument)
{
	struct server_thread *thread = argument;
	if (!server_thread_open(thread, worker.gpus))
		server_thread_run(thread);
	server_thread_close(thread);
	return NULL;
}

/* Reads the welcome, which comes before the channel's own bytes. */
static bool welcomed(int fd, hr_card_t *card)
{
	struct door_welcome welcome;
	for (size_t have = 0; have < sizeof welcome;) {
		ssize_t n = recv(fd, (uint8_t *)&welcome + have, sizeof welcome - have, 0);
		if (n == 0 || (n < 0 && errno != EINTR)) /* libFuzzer's timer interrupts recv */
			return false;
		have += n > 0 ? (size_t)n : 0;
	}
	card->len = welcome.card_len;
	memcpy(card->data, welcome.card, card->len);
	return true;
}

static int on_fetch(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink);

static void connect_to(struct client *client, uint32_t purpose, void *(*serve)(void *))
{
	int fds[2];
	hr_card_t theirs;
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	hr_connect_attr_t connect = HR_CONNECT_ATTR_INIT;
	struct server_thread *thread = calloc(1, sizeof *thread);
	attr.flags = HR_CHANNEL_NO_LISTEN;
	*client = (struct client){ 0 };
	thread->peer.purpose = purpose;
	thread->peer.local = true;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) || ch3_open(&attr, &client->engine, &thread->peer.card))
		abort();
	thread->peer.fd = fds[1];
	ch3_on_failure(client->engine, on_failure, client);
	ch3_register(client->engine, RC_PACKET_REPLY, on_reply, client);
	ch3_register(client->engine, RC_PACKET_CHUNK, on_other, client);
	ch3_register(client->engine, RC_PACKET_STAGED, on_other, client);
	ch3_register(client->engine, RC_PACKET_CREDIT, on_credit, client);
	ch3_register(client->engine, RC_PACKET_TEXT, on_other, client);
	ch3_register(client->engine, RC_PACKET_HOST, on_host, client);
	ch3_register(client->engine, RC_PACKET_FETCH, on_fetch, client);
	connect.fd = fds[0];
	if (pthread_create(&client->thread, NULL, serve, thread) || !welcomed(fds[0], &theirs) ||
	    ch3_connect(client->engine, &theirs, &connect, client, &client->vc))
		abort();
}

/* ---- the first connection, which carries host functions ---- */

static struct client first;

static void *host_run(void *argument)
{
	struct server_thread *thread = argument;
	if (server_thread_open(thread, worker.gpus))
		abort();
	while (!server_host_serve(thread)) {
		ch3_progress_poll(thread->engine);
		usleep(100);
	}
	return NULL;
}

static void *first_run(void *argument)
{
	(void)argument;
	while (ch3_progress_wait(first.engine, -1) >= 0 && !first.failed)
		;
	return NULL;
}

/* ---- the data connection ---- */

static struct client data_client;
static bool refuses_fetches; /* atomic: the client does not have the bytes */

/* Copies whose bytes the worker may ask for. The number of a copy is that of its call. */
#define FETCHES 64
static struct rc_wire_box fetch_boxes[FETCHES];

/* Sends the bytes that the worker asks for, or says that it does not have them. */
static int on_fetch(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	static const uint8_t bytes[RC_CHUNK_MAX];
	struct rc_wire_fetch fetch;
	(void)context;
	(void)sink;
	memcpy(&fetch, incoming->header, sizeof fetch);
	const struct rc_wire_box *box = &fetch_boxes[fetch.copy % FETCHES];
	bool refused = __atomic_load_n(&refuses_fetches, __ATOMIC_RELAXED);
	uint64_t from = fetch.offset, until = fetch.offset + fetch.bytes;
	do {
		struct rc_wire_chunk chunk = { fetch.copy, from };
		struct iovec iov = { (uint8_t *)(uintptr_t)bytes, rc_box_chunk(box, from) };
		int error = ch3_send(incoming->vc, RC_PACKET_CHUNK, &chunk, sizeof chunk, &iov, !refused, CH3_SEND_EAGER | CH3_SEND_COPY,
				     NULL);
		if (error)
			return error;
		from += iov.iov_len;
	} while (from < until && !refused);
	return 0;
}

static void *data_run(void *argument)
{
	(void)argument;
	while (ch3_progress_wait(data_client.engine, -1) >= 0 && !data_client.failed)
		;
	return NULL;
}

/* The session's data connection. Its client reads and answers what comes, on a thread of its own. */
static void open_data_connection(void)
{
	pthread_t thread;
	struct rc_wire_call head = { .number = ++number, .function = RC_CALL_data_connection, .flags = RC_CALL_WAIT };
	connect_to(&data_client, RC_DOOR_JOIN, serve_run);
	if (ch3_send(data_client.vc, RC_PACKET_CALL, &head, sizeof head, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL) ||
	    pthread_create(&thread, NULL, data_run, NULL))
		abort();
}

/* ---- memory that the client shares ---- */

static int memory_socket, memory_file;

static void *memory_run(void *argument)
{
	server_pinned_serve(argument);
	abort();
}

static void share_memory(void)
{
	static rc_door_peer_t peer;
	int fds[2];
	hr_card_t none;
	pthread_t thread;
	memory_file = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory_file < 0 || ftruncate(memory_file, (off_t)RC_WINDOW * RC_CHUNK_MAX) ||
	    fcntl(memory_file, F_ADD_SEALS, F_SEAL_SHRINK) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		abort();
	peer.purpose = RC_DOOR_MEMORY;
	peer.fd = fds[1];
	memory_socket = fds[0];
	if (pthread_create(&thread, NULL, memory_run, &peer) || !welcomed(memory_socket, &none))
		abort();
}

/* Gives the worker memory for a staging area under the handle STAGING, unless it has it still. */
static void offer_staging(void)
{
	struct rc_wire_pin ask = { .pinned = STAGING, .bytes = (uint64_t)RC_WINDOW * RC_CHUNK_MAX };
	struct rc_wire_pinned answer;
	if (server_object_data(RC_KIND_PINNED, STAGING))
		return;
	if (rc_door_pass(memory_socket, &ask, sizeof ask, memory_file))
		abort();
	while (recv(memory_socket, &answer, sizeof answer, MSG_WAITALL) != (ssize_t)sizeof answer)
		if (errno != EINTR)
			abort();
}

/* The device's window, as a client of ours asks for it once. */
static void open_window(void)
{
	static uint8_t results[64];
	static struct server_thread thread = { .results = results, .results_size = sizeof results };
	struct rc_wire_window args = { CALLS_WINDOW, CALLS_WINDOW_BYTES };
	struct rc_wire_placing placing;
	struct server_call call = { .thread = &thread, .number = UINT64_MAX, .in = (uint8_t *)&args, .in_len = sizeof args };
	if (server_thread_follow(&thread, rc_handle_index(PRIMARY)) != CUDA_SUCCESS ||
	    server_entries[RC_CALL_memory_window].serve(&call) != CUDA_SUCCESS)
		abort();
	memcpy(&placing, results, sizeof placing);
	calls_told.page = placing.page;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *path = getenv("HEADRACE_FUZZ_DRIVER");
	pthread_t thread;
	uint32_t gpus;
	(void)argc;
	(void)argv;
	setenv("HEADRACE_TRANSPORT", "tcp", 1);
	setenv("HEADRACE_SOFTGPU_THREADS", "1", 1);
	setenv("HEADRACE_SOFTGPU_MEMORY", "64M", 1);
	if (!path)
		path = FUZZ_DRIVER;
	if (worker_prepare(path, RC_SERVER_ALL_GPUS, &gpus) || server_limits_prepare() || server_host_prepare() ||
	    server_data_prepare()) {
		fprintf(stderr, "fuzz-worker: cannot use %s: set HEADRACE_FUZZ_DRIVER to the software GPU's libcuda.so.1\n", path);
		exit(2);
	}
	worker.primary_handle = PRIMARY;
	server_links_break();
	if (!FUZZ_DATA)
		server_peer_break(); /* no call waits for a report or a gate, which would need another client */
	if (server_object_bind(RC_KIND_CONTEXT, PRIMARY, worker.primary[0], NULL))
		abort();
	connect_to(&first, RC_DOOR_NEW, host_run);
	if (pthread_create(&thread, NULL, first_run, NULL))
		abort();
	if (FUZZ_DATA)
		open_data_connection();
	open_window();
	share_memory();
	if (getenv("HEADRACE_FUZZ_CALLS"))
		atexit(print_calls);
	return 0;
}

/* ---- calls from the input ---- */

static uint64_t word(struct fuzz_input *input)
{
	uint8_t how = fuzz_u8(input), detail = fuzz_u8(input);
	switch (how % 12) {
	case 0: return detail;
	case 1: return 1ull << detail % 64;
	case 2: return (uint64_t)fuzz_u32(input) << 32 | fuzz_u32(input);
	case 3: return calls_handle((enum rc_kind)(how / 12 % RC_KINDS), detail);
	case 4: return calls_told.address + detail;
	case 5: return calls_told.address;
	case 6: return calls_told.kernel;
	case 7: return calls_told.module;
	case 8: return PRIMARY;
	case 9: return detail * 4096u;
	case 10: return 0ull - detail;
	default: return (uint64_t)(detail % 4) << 32 | detail / 4;
	}
}

/* The copy to the device that the client has begun, and how far it has got. */
static struct {
	struct rc_wire_copy copy;
	uint64_t offset;
} up;

/* Makes a copy that comes in chunks of the arguments of copy_up. */
static void begin_copy(uint64_t *arguments, uint8_t style)
{
	up.copy = (struct rc_wire_copy){ .copy = 1 + style / 64, .staged = style / 16 % 2,
					 .box = { calls_told.address, 0, 0, (uint64_t)RC_CHUNK_MAX * (1 + style / 32) - 7, 1, 1 } };
	up.offset = 0;
	memcpy(arguments, &up.copy, sizeof up.copy);
}

/* Sends a packet that is no call: a chunk, that one is in the staging area, or what is said about slots. */
static bool send_packet(struct client *client, struct fuzz_input *input, uint8_t which)
{
	static uint8_t bytes[RC_CHUNK_MAX];
	static const enum rc_packet types[] = { RC_PACKET_CHUNK, RC_PACKET_STAGED, RC_PACKET_WANT, RC_PACKET_CREDIT };
	enum rc_packet type = types[which % 4];
	uint8_t style = fuzz_u8(input);
	bool slots = type == RC_PACKET_WANT || type == RC_PACKET_CREDIT;
	bool right = !slots && up.offset < up.copy.box.width && style % 8;
	uint64_t words[3] = { style / 16 };
	if (right)
		words[0] = up.copy.copy, words[1] = up.offset, words[2] = rc_box_chunk(&up.copy.box, up.offset);
	else if (!slots)
		words[0] = word(input), words[1] = word(input), words[2] = word(input) % (sizeof bytes + 1);
	up.offset += right ? words[2] : 0;
	struct iovec iov = { bytes, type == RC_PACKET_CHUNK ? words[2] : style / 128 };
	size_t header = (type == RC_PACKET_STAGED ? 24 : 16) + (style == 8 ? 8 : 0);
	client->credited = false;
	if (ch3_send(client->vc, type, words, header < sizeof words ? header : sizeof words, &iov, iov.iov_len > 0,
		     CH3_SEND_EAGER | CH3_SEND_COPY, NULL))
		return false;
	/* The worker answers a WANT, or ends the connection. */
	while (type == RC_PACKET_WANT && style & 1 && !client->credited && !client->failed)
		ch3_progress_wait(client->engine, -1);
	ch3_progress_poll(client->engine);
	return !client->failed;
}

static_assert(RC_CALLS - 1 <= PACKETS, "one byte names each function and each packet");

static void remember_fetch(struct rc_wire_call *head, uint64_t *arguments)
{
	struct rc_wire_copy copy;
	arguments[0] = head->number;
	memcpy(&copy, arguments, sizeof copy);
	fetch_boxes[head->number % FETCHES] = copy.box;
}

/* Calls that wait without end, or that need the other kind of worker. */
static bool is_left_out(uint16_t function)
{
	switch (function) {
	case RC_CALL_peer_gate:
	case RC_CALL_peer_event:
	case RC_CALL_peer_wait:
	case RC_CALL_peer_copy:
	case RC_CALL_peer_trial:
	case RC_CALL_context_reset: return FUZZ_DATA; /* before it, a client waits for its copies: their gates end with the context */
	case RC_CALL_copy_up_later:
	case RC_CALL_copy_down_later:
	case RC_CALL_array_up_later:
	case RC_CALL_array_down_later: return !FUZZ_DATA;
	default: return false;
	}
}

/* Sends a call and waits for its answer, if it has one. */
static bool send_call(struct client *client, uint16_t function, uint16_t flags, const uint64_t *arguments, unsigned words,
		      void *payload, size_t len)
{
	struct {
		struct rc_wire_call head;
		uint64_t arguments[RC_CALL_INLINE / 8];
	} message = { .head = { .number = ++number, .function = function, .context = rc_handle_index(PRIMARY),
				.flags = flags | (rc_call_waits[function] ? RC_CALL_WAIT : 0) } };
	struct iovec iov = { payload, len };
	if (is_left_out(function)) {
		number--;
		return true;
	}
	memcpy(message.arguments, arguments, 8 * words);
	if (function == RC_CALL_copy_up_later || function == RC_CALL_array_up_later)
		remember_fetch(&message.head, message.arguments);
	last_function = function;
	client->answered = false;
	calls_sent[function]++;
	if (ch3_send(client->vc, RC_PACKET_CALL, &message, sizeof message.head + 8 * words, &iov, len > 0,
		     CH3_SEND_EAGER | CH3_SEND_COPY, NULL))
		return false;
	while (rc_call_waits[function] && !client->answered && !client->failed)
		ch3_progress_wait(client->engine, -1);
	return !client->failed;
}

/* Sends a call that is nearly right, some of them with a word or a byte changed. */
static bool send_made(struct client *client, struct fuzz_input *input)
{
	static struct made_call made;
	uint8_t change = fuzz_u8(input);
	__atomic_store_n(&refuses_fetches, change / 4 % 8 == 7, __ATOMIC_RELAXED);
	calls_make(input, &made);
	if (change % 4 == 1 && made.words)
		made.word[fuzz_u8(input) % made.words] = word(input);
	if (change % 4 == 2 && made.len)
		made.payload[fuzz_u16(input) % made.len] ^= (uint8_t)(1u << fuzz_u8(input) % 8);
	return send_call(client, (uint16_t)made.function, 0, made.word, made.words, made.payload, made.len);
}

/* Sends one call or packet; false: the input has ended, or the connection has. */
static bool send_one(struct client *client, struct fuzz_input *input)
{
	static uint8_t payload[4096 + sizeof ptx];
	uint64_t arguments[RC_CALL_INLINE / 8];
	if (!input->left || client->failed)
		return false;
	uint8_t which = fuzz_u8(input);
	if (which >= MADE)
		return send_made(client, input);
	if (which >= PACKETS)
		return send_packet(client, input, which);
	uint16_t function = (uint16_t)(1 + which % (RC_CALLS - 1));
	const struct shape *shape = &shapes[function - 1];
	uint8_t style = fuzz_u8(input);
	unsigned words = shape->fixed ? (shape->fixed + 7) / 8 : fuzz_u8(input) % 14;
	size_t len = 0;
	for (unsigned i = 0; i < words; i++)
		arguments[i] = word(input);
	if (function == RC_CALL_copy_up && style & 2) {
		begin_copy(arguments, style);
		words = sizeof up.copy / 8;
	} else if ((function == RC_CALL_copy_up_end || function == RC_CALL_copy_staging) && style & 2) {
		arguments[0] = function == RC_CALL_copy_staging ? STAGING : up.copy.copy;
		words = 1;
	} else if (function == RC_CALL_module_load && style & 4) {
		calls_told.module = rc_handle_make(RC_KIND_MODULE, 100 + (style >> 4) % HANDLES, 1);
		calls_told.kernel = rc_handle_kernel(calls_told.module, 0);
		struct rc_wire_load load = { .handle = calls_told.module, .image = sizeof ptx };
		memcpy(arguments, &load, sizeof load);
		words = sizeof load / 8;
		memcpy(payload, ptx, len = sizeof ptx);
	} else if (function != RC_CALL_module_load && (shape->more || style & 8)) {
		for (len = 0; len < 8u * (style >> 4); len += 8) {
			uint64_t value = word(input);
			memcpy(payload + len, &value, 8);
		}
	} else if (style & 8) {
		len = fuzz_take(input, payload, 4096);
	}
	return send_call(client, function, style & 1 ? RC_CALL_PER_THREAD : 0, arguments, words, payload, len);
}

static CUresult end_context(enum rc_call function, uint64_t context)
{
	static struct server_thread thread;
	struct server_call call = { .thread = &thread, .number = UINT64_MAX, .in = (uint8_t *)&context, .in_len = sizeof context };
	return server_entries[function].serve(&call);
}

/* Frees everything that the calls made, so that each input finds the same state. */
static void start_over(void)
{
	uint64_t of;
	uint16_t function;
	CUresult result;
	if (FUZZ_DATA && driver.cuCtxSetCurrent(worker.primary[0]) == CUDA_SUCCESS)
		driver.cuCtxSynchronize(); /* the copies have ended, as before a client's reset */
	for (uint32_t i = 0; i < HANDLES; i++)
		end_context(RC_CALL_context_destroy, calls_handle(RC_KIND_CONTEXT, i));
	if (end_context(RC_CALL_context_reset, PRIMARY) != CUDA_SUCCESS)
		abort();
	while (server_latch_take(&of, &function, &result))
		;
	server_order_advance(number);
	calls_forget();
	memset(&up, 0, sizeof up);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	struct client client;
	offer_staging();
	connect_to(&client, RC_DOOR_NEW, serve_run);
	for (int i = 0; i < CALLS_MAX && send_one(&client, &input); i++)
		ch3_progress_poll(client.engine);
	ch3_close(client.engine);
	pthread_join(client.thread, NULL);
	start_over();
	if (data_client.failed)
		abort(); /* the client of the data connection has answered as it should */
	return 0;
}
