# SPDX-License-Identifier: BSD-3-Clause
AC_CONFIG_FILES([rdma_channel/headrace-channel.pc])

# Since rdma-core 35 libibverbs tells whether registered memory stays the process's own when it forks. The registration
# cache keeps nothing where nobody tells.
hr_have_fork_status=no
AS_IF([test $hr_have_verbs = yes], [
  hr_save_LIBS=$LIBS
  LIBS="$IBVERBS_LIBS $LIBS"
  AC_CHECK_FUNC([ibv_is_fork_initialized], [
    hr_have_fork_status=yes
    AC_DEFINE([HAVE_IBV_IS_FORK_INITIALIZED], [1], [Define to 1 if libibverbs has ibv_is_fork_initialized.])])
  LIBS=$hr_save_LIBS])
m4_append([hr_summary_lines], [
HR_SUMMARY_LINE([mr cache], [$hr_have_fork_status],
  [verbs registers the memory of each transfer anew: needs rdma-core 35])])

HR_WITH_LIBRARY([numa], [NUMA], [numa], [numaif.h], [mbind], [numa],
  [rings of shared memory lie on the node that touches them first])

HR_WITH_LIBRARY([sodium], [SODIUM], [libsodium], [sodium.h], [crypto_auth], [sodium],
  [no encrypted connections; no key files: headraced serves this host only])

# Open MPI's development files: only bench/compare links with Open MPI, and only to be compared with it.
hr_have_ompi=no
AS_IF([test "x$with_openmpi" != xno],
  [PKG_CHECK_MODULES([OMPI], [ompi-c], [hr_have_ompi=yes], [hr_have_ompi=no])])
AM_CONDITIONAL([HAVE_OMPI], [test $hr_have_ompi = yes])
m4_append([hr_summary_lines], [
HR_SUMMARY_LINE([openmpi], [$hr_have_ompi], [bench/compare has nothing to compare with])])
