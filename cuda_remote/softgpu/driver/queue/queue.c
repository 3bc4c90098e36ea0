/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues of all streams, and the worker threads that run their commands. */
#include "config.h"

#include "cuda_remote/softgpu/driver/queue/queue.h"

#include "rdma_channel/base/log.h"

#include <signal.h>
#include <stdlib.h>

/*
 * How often a worker looks for work before it sleeps, and a waiting thread for the end of a command: 10 to 30
 * microseconds.
 */
#define SPIN_ROUNDS 200
#define SPIN_WAIT_ROUNDS 500

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;   /* a stream became ready and no worker was looking */
	CUstream first_ready;  /* most urgent first */
	unsigned ready;        /* number of ready streams; spinning workers read it without the lock */
	unsigned workers, sleeping, looking;
	unsigned resting;      /* commands that rest: queue_rest_begin */
	unsigned running;      /* streams in QUEUE_RUNNING whose command does not rest */
	pthread_cond_t alone;  /* running has become 0 */
	uint64_t ticket, next_id;
} queue = { .lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP, .work = PTHREAD_COND_INITIALIZER,
	    .alone = PTHREAD_COND_INITIALIZER };

/* What this thread has said by queue_call_follows, and whether it owes the wake-up of a worker. */
static __thread struct {
	bool follows, owed;
} next_call;

static void *work(void *unused);

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/* Starts a worker with all signals blocked: signals are for the program's threads. */
static void start_worker(void)
{
	sigset_t all, before;
	pthread_t thread;
	pthread_attr_t attributes;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int error = pthread_create(&thread, &attributes, work, NULL);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error) {
		queue.workers++;
		queue.looking++;
	} else if (!queue.workers) {
		/* Threads that wait run ready streams themselves; other streams wait until a later start succeeds. */
		hr_log_once(HR_LOG_ERROR, "software GPU: cannot start a worker thread: error %d", error);
	}
}

/* A stream is ready: wakes or starts a worker, unless one is looking. Threads that rest do not count among the most. */
static void want_worker(void)
{
	if (queue.looking)
		return;
	if (next_call.follows) {
		next_call.owed = true;
		return;
	}
	if (queue.sleeping)
		pthread_cond_signal(&queue.work);
	else if (queue.workers < QUEUE_MAX_WORKERS + queue.resting)
		start_worker();
}

/* With the lock held: wakes the worker that this thread owes, if a stream is still ready. */
static void pay_worker(void)
{
	next_call.follows = false;
	if (!next_call.owed)
		return;
	next_call.owed = false;
	if (queue.first_ready)
		want_worker();
}

void queue_call_follows(bool follows)
{
	next_call.follows = follows;
	if (follows || !next_call.owed)
		return;
	pthread_mutex_lock(&queue.lock);
	pay_worker();
	pthread_mutex_unlock(&queue.lock);
}

void queue_group_fail(queue_group_t *group, CUresult fault)
{
	CUresult none = CUDA_SUCCESS;
	if (__atomic_compare_exchange_n(&group->fault, &none, fault, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		hr_log(HR_LOG_DEBUG, "software GPU: context %llu failed with CUDA error %d",
		       (unsigned long long)group->id, (int)fault);
}

static void set_state(CUstream stream, enum queue_state state)
{
	bool was_idle = stream->state == QUEUE_IDLE, is_idle = state == QUEUE_IDLE;
	bool was_running = stream->state == QUEUE_RUNNING, is_running = state == QUEUE_RUNNING;
	stream->state = state;
	if (was_running != is_running) {
		queue.running += is_running ? 1u : -1u;
		if (!queue.running)
			pthread_cond_broadcast(&queue.alone);
	}
	if (was_idle == is_idle)
		return;
	if (stream->blocking)
		stream->group->busy += is_idle ? -1u : 1u;
	stream->references += is_idle ? -1u : 1u;
}

static void list_ready(CUstream stream)
{
	CUstream before = NULL, after = queue.first_ready;
	while (after && after->priority <= stream->priority) {
		before = after;
		after = after->next_ready;
	}
	stream->previous_ready = before;
	stream->next_ready = after;
	if (after)
		after->previous_ready = stream;
	if (before)
		before->next_ready = stream;
	else
		queue.first_ready = stream;
	__atomic_store_n(&queue.ready, queue.ready + 1, __ATOMIC_RELAXED);
	set_state(stream, QUEUE_READY);
	want_worker();
}

static void take_ready(CUstream stream)
{
	if (stream->next_ready)
		stream->next_ready->previous_ready = stream->previous_ready;
	if (stream->previous_ready)
		stream->previous_ready->next_ready = stream->next_ready;
	else
		queue.first_ready = stream->next_ready;
	__atomic_store_n(&queue.ready, queue.ready - 1, __ATOMIC_RELAXED);
	set_state(stream, QUEUE_RUNNING);
}

static void unlink_from_group(CUstream stream)
{
	if (stream->next)
		stream->next->previous = stream->previous;
	if (stream->previous)
		stream->previous->next = stream->next;
	else
		stream->group->first = stream->next;
}

static void drop_reference(CUstream stream)
{
	if (--stream->references)
		return;
	if (!stream->detached)
		unlink_from_group(stream);
	pthread_cond_destroy(&stream->done);
	handle_release(stream);
}

static bool satisfied(const command_t *command)
{
	return !command->on || command->on->completed >= command->on_sequence;
}

/* Sets the stream's state by its next command: ready, blocked or idle. */
static void settle(CUstream stream)
{
	if (!stream->first) {
		set_state(stream, QUEUE_IDLE);
	} else if (satisfied(stream->first)) {
		list_ready(stream);
	} else {
		CUstream on = stream->first->on;
		stream->next_blocked = on->first_blocked;
		on->first_blocked = stream;
		set_state(stream, QUEUE_BLOCKED);
	}
}

/* A command of stream is complete: wakes the threads and streams that waited for it. */
static void advance(CUstream stream)
{
	/* Orders what the command wrote before its completion; pairs with the acquire in queue_done. */
	__atomic_store_n(&stream->completed, stream->completed + 1, __ATOMIC_RELEASE);
	if (stream->sleepers)
		pthread_cond_broadcast(&stream->done);
	CUstream blocked = stream->first_blocked;
	stream->first_blocked = NULL;
	while (blocked) {
		CUstream next = blocked->next_blocked;
		settle(blocked);
		blocked = next;
	}
}

static void run_command(CUstream stream, command_t *command)
{
	if (command->run && (command->despite_fault || !queue_group_error(stream->group))) {
		CUresult result = command->run(command);
		if (result)
			queue_group_fail(stream->group, result);
	}
	if (command->finish)
		command->finish(command);
}

/* True if the stream's next command may run, on a thread that runs commands up to this number; 0: all. */
static bool may_run(CUstream stream, uint64_t until)
{
	command_t *next = stream->first;
	return next && satisfied(next) && !(until && (next->sequence > until || next->host_code));
}

/*
 * Runs commands of a stream that this thread has taken (QUEUE_RUNNING) until the next one may not run, or, if until is
 * not 0, until command number until is complete. Called with the lock held; releases it meanwhile.
 */
static void run_stream(CUstream stream, uint64_t until)
{
	bool more = may_run(stream, until);
	if (!more)
		settle(stream);
	while (more) {
		command_t *command = stream->first;
		pthread_mutex_unlock(&queue.lock);
		run_command(stream, command);
		pthread_mutex_lock(&queue.lock);
		stream->first = command->next;
		if (!stream->first)
			stream->last = NULL;
		if (command->on)
			drop_reference(command->on);
		advance(stream);
		/* A thread that has waited for the last command finds the stream idle. */
		more = may_run(stream, until);
		if (!more)
			settle(stream);
		/* free() of memory that another thread allocated may block: not under the lock. */
		pthread_mutex_unlock(&queue.lock);
		free(command);
		pthread_mutex_lock(&queue.lock);
	}
}

/* settle may make the stream idle and drop a reference, which must not be the last one. */
static void run_taken(CUstream stream, uint64_t until)
{
	stream->references++;
	run_stream(stream, until);
	drop_reference(stream);
}

static void *work(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&queue.lock);
	for (;;) {
		for (int i = 0; !queue.first_ready && i < 1; i++) {
			pthread_mutex_unlock(&queue.lock);
			for (int spin = 0; spin < SPIN_ROUNDS && !__atomic_load_n(&queue.ready, __ATOMIC_RELAXED);
			     spin++)
				relax();
			pthread_mutex_lock(&queue.lock);
		}
		CUstream stream = queue.first_ready;
		queue.looking--;
		if (stream) {
			take_ready(stream);
			/* If there are more ready streams, another worker is woken or started for them. */
			if (queue.first_ready)
				want_worker();
			run_taken(stream, 0);
		} else {
			queue.sleeping++;
			pthread_cond_wait(&queue.work, &queue.lock);
			queue.sleeping--;
		}
		queue.looking++;
	}
	return NULL;
}

CUstream queue_stream_new(CUcontext context, queue_group_t *group, unsigned flags, int priority, bool legacy)
{
	CUstream stream = handle_new(HANDLE_STREAM, sizeof *stream);
	if (!stream)
		return NULL;
	stream->context = context;
	stream->group = group;
	stream->flags = flags;
	stream->priority = priority;
	stream->legacy = legacy;
	stream->blocking = !legacy && !(flags & CU_STREAM_NON_BLOCKING);
	stream->references = 1;
	pthread_cond_init(&stream->done, NULL);
	pthread_mutex_lock(&queue.lock);
	stream->id = ++queue.next_id;
	stream->next = group->first;
	if (group->first)
		group->first->previous = stream;
	group->first = stream;
	if (legacy)
		group->legacy = stream;
	CUstream gate = group->gate;
	uint64_t until = gate ? gate->submitted : 0;
	pthread_mutex_unlock(&queue.lock);
	if (!gate || queue_submit_wait(stream, gate, until))
		return stream;
	handle_retire(stream);
	queue_stream_release(stream);
	return NULL;
}

CUstream *queue_group_streams(queue_group_t *group, CUgreenCtx green, size_t *count)
{
	size_t n = 0;
	pthread_mutex_lock(&queue.lock);
	for (CUstream stream = group->first; stream; stream = stream->next)
		n++;
	CUstream *streams = malloc((n ? n : 1) * sizeof *streams);
	n = 0;
	/* green is set after the stream is listed: a stream that is being created now may be missed. */
	for (CUstream stream = group->first; stream && streams; stream = stream->next)
		if (!green || __atomic_load_n(&stream->green, __ATOMIC_RELAXED) == green) {
			stream->references++;
			streams[n++] = stream;
		}
	pthread_mutex_unlock(&queue.lock);
	*count = n;
	return streams;
}

CUstream queue_group_gate(CUcontext context, queue_group_t *group)
{
	pthread_mutex_lock(&queue.lock);
	CUstream gate = group->gate;
	pthread_mutex_unlock(&queue.lock);
	if (gate)
		return gate;
	CUstream made = queue_stream_new(context, group, CU_STREAM_NON_BLOCKING, 0, false);
	if (!made)
		return NULL;
	handle_retire(made); /* the program never gets this handle */
	pthread_mutex_lock(&queue.lock);
	gate = group->gate;
	if (!gate)
		group->gate = gate = made;
	pthread_mutex_unlock(&queue.lock);
	if (gate != made)
		queue_stream_release(made);
	return gate;
}

void queue_stream_hold(CUstream stream)
{
	pthread_mutex_lock(&queue.lock);
	stream->references++;
	pthread_mutex_unlock(&queue.lock);
}

void queue_stream_release(CUstream stream)
{
	pthread_mutex_lock(&queue.lock);
	drop_reference(stream);
	pthread_mutex_unlock(&queue.lock);
}

static void depend(command_t *command, CUstream on, uint64_t sequence)
{
	command->on = on;
	command->on_sequence = sequence;
	on->references++;
}

/* Orders nothing: who reads the number without the lock asks for what it has submitted itself, or has been told of. */
static void count_submission(CUstream stream)
{
	__atomic_store_n(&stream->submitted, stream->submitted + 1, __ATOMIC_RELAXED);
}

static void append(CUstream stream, command_t *command)
{
	command->next = NULL;
	count_submission(stream);
	command->sequence = stream->submitted;
	command->ticket = ++queue.ticket;
	if (stream->last)
		stream->last->next = command;
	else
		stream->first = command;
	stream->last = command;
}

/*
 * Follows the chain of blocked streams to its end. Returns the stream there, and outputs which of its commands to run.
 */
static CUstream bottom(CUstream stream, uint64_t *sequence)
{
	while (stream->state == QUEUE_BLOCKED) {
		*sequence = stream->first->on_sequence;
		stream = stream->first->on;
	}
	return stream;
}

/* With the lock held: runs commands or sleeps until the command is complete. The caller holds a reference. */
static void wait_locked(CUstream stream, uint64_t sequence)
{
	while (stream->completed < sequence) {
		uint64_t until = sequence;
		CUstream next = bottom(stream, &until);
		if (next->state == QUEUE_READY && !next->first->host_code) {
			take_ready(next);
			pay_worker();
			run_taken(next, until);
			continue;
		}
		pay_worker();
		stream->sleepers++;
		pthread_cond_wait(&stream->done, &queue.lock);
		stream->sleepers--;
	}
}

/*
 * The legacy stream's next command waits for all work of the blocking streams. The command itself waits for one of
 * them; for each other stream, a command that waits is inserted before it.
 */
static void order_legacy(CUstream stream, command_t *command)
{
	queue_group_t *group = stream->group;
	if (stream->detached || !group->busy)
		return;
	for (CUstream next, other = group->first; other; other = next) {
		next = other->next;
		if (!other->blocking || other->state == QUEUE_IDLE)
			continue;
		if (!command->on) {
			depend(command, other, other->submitted);
			continue;
		}
		command_t *wait = calloc(1, sizeof *wait);
		if (wait) {
			depend(wait, other, other->submitted);
			append(stream, wait);
			continue;
		}
		/* No memory for the command: wait here, then look at all streams again, as they may have changed. */
		other->references++;
		wait_locked(other, other->submitted);
		drop_reference(other);
		next = group->first;
	}
}

/* With the lock held. */
static void submit(CUstream stream, command_t *command)
{
	if (stream->legacy) {
		order_legacy(stream, command);
	} else if (stream->blocking && !command->on) {
		CUstream legacy = stream->group->legacy;
		if (legacy && legacy->state != QUEUE_IDLE)
			depend(command, legacy, legacy->submitted);
	}
	append(stream, command);
	if (stream->state == QUEUE_IDLE)
		settle(stream);
}

uint64_t queue_submit(CUstream stream, command_t *command)
{
	pthread_mutex_lock(&queue.lock);
	command->on = NULL;
	submit(stream, command);
	uint64_t sequence = stream->submitted;
	pthread_mutex_unlock(&queue.lock);
	return sequence;
}

bool queue_submit_wait(CUstream stream, CUstream on, uint64_t sequence)
{
	if (stream == on || queue_done(on, sequence))
		return true;
	command_t *wait = calloc(1, sizeof *wait), *order = calloc(1, sizeof *order);
	if (!wait || !order) {
		free(wait);
		free(order);
		return false;
	}
	pthread_mutex_lock(&queue.lock);
	/* The first command synchronizes with the default stream, the second waits for the other stream. */
	submit(stream, order);
	depend(wait, on, sequence);
	append(stream, wait);
	if (stream->state == QUEUE_IDLE)
		settle(stream);
	pthread_mutex_unlock(&queue.lock);
	return true;
}

/* True if a command of the stream would wait for nothing. With the lock held. */
static bool is_free(CUstream stream)
{
	const queue_group_t *group = stream->group;
	if (stream->state != QUEUE_IDLE)
		return false;
	if (stream->legacy)
		return stream->detached || !group->busy;
	return !stream->blocking || !group->legacy || group->legacy->state == QUEUE_IDLE;
}

bool queue_is_free(CUstream stream)
{
	pthread_mutex_lock(&queue.lock);
	bool free_now = is_free(stream);
	pthread_mutex_unlock(&queue.lock);
	return free_now;
}

bool queue_do(CUstream stream, void (*run)(const void *argument), const void *argument)
{
	pthread_mutex_lock(&queue.lock);
	bool free_now = is_free(stream);
	if (free_now)
		run(argument);
	pthread_mutex_unlock(&queue.lock);
	return free_now;
}

bool queue_claim(CUstream stream)
{
	pthread_mutex_lock(&queue.lock);
	bool free_now = is_free(stream);
	if (free_now) {
		count_submission(stream);
		stream->claim_ticket = ++queue.ticket;
		set_state(stream, QUEUE_RUNNING);
	}
	pthread_mutex_unlock(&queue.lock);
	return free_now;
}

void queue_unclaim(CUstream stream)
{
	pthread_mutex_lock(&queue.lock);
	stream->references++;
	stream->claim_ticket = 0;
	advance(stream);
	settle(stream);
	drop_reference(stream);
	pthread_mutex_unlock(&queue.lock);
}

uint64_t queue_submitted(CUstream stream)
{
	return __atomic_load_n(&stream->submitted, __ATOMIC_RELAXED); /* see count_submission */
}

bool queue_done(CUstream stream, uint64_t sequence)
{
	/* Pairs with the release in advance: a thread that sees the command complete sees what it wrote. */
	return __atomic_load_n(&stream->completed, __ATOMIC_ACQUIRE) >= sequence;
}

void queue_wait(CUstream stream, uint64_t sequence)
{
	if (queue_done(stream, sequence))
		return;
	pthread_mutex_lock(&queue.lock);
	stream->references++;
	/* A command that is running is often complete in a moment. */
	if (stream->state == QUEUE_RUNNING && stream->submitted == stream->completed + 1) {
		pay_worker();
		pthread_mutex_unlock(&queue.lock);
		for (int spin = 0; spin < SPIN_WAIT_ROUNDS && !queue_done(stream, sequence); spin++)
			relax();
		pthread_mutex_lock(&queue.lock);
	}
	wait_locked(stream, sequence);
	drop_reference(stream);
	pthread_mutex_unlock(&queue.lock);
}

static uint64_t oldest_ticket(const struct CUstream_st *stream)
{
	return stream->claim_ticket ? stream->claim_ticket : stream->first ? stream->first->ticket : UINT64_MAX;
}

void queue_wait_group(queue_group_t *group)
{
	pthread_mutex_lock(&queue.lock);
	uint64_t now = queue.ticket;
	CUstream stream = group->first;
	while (stream) {
		if (stream->state == QUEUE_IDLE || oldest_ticket(stream) > now) {
			stream = stream->next;
			continue;
		}
		bool all = !stream->last || stream->last->ticket <= now;
		stream->references++;
		wait_locked(stream, all ? stream->submitted : stream->completed + 1);
		drop_reference(stream);
		stream = group->first;
	}
	pthread_mutex_unlock(&queue.lock);
}

void queue_group_detach(queue_group_t *group)
{
	pthread_mutex_lock(&queue.lock);
	for (CUstream stream = group->first; stream; stream = stream->next)
		stream->detached = true;
	CUstream gate = group->gate;
	group->first = group->legacy = group->gate = NULL;
	if (gate)
		drop_reference(gate);
	pthread_mutex_unlock(&queue.lock);
}

CUstream queue_group_live(queue_group_t *group)
{
	pthread_mutex_lock(&queue.lock);
	CUstream stream = group->first;
	while (stream && !handle_valid(stream, HANDLE_STREAM))
		stream = stream->next;
	pthread_mutex_unlock(&queue.lock);
	return stream;
}

void queue_rest_begin(void)
{
	pthread_mutex_lock(&queue.lock);
	if (!--queue.running)
		pthread_cond_broadcast(&queue.alone);
	queue.resting++;
	if (queue.first_ready)
		want_worker();
	pthread_mutex_unlock(&queue.lock);
}

void queue_rest_end(void)
{
	/* Waits while queue_alone calls back, which holds the lock. */
	pthread_mutex_lock(&queue.lock);
	queue.running++;
	queue.resting--;
	pthread_mutex_unlock(&queue.lock);
}

int queue_alone(int (*call)(void *), void *argument)
{
	pthread_mutex_lock(&queue.lock);
	pay_worker();
	while (queue.running)
		pthread_cond_wait(&queue.alone, &queue.lock);
	int result = call(argument);
	pthread_mutex_unlock(&queue.lock);
	return result;
}
