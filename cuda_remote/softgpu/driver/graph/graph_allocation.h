/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of allocation nodes: how the software GPU recognises it (cuda_remote/graph/graph_memory.h). */
#ifndef SOFTGPU_GRAPH_ALLOCATION_H
#define SOFTGPU_GRAPH_ALLOCATION_H

#include "cuda_remote/graph/graph_memory.h"
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/space/space.h"

/* In softgpu_allocation_t.flags: the allocation belongs to a graph. */
#define GRAPH_MEMORY_FLAG (1u << 31)

#endif
