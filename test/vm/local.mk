# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += test/vm/designs.sh test/vm/run.sh test/vm/init.sh test/vm/selftest.sh test/vm/check.sh test/vm/bench.sh \
	test/vm/cuda.sh test/vm/programs.sh

check_PROGRAMS += test/vm/verbs_cases
test_vm_verbs_cases_SOURCES = test/vm/verbs_cases.c test/channel/pair.c test/channel/pair.h
test_vm_verbs_cases_LDADD = rdma_channel/libhrchannel.la

# Verbs on the kernel's own Soft-RoCE, in a virtual machine: minutes, so not part of make check.
.PHONY: check-vm
check-vm: all $(check_PROGRAMS) $(CHECK_BINARIES)
	@top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' $(srcdir)/test/vm/check.sh test/vm/bench.sh

distclean-local: distclean-vm
.PHONY: distclean-vm
distclean-vm:
	rm -rf vm
