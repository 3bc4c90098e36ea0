/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The priority of Headrace's own streams for copies between servers, in the worker and in the client. The work in them is issued
 * while streams of the program may wait for it. Streams that share a hardware queue wait for each other. Streams of different
 * priorities are expected to have different queues. Few programs use another priority than the least, 0, and the greatest.
 */
#ifndef RC_CUDA_STREAM_PRIORITY_H
#define RC_CUDA_STREAM_PRIORITY_H

/* least, greatest: of cuCtxGetStreamPriorityRange; a smaller number is a greater priority. If there are fewer than three
 * priorities, the greatest one. */
static inline int rc_stream_own_priority(int least, int greatest)
{
	return greatest + 1 < least ? greatest + 1 : greatest;
}

#endif
