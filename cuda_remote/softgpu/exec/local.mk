# SPDX-License-Identifier: BSD-3-Clause
# The execution engine: decodes statements to code and runs it on warps. libsgengine.la implements engine.h; a program
# that links it must provide the functions of memory_map.h.
noinst_LTLIBRARIES += cuda_remote/softgpu/libsgengine.la
cuda_remote_softgpu_libsgengine_la_SOURCES = \
	$(softgpu_ptx_sources) \
	cuda_remote/softgpu/engine.h \
	cuda_remote/softgpu/exec/allocate.c \
	cuda_remote/softgpu/exec/atomic.c \
	cuda_remote/softgpu/exec/atomic.h \
	cuda_remote/softgpu/exec/atomic_wide.c \
	cuda_remote/softgpu/exec/call_frame.h \
	cuda_remote/softgpu/exec/collective.c \
	cuda_remote/softgpu/exec/collective.h \
	cuda_remote/softgpu/exec/device_launch.c \
	cuda_remote/softgpu/exec/device_launch.h \
	cuda_remote/softgpu/exec/forms.c \
	cuda_remote/softgpu/exec/insn.h \
	cuda_remote/softgpu/exec/launch.c \
	cuda_remote/softgpu/exec/load_store.c \
	cuda_remote/softgpu/exec/matrix.c \
	cuda_remote/softgpu/exec/matrix.h \
	cuda_remote/softgpu/exec/occupancy.c \
	cuda_remote/softgpu/exec/output.c \
	cuda_remote/softgpu/exec/output.h \
	cuda_remote/softgpu/exec/print.c \
	cuda_remote/softgpu/exec/program.c \
	cuda_remote/softgpu/exec/residency.c \
	cuda_remote/softgpu/exec/residency.h \
	cuda_remote/softgpu/exec/special.c \
	cuda_remote/softgpu/exec/special.h \
	cuda_remote/softgpu/exec/strong.c \
	cuda_remote/softgpu/exec/strong.h \
	cuda_remote/softgpu/exec/video.c \
	cuda_remote/softgpu/exec/video.h \
	cuda_remote/softgpu/exec/warp.h \
	cuda_remote/softgpu/memory_map.h \
	cuda_remote/softgpu/tensor_map.h \
	cuda_remote/softgpu/texture.h
include cuda_remote/softgpu/exec/async/local.mk
include cuda_remote/softgpu/exec/check/local.mk
include cuda_remote/softgpu/exec/decode/local.mk
include cuda_remote/softgpu/exec/texture/local.mk
softgpu_cppflags = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
softgpu_cflags = $(AM_CFLAGS) -ffp-contract=off -fno-strict-aliasing
cuda_remote_softgpu_libsgengine_la_CPPFLAGS = $(softgpu_cppflags)
cuda_remote_softgpu_libsgengine_la_CFLAGS = $(softgpu_cflags)
cuda_remote_softgpu_libsgengine_la_LIBADD = cuda_remote/softgpu/exec/liblanes_baseline.la \
	cuda_remote/softgpu/exec/libcontrol.la -lm

# Code that runs between lane operations and handles only masks. It is compiled without vector registers: the operations
# leave the registers' upper halves in use, so an SSE instruction would wait for the operation under way in its
# register.
noinst_LTLIBRARIES += cuda_remote/softgpu/exec/libcontrol.la
cuda_remote_softgpu_exec_libcontrol_la_SOURCES = cuda_remote/softgpu/exec/block.c cuda_remote/softgpu/exec/control.c \
	cuda_remote/softgpu/exec/warp.c
cuda_remote_softgpu_exec_libcontrol_la_CPPFLAGS = $(softgpu_cppflags)
cuda_remote_softgpu_exec_libcontrol_la_CFLAGS = $(softgpu_cflags)

# The tables of operations; a new table needs only its line here.
softgpu_tables = \
	cuda_remote/softgpu/exec/instructions/integer.table \
	cuda_remote/softgpu/exec/instructions/logic.table \
	cuda_remote/softgpu/exec/instructions/float.table \
	cuda_remote/softgpu/exec/instructions/half.table \
	cuda_remote/softgpu/exec/instructions/compare.table \
	cuda_remote/softgpu/exec/instructions/convert.table \
	cuda_remote/softgpu/exec/instructions/vector.table

include cuda_remote/softgpu/exec/lanes/local.mk

# Generated from the tables, not edited: the tables are in the source folder, the generated files in the build folder.
softgpu_generator = $(srcdir)/cuda_remote/softgpu/exec/generate.py
softgpu_op_lists = $(patsubst %,cuda_remote/softgpu/exec/instructions/%.h,forms single_lane tables)
softgpu_generated = $(softgpu_op_sources) $(softgpu_op_lists)
softgpu_table_files = $(addprefix $(srcdir)/,$(softgpu_tables))
$(softgpu_op_sources): cuda_remote/softgpu/exec/instructions/%.c: $(srcdir)/cuda_remote/softgpu/exec/instructions/%.table $(softgpu_generator)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) $(softgpu_generator) handlers $< > $@.new && mv $@.new $@
$(softgpu_op_lists): cuda_remote/softgpu/exec/instructions/%.h: $(softgpu_generator) $(softgpu_table_files) \
		$(srcdir)/cuda_remote/softgpu/exec/local.mk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) $(softgpu_generator) $* $(softgpu_table_files) > $@.new && mv $@.new $@
BUILT_SOURCES += $(softgpu_generated)
CLEANFILES += $(softgpu_generated)
EXTRA_DIST += cuda_remote/softgpu/exec/generate.py $(softgpu_tables)
