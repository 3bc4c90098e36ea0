/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device resources: the multiprocessors that green contexts are made from. The server's driver divides them and knows what
 * their structs contain. The worker keeps these structs; the program's have a number in their padding.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/green/green.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"

#include <string.h>

#define SECRET_MAGIC UINT32_C(0x6b1d03e9)

/* The content of a CUdevResource's padding. */
struct secret {
	uint32_t magic, session; /* session: index */
	struct rc_wire_resource wire;
};

_Static_assert(sizeof(struct secret) <= sizeof(((CUdevResource *)0)->_internal_padding), "it fits");

void rc_resource_from_wire(const struct rc_session *session, const struct rc_wire_resource *wire, CUdevResource *resource)
{
	struct secret secret = { SECRET_MAGIC, session->index, *wire };
	memset(resource, 0, sizeof *resource);
	if (!wire->number)
		return; /* CU_DEV_RESOURCE_TYPE_INVALID */
	resource->type = CU_DEV_RESOURCE_TYPE_SM;
	memcpy(resource->_internal_padding, &secret, sizeof secret);
	resource->sm.smCount = wire->count;
	resource->sm.minSmPartitionSize = wire->partition;
	resource->sm.smCoscheduledAlignment = wire->alignment;
}

CUresult rc_resource_number(const CUdevResource *resource, struct rc_session **session, uint64_t *number)
{
	struct rc_process *process;
	struct secret secret;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	memcpy(&secret, resource->_internal_padding, sizeof secret);
	if (secret.magic != SECRET_MAGIC || secret.session >= process->sessions || resource->sm.smCount != secret.wire.count ||
	    resource->sm.minSmPartitionSize != secret.wire.partition ||
	    resource->sm.smCoscheduledAlignment != secret.wire.alignment)
		return CUDA_ERROR_INVALID_VALUE;
	*session = &process->session[secret.session];
	*number = secret.wire.number;
	return CUDA_SUCCESS;
}

/* Asks for the resource of a green context, or (green 0) of a device. */
static CUresult ask(uint64_t green, struct rc_session *session, uint32_t device, CUdevResource *resource,
		    CUdevResourceType type)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_resource_get call;
	} message = { .call = { .green = green, .device = device, .type = (uint32_t)type } };
	struct rc_wire_resource wire;
	struct rc_link *link;
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	CUresult result = rc_link_to(session, 0, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_resource_get, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof wire)
		return rc_link_broken(link, RC_CALL_resource_get);
	memcpy(&wire, link->reply, sizeof wire);
	rc_resource_from_wire(session, &wire, resource);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetDevResource(CUdevice number, CUdevResource *resource, CUdevResourceType type)
{
	struct rc_device *device;
	CUresult result = rc_device_get(number, &device);
	return result == CUDA_SUCCESS ? ask(0, device->session, (uint32_t)device->ordinal, resource, type) : result;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *resource, CUdevResourceType type)
{
	struct rc_context *green;
	uint64_t number = (uint64_t)(uintptr_t)handle;
	CUresult result = rc_green_get(handle, &green);
	return result == CUDA_SUCCESS ? ask(number, rc_handle_session(number), 0, resource, type) : result;
}

CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource *resource, CUdevResourceType type)
{
	struct rc_context *context;
	CUgreenCtx green = handle ? (CUgreenCtx)(void *)handle : rc_green_current();
	CUresult result = rc_context_meant(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	return rc_green_is(green) ? cuGreenCtxGetDevResource(green, resource, type) :
				    cuDeviceGetDevResource(context->device, resource, type);
}

/* Reads the answer: the parts made, then the rest if it was asked for. */
static CUresult read_split(struct rc_link *link, const struct rc_wire_resource_split *asked, CUdevResource *parts,
			   unsigned *made, CUdevResource *rest)
{
	struct rc_wire_resource_split answer;
	struct rc_wire_resource wire;
	const uint8_t *at = link->reply + sizeof answer;
	if (link->reply_len < sizeof answer)
		return rc_link_broken(link, RC_CALL_resource_split);
	memcpy(&answer, link->reply, sizeof answer);
	uint32_t given = asked->room ? answer.room : 0;
	if (given > asked->room || link->reply_len != sizeof answer + (given + asked->rest) * sizeof wire)
		return rc_link_broken(link, RC_CALL_resource_split);
	for (uint32_t i = 0; i < given; i++, at += sizeof wire) {
		memcpy(&wire, at, sizeof wire);
		rc_resource_from_wire(link->session, &wire, &parts[i]);
	}
	if (asked->rest) {
		memcpy(&wire, at, sizeof wire);
		rc_resource_from_wire(link->session, &wire, rest);
	}
	*made = answer.room;
	return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *parts, unsigned *count, const CUdevResource *input, CUdevResource *rest,
				     unsigned flags, unsigned least)
{
	const unsigned known = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
			       CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
	struct {
		struct rc_wire_call head;
		struct rc_wire_resource_split call;
	} message = { .call = { .flags = flags, .least = least, .rest = rest != NULL } };
	struct rc_process *process;
	struct rc_session *session;
	struct rc_link *link;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!count || !input || (flags & ~known) || (parts && !*count))
		return CUDA_ERROR_INVALID_VALUE;
	result = rc_resource_number(input, &session, &message.call.number);
	if (result == CUDA_SUCCESS)
		result = rc_link_to(session, 0, &link);
	if (result != CUDA_SUCCESS)
		return result;
	message.call.room = !parts ? 0 : *count < RC_RESOURCES_MAX ? *count : RC_RESOURCES_MAX;
	result = rc_link_call(link, RC_CALL_resource_split, 0, &message.head, sizeof message, NULL, 0);
	return result == CUDA_SUCCESS ? read_split(link, &message.call, parts, count, rest) : result;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *descriptor, CUdevResource *resources, unsigned count)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_resource_describe call;
	} message = { .call = { .count = count } };
	struct rc_process *process;
	struct rc_session *session = NULL, *other;
	struct rc_link *link;
	uint64_t numbers[64]; /* a driver accepts different parts of one split only; no program has more */
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!descriptor || !resources || !count)
		return CUDA_ERROR_INVALID_VALUE;
	if (count > sizeof numbers / sizeof numbers[0])
		return CUDA_ERROR_NOT_SUPPORTED;
	for (unsigned i = 0; i < count; i++) {
		result = rc_resource_number(&resources[i], &other, &numbers[i]);
		if (result != CUDA_SUCCESS)
			return result;
		if (session && other != session)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		session = other;
	}
	struct iovec iov = { numbers, count * sizeof numbers[0] };
	result = rc_link_to(session, 0, &link);
	if (result == CUDA_SUCCESS)
		result = rc_handle_new(RC_KIND_DESCRIPTOR, session, &message.call.descriptor);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_call(link, RC_CALL_resource_describe, 0, &message.head, sizeof message, &iov, 1);
	if (result == CUDA_SUCCESS)
		*descriptor = (CUdevResourceDesc)(uintptr_t)message.call.descriptor;
	else
		rc_handle_delete(message.call.descriptor);
	return result;
}
