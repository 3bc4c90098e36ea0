/* SPDX-License-Identifier: BSD-3-Clause */
/* Over shared memory: how a long message is divided into records, and which rings are long. */
#include "config.h"

#include "test/channel/shm_ends.h"

#include "rdma_channel/upper.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define RING (256u << 10)
#define CONTROL 4096u
#define HEADER 24u
#define PAYLOAD 16384u
#define LONG_RINGS 16

static uint8_t header[HEADER], payload[PAYLOAD + 1000];

static void put(struct shm_end *end, size_t bytes)
{
	struct iovec message[2] = { { header, HEADER }, { payload, bytes } };
	size_t accepted;
	ck_assert_int_eq(hr_transport_shm.put(end->conn, message, 2, &accepted), 0);
	ck_assert_uint_eq(accepted, HEADER + bytes);
}

/* Takes the next record: `front` bytes of the header, then the bytes of the payload from this offset on, up to the end of the
 * record, which must have this number of bytes. */
static void take(struct shm_end *end, size_t front, size_t offset, size_t record)
{
	const uint8_t *bytes;
	size_t len;
	ck_assert_int_eq(hr_transport_shm.peek(end->conn, &bytes, &len), HR_ARRIVED);
	ck_assert_uint_eq(len, record);
	ck_assert_mem_eq(bytes, header, front);
	ck_assert_uint_eq((uintptr_t)(bytes + front) % 64, 0);
	ck_assert_mem_eq(bytes + front, payload + offset, len - front);
	hr_transport_shm.consume(end->conn, len);
}

static void open_ends(struct shm_ends *ends)
{
	setenv("HEADRACE_SHM_ZERO_COPY", "0", 1);
	for (size_t i = 0; i < sizeof payload; i++)
		payload[i] = (uint8_t)(i * 37 >> 4);
	for (size_t i = 0; i < sizeof header; i++)
		header[i] = (uint8_t)(200 + i);
	shm_ends_make(ends, RING);
	shm_ends_join(ends);
}

/* The receiver waits for the first message, so it gets the message in parts. Behind it the second one is one record. */
START_TEST(a_long_payload_begins_at_a_line_and_ends_a_record)
{
	struct shm_ends ends;
	open_ends(&ends);
	put(&ends.end[0], PAYLOAD);
	put(&ends.end[0], PAYLOAD);
	take(&ends.end[1], HEADER, 0, HEADER + 8192);
	take(&ends.end[1], 0, 8192, 8192);
	take(&ends.end[1], HEADER, 0, HEADER + PAYLOAD);
	shm_ends_close(&ends);
}
END_TEST

START_TEST(a_short_rest_gets_no_record_of_its_own)
{
	struct shm_ends ends;
	open_ends(&ends);
	put(&ends.end[0], 8192);
	put(&ends.end[0], PAYLOAD + 1000);
	take(&ends.end[1], HEADER, 0, HEADER + 8192);
	take(&ends.end[1], HEADER, 0, HEADER + PAYLOAD + 1000);
	shm_ends_close(&ends);
}
END_TEST

/* A record that the end of the ring cuts short ends at a line of the payload, so the next one begins there. */
START_TEST(a_payload_goes_on_at_a_line_behind_the_end_of_the_ring)
{
	struct shm_ends ends;
	size_t cut = 0;
	open_ends(&ends);
	for (int i = 0; i < 200; i++) {
		put(&ends.end[0], PAYLOAD);
		for (size_t done = 0; done < PAYLOAD;) {
			const uint8_t *bytes;
			size_t len, front = done ? 0 : HEADER;
			ck_assert_int_eq(hr_transport_shm.peek(ends.end[1].conn, &bytes, &len), HR_ARRIVED);
			cut += (len - front) % 4096 != 0;
			take(&ends.end[1], front, done, len);
			done += len - front;
		}
	}
	ck_assert_uint_gt(cut, 0);
	shm_ends_close(&ends);
}
END_TEST

/* Puts short records, a window of them at a time, and takes them. Returns the number of different pages in which they lay. */
static size_t put_short(struct shm_ends *ends, int windows)
{
	static uint8_t used[4 << 20 >> 12];
	static const uint8_t text[200];
	uint8_t *ring = NULL;
	size_t pages = 0;
	struct shm_mapping mappings[8];
	memset(used, 0, sizeof used);
	int n = shm_mappings(mappings, 8);
	for (int i = 0; i < windows * 64; i++) {
		const uint8_t *bytes;
		size_t len;
		for (int j = 0; i % 64 == 0 && j < 64; j++) {
			uint32_t number = (uint32_t)(i + j);
			ck_assert(hr_transport_shm.post(ends->end[0].conn, &number, sizeof number, text, 1 + number % 200));
		}
		ck_assert_int_eq(hr_transport_shm.peek(ends->end[1].conn, &bytes, &len), HR_ARRIVED);
		ck_assert_uint_eq(len, sizeof(uint32_t) + 1 + (size_t)i % 200);
		ck_assert_mem_eq(bytes, &(uint32_t){ (uint32_t)i }, sizeof(uint32_t));
		for (int k = 0; !ring && k < n; k++)
			ring = (size_t)(bytes - mappings[k].start) < mappings[k].size ? mappings[k].start : NULL;
		ck_assert_ptr_nonnull(ring);
		size_t page = (size_t)(bytes - ring) >> 12;
		ck_assert_uint_lt(page, sizeof used);
		pages += !used[page];
		used[page] = 1;
		hr_transport_shm.consume(ends->end[1].conn, len);
	}
	return pages;
}

/* Of a longer ring, a stream of short records uses no more than of one of 1 MB, also if it begins behind the first megabyte. The last
 * record there may end in the next page. */
START_TEST(short_records_use_the_first_megabyte)
{
	struct shm_ends ends;
	for (uint32_t ring = 1u << 20; ring <= 4u << 20; ring *= 2) {
		setenv("HEADRACE_SHM_ZERO_COPY", "0", 1);
		shm_ends_make(&ends, ring);
		shm_ends_join(&ends);
		ck_assert_uint_le(put_short(&ends, 60), 257);
		shm_ends_transfer(&ends, 1300000);
		put_short(&ends, 1);
		ck_assert_uint_le(put_short(&ends, 60), 257);
		shm_ends_close(&ends);
	}
}
END_TEST

/* If the receiver takes nothing, a longer ring holds at least as many short records as one of 1 MB. */
START_TEST(a_longer_ring_holds_as_many_short_records)
{
	struct shm_ends ends;
	size_t held[3] = { 0 };
	for (int i = 0; i < 3; i++) {
		shm_ends_make(&ends, 1u << (20 + i));
		shm_ends_join(&ends);
		while (hr_transport_shm.post(ends.end[0].conn, header, 8, header, 8))
			held[i]++;
		for (size_t k = 0; k < held[i]; k++) {
			const uint8_t *bytes;
			size_t len;
			ck_assert_int_eq(hr_transport_shm.peek(ends.end[1].conn, &bytes, &len), HR_ARRIVED);
			ck_assert_uint_eq(len, 16);
			hr_transport_shm.consume(ends.end[1].conn, len);
		}
		shm_ends_close(&ends);
	}
	ck_assert_uint_gt(held[0], 6000);
	ck_assert_uint_ge(held[1], held[0]);
	ck_assert_uint_ge(held[2], held[1]);
}
END_TEST

static size_t ring_of(struct shm_end *end)
{
	struct stat status;
	ck_assert_int_eq(fstat(end->half.fds[0], &status), 0);
	return (size_t)status.st_size - CONTROL;
}

static void open_half(void *context, struct shm_end *end, uint32_t ring_bytes, bool is_default)
{
	*end = (struct shm_end){ .env = { .ring_bytes = ring_bytes, .ring_is_default = is_default, .timeout_ms = 1000,
					  .peer = "the other end", .stats = &end->stats } };
	ck_assert_int_eq(hr_transport_shm.conn_open(context, &end->env, &end->half, &end->conn), 0);
}

static void close_half(struct shm_end *end)
{
	hr_transport_shm.conn_close(end->conn);
	close(end->half.fds[0]);
}

/* Returns the size of two second-level caches, a power of two, at most 4 MB. */
static size_t two_caches(void)
{
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
	size_t bytes = 4096;
	while (cache > 0 && bytes < 2 * (size_t)cache && bytes < (4u << 20))
		bytes *= 2;
	return bytes;
}

START_TEST(some_rings_of_the_default_size_are_as_long_as_two_caches)
{
	static const struct hr_channel_env env = { .timeout_ms = 1000 };
	static struct shm_end end[LONG_RINGS + 2], asked;
	uint8_t section[HR_SECTION_MAX];
	size_t section_len, longer = two_caches() > RING ? two_caches() : RING;
	void *context;
	ck_assert_int_eq(hr_transport_shm.open(&env, &context, section, &section_len), 0);
	open_half(context, &asked, RING, false);
	ck_assert_uint_eq(ring_of(&asked), RING);
	for (int i = 0; i < LONG_RINGS + 2; i++) {
		open_half(context, &end[i], RING, true);
		ck_assert_uint_eq(ring_of(&end[i]), i < LONG_RINGS ? longer : RING);
	}
	close_half(&end[LONG_RINGS]); /* an ordinary one */
	open_half(context, &end[LONG_RINGS], RING, true);
	ck_assert_uint_eq(ring_of(&end[LONG_RINGS]), RING);
	close_half(&end[3]);
	open_half(context, &end[3], RING, true);
	ck_assert_uint_eq(ring_of(&end[3]), longer);
	close_half(&asked);
	for (int i = 0; i < LONG_RINGS + 2; i++)
		close_half(&end[i]);
	hr_transport_shm.close(context);
}
END_TEST

/* The limit of a process may leave room for an ordinary ring only. */
START_TEST(a_ring_is_ordinary_if_the_system_gives_no_long_one)
{
	static const struct hr_channel_env env = { .timeout_ms = 1000 };
	struct shm_end end[2];
	uint8_t section[HR_SECTION_MAX];
	size_t section_len, longer = two_caches() > RING ? two_caches() : RING;
	struct rlimit limit, old;
	void *context;
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	ck_assert_int_eq(hr_transport_shm.open(&env, &context, section, &section_len), 0);
	signal(SIGXFSZ, SIG_IGN);
	limit = (struct rlimit){ RING + CONTROL, old.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	open_half(context, &end[0], RING, true);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	ck_assert_uint_eq(ring_of(&end[0]), RING);
	open_half(context, &end[1], RING, true);
	ck_assert_uint_eq(ring_of(&end[1]), longer);
	close_half(&end[0]);
	close_half(&end[1]);
	hr_transport_shm.close(context);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("shm_records");
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_long_payload_begins_at_a_line_and_ends_a_record);
	tcase_add_test(tcase, a_short_rest_gets_no_record_of_its_own);
	tcase_add_test(tcase, a_payload_goes_on_at_a_line_behind_the_end_of_the_ring);
	tcase_add_test(tcase, short_records_use_the_first_megabyte);
	tcase_add_test(tcase, a_longer_ring_holds_as_many_short_records);
	tcase_add_test(tcase, a_ring_is_ordinary_if_the_system_gives_no_long_one);
	tcase_add_test(tcase, some_rings_of_the_default_size_are_as_long_as_two_caches);
	Suite *suite = suite_create("shm_records");
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
