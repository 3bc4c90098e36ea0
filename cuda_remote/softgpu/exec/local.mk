# SPDX-License-Identifier: BSD-3-Clause
# The execution engine: statements to code, code on warps. libsgengine.la is engine.h's implementation; whoever links
# it provides memory.h.
noinst_LTLIBRARIES += cuda_remote/softgpu/libsgengine.la
cuda_remote_softgpu_libsgengine_la_SOURCES = \
	$(softgpu_ptx_sources) \
	cuda_remote/softgpu/engine.h cuda_remote/softgpu/memory.h \
	cuda_remote/softgpu/exec/allocate.c \
	cuda_remote/softgpu/exec/async.c cuda_remote/softgpu/exec/async.h \
	cuda_remote/softgpu/exec/atomic.c cuda_remote/softgpu/exec/atomic.h \
	cuda_remote/softgpu/exec/atomic_wide.c \
	cuda_remote/softgpu/exec/call_frame.h \
	cuda_remote/softgpu/exec/check.c cuda_remote/softgpu/exec/check.h \
	cuda_remote/softgpu/exec/check_global.c cuda_remote/softgpu/exec/check_shared.c \
	cuda_remote/softgpu/exec/cluster.c cuda_remote/softgpu/exec/cluster.h \
	cuda_remote/softgpu/exec/collective.c cuda_remote/softgpu/exec/collective.h \
	cuda_remote/softgpu/exec/cube.c cuda_remote/softgpu/exec/cube.h \
	cuda_remote/softgpu/exec/decode.c cuda_remote/softgpu/exec/decode.h \
	cuda_remote/softgpu/exec/decode_check.c cuda_remote/softgpu/exec/decode_check.h \
	cuda_remote/softgpu/exec/decode_compare.c \
	cuda_remote/softgpu/exec/decode_async.c \
	cuda_remote/softgpu/exec/decode_tensor.c \
	cuda_remote/softgpu/exec/tensor.c cuda_remote/softgpu/exec/tensor.h \
	cuda_remote/softgpu/tensor_map.h \
	cuda_remote/softgpu/exec/decode_cluster.c \
	cuda_remote/softgpu/exec/decode_control.c \
	cuda_remote/softgpu/exec/decode_matrix.c \
	cuda_remote/softgpu/exec/decode_memory.c \
	cuda_remote/softgpu/exec/decode_special.c \
	cuda_remote/softgpu/exec/device_launch.c cuda_remote/softgpu/exec/device_launch.h \
	cuda_remote/softgpu/exec/decode_texture.c \
	cuda_remote/softgpu/exec/decode_video.c \
	cuda_remote/softgpu/exec/forms.c \
	cuda_remote/softgpu/exec/insn.h \
	cuda_remote/softgpu/exec/launch.c \
	cuda_remote/softgpu/exec/matrix.c cuda_remote/softgpu/exec/matrix.h \
	cuda_remote/softgpu/exec/mbarrier.c cuda_remote/softgpu/exec/mbarrier.h \
	cuda_remote/softgpu/exec/memory.c \
	cuda_remote/softgpu/exec/output.c cuda_remote/softgpu/exec/output.h \
	cuda_remote/softgpu/exec/print.c \
	cuda_remote/softgpu/exec/program.c \
	cuda_remote/softgpu/exec/sample.c cuda_remote/softgpu/exec/sample.h \
	cuda_remote/softgpu/exec/sample_plane.c cuda_remote/softgpu/exec/sample_plane.h \
	cuda_remote/softgpu/exec/special.c cuda_remote/softgpu/exec/special.h \
	cuda_remote/softgpu/exec/strong.c cuda_remote/softgpu/exec/strong.h \
	cuda_remote/softgpu/exec/surface.c \
	cuda_remote/softgpu/exec/texel.c cuda_remote/softgpu/exec/texel.h \
	cuda_remote/softgpu/exec/texture.c cuda_remote/softgpu/exec/texture.h \
	cuda_remote/softgpu/exec/texture_table.c cuda_remote/softgpu/exec/texture_table.h \
	cuda_remote/softgpu/texture.h \
	cuda_remote/softgpu/exec/video.c cuda_remote/softgpu/exec/video.h \
	cuda_remote/softgpu/exec/warp.h
softgpu_cppflags = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
softgpu_cflags = $(AM_CFLAGS) -ffp-contract=off -fno-strict-aliasing
cuda_remote_softgpu_libsgengine_la_CPPFLAGS = $(softgpu_cppflags)
cuda_remote_softgpu_libsgengine_la_CFLAGS = $(softgpu_cflags)
cuda_remote_softgpu_libsgengine_la_LIBADD = cuda_remote/softgpu/exec/liblanes_baseline.la \
	cuda_remote/softgpu/exec/libcontrol.la -lm

# What runs between lane operations, of which it knows only masks: without vector registers, as the operations leave
# their upper halves in use, and an old (SSE) instruction would wait for whatever is under way in the register it names.
noinst_LTLIBRARIES += cuda_remote/softgpu/exec/libcontrol.la
cuda_remote_softgpu_exec_libcontrol_la_SOURCES = cuda_remote/softgpu/exec/block.c cuda_remote/softgpu/exec/control.c \
	cuda_remote/softgpu/exec/warp.c
cuda_remote_softgpu_exec_libcontrol_la_CPPFLAGS = $(softgpu_cppflags)
cuda_remote_softgpu_exec_libcontrol_la_CFLAGS = $(softgpu_cflags)

# The tables of operations; a new one needs no more than its line here.
softgpu_tables = \
	cuda_remote/softgpu/exec/ops/integer.table \
	cuda_remote/softgpu/exec/ops/logic.table \
	cuda_remote/softgpu/exec/ops/float.table \
	cuda_remote/softgpu/exec/ops/half.table \
	cuda_remote/softgpu/exec/ops/compare.table \
	cuda_remote/softgpu/exec/ops/convert.table \
	cuda_remote/softgpu/exec/ops/vector.table

# The lane operations, once for each instruction set.
softgpu_lane_sources = cuda_remote/softgpu/exec/lanes.c cuda_remote/softgpu/exec/lanes.h cuda_remote/softgpu/exec/memory_ops.c \
	cuda_remote/softgpu/exec/lone.c cuda_remote/softgpu/exec/matrix_ops.c cuda_remote/softgpu/exec/matrix.h \
	cuda_remote/softgpu/exec/lane_float.h cuda_remote/softgpu/exec/lane_half.h cuda_remote/softgpu/exec/lane_math.h
softgpu_op_sources = $(softgpu_tables:.table=.c)
softgpu_lane_cflags = $(softgpu_cflags) -fno-math-errno -fno-trapping-math
noinst_LTLIBRARIES += cuda_remote/softgpu/exec/liblanes_baseline.la
cuda_remote_softgpu_exec_liblanes_baseline_la_SOURCES = $(softgpu_lane_sources)
nodist_cuda_remote_softgpu_exec_liblanes_baseline_la_SOURCES = $(softgpu_op_sources)
cuda_remote_softgpu_exec_liblanes_baseline_la_CPPFLAGS = $(softgpu_cppflags) -DLANES_ISA=baseline
cuda_remote_softgpu_exec_liblanes_baseline_la_CFLAGS = $(softgpu_lane_cflags)
if SOFTGPU_X86_64
cuda_remote_softgpu_exec_libcontrol_la_CFLAGS += -mgeneral-regs-only
cuda_remote_softgpu_libsgengine_la_CPPFLAGS += -DSOFTGPU_X86_64
cuda_remote_softgpu_libsgengine_la_LIBADD += cuda_remote/softgpu/exec/liblanes_avx2.la cuda_remote/softgpu/exec/liblanes_avx512.la
noinst_LTLIBRARIES += cuda_remote/softgpu/exec/liblanes_avx2.la cuda_remote/softgpu/exec/liblanes_avx512.la
cuda_remote_softgpu_exec_liblanes_avx2_la_SOURCES = $(softgpu_lane_sources)
nodist_cuda_remote_softgpu_exec_liblanes_avx2_la_SOURCES = $(softgpu_op_sources)
cuda_remote_softgpu_exec_liblanes_avx2_la_CPPFLAGS = $(softgpu_cppflags) -DLANES_ISA=avx2
cuda_remote_softgpu_exec_liblanes_avx2_la_CFLAGS = $(softgpu_lane_cflags) -mavx2 -mfma -mbmi2 -mno-vzeroupper
cuda_remote_softgpu_exec_liblanes_avx512_la_SOURCES = $(softgpu_lane_sources)
nodist_cuda_remote_softgpu_exec_liblanes_avx512_la_SOURCES = $(softgpu_op_sources)
cuda_remote_softgpu_exec_liblanes_avx512_la_CPPFLAGS = $(softgpu_cppflags) -DLANES_ISA=avx512
cuda_remote_softgpu_exec_liblanes_avx512_la_CFLAGS = $(softgpu_lane_cflags) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 \
	-mfma -mbmi2 -mprefer-vector-width=512 -mno-vzeroupper
endif

# Generated from the tables; never edited. The tables are in the sources, what is made of them in the build's folder.
softgpu_generator = $(srcdir)/cuda_remote/softgpu/exec/generate.py
softgpu_op_lists = $(patsubst %,cuda_remote/softgpu/exec/ops/%.h,forms lone tables)
softgpu_generated = $(softgpu_op_sources) $(softgpu_op_lists)
softgpu_table_files = $(addprefix $(srcdir)/,$(softgpu_tables))
$(softgpu_op_sources): cuda_remote/softgpu/exec/ops/%.c: $(srcdir)/cuda_remote/softgpu/exec/ops/%.table $(softgpu_generator)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) $(softgpu_generator) handlers $< > $@.new && mv $@.new $@
$(softgpu_op_lists): cuda_remote/softgpu/exec/ops/%.h: $(softgpu_generator) $(softgpu_table_files) \
		$(srcdir)/cuda_remote/softgpu/exec/local.mk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) $(softgpu_generator) $* $(softgpu_table_files) > $@.new && mv $@.new $@
BUILT_SOURCES += $(softgpu_generated)
CLEANFILES += $(softgpu_generated)
EXTRA_DIST += cuda_remote/softgpu/exec/generate.py $(softgpu_tables)
