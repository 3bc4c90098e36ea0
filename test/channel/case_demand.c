/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections on demand: one side has the other's card and connects, the other learns of it. */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void greet(struct side *side)
{
	uint64_t mine = 2000 + (uint64_t)side->index, theirs = 0;
	put_all(side, &mine, sizeof mine);
	get_all(side, &theirs, sizeof theirs);
	CHECK_IS(theirs, 2000 + !side->index);
}

/* Sleeps until a peer has come, in the caller's own poll or in the channel's wait. */
static void wait_for_incoming(struct side *side, bool by_poll, hr_card_t *card)
{
	while (!hr_channel_incoming(side->channel, card)) {
		struct pollfd entry = { .fd = hr_channel_fd(side->channel), .events = POLLIN };
		if (!by_poll)
			CHECK_IS(hr_channel_wait(side->channel, 0, -1), 1);
		else if (!hr_channel_arm(side->channel, 0))
			CHECK_IS(poll(&entry, 1, -1), 1);
	}
}

/* The one that waits never sees the other's card but through the channel. Uids are random, and must not matter. */
static void a_peer_that_comes_by_itself(struct side *side)
{
	for (int i = 0; i < 12; i++) {
		hr_channel_attr_t attr = side_attr(side);
		side_open(side, &attr);
		hr_card_t card = side->peer;
		if (side->index == 1) {
			memset(&card, 0, sizeof card);
			wait_for_incoming(side, i % 2, &card);
			CHECK(!memcmp(&card, &side->peer, sizeof card));
			CHECK_IS(hr_channel_incoming(side->channel, &card), 0); /* told once */
		} else if (i % 3 == 0) {
			usleep(5000); /* the other sleeps by then */
		}
		CHECK_IS(hr_channel_connect(side->channel, &card, NULL, &side->conn), 0);
		greet(side);
		CHECK_IS(hr_channel_incoming(side->channel, &card), 0);
		hr_channel_finalize(side->channel);
	}
	side->channel = NULL;
}

/* Both connect at the same moment, often enough that their streams cross in every way. */
static void both_at_once(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	for (unsigned i = 0; i < 300 / side->scale + 20; i++) {
		side_meet(side);
		CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
		greet(side);
		hr_card_t card;
		CHECK_IS(hr_channel_incoming(side->channel, &card), 0);
		side_meet(side);
		hr_conn_close(side->conn);
	}
}

/* A process that has no descriptor left when a peer comes, and sleeps, takes it when there is one again. */
static void no_descriptor_for_a_while(struct side *side)
{
	struct rlimit whole, spent;
	pid_t pid = getpid();
	hr_channel_attr_t attr = side_attr(side);
	hr_card_t card;
	side_open(side, &attr);
	CHECK_IS(getrlimit(RLIMIT_NOFILE, &whole), 0);
	if (side->index == 0) {
		side_receive(side, &pid, sizeof pid);
		CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
		CHECK(hr_conn_state(side->conn) >= 0);
		usleep(100000); /* the other has tried by then, and sleeps */
		CHECK_IS(prlimit(pid, RLIMIT_NOFILE, &whole, NULL), 0);
	} else {
		int next = dup(0);
		CHECK(next >= 0);
		close(next);
		spent = (struct rlimit){ (rlim_t)next, whole.rlim_max };
		CHECK_IS(setrlimit(RLIMIT_NOFILE, &spent), 0);
		side_send(side, &pid, sizeof pid);
		while (!hr_channel_incoming(side->channel, &card))
			CHECK_IS(hr_channel_wait(side->channel, 0, 2 * PAIR_TIMEOUT_MS), 1);
		CHECK_IS(hr_channel_connect(side->channel, &card, NULL, &side->conn), 0);
	}
	greet(side);
}

/* One that is not answered gives up in its time; it can come again, and is told of anew. */
static void a_peer_that_is_not_answered(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	hr_card_t card;
	if (side->index == 0)
		attr.timeout_ms = 1000;
	side_open(side, &attr);
	if (side->index == 0) {
		CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
		int state;
		while ((state = hr_conn_state(side->conn)) == 0)
			CHECK(hr_channel_wait(side->channel, 0, -1) >= 0);
		CHECK_IS(state, -ETIMEDOUT);
		hr_conn_close(side->conn);
		side_meet(side);
	} else {
		wait_for_incoming(side, false, &card);
		side_meet(side);
		CHECK_IS(hr_channel_incoming(side->channel, &card), 0); /* told once */
		CHECK_IS(hr_channel_wait(side->channel, 0, 0), 0);
	}
	side_meet(side);
	if (side->index == 1)
		wait_for_incoming(side, true, &card);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	greet(side);
}

enum { PATIENT_MS = 300 };

static void open_patient(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.flags = HR_CHANNEL_PATIENT;
	attr.timeout_ms = PATIENT_MS;
	side_open(side, &attr);
}

/* The time-out passes without a call on the channel: that is what is waited for. */
static void be_away(void)
{
	usleep(1500 * PATIENT_MS);
}

/* One that came is kept while nobody looks, and when it has been told of it has the whole time to be answered. */
static void a_patient_one_answers_late(struct side *side)
{
	open_patient(side);
	hr_card_t card = side->peer;
	if (side->index == 1) {
		CHECK_IS(hr_channel_wait(side->channel, 0, -1), 1); /* its hello has been read */
		be_away();
		CHECK_IS(hr_channel_wait(side->channel, 0, 0), 0);
		CHECK_IS(hr_channel_incoming(side->channel, &card), 1);
		CHECK_IS(hr_channel_wait(side->channel, 0, 0), 0);
		be_away(); /* but the first call after that is the answer */
	}
	CHECK_IS(hr_channel_connect(side->channel, &card, NULL, &side->conn), 0);
	greet(side);
}

/* One that has been told of and is not answered is sent away in the end. */
static void a_patient_one_does_not_answer(struct side *side)
{
	hr_card_t card;
	char done;
	open_patient(side);
	if (side->index == 1) {
		struct pollfd over = { .fd = side->sync, .events = POLLIN };
		wait_for_incoming(side, false, &card);
		while (poll(&over, 1, 0) == 0)
			CHECK(hr_channel_wait(side->channel, 0, PATIENT_MS) >= 0);
		side_receive(side, &done, 1);
		return;
	}
	int state;
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	while ((state = hr_conn_state(side->conn)) == 0)
		CHECK(hr_channel_wait(side->channel, 0, -1) >= 0);
	CHECK_IS(state, -ECONNRESET);
	side_send(side, "", 1);
}

enum { CLIENTS = 20, ROUNDS = 5 };

/* What a server keeps for each client, by the connection's own pointer. */
struct client {
	hr_conn_t *conn;
	uint64_t heard;
	uint64_t value; /* of which have bytes have come */
	size_t have;
};

static void serve(struct client *client)
{
	struct iovec iov = { (char *)&client->value + client->have, sizeof client->value - client->have };
	size_t moved;
	CHECK_IS(hr_channel_get(client->conn, &iov, 1, &moved), 0);
	client->have += moved;
	if (client->have < sizeof client->value)
		return;
	CHECK_IS(client->value % ROUNDS, client->heard);
	client->heard++;
	for (client->have = 0; client->have < sizeof client->value; client->have += moved) {
		iov = (struct iovec){ (char *)&client->value + client->have, sizeof client->value - client->have };
		CHECK_IS(hr_channel_put(client->conn, &iov, 1, &moved), 0); /* there is room: each waits for its answer */
	}
	client->have = 0;
}

/* Serves whoever has something, and looks at no other. */
static void be_server(struct side *side)
{
	struct client clients[CLIENTS] = { { 0 } };
	int known = 0;
	for (uint64_t heard = 0; heard < CLIENTS * ROUNDS;) {
		hr_card_t card;
		hr_conn_t *conn;
		while (hr_channel_incoming(side->channel, &card)) {
			struct client *client = &clients[known++];
			CHECK(known <= CLIENTS);
			CHECK_IS(hr_channel_connect(side->channel, &card, NULL, &client->conn), 0);
			CHECK(!hr_conn_user(client->conn));
			hr_conn_set_user(client->conn, client);
		}
		while ((conn = hr_channel_ready(side->channel, 0)))
			serve(hr_conn_user(conn));
		heard = 0;
		for (int i = 0; i < known; i++)
			heard += clients[i].heard;
		if (heard < CLIENTS * ROUNDS)
			CHECK_IS(hr_channel_wait(side->channel, 0, -1), 1);
	}
	CHECK_IS(known, CLIENTS);
}

static void be_clients(struct side *side)
{
	struct side clients[CLIENTS];
	hr_channel_attr_t attr = side_attr(side);
	attr.flags = HR_CHANNEL_NO_LISTEN;
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = *side;
		CHECK_IS(hr_channel_init(&attr, &clients[i].channel, &clients[i].own), 0);
		CHECK_IS(hr_channel_connect(clients[i].channel, &side->peer, NULL, &clients[i].conn), 0);
	}
	uint64_t random = 5;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CLIENTS; i++) {
			uint64_t value = (uint64_t)(i * ROUNDS + round), answer = 0;
			put_all(&clients[i], &value, sizeof value);
			if (rng(&random) % 8 == 0)
				usleep(1000);
			get_all(&clients[i], &answer, sizeof answer);
			CHECK_IS(answer, value);
		}
	}
	side_meet(side);
	for (int i = 0; i < CLIENTS; i++)
		hr_channel_finalize(clients[i].channel);
}

static void a_server_of_many(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	if (side->index == 0) {
		be_server(side);
		side_meet(side);
	} else {
		be_clients(side);
	}
}

const struct test_case demand_cases[] = {
	{ "a-peer-that-comes-by-itself", a_peer_that_comes_by_itself, PAIR_OWN_SETUP },
	{ "both-at-once", both_at_once, PAIR_OWN_SETUP },
	{ "a-peer-that-is-not-answered", a_peer_that_is_not_answered, PAIR_OWN_SETUP },
	{ "a-patient-one-answers-late", a_patient_one_answers_late, PAIR_OWN_SETUP },
	{ "a-patient-one-does-not-answer", a_patient_one_does_not_answer, PAIR_OWN_SETUP },
	{ "a-server-of-many", a_server_of_many, PAIR_OWN_SETUP },
	{ "no-descriptor-for-a-while", no_descriptor_for_a_while, PAIR_OWN_SETUP },
	{ 0 },
};
