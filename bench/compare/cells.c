/* SPDX-License-Identifier: BSD-3-Clause */
/* Comparison with Open MPI: the measuring loops of a contender, run on commands from compare.py. */
#include "config.h"
#include "cells.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FLAG_TURNS 2000
#define WINDOW_MAX 1024u
#define TOUCHED_BYTES ((size_t)64 << 20) /* of separate buffers for messages that are read */

/* One flag, alone in two cache lines, as processors prefetch lines in pairs. */
struct flag {
	_Alignas(128) uint64_t value;
};

struct cells {
	const struct contender *contender;
	int rank;
	struct flag *flags; /* two, shared; flags[r] is written by rank r */
	uint64_t turn;
	char *send, *receive;
	size_t send_room, receive_room;
};

struct command {
	char test[8];
	size_t size;
	unsigned turns, window;
	int touch;
};

static void fail(const char *what)
{
	fprintf(stderr, "compare: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

void cells_pin(int rank)
{
	cpu_set_t allowed, one;
	if (sched_getaffinity(0, sizeof allowed, &allowed))
		fail("sched_getaffinity");
	if (CPU_COUNT(&allowed) < 2) {
		fprintf(stderr, "compare: two cores are needed\n");
		exit(EXIT_FAILURE);
	}
	int cpu = -1;
	for (int seen = -1; seen < rank;)
		if (CPU_ISSET(++cpu, &allowed))
			seen++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one))
		fail("sched_setaffinity");
}

/* ---- the loops ---- */

static volatile uint64_t seen_bytes; /* keeps the compiler from removing read_all */

static void read_all(const void *bytes, size_t len)
{
	uint64_t sum = 0, word;
	for (size_t i = 0; i + sizeof word <= len; i += sizeof word) {
		memcpy(&word, (const char *)bytes + i, sizeof word);
		sum += word;
	}
	seen_bytes = sum;
}

/* Returns the one-way time of a ping-pong with the flags, us. Acquire and release, as a message would need them. */
static double flag_one_way(struct cells *cells, unsigned turns)
{
	struct flag *mine = &cells->flags[cells->rank], *theirs = &cells->flags[!cells->rank];
	double begin = now_us();
	for (unsigned i = 0; i < turns; i++) {
		uint64_t turn = ++cells->turn;
		while (cells->rank == 1 && __atomic_load_n(&theirs->value, __ATOMIC_ACQUIRE) != turn)
			;
		__atomic_store_n(&mine->value, turn, __ATOMIC_RELEASE);
		while (cells->rank == 0 && __atomic_load_n(&theirs->value, __ATOMIC_ACQUIRE) != turn)
			;
	}
	return (now_us() - begin) / turns / 2;
}

static double ping_pong(struct cells *cells, const struct command *command)
{
	const struct contender *c = cells->contender;
	double begin = now_us();
	for (unsigned i = 0; i < command->turns; i++) {
		if (cells->rank == 0)
			c->send(c->context, cells->send, command->size);
		c->receive(c->context, cells->receive, command->size);
		if (command->touch)
			read_all(cells->receive, command->size);
		if (cells->rank == 1)
			c->send(c->context, cells->send, command->size);
	}
	return (now_us() - begin) / command->turns / 2;
}

static double windows(struct cells *cells, const struct command *command)
{
	const struct contender *c = cells->contender;
	size_t stride = command->touch ? command->size : 0;
	uint64_t answer = 0;
	double begin = now_us();
	for (unsigned i = 0; i < command->turns; i++) {
		if (cells->rank == 0) {
			c->send_window(c->context, cells->send, command->size, command->window);
			c->receive(c->context, &answer, sizeof answer);
		} else {
			c->receive_window(c->context, cells->receive, command->size, stride, command->window,
					  command->touch ? read_all : NULL);
			c->send(c->context, &answer, sizeof answer);
		}
	}
	return (now_us() - begin) / command->turns / command->window;
}

/* Runs the test once shortly to warm up, then in full. Returns its time for a message, us. */
static double measure(struct cells *cells, const struct command *command)
{
	double (*loop)(struct cells *, const struct command *) = strcmp(command->test, "lat") ? windows : ping_pong;
	struct command warm = *command;
	warm.turns = command->turns / 8 + 1;
	loop(cells, &warm);
	return loop(cells, command);
}

/* ---- serving ---- */

static void *buffer(size_t len)
{
	void *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bytes == MAP_FAILED)
		fail("a buffer");
	memset(bytes, 0x5a, len);
	return bytes;
}

static void need(char **bytes, size_t *room, size_t len)
{
	if (*room >= len)
		return;
	if (*room)
		munmap(*bytes, *room);
	*bytes = buffer(len);
	*room = len;
}

static FILE *open_stream(const char *folder, const char *name, const char *suffix, const char *mode)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
	FILE *stream = fopen(path, mode);
	if (!stream)
		fail(path);
	return stream;
}

static struct flag *map_flags(const char *folder)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/flags", folder);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail(path);
	void *map = mmap(NULL, 2 * sizeof(struct flag), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		fail("mapping the flags");
	return map;
}

static bool next_command(FILE *in, struct command *command)
{
	char line[128];
	if (!fgets(line, sizeof line, in) || line[0] == '\n')
		return false;
	if (sscanf(line, "%7s %zu %u %u %d", command->test, &command->size, &command->turns, &command->window,
		   &command->touch) != 5 ||
	    !command->size || !command->turns || !command->window || command->window > WINDOW_MAX) {
		errno = EINVAL;
		fail(line);
	}
	return true;
}

void cells_serve(const struct contender *contender, int rank, const char *folder, const char *name)
{
	struct cells cells = { .contender = contender, .rank = rank, .flags = map_flags(folder) };
	FILE *in = open_stream(folder, name, rank ? "1" : "0", "r");
	FILE *out = rank ? NULL : open_stream(folder, name, "out", "w");
	struct command command;
	while (next_command(in, &command)) {
		size_t most = TOUCHED_BYTES / command.size;
		if (command.touch && command.window > most)
			command.window = most ? (unsigned)most : 1;
		need(&cells.send, &cells.send_room, command.size);
		need(&cells.receive, &cells.receive_room, command.touch ? command.size * command.window : command.size);
		if (contender->prepare)
			contender->prepare(contender->context, cells.receive, command.size);
		cells.turn = __atomic_load_n(&cells.flags[rank].value, __ATOMIC_RELAXED); /* both flags are equal now */
		flag_one_way(&cells, 1); /* wait until both ranks are awake */
		double before = flag_one_way(&cells, FLAG_TURNS);
		double us = measure(&cells, &command);
		double after = flag_one_way(&cells, FLAG_TURNS);
		if (rank)
			continue;
		fprintf(out, "{\"us\": %.6g, \"flag_before\": %.4g, \"flag_after\": %.4g}\n", us, before, after);
		fflush(out);
	}
	if (cells.send_room)
		munmap(cells.send, cells.send_room);
	if (cells.receive_room)
		munmap(cells.receive, cells.receive_room);
	munmap(cells.flags, 2 * sizeof(struct flag));
	fclose(in);
	if (out)
		fclose(out);
}
