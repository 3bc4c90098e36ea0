/* SPDX-License-Identifier: BSD-3-Clause */
/* A send and a receive in one call: MPI 5.0, sections 3.10 and 3.7.7. */
#include "adi/message/internal.h"

#include <stdlib.h>

/* Data of a replacing call up to this size are copied to the stack. */
#define COPY_ON_STACK 4096

/* One side of the call. */
struct side {
	const void *buf;
	MPI_Count count;
	struct adi_type *type;
	int rank, tag;
};

struct pair {
	struct adi_request send, receive;
	struct adi_task task;
	struct adi_request *request; /* the program's */
	struct adi_type *send_type, *receive_type; /* hold references */
	void *copy;                  /* the data to be sent of a replacing call; owned */
};

static int check(const struct side *out, const struct side *in, const struct adi_comm *comm)
{
	int class = adi_check_send(out->buf, out->count, out->type, out->rank, out->tag, comm);
	if (class)
		return class == MPI_ERR_RANK ? class : adi_error_of("send", class);
	class = adi_check_receive(in->buf, in->count, in->type, in->rank, in->tag, comm);
	return !class || class == MPI_ERR_RANK ? class : adi_error_of("recv", class);
}

static void begin(struct adi_request *send, struct adi_request *receive, const struct side *out, const struct side *in,
		  struct adi_comm *comm)
{
	adi_message_receive(receive, comm, comm->context, in->rank, in->tag, (void *)in->buf, in->count, in->type);
	adi_message_send(send, comm, comm->context, out->rank, out->tag, out->buf, out->count, out->type, ADI_SEND_STANDARD);
}

/* ---- blocking ---- */

static int exchange(const struct side *out, const struct side *in, struct adi_comm *comm, MPI_Status *status)
{
	struct adi_request send, receive;
	begin(&send, &receive, out, in, comm);
	int class = adi_request_wait(&send);
	if (class)
		adi_receive_cancel(&receive);
	int received = class && receive.cancelled ? class : adi_request_wait(&receive);
	if (status != MPI_STATUS_IGNORE)
		adi_request_status(&receive, status);
	return class ? class : received;
}

int mpi_sendrecv(const void *sendbuf, MPI_Count sendcount, struct adi_type *sendtype, int dest, int sendtag, void *recvbuf,
		 MPI_Count recvcount, struct adi_type *recvtype, int source, int recvtag, struct adi_comm *comm, MPI_Status *status)
{
	struct side out = { sendbuf, sendcount, sendtype, dest, sendtag }, in = { recvbuf, recvcount, recvtype, source, recvtag };
	int class = check(&out, &in, comm);
	return class ? class : exchange(&out, &in, comm, status);
}

/* Copies the data of a side to memory; the side is the copy afterwards. */
static int copy_out(struct side *out, void *copy, size_t bytes)
{
	struct adi_stream stream;
	int class = adi_stream_start(&stream, out->buf, out->count, out->type);
	if (class)
		return adi_error(class, "no memory for the layout of the datatype");
	adi_stream_pack(&stream, copy, bytes);
	out->buf = copy;
	out->count = (MPI_Count)bytes;
	out->type = adi_type_byte;
	return MPI_SUCCESS;
}

static int no_copy(size_t bytes)
{
	return adi_error(MPI_ERR_NO_MEM, "no memory for a copy of %zu bytes", bytes);
}

int mpi_sendrecv_replace(void *buf, MPI_Count count, struct adi_type *datatype, int dest, int sendtag, int source, int recvtag,
			 struct adi_comm *comm, MPI_Status *status)
{
	struct side out = { buf, count, datatype, dest, sendtag }, in = { buf, count, datatype, source, recvtag };
	int class = check(&out, &in, comm);
	if (class)
		return class;
	size_t bytes = (size_t)count * (size_t)datatype->size;
	char small[COPY_ON_STACK], *copy = bytes <= sizeof small ? small : malloc(bytes);
	if (!copy)
		return no_copy(bytes);
	class = copy_out(&out, copy, bytes);
	if (!class)
		class = exchange(&out, &in, comm, status);
	if (copy != small)
		free(copy);
	return class;
}

/* ---- nonblocking ---- */

static int pair_status(struct adi_request *request, MPI_Status *status)
{
	struct pair *pair = request->owner;
	return adi_request_status(&pair->receive, status);
}

static void pair_destroy(struct adi_request *request)
{
	struct pair *pair = request->owner;
	adi_type_release(pair->send_type);
	adi_type_release(pair->receive_type);
	free(pair->copy);
	free(pair);
}

static const struct adi_request_class pair_class = { .status = pair_status, .destroy = pair_destroy };

static bool pair_advance(struct adi_task *task)
{
	struct pair *pair = (struct pair *)((char *)task - offsetof(struct pair, task));
	if (!adi_request_test(&pair->send))
		return false;
	if (pair->send.class)
		adi_receive_cancel(&pair->receive);
	if (!adi_request_test(&pair->receive))
		return false;
	adi_task_remove(task);
	adi_request_complete(pair->request, pair->send.class ? pair->send.class : pair->receive.class);
	return true;
}

/* Starts both sides. copy: owned data of `out`, or NULL. */
static int pair_start(const struct side *out, const struct side *in, void *copy, struct adi_comm *comm, MPI_Request *handle)
{
	struct pair *pair = malloc(sizeof *pair);
	struct adi_request *request = pair ? adi_request_new(&pair_class, pair, comm) : NULL;
	if (!request) {
		free(pair);
		free(copy);
		return adi_error_no_request();
	}
	pair->request = request;
	pair->copy = copy;
	pair->task = (struct adi_task){ .advance = pair_advance, .by_engine = true };
	pair->send_type = out->type;
	pair->receive_type = in->type;
	adi_object_retain(&out->type->object);
	adi_object_retain(&in->type->object);
	begin(&pair->send, &pair->receive, out, in, comm);
	adi_task_add(&pair->task);
	pair_advance(&pair->task);
	*handle = adi_request_handle(request);
	return MPI_SUCCESS;
}

int mpi_isendrecv(const void *sendbuf, MPI_Count sendcount, struct adi_type *sendtype, int dest, int sendtag, void *recvbuf,
		  MPI_Count recvcount, struct adi_type *recvtype, int source, int recvtag, struct adi_comm *comm,
		  MPI_Request *request)
{
	struct side out = { sendbuf, sendcount, sendtype, dest, sendtag }, in = { recvbuf, recvcount, recvtype, source, recvtag };
	int class = check(&out, &in, comm);
	return class ? class : pair_start(&out, &in, NULL, comm, request);
}

int mpi_isendrecv_replace(void *buf, MPI_Count count, struct adi_type *datatype, int dest, int sendtag, int source, int recvtag,
			  struct adi_comm *comm, MPI_Request *request)
{
	struct side out = { buf, count, datatype, dest, sendtag }, in = { buf, count, datatype, source, recvtag };
	int class = check(&out, &in, comm);
	if (class)
		return class;
	size_t bytes = (size_t)count * (size_t)datatype->size;
	void *copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return no_copy(bytes);
	class = copy_out(&out, copy, bytes);
	if (class) {
		free(copy);
		return class;
	}
	return pair_start(&out, &in, copy, comm, request);
}
