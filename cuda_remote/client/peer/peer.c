/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that concern several sessions.
 *
 * A direct operation involves two sessions whose workers have a link. The call sends the operation and its streams to
 * both workers, and returns. The workers do the rest; their reports tell this process that the operation has ended. If the
 * link fails, this process copies, and then lets the streams go on. The link is opened before a stream is held.
 *
 * For all other operations, a call posts gates to the servers and returns. The thread that receives the last report of an
 * operation ends it, or lets its bytes be moved. While workers move them, the operation waits for the reports of both.
 *
 * For each session, a thread of this library waits for the reports (peer_wait).
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/peer/peer.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Gates of the operations that are issued at the same time are in the same order on all servers. Otherwise two operations
 * could wait for each other. */
static pthread_mutex_t posting = PTHREAD_MUTEX_INITIALIZER;
static unsigned settling; /* threads that wait for operations: the workers report new ones at once. Under posting */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_has_ended = PTHREAD_COND_INITIALIZER;
static struct rc_peer_op *ops;
static uint64_t n_ops; /* atomic */
static uint64_t n_here; /* atomic: those of them whose bytes no link moves */
static uint64_t newest;
static bool watched[RC_SERVER_MAX]; /* a thread waits for this session's reports */

CUresult rc_peer_thread(void *(*run)(void *), void *argument)
{
	sigset_t all, before;
	pthread_t thread;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int error = pthread_create(&thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_detach(thread);
	return CUDA_SUCCESS;
}

/* The gate's id says which part of which operation it is. */
static uint64_t gate_of(const struct rc_peer_op *op, unsigned part)
{
	return op->id * RC_PEER_PARTS + part;
}

/* ---- the end ---- */

static void part_open(const struct rc_peer_op *op, unsigned i)
{
	const struct rc_peer_part *part = &op->part[i];
	struct {
		struct rc_wire_call head;
		struct rc_wire_peer_state call;
	} message = { .call = { op->direct ? rc_peer_transfer_number(op) : gate_of(op, i), op->result, 0 } };
	struct rc_link *link;
	/* If this fails, the server is lost, and its streams with it. */
	if (rc_link_to(part->session, (uint64_t)(uintptr_t)part->context, &link) == CUDA_SUCCESS)
		rc_link_post(link, RC_CALL_peer_open, 0, &message.head, sizeof message, NULL, 0);
}

void rc_peer_end(struct rc_peer_op *op, CUresult result)
{
	if (op->result == CUDA_SUCCESS)
		op->result = result;
	if (op->result != CUDA_SUCCESS)
		hr_log(HR_LOG_INFO, "%s between servers failed with CUresult %d", op->copies ? "a copy" : "a wait for an event",
		       (int)op->result);
	for (unsigned i = 0; i < op->parts; i++)
		if (op->part[i].holds)
			part_open(op, i);
	pthread_mutex_lock(&lock);
	struct rc_peer_op **at = &ops;
	while (*at != op)
		at = &(*at)->next;
	*at = op->next;
	__atomic_sub_fetch(&n_ops, 1, __ATOMIC_RELEASE);
	if (op->here)
		__atomic_sub_fetch(&n_here, 1, __ATOMIC_RELEASE);
	op->ended = true;
	free(op->owned);
	if (!op->awaited)
		free(op);
	pthread_cond_broadcast(&one_has_ended);
	pthread_mutex_unlock(&lock);
}

/* ---- reports ---- */

enum { SOURCE, TARGET }; /* the parts of a direct operation */

enum step { STEP_NONE, STEP_START, STEP_END };

/* What the calling thread has to do next, as nothing is left to wait for. Under the lock. */
static enum step next_step(struct rc_peer_op *op)
{
	if (!op->posted)
		return STEP_NONE;
	for (unsigned i = 0; i < op->parts; i++)
		if (op->part[i].tells && !op->part[i].told)
			return STEP_NONE;
	if (!op->started) {
		op->started = true;
		return STEP_START;
	}
	if (!op->moving)
		return STEP_NONE;
	op->moving = false;
	return STEP_END;
}

static void start(struct rc_peer_op *op)
{
	CUresult result = op->result;
	if (result == CUDA_SUCCESS && op->copies) {
		result = rc_peer_move(op);
		if (result == CUDA_SUCCESS)
			return;
	}
	rc_peer_end(op, result);
}

/* The workers have ended their sides. If the link failed before the bytes were there, although both workers live, the copy is
 * repeated without it: the streams still wait. */
static void moved(struct rc_peer_op *op)
{
	CUresult result = op->result;
	bool source_failed = op->part[op->parts - 2].link_failed, target_failed = op->part[op->parts - 1].link_failed;
	if (source_failed || target_failed)
		rc_peer_link_failed(op);
	if (target_failed && op->copies && result == CUDA_SUCCESS) {
		result = rc_peer_move_here(op);
		if (result == CUDA_SUCCESS)
			return;
	}
	rc_peer_end(op, result);
}

static void take_step(struct rc_peer_op *op, enum step step)
{
	if (step == STEP_START)
		start(op);
	else if (step == STEP_END)
		moved(op);
}

/* Under the lock. NULL: it has ended. */
static struct rc_peer_op *find(uint64_t id)
{
	struct rc_peer_op *op = ops;
	while (op && op->id != id)
		op = op->next;
	return op;
}

/* The part that a report is about; RC_PEER_PARTS: none. */
static unsigned part_of_report(const struct rc_peer_op *op, const struct rc_session *session, unsigned i)
{
	if (i == RC_PEER_TRANSFER && op->moving)
		i = op->part[op->parts - 1].session == session ? op->parts - 1 : op->parts - 2;
	const struct rc_peer_part *part = &op->part[i];
	return i < op->parts && part->session == session && part->tells && !part->told ? i : RC_PEER_PARTS;
}

static void post_flush(struct rc_session *session);

/* If one side of an operation reports that the link has failed, the other side may still keep a report of success, because the
 * bytes can have arrived before the failure. Returns the session of that other side, or NULL. Under the lock. */
static struct rc_session *keeper_of_report(const struct rc_peer_op *op)
{
	const struct rc_peer_part *part = op->part;
	if (!op->direct || !op->posted || !op->moving || (!part[SOURCE].link_failed && !part[TARGET].link_failed))
		return NULL;
	return !part[SOURCE].told ? part[SOURCE].session : !part[TARGET].told ? part[TARGET].session : NULL;
}

/* A server's report. It may name only gates of its own session, each once. */
static void on_report(const struct rc_session *session, const struct rc_wire_peer_state *state)
{
	enum step step = STEP_NONE;
	struct rc_session *keeper = NULL;
	pthread_mutex_lock(&lock);
	struct rc_peer_op *op = find(state->gate / RC_PEER_PARTS);
	unsigned i = op ? part_of_report(op, session, (unsigned)(state->gate % RC_PEER_PARTS)) : RC_PEER_PARTS;
	if (i < RC_PEER_PARTS) {
		struct rc_peer_part *part = &op->part[i];
		part->told = true;
		part->link_failed = op->moving && state->flags & RC_PEER_LINK_FAILED;
		if (op->direct && !part->link_failed)
			part->holds = false; /* the worker has let the stream go on */
		if (op->result == CUDA_SUCCESS && !part->link_failed)
			op->result = (CUresult)state->result;
		step = next_step(op);
		keeper = keeper_of_report(op);
	}
	pthread_mutex_unlock(&lock);
	if (keeper)
		post_flush(keeper);
	take_step(op, step);
}

/* An operation that waits for this session, whose reports have ended. It fails. Under the lock. */
static struct rc_peer_op *op_of_lost(const struct rc_session *session, enum step *step)
{
	for (struct rc_peer_op *op = ops; op; op = op->next)
		for (unsigned i = 0; i < op->parts; i++) {
			struct rc_peer_part *part = &op->part[i];
			if (part->session != session || !part->tells || part->told)
				continue;
			part->told = true;
			op->result = RC_LOST;
			*step = next_step(op);
			if (*step != STEP_NONE)
				return op;
		}
	return NULL;
}

/* ---- copies over links ---- */

static CUresult watch_start(struct rc_session *session);

CUresult rc_peer_transfer_begin(struct rc_peer_op *op)
{
	struct rc_peer_side *side[] = { &op->from, &op->to };
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 2 && result == CUDA_SUCCESS; i++)
		result = watch_start(side[i]->session);
	for (int i = 0; i < 2 && result == CUDA_SUCCESS; i++)
		op->part[op->parts++] = (struct rc_peer_part){ .session = side[i]->session, .context = side[i]->context,
							       .tells = true };
	op->moving = result == CUDA_SUCCESS;
	pthread_mutex_unlock(&lock);
	return result;
}

void rc_peer_transfer_refused(uint64_t id, const struct rc_session *session, CUresult result)
{
	enum step step = STEP_NONE;
	pthread_mutex_lock(&lock);
	struct rc_peer_op *op = find(id);
	unsigned i = op && op->moving ? part_of_report(op, session, RC_PEER_TRANSFER) : RC_PEER_PARTS;
	if (i < RC_PEER_PARTS) {
		op->part[i].told = true;
		if (op->result == CUDA_SUCCESS)
			op->result = result;
		step = next_step(op);
	}
	pthread_mutex_unlock(&lock);
	take_step(op, step);
}

static void session_is_lost(const struct rc_session *session)
{
	struct rc_peer_op *op;
	enum step step;
	rc_peer_links_lost(session);
	pthread_mutex_lock(&lock);
	watched[session->index] = false;
	while ((op = op_of_lost(session, &step))) {
		pthread_mutex_unlock(&lock);
		take_step(op, step);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

static CUresult receive_reports(struct rc_session *session)
{
	struct {
		struct rc_wire_call head;
	} message = { 0 };
	struct rc_wire_peer_state states[RC_PEER_STATES_MAX];
	struct rc_link *link;
	CUresult result = rc_link_to(session, session->primary, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_peer_wait, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (!link->reply_len || link->reply_len % sizeof *states || link->reply_len > sizeof states)
		return rc_link_broken(link, RC_CALL_peer_wait);
	size_t n = link->reply_len / sizeof *states;
	memcpy(states, link->reply, link->reply_len); /* a report may make this thread call again over the link */
	for (size_t i = 0; i < n; i++)
		on_report(session, &states[i]);
	return CUDA_SUCCESS;
}

static void *watch(void *argument)
{
	struct rc_session *session = argument;
	struct rc_thread *thread = rc_thread_get();
	if (thread) {
		thread->own = true;
		while (receive_reports(session) == CUDA_SUCCESS)
			;
	}
	session_is_lost(session);
	return NULL;
}

/* Under the lock. */
static CUresult watch_start(struct rc_session *session)
{
	if (watched[session->index])
		return CUDA_SUCCESS;
	if (__atomic_load_n(&session->lost, __ATOMIC_RELAXED))
		return RC_LOST;
	CUresult result = rc_peer_thread(watch, session);
	watched[session->index] = result == CUDA_SUCCESS;
	return result;
}

/* ---- the beginning ---- */

static CUresult part_post(const struct rc_peer_op *op, unsigned i)
{
	const struct rc_peer_part *part = &op->part[i];
	struct {
		struct rc_wire_call head;
		union {
			struct rc_wire_peer_gate gate;
			struct rc_wire_peer_event event;
		} call;
	} message;
	memset(&message, 0, sizeof message);
	struct rc_link *link;
	CUresult result = rc_link_to(part->session, (uint64_t)(uintptr_t)part->context, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (part->event) {
		message.call.event = (struct rc_wire_peer_event){ part->object, gate_of(op, i) };
		return rc_link_post(link, RC_CALL_peer_event, 0, &message.head,
				    sizeof message.head + sizeof message.call.event, NULL, 0);
	}
	uint32_t flags = (part->tells ? RC_PEER_TELL : 0) | (part->holds ? RC_PEER_HOLD : 0);
	message.call.gate = (struct rc_wire_peer_gate){ part->object, gate_of(op, i), flags, 0 };
	return rc_link_post(link, RC_CALL_peer_gate, 0, &message.head, sizeof message.head + sizeof message.call.gate, NULL, 0);
}

/* Enters a copy of the operation into the list. */
static CUresult op_add(const struct rc_peer_op *what, struct rc_peer_op **added)
{
	struct rc_peer_op *op = malloc(sizeof *op);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*op = *what;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < op->parts && result == CUDA_SUCCESS; i++)
		if (op->part[i].tells)
			result = watch_start(op->part[i].session);
	if (result == CUDA_SUCCESS) {
		op->id = ++newest;
		op->next = ops;
		ops = op;
		__atomic_add_fetch(&n_ops, 1, __ATOMIC_RELAXED);
		if (op->here)
			__atomic_add_fetch(&n_here, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	if (result == CUDA_SUCCESS)
		*added = op;
	else
		free(op);
	return result;
}

/* Posts the gates. If one cannot be posted, the operation fails, and does not wait for that part and those that follow. True
 * if the calling thread has to start the operation. */
static bool op_post(struct rc_peer_op *op, CUresult *result)
{
	*result = CUDA_SUCCESS;
	unsigned i = 0, n = op->parts;
	pthread_mutex_lock(&posting);
	while (i < n && (*result = part_post(op, i)) == CUDA_SUCCESS)
		i++;
	pthread_mutex_unlock(&posting);
	pthread_mutex_lock(&lock);
	if (op->result == CUDA_SUCCESS)
		op->result = *result;
	for (; i < n; i++) {
		op->part[i].told = true;
		op->part[i].holds = false;
	}
	op->posted = true;
	bool ready = next_step(op) == STEP_START;
	pthread_mutex_unlock(&lock);
	return ready; /* if not, the operation may have ended */
}

/* ---- direct operations ---- */

/* A direct operation, as the call sends it to the two workers. */
struct direct {
	struct rc_peer_op op;
	uint64_t link;
	uint64_t object[2]; /* stream or event */
	uint32_t flags[2];
};

/* The side (SOURCE or TARGET) whose worker can serve the part; -1: none. Only the worker of that side has the context in which
 * CUDA's special stream handles are valid. */
static int side_of_part(const struct rc_peer_op *op, const struct rc_peer_part *part)
{
	const struct rc_peer_side *side[] = { &op->from, &op->to };
	int i = part->session == op->from.session ? SOURCE : TARGET;
	bool other_context = part->context != side[i]->context;
	if (part->session != side[i]->session || (!part->event && rc_stream_is_special(part->object) && other_context))
		return -1;
	return i;
}

/* False: no link, or the operation has streams that its two workers do not have, or it could come before bytes that are on their
 * way to this process: the reports of gates wait for those, the workers do not. A later copy may read them here. */
static bool direct_make(const struct rc_peer_op *what, struct direct *d)
{
	const struct rc_peer_part *own[2] = { NULL, NULL };
	const struct rc_peer_side *side[] = { &what->from, &what->to };
	for (unsigned i = 0; i < what->parts; i++) {
		int at = side_of_part(what, &what->part[i]);
		if (at < 0 || own[at])
			return false;
		own[at] = &what->part[i];
	}
	if (what->here || rc_copy_brings(what->from.session) || rc_copy_brings(what->to.session))
		return false;
	*d = (struct direct){ .op = *what };
	d->link = rc_peer_link_of(what, &d->op.plan);
	if (!d->link)
		return false;
	d->op.direct = d->op.moving = d->op.started = true;
	d->op.parts = 2;
	for (int i = 0; i < 2; i++) {
		const struct rc_peer_part *part = own[i];
		d->op.part[i] = (struct rc_peer_part){ .session = side[i]->session, .context = part ? part->context : side[i]->context,
						       .tells = true, .holds = part && part->holds };
		d->object[i] = part ? part->object : 0;
		d->flags[i] = !part ? 0 : (part->tells ? RC_PEER_COPY_TELL : 0) | (part->holds ? RC_PEER_COPY_HOLD : 0) |
						 (part->event ? RC_PEER_COPY_EVENT : 0);
	}
	if (d->flags[TARGET] & RC_PEER_COPY_TELL)
		d->flags[SOURCE] |= RC_PEER_COPY_AWAIT;
	if (d->flags[SOURCE] & RC_PEER_COPY_HOLD) {
		d->flags[SOURCE] |= RC_PEER_COPY_ANSWER;
		d->flags[TARGET] |= RC_PEER_COPY_ANSWER;
	}
	return true;
}

static CUresult direct_post_one(const struct rc_peer_op *op, const struct direct *d, int side)
{
	uint32_t loud = op->awaited || settling ? RC_PEER_COPY_LOUD : 0;
	return rc_peer_post(op, side == SOURCE, d->object[side], d->flags[side] | loud, d->link);
}

/* Sends the operation to both workers, first to the worker whose stream the copy waits for. If sending to the second worker fails,
 * the first worker must give up the link, because it would wait for the second. */
static enum step direct_post(struct rc_peer_op *op, const struct direct *d, CUresult *result)
{
	int first = d->flags[TARGET] & RC_PEER_COPY_TELL && !(d->flags[SOURCE] & RC_PEER_COPY_TELL) ? TARGET : SOURCE;
	pthread_mutex_lock(&posting);
	CUresult one = direct_post_one(op, d, first);
	CUresult other = one == CUDA_SUCCESS ? direct_post_one(op, d, !first) : one;
	pthread_mutex_unlock(&posting);
	if (one == CUDA_SUCCESS && other != CUDA_SUCCESS)
		rc_peer_post_close(op->part[first].session, d->link);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 2; i++)
		if ((i == first ? one : other) != CUDA_SUCCESS) {
			op->part[i].told = true;
			op->part[i].holds = false;
		}
	if (op->result == CUDA_SUCCESS)
		op->result = other;
	op->posted = true;
	struct rc_session *keeper = keeper_of_report(op);
	enum step step = next_step(op);
	pthread_mutex_unlock(&lock);
	if (keeper)
		post_flush(keeper);
	*result = other;
	return step; /* if there is none, the operation may have ended */
}

/* *op is the caller's only if it is awaited. */
static CUresult issue(const struct rc_peer_op *what, struct rc_peer_op **op)
{
	struct direct d;
	if (!what->copies)
		rc_peer_link_begin(what);
	else if (!what->here)
		rc_peer_link_await(what);
	bool direct = direct_make(what, &d);
	CUresult result = op_add(direct ? &d.op : what, op);
	if (result != CUDA_SUCCESS) {
		free(what->owned);
		return result;
	}
	take_step(*op, direct ? direct_post(*op, &d, &result) : op_post(*op, &result) ? STEP_START : STEP_NONE);
	return result;
}

CUresult rc_peer_issue(const struct rc_peer_op *what)
{
	struct rc_peer_op *op;
	return issue(what, &op);
}

CUresult rc_peer_perform(const struct rc_peer_op *what)
{
	struct rc_peer_op awaited = *what, *op = NULL;
	awaited.awaited = true;
	CUresult result = issue(&awaited, &op);
	if (!op)
		return result;
	pthread_mutex_lock(&lock);
	while (!op->ended)
		pthread_cond_wait(&one_has_ended, &lock);
	pthread_mutex_unlock(&lock);
	result = op->result;
	free(op);
	return result;
}

/* ---- what must not end before an operation does ---- */

static bool uses_context(const struct rc_peer_op *op, CUcontext context)
{
	for (unsigned i = 0; i < op->parts; i++)
		if (op->part[i].context == context)
			return true;
	return op->copies && (op->to.context == context || op->from.context == context);
}

static bool side_within(const struct rc_peer_side *side, uint64_t address, uint64_t size)
{
	return !side->array && side->box.device < address + size && address < side->box.device + rc_box_extent(&side->box);
}

static bool uses_memory(const struct rc_peer_op *op, uint64_t address, uint64_t size)
{
	return op->copies && (side_within(&op->to, address, size) || side_within(&op->from, address, size));
}

/* What is about to end. */
struct ending {
	CUcontext context;      /* or NULL */
	uint64_t address, size; /* or size 0 */
	bool arrays;            /* any array */
};

static bool uses(const struct rc_peer_op *op, const struct ending *what)
{
	return (what->context && uses_context(op, what->context)) ||
	       (what->size && uses_memory(op, what->address, what->size)) ||
	       (what->arrays && (op->to.array || op->from.array));
}

static bool any_uses(const struct ending *what)
{
	for (struct rc_peer_op *op = ops; op; op = op->next)
		if (uses(op, what))
			return true;
	return false;
}

static void post_flush(struct rc_session *session)
{
	struct {
		struct rc_wire_call head;
	} message = { 0 };
	struct rc_thread *thread = rc_thread_get();
	struct rc_link *link = thread ? thread->link[session->index] : NULL;
	uint32_t context = link ? link->context : 0; /* of the call that waits, which may use the link next */
	/* If this fails, the server is lost, and its operations end. */
	if (rc_link_to(session, 0, &link) != CUDA_SUCCESS)
		return;
	rc_link_post(link, RC_CALL_peer_flush, 0, &message.head, sizeof message, NULL, 0);
	link->context = context;
}

/* Workers keep reports that nobody waits for. Asks for those of the operations in question, and for those of later ones. */
static void settling_begin(const struct ending *what)
{
	struct rc_session *asked[RC_SERVER_MAX] = { NULL };
	pthread_mutex_lock(&posting);
	settling++;
	pthread_mutex_lock(&lock);
	for (struct rc_peer_op *op = ops; op; op = op->next)
		for (unsigned i = 0; i < 2 && op->direct && uses(op, what); i++)
			asked[op->part[i].session->index] = op->part[i].session;
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < RC_SERVER_MAX; i++)
		if (asked[i])
			post_flush(asked[i]);
	pthread_mutex_unlock(&posting);
}

static void settling_end(void)
{
	pthread_mutex_lock(&posting);
	settling--;
	pthread_mutex_unlock(&posting);
}

static void settle(const struct ending *what)
{
	if (!__atomic_load_n(&n_ops, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	bool any = any_uses(what);
	pthread_mutex_unlock(&lock);
	if (!any)
		return;
	settling_begin(what);
	pthread_mutex_lock(&lock);
	while (any_uses(what))
		pthread_cond_wait(&one_has_ended, &lock);
	pthread_mutex_unlock(&lock);
	settling_end();
}

bool rc_peer_any_host(void)
{
	return __atomic_load_n(&n_here, __ATOMIC_ACQUIRE) > 0;
}

bool rc_peer_writes_host(uint64_t address, uint64_t size)
{
	bool found = false;
	if (!rc_peer_any_host())
		return false;
	pthread_mutex_lock(&lock);
	for (struct rc_peer_op *op = ops; op && !found; op = op->next) {
		const struct rc_wire_box *box = &op->to.box;
		found = op->copies && op->here && !op->to.session && box->device < address + size &&
			address < box->device + rc_box_extent(box);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void rc_peer_settle(CUcontext context)
{
	settle(&(struct ending){ .context = context });
}

void rc_peer_settle_memory(uint64_t address, uint64_t size)
{
	settle(&(struct ending){ .address = address, .size = size });
}

void rc_peer_settle_arrays(void)
{
	settle(&(struct ending){ .arrays = true });
}
