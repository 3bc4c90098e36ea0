/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: allocation from slabs, completion, release. */
#include "ch3/internal.h"

#include <stdlib.h>

#define SLAB_REQUESTS 64
#define INLINE_PIECES ((int)(sizeof(((ch3_request_t *)0)->inline_iov) / sizeof(struct iovec)) - 1)

/* Requests are allocated from slabs, which are freed with the engine. So a queued send seldom calls malloc for its
 * request. */
struct ch3_slab {
	struct ch3_slab *next;
	ch3_request_t request[SLAB_REQUESTS];
};

static bool pool_grow(ch3_t *engine)
{
	struct ch3_slab *slab = malloc(sizeof *slab);
	if (!slab)
		return false;
	slab->next = engine->slabs;
	engine->slabs = slab;
	for (int i = 0; i < SLAB_REQUESTS; i++) {
		slab->request[i].next = engine->free_requests;
		engine->free_requests = &slab->request[i];
	}
	return true;
}

ch3_request_t *ch3_request_new(ch3_t *engine, int n)
{
	struct iovec *iov = NULL;
	if (n > INLINE_PIECES) {
		iov = malloc((1 + (size_t)n) * sizeof *iov);
		if (!iov)
			return NULL;
	}
	if (!engine->free_requests && !pool_grow(engine)) {
		free(iov);
		return NULL;
	}
	ch3_request_t *request = engine->free_requests;
	engine->free_requests = request->next;
	request->next = NULL;
	request->engine = engine;
	request->stage = CH3_STAGE_QUEUED;
	request->error = 0;
	request->detached = false;
	request->sender_id = 0;
	request->payload_len = 0;
	request->iov = iov ? iov : request->inline_iov;
	request->n = 1 + n;
	request->copy = NULL;
	request->pack = NULL;
	request->to_pack = 0;
	request->put_was_short = false;
	request->cursor = (struct ch3_cursor){ request->iov, request->n };
	return request;
}

static void request_recycle(ch3_request_t *request)
{
	request->next = request->engine->free_requests;
	request->engine->free_requests = request;
}

void ch3_request_complete(ch3_request_t *request, int error)
{
	request->stage = CH3_STAGE_COMPLETE;
	request->error = error;
	if (request->iov != request->inline_iov)
		free(request->iov);
	request->iov = request->inline_iov;
	free(request->copy);
	request->copy = NULL;
	if (request->detached)
		request_recycle(request);
	else
		request->engine->ran++;
}

int ch3_request_test(const ch3_request_t *request)
{
	return request->stage == CH3_STAGE_COMPLETE;
}

int ch3_request_error(const ch3_request_t *request)
{
	return request->error;
}

void ch3_request_free(ch3_request_t *request)
{
	if (!request)
		return;
	if (request->stage == CH3_STAGE_COMPLETE)
		request_recycle(request);
	else
		request->detached = true;
}

void ch3_requests_destroy(ch3_t *engine)
{
	while (engine->slabs) {
		struct ch3_slab *slab = engine->slabs;
		engine->slabs = slab->next;
		free(slab);
	}
	engine->free_requests = NULL;
}
