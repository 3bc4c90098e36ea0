/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attributes of launches and of streams that a client forwards, and the only ones that a worker hands to its
 * driver. The value of each is a number or device memory. Attributes that name an event, a graph node or host memory
 * must not be added: the driver would follow the client's pointer.
 */
#ifndef RC_API_ATTRIBUTES_H
#define RC_API_ATTRIBUTES_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of cuLaunchKernelEx. CU_LAUNCH_ATTRIBUTE_COOPERATIVE travels as a flag of the launch. */
static const CUlaunchAttributeID rc_launch_attributes[] = {
	CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
	CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
	CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
	CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
	CU_LAUNCH_ATTRIBUTE_PRIORITY,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
	CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
	CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
};

/* Of cuStreamGetAttribute and cuStreamSetAttribute. */
static const CUlaunchAttributeID rc_stream_attributes[] = {
	CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
	CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
	CU_LAUNCH_ATTRIBUTE_PRIORITY,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
};

/* Attributes of one launch that travel. */
#define RC_LAUNCH_ATTRIBUTES_MAX 31

static inline bool rc_attribute_is_in(const CUlaunchAttributeID *list, size_t n, CUlaunchAttributeID id)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == id)
			return true;
	return false;
}

static inline bool rc_launch_attribute_travels(CUlaunchAttributeID id)
{
	return rc_attribute_is_in(rc_launch_attributes, sizeof rc_launch_attributes / sizeof rc_launch_attributes[0], id);
}

static inline bool rc_stream_attribute_travels(CUlaunchAttributeID id)
{
	return rc_attribute_is_in(rc_stream_attributes, sizeof rc_stream_attributes / sizeof rc_stream_attributes[0], id);
}

#endif
