# SPDX-License-Identifier: BSD-3-Clause

# HR_WARNINGS: the warnings the tree is clean of, in HR_CFLAGS; --enable-werror for CI.
AC_DEFUN([HR_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])],
    [], [enable_werror=no])
  HR_CFLAGS="-std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -fvisibility=hidden"
  AS_IF([test "x$enable_werror" = xyes], [HR_CFLAGS="$HR_CFLAGS -Werror"])
  AC_SUBST([HR_CFLAGS])
])

# HR_SANITIZERS: --enable-sanitizers=address,undefined (any list that the compiler's -fsanitize takes).
AC_DEFUN([HR_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST], [build with -fsanitize=LIST, e.g. address,undefined])],
    [], [enable_sanitizers=no])
  AS_IF([test "x$enable_sanitizers" = xyes], [enable_sanitizers=address,undefined])
  AS_IF([test "x$enable_sanitizers" != xno], [
    HR_CFLAGS="$HR_CFLAGS -fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
    LDFLAGS="$LDFLAGS -fsanitize=$enable_sanitizers"
    # One option each: nvcc -Xcompiler takes a list apart at its commas.
    HR_SANITIZE=`AS_ECHO([" $enable_sanitizers"]) | sed 's/@<:@ ,@:>@/ -fsanitize=/g'`
    AC_DEFINE([HR_SANITIZED], [1], [Define to 1 in a sanitizer build.])])
  AC_SUBST([HR_SANITIZE])
  AM_CONDITIONAL([SANITIZED], [test "x$enable_sanitizers" != xno])
])
