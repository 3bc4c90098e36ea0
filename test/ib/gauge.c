/* SPDX-License-Identifier: BSD-3-Clause */
/* The threshold of zero copy from the times of reads (ib/ib_gauge.h). */
#include "config.h"

#include "ib/ib_gauge.h"

#include <check.h>

/* Threshold for a link with that round trip, ns, and rate, MB/s. The first read of each length is slow, some others too. */
static uint32_t threshold(uint64_t round_trip, uint64_t rate)
{
	struct ib_gauge gauge = { 0 };
	uint64_t slow = 5000000;
	unsigned reads = 0;
	uint32_t len;
	for (; (len = ib_gauge_next(&gauge)) > 0; reads++, slow /= 3)
		ib_gauge_ended(&gauge, round_trip + len * 1000ull / rate + (reads % 4 == 2 ? 0 : slow));
	ck_assert_uint_eq(reads, 2 * IB_GAUGE_READS);
	return ib_gauge_threshold(&gauge);
}

START_TEST(grows_with_round_trip_and_rate)
{
	ck_assert_uint_eq(threshold(200000, 200), 1024 * 1024);
	ck_assert_uint_eq(threshold(12000, 2000), 512 * 1024);
	ck_assert_uint_eq(threshold(2000, 12000), 512 * 1024);
	ck_assert_uint_eq(threshold(1000, 1000), IB_GAUGE_MIN);
}
END_TEST

START_TEST(stays_between_its_limits)
{
	struct ib_gauge same = { .reads = 2 * IB_GAUGE_READS, .short_ns = 1000, .long_ns = 1000 };
	ck_assert_uint_eq(threshold(1, 1), IB_GAUGE_MIN);
	ck_assert_uint_eq(threshold(1000000000, 100000), IB_GAUGE_MAX);
	ck_assert_uint_eq(ib_gauge_threshold(&same), IB_GAUGE_MAX);
	same.long_ns = 10;
	ck_assert_uint_eq(ib_gauge_threshold(&same), IB_GAUGE_MAX);
}
END_TEST

START_TEST(the_shortest_read_of_each_length_counts)
{
	struct ib_gauge gauge = { 0 };
	static const uint64_t ns[2 * IB_GAUGE_READS] = { 900, 700, 800, 701, 900, 900, 900, 900, 900, 900, 900, 900, 900, 900, 900, 900, 4000, 3000, 2500, 9000, 2600 };
	for (unsigned i = 0; i < 2 * IB_GAUGE_READS; i++) {
		ck_assert_uint_eq(ib_gauge_next(&gauge), i < IB_GAUGE_READS ? IB_GAUGE_SHORT : IB_GAUGE_LONG);
		ib_gauge_ended(&gauge, ns[i] ? ns[i] : 99999);
	}
	ck_assert_uint_eq(ib_gauge_next(&gauge), 0);
	ck_assert_uint_eq(gauge.short_ns, 700);
	ck_assert_uint_eq(gauge.long_ns, 2500);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verbs threshold");
	TCase *tcase = tcase_create("gauge");
	tcase_add_test(tcase, grows_with_round_trip_and_rate);
	tcase_add_test(tcase, stays_between_its_limits);
	tcase_add_test(tcase, the_shortest_read_of_each_length_counts);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
