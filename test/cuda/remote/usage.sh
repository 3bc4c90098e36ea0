#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start --gpu-memory=64M
timeout 120 "$build/test/cuda/remote/usage"
