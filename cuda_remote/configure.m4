# SPDX-License-Identifier: BSD-3-Clause
# The relinkable runtime library keeps its inner names to itself.
AC_CHECK_TOOL([OBJCOPY], [objcopy], [objcopy])
# The software GPU's vector builds are for one family of CPUs; others run the portable one.
AC_ARG_ENABLE([vector-builds], [AS_HELP_STRING([--disable-vector-builds],
  [build the software GPU's operations for the portable instruction set only (several minutes less; slower kernels)])],
  [], [enable_vector_builds=yes])
AM_CONDITIONAL([SOFTGPU_X86_64], [test "x$host_cpu" = xx86_64 && test "x$enable_vector_builds" = xyes])
HR_WITH_LIBRARY([mpfr], [MPFR], [mpfr], [mpfr.h], [mpfr_rint], [mpfr],
  [make check has no reference for the software GPU's floats], [tests])
HR_WITH_LIBRARY([munge], [MUNGE], [munge], [munge.h], [munge_encode], [munge],
  [no credentials of MUNGE, which need sodium too: clients of other hosts need the key file])
# The proofs of a handshake by MUNGE are libsodium's.
AS_IF([test $hr_have_sodium = no], [hr_have_munge=no])
HR_WITH_LIBRARY([seccomp], [SECCOMP], [libseccomp], [seccomp.h], [seccomp_rule_add_array], [seccomp],
  [headraced does not filter the system calls of its workers])
