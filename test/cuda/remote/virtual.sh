#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Virtual memory management over a worker. The quota counts memory until nothing refers to it.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
export HEADRACE_SOFTGPU_DEVICES=2
remote_start --gpu-memory=16M
timeout 120 "$build/test/cuda/remote/virtual"
