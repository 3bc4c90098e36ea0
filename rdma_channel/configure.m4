# SPDX-License-Identifier: BSD-3-Clause
AC_CONFIG_FILES([rdma_channel/headrace-channel.pc])

# Open MPI's development files: only bench/compare links with Open MPI, and only to be compared with it.
hr_have_ompi=no
AS_IF([test "x$with_openmpi" != xno],
  [PKG_CHECK_MODULES([OMPI], [ompi-c], [hr_have_ompi=yes], [hr_have_ompi=no])])
AM_CONDITIONAL([HAVE_OMPI], [test $hr_have_ompi = yes])
m4_append([hr_summary_lines], [
HR_SUMMARY_LINE([openmpi], [$hr_have_ompi], [bench/compare has nothing to compare with])])
