/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The abstract device's insides, shared by the files of adi/ only: MPI's matching, requests and errors over CH3.
 *
 * One process has one engine and one virtual connection to every other rank of MPI_COMM_WORLD, opened by the first
 * message either way, or by a receive that names the rank, which so hears of its death. A message is a CH3
 * packet of type ADI_PACKET_MESSAGE whose header is struct adi_envelope; who sent it is known from the connection. The
 * handler looks for a posted receive; without one the message is unexpected: an eager payload goes into memory of its
 * own, a rendezvous waits at the sender. A message to oneself takes the same queues without a packet.
 *
 * Threads: one at a time, which is MPI_THREAD_SERIALIZED.
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
	ADI_PACKET_BROKEN,                   /* a rank has died, and the sender leaves MPI_Finalize for it; no header */
};

/* The header of a message on the wire. */
struct adi_envelope {
	uint32_t context; /* sender: of the communicator and kind of operation; receiver: matches */
	int32_t tag;      /* sender: >= 0; receiver: matches */
};
static_assert(sizeof(struct adi_envelope) == 8, "wire format");

/* A communicator has two contexts: its own for messages, the next for collectives. */
enum {
	ADI_CONTEXT_WORLD = 0,
	ADI_CONTEXT_SELF = 2,
	ADI_CONTEXTS = 4,
};

struct adi_comm {
	const char *name;
	uint32_t context;
	int rank, size;
	int first; /* rank 0's place in MPI_COMM_WORLD */
	MPI_Errhandler errhandler;
};

/* Another process of MPI_COMM_WORLD. */
struct adi_peer {
	int rank;
	ch3_vc_t *vc; /* NULL: this process itself */
	int error;    /* 0, or why it cannot be reached any more */
};

/* Request handles point to these. */
struct adi_request {
	uint32_t magic; /* ADI_REQUEST_MAGIC while the handle is valid */
	enum { ADI_SEND, ADI_RECEIVE } kind;
	bool complete;
	int class; /* error class once complete */
	struct adi_comm *comm;
	struct adi_request *next; /* in the queue of posted receives, or the pool */
	ch3_request_t *send;      /* a send on its way, or NULL */
	void *buf;
	size_t capacity; /* bytes at buf */
	size_t bytes;    /* of the message; more than capacity if it was truncated */
	uint32_t context;
	int source, tag; /* wanted, then of the message; world ranks */
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

/* launch_*.c: the process manager. Without one, alone. Each returns 0 or a negated errno value and has logged why.
 * local_size: ranks on this machine. */
int adi_launch_init(int *rank, int *size, int *local_size);
/* Gives mine to everybody; cards[0..size-1] receives everybody's. Collective. */
int adi_launch_exchange(const hr_card_t *mine, hr_card_t *cards, int size);
/* Meeting, collective, once: start says that this process has come; test is 1 when all have, 0 not yet, or a negated
 * errno value. Between the two the caller makes progress. */
int adi_launch_meet_start(void);
int adi_launch_meet_test(void);
/* Asks for the end of the whole job. Returns where there is nobody to ask. */
void adi_launch_abort(int code, const char *message);
void adi_launch_finalize(void);

/* error.c: reports an error of class in function as the communicator's handler wants: ends the job, or returns class.
 * comm NULL: MPI_COMM_WORLD's handler. */
int adi_raise(const struct adi_comm *comm, const char *function, int class, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Ends the job. Runs no exit handlers. */
void adi_abort(int code, const char *message) __attribute__((noreturn));
/* The class of an error of the layers below. */
int adi_class(int error);
/* "MPI_ERR_TRUNCATE", or NULL if there is no such class. */
const char *adi_class_name(int class);
const char *adi_class_text(int class);

/* init.c: the communicator of a handle; NULL if it is none. */
struct adi_comm *adi_comm_find(MPI_Comm handle);
/* MPI_SUCCESS between init and finalize; otherwise reports. */
int adi_check_running(const char *function);

/* datatype.c: bytes of one element, 0 if the handle is not a datatype that is there. */
size_t adi_type_size(MPI_Datatype datatype);

/* match.c: start registers with the engine; end comes after the engine's. */
int adi_match_start(void);
void adi_match_end(void);
/* Sends bytes to world rank dest; request is complete or on its way. */
void adi_send(struct adi_request *request, struct adi_comm *comm, uint32_t context, int dest, int tag, const void *buf,
	      size_t bytes);
/* Receives; source and tag as in struct adi_request. */
void adi_receive(struct adi_request *request, struct adi_comm *comm, uint32_t context, int source, int tag, void *buf,
		 size_t capacity);
/* Takes a receive back that no message has matched; false if one has. */
bool adi_receive_cancel(struct adi_request *request);

/* request.c */
struct adi_request *adi_request_new(void);
void adi_request_free(struct adi_request *request);
void adi_requests_destroy(void);
/* True once the request is complete. Makes no progress. */
bool adi_request_complete(struct adi_request *request);
/* Makes progress until the request is complete; returns its class. */
int adi_request_wait(struct adi_request *request);
/* Fills a status from a complete request; MPI_STATUS_IGNORE is allowed. */
void adi_request_status(const struct adi_request *request, MPI_Status *status);
/* Reports the error of a complete request, if any, as adi_raise does. */
int adi_request_raise(const struct adi_request *request, const char *function);

/* barrier.c: returns a class, reported by the caller. */
int adi_barrier(struct adi_comm *comm);

/* meet.c: prepare registers with the engine. adi_meet waits until every rank has come, and goes on with what peers still
 * want of this process; returns a class. */
int adi_meet_prepare(void);
int adi_meet(void);

#endif
