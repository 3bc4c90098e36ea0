#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Arrays, textures and surfaces: the test of the software GPU passes behind a worker too, and large copies arrive.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 120 "$build/test/cuda/remote/softgpu_arrays" && timeout 120 "$build/test/cuda/remote/array_copies"
