/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports to registration caches when memory of this process is lost: unmapped, mapped over, moved (mremap), shrunk
 * (brk) or given back to the kernel (madvise DONTNEED, FREE). The kernel's userfaultfd reports these calls for the
 * mappings that were registered with it, whichever code makes them. (Replacing munmap and similar functions would miss
 * the calls that libc makes inside free.) The mappings are registered for write protection, but are never protected, so
 * no access ever faults. Needs Linux 5.11 and no privilege; see userfaultfd(2), ioctl_userfaultfd(2).
 *
 * Order. munmap(2) waits in the kernel until its event has been read. But the mapping is gone a moment before the event
 * can be read, and in that moment another thread may map other memory at the same addresses. So a cache calls
 * ib_memory_settle before it uses an entry. The kernel shows that a change is in progress from before the mapping goes
 * until the event has been read (UFFDIO_WRITEPROTECT fails with EAGAIN; "mmap_changing" in fs/userfaultfd.c). The
 * reader shows that it is busy from before it reads an event until it has reported it. When neither is the case, all
 * changes from before the call have been reported.
 *
 * For madvise the event comes before the pages go. If one thread registers memory while another gives the same memory
 * back, a cache could keep an entry whose pages go a moment later. This does no harm: the caller of put or get must not
 * give back its buffers during the call. Memory beside the buffers is registered only if it was in the cache before,
 * and for such memory the registration in progress gets the report.
 *
 * The kernel does not report shmat with SHM_REMAP over private memory.
 *
 * There is one watch for the whole process, as the kernel lets only one userfaultfd watch a mapping: one descriptor and
 * one thread, which only reads events. It exists from the first join to the last leave. A forked child has no watch and
 * may open its own.
 */
#ifndef IB_MEMORY_H
#define IB_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* A user of the watch: a registration cache. */
struct ib_memory_user {
	struct ib_memory_user *next;
	uint64_t epoch; /* of the watch that it joined; a watch in a forked child has another epoch */
	/* Reports that the memory at [start, end) is lost. Called in any thread, with the lock held: must not block,
	 * allocate, free, or change mappings. */
	void (*lost)(struct ib_memory_user *user, uintptr_t start, uintptr_t end);
};

/* Adds a user. Any thread. -ENOTSUP: the kernel does not report changes, or not to this process. */
int ib_memory_join(struct ib_memory_user *user);
/* Removes a user. Does nothing in a forked child. */
void ib_memory_leave(struct ib_memory_user *user);

/* Returns whether this process itself added the user, and not a parent that it was forked from. No system call. */
bool ib_memory_is_here(const struct ib_memory_user *user);

/*
 * From now on changes within [start, end) are reported. Watches the whole mappings around the range: a mapping watched
 * in part would be split, and then mremap of the whole would fail. -ENOTSUP: a part of the range is not private
 * anonymous memory, so that it can change without a call of this process (a truncated file); or another userfaultfd
 * watches it.
 */
int ib_memory_watch(uintptr_t start, uintptr_t end);

/*
 * Waits until every change of memory that happened before the call has been reported. Gives up after a while: if other
 * threads change watched memory without a pause, there may be no moment without a change in progress. False: it gave
 * up, and the caller must not use cache entries. The caller must not hold the lock.
 */
bool ib_memory_settle(void);

void ib_memory_lock(void);
void ib_memory_unlock(void);

#endif
