/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access to the memory of peers without their help (rdma_channel/remote_access.h). The accesses of a connection complete in
 * the order in which they were started, so progress looks at the oldest only. The transport queues what its adapter
 * cannot take.
 */
#include "ch3/internal.h"

#include <errno.h>
#include <stdlib.h>

struct ch3_access {
	struct ch3_access *next;
	hr_remote_access_t *started;
	size_t len;
	ch3_done_fn done;
	void *context;
};

struct ch3_shared {
	hr_exposed_t *exposed;
};

_Static_assert(sizeof(struct ch3_key) == sizeof(struct hr_token), "a key is the transport's token");

bool ch3_access_can(const ch3_vc_t *vc)
{
	return vc->conn && !vc->error && !vc->send_error && hr_remote_can(vc->conn);
}

int ch3_share(ch3_vc_t *vc, void *address, size_t len, ch3_shared_t **shared, struct ch3_key *key)
{
	if (!ch3_access_can(vc))
		return -ENOTSUP;
	ch3_shared_t *made = malloc(sizeof *made);
	if (!made)
		return -ENOMEM;
	struct hr_token token;
	int error = hr_remote_share(vc->conn, address, len, &made->exposed, &token);
	if (error) {
		free(made);
		return error;
	}
	memcpy(key, &token, sizeof token);
	*shared = made;
	return 0;
}

void ch3_unshare(ch3_shared_t *shared)
{
	hr_remote_hide(shared->exposed);
	free(shared);
}

static ch3_access_t *access_new(ch3_t *engine)
{
	ch3_access_t *access = engine->free_accesses;
	if (!access)
		return malloc(sizeof *access);
	engine->free_accesses = access->next;
	return access;
}

static void access_free(ch3_t *engine, ch3_access_t *access)
{
	access->next = engine->free_accesses;
	engine->free_accesses = access;
}

/* error: of the start of the access. */
static int add(ch3_vc_t *vc, ch3_access_t *access, int error)
{
	if (error) {
		access_free(vc->engine, access);
		return error;
	}
	access->next = NULL;
	*vc->accesses_end = access;
	vc->accesses_end = &access->next;
	ch3_vc_activate(vc);
	return 0;
}

int ch3_write(ch3_vc_t *vc, const struct ch3_key *key, uint64_t offset, const void *from, size_t len, ch3_done_fn done,
	      void *context)
{
	struct hr_token token;
	ch3_access_t *access = ch3_access_can(vc) ? access_new(vc->engine) : NULL;
	if (!access)
		return vc->error ? vc->error : -ENOTSUP;
	memcpy(&token, key, sizeof token);
	*access = (ch3_access_t){ .len = len, .done = done, .context = context };
	return add(vc, access, hr_remote_write(vc->conn, &token, offset, from, len, &access->started));
}

int ch3_read(ch3_vc_t *vc, const struct ch3_key *key, uint64_t offset, void *to, size_t len, ch3_done_fn done, void *context)
{
	struct hr_token token;
	ch3_access_t *access = ch3_access_can(vc) ? access_new(vc->engine) : NULL;
	if (!access)
		return vc->error ? vc->error : -ENOTSUP;
	memcpy(&token, key, sizeof token);
	*access = (ch3_access_t){ .len = len, .done = done, .context = context };
	return add(vc, access, hr_remote_read(vc->conn, &token, offset, to, len, &access->started));
}

/* Removes the oldest access and calls its callback. */
static void complete(ch3_vc_t *vc, int error)
{
	ch3_access_t *access = vc->accesses, was = *access;
	vc->accesses = access->next;
	if (!vc->accesses)
		vc->accesses_end = &vc->accesses;
	hr_remote_end(access->started);
	access_free(vc->engine, access);
	vc->engine->ran++;
	was.done(was.context, error, error ? 0 : was.len);
}

void ch3_access_progress(ch3_vc_t *vc)
{
	while (vc->accesses && !vc->send_error) {
		int done = hr_remote_test(vc->conn, vc->accesses->started);
		if (done == 0)
			return;
		if (done < 0)
			ch3_send_failed(vc, done);
		else
			complete(vc, 0);
	}
}

void ch3_access_cancel(ch3_vc_t *vc, int error)
{
	while (vc->accesses)
		complete(vc, error);
}

void ch3_accesses_destroy(ch3_t *engine)
{
	while (engine->free_accesses) {
		ch3_access_t *access = engine->free_accesses;
		engine->free_accesses = access->next;
		free(access);
	}
}
