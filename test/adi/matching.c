/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receive matches which message, and the data and status that it gets: MPI 5.0, sections 3.2 to 3.10. Most cases
 * use ranks 0 and 1 only. */
#include "test/adi/check_mpi.h"

#include <string.h>

#define EAGER 1000     /* bytes: below the threshold HEADRACE_EAGER_MAX */
#define LARGE 300000   /* bytes: above the threshold */
#define HUGE_ (64 << 20)

static int rank, size;

static void expect(const MPI_Status *status, int source, int tag, int bytes)
{
	int count;
	MPI_Get_count(status, MPI_BYTE, &count);
	CHECK(status->MPI_SOURCE == source);
	CHECK(status->MPI_TAG == tag);
	CHECK(count == bytes);
}

/* Messages with the same envelope match in the order of sending, whatever their sizes and protocols. */
static void order_is_kept(void)
{
	enum { N = 400 };
	static unsigned char bytes[LARGE];
	for (int i = 0; i < N; i++) {
		int len = i % 7 == 3 ? LARGE : i % 100;
		MPI_Status status;
		if (rank == 0) {
			fill(bytes, (size_t)len, (unsigned)i);
			MPI_Send(bytes, len, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
		} else if (rank == 1) {
			MPI_Recv(bytes, LARGE, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &status);
			expect(&status, 0, 5, len);
			CHECK(filled(bytes, (size_t)len, (unsigned)i));
		}
	}
}

/* Receives in the reverse order of sending: messages that are received later are unexpected. */
static void tags_choose(void)
{
	enum { N = 20 };
	static unsigned char bytes[N][LARGE];
	MPI_Request request[N];
	for (int i = 0; i < N; i++) {
		int len = i % 2 ? LARGE : EAGER;
		if (rank == 0) {
			fill(bytes[i], (size_t)len, (unsigned)i);
			MPI_Isend(bytes[i], len, MPI_BYTE, 1, i, MPI_COMM_WORLD, &request[i]);
		}
	}
	for (int i = N - 1; i >= 0; i--) {
		int len = i % 2 ? LARGE : EAGER;
		MPI_Status status;
		if (rank == 1) {
			MPI_Recv(bytes[i], LARGE, MPI_BYTE, 0, i, MPI_COMM_WORLD, &status);
			expect(&status, 0, i, len);
			CHECK(filled(bytes[i], (size_t)len, (unsigned)i));
		}
	}
	if (rank == 0)
		CHECK(MPI_Waitall(N, request, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
}

/* Receives with both wildcards: the messages of each sender arrive in order. */
static void wildcards_take_all(void)
{
	enum { N = 100 };
	int next[64] = { 0 };
	if (rank != 0)
		for (int i = 0; i < N; i++)
			MPI_Send(&i, 1, MPI_INT, 0, 100 + i, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < N * (size - 1); i++) {
		int value;
		MPI_Status status;
		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		CHECK(status.MPI_SOURCE > 0 && status.MPI_SOURCE < size);
		CHECK(value == next[status.MPI_SOURCE % 64]++ || size > 64);
		expect(&status, status.MPI_SOURCE, 100 + value, sizeof value);
	}
}

/* Messages that are sent before their receives are posted. */
static void unexpected_messages_wait(void)
{
	static unsigned char small[EAGER], large[LARGE];
	MPI_Request request[2];
	MPI_Status status;
	if (rank == 0) {
		fill(small, EAGER, 1);
		fill(large, LARGE, 2);
		MPI_Isend(small, EAGER, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request[0]);
		MPI_Isend(large, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request[1]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		CHECK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
	if (rank == 1) {
		MPI_Recv(large, LARGE, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
		expect(&status, 0, 2, LARGE);
		CHECK(filled(large, LARGE, 2));
		MPI_Recv(small, EAGER, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		expect(&status, 0, 1, EAGER);
		CHECK(filled(small, EAGER, 1));
	}
}

/* A message that is longer than the receive: the receive returns an error and the part that fits, and the next message
 * arrives correctly. */
static void truncation_is_an_error(void)
{
	static unsigned char bytes[LARGE];
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 4; i++) {
		int len = i % 2 ? LARGE : EAGER;
		bool early = i / 2; /* receive posted before the message is sent */
		MPI_Request request;
		MPI_Status status;
		memset(bytes, 0xaa, sizeof bytes);
		if (rank == 1 && early)
			MPI_Irecv(bytes, 10, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0) {
			fill(bytes, (size_t)len, (unsigned)i);
			CHECK(MPI_Send(bytes, len, MPI_BYTE, 1, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
			CHECK(MPI_Send(&i, 1, MPI_INT, 1, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
		} else if (rank == 1) {
			int next, class = early ? MPI_Wait(&request, &status) :
						  MPI_Recv(bytes, 10, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
			CHECK(class == MPI_ERR_TRUNCATE);
			CHECK(filled(bytes, 10, (unsigned)i));
			CHECK(bytes[10] == 0xaa);
			CHECK(MPI_Recv(&next, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
			CHECK(next == i);
		}
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void huge_messages_pass_both_ways(void)
{
	if (rank > 1)
		return;
	unsigned char *out = malloc(HUGE_), *in = malloc(HUGE_);
	MPI_Request request[2];
	MPI_Status status[2];
	fill(out, HUGE_, (unsigned)rank);
	MPI_Irecv(in, HUGE_, MPI_BYTE, 1 - rank, 9, MPI_COMM_WORLD, &request[0]);
	MPI_Isend(out, HUGE_, MPI_BYTE, 1 - rank, 9, MPI_COMM_WORLD, &request[1]);
	CHECK(MPI_Waitall(2, request, status) == MPI_SUCCESS);
	expect(&status[0], 1 - rank, 9, HUGE_);
	CHECK(filled(in, HUGE_, (unsigned)(1 - rank)));
	free(out);
	free(in);
}

/* Every rank sends many messages to every rank. Even ranks send before they post their receives, odd ranks after. */
static void many_at_a_time(void)
{
	enum { N = 300 };
	MPI_Request *request = malloc(2 * N * (size_t)size * sizeof *request);
	long *out = malloc(N * (size_t)size * sizeof *out), *in = malloc(N * (size_t)size * sizeof *in);
	int n = 0;
	for (int phase = 0; phase < 2; phase++) {
		for (int peer = 0; peer < size; peer++) {
			for (int i = 0; i < N; i++) {
				int at = peer * N + i;
				out[at] = (long)rank * 1000000 + peer * 1000 + i;
				if ((rank % 2) == phase)
					MPI_Isend(&out[at], 1, MPI_LONG, peer, i % 10, MPI_COMM_WORLD, &request[n++]);
				else
					MPI_Irecv(&in[at], 1, MPI_LONG, peer, i % 10, MPI_COMM_WORLD, &request[n++]);
			}
		}
	}
	CHECK(n == 2 * N * size);
	CHECK(MPI_Waitall(n, request, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
	for (int i = 0; i < n; i++)
		CHECK(request[i] == MPI_REQUEST_NULL);
	for (int peer = 0; peer < size; peer++)
		for (int i = 0; i < N; i++)
			CHECK(in[peer * N + i] == (long)peer * 1000000 + rank * 1000 + i);
	free(request);
	free(out);
	free(in);
}

/* Length of the i-th message of a window: long ones of both protocols, short and empty ones between them. */
static int mixed_length(int i)
{
	static const int lengths[] = { 20000, 65536, 40, 0, 100000, 30000, 300000, 7, 64000 };
	return lengths[(i * 7 + i / 9) % 9];
}

/* Windows of long messages in both directions, into receives that were posted before, or after (every third window), or in
 * which every fifth receive has gaps. Over verbs many of the messages are being transferred at a time. */
static void windows_of_long_messages(void)
{
	enum { WINDOWS = 12, N = 40 };
	static unsigned char out[N][LARGE], in[N][2 * LARGE];
	MPI_Request request[2 * N];
	MPI_Datatype gaps;
	MPI_Type_create_resized(MPI_BYTE, 0, 2, &gaps);
	MPI_Type_commit(&gaps);
	for (int w = 0; w < WINDOWS; w++) {
		for (int i = 0; i < N; i++)
			fill(out[i], (size_t)mixed_length(i + w), (unsigned)(rank * 1000 + w * N + i));
		memset(in, 0, sizeof in);
		for (int phase = 0; phase < 2; phase++)
			for (int i = 0; i < N; i++)
				if ((w % 3 == 2) == phase)
					MPI_Irecv(in[i], LARGE, i % 5 == 4 ? gaps : MPI_BYTE, 1 - rank, i % 2, MPI_COMM_WORLD, &request[i]);
				else
					MPI_Isend(out[i], mixed_length(i + w), MPI_BYTE, 1 - rank, i % 2, MPI_COMM_WORLD, &request[N + i]);
		MPI_Waitall(2 * N, request, MPI_STATUSES_IGNORE);
		for (int i = 0; i < N; i++) {
			int len = mixed_length(i + w);
			for (int k = 0; i % 5 == 4 && k < len; k++)
				in[i][k] = in[i][2 * k];
			CHECK(filled(in[i], (size_t)len, (unsigned)((1 - rank) * 1000 + w * N + i)));
		}
	}
	MPI_Type_free(&gaps);
}

static void nobody_and_oneself(void)
{
	int value = 17, other = 0, count;
	MPI_Status status;
	MPI_Request request;
	MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
	MPI_Recv(&other, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
	CHECK(other == 0 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
	MPI_Get_count(&status, MPI_INT, &count);
	CHECK(count == 0);
	MPI_Irecv(&other, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &request);
	MPI_Send(&value, 1, MPI_INT, rank, 4, MPI_COMM_WORLD);
	MPI_Wait(&request, &status);
	expect(&status, rank, 4, sizeof value);
	CHECK(other == 17 && request == MPI_REQUEST_NULL);
	/* MPI_COMM_SELF has its own rank 0 and shares no messages with the world. */
	value = 18;
	MPI_Isend(&value, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &request);
	other = 19;
	MPI_Send(&other, 1, MPI_INT, 0, 4, MPI_COMM_SELF);
	MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_SELF, &status);
	expect(&status, 0, 4, sizeof value);
	CHECK(other == 19);
	MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status);
	expect(&status, rank, 4, sizeof value);
	CHECK(other == 18);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void test_and_count(void)
{
	int flag = 0, count, value[3] = { 1, 2, 3 };
	MPI_Status status;
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Test(&request, &flag, &status);
	CHECK(flag == 1 && status.MPI_SOURCE == MPI_ANY_SOURCE);
	if (rank == 1) {
		MPI_Irecv(value, 3, MPI_INT, 0, 6, MPI_COMM_WORLD, &request);
		MPI_Test(&request, &flag, &status);
		CHECK(!flag && request != MPI_REQUEST_NULL);
		MPI_Send(NULL, 0, MPI_INT, 0, 7, MPI_COMM_WORLD);
		while (!flag)
			MPI_Test(&request, &flag, &status);
		CHECK(request == MPI_REQUEST_NULL && value[0] == 40);
		MPI_Get_count(&status, MPI_INT, &count);
		CHECK(count == MPI_UNDEFINED);
		MPI_Get_count(&status, MPI_CHAR, &count);
		CHECK(count == 6);
	} else if (rank == 0) {
		MPI_Recv(NULL, 0, MPI_INT, 1, 7, MPI_COMM_WORLD, &status);
		value[0] = 40;
		MPI_Send(value, 6, MPI_CHAR, 1, 6, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	nobody_and_oneself();
	MPI_Barrier(MPI_COMM_WORLD); /* the wildcards above must not match messages of the next case */
	many_at_a_time();
	if (size > 1) {
		order_is_kept();
		tags_choose();
		wildcards_take_all();
		MPI_Barrier(MPI_COMM_WORLD);
		unexpected_messages_wait();
		truncation_is_an_error();
		test_and_count();
		huge_messages_pass_both_ways();
		if (rank < 2)
			windows_of_long_messages();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("matching: %d ranks: correct\n", size);
	MPI_Finalize();
	return 0;
}
