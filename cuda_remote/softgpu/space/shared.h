/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files behind memory that processes share (memfd_create(2)). Their names tell what they are for and which device they
 * belong to, so that a descriptor that another process hands over can be told from any other file. 0 or -errno.
 */
#ifndef SOFTGPU_SHARED_H
#define SOFTGPU_SHARED_H

#include <stdbool.h>
#include <stdint.h>

/* A file of bytes (0: grows), all zero, sealed against shrinking; purpose is a short word. The descriptor or -errno. */
int softgpu_shared_file(const char *purpose, int device, uint64_t bytes);

/* True if file is one that softgpu_shared_file made for this purpose, in whatever process. */
bool softgpu_shared_check(int file, const char *purpose, int *device, uint64_t *bytes);

/* Opens a descriptor of another process of the same user. -errno. */
int softgpu_shared_open(int process, int file);

#endif
