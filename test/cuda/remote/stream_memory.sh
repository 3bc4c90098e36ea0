#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Streams that wait for a value and write one, over a worker.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 120 "$build/test/cuda/remote/stream_memory"
