# SPDX-License-Identifier: BSD-3-Clause
# Device memory: allocation, pools, virtual memory, managed memory, copies, IPC.
SOFTGPU_TWICE += $(MANAGED_TWICE) \
	cuda_remote/softgpu/driver/memory/allocation_twice.c \
	cuda_remote/softgpu/driver/memory/copy_batch_twice.c \
	cuda_remote/softgpu/driver/memory/copy_twice.c
cuda_remote_softgpu_libsgdriver_la_SOURCES += $(MANAGED_SOURCES) \
	cuda_remote/softgpu/driver/memory/allocation.c \
	cuda_remote/softgpu/driver/memory/copy.c \
	cuda_remote/softgpu/driver/memory/copy.h \
	cuda_remote/softgpu/driver/memory/copy_order.c \
	cuda_remote/softgpu/driver/memory/copy_order.h \
	cuda_remote/softgpu/driver/memory/copy_pace.c \
	cuda_remote/softgpu/driver/memory/copy_pace.h \
	cuda_remote/softgpu/driver/memory/copy_batch.c \
	cuda_remote/softgpu/driver/memory/copy_batch.h \
	cuda_remote/softgpu/driver/memory/copy_box.h \
	cuda_remote/softgpu/driver/memory/ipc.c \
	cuda_remote/softgpu/driver/memory/managed.c \
	cuda_remote/call_follows.h cuda_remote/kept_memory.h cuda_remote/written_memory.h cuda_remote/placed_memory.h \
	cuda_remote/handle_files.h \
	cuda_remote/softgpu/driver/memory/placed.c \
	cuda_remote/softgpu/driver/memory/pointer.c \
	cuda_remote/softgpu/driver/memory/pool.c \
	cuda_remote/softgpu/driver/memory/pool.h \
	cuda_remote/softgpu/driver/memory/pool_place.c \
	cuda_remote/softgpu/driver/memory/pool_place.h \
	cuda_remote/softgpu/driver/memory/virtual.c \
	cuda_remote/softgpu/driver/memory/virtual.h
