/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives: MPI 5.0, sections 3.2, 3.4, 3.7 and 3.10. */
#include "adi/message/internal.h"

#include <stdlib.h>

int adi_check_message(const void *buf, MPI_Count count, const struct adi_type *type, int tag, bool receive)
{
	MPI_Count bytes;
	if (tag < 0 && !(receive && tag == MPI_ANY_TAG))
		return adi_error(MPI_ERR_TAG, "tag is %d; valid tags: 0 and above", tag);
	if (__builtin_mul_overflow(count, type->size, &bytes))
		return adi_error(MPI_ERR_COUNT, "count is %lld: so many elements of %lld bytes cannot be addressed",
				 (long long)count, (long long)type->size);
	/* The displacements of a derived datatype may be addresses. */
	if (!buf && bytes > 0 && type->object.constant)
		return adi_error(MPI_ERR_BUFFER, "buf is a null pointer, count is %lld", (long long)count);
	return MPI_SUCCESS;
}

/* ---- blocking ---- */

/* Waits for a send that ch3 could not complete at once. */
static int send_wait(ch3_request_t *send, int dest, int tag)
{
	while (!ch3_request_test(send))
		adi_progress();
	int error = ch3_request_error(send);
	ch3_request_free(send);
	return error ? adi_error(adi_class(error), "send to rank %d, tag %d: %s", dest, tag, adi_class_text(adi_class(error))) :
		       MPI_SUCCESS;
}

/* A send that is to oneself, or of data that are not contiguous. The request is on the stack: nothing refers to it after its
 * completion. */
static __attribute__((noinline)) int send_otherwise(const void *buf, MPI_Count count, struct adi_type *type, int dest, int tag,
						    struct adi_comm *comm, enum adi_send_mode mode)
{
	struct adi_request request;
	if (mode == ADI_SEND_STANDARD)
		mode = ADI_SEND_COPY;
	adi_message_send(&request, comm, comm->context, dest, tag, buf, count, type, mode);
	int class = adi_request_wait(&request);
	return class;
}

/* Sends a short message of contiguous data to another process, if that is possible at once. The arguments are valid. Returns the
 * process, or NULL: nothing has happened. */
static inline const struct adi_peer *send_at_once(const void *buf, MPI_Count count, const struct adi_type *type, int dest, int tag,
						  const struct adi_comm *comm)
{
	if (!ADI_LIKELY(dest >= 0 && type->contiguous))
		return NULL;
	const struct adi_peer *peer = &adi_job.peer[adi_comm_world(comm, dest)];
	bool sent = ADI_LIKELY(peer->vc != NULL) &&
		    adi_send_short(peer, comm->context, tag, (char *)((uintptr_t)buf + (uintptr_t)type->true_lb),
				   (size_t)count * (size_t)type->size);
	return sent ? peer : NULL;
}

static __attribute__((noinline)) int send_blocking(const void *buf, MPI_Count count, struct adi_type *type, int dest, int tag,
						   struct adi_comm *comm, enum adi_send_mode mode)
{
	const struct adi_peer *peer = dest >= 0 ? &adi_job.peer[adi_comm_world(comm, dest)] : NULL;
	if (!(peer && peer->vc && type->contiguous))
		return send_otherwise(buf, count, type, dest, tag, comm, mode);
	size_t bytes = (size_t)count * (size_t)type->size;
	if (adi_hold_needed(peer->rank, bytes, mode))
		return send_otherwise(buf, count, type, dest, tag, comm, mode);
	struct adi_envelope envelope = { comm->context, tag };
	struct iovec piece = { (char *)((uintptr_t)buf + (uintptr_t)type->true_lb), bytes };
	unsigned flags = mode == ADI_SEND_SYNCHRONOUS ? CH3_SEND_SYNC : adi_flow_send(peer->rank, bytes);
	ch3_request_t *send;
	int error = ch3_send(peer->vc, ADI_PACKET_MESSAGE, &envelope, sizeof envelope, &piece, bytes > 0, flags, &send);
	if (!ADI_LIKELY(!error))
		return adi_error(adi_class(error), "send to rank %d, tag %d: %s", dest, tag, adi_class_text(adi_class(error)));
	adi_hold_sent(peer->rank, bytes, flags);
	return send ? send_wait(send, dest, tag) : MPI_SUCCESS;
}

static inline int send_standard(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag,
				struct adi_comm *comm)
{
	int class = adi_check_send(buf, count, datatype, dest, tag, comm);
	if (class || ADI_LIKELY(send_at_once(buf, count, datatype, dest, tag, comm) != NULL))
		return class;
	return send_blocking(buf, count, datatype, dest, tag, comm, ADI_SEND_STANDARD);
}

int mpi_send(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm)
{
	return send_standard(buf, count, datatype, dest, tag, comm);
}

/* The receive is posted, which makes no difference here. */
int mpi_rsend(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm)
{
	return send_standard(buf, count, datatype, dest, tag, comm);
}

int mpi_ssend(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm)
{
	int class = adi_check_send(buf, count, datatype, dest, tag, comm);
	return class ? class : send_blocking(buf, count, datatype, dest, tag, comm, ADI_SEND_SYNCHRONOUS);
}

int mpi_bsend(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm)
{
	int class = adi_check_send(buf, count, datatype, dest, tag, comm);
	return class ? class : adi_buffered_send(comm, dest, tag, buf, count, datatype);
}

int mpi_recv(void *buf, MPI_Count count, struct adi_type *datatype, int source, int tag, struct adi_comm *comm, MPI_Status *status)
{
	int class = adi_check_receive(buf, count, datatype, source, tag, comm);
	if (class)
		return class;
	struct adi_request request;
	adi_message_receive(&request, comm, comm->context, source, tag, buf, count, datatype);
	class = adi_request_wait(&request);
	if (status != MPI_STATUS_IGNORE)
		adi_request_status(&request, status);
	return class;
}

/* ---- nonblocking ---- */

/* Makes a request of the arguments and starts a send. */
static __attribute__((noinline)) int start(const void *buf, MPI_Count count, struct adi_type *type, int rank, int tag,
					   struct adi_comm *comm, enum adi_send_mode mode, MPI_Request *handle)
{
	struct adi_request *request = adi_request_take_message();
	if (!request)
		return adi_error_no_request();
	adi_message_prepare(request, ADI_SEND, comm, comm->context, rank, tag, buf, count, type);
	adi_message_go(request, mode);
	adi_request_number(request);
	if (request->complete && !request->class)
		request->comm = NULL, request->type = NULL; /* needed no more, not even by MPI_Cancel */
	else
		adi_request_own(request);
	*handle = adi_request_handle(request);
	return MPI_SUCCESS;
}

static inline int send_start(const void *buf, MPI_Count count, struct adi_type *type, int dest, int tag, struct adi_comm *comm,
			     enum adi_send_mode mode, MPI_Request *request)
{
	int class = adi_check_send(buf, count, type, dest, tag, comm);
	if (class)
		return class;
	const struct adi_peer *peer = NULL;
	if (mode == ADI_SEND_STANDARD && ADI_LIKELY(!adi_flow_announcing))
		peer = send_at_once(buf, count, type, dest, tag, comm);
	if (ADI_LIKELY(peer != NULL)) {
		*request = adi_request_handle(adi_request_sent(peer->rank, ch3_sent(peer->vc)));
		return MPI_SUCCESS;
	}
	return start(buf, count, type, dest, tag, comm, mode, request);
}

int mpi_isend(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm,
	      MPI_Request *request)
{
	return send_start(buf, count, datatype, dest, tag, comm, ADI_SEND_STANDARD, request);
}

int mpi_irsend(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm,
	       MPI_Request *request)
{
	return send_start(buf, count, datatype, dest, tag, comm, ADI_SEND_STANDARD, request);
}

int mpi_issend(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm,
	       MPI_Request *request)
{
	return send_start(buf, count, datatype, dest, tag, comm, ADI_SEND_SYNCHRONOUS, request);
}

int mpi_ibsend(const void *buf, MPI_Count count, struct adi_type *datatype, int dest, int tag, struct adi_comm *comm,
	       MPI_Request *request)
{
	int class = mpi_bsend(buf, count, datatype, dest, tag, comm);
	if (class)
		return class;
	int world = dest == MPI_PROC_NULL ? MPI_PROC_NULL : adi_comm_world(comm, dest);
	/* A message that is held has no number yet: it cannot be cancelled. */
	bool none = dest == MPI_PROC_NULL || adi_hold[world].first;
	*request = adi_request_handle(none ? &adi_request_none : adi_request_sent(world, adi_number_sent(world)));
	return MPI_SUCCESS;
}

int mpi_irecv(void *buf, MPI_Count count, struct adi_type *datatype, int source, int tag, struct adi_comm *comm,
	      MPI_Request *handle)
{
	int class = adi_check_receive(buf, count, datatype, source, tag, comm);
	if (class)
		return class;
	struct adi_request *request = adi_request_take_message();
	if (!request)
		return adi_error_no_request();
	adi_message_prepare(request, ADI_RECEIVE, comm, comm->context, source, tag, buf, count, datatype);
	adi_receive_go(request);
	adi_request_own(request);
	*handle = adi_request_handle(request);
	return MPI_SUCCESS;
}
