/* SPDX-License-Identifier: BSD-3-Clause */
/* The raw client: the door and CH3 as every client uses them, packets as the test wants them. */
#include "test/cuda/server/raw_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	raw_t *raw = context;
	(void)vc;
	raw->failed = error;
}

static void reply_done(void *context, int error, size_t bytes)
{
	raw_t *raw = context;
	(void)bytes;
	raw->replies += !error;
}

static int on_reply(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	raw_t *raw = context;
	if (incoming->header_len < sizeof raw->reply)
		return -EPROTO;
	memcpy(&raw->reply, incoming->header, sizeof raw->reply);
	size_t inside = incoming->header_len - sizeof raw->reply, left = sizeof raw->results - inside;
	memcpy(raw->results, (const uint8_t *)incoming->header + sizeof raw->reply, inside);
	raw->results_len = inside + (incoming->payload_len < left ? incoming->payload_len : left);
	sink->iov[0] = (struct iovec){ raw->results + inside, raw->results_len - inside };
	sink->n = incoming->payload_len ? 1 : 0;
	sink->done = reply_done;
	sink->context = raw;
	return 0;
}

static void chunk_done(void *context, int error, size_t bytes)
{
	raw_t *raw = context;
	(void)bytes;
	raw->chunks += !error;
}

static int on_chunk(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	raw_t *raw = context;
	if (raw->chunks < sizeof raw->copy / sizeof *raw->copy && incoming->header_len >= sizeof *raw->copy)
		memcpy(&raw->copy[raw->chunks], incoming->header, sizeof *raw->copy);
	sink->done = chunk_done; /* the payload is discarded */
	sink->context = raw;
	return 0;
}

static int on_credit(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	raw_t *raw = context;
	struct rc_wire_credit credit;
	(void)sink;
	if (incoming->header_len != sizeof credit)
		return -EPROTO;
	memcpy(&credit, incoming->header, sizeof credit);
	raw->freed = credit.chunks;
	return 0;
}

static int on_text(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	raw_t *raw = context;
	struct rc_wire_text wire;
	if (incoming->header_len != sizeof wire)
		return -EPROTO;
	memcpy(&wire, incoming->header, sizeof wire);
	char *to = raw->text[wire.stream == RC_TEXT_STDERR];
	size_t used = strlen(to), left = sizeof raw->text[0] - 1 - used;
	sink->iov[0] = (struct iovec){ to + used, incoming->payload_len < left ? incoming->payload_len : left };
	sink->n = 1;
	return 0;
}

static int on_host(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	raw_t *raw = context;
	(void)sink;
	if (incoming->header_len != sizeof raw->host)
		return -EPROTO;
	memcpy(&raw->host, incoming->header, sizeof raw->host);
	raw->hosts++;
	return 0;
}

static int open_engine(raw_t *raw, hr_card_t *card)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	int error = ch3_open(&attr, &raw->engine, card);
	if (error)
		return error;
	ch3_on_failure(raw->engine, on_failure, raw);
	ch3_register(raw->engine, RC_PACKET_REPLY, on_reply, raw);
	ch3_register(raw->engine, RC_PACKET_CHUNK, on_chunk, raw);
	ch3_register(raw->engine, RC_PACKET_STAGED, on_chunk, raw);
	ch3_register(raw->engine, RC_PACKET_CREDIT, on_credit, raw);
	ch3_register(raw->engine, RC_PACKET_TEXT, on_text, raw);
	ch3_register(raw->engine, RC_PACKET_HOST, on_host, raw);
	return 0;
}

int raw_connect(raw_t *raw, const raw_t *join, uint32_t gpu)
{
	const char *server = getenv("HEADRACE_SERVER");
	hr_card_t card;
	rc_door_connect_t wanted = { .purpose = join ? RC_DOOR_JOIN : RC_DOOR_NEW, .card = &card };
	rc_door_welcome_t welcome;
	hr_connect_attr_t attr = HR_CONNECT_ATTR_INIT;
	memset(raw, 0, sizeof *raw);
	int error = server ? rc_server_parse_place(server, &wanted.server) : -EINVAL;
	if (error || (error = open_engine(raw, &card)))
		return error;
	wanted.server.gpu = gpu;
	if (join)
		memcpy(wanted.token, join->token, sizeof wanted.token);
	error = rc_door_connect(&wanted, &welcome);
	if (!error) {
		memcpy(raw->token, join ? join->token : welcome.token, sizeof raw->token);
		attr.fd = welcome.fd;
		error = ch3_connect(raw->engine, &welcome.card, &attr, NULL, &raw->vc);
	}
	if (error)
		raw_close(raw);
	return error;
}

void raw_close(raw_t *raw)
{
	ch3_close(raw->engine);
	raw->engine = NULL;
	raw->vc = NULL;
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void raw_poll(raw_t *raw, int ms)
{
	int error = ch3_progress_wait(raw->engine, ms);
	if (error < 0 && !raw->failed)
		raw->failed = error;
}

int raw_packet(raw_t *raw, unsigned type, const void *header, size_t header_len, const void *bytes, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	if (raw->failed)
		return raw->failed;
	int error = ch3_send(raw->vc, type, header, header_len, &iov, len ? 1 : 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	if (error && !raw->failed)
		raw->failed = error;
	if (!raw->deaf)
		raw_poll(raw, 0);
	return raw->failed;
}

int raw_send_head(raw_t *raw, const struct rc_wire_call *head, const void *fixed, size_t fixed_len, const void *more,
		  size_t more_len)
{
	uint8_t header[CH3_HEADER_MAX];
	if (sizeof *head + fixed_len > sizeof header)
		return -EMSGSIZE;
	memcpy(header, head, sizeof *head);
	if (fixed_len)
		memcpy(header + sizeof *head, fixed, fixed_len);
	return raw_packet(raw, RC_PACKET_CALL, header, sizeof *head + fixed_len, more, more_len);
}

int raw_send(raw_t *raw, uint64_t number, enum rc_call function, uint32_t context, const void *fixed, size_t fixed_len,
	     const void *more, size_t more_len)
{
	struct rc_wire_call head = { .number = number, .function = (uint16_t)function, .context = context,
				     .flags = rc_call_waits[function] ? RC_CALL_WAIT : 0 };
	return raw_send_head(raw, &head, fixed, fixed_len, more, more_len);
}

bool raw_await(raw_t *raw, unsigned replies)
{
	uint64_t until = now_ms() + 30000;
	while (raw->replies < replies && !raw->failed && now_ms() < until)
		raw_poll(raw, 100);
	return raw->replies >= replies;
}

bool raw_await_end(raw_t *raw, unsigned ms)
{
	uint64_t until = now_ms() + ms;
	while (!raw->failed && now_ms() < until)
		raw_poll(raw, 100);
	return raw->failed != 0;
}

int raw_call(raw_t *raw, uint64_t number, enum rc_call function, uint32_t context, const void *fixed, size_t fixed_len,
	     const void *more, size_t more_len)
{
	unsigned replies = raw->replies;
	if (raw_send(raw, number, function, context, fixed, fixed_len, more, more_len) || !raw_await(raw, replies + 1))
		return -1;
	return raw->reply.result;
}

int raw_send_hello(raw_t *raw, uint64_t number)
{
	struct rc_wire_greeting greeting = { RAW_PRIMARY };
	return raw_send(raw, number, RC_CALL_hello, 0, &greeting, sizeof greeting, NULL, 0);
}

int raw_call_hello(raw_t *raw, uint64_t number)
{
	struct rc_wire_greeting greeting = { RAW_PRIMARY };
	return raw_call(raw, number, RC_CALL_hello, 0, &greeting, sizeof greeting, NULL, 0);
}

uint32_t raw_hello(raw_t *raw, uint64_t number, uint32_t device, uint32_t *devices)
{
	struct rc_wire_hello hello;
	if (raw_call_hello(raw, number) || raw->results_len < sizeof hello)
		return 0;
	memcpy(&hello, raw->results, sizeof hello);
	if (devices)
		*devices = hello.devices;
	return device < hello.devices ? rc_handle_index(RAW_PRIMARY) + device : 0;
}

int raw_load(raw_t *raw, uint64_t number, uint32_t context, const void *image, size_t size, uint64_t *module, uint64_t *kernel)
{
	static uint32_t index = 2000;
	struct rc_wire_load load = { .handle = rc_handle_make(RC_KIND_MODULE, ++index, 1), .image = size, .log_error = 1024 };
	struct rc_wire_module found;
	if (raw_call(raw, number, RC_CALL_module_load, context, &load, sizeof load, image, size) ||
	    raw->results_len < sizeof found)
		return -1;
	memcpy(&found, raw->results, sizeof found);
	if (module)
		*module = load.handle;
	if (kernel && found.kernels)
		*kernel = rc_handle_kernel(load.handle, 0);
	return found.result;
}
