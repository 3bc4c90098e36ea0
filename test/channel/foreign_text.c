/* SPDX-License-Identifier: BSD-3-Clause */
/* Text from a peer reaches neither the log nor a program with characters that control a terminal or end a line. */
#include "rdma_channel/base/log.h"
#include "rdma_channel/card.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char hostile[] = "a\033[2J\n\r\tb\x7f\xc2\x9b";

static void ck_assert_no_controls(const char *text)
{
	for (const char *c = text; *c; c++)
		ck_assert_msg((unsigned char)*c >= ' ' && *c != 0x7f, "0x%02x in \"%s\"", (unsigned char)*c, text);
}

START_TEST(a_cards_host_name_is_cleaned)
{
	struct hr_identity sent = { .host.pid = 1 }, received;
	hr_card_t card;
	memcpy(sent.host.name, hostile, sizeof hostile);
	hr_card_encode(&sent, &card);
	ck_assert_int_eq(hr_card_decode(&card, &received), 0);
	ck_assert_no_controls(received.host.name);
	ck_assert_uint_eq(strlen(received.host.name), strlen(hostile));
	/* No byte of it is above ASCII either: a terminal may take 0x9b for the beginning of a control sequence. */
	for (const char *c = received.host.name; *c; c++)
		ck_assert_uint_lt((unsigned char)*c, 0x7f);
}
END_TEST

static char tapped[256];

static void tap(enum hr_log_level level, const char *text, size_t length)
{
	(void)level;
	ck_assert_uint_lt(length, sizeof tapped);
	memcpy(tapped, text, length + 1);
}

START_TEST(a_message_is_one_line_whatever_it_quotes)
{
	hr_log_set_tap(tap);
	hr_log(HR_LOG_ERROR, "peer %s failed", "x\nheadrace[1] error: forged\033[0m");
	hr_log_set_tap(NULL);
	ck_assert_str_eq(tapped, "peer x?headrace[1] error: forged?[0m failed");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("text from peers");
	TCase *tests = tcase_create("text from peers");
	tcase_add_test(tests, a_cards_host_name_is_cleaned);
	tcase_add_test(tests, a_message_is_one_line_whatever_it_quotes);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
