/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffered sends: MPI 5.0, section 3.6. A message is copied into a segment of the attached buffer, or, with automatic buffering,
 * into allocated memory, and sent from there. The segments of a buffer do not overlap and are in the order of their addresses.
 */
#include "adi/core/session.h"
#include "adi/message/internal.h"

#include <stdlib.h>

#define ALIGNMENT 16

struct segment {
	struct adi_request request;
	struct segment *next;
	uint64_t order; /* of use of the buffer */
	size_t bytes;   /* of data, which follow */
};
/* With two alignments a segment takes no more than its data and MPI_BSEND_OVERHEAD. */
static_assert(sizeof(struct segment) + 2 * ALIGNMENT <= MPI_BSEND_OVERHEAD, "MPI_BSEND_OVERHEAD is too small");

struct adi_buffer {
	char *base; /* of the program; MPI_BUFFER_AUTOMATIC */
	MPI_Count size;
	struct segment *first;
	uint64_t order; /* of the latest segment */
};

static struct adi_buffer *process_buffer;

static bool automatic(const struct adi_buffer *buffer)
{
	return buffer->base == MPI_BUFFER_AUTOMATIC;
}

/* Removes the segments of complete sends. Returns whether one was removed. */
static bool sweep(struct adi_buffer *buffer)
{
	bool removed = false;
	for (struct segment **link = &buffer->first, *segment; (segment = *link);) {
		if (!adi_request_test(&segment->request)) {
			link = &segment->next;
			continue;
		}
		*link = segment->next;
		if (automatic(buffer))
			free(segment);
		removed = true;
	}
	return removed;
}

static char *aligned(char *address)
{
	return (char *)(((uintptr_t)address + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
}

/* Inserts a segment with room for bytes of data. NULL: no space. */
static struct segment *segment_new(struct adi_buffer *buffer, size_t bytes)
{
	struct segment **link = &buffer->first, *segment = NULL;
	if (automatic(buffer)) {
		segment = bytes < SIZE_MAX / 2 ? malloc(sizeof *segment + bytes) : NULL;
	} else {
		char *at = aligned(buffer->base), *end = buffer->base + buffer->size;
		for (;; link = &(*link)->next) {
			char *gap_end = *link ? (char *)*link : end;
			if (gap_end >= at && (size_t)(gap_end - at) >= sizeof *segment &&
			    (size_t)(gap_end - at) - sizeof *segment >= bytes)
				segment = (struct segment *)(void *)at;
			if (segment || !*link)
				break;
			at = aligned((char *)(*link + 1) + (*link)->bytes);
		}
	}
	if (!segment)
		return NULL;
	segment->bytes = bytes;
	segment->order = ++buffer->order;
	segment->next = *link;
	*link = segment;
	return segment;
}

/* The buffer of buffered sends in a communicator. */
static struct adi_buffer *buffer_of(const struct adi_comm *comm)
{
	if (comm->buffer)
		return comm->buffer;
	return comm->session && comm->session->buffer ? comm->session->buffer : process_buffer;
}

int adi_buffered_send(struct adi_comm *comm, int rank, int tag, const void *buf, MPI_Count count, struct adi_type *type)
{
	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	size_t bytes = (size_t)count * (size_t)type->size;
	struct adi_buffer *buffer = buffer_of(comm);
	if (!buffer)
		return adi_error(MPI_ERR_BUFFER, "a buffered send, but no buffer is attached");
	sweep(buffer);
	struct segment *segment = segment_new(buffer, bytes);
	/* The end of an earlier message may not have been noticed yet. */
	while (!segment && buffer->first && adi_poll())
		if (sweep(buffer))
			segment = segment_new(buffer, bytes);
	if (!segment)
		return adi_error(automatic(buffer) ? MPI_ERR_NO_MEM : MPI_ERR_BUFFER,
				 "the attached buffer of %lld bytes has no room for a message of %zu bytes", (long long)buffer->size,
				 bytes);
	struct adi_stream stream;
	int class = bytes ? adi_stream_start(&stream, buf, count, type) : MPI_SUCCESS;
	if (bytes && !class)
		adi_stream_pack(&stream, segment + 1, bytes);
	adi_message_send(&segment->request, comm, comm->context, rank, tag, segment + 1, class ? 0 : (MPI_Count)bytes, adi_type_byte,
			 ADI_SEND_BUFFERED);
	if (adi_request_test(&segment->request)) {
		class = class ? class : segment->request.class;
		sweep(buffer);
	}
	return class ? adi_error(class, "buffered send to rank %d, tag %d: %s", rank, tag, adi_class_text(class)) : MPI_SUCCESS;
}

/* ---- attaching ---- */

static int attach(struct adi_buffer **place, void *base, MPI_Count size)
{
	if (*place)
		return adi_error(MPI_ERR_BUFFER, "a buffer is attached already");
	if (!base && size > 0)
		return adi_error(MPI_ERR_BUFFER, "buffer is a null pointer, size is %lld", (long long)size);
	struct adi_buffer *buffer = calloc(1, sizeof *buffer);
	if (!buffer)
		return adi_error(MPI_ERR_NO_MEM, "no memory for the description of a buffer");
	buffer->base = base;
	buffer->size = size;
	*place = buffer;
	return MPI_SUCCESS;
}

static void flush(struct adi_buffer *buffer)
{
	for (sweep(buffer); buffer->first; sweep(buffer))
		adi_progress();
}

void adi_buffer_end(struct adi_buffer **place)
{
	if (!*place)
		return;
	flush(*place);
	free(*place);
	*place = NULL;
}

static int detach(struct adi_buffer **place, void *address, MPI_Count *size)
{
	if (!*place)
		return adi_error(MPI_ERR_BUFFER, "no buffer is attached");
	flush(*place);
	*(void **)address = (*place)->base;
	*size = (*place)->size;
	free(*place);
	*place = NULL;
	return MPI_SUCCESS;
}

/* ---- nonblocking flush ---- */

struct flushing {
	struct adi_task task;
	struct adi_request *request;
	struct adi_buffer **place;
	struct adi_buffer *buffer; /* has been detached if it is not at its place any more */
	uint64_t order;            /* the last segment to wait for */
};

static bool flushing_advance(struct adi_task *task)
{
	struct flushing *flushing = (struct flushing *)task;
	if (*flushing->place == flushing->buffer) {
		sweep(flushing->buffer);
		for (const struct segment *segment = flushing->buffer->first; segment; segment = segment->next)
			if (segment->order <= flushing->order)
				return false;
	}
	adi_task_remove(task);
	adi_request_complete(flushing->request, MPI_SUCCESS);
	return true;
}

static void flushing_destroy(struct adi_request *request)
{
	free(request->owner);
}

static const struct adi_request_class flushing_class = { .destroy = flushing_destroy };

/* comm: holds the buffer, or NULL. */
static int iflush(struct adi_buffer **place, struct adi_comm *comm, MPI_Request *handle)
{
	if (!*place) {
		*handle = adi_request_handle(&adi_request_none);
		return MPI_SUCCESS;
	}
	struct flushing *flushing = malloc(sizeof *flushing);
	struct adi_request *request = flushing ? adi_request_new(&flushing_class, flushing, comm) : NULL;
	if (!request) {
		free(flushing);
		return adi_error_no_request();
	}
	*flushing = (struct flushing){ { .advance = flushing_advance, .by_engine = true }, request, place, *place, (*place)->order };
	adi_task_add(&flushing->task);
	flushing_advance(&flushing->task);
	*handle = adi_request_handle(request);
	return MPI_SUCCESS;
}

static int flush_now(struct adi_buffer *buffer)
{
	if (buffer)
		flush(buffer);
	return MPI_SUCCESS;
}

/* ---- MPI's functions ---- */

int mpi_buffer_attach(void *buffer, MPI_Count size)
{
	return attach(&process_buffer, buffer, size);
}

int mpi_buffer_detach(void *buffer_addr, MPI_Count *size)
{
	return detach(&process_buffer, buffer_addr, size);
}

int mpi_buffer_flush(void)
{
	return flush_now(process_buffer);
}

int mpi_buffer_iflush(MPI_Request *request)
{
	return iflush(&process_buffer, NULL, request);
}

int mpi_comm_attach_buffer(struct adi_comm *comm, void *buffer, MPI_Count size)
{
	return attach(&comm->buffer, buffer, size);
}

int mpi_comm_detach_buffer(struct adi_comm *comm, void *buffer_addr, MPI_Count *size)
{
	return detach(&comm->buffer, buffer_addr, size);
}

int mpi_comm_flush_buffer(struct adi_comm *comm)
{
	return flush_now(comm->buffer);
}

int mpi_comm_iflush_buffer(struct adi_comm *comm, MPI_Request *request)
{
	return iflush(&comm->buffer, comm, request);
}

int mpi_session_attach_buffer(struct adi_session *session, void *buffer, MPI_Count size)
{
	return attach(&session->buffer, buffer, size);
}

int mpi_session_detach_buffer(struct adi_session *session, void *buffer_addr, MPI_Count *size)
{
	return detach(&session->buffer, buffer_addr, size);
}

int mpi_session_flush_buffer(struct adi_session *session)
{
	return flush_now(session->buffer);
}

int mpi_session_iflush_buffer(struct adi_session *session, MPI_Request *request)
{
	return iflush(&session->buffer, NULL, request);
}

void adi_buffered_end(void)
{
	while (process_buffer && process_buffer->first && automatic(process_buffer)) {
		struct segment *segment = process_buffer->first;
		process_buffer->first = segment->next;
		free(segment);
	}
	free(process_buffer);
	process_buffer = NULL;
}
