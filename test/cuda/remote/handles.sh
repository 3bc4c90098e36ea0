#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Handles that are given again (handles.c).
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 120 "$build/test/cuda/remote/handles" || fail "a handle is given again"
