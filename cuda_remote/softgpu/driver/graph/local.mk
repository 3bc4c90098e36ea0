# SPDX-License-Identifier: BSD-3-Clause
# Graphs: building, instantiation, launch, update, allocation nodes, user objects.
SOFTGPU_TWICE += \
	cuda_remote/softgpu/driver/graph/graph_twice.c
cuda_remote_softgpu_libsgdriver_la_SOURCES += \
	cuda_remote/softgpu/driver/graph/graph.c \
	cuda_remote/softgpu/driver/graph/graph.h \
	cuda_remote/softgpu/driver/graph/graph_allocation.c \
	cuda_remote/softgpu/driver/graph/graph_allocation.h \
	cuda_remote/softgpu/driver/graph/graph_attributes.c \
	cuda_remote/softgpu/driver/graph/graph_capture.c \
	cuda_remote/softgpu/driver/graph/graph_capture.h \
	cuda_remote/softgpu/driver/graph/graph_conditional.c \
	cuda_remote/softgpu/driver/graph/graph_dot.c \
	cuda_remote/softgpu/driver/graph/graph_exec.c \
	cuda_remote/softgpu/driver/graph/graph_exec.h \
	cuda_remote/softgpu/driver/graph/graph_launch.c \
	cuda_remote/softgpu/driver/graph/graph_node_params.c \
	cuda_remote/softgpu/driver/graph/graph_node_run.c \
	cuda_remote/softgpu/driver/graph/graph_params_copy.c \
	cuda_remote/softgpu/driver/graph/graph_run.c \
	cuda_remote/softgpu/driver/graph/graph_run.h \
	cuda_remote/softgpu/driver/graph/graph_topology.c \
	cuda_remote/softgpu/driver/graph/graph_update.c \
	cuda_remote/softgpu/driver/graph/user_object.c
