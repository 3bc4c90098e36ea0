/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data connection of a session: it carries the bytes of asynchronous copies, without a call of the client's threads.
 * Threads of the driver post parcels when a stream has reached them. The thread of the connection sends the parcels in the
 * order of the posts, so they arrive in the order of streams and events. A parcel is a part of a copy to the host
 * (copy_to_host.c; push.c), or asks for the bytes of a copy to the device (fetch.c).
 */
#define _GNU_SOURCE /* ppoll */
#include "cuda_remote/server/data/data.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct server_parcel *parcels, **parcels_end = &parcels;
static bool serving, broken;
static uint64_t posted; /* messages of all parcels so far; atomic */
static int wake = -1;

int server_data_prepare(void)
{
	wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return wake < 0 ? -errno : 0;
}

static void poke(void)
{
	uint64_t one = 1;
	if (write(wake, &one, sizeof one) < 0) {
		/* Full: it is readable already. */
	}
}

void server_data_break(void)
{
	pthread_mutex_lock(&lock);
	broken = true;
	pthread_mutex_unlock(&lock);
	poke();
}

uint64_t server_data_posted(void)
{
	return __atomic_load_n(&posted, __ATOMIC_SEQ_CST);
}

/* If the list was not empty, whoever made it so wakes the thread after this, or has done so; the thread reads the wake-ups before
 * it takes parcels, and takes them until it finds the list empty under the lock. So it takes this parcel too. */
void server_data_post(struct server_parcel *parcel, uint64_t messages)
{
	pthread_mutex_lock(&lock);
	bool first = !parcels;
	parcel->next = NULL;
	*parcels_end = parcel;
	parcels_end = &parcel->next;
	__atomic_add_fetch(&posted, messages, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
	if (first)
		poke();
}

CUresult server_data_no_memory(struct server_call *call)
{
	hr_log(HR_LOG_ERROR, "no memory for an asynchronous copy; the session ends");
	if (!call->thread->error)
		call->thread->error = -ENOMEM;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

struct refusal {
	struct server_parcel parcel;
	uint64_t copy;
};

bool server_data_refuse(uint64_t copy)
{
	struct refusal *refusal = malloc(sizeof *refusal);
	if (!refusal)
		return false;
	*refusal = (struct refusal){ .parcel.kind = SERVER_PARCEL_REFUSED, .copy = copy };
	server_data_post(&refusal->parcel, 1);
	return true;
}

static void send_refusal(struct server_thread *thread, struct server_parcel *parcel)
{
	struct refusal *refusal = (struct refusal *)parcel;
	struct rc_wire_chunk chunk = { refusal->copy, 0 };
	server_thread_send(thread, RC_PACKET_CHUNK, &chunk, sizeof chunk, NULL, 0);
	free(refusal);
}

bool server_is_later(uint16_t function)
{
	return function == RC_CALL_copy_up_later || function == RC_CALL_copy_down_later || function == RC_CALL_array_up_later ||
	       function == RC_CALL_array_down_later;
}

CUresult server_later_refuse(struct server_call *call, CUresult result)
{
	struct rc_wire_copy copy;
	if (server_take_into(call, &copy, sizeof copy) && !server_data_refuse(copy.copy))
		return server_data_no_memory(call);
	return result;
}

/* The next parcel, or NULL. */
static struct server_parcel *take(void)
{
	pthread_mutex_lock(&lock);
	struct server_parcel *first = parcels;
	if (first && !(parcels = first->next))
		parcels_end = &parcels;
	pthread_mutex_unlock(&lock);
	return first;
}

static bool is_broken(void)
{
	pthread_mutex_lock(&lock);
	bool is = broken;
	pthread_mutex_unlock(&lock);
	return is;
}

static void serve_parcel(struct server_thread *thread, struct server_parcel *parcel)
{
	switch (parcel->kind) {
	case SERVER_PARCEL_CHUNKS: server_d2h_send(thread, parcel); break;
	case SERVER_PARCEL_FETCH: server_fetch_begin(thread, parcel); break;
	case SERVER_PARCEL_COPIED: server_fetch_advance(thread, parcel); break;
	case SERVER_PARCEL_PUSH: server_push_serve(thread, parcel); break;
	case SERVER_PARCEL_REFUSED: send_refusal(thread, parcel);
	}
}

/* Chunks that were begun and not waited for are sent while the thread looks for the next parcels. */
static void send_all(struct server_thread *thread)
{
	uint64_t count;
	if (read(wake, &count, sizeof count) < 0) {
		/* Nothing was posted since. */
	}
	do {
		struct server_parcel *parcel;
		while (!thread->error && (parcel = take()))
			serve_parcel(thread, parcel);
	} while (server_sends_end_one(thread));
}

int server_data_arrived(struct server_thread *thread, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct rc_wire_chunk chunk;
	if (incoming->header_len != sizeof chunk || incoming->rndv || incoming->payload_len > RC_CHUNK_MAX)
		return -EPROTO;
	memcpy(&chunk, incoming->header, sizeof chunk);
	return server_fetch_arrived(thread, &chunk, incoming->payload_len, sink);
}

/* Time between two looks at what the device writes, while a transfer waits for it. */
#define LOOK_NS 50000

/* Sleeps until something happens, or until it is time to look again. */
static int sleep_until(struct pollfd *fds, bool now, bool looks)
{
	struct timespec soon = { 0, now ? 0 : LOOK_NS };
	return ppoll(fds, 2, now || looks ? &soon : NULL, NULL) < 0 && errno != EINTR ? -errno : 0;
}

/* Serves the connection until it ends. Its client waits for the reply of this call meanwhile. The first connection, which has
 * other duties, cannot be one. */
CUresult serve_data_connection(struct server_call *call)
{
	struct server_thread *thread = call->thread;
	hr_channel_t *channel = ch3_channel(thread->engine);
	struct pollfd fds[] = { { hr_channel_fd(channel), POLLIN, 0 }, { wake, POLLIN, 0 } };
	pthread_mutex_lock(&lock);
	bool refused = serving || thread->peer.purpose != RC_DOOR_JOIN;
	serving |= !refused;
	pthread_mutex_unlock(&lock);
	if (refused)
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	thread->data = true;
	while (!thread->error && !is_broken()) {
		ch3_progress_poll(thread->engine);
		send_all(thread);
		bool looks = server_fetch_look(thread);
		looks |= server_push_look();
		int armed = thread->error ? 0 : hr_channel_arm(channel, 1);
		if (armed < 0 && !thread->error)
			thread->error = armed;
		if (!thread->error)
			thread->error = sleep_until(fds, armed, looks);
	}
	return CUDA_ERROR_UNKNOWN;
}
