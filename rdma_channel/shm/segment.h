/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared memory of one direction: a memfd that holds the ring's lines and after them the control page. A memfd has
 * no name in the file system, so no file is left after a crash. It is sealed: otherwise the peer could shrink it, and
 * the next access of this process would raise SIGBUS. The receiver creates it, places it on its NUMA node (numa.h) and
 * passes the descriptor to the sender; both map it.
 *
 * Huge pages. The lines come first: so a ring of 2 MB fills one huge page, and the control page after it is a small
 * page. There are two kinds:
 *	transparent  an ordinary memfd, mapped at a multiple of 2 MB, with MADV_HUGEPAGE on the whole huge pages in it.
 *	reserved     MFD_HUGETLB. All pages are allocated before the descriptor is passed: if the system had no page
 *	             left at a later first access, the process would be killed. The size is a multiple of 2 MB.
 * If the system grants neither kind, the segment has ordinary pages and the same size, so that shm_segment_bytes can
 * tell the size in advance.
 */
#ifndef HR_SHM_SEGMENT_H
#define HR_SHM_SEGMENT_H

#include "rdma_channel/shm/ring.h"

#include "rdma_channel/base/log.h"

#define SHM_HUGE_PAGE (2u << 20)

enum shm_pages {
	SHM_PAGES_SMALL,
	SHM_PAGES_AUTO, /* transparent, for rings of 2 MB or more, if the system allows it on shared memory */
	SHM_PAGES_HUGE, /* either kind, for rings of 1 MB or more, even if the system's default is not to */
};

/* The settings of a channel for its segments. */
struct shm_placement {
	enum shm_pages pages;
	bool reserved; /* with SHM_PAGES_HUGE: the system has reserved huge pages to give */
	bool numa;     /* place rings on the receiver's node */
};

/* A mapped segment. map is NULL: none. */
struct shm_segment {
	uint8_t *map;
	size_t size;
};

/* Reads the settings. -EINVAL: a setting is invalid (logged). -ENODEV: the system has no memfd that can be sealed
 * (logged as info). */
int shm_placement_read(struct shm_placement *placement);

/* Returns the size in bytes of the segment of a ring of ring_bytes, a power of two. */
size_t shm_segment_bytes(const struct shm_placement *placement, uint32_t ring_bytes);

/* Creates and maps a segment of zeros. The caller owns *fd. *huge: the peer should ask for huge pages when it maps the
 * segment. 0, or a negated errno value (logged at this level). */
int shm_segment_make(const struct shm_placement *placement, uint32_t ring_bytes, enum hr_log_level level,
		     struct shm_segment *segment, int *fd, bool *huge);

/* Maps the peer's segment. The caller has checked that ring_bytes is a valid size; size and huge are unchecked values
 * from the peer. -EPROTO: the memory does not have that size, or is not sealed. Other negated errno values: from system
 * calls. Every error is logged. The caller still owns the descriptor. */
int shm_segment_join(int fd, uint32_t ring_bytes, uint32_t size, bool huge, const char *peer,
		     struct shm_segment *segment);

void shm_segment_unmap(struct shm_segment *segment);

static inline struct shm_control *shm_segment_control(const struct shm_segment *segment, uint32_t ring_bytes)
{
	return (struct shm_control *)(void *)(segment->map + ring_bytes);
}

#endif
