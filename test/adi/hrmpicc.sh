#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The compiler wrappers build programs that run, from a prefix that was moved after it was installed.
. "$top_srcdir/test/adi/common.sh"
# When libheadrace_mpifort is installed, libtool links it once more in the build folder, where fortran.sh uses it.
library=$top_builddir/adi/libheadrace_mpifort.la
if [ -e "$library" ]; then
	exec 9<"$library"
	flock 9
fi
make -C "$top_builddir" install-exec install-data DESTDIR="$scratch/stage" >"$scratch/log" 2>&1 || {
	tail -20 "$scratch/log"
	fail "make install"
}
exec 9<&-
found=$(find "$scratch/stage" -name hrmpicc -path '*/bin/*')
[ -n "$found" ] || fail "hrmpicc is not installed"
mv "$(dirname "$(dirname "$found")")" "$scratch/moved" || fail "moving the prefix"
rm -rf "$scratch/stage"
cp "$top_srcdir/test/adi/ring.c" "$scratch/ring.c"
cd "$scratch" || exit
PATH=$scratch/moved/bin:$PATH
hrmpicc -I"$top_srcdir" -Wall -Werror -O ring.c -o ring || fail "compiling and linking"
timeout 60 ./ring 100 || fail "running"
hrmpicc -I"$top_srcdir" -c ring.c && [ -e ring.o ] || fail "compiling only"
hrmpicc -show ring.o -o again | grep -q -- "-L$scratch/moved/lib.* -lmpi_abi" || fail "-show"
hrmpicc ring.o -o again && timeout 60 ./again 10 || fail "linking only"
hrmpicc 2>/dev/null && fail "no arguments"
cp "$top_srcdir/test/adi/older.c" "$scratch/older.cpp"
hrmpicxx -I"$top_srcdir" -Wall -Werror older.cpp -o older && timeout 60 ./older || fail "hrmpicxx"
if command -v hrmpifort >/dev/null; then
	hrmpifort -w "$top_srcdir/test/adi/fortran/module.f90" -o module && timeout 60 ./module || fail "hrmpifort"
fi
exit 0
