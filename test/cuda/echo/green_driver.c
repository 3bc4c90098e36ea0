/* SPDX-License-Identifier: BSD-3-Clause */
/* Green contexts in the echo driver. The content of its structs of multiprocessors is a pattern, which it records as it gets it. */
#include "test/cuda/echo/direct.h"
#include "test/cuda/echo/driver.h"

#include <string.h>

static void record_resource(struct echo_call *call, unsigned parameter, const CUdevResource *resource)
{
	echo_bytes(call, parameter, resource, sizeof *resource, 0);
	if (resource->type != CU_DEV_RESOURCE_TYPE_SM && call->result == CUDA_SUCCESS)
		call->result = CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

/* There are only a few different structs, as the worker keeps each. part: the number of the struct within one call. */
static void make_resource(struct echo_call *call, unsigned part, CUdevResource *resource)
{
	uint8_t pattern;
	echo_fill(call, part, &pattern, sizeof pattern);
	memset(resource, 0, sizeof *resource);
	resource->type = CU_DEV_RESOURCE_TYPE_SM;
	memset(resource->_internal_padding, 1 + pattern % 64, sizeof resource->_internal_padding);
	resource->sm = (CUdevSmResource){ 1 + pattern % 64, 1 + part % 8, 2 };
}

static void check_type(struct echo_call *call, unsigned parameter, CUdevResourceType type)
{
	echo_value(call, parameter, &type, sizeof type);
	if (type != CU_DEV_RESOURCE_TYPE_SM && call->result == CUDA_SUCCESS)
		call->result = CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	struct echo_call call;
	echo_begin(&call, ECHO_INDEX_cuDeviceGetDevResource);
	echo_device(&call, 0, device);
	echo_pointer(&call, 1, resource, false);
	check_type(&call, 2, type);
	if (echo_decide(&call) == CUDA_SUCCESS)
		make_resource(&call, 1, resource);
	return call.result;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource, CUdevResourceType type)
{
	struct echo_call call;
	echo_begin(&call, ECHO_INDEX_cuGreenCtxGetDevResource);
	echo_handle(&call, 0, RC_KIND_CONTEXT, (uint64_t)(uintptr_t)green);
	echo_pointer(&call, 1, resource, false);
	check_type(&call, 2, type);
	if (echo_decide(&call) == CUDA_SUCCESS)
		make_resource(&call, 1, resource);
	return call.result;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *parts, unsigned *count, const CUdevResource *input, CUdevResource *rest,
				     unsigned flags, unsigned least)
{
	struct echo_call call;
	bool given = parts;
	echo_begin(&call, ECHO_INDEX_cuDevSmResourceSplitByCount);
	echo_value(&call, 0, &given, sizeof given);
	echo_pointer(&call, 1, count, false);
	if (count && parts)
		echo_value(&call, 1, count, sizeof *count);
	echo_pointer(&call, 2, input, false);
	if (input)
		record_resource(&call, 2, input);
	echo_pointer(&call, 3, rest, true);
	echo_value(&call, 4, &flags, sizeof flags);
	echo_value(&call, 5, &least, sizeof least);
	if (echo_decide(&call) != CUDA_SUCCESS)
		return call.result;
	if (!parts)
		*count = 8;
	for (unsigned i = 0; parts && i < *count; i++)
		make_resource(&call, i, &parts[i]);
	if (rest)
		make_resource(&call, 99, rest);
	return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *descriptor, CUdevResource *resources, unsigned count)
{
	struct echo_call call;
	echo_begin(&call, ECHO_INDEX_cuDevResourceGenerateDesc);
	echo_pointer(&call, 0, descriptor, false);
	echo_pointer(&call, 1, resources, false);
	for (unsigned i = 0; resources && i < count; i++)
		record_resource(&call, 1, &resources[i]);
	if (echo_decide(&call) == CUDA_SUCCESS)
		*descriptor = (CUdevResourceDesc)(uintptr_t)echo_new(RC_KIND_DESCRIPTOR, 0);
	return call.result;
}

CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc descriptor, CUdevice device, unsigned flags)
{
	struct echo_call call;
	echo_begin(&call, ECHO_INDEX_cuGreenCtxCreate);
	echo_pointer(&call, 0, green, false);
	echo_handle(&call, 1, RC_KIND_DESCRIPTOR, (uint64_t)(uintptr_t)descriptor);
	echo_device(&call, 2, device);
	echo_value(&call, 3, &flags, sizeof flags);
	if (echo_decide(&call) == CUDA_SUCCESS)
		*green = (CUgreenCtx)(uintptr_t)echo_new(RC_KIND_CONTEXT, 0);
	return call.result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	struct echo_call call;
	echo_begin(&call, ECHO_INDEX_cuGreenCtxDestroy);
	echo_handle(&call, 0, RC_KIND_CONTEXT, (uint64_t)(uintptr_t)green);
	if (echo_decide(&call) == CUDA_SUCCESS)
		echo_delete((uint64_t)(uintptr_t)green);
	return call.result;
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
	*context = (CUcontext)(void *)green;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned flags, int priority)
{
	struct echo_call call;
	echo_begin(&call, ECHO_INDEX_cuGreenCtxStreamCreate);
	echo_pointer(&call, 0, stream, false);
	echo_handle(&call, 1, RC_KIND_CONTEXT, (uint64_t)(uintptr_t)green);
	echo_value(&call, 2, &flags, sizeof flags);
	echo_value(&call, 3, &priority, sizeof priority);
	if (echo_decide(&call) == CUDA_SUCCESS)
		*stream = (CUstream)(uintptr_t)echo_new(RC_KIND_STREAM, (uint64_t)(uintptr_t)green);
	return call.result;
}

static CUresult event(unsigned function, CUgreenCtx green, CUevent event)
{
	struct echo_call call;
	echo_begin(&call, function);
	echo_handle(&call, 0, RC_KIND_CONTEXT, (uint64_t)(uintptr_t)green);
	echo_handle(&call, 1, RC_KIND_EVENT, (uint64_t)(uintptr_t)event);
	return echo_decide(&call);
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx green, CUevent recorded)
{
	return event(ECHO_INDEX_cuGreenCtxRecordEvent, green, recorded);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx green, CUevent waited)
{
	return event(ECHO_INDEX_cuGreenCtxWaitEvent, green, waited);
}
