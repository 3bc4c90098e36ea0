/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching: MPI 5.0, section 3.5. There are two queues: posted receives without a message, in order of posting, and
 * unexpected messages, in order of arrival. No posted receive matches a message in the second queue. */
#include "adi/adi.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct adi_unexpected {
	struct adi_unexpected *next;
	uint32_t context;
	int source, tag;
	size_t bytes;
	ch3_rndv_t *rndv;            /* not NULL: rendezvous, the payload is still at the sender */
	bool arrived;                /* payload is complete, or its transfer failed with error */
	int error;
	struct adi_request *claimed; /* a receive that matched before the payload had arrived */
	char payload[];
};

static struct adi_request *posted, **posted_end = &posted;
static struct adi_unexpected *unexpected, **unexpected_end = &unexpected;

static void receive_complete(struct adi_request *request, int error)
{
	if (error)
		request->class = adi_class(error);
	else
		request->class = request->bytes > request->capacity ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
	request->complete = true;
}

/* CH3's completion callback of a payload that was received directly into the buffer of its receive. */
static void on_received(void *context, int error, size_t bytes)
{
	(void)bytes;
	receive_complete(context, error);
}

/* Removes the first posted receive that matches the message from the queue. Returns NULL if there is none. */
static struct adi_request *match_posted(uint32_t context, int source, int tag)
{
	for (struct adi_request **link = &posted; *link; link = &(*link)->next) {
		struct adi_request *request = *link;
		if (request->context != context || (request->source != source && request->source != MPI_ANY_SOURCE) ||
		    (request->tag != tag && request->tag != MPI_ANY_TAG))
			continue;
		*link = request->next;
		if (!request->next)
			posted_end = link;
		return request;
	}
	return NULL;
}

/* Removes the first unexpected message that matches the receive from the queue. Returns NULL if there is none. */
static struct adi_unexpected *match_unexpected(const struct adi_request *request)
{
	for (struct adi_unexpected **link = &unexpected; *link; link = &(*link)->next) {
		struct adi_unexpected *message = *link;
		if (request->context != message->context ||
		    (request->source != message->source && request->source != MPI_ANY_SOURCE) ||
		    (request->tag != message->tag && request->tag != MPI_ANY_TAG))
			continue;
		*link = message->next;
		if (!message->next)
			unexpected_end = link;
		return message;
	}
	return NULL;
}

/* Stores the envelope of the matching message in the receive request. */
static void claim(struct adi_request *request, int source, int tag, size_t bytes)
{
	request->source = source;
	request->tag = tag;
	request->bytes = bytes;
}

static void unexpected_deliver(struct adi_request *request, struct adi_unexpected *message)
{
	size_t some = message->bytes < request->capacity ? message->bytes : request->capacity;
	if (!message->error && some > 0)
		memcpy(request->buf, message->payload, some);
	receive_complete(request, message->error);
	free(message);
}

static void on_unexpected_arrived(void *context, int error, size_t bytes)
{
	(void)bytes;
	struct adi_unexpected *message = context;
	message->arrived = true;
	message->error = error;
	if (message->claimed)
		unexpected_deliver(message->claimed, message);
}

/* Appends an unexpected message. An eager message has room for its payload. Returns NULL if out of memory. */
static struct adi_unexpected *unexpected_append(uint32_t context, int source, int tag, size_t bytes, ch3_rndv_t *rndv)
{
	size_t room = rndv ? 0 : bytes;
	struct adi_unexpected *message = room > SIZE_MAX / 2 ? NULL : malloc(sizeof *message + room);
	if (!message) {
		hr_log(HR_LOG_ERROR, "adi: no memory for an unexpected message of %zu bytes from rank %d", bytes,
		       source);
		return NULL;
	}
	*message = (struct adi_unexpected){
		.context = context, .source = source, .tag = tag, .bytes = bytes, .rndv = rndv
	};
	*unexpected_end = message;
	unexpected_end = &message->next;
	return message;
}

static int on_message(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct adi_envelope envelope;
	if (incoming->header_len == sizeof envelope)
		memcpy(&envelope, incoming->header, sizeof envelope);
	if (incoming->header_len != sizeof envelope || envelope.context >= ADI_CONTEXT_SELF || envelope.tag < 0) {
		hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent a message with an invalid envelope", peer->rank);
		return -EPROTO;
	}
	struct adi_request *request = match_posted(envelope.context, peer->rank, envelope.tag);
	if (request) {
		claim(request, peer->rank, envelope.tag, incoming->payload_len);
		sink->iov[0] = (struct iovec){ request->buf, request->capacity };
		sink->n = request->capacity > 0;
		sink->done = on_received;
		sink->context = request;
		return 0;
	}
	struct adi_unexpected *message = unexpected_append(envelope.context, peer->rank, envelope.tag,
							   incoming->payload_len, incoming->rndv);
	if (!message)
		return -ENOMEM;
	if (incoming->rndv) {
		sink->defer = true;
		return 0;
	}
	sink->iov[0] = (struct iovec){ message->payload, message->bytes };
	sink->n = message->bytes > 0;
	sink->done = on_unexpected_arrived;
	sink->context = message;
	return 0;
}

static void send_complete(struct adi_request *request, int class)
{
	request->class = class;
	request->complete = true;
}

/* Sends a message to this process itself: copies it to a posted receive or into an unexpected message. */
static void self_send(struct adi_request *request, const void *buf)
{
	struct adi_request *receive = match_posted(request->context, request->source, request->tag);
	if (receive) {
		claim(receive, request->source, request->tag, request->bytes);
		size_t some = request->bytes < receive->capacity ? request->bytes : receive->capacity;
		if (some > 0)
			memmove(receive->buf, buf, some);
		receive_complete(receive, 0);
		send_complete(request, MPI_SUCCESS);
		return;
	}
	struct adi_unexpected *message = unexpected_append(request->context, request->source, request->tag,
							   request->bytes, NULL);
	if (message) {
		if (request->bytes > 0)
			memcpy(message->payload, buf, request->bytes);
		message->arrived = true;
	}
	send_complete(request, message ? MPI_SUCCESS : MPI_ERR_NO_MEM);
}

void adi_send(struct adi_request *request, struct adi_comm *comm, uint32_t context, int dest, int tag, const void *buf,
	      size_t bytes)
{
	request->kind = ADI_SEND;
	request->comm = comm;
	request->context = context;
	request->source = adi.world.rank;
	request->tag = tag;
	request->bytes = bytes;
	const struct adi_peer *peer = &adi.peer[dest];
	if (!peer->vc) {
		self_send(request, buf);
		return;
	}
	struct adi_envelope envelope = { context, tag };
	struct iovec iov = { (void *)buf, bytes };
	int error = ch3_send(peer->vc, ADI_PACKET_MESSAGE, &envelope, sizeof envelope, &iov, bytes > 0, 0,
			     &request->send);
	if (error || !request->send)
		send_complete(request, adi_class(error));
}

/* Returns 0 if a receive from source can still match a message, else the error with which the receive fails. A receive
 * with MPI_ANY_SOURCE fails if a peer has died, because that peer may have been the expected sender, or if all peers
 * have closed. A peer without a connection counts as alive. */
static int nobody_left(int source)
{
	if (source != MPI_ANY_SOURCE)
		return adi.peer[source].error;
	bool somebody = adi.world.size == 1;
	for (int i = 0; i < adi.world.size; i++) {
		int error = adi.peer[i].error;
		if (error && error != -ESHUTDOWN)
			return error;
		somebody |= adi.peer[i].vc && !error;
	}
	return somebody ? 0 : -ESHUTDOWN;
}

static void receive_unexpected(struct adi_request *request, struct adi_unexpected *message)
{
	claim(request, message->source, message->tag, message->bytes);
	if (message->rndv) {
		struct iovec iov = { request->buf, request->capacity };
		int error = ch3_rndv_accept(message->rndv, &iov, request->capacity > 0, on_received, request);
		free(message);
		if (error)
			receive_complete(request, error);
	} else if (message->arrived) {
		unexpected_deliver(request, message);
	} else {
		message->claimed = request;
	}
}

void adi_receive(struct adi_request *request, struct adi_comm *comm, uint32_t context, int source, int tag, void *buf,
		 size_t capacity)
{
	request->kind = ADI_RECEIVE;
	request->comm = comm;
	request->context = context;
	request->source = source;
	request->tag = tag;
	request->buf = buf;
	request->capacity = capacity;
	struct adi_unexpected *message = match_unexpected(request);
	if (message) {
		receive_unexpected(request, message);
		return;
	}
	int error = context < ADI_CONTEXT_SELF ? nobody_left(source) : 0;
	/* Without a connection this process would not notice the death of the sender. */
	if (!error && source != MPI_ANY_SOURCE && adi.peer[source].vc)
		error = ch3_vc_open(adi.peer[source].vc);
	if (error) {
		receive_complete(request, error);
		return;
	}
	request->next = NULL;
	*posted_end = request;
	posted_end = &request->next;
}

bool adi_receive_cancel(struct adi_request *request)
{
	for (struct adi_request **link = &posted; *link; link = &(*link)->next) {
		if (*link != request)
			continue;
		*link = request->next;
		if (!request->next)
			posted_end = link;
		return true;
	}
	return false;
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	(void)context;
	struct adi_peer *peer = ch3_vc_user(vc);
	peer->error = error;
	struct adi_request **link = &posted;
	while (*link) {
		struct adi_request *request = *link;
		int gone = request->context < ADI_CONTEXT_SELF ? nobody_left(request->source) : 0;
		if (gone) {
			*link = request->next;
			receive_complete(request, gone);
		} else {
			link = &request->next;
		}
	}
	posted_end = link;
}

int adi_match_start(void)
{
	ch3_on_failure(adi.engine, on_failure, NULL);
	return ch3_register(adi.engine, ADI_PACKET_MESSAGE, on_message, NULL);
}

void adi_match_end(void)
{
	while (unexpected) {
		struct adi_unexpected *message = unexpected;
		unexpected = message->next;
		free(message);
	}
	unexpected_end = &unexpected;
	posted = NULL;
	posted_end = &posted;
}
