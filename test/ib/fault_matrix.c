/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every design of verbs with every fault that the libibverbs double can make (double_fault.h), in process 0 of a pair
 * whose both ends put and get messages of all lengths at once. Each cell ends in one of two ways: everything arrived at
 * both; or both ends have an error, each only that one from then on, within the time-out, and what was delivered is the
 * beginning of what was put. Both finalize; no descriptor and no memory stays; nothing hangs.
 *
 * A peer that sees the orderly end must have got everything that was accepted for it: an end that follows lost bytes is
 * none in order.
 *
 *	fault_matrix [DESIGN [FAULT]]      one design, one fault
 *
 * Exit status 77: no verbs here. HEADRACE_TEST_LONG=1: more places for each fault.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_AND_STAGING 2105344u /* bytes registered for every connection; beyond them, what cannot be is copied */
#define AMOUNT 600000u    /* bytes each way */
#define LONGEST 150000u   /* of one message: beyond every threshold */
#define TIMEOUT_MS 3000u
#define CALLS_MOST 2000000u

/* What a cell expects. */
enum expectation {
	EITHER,  /* everything, or an error at both */
	ALL,     /* everything: the fault is one that the protocol has to stand */
	DEATH,   /* process 0 is killed, if it came to it */
};

/* What each process did, for the other and for who started them. */
struct record {
	int opened;   /* what hr_channel_init and hr_channel_connect returned */
	int error;    /* the first; 0: none */
	uint64_t put, got;
	uint64_t offered; /* put, and what the last put was offered, which may be delivered before it is accepted */
	bool ended;   /* orderly, by itself */
};

static struct record *records;
static const char *design, *fault;
static enum expectation expectation;

/* The leak detector's, where there is one. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* ---- one process of a cell ---- */

struct flow {
	uint8_t *bytes;
	size_t len, done; /* of the message under way */
	uint64_t random, offset, total;
};

static size_t length_of(struct flow *flow)
{
	static const size_t lengths[] = { 1, 8, 100, 3000, 20000, 70000, LONGEST };
	size_t n = lengths[rng(&flow->random) % (sizeof lengths / sizeof lengths[0])];
	return n < flow->total - flow->offset ? n : (size_t)(flow->total - flow->offset);
}

/* Returns the error; *moved if something did. */
static int put_some(struct side *side, struct flow *flow, bool *moved)
{
	size_t accepted = 0;
	if (flow->done == flow->len) {
		if (flow->offset == flow->total)
			return 0;
		flow->len = length_of(flow);
		flow->done = 0;
		pattern_fill((uint64_t)side->index, flow->offset, flow->bytes, flow->len);
	}
	struct iovec iov = { flow->bytes + flow->done, flow->len - flow->done };
	records[side->index].offered = flow->offset + iov.iov_len;
	int error = hr_channel_put(side->conn, &iov, 1, &accepted);
	if (error)
		return error;
	CHECK(accepted <= iov.iov_len);
	flow->done += accepted;
	flow->offset += accepted;
	records[side->index].put = flow->offset;
	*moved |= accepted > 0;
	return 0;
}

/* A get that was short goes on with the same memory: an adapter may be writing there. */
static int get_some(struct side *side, struct flow *flow, bool *moved)
{
	size_t delivered = 0;
	if (flow->done == flow->len) {
		flow->len = length_of(flow);
		flow->done = 0;
		if (!flow->len)
			flow->len = 1; /* all has come; the end may */
	}
	struct iovec iov = { flow->bytes + flow->done, flow->len - flow->done };
	int error = hr_channel_get(side->conn, &iov, 1, &delivered);
	if (error)
		return error;
	CHECK(delivered <= iov.iov_len);
	pattern_check((uint64_t)!side->index, flow->offset, flow->bytes + flow->done, delivered);
	flow->done += delivered;
	flow->offset += delivered;
	records[side->index].got = flow->offset;
	*moved |= delivered > 0;
	return 0;
}

/* Not so where it ended without a word. */
static bool peer_says_done(struct side *side)
{
	char byte;
	return recv(side->sync, &byte, 1, MSG_DONTWAIT) == 1;
}

/* Both ways at once until all has moved at both ends or this end has failed; returns the error. */
static int exchange(struct side *side)
{
	struct flow out = { malloc(LONGEST), 0, 0, 1 + (uint64_t)side->index, 0, AMOUNT };
	struct flow in = { malloc(LONGEST), 0, 0, 7, 0, AMOUNT };
	bool told = false;
	int error = 0;
	for (unsigned calls = 0; !error; calls++) {
		bool moved = false;
		CHECK(calls < CALLS_MOST);
		/* The error of get comes after everything that arrived: it is the one that counts. */
		int put_error = put_some(side, &out, &moved);
		error = get_some(side, &in, &moved);
		if (!error && !moved && put_error)
			error = put_error;
		if (error || moved)
			continue;
		if (out.offset == AMOUNT && in.offset == AMOUNT && !told) {
			told = true;
			if (send(side->sync, "d", 1, MSG_NOSIGNAL) != 1)
				continue; /* it is gone, and the pipe will say so */
		}
		if (told && peer_says_done(side))
			break;
		int woken = hr_channel_wait(side->channel, out.offset < AMOUNT, told ? 5 : (int)TIMEOUT_MS);
		CHECK(woken >= 0);
	}
	free(out.bytes);
	free(in.bytes);
	return error;
}

static void check_only_fails(struct side *side, int error)
{
	uint8_t byte = 0;
	struct iovec iov = { &byte, 1 };
	size_t moved;
	for (int i = 0; i < 3; i++) {
		CHECK_IS(hr_channel_get(side->conn, &iov, 1, &moved), error);
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &moved), error);
		CHECK_IS(hr_conn_state(side->conn), error);
	}
}

static int open_and_connect(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.timeout_ms = TIMEOUT_MS;
	memset(&side->own, 0, sizeof side->own);
	int error = hr_channel_init(&attr, &side->channel, &side->own);
	side_swap_cards(side);
	if (error || !side->peer.len)
		return error ? error : -ENODEV;
	return hr_channel_connect(side->channel, &side->peer, NULL, &side->conn);
}

static void run(struct side *side)
{
	struct record *own = &records[side->index];
	setenv("HEADRACE_IB_DESIGN", design, 1);
	if (side->index == 0)
		setenv("HR_VERBS_DOUBLE_FAULT", fault, 1);
	alarm(120);
	own->opened = open_and_connect(side);
	if (!own->opened) {
		own->error = exchange(side);
		if (own->error)
			check_only_fails(side, own->error);
	}
	hr_channel_finalize(side->channel);
	side->channel = NULL;
	if (__lsan_do_recoverable_leak_check)
		CHECK_IS(__lsan_do_recoverable_leak_check(), 0);
	own->ended = true;
}

/* ---- what came of it ---- */

static bool wrong(const char *why)
{
	printf("FAIL: %s, %s: %s (0: opened %d, error %d, put %llu, got %llu; 1: opened %d, error %d, put %llu, "
	       "got %llu)\n",
	       design, fault, why, records[0].opened, records[0].error, (unsigned long long)records[0].put,
	       (unsigned long long)records[0].got, records[1].opened, records[1].error,
	       (unsigned long long)records[1].put, (unsigned long long)records[1].got);
	return false;
}

static bool everything_arrived(void)
{
	return records[0].got == AMOUNT && records[1].got == AMOUNT && records[0].put == AMOUNT &&
	       records[1].put == AMOUNT;
}

static bool check_survivor(void)
{
	const struct record *survivor = &records[1];
	if (survivor->opened)
		return wrong("the survivor could not open");
	if (!survivor->error)
		return everything_arrived() || wrong("the survivor knows nothing of it");
	if (survivor->error != -ECONNRESET && survivor->error != -ETIMEDOUT)
		return wrong("the survivor's error is no death");
	return survivor->got <= records[0].offered || wrong("more arrived than was put");
}

static bool check_records(void)
{
	bool failed[2];
	if (expectation == DEATH && !records[0].ended)
		return check_survivor();
	for (int i = 0; i < 2; i++) {
		failed[i] = records[i].opened || records[i].error;
		if (records[i].got > records[!i].offered)
			return wrong("more arrived than was put");
		if (records[i].error == -ESHUTDOWN && records[i].got < records[!i].put)
			return wrong("an orderly end after lost bytes");
	}
	if (everything_arrived()) /* an error may still follow: of the fault, or of the end that closed first */
		return true;
	if (!failed[0] && !failed[1])
		return wrong("bytes are missing and nobody says so");
	if (expectation == ALL)
		return wrong("this is no reason to fail");
	return (failed[0] && failed[1]) || wrong("only one end knows");
}

static const char *only_fault;
static int cells, bad;

__attribute__((format(printf, 2, 3))) static void cell(enum expectation expected, const char *format, ...)
{
	static char text[100];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (only_fault && strcmp(only_fault, text))
		return;
	fault = text;
	expectation = expected;
	memset(records, 0, 2 * sizeof *records);
	const struct test_case test = { text, run, PAIR_OWN_SETUP | (expected == DEATH ? PAIR_0_MAY_DIE : 0) };
	bool good = pair_run(&test, HR_TRANSPORT_VERBS, "verbs", 1) ? check_records()
								    : wrong("a process did not do as it should");
	cells++;
	bad += !good;
}

/* ---- the matrix ---- */

static const char *const statuses[] = {
	"loc_len_err", "loc_qp_op_err", "loc_eec_op_err", "loc_prot_err", "wr_flush_err", "mw_bind_err", "bad_resp_err",
	"loc_access_err", "rem_inv_req_err", "rem_access_err", "rem_op_err", "retry_exc_err", "rnr_retry_exc_err",
	"loc_rdd_viol_err", "rem_inv_rd_req_err", "rem_abort_err", "inv_eecn_err", "inv_eec_state_err", "fatal_err",
	"resp_timeout_err", "general_err",
};
static const char *const calls[] = { "open_device", "alloc_pd", "reg_mr", "create_comp_channel", "create_cq",
				     "create_qp", "modify_qp", "req_notify_cq", "post_send", "poll_cq" };
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_long(void)
{
	const char *wish = getenv("HEADRACE_TEST_LONG");
	return wish && !strcmp(wish, "1");
}

static void completion_errors(void)
{
	static const unsigned places[] = { 1, 12, 2, 3, 5, 30, 60 };
	size_t n = is_long() ? COUNT(places) : 2;
	for (size_t s = 0; s < COUNT(statuses); s++)
		for (size_t p = 0; p < n; p++)
			cell(EITHER, "error:any:%u:%s", places[p], statuses[s]);
	for (size_t p = 0; p < n; p++) {
		cell(EITHER, "error:write:%u:rem_access_err", places[p]);
		cell(EITHER, "error:read:%u:rem_access_err", places[p]);
	}
}

static void calls_that_fail(void)
{
	unsigned most = is_long() ? 12 : 3;
	for (size_t c = 0; c < COUNT(calls); c++) {
		for (unsigned n = 1; n <= most; n++)
			cell(EITHER, "fail:%s:%u", calls[c], n);
		cell(EITHER, "fail:%s:%u+:EIO", calls[c], most + 2);
	}
	static const unsigned budgets[] = { 0, 100000, 1100000, 2200000, 3200000, 3400000 };
	for (size_t b = 0; b < COUNT(budgets); b++)
		cell(budgets[b] < RING_AND_STAGING ? EITHER : ALL, "budget:%u", budgets[b]);
}

static void queues_and_port(void)
{
	static const unsigned places[] = { 1, 4, 25 };
	for (size_t p = 0; p < COUNT(places); p++) {
		cell(EITHER, "overrun:%u", places[p]);
		cell(EITHER, "port-down:%u", places[p]);
		cell(ALL, "hold:%u:%u", 1 + (unsigned)p % 2, places[p]);
	}
	cell(ALL, "rnr:1:3");
}

static void deaths(void)
{
	static const char *const kinds[] = { "write", "read" }, *const when[] = { "post", "half", "done" };
	static const unsigned places[] = { 1, 6, 2, 3, 4, 9, 15, 40 };
	size_t n = is_long() ? COUNT(places) : 2;
	for (size_t k = 0; k < COUNT(kinds); k++)
		for (size_t w = 0; w < COUNT(when); w++)
			for (size_t p = 0; p < n; p++)
				cell(DEATH, "kill:%s:%u:%s", kinds[k], places[p], when[w]);
}

static bool verbs_is_here(void)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = HR_TRANSPORT_VERBS;
	hr_channel_t *channel;
	hr_card_t card;
	if (hr_channel_init(&attr, &channel, &card))
		return false;
	hr_channel_finalize(channel);
	return true;
}

int main(int argc, char **argv)
{
	static const char *const designs[] = { "basic", "piggyback", "pipeline", "zerocopy" };
	if (!verbs_is_here()) {
		printf("SKIP: no RDMA device here\n");
		return 77;
	}
	records = mmap(NULL, 2 * sizeof *records, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(records != MAP_FAILED);
	only_fault = argc > 2 ? argv[2] : NULL;
	for (size_t d = 0; d < COUNT(designs); d++) {
		design = designs[d];
		if (argc > 1 && strcmp(argv[1], design))
			continue;
		int before = cells, bad_before = bad;
		completion_errors();
		calls_that_fail();
		queues_and_port();
		deaths();
		printf("%s: %d cells, %d bad\n", design, cells - before, bad - bad_before);
		fflush(stdout);
	}
	return bad || !cells;
}
