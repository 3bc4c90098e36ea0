/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internal declarations of the abstract device: MPI's matching, requests and errors over CH3. Only the files of adi/
 * include this header.
 *
 * A process has one engine and one virtual connection on demand to every other rank of MPI_COMM_WORLD. A connection is
 * opened by the first message in either direction. A receive that names the rank opens it too, because only a
 * connection reports the death of the rank. A message is a CH3 packet of type ADI_PACKET_MESSAGE whose header is struct
 * adi_envelope; the connection identifies the sender. The handler looks for a posted receive. If there is none, the
 * message is unexpected: an eager payload is stored in an allocated buffer, the payload of a rendezvous waits at the
 * sender. A message to the process itself uses the same queues without a packet.
 *
 * Threads: one thread at a time may call MPI functions (MPI_THREAD_SERIALIZED).
 */
#ifndef HR_ADI_H
#define HR_ADI_H

#include "adi/mpi.h"
#include "ch3/ch3.h"

#include <assert.h>

/* Makes MPI_name a weak name of the PMPI_name defined above it. */
#define ADI_PROFILED(name) extern __typeof__(PMPI_##name) MPI_##name __attribute__((weak, alias("PMPI_" #name)))

enum {
	ADI_PACKET_MESSAGE = CH3_TYPE_FIRST, /* header: struct adi_envelope */
	ADI_PACKET_BROKEN,                   /* a rank has died, so the sender leaves MPI_Finalize; no header */
};

/* The header of a message on the wire. */
struct adi_envelope {
	uint32_t context; /* sender: identifies communicator and kind of operation; receiver: compares with receives */
	int32_t tag;      /* sender: >= 0; receiver: compares with receives */
};
static_assert(sizeof(struct adi_envelope) == 8, "wire format");

/* A communicator has two contexts: context for point-to-point messages, context + 1 for collectives. */
enum {
	ADI_CONTEXT_WORLD = 0,
	ADI_CONTEXT_SELF = 2,
	ADI_CONTEXTS = 4,
};

struct adi_comm {
	const char *name;
	uint32_t context;
	int rank, size;
	int first; /* rank in MPI_COMM_WORLD of the communicator's rank 0 */
	MPI_Errhandler errhandler;
};

/* A process of MPI_COMM_WORLD. */
struct adi_peer {
	int rank;
	ch3_vc_t *vc; /* NULL: this process itself */
	int error;    /* 0, or the error with which its connection has failed */
};

/* A request. An MPI_Request handle is a pointer to it. */
struct adi_request {
	uint32_t magic; /* ADI_REQUEST_MAGIC while the handle is valid */
	enum { ADI_SEND, ADI_RECEIVE } kind;
	bool complete;
	int class; /* MPI error class; valid if complete */
	struct adi_comm *comm;
	struct adi_request *next; /* in the queue of posted receives, or the pool */
	ch3_request_t *send;      /* an incomplete send, or NULL */
	void *buf;
	size_t capacity; /* size of buf, bytes */
	size_t bytes;    /* length of the message, bytes; more than capacity if the message was truncated */
	uint32_t context;
	int source, tag; /* of the message; before a receive has matched: requested, may be wildcards. World ranks */
};
#define ADI_REQUEST_MAGIC 0x4d504952u

enum adi_state { ADI_BEFORE, ADI_RUNNING, ADI_AFTER };

struct adi {
	enum adi_state state;
	int thread_level;
	bool oversubscribed; /* more ranks than processors on this machine */
	ch3_t *engine;
	struct adi_peer *peer; /* [world.size] */
	struct adi_comm world, self;
};
extern struct adi adi;

/* launch_*.c: the interface to the process manager. Without a process manager the job has one process. On failure the
 * functions log the reason and return a negated errno value. local_size: number of ranks on this machine. */
int adi_launch_init(int *rank, int *size, int *local_size);
/* Publishes this process's card and stores the cards of all ranks in cards[0..size-1]. Collective. */
int adi_launch_exchange(const hr_card_t *mine, hr_card_t *cards, int size);
/* The fence of MPI_Finalize: collective, once. start announces that this process has reached the fence; test checks
 * whether all ranks have. Both return 1 if all ranks have, 0 if not yet, or a negated errno value. The caller makes
 * progress between the calls. */
int adi_launch_meet_start(void);
int adi_launch_meet_test(void);
/* Asks the process manager to end the whole job. Without a process manager it returns. */
void adi_launch_abort(int code, const char *message);
void adi_launch_finalize(void);

/* error.c: reports an error to the error handler of comm (NULL: of MPI_COMM_WORLD). Ends the job, or returns class if
 * the handler is MPI_ERRORS_RETURN. function: name of the MPI function, for the message. */
int adi_raise(const struct adi_comm *comm, const char *function, int class, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Ends the job and this process. Runs no exit handlers. */
void adi_abort(int code, const char *message) __attribute__((noreturn));
/* Converts 0 or a negated errno value of the layers below to an MPI error class. */
int adi_class(int error);
/* Returns the name of an error class, for example "MPI_ERR_TRUNCATE", or NULL if there is no such class. */
const char *adi_class_name(int class);
const char *adi_class_text(int class);

/* init.c: returns the communicator of a handle, or NULL if the handle is invalid. */
struct adi_comm *adi_comm_find(MPI_Comm handle);
/* Returns MPI_SUCCESS between MPI_Init and MPI_Finalize; otherwise reports an error as adi_raise does. */
int adi_check_running(const char *function);

/* datatype.c: returns the size of one element in bytes, 0 if the datatype is invalid or not supported. */
size_t adi_type_size(MPI_Datatype datatype);

/* match.c: start registers the handlers with the engine. Call end after ch3_close. */
int adi_match_start(void);
void adi_match_end(void);
/* Starts to send bytes bytes at buf to world rank dest. Afterwards request is complete or in progress. */
void adi_send(struct adi_request *request, struct adi_comm *comm, uint32_t context, int dest, int tag, const void *buf,
	      size_t bytes);
/* Starts to receive into buf. source: a world rank or MPI_ANY_SOURCE; tag: a tag or MPI_ANY_TAG. */
void adi_receive(struct adi_request *request, struct adi_comm *comm, uint32_t context, int source, int tag, void *buf,
		 size_t capacity);
/* Removes a receive from the queue of posted receives. Returns false if a message has matched it already. */
bool adi_receive_cancel(struct adi_request *request);

/* request.c */
struct adi_request *adi_request_new(void);
void adi_request_free(struct adi_request *request);
void adi_requests_destroy(void);
/* Returns whether the request is complete. Makes no progress. */
bool adi_request_complete(struct adi_request *request);
/* Makes progress until the request is complete. Returns its error class. */
int adi_request_wait(struct adi_request *request);
/* Fills the status of a complete request. status may be MPI_STATUS_IGNORE. */
void adi_request_status(const struct adi_request *request, MPI_Status *status);
/* Reports the error of a complete request, if any, as adi_raise does. */
int adi_request_raise(const struct adi_request *request, const char *function);

/* barrier.c: returns an error class, which the caller reports. */
int adi_barrier(struct adi_comm *comm);

/* meet.c: adi_meet_prepare registers a handler with the engine. adi_meet waits until all ranks have called
 * MPI_Finalize, and makes progress with the messages of peers meanwhile. Returns an error class, which the caller
 * reports. */
int adi_meet_prepare(void);
int adi_meet(void);

#endif
