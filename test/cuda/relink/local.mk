# SPDX-License-Identifier: BSD-3-Clause
# Programs that are linked with NVIDIA's static runtime.
check_PROGRAMS += test/cuda/relink/no_text_changes
test_cuda_relink_no_text_changes_SOURCES = test/cuda/relink/no_text_changes.c
check_PROGRAMS += test/cuda/relink/opens
test_cuda_relink_opens_SOURCES = test/cuda/relink/opens.c
test_cuda_relink_opens_LDADD = -ldl -lpthread
dist_check_SCRIPTS += test/cuda/relink/static_runtime.sh test/cuda/relink/python_module.sh
TESTS += test/cuda/relink/static_runtime.sh test/cuda/relink/python_module.sh
EXTRA_DIST += test/cuda/relink/library.cu test/cuda/relink/second.cu test/cuda/relink/program.cu \
	test/cuda/relink/habits.cu test/cuda/relink/plain.c test/cuda/relink/python_module.c \
	test/cuda/relink/python_module.py
