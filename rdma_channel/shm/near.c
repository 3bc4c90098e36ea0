/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm transport: whether the processors of both sides are near (near.h), and what the sender does differently then. */
#include "config.h"

#include "rdma_channel/clock.h"
#include "rdma_channel/shm/conn.h"

#define TAIL_RECORDS 16u /* records after which the sender may measure nearness with the tail again */

bool shm_is_near(const struct shm_conn *conn)
{
	/* Relaxed: the flag only decides which way is quicker. */
	return __atomic_load_n(&conn->out.control->near, __ATOMIC_RELAXED);
}

/* Measures nearness for messages that are too short to be offered: how long the tail takes if the receiver has stored it since it
 * was last loaded. The first samples are taken as soon as possible. */
static void sample_tail(struct shm_conn *conn)
{
	bool first = conn->tail_samples < SHM_NEAR_SAMPLES;
	/* Reading the clock for each record takes a tenth of the time of one of 512 bytes. */
	if (!first && ++conn->records_unsampled % TAIL_RECORDS)
		return;
	if (!first && !shm_near_is_due(&conn->tail_nearness, hr_now_coarse_ns()))
		return;
	uint32_t before = conn->out.loaded;
	uint64_t begin = hr_now_ns();
	bool valid = shm_sender_refresh(&conn->out);
	uint64_t ns = hr_now_ns() - begin;
	if (!valid || conn->out.loaded == before)
		return;
	shm_near_sample(&conn->tail_nearness, ns < SHM_NEAR_TAIL_NS);
	conn->tail_samples += first;
}

bool shm_streams_record(struct shm_conn *conn, size_t length, uint32_t lines)
{
	if (length < conn->context->stream || shm_sender_alone(&conn->out, lines))
		return false;
	sample_tail(conn);
	bool past = !conn->tail_nearness.near && !shm_is_near(conn);
	if (__builtin_expect(past != conn->writes_past, 0)) {
		conn->writes_past = past;
		/* Relaxed: the receiver may see the change at any time. */
		__atomic_store_n(&conn->out.control->writes_past, past, __ATOMIC_RELAXED);
	}
	return past;
}
