#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory pools and batches of copies over a worker.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 120 "$build/test/cuda/remote/pools"
