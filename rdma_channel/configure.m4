# SPDX-License-Identifier: BSD-3-Clause
AC_CONFIG_FILES([rdma_channel/headrace-channel.pc])
