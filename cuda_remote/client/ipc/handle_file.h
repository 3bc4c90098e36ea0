/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shareable handles are descriptors, which programs pass to other processes. That of a remote object is a socket, in which the
 * object's handle waits to be read, or a small file in memory that holds it. The other end of the socket is the worker's, which
 * keeps the object until all copies of the descriptor are closed.
 */
#ifndef RC_HANDLE_FILE_H
#define RC_HANDLE_FILE_H

#include "cuda_remote/client/session.h"

/* Makes a file. CUDA_ERROR_OPERATING_SYSTEM. The program closes the descriptor. */
CUresult rc_handle_file_make(const struct rc_wire_shared *handle, int *file);
/* The same with a socket, or with a file if the connection is to be encrypted or the server refuses a socket. */
CUresult rc_handle_file_open(const struct rc_session *session, const struct rc_wire_shared *handle, int *file);
/* CUDA_ERROR_INVALID_VALUE: it is neither. The descriptor stays the program's. */
CUresult rc_handle_file_read(int file, struct rc_wire_shared *handle);

#endif
