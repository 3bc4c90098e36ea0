/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which NUMA node the memory of a ring lies on: that of its receiver, which reads every line and waits for the next
 * one, while the sender's stores go out without being waited for. The policy belongs to the memory, not to the mapping:
 * a page lies there whichever of the two processes touches it first.
 */
#ifndef HR_SHM_NUMA_H
#define HR_SHM_NUMA_H

#include <stddef.h>

/*
 * Asks that the pages of this shared memory, none of which has been touched, come from the node that the calling thread
 * runs on, or from another where that one is full. NULL: done, and *node tells which; else why it was left to whoever
 * touches it first: there is one node only, the thread has a policy of its own, the kernel refuses, or the library was
 * built without libnuma. The text lives until the thread's next call of strerror. Any thread.
 */
const char *shm_numa_place(void *memory, size_t size, unsigned *node);

#endif
