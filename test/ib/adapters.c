/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HEADRACE_IB_DEVICE as a list: the connections between two processes are spread over the listed devices and ports, on
 * the libibverbs double with several devices. Most cases put each port on a network of its own ("rails"): a connection
 * works only if both sides have chosen the same entry. The program replaces ibv_modify_qp by a
 * function that records the ports, and then calls the real one.
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

enum { DEVICES = 3, PORTS = 2, QPS = 2 };

static unsigned pairs[DEVICES][PORTS + 1]; /* queue pairs that were given this port */
static struct { unsigned device, port; } latest;

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int) = dlsym(RTLD_NEXT, "ibv_modify_qp");
	if (mask & IBV_QP_PORT) {
		const char *name = ibv_get_device_name(qp->context->device);
		latest.device = (unsigned)(name[strlen("double")] - '0');
		latest.port = attr->port_num;
		CHECK(latest.device < DEVICES && latest.port >= 1 && latest.port <= PORTS);
		pairs[latest.device][latest.port]++;
	}
	return real(qp, attr, mask);
}

static const char *fault_device; /* the only device that gets HR_VERBS_DOUBLE_FAULT */

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*real)(struct ibv_device *) = dlsym(RTLD_NEXT, "ibv_open_device");
	if (fault_device && !strcmp(fault_device, ibv_get_device_name(device)))
		setenv("HR_VERBS_DOUBLE_FAULT", "port-down:1", 1);
	else
		unsetenv("HR_VERBS_DOUBLE_FAULT");
	return real(device);
}

static void use_double(const char *devices, const char *ports, const char *rails)
{
	setenv("HR_VERBS_DOUBLE_DEVICES", devices, 1);
	setenv("HR_VERBS_DOUBLE_PORTS", ports, 1);
	setenv("HR_VERBS_DOUBLE_RAILS", rails, 1);
}

/* Opens a channel, as each thread of a client of remote CUDA does. Only side 1 dials, so that each side sends one hello
 * for each connection. */
static void open_with(struct side *side, const char *list, uint32_t transports)
{
	setenv("HEADRACE_IB_DEVICE", list, 1);
	hr_channel_attr_t attr = side_attr(side);
	attr.transports = transports;
	attr.flags = side->index ? HR_CHANNEL_NO_LISTEN : 0;
	side_open(side, &attr);
}

/* Opens a connection and sends bytes both ways. Returns 0 or the connection's error. */
static int talk(struct side *side)
{
	enum { BYTES = 300000 };
	uint8_t *out = calloc(BYTES, 1), *in = calloc(BYTES, 1);
	size_t sent = 0, got = 0, moved;
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	pattern_fill((uint64_t)side->index, 0, out, BYTES);
	int error = 0;
	while (!error && (sent < BYTES || got < BYTES)) {
		struct iovec to = { out + sent, BYTES - sent }, from = { in + got, BYTES - got };
		size_t before = sent + got;
		error = sent < BYTES ? hr_channel_put(side->conn, &to, 1, &moved) : 0;
		sent += error || sent == BYTES ? 0 : moved;
		if (!error && got < BYTES) {
			error = hr_channel_get(side->conn, &from, 1, &moved);
			got += error ? 0 : moved;
		}
		/* A side that only receives learns of the peer's failure when it is about to sleep. */
		if (!error && sent + got == before)
			hr_channel_wait(side->channel, 1, 1000);
	}
	if (!error)
		pattern_check((uint64_t)!side->index, 0, in, BYTES);
	free(out);
	free(in);
	return error;
}

/* Opens n channels and a connection of each, which stay open. */
static void talk_on(struct side *side, const char *list, uint32_t transports, int n, const char *transport)
{
	struct side others[8];
	CHECK(n <= 8);
	for (int i = 0; i < n; i++) {
		others[i] = *side;
		open_with(&others[i], list, transports);
		CHECK_IS(talk(&others[i]), 0);
		CHECK(!strcmp(hr_conn_transport(others[i].conn), transport));
	}
	side_meet(side);
	for (int i = 0; i < n; i++)
		hr_channel_finalize(others[i].channel);
}

static void count_is(unsigned device, unsigned port, unsigned connections)
{
	CHECK_IS(pairs[device][port], connections * QPS);
}

static void two_devices_with_two_ports(struct side *side)
{
	use_double("2", "2", "1");
	talk_on(side, "double0:1,double0:2,double1:1,double1:2", HR_TRANSPORT_VERBS, 8, "verbs");
	for (unsigned device = 0; device < 2; device++)
		for (unsigned port = 1; port <= 2; port++)
			count_is(device, port, 2);
}

static void the_first_usable_port_of_each_device(struct side *side)
{
	use_double("2", "2", "0");
	setenv("HR_VERBS_DOUBLE_DOWN", "double0:1", 1);
	talk_on(side, "double0,double1", HR_TRANSPORT_VERBS, 4, "verbs");
	count_is(0, 2, 2);
	count_is(1, 1, 2);
}

static void lists_of_different_lengths(struct side *side)
{
	use_double("3", "1", "0");
	talk_on(side, side->index ? "double2" : "double0,double1,double2", HR_TRANSPORT_VERBS, 6, "verbs");
	for (unsigned device = 0; device < 3; device++)
		count_is(device, 1, side->index ? (device == 2) * 6 : 2);
}

/* Entry 0 of side 1 has its only peer at entry 1 of side 0. */
static void lists_in_different_order(struct side *side)
{
	use_double("2", "1", "1");
	setenv("HR_VERBS_DOUBLE_LINK", "infiniband", 1);
	talk_on(side, side->index ? "double1,double0" : "double0,double1", HR_TRANSPORT_VERBS, 4, "verbs");
	count_is(0, 1, 2);
	count_is(1, 1, 2);
}

static void a_port_is_down_at_one_end(struct side *side)
{
	use_double("3", "1", "1");
	if (side->index)
		setenv("HR_VERBS_DOUBLE_DOWN", "double1:1", 1);
	talk_on(side, "double0,double1,double2", HR_TRANSPORT_VERBS, 6, "verbs");
	count_is(1, 1, 0);
	CHECK(pairs[0][1] && pairs[2][1]);
}

static void a_device_is_absent_at_one_end(struct side *side)
{
	use_double(side->index ? "2" : "3", "1", "1");
	talk_on(side, "double2,double1,double0", HR_TRANSPORT_VERBS, 6, "verbs");
	count_is(2, 1, 0);
	CHECK(pairs[0][1] && pairs[1][1]);
}

/* The first request on double1 of side 0 finds its port down. The channel goes on with the other one. */
static void a_port_goes_down(struct side *side)
{
	use_double("2", "1", "1");
	fault_device = side->index ? NULL : "double1";
	open_with(side, "double0,double1", HR_TRANSPORT_VERBS);
	int errors = 0;
	for (int i = 0; i < 6; i++) {
		int error = talk(side);
		CHECK(!error == (latest.device == 0));
		errors += error != 0;
		side_meet(side);
		hr_conn_close(side->conn);
		side_meet(side);
	}
	CHECK_IS(errors, 1);
	count_is(0, 1, 5);
	count_is(1, 1, 1);
}

static void without_a_common_network_another_transport(struct side *side)
{
	use_double("2", "1", "1");
	setenv("HR_VERBS_DOUBLE_LINK", "infiniband", 1);
	talk_on(side, side->index ? "double1" : "double0", HR_TRANSPORT_VERBS | HR_TRANSPORT_TCP, 2, "tcp");
}

/* ---- the setting ---- */

/* Returns what hr_channel_init returns, and whether it logged that text. */
static int init_with(struct side *side, const char *list, const char *text)
{
	static char log[4096];
	FILE *file = tmpfile();
	int err = dup(2);
	CHECK(file && err >= 0);
	setenv("HEADRACE_IB_DEVICE", list, 1);
	hr_channel_attr_t attr = side_attr(side);
	attr.transports = HR_TRANSPORT_VERBS;
	dup2(fileno(file), 2);
	hr_channel_t *channel = NULL;
	hr_card_t card;
	int error = hr_channel_init(&attr, &channel, &card);
	dup2(err, 2);
	close(err);
	rewind(file);
	log[fread(log, 1, sizeof log - 1, file)] = 0;
	fclose(file);
	if (!error)
		hr_channel_finalize(channel);
	if (!strstr(log, text))
		fprintf(stderr, "HEADRACE_IB_DEVICE=%s: \"%s\" is not in: %s", list, text, log);
	CHECK(strstr(log, text));
	return error;
}

static void invalid_lists_are_named(struct side *side)
{
	use_double("2", "2", "0");
	CHECK_IS(init_with(side, "double0,", "a name is empty"), -EINVAL);
	CHECK_IS(init_with(side, ",double0", "a name is empty"), -EINVAL);
	CHECK_IS(init_with(side, "double0,:1", "a name is empty"), -EINVAL);
	CHECK_IS(init_with(side, "double0:", "a port is not a number from 1 to 255"), -EINVAL);
	CHECK_IS(init_with(side, "double0:0", "a port is not a number from 1 to 255"), -EINVAL);
	CHECK_IS(init_with(side, "double0:1x", "a port is not a number from 1 to 255"), -EINVAL);
	CHECK_IS(init_with(side, "double0:256", "a port is not a number from 1 to 255"), -EINVAL);
	CHECK_IS(init_with(side, "double0,double1,double0", "listed twice"), -EINVAL);
	CHECK_IS(init_with(side, "a,b,c,d,e,f,g,h,i", "too many names"), -EINVAL);
	char name[100] = { 0 };
	memset(name, 'x', sizeof name - 1);
	CHECK_IS(init_with(side, name, "a name is too long"), -EINVAL);
	CHECK_IS(init_with(side, "mlx5_0", "no RDMA device mlx5_0; devices of this host: double0, double1"), -ENODEV);
	CHECK_IS(init_with(side, "double0:3", "device double0 has ports 1 to 2: port 3"), -ENODEV);
	CHECK_IS(init_with(side, "double0,mlx5_0", "no RDMA device mlx5_0; devices of this host: double0, double1"), 0);
	setenv("HR_VERBS_DOUBLE_DOWN", "double1:1,double1:2", 1);
	CHECK_IS(init_with(side, "double0,double1", "double1 cannot be used: no active port"), 0);
}

static const struct test_case cases[] = {
	{ "two-devices-with-two-ports", two_devices_with_two_ports, PAIR_OWN_SETUP },
	{ "the-first-usable-port-of-each-device", the_first_usable_port_of_each_device, PAIR_OWN_SETUP },
	{ "lists-of-different-lengths", lists_of_different_lengths, PAIR_OWN_SETUP },
	{ "lists-in-different-order", lists_in_different_order, PAIR_OWN_SETUP },
	{ "a-port-is-down-at-one-end", a_port_is_down_at_one_end, PAIR_OWN_SETUP },
	{ "a-device-is-absent-at-one-end", a_device_is_absent_at_one_end, PAIR_OWN_SETUP },
	{ "a-port-goes-down", a_port_goes_down, PAIR_OWN_SETUP },
	{ "without-a-common-network-another-transport", without_a_common_network_another_transport, PAIR_OWN_SETUP },
	{ "invalid-lists-are-named", invalid_lists_are_named, PAIR_OWN_SETUP },
};

int main(void)
{
	return pair_run_all(cases, sizeof cases / sizeof *cases, HR_TRANSPORT_VERBS, "verbs");
}
