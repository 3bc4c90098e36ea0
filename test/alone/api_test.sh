#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Header, version script, exported symbols, man pages and guide of the channel agree (api.py).
set -euo pipefail
library=$(echo "$top_builddir"/rdma_channel/.libs/libheadrace-channel.so.*.*)
[ -e "$library" ] || { echo "no shared library was built"; exit 77; }
case $(nm -D --defined-only "$library") in *__asan_* | *__tsan_* | *__ubsan_*) echo "built with a sanitizer"; exit 77 ;; esac
"$PYTHON" "$top_srcdir/test/alone/api.py" "$top_srcdir" "$library"
