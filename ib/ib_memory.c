/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches memory by userfaultfd(2) so that the registration cache learns of unmapped ranges. */
#include "config.h"

#include "ib/ib_memory.h"

#include "ib/ib_maps.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum {
	RANGES_MOST = 4096, /* maximum number of watched ranges; further mappings are not watched */
	EVENTS_AT_ONCE = 16,
	READER_STACK = 256 << 10,
	/* How often settle checks whether a change is in progress: first with sched_yield in between, then with a sleep
	 * of one millisecond. */
	YIELDS = 100,
	SLEEPS = 4,
	SLEEPS_TO_PROVE = 2000,
};

struct range {
	uintptr_t start, end;
};

/* In memory that is zero in a forked child. Zero means: closed, no users, no lock held. */
struct watch {
	pthread_mutex_t life; /* held by join and leave */
	pthread_mutex_t lock; /* protects all other fields */
	uint64_t epoch;       /* 0: closed */
	int uffd, stop, maps;
	pthread_t reader;
	sem_t reader_done;    /* posted by the reader when it needs the descriptors no more */
	bool telling;         /* the reader is reading events or calling `lost`; atomic */
	struct ib_memory_user *users;
	unsigned unmaps, removes; /* number of events of these kinds so far */
	bool seen_changing;       /* is_changing was true while an event waited: so settle works on this kernel */
	unsigned n_ranges;
	struct range range[RANGES_MOST]; /* watched ranges, in order; no two touch */
};

static struct watch *watch; /* mapped once, never unmapped */

/* ---- the watched ranges ---- */

/* Returns the index of the first range that ends after the address. */
static unsigned range_after(uintptr_t at)
{
	unsigned low = 0, high = watch->n_ranges;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (watch->range[middle].end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool range_covers(uintptr_t start, uintptr_t end)
{
	unsigned i = range_after(start);
	return i < watch->n_ranges && watch->range[i].start <= start && end <= watch->range[i].end;
}

/* Replaces range[first..last-1] by n other ranges. */
static void range_replace(unsigned first, unsigned last, const struct range *others, unsigned n)
{
	memmove(watch->range + first + n, watch->range + last, (watch->n_ranges - last) * sizeof *watch->range);
	memcpy(watch->range + first, others, n * sizeof *others);
	watch->n_ranges = watch->n_ranges - (last - first) + n;
}

/* Adds a range, merged with ranges that it touches. False: no room. */
static bool range_add(uintptr_t start, uintptr_t end)
{
	unsigned first = range_after(start - 1), last = first; /* includes a range that ends at start */
	struct range merged = { start, end };
	for (; last < watch->n_ranges && watch->range[last].start <= end; last++) {
		merged.start = watch->range[last].start < merged.start ? watch->range[last].start : merged.start;
		merged.end = watch->range[last].end > merged.end ? watch->range[last].end : merged.end;
	}
	if (first == last && watch->n_ranges == RANGES_MOST)
		return false;
	range_replace(first, last, &merged, 1);
	return true;
}

static void tell(uintptr_t start, uintptr_t end)
{
	for (struct ib_memory_user *user = watch->users; user; user = user->next)
		user->lost(user, start, end);
}

static void range_remove(uintptr_t start, uintptr_t end)
{
	unsigned first = range_after(start), last = first;
	struct range rest[2];
	unsigned n = 0;
	for (; last < watch->n_ranges && watch->range[last].start < end; last++) {
		if (watch->range[last].start < start)
			rest[n++] = (struct range){ watch->range[last].start, start };
		if (watch->range[last].end > end)
			rest[n++] = (struct range){ end, watch->range[last].end };
	}
	/* If there is no room for the second part, forget it, and report it as lost, so that no cache keeps an entry
	 * there. ib_memory_watch watches it again if necessary. */
	if (watch->n_ranges - (last - first) + n > RANGES_MOST) {
		n--;
		tell(rest[n].start, rest[n].end);
	}
	range_replace(first, last, rest, n);
}

/* ---- events ---- */

static void take_event(const struct uffd_msg *event)
{
	uintptr_t start, end;
	switch (event->event) {
	case UFFD_EVENT_UNMAP:
		start = (uintptr_t)event->arg.remove.start;
		end = (uintptr_t)event->arg.remove.end;
		watch->unmaps++;
		range_remove(start, end);
		break;
	case UFFD_EVENT_REMAP:
		start = (uintptr_t)event->arg.remap.from;
		end = start + event->arg.remap.len;
		range_remove(start, end);
		/* The kernel goes on watching the memory at its new address. If there is no room to record that,
		 * ib_memory_watch makes a system call more. */
		(void)range_add((uintptr_t)event->arg.remap.to, (uintptr_t)event->arg.remap.to + (end - start));
		tell((uintptr_t)event->arg.remap.to, (uintptr_t)event->arg.remap.to + (end - start));
		break;
	case UFFD_EVENT_REMOVE:
		start = (uintptr_t)event->arg.remove.start;
		end = (uintptr_t)event->arg.remove.end;
		watch->removes++;
		break;
	default:
		return;
	}
	tell(start, end);
}

/* Returns whether a change of memory is in progress whose event has not been read. The kernel checks that before it
 * checks the argument, which is not a valid range. */
static bool is_changing(void)
{
	struct uffdio_writeprotect none = { .range = { .start = 1, .len = 1 } };
	return ioctl(watch->uffd, UFFDIO_WRITEPROTECT, &none) && errno == EAGAIN;
}

/* Reads the waiting events and reports them to the users. Reads without the lock: a thread that holds the lock may be
 * interrupted by a signal handler that unmaps memory, and that waits until its event is read. */
static void take_events(void)
{
	struct uffd_msg event[EVENTS_AT_ONCE];
	bool changing = is_changing();
	/* Sequentially consistent, and the system call is a barrier too: if settle finds no change in progress because
	 * the read below has taken the event, it then finds telling set. */
	__atomic_store_n(&watch->telling, true, __ATOMIC_SEQ_CST);
	ssize_t len = read(watch->uffd, event, sizeof event);
	ib_memory_lock();
	if (len > 0)
		watch->seen_changing |= changing;
	for (size_t i = 0; len > 0 && i < (size_t)len / sizeof *event; i++)
		take_event(&event[i]);
	ib_memory_unlock();
	/* Release: a thread that sees false sees the effects of `lost`. Pairs with the acquire in settle. */
	__atomic_store_n(&watch->telling, false, __ATOMIC_RELEASE);
}

static void *reader(void *unused)
{
	(void)unused;
	struct pollfd fds[2] = { { .fd = watch->uffd, .events = POLLIN }, { .fd = watch->stop, .events = POLLIN } };
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			break;
		if (fds[0].revents)
			take_events();
	}
	sem_post(&watch->reader_done);
	return NULL;
}

/* ---- opening and closing ---- */

/* Maps the memory of the watch, unless another thread has done so. */
static int watch_make(void)
{
	if (__atomic_load_n(&watch, __ATOMIC_ACQUIRE)) /* pairs with the exchange below, after which it is ready */
		return 0;
	void *made = mmap(NULL, sizeof *watch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return -errno;
	struct watch *none = NULL;
	/* Release: the memory is mapped and marked before other threads see the pointer. Acquire on failure, when
	 * another thread was first. */
	if (madvise(made, sizeof *watch, MADV_WIPEONFORK) ||
	    !__atomic_compare_exchange_n(&watch, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		munmap(made, sizeof *watch);
	return __atomic_load_n(&watch, __ATOMIC_ACQUIRE) ? 0 : -ENOTSUP;
}

static int open_uffd(void)
{
	int flags = O_CLOEXEC | O_NONBLOCK;
	int uffd = (int)syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
	if (uffd < 0 && errno == EINVAL) /* before Linux 5.11; works for root only */
		uffd = (int)syscall(SYS_userfaultfd, flags);
	if (uffd < 0)
		return -errno;
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_UNMAP |
					      UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP };
	if (ioctl(uffd, UFFDIO_API, &api)) {
		int error = errno;
		close(uffd);
		return -error;
	}
	return uffd;
}

/* Waits until all changes have been reported; checks at most `looks` times. False: not all have been. */
static bool settle(unsigned looks)
{
	/* The order of the two checks matters: take_events sets telling before it reads the event. */
	for (unsigned i = 0; is_changing() || __atomic_load_n(&watch->telling, __ATOMIC_ACQUIRE); i++) {
		if (i == looks)
			return false;
		/* Let the reader run, and then the thread that changes memory. */
		if (i < YIELDS)
			sched_yield();
		else
			poll(NULL, 0, 1);
	}
	return true;
}

static int start_reader(void)
{
	pthread_attr_t attr;
	sigset_t all, before;
	sem_init(&watch->reader_done, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, READER_STACK);
	/* Block all signals in the reader: a signal handler of the program could unmap memory, and would then wait for
	 * the reader. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&watch->reader, &attr, reader, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -error;
}

/* Tests on one page whether the kernel reports changes in the way that this file needs. */
static int prove(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	int error = ib_memory_watch((uintptr_t)memory, (uintptr_t)memory + page);
	ib_memory_lock();
	unsigned removes = watch->removes, unmaps = watch->unmaps;
	ib_memory_unlock();
	madvise(memory, page, MADV_DONTNEED);
	munmap(memory, page);
	bool settled = settle(YIELDS + SLEEPS_TO_PROVE);
	ib_memory_lock();
	bool told = settled && watch->removes != removes && watch->unmaps != unmaps && watch->seen_changing;
	ib_memory_unlock();
	return error ? error : told ? 0 : -ENOTSUP;
}

static void close_descriptors(void)
{
	close(watch->maps);
	close(watch->stop);
	close(watch->uffd);
}

/* Closes the descriptors before the reader ends. The end of a thread gives its stack back (madvise). If the stack is
 * in a mapping that is still watched, because a page of the same mapping was watched before, then the reader would wait
 * for its own event to be read. */
static void stop_reader(void)
{
	uint64_t one = 1;
	ssize_t done = write(watch->stop, &one, sizeof one); /* into an empty eventfd: cannot fail */
	(void)done;
	while (sem_wait(&watch->reader_done)) /* interrupted by a signal */
		continue;
	close_descriptors();
	pthread_join(watch->reader, NULL);
	sem_destroy(&watch->reader_done);
}

static int open_descriptors(void)
{
	watch->uffd = open_uffd();
	if (watch->uffd < 0)
		return watch->uffd;
	watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch->maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (watch->stop >= 0 && watch->maps >= 0)
		return 0;
	int error = errno;
	close_descriptors();
	return -error;
}

static int watch_open(void)
{
	int error = open_descriptors();
	if (error)
		return error;
	error = start_reader();
	if (error) {
		close_descriptors();
		return error;
	}
	error = prove();
	if (error) {
		stop_reader();
		return error;
	}
	static uint64_t opened;
	watch->epoch = (uint64_t)getpid() << 32 | (++opened & 0xffffffff);
	return 0;
}

/* Unregisters all ranges. Closing the descriptor is not enough: while a forked child has a copy of it, the kernel would
 * go on sending events, and threads that unmap memory would wait for ever as no reader reads them. A range may have
 * holes: if the reader has read the event of an unmapping, but waits for the lock, the range is still recorded. */
static void unregister_all(void)
{
	for (unsigned i = 0; i < watch->n_ranges; i++) {
		uintptr_t at = watch->range[i].start, end = watch->range[i].end;
		struct ib_mapping mapping;
		while (at < end && !ib_maps_next(watch->maps, at, &mapping) && mapping.start < end) {
			struct uffdio_range range = { mapping.start, mapping.end - mapping.start };
			if (mapping.private_anonymous)
				ioctl(watch->uffd, UFFDIO_UNREGISTER, &range);
			at = mapping.end;
		}
	}
	watch->n_ranges = 0;
}

static void watch_close(void)
{
	ib_memory_lock();
	unregister_all();
	ib_memory_unlock();
	/* A thread may still be waiting in the kernel for its event to be read. No further thread can start to wait, so
	 * this loop ends. */
	while (!settle(YIELDS + SLEEPS))
		continue;
	stop_reader();
	watch->epoch = 0;
}

/* ---- the interface ---- */

int ib_memory_join(struct ib_memory_user *user)
{
	int error = watch_make();
	if (error)
		return error;
	pthread_mutex_lock(&watch->life);
	if (!watch->epoch)
		error = watch_open();
	if (!error) {
		user->epoch = watch->epoch;
		ib_memory_lock();
		user->next = watch->users;
		watch->users = user;
		ib_memory_unlock();
	}
	pthread_mutex_unlock(&watch->life);
	if (error)
		hr_log(HR_LOG_INFO, "verbs: no registration cache: the kernel does not report unmapped memory: "
				    "userfaultfd: %s", strerror(-error));
	return error ? -ENOTSUP : 0;
}

void ib_memory_leave(struct ib_memory_user *user)
{
	if (!ib_memory_is_here(user))
		return;
	pthread_mutex_lock(&watch->life);
	ib_memory_lock();
	struct ib_memory_user **link = &watch->users;
	while (*link != user)
		link = &(*link)->next;
	*link = user->next;
	bool last = !watch->users;
	ib_memory_unlock();
	if (last)
		watch_close();
	user->epoch = 0;
	pthread_mutex_unlock(&watch->life);
}

bool ib_memory_is_here(const struct ib_memory_user *user)
{
	return user->epoch && user->epoch == watch->epoch;
}

/* Watches the mapping at an address. The caller holds the lock, so an event that arrives now is handled after the range
 * has been recorded. */
static int watch_mapping(uintptr_t at, uintptr_t *end)
{
	enum { TRIES = 16 };
	struct ib_mapping mapping, again;
	for (int i = 0; i < TRIES; i++) {
		if (ib_maps_find(watch->maps, at, &mapping) || !mapping.private_anonymous)
			return -ENOTSUP;
		struct uffdio_register range = { .range = { mapping.start, mapping.end - mapping.start },
						 .mode = UFFDIO_REGISTER_MODE_WP };
		if (ioctl(watch->uffd, UFFDIO_REGISTER, &range) || ib_maps_find(watch->maps, at, &again) ||
		    !again.private_anonymous)
			return -ENOTSUP;
		/* Another thread may have changed the mapping before it was watched. Then try again, but do not
		 * unregister it: a part may have been watched before, for entries that a cache keeps. */
		if (again.start > mapping.start || again.end < mapping.end)
			continue;
		*end = mapping.end;
		if (range_add(mapping.start, mapping.end))
			return 0;
		/* No part of it was watched before: otherwise the ranges would have been merged, without need of room.
		 * So it can be unregistered. */
		ioctl(watch->uffd, UFFDIO_UNREGISTER, &range.range);
		return -ENOTSUP;
	}
	return -ENOTSUP;
}

int ib_memory_watch(uintptr_t start, uintptr_t end)
{
	int error = 0;
	ib_memory_lock();
	while (!error && start < end && !range_covers(start, end))
		error = watch_mapping(start, &start);
	ib_memory_unlock();
	return error;
}

bool ib_memory_settle(void)
{
	return settle(YIELDS + SLEEPS);
}

void ib_memory_lock(void)
{
	pthread_mutex_lock(&watch->lock);
}

void ib_memory_unlock(void)
{
	pthread_mutex_unlock(&watch->lock);
}
