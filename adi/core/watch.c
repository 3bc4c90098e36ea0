/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Only a connection reports the death of a peer. A wait for a message from any source opens none at first, because most such
 * waits are short, and a connection to each rank costs memory. If it lasts, this rank connects to the other ranks, some at a time.
 */
#include "adi/core/job.h"

#include "rdma_channel/base/log.h"

#include <string.h>
#include <time.h>

#define PERIOD_MS 100
#define PEERS_PER_PERIOD 16

int adi_any_waits;

static int64_t since; /* the time at which the present wait, or its last period, began */
static int watched;   /* peers from the next rank on that have been looked at */

int64_t adi_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int adi_watch_period(void)
{
	return adi_any_waits > 0 && watched < adi_job.size - 1 ? PERIOD_MS : -1;
}

void adi_watch(bool first)
{
	int64_t now = adi_now_ms();
	if (first)
		since = now;
	if (adi_watch_period() < 0 || now - since < PERIOD_MS)
		return;
	since = now;
	for (int opened = 0; opened < PEERS_PER_PERIOD && watched < adi_job.size - 1;) {
		const struct adi_peer *peer = &adi_job.peer[(adi_job.rank + ++watched) % adi_job.size];
		if (peer->error || ch3_vc_conn(peer->vc))
			continue;
		int error = ch3_vc_open(peer->vc);
		if (error)
			hr_log(HR_LOG_INFO, "adi: the death of rank %d would not be noticed: %s", peer->rank, strerror(-error));
		opened++;
	}
}

void adi_watch_end(void)
{
	watched = 0;
	adi_any_waits = 0;
}
