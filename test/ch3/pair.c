/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connected engines in one process, for tests of ch3. */
#include "test/ch3/pair.h"

#include "test/ch3/memory_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* After this many polls without a callback the engines are idle. The number is large, because with slow pipes one byte
 * may take one poll. */
#define SETTLED 200000

struct pair_end pair_a, pair_b;
char *source, *target;

static void on_done(void *context, int error, size_t bytes)
{
	struct pair_message *message = context;
	struct pair_end *end = message >= pair_a.message && message < pair_a.message + PAIR_LOG ? &pair_a : &pair_b;
	message->done++;
	message->error = error;
	message->bytes = bytes;
	message->connections = memory_connections;
	end->done_order[end->dones++] = message->header;
}

static int pieces(const struct pair_end *end, const struct pair_message *message, struct iovec *iov)
{
	int n = end->split ? 8 : 1;
	char *buffer = end->buffer + (size_t)(message - end->message) * end->stride;
	for (int i = 0; i < n; i++) {
		size_t from = end->room * (size_t)i / (size_t)n, to = end->room * (size_t)(i + 1) / (size_t)n;
		iov[i] = (struct iovec){ buffer + from, to - from };
	}
	return n;
}

static void on_part(void *context, const void *from, size_t len)
{
	struct pair_message *message = context;
	ck_assert_uint_gt(len, 0);
	ck_assert_uint_le(message->unpacked + len, pair_b.room);
	memcpy(pair_b.buffer + (size_t)(message - pair_b.message) * pair_b.stride + message->unpacked, from, len);
	message->unpacked += len;
}

static int handle(struct pair_end *end, unsigned type, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	ck_assert_int_lt(end->messages, PAIR_LOG);
	struct pair_message *message = &end->message[end->messages++];
	*message = (struct pair_message){ .type = type, .header_len = incoming->header_len,
					  .payload_len = incoming->payload_len, .waited = incoming->rndv };
	if (incoming->header_len >= sizeof message->header)
		memcpy(&message->header, incoming->header, sizeof message->header);
	ck_assert_ptr_eq(incoming->vc, end->vc);
	if (end->defer && incoming->rndv) {
		message->rndv = incoming->rndv;
		sink->defer = true;
	} else if (end->unpack) {
		sink->unpack = on_part;
		sink->room = end->room;
		sink->done = on_done;
		sink->context = message;
	} else {
		sink->n = end->room ? pieces(end, message, sink->iov) : 0;
		sink->done = on_done;
		sink->context = message;
	}
	return end->refuse;
}

static int on_type(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	return handle(context, PAIR_TYPE, incoming, sink);
}

static int on_type_other(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	return handle(context, PAIR_TYPE_OTHER, incoming, sink);
}

static int on_type_short(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	return handle(context, PAIR_TYPE_SHORT, incoming, sink);
}

static int on_short(void *context, ch3_vc_t *vc, const void *header, size_t header_len, const void *payload, size_t payload_len)
{
	struct pair_end *end = context;
	ck_assert_ptr_eq(vc, end->vc);
	if (end->declines != 1)
		return end->declines;
	ck_assert_int_lt(end->messages, PAIR_LOG);
	struct pair_message *message = &end->message[end->messages++];
	*message = (struct pair_message){ .type = PAIR_TYPE_SHORT, .header_len = header_len, .payload_len = payload_len,
					  .in_place = true, .done = 1, .bytes = payload_len };
	if (header_len >= sizeof message->header)
		memcpy(&message->header, header, sizeof message->header);
	ck_assert_uint_le(payload_len, end->room);
	memcpy(end->buffer, payload, payload_len);
	return 1;
}

static bool may_ahead(void *context, const ch3_incoming_t *incoming)
{
	const struct pair_end *end = context;
	ck_assert_ptr_eq(incoming->vc, end->vc);
	return !end->in_turn;
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	struct pair_end *end = context;
	ck_assert_ptr_eq(vc, end->vc);
	end->failures++;
	end->failure = error;
}

static void end_open(struct pair_end *end, hr_card_t *card)
{
	memset(end, 0, sizeof *end);
	ck_assert_int_eq(ch3_open(NULL, &end->engine, card), 0);
	ck_assert_int_eq(ch3_register(end->engine, PAIR_TYPE, on_type, end), 0);
	ck_assert_int_eq(ch3_register(end->engine, PAIR_TYPE_OTHER, on_type_other, end), 0);
	ck_assert_int_eq(ch3_register_short(end->engine, PAIR_TYPE_SHORT, on_short), -EINVAL); /* no handler yet */
	ck_assert_int_eq(ch3_register(end->engine, PAIR_TYPE_SHORT, on_type_short, end), 0);
	ck_assert_int_eq(ch3_register_short(end->engine, PAIR_TYPE_SHORT, on_short), 0);
	ck_assert_int_eq(ch3_register_ahead(end->engine, PAIR_TYPE_NONE, NULL), -EINVAL);
	ck_assert_int_eq(ch3_register_ahead(end->engine, PAIR_TYPE, may_ahead), 0);
	end->declines = 1;
	ch3_on_failure(end->engine, on_failure, end);
}

void pair_open(void)
{
	hr_card_t card_a, card_b;
	end_open(&pair_a, &card_a);
	end_open(&pair_b, &card_b);
	ck_assert_int_eq(ch3_connect(pair_a.engine, &card_b, NULL, &pair_a, &pair_a.vc), 0);
	ck_assert_int_eq(ch3_connect(pair_b.engine, &card_a, NULL, &pair_b, &pair_b.vc), 0);
}

void pair_close(void)
{
	ch3_close(pair_a.engine);
	ch3_close(pair_b.engine);
}

void pair_set_up(size_t bytes)
{
	memory_faults = (struct memory_faults){ 0 };
	source = malloc(bytes);
	target = calloc(1, bytes);
	pair_fill(source, bytes, 1);
	pair_open();
	pair_b.buffer = target;
	pair_b.room = bytes;
}

static void tear_down(void)
{
	pair_close();
	free(source);
	free(target);
}

void pair_settle(void)
{
	for (int idle = 0; idle < SETTLED; idle++)
		if (ch3_progress_poll(pair_a.engine) + ch3_progress_poll(pair_b.engine) > 0)
			idle = 0;
}

ch3_request_t *pair_send(uint32_t header, const void *payload, size_t len, unsigned flags)
{
	ch3_request_t *request = NULL;
	struct iovec iov = { (void *)payload, len };
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, &header, sizeof header, &iov, len ? 1 : 0, flags, &request), 0);
	return request;
}

/* One payload at a time. */
static const char *to_pack;

static void pack(void *context, void *to, size_t len)
{
	ck_assert_ptr_eq(context, &to_pack);
	ck_assert_uint_gt(len, 0);
	memcpy(to, to_pack, len);
	to_pack += len;
}

ch3_request_t *pair_send_pack(uint32_t header, const void *payload, size_t len, unsigned flags)
{
	ch3_request_t *request;
	to_pack = payload;
	ck_assert_int_eq(ch3_send_pack(pair_a.vc, PAIR_TYPE, &header, sizeof header, len, pack, &to_pack, flags, &request), 0);
	return request;
}

void pair_accept(int message)
{
	struct pair_message *accepted = &pair_b.message[message];
	struct iovec iov[8];
	if (pair_b.unpack) {
		ck_assert_int_eq(ch3_rndv_accept_unpack(accepted->rndv, pair_b.room, on_part, on_done, accepted), 0);
		return;
	}
	int n = pieces(&pair_b, accepted, iov);
	ck_assert_int_eq(ch3_rndv_accept(accepted->rndv, iov, n, on_done, accepted), 0);
}

void pair_fill(void *bytes, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)bytes)[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8) * 13);
}

bool pair_filled(const void *bytes, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (((const uint8_t *)bytes)[i] != (uint8_t)(seed * 31 + i * 7 + (i >> 8) * 13))
			return false;
	return true;
}

void pair_expect_cut(int i, uint32_t header, size_t len, size_t stored)
{
	const struct pair_message *message = &pair_b.message[i];
	ck_assert_uint_eq(message->header, header);
	ck_assert_uint_eq(message->payload_len, len);
	ck_assert_int_eq(message->done, 1);
	ck_assert_int_eq(message->error, 0);
	ck_assert_uint_eq(message->bytes, stored);
}

void pair_expect(int i, uint32_t header, size_t len, bool waited)
{
	pair_expect_cut(i, header, len, len);
	ck_assert_int_eq(pair_b.message[i].waited, waited);
}

void pair_expect_end(ch3_request_t *request, int error)
{
	ck_assert_int_eq(ch3_request_test(request), 1);
	ck_assert_int_eq(ch3_request_error(request), error);
	ch3_request_free(request);
}

/* ---- running ---- */

TCase *pair_tests(SFun setup)
{
	TCase *tests = tcase_create("pair");
	tcase_add_checked_fixture(tests, setup, tear_down);
	tcase_set_timeout(tests, 300);
	return tests;
}

int pair_run(const char *name, TCase *tests)
{
	Suite *suite = suite_create(name);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
