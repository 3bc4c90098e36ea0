/* SPDX-License-Identifier: BSD-3-Clause */
/* Host functions and stream callbacks: commands that call the program. */
#include "cuda_remote/softgpu/driver/stream/host_function.h"

#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/init.h"

#include <stdlib.h>

typedef struct host_command {
	command_t command;
	CUhostFn function;
	CUstreamCallback callback;
	CUcontext context;
	CUstream handle;
	void *data;
} host_command_t;

static CUresult run_function(command_t *command)
{
	host_command_t *host = (host_command_t *)command;
	queue_rest_begin();
	init_in_callback(true);
	host->function(host->data);
	init_in_callback(false);
	queue_rest_end();
	return CUDA_SUCCESS;
}

static CUresult run_callback(command_t *command)
{
	host_command_t *host = (host_command_t *)command;
	queue_rest_begin();
	init_in_callback(true);
	host->callback(host->handle, context_error(host->context), host->data);
	init_in_callback(false);
	queue_rest_end();
	return CUDA_SUCCESS;
}

static CUresult submit(CUstream stream, host_command_t with)
{
	host_command_t *host = malloc(sizeof *host);
	if (!host)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*host = with;
	host->command.host_code = true;
	host->context = stream->context;
	queue_submit(stream, &host->command);
	return CUDA_SUCCESS;
}

CUresult host_function_submit(CUstream stream, CUhostFn function, void *data)
{
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	bool captured;
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = { .fn = function, .userData = data } };
	CUresult result = capture_add(stream, &node, NULL, &captured);
	if (result || captured)
		return result;
	return submit(stream, (host_command_t){ .command.run = run_function, .function = function, .data = data });
}

CUresult host_callback_submit(CUstream stream, CUstream handle, CUstreamCallback callback, void *data)
{
	if (!callback)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = capture_refuse_stream(stream); /* there is no such node */
	if (result)
		return result;
	return submit(stream, (host_command_t){ .command.run = run_callback, .command.despite_fault = true,
						.callback = callback, .handle = handle, .data = data });
}
