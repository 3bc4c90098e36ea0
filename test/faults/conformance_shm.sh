#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over shared memory through the fault channel.
exec "$top_srcdir/test/faults/conformance.sh" shm
