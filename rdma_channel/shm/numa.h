/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places the memory of a ring on the receiver's NUMA node. The receiver reads every line and waits for each read; the
 * sender does not wait for its stores. The policy belongs to the memory, not to the mapping: it holds for every page,
 * whichever of the two processes touches the page first.
 */
#ifndef HR_SHM_NUMA_H
#define HR_SHM_NUMA_H

#include <stddef.h>

/*
 * Asks the kernel to take the pages of this shared memory from the node that the calling thread runs on, or from
 * another node if that node is full. No page may have been touched before. Returns NULL on success, with the node's
 * number in *node. Otherwise returns the reason as a text, and each page comes from the node of its first access: the
 * process may use one node only, the thread has a policy of its own, the kernel refuses, or the library was built
 * without libnuma. The text is valid until the thread's next call of strerror. Any thread.
 */
const char *shm_numa_place(void *memory, size_t size, unsigned *node);

#endif
