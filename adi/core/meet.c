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
#include "adi/core/error.h"
#include "adi/core/job.h"

#include <errno.h>
#include <time.h>

#define ASK_MS_MAX 32      /* maximum time between two tests of the fence */
#define WATCH_AFTER_MS 5000
#define SETTLE_MS 5000         /* maximum wait for connections that are not up */
/* After a connection has failed, the time that the fence still has to end: the peer may have passed it and closed. */
#define CONFIRM_MS 1000
#define FIND_MS 200     /* maximum wait of a rank that was told of a death until it knows which rank has died */
/* How long a rank waits for lower ranks to report a death: for the first of them, for each further one, and at most. */
#define TELL_FIRST_MS 300
#define TELL_NEXT_MS 100
#define TELL_MS_MAX 700

static int broken;    /* -ECONNRESET after an ADI_PACKET_BROKEN, else 0 */
static bool reported; /* another rank has told the user about the death */

static int on_broken(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	broken = -ECONNRESET;
	reported |= incoming->header_len > 0;
	return 0;
}

int adi_meet_prepare(void)
{
	return ch3_register(adi_job.engine, ADI_PACKET_BROKEN, on_broken, NULL);
}

/* Returns the error of a peer that is known to have died, or 0. */
static int somebody_died(void)
{
	for (int i = 0; i < adi_job.size; i++)
		if (adi_job.peer[i].error && adi_job.peer[i].error != -ESHUTDOWN)
			return adi_job.peer[i].error;
	return broken;
}

static int watch_next(void)
{
	ch3_vc_t *vc = adi_job.peer[(adi_job.rank + 1) % adi_job.size].vc;
	return vc ? ch3_vc_open(vc) : 0;
}

/* The header's only byte says that this rank tells the user. */
static void tell_others(bool this_rank_reports)
{
	static const char yes = 1;
	for (int i = 0; i < adi_job.size; i++)
		if (adi_job.peer[i].vc && ch3_vc_state(adi_job.peer[i].vc) == 1)
			ch3_send(adi_job.peer[i].vc, ADI_PACKET_BROKEN, &yes, this_rank_reports, NULL, 0,
				 CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Whether a connection is being set up. */
static bool setting_up(void)
{
	for (int i = 0; i < adi_job.size; i++) {
		ch3_vc_t *vc = adi_job.peer[i].vc;
		if (vc && ch3_vc_conn(vc) && ch3_vc_state(vc) == 0)
			return true;
	}
	return false;
}

/* A rank that passes the fence closes its connections. A connection that is not up at the other side then would fail there, and
 * look like a death. So the fence begins when this side's connections are up; the other side makes progress in its MPI_Finalize. */
static void settle(void)
{
	for (int64_t until = now_ms() + SETTLE_MS; setting_up() && now_ms() < until;)
		if (!adi_poll())
			ch3_progress_wait(adi_job.engine, 1);
}

int adi_meet(void)
{
	settle();
	int64_t watch_at = now_ms() + WATCH_AFTER_MS, give_up_at = INT64_MAX;
	int state = adi_launch_meet_start(), error = 0;
	for (int ms = 1; !state && now_ms() < give_up_at; ms = ms < ASK_MS_MAX ? 2 * ms : ms) {
		if (!adi_poll())
			ch3_progress_wait(adi_job.engine, adi_tasks_poll() ? 1 : ms);
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
	tell_others(false);
	return adi_class(state ? state : error);
}

static int wait_for_lower_ms(void)
{
	if (adi_job.rank == 0)
		return 0;
	if (adi_job.rank > (TELL_MS_MAX - TELL_FIRST_MS) / TELL_NEXT_MS)
		return TELL_MS_MAX;
	return TELL_FIRST_MS + (adi_job.rank - 1) * TELL_NEXT_MS;
}

bool adi_death_reported(void)
{
	if (!adi_job.engine)
		return false;
	/* Also if all lower ranks have ended: this may have been because they have reported the death and ended the job. */
	for (int64_t until = now_ms() + wait_for_lower_ms(); !reported && now_ms() < until;)
		if (ch3_progress_wait(adi_job.engine, 10) < 0)
			break;
	return reported;
}

void adi_death_report(void)
{
	if (adi_job.engine)
		tell_others(true);
}

/* First what was reported: the rank that has reported it may have ended since, which is not the cause. */
static int known_dead(void)
{
	if (adi_job.told_dead >= 0)
		return adi_job.told_dead;
	for (int i = 0; adi_job.peer && i < adi_job.size; i++)
		if (adi_job.peer[i].error)
			return i;
	return -1;
}

int adi_death_find(void)
{
	int dead = known_dead();
	for (int64_t until = now_ms() + FIND_MS; dead < 0 && adi_job.engine && now_ms() < until; dead = known_dead())
		if (ch3_progress_wait(adi_job.engine, 10) < 0)
			break;
	return dead;
}
