/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion that comes in the moment between the last look at the completion queue and arming it raises no event:
 * whoever arms must look once more, and act on what it finds. On the libibverbs double; this program stands between
 * the channel and the double's completion queue, and holds back the completion of a long read until that moment.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

/* Of one announcement the first half is asked for first: one read, and no acknowledgement yet, which would be one more
 * request whose completion could wake us. */
enum { BYTES = 200000, HALF = BYTES / 2 };

static struct ibv_context_ops real;
static bool holding, probed; /* probed: the completion of a short read has been handed on since */
static bool release;         /* at the next arming */
static uint64_t long_read;
static struct ibv_wc held;
static bool is_held;

static int post(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
	if (request->opcode == IBV_WR_RDMA_READ && request->sg_list->length >= HR_ZERO_COPY_MIN) {
		long_read = request->wr_id;
		holding = !probed; /* the first one */
	}
	return real.post_send(qp, request, bad);
}

/* One completion at a time while the long read's is held back. */
static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	if (!holding && is_held) {
		is_held = false;
		*wc = held;
		return 1;
	}
	for (;;) {
		int got = real.poll_cq(cq, holding ? 1 : n, wc);
		if (got != 1 || !holding)
			return got;
		if (wc->wr_id != long_read) {
			probed |= wc->opcode == IBV_WC_RDMA_READ;
			return got;
		}
		held = *wc;
		is_held = true;
	}
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	struct ibv_wc wc;
	while (release && !is_held)
		CHECK_IS(poll_cq(cq, 1, &wc), 0); /* nothing else is under way */
	int error = real.req_notify_cq(cq, solicited);
	if (release)
		holding = release = false;
	return error;
}

/* The library's queue pairs are not ours to see, but they all are of one context. */
static void stand_between(struct ibv_context *context)
{
	real = context->ops;
	context->ops.post_send = post;
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*open)(struct ibv_device *) = dlsym(RTLD_NEXT, "ibv_open_device");
	struct ibv_context *context = open(device);
	if (context)
		stand_between(context);
	return context;
}

static void a_read_that_completes_while_arming_is_seen(struct side *side)
{
	uint8_t *bytes = calloc(BYTES, 1);
	if (side->index == 1) {
		pattern_fill(3, 0, bytes, BYTES);
		put_all(side, bytes, BYTES);
	} else {
		struct iovec half = { bytes, HALF };
		size_t delivered = 0;
		while (!probed) {
			CHECK_IS(hr_channel_get(side->conn, &half, 1, &delivered), 0);
			CHECK_IS(delivered, 0);
			CHECK(hr_channel_wait(side->channel, 0, 20) >= 0);
		}
		/* Asleep, and sure that nothing is coming but the read. */
		CHECK_IS(hr_channel_get(side->conn, &half, 1, &delivered), 0);
		CHECK_IS(delivered, 0);
		release = true;
		CHECK_IS(hr_channel_wait(side->channel, 0, 10000), 1);
		CHECK_IS(hr_channel_get(side->conn, &half, 1, &delivered), 0);
		CHECK_IS(delivered, HALF);
		get_all(side, bytes + HALF, BYTES - HALF);
		pattern_check(3, 0, bytes, BYTES);
	}
	side_meet(side);
	free(bytes);
}

static const struct test_case tests[] = {
	{ "a-read-that-completes-while-arming-is-seen", a_read_that_completes_while_arming_is_seen, PAIR_NO_SPIN },
};

int main(void)
{
	setenv("HEADRACE_IB_QPS", "1", 1);
	setenv("HEADRACE_IB_DESIGN", "zerocopy", 1);
	return pair_run_all(tests, sizeof tests / sizeof *tests, HR_TRANSPORT_VERBS, "verbs");
}
