# SPDX-License-Identifier: BSD-3-Clause
include test/channel/local.mk
include test/ib/local.mk
include test/ch3/local.mk
include test/faults/local.mk
include test/adi/local.mk
include test/ibverbs_double/local.mk
include test/alone/local.mk
include test/model/local.mk
include test/vm/local.mk
include test/tools/local.mk
include test/fuzz/local.mk
if HAVE_CUDA
include test/cuda/local.mk
endif
EXTRA_DIST += test/installed.sh test/ports.sh test/times.sh
