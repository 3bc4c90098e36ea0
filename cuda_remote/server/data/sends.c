/* SPDX-License-Identifier: BSD-3-Clause */
/* The chunks that the data connection is sending. Several are under way, so that the client always has one to receive. */
#include "cuda_remote/server/data/data.h"

/* Chunks at a time: those of a whole lane. */
#define SENDS RC_WINDOW

/* Of the thread of the data connection. */
static struct {
	ch3_request_t *request;
	struct server_slot *slot; /* or NULL */
} sends[SENDS];
static uint64_t begun, ended; /* chunks */

void server_sends_begin(struct server_thread *thread, uint64_t copy, uint64_t offset, const uint8_t *memory, uint64_t len,
			struct server_slot *slot)
{
	struct rc_wire_chunk chunk = { copy, offset };
	if (begun - ended == SENDS)
		server_sends_end_one(thread);
	sends[begun % SENDS].slot = slot;
	server_thread_start(thread, RC_PACKET_CHUNK, &chunk, sizeof chunk, memory, len, &sends[begun % SENDS].request);
	begun++;
}

bool server_sends_end_one(struct server_thread *thread)
{
	if (ended == begun)
		return false;
	server_thread_finish(thread, &sends[ended % SENDS].request);
	server_slot_put(sends[ended % SENDS].slot);
	ended++;
	return true;
}

uint64_t server_sends_begun(void)
{
	return begun;
}

void server_sends_wait(struct server_thread *thread, uint64_t n)
{
	while (ended < n)
		server_sends_end_one(thread);
}
