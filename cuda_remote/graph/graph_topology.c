/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that create, copy and destroy graphs, and list and change their edges. */
#include "cuda_remote/graph/graph.h"

#include <string.h>

static CUresult enter_graph(CUgraph graph)
{
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	return handle_valid(graph, HANDLE_GRAPH) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult enter_node(CUgraphNode node)
{
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	return handle_valid(node, HANDLE_GRAPH_NODE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	if (!phGraph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraph graph = graph_new(NULL);
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*phGraph = graph;
	return CUDA_SUCCESS;
}

/* A child or body graph belongs to its node; a graph that a stream captures into belongs to the capture. */
CUresult cuGraphDestroy(CUgraph hGraph)
{
	CUresult result = enter_graph(hGraph);
	if (result)
		return result;
	if (hGraph->owner || graph_capturing(hGraph))
		return CUDA_ERROR_INVALID_VALUE;
	graph_free(hGraph);
	return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	CUresult result = enter_graph(originalGraph);
	if (result)
		return result;
	if (!phGraphClone)
		return CUDA_ERROR_INVALID_VALUE;
	if (graph_has_memory(originalGraph) || graph_has(originalGraph, CU_GRAPH_NODE_TYPE_CONDITIONAL, true))
		return CUDA_ERROR_NOT_SUPPORTED;
	return graph_clone(originalGraph, false, phGraphClone);
}

CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
	CUresult result = enter_node(hOriginalNode);
	if (!result)
		result = enter_graph(hClonedGraph);
	if (result)
		return result;
	CUgraphNode found = phNode ? graph_find(hClonedGraph, hOriginalNode->id) : NULL;
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	*phNode = found;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	CUresult result = enter_node(hNode);
	if (result)
		return result;
	if (!type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = hNode->params.type;
	return CUDA_SUCCESS;
}

/* Writes up to *count nodes and fills the rest with NULL; if the array is NULL, sets *count to the number of nodes. */
static CUresult put_nodes(CUgraph graph, bool roots, CUgraphNode *nodes, size_t *count)
{
	size_t found = 0;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (roots && node->before.count)
			continue;
		if (nodes && found == *count)
			return CUDA_SUCCESS;
		if (nodes)
			nodes[found] = node;
		found++;
	}
	for (size_t i = found; nodes && i < *count; i++)
		nodes[i] = NULL;
	*count = found;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	CUresult result = enter_graph(hGraph);
	return result ? result : put_nodes(hGraph, false, nodes, numNodes);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	CUresult result = enter_graph(hGraph);
	return result ? result : put_nodes(hGraph, true, rootNodes, numRootNodes);
}

static bool plain(const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData zero;
	return !memcmp(data, &zero, sizeof zero);
}

/* put_nodes for edges. CUDA_ERROR_LOSSY_QUERY: edges have data, and the caller did not ask for it. */
static CUresult put_edges(const graph_edges_t *edges, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
	if (!count || (data && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!nodes) {
		*count = edges->count;
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < *count && i < edges->count; i++)
		if (!data && !plain(&edges->at[i].data))
			return CUDA_ERROR_LOSSY_QUERY;
	for (size_t i = 0; i < *count; i++) {
		bool there = i < edges->count;
		nodes[i] = there ? edges->at[i].node : NULL;
		if (data)
			data[i] = there ? edges->at[i].data : (CUgraphEdgeData){ 0 };
	}
	if (*count > edges->count)
		*count = edges->count;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
				       size_t *numDependencies)
{
	CUresult result = enter_node(hNode);
	return result ? result : put_edges(&hNode->before, dependencies, edgeData, numDependencies);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
	return cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
					 size_t *numDependentNodes)
{
	CUresult result = enter_node(hNode);
	return result ? result : put_edges(&hNode->after, dependentNodes, edgeData, numDependentNodes);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
	return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

static size_t count_edges(CUgraph graph)
{
	size_t count = 0;
	for (CUgraphNode node = graph->first; node; node = node->next)
		count += node->after.count;
	return count;
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
			    size_t *numEdges)
{
	CUresult result = enter_graph(hGraph);
	if (result)
		return result;
	if (!numEdges || !from != !to || (edgeData && !from))
		return CUDA_ERROR_INVALID_VALUE;
	if (!from) {
		*numEdges = count_edges(hGraph);
		return CUDA_SUCCESS;
	}
	size_t found = 0;
	for (CUgraphNode node = hGraph->first; node; node = node->next)
		for (uint32_t i = 0; i < node->after.count && found < *numEdges; i++, found++) {
			if (!edgeData && !plain(&node->after.at[i].data))
				return CUDA_ERROR_LOSSY_QUERY;
			from[found] = node;
			to[found] = node->after.at[i].node;
			if (edgeData)
				edgeData[found] = node->after.at[i].data;
		}
	for (size_t i = found; i < *numEdges; i++) {
		from[i] = to[i] = NULL;
		if (edgeData)
			edgeData[i] = (CUgraphEdgeData){ 0 };
	}
	*numEdges = found;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	return cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

static CUresult enter_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	CUresult result = enter_graph(graph);
	if (result)
		return result;
	if (count && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!handle_valid(from[i], HANDLE_GRAPH_NODE) || from[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	CUresult result = enter_edges(hGraph, from, to, numDependencies);
	for (size_t i = 0; i < numDependencies && !result; i++)
		result = graph_connect(from[i], to[i], edgeData ? &edgeData[i] : NULL);
	return result;
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
				size_t numDependencies)
{
	return cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

static bool take_edge(graph_edges_t *edges, CUgraphNode node, const CUgraphEdgeData *data)
{
	for (uint32_t i = 0; i < edges->count; i++) {
		if (edges->at[i].node != node || memcmp(&edges->at[i].data, data, sizeof *data))
			continue;
		memmove(&edges->at[i], &edges->at[i + 1], (--edges->count - i) * sizeof *edges->at);
		return true;
	}
	return false;
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
				      const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	static const CUgraphEdgeData zero;
	CUresult result = enter_edges(hGraph, from, to, numDependencies);
	if (!result && numDependencies && graph_has_memory(hGraph))
		result = CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < numDependencies && !result; i++) {
		const CUgraphEdgeData *data = edgeData ? &edgeData[i] : &zero;
		if (!handle_valid(to[i], HANDLE_GRAPH_NODE) || !take_edge(&from[i]->after, to[i], data))
			return CUDA_ERROR_INVALID_VALUE;
		take_edge(&to[i]->before, from[i], data);
	}
	return result;
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
				   size_t numDependencies)
{
	return cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode)
{
	CUresult result = enter_node(hNode);
	if (result)
		return result;
	if (graph_capturing(hNode->graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (graph_has_memory(hNode->graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	graph_node_free(hNode);
	return CUDA_SUCCESS;
}
