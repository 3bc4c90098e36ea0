# SPDX-License-Identifier: BSD-3-Clause
# The echo driver and the program that compares what it records: README.md.
check_LTLIBRARIES += test/cuda/echo/libecho.la
test_cuda_echo_libecho_la_SOURCES = test/cuda/echo/driver.c test/cuda/echo/green_driver.c test/cuda/echo/driver.h test/cuda/echo/echo.h
nodist_test_cuda_echo_libecho_la_SOURCES = test/cuda/echo/driver_calls.c
test_cuda_echo_libecho_la_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_cuda_echo_libecho_la_LDFLAGS = $(AM_LDFLAGS) -shared -module -avoid-version -rpath /nowhere -Wl,-Bsymbolic
test_cuda_echo_libecho_la_LIBADD = cuda_remote/api/libcuapi.la rdma_channel/base/libhrbase.la

check_PROGRAMS += test/cuda/echo/echo
test_cuda_echo_echo_SOURCES = test/cuda/echo/runner.c test/cuda/echo/green.c test/cuda/echo/launches.c test/cuda/echo/runner.h test/cuda/echo/echo.h
nodist_test_cuda_echo_echo_SOURCES = test/cuda/echo/cases.c
test_cuda_echo_echo_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_cuda_echo_echo_LDADD = cuda_remote/client/libcuda.la
$(test_cuda_echo_echo_OBJECTS) $(test_cuda_echo_libecho_la_OBJECTS): test/cuda/echo/direct.h

check_PROGRAMS += test/cuda/echo/copies
test_cuda_echo_copies_SOURCES = test/cuda/echo/copies.c
test_cuda_echo_copies_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
EXTRA_test_cuda_echo_copies_DEPENDENCIES = cuda_remote/client/libcuda.la

check_PROGRAMS += test/cuda/echo/sequences
test_cuda_echo_sequences_SOURCES = test/cuda/echo/sequences.c test/cuda/echo/graph_sequences.c test/cuda/echo/image_sequences.c \
	test/cuda/echo/memory_sequences.c test/cuda/echo/sequences.h
test_cuda_echo_sequences_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
EXTRA_test_cuda_echo_sequences_DEPENDENCIES = cuda_remote/client/libcuda.la
$(test_cuda_echo_sequences_OBJECTS): test/cuda/echo/covered.h

dist_check_SCRIPTS += test/cuda/echo/echo.sh test/cuda/echo/copies.sh test/cuda/echo/sequences.sh
TESTS += test/cuda/echo/echo.sh test/cuda/echo/copies.sh test/cuda/echo/sequences.sh
ECHO_INPUTS = test/cuda/echo/echo.py test/cuda/echo/values.py test/cuda/echo/hand.list test/cuda/echo/copies.c
ECHO_GENERATED = test/cuda/echo/driver_calls.c test/cuda/echo/cases.c test/cuda/echo/direct.h test/cuda/echo/covered.h
EXTRA_DIST += $(ECHO_INPUTS) test/cuda/echo/README.md
CLEANFILES += $(ECHO_GENERATED)

HR_ECHO_PY = $(AM_V_GEN)$(MKDIR_P) $(@D) && \
	echo_py() { (cd $(srcdir) && $(PYTHON) -B test/cuda/echo/echo.py "$$1" "$(CC) $(CUDA_CPPFLAGS)" cuda_remote/api $(HR_CALL_TABLE)) \
		> "$$2.new" && mv "$$2.new" "$$2"; } && echo_py
test/cuda/echo/driver_calls.c: $(ECHO_INPUTS) $(HR_CALL_INPUTS)
	$(HR_ECHO_PY) driver.c $@
test/cuda/echo/cases.c: $(ECHO_INPUTS) $(HR_CALL_INPUTS)
	$(HR_ECHO_PY) cases.c $@
test/cuda/echo/direct.h: $(ECHO_INPUTS) $(HR_CALL_INPUTS)
	$(HR_ECHO_PY) direct.h $@
test/cuda/echo/covered.h: $(ECHO_INPUTS) $(HR_CALL_INPUTS)
	$(HR_ECHO_PY) covered.h $@
