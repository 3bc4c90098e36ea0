/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which pages of a mirror were written, as the kernel notes it: userfaultfd's asynchronous write protection and PAGEMAP_SCAN
 * (Linux 6.7). The kernel removes the protection of a page at its first write, so the program gets no signal, and system calls
 * may write into the memory. If the kernel lacks this, all pages are compared with the twin.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "cuda_remote/mirror/mirror.h"

#include "rdma_channel/base/setting.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

HR_SETTING(scan_setting, "HEADRACE_MANAGED_SCAN", "1", 0, 1,
	   "1: the kernel tells which pages of managed memory of another host were written, if it can (Linux 6.7); 0: all are compared");

/* From linux/userfaultfd.h and linux/fs.h of Linux 6.7; a system's headers may be older. */
#define USER_MODE_ONLY 1u
#define WP_UNPOPULATED ((uint64_t)1 << 13)
#define WP_ASYNC ((uint64_t)1 << 15)
#define IS_WRITTEN ((uint64_t)1 << 1)
#define WP_MATCHING ((uint64_t)1 << 0)

struct region {
	uint64_t start, end, categories;
};
struct scan {
	uint64_t size, flags, start, end, walk_end, regions, n_regions, max_pages;
	uint64_t inverted, all_of, any_of, returned; /* sets of categories */
};
#define SCAN _IOWR('f', 16, struct scan)

static int faults = -1, pagemap = -1;
static uint64_t page;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Finds at most max written pages of a range, in up to 64 regions, and marks them as not written. Returns the number of regions;
 * -1: the kernel cannot report them. *walked: where the scan ended. */
#define REGIONS 64
static int scan(uint64_t start, uint64_t end, uint64_t max, struct region *regions, uint64_t *walked)
{
	struct scan scan = { .size = sizeof scan, .flags = WP_MATCHING, .start = start, .end = end,
			     .regions = (uint64_t)(uintptr_t)regions, .n_regions = REGIONS, .max_pages = max, .all_of = IS_WRITTEN,
			     .returned = IS_WRITTEN };
	int n = ioctl(pagemap, SCAN, &scan);
	*walked = scan.walk_end;
	return n;
}

static bool protect(uint64_t start, uint64_t bytes)
{
	struct uffdio_register range = { .range = { start, bytes }, .mode = UFFDIO_REGISTER_MODE_WP };
	return !ioctl(faults, UFFDIO_REGISTER, &range);
}

/* Tries with one page whether a write is noticed, and only a write. */
static bool works(void)
{
	struct region regions[REGIONS];
	uint64_t walked;
	struct uffdio_api api = { .api = UFFD_API, .features = WP_UNPOPULATED | WP_ASYNC };
	if (ioctl(faults, UFFDIO_API, &api))
		return false;
	volatile uint8_t *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((void *)(uintptr_t)at == MAP_FAILED)
		return false;
	uint64_t start = (uint64_t)(uintptr_t)at;
	bool good = protect(start, page) && scan(start, start + page, 0, regions, &walked) >= 0 &&
		    !at[0] && !scan(start, start + page, 0, regions, &walked);
	if (good)
		at[0] = 1;
	good = good && scan(start, start + page, 0, regions, &walked) == 1 && regions[0].start == start && at[0] == 1 &&
	       !scan(start, start + page, 0, regions, &walked);
	munmap((void *)(uintptr_t)at, page);
	return good;
}

static void probe(void)
{
	uint64_t wanted;
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (hr_setting_u64(&scan_setting, &wanted) || !wanted)
		return;
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (faults >= 0 && pagemap >= 0 && works())
		return;
	if (faults >= 0)
		close(faults);
	if (pagemap >= 0)
		close(pagemap);
	faults = pagemap = -1;
}

bool mirror_pages_open(void)
{
	pthread_once(&once, probe);
	return faults >= 0;
}

/* The mirror's whole pages; no other memory is in them. */
static uint64_t end_of(const struct mirror *mirror)
{
	return (mirror->address + mirror->size + page - 1) & ~(page - 1);
}

bool mirror_pages_begin(const struct mirror *mirror)
{
	struct region regions[REGIONS];
	if (!mirror_pages_open())
		return false;
	uint64_t at = mirror->address, end = end_of(mirror);
	if (at % page || !protect(at, end - at))
		return false;
	/* What was written until now is equal to the twin, or the first scan is to report it. */
	if (mirror->differs)
		return true;
	while (at < end && scan(at, end, 0, regions, &at) >= 0)
		;
	if (at < end)
		mirror_pages_end(mirror);
	return at == end;
}

void mirror_pages_end(const struct mirror *mirror)
{
	struct uffdio_range range = { mirror->address, end_of(mirror) - mirror->address };
	(void)ioctl(faults, UFFDIO_UNREGISTER, &range); /* the memory may have been unmapped */
}

/* Asks for no more pages than the room can hold, because the kernel marks the pages that it returns as not written. */
uint64_t mirror_collect_written(const struct mirror *mirror, uint64_t from, struct mirror_changes *changes)
{
	const uint64_t most = page + page / RC_MIRROR_PAGE * sizeof(struct rc_wire_change);
	uint64_t at = (mirror->address + from) & ~(page - 1), end = end_of(mirror);
	while (at < end) {
		struct region regions[REGIONS];
		uint64_t fit = (changes->room - changes->used) / most, begin = at;
		if (!fit)
			return at - mirror->address;
		int n = scan(begin, end, fit, regions, &at);
		if (n < 0 || at <= begin) /* not known, so all of them */
			return mirror_compare(mirror, begin - mirror->address, mirror->size, changes);
		for (int i = 0; i < n; i++) {
			uint64_t until = regions[i].end - mirror->address;
			mirror_compare(mirror, regions[i].start - mirror->address, until < mirror->size ? until : mirror->size,
				       changes);
		}
	}
	return mirror->size;
}
