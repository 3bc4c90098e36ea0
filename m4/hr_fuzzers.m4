# SPDX-License-Identifier: BSD-3-Clause

# HR_FUZZERS: --enable-fuzzers builds test/fuzz/ with libFuzzer and both sanitizers; needs clang. HR_LANES_CFLAGS: the
# interpreters of the software GPU parse no foreign bytes, and clang takes a quarter of an hour to instrument one of them.
AC_DEFUN([HR_FUZZERS], [
  AC_ARG_ENABLE([fuzzers], [AS_HELP_STRING([--enable-fuzzers], [build the fuzz targets (CC=clang)])],
    [], [enable_fuzzers=no])
  AS_IF([test "x$enable_fuzzers" = xyes], [
    hr_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -fsanitize=fuzzer,address,undefined"
    AC_MSG_CHECKING([whether $CC has libFuzzer])
    AC_LINK_IFELSE([AC_LANG_SOURCE([
      #include <stddef.h>
      #include <stdint.h>
      int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
      int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return data && size ? 0 : 0; }])],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([--enable-fuzzers needs clang with its runtime: configure CC=clang, Debian's clang and libclang-rt-14-dev])])
    CFLAGS=$hr_save_CFLAGS
    HR_CFLAGS="$HR_CFLAGS -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
    LDFLAGS="$LDFLAGS -fsanitize=address,undefined"
    HR_LANES_CFLAGS="-fno-sanitize=all -O1"
  ])
  AC_SUBST([HR_LANES_CFLAGS])
  AM_CONDITIONAL([FUZZERS], [test "x$enable_fuzzers" = xyes])
])
