/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: each marks a place in a stream, and keeps the time when the stream reached it. */
#ifndef SOFTGPU_EVENT_H
#define SOFTGPU_EVENT_H

#include "cuda_remote/softgpu/driver/context/context.h"

struct CUevent_st {
	handle_t handle;
	uint64_t id; /* never used twice */
	CUcontext context;
	unsigned flags;
	struct ipc_event *shared; /* CU_EVENT_INTERPROCESS: used instead of all fields below; else NULL */
	owned_t owned;
	/* Under the events' lock: */
	unsigned references;    /* held by the handle and by record commands */
	uint64_t record;        /* number of recordings */
	CUstream stream; /* of the last recording, a reference; NULL: that was complete at once, or there is none */
	uint64_t sequence;      /* in stream */
	uint64_t time;          /* ns, of the last completed recording; 0: none completed */
	struct capture_mark *mark; /* of capture.c, under its lock; NULL: the last recording was not captured */
};

/*
 * Records the event in stream. CUDA_ERROR_INVALID_HANDLE: not an event, or an event of another context. external: adds
 * a node to the graph that the stream captures (capture.h); CUDA_ERROR_INVALID_VALUE if the stream does not capture.
 */
CUresult event_record(CUevent event, CUstream stream, bool external);

/* Makes stream wait for the event's last recording. external: as in event_record. */
CUresult event_wait(CUevent event, CUstream stream, bool external);

/* The place that an event marks: a reference to its stream, or NULL: there is nothing to wait for. */
CUstream event_place(CUevent event, uint64_t *sequence);

/* An event node of a graph, during one launch. */
typedef struct event_in_graph {
	CUevent event;     /* that the node records, or NULL */
	uint64_t record;   /* the number of the recording */
	CUstream on;       /* a reference: the node waits until this stream has completed sequence; or NULL */
	uint64_t sequence;
} event_in_graph_t;

/*
 * Submits a command that records these events while it runs; returns the command's number. Holds a reference to each
 * event until event_graph_end.
 */
uint64_t event_graph_submit(CUstream stream, command_t *command, event_in_graph_t *events, unsigned count);
/* The command has reached a recording: the event is complete unless it was recorded again since. */
void event_graph_reached(const event_in_graph_t *event);
/* The command is complete: drops the references to event and stream. */
void event_graph_end(event_in_graph_t *event);

#endif
