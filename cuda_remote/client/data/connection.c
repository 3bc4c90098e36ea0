/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data connection of a session, and the thread of this library that serves it: it receives the bytes of asynchronous
 * copies to the host as soon as the worker has them, and sends those of copies to the device when the worker asks for them
 * (fetch.c), whatever the program's threads do. The connection is opened at the first such copy.
 */
#include "cuda_remote/client/chunks.h"
#include "cuda_remote/client/data/data.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/peer/peer.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The worker answers the call only if the connection ends. */
static void *serve(void *argument)
{
	struct rc_link *link = argument;
	struct rc_wire_call head;
	CUresult result = rc_link_post(link, RC_CALL_data_connection, RC_CALL_WAIT | RC_CALL_OWN, &head, sizeof head, NULL, 0);
	while (result == CUDA_SUCCESS && !link->answered) {
		result = rc_fetch_serve(link);
		if (result == CUDA_SUCCESS)
			result = rc_link_progress(link);
	}
	if (result != RC_LOST)
		rc_link_broken(link, RC_CALL_data_connection);
	return NULL;
}

/* Under the lock. */
static void open_connection(struct rc_session *session)
{
	struct rc_link *link;
	session->data_tried = true;
	CUresult result = rc_session_join(session, &link);
	if (result == CUDA_SUCCESS) {
		link->own = true;
		__atomic_store_n(&session->data, link, __ATOMIC_RELEASE);
		result = rc_peer_thread(serve, link);
	}
	if (result == CUDA_SUCCESS)
		return;
	hr_log(HR_LOG_WARN, "no connection for the bytes of asynchronous copies: such copies wait");
	__atomic_store_n(&session->data, NULL, __ATOMIC_RELEASE);
}

bool rc_data_open(struct rc_session *session)
{
	if (__atomic_load_n(&session->data, __ATOMIC_ACQUIRE))
		return true;
	pthread_mutex_lock(&lock);
	if (!session->data_tried)
		open_connection(session);
	pthread_mutex_unlock(&lock);
	return __atomic_load_n(&session->data, __ATOMIC_ACQUIRE);
}

bool rc_data_is(const struct rc_link *link)
{
	return __atomic_load_n(&link->session->data, __ATOMIC_ACQUIRE) == link;
}
