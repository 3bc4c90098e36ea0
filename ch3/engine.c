/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and closes an engine; reads the settings of ch3. */
#include "ch3/internal.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A rendezvous costs one more round trip than an eager message. An eager message costs at most one more copy, and only
 * if the receiver has no buffer for it yet. At 64 KB the copy takes about as long as the round trip over the slowest
 * transport, TCP. */
HR_SETTING(eager_max, "HEADRACE_EAGER_MAX", "64k", 0, 1u << 30, "maximum payload sent eagerly, bytes");

HR_SETTING(rendezvous, "HEADRACE_RENDEZVOUS", "read", 0, 0,
	   "rendezvous transfer of long payloads: read (through the pipe) or write (RDMA write into the receiver's memory)");

/* Maximum time that closing waits for queued messages, if the channel's attributes have no timeout_ms. */
#define CLOSE_MS 10000

static int read_rendezvous(bool *writes)
{
	const char *text = hr_setting_text(&rendezvous);
	*writes = !strcmp(text, "write");
	if (*writes || !strcmp(text, "read"))
		return 0;
	hr_log(HR_LOG_ERROR, "HEADRACE_RENDEZVOUS=%s: invalid value; valid values: read, write", text);
	return -EINVAL;
}

int ch3_open(const hr_channel_attr_t *attr, ch3_t **engine, hr_card_t *card)
{
	ch3_t *opened = calloc(1, sizeof *opened);
	if (!opened)
		return -ENOMEM;
	TAILQ_INIT(&opened->vcs);
	TAILQ_INIT(&opened->active);
	int error = hr_setting_u64(&eager_max, &opened->eager_max);
	if (!error)
		error = read_rendezvous(&opened->writes);
	if (error)
		goto free_engine;
	opened->sleeps = attr && attr->flags & HR_CHANNEL_SLEEPS;
	opened->close_ms = attr && attr->timeout_ms ? attr->timeout_ms : CLOSE_MS;
	error = hr_channel_init(attr, &opened->channel, card);
	if (error)
		goto free_engine;
	*engine = opened;
	return 0;

free_engine:
	free(opened);
	return error;
}

hr_channel_t *ch3_channel(ch3_t *engine)
{
	return engine->channel;
}

uint64_t ch3_eager_max(const ch3_t *engine)
{
	return engine->eager_max;
}

int ch3_register(ch3_t *engine, unsigned type, ch3_handler_fn handler, void *context)
{
	if (type < CH3_TYPE_FIRST || type >= CH3_TYPES || !handler)
		return -EINVAL;
	if (!TAILQ_EMPTY(&engine->vcs))
		return -EBUSY;
	engine->handler[type].fn = handler;
	engine->handler[type].context = context;
	return 0;
}

int ch3_register_short(ch3_t *engine, unsigned type, ch3_short_fn function)
{
	if (type < CH3_TYPE_FIRST || type >= CH3_TYPES || !engine->handler[type].fn || !function)
		return -EINVAL;
	if (!TAILQ_EMPTY(&engine->vcs))
		return -EBUSY;
	engine->handler[type].short_fn = function;
	return 0;
}

int ch3_register_ahead(ch3_t *engine, unsigned type, ch3_ahead_fn may)
{
	if (type < CH3_TYPE_FIRST || type >= CH3_TYPES || !engine->handler[type].fn)
		return -EINVAL;
	if (!TAILQ_EMPTY(&engine->vcs))
		return -EBUSY;
	engine->handler[type].ahead = true;
	engine->handler[type].may_ahead = may;
	return 0;
}

void ch3_on_failure(ch3_t *engine, ch3_failure_fn on_failure, void *context)
{
	engine->on_failure = on_failure;
	engine->failure_context = context;
}
