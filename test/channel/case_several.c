/* SPDX-License-Identifier: BSD-3-Clause */
/* Several long pieces in one put, which a transport may announce before the peer has taken the first: their order, memory
 * that is free as soon as its piece is accepted, and an end in the middle of them. */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PIECES = 48,  /* in one vector: more than any transport announces */
	ROOM = 130000, /* bytes of one piece at most */
};

/* Messages in slots of their own. The first of those in the queue begins with the bytes that were not accepted. */
struct queue {
	uint8_t *memory;           /* PIECES slots of ROOM bytes */
	struct iovec iov[PIECES];  /* what is left of the messages in the queue */
	int n;
	unsigned first;            /* slot of the first */
	uint64_t next;             /* number of the next message */
	uint64_t random;
};

static void queue_open(struct queue *queue, uint64_t seed)
{
	*queue = (struct queue){ .memory = malloc((size_t)PIECES * ROOM), .random = seed };
	CHECK(queue->memory);
}

/* Mostly long messages, with short ones between them as their headers would be. */
static size_t queue_length(struct queue *queue)
{
	return rng(&queue->random) % 3 ? rng_between(&queue->random, 60000, ROOM) : rng_between(&queue->random, 1, 3000);
}

/* Appends the next message. */
static void queue_append(struct queue *queue, bool fill)
{
	uint8_t *slot = queue->memory + (queue->first + (unsigned)queue->n) % PIECES * (size_t)ROOM;
	size_t length = queue_length(queue);
	if (fill)
		pattern_fill(queue->next, 0, slot, length);
	queue->iov[queue->n++] = (struct iovec){ slot, length };
	queue->next++;
}

/* Removes the bytes that were moved. The memory of a message that is complete is overwritten at once. */
static void queue_advance(struct queue *queue, size_t moved, bool check)
{
	while (queue->n > 0 && moved >= queue->iov[0].iov_len) {
		uint8_t *slot = queue->memory + queue->first * (size_t)ROOM, *end = (uint8_t *)queue->iov[0].iov_base + queue->iov[0].iov_len;
		moved -= queue->iov[0].iov_len;
		if (check)
			pattern_check(queue->next - (uint64_t)queue->n, 0, slot, (size_t)(end - slot));
		memset(slot, 0xee, ROOM);
		memmove(queue->iov, queue->iov + 1, (size_t)--queue->n * sizeof *queue->iov);
		queue->first = (queue->first + 1) % PIECES;
	}
	if (moved > 0) {
		queue->iov[0].iov_base = (uint8_t *)queue->iov[0].iov_base + moved;
		queue->iov[0].iov_len -= moved;
	}
}

/* Messages are appended to the queue while earlier ones are under way. `most`: messages that a get asks for at a time. */
static void queue_moves(struct side *side, int most)
{
	struct queue queue;
	uint64_t messages = 600 / side->scale + 100, own = 7 + (uint64_t)side->index;
	bool puts = side->index == 0;
	queue_open(&queue, 5);
	while (queue.next < messages || queue.n) {
		int want = puts ? (int)rng_between(&own, 1, PIECES) : most;
		while (queue.next < messages && queue.n < want)
			queue_append(&queue, puts);
		size_t moved;
		CHECK_IS(puts ? hr_channel_put(side->conn, queue.iov, queue.n, &moved) :
				hr_channel_get(side->conn, queue.iov, queue.n, &moved), 0);
		queue_advance(&queue, moved, !puts);
		if (!moved)
			CHECK(hr_channel_wait(side->channel, puts, PAIR_TIMEOUT_MS) >= 0);
	}
	free(queue.memory);
}

static void one_at_a_time_is_got(struct side *side)
{
	queue_moves(side, 1);
}

static void several_at_a_time_are_got(struct side *side)
{
	queue_moves(side, 20);
}

/* Short gets of several long pieces. */
static void short_gets(struct side *side)
{
	enum { LENGTH = 100000, N = 12 };
	uint8_t *bytes = malloc((size_t)N * LENGTH);
	struct iovec iov[N];
	CHECK(bytes);
	for (int i = 0; i < N; i++)
		iov[i] = (struct iovec){ bytes + (size_t)i * LENGTH, LENGTH };
	if (side->index == 0) {
		pattern_fill(3, 0, bytes, (size_t)N * LENGTH);
		put_all_iov(side, iov, N);
	} else {
		for (size_t at = 0, step = 1; at < (size_t)N * LENGTH; at += step, step = step * 3 % 16000 + 1) {
			step = step < (size_t)N * LENGTH - at ? step : (size_t)N * LENGTH - at;
			get_all(side, bytes + at, step);
		}
		pattern_check(3, 0, bytes, (size_t)N * LENGTH);
	}
	free(bytes);
}

/* Both put several long pieces, which the other's ring would hold, before they get. */
static void both_put_several_before_they_get(struct side *side)
{
	enum { LENGTH = 70000, N = 6 };
	uint8_t *bytes = malloc((size_t)N * LENGTH);
	CHECK(bytes);
	for (uint64_t round = 0; round < 6; round++) {
		struct iovec out[N], in[N];
		for (int i = 0; i < N; i++)
			out[i] = in[i] = (struct iovec){ bytes + (size_t)i * LENGTH, LENGTH };
		pattern_fill(round * 2 + (uint64_t)side->index, 0, bytes, (size_t)N * LENGTH);
		put_all_iov(side, out, N);
		memset(bytes, 0, (size_t)N * LENGTH);
		get_all_iov(side, in, N);
		pattern_check(round * 2 + !side->index, 0, bytes, (size_t)N * LENGTH);
		side_meet(side);
	}
	free(bytes);
}

/* ---- ends ---- */

enum { END_LENGTH = 300000, END_PIECES = 16, END_BYTES = END_LENGTH * END_PIECES };

static void cut(uint8_t *bytes, size_t done, struct iovec *iov, int *n)
{
	*n = 0;
	for (size_t at = done, end; at < END_BYTES; at = end) {
		end = (at / END_LENGTH + 1) * END_LENGTH;
		iov[(*n)++] = (struct iovec){ bytes + at, end - at };
	}
}

/* Passes all the pieces to each get, until an error. What was delivered must be right, and nothing writes into the memory after
 * the connection is closed. */
static void get_until_the_end(struct side *side)
{
	uint8_t *bytes = malloc(END_BYTES);
	struct iovec iov[END_PIECES];
	size_t got = 0;
	int error = 0, n;
	CHECK(bytes);
	while (!error) {
		size_t delivered = 0;
		cut(bytes, got, iov, &n);
		error = hr_channel_get(side->conn, iov, n, &delivered);
		got += delivered;
		CHECK(got < END_BYTES);
		if (!error && !delivered)
			CHECK(hr_channel_wait(side->channel, 0, PAIR_TIMEOUT_MS) >= 0);
	}
	CHECK(error == -ESHUTDOWN || error == -ECONNRESET || error == -ETIMEDOUT);
	pattern_check(11, 0, bytes, got);
	side_keeps(side, bytes, END_BYTES);
	free(bytes);
}

/* Side 0 ends with several pieces under way, of which side 1 has begun to take some. */
static void end_of(struct side *side, bool dies)
{
	if (side->index == 1) {
		get_until_the_end(side);
		return;
	}
	uint8_t *bytes = malloc(END_BYTES);
	struct iovec iov[END_PIECES];
	size_t done = 0;
	int n;
	CHECK(bytes);
	pattern_fill(11, 0, bytes, END_BYTES);
	for (int i = 0; i < 200 && done < END_BYTES / 2; i++) {
		size_t accepted;
		cut(bytes, done, iov, &n);
		CHECK_IS(hr_channel_put(side->conn, iov, n - 2, &accepted), 0);
		done += accepted;
	}
	if (dies) {
		raise(SIGKILL);
		abort();
	}
	hr_conn_close(side->conn);
	side->conn = NULL;
	memset(bytes, 0xee, END_BYTES); /* closed: it is ours again */
	free(bytes);
}

static void close_under_several_puts(struct side *side)
{
	end_of(side, false);
}

static void death_under_several_puts(struct side *side)
{
	end_of(side, true);
}

/* Side 1 closes while several long pieces of its get are on their way. The put of side 0 reports that. */
static void close_under_several_gets(struct side *side)
{
	uint8_t *bytes = malloc(END_BYTES);
	struct iovec iov[END_PIECES];
	int n;
	CHECK(bytes);
	memset(bytes, 1, END_BYTES);
	if (side->index == 1) {
		size_t delivered = 0;
		cut(bytes, 0, iov, &n);
		for (int i = 0; i < 2000 && !delivered; i++)
			CHECK_IS(hr_channel_get(side->conn, iov, n, &delivered), 0);
		hr_conn_close(side->conn);
		side->conn = NULL;
		side_keeps(side, bytes, END_BYTES);
	} else {
		int error = 0;
		for (size_t done = 0; !error; done %= END_BYTES) {
			size_t accepted = 0;
			cut(bytes, done, iov, &n);
			error = hr_channel_put(side->conn, iov, n, &accepted);
			done += accepted;
			if (!error && !accepted)
				CHECK(hr_channel_wait(side->channel, 1, PAIR_TIMEOUT_MS) >= 0);
		}
		CHECK(error == -ESHUTDOWN || error == -ECONNRESET);
	}
	free(bytes);
}

const struct test_case several_cases[] = {
	{ "several-long-pieces-got-one-by-one", one_at_a_time_is_got, 0 },
	{ "several-long-pieces-got-at-once", several_at_a_time_are_got, 0 },
	{ "several-long-pieces-small-ring", several_at_a_time_are_got, PAIR_SMALL_RING },
	{ "several-long-pieces-asleep", one_at_a_time_is_got, PAIR_NO_SPIN },
	{ "several-long-pieces-and-short-gets", short_gets, 0 },
	{ "both-put-several-before-they-get", both_put_several_before_they_get, 0 },
	{ "close-under-several-puts", close_under_several_puts, 0 },
	{ "death-under-several-puts", death_under_several_puts, PAIR_0_DIES },
	{ "close-under-several-gets", close_under_several_gets, 0 },
	{ 0 },
};
