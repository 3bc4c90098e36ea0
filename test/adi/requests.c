/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: completion of several, cancelling, freeing, statuses, persistent, partitioned and generalized requests: MPI 5.0, sections
 * 3.7 to 3.9, chapter 4, section 13.2. */
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
	generalized();
	MPI_Finalize();
	return 0;
}
