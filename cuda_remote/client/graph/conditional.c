/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conditional handles. Kernels get the number of the handle from the program and set its value, so it is a number of the
 * worker's driver. CUDA binds a handle to the graph that it was made in: the worker keeps a graph of its driver with the
 * handles of one graph of the program (struct rc_conditionals), and builds executable graphs in copies of that graph.
 */
#include "cuda_remote/client/graph/graph_client.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <stdlib.h>
#include <string.h>

struct rc_conditionals {
	uint64_t graph;      /* id of the program's graph */
	struct rc_session *session;
	uint64_t handle;
	uint32_t made;       /* handles in the worker's graph */
	uint32_t references; /* atomic; one for each value */
};

static CUresult link_of(struct rc_session *session, struct rc_link **link)
{
	struct rc_route route = { session, session->primary, false };
	return rc_link_get(&route, false, link);
}

/* What has the handles that were made in the graph with this id; NULL: none was made. */
static struct rc_conditionals *find(CUgraph graph, uint64_t id)
{
	for (graph_handle_t *entry = graph->conditionals; entry; entry = entry->next) {
		struct rc_conditionals *found = entry->value->part;
		if (found->graph == id)
			return found;
	}
	for (CUgraphNode node = graph->first; node; node = node->next) {
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count; i++) {
			struct rc_conditionals *found = find(below[i], id);
			if (found)
				return found;
		}
	}
	return NULL;
}

static CUresult conditionals_new(CUgraph graph, struct rc_session *session, struct rc_conditionals **made)
{
	struct rc_conditionals *conditionals = calloc(1, sizeof *conditionals);
	if (!conditionals)
		return CUDA_ERROR_OUT_OF_MEMORY;
	conditionals->graph = graph->id;
	conditionals->session = session;
	CUresult result = rc_handle_new(RC_KIND_CONDITIONALS, session, &conditionals->handle);
	if (result == CUDA_SUCCESS)
		*made = conditionals;
	else
		free(conditionals);
	return result;
}

static void conditionals_free(struct rc_conditionals *conditionals)
{
	rc_handle_delete(conditionals->handle);
	free(conditionals);
}

/* The worker makes the graph for the handles with the first of them. */
static CUresult ask(struct rc_conditionals *conditionals, struct graph_conditional *value)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_conditional call;
	} message = { .call = { .conditionals = conditionals->handle, .context = (uint64_t)(uintptr_t)value->context,
				.value = value->default_value, .first = !conditionals->made,
				.flags = value->assign_default ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0 } };
	struct rc_link *link;
	CUresult result = link_of(conditionals->session, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_graph_conditional, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof value->handle)
		return rc_link_broken(link, RC_CALL_graph_conditional);
	memcpy(&value->handle, link->reply, sizeof value->handle);
	return CUDA_SUCCESS;
}

CUresult graph_driver_conditional_new(CUgraph graph, struct graph_conditional *value)
{
	struct rc_session *session = rc_handle_session((uint64_t)(uintptr_t)value->context);
	while (graph->owner)
		graph = graph->owner->graph;
	struct rc_conditionals *conditionals = find(graph, graph->id);
	if (conditionals && conditionals->session != session)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = conditionals ? CUDA_SUCCESS : conditionals_new(graph, session, &conditionals);
	if (result != CUDA_SUCCESS)
		return result;
	result = ask(conditionals, value);
	if (result == CUDA_SUCCESS) {
		conditionals->made++;
		__atomic_add_fetch(&conditionals->references, 1, __ATOMIC_RELAXED);
		value->part = conditionals;
	} else if (!conditionals->made) {
		conditionals_free(conditionals);
	}
	return result;
}

/* The executable graphs that use the values have ended, or their ends were sent before. */
void graph_driver_conditional_free(struct graph_conditional *value)
{
	struct rc_conditionals *conditionals = value->part;
	/* Orders all uses before the free: all releases pair with each other. */
	if (__atomic_sub_fetch(&conditionals->references, 1, __ATOMIC_ACQ_REL))
		return;
	struct {
		struct rc_wire_call head;
		uint64_t conditionals;
	} message = { .conditionals = conditionals->handle };
	struct rc_link *link;
	if (link_of(conditionals->session, &link) == CUDA_SUCCESS)
		rc_link_post(link, RC_CALL_graph_conditionals_free, 0, &message.head, sizeof message, NULL, 0);
	conditionals_free(conditionals);
}

/* Counts the handles of the graph and of those below it. False: they were made in several graphs. */
static bool count(CUgraph graph, struct rc_conditionals **conditionals, uint32_t *n)
{
	for (graph_handle_t *entry = graph->conditionals; entry; entry = entry->next, ++*n) {
		if (*conditionals && *conditionals != entry->value->part)
			return false;
		*conditionals = entry->value->part;
	}
	for (CUgraphNode node = graph->first; node; node = node->next) {
		unsigned below_count;
		CUgraph *below = graph_below(node, &below_count);
		for (unsigned i = 0; i < below_count; i++)
			if (!count(below[i], conditionals, n))
				return false;
	}
	return true;
}

CUresult rc_graph_conditionals(CUgraph graph, const struct rc_session *session, uint64_t *handle)
{
	struct rc_conditionals *conditionals = NULL;
	uint32_t n = 0;
	bool of_one_graph = count(graph, &conditionals, &n);
	*handle = 0;
	if (of_one_graph && !n)
		return CUDA_SUCCESS;
	/* The driver refuses a graph with a handle that no node uses. */
	if (!of_one_graph || conditionals->made != n) {
		hr_log_once(HR_LOG_WARN, "an executable graph needs all conditional handles of one graph, and no others");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	*handle = conditionals->handle;
	return conditionals->session == session ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
