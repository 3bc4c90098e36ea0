/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A launch that another call of its thread follows: a private interface between the worker and the software GPU.
 * cuGetExportTable returns it for this UUID; other drivers do not know it.
 *
 * A launch wakes a thread of the software GPU. If the next call waits for the launch, the calling thread runs it itself, as it does
 * not have to be woken. The other thread then wakes in vain, on a processor that the kernel wants. The worker often has the next
 * call already when it serves the launch.
 */
#ifndef RC_CUDA_CALL_FOLLOWS_H
#define RC_CUDA_CALL_FOLLOWS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#define RC_CALL_FOLLOWS_UUID { { 'h', 'r', '-', 'c', 'a', 'l', 'l', '-', 'f', 'o', 'l', 'l', 'o', 'w', 's', '1' } }

struct rc_call_follows {
	size_t size; /* of this struct */
	/* true: another call of this thread follows at once. Until then no thread is woken for work that this thread gives.
	 * false: none follows; threads are woken for the work if it still needs one. A call that waits does the same. */
	void (*follows)(bool follows);
};

#endif
