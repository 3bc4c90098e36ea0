/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams. */
#ifndef RC_CLIENT_STREAM_H
#define RC_CLIENT_STREAM_H

#include <cuda.h>
#include <stdint.h>

struct rc_stream {
	struct rc_stream *next; /* once destroyed: in the list of structs for reuse */
	CUcontext context;
	CUgreenCtx green; /* of a stream that was made in a green context; else NULL */
	unsigned flags;
	int priority;
	uint64_t id;
};
/* Makes the client's record of a stream that the worker has made. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult rc_stream_add(uint64_t handle, const struct rc_stream *value);
/* Keeps the struct for a later stream. It is never freed, as another thread may be reading it. */
void rc_stream_recycle(struct rc_stream *stream);

#endif
