/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/server/internal.h"

CUresult serve_stream_synchronize(struct server_call *call)
{
	struct rc_args_cuStreamSynchronize args;
	void *stream;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, args.hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!driver.cuStreamSynchronize)
		return CUDA_ERROR_NOT_SUPPORTED;
	server_turn_give_up(call);
	/* What the stream brings to the host is sent while the rest of it runs. */
	result = server_down_ship_stream(call->thread, stream);
	CUresult waited = driver.cuStreamSynchronize(stream);
	return waited != CUDA_SUCCESS ? waited : result;
}

CUresult serve_event_synchronize(struct server_call *call)
{
	struct rc_args_cuEventSynchronize args;
	void *event;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_EVENT, args.hEvent, &event);
	if (result != CUDA_SUCCESS)
		return result;
	server_turn_give_up(call);
	return driver.cuEventSynchronize(event);
}

CUresult serve_memory_alloc_async(struct server_call *call)
{
	struct rc_wire_alloc args;
	void *stream, *pool = NULL;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, args.stream, &stream);
	if (result == CUDA_SUCCESS && args.pool)
		result = server_object(RC_KIND_POOL, args.pool, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	CUdeviceptr address;
	if (pool)
		result = driver.cuMemAllocFromPoolAsync ?
				 driver.cuMemAllocFromPoolAsync(&address, args.bytes, pool, stream) :
				 CUDA_ERROR_NOT_SUPPORTED;
	else
		result = driver.cuMemAllocAsync ? driver.cuMemAllocAsync(&address, args.bytes, stream) :
						  CUDA_ERROR_NOT_SUPPORTED;
	return result == CUDA_SUCCESS ? server_give_bytes(call, &address, sizeof address) : result;
}

CUresult serve_memory_free_async(struct server_call *call)
{
	struct rc_wire_free args;
	void *stream;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, args.stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	return driver.cuMemFreeAsync ? driver.cuMemFreeAsync(args.address, stream) : CUDA_ERROR_NOT_SUPPORTED;
}
