/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that says what no client says: calls with random functions, flags and arguments, chunks of copies that were never begun.
 * The worker may refuse or close the connection; it may not fall over. rogue SEED: prints how many calls were taken.
 */
#include "cuda_remote/api/calls.h"
#include "cuda_remote/door/door.h"
#include "cuda_remote/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	(void)context;
	(void)vc;
	failed = error;
}

static int ignore(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)incoming;
	(void)sink;
	return 0;
}

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

/* Mostly small numbers and likely values, so that some get past the first check. */
static void scribble(uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t words[] = { 0, draw(8), 1ull << draw(64), draw(UINT64_MAX), draw(4096),
				     rc_handle_make((enum rc_kind)draw(RC_KINDS), (uint32_t)draw(4), 1) };
		memcpy(bytes + i, &words[draw(6)], 8);
	}
}

static ch3_vc_t *connect_to(const char *server, ch3_t **engine)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	hr_card_t card;
	rc_door_connect_t visit = { .purpose = RC_DOOR_NEW, .card = &card };
	rc_door_welcome_t welcome;
	hr_connect_attr_t connect = HR_CONNECT_ATTR_INIT;
	ch3_vc_t *vc;
	if (rc_server_parse_place(server, &visit.server) || ch3_open(&attr, engine, &card))
		return NULL;
	visit.server.gpu = RC_SERVER_ALL_GPUS;
	ch3_on_failure(*engine, on_failure, NULL);
	for (unsigned type = RC_PACKET_CALL; type <= RC_PACKET_FETCH; type++)
		ch3_register(*engine, type, ignore, NULL);
	if (rc_door_connect(&visit, &welcome))
		return NULL;
	connect.fd = welcome.fd;
	return ch3_connect(*engine, &welcome.card, &connect, NULL, &vc) ? NULL : vc;
}

/* The primary context's handle. */
#define PRIMARY rc_handle_make(RC_KIND_CONTEXT, 1000, 1)

static int send_hello(ch3_vc_t *vc)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_greeting call;
	} message = { { .number = 1, .function = RC_CALL_hello, .flags = RC_CALL_WAIT }, { PRIMARY } };
	return ch3_send(vc, RC_PACKET_CALL, &message, sizeof message, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
}

static int send_one(ch3_vc_t *vc, uint64_t number)
{
	struct {
		struct rc_wire_call head;
		uint8_t arguments[RC_CALL_INLINE];
	} message;
	uint8_t payload[512];
	struct iovec iov = { payload, 8 * draw(64) };
	size_t len = sizeof message.head + 8 * draw(RC_CALL_INLINE / 8 + 1);
	scribble(message.arguments, sizeof message.arguments);
	scribble(payload, sizeof payload);
	message.head = (struct rc_wire_call){ .number = number, .function = (uint16_t)(1 + draw(RC_CALLS - 1 + (draw(100) == 0))),
					      .context = rc_handle_index(PRIMARY) };
	bool waits = message.head.function < RC_CALLS && rc_call_waits[message.head.function];
	message.head.flags = (uint16_t)((waits ? RC_CALL_WAIT : 0) | (draw(3) ? 0 : RC_CALL_PER_THREAD));
	if (draw(100) == 0)
		message.head.flags = (uint16_t)draw(8);
	if (draw(150) == 0)
		return ch3_send(vc, RC_PACKET_CHUNK, payload, draw(3) ? 16 : draw(100), &iov, 1, CH3_SEND_EAGER | CH3_SEND_COPY,
				NULL);
	if (draw(300) == 0)
		return ch3_send(vc, RC_PACKET_STAGED + draw(3), payload, draw(3) ? 8 * (2 + draw(2)) : draw(100), &iov, draw(4) == 0,
				CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	return ch3_send(vc, RC_PACKET_CALL, &message, len, &iov, draw(3) == 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
}

int main(int argc, char **argv)
{
	const char *server = getenv("HEADRACE_SERVER");
	unsigned calls = 0;
	if (argc != 2 || !server)
		return 2;
	for (unsigned round = 0; round < 60; round++) {
		ch3_t *engine;
		state = strtoull(argv[1], NULL, 10) * 1000003 + round + 1;
		failed = 0;
		ch3_vc_t *vc = connect_to(server, &engine);
		if (!vc) {
			fprintf(stderr, "round %u: no connection\n", round);
			return 1;
		}
		uint64_t number = 2;
		if (send_hello(vc))
			failed = 1;
		while (!failed && number <= 200 && !send_one(vc, number)) {
			ch3_progress_wait(engine, 1);
			number++;
		}
		calls += (unsigned)number - 1;
		ch3_close(engine);
	}
	printf("%u calls\n", calls);
	return 0;
}
