/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving bytes between processes in address order.
 *
 * process_vm_writev copies from front to back, but with string instructions, and the stores of one string instruction
 * may become visible in any order; those of an earlier one come before those of a later one (Intel SDM, volume 3,
 * 9.2.4 "fast-string operation"; other processors' kernels copy by ordinary stores). The kernel uses one per piece of
 * the local vector. So that vector is cut: at every 256 bytes of the target's address (one packet of the smallest
 * path MTU), and before each of the last two groups of four bytes, for the flags and counts that protocols put there.
 */
#include "test/ibverbs_double/double.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIECE = 256, LAST = 4, PIECES_MOST = 1000 };

struct cursor {
	const struct iovec *iov;
	int n;
	uint64_t offset; /* in the first */
};

static void advance(struct cursor *at, uint64_t bytes)
{
	at->offset += bytes;
	while (at->n > 0 && at->offset >= at->iov->iov_len) {
		at->offset -= at->iov->iov_len;
		at->iov++;
		at->n--;
	}
}

/* Bytes to the end of the first piece of memory. */
static uint64_t span(const struct cursor *at)
{
	return at->n > 0 ? at->iov->iov_len - at->offset : 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How much of the len bytes left of a write goes in the next piece. */
static uint64_t piece_len(const struct cursor *remote, uint64_t len)
{
	uint64_t address = (uintptr_t)remote->iov->iov_base + remote->offset;
	uint64_t piece = min_u64(len, PIECE - address % PIECE);
	if (len > 2 * LAST)
		return min_u64(piece, len - 2 * LAST);
	return len > LAST ? min_u64(piece, len - LAST) : piece;
}

/* One system call's worth; returns the bytes moved or -errno. Not through libc's function: that is intercepted by
 * sanitizers, which take an adapter's access to memory for one of the thread that happens to do its work. */
static int64_t move(pid_t pid, struct cursor *local, struct cursor *remote, uint64_t len, bool write)
{
	struct iovec from[PIECES_MOST], to[PIECES_MOST];
	struct cursor l = *local, r = *remote;
	uint64_t left = len;
	int n = 0;
	for (; n < PIECES_MOST && left > 0; n++) {
		if (!span(&l) || !span(&r))
			return -EINVAL;
		uint64_t piece = write ? piece_len(&r, left) : left;
		piece = min_u64(piece, min_u64(span(&l), span(&r)));
		from[n] = (struct iovec){ (uint8_t *)l.iov->iov_base + l.offset, piece };
		to[n] = (struct iovec){ (uint8_t *)r.iov->iov_base + r.offset, piece };
		advance(&l, piece);
		advance(&r, piece);
		left -= piece;
	}
	/* The target's pieces are joined again: the kernel looks up pages for each. */
	int n_to = 0;
	for (int i = 1; i < n; i++) {
		uint8_t *end = (uint8_t *)to[n_to].iov_base + to[n_to].iov_len;
		if (end == to[i].iov_base)
			to[n_to].iov_len += to[i].iov_len;
		else
			to[++n_to] = to[i];
	}
	long moved = syscall(write ? SYS_process_vm_writev : SYS_process_vm_readv, pid, from, (unsigned long)n, to,
			     (unsigned long)(n_to + 1), 0ul);
	if (moved < 0)
		return -errno;
	advance(local, (uint64_t)moved);
	advance(remote, (uint64_t)moved);
	/* It stops without an error at memory that is not there, and says so when asked to begin there. */
	return moved > 0 ? moved : -EFAULT;
}

int vd_copy(pid_t pid, const struct iovec *local, int n_local, const struct iovec *remote, int n_remote, uint64_t skip,
	    uint64_t len, bool write)
{
	struct cursor l = { local, n_local, 0 }, r = { remote, n_remote, 0 };
	advance(&l, skip);
	advance(&r, skip);
	while (len > 0) {
		int64_t moved = move(pid, &l, &r, len, write);
		if (moved < 0)
			return (int)-moved;
		len -= (uint64_t)moved;
	}
	return 0;
}
