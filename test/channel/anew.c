/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that come in another order than set-up has it: anew, while this side still holds the connection that has ended;
 * and one whose own stream is to be used, which it says late. All ends are in this process; the last peer is played by
 * hand.
 */
#include "config.h"

#include "headrace/channel.h"
#include "rdma_channel/card.h"
#include "rdma_channel/wireup.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENT_MS 1000

static const uint32_t transports[] = { HR_TRANSPORT_SHM, HR_TRANSPORT_TCP };

struct end {
	hr_channel_t *channel;
	hr_card_t card;
	hr_conn_t *conn;
};
static struct end end[2];

static void open_end(struct end *one, uint32_t transport, uint32_t flags, uint32_t timeout_ms)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = transport;
	attr.flags = flags;
	attr.timeout_ms = timeout_ms;
	ck_assert_int_eq(hr_channel_init(&attr, &one->channel, &one->card), 0);
}

static void connect_to(struct end *one, const hr_card_t *card)
{
	ck_assert_int_eq(hr_channel_connect(one->channel, card, NULL, &one->conn), 0);
}

static void until_up(void)
{
	while (hr_conn_state(end[0].conn) != 1 || hr_conn_state(end[1].conn) != 1)
		for (int i = 0; i < 2; i++)
			ck_assert_int_ge(hr_conn_state(end[i].conn), 0);
}

static int get_byte(struct end *one, char *byte)
{
	struct iovec iov = { byte, 1 };
	size_t delivered;
	int error = hr_channel_get(one->conn, &iov, 1, &delivered);
	return error ? error : (int)delivered;
}

START_TEST(a_peer_that_came_anew_is_told_of_when_the_old_connection_is_closed)
{
	char byte;
	int got;
	hr_card_t card;
	for (int i = 0; i < 2; i++)
		open_end(&end[i], transports[_i], 0, 0);
	connect_to(&end[0], &end[1].card);
	connect_to(&end[1], &end[0].card);
	until_up();
	hr_conn_close(end[1].conn);
	connect_to(&end[1], &end[0].card);
	while ((got = get_byte(&end[0], &byte)) == 0)
		continue;
	ck_assert_int_eq(got, -ESHUTDOWN);
	/* Its hello is read, and of no use yet. */
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(hr_conn_state(end[1].conn), 0);
		ck_assert_int_eq(hr_channel_arm(end[0].channel, 0), 0);
	}
	ck_assert_int_eq(hr_channel_incoming(end[0].channel, &card), 0);
	hr_conn_close(end[0].conn);
	ck_assert_int_eq(hr_channel_arm(end[0].channel, 0), 1);
	ck_assert_int_eq(hr_channel_incoming(end[0].channel, &card), 1);
	ck_assert_mem_eq(&card, &end[1].card, sizeof card);
	connect_to(&end[0], &card);
	until_up();
	for (int i = 0; i < 2; i++)
		hr_channel_finalize(end[i].channel);
}
END_TEST

/* A card like the channel's own, but for the port; of two streams that cross the peer's is used. */
static int be_a_peer(const hr_card_t *own, hr_card_t *card)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof address;
	struct hr_identity identity;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	ck_assert_int_eq(hr_card_decode(own, &identity), 0);
	memset(identity.uid, 0, sizeof identity.uid);
	identity.port = ntohs(address.sin_port);
	hr_card_encode(&identity, card);
	return listener;
}

/* What this process has written to its standard error that contains the text, in lines. */
static int lines_with(FILE *log, const char *text)
{
	char line[300];
	int n = 0;
	rewind(log);
	while (fgets(line, sizeof line, log))
		n += strstr(line, text) != NULL;
	return n;
}

/* The stream that a patient one opened has been waited for longer than its time-out, of which it says so once, in its
 * sleep, too; then the peer says that it has opened one itself. That has the whole time to come; and if it does not, no more. */
START_TEST(a_patient_one_that_yields_begins_to_wait_anew)
{
	struct hr_wireup wireup;
	hr_card_t card;
	char bytes[1000];
	int state;
	FILE *log = tmpfile();
	ck_assert_ptr_nonnull(log);
	ck_assert_int_ge(dup2(fileno(log), STDERR_FILENO), 0);
	setenv("HEADRACE_LOG", "info", 1);
	open_end(&end[0], HR_TRANSPORT_TCP, HR_CHANNEL_PATIENT, PATIENT_MS);
	int listener = be_a_peer(&end[0].card, &card);
	connect_to(&end[0], &card);
	int fd = accept(listener, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(hr_conn_state(end[0].conn), 0);
	ck_assert_int_eq(hr_channel_wait(end[0].channel, 0, 3 * PATIENT_MS / 2), 0);
	ck_assert_int_eq(lines_with(log, "no answer for 1000 ms"), 1);
	hr_wireup_init(&wireup, fd, false);
	hr_wireup_queue(&wireup, HR_WIRE_YIELD, NULL, 0, NULL, 0);
	ck_assert_int_eq(hr_wireup_flush(&wireup), 0);
	ssize_t got;
	while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) != 0) { /* it closes the stream then */
		ck_assert(got > 0 || errno == EAGAIN);
		ck_assert_int_eq(hr_conn_state(end[0].conn), 0);
	}
	while ((state = hr_conn_state(end[0].conn)) == 0)
		ck_assert_int_ge(hr_channel_wait(end[0].channel, 0, -1), 0);
	ck_assert_int_eq(state, -ETIMEDOUT);
	hr_wireup_close(&wireup);
	close(listener);
	fclose(log);
	hr_channel_finalize(end[0].channel);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("peers that come anew or late");
	TCase *tcase = tcase_create("anew");
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, a_peer_that_came_anew_is_told_of_when_the_old_connection_is_closed, 0, 2);
	tcase_add_test(tcase, a_patient_one_that_yields_begins_to_wait_anew);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
