/* SPDX-License-Identifier: BSD-3-Clause */
/* Places ring memory on a NUMA node. Uses libnuma's system call wrappers but not its node sets: if memory is short,
 * libnuma ends the process when it allocates a node set. */
#include "config.h"

#include "rdma_channel/shm/numa.h"

#ifndef HAVE_NUMA

const char *shm_numa_place(void *memory, size_t size, unsigned *node)
{
	(void)memory;
	(void)size;
	(void)node;
	return "built without libnuma";
}

#else

#include <errno.h>
#include <limits.h>
#include <numaif.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#define NODES_MAX 1024u /* the most that a Linux kernel can have */
#define WORD_BITS (sizeof(unsigned long) * CHAR_BIT)

static bool has_node(const unsigned long *nodes, unsigned node)
{
	return node < NODES_MAX && nodes[node / WORD_BITS] >> node % WORD_BITS & 1;
}

static unsigned count_nodes(const unsigned long *nodes)
{
	unsigned count = 0;
	for (unsigned i = 0; i < NODES_MAX; i++)
		count += has_node(nodes, i);
	return count;
}

const char *shm_numa_place(void *memory, size_t size, unsigned *node)
{
	unsigned long allowed[NODES_MAX / WORD_BITS] = { 0 }, wanted[NODES_MAX / WORD_BITS] = { 0 };
	unsigned cpu;
	int mode;
	if (get_mempolicy(&mode, NULL, 0, NULL, 0) ||
	    get_mempolicy(NULL, allowed, NODES_MAX, NULL, MPOL_F_MEMS_ALLOWED))
		return strerror(errno);
	if (mode != MPOL_DEFAULT)
		return "the thread has a memory policy of its own";
	if (count_nodes(allowed) < 2)
		return "it may use one node only";
	if (getcpu(&cpu, node))
		return strerror(errno);
	if (!has_node(allowed, *node))
		return "it runs on a node whose memory it may not use";
	wanted[*node / WORD_BITS] = 1ul << *node % WORD_BITS;
	/* Preferred, not bound: if the node is full, the first access to a bound page fails and ends the process. */
	if (mbind(memory, size, MPOL_PREFERRED, wanted, NODES_MAX, 0))
		return strerror(errno);
	return NULL;
}

#endif
