/* SPDX-License-Identifier: BSD-3-Clause */
/* The PTX of programs that were linked from relocatable device code. */
#ifndef RUNTIME_FATBIN_H
#define RUNTIME_FATBIN_H

#include "cuda_remote/fatbin.h"

/*
 * A program linked from relocatable device code has only machine code in its container; the PTX is in the containers of
 * its units. If exactly one unit has PTX, that is the PTX of the whole program. Then returns a container with the
 * machine code and the PTX, so that any device finds what it can run; the caller frees it with free(). NULL: no unit or
 * several units have PTX, or no memory.
 */
void *fatbin_with_ptx(const struct fatbin_wrapper *wrapper);

#endif
