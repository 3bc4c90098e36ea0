/* SPDX-License-Identifier: BSD-3-Clause */
/* atom.exch.b128 and atom.cas.b128. A value is two rows of 64 bits, the low half first. */
#include "cuda_remote/softgpu/exec/atomic.h"

#include "cuda_remote/softgpu/exec/warp.h"

struct wide {
	uint64_t low, high;
};

#ifdef __x86_64__
/*
 * Stores wanted if the value is expected; returns the old value. The lock prefix makes it a full barrier, as the other
 * atomics are. Processors of today all have the instruction; the compiler's own 16-byte atomics would need a library.
 */
static struct wide compare_and_swap(void *address, struct wide expected, struct wide wanted)
{
	struct wide *place = address;
	__asm__ volatile("lock cmpxchg16b %0"
			 : "+m"(*place), "+a"(expected.low), "+d"(expected.high)
			 : "b"(wanted.low), "c"(wanted.high)
			 : "cc", "memory");
	return expected;
}

bool atomic_has_wide(void)
{
	return true;
}
#else
static struct wide compare_and_swap(void *address, struct wide expected, struct wide wanted)
{
	(void)address;
	(void)wanted;
	return expected;
}

bool atomic_has_wide(void)
{
	return false;
}
#endif

static struct wide exchange(void *address, struct wide wanted)
{
	struct wide guess = { 0, 0 }, seen;
	for (;;) {
		seen = compare_and_swap(address, guess, wanted);
		if (seen.low == guess.low && seen.high == guess.high)
			return seen;
		guess = seen;
	}
}

const struct insn *op_atom_wide(struct warp *warp, const struct insn *insn)
{
	const struct insn *expected = insn + 1;
	struct wide seen[WARP_LANES];
	if (!memory_resolve(warp, insn, (enum access_space)insn->size, 16, true))
		return NULL;
	for_each_lane(lane, warp->mask) {
		void *address = (void *)(uintptr_t)warp->pointers[lane];
		struct wide wanted = { SOURCE(uint64_t, 2)[lane], SOURCE(uint64_t, 3)[lane] };
		if (insn->count == ATOMIC_CAS) {
			const uint64_t *low = operand_row(warp, expected->r[0]);
			const uint64_t *high = operand_row(warp, expected->r[1]);
			seen[lane] = compare_and_swap(address, (struct wide){ low[lane], high[lane] }, wanted);
		} else {
			seen[lane] = exchange(address, wanted);
		}
	}
	for_each_lane(lane, warp->mask) {
		RESULT(uint64_t, 0)[lane] = seen[lane].low;
		RESULT(uint64_t, 1)[lane] = seen[lane].high;
	}
	return insn + 2;
}
