/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent requests: MPI 5.0, section 3.9. */
#include "adi/message/internal.h"

static int persistent_start(struct adi_request *request)
{
	if (request->kind != ADI_SEND || request->mode != ADI_SEND_BUFFERED) {
		adi_message_go(request, request->mode);
		if (request->kind == ADI_SEND)
			adi_request_number(request);
		return MPI_SUCCESS;
	}
	request->cancelled = false;
	request->class = adi_buffered_send(request->comm, request->rank, request->tag, request->buf, request->count, request->type);
	adi_request_number(request);
	/* A message that is held has no number yet: it cannot be cancelled. */
	if (request->world != MPI_PROC_NULL && adi_hold[request->world].first)
		request->world = MPI_PROC_NULL;
	request->complete = true;
	return request->class;
}

static const struct adi_request_class persistent_class = { .start = persistent_start };

static int init(int kind, const void *buf, MPI_Count count, struct adi_type *type, int rank, int tag, struct adi_comm *comm,
		enum adi_send_mode mode, MPI_Request *handle)
{
	struct adi_request *request = adi_request_take();
	if (!request)
		return adi_error_no_request();
	adi_message_prepare(request, kind, comm, comm->context, rank, tag, buf, count, type);
	request->of = &persistent_class;
	request->mode = (unsigned char)mode;
	request->persistent = true;
	request->complete = true;
	adi_request_own(request);
	*handle = adi_request_handle(request);
	return MPI_SUCCESS;
}

static int send_init(const void *buf, MPI_Count count, struct adi_type *type, int dest, int tag, struct adi_comm *comm,
		     enum adi_send_mode mode, MPI_Request *request)
{
	int class = adi_check_send(buf, count, type, dest, tag, comm);
	return class ? class : init(ADI_SEND, buf, count, type, dest, tag, comm, mode, request);
}

int mpi_send_init(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm,
		  MPI_Request *request)
{
	return send_init(buf, count, datatype, dest, tag, comm, ADI_SEND_STANDARD, request);
}

int mpi_rsend_init(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm,
		   MPI_Request *request)
{
	return send_init(buf, count, datatype, dest, tag, comm, ADI_SEND_STANDARD, request);
}

int mpi_ssend_init(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm,
		   MPI_Request *request)
{
	return send_init(buf, count, datatype, dest, tag, comm, ADI_SEND_SYNCHRONOUS, request);
}

int mpi_bsend_init(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm,
		   MPI_Request *request)
{
	return send_init(buf, count, datatype, dest, tag, comm, ADI_SEND_BUFFERED, request);
}

int mpi_recv_init(void *buf, MPI_Count count, struct adi_type *datatype, int source, int tag, struct adi_comm *comm,
		  MPI_Request *request)
{
	int class = adi_check_receive(buf, count, datatype, source, tag, comm);
	return class ? class : init(ADI_RECEIVE, buf, count, datatype, source, tag, comm, ADI_SEND_STANDARD, request);
}

static int start(MPI_Request *handle, const char *argument)
{
	struct adi_request *request = adi_request_at(*handle);
	if (!request)
		return adi_error_request(*handle, argument);
	if (!request->persistent || request->active) {
		if (request->comm)
			adi_error_on(&request->comm->object);
		return adi_error(MPI_ERR_REQUEST, "request is %s", request->persistent ? "active" : "not persistent");
	}
	request->active = true;
	request->complete = false;
	request->class = MPI_SUCCESS;
	int class = request->of->start(request);
	if (class) {
		request->active = false;
		request->complete = true;
		if (request->comm)
			adi_error_on(&request->comm->object);
	}
	return class;
}

int mpi_start(MPI_Request *handle)
{
	return start(handle, "request");
}

int mpi_startall(int count, MPI_Request handles[])
{
	if (count < 0)
		return adi_error(MPI_ERR_COUNT, "count is %d; valid counts: 0 and above", count);
	if (count > 0 && !handles)
		return adi_error(MPI_ERR_REQUEST, "array_of_requests is a null pointer, count is %d", count);
	for (int i = 0; i < count; i++) {
		int class = start(&handles[i], "a handle in array_of_requests");
		if (class)
			return class;
	}
	return MPI_SUCCESS;
}
