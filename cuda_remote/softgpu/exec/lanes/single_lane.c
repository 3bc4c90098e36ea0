/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interpreter for paths of one lane. A handler (lanes.h) serves whole warps and single lanes. For one lane, the
 * handler's call, return and test which of the two it serves take longer than the computation. Here each of the most
 * used operations is a label in one function and jumps to the label of the next instruction (threaded code: Bell, CACM
 * 1973), with the addresses of the lane's columns in registers. An operation without a label runs in its handler.
 *
 * insn->label is the address of the instruction's label. Labels are known only inside their function, so the function
 * itself returns the list of them (single_lane_label).
 */
#include "cuda_remote/softgpu/exec/lanes/lanes.h"

#include <pthread.h>

struct handler_label {
	insn_handler *const *handler;
	const void *label;
};

/* What run_single_lane returns through *list if warp is NULL. */
struct label_list {
	const struct handler_label *labels;
	size_t count;
	const void *other; /* for handlers that have no label */
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
		goto *insn->label;                                                                               \
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

#define ACCESS_LABEL(space, SPACE, table, size, row, M, R) \
	{ &LANES_NAME(table)[SPACE][size][row], &&space##_##table##_##M##_##R },
#define LOAD(space, SPACE, table, size, row, M, R)                                                               \
	space##_##table##_##M##_##R : {                                                                          \
		const char *from = single_lane_access(warp, insn, ADDRESS, SPACE, sizeof(M), false);                    \
		if (__builtin_expect(!from || insn->count != 1 || insn->r[0] < 0, 0))                            \
			goto other;                                                                              \
		CELL(R, 0) = (R)*(const M *)(const void *)from;                                                  \
		GO_TO(insn + 1);                                                                                 \
	}
#define STORE(space, SPACE, table, size, row, M, R)                                                              \
	space##_##table##_##M##_##R : {                                                                          \
		char *to = single_lane_access(warp, insn, ADDRESS, SPACE, sizeof(M), true);                             \
		if (__builtin_expect(!to || insn->count != 1, 0))                                                \
			goto other;                                                                              \
		*(M *)(void *)to = (M)CELL(R, 0);                                                                \
		GO_TO(insn + 1);                                                                                 \
	}

static insn_handler op_single_lane;
static insn_handler *const control[] = { op_nop, op_bra, op_bra_back, op_branch, op_branch_back, op_join, op_guard };

/* Whether the running path may go on at "at": it is the only path, or no other path comes first. */
static inline bool keeps_turn(const struct warp *warp, const struct insn *at)
{
	return warp->other_count == 0 || (!warp->ahead && !warp_others_come_first(warp, at));
}

/* Runs from insn on until the running path is no longer one lane; returns the instruction to go on at, or NULL. The function's code
 * begins at a cache line: when it began 48 bytes behind one, kernels of one lane took 1.05 times as long. */
__attribute__((aligned(64)))
static const struct insn *run_single_lane(struct warp *warp, const struct insn *insn, struct label_list *list)
{
	static const struct insn entry = { .handler = op_single_lane, .label = &&entered };
	static const struct handler_label labels[] = {
		{ &control[0], &&nop }, { &control[1], &&bra }, { &control[2], &&bra_back }, { &control[3], &&branch },
		{ &control[4], &&branch_back }, { &control[5], &&join }, { &control[6], &&guard },
		ALL_SPACES(LOADS_OF, ACCESS_LABEL) ALL_SPACES(STORES_OF, ACCESS_LABEL)
#define SINGLE_LANE_OP(table, op, ...) { &LANES_NAME(ops_##table)[op], &&table##_##op },
#include "cuda_remote/softgpu/exec/instructions/single_lane.h"
#undef SINGLE_LANE_OP
	};
	char *regs, *cells2, *cells4, *cells8;
	uint32_t mask;
	bool taken;
	if (!warp) {
		*list = (struct label_list){ labels, sizeof labels / sizeof *labels, &&other, &entry };
		return NULL;
	}
	goto reload;

entered:
	insn = warp->single_lane_at;
reload: /* the lane may have changed */
	regs = warp->regs;
	mask = warp->mask;
	cells2 = warp->cells2;
	cells4 = warp->cells4;
	cells8 = warp->cells8;
	GO_TO(insn);
other:
	insn = insn->handler(warp, insn);
	if (!insn || !warp->cells4)
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
#define SINGLE_LANE_OP(table, op, ...)                                                                                  \
	table##_##op : {                                                                                         \
		__VA_ARGS__                                                                                      \
	}                                                                                                        \
	GO_TO(insn + 1);
#include "cuda_remote/softgpu/exec/instructions/single_lane.h"
#undef SINGLE_LANE_OP
}

/* The entry's handler: by it, the interpreter of warps enters this one. */
static const struct insn *op_single_lane(struct warp *warp, const struct insn *insn)
{
	(void)insn;
	return run_single_lane(warp, warp->single_lane_at, NULL);
}

/* ---- labels by handler: a hash table, because the decoder looks one up for each instruction */

#define SLOTS 2048

static struct label_list known;
static const struct handler_label *slots[SLOTS];

/* Handlers are aligned to 16 bytes by most compilers. */
static size_t slot_of(insn_handler *handler)
{
	return ((uintptr_t)handler >> 4) * 0x9e3779b97f4a7c15ull >> 32 & (SLOTS - 1);
}

static void fill_slots(void)
{
	_Static_assert(sizeof(size_t) == 8, "slot_of takes the upper half of a product");
	run_single_lane(NULL, NULL, &known);
	for (size_t n = 0; n < known.count; n++) {
		size_t slot = slot_of(*known.labels[n].handler);
		while (slots[slot] && *slots[slot]->handler != *known.labels[n].handler)
			slot = (slot + 1) % SLOTS;
		slots[slot] = &known.labels[n];
	}
}

static pthread_once_t filled = PTHREAD_ONCE_INIT;

const void *LANES_NAME(single_lane_label)(insn_handler *handler)
{
	pthread_once(&filled, fill_slots);
	size_t slot = slot_of(handler);
	while (slots[slot] && *slots[slot]->handler != handler)
		slot = (slot + 1) % SLOTS;
	return slots[slot] ? slots[slot]->label : known.other;
}

const struct insn *LANES_NAME(single_lane_entry)(void)
{
	pthread_once(&filled, fill_slots);
	return known.entry;
}
