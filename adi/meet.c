/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Finalize: waits for all ranks with a fence of the process manager. A barrier of messages would open connections
 * between ranks that never exchanged a message.
 *
 * If a rank dies, a process manager may fail to notice it, and the fence never ends. Open MPI's does so now and then if
 * the rank died before the first rank entered the fence. So a rank that has waited WATCH_AFTER_MS opens a connection to
 * the next rank, if there is none. That connection fails if the next rank is dead. A rank that leaves MPI_Finalize
 * because of a death sends ADI_PACKET_BROKEN on all its connections, and so the news reaches all remaining ranks. A rank
 * that still computes is alive, so the connection to it does not fail, and the others wait.
 */
#include "adi/adi.h"

#include <errno.h>
#include <time.h>

#define ASK_MS_MAX 32      /* maximum time between two tests of the fence */
#define WATCH_AFTER_MS 5000
/* After a connection has failed, the time that the fence still has to end: the peer may have passed it and closed. */
#define CONFIRM_MS 1000

static int broken; /* -ECONNRESET after an ADI_PACKET_BROKEN, else 0 */

static int on_broken(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)incoming;
	(void)sink;
	broken = -ECONNRESET;
	return 0;
}

int adi_meet_prepare(void)
{
	return ch3_register(adi.engine, ADI_PACKET_BROKEN, on_broken, NULL);
}

/* Returns the error of a peer that is known to have died, or 0. */
static int somebody_died(void)
{
	for (int i = 0; i < adi.world.size; i++)
		if (adi.peer[i].error && adi.peer[i].error != -ESHUTDOWN)
			return adi.peer[i].error;
	return broken;
}

static int watch_next(void)
{
	ch3_vc_t *vc = adi.peer[(adi.world.rank + 1) % adi.world.size].vc;
	return vc ? ch3_vc_open(vc) : 0;
}

static void tell_others(void)
{
	for (int i = 0; i < adi.world.size; i++)
		if (adi.peer[i].vc && ch3_vc_state(adi.peer[i].vc) == 1)
			ch3_send(adi.peer[i].vc, ADI_PACKET_BROKEN, NULL, 0, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY,
				 NULL);
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int adi_meet(void)
{
	int64_t watch_at = now_ms() + WATCH_AFTER_MS, give_up_at = INT64_MAX;
	int state = adi_launch_meet_start(), error = 0;
	for (int ms = 1; !state && now_ms() < give_up_at; ms = ms < ASK_MS_MAX ? 2 * ms : ms) {
		ch3_progress_wait(adi.engine, ms);
		state = adi_launch_meet_test();
		if (!error)
			error = somebody_died();
		if (!error && !state && now_ms() >= watch_at) {
			error = watch_next();
			watch_at = INT64_MAX;
		}
		if (error && give_up_at == INT64_MAX)
			give_up_at = now_ms() + CONFIRM_MS;
	}
	if (state > 0)
		return MPI_SUCCESS;
	tell_others();
	return adi_class(state ? state : error);
}
