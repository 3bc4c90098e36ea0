/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: a place in a stream, and the time when the stream passed it. */
#ifndef SOFTGPU_EVENT_H
#define SOFTGPU_EVENT_H

#include "cuda_remote/softgpu/driver/context.h"

struct CUevent_st {
	handle_t handle;
	CUcontext context;
	unsigned flags;
	struct ipc_event *shared; /* NULL or, with CU_EVENT_INTERPROCESS, what takes the place of all below */
	CUevent previous, next; /* of the context's, under its lock */
	/* Under the events' lock: */
	unsigned references;    /* the handle, record commands */
	uint64_t record;        /* counts recordings */
	CUstream stream; /* of the last one, with a reference; NULL: complete when it was recorded, or never recorded */
	uint64_t sequence;      /* in stream */
	uint64_t time;          /* ns, of the last completed recording; 0: none */
};

/* Records the event in stream; CUDA_ERROR_INVALID_HANDLE: not an event, or of another context. */
CUresult event_record(CUevent event, CUstream stream);

/* Makes stream wait for the event's last recording. */
CUresult event_wait(CUevent event, CUstream stream);

/* When the context goes away. */
void event_destroy_all(CUcontext context);

#endif
