/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: messages to other processes through ch3, and messages of this process to itself. */
#include "adi/message/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pieces of memory shorter than this, in the mean, are packed. */
#define PIECE_MIN 256
/* Data up to this size that are not contiguous are packed on the stack. */
#define PACK_ON_STACK 2048
/* A longer message of this process to itself stays in the sender's buffer until it is received. */
#define SELF_COPY_MAX 65536

void adi_send_complete(struct adi_request *request, int class)
{
	request->class = class;
	request->complete = true;
	if (request->freed)
		adi_request_drop(request);
}

/* ---- to another process ---- */

/* Packs the next bytes of a send. */
static void pack(void *context, void *to, size_t len)
{
	struct adi_request *request = context;
	struct adi_stream stream;
	adi_stream_start(&stream, request->buf, request->count, request->type); /* cannot fail: gather has compiled the type */
	adi_stream_seek(&stream, request->moved);
	request->moved += adi_stream_pack(&stream, to, len);
}

/* n pieces, or ADI_PACK: pack. */
static void hand_over(struct adi_request *request, const struct adi_peer *peer, const struct iovec *piece, int n, unsigned flags)
{
	const struct adi_key *key = &request->node.key;
	struct adi_partitioned_envelope header = { { key->context, key->tag }, key->number };
	size_t header_len = key->number ? sizeof header : sizeof header.envelope;
	unsigned type = key->number ? ADI_PACKET_PARTITIONED : ADI_PACKET_MESSAGE;
	int error;
	if (n == ADI_PACK)
		error = ch3_send_pack(peer->vc, type, &header, header_len, request->bytes, pack, request, flags, &request->send);
	else
		error = ch3_send(peer->vc, type, &header, header_len, piece, n, flags,
				 flags & CH3_SEND_COPY ? NULL : &request->send);
	if (!error)
		adi_hold_sent(peer->rank, request->bytes, flags);
	if (error || !request->send)
		adi_send_complete(request, adi_class(error));
}

/* Describes data that are not contiguous, or packs them. Returns the number of pieces, ADI_PACK, or -ENOMEM. small: memory of
 * PACK_ON_STACK bytes, or NULL if the data must stay in place. *packed_small: the data have been packed there. */
static int gather(struct adi_request *request, struct iovec *piece, char *small, bool *packed_small)
{
	struct adi_stream stream;
	size_t described = 0, bytes = request->bytes;
	if (adi_stream_start(&stream, request->buf, request->count, request->type))
		return -ENOMEM;
	if (small && bytes <= PACK_ON_STACK) {
		adi_stream_pack(&stream, small, bytes);
		*piece = (struct iovec){ small, bytes };
		*packed_small = true;
		return 1;
	}
	int n = adi_stream_pieces(&stream, piece, CH3_IOV_MAX, bytes, &described);
	if (described == bytes && bytes / (size_t)n >= PIECE_MIN)
		return n;
	request->moved = 0;
	return ADI_PACK;
}

static __attribute__((noinline)) void send_stream(struct adi_request *request, const struct adi_peer *peer, unsigned flags)
{
	struct iovec piece[CH3_IOV_MAX];
	char small[PACK_ON_STACK];
	bool copied = false;
	int n = gather(request, piece, flags & CH3_SEND_SYNC ? NULL : small, &copied);
	if (n < 0 && n != ADI_PACK)
		adi_send_complete(request, MPI_ERR_NO_MEM);
	else
		hand_over(request, peer, piece, n, copied ? flags | CH3_SEND_COPY : flags);
}

/* ---- to this process itself ---- */

uint64_t adi_number_self;

/* Stores the data of a message in an unexpected message, or, if it is long or synchronous, a reference to the send. */
static void self_hold(struct adi_request *request, enum adi_send_mode mode)
{
	bool copy = mode != ADI_SEND_SYNCHRONOUS && (mode == ADI_SEND_COPY || request->bytes <= SELF_COPY_MAX);
	struct adi_unexpected *message = adi_unexpected_append(&request->node.key, request->bytes, copy ? request->bytes : 0);
	if (!message) {
		adi_send_complete(request, MPI_ERR_NO_MEM);
		return;
	}
	if (!copy) {
		message->sender = request;
		request->held = message;
		return;
	}
	message->arrived = true;
	int class = MPI_SUCCESS;
	if (request->flat && request->bytes > 0) {
		memcpy(message->payload, request->data, request->bytes);
	} else if (request->bytes > 0) {
		struct adi_stream stream;
		class = adi_stream_start(&stream, request->buf, request->count, request->type);
		if (!class)
			adi_stream_pack(&stream, message->payload, request->bytes);
		else
			message->error = -ENOMEM;
	}
	adi_send_complete(request, class);
}

static void self_send(struct adi_request *request, enum adi_send_mode mode)
{
	adi_number_self++;
	struct adi_request *receive = adi_match_posted(&request->node.key);
	if (!receive) {
		self_hold(request, mode);
		return;
	}
	adi_receive_claim(receive, &request->node.key, request->bytes);
	adi_deliver_self(request, receive);
}

/* ---- starting ---- */

static void transmit(struct adi_request *request, const struct adi_peer *peer, unsigned flags)
{
	if (request->flat) {
		struct iovec piece = { request->data, request->bytes };
		hand_over(request, peer, &piece, request->bytes > 0, flags);
	} else {
		send_stream(request, peer, flags);
	}
}

void adi_send_held(struct adi_request *request)
{
	const struct adi_peer *peer = &adi_job.peer[adi_comm_world(request->comm, request->rank)];
	transmit(request, peer, CH3_SEND_SYNC);
	request->number = adi_number_sent(peer->rank);
}

static void send_go(struct adi_request *request, enum adi_send_mode mode)
{
	const struct adi_peer *peer = &adi_job.peer[adi_comm_world(request->comm, request->rank)];
	request->node.key.source = adi_job.rank;
	request->bytes = request->capacity;
	if (!peer->vc) {
		self_send(request, mode);
		return;
	}
	const struct adi_key *key = &request->node.key;
	if (mode == ADI_SEND_STANDARD && adi_flow_announces(peer->rank, request->bytes))
		mode = ADI_SEND_SYNCHRONOUS;
	if (request->flat && mode != ADI_SEND_SYNCHRONOUS && !key->number &&
	    adi_send_short(peer, key->context, key->tag, request->data, request->bytes)) {
		adi_send_complete(request, MPI_SUCCESS);
		return;
	}
	if (adi_hold_may(key->context) && adi_hold_needed(peer->rank, request->bytes, mode)) {
		adi_hold_append(peer->rank, request);
		return;
	}
	transmit(request, peer, mode == ADI_SEND_SYNCHRONOUS ? CH3_SEND_SYNC : adi_flow_send(peer->rank, request->bytes));
}

void adi_message_go(struct adi_request *request, enum adi_send_mode mode)
{
	if (request->kind == ADI_RECEIVE) {
		adi_receive_go(request);
		return;
	}
	request->complete = false;
	request->cancelled = false;
	request->class = MPI_SUCCESS;
	request->bytes = 0;
	request->node.key.context = request->context;
	request->node.key.tag = request->tag;
	if (request->rank == MPI_PROC_NULL)
		request->complete = true;
	else
		send_go(request, mode);
}

/* A request in the memory of its user, who holds the communicator and the type. */
static inline void begin(struct adi_request *request)
{
	request->object.magic = 0;
	adi_message_begin(request);
}

void adi_message_send(struct adi_request *request, struct adi_comm *comm, uint32_t context, int rank, int tag, const void *buf,
		      MPI_Count count, struct adi_type *type, enum adi_send_mode mode)
{
	begin(request);
	adi_message_prepare(request, ADI_SEND, comm, context, rank, tag, buf, count, type);
	adi_message_go(request, mode);
}

void adi_message_receive(struct adi_request *request, struct adi_comm *comm, uint32_t context, int rank, int tag, void *buf,
			 MPI_Count count, struct adi_type *type)
{
	begin(request);
	adi_message_prepare(request, ADI_RECEIVE, comm, context, rank, tag, buf, count, type);
	adi_receive_go(request);
}
