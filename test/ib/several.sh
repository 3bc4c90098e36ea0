#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The number of pieces that zero-copy announces before the first is read, on the libibverbs double.
exec "$top_srcdir/test/ibverbs_double/with_double.sh" "$top_builddir/test/ib/several"
