/* SPDX-License-Identifier: BSD-3-Clause */
/* Probing and matched messages: MPI 5.0, section 3.8. */
#include "test/adi/check_mpi.h"

static int rank, size, next, previous;

static const int lengths[] = { 0, 1, 1000, 70000, 300000 };
enum { LENGTHS = sizeof lengths / sizeof *lengths, MOST = 300000 };

static void check_status(const MPI_Status *status, int tag, int len)
{
	int count;
	MPI_Get_count(status, MPI_BYTE, &count);
	CHECK(status->MPI_SOURCE == previous && status->MPI_TAG == tag && count == len);
}

static void each_way(int source, int any_tag)
{
	static unsigned char out[MOST], in[MOST];
	for (int i = 0; i < 6 * LENGTHS; i++) {
		int len = lengths[i % LENGTHS], flag = 0, tag = any_tag ? MPI_ANY_TAG : i;
		MPI_Request sending, request;
		MPI_Message message;
		MPI_Status status;
		fill(out, (size_t)len, (unsigned)(rank + i));
		MPI_Isend(out, len, MPI_BYTE, next, i, MPI_COMM_WORLD, &sending);
		switch (i / LENGTHS) {
		case 0:
			MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
			check_status(&status, i, len);
			MPI_Recv(in, len, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
			break;
		case 1:
			while (!flag)
				MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, &status);
			check_status(&status, i, len);
			MPI_Recv(in, len, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
			break;
		case 2:
		case 3:
			MPI_Mprobe(source, tag, MPI_COMM_WORLD, &message, &status);
			check_status(&status, i, len);
			MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
			CHECK(!flag);
			MPI_Mrecv(in, len, MPI_BYTE, &message, &status);
			CHECK(message == MPI_MESSAGE_NULL);
			break;
		default:
			while (!flag)
				MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, &message, &status);
			check_status(&status, i, len);
			MPI_Imrecv(in, len, MPI_BYTE, &message, &request);
			CHECK(message == MPI_MESSAGE_NULL);
			MPI_Wait(&request, &status);
		}
		check_status(&status, i, len);
		CHECK(filled(in, (size_t)len, (unsigned)(previous + i)));
		MPI_Wait(&sending, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* Messages that are taken out of the queue in another order than they came in. */
static void any_order(void)
{
	enum { N = 50 };
	int out[N], in;
	MPI_Message message[N];
	MPI_Request sending[N];
	MPI_Status status;
	for (int i = 0; i < N; i++) {
		out[i] = i;
		MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &sending[i]);
	}
	for (int i = N - 1; i >= 0; i--)
		MPI_Mprobe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &message[i], MPI_STATUS_IGNORE);
	for (int i = 0; i < N; i++) {
		MPI_Mrecv(&in, 1, MPI_INT, &message[i], &status);
		CHECK(in == i && status.MPI_TAG == i && status.MPI_SOURCE == previous);
	}
	MPI_Waitall(N, sending, MPI_STATUSES_IGNORE);
}

static void nobody(void)
{
	int flag = 0, value = 3;
	MPI_Message message;
	MPI_Request request;
	MPI_Status status;
	MPI_Probe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
	CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
	MPI_Iprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	CHECK(flag);
	MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status);
	CHECK(message == MPI_MESSAGE_NO_PROC);
	MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
	CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL && value == 3);
	MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &message, &status);
	CHECK(flag && message == MPI_MESSAGE_NO_PROC);
	MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
	MPI_Wait(&request, &status);
	CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL && value == 3);
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	CHECK(!flag);
}

/* A message that is too long for its receive. */
static void truncated(void)
{
	static char out[1000], in[10];
	MPI_Message message;
	MPI_Status status;
	MPI_Request sending;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Isend(out, 1000, MPI_BYTE, next, 1, MPI_COMM_WORLD, &sending);
	MPI_Mprobe(previous, 1, MPI_COMM_WORLD, &message, &status);
	check_status(&status, 1, 1000);
	CHECK(MPI_Mrecv(in, 10, MPI_BYTE, &message, &status) == MPI_ERR_TRUNCATE);
	MPI_Wait(&sending, MPI_STATUS_IGNORE);
	CHECK(MPI_Mrecv(in, 10, MPI_BYTE, &message, &status) != MPI_SUCCESS);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	nobody();
	each_way(previous, 0);
	each_way(MPI_ANY_SOURCE, 0);
	each_way(previous, 1);
	each_way(MPI_ANY_SOURCE, 1);
	any_order();
	MPI_Barrier(MPI_COMM_WORLD);
	truncated();
	MPI_Finalize();
	return 0;
}
