# SPDX-License-Identifier: BSD-3-Clause
# How fast the software GPU executes: make bench-softgpu. nvcc makes the kernels' PTX.
EXTRA_DIST += %D%/kernels.cu
if HAVE_NVCC
EXTRA_LTLIBRARIES = %D%/libplain_scalar.la %D%/libplain_vector.la
EXTRA_PROGRAMS = %D%/softgpu_speed
plain_sources = %D%/plain.c %D%/plain.h
bench_softgpu_libplain_scalar_la_SOURCES = $(plain_sources)
bench_softgpu_libplain_scalar_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLAIN_NAME=plain_scalar
bench_softgpu_libplain_scalar_la_CFLAGS = $(AM_CFLAGS) -O2 -fno-tree-vectorize
bench_softgpu_libplain_vector_la_SOURCES = $(plain_sources)
bench_softgpu_libplain_vector_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLAIN_NAME=plain_vector
bench_softgpu_libplain_vector_la_CFLAGS = $(AM_CFLAGS) -O3 -march=native -ffast-math
bench_softgpu_softgpu_speed_SOURCES = %D%/softgpu_speed.c %D%/plain.h
bench_softgpu_softgpu_speed_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
bench_softgpu_softgpu_speed_LDADD = %D%/libplain_scalar.la %D%/libplain_vector.la
CLEANFILES += %D%/kernels.ptx %D%/softgpu_speed

%D%/kernels.ptx: %D%/kernels.cu
	$(AM_V_GEN)$(MKDIR_P) %D% && $(NVCC) -ptx -arch=compute_75 -o $@ $(srcdir)/%D%/kernels.cu

bench-softgpu: %D%/softgpu_speed %D%/kernels.ptx cuda_remote/softgpu/libcuda.la
	%D%/softgpu_speed cuda_remote/softgpu/.libs/libcuda.so.1 %D%/kernels.ptx
endif
.PHONY: bench-softgpu
