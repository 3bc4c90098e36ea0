# SPDX-License-Identifier: BSD-3-Clause
# Installed as sources, so that people can build them against the installed package; built here for the tests.
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	%D%/cuda_check.h %D%/matmul.cu %D%/nvrtc.c %D%/pipe.c %D%/ring.c %D%/saxpy.cu %D%/streams.cu

# CUDA programs as anybody would build them: nvcc with the shared runtime, nothing of ours.
cuda_examples = %D%/bin/saxpy %D%/bin/matmul %D%/bin/streams %D%/bin/nvrtc
if HAVE_NVCC
CHECK_BINARIES += $(cuda_examples)
%D%/bin/saxpy %D%/bin/matmul %D%/bin/streams: %D%/bin/%: %D%/%.cu %D%/cuda_check.h
	$(AM_V_GEN)$(MKDIR_P) %D%/bin && $(NVCC) -O2 -cudart shared -I$(srcdir)/%D% -o $@ $(srcdir)/%D%/$*.cu
%D%/bin/nvrtc: %D%/nvrtc.c
	$(AM_V_GEN)$(MKDIR_P) %D%/bin && $(NVCC) -O2 -cudart none -o $@ $(srcdir)/%D%/nvrtc.c -lnvrtc -lcuda
endif
CLEANFILES += $(cuda_examples)
cuda-examples: $(cuda_examples)
.PHONY: cuda-examples
