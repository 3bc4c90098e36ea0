/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that leave a little later. Over TCP each message costs a system call. If a thread makes several calls that do not wait
 * shortly after each other, its connection gathers them (CH3_SEND_MORE). They leave together: with the next call of the thread
 * that is not of this kind, before any thread of the process waits, when some kilobytes are gathered, or after about 100 us, by
 * the thread below. A call that comes alone leaves at once, so that the device begins its work meanwhile; but a long
 * asynchronous copy takes so much longer than the delay that its call always waits here.
 *
 * The program's thread and the thread below share the connections' engines as follows. link->delayed says that messages are
 * gathered. Only the link's own thread sets it, and whoever clears it has sent them, both under link->sending. The thread below
 * uses an engine only while delayed is set, and under that lock. The link's own thread uses the engine without the lock only
 * after rc_delay_flush.
 */
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/peer/peer.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The longest call that is gathered, bytes. */
#define CALL_MOST 1024
/* Between two looks of the thread. The kernel adds up to 50 us. */
#define TICK_NS 50000
/* The thread sleeps after this many looks that found nothing. */
#define IDLE_TICKS 20
/* An asynchronous copy of at least this many bytes is long: at 10 GB/s it takes 3 ms. */
#define LONG_COPY (32u << 20)
/* If a call comes within this time after one that has left at once, it is gathered. */
#define SHORTLY_NS 50000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the lock of a link */
static struct rc_link *links; /* that have delayed a call; under the lock */
static bool tried, works;     /* to start the thread; under the lock */
static sem_t wake;
static unsigned delaying;     /* links with delayed set; atomic */
static bool awake;            /* the thread looks at the links; atomic */

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Under link->sending. Release pairs with the acquire in rc_delay_flush: the owner may then use the engine without the lock. */
static void set_delayed(struct rc_link *link, bool delayed)
{
	if (link->delayed == delayed)
		return;
	__atomic_store_n(&link->delayed, delayed, __ATOMIC_RELEASE);
	if (delayed)
		__atomic_add_fetch(&delaying, 1, __ATOMIC_SEQ_CST);
	else
		__atomic_sub_fetch(&delaying, 1, __ATOMIC_RELAXED);
}

/* own: the caller is the link's own thread, whose progress sends what the pipe does not accept now. Other callers leave these
 * bytes delayed. */
static void flush(struct rc_link *link, bool own)
{
	if (!__atomic_load_n(&link->delayed, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&link->sending);
	bool sent = !link->delayed || ch3_flush(link->vc);
	set_delayed(link, !sent && !own);
	pthread_mutex_unlock(&link->sending);
}

void rc_delay_flush(struct rc_link *link)
{
	flush(link, true);
}

void rc_delay_leave(struct rc_link *link)
{
	flush(link, false);
}

void rc_delay_flush_all(void)
{
	if (!__atomic_load_n(&delaying, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&lock);
	for (struct rc_link *link = links; link; link = link->next_delaying)
		flush(link, false);
	pthread_mutex_unlock(&lock);
}

/* ---- the thread ---- */

static void *run(void *unused)
{
	(void)unused;
	for (unsigned idle = 0;;) {
		if (__atomic_load_n(&delaying, __ATOMIC_SEQ_CST)) {
			idle = 0;
			rc_delay_flush_all();
		} else if (++idle > IDLE_TICKS) {
			/* Sequentially consistent with start: either that function sees that the thread sleeps, or this one sees
			 * the link. */
			__atomic_store_n(&awake, false, __ATOMIC_SEQ_CST);
			if (!__atomic_load_n(&delaying, __ATOMIC_SEQ_CST))
				while (sem_wait(&wake) && errno == EINTR)
					;
			__atomic_store_n(&awake, true, __ATOMIC_SEQ_CST);
			idle = 0;
		}
		nanosleep(&(struct timespec){ .tv_nsec = TICK_NS }, NULL);
	}
	return NULL;
}

/* The link's first delay. Returns false if there is no thread: then nothing is delayed. */
static bool enter(struct rc_link *link)
{
	pthread_mutex_lock(&lock);
	if (!tried) {
		tried = true;
		works = !sem_init(&wake, 0, 0) && rc_peer_thread(run, NULL) == CUDA_SUCCESS;
	}
	if (works && !link->listed) {
		link->listed = true;
		link->next_delaying = links;
		links = link;
	}
	pthread_mutex_unlock(&lock);
	return works;
}

/* Something is delayed from now on. */
static void start(void)
{
	if (!__atomic_load_n(&awake, __ATOMIC_SEQ_CST) && !__atomic_exchange_n(&awake, true, __ATOMIC_SEQ_CST))
		sem_post(&wake);
}

/* ---- sending ---- */

/* True if nothing but the device waits for the call. */
static bool may_wait(enum rc_call function)
{
	switch (function) {
	case RC_CALL_launch:
	case RC_CALL_graph_launch:
	case RC_CALL_memory_place:
	case RC_CALL_memory_unplace:
	case RC_CALL_copy_up:
	case RC_CALL_copy_up_early:
	case RC_CALL_copy_up_settled:
	case RC_CALL_copy_across:
	case RC_CALL_cuEventRecord:
	case RC_CALL_cuStreamWaitEvent:
	case RC_CALL_cuMemsetD8Async:
	case RC_CALL_cuMemsetD16Async:
	case RC_CALL_cuMemsetD32Async:
		return true;
	default:
		return false;
	}
}

/* True if the thread has sent a call shortly before. */
static bool is_busy(struct rc_link *link)
{
	if (__atomic_load_n(&awake, __ATOMIC_RELAXED))
		return true;
	uint64_t now = now_ns(), since = now - link->sent;
	link->sent = now;
	return since < SHORTLY_NS;
}

static bool is_long_copy(enum rc_call function, const struct rc_wire_call *head)
{
	struct rc_wire_copy copy;
	if (function != RC_CALL_copy_up_later && function != RC_CALL_copy_down_later)
		return false;
	memcpy(&copy, head + 1, sizeof copy);
	return rc_box_bytes(&copy.box) >= LONG_COPY;
}

static bool is_delayed(struct rc_link *link, enum rc_call function, uint16_t flags, const struct rc_wire_call *head,
		       size_t len, const struct iovec *iov, int n)
{
	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (!link->gathers || flags & RC_CALL_WAIT || len > CALL_MOST)
		return false;
	return (is_long_copy(function, head) || (may_wait(function) && is_busy(link))) && (link->listed || enter(link));
}

/* Finds out which transport the connection has, once it is up. With the others a send is short. */
static void look(struct rc_link *link)
{
	const char *transport = hr_conn_transport(ch3_vc_conn(link->vc));
	link->gathers = !strcmp(transport, "tcp");
	link->direct = !link->gathers && strcmp(transport, "none");
}

int rc_delay_send(struct rc_link *link, enum rc_call function, uint16_t flags, struct rc_wire_call *head, size_t len,
		  const struct iovec *iov, int n, ch3_request_t **request)
{
	if (!link->gathers)
		look(link);
	bool delayed = is_delayed(link, function, flags, head, len, iov, n);
	pthread_mutex_lock(&link->sending);
	/* A call that ends a delay goes out with the calls before it. */
	unsigned more = delayed || link->delayed ? CH3_SEND_MORE : 0;
	int error = ch3_send(link->vc, RC_PACKET_CALL, head, len, iov, n, CH3_SEND_EAGER | more, request);
	bool sent = !delayed && (!more || *request || error || ch3_flush(link->vc));
	set_delayed(link, !sent);
	pthread_mutex_unlock(&link->sending);
	if (!sent)
		start();
	return error;
}

void rc_delay_end(struct rc_link *link)
{
	pthread_mutex_lock(&lock);
	struct rc_link **at = &links;
	while (*at && *at != link)
		at = &(*at)->next_delaying;
	if (*at)
		*at = link->next_delaying;
	pthread_mutex_unlock(&lock);
	rc_delay_flush(link);
	pthread_mutex_destroy(&link->sending);
}
