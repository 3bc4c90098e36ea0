# SPDX-License-Identifier: BSD-3-Clause
# The execution engine: statements to code, code on warps. libsgengine.la is engine.h's implementation; whoever links
# it provides memory.h.
noinst_LTLIBRARIES += cuda_remote/softgpu/libsgengine.la
cuda_remote_softgpu_libsgengine_la_SOURCES = \
	$(softgpu_ptx_sources) \
	cuda_remote/softgpu/engine.h cuda_remote/softgpu/memory.h \
	cuda_remote/softgpu/exec/allocate.c \
	cuda_remote/softgpu/exec/atomic.c cuda_remote/softgpu/exec/atomic.h \
	cuda_remote/softgpu/exec/block.c \
	cuda_remote/softgpu/exec/collective.c cuda_remote/softgpu/exec/collective.h \
	cuda_remote/softgpu/exec/control.c \
	cuda_remote/softgpu/exec/decode.c cuda_remote/softgpu/exec/decode.h \
	cuda_remote/softgpu/exec/decode_control.c \
	cuda_remote/softgpu/exec/decode_memory.c \
	cuda_remote/softgpu/exec/decode_special.c \
	cuda_remote/softgpu/exec/forms.c \
	cuda_remote/softgpu/exec/insn.h \
	cuda_remote/softgpu/exec/launch.c \
	cuda_remote/softgpu/exec/memory.c \
	cuda_remote/softgpu/exec/print.c \
	cuda_remote/softgpu/exec/program.c \
	cuda_remote/softgpu/exec/special.c cuda_remote/softgpu/exec/special.h \
	cuda_remote/softgpu/exec/warp.c cuda_remote/softgpu/exec/warp.h
softgpu_cppflags = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
softgpu_cflags = $(AM_CFLAGS) -ffp-contract=off -fno-strict-aliasing
cuda_remote_softgpu_libsgengine_la_CPPFLAGS = $(softgpu_cppflags)
cuda_remote_softgpu_libsgengine_la_CFLAGS = $(softgpu_cflags)
cuda_remote_softgpu_libsgengine_la_LIBADD = cuda_remote/softgpu/exec/liblanes_baseline.la -lm

# The lane operations, once for each instruction set.
softgpu_lane_sources = cuda_remote/softgpu/exec/lanes.c cuda_remote/softgpu/exec/lane_float.h \
	cuda_remote/softgpu/exec/lane_math.h cuda_remote/softgpu/exec/memory_ops.h
softgpu_lane_cflags = $(softgpu_cflags) -fno-math-errno -fno-trapping-math
noinst_LTLIBRARIES += cuda_remote/softgpu/exec/liblanes_baseline.la
cuda_remote_softgpu_exec_liblanes_baseline_la_SOURCES = $(softgpu_lane_sources)
cuda_remote_softgpu_exec_liblanes_baseline_la_CPPFLAGS = $(softgpu_cppflags) -DLANES_ISA=baseline
cuda_remote_softgpu_exec_liblanes_baseline_la_CFLAGS = $(softgpu_lane_cflags)
if SOFTGPU_X86_64
cuda_remote_softgpu_libsgengine_la_CPPFLAGS += -DSOFTGPU_X86_64
cuda_remote_softgpu_libsgengine_la_LIBADD += cuda_remote/softgpu/exec/liblanes_avx2.la cuda_remote/softgpu/exec/liblanes_avx512.la
noinst_LTLIBRARIES += cuda_remote/softgpu/exec/liblanes_avx2.la cuda_remote/softgpu/exec/liblanes_avx512.la
cuda_remote_softgpu_exec_liblanes_avx2_la_SOURCES = $(softgpu_lane_sources)
cuda_remote_softgpu_exec_liblanes_avx2_la_CPPFLAGS = $(softgpu_cppflags) -DLANES_ISA=avx2
cuda_remote_softgpu_exec_liblanes_avx2_la_CFLAGS = $(softgpu_lane_cflags) -mavx2 -mfma -mbmi2 -mno-vzeroupper
cuda_remote_softgpu_exec_liblanes_avx512_la_SOURCES = $(softgpu_lane_sources)
cuda_remote_softgpu_exec_liblanes_avx512_la_CPPFLAGS = $(softgpu_cppflags) -DLANES_ISA=avx512
cuda_remote_softgpu_exec_liblanes_avx512_la_CFLAGS = $(softgpu_lane_cflags) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 \
	-mfma -mbmi2 -mprefer-vector-width=512 -mno-vzeroupper
endif

# Generated from the table; never edited.
softgpu_generator = $(srcdir)/cuda_remote/softgpu/exec/generate.py
softgpu_table = $(srcdir)/cuda_remote/softgpu/exec/ops.table
cuda_remote/softgpu/exec/ops_handlers.h: $(softgpu_generator) $(softgpu_table)
	$(AM_V_GEN)$(MKDIR_P) cuda_remote/softgpu/exec && \
		$(PYTHON) $(softgpu_generator) handlers $(softgpu_table) > $@.new && mv $@.new $@
cuda_remote/softgpu/exec/ops_forms.h: $(softgpu_generator) $(softgpu_table)
	$(AM_V_GEN)$(MKDIR_P) cuda_remote/softgpu/exec && \
		$(PYTHON) $(softgpu_generator) forms $(softgpu_table) > $@.new && mv $@.new $@
# Through variables: a target written out here would replace automake's own rule.
softgpu_forms_object = cuda_remote/softgpu/exec/libsgengine_la-forms.lo
softgpu_lane_objects = cuda_remote/softgpu/exec/liblanes_baseline_la-lanes.lo \
	cuda_remote/softgpu/exec/liblanes_avx2_la-lanes.lo cuda_remote/softgpu/exec/liblanes_avx512_la-lanes.lo
$(softgpu_forms_object): cuda_remote/softgpu/exec/ops_forms.h
$(softgpu_lane_objects): cuda_remote/softgpu/exec/ops_handlers.h
BUILT_SOURCES += cuda_remote/softgpu/exec/ops_handlers.h cuda_remote/softgpu/exec/ops_forms.h
CLEANFILES += cuda_remote/softgpu/exec/ops_handlers.h cuda_remote/softgpu/exec/ops_forms.h
EXTRA_DIST += cuda_remote/softgpu/exec/generate.py cuda_remote/softgpu/exec/ops.table
