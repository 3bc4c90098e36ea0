/* SPDX-License-Identifier: BSD-3-Clause */
/* The data connection, inside. */
#ifndef RC_CUDA_CLIENT_DATA_H
#define RC_CUDA_CLIENT_DATA_H

#include "cuda_remote/client/link.h"

/* Sends the bytes that the worker has asked for. Outside of CH3's progress, on the thread of the data connection. */
CUresult rc_fetch_serve(struct rc_link *link);

#endif
