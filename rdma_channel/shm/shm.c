/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shm transport, between two processes of one host: for each direction a ring (ring.h) in shared memory (segment.h)
 * and single copy (single.h) for long messages. The receiver creates the ring and passes its descriptor over the Unix
 * stream. Afterwards the stream carries wake-ups and shows whether the peer has ended, which put and get check only now
 * and then.
 */
#include "config.h"

#include "rdma_channel/shm/conn.h"

#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdlib.h>

/* Default minimum size for single copy; twice that while traffic is one-way. */
HR_SETTING(zero_copy_setting, "HEADRACE_SHM_ZERO_COPY", "64k", 0, 1u << 30,
	   "shm: minimum size for single copy, bytes (at least 16k); 0: no single copy");

/* If both processors share a cache, two copies through it are quicker than a system call up to this size. */
HR_SETTING(near_setting, "HEADRACE_SHM_NEAR", "16M", 0, 1u << 30,
	   "shm: minimum size for single copy if the two processors share a cache; 0: HEADRACE_SHM_ZERO_COPY");

/* More than one, so that the receiver finds the next piece when it has taken one. Not many more, as the sender's caller cannot
 * use the memory of offered pieces. */
HR_SETTING(offers_setting, "HEADRACE_SHM_OFFERS", "8", 1, SHM_OFFERS_MAX,
	   "shm: pieces that are offered for single copy before the receiver has taken the first");

/* If the processors are not near, the receiver reads what was written with non-temporal stores several times faster, unless the
 * record uses lines again that both processors had a short time ago. */
HR_SETTING(stream_setting, "HEADRACE_SHM_STREAM", "512", 0, 1u << 30,
	   "shm: minimum size of records written with non-temporal stores unless the processors are near; 0: none");

static int shm_open_channel(const struct hr_channel_env *env, void **out, uint8_t *section, size_t *section_len)
{
	(void)section;
	struct shm_context *context = malloc(sizeof *context);
	if (!context)
		return -ENOMEM;
	context->heavy = false;
	context->rings_present = 0;
	context->long_rings = 0;
	context->long_ring = shm_long_ring_bytes();
	uint64_t zero_copy, near, stream, offers;
	int error = hr_setting_u64(&zero_copy_setting, &zero_copy);
	if (!error)
		error = hr_setting_u64(&near_setting, &near);
	if (!error)
		error = hr_setting_u64(&stream_setting, &stream);
	if (!error)
		error = hr_setting_u64(&offers_setting, &offers);
	if (!error && !env->sleeps)
		error = hr_barrier_register(&context->heavy);
	if (!error)
		error = shm_placement_read(&context->placement);
	if (error) {
		free(context);
		return error;
	}
	context->zero_copy = zero_copy == 0 ? SIZE_MAX : zero_copy < HR_ZERO_COPY_MIN ? HR_ZERO_COPY_MIN : zero_copy;
	context->near = near;
	context->offers = (uint32_t)offers;
	context->stream = stream ? stream : SIZE_MAX;
	context->self = (struct shm_identity){ NULL, 0 };
	if (zero_copy)
		shm_identity_open(&context->self);
	*section_len = 0;
	*out = context;
	return 0;
}

static void shm_close_channel(void *data)
{
	struct shm_context *context = data;
	shm_identity_close(&context->self);
	free(context);
}

static bool shm_reaches(void *context, const uint8_t *section, size_t section_len, bool same_host)
{
	(void)context;
	(void)section;
	(void)section_len;
	return same_host;
}

const struct hr_transport hr_transport_shm = {
	.name = "shm",
	.bit = HR_TRANSPORT_SHM,
	.needs_unix = true,
	.arms_in_memory = true,
	.open = shm_open_channel,
	.close = shm_close_channel,
	.reaches = shm_reaches,
	.conn_open = shm_conn_open,
	.conn_establish = shm_conn_establish,
	.conn_shutdown = shm_conn_shutdown,
	.conn_stop = shm_conn_stop,
	.conn_close = shm_conn_close,
	.put = shm_put,
	.get = shm_get,
	.reserve = shm_reserve,
	.fill = shm_fill,
	.drain = shm_drain,
	.commit = shm_commit,
	.post = shm_post,
	.peek = shm_peek,
	.consume = shm_consume,
	.take = shm_take,
	.watch = shm_watch,
	.conn_arm = shm_conn_arm,
	.conn_pending = shm_conn_pending,
	.conn_event = shm_conn_event,
	.conn_bytes = shm_conn_bytes,
};
