/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds the memory of unexpected messages. A process sends eagerly to a peer until HEADRACE_MPI_UNEXPECTED bytes of its
 * messages have not found their receives, as far as it knows; beyond that it sends by rendezvous, whose payload waits at the
 * sender. The receiver tells the sender (ADI_PACKET_CREDIT) each time another quarter of this number of bytes has found
 * receives.
 */
#include "adi/message/internal.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

HR_SETTING(unexpected, "HEADRACE_MPI_UNEXPECTED", "4M", 0, 1ull << 40,
	   "MPI: bytes of eager messages that a peer may hold without receives before messages to it wait at the sender");

/* The header of ADI_PACKET_CREDIT. */
struct credit {
	uint64_t consumed; /* receiver of messages: sum of all messages that have found receives; sender: may send as much more */
	uint64_t announces; /* 1: announce messages longer than ADI_FLOW_LONG; 0: send them eagerly */
};
static_assert(sizeof(struct credit) == 16, "wire format");

/* For adi_flow_note_long. */
#define SURPRISE 4u /* what a message without a receive adds to the score; a message with a receive takes 1 away */
#define SURPRISES_MOST (16 * SURPRISE) /* score at which the receiver asks for announcements */
#define FOUND_LEAST 1024u /* announced messages with receives, in sequence, after which it asks for eager messages again */

struct adi_flow *adi_flow;
uint64_t adi_flow_limit;
uint64_t adi_eager_max;
unsigned adi_flow_announcing;

void adi_flow_report(int world)
{
	struct adi_flow *flow = &adi_flow[world];
	struct credit credit = { flow->consumed, flow->told };
	flow->reported = flow->consumed;
	/* If this fails, the connection fails. */
	ch3_send(adi_job.peer[world].vc, ADI_PACKET_CREDIT, &credit, sizeof credit, NULL, 0, CH3_SEND_COPY, NULL);
}

/*
 * An eager message without a receive is copied twice, and the memory for it is often new from the system. If both sides of a pair
 * send windows of messages, the faster side begins the next window before the other has posted its receives, and most messages
 * come before their receives. So if many long messages have come before their receives, the receiver asks the sender to announce
 * such messages: to send them by rendezvous. If a number of announced messages in sequence have found their receives, the receiver
 * asks the sender to send them eagerly again.
 */
void adi_flow_note_long(int world, bool found, bool rendezvous)
{
	struct adi_flow *flow = &adi_flow[world];
	if (flow->told != rendezvous)
		return; /* sent before the peer knew, or announced for another reason */
	if (rendezvous)
		flow->score = found ? flow->score + 1 : 0;
	else if (!found)
		flow->score += SURPRISE;
	else
		flow->score -= flow->score > 0;
	if (flow->score < (rendezvous ? FOUND_LEAST : SURPRISES_MOST))
		return;
	flow->score = 0;
	flow->told = !flow->told;
	adi_flow_report(world);
}

static int on_credit(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct adi_flow *flow = &adi_flow[peer->rank];
	struct credit credit;
	if (incoming->header_len == sizeof credit && incoming->payload_len == 0)
		memcpy(&credit, incoming->header, sizeof credit);
	if (incoming->header_len != sizeof credit || incoming->payload_len || credit.consumed > flow->sent ||
	    credit.consumed + adi_flow_limit < flow->credit || credit.announces > 1) {
		hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent an invalid credit", peer->rank);
		return -EPROTO;
	}
	flow->credit = credit.consumed + adi_flow_limit;
	if (!adi_hold[peer->rank].first)
		adi_flow_thaw(peer->rank);
	adi_flow_announcing += (unsigned)credit.announces - flow->announces;
	flow->announces = credit.announces;
	return 0;
}

int adi_flow_start(void)
{
	int error = hr_setting_u64(&unexpected, &adi_flow_limit);
	if (error)
		return error;
	adi_eager_max = ch3_eager_max(adi_job.engine);
	adi_flow = calloc((size_t)adi_job.size, sizeof *adi_flow);
	if (!adi_flow)
		return -ENOMEM;
	for (int i = 0; i < adi_job.size; i++)
		adi_flow[i].allowed = adi_flow[i].credit = adi_flow_limit;
	return ch3_register(adi_job.engine, ADI_PACKET_CREDIT, on_credit, NULL);
}

void adi_flow_end(void)
{
	free(adi_flow);
	adi_flow = NULL;
	adi_flow_announcing = 0;
}
