/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What graphs and captures need of the driver that they are part of. The software GPU and the forwarding client each
 * define these functions and the structs behind CUstream, CUfunction and graph_memory_t; nothing else here differs
 * between the two. Functions return the errors of CUDA's calls.
 */
#ifndef RC_GRAPH_DRIVER_H
#define RC_GRAPH_DRIVER_H

#include "cuda_remote/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a kernel is launched. */
typedef struct launch_shape {
	unsigned grid[3], block[3];
	unsigned dynamic_shared; /* bytes */
	bool cooperative;
	unsigned cluster[3];     /* blocks of a cluster; 0: not given */
} launch_shape_t;

/* ---- calls ---- */

/* Every call begins with this check: CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_NOT_PERMITTED inside a host function. */
CUresult graph_driver_enter(void);
/* This thread enters (true) or leaves (false) a function of the program. */
void graph_driver_in_callback(bool inside);
/* Replaces NULL by the current context, and checks another. */
CUresult graph_driver_context(CUcontext *context);

/* ---- objects that nodes refer to; id: never used twice, it tells a new object at an old address ---- */

typedef struct graph_function {
	CUfunction function;
	uint64_t id;
	CUcontext context;   /* of its module; NULL: the kernel is in no module */
	uint32_t parameters; /* number of parameters */
	size_t bytes;        /* of the parameter block */
} graph_function_t;

/* The function behind a CUfunction, or behind a CUkernel in context. CUDA_ERROR_INVALID_HANDLE. */
CUresult graph_driver_function(CUfunction handle, CUcontext context, graph_function_t *function);
bool graph_driver_function_there(CUfunction function, uint64_t id);
/* The next four: of a function that is there. */
const char *graph_driver_function_name(CUfunction function);
size_t graph_driver_parameter_offset(CUfunction function, uint32_t parameter);
CUresult graph_driver_check_shape(CUfunction function, const launch_shape_t *shape);
/* Fills a parameter block from kernelParams or from extra's buffer. */
CUresult graph_driver_parameters(CUfunction function, void **parameters, void **extra, unsigned char *block);

/* CUDA_ERROR_INVALID_VALUE: no event; CUDA_ERROR_NOT_SUPPORTED: it cannot be in a graph. */
CUresult graph_driver_event(CUevent event, uint64_t *id);
bool graph_driver_event_there(CUevent event, uint64_t id);

/* Checks a copy; outputs the ids of source and destination array. */
CUresult graph_driver_check_copy(const CUDA_MEMCPY3D *copy, uint64_t ids[2]);
bool graph_driver_array_there(CUarray array, uint64_t id);
CUresult graph_driver_check_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *fill);
CUresult graph_driver_check_memop(const CUstreamBatchMemOpParams *operations, unsigned count, unsigned flags);

/* ---- memory of allocation nodes (graph_memory.h) ---- */

typedef struct graph_memory graph_memory_t;
typedef struct graph_memory_part graph_memory_part_t; /* the driver's */

/* Bytes of one device's graphs. */
typedef struct graph_usage {
	uint64_t used, used_high, reserved, reserved_high;
} graph_usage_t;

/* The device's struct, which is zero at first and stays. CUDA_ERROR_INVALID_DEVICE. */
CUresult graph_driver_usage(CUdevice device, graph_usage_t **usage);
/*
 * Allocates. The context owns the memory: if it is destroyed first, the driver calls graph_memory_lost and then frees the
 * memory. CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED.
 */
CUresult graph_driver_memory_new(CUcontext context, CUdevice device, size_t bytes, graph_memory_t *memory,
				 graph_memory_part_t **part, CUdeviceptr *address);
/* Frees it; launches that use it may be running only if they hold its graph. False: its context is being destroyed and will
 * call graph_memory_lost. Does not block. */
bool graph_driver_memory_free(graph_memory_part_t *part);
/* Between begin and end, no other thread can launch a graph with memory nodes, if the driver's discard needs that. */
void graph_driver_trim_begin(void);
void graph_driver_trim_end(void);
/* Gives unused memory back to the device; the address stays reserved. False: not possible now. */
bool graph_driver_memory_discard(graph_memory_part_t *part);

/* ---- conditional handles ---- */

struct graph_conditional; /* graph.h */
/* Makes a value that kernels can set: outputs value->handle. graph: the one that the program names. */
CUresult graph_driver_conditional_new(CUgraph graph, struct graph_conditional *value);
void graph_driver_conditional_free(struct graph_conditional *value);

/* ---- executable graphs (graph_exec.h): exec->lock is held in all but the first two ---- */

/* exec has its clone. Makes exec->run, what the driver keeps for launches. */
CUresult graph_driver_instantiate(CUgraphExec exec);
/* The last reference is dropped: frees exec->run. */
void graph_driver_exec_free(CUgraphExec exec);
/* A node of the clone has other parameters, or was enabled or disabled. */
CUresult graph_driver_node_changed(CUgraphExec exec, CUgraphNode node);
/* The graph `now`, the clone or a graph in it, has taken the place of old; nodes that correspond have equal numbers. */
CUresult graph_driver_replaced(CUgraphExec exec, CUgraph old, CUgraph now);
/* Launches in a stream of the program, which is not capturing. */
CUresult graph_driver_launch(CUgraphExec exec, CUstream stream);

/* ---- streams ---- */

/* The stream that the program named; CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are those of the current context. */
CUresult graph_driver_stream(CUstream given, CUstream *stream);
CUcontext graph_driver_stream_context(CUstream stream);
/* Its context's legacy default stream. */
bool graph_driver_stream_legacy(CUstream stream);
/* It synchronizes with the legacy stream. */
bool graph_driver_stream_blocking(CUstream stream);
/* Where the captures keep the stream's part; under their lock. */
struct capture_stream **graph_driver_stream_part(CUstream stream);
void graph_driver_stream_hold(CUstream stream);
void graph_driver_stream_release(CUstream stream);

#endif
