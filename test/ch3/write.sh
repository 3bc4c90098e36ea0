#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What holds for messages and failures holds with HEADRACE_RENDEZVOUS=write too.
export HEADRACE_RENDEZVOUS=write
"$top_builddir/test/ch3/messages" && exec "$top_builddir/test/ch3/failures"
