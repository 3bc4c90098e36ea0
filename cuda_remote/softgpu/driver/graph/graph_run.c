/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a graph. Nodes whose dependencies are complete are in a list, from which the launch's own thread and its helpers
 * take them. Nodes that wait for something outside of the graph (an event, a value in memory) are in another list,
 * which the launch's own thread polls. A helper is a command in a stream of its own: if no worker thread is free for
 * it, the launch completes without it.
 */
#include "cuda_remote/softgpu/driver/graph/graph_run.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define LOOK_AGAIN_NS 50000

/* A node on one of the lists. */
typedef struct item {
	struct item *next;
	CUgraphNode node;
	uint32_t waits_for; /* dependencies that are not done */
	unsigned progress;
	int priority;
} item_t;

typedef struct graph_run {
	graph_launch_t *launch;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a node became ready, or the last node is complete */
	/* Under the executable graph's short_lock: */
	struct graph_run *next_short;
	bool is_short; /* on its list, with a reference */
	/* Under lock: */
	unsigned references; /* the owner, helpers */
	uint32_t remaining;
	item_t *ready, *waiting;
	item_t items[];
} run_t;

typedef struct helper {
	command_t command;
	run_t *run;       /* a reference */
	CUgraphExec exec; /* a reference */
	unsigned index;
} helper_t;

static void run_release(run_t *run)
{
	pthread_mutex_lock(&run->lock);
	bool last = !--run->references;
	pthread_mutex_unlock(&run->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&run->lock);
	pthread_cond_destroy(&run->changed);
	free(run);
}

/* The highest priority first; among equals, in the order in which they became ready. */
static void list(item_t **at, item_t *item)
{
	while (*at && (*at)->priority <= item->priority)
		at = &(*at)->next;
	item->next = *at;
	*at = item;
}

static int priority_of(const graph_launch_t *launch, CUgraphNode node)
{
	const uint32_t bit = 1u << CU_LAUNCH_ATTRIBUTE_PRIORITY;
	if (!launch->by_priority || !node->kernel || !(node->kernel->set & bit))
		return 0;
	return node->kernel->values[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority;
}

static run_t *run_new(graph_launch_t *launch, CUgraph graph)
{
	run_t *run = calloc(1, sizeof *run + graph->count * sizeof *run->items);
	if (!run)
		return NULL;
	pthread_mutex_init(&run->lock, NULL);
	pthread_cond_init(&run->changed, NULL);
	run->launch = launch;
	run->references = 1;
	run->remaining = graph->count;
	for (CUgraphNode node = graph->first; node; node = node->next) {
		item_t *item = &run->items[node->index];
		item->node = node;
		item->priority = priority_of(launch, node);
		item->waits_for = node->before.count;
		if (!item->waits_for)
			list(&run->ready, item);
	}
	return run;
}

/* With the lock held. */
static void complete(run_t *run, const item_t *item)
{
	const graph_edges_t *after = &item->node->after;
	bool wake = !--run->remaining;
	for (uint32_t i = 0; i < after->count; i++) {
		item_t *next = &run->items[after->at[i].node->index];
		if (--next->waits_for)
			continue;
		list(&run->ready, next);
		wake = true;
	}
	if (wake)
		pthread_cond_broadcast(&run->changed);
}

static void hire(run_t *run);

/* Runs ready nodes until none is left. Called with the lock held; releases it meanwhile. */
static void run_ready(run_t *run)
{
	while (run->ready) {
		item_t *item = run->ready;
		run->ready = item->next;
		if (run->ready)
			hire(run);
		pthread_mutex_unlock(&run->lock);
		bool done = graph_node_run(run->launch, item->node, &item->progress);
		pthread_mutex_lock(&run->lock);
		if (done)
			complete(run, item);
		else
			list(&run->waiting, item);
	}
}

static CUresult help(command_t *command)
{
	helper_t *helper = (helper_t *)command;
	run_t *run = helper->run;
	pthread_mutex_lock(&run->lock);
	run_ready(run);
	/* The launch's own thread polls the nodes that this helper left waiting. */
	if (run->waiting)
		pthread_cond_broadcast(&run->changed);
	__atomic_add_fetch(&helper->exec->run->leaving, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&run->lock);
	return CUDA_SUCCESS;
}

/* The run that has lacked a helper for longest, with the list's reference; NULL: none. */
static run_t *take_short(CUgraphExec exec)
{
	pthread_mutex_lock(&exec->run->short_lock);
	run_t *run = exec->run->first_short;
	if (run) {
		exec->run->first_short = run->next_short;
		run->is_short = false;
	}
	pthread_mutex_unlock(&exec->run->short_lock);
	return run;
}

/*
 * Gives a free helper to a run that lacks one. The helper may have been started for a launch that ended before the
 * helper began. A run that looked for a helper meanwhile could not wait for it, and gets it here.
 */
static void hand_over(CUgraphExec exec)
{
	bool hired = false;
	for (run_t *run; !hired && (run = take_short(exec)); run_release(run)) {
		pthread_mutex_lock(&run->lock);
		hired = run->ready;
		if (hired) /* so its launch has not ended */
			hire(run);
		pthread_mutex_unlock(&run->lock);
	}
}

/* The launch may be complete by now, and its executable graph destroyed: the helper has references to what it uses. */
static void help_finish(command_t *command)
{
	helper_t *helper = (helper_t *)command;
	/* Pairs with hire: once hire sees the bit cleared, the helper's stream has nothing else to do. This comes
	 * before everything that takes a lock, because hire holds one while it waits for the bit. */
	__atomic_and_fetch(&helper->exec->run->busy, ~(1u << helper->index), __ATOMIC_RELEASE);
	__atomic_sub_fetch(&helper->exec->run->leaving, 1, __ATOMIC_RELEASE);
	hand_over(helper->exec);
	run_release(helper->run);
	graph_exec_release(helper->exec);
}

/*
 * A free helper; -1: all are busy. Waits for a helper that is leaving, perhaps another launch's: otherwise its node
 * would not run beside this one, and kernels may wait for each other.
 */
static int free_helper(CUgraphExec exec)
{
	for (;;) {
		/*
		 * Read first, so that a helper which leaves after this is not missed: it clears its bit before it
		 * decrements the count.
		 */
		uint32_t leaving = __atomic_load_n(&exec->run->leaving, __ATOMIC_ACQUIRE);
		for (unsigned i = 0; i < exec->run->helpers && exec->run->helper[i]; i++)
			if (!(__atomic_fetch_or(&exec->run->busy, 1u << i, __ATOMIC_ACQUIRE) & 1u << i))
				return (int)i;
		if (!leaving)
			return -1;
		sched_yield();
	}
}

/* free_helper; if there is none, the next free helper finds the run in the list. With the run's lock held. */
static int free_helper_now_or_later(CUgraphExec exec, run_t *run)
{
	pthread_mutex_lock(&exec->run->short_lock);
	/* Again: a helper that became free meanwhile may have looked at the list too early. */
	int i = free_helper(exec);
	if (i < 0 && !run->is_short) {
		run_t **at = &exec->run->first_short;
		while (*at)
			at = &(*at)->next_short;
		*at = run;
		run->next_short = NULL;
		run->is_short = true;
		run->references++;
	}
	pthread_mutex_unlock(&exec->run->short_lock);
	return i;
}

/* Removes a complete run from the list of runs that lack a helper. */
static void want_no_more(CUgraphExec exec, run_t *run)
{
	pthread_mutex_lock(&exec->run->short_lock);
	bool listed = run->is_short;
	if (listed) {
		run_t **at = &exec->run->first_short;
		while (*at != run)
			at = &(*at)->next_short;
		*at = run->next_short;
		run->is_short = false;
	}
	pthread_mutex_unlock(&exec->run->short_lock);
	if (listed)
		run_release(run);
}

/* Starts another helper if one is free. With the lock held. */
static void hire(run_t *run)
{
	CUgraphExec exec = run->launch->exec;
	int i = free_helper(exec);
	if (i < 0)
		i = free_helper_now_or_later(exec, run);
	if (i < 0)
		return;
	helper_t *helper = calloc(1, sizeof *helper);
	if (!helper) {
		__atomic_and_fetch(&exec->run->busy, ~(1u << i), __ATOMIC_RELAXED);
		return;
	}
	helper->command.run = help;
	helper->command.finish = help_finish;
	helper->command.despite_fault = true; /* nodes check their own context */
	helper->command.host_code = exec->run->host_nodes;
	helper->run = run;
	helper->exec = exec;
	helper->index = (unsigned)i;
	run->references++;
	__atomic_add_fetch(&exec->references, 1, __ATOMIC_RELAXED);
	queue_submit(exec->run->helper[i], &helper->command);
}

/* Tries the waiting nodes again. Called with the lock held; releases it meanwhile. True if one is complete. */
static bool look_again(run_t *run)
{
	item_t *items = run->waiting;
	bool any = false;
	run->waiting = NULL;
	while (items) {
		item_t *item = items;
		items = item->next;
		pthread_mutex_unlock(&run->lock);
		bool done = graph_node_run(run->launch, item->node, &item->progress);
		pthread_mutex_lock(&run->lock);
		if (done)
			complete(run, item);
		else
			list(&run->waiting, item);
		any = any || done;
	}
	return any;
}

static void sleep_a_little(run_t *run)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_AGAIN_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	queue_rest_begin();
	pthread_cond_timedwait(&run->changed, &run->lock, &until);
	queue_rest_end();
}

void graph_run_one(graph_launch_t *launch, CUgraph graph)
{
	run_t *run = run_new(launch, graph);
	if (!run) {
		graph_fault(launch, launch->context, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	pthread_mutex_lock(&run->lock);
	while (run->remaining) {
		run_ready(run);
		if (!run->remaining)
			break;
		if (!run->waiting)
			pthread_cond_wait(&run->changed, &run->lock);
		else if (!look_again(run) && !run->ready)
			sleep_a_little(run);
	}
	pthread_mutex_unlock(&run->lock);
	want_no_more(launch->exec, run);
	run_release(run);
}
