/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meeting of all ranks in MPI_Finalize, by the process manager: a barrier of messages would connect ranks that have
 * nothing to say to each other.
 *
 * A process manager may lose the death of a rank, and its fence then never ends (Open MPI's does, now and then, where
 * the rank died before the first one came). So a rank that has waited for a while watches the next one: it opens a
 * connection to it, if there is none, which fails when that rank is gone. Whoever leaves because of a death says so on
 * its connections, and so it goes round to all who are left. A rank that computes before it comes keeps its address,
 * and is waited for.
 */
#include "adi/adi.h"

#include <errno.h>
#include <time.h>

#define ASK_MS_MAX 32      /* between two questions whether all have come */
#define WATCH_AFTER_MS 5000
#define CONFIRM_MS 1000    /* a rank that seems gone may be one that met all the others and left: its fence has ended */

static int broken; /* what a peer's news say */

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

/* The error of the first peer that died, as far as this process knows, or 0. */
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
