/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shareable handles are descriptors, which programs pass to other processes. Those of a remote object are of a small file
 * in memory, which holds the object's handle.
 */
#ifndef RC_HANDLE_FILE_H
#define RC_HANDLE_FILE_H

#include "cuda_remote/client/client.h"

/* CUDA_ERROR_OPERATING_SYSTEM. The program closes the descriptor. */
CUresult rc_handle_file_make(const struct rc_wire_shared *handle, int *file);
/* CUDA_ERROR_INVALID_VALUE: it is no such file. The descriptor stays the program's. */
CUresult rc_handle_file_read(int file, struct rc_wire_shared *handle);

#endif
