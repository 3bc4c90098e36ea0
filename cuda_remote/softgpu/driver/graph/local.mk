# SPDX-License-Identifier: BSD-3-Clause
# The software GPU's side of graphs: launches, allocation nodes, what the shared model (cuda_remote/graph) asks for.
SOFTGPU_TWICE += $(GRAPH_TWICE)
cuda_remote_softgpu_libsgdriver_la_SOURCES += \
	$(GRAPH_SOURCES) \
	cuda_remote/softgpu/driver/graph/graph_allocation.c \
	cuda_remote/softgpu/driver/graph/graph_allocation.h \
	cuda_remote/softgpu/driver/graph/graph_driver.c \
	cuda_remote/softgpu/driver/graph/graph_launch.c \
	cuda_remote/softgpu/driver/graph/graph_node_run.c \
	cuda_remote/softgpu/driver/graph/graph_prepare.c \
	cuda_remote/softgpu/driver/graph/graph_run.c \
	cuda_remote/softgpu/driver/graph/graph_run.h
