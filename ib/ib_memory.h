/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells registration caches when memory of this process leaves its place: when it is unmapped, mapped over, moved
 * (mremap), shrunk (brk) or given back to the kernel (madvise DONTNEED, FREE). The kernel's userfaultfd reports these
 * calls for the mappings that were registered with it, whoever makes them and however (libc's own calls inside free
 * too, which replacing the functions munmap and so on would miss). It is registered for write protection, of which no
 * use is made, so no access ever faults. Needs Linux 5.11 and no privilege; see userfaultfd(2), ioctl_userfaultfd(2).
 *
 * Order. The caller of munmap waits in the kernel until its event has been read. But the mapping is gone a moment
 * before the event can be read, and another thread may get the same addresses meanwhile. So who is about to use what it
 * remembers of memory calls ib_memory_settle first: the kernel knows that a change is under way from before the mapping
 * goes until the event was read (UFFDIO_WRITEPROTECT fails with EAGAIN; "mmap_changing" in fs/userfaultfd.c), and
 * the reader shows from before it reads until it has told. After that, everything that has happened to memory before
 * the call has been told.
 *
 * For madvise the event comes before the pages go. Who registers memory while another thread gives back that same
 * memory may therefore remember what is gone a moment later. A put or get in progress does not allow that to be done to
 * its buffers; and of memory that is not the caller's buffer nothing is registered that was not remembered already, in
 * which case the registration is told of the loss.
 *
 * Not reported by the kernel: shmat with SHM_REMAP over private memory.
 *
 * One watch for the whole process, as the kernel lets one userfaultfd watch a mapping: one descriptor and one thread,
 * which sleeps and does nothing but read events; there from the first join to the last leave. A child process after
 * fork has none of it: it sees the watch as never opened and may open its own.
 */
#ifndef IB_MEMORY_H
#define IB_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Who wants to be told. */
struct ib_memory_user {
	struct ib_memory_user *next;
	uint64_t epoch; /* of the watch joined; the child's of a fork is another */
	/* What was at [start, end) is no longer there. Called in any thread with the lock held: must not block,
	 * allocate, free, or change mappings. */
	void (*lost)(struct ib_memory_user *user, uintptr_t start, uintptr_t end);
};

/* Any thread. -ENOTSUP: the kernel does not tell of changes, or not to us. */
int ib_memory_join(struct ib_memory_user *user);
/* Does nothing in the child of a fork. */
void ib_memory_leave(struct ib_memory_user *user);

/* Has this user joined in this very process, and not in one that we were forked from? No system call. */
bool ib_memory_is_here(const struct ib_memory_user *user);

/*
 * From now on changes within [start, end) are told. Watches the whole mappings around it, so that none is split: that
 * would make the owner's mremap fail. -ENOTSUP: something there is not private anonymous memory, which can change
 * without any call of this process on the mapping (a file truncated), or somebody else watches it.
 */
int ib_memory_watch(uintptr_t start, uintptr_t end);

/*
 * Returns when every change of memory that happened before the call has been told, or after a while: while other
 * threads change watched memory without a pause, there may be no moment in which the kernel has none under way. False:
 * then nothing that is remembered of memory may be used. Without the lock held.
 */
bool ib_memory_settle(void);

void ib_memory_lock(void);
void ib_memory_unlock(void);

#endif
