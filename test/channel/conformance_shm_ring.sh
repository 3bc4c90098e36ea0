#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over shared memory where every byte goes through the ring.
HEADRACE_SHM_ZERO_COPY=0 exec "$top_builddir/test/channel/conformance" --transport shm --scale 0.5
