/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures that build graphs: what queue/capture.h leaves to the graphs. */
#ifndef RC_GRAPH_CAPTURE_H
#define RC_GRAPH_CAPTURE_H

#include "cuda_remote/graph/graph.h"

/* cuStreamBeginCapture and its like; graph is NULL unless the program gives one. data may be NULL: plain edges. */
CUresult graph_capture_begin(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
			     const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode);

/* cuStreamUpdateCaptureDependencies. */
CUresult graph_capture_update(CUstream stream, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
			      size_t count, unsigned flags);

#endif
