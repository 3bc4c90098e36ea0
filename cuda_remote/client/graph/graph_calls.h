/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs, as the rest of the client uses them: what a graph that runs asks for (graph_host.c), captures (streams.c), and memory of
 * allocation nodes (graph_allocation.c).
 */
#ifndef RC_CLIENT_GRAPH_CALLS_H
#define RC_CLIENT_GRAPH_CALLS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rc_session;

/* ---- graph_host.c ---- */

/* True while host functions or host copies of launched graphs have not all run. */
bool rc_graph_host_any(void);
/* As rc_host_session_lost, of those in graphs. */
void rc_graph_host_session_lost(const struct rc_session *session);
/* True if a launch may still read or write this memory with the client's help. */
bool rc_graph_host_pending(uint64_t address, uint64_t size);
/* Launches do not touch the memory any more: the server may not ask for it. Waits for a copy that is in progress. */
void rc_graph_host_forget(uint64_t address, uint64_t size);
/* True if the worker may send the id with this number of bytes now. */
bool rc_graph_host_expects(const struct rc_session *session, uint64_t id, uint64_t bytes);
/* Calls the function, or reads or writes the memory. *answer: bytes to send back, which the caller frees; may be NULL.
 * -1: the worker may not ask for it, or there is no memory. */
int rc_graph_host_run(const struct rc_session *session, uint64_t id, uint8_t *bytes, uint8_t **answer, size_t *len);

/* ---- streams.c ---- */

/* The stream with this handle is destroyed. */
void rc_capture_stream_destroyed(uint64_t handle);
/* Invalidates all captures in the streams of a green context: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, if there are any. */
CUresult rc_capture_refuse_green(CUgreenCtx green);
/* The context has ended, with CUDA's own streams of it. */
void rc_capture_context_ended(CUcontext context);

/* ---- graph_allocation.c ---- */

/* cuMemFree and cuMemFreeAsync of an allocation node's memory. False: the address is not in such memory. */
bool rc_graph_memory_free(CUdeviceptr address, CUresult *result);
bool rc_graph_memory_free_async(CUdeviceptr address, CUresult *result);
/* The context has ended, and the memory of its allocation nodes with it. */
void rc_graph_memory_context_ended(CUcontext context);

#endif
