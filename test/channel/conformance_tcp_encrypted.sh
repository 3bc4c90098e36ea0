#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over TCP with keys on every connection: encrypted records instead of frames. The amounts are those of
# conformance_tcp.sh.
scale=()
[ -n "${HEADRACE_TEST_LONG:-}" ] || scale=(--scale 0.25)
exec "$top_builddir/test/channel/conformance_encrypted" --transport tcp "${scale[@]}"
