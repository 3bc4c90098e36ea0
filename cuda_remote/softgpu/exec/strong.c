/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads and stores that are not weak (PTX ISA, "Memory Consistency Model": .volatile, .relaxed, .acquire, .release,
 * .mmio). Each is an atomic access of the host with acquire or release, which is at least the order that any of them
 * requires. Other blocks and the host see each access as a whole, and in program order.
 *
 * The model leaves open in which order the elements of a vector are accessed. GPUs access up to 16 bytes at once, and
 * programs rely on that: the scans of CUB keep a value and its ready flag in one vector.
 */
#include "cuda_remote/softgpu/exec/strong.h"

#include "cuda_remote/softgpu/exec/warp.h"

#define VECTOR_MAX 32 /* bytes */
#define WHOLE_MAX 16  /* bytes of one access of the host; also its alignment, as vectors are aligned to their size */

/* Acquire: pairs with the release of the store, which a block, an atomic or the host made. */
#define LOAD(memory, row)                                                                                          \
	for_each_lane(lane, warp->mask)                                                                            \
		RESULT(row, n)[lane] = (row)__atomic_load_n((const memory *)(uintptr_t)(places[lane] + at),            \
							    __ATOMIC_ACQUIRE)
/* Release: a load of this value with acquire sees what the thread did before the store. */
#define STORE(memory, row)                                                                                         \
	for_each_lane(lane, warp->mask)                                                                            \
		__atomic_store_n((memory *)(uintptr_t)(places[lane] + at), (memory)SOURCE(row, n)[lane],               \
				 __ATOMIC_RELEASE)

/* Bytes of an element in memory and in its register, and whether it is extended with the sign. */
#define SIZES(size, width, is_signed) ((size) << 8 | (width) << 1 | (is_signed))

/* places: the address of each lane's vector. */
static void load_element(struct warp *warp, const struct insn *insn, const uint64_t *places, uint32_t n)
{
	uint64_t at = (uint64_t)n * insn->size;
	switch (SIZES(insn->size, STRONG_WIDTH(insn), insn->size < STRONG_WIDTH(insn) && insn->flags & INSN_SIGNED)) {
	case SIZES(1, 2, 0): LOAD(uint8_t, uint16_t); break;
	case SIZES(1, 4, 0): LOAD(uint8_t, uint32_t); break;
	case SIZES(1, 8, 0): LOAD(uint8_t, uint64_t); break;
	case SIZES(1, 2, 1): LOAD(int8_t, uint16_t); break;
	case SIZES(1, 4, 1): LOAD(int8_t, uint32_t); break;
	case SIZES(1, 8, 1): LOAD(int8_t, uint64_t); break;
	case SIZES(2, 2, 0): LOAD(uint16_t, uint16_t); break;
	case SIZES(2, 4, 0): LOAD(uint16_t, uint32_t); break;
	case SIZES(2, 8, 0): LOAD(uint16_t, uint64_t); break;
	case SIZES(2, 4, 1): LOAD(int16_t, uint32_t); break;
	case SIZES(2, 8, 1): LOAD(int16_t, uint64_t); break;
	case SIZES(4, 4, 0): LOAD(uint32_t, uint32_t); break;
	case SIZES(4, 8, 0): LOAD(uint32_t, uint64_t); break;
	case SIZES(4, 8, 1): LOAD(int32_t, uint64_t); break;
	default: LOAD(uint64_t, uint64_t); break;
	}
}

static void store_element(struct warp *warp, const struct insn *insn, const uint64_t *places, uint32_t n)
{
	uint64_t at = (uint64_t)n * insn->size;
	switch (SIZES(insn->size, STRONG_WIDTH(insn), 0)) {
	case SIZES(1, 2, 0): STORE(uint8_t, uint16_t); break;
	case SIZES(1, 4, 0): STORE(uint8_t, uint32_t); break;
	case SIZES(1, 8, 0): STORE(uint8_t, uint64_t); break;
	case SIZES(2, 2, 0): STORE(uint16_t, uint16_t); break;
	case SIZES(2, 4, 0): STORE(uint16_t, uint32_t); break;
	case SIZES(2, 8, 0): STORE(uint16_t, uint64_t); break;
	case SIZES(4, 4, 0): STORE(uint32_t, uint32_t); break;
	case SIZES(4, 8, 0): STORE(uint32_t, uint64_t); break;
	default: STORE(uint64_t, uint64_t); break;
	}
}

/* ---- vectors, which go through a buffer with a copy of each lane's vector */

struct copies {
	_Alignas(WHOLE_MAX) char bytes[WARP_LANES][VECTOR_MAX];
	uint64_t places[WARP_LANES];
};

#ifdef __x86_64__
/*
 * An aligned access of 16 bytes is one access on every processor with AVX (Intel's manual, volume 3, "Guaranteed Atomic
 * Operations"; AMD says the same), and loads and stores keep the order of acquire and release by themselves. The
 * compiler's own 16-byte atomics would need a library, which, without AVX, writes even to memory that is only loaded.
 */
static void copy_16(void *to, const void *from)
{
	__asm__ volatile("movdqa %1, %%xmm0\n\tmovdqa %%xmm0, %0"
			 : "=m"(*(char(*)[WHOLE_MAX])to)
			 : "m"(*(const char(*)[WHOLE_MAX])from)
			 : "xmm0", "memory");
}
#else
/* Two accesses: the halves may come from different stores. */
static void copy_16(void *to, const void *from)
{
	for (int half = 0; half < 2; half++)
		__atomic_store_n((uint64_t *)to + half, __atomic_load_n((const uint64_t *)from + half, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
}
#endif

#define COPY(type) __atomic_store_n((type *)to, __atomic_load_n((const type *)from, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE)

static void copy_vector(void *to, const void *from, uint32_t bytes)
{
	switch (bytes) {
	case 2: COPY(uint16_t); break;
	case 4: COPY(uint32_t); break;
	case 8: COPY(uint64_t); break;
	default:
		for (uint32_t at = 0; at < bytes; at += WHOLE_MAX)
			copy_16((char *)to + at, (const char *)from + at);
	}
}

static void make_places(const struct warp *warp, struct copies *copies)
{
	for_each_lane(lane, warp->mask)
		copies->places[lane] = (uintptr_t)copies->bytes[lane];
}

static void load_vectors(struct warp *warp, const struct insn *insn)
{
	struct copies copies;
	make_places(warp, &copies);
	for_each_lane(lane, warp->mask)
		copy_vector(copies.bytes[lane], (const void *)(uintptr_t)warp->pointers[lane],
			    (uint32_t)insn->size * insn->count);
	for (uint32_t n = 0; n < insn->count; n++)
		if (insn->r[n] >= 0)
			load_element(warp, insn, copies.places, n);
}

static void store_vectors(struct warp *warp, const struct insn *insn)
{
	struct copies copies;
	make_places(warp, &copies);
	for (uint32_t n = 0; n < insn->count; n++)
		store_element(warp, insn, copies.places, n);
	for_each_lane(lane, warp->mask)
		copy_vector((void *)(uintptr_t)warp->pointers[lane], copies.bytes[lane],
			    (uint32_t)insn->size * insn->count);
}

/* ---- the instructions */
const struct insn *op_strong_load(struct warp *warp, const struct insn *insn)
{
	if (!memory_resolve(warp, insn, STRONG_SPACE(insn), (uint32_t)insn->size * insn->count, false))
		return NULL;
	if (insn->count > 1)
		load_vectors(warp, insn);
	else
		load_element(warp, insn, warp->pointers, 0);
	return insn + 1;
}

const struct insn *op_strong_store(struct warp *warp, const struct insn *insn)
{
	if (!memory_resolve(warp, insn, STRONG_SPACE(insn), (uint32_t)insn->size * insn->count, true))
		return NULL;
	if (insn->count > 1)
		store_vectors(warp, insn);
	else
		store_element(warp, insn, warp->pointers, 0);
	return insn + 1;
}
