/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library against a server that breaks the protocol. hostile SCENARIO SOCKET: the server is a thread of this
 * process; the client must end the session, and must not touch memory that was given back (AddressSanitizer sees that).
 */
#include "cuda_remote/api/calls.h"
#include "cuda_remote/door/door.h"
#include "cuda_remote/wire.h"

#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 8
#define BYTES RC_CHUNK_MAX /* of each copy: one chunk, more than a socket takes at once */
#define FETCHED (4 * BYTES) /* of a copy whose bytes the client does not send during the call */
#define SENT 0xa5

/* ---- the server ---- */

struct connection {
	ch3_t *engine;
	ch3_vc_t *vc;
	bool paused; /* makes no progress: what did not fit the socket stays here; atomic */
	ch3_request_t *sending;
};

static struct connection connections[CONNECTIONS];
static int n_connections;
static uint8_t bytes_sent[BYTES]; /* each of them SENT */
static bool finished; /* atomic */

static void pause_connection(struct connection *connection, bool paused)
{
	__atomic_store_n(&connection->paused, paused, __ATOMIC_RELEASE);
}

static bool is_paused(const struct connection *connection)
{
	return __atomic_load_n(&connection->paused, __ATOMIC_ACQUIRE);
}

/* What a scenario does with a call. False: it is answered with success. */
typedef bool (*scenario_fn)(struct connection *from, const struct rc_wire_call *call, const void *arguments);
static scenario_fn scenario;
static uint16_t freed; /* of the next replies */

static void reply(struct connection *to, const struct rc_wire_call *call, uint64_t shipped, const void *results, size_t len)
{
	uint8_t header[CH3_HEADER_MAX];
	struct rc_wire_reply head = { .number = call->number, .failed = call->number, .shipped = shipped,
				      .function = call->function, .freed = freed };
	size_t inside = len < RC_REPLY_INLINE ? len : RC_REPLY_INLINE;
	struct iovec rest = { (uint8_t *)(uintptr_t)results + inside, len - inside };
	memcpy(header, &head, sizeof head);
	memcpy(header + sizeof head, results, inside);
	ch3_send(to->vc, RC_PACKET_REPLY, header, sizeof head + inside, &rest, rest.iov_len ? 1 : 0,
		 CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
}

/* Sends a chunk; what does not fit the socket follows when the connection makes progress. */
static void send_chunk(struct connection *to, uint64_t copy)
{
	struct rc_wire_chunk chunk = { copy, 0 };
	struct iovec iov = { bytes_sent, BYTES };
	ch3_send(to->vc, RC_PACKET_CHUNK, &chunk, sizeof chunk, &iov, 1, CH3_SEND_EAGER, &to->sending);
}

static void reply_hello(struct connection *to, const struct rc_wire_call *call)
{
	static struct {
		struct rc_wire_hello head;
		struct rc_wire_device device;
	} answer = { .head = { .devices = 1, .driver_version = CUDA_VERSION, .staging = 1u << 30 },
		     .device = { .name = "hostile", .memory = 1u << 30, .peers = { 1 },
				 .known = { [CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 1 } } };
	reply(to, call, 0, &answer, sizeof answer);
}

static void serve(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	const uint64_t yes = 1;
	const struct rc_wire_placing placing = { 512, 1 << 20, 2 << 20, 512 };
	struct rc_wire_budget wanted;
	if (call->function == RC_CALL_hello)
		reply_hello(from, call);
	else if (call->function == RC_CALL_memory_window)
		reply(from, call, 0, &placing, sizeof placing);
	else if (call->function == RC_CALL_memory_budget) {
		memcpy(&wanted, arguments, sizeof wanted);
		reply(from, call, 0, &wanted.most, sizeof wanted.most);
	} else if (call->function == RC_CALL_managed_info)
		reply(from, call, 0, &yes, sizeof yes);
	else if (!scenario(from, call, arguments) && call->flags & RC_CALL_WAIT)
		reply(from, call, 0, "", 0);
}

/* The data connection, once the client has said which one it is, and a copy half of whose chunk waits for it. */
static struct connection *data;
static uint64_t half_of;
static bool and_another; /* chunk follows */

/* The copy's second chunk, which no client waits for in vain if it has forgotten the copy. */
static void send_second_chunk(struct connection *to, uint64_t copy)
{
	struct rc_wire_chunk chunk = { copy, BYTES };
	struct iovec iov = { bytes_sent, BYTES };
	static ch3_request_t *sending;
	ch3_send(to->vc, RC_PACKET_CHUNK, &chunk, sizeof chunk, &iov, 1, CH3_SEND_EAGER, &sending);
}

/* Sends a chunk of the copy over the data connection, of which the client gets the first half only. */
static void send_half(uint64_t copy)
{
	half_of = copy;
	if (!data)
		return;
	send_chunk(data, copy);
	if (and_another)
		send_second_chunk(data, copy);
	pause_connection(data, true);
}

/* The call of the data connection, which is never answered. */
static void begin_data(struct connection *from)
{
	data = from;
	if (half_of)
		send_half(half_of);
}

static int on_call(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	uint8_t arguments[CH3_HEADER_MAX] = { 0 };
	struct rc_wire_call call;
	(void)sink;
	memcpy(&call, incoming->header, sizeof call);
	memcpy(arguments, (const uint8_t *)incoming->header + sizeof call, incoming->header_len - sizeof call);
	if (call.function == RC_CALL_data_connection)
		begin_data(context);
	else
		serve(context, &call, arguments);
	return 0;
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	struct connection *connection = context;
	(void)vc;
	(void)error;
	pause_connection(connection, true);
}

static bool shares; /* the staging area, which it then does not use as it should */

/* Answers the requests for pinned memory as if all of it were mapped. */
static void *memory_run(void *argument)
{
	rc_door_peer_t *peer = argument;
	struct rc_wire_pin ask;
	int fd;
	if (!rc_door_peer_welcome(peer, NULL, 1, 0, 0, ""))
		while (rc_door_take(peer->fd, &ask, sizeof ask, &fd) == 1) {
			struct rc_wire_pinned answer = { .pinned = ask.pinned, .result = CUDA_SUCCESS };
			close(fd);
			if (send(peer->fd, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
				break;
		}
	close(peer->fd);
	free(peer);
	return NULL;
}

static void share_memory(const rc_door_peer_t *peer)
{
	pthread_t thread;
	rc_door_peer_t *kept = malloc(sizeof *kept);
	if (!kept)
		abort();
	*kept = *peer;
	if (pthread_create(&thread, NULL, memory_run, kept))
		abort();
	pthread_detach(thread);
}

static bool refused; /* atomic: a chunk without bytes has come */

static int on_refusal(void *connection, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)connection;
	(void)sink;
	if (incoming->payload_len)
		_exit(1);
	__atomic_store_n(&refused, true, __ATOMIC_RELEASE);
	return 0;
}

static void take_connection(const rc_door_peer_t *peer)
{
	if (peer->purpose == RC_DOOR_MEMORY && shares) {
		share_memory(peer);
		return;
	}
	if (peer->purpose == RC_DOOR_MEMORY) { /* the bytes of pinned memory are to come in chunks */
		rc_door_peer_refuse(peer, RC_DOOR_FAILED, "this server maps no memory");
		return;
	}
	struct connection *fresh = &connections[n_connections];
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	hr_connect_attr_t connect = HR_CONNECT_ATTR_INIT;
	hr_card_t card;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	if (n_connections == CONNECTIONS || ch3_open(&attr, &fresh->engine, &card))
		abort();
	ch3_on_failure(fresh->engine, on_failure, fresh);
	ch3_register(fresh->engine, RC_PACKET_CALL, on_call, fresh);
	ch3_register(fresh->engine, RC_PACKET_CHUNK, on_refusal, fresh);
	connect.fd = peer->fd;
	if (rc_door_peer_welcome(peer, &card, 1, 0, 0, "") ||
	    ch3_connect(fresh->engine, &peer->card, &connect, fresh, &fresh->vc))
		abort();
	n_connections++;
}

static unsigned turns; /* how often the server's thread has begun to look at its connections */

static void *server_run(void *argument)
{
	rc_door_t *door = argument;
	rc_door_peer_t peer;
	while (!__atomic_load_n(&finished, __ATOMIC_ACQUIRE)) {
		__atomic_add_fetch(&turns, 1, __ATOMIC_ACQ_REL);
		if (rc_door_next(door, &peer) == 1)
			take_connection(&peer);
		for (int i = 0; i < n_connections; i++)
			if (!is_paused(&connections[i]))
				ch3_progress_poll(connections[i].engine);
		usleep(500);
	}
	return NULL;
}

/* far: at a TCP address, so that the client takes the server for one of another host. */
static void server_start(const char *socket, bool far)
{
	char place[256];
	rc_server_t server;
	rc_door_t *door;
	pthread_t thread;
	if (far)
		snprintf(place, sizeof place, "127.0.0.1:%d", 20000 + (int)(getpid() % 9000));
	else
		snprintf(place, sizeof place, "unix:%s", socket);
	setenv("HEADRACE_SERVER", place, 1);
	memset(bytes_sent, SENT, sizeof bytes_sent);
	if (rc_server_parse_place(place, &server) || rc_door_open(&(rc_door_policy_t){ 0 }, &door) ||
	    rc_door_listen(door, &server) || pthread_create(&thread, NULL, server_run, door))
		abort();
	pthread_detach(thread);
}

/* ---- the client ---- */

static void expect(const char *what, CUresult result, CUresult expected)
{
	if (result == expected)
		return;
	fprintf(stderr, "%s: CUresult %d, expected %d\n", what, (int)result, (int)expected);
	_exit(1);
}

static CUcontext context;
static CUdeviceptr device_memory;

static void client_start(void)
{
	CUdevice device;
	expect("cuInit", cuInit(0), CUDA_SUCCESS);
	expect("cuDeviceGet", cuDeviceGet(&device, 0), CUDA_SUCCESS);
	expect("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
	expect("cuCtxSetCurrent", cuCtxSetCurrent(context), CUDA_SUCCESS);
	expect("cuMemAlloc", cuMemAlloc(&device_memory, FETCHED), CUDA_SUCCESS);
}

/* The second thread: waits for an answer, so that its connection receives. */
static pthread_t second;
static CUresult second_result;

static void *second_run(void *argument)
{
	(void)argument;
	expect("cuCtxSetCurrent", cuCtxSetCurrent(context), CUDA_SUCCESS);
	second_result = cuCtxSynchronize();
	return NULL;
}

static CUresult second_join(void)
{
	pthread_join(second, NULL);
	return second_result;
}

/* ---- scenarios; connections[1] is the main thread's, connections[2] the second thread's, connections[3] the data
 * connection, if there is a second thread ---- */

#define MAIN (&connections[1])
#define SECOND (&connections[2])
#define DATA (&connections[3])

static bool second_waits;         /* for an answer that never comes; atomic */
static struct rc_wire_copy named;       /* the copy that the main thread asked for */

static bool is_second(const struct connection *from, const struct rc_wire_call *call)
{
	if (from != SECOND || call->function != RC_CALL_context_synchronize)
		return false;
	__atomic_store_n(&second_waits, true, __ATOMIC_RELEASE);
	return true;
}

static void await_second(void)
{
	pthread_create(&second, NULL, second_run, NULL);
	while (!__atomic_load_n(&second_waits, __ATOMIC_ACQUIRE))
		usleep(1000);
}

/* Waits until the server's thread has seen which connections are paused. */
static void await_turn(void)
{
	unsigned before = __atomic_load_n(&turns, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&turns, __ATOMIC_ACQUIRE) - before < 2)
		usleep(1000);
}

/* Waits until a connection has received the first bytes of a chunk into memory, which was zero before. */
static void await_first_bytes(const uint8_t *memory)
{
	while (__atomic_load_n(memory, __ATOMIC_RELAXED) != SENT)
		usleep(1000);
}

/* An asynchronous copy's chunk, half of it on the data connection, then the whole of it on another. */
static bool chunk_on_two(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	if (is_second(from, call))
		return true;
	if (from != MAIN)
		return false;
	if (call->function == RC_CALL_copy_down_later) {
		memcpy(&named, arguments, sizeof named);
		send_half(named.copy);
		return true;
	}
	if (call->function == RC_CALL_context_synchronize) {
		send_chunk(MAIN, named.copy);
		reply(MAIN, call, 1, "", 0);
		return true;
	}
	return false;
}

static void run_chunk_on_two(void)
{
	void *pinned;
	await_second();
	expect("cuMemHostAlloc", cuMemHostAlloc(&pinned, BYTES, 0), CUDA_SUCCESS);
	memset(pinned, 0, BYTES);
	expect("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync(pinned, device_memory, BYTES, NULL), CUDA_SUCCESS);
	await_first_bytes(pinned); /* the data connection is receiving its half now */
	CUresult result = cuCtxSynchronize();
	pause_connection(DATA, false); /* the other half */
	usleep(500000);
	expect("cuCtxSynchronize", result, CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* The chunk of a copy that the main thread waits for, on the second connection. */
static bool foreign_chunk(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	if (is_second(from, call))
		return true;
	if (call->function != RC_CALL_copy_down)
		return false;
	memcpy(&named, arguments, sizeof named);
	send_chunk(SECOND, named.copy);
	return true;
}

static void *copy_run(void *argument)
{
	expect("cuCtxSetCurrent", cuCtxSetCurrent(context), CUDA_SUCCESS);
	cuMemcpyDtoH(argument, device_memory, BYTES);
	return NULL;
}

static void run_foreign_chunk(void)
{
	static uint8_t memory[BYTES];
	pthread_t copier;
	await_second();
	pthread_create(&copier, NULL, copy_run, memory); /* no answer comes: it is left waiting */
	expect("cuCtxSynchronize of the second thread", second_join(), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* The answer to a copy before its chunk. */
static bool late_chunk(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	if (call->function != RC_CALL_copy_down)
		return false;
	memcpy(&named, arguments, sizeof named);
	reply(from, call, 0, "", 0);
	send_chunk(from, named.copy);
	return true;
}

static void run_late_chunk(void)
{
	void *memory = malloc(BYTES);
	expect("cuMemcpyDtoH", cuMemcpyDtoH(memory, device_memory, BYTES), CUDA_ERROR_DEVICE_UNAVAILABLE);
	free(memory);
	usleep(200000);
}

/* A copy into registered memory that is half received when the program unregisters and frees the memory. */
static bool half_received(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	if (is_second(from, call))
		return true;
	if (call->function != RC_CALL_copy_down_later)
		return false;
	memcpy(&named, arguments, sizeof named);
	and_another = named.box.width > BYTES;
	send_half(named.copy);
	return true;
}

static void *resume_data(void *argument)
{
	(void)argument;
	usleep(500000);
	pause_connection(DATA, false);
	return NULL;
}

static void half_receive(size_t bytes)
{
	void *memory = calloc(1, bytes);
	pthread_t later;
	await_second();
	expect("cuMemHostRegister", cuMemHostRegister(memory, bytes, 0), CUDA_SUCCESS);
	expect("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync(memory, device_memory, bytes, NULL), CUDA_SUCCESS);
	await_first_bytes(memory);
	pthread_create(&later, NULL, resume_data, NULL);
	expect("cuMemHostUnregister", cuMemHostUnregister(memory), CUDA_SUCCESS);
	if (is_paused(DATA)) {
		fprintf(stderr, "the memory was given back while a connection was receiving into it\n");
		_exit(1);
	}
	free(memory);
	pthread_join(later, NULL);
	usleep(200000);
}

static void run_half_received(void)
{
	half_receive(BYTES);
}

/* The server, which is not hostile here, sends a further chunk of the copy. The client drops it. */
static void run_half_received_of_two(void)
{
	half_receive(2 * BYTES);
	expect("cuCtxSynchronize", cuCtxSynchronize(), CUDA_SUCCESS);
}

/* The chunk of an asynchronous copy on the connection of a thread. */
static bool chunk_of_a_thread(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	if (is_second(from, call))
		return true;
	if (call->function != RC_CALL_copy_down_later)
		return false;
	memcpy(&named, arguments, sizeof named);
	send_chunk(SECOND, named.copy);
	return true;
}

static void run_chunk_of_a_thread(void)
{
	static uint8_t memory[BYTES];
	await_second();
	expect("cuMemHostRegister", cuMemHostRegister(memory, BYTES, 0), CUDA_SUCCESS);
	expect("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync(memory, device_memory, BYTES, NULL), CUDA_SUCCESS);
	expect("cuCtxSynchronize of the second thread", second_join(), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* The server asks for bytes of a copy on the connection of a thread. */
static bool fetch_on_a_thread(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	if (is_second(from, call))
		return true;
	if (call->function != RC_CALL_copy_up_later)
		return false;
	memcpy(&named, arguments, sizeof named);
	struct rc_wire_fetch fetch = { named.copy, 0, BYTES };
	ch3_send(SECOND->vc, RC_PACKET_FETCH, &fetch, sizeof fetch, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	return true;
}

static void run_fetch_on_a_thread(void)
{
	static uint8_t memory[FETCHED];
	await_second();
	expect("cuMemHostRegister", cuMemHostRegister(memory, FETCHED, 0), CUDA_SUCCESS);
	expect("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync(device_memory, memory, FETCHED, NULL), CUDA_SUCCESS);
	expect("cuCtxSynchronize of the second thread", second_join(), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* The server asks for more bytes than a copy has; the client sends none of them, and not those behind the memory. */
static bool fetch_beyond(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	if (is_second(from, call))
		return true;
	if (call->function == RC_CALL_copy_up_later)
		memcpy(&named, arguments, sizeof named);
	return call->function == RC_CALL_copy_up_later;
}

static void run_fetch_beyond(void)
{
	static uint8_t memory[FETCHED];
	struct rc_wire_fetch fetch = { 0, 0, FETCHED + BYTES };
	await_second();
	expect("cuMemHostRegister", cuMemHostRegister(memory, FETCHED, 0), CUDA_SUCCESS);
	expect("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync(device_memory, memory, FETCHED, NULL), CUDA_SUCCESS);
	expect("cuCtxSynchronize", cuCtxSynchronize(), CUDA_SUCCESS); /* the server has the copy's call */
	pause_connection(DATA, true);
	await_turn(); /* the server's thread is not in the connection's engine */
	fetch.copy = named.copy;
	ch3_send(DATA->vc, RC_PACKET_FETCH, &fetch, sizeof fetch, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	pause_connection(DATA, false);
	while (!__atomic_load_n(&refused, __ATOMIC_ACQUIRE))
		usleep(1000);
}

/* A failure of an asynchronous copy that the client never made. */
static bool unknown_fails(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	if (is_second(from, call))
		return true;
	if (call->function != RC_CALL_copy_down_later)
		return false;
	memcpy(&named, arguments, sizeof named);
	struct rc_wire_chunk failure = { named.copy + 1000, 0 };
	ch3_send(DATA->vc, RC_PACKET_CHUNK, &failure, sizeof failure, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	return true;
}

static void run_unknown_fails(void)
{
	static uint8_t memory[BYTES];
	await_second();
	expect("cuMemHostRegister", cuMemHostRegister(memory, BYTES, 0), CUDA_SUCCESS);
	expect("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync(memory, device_memory, BYTES, NULL), CUDA_SUCCESS);
	/* The call succeeds until the client has received the failure on the data connection. */
	CUresult result = cuCtxSynchronize();
	for (int i = 0; i < 3000 && result == CUDA_SUCCESS; i++) {
		usleep(10000);
		result = cuCtxSynchronize();
	}
	expect("cuCtxSynchronize", result, CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* A host function's turn on a connection that is not the first. */
static bool foreign_host(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	struct rc_wire_host host = { .ticket = 1, .function = 1 };
	(void)arguments;
	if (call->function != RC_CALL_context_synchronize)
		return false;
	ch3_send(from->vc, RC_PACKET_HOST, &host, sizeof host, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	return false;
}

static void run_foreign_host(void)
{
	expect("cuCtxSynchronize", cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* Chunks that are said to be in the staging area, and credits, each with a lie. */
static const struct lie {
	const char *name;
	bool shares;
	uint32_t type; /* enum rc_packet */
	uint64_t second, third; /* words of the packet after the first: offset and bytes, or 0 and none */
} lies[] = {
	{ "staged-beyond-the-copy", true, RC_PACKET_STAGED, 8, BYTES },
	{ "staged-at-an-offset-that-wraps", true, RC_PACKET_STAGED, UINT64_MAX - 7, 16 },
	{ "staged-more-than-a-chunk", true, RC_PACKET_STAGED, 0, RC_CHUNK_MAX + 1 },
	{ "staged-of-another-size", true, RC_PACKET_STAGED, 0, UINT64_MAX },
	{ "staged-without-a-staging-area", false, RC_PACKET_STAGED, 0, 16 },
	{ "credit-for-what-was-not-sent", true, RC_PACKET_CREDIT, 0, 0 },
	{ "credit-as-an-answer-to-nothing", true, RC_PACKET_CREDIT, 1, 0 },
};
static const struct lie *lie;

static bool lied(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	if (call->function != RC_CALL_copy_down)
		return false;
	memcpy(&named, arguments, sizeof named);
	bool credit = lie->type == RC_PACKET_CREDIT;
	const uint64_t words[] = { credit ? !lie->second : named.copy, lie->second, lie->third };
	ch3_send(from->vc, (uint8_t)lie->type, words, credit ? 16 : 24, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	return true; /* no answer: the client must end the session by itself */
}

static void run_lied(void)
{
	void *memory = malloc(BYTES);
	expect("cuMemcpyDtoH", cuMemcpyDtoH(memory, device_memory, BYTES), CUDA_ERROR_DEVICE_UNAVAILABLE);
	if (named.staged != lie->shares) {
		fprintf(stderr, "the client has %s staging area\n", named.staged ? "a" : "no");
		_exit(1);
	}
	free(memory);
}

/* An answer with changes of managed memory, of which part is not managed memory, or that wants to be asked again for ever. */
#define MANAGED (4096 * 2)
static uint64_t managed; /* address */
static struct {
	struct rc_wire_pulled head;
	struct rc_wire_change record;
	uint8_t bytes[4096];
} changes;
static size_t changes_len;
static uint64_t pulls; /* atomic */

static bool answer_changes(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	struct rc_wire_place place;
	if (call->function == RC_CALL_managed_make) {
		memcpy(&place, arguments, sizeof place);
		__atomic_store_n(&managed, place.address, __ATOMIC_RELEASE);
	}
	if (call->function != RC_CALL_managed_pull)
		return false;
	__atomic_add_fetch(&pulls, 1, __ATOMIC_RELEASE);
	reply(from, call, 0, &changes, changes_len);
	return true;
}

static void expect_refused(uint64_t address, uint64_t bytes, size_t sent, uint64_t next)
{
	CUdeviceptr there;
	expect("cuMemAllocManaged", cuMemAllocManaged(&there, MANAGED, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	memset(changes.bytes, SENT, sizeof changes.bytes);
	changes.head.next = next;
	changes.record = (struct rc_wire_change){ address ? address : there + MANAGED - 4, bytes };
	changes_len = sizeof changes.head + (sent ? sizeof changes.record + sent : 0);
	CUresult result = cuMemsetD8(there, 0, 4); /* it waits for the device, and fetches what that has changed */
	expect("cuMemsetD8", result, CUDA_ERROR_DEVICE_UNAVAILABLE);
	for (uint64_t i = 0; i < MANAGED; i++)
		expect("byte", (CUresult)((const uint8_t *)(uintptr_t)there)[i], (CUresult)0);
	if (!__atomic_load_n(&pulls, __ATOMIC_ACQUIRE)) {
		fprintf(stderr, "the client did not ask for changes\n");
		_exit(1);
	}
}

static void run_changes_outside(void)
{
	expect_refused(device_memory, 8, 8, 0);
}

static void run_changes_of_the_program(void)
{
	static uint8_t mine[64];
	expect_refused((uint64_t)(uintptr_t)mine, 8, 8, 0);
	expect("own byte", (CUresult)mine[0], (CUresult)0);
}

static void run_changes_past_the_end(void)
{
	expect_refused(0, 8, 8, 0);
}

static void run_changes_cut_short(void)
{
	expect_refused(0, 4, 2, 0);
}

static void run_changes_without_end(void)
{
	expect_refused(0, 0, 0, 1); /* the second answer repeats the place of the first */
}

/* A managed variable of a terabyte, which the client would have to map and clear. */
#define PLACE 0x200000000000
static const uint64_t large[] = { PLACE, (uint64_t)1 << 40 };

static bool name_a_large_variable(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	static const struct rc_wire_module no_kernels = { .result = CUDA_SUCCESS };
	(void)arguments;
	if (call->function == RC_CALL_module_load)
		reply(from, call, 0, &no_kernels, sizeof no_kernels);
	else if (call->function == RC_CALL_managed_variable)
		reply(from, call, 0, large, sizeof large);
	else
		return false;
	return true;
}

static void run_large_variable(void)
{
	CUlibrary library;
	CUdeviceptr there;
	size_t size;
	expect("cuLibraryLoadData", cuLibraryLoadData(&library, "text", NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
	expect("cuLibraryGetManaged", cuLibraryGetManaged(&there, &size, library, "large"), CUDA_ERROR_OUT_OF_MEMORY);
	if (!msync((void *)PLACE, (size_t)sysconf(_SC_PAGESIZE), MS_ASYNC) || errno != ENOMEM) {
		fprintf(stderr, "the variable is mapped\n");
		_exit(1);
	}
	expect("cuCtxSynchronize", cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Variables of less than a quarter of the host's memory each, and of more than that together. */
static uint64_t some[2] = { PLACE };

static bool name_large_variables(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	static const struct rc_wire_module no_kernels = { .result = CUDA_SUCCESS };
	static const struct rc_wire_pulled no_changes = { .next = 0 };
	(void)arguments;
	if (call->function == RC_CALL_module_load)
		reply(from, call, 0, &no_kernels, sizeof no_kernels);
	else if (call->function == RC_CALL_managed_variable)
		reply(from, call, 0, some, sizeof some);
	else if (call->function == RC_CALL_managed_pull)
		reply(from, call, 0, &no_changes, sizeof no_changes);
	else
		return false;
	return true;
}

static void run_large_variables(void)
{
	CUlibrary library;
	CUdeviceptr there;
	size_t size;
	some[1] = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 6;
	expect("cuLibraryLoadData", cuLibraryLoadData(&library, "text", NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
	expect("cuLibraryGetManaged", cuLibraryGetManaged(&there, &size, library, "first"), CUDA_SUCCESS);
	expect("byte", (CUresult)((const uint8_t *)(uintptr_t)there)[size - 1], (CUresult)0);
	some[0] += (uint64_t)1 << 40;
	expect("cuLibraryGetManaged", cuLibraryGetManaged(&there, &size, library, "second"), CUDA_ERROR_OUT_OF_MEMORY);
	expect("cuCtxSynchronize", cuCtxSynchronize(), CUDA_SUCCESS);
}

/* No chunk was sent, so no slot can have been left. */
static bool free_a_slot(struct connection *from, const struct rc_wire_call *call, const void *arguments)
{
	(void)arguments;
	if (call->function != RC_CALL_context_synchronize)
		return false;
	freed = 1;
	reply(from, call, 0, "", 0);
	return true;
}

static void run_free_slots(void)
{
	expect("cuCtxSynchronize", cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

static const struct {
	const char *name;
	scenario_fn server;
	void (*client)(void);
	bool far;
} scenarios[] = {
	{ "chunk-on-two-connections", chunk_on_two, run_chunk_on_two, false },
	{ "chunk-on-a-foreign-connection", foreign_chunk, run_foreign_chunk, false },
	{ "chunk-after-the-answer", late_chunk, run_late_chunk, false },
	{ "asynchronous-chunk-on-a-threads-connection", chunk_of_a_thread, run_chunk_of_a_thread, false },
	{ "fetch-on-a-threads-connection", fetch_on_a_thread, run_fetch_on_a_thread, false },
	{ "fetch-beyond-the-copy", fetch_beyond, run_fetch_beyond, false },
	{ "free-slots-that-were-not-used", free_a_slot, run_free_slots, false },
	{ "failure-of-an-unknown-copy", unknown_fails, run_unknown_fails, false },
	{ "memory-given-back-while-receiving", half_received, run_half_received, false },
	{ "memory-given-back-between-chunks", half_received, run_half_received_of_two, false },
	{ "host-function-on-a-foreign-connection", foreign_host, run_foreign_host, false },
	{ "changes-outside-of-managed-memory", answer_changes, run_changes_outside, true },
	{ "changes-of-the-programs-own-memory", answer_changes, run_changes_of_the_program, true },
	{ "changes-past-the-end", answer_changes, run_changes_past_the_end, true },
	{ "changes-cut-short", answer_changes, run_changes_cut_short, true },
	{ "changes-without-end", answer_changes, run_changes_without_end, true },
	{ "variable-of-a-terabyte", name_a_large_variable, run_large_variable, true },
	{ "variables-of-much-memory-together", name_large_variables, run_large_variables, true },
};

static int run_lie(const char *socket)
{
	scenario = lied;
	shares = lie->shares;
	server_start(socket, false);
	client_start();
	run_lied();
	_exit(0);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof lies / sizeof *lies; i++)
		if (!strcmp(argv[1], lies[i].name)) {
			lie = &lies[i];
			return run_lie(argv[2]);
		}
	for (size_t i = 0; argc == 1 && i < sizeof lies / sizeof *lies; i++)
		puts(lies[i].name);
	for (size_t i = 0; argc == 3 && i < sizeof scenarios / sizeof *scenarios; i++) {
		if (strcmp(argv[1], scenarios[i].name))
			continue;
		scenario = scenarios[i].server;
		server_start(argv[2], scenarios[i].far);
		client_start();
		scenarios[i].client();
		_exit(0); /* connections in every state are left behind */
	}
	for (size_t i = 0; argc == 1 && i < sizeof scenarios / sizeof *scenarios; i++)
		puts(scenarios[i].name);
	return argc == 1 ? 0 : 2;
}
