/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device tells by itself, and which partition and service its packets belong to; on the libibverbs double. This
 * program stands between the channel and three functions of libibverbs: it sees how queue pairs are set up, and can
 * tell of events that the double does not make.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ibv_qp *last_qp;
static struct ibv_qp_attr seen_init, seen_rtr;
static enum ibv_event_type injected;
static bool inject, injected_out;
static unsigned told; /* injected events that were taken */
static bool fail_reads;    /* a queue pair fails when a long read has been posted on it */
static unsigned destroyed; /* queue pairs */

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int) = dlsym(RTLD_NEXT, "ibv_modify_qp");
	last_qp = qp;
	if (mask & IBV_QP_PKEY_INDEX)
		seen_init = *attr;
	if (mask & IBV_QP_AV)
		seen_rtr = *attr;
	return real(qp, attr, mask);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int (*real)(struct ibv_context *, struct ibv_async_event *) = dlsym(RTLD_NEXT, "ibv_get_async_event");
	if (!inject)
		return real(context, event);
	inject = false;
	injected_out = true;
	*event = (struct ibv_async_event){ .event_type = injected };
	if (injected == IBV_EVENT_QP_FATAL || injected == IBV_EVENT_QP_ACCESS_ERR)
		event->element.qp = last_qp;
	else if (injected == IBV_EVENT_CQ_ERR)
		event->element.cq = last_qp->send_cq;
	else
		event->element.port_num = 1;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	void (*real)(struct ibv_async_event *) = dlsym(RTLD_NEXT, "ibv_ack_async_event");
	if (!injected_out) {
		real(event);
		return;
	}
	injected_out = false;
	told++;
}

/* As libibverbs' waits for ever until what was got of the queue pair's events has been acknowledged. */
int ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*real)(struct ibv_qp *) = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	CHECK(!injected_out);
	destroyed++;
	return real(qp);
}

/* Stands before the double's own, which ibv_post_send calls through the context. */
static int (*post)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);

static int post_and_fail_reads(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
	if (fail_reads && request->opcode == IBV_WR_RDMA_READ && request->sg_list->length >= HR_ZERO_COPY_MIN) {
		last_qp = qp;
		injected = IBV_EVENT_QP_FATAL;
		inject = true;
		fail_reads = false;
	}
	return post(qp, request, bad);
}

/* What this process writes to stderr between capture and release is kept. */
static char captured[4096];
static FILE *capturing;
static int uncaptured;

static void capture(void)
{
	capturing = tmpfile();
	CHECK(capturing);
	uncaptured = dup(2);
	dup2(fileno(capturing), 2);
}

static void release(void)
{
	dup2(uncaptured, 2);
	close(uncaptured);
	rewind(capturing);
	captured[fread(captured, 1, sizeof captured - 1, capturing)] = 0;
	fclose(capturing);
}

/* How often the text occurs in it. */
static int count(const char *text)
{
	int n = 0;
	for (const char *at = captured; (at = strstr(at, text)); at++)
		n++;
	return n;
}

static void connect_by(struct side *side, uint32_t transports)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.transports = transports;
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
}

static int put_until_error(struct side *side)
{
	for (;;) {
		uint8_t bytes[1000] = { 0 };
		struct iovec iov = { bytes, sizeof bytes };
		size_t accepted;
		int error = hr_channel_put(side->conn, &iov, 1, &accepted);
		if (!error && !accepted)
			error = hr_channel_wait(side->channel, 1, -1);
		if (error < 0)
			return error;
	}
}

/* The 40th request finds the port down. */
static void a_port_that_goes_down_ends_puts(struct side *side)
{
	if (side->index == 0) {
		setenv("HR_VERBS_DOUBLE_FAULT", "port-down:40", 1);
		connect_by(side, HR_TRANSPORT_VERBS);
		side_wait_up(side, side->conn);
		capture();
		CHECK_IS(put_until_error(side), -ENETDOWN);
		CHECK_IS(put_until_error(side), -ENETDOWN);
		release();
		CHECK_IS(count("the port is down"), 1);
		CHECK_IS(count("headrace["), 1);
	} else {
		connect_by(side, HR_TRANSPORT_VERBS);
		side_wait_up(side, side->conn);
	}
	side_meet(side);
}

/* 0 has nothing to do but to wait; its request to be woken finds the port down. */
static void a_port_that_goes_down_wakes_a_sleeper(struct side *side)
{
	if (side->index == 0) {
		setenv("HR_VERBS_DOUBLE_FAULT", "port-down:2", 1);
		connect_by(side, HR_TRANSPORT_VERBS);
		side_wait_up(side, side->conn);
		uint64_t offset = 0;
		CHECK_IS(get_until_error(side, 1, &offset), -ENETDOWN);
	} else {
		connect_by(side, HR_TRANSPORT_VERBS);
		side_wait_up(side, side->conn);
	}
	side_meet(side);
}

/* With the port down there is another way. */
static void a_port_that_is_down_is_not_used(struct side *side)
{
	if (side->index == 0) {
		setenv("HR_VERBS_DOUBLE_FAULT", "port-down:40", 1);
		connect_by(side, HR_TRANSPORT_VERBS | HR_TRANSPORT_TCP);
		side_wait_up(side, side->conn);
		CHECK_IS(put_until_error(side), -ENETDOWN);
		side_meet(side);
		hr_conn_close(side->conn);
	} else {
		connect_by(side, HR_TRANSPORT_VERBS | HR_TRANSPORT_TCP);
		side_wait_up(side, side->conn);
		side_meet(side);
		hr_conn_close(side->conn);
	}
	side->conn = NULL;
	side_meet(side);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	while (hr_conn_state(side->conn) == 0)
		hr_channel_wait(side->channel, 0, 100);
	CHECK_IS(hr_conn_state(side->conn), 1);
	CHECK(!strcmp(hr_conn_transport(side->conn), "tcp"));
	side_meet(side);
}

/* Spins until the event was taken, then once more; the error of the connection. */
static int error_after(struct side *side, enum ibv_event_type type)
{
	unsigned before = told;
	uint8_t byte;
	struct iovec iov = { &byte, 1 };
	size_t delivered;
	int error = 0;
	injected = type;
	inject = true;
	while (told == before)
		error = hr_channel_get(side->conn, &iov, 1, &delivered);
	return error ? error : hr_channel_get(side->conn, &iov, 1, &delivered);
}

static void events_that_end_a_connection(struct side *side, enum ibv_event_type type, int error, const char *line)
{
	if (side->index == 0) {
		capture();
		CHECK_IS(error_after(side, IBV_EVENT_PORT_ERR), 0); /* over before it was looked at */
		CHECK_IS(error_after(side, IBV_EVENT_GID_CHANGE), 0);
		CHECK_IS(error_after(side, IBV_EVENT_SM_CHANGE), 0);
		CHECK_IS(error_after(side, type), error);
		release();
		CHECK_IS(count(line), 1);
		CHECK_IS(count("headrace["), 1);
	}
	side_meet(side);
}

static void a_failed_queue_pair(struct side *side)
{
	events_that_end_a_connection(side, IBV_EVENT_QP_FATAL, -ECONNRESET, "work queue");
}

/* While the adapter writes into the user's memory: the queue pairs go before get says so. */
static void a_queue_pair_that_fails_with_reads_under_way(struct side *side)
{
	enum { BYTES = 256 << 10 };
	uint8_t *bytes = calloc(BYTES, 1);
	struct iovec iov = { bytes, BYTES };
	size_t moved;
	int error = 0;
	if (side->index == 0) {
		setenv("HR_VERBS_DOUBLE_LATENCY_NS", "60000000000", 1); /* its reads stay under way */
		connect_by(side, HR_TRANSPORT_VERBS);
		side_wait_up(side, side->conn);
		struct ibv_context_ops *ops = &last_qp->context->ops;
		post = ops->post_send;
		ops->post_send = post_and_fail_reads;
		destroyed = 0;
		fail_reads = true;
		while (!error)
			error = hr_channel_get(side->conn, &iov, 1, &moved);
		CHECK_IS(error, -ECONNRESET);
		CHECK_IS(told, 1);
		CHECK(destroyed > 0);
	} else {
		connect_by(side, HR_TRANSPORT_VERBS);
		side_wait_up(side, side->conn);
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &moved), 0);
		CHECK_IS(moved, 0);
	}
	side_meet(side);
	hr_conn_close(side->conn);
	side->conn = NULL;
	free(bytes);
}

static void a_failed_completion_queue(struct side *side)
{
	events_that_end_a_connection(side, IBV_EVENT_CQ_ERR, -ECONNRESET, "CQ");
}

static void a_peer_that_may_not(struct side *side)
{
	events_that_end_a_connection(side, IBV_EVENT_QP_ACCESS_ERR, -EPROTO, "access");
}

static void a_failed_device(struct side *side)
{
	events_that_end_a_connection(side, IBV_EVENT_DEVICE_FATAL, -ENETDOWN, "the device failed");
}

static void transport_is(struct side *side, const char *name)
{
	while (hr_conn_state(side->conn) == 0)
		hr_channel_wait(side->channel, 0, 100);
	CHECK_IS(hr_conn_state(side->conn), 1);
	CHECK(!strcmp(hr_conn_transport(side->conn), name));
	side_meet(side);
}

static void partition_and_service_are_those_asked_for(struct side *side)
{
	setenv("HEADRACE_IB_PKEY", "0x8001", 1);
	setenv("HEADRACE_IB_SL", "3", 1);
	setenv("HEADRACE_IB_TRAFFIC_CLASS", "104", 1);
	connect_by(side, HR_TRANSPORT_VERBS);
	transport_is(side, "verbs");
	CHECK_IS(seen_init.pkey_index, 1);
	CHECK_IS(seen_rtr.ah_attr.sl, 3);
	CHECK_IS(seen_rtr.ah_attr.grh.traffic_class, 104);
}

static void the_first_partition_is_the_default(struct side *side)
{
	connect_by(side, HR_TRANSPORT_VERBS);
	transport_is(side, "verbs");
	CHECK_IS(seen_init.pkey_index, 0);
	CHECK_IS(seen_rtr.ah_attr.sl, 0);
}

static void other_partitions_are_not_reached(struct side *side)
{
	setenv("HEADRACE_IB_PKEY", side->index ? "auto" : "1", 1);
	connect_by(side, HR_TRANSPORT_VERBS | HR_TRANSPORT_TCP);
	transport_is(side, "tcp");
}

static void limited_members_do_not_reach_each_other(struct side *side)
{
	setenv("HEADRACE_IB_PKEY", "2", 1);
	connect_by(side, HR_TRANSPORT_VERBS | HR_TRANSPORT_TCP);
	transport_is(side, "tcp");
}

static void opening_fails(struct side *side, const char *variable, const char *value, int error)
{
	hr_channel_attr_t attr = side_attr(side);
	hr_channel_t *channel;
	hr_card_t card;
	setenv(variable, value, 1);
	capture();
	CHECK_IS(hr_channel_init(&attr, &channel, &card), error);
	release();
	CHECK(count(variable) >= 1);
	unsetenv(variable);
}

static void wrong_settings_are_named(struct side *side)
{
	opening_fails(side, "HEADRACE_IB_PKEY", "0x1234", -ENODEV);
	opening_fails(side, "HEADRACE_IB_PKEY", "0x8000", -EINVAL);
	opening_fails(side, "HEADRACE_IB_PKEY", "0x18001", -EINVAL);
	opening_fails(side, "HEADRACE_IB_PKEY", "one", -EINVAL);
	opening_fails(side, "HEADRACE_IB_SL", "16", -EINVAL);
	opening_fails(side, "HEADRACE_IB_TRAFFIC_CLASS", "256", -EINVAL);
}

static const struct test_case cases[] = {
	{ "a-port-that-goes-down-ends-puts", a_port_that_goes_down_ends_puts, PAIR_OWN_SETUP },
	{ "a-port-that-goes-down-wakes-a-sleeper", a_port_that_goes_down_wakes_a_sleeper,
	  PAIR_OWN_SETUP | PAIR_NO_SPIN },
	{ "a-port-that-is-down-is-not-used", a_port_that_is_down_is_not_used, PAIR_OWN_SETUP },
	{ "a-failed-queue-pair", a_failed_queue_pair, 0 },
	{ "a-queue-pair-that-fails-with-reads-under-way", a_queue_pair_that_fails_with_reads_under_way,
	  PAIR_OWN_SETUP },
	{ "a-failed-completion-queue", a_failed_completion_queue, 0 },
	{ "a-peer-that-may-not", a_peer_that_may_not, 0 },
	{ "a-failed-device", a_failed_device, 0 },
	{ "partition-and-service-are-those-asked-for", partition_and_service_are_those_asked_for, PAIR_OWN_SETUP },
	{ "the-first-partition-is-the-default", the_first_partition_is_the_default, PAIR_OWN_SETUP },
	{ "other-partitions-are-not-reached", other_partitions_are_not_reached, PAIR_OWN_SETUP },
	{ "limited-members-do-not-reach-each-other", limited_members_do_not_reach_each_other, PAIR_OWN_SETUP },
	{ "wrong-settings-are-named", wrong_settings_are_named, PAIR_OWN_SETUP },
};

int main(void)
{
	return pair_run_all(cases, sizeof cases / sizeof *cases, HR_TRANSPORT_VERBS, "verbs");
}
