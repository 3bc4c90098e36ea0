/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that sends wake-ups faster than they can be read: whoever reads them comes to an end of it. The linker routes
 * recv() through here, which never has the last byte.
 */
#include "config.h"

#include "test/channel/shm_ends.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int flooded = -1;

ssize_t __real_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);

ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags)
{
	if (fd != flooded)
		return __real_recv(fd, bytes, n, flags);
	memset(bytes, 'w', n);
	return (ssize_t)n;
}

START_TEST(wake_ups_without_end_end_the_connection)
{
	struct shm_ends ends;
	uint8_t byte;
	struct iovec iov = { &byte, 1 };
	size_t moved;
	shm_ends_make(&ends, 65536);
	shm_ends_join(&ends);
	shm_ends_transfer(&ends, 100000);
	flooded = ends.end[1].stream;
	hr_transport_shm.conn_event(ends.end[1].conn);
	flooded = -1;
	ck_assert(hr_transport_shm.conn_pending(ends.end[1].conn, false));
	ck_assert_int_eq(hr_transport_shm.get(ends.end[1].conn, &iov, 1, &moved), -EPROTO);
	shm_ends_close(&ends);
}
END_TEST

/* As many as may have come while nobody looked. */
START_TEST(many_wake_ups_do_no_harm)
{
	struct shm_ends ends;
	shm_ends_make(&ends, 65536);
	shm_ends_join(&ends);
	for (int i = 0; i < 100000 && send(ends.end[0].stream, "w", 1, MSG_DONTWAIT) == 1; i++)
		continue;
	hr_transport_shm.conn_event(ends.end[1].conn);
	shm_ends_transfer(&ends, 100000);
	shm_ends_close(&ends);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wake-ups");
	TCase *tcase = tcase_create("flood");
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, wake_ups_without_end_end_the_connection);
	tcase_add_test(tcase, many_wake_ups_do_no_harm);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
