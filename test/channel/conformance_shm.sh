#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over shared memory.
exec "$top_builddir/test/channel/conformance" --transport shm
