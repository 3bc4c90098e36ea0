/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Cancel of sends: MPI 5.0, section 3.8.4. The sender names the message by its number among all packets of the connection
 * (ADI_PACKET_CANCEL). If no receive has matched the message, the receiver drops it. It answers in any case
 * (ADI_PACKET_CANCELLED); until then the request is not complete. A message that is held (hold.c) is taken back at once.
 */
#include "adi/message/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <string.h>

/* The header of ADI_PACKET_CANCEL and ADI_PACKET_CANCELLED. */
struct cancel {
	uint64_t number;    /* sender of the message: ch3_sent after it; receiver: compares with ch3_received at its arrival */
	uint64_t cancelled; /* receiver of the message: 1 if it has dropped the message, else 0; 0 in ADI_PACKET_CANCEL */
};
static_assert(sizeof(struct cancel) == 16, "wire format");

static struct adi_request *pending; /* requests whose cancellation has no answer yet */

uint64_t adi_number_sent(int world)
{
	const struct adi_peer *peer = &adi_job.peer[world];
	return peer->vc ? ch3_sent(peer->vc) : adi_number_self;
}

uint64_t adi_number_arrived(int world)
{
	const struct adi_peer *peer = &adi_job.peer[world];
	return peer->vc ? ch3_received(peer->vc) : adi_number_self;
}

/* ---- the receiver ---- */

/* Drops a message that no receive has matched. */
static void drop(struct adi_unexpected *message)
{
	int source = message->node.key.source;
	adi_unexpected_remove(message);
	if (message->rndv) {
		ch3_rndv_accept(message->rndv, NULL, 0, NULL, NULL);
		adi_hold_matched(source);
	} else if (source != adi_job.rank) {
		adi_flow_consumed(source, message->bytes);
	}
	struct adi_request *sender = message->sender;
	if (message->rndv || sender || message->arrived)
		adi_unexpected_free(message);
	else
		message->cancelled = true;
	if (sender) {
		sender->held = NULL;
		adi_send_complete(sender, MPI_SUCCESS);
	}
}

static int bad_header(const struct adi_peer *peer)
{
	hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent an invalid cancellation", peer->rank);
	return -EPROTO;
}

static bool read_header(const ch3_incoming_t *incoming, struct cancel *cancel)
{
	if (incoming->header_len != sizeof *cancel || incoming->payload_len)
		return false;
	memcpy(cancel, incoming->header, sizeof *cancel);
	return true;
}

static int on_cancel(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct cancel cancel;
	if (!read_header(incoming, &cancel))
		return bad_header(peer);
	struct adi_unexpected *message = adi_unexpected_numbered(peer->rank, cancel.number);
	cancel.cancelled = message != NULL;
	if (message)
		drop(message);
	/* If this fails, the connection fails. */
	ch3_send(peer->vc, ADI_PACKET_CANCELLED, &cancel, sizeof cancel, NULL, 0, CH3_SEND_COPY, NULL);
	return 0;
}

/* ---- the sender ---- */

/* Ends the cancellation of the request at *link. */
static void settle(struct adi_request **link, bool cancelled)
{
	struct adi_request *request = *link;
	*link = request->next;
	request->cancelling = false;
	request->cancelled = cancelled;
	if (!request->send)
		request->complete = true;
	if (request->freed)
		adi_request_drop(request);
}

static int on_cancelled(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct cancel cancel;
	if (!read_header(incoming, &cancel))
		return bad_header(peer);
	struct adi_request **link = &pending;
	while (*link && ((*link)->world != peer->rank || (*link)->number != cancel.number))
		link = &(*link)->next;
	if (!*link || cancel.cancelled > 1)
		return bad_header(peer);
	settle(link, cancel.cancelled);
	return 0;
}

void adi_cancel_lost(int world)
{
	for (struct adi_request **link = &pending; *link;) {
		if ((*link)->world == world)
			settle(link, false);
		else
			link = &(*link)->next;
	}
}

static void cancel_self(struct adi_request *request)
{
	struct adi_unexpected *message = adi_unexpected_numbered(adi_job.rank, request->number);
	if (!message)
		return;
	drop(message);
	request->cancelled = true;
}

void adi_send_cancel(struct adi_request *request)
{
	if (request->world == MPI_PROC_NULL || request->class || request->cancelled || request->cancelling)
		return;
	if (request->world == adi_job.rank) {
		cancel_self(request);
		return;
	}
	if (request->withheld) {
		adi_hold_remove(request);
		request->cancelled = true;
		adi_send_complete(request, MPI_SUCCESS);
		return;
	}
	struct cancel cancel = { request->number, 0 };
	if (ch3_send(adi_job.peer[request->world].vc, ADI_PACKET_CANCEL, &cancel, sizeof cancel, NULL, 0, CH3_SEND_COPY, NULL))
		return;
	request->cancelling = true;
	request->complete = false;
	request->next = pending;
	pending = request;
}

int adi_cancel_start(void)
{
	pending = NULL;
	int error = ch3_register(adi_job.engine, ADI_PACKET_CANCEL, on_cancel, NULL);
	return error ? error : ch3_register(adi_job.engine, ADI_PACKET_CANCELLED, on_cancelled, NULL);
}
