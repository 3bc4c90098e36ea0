# SPDX-License-Identifier: BSD-3-Clause
# The protocol as models for spin; .ci/run checks them, as does
#	make check-model
EXTRA_DIST += %D%/back.pml %D%/check.sh %D%/shm.pml %D%/several.pml %D%/single.pml %D%/verbs.pml \
	%D%/visited %D%/zerocopy.pml
check-model:
	CC='$(CC)' $(srcdir)/%D%/check.sh --all
.PHONY: check-model
