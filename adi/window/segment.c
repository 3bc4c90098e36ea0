/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a window whose processes are all on one machine: one memfd, which rank 0 creates and the others open as
 * /proc/PID/fd/N. A memfd has no name in the file system, so no file is left after a crash. It holds the control words of all
 * processes, the rows that say who holds shared locks, then the memory of each.
 */
#include "config.h"

#include "adi/collective/schedule.h"
#include "adi/window/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

/* How the others find the memory of rank 0. Of rank 0 only. */
struct place {
	int64_t pid, fd; /* fd: a negated errno value if there is no memory */
	uint64_t device, inode;
};

static bool add(size_t *sum, size_t bytes, size_t align)
{
	size_t aligned = (*sum + align - 1) / align * align;
	return aligned >= *sum && !__builtin_add_overflow(aligned, bytes, sum);
}

/* The size of the segment; where the memory of each process begins is stored as an offset in target[].base. False: too large. */
static bool lay_out(struct adi_win *win, bool noncontiguous, size_t *size)
{
	size_t n = (size_t)win->comm->size, at = n * (sizeof(struct adi_win_control) + window_row(win->comm->size));
	bool fits = add(&at, 0, PAGE);
	for (int i = 0; fits && i < win->comm->size; i++) {
		fits = add(&at, 0, noncontiguous ? PAGE : 1);
		win->target[i].base = (char *)at;
		fits = fits && add(&at, (size_t)win->target[i].size, 1);
	}
	*size = at;
	return fits && add(size, 0, PAGE) && *size <= INT64_MAX;
}

static int memory_make(size_t size, struct place *place)
{
	int fd = memfd_create("headrace-window", MFD_CLOEXEC);
	struct stat status;
	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0 && fstat(fd, &status) == 0) {
		*place = (struct place){ getpid(), fd, status.st_dev, status.st_ino };
		return fd;
	}
	place->fd = -errno;
	hr_log(HR_LOG_INFO, "adi: no shared memory of %zu bytes for a window: %s", size, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static int memory_join(const struct place *place, size_t size)
{
	if (place->fd < 0)
		return -1;
	char path[64];
	snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)place->pid, (long long)place->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat status;
	if (fd < 0) {
		hr_log(HR_LOG_INFO, "adi: cannot open the shared memory of a window: %s: %s", path, strerror(errno));
		return -1;
	}
	/* The path may be another process's, if the two processes are in different PID namespaces. */
	if (fstat(fd, &status) == 0 && status.st_dev == place->device && status.st_ino == place->inode &&
	    status.st_size == (off_t)size)
		return fd;
	hr_log(HR_LOG_INFO, "adi: %s is not the shared memory of the window", path);
	close(fd);
	return -1;
}

static void *map(int fd, size_t size)
{
	if (fd < 0)
		return NULL;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED)
		return at;
	hr_log(HR_LOG_INFO, "adi: mmap of %zu bytes for a window: %s", size, strerror(errno));
	return NULL;
}

static void bases_set(struct adi_win *win)
{
	for (int i = 0; i < win->comm->size; i++)
		win->target[i].base = win->map ? (char *)win->map + (uintptr_t)win->target[i].base : NULL;
}

int window_segment_map(struct adi_win *win, bool noncontiguous)
{
	size_t size;
	if (!lay_out(win, noncontiguous, &size)) {
		bases_set(win);
		return adi_error(MPI_ERR_SIZE, "the sizes of the window's memory add up to more than can be addressed");
	}
	bool first = win->comm->rank == 0;
	struct place place = { .fd = -1 };
	int fd = first ? memory_make(size, &place) : -1;
	int class = adi_bcast(&place, sizeof place, 0, win->comm);
	if (!class && !first)
		fd = memory_join(&place, size);
	win->map = class ? NULL : map(fd, size);
	win->map_size = size;
	int64_t failed = !win->map;
	if (!class)
		class = adi_allreduce_max(&failed, 1, win->comm);
	if (fd >= 0)
		close(fd);
	if (class || failed) {
		window_segment_unmap(win);
		bases_set(win);
		return class ? class : adi_error(MPI_ERR_RMA_SHARED,
						 "no memory of %zu bytes that the processes of the window share", size);
	}
	bases_set(win);
	win->control = win->map;
	win->held = (char *)&win->control[win->comm->size];
	win->base = win->target[win->comm->rank].base;
	win->direct = true;
	return MPI_SUCCESS;
}

void window_segment_unmap(struct adi_win *win)
{
	if (win->map)
		munmap(win->map, win->map_size);
	win->map = NULL;
	win->direct = false;
}
