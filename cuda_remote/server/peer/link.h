/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links: connections to workers of other servers, over which copies between servers go. A link has one direction and a
 * thread of its own, which makes the copies that the client names, one after another.
 *
 *	places.c     the addresses at which a worker listens for others
 *	meet.c       how two workers find each other and prove that they have the same ticket
 *	link.c       the links, their threads, trials, and the client's calls on links
 *	copies.c     the copies of a link: which of them can be made, and who waits for them
 *	transfer.c   sends and receives the bytes of a transfer
 *	device.c     the device's part of a transfer: buffers, and the copies between buffers and device memory
 */
#ifndef RC_SERVER_PEER_LINK_H
#define RC_SERVER_PEER_LINK_H

#include "cuda_remote/server/internal.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- places.c ---- */

union peer_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
	struct sockaddr_storage space;
};

/* The addresses to listen at, the best first, without ports. Returns their number. */
size_t peer_places(union peer_address *addresses, size_t max);
/* Of an IPv4 or IPv6 address. */
socklen_t peer_address_bytes(const union peer_address *address);
void peer_address_set_port(union peer_address *address, uint16_t port);
bool peer_address_parse(const char *text, union peer_address *address);
int peer_address_print(const union peer_address *address, char *text, size_t size);

/* ---- meet.c ---- */

struct peer_connection {
	hr_channel_t *channel;
	hr_conn_t *conn;
	int socket;   /* a descriptor of the set-up socket; its shutdown ends the connection */
	bool on_host; /* the connection stays on this host */
};

#define PEER_LISTENERS (1 + RC_PEER_ADDRESSES_MAX)

/* An invitation that has not been used. */
struct peer_meeting {
	hr_channel_t *channel;
	hr_card_t card;
	int listener[PEER_LISTENERS]; /* Unix, then TCP; -1: none */
	uint8_t ticket[RC_PEER_TICKET_BYTES];
};

/* Opens the listeners and fills in the invitation, except for its flags. Negated errno. */
int peer_meet_invite(struct peer_meeting *meeting, struct rc_wire_peer_invitation *invitation);
/* Call it first. encrypt: this server encrypts every TCP connection. */
void peer_meet_prepare(bool encrypt);
/* True if this server encrypts every TCP connection. */
bool peer_meet_encrypts(void);
int64_t peer_now_ms(void);
/* When trials fail as a context is about to end, in ms of CLOCK_MONOTONIC; 0: none is. */
int64_t peer_trials_until(void);
/* Waits for the worker that has the ticket, until the descriptor stop is readable. Ends the meeting in any case. -ETIMEDOUT:
 * it did not come. */
int peer_meet_accept(struct peer_meeting *meeting, bool encrypt, uint32_t timeout_ms, int stop,
		     struct peer_connection *connection);
/* Goes to the worker that gave the invitation. -EACCES: the process there does not have the ticket. */
int peer_meet_join(const struct rc_wire_peer_invitation *invitation, bool encrypt, uint32_t timeout_ms,
		   struct peer_connection *connection);
/* Makes a meeting without listeners, which can be ended. peer_meet_invite calls this too. */
void peer_meeting_init(struct peer_meeting *meeting);
void peer_meeting_end(struct peer_meeting *meeting);
void peer_connection_close(struct peer_connection *connection);

/* ---- device.c ---- */

#define PEER_LANES 4

/* Memory of buffers. */
struct peer_memory {
	struct peer_memory *next;
	uint8_t *at;
	uint64_t size;
	CUcontext context;       /* device memory: that it was allocated in; pinned memory: NULL */
	struct server_slot slot; /* pinned memory */
	bool pinned;             /* slot is listed */
	bool counted;            /* its bytes are part of what the worker may hold */
};

struct peer_device {
	struct {
		CUcontext context;
		CUstream stream;
	} lane[PEER_LANES];
	unsigned oldest;
	struct peer_memory *device, *host;
	struct server_slot *event[RC_PEER_BUFFERS_MAX]; /* used for their events alone */
};

/* How one transfer uses the device. */
struct peer_way {
	struct peer_device *device;
	struct rc_wire_box box;
	uint32_t index;    /* of the context */
	CUcontext context;
	uint32_t way;      /* enum rc_peer_way */
	unsigned buffers;
	uint64_t chunk;
	uint8_t *memory;   /* of the buffers, one after another */
};

/* True if the host's processors read and write device memory at its addresses. */
bool peer_memory_is_direct(void);
/* Prepares a transfer of the box, in the context of that index. Only a trial allocates the buffers of its plan: streams wait for
 * copies, and a driver may wait for streams before it allocates. */
CUresult peer_way_open(struct peer_device *device, const struct rc_wire_peer_plan *plan, const struct rc_wire_box *box,
		       uint32_t index, bool trial, struct peer_way *way);
/* Starts the copy of len bytes of the box at offset from (to_device) or to a buffer. */
CUresult peer_way_copy(struct peer_way *way, unsigned buffer, uint64_t offset, uint64_t len, bool to_device);
/* Waits for the copy that used the buffer last. */
CUresult peer_way_wait(struct peer_way *way, unsigned buffer);
/* Waits for all copies. */
CUresult peer_way_finish(struct peer_way *way);
/* Device memory of the primary context of GPU 0, for a short time; makes that context current. NULL: none. */
struct peer_memory *peer_memory_borrow(uint64_t size);
void peer_memory_return(struct peer_memory *memory);
/* Gets what most transfers need, ahead of the first one. */
void peer_device_prepare(struct peer_device *device);
/* A context is about to end. The second one: for memory that no link uses, after the links. */
void peer_device_forget(struct peer_device *device, CUcontext context);
void peer_pool_forget(CUcontext context);
void peer_device_close(struct peer_device *device);

/* ---- transfer.c ---- */

struct peer_pipe {
	struct peer_connection connection;
	struct peer_device device;
	uint8_t *drain; /* RC_CHUNK_MAX bytes, for bytes that nobody wants */
	int64_t until;  /* ms of CLOCK_MONOTONIC: what waits longer fails, or longer than peer_trials_until; 0: no limit */
	/* Source: called with each note that comes. A negated errno ends the connection. NULL: no note may come. */
	int (*on_note)(void *context, const struct rc_wire_peer_note *note);
	void *context;
	struct rc_wire_peer_note note; /* source: that is arriving; target: that is being sent */
	size_t note_got, note_left;    /* bytes of it: that have come; that are still to be sent */
	struct rc_wire_peer_frame frame; /* target: whose header is arriving */
	size_t frame_got;
};

/* What one side of a transfer does. */
struct peer_job {
	uint64_t transfer;
	uint32_t context;          /* index */
	struct rc_wire_peer_plan plan;
	struct rc_wire_box box;
	CUresult refused;          /* the client's call was wrong, or its stream has failed: the bytes are dropped */
	bool empty;                /* there are no bytes, and plan and box are not used */
};

/* Return a negated errno if the connection failed. *result: of the transfer; it is set in any case, and the device does
 * not use the memory any more. first: the header of the first frame; NULL: it has not come. */
int peer_transfer_send(struct peer_pipe *pipe, const struct peer_job *job, CUresult *result);
int peer_transfer_receive(struct peer_pipe *pipe, const struct peer_job *job, const struct rc_wire_peer_frame *first,
			  CUresult *result);
/* Source: hands on the notes that have come. Does not wait. */
int peer_notes_get(struct peer_pipe *pipe);
/* Source: waits until *come, which a note sets. */
int peer_notes_await(struct peer_pipe *pipe, const bool *come);
/* Target: begins a note, when note_left is 0; sends what the connection takes of it now; sends all of it. */
void peer_note_begin(struct peer_pipe *pipe, const struct rc_wire_peer_note *note);
int peer_note_put(struct peer_pipe *pipe);
int peer_note_finish(struct peer_pipe *pipe);
/* Target: reads the header of the next frame. Does not wait; *whole: it has come, in pipe->frame. */
int peer_frame_get(struct peer_pipe *pipe, bool *whole);

#endif
