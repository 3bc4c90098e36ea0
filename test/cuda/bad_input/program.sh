# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# Sourced: $program goes before headrace-run, which preloads libraries of its own behind those that are preloaded
# already, or before a CUDA program of nvcc's that runs without headrace-run.
# nvcc's host compiler did not instrument the programs, so a sanitizer's own library must be brought in before them.
sanitizer=$(ldd "$top_builddir/cuda_remote/client/.libs/libcuda.so.1" | awk '/lib(a|t)san/ {print $3}')
program="env${sanitizer:+ LD_PRELOAD=$sanitizer} ASAN_OPTIONS=detect_leaks=0:handle_segv=0"
