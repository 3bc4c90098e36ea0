/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching: MPI 5.0, section 3.5. Posted receives without a message are in a table by envelope, in order of posting. No posted
 * receive matches an unexpected message. */
#include "adi/message/internal.h"
#include "adi/message/statistics.h"

#include "rdma_channel/base/copy.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <string.h>

#define SHORT_COPY 512u /* bytes that on_short copies in line */

static struct adi_table posted;
/* How many posted receives have wildcards: of source (1), of tag (2), of both (3); and the sum. */
static unsigned wild[4], wilds;
static uint64_t posts;
static int deaths; /* connections that have failed */

static int wildcards(const struct adi_key *key)
{
	return (key->source == MPI_ANY_SOURCE) + 2 * (key->tag == MPI_ANY_TAG);
}

static __attribute__((noinline)) void wild_add(int kind, int change)
{
	wild[kind] += (unsigned)change;
	wilds += (unsigned)change;
	adi_any_waits += kind & 1 ? change : 0;
}

static inline void wild_count(const struct adi_key *key, int change)
{
	int kind = wildcards(key);
	if (kind)
		wild_add(kind, change);
}

static inline struct adi_request *request_of(struct adi_queued *node)
{
	return (struct adi_request *)((char *)node - offsetof(struct adi_request, node));
}

/* Long posted receives from any source. */
static unsigned long_of_any;

static __attribute__((noinline)) void long_add(int source, int change)
{
	unsigned *receives = source == MPI_ANY_SOURCE ? &long_of_any : &adi_flow[source].receives;
	*receives += (unsigned)change;
}

bool adi_receives_wait(int world)
{
	return long_of_any > 0 || adi_flow[world].receives > 0;
}

/* Counts a posted receive, or one that is posted no longer. */
static inline void count(const struct adi_request *request, int change)
{
	wild_count(&request->node.key, change);
	if (request->capacity > ADI_FLOW_LONG)
		long_add(request->node.key.source, change);
}

/* Of the first receives of all queues that match the message, returns the one that was posted first. found: that without
 * wildcards. */
static __attribute__((noinline)) struct adi_queued **find_wild(const struct adi_key *key, struct adi_queued **found)
{
	for (int kind = 1; kind < 4; kind++) {
		if (!wild[kind])
			continue;
		struct adi_key other = *key;
		if (kind & 1)
			other.source = MPI_ANY_SOURCE;
		if (kind & 2)
			other.tag = MPI_ANY_TAG;
		struct adi_queued **link = adi_table_find(&posted, &other, adi_key_hash(&other));
		if (*link && (!*found || (*link)->order < (*found)->order))
			found = link;
	}
	return found;
}

static inline struct adi_request *match_posted(const struct adi_key *key)
{
	struct adi_queued **link = adi_table_find(&posted, key, adi_key_hash(key));
	if (wilds && !key->number)
		link = find_wild(key, link);
	struct adi_queued *node = *link;
	if (!node)
		return NULL;
	adi_table_pop(&posted, link);
	struct adi_request *request = request_of(node);
	count(request, -1);
	request->posted = false;
	return request;
}

struct adi_request *adi_match_posted(const struct adi_key *key)
{
	return match_posted(key);
}

static void posted_remove(struct adi_request *request)
{
	adi_table_remove(&posted, &request->node);
	count(request, -1);
	request->posted = false;
}

/* ---- incoming messages ---- */

static int arrive(const struct adi_key *key, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	size_t bytes = (size_t)incoming->payload_len;
	struct adi_request *request = adi_match_posted(key);
	adi_flow_note(key->source, bytes, request != NULL, incoming->rndv != NULL);
	if (incoming->rndv)
		adi_hold_arrived(key->source);
	if (request) {
		adi_receive_claim(request, key, bytes);
		if (incoming->rndv) {
			adi_hold_matched(key->source);
			sink->defer = true;
			adi_deliver_rndv(request, incoming->rndv);
			return 0;
		}
		adi_flow_consumed(key->source, bytes);
		int n = adi_receive_pieces(request, sink->iov, (int)(sizeof sink->iov / sizeof *sink->iov));
		if (n == ADI_PACK) {
			sink->unpack = adi_receive_unpack;
			sink->room = request->capacity;
		} else if (n < 0) {
			request->class = adi_class(n);
		}
		sink->n = n < 0 ? 0 : n;
		sink->done = adi_on_received;
		sink->context = request;
		return 0;
	}
	struct adi_unexpected *message = adi_unexpected_append(key, bytes, incoming->rndv ? 0 : bytes);
	if (!message)
		return -ENOMEM;
	message->rndv = incoming->rndv;
	if (incoming->rndv) {
		sink->defer = true;
		return 0;
	}
	sink->iov[0] = (struct iovec){ message->payload, bytes };
	sink->n = bytes > 0;
	sink->done = adi_on_unexpected;
	sink->context = message;
	return 0;
}

/* Receives a message that lies complete in the memory of the pipe. The results are those of ch3_short_fn. */
static int on_short(void *context, ch3_vc_t *vc, const void *header, size_t header_len, const void *payload, size_t bytes)
{
	(void)context;
	const struct adi_peer *peer = ch3_vc_user(vc);
	struct adi_envelope envelope;
	if (header_len != sizeof envelope)
		return 0;
	memcpy(&envelope, header, sizeof envelope);
	if (envelope.tag < 0)
		return 0;
	struct adi_key key = { envelope.context, peer->rank, envelope.tag, 0 };
	struct adi_request *request = match_posted(&key);
	adi_flow_note(key.source, bytes, request != NULL, false);
	if (request) {
		adi_receive_claim(request, &key, bytes);
		adi_flow_consumed(key.source, bytes);
		if (!ADI_LIKELY(request->flat && bytes <= request->capacity && !request->freed)) {
			adi_receive_bytes(request, payload);
			return 1;
		}
		if (ADI_LIKELY(bytes <= SHORT_COPY))
			hr_copy(request->data, payload, bytes);
		else
			ch3_copy_short(vc, request->data, payload, bytes);
		request->complete = true;
		return 1;
	}
	struct adi_unexpected *message = adi_unexpected_append(&key, bytes, bytes);
	if (!message)
		return -ENOMEM;
	memcpy(message->payload, payload, bytes);
	message->arrived = true;
	return 1;
}

static int bad_envelope(const struct adi_peer *peer)
{
	hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent a message with an invalid envelope", peer->rank);
	return -EPROTO;
}

static int on_message(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct adi_envelope envelope;
	if (incoming->header_len != sizeof envelope)
		return bad_envelope(peer);
	memcpy(&envelope, incoming->header, sizeof envelope);
	if (envelope.tag < 0)
		return bad_envelope(peer);
	struct adi_key key = { envelope.context, peer->rank, envelope.tag, 0 };
	return arrive(&key, incoming, sink);
}

static int on_partitioned(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct adi_partitioned_envelope header;
	if (incoming->header_len != sizeof header)
		return bad_envelope(peer);
	memcpy(&header, incoming->header, sizeof header);
	if (header.envelope.tag < 0 || header.number == 0)
		return bad_envelope(peer);
	struct adi_key key = { header.envelope.context, peer->rank, header.envelope.tag, header.number };
	return arrive(&key, incoming, sink);
}

/* ---- receives ---- */

/* A receive from any source fails if a member has died, because that member may have been the expected sender, or if all
 * other members have closed. A member without a connection counts as alive. */
static int members_lost(const struct adi_comm *comm)
{
	bool somebody = false;
	for (int i = 0; i < comm->remote->size; i++) {
		const struct adi_peer *peer = &adi_job.peer[adi_comm_world(comm, i)];
		if (peer->error && peer->error != -ESHUTDOWN)
			return peer->error;
		somebody |= !peer->error && (peer->vc || comm->remote->size == 1);
	}
	return somebody ? 0 : -ESHUTDOWN;
}

int adi_source_lost(const struct adi_comm *comm, int source)
{
	if (source == MPI_ANY_SOURCE)
		return deaths ? members_lost(comm) : 0;
	struct adi_peer *peer = &adi_job.peer[source];
	if (!peer->vc)
		return 0;
	if (peer->error || peer->opened)
		return peer->error;
	int error = ch3_vc_open(peer->vc);
	peer->opened = !error;
	return error;
}

/* Whether this is one process, to which the connection has been opened and has not failed. */
static inline bool source_lives(int source)
{
	return source >= 0 && adi_job.peer[source].opened && !adi_job.peer[source].error;
}

void adi_receive_post(struct adi_request *request)
{
	struct adi_key *key = &request->node.key;
	struct adi_unexpected *message = adi_unexpected_find(key);
	if (message) {
		adi_unexpected_remove(message);
		adi_deliver_unexpected(request, message);
		return;
	}
	int error = source_lives(key->source) ? 0 : adi_source_lost(request->comm, key->source);
	if (error) {
		adi_receive_complete(request, error);
		return;
	}
	request->node.order = ++posts;
	request->posted = true;
	count(request, 1);
	adi_table_append(&posted, &request->node, adi_key_hash(key));
	if (adi_holders && adi_hold_may(key->context))
		adi_hold_wanted(key->source);
}

bool adi_receive_waits(int world)
{
	for (uint32_t i = 0; i <= posted.mask; i++)
		for (struct adi_queued *queue = posted.bucket[i]; queue; queue = queue->chain)
			if (adi_hold_may(queue->key.context) &&
			    (queue->key.source == world || queue->key.source == MPI_ANY_SOURCE))
				return true;
	return false;
}

bool adi_receive_cancel(struct adi_request *request)
{
	if (!request->posted)
		return false;
	posted_remove(request);
	request->cancelled = true;
	request->bytes = 0;
	adi_receive_complete(request, 0);
	return true;
}

uint64_t adi_messages_posted(void)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i <= posted.mask; i++)
		for (struct adi_queued *queue = posted.bucket[i]; queue; queue = queue->chain)
			for (struct adi_queued *node = queue; node; node = node->next)
				n++;
	return n;
}

/* ---- deaths ---- */

/* The error with which a posted receive fails because a peer has died, or 0. */
static int lost_with(const struct adi_request *request, const struct adi_peer *peer)
{
	int source = request->node.key.source;
	if (source == MPI_ANY_SOURCE)
		return members_lost(request->comm);
	return source == peer->rank ? peer->error : 0;
}

static void on_death(struct adi_peer *peer)
{
	struct adi_request *lost = NULL;
	deaths++;
	adi_cancel_lost(peer->rank);
	adi_hold_lost(peer);
	for (uint32_t i = 0; i <= posted.mask; i++) {
		for (struct adi_queued *queue = posted.bucket[i]; queue; queue = queue->chain) {
			for (struct adi_queued *node = queue; node; node = node->next) {
				struct adi_request *request = request_of(node);
				request->class = adi_class(lost_with(request, peer));
				if (!request->class)
					continue;
				request->next = lost;
				lost = request;
			}
		}
	}
	while (lost) {
		struct adi_request *request = lost;
		lost = request->next;
		posted_remove(request);
		adi_receive_complete(request, 0);
	}
}

int adi_messages_start(void)
{
	adi_table_init(&posted);
	adi_unexpected_start();
	adi_on_death(on_death);
	int error = adi_flow_start();
	if (!error)
		error = adi_hold_start();
	if (!error)
		error = ch3_register(adi_job.engine, ADI_PACKET_MESSAGE, on_message, NULL);
	if (!error)
		error = ch3_register_short(adi_job.engine, ADI_PACKET_MESSAGE, on_short);
	if (!error)
		error = ch3_register(adi_job.engine, ADI_PACKET_PARTITIONED, on_partitioned, NULL);
	if (!error)
		error = ch3_register_ahead(adi_job.engine, ADI_PACKET_MESSAGE, NULL);
	if (!error)
		error = ch3_register_ahead(adi_job.engine, ADI_PACKET_PARTITIONED, NULL);
	if (!error)
		error = adi_cancel_start();
	return error;
}

void adi_messages_end(void)
{
	adi_buffered_end();
	adi_partitioned_end();
	adi_unexpected_end();
	adi_table_free(&posted);
	memset(wild, 0, sizeof wild);
	wilds = 0;
	deaths = 0;
	adi_flow_end();
	adi_hold_end();
	adi_requests_end();
}
