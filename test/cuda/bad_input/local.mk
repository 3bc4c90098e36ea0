# SPDX-License-Identifier: BSD-3-Clause
# Bad input to the whole path, by programs as users build them.
bad_input_sources = %D%/bad_calls.cu %D%/elf_only.cu %D%/copy_loop.cu %D%/large_variable.cu %D%/wrong_calls.cu
EXTRA_DIST += $(bad_input_sources) %D%/program.sh
dist_check_SCRIPTS += %D%/bad_input_test.sh %D%/two_hosts_test.sh %D%/wrong_calls_test.sh
if HAVE_NVCC
bad_input_programs = %D%/bad_calls %D%/elf_only %D%/copy_loop %D%/large_variable %D%/wrong_calls
CHECK_BINARIES += $(bad_input_programs)
CLEANFILES += $(bad_input_programs)
TESTS += %D%/bad_input_test.sh %D%/two_hosts_test.sh %D%/wrong_calls_test.sh
BAD_INPUT_NVCC = $(MKDIR_P) $(@D) && $(NVCC) -std=c++17 -cudart shared -Wno-deprecated-gpu-targets -o $@
%D%/bad_calls: %D%/bad_calls.cu
	$(AM_V_GEN)$(BAD_INPUT_NVCC) -arch=compute_75 $(srcdir)/%D%/bad_calls.cu
%D%/large_variable: %D%/large_variable.cu
	$(AM_V_GEN)$(BAD_INPUT_NVCC) -arch=compute_75 $(srcdir)/%D%/large_variable.cu
%D%/wrong_calls: %D%/wrong_calls.cu
	$(AM_V_GEN)$(BAD_INPUT_NVCC) -arch=compute_75 $(srcdir)/%D%/wrong_calls.cu
%D%/copy_loop: %D%/copy_loop.cu
	$(AM_V_GEN)$(BAD_INPUT_NVCC) -arch=compute_75 $(srcdir)/%D%/copy_loop.cu
%D%/elf_only: %D%/elf_only.cu
	$(AM_V_GEN)$(BAD_INPUT_NVCC) -gencode arch=compute_75,code=sm_75 $(srcdir)/%D%/elf_only.cu
endif
