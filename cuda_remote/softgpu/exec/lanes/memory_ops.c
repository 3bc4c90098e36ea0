/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads and stores of a warp, compiled once for each instruction set. An access is classified first: consecutive
 * addresses (one vector copy), one address for all lanes, or scattered addresses (one access a lane). Its bounds are
 * checked once for all lanes if possible. If that check fails, memory_resolve checks lane by lane and reports the
 * fault.
 */
#include "cuda_remote/softgpu/exec/lanes/lanes.h"

#define INLINED static inline __attribute__((always_inline))

/* The mask of lanes whose address is not base + lane * step; step is a power of two, or 0. */
static inline uint32_t strangers_narrow(const uint32_t *rows, uint32_t base, uint32_t step)
{
#if defined(__AVX512DQ__)
	__m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m512i steps = _mm512_set1_epi32((int)step),
		want = _mm512_add_epi32(_mm512_mullo_epi32(lanes, steps), _mm512_set1_epi32((int)base));
	uint32_t first = _mm512_cmpneq_epi32_mask(_mm512_load_si512(rows), want);
	want = _mm512_add_epi32(want, _mm512_slli_epi32(steps, 4));
	return first | (uint32_t)_mm512_cmpneq_epi32_mask(_mm512_load_si512(rows + 16), want) << 16;
#else
	_Alignas(64) int32_t truth[WARP_LANES];
	ALL_LANES
		truth[lane] = -(int32_t)(rows[lane] != base + (uint32_t)lane * step);
	return mask_of(truth);
#endif
}

static inline uint32_t strangers_wide(const uint64_t *rows, uint64_t base, uint64_t step)
{
#if defined(__AVX512DQ__)
	__m512i steps = _mm512_set1_epi64((long long)step), lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
	__m512i want = _mm512_add_epi64(_mm512_mul_epu32(lanes, steps), _mm512_set1_epi64((long long)base));
	__m512i eight = _mm512_slli_epi64(steps, 3);
	uint32_t mask = 0;
	for (int n = 0; n < 4; n++) {
		mask |= (uint32_t)_mm512_cmpneq_epi64_mask(_mm512_load_si512(rows + 8 * n), want) << 8 * n;
		want = _mm512_add_epi64(want, eight);
	}
	return mask;
#else
	_Alignas(64) int32_t truth[WARP_LANES];
	ALL_LANES
		truth[lane] = -(int32_t)(rows[lane] != base + (uint64_t)lane * step);
	return mask_of(truth);
#endif
}

enum access_kind { ACCESS_FAILED, ACCESS_RUN, ACCESS_ONE, ACCESS_SCATTERED };

/* The addresses of the active lanes: consecutive (run), all the same (one), or neither. */
struct address_set {
	uint64_t first; /* of a run: lane 0's address, as it would be if lane 0 is not active */
	uint64_t low, high; /* of the first and the last active lane */
	bool run, one;
};

#define DEFINE_SORT(width, type)                                                                          \
	INLINED struct address_set sort_##width(const struct warp *warp, const type *rows, type offset, type step) \
	{                                                                                                 \
		uint32_t mask = warp->mask, leader = (uint32_t)__builtin_ctz(mask);                               \
		uint32_t last = 31 - (uint32_t)__builtin_clz(mask);                                               \
		type base = rows[leader], distance = rows[last] - base, want = (type)(last - leader) * step;      \
		struct address_set set = { .first = (type)(base - leader * step + offset) };              \
		set.one = distance == 0 && !(strangers_##width(rows, base, 0) & mask);                    \
		set.run = !set.one && distance == want &&                                                 \
			  !(strangers_##width(rows, (type)(base - leader * step), step) & mask);          \
		set.low = (type)(base + offset);                                                          \
		set.high = (type)(rows[last] + offset);                                                   \
		return set;                                                                               \
	}
DEFINE_SORT(wide, uint64_t)
DEFINE_SORT(narrow, uint32_t)

/* The addresses that are allowed, low … low + limit inclusive; base: the host address of lane 0's address 0. */
struct reach {
	uint64_t low, limit;
	uint64_t base, step; /* step: from a lane's memory to the next one's */
};

/* Writes each lane's host address to warp->pointers. False: an active lane's is misaligned or not within reach. */
#define DEFINE_SCATTER(width, type)                                                                       \
	INLINED bool scatter_##width(struct warp *warp, const type *rows, type offset, struct reach reach,        \
				     uint32_t bytes)                                                      \
	{                                                                                                 \
		const type low = (type)reach.low, limit = (type)reach.limit, below = (type)(bytes - 1);           \
		type bad = 0;                                                                             \
		uint64_t *pointers = warp->pointers;                                                      \
		const int32_t *lanes = warp->lanes;                                                       \
		ALL_LANES {                                                                               \
			type a = rows[lane] + offset, wrong = (type)(a - low) > limit ? (type)-1 : (a & below);   \
			pointers[lane] = reach.base + (uint64_t)lane * reach.step + a;                    \
			bad |= lanes[lane] ? wrong : 0;                                                   \
		}                                                                                         \
		return !bad;                                                                              \
	}
DEFINE_SCATTER(wide, uint64_t)
DEFINE_SCATTER(narrow, uint32_t)

static __attribute__((noinline)) enum access_kind access_slow(struct warp *warp, const struct insn *insn,
							      enum access_space space, uint32_t bytes, bool write)
{
	return memory_resolve(warp, insn, space, bytes, write) ? ACCESS_SCATTERED : ACCESS_FAILED;
}

static inline bool scatter_global(struct warp *warp, const struct insn *insn, uint32_t bytes, bool write)
{
	const struct span_cache *span = &warp->block->spans[insn->slot];
	if (span->high < span->low || span->high - span->low < bytes || (write && span->read_only))
		return false;
	struct reach reach = { .low = span->low, .limit = span->high - span->low - bytes };
	return scatter_wide(warp, SOURCE(uint64_t, 4), insn->imm, reach, bytes);
}

/* Tries the allocation that the instruction accessed last, then that of the first active lane. If some address is
 * outside, checks lane by lane. */
static __attribute__((noinline)) enum access_kind access_scattered(struct warp *warp, const struct insn *insn,
								   enum access_space space, uint32_t bytes, bool write)
{
	uint64_t address = SOURCE(uint64_t, 4)[__builtin_ctz(warp->mask)] + insn->imm;
	if (scatter_global(warp, insn, bytes, write))
		return ACCESS_SCATTERED;
	if (!(address >> WINDOW_SHIFT) && memory_span_refill(warp, insn->slot, address) &&
	    scatter_global(warp, insn, bytes, write))
		return ACCESS_SCATTERED;
	return access_slow(warp, insn, space, bytes, write);
}

INLINED enum access_kind access_global(struct warp *warp, const struct insn *insn, uint32_t bytes, bool write,
					     enum access_space space, char **base)
{
	const uint64_t *rows = SOURCE(uint64_t, 4);
	struct address_set set = sort_wide(warp, rows, insn->imm, bytes);
	if (!(set.run | set.one))
		return access_scattered(warp, insn, space, bytes, write);
	const struct span_cache *span = &warp->block->spans[insn->slot];
	if (__builtin_expect(set.low < span->low || set.high > span->high - bytes || set.high < set.low ||
			     (write && span->read_only), 0)) {
		if (set.low >> WINDOW_SHIFT || !memory_span_refill(warp, insn->slot, set.low) || set.low < span->low ||
		    set.high > span->high - bytes || set.high < set.low || (write && span->read_only))
			return access_slow(warp, insn, space, bytes, write);
	}
	if (set.low & (bytes - 1))
		return access_slow(warp, insn, space, bytes, write);
	*base = (char *)(uintptr_t)(set.one ? set.low : set.first);
	return set.one ? ACCESS_ONE : ACCESS_RUN;
}

INLINED enum access_kind access_shared(struct warp *warp, const struct insn *insn, uint32_t bytes, bool write,
					     char **base)
{
	struct address_set set;
	char *shared = warp->block->shared;
	uint64_t size = warp->block->shared_bytes;
	bool narrow = insn->flags & INSN_NARROW;
	struct reach reach = { .limit = size - bytes, .base = (uint64_t)(uintptr_t)shared };
	if (size < bytes)
		return access_slow(warp, insn, ACCESS_SHARED, bytes, write);
	if (narrow)
		set = sort_narrow(warp, SOURCE(uint32_t, 4), (uint32_t)insn->imm, bytes);
	else
		set = sort_wide(warp, SOURCE(uint64_t, 4), insn->imm, bytes);
	if (!(set.run | set.one)) {
		bool inside = narrow ? scatter_narrow(warp, SOURCE(uint32_t, 4), (uint32_t)insn->imm, reach, bytes) :
				       scatter_wide(warp, SOURCE(uint64_t, 4), insn->imm, reach, bytes);
		return inside ? ACCESS_SCATTERED : access_slow(warp, insn, ACCESS_SHARED, bytes, write);
	}
	if (set.low > size - bytes || set.high > size - bytes || set.high < set.low || (set.low & (bytes - 1)))
		return access_slow(warp, insn, ACCESS_SHARED, bytes, write);
	*base = shared + (int64_t)(set.one ? set.low : narrow ? (uint64_t)(int32_t)set.first : set.first);
	return set.one ? ACCESS_ONE : ACCESS_RUN;
}

/*
 * Local memory: every lane has its own, local_bytes apart. The offsets' bounds and alignment are checked for all lanes
 * at once. window: the generic address of offset 0; 0 for ld.local.
 */
INLINED enum access_kind access_local(struct warp *warp, const struct insn *insn, uint32_t bytes, bool write,
				      uint64_t window)
{
	uint64_t size = warp->block->launch->local_bytes;
	struct reach reach = { .limit = size - bytes, .base = (uint64_t)(uintptr_t)warp->local, .step = size };
	bool inside = size >= bytes;
	if (inside && insn->flags & INSN_NARROW)
		inside = scatter_narrow(warp, SOURCE(uint32_t, 4), (uint32_t)insn->imm, reach, bytes);
	else if (inside)
		inside = scatter_wide(warp, SOURCE(uint64_t, 4), insn->imm - window, reach, bytes);
	if (inside)
		return ACCESS_SCATTERED;
	return access_slow(warp, insn, window ? ACCESS_GENERIC : ACCESS_LOCAL, bytes, write);
}

/* Generic addresses that are all in the window of shared memory. */
INLINED enum access_kind access_shared_window(struct warp *warp, const struct insn *insn, uint32_t bytes, bool write)
{
	uint64_t size = warp->block->shared_bytes, offset = insn->imm - WINDOW_BASE(WINDOW_SHARED);
	struct reach reach = { .limit = size - bytes, .base = (uint64_t)(uintptr_t)warp->block->shared };
	if (size < bytes || !scatter_wide(warp, SOURCE(uint64_t, 4), offset, reach, bytes))
		return access_slow(warp, insn, ACCESS_GENERIC, bytes, write);
	return ACCESS_SCATTERED;
}

static __attribute__((noinline)) enum access_kind access_generic(struct warp *warp, const struct insn *insn,
								 uint32_t bytes, bool write, char **base)
{
	uint64_t address = SOURCE(uint64_t, 4)[__builtin_ctz(warp->mask)] + insn->imm;
	switch (address >> WINDOW_SHIFT) {
	case WINDOW_SHARED: return access_shared_window(warp, insn, bytes, write);
	case WINDOW_LOCAL: return access_local(warp, insn, bytes, write, WINDOW_BASE(WINDOW_LOCAL));
	default: return access_global(warp, insn, bytes, write, ACCESS_GENERIC, base);
	}
}

INLINED enum access_kind access_of(struct warp *warp, const struct insn *insn, enum access_space space,
					 uint32_t bytes, bool write, char **base)
{
	if (space == ACCESS_GENERIC)
		return access_generic(warp, insn, bytes, write, base);
	if (space == ACCESS_GLOBAL)
		return access_global(warp, insn, bytes, write, space, base);
	if (space == ACCESS_SHARED)
		return access_shared(warp, insn, bytes, write, base);
	return access_local(warp, insn, bytes, write, 0);
}

/* Loads scattered elements, eight lanes an instruction. False: there is no such instruction for these sizes. */
INLINED bool gathered(const struct warp *warp, void *row, uint64_t offset, size_t from, size_t to)
{
#if defined(__AVX512DQ__)
	const void *base = (const void *)(uintptr_t)offset;
	for (uint32_t n = 0; n < WARP_LANES && from == to && from >= 4; n += 8) {
		__m512i at = _mm512_load_si512(warp->pointers + n);
		__mmask8 mask = (__mmask8)(warp->mask >> n);
		char *cells = (char *)row + n * to;
		if (from == 4)
			_mm256_store_si256((__m256i *)(void *)cells, _mm512_mask_i64gather_epi32(
				_mm256_load_si256((const __m256i *)(const void *)cells), mask, at, base, 1));
		else
			_mm512_store_si512(cells, _mm512_mask_i64gather_epi64(_mm512_load_si512(cells), mask, at,
									     base, 1));
	}
	return from == to && from >= 4;
#else
	(void)warp, (void)row, (void)offset, (void)from, (void)to;
	return false;
#endif
}

/* One element of a load: memory type M, register row of type R; count elements in all. */
#define LOAD_ELEMENT(M, R, element)                                                                      \
	do {                                                                                             \
		R *row = RESULT(R, element);                                                             \
		if (kind == ACCESS_RUN && warp->mask == FULL_MASK) {                                     \
			const M *from = (const M *)(const void *)base + (element);                       \
			if (count == 4)                                                                  \
				ALL_LANES                                                                \
					row[lane] = (R)from[lane * 4];                                   \
			else if (count == 2)                                                             \
				ALL_LANES                                                                \
					row[lane] = (R)from[lane * 2];                                   \
			else                                                                             \
				ALL_LANES                                                                \
					row[lane] = (R)from[(uint32_t)lane * count];                     \
		} else if (kind == ACCESS_ONE) {                                                         \
			R value = (R)((const M *)(const void *)base)[element];                           \
			if (warp->mask == FULL_MASK)                                                     \
				ALL_LANES                                                                \
					row[lane] = value;                                               \
			else                                                                             \
				ALL_LANES                                                                \
					row[lane] = warp->lanes[lane] ? value : row[lane];               \
		} else if (kind == ACCESS_RUN) {                                                         \
			const M *from = (const M *)(const void *)base + (element);                       \
			for_each_lane(lane, warp->mask)                                                  \
				row[lane] = (R)from[lane * count];                                       \
		} else if (gathered(warp, row, (element) * sizeof(M), sizeof(M), sizeof(R))) {           \
		} else if (warp->mask == FULL_MASK) {                                                    \
			for (int lane = 0; lane < WARP_LANES; lane++)                                    \
				row[lane] = (R)((const M *)(uintptr_t)warp->pointers[lane])[element];    \
		} else {                                                                                 \
			for_each_lane(lane, warp->mask)                                                  \
				row[lane] = (R)((const M *)(uintptr_t)warp->pointers[lane])[element];    \
		}                                                                                        \
	} while (0)

/*
 * The common case, in code that needs no stack: one element, the whole warp, consecutive addresses or one address, in
 * bounds. False or NULL: the access is not of this kind.
 */
#define DEFINE_SIMPLE(width, type)                                                                       \
	INLINED bool simple_##width(const struct warp *warp, const struct insn *insn, uint64_t low_limit,        \
				    uint64_t high_limit, type step, bool *one, uint64_t *address)        \
	{                                                                                                \
		const type *rows = SOURCE(type, 4);                                                      \
		type base = rows[0], distance = rows[WARP_LANES - 1] - base, first = (type)(base + (type)insn->imm); \
		uint64_t last = (uint64_t)first + distance;                                              \
		*one = distance == 0;                                                                    \
		bool run = distance == (WARP_LANES - 1) * step;                                          \
		if (!(*one | run) || first < low_limit || last > high_limit - step || last < first ||            \
		    (first & (step - 1)) || strangers_##width(rows, base, *one ? 0 : step))                                      \
			return false;                                                                    \
		*address = first;                                                                        \
		return true;                                                                             \
	}
DEFINE_SIMPLE(wide, uint64_t)
DEFINE_SIMPLE(narrow, uint32_t)

/* The host address for lane 0; NULL if the access is not simple. */
INLINED char *simple_access(const struct warp *warp, const struct insn *insn, enum access_space space, uint32_t bytes,
			    bool write, bool *one)
{
	uint64_t address = 0;
	if (warp->mask != FULL_MASK || insn->count != 1)
		return NULL;
	if (space == ACCESS_GLOBAL || space == ACCESS_GENERIC) {
		const struct span_cache *span = &warp->block->spans[insn->slot];
		if (write && span->read_only)
			return NULL;
		return simple_wide(warp, insn, span->low, span->high, bytes, one, &address) ? (char *)(uintptr_t)address
											    : NULL;
	}
	uint64_t size = warp->block->shared_bytes;
	if (space != ACCESS_SHARED || size < bytes)
		return NULL;
	bool simple = insn->flags & INSN_NARROW ? simple_narrow(warp, insn, 0, size, bytes, one, &address) :
						  simple_wide(warp, insn, 0, size, bytes, one, &address);
	return simple ? warp->block->shared + address : NULL;
}

/* The address of an access by a path of one lane. */
INLINED uint64_t single_lane_address(const struct warp *warp, const struct insn *insn)
{
	return insn->flags & INSN_NARROW ? (uint32_t)(SINGLE_LANE(uint32_t, 4) + (uint32_t)insn->imm) :
					   SINGLE_LANE(uint64_t, 4) + insn->imm;
}

/* The result may overwrite the register with the address, so all addresses are computed before an element is
 * written. */
#define DEFINE_LOAD(name, space, M, R)                                                                   \
	static __attribute__((noinline)) const struct insn *name##_any(struct warp *warp, const struct insn *insn) \
	{                                                                                                \
		char *base = NULL;                                                                       \
		const uint32_t count = insn->count;                                                      \
		enum access_kind kind = access_of(warp, insn, space, (uint32_t)sizeof(M) * count, false, &base); \
		if (__builtin_expect(kind == ACCESS_FAILED, 0))                                          \
			return NULL;                                                                     \
		load_elements_##M##_##R(warp, insn, kind, base, count);                                  \
		return insn + 1;                                                                         \
	}                                                                                                \
	static __attribute__((noinline)) const struct insn *name##_single_lane(struct warp *warp, const struct insn *insn) \
	{                                                                                                \
		const char *from = single_lane_access(warp, insn, single_lane_address(warp, insn), space,              \
					       (uint32_t)sizeof(M) * insn->count, false);                \
		if (!from)                                                                               \
			return name##_any(warp, insn);                                                   \
		if (insn->count == 1 && insn->r[0] >= 0) {                                               \
			SINGLE_LANE(R, 0) = (R)*(const M *)(const void *)from;                                  \
			return insn + 1;                                                                 \
		}                                                                                        \
		for (uint32_t n = 0; n < insn->count; n++)                                               \
			if (insn->r[n] >= 0)                                                             \
				SINGLE_LANE(R, n) = (R)((const M *)(const void *)from)[n];                      \
		return insn + 1;                                                                         \
	}                                                                                                \
	HANDLER(name)                                                                                    \
	{                                                                                                \
		bool one = false;                                                                        \
		const char *from = simple_access(warp, insn, space, (uint32_t)sizeof(M), false, &one);   \
		if (!from && warp->alone >= 0)                                                           \
			return name##_single_lane(warp, insn);                                                  \
		if (!from)                                                                               \
			return name##_any(warp, insn);                                                   \
		R *row = RESULT(R, 0);                                                                   \
		const M *elements = (const M *)(const void *)from;                                       \
		if (one) {                                                                               \
			R value = (R)*elements;                                                          \
			ALL_LANES                                                                        \
				row[lane] = value;                                                       \
		} else {                                                                                 \
			ALL_LANES                                                                        \
				row[lane] = (R)elements[lane];                                           \
		}                                                                                        \
		return insn + 1;                                                                         \
	}

#define DEFINE_LOADS(name, M, R)                                                                         \
	static void load_elements_##M##_##R(struct warp *warp, const struct insn *insn, enum access_kind kind, \
					    const char *base, uint32_t count)                            \
	{                                                                                                \
		for (uint32_t n = 0; n < count; n++)                                                     \
			if (insn->r[n] >= 0)                                                             \
				LOAD_ELEMENT(M, R, n);                                                   \
	}                                                                                                \
	DEFINE_LOAD(name##_global, ACCESS_GLOBAL, M, R)                                                  \
	DEFINE_LOAD(name##_shared, ACCESS_SHARED, M, R)                                                  \
	DEFINE_LOAD(name##_local, ACCESS_LOCAL, M, R)                                                    \
	DEFINE_LOAD(name##_generic, ACCESS_GENERIC, M, R)

#define STORE_ELEMENT(M, R, element)                                                                     \
	do {                                                                                             \
		const R *row = SOURCE(R, element);                                                       \
		if (kind == ACCESS_RUN && warp->mask == FULL_MASK) {                                     \
			M *to = (M *)(void *)base + (element);                                           \
			ALL_LANES                                                                        \
				to[(uint32_t)lane * count] = (M)row[lane];                               \
		} else if (kind == ACCESS_ONE) {                                                         \
			((M *)(void *)base)[element] = (M)row[31 - __builtin_clz(warp->mask)];           \
		} else if (kind == ACCESS_RUN) {                                                         \
			M *to = (M *)(void *)base + (element);                                           \
			for_each_lane(lane, warp->mask)                                                  \
				to[lane * count] = (M)row[lane];                                         \
		} else if (warp->mask == FULL_MASK) {                                                    \
			for (int lane = 0; lane < WARP_LANES; lane++)                                    \
				((M *)(uintptr_t)warp->pointers[lane])[element] = (M)row[lane];          \
		} else {                                                                                 \
			for_each_lane(lane, warp->mask)                                                  \
				((M *)(uintptr_t)warp->pointers[lane])[element] = (M)row[lane];          \
		}                                                                                        \
	} while (0)

#define DEFINE_STORE(name, space, M, R)                                                                  \
	static __attribute__((noinline)) const struct insn *name##_any(struct warp *warp, const struct insn *insn) \
	{                                                                                                \
		char *base = NULL;                                                                       \
		const uint32_t count = insn->count;                                                      \
		enum access_kind kind = access_of(warp, insn, space, (uint32_t)sizeof(M) * count, true, &base); \
		if (__builtin_expect(kind == ACCESS_FAILED, 0))                                          \
			return NULL;                                                                     \
		store_elements_##M##_##R(warp, insn, kind, base, count);                                 \
		return insn + 1;                                                                         \
	}                                                                                                \
	static __attribute__((noinline)) const struct insn *name##_single_lane(struct warp *warp, const struct insn *insn) \
	{                                                                                                \
		char *to = single_lane_access(warp, insn, single_lane_address(warp, insn), space,                      \
				       (uint32_t)sizeof(M) * insn->count, true);                         \
		if (!to)                                                                                 \
			return name##_any(warp, insn);                                                   \
		if (insn->count == 1) {                                                                  \
			*(M *)(void *)to = (M)SINGLE_LANE(R, 0);                                                \
			return insn + 1;                                                                 \
		}                                                                                        \
		for (uint32_t n = 0; n < insn->count; n++)                                               \
			((M *)(void *)to)[n] = (M)SINGLE_LANE(R, n);                                            \
		return insn + 1;                                                                         \
	}                                                                                                \
	HANDLER(name)                                                                                    \
	{                                                                                                \
		bool one = false;                                                                        \
		char *to = simple_access(warp, insn, space, (uint32_t)sizeof(M), true, &one);            \
		if (!to && warp->alone >= 0)                                                             \
			return name##_single_lane(warp, insn);                                                  \
		if (!to)                                                                                 \
			return name##_any(warp, insn);                                                   \
		const R *row = SOURCE(R, 0);                                                             \
		M *elements = (M *)(void *)to;                                                           \
		if (one)                                                                                 \
			*elements = (M)row[WARP_LANES - 1];                                              \
		else                                                                                     \
			ALL_LANES                                                                        \
				elements[lane] = (M)row[lane];                                           \
		return insn + 1;                                                                         \
	}

#define DEFINE_STORES(name, M, R)                                                                        \
	static void store_elements_##M##_##R(struct warp *warp, const struct insn *insn, enum access_kind kind, \
					     char *base, uint32_t count)                                 \
	{                                                                                                \
		for (uint32_t n = 0; n < count; n++)                                                     \
			STORE_ELEMENT(M, R, n);                                                          \
	}                                                                                                \
	DEFINE_STORE(name##_global, ACCESS_GLOBAL, M, R)                                                 \
	DEFINE_STORE(name##_shared, ACCESS_SHARED, M, R)                                                 \
	DEFINE_STORE(name##_local, ACCESS_LOCAL, M, R)                                                   \
	DEFINE_STORE(name##_generic, ACCESS_GENERIC, M, R)

DEFINE_LOADS(load_u8_16, uint8_t, uint16_t)
DEFINE_LOADS(load_u8_32, uint8_t, uint32_t)
DEFINE_LOADS(load_u8_64, uint8_t, uint64_t)
DEFINE_LOADS(load_s8_16, int8_t, int16_t)
DEFINE_LOADS(load_s8_32, int8_t, int32_t)
DEFINE_LOADS(load_s8_64, int8_t, int64_t)
DEFINE_LOADS(load_u16_16, uint16_t, uint16_t)
DEFINE_LOADS(load_u16_32, uint16_t, uint32_t)
DEFINE_LOADS(load_u16_64, uint16_t, uint64_t)
DEFINE_LOADS(load_s16_32, int16_t, int32_t)
DEFINE_LOADS(load_s16_64, int16_t, int64_t)
DEFINE_LOADS(load_u32_32, uint32_t, uint32_t)
DEFINE_LOADS(load_u32_64, uint32_t, uint64_t)
DEFINE_LOADS(load_s32_64, int32_t, int64_t)
DEFINE_LOADS(load_u64_64, uint64_t, uint64_t)

DEFINE_STORES(store_8_16, uint8_t, uint16_t)
DEFINE_STORES(store_8_32, uint8_t, uint32_t)
DEFINE_STORES(store_8_64, uint8_t, uint64_t)
DEFINE_STORES(store_16_16, uint16_t, uint16_t)
DEFINE_STORES(store_16_32, uint16_t, uint32_t)
DEFINE_STORES(store_16_64, uint16_t, uint64_t)
DEFINE_STORES(store_32_32, uint32_t, uint32_t)
DEFINE_STORES(store_32_64, uint32_t, uint64_t)
DEFINE_STORES(store_64_64, uint64_t, uint64_t)

#define LOADS_OF(space)                                                                                  \
	{                                                                                                \
		{ NULL, load_u8_16_##space, load_u8_32_##space, load_u8_64_##space },                    \
		{ NULL, load_u16_16_##space, load_u16_32_##space, load_u16_64_##space },                 \
		{ NULL, NULL, load_u32_32_##space, load_u32_64_##space },                                \
		{ NULL, NULL, NULL, load_u64_64_##space },                                               \
	}
#define SIGNED_LOADS_OF(space)                                                                           \
	{                                                                                                \
		{ NULL, load_s8_16_##space, load_s8_32_##space, load_s8_64_##space },                    \
		{ NULL, load_u16_16_##space, load_s16_32_##space, load_s16_64_##space },                 \
		{ NULL, NULL, load_u32_32_##space, load_s32_64_##space },                                \
		{ NULL, NULL, NULL, load_u64_64_##space },                                               \
	}
#define STORES_OF(space)                                                                                 \
	{                                                                                                \
		{ NULL, store_8_16_##space, store_8_32_##space, store_8_64_##space },                    \
		{ NULL, store_16_16_##space, store_16_32_##space, store_16_64_##space },                 \
		{ NULL, NULL, store_32_32_##space, store_32_64_##space },                                \
		{ NULL, NULL, NULL, store_64_64_##space },                                               \
	}
insn_handler *const LANES_NAME(loads)[ACCESS_SPACES][4][4] = {
	LOADS_OF(global), LOADS_OF(shared), LOADS_OF(local), LOADS_OF(generic)
};
insn_handler *const LANES_NAME(signed_loads)[ACCESS_SPACES][4][4] = {
	SIGNED_LOADS_OF(global), SIGNED_LOADS_OF(shared), SIGNED_LOADS_OF(local), SIGNED_LOADS_OF(generic)
};
insn_handler *const LANES_NAME(stores)[ACCESS_SPACES][4][4] = {
	STORES_OF(global), STORES_OF(shared), STORES_OF(local), STORES_OF(generic)
};
