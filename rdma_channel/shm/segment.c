/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates, seals, maps and places the memory of shared-memory rings. */
#include "config.h"

#include "rdma_channel/shm/segment.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"
#include "rdma_channel/shm/numa.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* New in Linux 5.14 and 6.1. Older headers lack the names; older kernels return EINVAL. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

HR_SETTING(numa_setting, "HEADRACE_SHM_NUMA", "1", 0, 1,
	   "shm: 1: place each ring on its receiver's NUMA node");

HR_SETTING(pages_setting, "HEADRACE_SHM_HUGE_PAGES", "0", 0, 0,
	   "shm: huge pages: 0: never; auto: for rings from 2M; 1: for rings from 1M, also if the system default is off");

static size_t whole_pages(size_t size)
{
	return (size + SHM_HUGE_PAGE - 1) / SHM_HUGE_PAGE * SHM_HUGE_PAGE;
}

/* ---- memory ---- */

static int make_memory(size_t size, bool reserved)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | (reserved ? MFD_HUGETLB | MFD_HUGE_2MB : 0);
	int fd = memfd_create("headrace-ring", flags);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) == 0)
		return fd;
	int error = -errno;
	close(fd);
	return error;
}

/* Maps size bytes of fd; if `aligned`, at a multiple of the huge page size. NULL: failed, with errno set. */
static uint8_t *map_memory(int fd, size_t size, bool aligned)
{
	const int protection = PROT_READ | PROT_WRITE;
	if (!aligned) {
		void *map = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
		return map == MAP_FAILED ? NULL : map;
	}
	size_t span = whole_pages(size) + SHM_HUGE_PAGE;
	uint8_t *start = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED)
		return NULL;
	size_t before = -(uintptr_t)start & (SHM_HUGE_PAGE - 1), after = span - before - size;
	if (mmap(start + before, size, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		int error = errno;
		munmap(start, span);
		errno = error;
		return NULL;
	}
	if (before)
		munmap(start, before);
	munmap(start + before + size, after);
	return start + before;
}

/* ---- settings ---- */

/* Returns whether the system can give a reserved huge page now. */
static bool find_reserved(void)
{
	int fd = make_memory(SHM_HUGE_PAGE, true);
	if (fd < 0)
		return false;
	struct shm_segment page = { map_memory(fd, SHM_HUGE_PAGE, true), SHM_HUGE_PAGE };
	close(fd);
	if (!page.map)
		return false;
	shm_segment_unmap(&page);
	return true;
}

static int read_pages(enum shm_pages *pages)
{
	static const char *const names[] = {
		[SHM_PAGES_SMALL] = "0", [SHM_PAGES_AUTO] = "auto", [SHM_PAGES_HUGE] = "1" };
	const char *text = hr_setting_text(&pages_setting);
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(text, names[i]) == 0) {
			*pages = (enum shm_pages)i;
			return 0;
		}
	}
	hr_log(HR_LOG_ERROR, "%s=%s: invalid value; valid values: 0, 1, auto", pages_setting.variable, text);
	return -EINVAL;
}

int shm_placement_read(struct shm_placement *placement)
{
	uint64_t numa;
	int error = hr_setting_u64(&numa_setting, &numa);
	if (!error)
		error = read_pages(&placement->pages);
	if (error)
		return error;
	placement->numa = numa;
	int fd = make_memory(SHM_CONTROL_BYTES, false);
	if (fd < 0) {
		hr_log(HR_LOG_INFO, "shm: memfd_create: %s", strerror(-fd));
		return -ENODEV;
	}
	close(fd);
	placement->reserved = placement->pages == SHM_PAGES_HUGE && find_reserved();
	return 0;
}

/* ---- making ---- */

static bool wants_huge(const struct shm_placement *placement, uint32_t ring_bytes)
{
	switch (placement->pages) {
	case SHM_PAGES_AUTO: return ring_bytes >= SHM_HUGE_PAGE;
	case SHM_PAGES_HUGE: return ring_bytes >= SHM_HUGE_PAGE / 2;
	case SHM_PAGES_SMALL: break;
	}
	return false;
}

size_t shm_segment_bytes(const struct shm_placement *placement, uint32_t ring_bytes)
{
	size_t size = (size_t)ring_bytes + SHM_CONTROL_BYTES;
	bool whole = wants_huge(placement, ring_bytes) && (placement->reserved || ring_bytes < SHM_HUGE_PAGE);
	return whole ? whole_pages(size) : size;
}

static void place(const struct shm_placement *placement, const struct shm_segment *segment)
{
	unsigned node;
	const char *why = placement->numa ? shm_numa_place(segment->map, segment->size, &node) : "HEADRACE_SHM_NUMA=0";
	if (why)
		hr_log(HR_LOG_DEBUG, "shm: the NUMA node of the ring is that of the first access: %s", why);
	else
		hr_log(HR_LOG_DEBUG, "shm: ring placed on NUMA node %u", node);
}

/* Creates and places a segment in reserved huge pages, all of them allocated. False: the system cannot. */
static bool make_reserved(const struct shm_placement *placement, struct shm_segment *segment, int *fd)
{
	*fd = make_memory(segment->size, true);
	if (*fd < 0)
		return false;
	segment->map = map_memory(*fd, segment->size, true);
	if (segment->map) {
		place(placement, segment);
		if (madvise(segment->map, segment->size, MADV_POPULATE_WRITE) == 0)
			return true;
		shm_segment_unmap(segment);
	}
	close(*fd);
	return false;
}

/* Asks for transparent huge pages for the whole huge pages in the segment. Call it before the first access. */
static void ask_for_huge(const struct shm_segment *segment)
{
	if (madvise(segment->map, segment->size / SHM_HUGE_PAGE * SHM_HUGE_PAGE, MADV_HUGEPAGE))
		hr_log(HR_LOG_DEBUG, "shm: MADV_HUGEPAGE: %s", strerror(errno));
}

/* Makes the pages huge now, even if the system's setting for shared memory forbids it. */
static void insist_on_huge(const struct shm_segment *segment)
{
	size_t size = segment->size / SHM_HUGE_PAGE * SHM_HUGE_PAGE;
	/* Allocate the pages first: collapsing an empty range ignores the NUMA policy. If this fails, so does the
	 * collapse, which logs it. */
	madvise(segment->map, size, MADV_POPULATE_WRITE);
	if (madvise(segment->map, size, MADV_COLLAPSE))
		hr_log(HR_LOG_DEBUG, "shm: MADV_COLLAPSE: %s", strerror(errno));
}

int shm_segment_make(const struct shm_placement *placement, uint32_t ring_bytes, enum hr_log_level level,
		     struct shm_segment *segment, int *fd, bool *huge)
{
	segment->map = NULL;
	segment->size = shm_segment_bytes(placement, ring_bytes);
	*huge = wants_huge(placement, ring_bytes);
	if (*huge && placement->reserved && make_reserved(placement, segment, fd)) {
		hr_log(HR_LOG_DEBUG, "shm: ring of %u bytes in reserved huge pages", ring_bytes);
		return 0;
	}
	*fd = make_memory(segment->size, false);
	if (*fd < 0) {
		hr_log(level, "shm: cannot create a ring of %u bytes: %s", ring_bytes, strerror(-*fd));
		return *fd;
	}
	segment->map = map_memory(*fd, segment->size, *huge);
	if (!segment->map) {
		int error = -errno;
		hr_log(level, "shm: mmap of %zu bytes: %s", segment->size, strerror(-error));
		close(*fd);
		return error;
	}
	place(placement, segment);
	if (*huge)
		ask_for_huge(segment);
	if (*huge && placement->pages == SHM_PAGES_HUGE)
		insist_on_huge(segment);
	return 0;
}

/* ---- joining ---- */

/* Checks the descriptor against the peer's description of its memory. Returns the fault as a text, NULL if none. */
static const char *fault_of_memory(int fd, uint32_t ring_bytes, uint32_t size)
{
	struct stat status;
	size_t least = (size_t)ring_bytes + SHM_CONTROL_BYTES;
	if (size < least || size > whole_pages(least))
		return "the size of its memory does not match the size of its ring";
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size != (off_t)size)
		return "its memory does not have the size that it announced";
	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
		return "its memory is not sealed against changes of size";
	return NULL;
}

int shm_segment_join(int fd, uint32_t ring_bytes, uint32_t size, bool huge, const char *peer,
		     struct shm_segment *segment)
{
	const char *fault = fault_of_memory(fd, ring_bytes, size);
	if (fault) {
		hr_log(HR_LOG_ERROR, "shm: peer %s: %s", peer, fault);
		return -EPROTO;
	}
	segment->map = map_memory(fd, size, huge);
	if (!segment->map) {
		int error = -errno;
		hr_log(HR_LOG_ERROR, "shm: mmap of the ring of %s: %s", peer, strerror(-error));
		return error;
	}
	segment->size = size;
	if (huge)
		ask_for_huge(segment);
	return 0;
}

void shm_segment_unmap(struct shm_segment *segment)
{
	if (segment->map)
		munmap(segment->map, segment->size);
	segment->map = NULL;
}
