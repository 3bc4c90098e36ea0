#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over verbs, on the libibverbs double.
exec "$top_srcdir/test/verbs/with_double.sh" "$top_builddir/test/channel/conformance" --transport verbs --scale 0.2
