/* SPDX-License-Identifier: BSD-3-Clause */
/* What the refusing driver (refusing.c) and the program that tells it what to refuse share: a file of this content. */
#ifndef TEST_REMOTE_REFUSING_H
#define TEST_REMOTE_REFUSING_H

#include <stdint.h>

#define REFUSED CUDA_ERROR_OPERATING_SYSTEM

/* Atomic. What counts down refuses the call that finds 1. 0: nothing is refused. */
struct refusing {
	uint32_t waits;    /* not 0: a driver that waits for all streams before it allocates or pins memory or loads code. While it
			    * loads code, no copy can be issued. Is set before the worker starts */
	uint32_t queues;   /* not 0: the non-blocking streams of a context and a priority share so many hardware queues. Work in a
			    * queue is done in the order in which it was issued, as on a GPU with more streams than queues. Is set
			    * before the worker starts */
	uint32_t callback; /* cuStreamAddCallback */
	uint32_t context;  /* cuCtxDestroy_v2 */
	uint32_t reset;    /* cuDevicePrimaryCtxReset_v2 */
	uint32_t instantiate; /* cuGraphInstantiateWithFlags */
	uint32_t clone;    /* not 0: cuGraphClone returns CUDA_ERROR_NOT_SUPPORTED, as NVIDIA's does for graphs with conditional
			    * handles */
	uint32_t equal;    /* not 0: all textures get the number EQUAL_NUMBER, which each context has once */
};

#define EQUAL_NUMBER 77

#endif
