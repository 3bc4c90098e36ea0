/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Cancel of sends: MPI 5.0, section 3.8.4. Rank 0 sends to the last rank, which may be rank 0 itself. A message that no
 * receive has matched is taken back; a matched one arrives. */
#include "test/adi/check_mpi.h"

#include <string.h>

enum { TAG = 7, END = 8 };

static int rank, last;
static char data[1000000], buffer[2000000];
static const int lengths[] = { 0, 1, 100, 10000, 1000000 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

enum mode { STANDARD, SYNCHRONOUS, BUFFERED, READY, MODES };

static MPI_Request sent(enum mode mode, const void *bytes, int len, int tag)
{
	static int (*const start[MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
		MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend
	};
	MPI_Request request;
	start[mode](bytes, len, MPI_BYTE, last, tag, MPI_COMM_WORLD, &request);
	return request;
}

static MPI_Request prepared(enum mode mode, const void *bytes, int len, int tag)
{
	static int (*const init[MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
		MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init
	};
	MPI_Request request;
	init[mode](bytes, len, MPI_BYTE, last, tag, MPI_COMM_WORLD, &request);
	return request;
}

static bool cancelled(MPI_Request *request)
{
	MPI_Status status;
	int flag;
	MPI_Cancel(request);
	MPI_Wait(request, &status);
	MPI_Test_cancelled(&status, &flag);
	return flag;
}

/* Nothing of TAG has arrived, although everything before has. */
static void nothing_is_left(void)
{
	int flag;
	if (rank == last) {
		MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		CHECK(!flag);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Everything that no receive has matched is taken back: the receiver is in the barrier and has posted nothing. */
static void unmatched_sends(enum mode mode, int len)
{
	if (rank == 0) {
		MPI_Request request = sent(mode, data, len, TAG);
		CHECK(cancelled(&request));
		CHECK(request == MPI_REQUEST_NULL);
		request = prepared(mode, data, len, TAG);
		for (int i = 0; i < 2; i++) {
			MPI_Start(&request);
			CHECK(cancelled(&request));
		}
		MPI_Request_free(&request);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	nothing_is_left();
}

/* Of several messages with the same envelope, the right one is taken back, and the order of the others stays. */
static void one_of_many(int len)
{
	enum { N = 300, GONE = 123 };
	static char one[N];
	MPI_Request request[N];
	if (rank == 0) {
		for (int i = 0; i < N; i++) {
			one[i] = (char)i;
			request[i] = i == GONE ? sent(STANDARD, data, len, TAG) : sent(STANDARD, &one[i], 1, TAG);
		}
		CHECK(cancelled(&request[GONE]));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; rank == last && i < N; i++) {
		MPI_Status status;
		char got = 0;
		int bytes;
		if (i == GONE)
			continue;
		MPI_Recv(&got, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &bytes);
		CHECK(bytes == 1 && got == (char)i);
	}
	if (rank == 0)
		MPI_Waitall(N, request, MPI_STATUSES_IGNORE);
	nothing_is_left();
}

/* A message that has matched a receive arrives. */
static void matched_sends(enum mode mode, int len)
{
	static char got[sizeof data];
	MPI_Request receive, request;
	if (rank == last) {
		memset(got, 0, (size_t)len);
		MPI_Irecv(got, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &receive);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		request = sent(mode, data, len, TAG);
	if (rank == 0 && last != 0)
		CHECK(!cancelled(&request));
	if (rank == last) {
		MPI_Wait(&receive, MPI_STATUS_IGNORE);
		CHECK(memcmp(got, data, (size_t)len) == 0);
	}
	if (rank == 0 && last == 0)
		CHECK(!cancelled(&request));
	nothing_is_left();
}

/* A message of a matching probe is not taken back. */
static void probed_message(int len)
{
	static char got[sizeof data];
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Message message;
	if (rank == 0)
		request = sent(STANDARD, data, len, TAG);
	if (rank == last)
		MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Cancel(&request);
	if (rank == last) {
		MPI_Mrecv(got, len, MPI_BYTE, &message, MPI_STATUS_IGNORE);
		CHECK(memcmp(got, data, (size_t)len) == 0);
	}
	if (rank == 0) {
		MPI_Status status;
		int flag;
		MPI_Wait(&request, &status);
		MPI_Test_cancelled(&status, &flag);
		CHECK(!flag);
	}
	nothing_is_left();
}

/* A program may free the request instead of waiting for it. The message END arrives after the cancellation. */
static void freed_request(int len)
{
	if (rank == 0) {
		MPI_Request request = sent(SYNCHRONOUS, data, len, TAG);
		MPI_Cancel(&request);
		MPI_Request_free(&request);
		CHECK(request == MPI_REQUEST_NULL);
		MPI_Send(NULL, 0, MPI_BYTE, last, END, MPI_COMM_WORLD);
	}
	if (rank == last)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	nothing_is_left();
}

/* MPI_Cancel of a message to nobody, and twice of the same. */
static void without_effect(void)
{
	MPI_Request request;
	int other = last, flag;
	MPI_Status status;
	if (rank != 0)
		return;
	last = MPI_PROC_NULL;
	request = sent(STANDARD, data, 1, TAG);
	CHECK(!cancelled(&request));
	last = other;
	request = sent(STANDARD, data, 1, TAG);
	MPI_Cancel(&request);
	MPI_Cancel(&request);
	for (flag = 0; !flag;)
		MPI_Test(&request, &flag, &status);
	MPI_Test_cancelled(&status, &flag);
	CHECK(flag);
}

int main(int argc, char **argv)
{
	int size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	last = size - 1;
	fill(data, sizeof data, 3);
	MPI_Buffer_attach(buffer, sizeof buffer);
	for (int i = 0; i < LENGTHS; i++) {
		for (int mode = 0; mode < MODES; mode++) {
			if (mode != READY)
				unmatched_sends(mode, lengths[i]);
			matched_sends(mode, lengths[i]);
		}
		one_of_many(lengths[i]);
		probed_message(lengths[i]);
		freed_request(lengths[i]);
	}
	without_effect();
	MPI_Barrier(MPI_COMM_WORLD);
	nothing_is_left();
	void *old;
	int bytes;
	MPI_Buffer_detach(&old, &bytes);
	MPI_Finalize();
	return 0;
}
