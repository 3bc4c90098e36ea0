# SPDX-License-Identifier: BSD-3-Clause
# Graphs and captures, and what else the software GPU and the forwarding client each compile for their library.
GRAPH_TWICE = cuda_remote/graph/graph_twice.c
GRAPH_SOURCES = \
	cuda_remote/handle.c \
	cuda_remote/handle.h \
	cuda_remote/fill_way.c \
	cuda_remote/fill_way.h \
	cuda_remote/graph/capture.c \
	cuda_remote/graph/capture.h \
	cuda_remote/graph/driver.h \
	cuda_remote/graph/graph.c \
	cuda_remote/graph/graph.h \
	cuda_remote/graph/graph_attributes.c \
	cuda_remote/graph/graph_capture.c \
	cuda_remote/graph/graph_capture.h \
	cuda_remote/graph/graph_conditional.c \
	cuda_remote/graph/graph_dot.c \
	cuda_remote/graph/graph_exec.c \
	cuda_remote/graph/graph_exec.h \
	cuda_remote/graph/graph_memory.c \
	cuda_remote/graph/graph_memory.h \
	cuda_remote/graph/graph_node_params.c \
	cuda_remote/graph/graph_params_copy.c \
	cuda_remote/graph/graph_topology.c \
	cuda_remote/graph/graph_update.c \
	cuda_remote/graph/user_object.c
