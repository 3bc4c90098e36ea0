/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links between the workers of two sessions, one for each direction. A thread of this library opens a link: it asks one
 * worker for an invitation and gives it to the other. The call of the first copy waits until the link is open, before it holds a
 * stream. Then each copy takes one message to each of the two workers. If there is no link, because the workers cannot reach
 * each other or a link has failed, copies go by way of this process.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/peer/peer.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* For two workers to meet, and for a trial: long, as a worker may have to wait for a processor. A worker gives up sooner an
 * address whose host does not answer. */
#define TIMEOUT_MS RC_PEER_TIMEOUT_MAX
#define ROUNDS 2u        /* of a trial; 1 if it is long */
#define LONG (2u << 20)  /* bytes */
#define AHEAD_MAX 4      /* with more servers, a link is opened by its first copy */
/* For this time, and for that of the measurements, the calls of copies wait for a link that is being opened. */
#define OPENING_S (TIMEOUT_MS / 1000)

enum pair_state { PAIR_NEW, PAIR_OPENING, PAIR_UP, PAIR_FAILED };

/* A source and a target. */
struct pair {
	enum pair_state state;
	struct rc_session *from, *to;
	uint64_t link;
	bool encrypt;
	struct rc_peer_plans plans;
	struct timespec until; /* calls wait for the link to open up to this time */
	bool late;             /* a call has waited in vain: no other call waits */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_is_open = PTHREAD_COND_INITIALIZER; /* or has failed */
static struct pair pairs[RC_SERVER_MAX][RC_SERVER_MAX];
/* One link is measured at a time, unless a server does not answer. */
static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER;
static uint64_t newest;

/* Under the lock. */
static struct pair *pair_of(struct rc_session *from, struct rc_session *to)
{
	struct pair *pair = &pairs[from->index][to->index];
	if (pair->state == PAIR_NEW) { /* later, its thread reads them without the lock */
		pair->from = from;
		pair->to = to;
	}
	return pair;
}

/* ---- copies ---- */

static bool is_contiguous(const struct rc_wire_box *box)
{
	return (box->height == 1 || box->pitch == box->width) && (box->depth == 1 || box->slice == box->width * box->height);
}

CUresult rc_peer_post(const struct rc_peer_op *op, bool source, uint64_t object, uint32_t flags, uint64_t link)
{
	const struct rc_peer_side *side = source ? &op->from : &op->to;
	struct {
		struct rc_wire_call head;
		struct rc_wire_peer_copy call;
	} message = { .call = { object, link, rc_peer_transfer_number(op), flags | (source ? RC_PEER_COPY_SEND : 0), 0, op->plan, side->box } };
	struct rc_wire_box *box = &message.call.box;
	struct rc_link *to;
	if (!op->copies)
		message.call.flags |= RC_PEER_COPY_EMPTY;
	else if (is_contiguous(&op->from.box) && is_contiguous(&op->to.box))
		*box = (struct rc_wire_box){ box->device, 0, 0, rc_box_bytes(box), 1, 1 };
	CUresult result = rc_link_to(side->session, (uint64_t)(uintptr_t)side->context, &to);
	return result == CUDA_SUCCESS ? rc_link_post(to, RC_CALL_peer_copy, 0, &message.head, sizeof message, NULL, 0) : result;
}

void rc_peer_post_close(struct rc_session *session, uint64_t link)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_peer_close call;
	} message = { .call = { link } };
	struct rc_link *to;
	if (rc_link_to(session, 0, &to) == CUDA_SUCCESS)
		rc_link_post(to, RC_CALL_peer_close, 0, &message.head, sizeof message, NULL, 0);
}

uint64_t rc_peer_link_of(const struct rc_peer_op *op, struct rc_wire_peer_plan *plan)
{
	pthread_mutex_lock(&lock);
	const struct pair *pair = &pairs[op->from.session->index][op->to.session->index];
	uint64_t link = pair->state == PAIR_UP ? pair->link : 0;
	/* A plan that the servers cannot follow is refused when the copy is to start, as without this. */
	if (link && op->copies && rc_peer_plan(&pair->plans, rc_box_bytes(&op->to.box), plan) != CUDA_SUCCESS)
		link = 0;
	pthread_mutex_unlock(&lock);
	return link;
}

/* If one worker cannot be told, its session is lost. The other one then ends the copy, as the link is closed. */
static CUresult transfer(struct pair *pair, struct rc_peer_op *op)
{
	/* Once both servers have reported the copy, or a session is lost, the operation may end at any time: a hostile server
	 * may report it before it is told. The copy of the operation has what no report changes. */
	struct rc_peer_op copy = { .id = op->id, .copies = true, .from = op->from, .to = op->to };
	struct rc_session *from = copy.from.session, *to = copy.to.session;
	CUresult result = rc_peer_plan(&pair->plans, rc_box_bytes(&op->to.box), &copy.plan);
	if (result == CUDA_SUCCESS)
		result = rc_peer_transfer_begin(op);
	if (result != CUDA_SUCCESS)
		return result;
	CUresult sent = rc_peer_post(&copy, true, 0, RC_PEER_COPY_LOUD, pair->link);
	CUresult received = rc_peer_post(&copy, false, 0, RC_PEER_COPY_LOUD, pair->link);
	if (sent != CUDA_SUCCESS)
		rc_peer_post_close(to, pair->link);
	if (received != CUDA_SUCCESS)
		rc_peer_post_close(from, pair->link);
	if (sent != CUDA_SUCCESS)
		rc_peer_transfer_refused(copy.id, from, sent);
	if (received != CUDA_SUCCESS)
		rc_peer_transfer_refused(copy.id, to, received);
	return CUDA_SUCCESS;
}

/* ---- opening ---- */

static uint32_t link_flags(const struct pair *pair, bool source)
{
	return (source ? RC_PEER_SOURCE : 0) | (pair->encrypt ? RC_PEER_ENCRYPT : 0);
}

static CUresult invite(const struct pair *pair, struct rc_session *session, struct rc_wire_peer_invitation *invitation)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_peer_invite call;
	} message = { .call = { pair->link, link_flags(pair, session == pair->from), TIMEOUT_MS } };
	struct rc_link *link;
	CUresult result = rc_link_to(session, 0, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_peer_invite, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof *invitation)
		return rc_link_broken(link, RC_CALL_peer_invite);
	memcpy(invitation, link->reply, sizeof *invitation);
	explicit_bzero(link->reply, sizeof *invitation);
	return CUDA_SUCCESS;
}

static CUresult join(const struct pair *pair, struct rc_session *session, const struct rc_wire_peer_invitation *invitation,
		     struct rc_wire_peer_joined *joined)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_peer_join call;
	} message = { .call = { pair->link, link_flags(pair, session == pair->from), TIMEOUT_MS } };
	struct iovec rest = { (void *)(uintptr_t)invitation, sizeof *invitation };
	struct rc_link *link;
	CUresult result = rc_link_to(session, 0, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_peer_join, 0, &message.head, sizeof message, &rest, 1);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof *joined)
		return rc_link_broken(link, RC_CALL_peer_join);
	memcpy(joined, link->reply, sizeof *joined);
	return CUDA_SUCCESS;
}

/* The host's worker opens a socket, and the guest's connects to it. */
static CUresult bring_together(struct pair *pair, struct rc_session *host, struct rc_session *guest)
{
	struct rc_wire_peer_invitation invitation;
	struct rc_wire_peer_joined joined;
	pthread_mutex_lock(&lock);
	pair->link = ++newest;
	pthread_mutex_unlock(&lock);
	pair->encrypt = pair->from->encrypted || pair->to->encrypted;
	CUresult result = invite(pair, host, &invitation);
	if (result != CUDA_SUCCESS)
		return result;
	pair->encrypt = pair->encrypt || invitation.flags & RC_PEER_ENCRYPT;
	result = join(pair, guest, &invitation, &joined);
	explicit_bzero(invitation.ticket, sizeof invitation.ticket);
	if (result != CUDA_SUCCESS)
		rc_peer_post_close(host, pair->link);
	else
		pair->plans.direct = invitation.flags & joined.flags & RC_PEER_DIRECT;
	return result;
}

static CUresult post_trial(struct rc_session *session, const struct rc_wire_peer_trial *trial, uint64_t *ns)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_peer_trial call;
	} message = { .call = *trial };
	struct rc_link *link;
	CUresult result = rc_link_to(session, 0, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_peer_trial, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS && ns && link->reply_len != sizeof *ns)
		return rc_link_broken(link, RC_CALL_peer_trial);
	if (result == CUDA_SUCCESS && ns)
		memcpy(ns, link->reply, sizeof *ns);
	return result;
}

static CUresult measure(void *context, const struct rc_wire_peer_plan *plan, uint32_t bytes, uint64_t *ns)
{
	const struct pair *pair = context;
	struct rc_wire_peer_trial trial = { pair->link, bytes, bytes < LONG ? ROUNDS : 1, *plan };
	CUresult result = post_trial(pair->to, &trial, NULL);
	return result == CUDA_SUCCESS ? post_trial(pair->from, &trial, ns) : result;
}

static void choose_plans(struct pair *pair)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	/* Waits at most this long for the measurement of another link, as its server may not answer. */
	until.tv_sec += 1 + rc_peer_measuring_ms() / 1000;
	bool alone = !pthread_mutex_timedlock(&measuring, &until);
	rc_peer_plans_choose(&pair->plans, measure, pair);
	if (alone)
		pthread_mutex_unlock(&measuring);
}

/* True if the server is of a build that has copies over links as this one has them. */
static bool has_copies(const struct rc_session *session)
{
	return !session->call_number || session->call_number[RC_CALL_peer_copy];
}

/* The worker that the client does not reach over a Unix socket is more likely to have an address that other hosts reach. */
static CUresult open_link(struct pair *pair)
{
	struct rc_session *host = pair->to, *guest = pair->from;
	if (host->local && !guest->local) {
		host = pair->from;
		guest = pair->to;
	}
	CUresult result = has_copies(host) && has_copies(guest) ? bring_together(pair, host, guest) : CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_ERROR_NOT_FOUND || result == CUDA_ERROR_TIMEOUT || result == CUDA_ERROR_NOT_PERMITTED)
		result = bring_together(pair, guest, host);
	if (result == CUDA_SUCCESS) {
		choose_plans(pair);
	} else if (result != RC_LOST) {
		hr_log(HR_LOG_WARN, "copies from server %s to %s go by way of this process: there is no connection between the "
		       "two (CUresult %d; the servers' logs say why)",
		       pair->from->first->server, pair->to->first->server, (int)result);
	}
	return result;
}

static void *open_pair(void *argument)
{
	struct pair *pair = argument;
	struct rc_thread *thread = rc_thread_get();
	if (thread)
		thread->own = true;
	bool up = thread && open_link(pair) == CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	pair->state = up ? PAIR_UP : PAIR_FAILED;
	pthread_cond_broadcast(&one_is_open);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Starts the thread that opens the link, if nobody has. Under the lock. */
static void pair_open(struct pair *pair)
{
	if (pair->state != PAIR_NEW)
		return;
	clock_gettime(CLOCK_REALTIME, &pair->until);
	pair->until.tv_sec += OPENING_S + rc_peer_measuring_ms() / 1000;
	pair->state = rc_peer_thread(open_pair, pair) == CUDA_SUCCESS ? PAIR_OPENING : PAIR_FAILED;
}

void rc_peer_link_begin(const struct rc_peer_op *op)
{
	if (!rc_peer_by_link())
		return;
	pthread_mutex_lock(&lock);
	pair_open(pair_of(op->from.session, op->to.session));
	pthread_mutex_unlock(&lock);
}

void rc_peer_link_await(const struct rc_peer_op *op)
{
	int error = 0;
	if (!rc_peer_by_link())
		return;
	pthread_mutex_lock(&lock);
	struct pair *pair = pair_of(op->from.session, op->to.session);
	pair_open(pair);
	bool opening = pair->state == PAIR_OPENING && !pair->late;
	pthread_mutex_unlock(&lock);
	if (!opening)
		return;
	rc_delay_flush_all(); /* a stream may wait for calls that have not been sent, and the driver for the stream */
	pthread_mutex_lock(&lock);
	while (!error && pair->state == PAIR_OPENING && !pair->late)
		error = pthread_cond_timedwait(&one_is_open, &lock, &pair->until);
	bool late = error && pair->state == PAIR_OPENING && !pair->late;
	pair->late = pair->late || late;
	pthread_mutex_unlock(&lock);
	if (late)
		hr_log(HR_LOG_WARN, "copies from server %s to %s go by way of this process: the connection between the two is not "
		       "open after %u s; perhaps a stream waits for a later call of this thread",
		       pair->from->first->server, pair->to->first->server, OPENING_S + rc_peer_measuring_ms() / 1000);
}

CUresult rc_peer_move(struct rc_peer_op *op)
{
	if (op->here || !rc_peer_by_link())
		return rc_peer_move_here(op);
	pthread_mutex_lock(&lock);
	struct pair *pair = pair_of(op->from.session, op->to.session);
	bool up = pair->state == PAIR_UP;
	pthread_mutex_unlock(&lock);
	return up ? transfer(pair, op) : rc_peer_move_here(op);
}

void rc_peer_expect(struct rc_session *session)
{
	static uint64_t expected[(RC_SERVER_MAX + 63) / 64]; /* atomic: a bit for each session */
	static unsigned known;                               /* atomic: their number */
	uint64_t bit = 1ull << session->index % 64, *word = &expected[session->index / 64];
	struct rc_process *process;
	if (__atomic_load_n(word, __ATOMIC_RELAXED) & bit || __atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit)
		return;
	if (!rc_peer_by_link() || rc_process_get(&process) != CUDA_SUCCESS || process->sessions == 1)
		return;
	if (__atomic_add_fetch(&known, 1, __ATOMIC_RELAXED) > AHEAD_MAX)
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < process->sessions; i++) {
		struct rc_session *other = &process->session[i];
		if (other == session || !(__atomic_load_n(&expected[i / 64], __ATOMIC_RELAXED) & 1ull << i % 64))
			continue;
		pair_open(pair_of(session, other));
		pair_open(pair_of(other, session));
	}
	pthread_mutex_unlock(&lock);
}

/* ---- ends ---- */

void rc_peer_link_failed(const struct rc_peer_op *op)
{
	pthread_mutex_lock(&lock);
	struct pair *pair = pair_of(op->from.session, op->to.session);
	bool first = pair->state == PAIR_UP;
	pair->state = PAIR_FAILED;
	pthread_mutex_unlock(&lock);
	if (!first)
		return;
	hr_log(HR_LOG_WARN, "the connection from server %s to %s has failed; copies between them go by way of this process",
	       pair->from->first->server, pair->to->first->server);
	rc_peer_post_close(pair->from, pair->link);
	rc_peer_post_close(pair->to, pair->link);
}

void rc_peer_links_lost(const struct rc_session *session)
{
	for (unsigned i = 0; i < RC_SERVER_MAX; i++) {
		struct pair *both[] = { &pairs[session->index][i], &pairs[i][session->index] };
		for (int j = 0; j < 2; j++) {
			pthread_mutex_lock(&lock);
			bool up = both[j]->state == PAIR_UP;
			pthread_mutex_unlock(&lock);
			if (up)
				rc_peer_post_close(both[j]->from == session ? both[j]->to : both[j]->from, both[j]->link);
		}
	}
}
