#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A get that does not go on with the rest, on the libibverbs double.
exec "$top_srcdir/test/ibverbs_double/with_double.sh" "$top_builddir/test/ib/gets"
