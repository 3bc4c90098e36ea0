#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over TCP with keys on every connection: encrypted records instead of frames. conformance_tcp.sh transfers
# the whole amount over the same sockets; here a quarter of it is enough, but in the long form.
scale=()
[ -n "${HEADRACE_TEST_LONG:-}" ] || scale=(--scale 0.25)
exec "$top_builddir/test/channel/conformance_encrypted" --transport tcp "${scale[@]}"
