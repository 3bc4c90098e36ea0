AC_CONFIG_FILES([rdma_channel/headrace-channel.pc])
