/* SPDX-License-Identifier: BSD-3-Clause */
/* cuGraphDebugDotPrint: a graph in the DOT language (graphviz.org/doc/info/lang.html), graphs below it as clusters. */
#include "cuda_remote/graph/graph.h"

#include <stdio.h>

static const char *type_name(CUgraphNodeType type)
{
	static const char *const names[] = {
		"KERNEL", "MEMCPY", "MEMSET", "HOST", "CHILD_GRAPH", "EMPTY", "EVENT_WAIT", "EVENT_RECORD",
		"EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL",
	};
	return (size_t)type < sizeof names / sizeof *names ? names[type] : "?";
}

static bool asked(unsigned flags, unsigned flag)
{
	return flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

static void put_kernel(FILE *file, const graph_kernel_t *kernel, unsigned flags)
{
	const launch_shape_t *shape = &kernel->shape;
	fprintf(file, "\\n%s", graph_kernel_loaded(kernel) ? graph_driver_function_name(kernel->function) : "(unloaded)");
	if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
		fprintf(file, "\\ngrid %u %u %u, block %u %u %u, shared %u", shape->grid[0], shape->grid[1],
			shape->grid[2], shape->block[0], shape->block[1], shape->block[2], shape->dynamic_shared);
	if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES))
		fprintf(file, "\\ncooperative %d", shape->cooperative);
}

static void put_params(FILE *file, const struct CUgraphNode_st *node, unsigned flags)
{
	const CUgraphNodeParams *params = &node->params;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		put_kernel(file, node->kernel, flags);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
			fprintf(file, "\\n%zu x %zu x %zu bytes", params->memcpy.copyParams.WidthInBytes,
				params->memcpy.copyParams.Height, params->memcpy.copyParams.Depth);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
			fprintf(file, "\\n%#llx: %zu x %zu of %u bytes, value %u", params->memset.dst,
				params->memset.width, params->memset.height, params->memset.elementSize,
				params->memset.value);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
			fprintf(file, "\\ndata %p", params->host.userData);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
			fprintf(file, "\\nevent %p", (void *)params->eventRecord.event);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS))
			fprintf(file, "\\n%#llx: %zu bytes", params->alloc.dptr, params->alloc.bytesize);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS))
			fprintf(file, "\\n%#llx", params->free.dptr);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS))
			fprintf(file, "\\n%u operations", params->memOp.count);
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS))
			fprintf(file, "\\n%s of %u, handle %#llx", params->conditional.type ==
					CU_GRAPH_COND_TYPE_IF ? "IF" :
				params->conditional.type == CU_GRAPH_COND_TYPE_WHILE ? "WHILE" : "SWITCH",
				params->conditional.size, (unsigned long long)params->conditional.handle);
		break;
	default:
		break;
	}
}

static void put_graph(FILE *file, CUgraph graph, unsigned flags)
{
	unsigned long long number = graph->id;
	fprintf(file, "subgraph cluster_%llu {\nlabel=\"graph_%llu\";\n", number, number);
	for (CUgraphNode node = graph->first; node; node = node->next) {
		fprintf(file, "\"node_%llu\"[shape=\"%s\" label=\"%llu\\n%s", (unsigned long long)node->id,
			node->params.type == CU_GRAPH_NODE_TYPE_KERNEL ? "octagon" : "record",
			(unsigned long long)node->id, type_name(node->params.type));
		put_params(file, node, flags);
		if (asked(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
			fprintf(file, "\\nnode %p", (void *)node);
		fprintf(file, "\"];\n");
	}
	for (CUgraphNode node = graph->first; node; node = node->next)
		for (uint32_t i = 0; i < node->after.count; i++)
			fprintf(file, "\"node_%llu\" -> \"node_%llu\";\n", (unsigned long long)node->id,
				(unsigned long long)node->after.at[i].node->id);
	for (CUgraphNode node = graph->first; node; node = node->next) {
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count; i++) {
			put_graph(file, below[i], flags);
			if (below[i]->first)
				fprintf(file, "\"node_%llu\" -> \"node_%llu\"[style=\"dashed\"];\n",
					(unsigned long long)node->id, (unsigned long long)below[i]->first->id);
		}
	}
	fprintf(file, "}\n");
}

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	if (!path || !handle_valid(hGraph, HANDLE_GRAPH) || flags >=
			2u * CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS)
		return CUDA_ERROR_INVALID_VALUE;
	FILE *file = fopen(path, "w");
	if (!file)
		return CUDA_ERROR_OPERATING_SYSTEM;
	fprintf(file, "digraph dot {\n");
	put_graph(file, hGraph, flags);
	fprintf(file, "}\n");
	bool bad = ferror(file);
	return fclose(file) || bad ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
