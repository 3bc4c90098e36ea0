/* SPDX-License-Identifier: BSD-3-Clause */
/* Probing, and messages that a matching probe has taken out of the queue: MPI 5.0, section 3.8. */
#include "adi/message/internal.h"

#include <stdlib.h>

/* A message that matches, or the error because of which none can come. */
struct found {
	struct adi_unexpected *message;
	int class;
};

static int check(int source, int tag, const struct adi_comm *comm)
{
	int class = adi_check_rank(comm, source, "source", true, true);
	if (!class && tag < 0 && tag != MPI_ANY_TAG)
		class = adi_error(MPI_ERR_TAG, "tag is %d; valid tags: 0 and above, MPI_ANY_TAG", tag);
	return class;
}

static struct found find(int source, int tag, const struct adi_comm *comm)
{
	int world = source == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : adi_comm_world(comm, source);
	struct adi_key key = { comm->context, world, tag, 0 };
	struct found found = { adi_unexpected_find(&key), MPI_SUCCESS };
	if (!found.message)
		found.class = adi_class(adi_source_lost(comm, world));
	if (!found.message && adi_holders)
		adi_hold_wanted(world);
	if (found.class)
		adi_error(found.class, "probe for a message of rank %d, tag %d: %s", source, tag, adi_class_text(found.class));
	return found;
}

static struct found find_waiting(int source, int tag, const struct adi_comm *comm)
{
	struct found found;
	adi_any_waits += source == MPI_ANY_SOURCE;
	while (found = find(source, tag, comm), !found.message && !found.class)
		adi_progress();
	adi_any_waits -= source == MPI_ANY_SOURCE;
	return found;
}

static struct found find_now(int source, int tag, const struct adi_comm *comm)
{
	struct found found = find(source, tag, comm);
	if (!found.message) {
		adi_any_waits += source == MPI_ANY_SOURCE;
		adi_poll();
		adi_any_waits -= source == MPI_ANY_SOURCE;
		found = find(source, tag, comm);
	}
	return found;
}

/* The source of a message in the communicator. */
static int source_of(const struct adi_unexpected *message, int source, const struct adi_comm *comm)
{
	return source != MPI_ANY_SOURCE ? source : adi_group_rank(comm->remote, message->node.key.source);
}

static void describe(const struct adi_unexpected *message, int source, const struct adi_comm *comm, MPI_Status *status)
{
	if (status != MPI_STATUS_IGNORE)
		adi_status_set(status, source_of(message, source, comm), message->node.key.tag, message->bytes);
}

static void describe_null(MPI_Status *status)
{
	adi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

int mpi_probe(int source, int tag, struct adi_comm *comm, MPI_Status *status)
{
	int class = check(source, tag, comm);
	if (class)
		return class;
	if (source == MPI_PROC_NULL) {
		describe_null(status);
		return MPI_SUCCESS;
	}
	struct found found = find_waiting(source, tag, comm);
	if (!found.class)
		describe(found.message, source, comm, status);
	return found.class;
}

int mpi_iprobe(int source, int tag, struct adi_comm *comm, int *flag, MPI_Status *status)
{
	int class = check(source, tag, comm);
	if (class)
		return class;
	if (source == MPI_PROC_NULL) {
		*flag = 1;
		describe_null(status);
		return MPI_SUCCESS;
	}
	struct found found = find_now(source, tag, comm);
	*flag = found.message != NULL;
	if (found.message)
		describe(found.message, source, comm, status);
	return found.class;
}

/* ---- matching probes ---- */

/* Takes a message out of the queue and makes a handle of it. */
static void take(struct adi_unexpected *message, int source, struct adi_comm *comm, MPI_Message *handle)
{
	adi_unexpected_remove(message);
	if (message->sender)
		message->sender->held = NULL;
	adi_object_init(&message->object, ADI_MESSAGE);
	message->comm = comm;
	message->rank = source_of(message, source, comm);
	adi_object_retain(&comm->object);
	*handle = (MPI_Message)&message->object;
}

int mpi_mprobe(int source, int tag, struct adi_comm *comm, MPI_Message *message, MPI_Status *status)
{
	int class = check(source, tag, comm);
	if (class)
		return class;
	if (source == MPI_PROC_NULL) {
		*message = MPI_MESSAGE_NO_PROC;
		describe_null(status);
		return MPI_SUCCESS;
	}
	struct found found = find_waiting(source, tag, comm);
	if (found.class)
		return found.class;
	describe(found.message, source, comm, status);
	take(found.message, source, comm, message);
	return MPI_SUCCESS;
}

int mpi_improbe(int source, int tag, struct adi_comm *comm, int *flag, MPI_Message *message, MPI_Status *status)
{
	int class = check(source, tag, comm);
	if (class)
		return class;
	if (source == MPI_PROC_NULL) {
		*flag = 1;
		*message = MPI_MESSAGE_NO_PROC;
		describe_null(status);
		return MPI_SUCCESS;
	}
	struct found found = find_now(source, tag, comm);
	*flag = found.message != NULL;
	if (!found.message)
		return found.class;
	describe(found.message, source, comm, status);
	take(found.message, source, comm, message);
	return MPI_SUCCESS;
}

/* Receives a message of a handle into a prepared request, and ends the handle. comm: that of the probe. */
static void receive_taken(struct adi_request *request, struct adi_unexpected *message)
{
	adi_object_release(&message->object);
	message->object.magic = 0;
	request->class = MPI_SUCCESS;
	request->complete = request->cancelled = false;
	adi_deliver_unexpected(request, message);
}

/* The message of a handle; NULL with class MPI_SUCCESS: MPI_MESSAGE_NO_PROC. */
static int find_handle(MPI_Message handle, const void *buf, MPI_Count count, const struct adi_type *type,
		       struct adi_unexpected **message)
{
	*message = adi_object_at(handle, ADI_MESSAGE);
	if (!*message && handle != MPI_MESSAGE_NO_PROC)
		return adi_error(MPI_ERR_REQUEST, "message is %s, no message of a matching probe", adi_handle_text(handle));
	if (!*message)
		return MPI_SUCCESS;
	int class = adi_check_message(buf, count, type, 0, true);
	if (class)
		adi_error_on(&(*message)->comm->object);
	return class;
}

/* Fills a request in for a message; with message NULL for MPI_MESSAGE_NO_PROC. */
static void prepare(struct adi_request *request, const struct adi_unexpected *message, void *buf, MPI_Count count,
		    struct adi_type *type)
{
	struct adi_comm *comm = message ? message->comm : &adi_self;
	int tag = message ? message->node.key.tag : MPI_ANY_TAG;
	adi_message_prepare(request, ADI_RECEIVE, comm, comm->context, message ? message->rank : MPI_PROC_NULL, tag, buf, count, type);
}

int mpi_imrecv(void *buf, MPI_Count count, struct adi_type *datatype, MPI_Message *handle, MPI_Request *request)
{
	struct adi_unexpected *message;
	int class = find_handle(*handle, buf, count, datatype, &message);
	if (class)
		return class;
	struct adi_request *receive = adi_request_take();
	if (!receive)
		return adi_error_no_request();
	struct adi_comm *comm = message ? message->comm : NULL;
	prepare(receive, message, buf, count, datatype);
	adi_request_own(receive);
	if (message)
		receive_taken(receive, message);
	else
		receive->complete = true;
	if (comm)
		adi_comm_release(comm);
	*handle = MPI_MESSAGE_NULL;
	*request = adi_request_handle(receive);
	return MPI_SUCCESS;
}

int mpi_mrecv(void *buf, MPI_Count count, struct adi_type *datatype, MPI_Message *handle, MPI_Status *status)
{
	struct adi_unexpected *message;
	int class = find_handle(*handle, buf, count, datatype, &message);
	if (class)
		return class;
	*handle = MPI_MESSAGE_NULL;
	if (!message) {
		describe_null(status);
		return MPI_SUCCESS;
	}
	struct adi_request request = { .kind = ADI_RECEIVE };
	struct adi_comm *comm = message->comm;
	prepare(&request, message, buf, count, datatype);
	receive_taken(&request, message);
	class = adi_request_wait(&request);
	adi_request_status(&request, status);
	adi_comm_release(comm);
	return class;
}
