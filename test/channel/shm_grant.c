/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ends of a single copy step by step, in one process. The linker lets the test act while one end is in its
 * system call: the other then takes its units, as it would on another processor.
 */
#include "config.h"

#include "rdma_channel/shm/single.h"

#include "headrace/channel.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE (196u * 1024) /* three units and a short one, less than HR_ZERO_COPY_MIN */

static struct shm_control control;
static struct shm_identity self;
static struct shm_process pushing_process, pulling_process;
static struct shm_pusher pusher;
static struct shm_puller puller;
static uint8_t *from, *to;
static size_t delivered;
static void (*during_read)(void), (*during_write)(void); /* called before the bytes move, once each */
static int reads, writes, failing_writes;

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags);
ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags);

static void act(void (**action)(void))
{
	void (*once)(void) = *action;
	*action = NULL;
	if (once)
		once();
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags)
{
	reads += here->iov_len > sizeof *self.token; /* and not a look at the token alone */
	act(&during_read);
	return __real_process_vm_readv(pid, here, n, there, m, flags);
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags)
{
	writes++;
	act(&during_write);
	if (failing_writes) {
		errno = EPERM;
		return -1;
	}
	return __real_process_vm_writev(pid, here, n, there, m, flags);
}

static void setup(void)
{
	memset(&control, 0, sizeof control);
	shm_identity_open(&self);
	pushing_process = (struct shm_process){ .pid = getpid(), .token_address = (uintptr_t)self.token,
						.token = *self.token, .self = &self, .name = "receiver" };
	pulling_process = pushing_process;
	pulling_process.name = "sender";
	shm_process_probe(&pushing_process);
	shm_process_probe(&pulling_process);
	ck_assert(pulling_process.reachable);
	control.pulls = 1;
	shm_pusher_init(&pusher, &control, &pushing_process, 4);
	puller = (struct shm_puller){ .control = &control, .peer = &pulling_process };
	from = malloc(PIECE);
	to = malloc(PIECE);
	for (size_t i = 0; i < PIECE; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	memset(to, 0xdd, PIECE);
	delivered = 0;
	reads = writes = failing_writes = 0;
	during_read = during_write = NULL;
	struct shm_offer offer = shm_pusher_offer(&pusher, from, PIECE, 1000);
	ck_assert(shm_puller_begin(&puller, &offer));
	ck_assert(puller.open);
}

static void teardown(void)
{
	free(from);
	free(to);
	shm_identity_close(&self);
}

static void get(void)
{
	ssize_t count = shm_puller_take(&puller, to + delivered, PIECE - delivered, false, false);
	ck_assert(count >= 0);
	delivered += (size_t)count;
	ck_assert(!memcmp(from, to, delivered));
}

static void push(void)
{
	ck_assert(shm_pusher_work(&pusher));
}

/* Another get while the sender's write has begun and not ended: what it writes is not delivered, and a part of the piece
 * is left over that long that the caller must go on with the same memory. */
static void get_during_write(void)
{
	get();
	ck_assert(delivered <= PIECE - HR_ZERO_COPY_MIN);
	ck_assert(puller.open);
}

static void check_all_accepted(void)
{
	struct shm_answer answer;
	ck_assert_uint_eq(delivered, PIECE);
	ck_assert(!puller.open);
	ck_assert(!puller.drops);
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), 1);
	ck_assert(!answer.early);
	ck_assert_uint_eq(answer.offers, 1);
	ck_assert_uint_eq(answer.bytes, PIECE);
	ck_assert_uint_eq(answer.upto, 1000 + PIECE);
	ck_assert(!shm_pusher_open(&pusher));
}

static void check_refused(void)
{
	struct shm_answer answer;
	ck_assert_uint_eq(delivered, 0);
	ck_assert(puller.drops);
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), 1);
	ck_assert(answer.early);
	ck_assert_uint_eq(answer.offers, 0);
	ck_assert_uint_eq(answer.bytes, 0);
	ck_assert_uint_eq(answer.upto, 1000);
	ck_assert_uint_eq(answer.rest, PIECE);
	ck_assert(!shm_pusher_open(&pusher));
}

START_TEST(receiver_alone)
{
	get();
	ck_assert_int_eq(writes, 0);
	check_all_accepted();
}
END_TEST

START_TEST(sender_pushes_during_a_pull)
{
	reads = 0;
	during_read = push;
	get();
	ck_assert_int_gt(writes, 0);
	ck_assert_int_eq(reads, 1); /* the sender took all but the first unit */
	check_all_accepted();
}
END_TEST

static void push_with_get_inside(void)
{
	during_write = get_during_write;
	push();
}

START_TEST(push_under_way_is_awaited)
{
	/* The sender's first push is under way while the receiver goes on to the end of its own units. */
	during_read = push_with_get_inside;
	get();
	while (puller.open)
		get();
	check_all_accepted();
}
END_TEST

START_TEST(push_that_fails_is_taken_over)
{
	failing_writes = 1;
	during_read = push;
	get();
	ck_assert_int_eq(writes, 1);
	check_all_accepted();
}
END_TEST

static void withdraw_inside(void)
{
	ck_assert(!shm_puller_withdraw(&puller));
}

static void push_with_withdraw_inside(void)
{
	during_write = withdraw_inside;
	push();
}

START_TEST(withdrawing_waits_for_a_push)
{
	during_read = push_with_withdraw_inside;
	get();
	ck_assert(shm_puller_withdraw(&puller));
	int before = writes;
	push(); /* nothing is left to take */
	ck_assert_int_eq(writes, before);
}
END_TEST

START_TEST(revoked_during_a_pull)
{
	static struct shm_pusher *closing;
	closing = &pusher;
	shm_pusher_revoke(closing);
	memset(from, 0xee, PIECE);
	ck_assert_int_eq(shm_puller_take(&puller, to, PIECE, false, false), 0);
	ck_assert(!puller.open);
}
END_TEST

START_TEST(taken_back_or_taken_up)
{
	struct shm_offer second = shm_pusher_offer(&pusher, from, PIECE, 1000 + PIECE);
	shm_pusher_offer(&pusher, from, PIECE, 1000 + 2 * PIECE);
	ck_assert(!shm_pusher_take_back(&pusher)); /* the receiver has the first */
	get();
	struct shm_answer answer;
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), 1);
	ck_assert_uint_eq(shm_pusher_start(&pusher), 1000 + PIECE);
	ck_assert(shm_pusher_take_back(&pusher));
	ck_assert(!shm_pusher_open(&pusher));
	ck_assert(shm_puller_begin(&puller, &second));
	ck_assert(!puller.open && puller.drops);
	/* The next one is not one of those that were taken back. */
	puller.drops = false;
	struct shm_offer next = shm_pusher_offer(&pusher, from, PIECE, 1000 + PIECE);
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), 0);
	ck_assert(shm_puller_begin(&puller, &next));
	ck_assert(puller.open && !puller.drops);
}
END_TEST

START_TEST(as_many_are_open_as_may_be)
{
	for (int i = 1; i < 4; i++) {
		ck_assert(shm_pusher_ready(&pusher));
		ck_assert_uint_eq(shm_pusher_offer(&pusher, from, PIECE, 1000).alone, 0);
	}
	ck_assert(!shm_pusher_ready(&pusher));
	ck_assert_uint_eq(shm_pusher_bytes(&pusher), 4 * PIECE);
	get();
	struct shm_answer answer;
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), 1);
	ck_assert(shm_pusher_ready(&pusher));
}
END_TEST

/* The sender looks only when two of three have been taken. */
START_TEST(several_are_answered_together)
{
	struct shm_offer second = shm_pusher_offer(&pusher, from, PIECE, 1000 + PIECE);
	shm_pusher_offer(&pusher, from, PIECE, 1000 + 2 * PIECE);
	get();
	ck_assert(shm_pusher_pending(&pusher));
	ck_assert(shm_puller_begin(&puller, &second));
	delivered = 0;
	get();
	ck_assert_uint_eq(delivered, PIECE);
	struct shm_answer answer;
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), 1);
	ck_assert(!answer.early);
	ck_assert_uint_eq(answer.offers, 2);
	ck_assert_uint_eq(answer.bytes, 2 * PIECE);
	ck_assert_uint_eq(shm_pusher_start(&pusher), 1000 + 2 * PIECE);
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), 0);
	ck_assert(!shm_pusher_pending(&pusher));
}
END_TEST

/* After an early answer none of the offers behind it is open, and the receiver takes none of them up. */
START_TEST(early_answer_closes_all)
{
	struct shm_offer second = shm_pusher_offer(&pusher, from, PIECE, 1000 + PIECE);
	ck_assert_int_eq(shm_puller_take(&puller, to, 20000, false, false), 20000);
	ck_assert_int_eq(shm_puller_take(&puller, to + 20000, 100, false, false), 0);
	ck_assert(puller.drops && !puller.open);
	struct shm_answer answer;
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), 1);
	ck_assert(answer.early);
	ck_assert_uint_eq(answer.offers, 1);
	ck_assert_uint_eq(answer.upto, 1000 + 20000);
	ck_assert_uint_eq(answer.rest, PIECE - 20000);
	ck_assert(!shm_pusher_open(&pusher));
	ck_assert(shm_puller_begin(&puller, &second));
	ck_assert(!puller.open);
	struct shm_offer next = shm_pusher_offer(&pusher, from, PIECE, 1000 + 20000);
	ck_assert(shm_puller_begin(&puller, &next));
	ck_assert(puller.open);
}
END_TEST

START_TEST(early_answer_of_more_than_the_piece)
{
	struct shm_answer answer;
	control.answer_bytes = PIECE;
	control.answer = (uint64_t)1 << 32 | 1;
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), -1);
}
END_TEST

/* The receiver leaves no unit to the sender. */
START_TEST(no_unit_for_sender)
{
	during_read = push;
	delivered = (size_t)shm_puller_take(&puller, to, PIECE, false, true);
	ck_assert(!memcmp(from, to, PIECE));
	check_all_accepted();
	ck_assert_int_eq(reads, 1);
	ck_assert_int_eq(writes, 0);
}
END_TEST

/* The receiver has written its next grant, and not yet the word that opens it. */
START_TEST(grant_that_is_not_open_yet)
{
	get();
	check_all_accepted();
	shm_pusher_offer(&pusher, from, PIECE, 1000);
	/* More units than the last one had. */
	control.grant = (struct shm_grant){ (uintptr_t)to, 0, PIECE, 4096, 2 };
	ck_assert(!shm_pusher_pending(&pusher));
	push();
	ck_assert_int_eq(writes, 0);
}
END_TEST

static void check_not_written(uint64_t offset, uint64_t number)
{
	control.grant = (struct shm_grant){ (uintptr_t)to, offset, 4096, 4096, number };
	control.claims = (uint64_t)5 << 32 | 1;
	ck_assert(!shm_pusher_work(&pusher));
	ck_assert_int_eq(writes, 0);
}

START_TEST(grant_outside_of_the_offer)
{
	check_not_written(PIECE - 100, 1);
	check_not_written(0, 0);
	check_not_written(0, 2);
	check_not_written(0, (uint64_t)1 << 32 | 1);
}
END_TEST

START_TEST(more_units_than_the_grant_has)
{
	control.grant = (struct shm_grant){ (uintptr_t)to, 0, 4096, 4096, 1 };
	control.claims = (uint64_t)5 << 32 | 1 << 16 | 1;
	ck_assert(!shm_pusher_work(&pusher));
	ck_assert_int_eq(writes, 0);
}
END_TEST

START_TEST(another_process_with_the_same_number)
{
	*self.token ^= 2; /* what is there now is not what the peer was known by */
	get();
	ck_assert(!pulling_process.reachable);
	check_refused();
	ck_assert(!shm_pusher_ready(&pusher));
}
END_TEST

/* Opens a grant of one unit to the sender, which has not put for long. */
static void grant_to_a_sender_that_was_away(void)
{
	control.grant = (struct shm_grant){ (uintptr_t)to, 0, 4096, 4096, 1 };
	control.claims = (uint64_t)5 << 32 | 1;
	pusher.seen_at = 0;
}

START_TEST(another_process_is_not_written_to)
{
	grant_to_a_sender_that_was_away();
	*self.token ^= 2;
	push();
	ck_assert_int_eq(writes, 0);
	ck_assert(!pushing_process.reachable);
}
END_TEST

START_TEST(the_same_process_is_written_to_after_long)
{
	grant_to_a_sender_that_was_away();
	push();
	ck_assert_int_eq(writes, 1);
	ck_assert(!memcmp(from, to, 4096));
}
END_TEST

START_TEST(child_grants_nothing)
{
	reads = 0;
	*self.token = 0; /* what the kernel does to it in a child */
	get();
	push();
	ck_assert_int_eq(reads + writes, 0);
	check_refused();
	ck_assert_uint_eq(control.pulls, 0);
}
END_TEST

START_TEST(taken_back_when_the_number_wraps)
{
	pusher.first = pusher.end = UINT32_MAX;
	control.taken_up = UINT32_MAX - 1;
	struct shm_offer last = shm_pusher_offer(&pusher, from, PIECE, 1000);
	struct shm_offer zero = shm_pusher_offer(&pusher, from, PIECE, 1000);
	ck_assert_uint_eq(zero.number, 0);
	ck_assert(shm_pusher_take_back(&pusher));
	ck_assert(shm_puller_begin(&puller, &last));
	ck_assert(!puller.open);
	struct shm_offer one = shm_pusher_offer(&pusher, from, PIECE, 1000);
	ck_assert(shm_puller_begin(&puller, &one));
	ck_assert(puller.open);
}
END_TEST

/* 2^32 offers after the last one that was answered, the number comes again. All of those between were taken back. */
START_TEST(answer_of_long_ago_is_not_the_next_ones)
{
	get();
	check_all_accepted();
	uint32_t answered = pusher.end - 1;
	pusher.first = pusher.end = answered - 1;
	control.taken_up = answered - 2;
	struct shm_offer offer = shm_pusher_offer(&pusher, from, PIECE, 1000);
	ck_assert(shm_pusher_take_back(&pusher));
	ck_assert(shm_puller_begin(&puller, &offer));
	ck_assert(!puller.open);
	ck_assert_uint_eq(shm_pusher_offer(&pusher, from, PIECE, 1000).number, answered);
	struct shm_answer answer;
	ck_assert_int_eq(shm_pusher_answered(&pusher, &answer), 0);
}
END_TEST

/* The sender's last push was 2^32 grants ago, and told as many units as it has taken now. */
START_TEST(count_of_long_ago_is_not_this_grants)
{
	control.pushed = (uint64_t)1 << 32 | 1; /* the generation of the first grant */
	during_read = push_with_get_inside;
	get();
	while (puller.open)
		get();
	check_all_accepted();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("single copy");
	TCase *tcase = tcase_create("steps");
	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, receiver_alone);
	tcase_add_test(tcase, sender_pushes_during_a_pull);
	tcase_add_test(tcase, push_under_way_is_awaited);
	tcase_add_test(tcase, push_that_fails_is_taken_over);
	tcase_add_test(tcase, withdrawing_waits_for_a_push);
	tcase_add_test(tcase, revoked_during_a_pull);
	tcase_add_test(tcase, taken_back_or_taken_up);
	tcase_add_test(tcase, as_many_are_open_as_may_be);
	tcase_add_test(tcase, several_are_answered_together);
	tcase_add_test(tcase, early_answer_closes_all);
	tcase_add_test(tcase, early_answer_of_more_than_the_piece);
	tcase_add_test(tcase, no_unit_for_sender);
	tcase_add_test(tcase, grant_that_is_not_open_yet);
	tcase_add_test(tcase, grant_outside_of_the_offer);
	tcase_add_test(tcase, more_units_than_the_grant_has);
	tcase_add_test(tcase, another_process_with_the_same_number);
	tcase_add_test(tcase, another_process_is_not_written_to);
	tcase_add_test(tcase, the_same_process_is_written_to_after_long);
	tcase_add_test(tcase, child_grants_nothing);
	tcase_add_test(tcase, taken_back_when_the_number_wraps);
	tcase_add_test(tcase, answer_of_long_ago_is_not_the_next_ones);
	tcase_add_test(tcase, count_of_long_ago_is_not_this_grants);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK); /* a child has no token */
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
