/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches by kernels: the device runtime's functions, and the launches' execution after the grid has ended. */
#ifndef SOFTGPU_EXEC_DEVICE_LAUNCH_H
#define SOFTGPU_EXEC_DEVICE_LAUNCH_H

#include "cuda_remote/softgpu/exec/insn.h"

struct launch;

/* Handlers for calls of the functions __cudaCDP2…. */
insn_handler op_cdp_get_parameter_buffer, op_cdp_launch_device, op_cdp_memcpy_async, op_cdp_get_last_error,
	op_cdp_peek_last_error, op_cdp_get_error_string, op_cdp_stream_create, op_cdp_stream_destroy, op_cdp_malloc,
	op_cdp_free;

/* Runs what the grid's threads launched, in order, until the first fault, which becomes the grid's; frees the rest.
 * The launching thread calls it when no other thread uses the launch any more. */
void device_queue_finish(struct launch *launch);

/* launch.c: softgpu_launch for a grid of that depth (0: the host launches it, 1: a grid of depth 0 launches it …). */
CUresult launch_nested(const softgpu_launch_t *request, uint32_t depth);

#endif
