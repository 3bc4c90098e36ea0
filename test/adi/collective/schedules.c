/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many collectives under way at once: nonblocking ones in several communicators, with point-to-point messages between, completed in
 * another order than they were started; persistent ones that are started again and again; requests that are freed while active;
 * blocking and nonblocking ones that the ranks start in different orders.
 */
#include "test/adi/check_mpi.h"

#include <string.h>

#define COMMS 3
#define MANY 40
#define N 700

static int rank, size;
static MPI_Comm comms[COMMS];

/* A collective under way with its buffers. */
struct work {
	MPI_Request request;
	int kind, root;
	int send[N], receive[N];
};

static int value(int from, int i, int turn)
{
	return from * 1000 + i * 3 + turn;
}

static void start(struct work *work, int turn)
{
	MPI_Comm comm = comms[turn % COMMS];
	work->kind = turn % 5;
	work->root = turn % size;
	for (int i = 0; i < N; i++) {
		work->send[i] = value(rank, i, turn);
		work->receive[i] = -1;
	}
	switch (work->kind) {
	case 0:
		if (rank == work->root)
			memcpy(work->receive, work->send, sizeof work->send);
		MPI_Ibcast(work->receive, N, MPI_INT, work->root, comm, &work->request);
		break;
	case 1: MPI_Iallreduce(work->send, work->receive, N, MPI_INT, MPI_SUM, comm, &work->request); break;
	case 2: MPI_Ireduce(work->send, work->receive, N, MPI_INT, MPI_MAX, work->root, comm, &work->request); break;
	case 3: MPI_Iscan(work->send, work->receive, N, MPI_INT, MPI_SUM, comm, &work->request); break;
	default: MPI_Ibarrier(comm, &work->request);
	}
}

static void check(const struct work *work, int turn)
{
	for (int i = 0; i < N; i++) {
		int all = size * (size - 1) / 2 * 1000 + size * value(0, i, turn);
		int before = rank * (rank + 1) / 2 * 1000 + (rank + 1) * value(0, i, turn);
		switch (work->kind) {
		case 0: CHECK(work->receive[i] == value(work->root, i, turn)); break;
		case 1: CHECK(work->receive[i] == all); break;
		case 2: CHECK(rank != work->root || work->receive[i] == value(size - 1, i, turn)); break;
		case 3: CHECK(work->receive[i] == before); break;
		default: CHECK(work->receive[i] == -1);
		}
	}
}

/* Messages with the tags and in the communicators of collectives must not meet them. */
static void exchange(int turn, MPI_Request *requests, int *in, int *out)
{
	MPI_Comm comm = comms[turn % COMMS];
	*out = value(rank, 0, turn);
	MPI_Irecv(in, 1, MPI_INT, (rank + 1) % size, turn, comm, &requests[0]);
	MPI_Isend(out, 1, MPI_INT, (rank + size - 1) % size, turn, comm, &requests[1]);
}

static void many_at_once(void)
{
	static struct work work[MANY];
	MPI_Request messages[MANY][2];
	int in[MANY], out[MANY];
	for (int turn = 0; turn < MANY; turn++) {
		start(&work[turn], turn);
		exchange(turn, messages[turn], &in[turn], &out[turn]);
		if (turn % 7 == 3)
			MPI_Barrier(comms[turn % COMMS]); /* a blocking one overtakes those under way */
	}
	for (int turn = MANY - 1; turn >= 0; turn--) {
		MPI_Status statuses[2];
		int done = 0;
		if (turn % 2)
			MPI_Wait(&work[turn].request, MPI_STATUS_IGNORE);
		while (turn % 2 == 0 && !done)
			MPI_Test(&work[turn].request, &done, MPI_STATUS_IGNORE);
		CHECK(work[turn].request == MPI_REQUEST_NULL);
		check(&work[turn], turn);
		MPI_Waitall(2, messages[turn], statuses);
		CHECK(in[turn] == value((rank + 1) % size, 0, turn) && statuses[0].MPI_TAG == turn);
	}
}

static void persistent(void)
{
	static int sent[N], sum[N], prefix[N], data[N];
	MPI_Request requests[4];
	MPI_Allreduce_init(sent, sum, N, MPI_INT, MPI_SUM, comms[0], MPI_INFO_NULL, &requests[0]);
	MPI_Scan_init(sent, prefix, N, MPI_INT, MPI_SUM, comms[1], MPI_INFO_NULL, &requests[1]);
	MPI_Bcast_init(data, N, MPI_INT, size - 1, comms[0], MPI_INFO_NULL, &requests[2]);
	MPI_Barrier_init(comms[2], MPI_INFO_NULL, &requests[3]);
	for (int turn = 0; turn < 30; turn++) {
		for (int i = 0; i < N; i++) {
			sent[i] = value(rank, i, turn);
			data[i] = rank == size - 1 ? turn + i : -1;
		}
		MPI_Startall(4, requests);
		MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
		for (int i = 0; i < N; i++) {
			CHECK(sum[i] == size * (size - 1) / 2 * 1000 + size * value(0, i, turn));
			CHECK(prefix[i] == rank * (rank + 1) / 2 * 1000 + (rank + 1) * value(0, i, turn));
			CHECK(data[i] == turn + i);
		}
	}
	for (int i = 0; i < 4; i++) {
		CHECK(requests[i] != MPI_REQUEST_NULL);
		MPI_Request_free(&requests[i]);
	}
}

/* The program frees its handle; the collective goes on, and later ones are not disturbed. */
static void freed(void)
{
	static int one[20];
	MPI_Op op;
	for (int i = 0; i < 20; i++) {
		MPI_Request request;
		one[i] = rank == 0 ? i : -1;
		MPI_Ibcast(&one[i], 1, MPI_INT, 0, comms[i % COMMS], &request);
		MPI_Request_free(&request);
	}
	op = MPI_SUM;
	for (int i = 0; i < 50; i++) {
		int mine = rank + i, sum;
		MPI_Allreduce(&mine, &sum, 1, MPI_INT, op, comms[i % COMMS]);
		CHECK(sum == size * (size - 1) / 2 + size * i);
	}
	for (int c = 0; c < COMMS; c++)
		MPI_Barrier(comms[c]);
	/* Each broadcast was started before the barriers, and all ranks have passed them; progress ends what is left. */
	for (int i = 0; i < 20; i++) {
		volatile int *at = &one[i];
		int flag;
		while (*at != i)
			MPI_Iprobe(MPI_ANY_SOURCE, 9999, comms[0], &flag, MPI_STATUS_IGNORE);
	}
}

/* The program frees datatype, operation and communicator while a collective uses them. */
static void add(void *in, void *inout, int *len, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *len * 2; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void objects_freed(void)
{
	MPI_Datatype pair;
	MPI_Op op;
	MPI_Comm comm;
	MPI_Request request;
	int in[20], out[20];
	for (int i = 0; i < 20; i++)
		in[i] = rank + i;
	MPI_Comm_dup(comms[1], &comm);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Op_create(add, 1, &op);
	MPI_Iallreduce(in, out, 10, pair, op, comm, &request);
	MPI_Type_free(&pair);
	MPI_Op_free(&op);
	MPI_Comm_free(&comm);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int i = 0; i < 20; i++)
		CHECK(out[i] == size * (size - 1) / 2 + size * i);
}

/* Rank 0 starts a nonblocking collective before a blocking one, the others after it. */
static void orders_differ(void)
{
	MPI_Comm comm;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int turn = 0; turn < 10; turn++) {
		MPI_Request request;
		int mine = 1 << rank, all = 0, most = -1, done;
		if (rank == 0) {
			CHECK(!MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm, &request));
			CHECK(!MPI_Test(&request, &done, MPI_STATUS_IGNORE) && done == (size == 1));
		}
		CHECK(!MPI_Allreduce(&rank, &most, 1, MPI_INT, MPI_MAX, comm) && most == size - 1);
		if (rank != 0)
			CHECK(!MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm, &request));
		CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE) && all == (1 << size) - 1);
	}
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	comms[0] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
	MPI_Comm_dup(comms[1], &comms[2]);
	for (int i = 0; i < 3; i++)
		many_at_once();
	persistent();
	freed();
	orders_differ();
	for (int i = 0; i < 10; i++)
		objects_freed();
	MPI_Comm_free(&comms[1]);
	MPI_Comm_free(&comms[2]);
	MPI_Finalize();
	return 0;
}
