/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files behind memory that processes of one user share (memfd_create(2)). A file's name contains its purpose and its
 * device. So a process can check that a descriptor of another process is such a file.
 */
#ifndef SOFTGPU_SHARED_H
#define SOFTGPU_SHARED_H

#include <stdbool.h>
#include <stdint.h>

/* Creates a file of zeros, sealed against shrinking. purpose: a short word. bytes: size; 0: the file grows later.
 * Returns the descriptor or -errno. */
int softgpu_shared_file(const char *purpose, int device, uint64_t bytes);

/* Returns whether softgpu_shared_file created file for this purpose, in any process. Stores its device and size. */
bool softgpu_shared_check(int file, const char *purpose, int *device, uint64_t *bytes);

/* Opens the file behind descriptor file of another process of the same user. Returns a descriptor or -errno. */
int softgpu_shared_open(int process, int file);

#endif
