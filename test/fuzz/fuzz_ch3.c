/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CH3 engine gets any bytes from its peer, over the channel in memory, while it sends, announces, receives into
 * buffers of any size, defers and accepts. What must hold: every request and every receive completes exactly once, the
 * connection fails at most once, and nothing accesses memory outside of a buffer.
 *
 * Input: operations, each a byte and its arguments. The peer's bytes are raw, or a packet whose sequence number is
 * corrected, as hardly any input would have the right one for long.
 */
#include "ch3/internal.h"
#include "test/ch3/memory_channel.h"
#include "test/fuzz/input.h"

#include <errno.h>
#include <stdlib.h>

#define MANY 64
#define PAYLOAD 3000

struct receive {
	uint8_t *buffer;
	ch3_rndv_t *rndv; /* deferred */
	int done;
	bool wants_done;
};

static struct {
	ch3_t *engine, *peer;
	ch3_vc_t *vc, *peer_vc;
	struct receive receives[MANY];
	int n_receives;
	ch3_request_t *requests[MANY];
	int n_requests;
	int failures;
	uint8_t mode; /* what the handler does with the next message */
	bool in_turn; /* whether a message has to wait for the payloads before it */
	bool declines; /* whether the function for short messages takes none */
} it;

static char payload[PAYLOAD];

static void on_done(void *context, int error, size_t bytes)
{
	struct receive *receive = context;
	(void)error;
	if (receive->done++ || bytes > PAYLOAD)
		abort();
}

static int on_message(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	volatile uint8_t read = 0;
	if (incoming->header_len > CH3_HEADER_MAX)
		abort();
	for (size_t i = 0; i < incoming->header_len; i++)
		read = (uint8_t)(read + ((const uint8_t *)incoming->header)[i]);
	if (it.n_receives == MANY || it.mode % 16 == 15)
		return -EBADMSG;
	struct receive *receive = &it.receives[it.n_receives++];
	*receive = (struct receive){ .wants_done = true };
	size_t room = (size_t)it.mode * 11;
	receive->buffer = malloc(room + 1);
	if (it.mode & 1 && incoming->rndv) {
		receive->rndv = incoming->rndv;
		sink->defer = true;
		return 0;
	}
	sink->n = it.mode % 9;
	for (int i = 0; i < sink->n; i++) {
		size_t from = room * (size_t)i / (size_t)sink->n, to = room * (size_t)(i + 1) / (size_t)sink->n;
		sink->iov[i] = (struct iovec){ receive->buffer + from, to - from };
	}
	sink->done = on_done;
	sink->context = receive;
	return 0;
}

static bool may_go_ahead(void *context, const ch3_incoming_t *incoming)
{
	(void)context, (void)incoming;
	return !it.in_turn;
}

static int on_short(void *context, ch3_vc_t *vc, const void *header, size_t header_len, const void *bytes, size_t len)
{
	volatile uint8_t read = 0;
	(void)context;
	if (vc != it.vc || header_len > CH3_HEADER_MAX)
		abort();
	for (size_t i = 0; i < header_len; i++)
		read = (uint8_t)(read + ((const uint8_t *)header)[i]);
	for (size_t i = 0; i < len; i++)
		read = (uint8_t)(read + ((const uint8_t *)bytes)[i]);
	return it.mode % 16 == 15 ? -EBADMSG : !it.declines;
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	(void)context;
	if (vc != it.vc || !error || it.failures++)
		abort();
}

static void accept_one(uint8_t choice)
{
	for (int i = 0; i < it.n_receives; i++) {
		struct receive *receive = &it.receives[(choice + i) % it.n_receives];
		if (!receive->rndv)
			continue;
		size_t room = (size_t)choice * 7 + 1;
		receive->buffer = realloc(receive->buffer, room);
		struct iovec iov[2] = { { receive->buffer, room / 2 }, { receive->buffer + room / 2, room - room / 2 } };
		if (ch3_rndv_accept(receive->rndv, iov, 2, on_done, receive))
			receive->wants_done = false;
		receive->rndv = NULL;
		return;
	}
}

static void send_one(struct fuzz_input *input)
{
	static const unsigned flags[] = { 0, CH3_SEND_EAGER, CH3_SEND_SYNC, CH3_SEND_COPY };
	struct iovec iov = { payload, fuzz_u16(input) % PAYLOAD };
	ch3_request_t *request = NULL;
	unsigned choice = fuzz_u8(input);
	if (it.n_requests == MANY)
		return;
	if (!ch3_send(it.vc, CH3_TYPE_FIRST, "head", choice >> 2 & 4, &iov, 1, flags[choice & 3], &request) && request)
		it.requests[it.n_requests++] = request;
}

/* An identifier that the engine has sent to the peer, so that the peer may use it in an answer. */
static uint32_t own_id(const struct ch3_ids *ids, uint8_t choice)
{
	if (!ids->n)
		return choice;
	uint32_t index = choice % ids->n;
	return ids->slot[index].generation << 20 | (index + 1);
}

static void inject_packet(struct fuzz_input *input)
{
	struct ch3_packet packet;
	struct ch3_packet_more more;
	fuzz_take(input, &packet, sizeof packet);
	packet.sequence = it.vc->receive.sequence;
	uint8_t choice = fuzz_u8(input);
	if (choice & 1)
		packet.flags |= CH3_PACKET_MORE;
	if (choice & 2)
		packet.payload_len %= 512;
	memory_conn_inject(ch3_vc_conn(it.vc), &packet, sizeof packet);
	if (!(packet.flags & CH3_PACKET_MORE))
		return;
	more = (struct ch3_packet_more){ fuzz_u16(input), fuzz_u8(input), fuzz_u8(input) };
	if (choice & 4)
		more.sender_id = own_id(&it.vc->announced, choice >> 4);
	if (choice & 8)
		more.receiver_id = own_id(&it.vc->accepted, choice >> 4);
	memory_conn_inject(ch3_vc_conn(it.vc), &more, sizeof more);
}

/* A short message in a record of its own, behind so many others. */
static void inject_short(struct fuzz_input *input, unsigned others)
{
	struct ch3_packet packet = { .type = CH3_TYPE_FIRST + 1, .sequence = (uint8_t)(it.vc->receive.sequence + others) };
	uint8_t bytes[sizeof packet + 16 + 64], choice = fuzz_u8(input);
	packet.header_len = choice % 17;
	packet.payload_len = (uint32_t)fuzz_take(input, bytes + sizeof packet + packet.header_len, choice >> 2);
	fuzz_take(input, bytes + sizeof packet, packet.header_len);
	memcpy(bytes, &packet, sizeof packet);
	memory_conn_inject_record(ch3_vc_conn(it.vc), bytes, sizeof packet + packet.header_len + packet.payload_len);
}

static void inject_raw(struct fuzz_input *input)
{
	uint8_t bytes[256];
	size_t n = fuzz_take(input, bytes, fuzz_u8(input));
	memory_conn_inject(ch3_vc_conn(it.vc), bytes, n);
}

/* Gets of a few bytes, and whether the engine sees what is behind them and may use it. */
static void change_faults(uint8_t choice)
{
	memory_faults.get_max = choice % 64;
	memory_faults.ahead = choice >> 6 & 1;
	it.in_turn = choice >> 7;
}

/* The upper half of an operation's byte says how the engine makes progress. */
static void progress(uint8_t how)
{
	it.declines = how & 1;
	if (!(how & 2) || !ch3_progress_short(it.engine, 1 + (how >> 2) % 4))
		ch3_progress_poll(it.engine);
}

static void step(struct fuzz_input *input)
{
	uint8_t operation = fuzz_u8(input);
	switch (operation % 8) {
	case 0: inject_raw(input); break;
	case 1: inject_packet(input); break;
	case 2: inject_short(input, (operation >> 3) % 8); break;
	case 3: send_one(input); break;
	case 4: accept_one(fuzz_u8(input)); break;
	case 5: it.mode = fuzz_u8(input); break;
	case 6: change_faults(fuzz_u8(input)); break;
	default: progress(operation >> 4); break;
	}
}

static void open_both(void)
{
	hr_card_t card, peer_card;
	memory_faults = (struct memory_faults){ 0 };
	memset(&it, 0, sizeof it);
	if (ch3_open(NULL, &it.engine, &card) || ch3_open(NULL, &it.peer, &peer_card) ||
	    ch3_register(it.engine, CH3_TYPE_FIRST, on_message, NULL) ||
	    ch3_register(it.engine, CH3_TYPE_FIRST + 1, on_message, NULL) ||
	    ch3_register_ahead(it.engine, CH3_TYPE_FIRST, may_go_ahead) ||
	    ch3_register_short(it.engine, CH3_TYPE_FIRST + 1, on_short))
		abort();
	ch3_on_failure(it.engine, on_failure, NULL);
	if (ch3_connect(it.engine, &peer_card, NULL, NULL, &it.vc) ||
	    ch3_connect(it.peer, &card, NULL, NULL, &it.peer_vc))
		abort();
}

/* Ends the connection; afterwards nothing may be open. */
static void end(void)
{
	memory_conn_break(ch3_vc_conn(it.vc), -ECONNRESET);
	memory_faults.get_max = 0;
	for (int i = 0; i < 4 * MANY && !it.failures; i++)
		ch3_progress_poll(it.engine);
	if (it.failures != 1 || ch3_vc_state(it.vc) >= 0)
		abort();
	for (int i = 0; i < it.n_requests; i++) {
		if (!ch3_request_test(it.requests[i]))
			abort();
		ch3_request_free(it.requests[i]);
	}
	for (int i = 0; i < it.n_receives; i++)
		if (!it.receives[i].rndv && it.receives[i].wants_done && it.receives[i].done != 1)
			abort();
	ch3_close(it.engine);
	ch3_close(it.peer);
	for (int i = 0; i < it.n_receives; i++)
		free(it.receives[i].buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	open_both();
	while (input.left)
		step(&input);
	end();
	return 0;
}
