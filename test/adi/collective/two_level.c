/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts the packets between machines of two-level collectives, by a performance variable: one packet between leaders where one
 * suffices, whatever the number of ranks on each machine. Blocking, nonblocking and persistent collectives. With the argument "one":
 * algorithms for one level were chosen, so there are more packets. two_level.sh runs it on several machines, which are network
 * namespaces.
 */
#include "test/adi/check_mpi.h"
#include "test/adi/collective/kinds.h"

#include <stdio.h>
#include <string.h>

enum { TIMES = 40, INTS = 16, RANKS_MAX = 16 };

static int rank, size, machines, per_machine_max;
static enum form form;
static MPI_T_pvar_session session;
static MPI_T_pvar_handle packets;

static long long sent(void)
{
	unsigned long long value;
	CHECK(MPI_T_pvar_read(session, packets, &value) == MPI_SUCCESS);
	return (long long)value;
}

static void start(void)
{
	int index, provided, count;
	MPI_Comm machine;
	int first, here;
	CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
	CHECK(MPI_T_pvar_get_index("packets_between_machines", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
	CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
	CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &packets, &count) == MPI_SUCCESS);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
	MPI_Comm_rank(machine, &first);
	MPI_Comm_size(machine, &here);
	first = first == 0;
	MPI_Allreduce(&first, &machines, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&here, &per_machine_max, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	MPI_Comm_free(&machine);
}

/* ---- collectives, which check their results ---- */

static void barrier(int turn)
{
	(void)turn;
	RUN(form, Barrier, Ibarrier, MPI_COMM_WORLD);
}

static void bcast(int turn)
{
	int data[INTS], root = turn % size;
	for (int i = 0; i < INTS; i++)
		data[i] = rank == root ? turn + i : -1;
	RUN(form, Bcast, Ibcast, data, INTS, MPI_INT, root, MPI_COMM_WORLD);
	for (int i = 0; i < INTS; i++)
		CHECK(data[i] == turn + i);
}

static void reduce(int turn)
{
	int mine[INTS], all[INTS], root = turn % size;
	for (int i = 0; i < INTS; i++)
		mine[i] = (rank + 1) * (turn + i);
	RUN(form, Reduce, Ireduce, mine, all, INTS, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
	for (int i = 0; i < INTS; i++)
		CHECK(rank != root || all[i] == size * (size + 1) / 2 * (turn + i));
}

static void allreduce(int turn)
{
	int mine[INTS], all[INTS];
	for (int i = 0; i < INTS; i++)
		mine[i] = (rank + 1) * (turn + i);
	RUN(form, Allreduce, Iallreduce, mine, all, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < INTS; i++)
		CHECK(all[i] == size * (size + 1) / 2 * (turn + i));
}

static void allgather(int turn)
{
	int mine[INTS], all[RANKS_MAX][INTS];
	for (int i = 0; i < INTS; i++)
		mine[i] = rank * 1000 + turn + i;
	RUN(form, Allgather, Iallgather, mine, INTS, MPI_INT, all, INTS, MPI_INT, MPI_COMM_WORLD);
	for (int from = 0; from < size; from++)
		for (int i = 0; i < INTS; i++)
			CHECK(all[from][i] == from * 1000 + turn + i);
}

/* ---- counting ---- */

static int rounds(int n)
{
	int all = 0;
	for (int reached = 1; reached < n; reached *= 2)
		all++;
	return all;
}

static void count(const char *name, void (*collective)(int turn), int expected, bool one)
{
	static const char *const forms[] = { [BLOCKING] = "blocking", [NONBLOCKING] = "nonblocking", [PERSISTENT] = "persistent" };
	for (form = BLOCKING; form <= PERSISTENT; form++) {
		int calls = form == PERSISTENT ? 3 * TIMES : TIMES;
		/* The machines are known, and the connections are open, after some turns. */
		for (int turn = 0; turn < 4 * size; turn++)
			collective(turn);
		long long mine = -sent(), all;
		for (int turn = 0; turn < TIMES; turn++)
			collective(turn);
		mine += sent();
		MPI_Reduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank)
			continue;
		printf("%s %s, %d ranks, %d machines: %lld packets in %d calls; in two levels %d\n", forms[form], name, size, machines, all,
		       calls, expected * calls);
		CHECK(one ? all > expected * calls : all == expected * calls);
	}
}

int main(int argc, char **argv)
{
	bool one = argc > 1 && !strcmp(argv[1], "one");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(size <= RANKS_MAX);
	start();
	CHECK(machines > 1 && per_machine_max > 1);
	int n = machines, power = 1 << (rounds(n + 1) - 1); /* the largest power of two up to n */
	count("barrier", barrier, n * rounds(n), one);
	count("bcast", bcast, n - 1, one);
	count("reduce", reduce, n - 1, one);
	/* Recursive doubling; the ranks beyond the power of two send their data and get the result. */
	count("allreduce", allreduce, power * rounds(power) + 2 * (n - power), one);
	count("allgather", allgather, n * (n - 1), one);
	MPI_T_pvar_handle_free(session, &packets);
	MPI_T_pvar_session_free(&session);
	MPI_T_finalize();
	MPI_Finalize();
	return 0;
}
