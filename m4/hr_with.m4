# SPDX-License-Identifier: BSD-3-Clause

m4_define([hr_summary_lines], [])

# HR_WITH_LIBRARY(OPTION, VARIABLE, PKG-CONFIG-MODULE, HEADER, FUNCTION, LIBRARY, COST, [tests])
# Looks in --with-OPTION=DIR first, then asks pkg-config, then the compiler's own paths.
# Sets VARIABLE_CFLAGS, VARIABLE_LIBS, the conditional HAVE_VARIABLE and the same macro in config.h.
# COST is what its absence means to a user; the summary prints it.
# tests: only tests use the library, and config.h does not say whether it was found. So a library that is installed
# after the first build does not compile everything anew.
AC_DEFUN([HR_WITH_LIBRARY], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=DIR], [$6 under DIR (include, lib); --without-$1 leaves it out])],
    [], [with_$1=check])
  hr_have_$1=no
  AS_IF([test "x$with_$1" != xno], [
    $2_CFLAGS= $2_LIBS=
    AS_CASE([$with_$1],
      [yes|check], [PKG_CHECK_EXISTS([$3], [
        $2_CFLAGS=`$PKG_CONFIG --cflags $3`
        $2_LIBS=`$PKG_CONFIG --libs $3`], [$2_LIBS="-l$6"])],
      [hr_libdir="$with_$1/lib"
       AS_IF([test ! -d "$hr_libdir"], [hr_libdir="$with_$1/lib64"])
       $2_CFLAGS="-I$with_$1/include"
       $2_LIBS="-L$hr_libdir -Wl,-rpath,$hr_libdir -l$6"])
    hr_save_CPPFLAGS=$CPPFLAGS hr_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $$2_CFLAGS" LIBS="$$2_LIBS $LIBS"
    AC_CHECK_HEADER([$4], [AC_MSG_CHECKING([for $5 in $$2_LIBS])
      AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <$4>], [void *volatile p = (void *) &$5; (void) p;])],
        [hr_have_$1=yes])
      AC_MSG_RESULT([$hr_have_$1])])
    CPPFLAGS=$hr_save_CPPFLAGS LIBS=$hr_save_LIBS
    AS_IF([test $hr_have_$1 = no], [
      $2_CFLAGS= $2_LIBS=
      AS_CASE([$with_$1], [check], [],
        [AC_MSG_ERROR([--with-$1 was asked for, but $4 with $5 was not found: name its prefix with --with-$1=DIR])])])
  ])
  AC_SUBST([$2_CFLAGS])
  AC_SUBST([$2_LIBS])
  AM_CONDITIONAL([HAVE_$2], [test $hr_have_$1 = yes])
  m4_if([$8], [tests], [], [
    AS_IF([test $hr_have_$1 = yes], [AC_DEFINE([HAVE_$2], [1], [Define to 1 if $6 was found.])])])
  m4_append([hr_summary_lines], [
  HR_SUMMARY_LINE([$1], [$hr_have_$1], [$7])])
])

# HR_WITH_CUDA: the toolkit's headers (to build cuda_remote/) and nvcc (for its tests and examples).
AC_DEFUN([HR_WITH_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR], [CUDA toolkit under DIR; --without-cuda leaves remote CUDA out])],
    [], [with_cuda=check])
  hr_have_cuda=no
  CUDA_HOME=
  AS_IF([test "x$with_cuda" != xno], [
    AS_CASE([$with_cuda], [yes|check],
      [AC_PATH_PROG([hr_nvcc_found], [nvcc], [], [$PATH:/usr/local/cuda/bin])
       AS_IF([test -n "$hr_nvcc_found"], [CUDA_HOME=`readlink -f "$hr_nvcc_found"`
         CUDA_HOME=`dirname "$CUDA_HOME"`; CUDA_HOME=`dirname "$CUDA_HOME"`], [CUDA_HOME=/usr/local/cuda])],
      [CUDA_HOME=$with_cuda])
    CUDA_CPPFLAGS="-isystem $CUDA_HOME/include"
    hr_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
    AC_MSG_CHECKING([for the CUDA 13 toolkit's headers in $CUDA_HOME/include])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([#include <cuda.h>
#include <cuda_runtime_api.h>
#if CUDA_VERSION < 13000 || CUDA_VERSION >= 14000
#error CUDA 13 is needed
#endif])], [hr_have_cuda=yes])
    AC_MSG_RESULT([$hr_have_cuda])
    CPPFLAGS=$hr_save_CPPFLAGS
    AS_IF([test $hr_have_cuda = no], [
      CUDA_CPPFLAGS=
      AS_CASE([$with_cuda], [check], [],
        [AC_MSG_ERROR([--with-cuda was asked for, but $CUDA_HOME/include has no cuda.h of CUDA 13: name the toolkit's folder with --with-cuda=DIR])])])
  ])
  NVCC=
  AS_IF([test $hr_have_cuda = yes], [AC_PATH_PROG([NVCC], [nvcc], [], [$CUDA_HOME/bin])])
  AC_SUBST([CUDA_HOME])
  AC_SUBST([CUDA_CPPFLAGS])
  AM_CONDITIONAL([HAVE_CUDA], [test $hr_have_cuda = yes])
  AM_CONDITIONAL([HAVE_NVCC], [test -n "$NVCC"])
  AS_IF([test $hr_have_cuda = yes], [AC_DEFINE([HAVE_CUDA], [1], [Define to 1 if the CUDA headers were found.])])
  hr_have_nvcc=no
  AS_IF([test -n "$NVCC"], [hr_have_nvcc=yes])
  m4_append([hr_summary_lines], [
  HR_SUMMARY_LINE([cuda], [$hr_have_cuda], [no remote CUDA and no software GPU: the messaging half only])
  HR_SUMMARY_LINE([nvcc], [$hr_have_nvcc], [CUDA tests and examples are not built])])
])

# HR_WITH_MPIRUN: Open MPI's launcher, to start the tests' ranks. Nothing is linked with Open MPI.
AC_DEFUN([HR_WITH_MPIRUN], [
  AC_ARG_WITH([openmpi], [AS_HELP_STRING([--with-openmpi=DIR], [Open MPI's mpirun under DIR/bin (tests only)])],
    [], [with_openmpi=check])
  MPIRUN=
  AS_CASE([$with_openmpi], [no], [],
    [yes|check], [AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun])],
    [AC_PATH_PROG([MPIRUN], [mpirun], [], [$with_openmpi/bin])])
  AC_SUBST([MPIRUN])
  AM_CONDITIONAL([HAVE_MPIRUN], [test -n "$MPIRUN"])
  hr_have_mpirun=no
  AS_IF([test -n "$MPIRUN"], [hr_have_mpirun=yes],
    [AS_CASE([$with_openmpi], [no|check], [],
      [AC_MSG_ERROR([--with-openmpi was asked for, but there is no mpirun: name Open MPI's prefix with --with-openmpi=DIR])])])
  m4_append([hr_summary_lines], [
  HR_SUMMARY_LINE([mpirun], [$hr_have_mpirun], [the MPI tests are skipped])])
])

# HR_SUMMARY_LINE(NAME, VALUE, COST): one line of the summary; COST only where VALUE is no.
AC_DEFUN([HR_SUMMARY_LINE], [
  AS_IF([test "x$2" = xno], [printf '  %-8s no    (%s)\n' '$1' "$3"], [printf '  %-8s %s\n' '$1' "$2"])])

# HR_SUMMARY: what was found, and what each absence costs.
AC_DEFUN([HR_SUMMARY], [
  AS_ECHO([""])
  AS_ECHO(["Headrace $PACKAGE_VERSION will be installed into $prefix"])
  m4_expand([hr_summary_lines])
  AS_ECHO([""])
])
