/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the host. A copy that its caller waits for goes through a window of slots: the device fills the next slots
 * while the connection sends the first. (Through the staging area: copy_staged.c.) An asynchronous copy gets all its
 * slots at once, so that its place in the stream is that of the call. Its bytes are sent over the data connection
 * (data/connection.c) as soon as the stream has passed them.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <stdlib.h>

#define WINDOW 8
/* Chunks of the window that are being sent at a time. */
#define SENDS 4

struct part {
	struct server_slot *slot;
	uint64_t offset, len;
	ch3_request_t *request; /* it is being sent; else NULL */
};

/* The window of a copy that its caller waits for: part[first..first+n-1], modulo WINDOW. The first ones are being sent. */
struct window {
	struct part part[WINDOW];
	unsigned first, sending, n;
};

CUresult server_part_d2h(const struct rc_wire_box *box, uint64_t offset, uint64_t len, uint8_t *to, CUstream stream)
{
	CUdeviceptr from;
	uint64_t width, rows;
	server_box_part(box, offset, len, &from, &width, &rows);
	if (rows == 1)
		return driver.cuMemcpyDtoHAsync_v2(to, from, width, stream);
	if (!driver.cuMemcpy2DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .srcPitch = box->pitch,
		.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to, .dstPitch = width,
		.WidthInBytes = width, .Height = rows,
	};
	return driver.cuMemcpy2DAsync_v2(&copy, stream);
}

/* Issues the copy of the chunk at offset into part's slot. Gets a slot if there is none or it is too small. Looks the
 * stream up each time: once the call has left the call order, another thread of the client may destroy the stream. */
static CUresult issue(struct server_thread *thread, const struct rc_wire_copy *copy, uint64_t offset, struct part *part)
{
	const struct rc_wire_box *box = &copy->box;
	CUstream stream;
	CUresult result = CUDA_SUCCESS;
	part->offset = offset;
	part->len = rc_box_chunk(box, offset);
	if (part->slot && part->slot->size < part->len) {
		server_slot_put(part->slot);
		part->slot = NULL;
	}
	if (!part->slot)
		result = server_slot_get(part->len, &part->slot);
	if (result == CUDA_SUCCESS)
		result = server_stream_hold(thread, copy->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_part_d2h(box, offset, part->len, part->slot->memory, stream);
	if (result == CUDA_SUCCESS)
		result = server_slot_record_rest(part->slot, stream);
	server_stream_let_go();
	return result;
}

/* ---- synchronous ---- */

static struct part *part_at(struct window *window, unsigned i)
{
	return &window->part[(window->first + i) % WINDOW];
}

/* Waits for the device, and begins to send the next part. */
static CUresult part_begin(struct server_thread *thread, uint64_t copy, struct window *window)
{
	struct part *part = part_at(window, window->sending);
	struct rc_wire_chunk chunk = { copy, part->offset };
	CUresult result = server_slot_wait(part->slot);
	if (result != CUDA_SUCCESS)
		return result;
	server_thread_start(thread, RC_PACKET_CHUNK, &chunk, sizeof chunk, part->slot->memory, part->len, &part->request);
	window->sending++;
	return CUDA_SUCCESS;
}

/* Waits until the first part is sent. Returns its bytes. */
static uint64_t part_end(struct server_thread *thread, struct window *window)
{
	struct part *part = part_at(window, 0);
	server_thread_finish(thread, &part->request);
	window->first++;
	window->sending--;
	window->n--;
	return part->len;
}

static CUresult d2h(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes)
{
	struct window window = { .n = 0 };
	uint64_t issued = 0, sent = 0;
	CUresult result = CUDA_SUCCESS;
	while (sent < bytes && result == CUDA_SUCCESS && !call->thread->error) {
		while (window.n < WINDOW && issued < bytes && result == CUDA_SUCCESS) {
			struct part *part = part_at(&window, window.n);
			result = issue(call->thread, copy, issued, part);
			if (result == CUDA_SUCCESS) {
				issued += part->len;
				window.n++;
			}
		}
		/* The client's thread waits for the reply, so none of its later calls can arrive before that. */
		server_order_release(call);
		if (result != CUDA_SUCCESS)
			break;
		if (window.sending < window.n && window.sending < SENDS)
			result = part_begin(call->thread, copy->copy, &window);
		else
			sent += part_end(call->thread, &window);
	}
	while (window.sending)
		part_end(call->thread, &window);
	for (unsigned i = 0; i < WINDOW; i++) {
		if (window.part[i].slot)
			server_slot_wait(window.part[i].slot);
		server_slot_put(window.part[i].slot);
	}
	return result;
}

CUresult serve_copy_down(struct server_call *call)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	void *stream;
	if (!server_take_into(call, &copy, sizeof copy) || !server_box_is_sound(&copy.box, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, copy.stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	return copy.staged ? server_staged_down(call, &copy, bytes) : d2h(call, &copy, bytes);
}

_Static_assert(RC_REPLY_COPY <= SERVER_OWN_SLOT, "a small copy goes through the connection's own slot");

/* A copy of one row, into the connection's slot, while nothing else is under way. It waits in the call order. */
static CUresult copy_alone(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes)
{
	struct server_slot *slot;
	CUresult result = server_slot_own(call->thread, &slot);
	if (result == CUDA_SUCCESS)
		result = driver.cuMemcpyDtoH_v2(slot->memory, copy->box.device, bytes);
	return result == CUDA_SUCCESS ? server_give_bytes(call, slot->memory, bytes) : result;
}

/* A small copy: its bytes are in the reply. It is issued in the call order, so no other thread ends its stream meanwhile. */
CUresult serve_copy_down_reply(struct server_call *call)
{
	struct server_slot *slot;
	struct rc_wire_copy copy;
	uint64_t bytes;
	void *stream;
	if (!server_take_into(call, &copy, sizeof copy) || !server_box_is_sound(&copy.box, &bytes) || bytes > RC_REPLY_COPY ||
	    rc_box_chunk(&copy.box, 0) != bytes)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, copy.stream, &stream);
	if (result == CUDA_SUCCESS && call->flags & RC_CALL_ALONE && copy.box.width == bytes && driver.cuMemcpyDtoH_v2)
		return copy_alone(call, &copy, bytes);
	if (result == CUDA_SUCCESS)
		result = server_slot_own(call->thread, &slot);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_part_d2h(&copy.box, 0, bytes, slot->memory, stream);
	CUresult recorded = result == CUDA_SUCCESS ? server_slot_record_rest(slot, stream) : CUDA_SUCCESS;
	if (recorded != CUDA_SUCCESS) {
		call->thread->own = NULL; /* nothing says when the device has written its memory, so it is not used again */
		result = recorded;
	}
	server_order_release(call);
	if (result == CUDA_SUCCESS)
		result = server_slot_wait(slot);
	return result == CUDA_SUCCESS ? server_give_bytes(call, slot->memory, bytes) : result;
}

/* ---- asynchronous ---- */

/* Parts that are sent together, once the device has filled them all. */
#define GROUP 4

/* An asynchronous copy. Its groups are posted one after another, in the order of its stream. */
struct job {
	uint64_t copy;
	bool failed;
	unsigned under_way;  /* groups, other than the last, whose callback is still to come; under the lock */
	struct group *refused; /* its callback was refused: it is posted after those under way; under the lock */
};

struct group {
	struct server_parcel parcel;
	struct job *job;
	bool last;    /* of the job */
	bool failed;  /* the part after this group's could not be issued: the job ends here */
	bool dropped; /* the device has not filled the parts */
	unsigned n;
	struct part part[GROUP];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* If a part of a copy failed, its last group says so to the client. */
static void group_post(struct group *group, bool dropped)
{
	group->dropped = dropped;
	group->job->failed |= dropped | group->failed;
	server_data_post(&group->parcel, (dropped ? 0 : group->n) + (group->last && group->job->failed));
}

/* On a thread of the driver. */
static void group_complete(CUstream stream, CUresult result, void *argument)
{
	struct group *group = argument;
	struct job *job = group->last ? NULL : group->job; /* the last group ends the job */
	(void)stream;
	group_post(group, result != CUDA_SUCCESS);
	if (!job)
		return;
	pthread_mutex_lock(&lock);
	struct group *refused = --job->under_way ? NULL : job->refused;
	pthread_mutex_unlock(&lock);
	if (refused)
		group_post(refused, true);
}

void server_d2h_send(struct server_thread *thread, struct server_parcel *parcel)
{
	struct group *group = (struct group *)parcel;
	struct rc_wire_chunk failure = { group->job->copy, 0 };
	for (unsigned i = 0; i < group->n; i++) {
		const struct part *part = &group->part[i];
		if (group->dropped)
			server_slot_put(part->slot);
		else
			server_sends_begin(thread, group->job->copy, part->offset, part->slot->memory, part->len, part->slot);
	}
	if (group->last) {
		if (group->job->failed)
			server_thread_send(thread, RC_PACKET_CHUNK, &failure, sizeof failure, NULL, 0);
		free(group->job);
	}
	free(group);
}

/* Issues the copies of the next parts, from offset *issued on. */
static CUresult group_fill(struct group *group, const struct rc_wire_box *box, uint64_t bytes, uint64_t *issued,
			   CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	while (group->n < GROUP && *issued < bytes && result == CUDA_SUCCESS) {
		struct part *part = &group->part[group->n];
		part->offset = *issued;
		part->len = rc_box_chunk(box, *issued);
		result = server_slot_get(part->len, &part->slot);
		if (result != CUDA_SUCCESS)
			return result;
		result = server_part_d2h(box, part->offset, part->len, part->slot->memory, stream);
		if (result == CUDA_SUCCESS) {
			group->n++;
			*issued += part->len;
		} else {
			server_slot_put(part->slot);
		}
	}
	return result;
}

/* The driver has refused the group's callback: the job ends here. */
static void group_refused(struct group *group, bool counted, CUstream stream)
{
	struct job *job = group->job;
	for (unsigned i = 0; i < group->n; i++)
		server_slot_leave(group->part[i].slot, stream);
	group->n = 0;
	group->last = true;
	pthread_mutex_lock(&lock);
	job->under_way -= counted;
	bool first = !job->under_way;
	if (!first)
		job->refused = group;
	pthread_mutex_unlock(&lock);
	if (first)
		group_post(group, true);
}

/* Posts the group when the stream arrives. */
static CUresult group_issue(struct group *group, CUstream stream)
{
	bool counted = !group->last;
	pthread_mutex_lock(&lock);
	group->job->under_way += counted;
	pthread_mutex_unlock(&lock);
	CUresult result = driver.cuStreamAddCallback ? driver.cuStreamAddCallback(stream, group_complete, group, 0) :
						       CUDA_ERROR_NOT_SUPPORTED;
	if (result != CUDA_SUCCESS)
		group_refused(group, counted, stream);
	return result;
}

static struct group *group_new(struct job *job)
{
	struct group *group = calloc(1, sizeof *group);
	if (group)
		group->job = job;
	return group;
}

/* Issues all groups, the first of which is made. A failure ends the copy: the call's result says so, and the last group. */
static CUresult job_issue(struct group *group, const struct rc_wire_box *box, uint64_t bytes, CUstream stream)
{
	struct job *job = group->job;
	uint64_t issued = 0;
	for (;;) {
		CUresult result = group_fill(group, box, bytes, &issued, stream);
		struct group *following = result == CUDA_SUCCESS && issued < bytes ? group_new(job) : NULL;
		if (result == CUDA_SUCCESS && issued < bytes && !following)
			result = CUDA_ERROR_OUT_OF_MEMORY;
		group->last = !following;
		group->failed = result != CUDA_SUCCESS;
		CUresult posted = group_issue(group, stream);
		if (result == CUDA_SUCCESS && posted == CUDA_SUCCESS && following) {
			group = following;
			continue;
		}
		free(following);
		return result == CUDA_SUCCESS ? posted : result;
	}
}

CUresult serve_copy_down_later(struct server_call *call)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	void *stream;
	if (!server_take_into(call, &copy, sizeof copy) || !server_box_is_sound(&copy.box, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (copy.unkept)
		return server_push_begin(call, &copy, bytes, NULL);
	struct job *job = malloc(sizeof *job);
	struct group *group = job ? group_new(job) : NULL;
	if (!group) {
		free(job);
		return server_data_no_memory(call);
	}
	*job = (struct job){ .copy = copy.copy };
	CUresult result = server_object(RC_KIND_STREAM, copy.stream, &stream);
	if (result == CUDA_SUCCESS)
		return job_issue(group, &copy.box, bytes, stream);
	group->last = true;
	group_post(group, true);
	return result;
}
