/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fat binaries of compiled host code, as nvcc 13 lays them out: a wrapper (fatbinary_section.h of the toolkit) that
 * points to a container; in the container entries, each PTX or machine code for one architecture.
 */
#ifndef RUNTIME_FATBIN_H
#define RUNTIME_FATBIN_H

#include <stdint.h>

#define FATBIN_WRAPPER_MAGIC UINT32_C(0x466243B1)

/* In .nvFatBinSegment. */
struct fatbin_wrapper {
	uint32_t magic, version;
	const void *container;
	const void *const *units; /* version 2 (-rdc=true): NULL-terminated; the containers that were linked */
};

/*
 * A program linked from relocatable device code has machine code alone in its container; the PTX is in the units'.
 * Where only one unit has PTX that is the whole program's. Returns a container with both, so that a device of any kind
 * finds its form; for free(). NULL if there is no such unit, if there are several, or if memory runs out.
 */
void *fatbin_with_ptx(const struct fatbin_wrapper *wrapper);

#endif
