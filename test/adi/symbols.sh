#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The library exports what mpi.h declares, MPI_ weak and PMPI_ strong, and nothing else.
. "$top_srcdir/test/adi/common.sh"
library=$top_builddir/adi/.libs/libmpi_abi.so
if ! command -v nm >/dev/null || [ ! -e "$library" ]; then
	echo "skipped: nm or the shared library is missing"
	exit 77
fi
nm -D --defined-only "$library" | sed 's/@.*//' | awk '{ print $3, $2 }' | sort >"$scratch/exported"
sed -n 's/^\(int\|double\|MPI_[A-Z][a-z]*\) \(P\{0,1\}MPI_[A-Za-z_0-9]*\)(.*/\2/p' "$top_builddir/adi/mpi.h" |
	awk '{ print $1, $1 ~ /^P/ ? "T" : "W" }' | sort >"$scratch/declared"
[ -s "$scratch/declared" ] || fail "no declarations found"
diff "$scratch/declared" "$scratch/exported" || fail "declared (<) and exported (>) differ"
readelf -d "$library" | grep -q 'SONAME.*libmpi_abi\.so\.1' || fail "soname"
