/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start-up under a process manager that speaks version 2 of PMI: srun --mpi=pmi2, mpiexec.hydra. A line agrees on the version.
 * From then on each command has its length in 6 digits in front: "    37cmd=kvs-get;jobid=ID;srcid=-1;key=KEY;" is answered by
 * "cmd=kvs-get-response;found=TRUE;value=VALUE;rc=0;".
 */
#include "adi/core/launch.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_DIGITS 6
#define VALUE_MAX 512

static struct launch_wire wire = { .fd = -1 };
static char job[256];
static int my_rank;
static bool meeting, met; /* the fence of pmi2_meet_start has begun; its answer has arrived */

static int send_command(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int send_command(const char *format, ...)
{
	char text[LAUNCH_TEXT];
	va_list arguments;
	va_start(arguments, format);
	int len = vsnprintf(text + LENGTH_DIGITS, sizeof text - LENGTH_DIGITS, format, arguments);
	va_end(arguments);
	if (len < 0 || (size_t)len >= sizeof text - LENGTH_DIGITS)
		return -EMSGSIZE;
	char digits[16];
	snprintf(digits, sizeof digits, "%6d", len);
	memcpy(text, digits, LENGTH_DIGITS);
	return launch_wire_send(&wire, text, LENGTH_DIGITS + (size_t)len);
}

/* Reads a message: its length, then as many bytes. */
static int message_receive(char text[LAUNCH_TEXT])
{
	int error = launch_wire_bytes(&wire, LENGTH_DIGITS, text);
	if (error)
		return error;
	size_t blanks = strspn(text, " "), digits = strspn(text + blanks, "0123456789");
	if (digits > 0 && blanks + digits == LENGTH_DIGITS)
		return launch_wire_bytes(&wire, strtoul(text, NULL, 10), text);
	hr_log(HR_LOG_ERROR, "adi: the process manager sent \"%s\"; expected: the length of a message, in 6 characters", text);
	return -EPROTO;
}

/* Reads the answer, which must be this command, with rc=0 or no rc. The answer to the fence of MPI_Finalize may come before the
 * answer to a command that was sent later. */
static int receive(const char *command, char text[LAUNCH_TEXT])
{
	char got[64], rc[16] = "0";
	bool known;
	do {
		int error = message_receive(text);
		if (error)
			return error;
		known = launch_field(text, "cmd", ';', got, sizeof got);
	} while (known && meeting && !met && strcmp(command, got) && (met = !strcmp(got, "kvs-fence-response")));
	launch_field(text, "rc", ';', rc, sizeof rc);
	if (known && !strcmp(got, command) && !strcmp(rc, "0"))
		return 0;
	hr_log(HR_LOG_ERROR, "adi: the process manager answered \"%s\"; expected: cmd=%s and rc=0", text, command);
	return -EPROTO;
}

/* Sends nothing; reads a response whose fields found and value have the value of a key. */
static int value_receive(const char *command, char *value, size_t max)
{
	char text[LAUNCH_TEXT], found[16] = "";
	int error = receive(command, text);
	if (error)
		return error;
	launch_field(text, "found", ';', found, sizeof found);
	return !strcmp(found, "TRUE") && launch_field(text, "value", ';', value, max) ? 0 : -ENOKEY;
}

/* Agrees on version 2. */
static int version_agree(void)
{
	static const char hello[] = "cmd=init pmi_version=2 pmi_subversion=0\n";
	char text[LAUNCH_TEXT], version[16], rc[16];
	int error = launch_wire_send(&wire, hello, sizeof hello - 1);
	if (!error)
		error = launch_wire_line(&wire, text);
	if (error)
		return error;
	if (launch_field(text, "pmi_version", ' ', version, sizeof version) && !strcmp(version, "2") &&
	    launch_field(text, "rc", ' ', rc, sizeof rc) && !strcmp(rc, "0"))
		return 0;
	hr_log(HR_LOG_ERROR, "adi: the process manager does not speak PMI-2: \"%s\"", text);
	return -EPROTONOSUPPORT;
}

static int field_number(const char *text, const char *name)
{
	char value[16], *end;
	if (!launch_field(text, name, ';', value, sizeof value) || *value < '0' || *value > '9')
		return -1;
	long number = strtol(value, &end, 10);
	return *end || number > INT_MAX ? -1 : (int)number;
}

static int pmi2_init(int *rank, int *size, int *local_size)
{
	char text[LAUNCH_TEXT], mapping[LAUNCH_TEXT];
	meeting = met = false;
	int error = launch_wire_open(&wire);
	if (error)
		return error;
	const char *id = getenv("PMI_JOBID");
	int wanted = launch_number("PMI_RANK");
	error = version_agree();
	if (!error)
		error = send_command("cmd=fullinit;pmijobid=%s;pmirank=%d;threaded=FALSE;", id ? id : "", wanted < 0 ? 0 : wanted);
	if (!error)
		error = receive("fullinit-response", text);
	if (error)
		return error;
	my_rank = field_number(text, "rank");
	int n = field_number(text, "size");
	if (n < 0)
		n = launch_number("PMI_SIZE");
	if (my_rank < 0 || n <= my_rank) {
		hr_log(HR_LOG_ERROR, "adi: the process manager answered \"%s\": no rank and number of ranks", text);
		return -EPROTO;
	}
	error = send_command("cmd=job-getid;");
	if (!error)
		error = receive("job-getid-response", text);
	if (error || !launch_field(text, "jobid", ';', job, sizeof job))
		return error ? error : -EPROTO;
	*rank = my_rank;
	*size = n;
	error = send_command("cmd=info-getjobattr;key=PMI_process_mapping;");
	bool mapped = !error && !value_receive("info-getjobattr-response", mapping, sizeof mapping);
	*local_size = mapped ? launch_local_size(mapping, my_rank, n) : 1;
	return error;
}

static int fence_start(void)
{
	return send_command("cmd=kvs-fence;");
}

static int fence_end(void)
{
	char text[LAUNCH_TEXT];
	return receive("kvs-fence-response", text);
}

static int card_publish(const hr_card_t *card)
{
	char value[LAUNCH_TEXT], text[LAUNCH_TEXT];
	int error = 0;
	for (int i = 0; !error && launch_card_text(card, i, VALUE_MAX, value); i++) {
		error = send_command("cmd=kvs-put;key=headrace-%d-%d;value=%s;", my_rank, i, value);
		if (!error)
			error = receive("kvs-put-response", text);
	}
	return error;
}

static int pmi2_fetch(int rank, hr_card_t *card)
{
	char value[LAUNCH_TEXT];
	bool more = true;
	int error = 0;
	card->len = 0;
	for (int i = 0; !error && more; i++) {
		error = send_command("cmd=kvs-get;jobid=%s;srcid=-1;key=headrace-%d-%d;", job, rank, i);
		if (!error)
			error = value_receive("kvs-get-response", value, sizeof value);
		if (error == -ENOKEY)
			error = launch_card_invalid(rank, "");
		else if (!error && launch_card_add(card, value, &more))
			error = launch_card_invalid(rank, value);
	}
	return error;
}

static int pmi2_publish(const hr_card_t *card)
{
	int error = card_publish(card);
	if (!error)
		error = fence_start();
	return error ? error : fence_end();
}

static int pmi2_meet_start(void)
{
	int error = fence_start();
	meeting = !error;
	return error;
}

static int pmi2_meet_test(void)
{
	if (met)
		return 1;
	if (!launch_wire_readable(&wire))
		return 0;
	int error = fence_end();
	return error ? error : 1;
}

/* A message must not contain a semicolon that ends the field. */
static void pmi2_abort(int code, const char *message)
{
	char text[256];
	(void)code;
	snprintf(text, sizeof text, "%s", message ? message : "");
	for (char *at = text; *at; at++)
		if (*at == ';' || *at == '\n')
			*at = ',';
	send_command("cmd=abort;isworld=TRUE;msg=%s;", text);
}

static void pmi2_finalize(void)
{
	char text[LAUNCH_TEXT];
	if (!send_command("cmd=finalize;"))
		receive("finalize-response", text);
	launch_wire_close(&wire);
}

const struct launch_manager launch_pmi2 = {
	pmi2_init, pmi2_publish, pmi2_fetch, pmi2_meet_start, pmi2_meet_test, pmi2_abort, pmi2_finalize,
};
