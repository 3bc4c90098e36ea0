#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs in Fortran with mpif.h, the module mpi and the module mpi_f08, alone and with two to four ranks.
. "$top_srcdir/test/adi/common.sh"
wrapper=$top_builddir/adi/hrmpifort
if [ ! -e "$top_builddir/adi/libheadrace_mpifort.la" ]; then
	echo "skipped: this build has no MPI for Fortran"
	exit 77
fi
read -ra command <<<"$("$wrapper" -show)"
options=()
for option in "${command[@]}"; do
	case $option in
	-I* | -L* | -l* | -Wl,*) ;; # of an installation
	*) options+=("$option") ;;
	esac
done
libraries=$top_builddir/adi/.libs
for source in fixed.f module.f90 f08.f90 sections.f90 attributes.f90; do
	program=$scratch/${source%.*}
	sources=("$top_srcdir/test/adi/fortran/$source")
	[ $source != attributes.f90 ] || sources+=("$top_srcdir/test/adi/fortran/attributes_in_c.c")
	"${options[@]}" -w -I"$top_builddir/adi/fortran" -I"$top_builddir/adi" "${sources[@]}" -o "$program" -L"$libraries" \
		-Wl,-rpath,"$libraries" -lheadrace_mpifort -lmpi_abi 2>"$scratch/log" || {
		cat "$scratch/log"
		fail "compiling $source"
	}
	timeout 60 "$program" || fail "$source, alone"
done
need_mpirun
for program in fixed module f08 sections; do
	for n in 2 3 4; do
		ranks "$n" "$scratch/$program" || fail "$program, $n ranks"
	done
done
