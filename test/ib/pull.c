/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of zero-copy on plain memory: a copy of bytes stands for the adapter's RDMA read. */
#include "config.h"

#include "headrace/channel.h"
#include "ib/ib_pull.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUES = 3, LEN = 400000, BOUNCE = 100000 };

static uint8_t source[LEN], target[LEN], bounce[BOUNCE], window[5000];

/* A receiver whose reads wait, per queue pair, to be carried out. */
struct reader {
	struct ib_pulls pulls;
	struct ib_read_request waiting[QUEUES][IB_READS_MAX];
	uint32_t posted[QUEUES], done[QUEUES];
};

static struct reader *reader_make(void)
{
	struct reader *reader = calloc(1, sizeof *reader);
	ck_assert_ptr_nonnull(reader);
	ib_pulls_bounce(&reader->pulls, bounce, sizeof bounce, 77);
	for (size_t i = 0; i < LEN; i++)
		source[i] = (uint8_t)(i * 2654435761u >> 17);
	memset(target, 0, sizeof target);
	memset(bounce, 0, sizeof bounce);
	return reader;
}

static int announce(struct reader *reader, size_t at, size_t len)
{
	struct ib_announcement announcement = { (uintptr_t)(source + at), 5, 0, len };
	return ib_pulls_announce(&reader->pulls, &announcement);
}

/* Posts all there is to post, on queue pairs in turn. */
static void post(struct reader *reader, uint64_t most)
{
	struct ib_read_request request;
	for (unsigned i = 0; ib_pulls_next_read(&reader->pulls, most, &request); i = (i + 1) % QUEUES) {
		ck_assert_uint_le(request.len, most);
		ck_assert_uint_eq(request.rkey, 5);
		reader->waiting[i][reader->posted[i]++ % IB_READS_MAX] = request;
		ib_pulls_posted(&reader->pulls, request.len, i, reader->posted[i]);
	}
}

/* Carries out the oldest read of a queue pair; false if there is none. */
static bool carry(struct reader *reader, unsigned i)
{
	if (reader->done[i] == reader->posted[i])
		return false;
	struct ib_read_request *request = &reader->waiting[i][reader->done[i]++ % IB_READS_MAX];
	memcpy(request->to, (const void *)(uintptr_t)request->from, request->len);
	ib_pulls_complete(&reader->pulls, reader->done);
	return true;
}

static void carry_all(struct reader *reader)
{
	for (unsigned i = 0; i < QUEUES; i++)
		while (carry(reader, i))
			continue;
}

static size_t deliver(struct reader *reader, void *to, size_t len)
{
	struct iovec iov = { to, len };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	return ib_pulls_deliver(&reader->pulls, &place, len);
}

START_TEST(a_direct_pull_is_delivered_once_all_of_it_is_here)
{
	struct reader *reader = reader_make();
	int memory;
	ck_assert_int_eq(announce(reader, 0, LEN), 0);
	ck_assert_uint_eq(ib_pulls_plannable(&reader->pulls), LEN);
	ib_pulls_plan_direct(&reader->pulls, target, LEN, 3, &memory);
	ck_assert_uint_eq(ib_pulls_plannable(&reader->pulls), 0);
	post(reader, 10000);
	/* Queue pair 2 first, then 1: nothing is without a gap until 0 begins, and all only with the last. */
	while (carry(reader, 2) || carry(reader, 1))
		ck_assert(!ib_pulls_ready(&reader->pulls));
	ck_assert_uint_eq(ib_pulls_acknowledged(&reader->pulls), 0);
	while (reader->done[0] + 1 < reader->posted[0]) {
		ck_assert(carry(reader, 0));
		ck_assert(!ib_pulls_ready(&reader->pulls));
		ck_assert_ptr_null(ib_pulls_release(&reader->pulls));
		ck_assert_uint_eq(deliver(reader, target, LEN), 0);
	}
	ck_assert(ib_pulls_under_way(&reader->pulls));
	ck_assert(carry(reader, 0));
	ck_assert(!ib_pulls_under_way(&reader->pulls));
	ck_assert_uint_eq(ib_pulls_acknowledged(&reader->pulls), 1);
	ck_assert_ptr_eq(ib_pulls_release(&reader->pulls), &memory);
	ck_assert_ptr_null(ib_pulls_release(&reader->pulls));
	ck_assert(ib_pulls_ready(&reader->pulls));
	ck_assert_uint_eq(reader->pulls.backlog, LEN);
	ck_assert_uint_eq(deliver(reader, target, LEN), LEN);
	ck_assert_uint_eq(reader->pulls.backlog, 0);
	ck_assert_mem_eq(source, target, LEN);
	free(reader);
}
END_TEST

static bool goes_on(const struct reader *reader, const struct iovec *iov, int n)
{
	return ib_pulls_goes_on(&reader->pulls, hr_iov_begin(iov, n), hr_iov_total(iov, n));
}

/* The memory of direct pulls must be offered again, all of it and first, in whatever pieces. */
START_TEST(who_offers_other_memory_does_not_go_on)
{
	struct reader *reader = reader_make();
	static uint8_t other[60000];
	ck_assert(goes_on(reader, &(struct iovec){ other, 1 }, 1));
	ck_assert_int_eq(announce(reader, 0, LEN), 0);
	ib_pulls_plan_direct(&reader->pulls, target, 30000, 3, NULL);
	ib_pulls_plan_direct(&reader->pulls, target + 30000, 20000, 3, NULL);
	ck_assert_uint_eq(ib_pulls_plan_bounce(&reader->pulls, 500), 500);
	ck_assert(goes_on(reader, &(struct iovec){ target, 50000 }, 1));
	struct iovec cut[] = { { target, 1 }, { other, 0 }, { target + 1, 49999 }, { other, 9 } };
	ck_assert(goes_on(reader, cut, 4));
	ck_assert(!goes_on(reader, &(struct iovec){ target, 49999 }, 1));
	ck_assert(!goes_on(reader, &(struct iovec){ target + 1, 50000 }, 1));
	ck_assert(!goes_on(reader, &(struct iovec){ other, 60000 }, 1));
	ck_assert(!goes_on(reader, (struct iovec[]){ { target, 40000 }, { other, 10000 } }, 2));
	ck_assert(!goes_on(reader, (struct iovec[]){ { other, 8 }, { target, 50000 } }, 2));
	/* Also when all is here: the other memory may be gone by now. */
	post(reader, LEN);
	carry_all(reader);
	ck_assert(!goes_on(reader, &(struct iovec){ other, 60000 }, 1));
	ck_assert_uint_eq(deliver(reader, target, 50000), 50000);
	ck_assert(goes_on(reader, &(struct iovec){ other, 1 }, 1));
	free(reader);
}
END_TEST

/* Where the next pull may go: behind everything planned, and directly only behind direct ones. */
START_TEST(the_place_behind_what_is_planned)
{
	struct reader *reader = reader_make();
	ck_assert_int_eq(announce(reader, 0, LEN), 0);
	ib_pulls_plan_direct(&reader->pulls, target, 50000, 3, NULL);
	struct iovec iov[] = { { target, 60000 }, { target + 60000, 40000 } };
	struct hr_iov_place place = hr_iov_begin(iov, 2);
	size_t left = 100000;
	ck_assert(ib_pulls_skip(&reader->pulls, &place, &left));
	ck_assert_uint_eq(left, 50000);
	ck_assert_uint_eq(place.offset, 50000);
	/* Twenty thousand more by way of the bounce buffer: may be delivered in part, and the rest asked for
	 * elsewhere. */
	ck_assert_uint_eq(ib_pulls_plan_bounce(&reader->pulls, 20000), 20000);
	place = hr_iov_begin(iov, 2);
	left = 100000;
	ck_assert(!ib_pulls_skip(&reader->pulls, &place, &left));
	ck_assert_uint_eq(left, 30000);
	/* A vector that is shorter than what is planned. */
	place = hr_iov_begin(iov, 1);
	left = 20000;
	ib_pulls_skip(&reader->pulls, &place, &left);
	ck_assert_uint_eq(left, 0);
	free(reader);
}
END_TEST

/* A header that came ahead of its turn, then the next payload: a caller that has promised to offer all memory again gets
 * it read directly, and must offer it behind the header's place. */
START_TEST(a_direct_pull_follows_bytes_that_came_ahead)
{
	struct reader *reader = reader_make();
	struct ib_pulls *pulls = &reader->pulls;
	uint8_t header[40], seen[100], *at;
	struct iovec iov[] = { { target, 50000 }, { header, 40 }, { target + 50040, 50000 } };
	struct hr_iov_place place = hr_iov_begin(iov, 3);
	size_t left = 100040;
	pulls->promised = _i;
	ck_assert_int_eq(announce(reader, 0, 50000), 0);
	ib_pulls_plan_direct(pulls, target, 50000, 3, NULL);
	ck_assert_uint_eq(ib_pulls_look(pulls, 50000, seen, 100), 0);
	ck_assert_uint_ge(ib_pulls_space(pulls, &at), 40);
	memcpy(at, source + 50000, 40);
	ib_pulls_absorbed(pulls, 40);
	ck_assert_int_eq(announce(reader, 50040, 50000), 0);
	ck_assert_uint_eq(ib_pulls_look(pulls, 0, seen, 100), 0);
	ck_assert_uint_eq(ib_pulls_look(pulls, 49999, seen, 100), 0);
	ck_assert_uint_eq(ib_pulls_look(pulls, 50000, seen, 100), 40);
	ck_assert_mem_eq(seen, source + 50000, 40);
	ck_assert_uint_eq(ib_pulls_look(pulls, 50030, seen, 100), 10);
	ck_assert_mem_eq(seen, source + 50030, 10);
	ck_assert_uint_eq(ib_pulls_look(pulls, 50040, seen, 100), 0);
	ck_assert_int_eq(ib_pulls_skip(pulls, &place, &left), _i);
	ck_assert_uint_eq(left, 50000);
	if (!_i) {
		free(reader);
		return;
	}
	ib_pulls_plan_direct(pulls, target + 50040, 50000, 3, NULL);
	ck_assert(goes_on(reader, iov, 3));
	ck_assert(goes_on(reader, (struct iovec[]){ iov[0], { seen, 30 }, { header, 10 }, iov[2] }, 4));
	ck_assert(!goes_on(reader, iov, 2));
	ck_assert(!goes_on(reader, (struct iovec[]){ iov[0], { header, 39 }, iov[2] }, 3));
	ck_assert(!goes_on(reader, (struct iovec[]){ iov[0], iov[1], { target, 50000 } }, 3));
	post(reader, 20000);
	carry_all(reader);
	place = hr_iov_begin(iov, 3);
	ck_assert_uint_eq(ib_pulls_deliver(pulls, &place, 50020), 50020);
	/* A part of the header is delivered. */
	ck_assert_uint_eq(ib_pulls_look(pulls, 0, seen, 100), 20);
	ck_assert_mem_eq(seen, source + 50020, 20);
	ck_assert(goes_on(reader, (struct iovec[]){ { header + 20, 20 }, iov[2] }, 2));
	ck_assert(!goes_on(reader, &iov[2], 1));
	ck_assert_uint_eq(ib_pulls_deliver(pulls, &place, 100040), 50020);
	memcpy(target + 50000, header, 40);
	ck_assert_mem_eq(source, target, 100040);
	ck_assert_uint_eq(ib_pulls_acknowledged(pulls), 2);
	free(reader);
}
END_TEST

START_TEST(the_bounce_buffer_wraps_and_is_never_overwritten)
{
	struct reader *reader = reader_make();
	size_t got = 0;
	uint32_t random = 1;
	if (_i)
		ib_pulls_window(&reader->pulls, window, sizeof window, 78);
	ck_assert_int_eq(announce(reader, 0, LEN / 2), 0);
	ck_assert_int_eq(announce(reader, LEN / 2, LEN / 2), 0);
	while (got < LEN) {
		random = random * 1664525 + 1013904223;
		while (ib_pulls_plan_bounce(&reader->pulls, 1 + (random >> 8) % 40000) > 0)
			random = random * 1664525 + 1013904223;
		post(reader, 7000);
		for (unsigned k = 0; k < 5; k++)
			carry(reader, (random >> k) % QUEUES);
		got += deliver(reader, target + got, 1 + (random >> 4) % 50000 < LEN - got ?
					       1 + (random >> 4) % 50000 : LEN - got);
		ck_assert_mem_eq(source, target, got);
	}
	ck_assert_uint_eq(ib_pulls_acknowledged(&reader->pulls), 2);
	ck_assert_uint_eq(reader->pulls.backlog, 0);
	free(reader);
}
END_TEST

/* Where the bounce buffer is not registered, nothing is read into it; and never more is under way than the window
 * has. */
START_TEST(reads_for_the_window_wait_for_room)
{
	struct reader *reader = reader_make();
	struct ib_read_request request;
	ib_pulls_window(&reader->pulls, window, sizeof window, 78);
	ck_assert_int_eq(announce(reader, 0, 30000), 0);
	ib_pulls_plan_direct(&reader->pulls, target, 20000, 3, NULL);
	ck_assert_uint_eq(ib_pulls_plan_bounce(&reader->pulls, 10000), 10000);
	/* What goes straight to the user needs no window. */
	ck_assert(ib_pulls_next_read(&reader->pulls, LEN, &request));
	ck_assert_ptr_eq(request.to, target);
	ck_assert_uint_eq(request.lkey, 3);
	post(reader, 20000);
	ck_assert_uint_eq(reader->pulls.read_end - reader->pulls.read_first, 2);
	ck_assert(!ib_pulls_next_read(&reader->pulls, LEN, &request));
	carry_all(reader);
	ck_assert(ib_pulls_next_read(&reader->pulls, LEN, &request));
	ck_assert_ptr_eq(request.to, window);
	ck_assert_uint_eq(request.lkey, 78);
	ck_assert_uint_eq(request.len, sizeof window);
	ck_assert_mem_eq(bounce, source + 20000, sizeof window);
	post(reader, 3000);
	carry_all(reader);
	ck_assert_uint_eq(deliver(reader, target, 30000), 30000);
	ck_assert_mem_eq(source, target, 30000);
	free(reader);
}
END_TEST

/* A get of many pieces may stop, and puts follow: what the peer announces then must find places. */
START_TEST(a_get_leaves_places_for_a_put_that_gets_nowhere)
{
	struct reader *reader = reader_make();
	size_t planned = 0;
	uint8_t *at;
	ck_assert_int_eq(announce(reader, 0, LEN), 0);
	while (ib_pulls_get_may_plan(&reader->pulls)) {
		ib_pulls_plan_direct(&reader->pulls, target + planned, 1000, 3, NULL);
		planned += 1000;
	}
	ck_assert_uint_gt(planned, 20000);
	ib_pulls_plan_direct(&reader->pulls, target + planned, LEN - planned, 3, NULL);
	post(reader, LEN);
	carry_all(reader);
	/* A bounce buffer full of announcements, with a byte from a chunk before each. */
	for (size_t i = 0; i < IB_OFFERS_MAX; i++) {
		ck_assert_uint_gt(ib_pulls_space(&reader->pulls, &at), 0);
		*at = source[i * 3001];
		ib_pulls_absorbed(&reader->pulls, 1);
		ck_assert_int_eq(announce(reader, i * 3001 + 1, 3000), 0);
		while (ib_pulls_plannable(&reader->pulls))
			ck_assert_uint_gt(ib_pulls_plan_bounce(&reader->pulls, 3000), 0);
	}
	ck_assert_uint_eq(deliver(reader, target, LEN), LEN);
	post(reader, LEN);
	carry_all(reader);
	while (ib_pulls_release(&reader->pulls))
		continue;
	ck_assert_uint_eq(deliver(reader, target, LEN), IB_OFFERS_MAX * 3001);
	ck_assert_mem_eq(source, target, IB_OFFERS_MAX * 3001);
	free(reader);
}
END_TEST

/* Bytes that came in chunks, before and between announcements, keep their place in the stream. */
START_TEST(absorbed_bytes_keep_their_place)
{
	struct reader *reader = reader_make();
	uint8_t *at;
	for (int round = 0; round < 200; round++) {
		size_t begin = (size_t)round * 101;
		ck_assert_uint_gt(ib_pulls_space(&reader->pulls, &at), 0);
		uint64_t first = ib_pulls_space(&reader->pulls, &at) < 100 ? 1 : 100;
		memcpy(at, source + begin, first);
		ib_pulls_absorbed(&reader->pulls, first);
		ck_assert_int_eq(announce(reader, begin + first, 20000), 0);
		for (uint64_t planned = 0, n; planned < 20000; planned += n) {
			n = ib_pulls_plan_bounce(&reader->pulls, 20000);
			ck_assert_uint_gt(n, 0);
		}
		ib_pulls_space(&reader->pulls, &at);
		*at = source[begin + first + 20000];
		ib_pulls_absorbed(&reader->pulls, 1);
		size_t got = deliver(reader, target, LEN);
		ck_assert_uint_eq(got, first);
		post(reader, 9000);
		carry_all(reader);
		while (ib_pulls_release(&reader->pulls))
			continue;
		got += deliver(reader, target + got, LEN);
		ck_assert_uint_eq(got, first + 20001);
		ck_assert_mem_eq(source + begin, target, got);
		ck_assert_uint_eq(reader->pulls.backlog, 0);
		ck_assert_uint_eq(ib_pulls_acknowledged(&reader->pulls), (uint32_t)round + 1);
	}
	free(reader);
}
END_TEST

/* However short and many, they leave places for what is announced behind them. */
START_TEST(absorbed_bytes_do_not_use_up_the_places)
{
	struct reader *reader = reader_make();
	enum { SHORT = 8, SHORTS = 10 * IB_PULLS_MAX, ALL = SHORT * SHORTS };
	uint8_t *at;
	for (size_t i = 0; i < ALL; i += SHORT) {
		ck_assert_uint_ge(ib_pulls_space(&reader->pulls, &at), SHORT);
		memcpy(at, source + i, SHORT);
		ib_pulls_absorbed(&reader->pulls, SHORT);
		if (i == 100 * SHORT) /* the place that goes on may have been delivered in part */
			ck_assert_uint_eq(deliver(reader, target, 20), 20);
	}
	ck_assert_int_eq(announce(reader, ALL, 20000), 0);
	ck_assert_uint_eq(ib_pulls_plan_bounce(&reader->pulls, UINT64_MAX), 20000);
	post(reader, 9000);
	carry_all(reader);
	ck_assert_uint_eq(deliver(reader, target + 20, LEN), ALL - 20 + 20000);
	ck_assert_mem_eq(source, target, ALL + 20000);
	ck_assert_uint_eq(reader->pulls.backlog, 0);
	free(reader);
}
END_TEST

/* More pulls than there are places: planning stops, and nothing is lost; also where numbers wrap. */
START_TEST(queues_fill_up_and_go_on)
{
	struct reader *reader = reader_make();
	struct ib_pulls *pulls = &reader->pulls;
	pulls->first = pulls->release = pulls->reading = pulls->post = pulls->end = UINT32_MAX - 20;
	pulls->ann_first = pulls->ann_plan = pulls->ann_end = UINT32_MAX - 3;
	pulls->read_first = pulls->read_end = UINT32_MAX - 50;
	for (unsigned i = 0; i < QUEUES; i++)
		reader->posted[i] = reader->done[i] = UINT32_MAX - 9;
	size_t planned = 0, got = 0;
	int memory, held = 0;
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(announce(reader, (size_t)i * (LEN / 8), LEN / 8), 0);
	while (got < LEN) {
		uint64_t plannable;
		while ((plannable = ib_pulls_plannable(pulls)) > 0) {
			size_t len = plannable < 1500 ? (size_t)plannable : 1500;
			ib_pulls_plan_direct(pulls, target + planned, len, 3, &memory);
			planned += len;
			held++;
		}
		ck_assert_uint_le(pulls->end - pulls->first, IB_PULLS_MAX);
		post(reader, 200);
		ck_assert_uint_le(pulls->read_end - pulls->read_first, IB_READS_MAX);
		for (unsigned k = 0; k < 60; k++)
			carry(reader, k * 7 % QUEUES);
		while (ib_pulls_release(pulls))
			held--;
		got += deliver(reader, target + got, LEN - got);
	}
	ck_assert_int_eq(held, 0);
	ck_assert_uint_eq(ib_pulls_acknowledged(pulls), UINT32_MAX - 3 + 8);
	ck_assert_mem_eq(source, target, LEN);
	free(reader);
}
END_TEST

START_TEST(what_is_abandoned_gives_back_its_memory_once)
{
	struct reader *reader = reader_make();
	int memory[3];
	ck_assert_int_eq(announce(reader, 0, LEN), 0);
	for (int i = 0; i < 3; i++)
		ib_pulls_plan_direct(&reader->pulls, target + i * 20000, 20000, 3, &memory[i]);
	ck_assert_uint_eq(ib_pulls_plan_bounce(&reader->pulls, 500), 500);
	post(reader, 20000);
	ck_assert(carry(reader, 0));
	ck_assert_ptr_eq(ib_pulls_release(&reader->pulls), &memory[0]);
	ck_assert_ptr_eq(ib_pulls_abandon(&reader->pulls), &memory[1]);
	ck_assert_ptr_eq(ib_pulls_abandon(&reader->pulls), &memory[2]);
	ck_assert_ptr_null(ib_pulls_abandon(&reader->pulls));
	free(reader);
}
END_TEST

START_TEST(impossible_announcements_are_refused)
{
	static const struct ib_announcement wrong[] = {
		{ 4096, 1, 0, 0 },
		{ 4096, 1, 0, (uint64_t)IB_ANNOUNCED_BYTES_MAX + 1 },
		{ 4096, 1, 1, 100 },
		{ UINT64_MAX - 10, 1, 0, 100 },
	};
	struct reader *reader = reader_make();
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		ck_assert_int_eq(ib_pulls_announce(&reader->pulls, &wrong[i]), -EPROTO);
	ck_assert_uint_eq(reader->pulls.backlog, 0);
	for (int i = 0; i < IB_OFFERS_MAX; i++)
		ck_assert_int_eq(announce(reader, 0, 100), 0);
	ck_assert_int_eq(announce(reader, 0, 100), -EPROTO);
	free(reader);
}
END_TEST

START_TEST(only_a_prefix_of_what_is_free_again_is_accepted)
{
	struct ib_offers offers = { .most = IB_OFFERS_MAX };
	uint32_t news;
	int memory[2];
	ib_offers_copied(&offers, 10);
	ck_assert_uint_eq(ib_offers_acceptable(&offers), 10);
	offers.accepted += 10;
	ib_offers_announced(&offers, 50000, &memory[0]);
	ib_offers_copied(&offers, 20);
	ib_offers_announced(&offers, 30000, &memory[1]);
	ib_offers_copied(&offers, 5);
	ck_assert_uint_eq(ib_offers_acceptable(&offers), 0);
	ck_assert_int_eq(ib_offers_acknowledge(&offers, 0, &news), 0);
	ck_assert_uint_eq(news, 0);
	ck_assert_int_eq(ib_offers_acknowledge(&offers, 1, &news), 0);
	ck_assert_uint_eq(news, 1);
	ck_assert_ptr_eq(ib_offers_pop(&offers).memory, &memory[0]);
	ck_assert_uint_eq(ib_offers_acceptable(&offers), 50020);
	offers.accepted += 50020;
	ck_assert_uint_eq(ib_offers_acceptable(&offers), 0);
	ck_assert_int_eq(ib_offers_acknowledge(&offers, 3, &news), -EPROTO);
	ck_assert_int_eq(ib_offers_acknowledge(&offers, 2, &news), 0);
	ck_assert_ptr_eq(ib_offers_pop(&offers).memory, &memory[1]);
	ck_assert_uint_eq(ib_offers_acceptable(&offers), 30005);
}
END_TEST

START_TEST(offers_are_bounded_and_counts_wrap)
{
	struct ib_offers offers = { .most = IB_OFFERS_MAX, .first = UINT32_MAX - 5, .end = UINT32_MAX - 5 };
	uint32_t news;
	for (int i = 0; i < IB_OFFERS_MAX; i++) {
		ck_assert(ib_offers_room(&offers));
		ib_offers_announced(&offers, 100, NULL);
	}
	ck_assert(!ib_offers_room(&offers));
	ck_assert_int_eq(ib_offers_acknowledge(&offers, UINT32_MAX - 5 + 20, &news), 0);
	ck_assert_uint_eq(news, 20);
	for (; news > 0; news--)
		ib_offers_pop(&offers);
	ck_assert(ib_offers_room(&offers));
	ck_assert_uint_eq(ib_offers_acceptable(&offers), 2000);
	/* An older count, half of a newer one. */
	ck_assert_int_eq(ib_offers_acknowledge(&offers, 3, &news), 0);
	ck_assert_uint_eq(news, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verbs zero-copy");
	TCase *tcase = tcase_create("pulls and offers");
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, a_direct_pull_is_delivered_once_all_of_it_is_here);
	tcase_add_test(tcase, who_offers_other_memory_does_not_go_on);
	tcase_add_test(tcase, the_place_behind_what_is_planned);
	tcase_add_loop_test(tcase, a_direct_pull_follows_bytes_that_came_ahead, 0, 2);
	tcase_add_loop_test(tcase, the_bounce_buffer_wraps_and_is_never_overwritten, 0, 2);
	tcase_add_test(tcase, reads_for_the_window_wait_for_room);
	tcase_add_test(tcase, a_get_leaves_places_for_a_put_that_gets_nowhere);
	tcase_add_test(tcase, absorbed_bytes_keep_their_place);
	tcase_add_test(tcase, absorbed_bytes_do_not_use_up_the_places);
	tcase_add_test(tcase, queues_fill_up_and_go_on);
	tcase_add_test(tcase, what_is_abandoned_gives_back_its_memory_once);
	tcase_add_test(tcase, impossible_announcements_are_refused);
	tcase_add_test(tcase, only_a_prefix_of_what_is_free_again_is_accepted);
	tcase_add_test(tcase, offers_are_bounded_and_counts_wrap);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
