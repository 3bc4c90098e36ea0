/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends in all modes and receives, with contiguous and derived datatypes, to the next rank, which may be the rank itself: MPI 5.0,
 * chapter 3. */
#include "test/adi/check_mpi.h"

#include <string.h>

static int rank, size, next, previous;

static void expect(const MPI_Status *status, int source, int tag, int bytes)
{
	int count;
	MPI_Get_count(status, MPI_BYTE, &count);
	CHECK(status->MPI_SOURCE == source);
	CHECK(status->MPI_TAG == tag);
	CHECK(count == bytes);
}

static const int lengths[] = { 0, 1, 8, 100, 4000, 70000, 300000 };
enum { LENGTHS = sizeof lengths / sizeof *lengths, MOST = 300000 };

/* ---- modes ---- */

enum mode { STANDARD, READY, SYNCHRONOUS, BUFFERED, MODES };

static void start_send(enum mode mode, const void *bytes, int len, int tag, MPI_Request *request)
{
	switch (mode) {
	case STANDARD: MPI_Isend(bytes, len, MPI_BYTE, next, tag, MPI_COMM_WORLD, request); break;
	case READY: MPI_Irsend(bytes, len, MPI_BYTE, next, tag, MPI_COMM_WORLD, request); break;
	case SYNCHRONOUS: MPI_Issend(bytes, len, MPI_BYTE, next, tag, MPI_COMM_WORLD, request); break;
	default: MPI_Ibsend(bytes, len, MPI_BYTE, next, tag, MPI_COMM_WORLD, request); break;
	}
}

static void modes(void)
{
	static unsigned char out[MOST], in[MOST];
	int room = MOST + MPI_BSEND_OVERHEAD, taken;
	void *buffer = malloc((size_t)room), *detached;
	MPI_Buffer_attach(buffer, room);
	for (int mode = 0; mode < MODES; mode++) {
		for (int i = 0; i < LENGTHS; i++) {
			MPI_Request request[2];
			MPI_Status status[2];
			fill(out, (size_t)lengths[i], (unsigned)(mode + rank));
			MPI_Irecv(in, MOST, MPI_BYTE, previous, mode, MPI_COMM_WORLD, &request[0]);
			MPI_Barrier(MPI_COMM_WORLD);
			start_send(mode, out, lengths[i], mode, &request[1]);
			CHECK(MPI_Waitall(2, request, status) == MPI_SUCCESS);
			expect(&status[0], previous, mode, lengths[i]);
			CHECK(filled(in, (size_t)lengths[i], (unsigned)(mode + previous)));
			if (mode == BUFFERED)
				MPI_Buffer_flush();
		}
	}
	MPI_Buffer_detach(&detached, &taken);
	CHECK(detached == buffer && taken == room);
	free(buffer);
}

/* A synchronous send completes only after the receive has started. */
static void synchronous_waits(void)
{
	int value = rank, got = -1, flag;
	MPI_Request request;
	MPI_Issend(&value, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &request);
	for (int i = 0; i < 1000; i++) {
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		CHECK(!flag);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Recv(&got, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(got == previous);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ---- buffered sends ---- */

static void buffers_are_used(void)
{
	enum { N = 20, LEN = 1000 };
	static char bytes[LEN], in[LEN];
	int room = N * (LEN + MPI_BSEND_OVERHEAD), taken;
	char *buffer = malloc((size_t)room), *detached;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK(MPI_Bsend(bytes, 1, MPI_BYTE, next, 1, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
	CHECK(MPI_Buffer_attach(buffer, room) == MPI_SUCCESS);
	CHECK(MPI_Buffer_attach(buffer, room) == MPI_ERR_BUFFER);
	for (int i = 0; i < N; i++) {
		memset(bytes, i, sizeof bytes);
		CHECK(MPI_Bsend(bytes, LEN, MPI_BYTE, next, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
	}
	CHECK(MPI_Bsend(bytes, room, MPI_BYTE, next, 1, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
	for (int i = 0; i < N; i++) {
		MPI_Recv(in, LEN, MPI_BYTE, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(in[0] == i && in[LEN - 1] == i);
	}
	MPI_Request request;
	CHECK(MPI_Buffer_iflush(&request) == MPI_SUCCESS);
	CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
	CHECK(MPI_Buffer_detach(&detached, &taken) == MPI_SUCCESS && detached == buffer && taken == room);
	CHECK(MPI_Buffer_detach(&detached, &taken) == MPI_ERR_BUFFER);
	CHECK(MPI_Comm_attach_buffer(MPI_COMM_WORLD, MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
	CHECK(MPI_Bsend(bytes, LEN, MPI_BYTE, next, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
	MPI_Recv(in, LEN, MPI_BYTE, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(MPI_Comm_flush_buffer(MPI_COMM_WORLD) == MPI_SUCCESS);
	CHECK(MPI_Comm_detach_buffer(MPI_COMM_WORLD, &detached, &taken) == MPI_SUCCESS);
	CHECK((void *)detached == MPI_BUFFER_AUTOMATIC);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	free(buffer);
}

/* ---- both in one call ---- */

static void sendrecv(void)
{
	static unsigned char out[MOST], in[MOST];
	MPI_Status status;
	MPI_Request request;
	for (int i = 0; i < LENGTHS; i++) {
		size_t len = (size_t)lengths[i];
		fill(out, len, (unsigned)rank);
		MPI_Sendrecv(out, lengths[i], MPI_BYTE, next, i, in, MOST, MPI_BYTE, previous, i, MPI_COMM_WORLD, &status);
		expect(&status, previous, i, lengths[i]);
		CHECK(filled(in, len, (unsigned)previous));
		MPI_Sendrecv_replace(out, lengths[i], MPI_BYTE, next, i, previous, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		expect(&status, previous, i, lengths[i]);
		CHECK(filled(out, len, (unsigned)previous));
		fill(out, len, (unsigned)rank);
		memset(in, 0, len);
		MPI_Isendrecv(out, lengths[i], MPI_BYTE, next, i, in, MOST, MPI_BYTE, previous, i, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, &status);
		expect(&status, previous, i, lengths[i]);
		CHECK(filled(in, len, (unsigned)previous));
		MPI_Isendrecv_replace(out, lengths[i], MPI_BYTE, next, i, previous, i, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, &status);
		expect(&status, previous, i, lengths[i]);
		CHECK(filled(out, len, (unsigned)previous));
	}
	MPI_Sendrecv(out, 1, MPI_BYTE, MPI_PROC_NULL, 0, in, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
	CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
}

/* A message of nobody needs no datatype; any other message does. */
static void nobody_without_datatype(void)
{
	MPI_Request request[2];
	MPI_Status status[2];
	MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request[0]);
	MPI_Isend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request[1]);
	MPI_Waitall(2, request, status);
	CHECK(status[0].MPI_SOURCE == MPI_PROC_NULL && status[0].MPI_TAG == MPI_ANY_TAG);
	MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status[0]);
	CHECK(status[0].MPI_SOURCE == MPI_PROC_NULL);
	MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
		     &status[0]);
	CHECK(status[0].MPI_SOURCE == MPI_PROC_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_WORLD) == MPI_ERR_TYPE);
	CHECK(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, -7, 1, MPI_COMM_WORLD) == MPI_ERR_TYPE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* ---- derived datatypes ---- */

/* Every second element of n. */
static MPI_Datatype every_second(int n)
{
	MPI_Datatype type;
	MPI_Type_vector(n, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	return type;
}

/* Blocks of 100 ints with gaps of 28. */
static MPI_Datatype blocks(int n)
{
	MPI_Datatype type;
	MPI_Type_vector(n / 100, 100, 128, MPI_INT, &type);
	MPI_Type_commit(&type);
	return type;
}

static int *place(int *ints, int i, bool in_blocks)
{
	return in_blocks ? &ints[i / 100 * 128 + i % 100] : &ints[2 * i];
}

/* Sends n ints in one layout and receives them in another. layout: 0 contiguous, 1 every second, 2 blocks. */
static void exchange_layouts(int n, int from, int to, bool unexpected)
{
	int *out = calloc(2 * (size_t)n + 1, sizeof *out), *in = malloc((2 * (size_t)n + 1) * sizeof *in);
	MPI_Datatype types[3] = { MPI_INT, every_second(n), blocks(n) };
	int counts[3] = { n, 1, 1 };
	MPI_Request request;
	MPI_Status status;
	memset(in, 0xff, (2 * (size_t)n + 1) * sizeof *in);
	for (int i = 0; i < n; i++)
		*(from ? place(out, i, from == 2) : &out[i]) = rank * 1000000 + i;
	if (!unexpected)
		MPI_Irecv(in, counts[to], types[to], previous, 5, MPI_COMM_WORLD, &request);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Request sending;
	MPI_Isend(out, counts[from], types[from], next, 5, MPI_COMM_WORLD, &sending);
	MPI_Barrier(MPI_COMM_WORLD);
	if (unexpected)
		MPI_Irecv(in, counts[to], types[to], previous, 5, MPI_COMM_WORLD, &request);
	MPI_Type_free(&types[1]);
	MPI_Type_free(&types[2]);
	MPI_Wait(&request, &status);
	MPI_Wait(&sending, MPI_STATUS_IGNORE);
	expect(&status, previous, 5, n * (int)sizeof(int));
	for (int i = 0; i < n; i++)
		CHECK(*(to ? place(in, i, to == 2) : &in[i]) == previous * 1000000 + i);
	for (int i = 0; to == 1 && i < n; i++)
		CHECK(in[2 * i + 1] == -1);
	free(out);
	free(in);
}

static void layouts(void)
{
	static const int sizes[] = { 100, 800, 20000, 100000 };
	for (int s = 0; s < 4; s++)
		for (int from = 0; from < 3; from++)
			for (int to = 0; to < 3; to++)
				for (int unexpected = 0; unexpected < 2; unexpected++)
					exchange_layouts(sizes[s], from, to, unexpected);
}

/* Absolute addresses, and a message that ends within an element. */
static void addresses_and_parts(void)
{
	int out[2] = { rank, 7 }, in[2] = { -1, -1 }, elements, count;
	int ones[2] = { 1, 1 };
	MPI_Aint at[2];
	MPI_Datatype both_out, both_in;
	MPI_Status status;
	MPI_Get_address(&out[1], &at[0]);
	MPI_Get_address(&out[0], &at[1]);
	MPI_Type_create_hindexed(2, ones, at, MPI_INT, &both_out);
	MPI_Get_address(&in[1], &at[0]);
	MPI_Get_address(&in[0], &at[1]);
	MPI_Type_create_hindexed(2, ones, at, MPI_INT, &both_in);
	MPI_Type_commit(&both_out);
	MPI_Type_commit(&both_in);
	MPI_Sendrecv(MPI_BOTTOM, 1, both_out, next, 1, MPI_BOTTOM, 1, both_in, previous, 1, MPI_COMM_WORLD, &status);
	CHECK(in[0] == previous && in[1] == 7);
	in[0] = in[1] = -1;
	MPI_Sendrecv(out, 1, MPI_INT, next, 1, MPI_BOTTOM, 1, both_in, previous, 1, MPI_COMM_WORLD, &status);
	CHECK(in[1] == previous && in[0] == -1);
	MPI_Get_count(&status, both_in, &count);
	MPI_Get_elements(&status, both_in, &elements);
	CHECK(count == MPI_UNDEFINED && elements == 1);
	MPI_Type_free(&both_out);
	MPI_Type_free(&both_in);
}

/* ---- many messages ---- */

/* Thousands of receives of different and of the same tags, in the order of sending and in the reverse order. */
static void thousands(void)
{
	enum { N = 10000 };
	MPI_Request *request = malloc(2 * N * sizeof *request);
	int *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
	for (int kind = 0; kind < 4; kind++) {
		bool posted = kind & 1, same = kind & 2;
		for (int i = 0; posted && i < N; i++)
			MPI_Irecv(&in[i], 1, MPI_INT, previous, same ? 0 : N - i, MPI_COMM_WORLD, &request[i]);
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < N; i++) {
			out[i] = i;
			MPI_Isend(&out[i], 1, MPI_INT, next, same ? 0 : i + 1, MPI_COMM_WORLD, &request[N + i]);
		}
		if (!posted)
			MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; !posted && i < N; i++)
			MPI_Irecv(&in[i], 1, MPI_INT, i % 2 ? previous : MPI_ANY_SOURCE, same ? MPI_ANY_TAG : N - i, MPI_COMM_WORLD,
				  &request[i]);
		CHECK(MPI_Waitall(2 * N, request, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		for (int i = 0; i < N; i++)
			CHECK(in[i] == (same ? i : N - 1 - i));
	}
	free(request);
	free(out);
	free(in);
}

/* Receives with and without wildcards match in the order of posting. */
static void wildcards_in_order(void)
{
	enum { N = 40 };
	MPI_Request request[N];
	int in[N];
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < N; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, i % 4 < 2 ? previous : MPI_ANY_SOURCE, i % 2 ? 9 : MPI_ANY_TAG, MPI_COMM_WORLD, &request[i]);
	for (int i = 0; i < N; i++)
		MPI_Send(&i, 1, MPI_INT, next, 9, MPI_COMM_WORLD);
	MPI_Waitall(N, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++)
		CHECK(in[i] == i);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- announced messages ---- */

/* Waits until the next rank has matched or stored all messages of this rank, and this rank has received its credits. */
static void settle(void)
{
	MPI_Sendrecv(NULL, 0, MPI_BYTE, next, 62, NULL, 0, MPI_BYTE, previous, 62, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(NULL, 0, MPI_BYTE, previous, 64, NULL, 0, MPI_BYTE, next, 64, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Sends a long message that the next rank does not receive yet. Returns whether the send is complete. */
static bool completes_alone(const void *bytes, void *room, int len)
{
	MPI_Request send;
	int done;
	MPI_Isend(bytes, len, MPI_BYTE, next, 60, MPI_COMM_WORLD, &send);
	settle();
	MPI_Test(&send, &done, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Recv(room, len, MPI_BYTE, previous, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(filled(room, (size_t)len, (unsigned)previous));
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	return done;
}

/* A blocking send of spaced bytes, which the next rank does not receive yet, returns. */
static void blocking_is_not_announced(void *room, int len)
{
	MPI_Datatype spaced;
	unsigned char *bytes = malloc(2 * (size_t)len);
	memset(bytes, 7, 2 * (size_t)len);
	MPI_Type_vector(len, 1, 2, MPI_BYTE, &spaced);
	MPI_Type_commit(&spaced);
	MPI_Send(bytes, 1, spaced, next, 60, MPI_COMM_WORLD);
	MPI_Recv(room, len, MPI_BYTE, previous, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(!memcmp(room, bytes, (size_t)len));
	MPI_Type_free(&spaced);
	free(bytes);
}

/* After many long messages without receives, such messages are announced: a nonblocking send waits for its receive. Not if the sender
 * has posted no long receive from the same rank. After many announced messages that found their receives, messages are sent eagerly
 * again. */
static void announced(void)
{
	enum { N = 64, LEN = 8000, WINDOWS = 20 };
	static unsigned char out[LEN], in[N][LEN], later[LEN];
	MPI_Request request[2 * N], receive[2];
	bool eager = !getenv("HEADRACE_EAGER_MAX");
	if (size == 1)
		return;
	fill(out, LEN, (unsigned)rank);
	CHECK(completes_alone(out, in[0], LEN) == eager);
	for (int i = 0; i < N; i++)
		MPI_Isend(out, LEN, MPI_BYTE, next, 61, MPI_COMM_WORLD, &request[i]);
	settle();
	for (int i = 0; i < N; i++)
		MPI_Recv(in[i], LEN, MPI_BYTE, previous, 61, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Waitall(N, request, MPI_STATUSES_IGNORE);
	CHECK(completes_alone(out, in[0], LEN) == eager);
	MPI_Irecv(NULL, 0, MPI_BYTE, next, 63, MPI_COMM_WORLD, &receive[0]);
	CHECK(completes_alone(out, in[0], LEN) == eager);
	MPI_Irecv(later, LEN, MPI_BYTE, next, 65, MPI_COMM_WORLD, &receive[1]);
	CHECK(!completes_alone(out, in[0], LEN));
	if (eager)
		blocking_is_not_announced(in[0], LEN);
	for (int window = 0; window < WINDOWS; window++) {
		for (int i = 0; i < N; i++)
			MPI_Irecv(in[i], LEN, MPI_BYTE, previous, 61, MPI_COMM_WORLD, &request[i]);
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < N; i++)
			MPI_Isend(out, LEN, MPI_BYTE, next, 61, MPI_COMM_WORLD, &request[N + i]);
		MPI_Waitall(2 * N, request, MPI_STATUSES_IGNORE);
		for (int i = 0; i < N; i++)
			CHECK(filled(in[i], LEN, (unsigned)previous));
	}
	settle();
	CHECK(completes_alone(out, in[0], LEN) == eager);
	MPI_Send(NULL, 0, MPI_BYTE, previous, 63, MPI_COMM_WORLD);
	MPI_Send(NULL, 0, MPI_BYTE, previous, 65, MPI_COMM_WORLD);
	MPI_Waitall(2, receive, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	modes();
	synchronous_waits();
	buffers_are_used();
	sendrecv();
	nobody_without_datatype();
	layouts();
	addresses_and_parts();
	MPI_Barrier(MPI_COMM_WORLD);
	thousands();
	wildcards_in_order();
	announced();
	MPI_Finalize();
	return 0;
}
