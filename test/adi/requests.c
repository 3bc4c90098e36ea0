/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: completion of several, cancelling, freeing, statuses, persistent, partitioned and generalized requests: MPI 5.0,
 * sections 3.7 to 3.9, chapter 4, section 13.2. */
#include "test/adi/check_mpi.h"

#include <string.h>

static int rank, size, next, previous;

/* ---- any, some, all ---- */

static void any_and_some(void)
{
	enum { N = 10 };
	MPI_Request request[N], sends[N];
	MPI_Status status[N];
	int in[N], out[N], index[N], at, n, flag, seen = 0;
	for (int i = 0; i < N; i++) {
		out[i] = i;
		MPI_Irecv(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD, &request[i]);
	}
	MPI_Testany(N, request, &at, &flag, &status[0]);
	CHECK(!flag && at == MPI_UNDEFINED);
	MPI_Testsome(N, request, &n, index, status);
	CHECK(n == 0);
	MPI_Testall(N, request, &flag, status);
	CHECK(!flag);
	MPI_Request_get_status_any(N, request, &at, &flag, status);
	CHECK(!flag);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Isend(&out[7], 1, MPI_INT, next, 7, MPI_COMM_WORLD, &sends[7]);
	MPI_Waitany(N, request, &at, &status[0]);
	CHECK(at == 7 && request[7] == MPI_REQUEST_NULL && in[7] == 7 && status[0].MPI_TAG == 7);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < N; i++)
		if (i != 7)
			MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &sends[i]);
	while (seen < N - 1) {
		MPI_Waitsome(N, request, &n, index, status);
		CHECK(n > 0);
		for (int i = 0; i < n; i++)
			CHECK(in[index[i]] == index[i] && status[i].MPI_TAG == index[i] && request[index[i]] == MPI_REQUEST_NULL);
		seen += n;
	}
	MPI_Waitsome(N, request, &n, index, status);
	CHECK(n == MPI_UNDEFINED);
	MPI_Waitany(N, request, &at, &status[0]);
	CHECK(at == MPI_UNDEFINED && status[0].MPI_SOURCE == MPI_ANY_SOURCE);
	MPI_Testany(N, request, &at, &flag, &status[0]);
	CHECK(flag && at == MPI_UNDEFINED);
	MPI_Testall(N, request, &flag, MPI_STATUSES_IGNORE);
	CHECK(flag);
	MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
}

/* Statuses of complete requests that are not freed. */
static void status_without_freeing(void)
{
	int in[2], out = 5, flag = 0, n, index[2], count;
	MPI_Request request[2];
	MPI_Status status[2];
	MPI_Irecv(&in[0], 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &request[0]);
	MPI_Irecv(&in[1], 1, MPI_INT, previous, 2, MPI_COMM_WORLD, &request[1]);
	MPI_Send(&out, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
	while (!flag)
		MPI_Request_get_status(request[0], &flag, &status[0]);
	MPI_Get_count(&status[0], MPI_INT, &count);
	CHECK(status[0].MPI_SOURCE == previous && status[0].MPI_TAG == 1 && count == 1);
	MPI_Request_get_status_all(2, request, &flag, status);
	CHECK(!flag || size == 1);
	MPI_Request_get_status_some(2, request, &n, index, status);
	CHECK(n == 1 && index[0] == 0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(&out, 1, MPI_INT, next, 2, MPI_COMM_WORLD);
	for (flag = 0; !flag;)
		MPI_Request_get_status_all(2, request, &flag, status);
	CHECK(status[1].MPI_TAG == 2 && request[1] != MPI_REQUEST_NULL);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status[0]);
	CHECK(flag && status[0].MPI_SOURCE == MPI_ANY_SOURCE);
}

/* A failure of one of several: only then the error fields are set. */
static void errors_in_statuses(void)
{
	int in[3] = { 0 }, out[2] = { 4, 5 }, flag;
	MPI_Request request[3];
	MPI_Status status[3];
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Irecv(&in[0], 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &request[0]);
	MPI_Irecv(&in[1], 1, MPI_INT, previous, 2, MPI_COMM_WORLD, &request[1]);
	MPI_Irecv(&in[2], 1, MPI_INT, previous, 3, MPI_COMM_WORLD, &request[2]);
	MPI_Send(out, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
	MPI_Send(out, 2, MPI_INT, next, 2, MPI_COMM_WORLD);
	MPI_Send(out, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++)
		status[i].MPI_ERROR = 77;
	CHECK(MPI_Waitall(3, request, status) == MPI_ERR_IN_STATUS);
	CHECK(status[0].MPI_ERROR == MPI_SUCCESS && status[1].MPI_ERROR == MPI_ERR_TRUNCATE && status[2].MPI_ERROR == MPI_SUCCESS);
	CHECK(in[0] == 4 && in[1] == 4 && in[2] == 4);
	MPI_Irecv(&in[0], 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &request[0]);
	MPI_Send(out, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
	status[0].MPI_ERROR = 77;
	CHECK(MPI_Waitall(1, request, status) == MPI_SUCCESS && status[0].MPI_ERROR == 77);
	MPI_Irecv(&in[0], 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &request[0]);
	MPI_Send(out, 2, MPI_INT, next, 1, MPI_COMM_WORLD);
	int class;
	do
		class = MPI_Test(&request[0], &flag, &status[0]);
	while (!flag);
	CHECK(class == MPI_ERR_TRUNCATE && request[0] == MPI_REQUEST_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* ---- cancelling and freeing ---- */

static void cancel(void)
{
	int in = 3, flag, out = 8;
	MPI_Request request;
	MPI_Status status;
	MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
	MPI_Cancel(&request);
	MPI_Wait(&request, &status);
	MPI_Test_cancelled(&status, &flag);
	CHECK(flag && in == 3 && request == MPI_REQUEST_NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Irecv(&in, 1, MPI_INT, previous, 99, MPI_COMM_WORLD, &request);
	MPI_Send(&out, 1, MPI_INT, next, 99, MPI_COMM_WORLD);
	for (flag = 0; !flag;)
		MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
	MPI_Cancel(&request);
	MPI_Wait(&request, &status);
	MPI_Test_cancelled(&status, &flag);
	CHECK(!flag && in == 8 && status.MPI_SOURCE == previous);
	MPI_Status_set_cancelled(&status, 1);
	MPI_Test_cancelled(&status, &flag);
	CHECK(flag);
	MPI_Status_set_tag(&status, 12);
	MPI_Status_set_source(&status, 13);
	MPI_Status_set_error(&status, MPI_ERR_TAG);
	int tag, source, error;
	MPI_Status_get_tag(&status, &tag);
	MPI_Status_get_source(&status, &source);
	MPI_Status_get_error(&status, &error);
	CHECK(tag == 12 && source == 13 && error == MPI_ERR_TAG);
}

/* Requests that are freed before they are complete. */
static void freed(void)
{
	enum { LEN = 200000 };
	static int out[2 * LEN], in[LEN];
	int done = 0;
	MPI_Datatype type;
	MPI_Request request;
	MPI_Type_vector(LEN, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < LEN; i++)
		out[2 * i] = i + rank;
	MPI_Irecv(&done, 1, MPI_INT, next, 2, MPI_COMM_WORLD, &request);
	MPI_Request_free(&request);
	CHECK(request == MPI_REQUEST_NULL);
	MPI_Isend(out, 1, type, next, 1, MPI_COMM_WORLD, &request);
	MPI_Type_free(&type);
	MPI_Request_free(&request);
	MPI_Recv(in, LEN, MPI_INT, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < LEN; i++)
		CHECK(in[i] == i + previous);
	int one = 1;
	MPI_Send(&one, 1, MPI_INT, previous, 2, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	for (volatile int *seen = &done; !*seen;) {
		int flag;
		MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	}
}

/* ---- persistent requests ---- */

static void persistent(void)
{
	enum { LEN = 30000 };
	static int out[LEN], in[LEN];
	MPI_Request request[2];
	MPI_Status status;
	int flag, room = LEN * (int)sizeof(int) + MPI_BSEND_OVERHEAD;
	void *buffer = malloc((size_t)room);
	for (int mode = 0; mode < 4; mode++) {
		if (mode == 3)
			MPI_Buffer_attach(buffer, room);
		int (*const init[4])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
			MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init
		};
		init[mode](out, LEN, MPI_INT, next, mode, MPI_COMM_WORLD, &request[1]);
		MPI_Recv_init(in, LEN, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request[0]);
		MPI_Wait(&request[0], &status);
		CHECK(request[0] != MPI_REQUEST_NULL && status.MPI_SOURCE == MPI_ANY_SOURCE);
		for (int turn = 0; turn < 5; turn++) {
			for (int i = 0; i < LEN; i++)
				out[i] = rank + turn * i;
			MPI_Start(&request[0]);
			MPI_Barrier(MPI_COMM_WORLD);
			MPI_Start(&request[1]);
			MPI_Wait(&request[0], &status);
			MPI_Wait(&request[1], MPI_STATUS_IGNORE);
			CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == mode);
			for (int i = 0; i < LEN; i++)
				CHECK(in[i] == previous + turn * i);
			MPI_Test(&request[0], &flag, &status);
			CHECK(flag && status.MPI_TAG == MPI_ANY_TAG);
			MPI_Barrier(MPI_COMM_WORLD);
		}
		MPI_Startall(1, request);
		MPI_Cancel(&request[0]);
		MPI_Wait(&request[0], &status);
		MPI_Test_cancelled(&status, &flag);
		CHECK(flag);
		MPI_Request_free(&request[0]);
		MPI_Request_free(&request[1]);
		CHECK(request[0] == MPI_REQUEST_NULL && request[1] == MPI_REQUEST_NULL);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	int taken;
	void *detached;
	MPI_Buffer_detach(&detached, &taken);
	free(buffer);
}

/* ---- partitioned ---- */

static void partitioned(void)
{
	enum { PARTS = 12, LEN = 600 };
	static int out[2][PARTS * LEN], in[2][PARTS * LEN];
	MPI_Request send[2], receive[2];
	int flag, list[4] = { 9, 8, 11, 10 };
	/* Two communications with the same envelope; their partitions differ between sender and receiver. */
	for (int k = 0; k < 2; k++) {
		MPI_Psend_init(out[k], PARTS, LEN, MPI_INT, next, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &send[k]);
		MPI_Precv_init(in[k], PARTS / 2, LEN * 2, MPI_INT, previous, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &receive[k]);
	}
	for (int turn = 0; turn < 3; turn++) {
		for (int k = 0; k < 2; k++)
			for (int i = 0; i < PARTS * LEN; i++)
				out[k][i] = rank + k * 100 + turn * i;
		MPI_Start(&receive[1]);
		MPI_Start(&receive[0]);
		MPI_Parrived(receive[0], 0, &flag);
		CHECK(!flag);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Startall(2, send);
		for (int k = 1; k >= 0; k--) {
			MPI_Pready(7, send[k]);
			MPI_Pready_range(0, 6, send[k]);
			MPI_Pready_list(4, list, send[k]);
		}
		for (int i = 0; i < PARTS / 2; i++)
			for (flag = 0; !flag;)
				MPI_Parrived(receive[1], i, &flag);
		MPI_Waitall(2, receive, MPI_STATUSES_IGNORE);
		MPI_Waitall(2, send, MPI_STATUSES_IGNORE);
		for (int k = 0; k < 2; k++)
			for (int i = 0; i < PARTS * LEN; i++)
				CHECK(in[k][i] == previous + k * 100 + turn * i);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	for (int k = 0; k < 2; k++) {
		MPI_Request_free(&send[k]);
		MPI_Request_free(&receive[k]);
	}
}

static void await_partition(MPI_Request request, int partition)
{
	for (int flag = 0; !flag;)
		MPI_Parrived(request, partition, &flag);
}

/* A partition arrives before others are ready. Would wait without end if all partitions were one message. */
static void partitions_early(int count, MPI_Datatype type, int out_parts, int in_parts)
{
	MPI_Request send, receive;
	MPI_Status status;
	MPI_Aint lb, extent;
	MPI_Type_get_extent(type, &lb, &extent);
	int each = (int)(extent / (MPI_Aint)sizeof(int)), ints = each * count, got, flag, of_type;
	int *out = malloc((size_t)ints * sizeof *out), *in = malloc((size_t)ints * sizeof *in);
	MPI_Type_size(type, &of_type);
	MPI_Psend_init(out, out_parts, count / out_parts, type, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
	MPI_Precv_init(in, in_parts, count / in_parts, type, previous, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < ints; i++) {
			out[i] = rank + turn * i;
			in[i] = -1;
		}
		/* The receive starts before the partitions arrive, then after it. */
		if (turn != 1)
			MPI_Start(&receive);
		MPI_Start(&send);
		MPI_Pready_range(out_parts / 2, out_parts - 1, send);
		MPI_Barrier(MPI_COMM_WORLD);
		if (turn == 1)
			MPI_Start(&receive);
		for (int i = (in_parts + 1) / 2; i < in_parts; i++)
			await_partition(receive, i);
		MPI_Parrived(receive, 0, &flag);
		CHECK(!flag);
		for (int i = (in_parts + 1) / 2 * (count / in_parts) * each; i < ints; i++)
			CHECK(in[i] == previous + turn * i || (in[i] == -1 && i % each * (int)sizeof(int) >= of_type));
		MPI_Test(&receive, &flag, MPI_STATUS_IGNORE);
		CHECK(!flag);
		MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
		CHECK(!flag);
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = out_parts / 2 - 1; i >= 0; i--)
			MPI_Pready(i, send);
		MPI_Wait(&receive, &status);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		MPI_Get_count(&status, type, &got);
		CHECK(got == count && status.MPI_SOURCE == previous && status.MPI_TAG == 5);
		for (int i = 0; i < ints; i++)
			CHECK(in[i] == previous + turn * i || (in[i] == -1 && i % each * (int)sizeof(int) >= of_type));
	}
	MPI_Request_free(&send);
	MPI_Request_free(&receive);
	free(out);
	free(in);
}

/* Counts that differ: a receive that is too long, one that is too short, and empty ones. */
static void partitions_unequal(void)
{
	static int out[3000], in[3000];
	MPI_Request request[2];
	MPI_Status status[2];
	int count, class;
	for (int longer = 0; longer < 2; longer++) {
		MPI_Psend_init(out, 3, longer ? 1000 : 700, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &request[0]);
		MPI_Precv_init(in, 2, longer ? 1000 : 1200, MPI_INT, previous, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &request[1]);
		for (int i = 0; i < 3000; i++) {
			out[i] = rank + i;
			in[i] = -1;
		}
		MPI_Startall(2, request);
		MPI_Pready_range(0, 2, request[0]);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		class = MPI_Wait(&request[1], &status[1]);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
		CHECK(class == (longer ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
		MPI_Wait(&request[0], MPI_STATUS_IGNORE);
		MPI_Get_count(&status[1], MPI_INT, &count);
		CHECK(longer || count == 2100);
		for (int i = 0; i < 3000; i++)
			CHECK(in[i] == (i < (longer ? 2000 : 2100) ? previous + i : -1));
		MPI_Request_free(&request[0]);
		MPI_Request_free(&request[1]);
	}
	for (int kind = 0; kind < 3; kind++) { /* no partitions; empty partitions; no process */
		int parts = kind ? 2 : 0, length = kind == 2 ? 5 : 0;
		MPI_Psend_init(out, parts, length, MPI_INT, kind == 2 ? MPI_PROC_NULL : next, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
			       &request[0]);
		MPI_Precv_init(in, parts, length, MPI_INT, kind == 2 ? MPI_PROC_NULL : previous, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
			       &request[1]);
		for (int turn = 0; turn < 2; turn++) {
			MPI_Startall(2, request);
			for (int i = 0; i < parts; i++)
				MPI_Pready(i, request[0]);
			MPI_Waitall(2, request, status);
			MPI_Get_count(&status[1], MPI_INT, &count);
			CHECK(count == 0);
		}
		MPI_Request_free(&request[0]);
		MPI_Request_free(&request[1]);
	}
}

/* A receive is cancelled before anything was sent; the next start gets the message. */
static void partitions_cancelled(void)
{
	int out[8], in[8] = { 0 }, flag;
	MPI_Request send, receive;
	MPI_Status status;
	MPI_Psend_init(out, 4, 2, MPI_INT, next, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
	MPI_Precv_init(in, 4, 2, MPI_INT, previous, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < 8; i++)
			out[i] = rank + i + turn;
		MPI_Start(&receive);
		MPI_Cancel(&receive);
		MPI_Wait(&receive, &status);
		MPI_Test_cancelled(&status, &flag);
		CHECK(flag);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Start(&receive);
		MPI_Start(&send);
		MPI_Pready_range(0, 3, send);
		MPI_Wait(&receive, &status);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		MPI_Test_cancelled(&status, &flag);
		CHECK(!flag);
		for (int i = 0; i < 8; i++)
			CHECK(in[i] == previous + i + turn);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Request_free(&send);
	MPI_Request_free(&receive);
}

static void partitions(void)
{
	MPI_Datatype spread, odd;
	MPI_Type_vector(1, 2, 3, MPI_INT, &spread);
	MPI_Type_create_resized(spread, 0, 3 * sizeof(int), &odd); /* 2 of 3 ints */
	MPI_Type_commit(&odd);
	partitions_early(24, MPI_INT, 4, 6);
	partitions_early(24, MPI_INT, 2, 3);
	partitions_early(1 << 20, MPI_INT, 8, 4);
	partitions_early(24, odd, 4, 4);
	partitions_early(30000, odd, 4, 6);
	MPI_Type_free(&odd);
	MPI_Type_free(&spread);
	/* Partitions of the sender end inside elements of the receive's type. */
	int out[24], in[36];
	MPI_Request request[2];
	MPI_Type_vector(4, 2, 3, MPI_INT, &spread);
	MPI_Type_create_resized(spread, 0, 12 * sizeof(int), &odd);
	MPI_Type_commit(&odd);
	MPI_Psend_init(out, 8, 3, MPI_INT, next, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request[0]);
	MPI_Precv_init(in, 3, 1, odd, previous, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request[1]);
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < 24; i++)
			out[i] = rank + i + turn;
		for (int i = 0; i < 36; i++)
			in[i] = -1;
		MPI_Startall(2, request);
		MPI_Pready_range(2, 5, request[0]);
		await_partition(request[1], 1); /* bytes 32 to 63: parts 2 to 5 of 12 bytes */
		MPI_Pready_range(0, 1, request[0]);
		MPI_Pready_range(6, 7, request[0]);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		for (int i = 0; i < 36; i++)
			CHECK(in[i] == (i % 3 == 2 ? -1 : previous + i / 3 * 2 + i % 3 + turn));
	}
	MPI_Request_free(&request[0]);
	MPI_Request_free(&request[1]);
	MPI_Type_free(&odd);
	MPI_Type_free(&spread);
	partitions_unequal();
	partitions_cancelled();
}

/* ---- generalized ---- */

struct state {
	int queried, freed, cancelled;
};

static int query(void *state, MPI_Status *status)
{
	((struct state *)state)->queried++;
	status->MPI_SOURCE = 5;
	status->MPI_TAG = 6;
	MPI_Status_set_elements(status, MPI_INT, 3);
	MPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}

static int release(void *state)
{
	((struct state *)state)->freed++;
	return MPI_SUCCESS;
}

static int give_up(void *state, int complete)
{
	((struct state *)state)->cancelled += complete ? 100 : 1;
	return MPI_SUCCESS;
}

static void generalized(void)
{
	struct state state = { 0, 0, 0 };
	MPI_Request request;
	MPI_Status status;
	int flag, count;
	MPI_Grequest_start(query, release, give_up, &state, &request);
	MPI_Test(&request, &flag, &status);
	CHECK(!flag && state.queried == 0);
	MPI_Cancel(&request);
	CHECK(state.cancelled == 1);
	MPI_Grequest_complete(request);
	MPI_Wait(&request, &status);
	MPI_Get_count(&status, MPI_INT, &count);
	CHECK(status.MPI_SOURCE == 5 && status.MPI_TAG == 6 && count == 3);
	CHECK(state.queried == 1 && state.freed == 1 && request == MPI_REQUEST_NULL);
	MPI_Grequest_start(query, release, give_up, &state, &request);
	MPI_Request copy = request;
	MPI_Request_free(&request);
	CHECK(state.freed == 1);
	MPI_Grequest_complete(copy);
	CHECK(state.freed == 2);
}

/* A copy of the handle of a freed request is no handle of the requests that use its memory later. */
static void stale_handles(void)
{
	enum { TURNS = 200, KEPT = 31 };
	MPI_Request old[KEPT];
	int in = -1, flag, code, class;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int turn = 0; turn < TURNS; turn++) {
		MPI_Request request;
		MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
		CHECK(MPI_Request_fromint(MPI_Request_toint(request)) == request);
		for (int i = 0; i < KEPT && i < turn; i++) {
			MPI_Request copy = old[i];
			code = MPI_Test(&copy, &flag, MPI_STATUS_IGNORE);
			MPI_Error_class(code, &class);
			CHECK(class == MPI_ERR_REQUEST);
		}
		old[turn % KEPT] = request;
		MPI_Send(&turn, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
		CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && in == turn);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	any_and_some();
	MPI_Barrier(MPI_COMM_WORLD);
	status_without_freeing();
	MPI_Barrier(MPI_COMM_WORLD);
	errors_in_statuses();
	cancel();
	MPI_Barrier(MPI_COMM_WORLD);
	freed();
	MPI_Barrier(MPI_COMM_WORLD);
	persistent();
	partitioned();
	partitions();
	generalized();
	stale_handles();
	MPI_Finalize();
	return 0;
}
