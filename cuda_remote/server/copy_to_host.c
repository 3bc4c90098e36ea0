/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the host. A copy that its caller waits for goes through a window of slots: the device fills the next slots
 * while the connection sends the first. (Through the staging area: copy_staged.c.) An asynchronous copy gets all its
 * slots at once, so that its place in the stream is that of the call. Its bytes are sent by the next call that waits
 * and finds the copy complete, over the connection of that call and before its reply.
 */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <stdlib.h>

#define WINDOW 4

struct part {
	struct server_slot *slot;
	uint64_t offset, len;
};

/* An asynchronous copy whose bytes the client does not have yet. */
struct job {
	struct job *next;
	uint64_t copy;
	uint64_t stream;              /* handle */
	struct server_thread *thread; /* that issued it; CU_STREAM_PER_THREAD means this thread's stream */
	unsigned held;                /* threads that wait for its first event; under the lock */
	bool sent;                    /* or given up: the last thread that holds it frees it */
	size_t n, room;
	struct part *part;
};

/* lock guards the list. shipping is held while a job's bytes are being sent: a thread that holds it and finds the list
 * empty knows that all bytes are sent. A thread that holds it waits only for the device's copies, never for a host
 * function or another call, as those may need shipping themselves. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t shipping = PTHREAD_MUTEX_INITIALIZER;
static struct job *jobs, **jobs_end = &jobs;
static uint64_t n_jobs;  /* listed or being sent; atomic */
static uint64_t shipped; /* atomic */

uint64_t server_d2h_shipped(void)
{
	return __atomic_load_n(&shipped, __ATOMIC_SEQ_CST);
}

void server_d2h_count(void)
{
	__atomic_add_fetch(&shipped, 1, __ATOMIC_SEQ_CST);
}

/* Counts the chunk before it is sent, so that no chunk can reach the client uncounted. */
static int send_part(struct server_thread *thread, uint64_t copy, const struct part *part)
{
	struct rc_wire_chunk chunk = { copy, part->offset };
	server_d2h_count();
	return server_thread_send(thread, RC_PACKET_CHUNK, &chunk, sizeof chunk, part->slot->memory, part->len);
}

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
		result = server_slot_record(part->slot, stream);
	server_stream_let_go();
	return result;
}

/* ---- synchronous ---- */

static CUresult d2h(struct server_call *call, const struct rc_wire_copy *copy, uint64_t bytes)
{
	struct part window[WINDOW] = { { NULL, 0, 0 } };
	uint64_t issued = 0, sent = 0;
	unsigned first = 0, n = 0;
	CUresult result = CUDA_SUCCESS;
	while (sent < bytes && result == CUDA_SUCCESS && !call->thread->error) {
		while (n < WINDOW && issued < bytes && result == CUDA_SUCCESS) {
			struct part *part = &window[(first + n) % WINDOW];
			result = issue(call->thread, copy, issued, part);
			if (result == CUDA_SUCCESS) {
				issued += part->len;
				n++;
			}
		}
		/* The client's thread waits for the reply, so none of its later calls can arrive before that. */
		server_order_release(call);
		if (!n)
			break;
		CUresult waited = server_slot_wait(window[first].slot);
		if (result == CUDA_SUCCESS)
			result = waited;
		/* Earlier asynchronous copies of the stream are complete now. If they were sent later, they could
		 * overwrite this copy's bytes on the host. */
		if (!sent && server_d2h_ship(call->thread))
			break;
		if (result != CUDA_SUCCESS || send_part(call->thread, copy->copy, &window[first]))
			break;
		sent += window[first].len;
		first = (first + 1) % WINDOW;
		n--;
	}
	for (unsigned i = 0; i < WINDOW; i++) {
		if (window[i].slot)
			server_slot_wait(window[i].slot);
		server_slot_put(window[i].slot);
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

/* A small copy: its bytes are in the reply. */
CUresult serve_copy_down_reply(struct server_call *call)
{
	struct part part = { NULL, 0, 0 };
	struct rc_wire_copy copy;
	uint64_t bytes;
	void *stream;
	if (!server_take_into(call, &copy, sizeof copy) || !server_box_is_sound(&copy.box, &bytes) || bytes > RC_REPLY_COPY ||
	    rc_box_chunk(&copy.box, 0) != bytes)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, copy.stream, &stream);
	if (result == CUDA_SUCCESS)
		result = issue(call->thread, &copy, 0, &part);
	server_order_release(call);
	if (part.slot) {
		CUresult waited = server_slot_wait(part.slot);
		result = result == CUDA_SUCCESS ? waited : result;
		if (result == CUDA_SUCCESS)
			result = server_give_bytes(call, part.slot->memory, bytes);
		server_slot_put(part.slot);
	}
	return result;
}

/* ---- asynchronous ---- */

static void job_free(struct job *job)
{
	for (size_t i = 0; i < job->n; i++)
		server_slot_put(job->part[i].slot);
	free(job->part);
	free(job);
}

static struct part *job_part(struct job *job)
{
	if (job->n == job->room) {
		size_t room = job->room ? 2 * job->room : 4;
		struct part *larger = realloc(job->part, room * sizeof *larger);
		if (!larger)
			return NULL;
		job->part = larger;
		job->room = room;
	}
	job->part[job->n] = (struct part){ NULL, 0, 0 };
	return &job->part[job->n++];
}

CUresult serve_copy_down_later(struct server_call *call)
{
	struct rc_wire_copy copy;
	uint64_t bytes;
	void *stream;
	if (!server_take_into(call, &copy, sizeof copy) || !server_box_is_sound(&copy.box, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, copy.stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	struct job *job = calloc(1, sizeof *job);
	if (!job)
		return CUDA_ERROR_OUT_OF_MEMORY;
	job->copy = copy.copy;
	job->stream = copy.stream;
	job->thread = call->thread;
	for (uint64_t issued = 0; issued < bytes && result == CUDA_SUCCESS;) {
		struct part *part = job_part(job);
		result = part ? issue(call->thread, &copy, issued, part) : CUDA_ERROR_OUT_OF_MEMORY;
		issued += part ? part->len : 0;
	}
	if (result != CUDA_SUCCESS) {
		for (size_t i = 0; i < job->n; i++)
			if (job->part[i].slot)
				server_slot_wait(job->part[i].slot);
		job_free(job);
		return result;
	}
	pthread_mutex_lock(&lock);
	*jobs_end = job;
	jobs_end = &job->next;
	pthread_mutex_unlock(&lock);
	__atomic_add_fetch(&n_jobs, 1, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}

/* Also true after an error: then waiting would not help. */
static bool part_is_complete(const struct part *part)
{
	return __atomic_load_n(&part->slot->event_gone, __ATOMIC_RELAXED) ||
	       driver.cuEventQuery(part->slot->event) != CUDA_ERROR_NOT_READY;
}

static bool job_is_of(const struct job *job, const struct server_thread *thread, uint64_t stream)
{
	return job->stream == stream && (stream != (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD || job->thread == thread);
}

/* The first listed job that is complete. For a thread that waits for a stream: also a job of the stream whose first
 * part is complete, as the stream does nothing else between the parts of a job. Under the lock. */
static struct job **job_ready(struct server_thread *thread, bool wait, uint64_t stream)
{
	struct job **at = &jobs;
	while (*at) {
		struct job *job = *at;
		if (part_is_complete(&job->part[job->n - 1]) ||
		    (wait && job_is_of(job, thread, stream) && part_is_complete(&job->part[0])))
			break;
		at = &job->next;
	}
	return at;
}

/* Takes the next job off the list. An earlier job, into the same memory perhaps, may become complete after job_ready
 * has passed it; it must be sent first. So the search is repeated until it finds the same job twice. */
static struct job *job_take(struct server_thread *thread, bool wait, uint64_t stream)
{
	pthread_mutex_lock(&lock);
	struct job **at = job_ready(thread, wait, stream), **before = NULL;
	while (*at && at != before) {
		before = at;
		at = job_ready(thread, wait, stream);
	}
	struct job *taken = *at;
	if (taken) {
		*at = taken->next;
		if (!taken->next)
			jobs_end = at;
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

/* The first job of a stream. It is not freed before job_let_go. */
static struct job *job_hold(struct server_thread *thread, uint64_t stream)
{
	pthread_mutex_lock(&lock);
	struct job *job = jobs;
	while (job && !job_is_of(job, thread, stream))
		job = job->next;
	if (job)
		job->held++;
	pthread_mutex_unlock(&lock);
	return job;
}

static void job_let_go(struct job *job)
{
	pthread_mutex_lock(&lock);
	bool last = !--job->held && job->sent;
	pthread_mutex_unlock(&lock);
	if (last)
		job_free(job);
}

static void job_done(struct job *job)
{
	pthread_mutex_lock(&lock);
	job->sent = true;
	bool last = !job->held;
	pthread_mutex_unlock(&lock);
	if (last)
		job_free(job);
}

static CUresult job_send(struct server_thread *thread, const struct job *job)
{
	for (size_t i = 0; i < job->n; i++) {
		CUresult result = server_slot_wait(job->part[i].slot);
		if (result != CUDA_SUCCESS)
			return result;
		if (send_part(thread, job->copy, &job->part[i]))
			return CUDA_ERROR_UNKNOWN;
	}
	return CUDA_SUCCESS;
}

static CUresult ship(struct server_thread *thread, bool wait, uint64_t stream)
{
	CUresult result = CUDA_SUCCESS;
	struct job *job;
	/* Relaxed suffices: the call order synchronises with the earlier calls, whose jobs this call must find. */
	if (!__atomic_load_n(&n_jobs, __ATOMIC_RELAXED))
		return result;
	pthread_mutex_lock(&shipping);
	while (result == CUDA_SUCCESS && !thread->error && (job = job_take(thread, wait, stream))) {
		result = job_send(thread, job);
		job_done(job);
		__atomic_sub_fetch(&n_jobs, 1, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&shipping);
	return result;
}

CUresult server_d2h_ship_stream(struct server_thread *thread, uint64_t stream)
{
	CUresult result = CUDA_SUCCESS;
	struct job *job;
	if (!__atomic_load_n(&n_jobs, __ATOMIC_RELAXED))
		return result;
	while (result == CUDA_SUCCESS && !thread->error && (job = job_hold(thread, stream))) {
		result = driver.cuEventSynchronize(job->part[0].slot->event);
		job_let_go(job);
		if (result == CUDA_SUCCESS)
			result = ship(thread, true, stream);
	}
	return result;
}

int server_d2h_ship(struct server_thread *thread)
{
	ship(thread, false, 0);
	return thread->error;
}
