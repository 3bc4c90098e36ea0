/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words that streams wait for (cuStreamWaitValue32) and the worker writes: a private interface between the worker and the
 * software GPU. cuGetExportTable returns it for this UUID; other drivers do not know it.
 *
 * The software GPU looks at such a word at intervals. With this call it looks at once.
 */
#ifndef RC_CUDA_WRITTEN_MEMORY_H
#define RC_CUDA_WRITTEN_MEMORY_H

#include <cuda.h>
#include <stddef.h>

#define RC_WRITTEN_MEMORY_UUID { { 'h', 'r', '-', 'w', 'r', 'i', 't', 't', 'e', 'n', '-', 'm', 'e', 'm', '-', '1' } }

struct rc_written_memory {
	size_t size; /* of this struct */
	/* The caller has written words that streams may wait for. Any thread. */
	void (*written)(void);
};

#endif
