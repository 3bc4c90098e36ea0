#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# with_double.sh COMMAND...: runs a command of the build tree, or of the system, on the libibverbs double (double.h).
# A program built with a sanitizer must get that sanitizer's library first: it is linked with it, so nothing is to be
# done here. A program built without one cannot load a double that was built with one; the tests that run such
# programs skip.
here=$(cd "${top_builddir:-.}" && pwd)/test/ibverbs_double/.libs
if [ ! -e "$here/libibverbs.so.1" ]; then
	echo "SKIP: no libibverbs double in $here (make check builds it, where libibverbs' headers are)"
	exit 77
fi
export LD_LIBRARY_PATH="$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
