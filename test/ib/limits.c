/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs where something is scarce, on the libibverbs double: places in the device's queues, memory for a peer with a
 * large ring, memory that may be locked. What the device says it has is this test's.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024u * 1024u)

/* ---- the device ---- */

static int most_completions, most_requests;            /* 0: what it has */
static bool twice;                                     /* there is a second device, which has all that the double has */
static int opened;
static unsigned places_asked, requests_asked, qps_asked; /* of the completion queue; of all queue pairs; how many */

struct ibv_device **(ibv_get_device_list)(int *n)
{
	struct ibv_device **(*real)(int *) = dlsym(RTLD_NEXT, "ibv_get_device_list");
	struct ibv_device **list = real(n);
	if (!twice || !list || *n != 1)
		return list;
	struct ibv_device **two = calloc(4, sizeof *two);
	two[0] = two[1] = list[0];
	two[3] = (struct ibv_device *)list; /* behind the end of it, for who frees it */
	*n = 2;
	return two;
}

void (ibv_free_device_list)(struct ibv_device **list)
{
	void (*real)(struct ibv_device **) = dlsym(RTLD_NEXT, "ibv_free_device_list");
	if (!twice) {
		real(list);
		return;
	}
	real((struct ibv_device **)list[3]);
	free(list);
}

struct ibv_context *(ibv_open_device)(struct ibv_device *device)
{
	struct ibv_context *(*real)(struct ibv_device *) = dlsym(RTLD_NEXT, "ibv_open_device");
	if (twice && ++opened == 2)
		most_completions = most_requests = 0;
	return real(device);
}

int (ibv_query_device)(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int (*real)(struct ibv_context *, struct ibv_device_attr *) = dlsym(RTLD_NEXT, "ibv_query_device");
	int error = real(context, attr);
	if (most_completions)
		attr->max_cqe = most_completions;
	if (most_requests)
		attr->max_qp_wr = most_requests;
	return error;
}

struct ibv_cq *(ibv_create_cq)(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			       int vector)
{
	struct ibv_cq *(*real)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int) =
		dlsym(RTLD_NEXT, "ibv_create_cq");
	places_asked = (unsigned)cqe;
	if (most_completions && cqe > most_completions) {
		errno = EINVAL;
		return NULL;
	}
	return real(context, cqe, cq_context, channel, vector);
}

struct ibv_qp *(ibv_create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *(*real)(struct ibv_pd *, struct ibv_qp_init_attr *) = dlsym(RTLD_NEXT, "ibv_create_qp");
	if (most_requests && attr->cap.max_send_wr > (unsigned)most_requests) {
		errno = EINVAL;
		return NULL;
	}
	requests_asked += attr->cap.max_send_wr;
	qps_asked++;
	return real(pd, attr);
}

/* ---- places in queues ---- */

static void connect_with(struct side *side, uint32_t ring_bytes)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.ring_bytes = ring_bytes;
	setenv("HEADRACE_IB_DESIGN", "zerocopy", 1);
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
}

static void set_queues(int completions, int requests, const char *depth, const char *qps)
{
	most_completions = completions;
	most_requests = requests;
	setenv("HEADRACE_IB_DEPTH", depth, 1);
	setenv("HEADRACE_IB_QPS", qps, 1);
}

static void check_exchange(struct side *side)
{
	size_t n = MIB;
	uint8_t *bytes = malloc(n);
	for (int turn = 0; turn < 4; turn++) {
		if (turn % 2 == side->index) {
			pattern_fill((uint64_t)turn, 0, bytes, n);
			put_all(side, bytes, n);
		} else {
			get_all(side, bytes, n);
			pattern_check((uint64_t)turn, 0, bytes, n);
		}
	}
	free(bytes);
}

/* Every request of every queue pair has its place in the completion queue. */
static void the_depth_fits_the_completion_queue(struct side *side)
{
	set_queues(300, 0, "1000", "4");
	connect_with(side, 0);
	CHECK_IS(qps_asked, 4);
	CHECK(places_asked <= 300);
	CHECK(places_asked >= requests_asked);
	check_exchange(side);
}

static void the_number_of_queue_pairs_fits_the_completion_queue(struct side *side)
{
	set_queues(120, 0, "1000", "4");
	connect_with(side, 0);
	CHECK_IS(qps_asked, 2);
	CHECK(places_asked <= 120);
	CHECK(places_asked >= requests_asked);
	check_exchange(side);
}

static void a_device_with_too_few_places_is_not_used(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	hr_card_t card;
	set_queues(40, 0, "16", "1");
	CHECK_IS(hr_channel_init(&attr, &side->channel, &card), -ENODEV);
	set_queues(0, 40, "16", "1");
	CHECK_IS(hr_channel_init(&attr, &side->channel, &card), -ENODEV);
	set_queues(60, 60, "16", "1");
	CHECK_IS(hr_channel_init(&attr, &side->channel, &card), 0);
}

static void a_device_with_enough_places_is_used_instead(struct side *side)
{
	twice = true;
	set_queues(0, 40, "16", "1");
	connect_with(side, 0);
	CHECK_IS(opened, 2);
	CHECK_IS(requests_asked > 40, 1);
	check_exchange(side);
}

/* ---- staging memory ---- */

static int state_at_last(struct side *side)
{
	int state;
	while ((state = hr_conn_state(side->conn)) == 0)
		CHECK(hr_channel_wait(side->channel, 1, 1000) >= 0);
	return state;
}

static void open_rings(struct side *side, uint32_t ring_0, uint32_t ring_1)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.ring_bytes = side->index == 0 ? ring_0 : ring_1;
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
}

static void a_peers_ring_beyond_the_limit_is_refused(struct side *side)
{
	setenv("HEADRACE_IB_STAGING", "1M", 1);
	open_rings(side, 4 * MIB, MIB);
	int state = state_at_last(side);
	if (side->index == 0)
		CHECK(state == 1 || state == -ECONNRESET || state == -ESHUTDOWN);
	else
		CHECK_IS(state, -ENOBUFS);
	side_meet(side);
}

static void a_peers_ring_up_to_the_limit_is_served(struct side *side)
{
	setenv("HEADRACE_IB_STAGING", "4M", 1);
	open_rings(side, 4 * MIB, MIB);
	CHECK_IS(state_at_last(side), 1);
	check_exchange(side);
}

static void a_peers_ring_like_our_own_is_served(struct side *side)
{
	setenv("HEADRACE_IB_STAGING", "0", 1);
	open_rings(side, 4 * MIB, 4 * MIB);
	CHECK_IS(state_at_last(side), 1);
	check_exchange(side);
}

/* ---- memory that may be locked ---- */

enum { LONG = 190000 };

/* Both put what the other's ring would hold, and get only then. beside: what may be registered beside the rings and the
 * piece that is put, which is less than a bounce buffer for the other's. */
static void put_before_get(struct side *side, unsigned beside)
{
	enum { RINGS = 2105344, PIECE = 200704 };
	char fault[40];
	uint8_t *out = malloc(LONG), *in = malloc(LONG);
	snprintf(fault, sizeof fault, "budget:%u", RINGS + PIECE + beside);
	setenv("HR_VERBS_DOUBLE_FAULT", fault, 1);
	connect_with(side, MIB);
	for (uint64_t turn = 0; turn < 5; turn++) {
		pattern_fill(turn * 2 + (uint64_t)side->index, 0, out, LONG);
		put_all(side, out, LONG);
		memset(in, 0, LONG);
		get_all(side, in, LONG);
		pattern_check(turn * 2 + !side->index, 0, in, LONG);
		hr_conn_stats_t stats = { .size = sizeof stats };
		CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
		CHECK_IS(stats.zero_copy_puts, turn + 1);
		side_meet(side);
	}
	free(out);
	free(in);
}

static void both_put_before_they_get_with_nothing_to_register(struct side *side)
{
	put_before_get(side, 0);
}

static void both_put_before_they_get_with_little_to_register(struct side *side)
{
	put_before_get(side, 70000);
}

/* 0 stops in the middle of a get of many long pieces, and only puts. 1 puts all that these pieces and 0's ring hold. */
static void a_get_of_many_pieces_that_stops_does_not_hold_back_the_peer(struct side *side)
{
	enum { PIECE = 16384, PIECES = 160, BEHIND = PIECES * PIECE };
	uint8_t *in = malloc(BEHIND), *out = malloc(BEHIND);
	connect_with(side, 4 * MIB);
	pattern_fill((uint64_t)side->index, 0, out, BEHIND);
	if (side->index == 0) {
		struct iovec iov[PIECES];
		hr_conn_stats_t stats = { .size = sizeof stats };
		size_t got;
		for (size_t i = 0; i < PIECES; i++)
			iov[i] = (struct iovec){ in + i * PIECE, PIECE };
		do {
			CHECK_IS(hr_channel_get(side->conn, iov, PIECES, &got), 0);
			CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
		} while (!got && stats.registration_hits + stats.registration_misses == 0);
		put_all(side, out, LONG);
		get_all(side, in + got, BEHIND - got);
		pattern_check(1, 0, in, BEHIND);
	} else {
		put_all(side, out, BEHIND);
		get_all(side, in, LONG);
		pattern_check(0, 0, in, LONG);
	}
	free(in);
	free(out);
}

static const struct test_case cases[] = {
	{ "both-put-before-they-get-with-nothing-to-register", both_put_before_they_get_with_nothing_to_register,
	  PAIR_OWN_SETUP },
	{ "both-put-before-they-get-with-little-to-register", both_put_before_they_get_with_little_to_register,
	  PAIR_OWN_SETUP },
	{ "a-get-of-many-pieces-that-stops-does-not-hold-back-the-peer",
	  a_get_of_many_pieces_that_stops_does_not_hold_back_the_peer, PAIR_OWN_SETUP },
	{ "the-depth-fits-the-completion-queue", the_depth_fits_the_completion_queue, PAIR_OWN_SETUP },
	{ "the-number-of-queue-pairs-fits-the-completion-queue", the_number_of_queue_pairs_fits_the_completion_queue,
	  PAIR_OWN_SETUP },
	{ "a-device-with-too-few-places-is-not-used", a_device_with_too_few_places_is_not_used, PAIR_OWN_SETUP },
	{ "a-device-with-enough-places-is-used-instead", a_device_with_enough_places_is_used_instead, PAIR_OWN_SETUP },
	{ "a-peers-ring-beyond-the-limit-is-refused", a_peers_ring_beyond_the_limit_is_refused, PAIR_OWN_SETUP },
	{ "a-peers-ring-up-to-the-limit-is-served", a_peers_ring_up_to_the_limit_is_served, PAIR_OWN_SETUP },
	{ "a-peers-ring-like-our-own-is-served", a_peers_ring_like_our_own_is_served, PAIR_OWN_SETUP },
};

int main(void)
{
	return pair_run_all(cases, sizeof cases / sizeof *cases, HR_TRANSPORT_VERBS, "verbs");
}
