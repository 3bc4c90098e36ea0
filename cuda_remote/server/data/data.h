/* SPDX-License-Identifier: BSD-3-Clause */
/* The data connection, inside: what connection.c calls for each kind of copy. All on the thread of the connection. */
#ifndef RC_CUDA_SERVER_DATA_H
#define RC_CUDA_SERVER_DATA_H

#include "cuda_remote/server/internal.h"

/* A stream has come to a copy to the host whose bytes are still on the device: sends them, and frees the parcel. */
void server_push_serve(struct server_thread *thread, struct server_parcel *parcel);
/* A stream has come to a copy whose bytes the client is to send: takes the parcel over. */
void server_fetch_begin(struct server_thread *thread, struct server_parcel *parcel);
/* A chunk of such a copy arrives; without bytes: the client refuses a window. */
int server_fetch_arrived(struct server_thread *thread, const struct rc_wire_chunk *chunk, uint64_t len, ch3_sink_t *sink);

#endif
