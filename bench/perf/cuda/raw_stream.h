/* SPDX-License-Identifier: BSD-3-Clause */
/* A bare TCP stream over loopback to a child process: the floor of copies over tcp. Errors end the program. */
#ifndef PERF_RAW_STREAM_H
#define PERF_RAW_STREAM_H

#include <stddef.h>

/* Starts the child. Before the program has threads. bytes: of one transfer. The child ends with the program. */
void raw_stream_open(size_t bytes);
/* Sends the bytes, or receives them. Returns when all have arrived. */
void raw_stream_send(const char *memory);
void raw_stream_receive(char *memory);

#endif
