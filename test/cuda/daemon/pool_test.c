/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of workers: how many it starts for clients that wait. Its workers are processes that only wait for a signal, and the
 * test says when each is ready. So nothing here depends on time. */
#include "cuda_remote/server/daemon/launch.h"
#include "cuda_remote/server/daemon/pool.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MAX = 256, GPUS = 4, BURST = 16 /* as in pool.c */ };

static struct {
	uint32_t gpu;
	pid_t pid;
	int control; /* the worker's end */
	bool ready;
} started[WORKERS_MAX];
static int n_started;
static struct pool *pool;
static struct pool_plan plan;

/* ---- instead of launch.c ---- */

int launch(const struct child_plan *child, const sigset_t *signals, struct launched *worker)
{
	static const struct worker_usage usage;
	int ends[2];
	(void)signals;
	ck_assert_int_lt(n_started, WORKERS_MAX);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	while (!pid)
		pause();
	started[n_started].gpu = child->gpu;
	started[n_started].pid = pid;
	started[n_started].ready = false;
	started[n_started++].control = ends[1];
	*worker = (struct launched){ pid, ends[0], &usage };
	return 0;
}

void launch_forget(struct launched *worker)
{
	close(worker->control);
}

/* ---- the daemon's and the workers' parts ---- */

static void open_pool(uint32_t ready, uint32_t max_clients)
{
	plan = (struct pool_plan){ .ready = ready, .max_clients = max_clients };
	ck_assert_int_eq(pool_open(&plan, &pool), 0);
}

static void setup(void)
{
	signal(SIGTERM, SIG_DFL); /* libcheck's handler, in a worker, would end the test */
	n_started = 0;
}

static void teardown(void)
{
	pool_close(pool);
	for (int i = 0; i < n_started; i++)
		close(started[i].control);
}

static rc_door_peer_t client_of(uint32_t gpu)
{
	rc_door_peer_t peer = { .fd = -1, .gpu = gpu };
	return peer;
}

static void wait_for(uint32_t gpu, int clients)
{
	rc_door_peer_t peer = client_of(gpu);
	for (int i = 0; i < clients; i++)
		pool_add_waiting(pool, &peer);
}

static void become_ready(int worker)
{
	struct child_report report = { .gpus = GPUS };
	ck_assert_int_eq(send(started[worker].control, &report, sizeof report, 0), sizeof report);
	started[worker].ready = true;
	pool_listen(pool);
}

static void all_become_ready(void)
{
	for (int i = 0; i < n_started; i++)
		if (!started[i].ready)
			become_ready(i);
}

/* Admits as many clients as there are workers for. Returns how many. */
static int admit(uint32_t gpu, int clients)
{
	int admitted = 0;
	for (; admitted < clients; admitted++) {
		rc_door_peer_t peer = client_of(gpu);
		peer.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		ck_assert_int_ge(peer.fd, 0);
		int error = pool_admit(pool, &peer);
		if (!error)
			continue;
		ck_assert_int_eq(error, -EAGAIN);
		close(peer.fd);
		break;
	}
	return admitted;
}

static int started_for(uint32_t gpu)
{
	int n = 0;
	for (int i = 0; i < n_started; i++)
		n += started[i].gpu == gpu;
	return n;
}

/* Workers that live. */
static int alive(void)
{
	struct pool_counts counts;
	pool_count(pool, &counts);
	return (int)(counts.starting + counts.ready + counts.serving);
}

/* ---- the tests ---- */

START_TEST(each_client_that_waits_gets_a_worker_at_once)
{
	open_pool(1, 100);
	pool_refill(pool);
	ck_assert_int_eq(n_started, 1);
	wait_for(RC_SERVER_ALL_GPUS, 8);
	pool_refill(pool);
	ck_assert_int_eq(n_started, 9); /* and none of them is ready */
	pool_refill(pool);
	ck_assert_int_eq(n_started, 9);
	all_become_ready();
	ck_assert_int_eq(admit(RC_SERVER_ALL_GPUS, 8), 8);
}
END_TEST

START_TEST(a_burst_has_a_limit)
{
	open_pool(1, 100);
	wait_for(RC_SERVER_ALL_GPUS, 60);
	for (int i = 0; i < 3; i++)
		pool_refill(pool);
	ck_assert_int_eq(n_started, BURST);
	/* When workers have been given away, the next ones start. */
	all_become_ready();
	ck_assert_int_eq(admit(RC_SERVER_ALL_GPUS, 60), BURST);
	pool_forget_waiting(pool);
	wait_for(RC_SERVER_ALL_GPUS, 60 - BURST);
	pool_refill(pool);
	ck_assert_int_eq(n_started, 2 * BURST);
}
END_TEST

START_TEST(more_workers_kept_ready_than_a_burst_has_are_started)
{
	open_pool(20, 100);
	wait_for(RC_SERVER_ALL_GPUS, 8);
	pool_refill(pool);
	ck_assert_int_eq(n_started, 20);
}
END_TEST

/* Workers that stand ready do not count: clients of one GPU cannot use them. */
START_TEST(ready_workers_of_all_gpus_leave_the_burst_to_others)
{
	open_pool(20, 100);
	pool_refill(pool);
	become_ready(0); /* the pool learns how many GPUs there are */
	wait_for(0, 10);
	pool_refill(pool);
	ck_assert_int_eq(started_for(0), 1); /* 19 workers are starting */
	all_become_ready();
	pool_refill(pool);
	ck_assert_int_eq(n_started, 20 + 1 + 10);
	ck_assert_int_eq(started_for(0), 1 + 10);
	all_become_ready();
	ck_assert_int_eq(admit(0, 10), 10);
}
END_TEST

START_TEST(clients_beyond_the_limit_get_no_worker)
{
	open_pool(1, 4);
	wait_for(RC_SERVER_ALL_GPUS, 10);
	pool_refill(pool);
	ck_assert_int_eq(n_started, 1 + 4);
}
END_TEST

/* Opens the pool, and makes it known how many GPUs there are. */
static void open_with_gpus(uint32_t max_clients)
{
	open_pool(1, max_clients);
	pool_refill(pool);
	become_ready(0);
}

START_TEST(lines_share_the_places_that_are_left)
{
	open_with_gpus(6);
	for (uint32_t gpu = 0; gpu < GPUS; gpu++)
		wait_for(gpu, 6);
	pool_refill(pool);
	ck_assert_int_eq(n_started, 1 + GPUS + 6); /* each line keeps one ready, and six clients can be served */
	for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
		ck_assert_int_ge(started_for(gpu), 2);
		ck_assert_int_le(started_for(gpu), 3);
	}
}
END_TEST

START_TEST(lines_share_a_burst)
{
	open_with_gpus(1000);
	wait_for(RC_SERVER_ALL_GPUS, 1);
	for (uint32_t gpu = 0; gpu < GPUS; gpu++)
		wait_for(gpu, 40);
	pool_refill(pool);
	ck_assert_int_eq(n_started, 1 + GPUS + BURST);
	ck_assert_int_eq(started_for(RC_SERVER_ALL_GPUS), 2);
	all_become_ready();
	for (uint32_t gpu = 0; gpu < GPUS; gpu++)
		ck_assert_int_eq(admit(gpu, 40), started_for(gpu));
}
END_TEST

START_TEST(a_line_whose_clients_are_few_leaves_its_share_to_others)
{
	open_with_gpus(1000);
	wait_for(0, 1);
	wait_for(1, 40);
	pool_refill(pool);
	ck_assert_int_eq(started_for(0), 2);
	ck_assert_int_eq(started_for(1), 1 + BURST - 1);
}
END_TEST

/* The clients go before their workers are ready. What is ready stays until then, and no more than that in the end. */
START_TEST(workers_of_clients_that_have_gone_end)
{
	open_pool(1, 100);
	wait_for(RC_SERVER_ALL_GPUS, 5);
	pool_refill(pool);
	ck_assert_int_eq(n_started, 6);
	become_ready(0);
	pool_forget_waiting(pool);
	pool_refill(pool);
	ck_assert_int_eq(alive(), 6);
	ck_assert_int_eq(admit(RC_SERVER_ALL_GPUS, 1), 1);
	all_become_ready();
	pool_refill(pool);
	ck_assert_int_eq(alive(), 1 + 1); /* one serves, one is ready */
	ck_assert_int_eq(n_started, 6);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool");
	TCase *tcase = tcase_create("pool");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, each_client_that_waits_gets_a_worker_at_once);
	tcase_add_test(tcase, a_burst_has_a_limit);
	tcase_add_test(tcase, more_workers_kept_ready_than_a_burst_has_are_started);
	tcase_add_test(tcase, ready_workers_of_all_gpus_leave_the_burst_to_others);
	tcase_add_test(tcase, clients_beyond_the_limit_get_no_worker);
	tcase_add_test(tcase, lines_share_the_places_that_are_left);
	tcase_add_test(tcase, lines_share_a_burst);
	tcase_add_test(tcase, a_line_whose_clients_are_few_leaves_its_share_to_others);
	tcase_add_test(tcase, workers_of_clients_that_have_gone_end);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
