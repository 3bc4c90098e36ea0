#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over TCP, with a quarter of the amounts but in the long form: three quarters of the time went into more
# messages of the same kind.
scale=()
[ -n "${HEADRACE_TEST_LONG:-}" ] || scale=(--scale 0.25)
exec "$top_builddir/test/channel/conformance" --transport tcp "${scale[@]}"
