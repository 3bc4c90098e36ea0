/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between the device and pinned memory of a client on the same host, which the worker has mapped (pinned.c). Each is
 * a copy of the driver's in the stream: it reads its source when the stream gets there, and no byte passes the connection.
 * And what waits for copies.
 */
#include "cuda_remote/server/internal.h"

/* A copy whose bounds on the host were checked. */
struct task {
	const struct rc_wire_copy_pinned *args;
	uint8_t *host; /* the first byte */
	CUstream stream;
};

static CUresult copy_line(const struct task *task)
{
	const struct rc_wire_box *box = &task->args->box;
	if (task->args->to_device)
		return driver.cuMemcpyHtoDAsync_v2(box->device, task->host, box->width, task->stream);
	return driver.cuMemcpyDtoHAsync_v2(task->host, box->device, box->width, task->stream);
}

/* The rows of slice z. */
static CUresult copy_rows(const struct task *task, uint64_t z)
{
	const struct rc_wire_box *box = &task->args->box;
	CUDA_MEMCPY2D copy = { .WidthInBytes = box->width, .Height = box->height };
	CUdeviceptr device = box->device + z * box->slice;
	uint8_t *host = task->host + z * task->args->slice;
	if (task->args->to_device) {
		copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = host, copy.srcPitch = task->args->pitch;
		copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = device, copy.dstPitch = box->pitch;
	} else {
		copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = device, copy.srcPitch = box->pitch;
		copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = host, copy.dstPitch = task->args->pitch;
	}
	return driver.cuMemcpy2DAsync_v2 ? driver.cuMemcpy2DAsync_v2(&copy, task->stream) : CUDA_ERROR_NOT_SUPPORTED;
}

/* True if the driver can express the distance between slices as a number of rows. */
static bool is_whole_rows(uint64_t pitch, uint64_t slice, uint64_t height)
{
	return pitch && slice % pitch == 0 && slice / pitch >= height;
}

static CUresult copy_slices(const struct task *task)
{
	const struct rc_wire_copy_pinned *args = task->args;
	const struct rc_wire_box *box = &args->box;
	CUDA_MEMCPY3D copy = { .WidthInBytes = box->width, .Height = box->height, .Depth = box->depth };
	if (args->to_device) {
		copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = task->host, copy.srcPitch = args->pitch;
		copy.srcHeight = args->slice / args->pitch;
		copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = box->device, copy.dstPitch = box->pitch;
		copy.dstHeight = box->slice / box->pitch;
	} else {
		copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = box->device, copy.srcPitch = box->pitch;
		copy.srcHeight = box->slice / box->pitch;
		copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = task->host, copy.dstPitch = args->pitch;
		copy.dstHeight = args->slice / args->pitch;
	}
	return driver.cuMemcpy3DAsync_v2(&copy, task->stream);
}

static CUresult issue(const struct task *task)
{
	const struct rc_wire_copy_pinned *args = task->args;
	const struct rc_wire_box *box = &args->box;
	if (box->depth == 1 && box->height == 1)
		return copy_line(task);
	if (box->depth > 1 && driver.cuMemcpy3DAsync_v2 && is_whole_rows(args->pitch, args->slice, box->height) &&
	    is_whole_rows(box->pitch, box->slice, box->height))
		return copy_slices(task);
	CUresult result = CUDA_SUCCESS;
	for (uint64_t z = 0; z < box->depth && result == CUDA_SUCCESS; z++)
		result = copy_rows(task, z);
	return result;
}

/* A short copy of one row that waits in the call order, as nothing else is under way. False: there is none. */
static bool copy_alone(const struct server_call *call, const struct task *task, CUresult *result)
{
	const struct rc_wire_box *box = &task->args->box;
	if (!(call->flags & RC_CALL_ALONE) || box->height != 1 || box->depth != 1 || box->width > RC_INLINE_COPY ||
	    !driver.cuMemcpyHtoD_v2 || !driver.cuMemcpyDtoH_v2)
		return false;
	*result = task->args->to_device ? driver.cuMemcpyHtoD_v2(box->device, task->host, box->width) :
					  driver.cuMemcpyDtoH_v2(task->host, box->device, box->width);
	return true;
}

/* Takes a call's arguments and issues its copy. Outputs the stream. *complete: the copy is complete, or has failed. */
static CUresult copy_pinned(struct server_call *call, CUstream *stream, bool *complete)
{
	struct rc_wire_copy_pinned args;
	struct task task = { .args = &args };
	uint64_t bytes, size;
	void *object;
	if (!server_take_into(call, &args, sizeof args) || !server_box_is_sound(&args.box, &bytes) || args.to_device > 1)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, args.stream, &object);
	if (result == CUDA_SUCCESS)
		result = server_pinned_find(args.pinned, &task.host, &size);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_wire_box host = { args.offset, args.pitch, args.slice, args.box.width, args.box.height, args.box.depth };
	uint64_t extent = rc_box_extent(&host);
	if (!extent || args.offset > size || extent > size - args.offset)
		return CUDA_ERROR_INVALID_VALUE;
	task.host += args.offset;
	*stream = task.stream = object;
	*complete = copy_alone(call, &task, &result);
	return *complete ? result : issue(&task);
}

CUresult serve_copy_pinned(struct server_call *call)
{
	CUstream stream;
	bool complete;
	return copy_pinned(call, &stream, &complete);
}

/* Waits for what is in the stream by now, not for what other threads put there later. The connection's slot has the event. */
static CUresult wait_for_stream(struct server_call *call, struct server_slot *slot, CUstream stream)
{
	CUresult result = server_slot_record_rest(slot, stream);
	server_order_release(call);
	CUresult waited = server_slot_wait(slot);
	return result != CUDA_SUCCESS ? result : waited;
}

CUresult serve_copy_pinned_wait(struct server_call *call)
{
	struct server_slot *slot;
	CUstream stream;
	bool complete = false;
	CUresult result = server_slot_own(call->thread, &slot);
	if (result == CUDA_SUCCESS)
		result = copy_pinned(call, &stream, &complete);
	return result == CUDA_SUCCESS && !complete ? wait_for_stream(call, slot, stream) : result;
}

/* The thread has put copies into the stream by earlier calls. */
CUresult serve_copy_wait(struct server_call *call)
{
	struct server_slot *slot;
	uint64_t named;
	void *stream;
	if (!server_take_into(call, &named, sizeof named))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, named, &stream);
	if (result == CUDA_SUCCESS)
		result = server_slot_own(call->thread, &slot);
	return result == CUDA_SUCCESS ? wait_for_stream(call, slot, stream) : result;
}
