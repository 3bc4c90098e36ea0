/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start-up under a process manager that speaks version 1 of PMI: mpiexec.hydra. Each command is a line, and so is its answer:
 * "cmd=get kvsname=NAME key=KEY" is answered by "cmd=get_result rc=0 msg=success value=VALUE". Protocol: "PMI: A Scalable
 * Parallel Process-Management Interface for Extreme-Scale Systems" (Balaji et al., EuroMPI 2010).
 */
#include "adi/core/launch.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct launch_wire wire = { .fd = -1 };
static char kvs[256];
static size_t value_max;
static int my_rank;
static bool meeting, met; /* the barrier of pmi1_meet_start has begun; its answer has arrived */

static int send_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int send_line(const char *format, ...)
{
	char text[LAUNCH_TEXT];
	va_list arguments;
	va_start(arguments, format);
	int len = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return len < 0 || (size_t)len >= sizeof text ? -EMSGSIZE : launch_wire_send(&wire, text, (size_t)len);
}

/* Reads the answer, which must be this command, with rc=0 or no rc. The answer to the barrier of MPI_Finalize may come before the
 * answer to a command that was sent later. */
static int receive(const char *command, char text[LAUNCH_TEXT])
{
	char got[64], rc[16] = "0";
	bool known;
	do {
		int error = launch_wire_line(&wire, text);
		if (error)
			return error;
		known = launch_field(text, "cmd", ' ', got, sizeof got);
	} while (known && meeting && !met && strcmp(command, got) && (met = !strcmp(got, "barrier_out")));
	launch_field(text, "rc", ' ', rc, sizeof rc);
	if (known && !strcmp(got, command) && !strcmp(rc, "0"))
		return 0;
	hr_log(HR_LOG_ERROR, "adi: the process manager answered \"%s\"; expected: cmd=%s and rc=0", text, command);
	return -EPROTO;
}

static int get(const char *key, char *value, size_t max)
{
	char text[LAUNCH_TEXT];
	int error = send_line("cmd=get kvsname=%s key=%s\n", kvs, key);
	if (!error)
		error = receive("get_result", text);
	if (error)
		return error;
	if (launch_field(text, "value", ' ', value, max))
		return 0;
	hr_log(HR_LOG_ERROR, "adi: the process manager answered \"%s\" for the key %s; expected: value=", text, key);
	return -EPROTO;
}

static int start(void)
{
	char text[LAUNCH_TEXT], number[16];
	int error = send_line("cmd=init pmi_version=1 pmi_subversion=1\n");
	if (!error)
		error = receive("response_to_init", text);
	if (!error)
		error = send_line("cmd=get_maxes\n");
	if (!error)
		error = receive("maxes", text);
	if (error)
		return error;
	value_max = launch_field(text, "vallen_max", ' ', number, sizeof number) ? strtoul(number, NULL, 10) : 0;
	if (value_max < 16)
		return -EPROTO;
	if (value_max > LAUNCH_TEXT / 2)
		value_max = LAUNCH_TEXT / 2;
	error = send_line("cmd=get_my_kvsname\n");
	if (!error)
		error = receive("my_kvsname", text);
	return error ? error : launch_field(text, "kvsname", ' ', kvs, sizeof kvs) ? 0 : -EPROTO;
}

static int pmi1_init(int *rank, int *size, int *local_size)
{
	char mapping[LAUNCH_TEXT];
	meeting = met = false;
	int error = launch_wire_open(&wire), n = launch_number("PMI_SIZE");
	if (error)
		return error;
	my_rank = launch_number("PMI_RANK");
	if (my_rank < 0 || n <= my_rank) {
		hr_log(HR_LOG_ERROR, "adi: PMI_FD is set, but PMI_RANK and PMI_SIZE are no rank and number of ranks");
		return -EINVAL;
	}
	error = start();
	if (error)
		return error;
	*rank = my_rank;
	*size = n;
	*local_size = get("PMI_process_mapping", mapping, sizeof mapping) ? 1 : launch_local_size(mapping, my_rank, n);
	return 0;
}

static int barrier_start(void)
{
	return send_line("cmd=barrier_in\n");
}

static int barrier_end(void)
{
	char text[LAUNCH_TEXT];
	return receive("barrier_out", text);
}

static int card_publish(const hr_card_t *card)
{
	char value[LAUNCH_TEXT], text[LAUNCH_TEXT];
	int error = 0;
	for (int i = 0; !error && launch_card_text(card, i, value_max, value); i++) {
		error = send_line("cmd=put kvsname=%s key=headrace-%d-%d value=%s\n", kvs, my_rank, i, value);
		if (!error)
			error = receive("put_result", text);
	}
	return error;
}

static int pmi1_fetch(int rank, hr_card_t *card)
{
	char key[64], value[LAUNCH_TEXT];
	bool more = true;
	int error = 0;
	card->len = 0;
	for (int i = 0; !error && more; i++) {
		snprintf(key, sizeof key, "headrace-%d-%d", rank, i);
		error = get(key, value, sizeof value);
		if (!error && launch_card_add(card, value, &more))
			error = launch_card_invalid(rank, value);
	}
	return error;
}

static int pmi1_publish(const hr_card_t *card)
{
	int error = card_publish(card);
	if (!error)
		error = barrier_start();
	return error ? error : barrier_end();
}

static int pmi1_meet_start(void)
{
	int error = barrier_start();
	meeting = !error;
	return error;
}

static int pmi1_meet_test(void)
{
	if (met)
		return 1;
	if (!launch_wire_readable(&wire))
		return 0;
	int error = barrier_end();
	return error ? error : 1;
}

static void pmi1_abort(int code, const char *message)
{
	(void)message;
	send_line("cmd=abort exitcode=%d\n", code);
}

static void pmi1_finalize(void)
{
	char text[LAUNCH_TEXT];
	if (!send_line("cmd=finalize\n"))
		receive("finalize_ack", text);
	launch_wire_close(&wire);
}

const struct launch_manager launch_pmi1 = {
	pmi1_init, pmi1_publish, pmi1_fetch, pmi1_meet_start, pmi1_meet_test, pmi1_abort, pmi1_finalize,
};
