/* SPDX-License-Identifier: BSD-3-Clause */
/* Error messages about images. */
#ifndef SOFTGPU_COMPLAIN_H
#define SOFTGPU_COMPLAIN_H

#include "cuda_remote/softgpu/engine.h"

/*
 * Appends a line to log (may be NULL), which a program reads through JIT options, and to Headrace's log: at level error
 * if the program cannot read it, else at level info. The function that first knows of an error calls this.
 */
void fatbin_complain(softgpu_log_t *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
