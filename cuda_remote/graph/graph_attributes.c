/* SPDX-License-Identifier: BSD-3-Clause */
/* Launch attributes of kernel nodes (CUlaunchAttributeID in cuda.h). */
#include "cuda_remote/graph/graph.h"

#include <stdlib.h>

_Static_assert(CU_LAUNCH_ATTRIBUTE_MAX <= GRAPH_ATTRIBUTES, "a bit for each attribute");

/* The attributes that CUDA permits for graph nodes and this device supports. */
static CUresult known(CUlaunchAttributeID attribute)
{
	switch (attribute) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Changes the launch's shape, if the attribute is part of it. */
static CUresult reshape(graph_kernel_t *kernel, CUlaunchAttributeID attribute, const CUlaunchAttributeValue *value)
{
	launch_shape_t shape = kernel->shape;
	if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
		shape.cooperative = value->cooperative;
	} else if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
		shape.cluster[0] = value->clusterDim.x;
		shape.cluster[1] = value->clusterDim.y;
		shape.cluster[2] = value->clusterDim.z;
	} else {
		return CUDA_SUCCESS;
	}
	if (!graph_kernel_loaded(kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = graph_driver_check_shape(kernel->function, &shape);
	if (!result)
		kernel->shape = shape;
	return result;
}

CUresult graph_attribute_set(CUgraphNode node, CUlaunchAttributeID attribute, const CUlaunchAttributeValue *value)
{
	graph_kernel_t *kernel = node->kernel;
	CUresult result = known(attribute);
	if (!result)
		result = reshape(kernel, attribute, value);
	if (result)
		return result;
	if (!kernel->values)
		kernel->values = calloc(GRAPH_ATTRIBUTES, sizeof *kernel->values);
	if (!kernel->values)
		return CUDA_ERROR_OUT_OF_MEMORY;
	kernel->values[attribute] = *value;
	kernel->set |= 1u << attribute;
	return CUDA_SUCCESS;
}

CUresult graph_attributes_take(CUgraphNode node, CUgraphNode last, const CUlaunchAttribute *attributes, unsigned count)
{
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; i < count && !result; i++) {
		const CUlaunchAttributeValue *value = &attributes[i].value;
		if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
		    value->programmaticStreamSerializationAllowed)
			graph_edge_overlap(last, node);
		else if (!known(attributes[i].id))
			result = graph_attribute_set(node, attributes[i].id, value);
	}
	return result;
}

CUresult graph_attribute_get(CUgraphNode node, CUlaunchAttributeID attribute, CUlaunchAttributeValue *value)
{
	const graph_kernel_t *kernel = node->kernel;
	static const CUlaunchAttributeValue unset;
	CUresult result = known(attribute);
	if (!result)
		*value = kernel->set & (1u << attribute) ? kernel->values[attribute] : unset;
	return result;
}
