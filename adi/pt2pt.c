/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point messages: MPI 5.0, sections 3.2 and 3.7. */
#include "adi/adi.h"

#include <limits.h>

/* The arguments of a send or receive function. */
struct message {
	const char *function;
	const void *buf;
	int count;
	MPI_Datatype datatype;
	int rank, tag;
	MPI_Comm handle;
	bool receive;
	/* Set by message_check. */
	struct adi_comm *comm;
	size_t bytes;
};

static int message_check(struct message *m)
{
	int class = adi_check_running(m->function);
	if (class)
		return class;
	m->comm = adi_comm_find(m->handle);
	if (!m->comm)
		return adi_raise(NULL, m->function, MPI_ERR_COMM, "%p is not a communicator", (void *)m->handle);
	if (m->count < 0)
		return adi_raise(m->comm, m->function, MPI_ERR_COUNT, "invalid count %d; valid counts: 0 and above", m->count);
	size_t size = adi_type_size(m->datatype);
	if (!size)
		return adi_raise(m->comm, m->function, MPI_ERR_TYPE, "invalid or unsupported datatype %p",
				 (void *)m->datatype);
	if (m->tag < 0 && !(m->receive && m->tag == MPI_ANY_TAG))
		return adi_raise(m->comm, m->function, MPI_ERR_TAG, "invalid tag %d; valid tags: 0 and above", m->tag);
	if ((m->rank < 0 || m->rank >= m->comm->size) && m->rank != MPI_PROC_NULL &&
	    !(m->receive && m->rank == MPI_ANY_SOURCE))
		return adi_raise(m->comm, m->function, MPI_ERR_RANK, "invalid rank %d; valid ranks of %s: 0 to %d",
				 m->rank, m->comm->name, m->comm->size - 1);
	if (!m->buf && m->count > 0)
		return adi_raise(m->comm, m->function, MPI_ERR_BUFFER, "buf is a null pointer, count is %d", m->count);
	m->bytes = (size_t)m->count * size;
	return MPI_SUCCESS;
}

static void message_start(const struct message *m, struct adi_request *request)
{
	if (m->rank == MPI_PROC_NULL) {
		request->kind = m->receive ? ADI_RECEIVE : ADI_SEND;
		request->comm = m->comm;
		request->source = MPI_PROC_NULL;
		request->complete = true;
		return;
	}
	int peer = m->rank == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : m->rank + m->comm->first;
	if (m->receive)
		adi_receive(request, m->comm, m->comm->context, peer, m->tag, (void *)m->buf, m->bytes);
	else
		adi_send(request, m->comm, m->comm->context, peer, m->tag, m->buf, m->bytes);
}

static int message_begin(struct message *m, MPI_Request *handle)
{
	int class = message_check(m);
	if (class)
		return class;
	if (!handle)
		return adi_raise(m->comm, m->function, MPI_ERR_ARG, "request is a null pointer");
	struct adi_request *request = adi_request_new();
	if (!request)
		return adi_raise(m->comm, m->function, MPI_ERR_NO_MEM, "no memory for a request");
	message_start(m, request);
	*handle = (MPI_Request)request;
	return MPI_SUCCESS;
}

/* A blocking send or receive. The request is on the stack: nothing refers to it after its completion. */
static int message_whole(struct message *m, MPI_Status *status)
{
	int class = message_check(m);
	if (class)
		return class;
	struct adi_request request = { .magic = ADI_REQUEST_MAGIC };
	message_start(m, &request);
	adi_request_wait(&request);
	if (m->receive)
		adi_request_status(&request, status);
	return adi_request_raise(&request, m->function);
}

int PMPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	struct message m = { "MPI_Send", buf, count, datatype, dest, tag, comm, false, NULL, 0 };
	return message_whole(&m, MPI_STATUS_IGNORE);
}
ADI_PROFILED(Send);

int PMPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct message m = { "MPI_Recv", buf, count, datatype, source, tag, comm, true, NULL, 0 };
	return message_whole(&m, status);
}
ADI_PROFILED(Recv);

int PMPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
	       MPI_Request *request)
{
	struct message m = { "MPI_Isend", buf, count, datatype, dest, tag, comm, false, NULL, 0 };
	return message_begin(&m, request);
}
ADI_PROFILED(Isend);

int PMPI_Irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
	struct message m = { "MPI_Irecv", buf, count, datatype, source, tag, comm, true, NULL, 0 };
	return message_begin(&m, request);
}
ADI_PROFILED(Irecv);
