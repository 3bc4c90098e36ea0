/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to the peer's memory (remote_access.h) over verbs, on the libibverbs double. */
#include "config.h"

#include "rdma_channel/remote_access.h"
#include "rdma_channel/upper.h"
#include "test/channel/pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 300000 };

static unsigned destroyed; /* queue pairs */

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*real)(struct ibv_qp *) = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	destroyed++;
	return real(qp);
}

static void connect_with(struct side *side, const char *qps, const char *depth)
{
	setenv("HEADRACE_IB_QPS", qps, 1);
	setenv("HEADRACE_IB_DEPTH", depth, 1);
	setenv("HEADRACE_IB_DESIGN", "pipeline", 1);
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
}

static void close_conn(struct side *side)
{
	hr_conn_close(side->conn);
	side->conn = NULL;
}

/* The receiver: exposes memory, and has what the peer writes there when they meet. */
static void receive(struct side *side)
{
	uint8_t *bytes = calloc(BYTES, 1);
	struct hr_token token;
	hr_exposed_t *exposed;
	CHECK_IS(hr_remote_expose(side->conn, bytes, BYTES, &exposed, &token), 0);
	side_send(side, &token, sizeof token);
	side_meet(side);
	pattern_check(5, 0, bytes, BYTES);
	hr_remote_hide(exposed);
	close_conn(side);
	free(bytes);
}

/* The queue pair is full of chunks when the write begins. When they complete, which nobody else waits for, it is its
 * turn. */
static void a_write_that_finds_no_room_is_waited_for(struct side *side)
{
	if (side->index == 0)
		setenv("HR_VERBS_DOUBLE_LATENCY_NS", "20000000", 1);
	connect_with(side, "1", "2");
	if (side->index == 1) {
		receive(side);
		return;
	}
	uint8_t *bytes = malloc(BYTES);
	pattern_fill(5, 0, bytes, BYTES);
	struct hr_token token;
	side_receive(side, &token, sizeof token);
	struct iovec iov = { bytes, BYTES };
	size_t accepted;
	CHECK_IS(hr_channel_put(side->conn, &iov, 1, &accepted), 0);
	CHECK(accepted > 0 && accepted < BYTES);
	hr_remote_access_t *write;
	CHECK_IS(hr_remote_write(side->conn, &token, 0, bytes, BYTES, &write), 0);
	int done;
	while (!(done = hr_remote_test(side->conn, write)))
		CHECK_IS(hr_channel_wait(side->channel, 0, 30000), 1);
	CHECK_IS(done, 1);
	hr_remote_end(write);
	side_meet(side);
	close_conn(side);
	free(bytes);
}

/* A peer that writes once more with the token of memory that is hidden gets an error, and the memory stays as it is. */
static void hidden_memory_cannot_be_written(struct side *side)
{
	struct hr_token token;
	uint8_t *bytes = malloc(BYTES);
	connect_with(side, "1", "64");
	if (side->index == 1) {
		hr_exposed_t *exposed;
		CHECK_IS(hr_remote_expose(side->conn, bytes, BYTES, &exposed, &token), 0);
		side_send(side, &token, sizeof token);
		side_meet(side);
		pattern_check(5, 0, bytes, BYTES);
		hr_remote_hide(exposed);
		memset(bytes, 0x77, BYTES);
		side_meet(side);
		side_meet(side);
		for (size_t i = 0; i < BYTES; i++)
			CHECK_IS(bytes[i], 0x77);
	} else {
		hr_remote_access_t *write;
		int done = 1;
		pattern_fill(5, 0, bytes, BYTES);
		side_receive(side, &token, sizeof token);
		for (int turn = 0; turn < 2; turn++) {
			CHECK_IS(done, 1);
			CHECK_IS(hr_remote_write(side->conn, &token, 0, bytes, BYTES, &write), 0);
			while (!(done = hr_remote_test(side->conn, write)))
				CHECK(hr_channel_wait(side->channel, 0, 30000) >= 0);
			hr_remote_end(write);
			side_meet(side);
			if (turn == 0)
				side_meet(side); /* hidden */
		}
		CHECK_IS(done, -EPROTO);
	}
	close_conn(side);
	free(bytes);
}

/* Waits for the end of accesses, the oldest first. Returns the first error. */
static int finish(struct side *side, hr_remote_access_t **access, int n)
{
	int error = 0;
	for (int i = 0; i < n; i++) {
		int done;
		while (!(done = hr_remote_test(side->conn, access[i])))
			CHECK(hr_channel_wait(side->channel, 0, 30000) >= 0);
		error = error || done > 0 ? error : done;
		hr_remote_end(access[i]);
	}
	return error;
}

/* More accesses than the queue pairs take. */
static void write_and_read_back(struct side *side, const struct hr_token *token)
{
	enum { EACH = BYTES / 30 };
	uint8_t *bytes = malloc(BYTES), *back = calloc(BYTES, 1);
	hr_remote_access_t *access[31];
	pattern_fill(5, 0, bytes, BYTES);
	for (int i = 0; i < 30; i++)
		CHECK_IS(hr_remote_write(side->conn, token, (uint64_t)i * EACH, bytes + i * EACH, EACH, &access[i]), 0);
	CHECK_IS(finish(side, access, 30), 0);
	CHECK_IS(hr_remote_read(side->conn, token, 0, back, BYTES, &access[0]), 0);
	for (int i = 0; i < 30; i++)
		CHECK_IS(hr_remote_read(side->conn, token, (uint64_t)i * EACH, bytes + (29 - i) * EACH, EACH, &access[1 + i]), 0);
	CHECK_IS(finish(side, access, 31), 0);
	pattern_check(5, 0, back, BYTES);
	for (int i = 0; i < 30; i++)
		CHECK(!memcmp(bytes + (29 - i) * EACH, back + i * EACH, EACH));
	free(bytes);
	free(back);
}

/* Memory that was shared twice stays readable until it was hidden twice. Then a read fails, and writes nothing. */
static void shared_memory_is_written_and_read(struct side *side)
{
	struct hr_token token, again;
	connect_with(side, "2", "4");
	if (side->index == 1) {
		uint8_t *bytes = calloc(BYTES, 1);
		hr_exposed_t *shared[2];
		CHECK_IS(hr_remote_share(side->conn, bytes, BYTES, &shared[0], &token), 0);
		CHECK_IS(hr_remote_share(side->conn, bytes, BYTES, &shared[1], &again), 0);
		CHECK(!memcmp(&token, &again, sizeof token));
		hr_remote_hide(shared[0]);
		side_send(side, &token, sizeof token);
		side_meet(side);
		pattern_check(5, 0, bytes, BYTES);
		hr_remote_hide(shared[1]);
		side_meet(side);
		side_meet(side);
		close_conn(side);
		free(bytes);
	} else {
		uint8_t byte = 0x77;
		hr_remote_access_t *read;
		side_receive(side, &token, sizeof token);
		write_and_read_back(side, &token);
		side_meet(side);
		side_meet(side); /* hidden */
		CHECK_IS(hr_remote_read(side->conn, &token, 0, &byte, 1, &read), 0);
		CHECK_IS(finish(side, &read, 1), -EPROTO);
		CHECK_IS(byte, 0x77);
		side_meet(side);
		close_conn(side);
	}
}

/* An access that waits for room is released after its connection. */
static void accesses_outlive_their_connection(struct side *side)
{
	static uint8_t bytes[BYTES];
	struct hr_token token;
	connect_with(side, "1", "2");
	if (side->index == 1) {
		hr_exposed_t *shared;
		CHECK_IS(hr_remote_share(side->conn, bytes, BYTES, &shared, &token), 0);
		side_send(side, &token, sizeof token);
		side_meet(side);
		close_conn(side);
		hr_remote_hide(shared);
	} else {
		hr_remote_access_t *access[20];
		side_receive(side, &token, sizeof token);
		for (int i = 0; i < 20; i++)
			CHECK_IS(hr_remote_read(side->conn, &token, 0, bytes, BYTES, &access[i]), 0);
		hr_conn_abort(side->conn, -EBADMSG);
		hr_remote_end(access[19]);
		close_conn(side);
		for (int i = 0; i < 19; i++)
			hr_remote_end(access[i]);
		side_meet(side);
	}
}

/* An adapter whose queue pair has been told to stop may be in the middle of a packet; one without it is not. */
static void when_aborted_the_queue_pairs_are_gone(struct side *side)
{
	connect_with(side, "2", "16");
	side_meet(side);
	if (side->index == 0) {
		uint8_t byte = 0;
		struct iovec iov = { &byte, 1 };
		size_t moved;
		destroyed = 0;
		hr_conn_abort(side->conn, -EBADMSG);
		CHECK_IS(destroyed, 2);
		CHECK_IS(hr_channel_get(side->conn, &iov, 1, &moved), -EBADMSG);
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &moved), -EBADMSG);
	} else {
		uint64_t offset = 0;
		CHECK_IS(get_until_error(side, 0, &offset), -ECONNRESET); /* although the other one has not closed */
		CHECK_IS(offset, 0);
	}
	side_meet(side);
	close_conn(side);
}

static const struct test_case cases[] = {
	{ "a-write-that-finds-no-room-is-waited-for", a_write_that_finds_no_room_is_waited_for,
	  PAIR_OWN_SETUP | PAIR_NO_SPIN },
	{ "hidden-memory-cannot-be-written", hidden_memory_cannot_be_written, PAIR_OWN_SETUP },
	{ "shared-memory-is-written-and-read", shared_memory_is_written_and_read, PAIR_OWN_SETUP },
	{ "accesses-outlive-their-connection", accesses_outlive_their_connection, PAIR_OWN_SETUP },
	{ "when-aborted-the-queue-pairs-are-gone", when_aborted_the_queue_pairs_are_gone, PAIR_OWN_SETUP },
};

int main(void)
{
	return pair_run_all(cases, sizeof cases / sizeof *cases, HR_TRANSPORT_VERBS, "verbs");
}
