/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, and point-to-point messages as the other units use them: MPI 5.0, chapters 3 and 4. */
#ifndef ADI_MESSAGE_REQUEST_H
#define ADI_MESSAGE_REQUEST_H

#include "adi/comm/comm.h"
#include "adi/datatype/type.h"
#include "adi/message/queue.h"

struct adi_request;

/* What MPI does with a request whose kind belongs to another unit. Any of them may be NULL. */
struct adi_request_class {
	/* Starts a persistent request. Returns an error class. */
	int (*start)(struct adi_request *request);
	int (*cancel)(struct adi_request *request);
	/* Fills the status of a complete request (generalized requests: their query function). Returns an error class. */
	int (*status)(struct adi_request *request, MPI_Status *status);
	/* Frees what the request owns. Called when it is complete and freed. */
	void (*destroy)(struct adi_request *request);
};

/* How to send. ADI_SEND_BUFFERED and ADI_SEND_COPY are of point-to-point only: from the attached buffer, and by a blocking call: to
 * this process itself without waiting for the receive. Only ADI_SEND_STANDARD is announced if the peer asks for that
 * (adi_flow_announces): the program may rely on the others not to wait for the receive. */
enum adi_send_mode { ADI_SEND_STANDARD, ADI_SEND_SYNCHRONOUS, ADI_SEND_COPY, ADI_SEND_BUFFERED };

struct adi_request {
	struct adi_object object;
	enum { ADI_SEND, ADI_RECEIVE, ADI_OTHER } kind;
	bool complete;
	bool cancelled;
	bool persistent, active; /* a persistent request that is not active is complete, with an empty status */
	bool freed;              /* by MPI_Request_free: freed when it completes */
	bool owned;              /* holds references to comm and type */
	bool flat;               /* the bytes of the buffer are one run, at data */
	bool posted;             /* a receive: in the table of posted receives */
	bool withheld;           /* a send: held, in the list of hold.c */
	bool sent_at_once;       /* of adi_request_sent: only the object, world and number differ from a request in the pool */
	unsigned char mode;      /* of a persistent send: enum adi_send_mode */
	int class;               /* of error; valid if complete */
	struct adi_comm *comm;
	const struct adi_request_class *of; /* ADI_OTHER, or a persistent message */
	void *owner;             /* for `of` */

	/* A message. */
	struct adi_request *next; /* in the pool, or a list of message/ */
	ch3_request_t *send;      /* an incomplete send, or NULL */
	ch3_rndv_t *rndv;         /* a receive whose payload could not be accepted yet, or NULL */
	struct adi_unexpected *held; /* a send to this process itself that waits for its receive, or NULL */
	void *buf;
	MPI_Count count;
	struct adi_type *type;
	char *data;               /* if flat */
	size_t moved;             /* bytes that were packed or unpacked so far, if the type is not contiguous */
	size_t capacity;          /* bytes that the buffer holds */
	size_t bytes;             /* length of the message, bytes; more than capacity if the message was truncated */
	struct adi_queued node;     /* in the posted receives. The key of a complete receive is that of the message */
	uint32_t context;
	int rank, tag;            /* destination, or requested source, in comm; requested tag: may be wildcards */

	/* A send, for MPI_Cancel. */
	int world;                /* destination in MPI_COMM_WORLD; MPI_PROC_NULL: nothing was sent */
	uint64_t number;          /* of the message among all packets to this process, or among its messages to itself */
	bool cancelling;          /* the answer of the receiver is missing: the request is not complete */
};

/* A request of another unit, incomplete. comm may be NULL. NULL: no memory. */
struct adi_request *adi_request_new(const struct adi_request_class *of, void *owner, struct adi_comm *comm);
static inline MPI_Request adi_request_handle(struct adi_request *request)
{
	return adi_object_handle(&request->object);
}
/* A complete request without an effect, for an operation with nothing to do. */
struct adi_request *adi_request_done(void);
/* Marks a request of another unit complete, and frees it if the program has freed it. */
void adi_request_complete(struct adi_request *request, int class);
/* Whether it is complete. Makes no progress. */
bool adi_request_test(struct adi_request *request);
/* Makes progress until it is complete. Returns its error class, with the text of adi_error. */
int adi_request_wait(struct adi_request *request);
/* Frees a complete request. */
void adi_request_free(struct adi_request *request);

/*
 * Messages with the request in the caller's memory (of a schedule, on the stack), which the functions initialise and which must
 * stay in place until it is complete. context: comm->context, or comm->context + 1 inside collectives. rank: of the remote group
 * or MPI_PROC_NULL; to receive also MPI_ANY_SOURCE. tag >= 0; to receive also MPI_ANY_TAG. Errors are in the request's class.
 */
void adi_message_send(struct adi_request *request, struct adi_comm *comm, uint32_t context, int rank, int tag, const void *buf,
		      MPI_Count count, struct adi_type *type, enum adi_send_mode mode);
void adi_message_receive(struct adi_request *request, struct adi_comm *comm, uint32_t context, int rank, int tag, void *buf,
			 MPI_Count count, struct adi_type *type);
/* Cancels a receive that no message has matched. False: it completes as if it had not been cancelled. */
bool adi_receive_cancel(struct adi_request *request);

uint64_t adi_status_bytes(const MPI_Status *status);
/* Changes the number of bytes alone (MPI_Status_set_elements). */
static inline void adi_status_set_bytes(MPI_Status *status, uint64_t bytes)
{
	status->MPI_internal[0] = (int)(uint32_t)bytes;
	status->MPI_internal[1] = (int)(uint32_t)(bytes >> 32);
}
/* bytes: of a receive that is complete, as MPI_Get_count sees it. */
static inline void adi_status_set(MPI_Status *status, int source, int tag, uint64_t bytes)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = source;
	status->MPI_TAG = tag;
	memset(status->MPI_internal, 0, sizeof status->MPI_internal);
	adi_status_set_bytes(status, bytes);
}
/* Fills an empty status: MPI 5.0, section 3.7.3. */
void adi_status_empty(MPI_Status *status);

/* The buffer of MPI_Comm_attach_buffer or MPI_Session_attach_buffer at *place (NULL: none). Waits until its messages are on
 * their way, and frees it: for communicators and sessions that end. */
struct adi_buffer;
void adi_buffer_end(struct adi_buffer **place);

/* match.c: registers handlers with the engine; frees everything after the engine was closed. */
int adi_messages_start(void);
void adi_messages_end(void);

#endif
