/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: threads of all ranks exchange messages at the same time, each with a tag of its own, by blocking and
 * nonblocking calls, on communicators of their own, while others create and free objects. A thread sends to another of the same
 * rank, which waits for it. A thread frees the datatypes of a collective in which another one waits.
 */
#include "test/adi/check_mpi.h"

#include <pthread.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 200

static int rank, size;
static MPI_Comm comms[THREADS];

static void exchange(int tag, int round)
{
	int next = (rank + 1) % size, previous = (rank + size - 1) % size, mine[300], theirs[300], n = round % 300;
	MPI_Status status;
	MPI_Request request[2];
	for (int i = 0; i < n; i++)
		mine[i] = rank * 7 + tag * 1000 + round + i;
	if (round % 2) {
		MPI_Irecv(theirs, 300, MPI_INT, previous, tag, MPI_COMM_WORLD, &request[0]);
		MPI_Isend(mine, n, MPI_INT, next, tag, MPI_COMM_WORLD, &request[1]);
		MPI_Wait(&request[1], MPI_STATUS_IGNORE);
		MPI_Wait(&request[0], &status);
	} else {
		MPI_Sendrecv(mine, n, MPI_INT, next, tag, theirs, 300, MPI_INT, previous, tag, MPI_COMM_WORLD, &status);
	}
	int got;
	MPI_Get_count(&status, MPI_INT, &got);
	CHECK(got == n && status.MPI_SOURCE == previous && status.MPI_TAG == tag);
	for (int i = 0; i < n; i++)
		CHECK(theirs[i] == previous * 7 + tag * 1000 + round + i);
}

static void make_objects(int round)
{
	MPI_Info info;
	MPI_Datatype type;
	int key;
	char value[16];
	snprintf(value, sizeof value, "%d", round);
	MPI_Info_create(&info);
	MPI_Info_set(info, "key", value);
	CHECK(MPI_Info_fromint(MPI_Info_toint(info)) == info);
	MPI_Info_free(&info);
	MPI_Type_vector(3, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&type);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_free_keyval(&key);
}

static void *work(void *argument)
{
	int me = *(int *)argument, flag;
	CHECK(MPI_Is_thread_main(&flag) == MPI_SUCCESS && !flag);
	for (int round = 0; round < ROUNDS; round++) {
		exchange(me, round);
		make_objects(round);
		if (round % 20 == 0) {
			int sum = 0, one = 1;
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[me]);
			CHECK(sum == size);
			MPI_Barrier(comms[me]);
		}
	}
	return NULL;
}

static void *wait_for_sibling(void *unused)
{
	int value = 0;
	(void)unused;
	MPI_Recv(&value, 1, MPI_INT, 0, 99, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	CHECK(value == 42);
	return NULL;
}

static void sibling_wakes_a_waiting_thread(void)
{
	pthread_t thread;
	int value = 42;
	CHECK(!pthread_create(&thread, NULL, wait_for_sibling, NULL));
	usleep(100000); /* makes it likely that the other thread waits in MPI_Recv already; either order passes */
	MPI_Send(&value, 1, MPI_INT, 0, 99, MPI_COMM_SELF);
	CHECK(!pthread_join(thread, NULL));
}

/* ---- datatypes that are freed while a collective uses them ---- */

enum { BLOCK = 2, STRIDED = 2 * BLOCK, RANKS_MAX = 16 };

static int received[RANKS_MAX * STRIDED];
static MPI_Datatype strided[RANKS_MAX]; /* every other int; block 0 of the collective, block 1, ... */

/* Waits until the collective of the other thread has received block 1, frees the datatypes, and then lets rank 2 begin. */
static void *free_types(void *unused)
{
	(void)unused;
	while (__atomic_load_n(&received[STRIDED], __ATOMIC_ACQUIRE) != 1)
		usleep(100);
	for (int i = 0; i < size; i++)
		MPI_Type_free(&strided[i]);
	MPI_Send(NULL, 0, MPI_BYTE, 2, 98, MPI_COMM_WORLD);
	return NULL;
}

static void all_to_all(int sent[], MPI_Datatype types[], bool of_each)
{
	int counts[RANKS_MAX], elements[RANKS_MAX], bytes[RANKS_MAX];
	for (int i = 0; i < size; i++) {
		counts[i] = 1;
		elements[i] = i;
		bytes[i] = i * STRIDED * (int)sizeof *sent;
	}
	if (of_each)
		CHECK(!MPI_Alltoallw(sent, counts, bytes, types, received, counts, bytes, types, comms[0]));
	else
		CHECK(!MPI_Alltoallv(sent, counts, elements, types[0], received, counts, elements, types[0], comms[0]));
}

static void types_are_freed_in_a_collective(bool of_each)
{
	pthread_t thread;
	int sent[RANKS_MAX * STRIDED];
	MPI_Datatype types[RANKS_MAX], vector;
	for (int i = 0; i < size * STRIDED; i++) {
		sent[i] = rank;
		received[i] = -1;
	}
	MPI_Type_vector(BLOCK, 1, 2, MPI_INT, &vector);
	for (int i = 0; i < size; i++) {
		MPI_Type_create_resized(vector, 0, STRIDED * (MPI_Aint)sizeof *sent, &strided[i]);
		MPI_Type_commit(&strided[i]);
		types[i] = strided[i];
	}
	MPI_Type_free(&vector);
	for (int i = 0; i < 3; i++)
		MPI_Barrier(comms[0]); /* the ranks share a segment from now on, if they can */
	if (rank == 0)
		CHECK(!pthread_create(&thread, NULL, free_types, NULL));
	if (rank == 2)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	all_to_all(sent, types, of_each);
	if (rank == 0)
		CHECK(!pthread_join(thread, NULL));
	for (int i = 0; i < size * STRIDED; i++)
		CHECK(received[i] == (i % 2 ? -1 : i / STRIDED));
	for (int i = 0; i < size && rank != 0; i++)
		MPI_Type_free(&strided[i]);
}

int main(int argc, char **argv)
{
	int provided, me[THREADS];
	pthread_t thread[THREADS];
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	CHECK(provided == MPI_THREAD_MULTIPLE);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	sibling_wakes_a_waiting_thread();
	for (int i = 0; i < THREADS; i++) {
		me[i] = i;
		CHECK(!pthread_create(&thread[i], NULL, work, &me[i]));
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	for (int i = 0; i < 2 && size > 2; i++)
		types_are_freed_in_a_collective(i);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&comms[i]);
	MPI_Finalize();
	return 0;
}
