# SPDX-License-Identifier: BSD-3-Clause
# Installed as sources, so that people can build them against the installed package; built here for the tests.
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	%D%/cuda_check.h %D%/echo_client.c %D%/echo_server.c %D%/file_copy.c %D%/matmul.cu %D%/nvrtc.c %D%/pipe.c %D%/ring.c %D%/saxpy.cu %D%/streams.cu

# Programs of the bare channel; test/alone runs them.
check_PROGRAMS += %D%/echo_client %D%/echo_server %D%/file_copy %D%/pipe
examples_echo_client_SOURCES = %D%/echo_client.c
examples_echo_client_LDADD = rdma_channel/libheadrace-channel.la
examples_echo_server_SOURCES = %D%/echo_server.c
examples_echo_server_LDADD = rdma_channel/libheadrace-channel.la
examples_file_copy_SOURCES = %D%/file_copy.c
examples_file_copy_LDADD = rdma_channel/libheadrace-channel.la
examples_pipe_SOURCES = %D%/pipe.c
examples_pipe_LDADD = rdma_channel/libheadrace-channel.la

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
