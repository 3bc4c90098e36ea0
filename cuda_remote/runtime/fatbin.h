/* SPDX-License-Identifier: BSD-3-Clause */
/* The PTX of programs that were linked from relocatable device code. */
#ifndef RUNTIME_FATBIN_H
#define RUNTIME_FATBIN_H

#include "cuda_remote/fatbin.h"

/*
 * A program linked from relocatable device code has machine code alone in its container; the PTX is in the units'.
 * Where only one unit has PTX that is the whole program's. Returns a container with both, so that a device of any kind
 * finds its form; for free(). NULL if there is no such unit, if there are several, or if memory runs out.
 */
void *fatbin_with_ptx(const struct fatbin_wrapper *wrapper);

#endif
