/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the two processes of a measurement, pins them, and connects them by shared memory and a control socket. */
#include "config.h"
#include "pair.h"

#include "endpoint.h"
#include "stats.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum { PAIR_FLAGS = 3 };

/* Pins the caller to the n-th core that it may use, from 0. False: there are fewer than two. */
static bool pin_to_core(int n)
{
	cpu_set_t allowed, one;
	if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < 2)
		return false;
	int cpu = -1;
	for (int seen = -1; seen < n;)
		if (CPU_ISSET(++cpu, &allowed))
			seen++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof one, &one) == 0;
}

int pair_run(pair_fn fn, void *argument)
{
	cpu_set_t before;
	int sockets[2];
	struct pair pair = { 0 };
	pair.flags = mmap(NULL, PAIR_FLAGS * sizeof *pair.flags, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	if (pair.flags == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) ||
	    sched_getaffinity(0, sizeof before, &before)) {
		fprintf(stderr, "headrace-perf: %s\n", strerror(errno));
		return -1;
	}
	fflush(NULL);
	pid_t child = fork();
	if (child < 0) {
		fprintf(stderr, "headrace-perf: fork: %s\n", strerror(errno));
		return -1;
	}
	pair.rank = child == 0;
	pair.control = sockets[pair.rank];
	close(sockets[!pair.rank]);
	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	pair.one_core = !pin_to_core(pair.rank);
	fn(&pair, argument);
	if (child == 0)
		exit(EXIT_SUCCESS);
	int status = 0;
	waitpid(child, &status, 0);
	close(pair.control);
	munmap(pair.flags, PAIR_FLAGS * sizeof *pair.flags);
	sched_setaffinity(0, sizeof before, &before);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int pair_run_remote(int control, int rank, pair_fn fn, void *argument)
{
	struct pair pair = { .rank = rank, .control = control };
	fn(&pair, argument);
	return 0;
}

/* Spins until the flag has the value. Acquire, as for a message; the flag publishes no other data. */
static void flag_wait(const struct pair *pair, const struct flag_line *flag, uint64_t value)
{
	for (unsigned spins = 1; __atomic_load_n(&flag->value, __ATOMIC_ACQUIRE) != value; spins++) {
		if (pair->one_core)
			sched_yield();
		if (spins % (1u << 20) == 0)
			control_check(pair->control);
	}
}

static void control_round_trips(const struct pair *pair, unsigned turns)
{
	char byte = 0;
	for (unsigned i = 0; i < turns; i++) {
		if (pair->rank == 0)
			control_write(pair->control, &byte, 1);
		control_read(pair->control, &byte, 1);
		if (pair->rank == 1)
			control_write(pair->control, &byte, 1);
	}
}

static void flag_round_trips(struct pair *pair, unsigned turns)
{
	struct flag_line *mine = &pair->flags[pair->rank], *theirs = &pair->flags[!pair->rank];
	for (unsigned i = 0; i < turns; i++) {
		uint64_t turn = ++pair->turns;
		if (pair->rank == 1)
			flag_wait(pair, theirs, turn);
		__atomic_store_n(&mine->value, turn, __ATOMIC_RELEASE);
		if (pair->rank == 0)
			flag_wait(pair, theirs, turn);
	}
}

double pair_flag_one_way(struct pair *pair, unsigned turns)
{
	double begin = now_seconds();
	if (pair->flags)
		flag_round_trips(pair, turns);
	else
		control_round_trips(pair, turns);
	return 1e6 * (now_seconds() - begin) / turns / 2;
}

void pair_tell_end(struct pair *pair)
{
	if (!pair->flags) {
		control_write(pair->control, "", 1);
		return;
	}
	/* Release, as for a message; the flag publishes no other data. */
	__atomic_store_n(&pair->flags[2].value, ++pair->ends, __ATOMIC_RELEASE);
}

bool pair_told_end(struct pair *pair)
{
	char byte;
	if (!pair->flags)
		return recv(pair->control, &byte, 1, MSG_DONTWAIT) == 1;
	if (__atomic_load_n(&pair->flags[2].value, __ATOMIC_ACQUIRE) == pair->ends)
		return false;
	pair->ends++;
	return true;
}
