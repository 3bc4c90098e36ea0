/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times of blocking collectives: collectives NAMES SIZES MILLISECONDS, started by mpirun. The same source is compiled with Headrace's
 * MPI (collectives_hrmpi) and with Open MPI (collectives_mpi); collectives.py runs both in turns.
 *
 * NAMES and SIZES are lists with commas. For each name and size rank 0 prints a line "NAME BYTES MEAN QUARTILE FLAG FLAG": the time
 * of a call in us, measured as in the OSU benchmarks (a barrier before each call, which is not in the time), the mean and the lower
 * quartile over the calls, each as the mean of all ranks; and the one-way time of a flag between ranks 0 and 1 in us, before and
 * after the calls (0: not two ranks). The calls of a cell take about MILLISECONDS, the calls before them up to three times as
 * long. If there are only two ranks and two or more processors, each rank stays on a processor.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLAG_TURNS 1000
#define CALLS_MOST 20000
#define LENGTH(array) (sizeof(array) / sizeof *(array))

static int rank, ranks;
static char *from, *to; /* room for a block of each rank */
static _Atomic unsigned *flags; /* [64]: two, far from each other; NULL: not two ranks */

/* ---- the collectives; bytes: of a block ---- */

static void barrier(int bytes)
{
	(void)bytes;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(int bytes)
{
	MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void reduce(int bytes)
{
	MPI_Reduce(from, to, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
	MPI_Allreduce(from, to, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter(int bytes)
{
	MPI_Reduce_scatter_block(from, to, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(int bytes)
{
	MPI_Gather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter(int bytes)
{
	MPI_Scatter(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allgather(int bytes)
{
	MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int bytes)
{
	MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* The arrays of the v and w forms: equal blocks, one behind the other. */
static struct {
	int *counts, *displs;
	MPI_Datatype *types;
} v;

static void set_blocks(int bytes)
{
	for (int i = 0; i < ranks; i++) {
		v.counts[i] = bytes;
		v.displs[i] = i * bytes;
		v.types[i] = MPI_BYTE;
	}
}

static void gatherv(int bytes)
{
	MPI_Gatherv(from, bytes, MPI_BYTE, to, v.counts, v.displs, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatterv(int bytes)
{
	MPI_Scatterv(from, v.counts, v.displs, MPI_BYTE, to, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allgatherv(int bytes)
{
	MPI_Allgatherv(from, bytes, MPI_BYTE, to, v.counts, v.displs, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoallv(int bytes)
{
	(void)bytes;
	MPI_Alltoallv(from, v.counts, v.displs, MPI_BYTE, to, v.counts, v.displs, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoallw(int bytes)
{
	(void)bytes;
	MPI_Alltoallw(from, v.counts, v.displs, v.types, to, v.counts, v.displs, v.types, MPI_COMM_WORLD);
}

/* Nonblocking forms: started, and waited for. */

static void ibarrier(int bytes)
{
	MPI_Request request;
	(void)bytes;
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ibcast(int bytes)
{
	MPI_Request request;
	MPI_Ibcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ireduce(int bytes)
{
	MPI_Request request;
	MPI_Ireduce(from, to, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iallreduce(int bytes)
{
	MPI_Request request;
	MPI_Iallreduce(from, to, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iallgather(int bytes)
{
	MPI_Request request;
	MPI_Iallgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ialltoall(int bytes)
{
	MPI_Request request;
	MPI_Ialltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void igather(int bytes)
{
	MPI_Request request;
	MPI_Igather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iscatter(int bytes)
{
	MPI_Request request;
	MPI_Iscatter(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void igatherv(int bytes)
{
	MPI_Request request;
	MPI_Igatherv(from, bytes, MPI_BYTE, to, v.counts, v.displs, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iscatterv(int bytes)
{
	MPI_Request request;
	MPI_Iscatterv(from, v.counts, v.displs, MPI_BYTE, to, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static const struct collective {
	const char *name;
	void (*call)(int bytes);
} collectives[] = {
	{ "barrier", barrier },
	{ "bcast", bcast },
	{ "reduce", reduce },
	{ "allreduce", allreduce },
	{ "reduce_scatter", reduce_scatter },
	{ "gather", gather },
	{ "scatter", scatter },
	{ "allgather", allgather },
	{ "alltoall", alltoall },
	{ "gatherv", gatherv },
	{ "scatterv", scatterv },
	{ "allgatherv", allgatherv },
	{ "alltoallv", alltoallv },
	{ "alltoallw", alltoallw },
	{ "ibarrier", ibarrier },
	{ "ibcast", ibcast },
	{ "ireduce", ireduce },
	{ "iallreduce", iallreduce },
	{ "iallgather", iallgather },
	{ "ialltoall", ialltoall },
	{ "igather", igather },
	{ "iscatter", iscatter },
	{ "igatherv", igatherv },
	{ "iscatterv", iscatterv },
};

/* ---- measuring ---- */

/* Both ranks map the same two flags. */
static void map_flags(void)
{
	long long place[2] = { getpid(), rank ? -1 : memfd_create("flags", MFD_CLOEXEC) };
	int fd = (int)place[1];
	if (ranks != 2)
		return;
	if (!rank && ftruncate(fd, 4096))
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Bcast(place, 2, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
	if (rank) {
		char path[64];
		snprintf(path, sizeof path, "/proc/%lld/fd/%lld", place[0], place[1]);
		fd = open(path, O_RDWR);
	}
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 1);
	flags = memory;
	MPI_Barrier(MPI_COMM_WORLD);
	close(fd);
}

static double flag_us(void)
{
	static unsigned turn;
	if (!flags)
		return 0;
	double begin = MPI_Wtime();
	for (int i = 0; i < FLAG_TURNS; i++) {
		turn++;
		while (rank == 1 && flags[0] != turn)
			;
		flags[rank * 32] = turn;
		while (rank == 0 && flags[32] != turn)
			;
	}
	return (MPI_Wtime() - begin) * 1e6 / FLAG_TURNS / 2;
}

/* Of a rank's calls, us. */
struct times {
	double mean, quartile;
};

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static struct times run(const struct collective *collective, int bytes, int calls)
{
	static double each[CALLS_MOST];
	double sum = 0;
	for (int i = 0; i < calls; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = MPI_Wtime();
		collective->call(bytes);
		each[i] = MPI_Wtime() - begin;
		sum += each[i];
	}
	qsort(each, (size_t)calls, sizeof *each, order);
	return (struct times){ sum * 1e6 / calls, each[calls / 4] * 1e6 };
}

/* The number of calls that take about this time. Runs more and more calls until they take it: the first ones connect the ranks and
 * make the memory of the connections present. */
static int calls_in(const struct collective *collective, int bytes, double milliseconds)
{
	int wanted = 0; /* rank 0 says it, when its calls have taken long enough */
	for (int calls = 5; !wanted; calls *= 2) {
		double begin = MPI_Wtime();
		run(collective, bytes, calls);
		double passed = (MPI_Wtime() - begin) * 1e3, fitting = calls * milliseconds / passed;
		if (passed >= milliseconds || calls > CALLS_MOST / 2)
			wanted = fitting < 5 ? 5 : fitting > CALLS_MOST ? CALLS_MOST : (int)fitting;
		MPI_Bcast(&wanted, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	return wanted;
}

static void cell(const struct collective *collective, int bytes, double milliseconds)
{
	set_blocks(bytes);
	int calls = calls_in(collective, bytes, milliseconds);
	run(collective, bytes, calls / 5 + 1);
	MPI_Barrier(MPI_COMM_WORLD);
	double before = flag_us();
	struct times us = run(collective, bytes, calls), sum;
	double after = flag_us();
	MPI_Reduce(&us, &sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%s %d %.4f %.4f %.4f %.4f\n", collective->name, bytes, sum.mean / ranks, sum.quartile / ranks, before, after);
}

static void measure(const struct collective *collective, const char *sizes, double milliseconds)
{
	char *list = strdup(sizes), *place = NULL;
	for (char *size = strtok_r(list, ",", &place); size; size = strtok_r(NULL, ",", &place)) {
		cell(collective, atoi(size), milliseconds);
		if (collective->call == barrier || collective->call == ibarrier)
			break;
	}
	free(list);
}

static const struct collective *find(const char *name)
{
	for (size_t i = 0; i < LENGTH(collectives); i++)
		if (!strcmp(collectives[i].name, name))
			return &collectives[i];
	fprintf(stderr, "collectives: there is no collective \"%s\"\n", name);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	return NULL;
}

/* The ranks of a pair must not change processors while a figure is measured. */
static void stay(void)
{
	cpu_set_t all, one;
	int wanted = rank, cpu = 0;
	if (ranks != 2 || sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2)
		return;
	while (!CPU_ISSET(cpu, &all) || wanted-- > 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
}

static size_t largest(const char *sizes)
{
	size_t most = 0;
	for (; *sizes; sizes += strcspn(sizes, ","), sizes += *sizes == ',') {
		size_t size = (size_t)atol(sizes);
		most = size > most ? size : most;
	}
	return most;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 4) {
		fprintf(stderr, "usage: mpirun -n RANKS %s NAME,... BYTES,... MILLISECONDS\n", argv[0]);
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
		return EXIT_FAILURE;
	}
	size_t room = (size_t)ranks * largest(argv[2]) + 64;
	from = calloc(room, 1);
	to = calloc(room, 1);
	v.counts = calloc((size_t)ranks, sizeof *v.counts);
	v.displs = calloc((size_t)ranks, sizeof *v.displs);
	v.types = calloc((size_t)ranks, sizeof *v.types);
	if (!from || !to || !v.counts || !v.displs || !v.types)
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	memset(from, 1, room);
	memset(to, 1, room);
	stay();
	map_flags();
	char *place = NULL;
	for (char *name = strtok_r(argv[1], ",", &place); name; name = strtok_r(NULL, ",", &place))
		measure(find(name), argv[2], atof(argv[3]));
	free(from);
	free(to);
	free(v.counts);
	free(v.displs);
	free(v.types);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
