/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interpreter of paths that are one lane. A handler of lanes.h's kind serves whole warps and single lanes, and its
 * call, its return and its questions which of the two it is take longer than what one lane has to be computed. Here the
 * operations that programs use most are places of one function, each of which jumps to the next one's (threaded code:
 * Bell, CACM 1973), with the lane's columns in registers. What has no place here is left to its handler.
 *
 * An instruction's `lone` is its place. Labels are known inside their function only, so that the function itself gives
 * them out (lone_place).
 */
#include "cuda_remote/softgpu/exec/lanes/lanes.h"

#include <pthread.h>

struct lone_place {
	insn_handler *const *handler;
	const void *place;
};

/* What run_lone tells of itself if it is given no warp. */
struct lone_places {
	const struct lone_place *places;
	size_t count;
	const void *other; /* of handlers that have no place */
	const struct insn *entry;
};

/* The cell of operand n in the lane's column. */
#define CELL(type, n)                                                                                            \
	(*(type *)(void *)((sizeof(type) == 8 ? cells8 : sizeof(type) == 4 ? cells4 : cells2) + insn->r[n]))
/* The lane's bit of a predicate. */
#define PREDICATE(n) (*(uint32_t *)(void *)(regs + insn->r[n]))
#define TRUE_AT(n) ((PREDICATE(n) & mask) != 0)
#define SET_AT(n, truth) (PREDICATE(n) = (truth) ? PREDICATE(n) | mask : PREDICATE(n) & ~mask)

#define ADDRESS                                                                                                  \
	(insn->flags & INSN_NARROW ? (uint32_t)(CELL(uint32_t, 4) + (uint32_t)insn->imm) : CELL(uint64_t, 4) + insn->imm)

#define GO_TO(target)                                                                                            \
	do {                                                                                                     \
		insn = (target);                                                                                 \
		goto *insn->lone;                                                                                \
	} while (0)

/* Accesses of one element: X(space, its enum, table, log2 bytes, row, memory type, register type). */
#define LOADS_OF(X, space, SPACE)                                                                                \
	X(space, SPACE, loads, 0, 1, uint8_t, uint16_t)                                                          \
	X(space, SPACE, loads, 0, 2, uint8_t, uint32_t)                                                          \
	X(space, SPACE, signed_loads, 0, 1, int8_t, int16_t)                                                     \
	X(space, SPACE, signed_loads, 0, 2, int8_t, int32_t)                                                     \
	X(space, SPACE, loads, 1, 1, uint16_t, uint16_t)                                                         \
	X(space, SPACE, loads, 1, 2, uint16_t, uint32_t)                                                         \
	X(space, SPACE, signed_loads, 1, 2, int16_t, int32_t)                                                    \
	X(space, SPACE, loads, 2, 2, uint32_t, uint32_t)                                                         \
	X(space, SPACE, loads, 3, 3, uint64_t, uint64_t)
#define STORES_OF(X, space, SPACE)                                                                               \
	X(space, SPACE, stores, 0, 1, uint8_t, uint16_t)                                                         \
	X(space, SPACE, stores, 0, 2, uint8_t, uint32_t)                                                         \
	X(space, SPACE, stores, 1, 1, uint16_t, uint16_t)                                                        \
	X(space, SPACE, stores, 1, 2, uint16_t, uint32_t)                                                        \
	X(space, SPACE, stores, 2, 2, uint32_t, uint32_t)                                                        \
	X(space, SPACE, stores, 3, 3, uint64_t, uint64_t)
#define ALL_SPACES(OF, X)                                                                                        \
	OF(X, global, ACCESS_GLOBAL) OF(X, shared, ACCESS_SHARED) OF(X, local, ACCESS_LOCAL) OF(X, generic, ACCESS_GENERIC)

#define ACCESS_PLACE(space, SPACE, table, size, row, M, R) \
	{ &LANES_NAME(table)[SPACE][size][row], &&space##_##table##_##M##_##R },
#define LOAD(space, SPACE, table, size, row, M, R)                                                               \
	space##_##table##_##M##_##R : {                                                                          \
		const char *from = lone_access(warp, insn, ADDRESS, SPACE, sizeof(M), false);                    \
		if (__builtin_expect(!from || insn->count != 1 || insn->r[0] < 0, 0))                            \
			goto other;                                                                              \
		CELL(R, 0) = (R)*(const M *)(const void *)from;                                                  \
		GO_TO(insn + 1);                                                                                 \
	}
#define STORE(space, SPACE, table, size, row, M, R)                                                              \
	space##_##table##_##M##_##R : {                                                                          \
		char *to = lone_access(warp, insn, ADDRESS, SPACE, sizeof(M), true);                             \
		if (__builtin_expect(!to || insn->count != 1, 0))                                                \
			goto other;                                                                              \
		*(M *)(void *)to = (M)CELL(R, 0);                                                                \
		GO_TO(insn + 1);                                                                                 \
	}

static insn_handler op_lone;
static insn_handler *const control[] = { op_nop, op_bra, op_bra_back, op_branch, op_branch_back, op_join, op_guard };

/* The running path may go on at "at" without a look at others, or a cheap one. */
static inline bool keeps_turn(const struct warp *warp, const struct insn *at)
{
	return warp->other_count == 0 || (!warp->ahead && !warp_others_come_first(warp, at));
}

/* From insn on, until the running path is no longer one lane: the instruction to go on at, or NULL. */
static const struct insn *run_lone(struct warp *warp, const struct insn *insn, struct lone_places *tell)
{
	static const struct insn entry = { .handler = op_lone, .lone = &&entered };
	static const struct lone_place places[] = {
		{ &control[0], &&nop }, { &control[1], &&bra }, { &control[2], &&bra_back }, { &control[3], &&branch },
		{ &control[4], &&branch_back }, { &control[5], &&join }, { &control[6], &&guard },
		ALL_SPACES(LOADS_OF, ACCESS_PLACE) ALL_SPACES(STORES_OF, ACCESS_PLACE)
#define LONE_OP(table, op, ...) { &LANES_NAME(ops_##table)[op], &&table##_##op },
#include "cuda_remote/softgpu/exec/ops/lone.h"
#undef LONE_OP
	};
	char *regs, *cells2, *cells4, *cells8;
	uint32_t mask;
	bool taken;
	if (!warp) {
		*tell = (struct lone_places){ places, sizeof places / sizeof *places, &&other, &entry };
		return NULL;
	}
	goto reload;

entered:
	insn = warp->lone_at;
reload: /* after what may have changed the lane */
	regs = warp->regs;
	mask = warp->mask;
	cells2 = warp->lone2;
	cells4 = warp->lone4;
	cells8 = warp->lone8;
	GO_TO(insn);
other:
	insn = insn->handler(warp, insn);
	if (!insn || !warp->lone4)
		return insn;
	goto reload;

nop:
	GO_TO(insn + 1);
bra:
	GO_TO(insn->target);
join:
	if (!keeps_turn(warp, insn))
		goto other;
	GO_TO(insn + 1);
guard:
	if (TRUE_AT(1) != !(insn->flags & INSN_NEGATE))
		GO_TO(insn + 2);
	GO_TO(insn + 1);
bra_back:
	taken = true;
	goto back;
branch_back:
	taken = TRUE_AT(1) == !(insn->flags & INSN_NEGATE);
back:
	if (taken) {
		if (warp->fuel < insn->count || !keeps_turn(warp, insn->target))
			goto other;
		warp->fuel -= insn->count;
		GO_TO(insn->target);
	}
	if (!keeps_turn(warp, insn + 1))
		goto other;
	GO_TO(insn + 1);
branch:
	if (TRUE_AT(1) == !(insn->flags & INSN_NEGATE)) {
		if (!keeps_turn(warp, insn->target))
			goto other;
		GO_TO(insn->target);
	}
	if (!keeps_turn(warp, insn + 1))
		goto other;
	GO_TO(insn + 1);

	ALL_SPACES(LOADS_OF, LOAD)
	ALL_SPACES(STORES_OF, STORE)
#define LONE_OP(table, op, ...)                                                                                  \
	table##_##op : {                                                                                         \
		__VA_ARGS__                                                                                      \
	}                                                                                                        \
	GO_TO(insn + 1);
#include "cuda_remote/softgpu/exec/ops/lone.h"
#undef LONE_OP
}

/* The handler of the entry: in the interpreter of warps. */
static const struct insn *op_lone(struct warp *warp, const struct insn *insn)
{
	(void)insn;
	return run_lone(warp, warp->lone_at, NULL);
}

/* ---- places by handler: a hash table, as the decoder asks for each instruction */

#define SLOTS 2048

static struct lone_places known;
static const struct lone_place *slots[SLOTS];

/* Handlers are aligned to 16 bytes by most compilers. */
static size_t slot_of(insn_handler *handler)
{
	return ((uintptr_t)handler >> 4) * 0x9e3779b97f4a7c15ull >> 32 & (SLOTS - 1);
}

static void learn_places(void)
{
	_Static_assert(sizeof(size_t) == 8, "slot_of takes the upper half of a product");
	run_lone(NULL, NULL, &known);
	for (size_t n = 0; n < known.count; n++) {
		size_t slot = slot_of(*known.places[n].handler);
		while (slots[slot] && *slots[slot]->handler != *known.places[n].handler)
			slot = (slot + 1) % SLOTS;
		slots[slot] = &known.places[n];
	}
}

static pthread_once_t learnt = PTHREAD_ONCE_INIT;

const void *LANES_NAME(lone_place)(insn_handler *handler)
{
	pthread_once(&learnt, learn_places);
	size_t slot = slot_of(handler);
	while (slots[slot] && *slots[slot]->handler != handler)
		slot = (slot + 1) % SLOTS;
	return slots[slot] ? slots[slot]->place : known.other;
}

const struct insn *LANES_NAME(lone_entry)(void)
{
	pthread_once(&learnt, learn_places);
	return known.entry;
}
