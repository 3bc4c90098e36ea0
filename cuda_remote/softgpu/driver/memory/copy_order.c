/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of copies between two devices in default streams: see copy_order.h. */
#include "cuda_remote/softgpu/driver/memory/copy_order.h"

#include "cuda_remote/softgpu/driver/device/device.h"

#include <stdlib.h>

/* Returns the default stream of the context to which memory belongs, with a reference, or NULL. device: -1 for host memory. */
static CUstream other_default(uint64_t address, int *device)
{
	softgpu_allocation_t found;
	*device = -1;
	if (!softgpu_space_find(address, &found) || found.kind == SOFTGPU_SPACE_HOST || found.kind == SOFTGPU_SPACE_REGISTERED ||
	    found.kind == SOFTGPU_SPACE_MANAGED)
		return NULL;
	*device = found.device;
	CUcontext owner = (CUcontext)(uintptr_t)found.owner;
	/* Virtual memory has no owner. Memory of a pool may be on another device than the context that allocated it. */
	if (!handle_valid(owner, HANDLE_CONTEXT) || owner->physical != found.device)
		return primary_default_stream(found.device);
	queue_stream_hold(owner->group.legacy);
	return owner->group.legacy;
}

static void add(copy_order_t *order, CUstream other)
{
	if (other && order->count && order->streams[0] == other)
		queue_stream_release(other);
	else if (other)
		order->streams[order->count++] = other;
}

static void drop(copy_order_t *order)
{
	for (unsigned i = 0; i < order->count; i++)
		queue_stream_release(order->streams[i]);
	order->count = 0;
}

/* Later commands of stream wait for what other was given before, with the work that its next command would wait for. */
static bool wait_for(CUstream stream, CUstream other)
{
	if (stream == other || queue_is_free(other))
		return true;
	command_t *mark = calloc(1, sizeof *mark);
	return mark && queue_submit_wait(stream, other, queue_submit(other, mark));
}

CUresult copy_order_begin(CUstream stream, const copy_box_t *box, copy_order_t *order)
{
	int to, from, own = stream->context->physical;
	order->count = 0;
	if (!stream->legacy || device_count() < 2)
		return CUDA_SUCCESS;
	add(order, other_default(box->to.address, &to));
	add(order, other_default(box->from.address, &from));
	/* Contexts of one device are not ordered with each other. */
	if ((to < 0 || to == own) && (from < 0 || from == own))
		drop(order);
	for (unsigned i = 0; i < order->count; i++)
		if (!wait_for(stream, order->streams[i])) {
			drop(order);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	return CUDA_SUCCESS;
}

void copy_order_end(CUstream stream, copy_order_t *order)
{
	for (unsigned i = 0; i < order->count; i++)
		if (!queue_submit_wait(order->streams[i], stream, queue_submitted(stream)))
			queue_wait(stream, queue_submitted(stream)); /* no memory for a command that waits */
	drop(order);
}
