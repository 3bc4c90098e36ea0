/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: a place in a stream, and the time when the stream passed it. */
#ifndef SOFTGPU_EVENT_H
#define SOFTGPU_EVENT_H

#include "cuda_remote/softgpu/driver/context/context.h"

struct CUevent_st {
	handle_t handle;
	uint64_t id; /* never used twice */
	CUcontext context;
	unsigned flags;
	struct ipc_event *shared; /* NULL or, with CU_EVENT_INTERPROCESS, what takes the place of all below */
	owned_t owned;
	/* Under the events' lock: */
	unsigned references;    /* the handle, record commands */
	uint64_t record;        /* counts recordings */
	CUstream stream; /* of the last one, with a reference; NULL: complete when it was recorded, or never recorded */
	uint64_t sequence;      /* in stream */
	uint64_t time;          /* ns, of the last completed recording; 0: none */
	struct capture_mark *mark; /* of capture.c, under its lock; NULL: the last recording was not captured */
};

/*
 * Records the event in stream; CUDA_ERROR_INVALID_HANDLE: not an event, or of another context. external: as a node of
 * the graph that the stream is captured into (capture.h), else CUDA_ERROR_INVALID_VALUE.
 */
CUresult event_record(CUevent event, CUstream stream, bool external);

/* Makes stream wait for the event's last recording; external as above. */
CUresult event_wait(CUevent event, CUstream stream, bool external);

/* The place that an event marks, with a reference to its stream; NULL: there is nothing to wait for. */
CUstream event_place(CUevent event, uint64_t *sequence);

/* An event node of a graph, in one launch of it. */
typedef struct event_in_graph {
	CUevent event;     /* to be recorded, or NULL */
	uint64_t record;   /* the number of the recording */
	CUstream on;       /* to be waited for: done when this stream has completed sequence; a reference, or NULL */
	uint64_t sequence;
} event_in_graph_t;

/*
 * Submits a command that records these events as it goes, at its end at the latest; returns its number. A reference to
 * each is held until event_graph_end.
 */
uint64_t event_graph_submit(CUstream stream, command_t *command, event_in_graph_t *events, unsigned count);
/* The command has come to a recording: it is complete now, if none came after it. */
void event_graph_reached(const event_in_graph_t *event);
/* The command is done: lets go of event and stream. */
void event_graph_end(event_in_graph_t *event);

#endif
