#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Where something is scarce, on the libibverbs double.
exec "$top_srcdir/test/ibverbs_double/with_double.sh" "$top_builddir/test/ib/limits"
