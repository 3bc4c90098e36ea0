# SPDX-License-Identifier: BSD-3-Clause
# Vectors of every form of the scalar instructions against references; the device is found at run time.
if HAVE_CUDA
check_PROGRAMS += test/cuda/softgpu/vectors/vectors
dist_check_SCRIPTS += test/cuda/softgpu/vectors/references.sh test/cuda/softgpu/vectors/builds_agree.sh
TESTS += test/cuda/softgpu/vectors/references.sh test/cuda/softgpu/vectors/builds_agree.sh
test_cuda_softgpu_vectors_vectors_SOURCES = \
	test/cuda/softgpu/vectors/compare.c \
	test/cuda/softgpu/vectors/driver.c \
	test/cuda/softgpu/vectors/inputs.c \
	test/cuda/softgpu/vectors/integers.c \
	test/cuda/softgpu/vectors/kernels.c \
	test/cuda/softgpu/vectors/memory.c \
	test/cuda/softgpu/vectors/packed.c \
	test/cuda/softgpu/vectors/vectors.c test/cuda/softgpu/vectors/vectors.h \
	test/cuda/softgpu/vectors/video.c \
	test/cuda/softgpu/vectors/words.c
nodist_test_cuda_softgpu_vectors_vectors_SOURCES = test/cuda/softgpu/vectors/forms.h
test_cuda_softgpu_vectors_vectors_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(MPFR_CFLAGS)
test_cuda_softgpu_vectors_vectors_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
test_cuda_softgpu_vectors_vectors_LDADD = -lm
if HAVE_MPFR
test_cuda_softgpu_vectors_vectors_CPPFLAGS += -DHAVE_MPFR
test_cuda_softgpu_vectors_vectors_SOURCES += \
	test/cuda/softgpu/vectors/conversions.c \
	test/cuda/softgpu/vectors/exact.c test/cuda/softgpu/vectors/exact.h \
	test/cuda/softgpu/vectors/floats.c
test_cuda_softgpu_vectors_vectors_LDADD += $(MPFR_LIBS)
endif
vectors_forms = $(srcdir)/test/cuda/softgpu/vectors/forms.table
test/cuda/softgpu/vectors/forms.h: $(srcdir)/test/cuda/softgpu/vectors/expand.py $(vectors_forms)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) $(srcdir)/test/cuda/softgpu/vectors/expand.py $(vectors_forms) > $@.new && \
		mv $@.new $@
$(test_cuda_softgpu_vectors_vectors_OBJECTS): test/cuda/softgpu/vectors/forms.h
CLEANFILES += test/cuda/softgpu/vectors/forms.h

# Which forms have vectors: a table, and the test that none is without.
vectors_coverage = $(PYTHON) -B $(srcdir)/test/cuda/softgpu/vectors/coverage.py
vectors_coverage_inputs = $(softgpu_generator) test/cuda/softgpu/vectors/vectors \
	$(srcdir)/test/cuda/softgpu/vectors/census.txt $(srcdir)/test/cuda/softgpu/ptx/*.c -- $(softgpu_table_files)
coverage-ptx: test/cuda/softgpu/vectors/vectors
	$(vectors_coverage) $(vectors_coverage_inputs)
dist_check_SCRIPTS += test/cuda/softgpu/vectors/coverage.sh
TESTS += test/cuda/softgpu/vectors/coverage.sh

# The same vectors on the machine's own GPU.
check-vectors-gpu: test/cuda/softgpu/vectors/vectors
	test/cuda/softgpu/vectors/vectors --driver system
endif
EXTRA_DIST += test/cuda/softgpu/vectors/census.py test/cuda/softgpu/vectors/census.txt \
	test/cuda/softgpu/vectors/coverage.py test/cuda/softgpu/vectors/expand.py test/cuda/softgpu/vectors/forms.table
