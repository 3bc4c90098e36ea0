# SPDX-License-Identifier: BSD-3-Clause

# HR_WITH_FORTRAN: gfortran, or a compiler that calls procedures as gfortran does and knows its directive for arguments of any
# type. Sets FC, HRMPIFORT_FLAGS, HR_FORTRAN_CPPFLAGS and the conditional HAVE_FORTRAN. Call it after AC_PROG_FC and
# before LT_INIT.
AC_DEFUN([HR_WITH_FORTRAN], [
  AC_ARG_WITH([fortran], [AS_HELP_STRING([--without-fortran], [no MPI for Fortran])], [], [with_fortran=check])
  hr_have_fortran=no
  HRMPIFORT_FLAGS=
  AC_LANG_PUSH([Fortran])
  AC_FC_SRCEXT([f90], [hr_have_fortran=yes], [hr_have_fortran=no])
  AS_IF([test "x$with_fortran" = xno], [hr_have_fortran=no])
  AS_IF([test $hr_have_fortran = yes], [
    AC_MSG_CHECKING([whether $FC compiles the module mpi_f08])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
module headrace_check
  use, intrinsic :: iso_c_binding, only: c_int
  interface
    subroutine any_type(buffer)
      type(*), dimension(*) :: buffer
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
    end subroutine
  end interface
contains
  subroutine size_of(x)
    integer, dimension(..), intent(in) :: x
    call any_type(1)
    call any_type('a')
  end subroutine
end module]])], [hr_have_fortran=yes], [hr_have_fortran=no])
    rm -f headrace_check.mod
    AC_MSG_RESULT([$hr_have_fortran])
    # Programs with mpif.h pass buffers of different types to the same procedure.
    hr_save_FCFLAGS=$FCFLAGS
    FCFLAGS="$FCFLAGS -fallow-argument-mismatch"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM], [HRMPIFORT_FLAGS=-fallow-argument-mismatch])
    FCFLAGS=$hr_save_FCFLAGS
  ])
  AC_LANG_POP([Fortran])
  # The header belongs to the Fortran compiler; another C compiler does not find it.
  HR_FORTRAN_CPPFLAGS=
  AS_IF([test $hr_have_fortran = yes], [AC_CHECK_HEADER([ISO_Fortran_binding.h], [], [
    hr_fortran_include=`$FC -print-file-name=include`
    AS_IF([test -f "$hr_fortran_include/ISO_Fortran_binding.h"], [HR_FORTRAN_CPPFLAGS="-idirafter $hr_fortran_include"],
      [hr_have_fortran=no])])])
  AC_SUBST([HRMPIFORT_FLAGS])
  AC_SUBST([HR_FORTRAN_CPPFLAGS])
  AM_CONDITIONAL([HAVE_FORTRAN], [test $hr_have_fortran = yes])
  m4_append([hr_summary_lines], [
  HR_SUMMARY_LINE([fortran], [$hr_have_fortran], [no MPI for Fortran])])
])
