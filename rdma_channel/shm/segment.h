/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of one direction: the ring's lines and behind them its control page, in a memfd. It has no name, so
 * nothing can be left behind, and it is sealed, so that a peer which shrinks it cannot make our next access a bus
 * error. The receiver makes it, places it on its NUMA node (numa.h) and passes the descriptor; the sender maps it too.
 *
 * Huge pages. The lines come first so that a ring of 2 MB fills one page of that size and the control page behind it is
 * a small one: no ring grows for it. Two kinds of them:
 *	transparent  an ordinary memfd, mapped at a multiple of 2 MB, with MADV_HUGEPAGE on what whole pages fill;
 *	reserved     MFD_HUGETLB. Every page is there before the descriptor is passed, as a page that cannot be had
 *	             later would end the process that touches it. The segment is a whole number of pages.
 * Where neither can be had the segment has ordinary pages and, so that its size can be told before, the same size.
 */
#ifndef HR_SHM_SEGMENT_H
#define HR_SHM_SEGMENT_H

#include "rdma_channel/shm/ring.h"

#define SHM_HUGE_PAGE (2u << 20)

enum shm_pages {
	SHM_PAGES_SMALL,
	SHM_PAGES_AUTO, /* transparent, for rings that fill whole ones, and where the system gives them to who asks */
	SHM_PAGES_HUGE, /* either, for rings that fill half of one and more, also where the system does not give them */
};

/* What a channel's settings say of its segments. */
struct shm_placement {
	enum shm_pages pages;
	bool reserved; /* with SHM_PAGES_HUGE: reserved ones can be had */
	bool numa;
};

/* A segment that is mapped; map is NULL where there is none. */
struct shm_segment {
	uint8_t *map;
	size_t size;
};

/* Reads the settings. -EINVAL, logged; -ENODEV (info): no memfd that can be sealed. */
int shm_placement_read(struct shm_placement *placement);

/* Bytes of the segment of such a ring; ring_bytes is a power of two. */
size_t shm_segment_bytes(const struct shm_placement *placement, uint32_t ring_bytes);

/* Makes and maps one, zeroed. *fd is then the caller's. *huge: whoever maps it ought to ask for huge pages. 0 or a
 * negated errno value, logged. */
int shm_segment_make(const struct shm_placement *placement, uint32_t ring_bytes, struct shm_segment *segment, int *fd,
		     bool *huge);

/* Maps a peer's, with a ring of a size that is possible; its size and huge are what the peer says. -EPROTO: they are
 * not true, or it is not sealed; another negated errno value. Both are logged. The descriptor stays the caller's. */
int shm_segment_join(int fd, uint32_t ring_bytes, uint32_t size, bool huge, const char *peer,
		     struct shm_segment *segment);

void shm_segment_unmap(struct shm_segment *segment);

static inline struct shm_control *shm_segment_control(const struct shm_segment *segment, uint32_t ring_bytes)
{
	return (struct shm_control *)(void *)(segment->map + ring_bytes);
}

#endif
