/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gates, by which streams of this server wait for another server (struct rc_wire_peer_gate). A gate is a word of pinned
 * host memory, and the stream waits for its value: no thread waits with it, so gates cannot block each other. Callbacks
 * of the driver report the gates that streams have reached; one thread of the client waits for the reports in peer_wait.
 */
#include "cuda_remote/server/internal.h"
#include "cuda_remote/written_memory.h"

#include <stdlib.h>

#define GATES_MAX 65536
/* Of one page. No second page is allocated while streams wait: a driver may wait for them first. */
#define WORDS GATES_MAX
#define REPORTS_MAX 65536 /* that the client does not have yet, or that are still to come */
#define BUCKETS 256

/* Pinned memory. Its words are used again: each use waits for a larger value. */
struct page {
	struct page *next;
	CUcontext context; /* that it was allocated in; NULL: that context has ended, and the memory with it */
	uint32_t *memory;
	unsigned n_unused;
	uint16_t unused[WORDS];
	uint32_t value[WORDS]; /* that the last step of the newest use waits for */
};

struct gate {
	struct gate *next;
	uint64_t id;
	struct page *page;
	uint16_t word;  /* of the page */
	uint32_t first; /* value of step 0 */
};

/* A report that the client does not have yet. */
struct server_report {
	struct server_report *next;
	struct rc_wire_peer_state state;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t reported = PTHREAD_COND_INITIALIZER;
#define LOAD_WAITS_S 10

/* Ids with this bit are of copies, not of the client's gates; with the second bit too: of the steps that the device has done. */
#define OF_COPY (1ull << 63)
#define DONE (1ull << 62)

static struct page *pages;
static struct gate *gates[BUCKETS];
static unsigned n_gates;
static unsigned n_held;  /* those of them by which streams wait for another server */
static unsigned loading; /* threads that load code, or are about to */
static bool exclusive;   /* no stream may begin to wait for another server until these threads have ended loading */
static pthread_cond_t gates_change = PTHREAD_COND_INITIALIZER;
static struct server_report *reports, **reports_end = &reports;
static unsigned n_reports; /* that the client does not have, or that are still to come */
static unsigned n_kept;    /* in the list */
static bool due;           /* the list is to be given to the client now */
static bool urgent;        /* the client waits for all reports */
static bool broken;

/* ---- reports ---- */

static void report(struct server_report *what, CUresult result, uint32_t flags, bool now)
{
	pthread_mutex_lock(&lock);
	what->state.result = result;
	what->state.flags = flags;
	what->next = NULL;
	*reports_end = what;
	reports_end = &what->next;
	n_kept++;
	now = now || urgent || n_kept >= RC_PEER_STATES_KEPT;
	due = due || now;
	if (now)
		pthread_cond_signal(&reported);
	pthread_mutex_unlock(&lock);
}

void server_peer_report(struct server_report *what, CUresult result, uint32_t flags)
{
	report(what, result, flags, true);
}

void server_peer_report_later(struct server_report *what)
{
	report(what, CUDA_SUCCESS, 0, false);
}

/* On a thread of the driver. */
static void arrived(CUstream stream, CUresult result, void *argument)
{
	(void)stream;
	server_peer_report(argument, result, 0);
}

struct server_report *server_peer_report_new(uint64_t gate)
{
	struct server_report *made = NULL;
	pthread_mutex_lock(&lock);
	if (n_reports < REPORTS_MAX && (made = calloc(1, sizeof *made))) {
		made->state.gate = gate;
		n_reports++;
	}
	pthread_mutex_unlock(&lock);
	return made;
}

CUresult serve_peer_wait(struct server_call *call)
{
	struct rc_wire_peer_state states[RC_PEER_STATES_MAX];
	size_t n = 0;
	server_order_release(call);
	pthread_mutex_lock(&lock);
	while (!due && !broken)
		pthread_cond_wait(&reported, &lock);
	while (reports && n < RC_PEER_STATES_MAX) {
		struct server_report *first = reports;
		states[n++] = first->state;
		reports = first->next;
		n_reports--;
		n_kept--;
		free(first);
	}
	if (!reports) {
		reports_end = &reports;
		due = false;
	}
	urgent = urgent && n_reports;
	pthread_mutex_unlock(&lock);
	return n ? server_give_bytes(call, states, n * sizeof *states) : CUDA_ERROR_UNKNOWN;
}

/* The reports of all copies that were named before this call come as soon as there are any. */
CUresult serve_peer_flush(struct server_call *call)
{
	(void)call;
	pthread_mutex_lock(&lock);
	urgent = n_reports;
	due = due || n_kept;
	if (due)
		pthread_cond_signal(&reported);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* ---- gates ---- */

static void (*written)(void); /* NULL: the driver needs no hint */
static pthread_once_t written_once = PTHREAD_ONCE_INIT;

static void find_written(void)
{
	static const CUuuid id = RC_WRITTEN_MEMORY_UUID;
	const void *table;
	if (!driver.cuGetExportTable || driver.cuGetExportTable(&table, &id) != CUDA_SUCCESS)
		return;
	const struct rc_written_memory *found = table;
	if (found->size == sizeof *found)
		written = found->written;
}

/* One more page, in the first device's primary context, which lasts unless the client resets it. Not under the lock: threads that
 * open gates take the lock, and while a driver loads code, its functions wait for streams that wait at gates. */
static CUresult page_add(struct server_thread *thread)
{
	CUcontext context = __atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED);
	struct page *page = calloc(1, sizeof *page);
	void *memory = NULL;
	if (!page)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = driver.cuMemHostAlloc ? driver.cuCtxSetCurrent(context) : CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = driver.cuMemHostAlloc(&memory, WORDS * sizeof *page->memory,
					       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	driver.cuCtxSetCurrent(thread->current);
	if (result != CUDA_SUCCESS) {
		free(page);
		return result;
	}
	page->context = context;
	page->memory = memory;
	for (unsigned i = 0; i < WORDS; i++) {
		page->memory[i] = 0;
		page->unused[page->n_unused++] = (uint16_t)i;
	}
	pthread_mutex_lock(&lock);
	page->next = pages;
	pages = page;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static struct page *page_with_room(void)
{
	struct page *page = pages;
	while (page && (!page->context || !page->n_unused))
		page = page->next;
	return page;
}

/* A device that sees the value also sees what was copied to it before: the client opens a gate after that copy. */
static void gate_let_go(struct gate *gate)
{
	struct page *page = gate->page;
	if (page->context) {
		__atomic_store_n(&page->memory[gate->word], page->value[gate->word], __ATOMIC_RELEASE);
		page->unused[page->n_unused++] = gate->word;
		if (written)
			written();
	}
	n_gates--;
	if (!(gate->id & OF_COPY) && !--n_held)
		pthread_cond_broadcast(&gates_change);
	free(gate);
}

/* The closed gate with this id, or NULL. Under the lock. */
static struct gate *gate_find(uint64_t id)
{
	struct gate *gate = gates[id % BUCKETS];
	while (gate && gate->id != id)
		gate = gate->next;
	return gate;
}

/* A closed gate in the page, or, if the worker is ending, an open one. The id must not be that of a closed gate, as it names the gate
 * that opens. Under the lock. */
static CUresult gate_make(struct page *page, uint64_t id, uint32_t steps, struct server_gate_place *place)
{
	if (gate_find(id))
		return CUDA_ERROR_INVALID_VALUE;
	struct gate *gate = n_gates < GATES_MAX ? malloc(sizeof *gate) : NULL;
	if (!gate)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint16_t word = page->unused[--page->n_unused];
	*gate = (struct gate){ gates[id % BUCKETS], id, page, word, page->value[word] + 1 };
	*place = (struct server_gate_place){ &page->memory[word], gate->first };
	page->value[word] += steps;
	n_gates++;
	n_held += !(id & OF_COPY);
	if (broken)
		gate_let_go(gate);
	else
		gates[id % BUCKETS] = gate;
	return CUDA_SUCCESS;
}

void server_gate_pass(uint64_t id, uint32_t step)
{
	pthread_mutex_lock(&lock);
	struct gate *gate = gate_find(id);
	if (gate && gate->page->context) {
		__atomic_store_n(&gate->page->memory[gate->word], gate->first + step, __ATOMIC_RELEASE);
		if (written)
			written();
	}
	pthread_mutex_unlock(&lock);
}

void server_gate_open(uint64_t id)
{
	pthread_mutex_lock(&lock);
	struct gate **at = &gates[id % BUCKETS];
	while (*at && (*at)->id != id)
		at = &(*at)->next;
	struct gate *found = *at;
	if (found) {
		*at = found->next;
		gate_let_go(found);
	}
	pthread_mutex_unlock(&lock);
}

uint32_t server_gate_written(uint64_t id)
{
	pthread_mutex_lock(&lock);
	struct gate *gate = gate_find(id);
	uint32_t steps = 0;
	if (gate && gate->page->context) {
		uint32_t value = __atomic_load_n(&gate->page->memory[gate->word], __ATOMIC_ACQUIRE);
		steps = (int32_t)(value - gate->first) < 0 ? 0 : value - gate->first + 1;
	}
	pthread_mutex_unlock(&lock);
	return steps;
}

CUresult server_gate_write(CUstream stream, const struct server_gate_place *place, uint32_t step)
{
	if (!driver.cuStreamWriteValue32_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver.cuStreamWriteValue32_v2(stream, (CUdeviceptr)(uintptr_t)place->word, place->value + step,
					      CU_STREAM_WRITE_VALUE_DEFAULT);
}

uint64_t server_gate_of_copy(uint64_t copy)
{
	return copy | OF_COPY;
}

uint64_t server_gate_of_done(uint64_t copy)
{
	return copy | OF_COPY | DONE;
}

bool server_gates_of_copy_exist(uint64_t copy)
{
	pthread_mutex_lock(&lock);
	bool exist = gate_find(server_gate_of_copy(copy)) || gate_find(server_gate_of_done(copy));
	pthread_mutex_unlock(&lock);
	return exist;
}

CUresult server_gate_make(struct server_thread *thread, uint64_t id, uint32_t steps, struct server_gate_place *place)
{
	if (!driver.cuStreamWaitValue32_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct timespec until;
	int error = 0;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LOAD_WAITS_S;
	pthread_once(&written_once, find_written);
	pthread_mutex_lock(&lock);
	/* Not longer: the driver that loads code may wait for a stream that a later call lets go on. */
	while (exclusive && !(id & OF_COPY) && !broken && !error)
		error = pthread_cond_timedwait(&gates_change, &lock, &until);
	struct page *page;
	CUresult result = CUDA_SUCCESS;
	while (!(page = page_with_room()) && result == CUDA_SUCCESS) {
		pthread_mutex_unlock(&lock);
		result = page_add(thread);
		pthread_mutex_lock(&lock);
	}
	if (page)
		result = gate_make(page, id, steps, place);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult server_gate_hold(CUstream stream, const struct server_gate_place *place, uint32_t step)
{
	return driver.cuStreamWaitValue32_v2(stream, (CUdeviceptr)(uintptr_t)place->word, place->value + step,
					     CU_STREAM_WAIT_VALUE_GEQ);
}

/* Puts a closed gate into the stream. */
static CUresult hold(struct server_thread *thread, CUstream stream, uint64_t id)
{
	struct server_gate_place place = { NULL, 0 };
	CUresult result = server_gate_make(thread, id, 1, &place);
	if (result == CUDA_SUCCESS && (result = server_gate_hold(stream, &place, 0)) != CUDA_SUCCESS)
		server_gate_open(id);
	return result;
}

/* Reports the gate when the stream arrives. If that fails, the failure is reported, as the client waits for the report. */
static CUresult tell(CUstream stream, uint64_t id, CUresult result)
{
	struct server_report *made = server_peer_report_new(id);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamAddCallback ? driver.cuStreamAddCallback(stream, arrived, made, 0) :
						      CUDA_ERROR_NOT_SUPPORTED;
	if (result != CUDA_SUCCESS)
		server_peer_report(made, result, 0);
	return result;
}

CUresult serve_peer_gate(struct server_call *call)
{
	struct rc_wire_peer_gate args;
	void *stream = NULL;
	if (!server_take_into(call, &args, sizeof args) || !args.flags || args.flags & ~(RC_PEER_TELL | RC_PEER_HOLD) || args.gate & OF_COPY)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, args.stream, &stream);
	if (args.flags & RC_PEER_TELL)
		result = tell(stream, args.gate, result);
	if (result == CUDA_SUCCESS && args.flags & RC_PEER_HOLD)
		result = hold(call->thread, stream, args.gate);
	return result;
}

/* A stream of its own waits for the event, so that no event waits for another one's report. */
CUresult serve_peer_event(struct server_call *call)
{
	struct rc_wire_peer_event args;
	CUstream stream = NULL;
	void *event;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_EVENT, args.event, &event);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamCreate && driver.cuStreamDestroy_v2 && driver.cuStreamWaitEvent ?
				 driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) :
				 CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamWaitEvent(stream, event, 0);
	result = tell(stream, args.gate, result);
	if (stream)
		driver.cuStreamDestroy_v2(stream); /* the driver ends the stream when its work is done */
	return result;
}

/* A gate that the client does not have is one that could not be made, which has been reported. */
CUresult serve_peer_open(struct server_call *call)
{
	struct rc_wire_peer_state args;
	if (!server_take_into(call, &args, sizeof args) || args.gate & OF_COPY)
		return CUDA_ERROR_INVALID_VALUE;
	/* Latched before the stream goes on: the call that waits for the stream reports it. */
	if (args.result)
		server_latch_set(call->number, RC_CALL_peer_open, 0, (CUresult)args.result);
	server_gate_open(args.gate);
	return CUDA_SUCCESS;
}

void server_peer_break(void)
{
	pthread_mutex_lock(&lock);
	broken = true;
	for (int i = 0; i < BUCKETS; i++)
		while (gates[i]) {
			struct gate *gate = gates[i];
			gates[i] = gate->next;
			gate_let_go(gate);
		}
	pthread_cond_broadcast(&reported);
	pthread_cond_broadcast(&gates_change);
	pthread_mutex_unlock(&lock);
}

/* The software GPU waits for no stream when it loads code. Of another driver this is not known. */
void server_gates_load_begin(void)
{
	struct timespec until;
	int error = 0;
	pthread_once(&written_once, find_written);
	pthread_mutex_lock(&lock);
	if (!written) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += LOAD_WAITS_S;
		while (n_held && !broken && !error)
			error = pthread_cond_timedwait(&gates_change, &lock, &until);
		exclusive = !n_held;
	}
	loading++;
	pthread_mutex_unlock(&lock);
	if (error)
		hr_log(HR_LOG_WARN, "code is loaded although a stream has waited for another server for %d s; if the driver waits "
		       "for the stream, the program hangs", LOAD_WAITS_S);
}

void server_gates_load_end(void)
{
	pthread_mutex_lock(&lock);
	if (!--loading) {
		exclusive = false;
		pthread_cond_broadcast(&gates_change);
	}
	pthread_mutex_unlock(&lock);
}

void server_peer_forget(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (struct page *page = pages; page; page = page->next)
		if (page->context == context)
			page->context = NULL;
	pthread_mutex_unlock(&lock);
}
