#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Lists of adapters, on the libibverbs double.
exec "$top_srcdir/test/ibverbs_double/with_double.sh" "$top_builddir/test/ib/adapters"
