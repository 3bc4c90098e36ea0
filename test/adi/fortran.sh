#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs in Fortran with mpif.h, the module mpi and the module mpi_f08, alone and with two to four ranks.
. "$top_srcdir/test/adi/common.sh"
wrapper=$top_builddir/adi/hrmpifort
if [ ! -e "$top_builddir/adi/libheadrace_mpifort.la" ]; then
	echo "skipped: this build has no MPI for Fortran"
	exit 77
fi
# hrmpicc.sh installs, and libtool links the library once more then.
exec 9<"$top_builddir/adi/libheadrace_mpifort.la"
flock -s 9
read -ra command <<<"$("$wrapper" -show)"
options=()
for option in "${command[@]}"; do
	case $option in
	-I* | -L* | -l* | -Wl,*) ;; # of an installation
	*) options+=("$option") ;;
	esac
done
libraries=$top_builddir/adi/.libs
# Many error handlers, each with a procedure of its own: so they are generated.
handlers=200
{
	sed "s/HANDLERS/$handlers/" "$top_srcdir/test/adi/fortran/callbacks.f90"
	for i in $(seq "$handlers"); do
		printf 'subroutine h%d(comm, code)\n integer comm, code, called\n common /calls/ called\n called = %d\nend\n' "$i" "$i"
	done
	printf 'subroutine make(i, handler)\n use mpi\n integer i, handler, ierr\n'
	for i in $(seq "$handlers"); do
		printf ' external h%d\n' "$i"
	done
	for i in $(seq "$handlers"); do
		printf ' if (i == %d) call MPI_Comm_create_errhandler(h%d, handler, ierr)\n' "$i" "$i"
	done
	echo end
} >"$scratch/callbacks.f90"
for source in fixed.f module.f90 f08.f90 sections.f90 attributes.f90 callbacks.f90; do
	program=$scratch/${source%.*}
	sources=("$top_srcdir/test/adi/fortran/$source")
	[ $source != callbacks.f90 ] || sources=("$scratch/$source")
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
