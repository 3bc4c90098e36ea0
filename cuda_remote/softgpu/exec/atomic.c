/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atom and red (PTX ISA, "atom", "red"). Lanes execute one by one, lowest first, each by a sequentially consistent
 * atomic of the host, which is at least the order that any .sem and .scope requires. Operations that the host lacks are
 * compare-and-swap loops. Only the attempt that succeeds is sequentially consistent; a failed one needs no order.
 */
#include "cuda_remote/softgpu/exec/atomic.h"

#include "cuda_remote/softgpu/exec/async/cluster.h"
#include "cuda_remote/softgpu/exec/lanes/lane_float.h"
#include "cuda_remote/softgpu/exec/warp.h"

typedef uint64_t atomic_function(void *address, uint64_t a, uint64_t b);

#define DEFINE_NATIVE(name, type, builtin)                                                       \
	static uint64_t name(void *address, uint64_t a, uint64_t b)                              \
	{                                                                                        \
		(void)b;                                                                         \
		return builtin((type *)address, (type)a, __ATOMIC_SEQ_CST);                      \
	}
DEFINE_NATIVE(add_32, uint32_t, __atomic_fetch_add)
DEFINE_NATIVE(add_64, uint64_t, __atomic_fetch_add)
DEFINE_NATIVE(and_32, uint32_t, __atomic_fetch_and)
DEFINE_NATIVE(and_64, uint64_t, __atomic_fetch_and)
DEFINE_NATIVE(or_32, uint32_t, __atomic_fetch_or)
DEFINE_NATIVE(or_64, uint64_t, __atomic_fetch_or)
DEFINE_NATIVE(xor_32, uint32_t, __atomic_fetch_xor)
DEFINE_NATIVE(xor_64, uint64_t, __atomic_fetch_xor)
DEFINE_NATIVE(exchange_32, uint32_t, __atomic_exchange_n)
DEFINE_NATIVE(exchange_64, uint64_t, __atomic_exchange_n)

#define DEFINE_LOOP(name, type, expression)                                                      \
	static uint64_t name(void *address, uint64_t argument, uint64_t unused)                  \
	{                                                                                        \
		type *p = address, old = __atomic_load_n(p, __ATOMIC_RELAXED), b = (type)argument, next; \
		(void)unused;                                                                    \
		do                                                                               \
			next = (type)(expression);                                               \
		while (!__atomic_compare_exchange_n(p, &old, next, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
		return (uint64_t)old;                                                            \
	}
DEFINE_LOOP(min_u32, uint32_t, old < b ? old : b)
DEFINE_LOOP(max_u32, uint32_t, old > b ? old : b)
DEFINE_LOOP(min_s32, int32_t, old < b ? old : b)
DEFINE_LOOP(max_s32, int32_t, old > b ? old : b)
DEFINE_LOOP(min_u64, uint64_t, old < b ? old : b)
DEFINE_LOOP(max_u64, uint64_t, old > b ? old : b)
DEFINE_LOOP(min_s64, int64_t, old < b ? old : b)
DEFINE_LOOP(max_s64, int64_t, old > b ? old : b)
DEFINE_LOOP(inc_u32, uint32_t, old >= b ? 0 : old + 1)
DEFINE_LOOP(dec_u32, uint32_t, old == 0 || old > b ? b : old - 1)
DEFINE_LOOP(add_f32, uint32_t, bits_of_f32(quiet(f32_of_bits(old) + f32_of_bits(b))))
DEFINE_LOOP(add_f32_flushed, uint32_t, bits_of_f32(quiet(flush(flush(f32_of_bits(old)) + flush(f32_of_bits(b))))))
DEFINE_LOOP(add_f64, uint64_t, bits_of_f64(quiet_f64(f64_of_bits(old) + f64_of_bits(b))))
DEFINE_LOOP(add_f16, uint16_t, half_of(float_of(old) + float_of(b)))
DEFINE_LOOP(add_f16x2, uint32_t,
	    both(half_of(float_of(low(old)) + float_of(low(b))), half_of(float_of(high(old)) + float_of(high(b)))))
DEFINE_LOOP(add_bf16, uint16_t, bfloat_add(old, b))
DEFINE_LOOP(add_bf16x2, uint32_t, both(bfloat_add(low(old), low(b)), bfloat_add(high(old), high(b))))

#define DEFINE_HALVES(op)                                                                        \
	DEFINE_LOOP(op##_f16, uint16_t, half_of(op##_f32(float_of(old), float_of(b))))           \
	DEFINE_LOOP(op##_f16x2, uint32_t, both(half_of(op##_f32(float_of(low(old)), float_of(low(b)))), \
					       half_of(op##_f32(float_of(high(old)), float_of(high(b)))))) \
	DEFINE_LOOP(op##_bf16, uint16_t, bfloat_of(op##_f32(float_of_bfloat(old), float_of_bfloat(b)))) \
	DEFINE_LOOP(op##_bf16x2, uint32_t,                                                       \
		    both(bfloat_of(op##_f32(float_of_bfloat(low(old)), float_of_bfloat(low(b)))), \
			 bfloat_of(op##_f32(float_of_bfloat(high(old)), float_of_bfloat(high(b))))))
DEFINE_HALVES(min)
DEFINE_HALVES(max)

#define DEFINE_CAS(name, type)                                                                   \
	static uint64_t name(void *address, uint64_t a, uint64_t b)                              \
	{                                                                                        \
		type expected = (type)a;                                                         \
		__atomic_compare_exchange_n((type *)address, &expected, (type)b, false, __ATOMIC_SEQ_CST, \
					    __ATOMIC_SEQ_CST);                                   \
		return expected;                                                                 \
	}
DEFINE_CAS(cas_16, uint16_t)
DEFINE_CAS(cas_32, uint32_t)
DEFINE_CAS(cas_64, uint64_t)

static const struct {
	enum atomic_op op;
	enum ptx_type type;
	atomic_function *function;
} variants[] = {
	{ ATOMIC_ADD, PTX_U32, add_32 },
	{ ATOMIC_ADD, PTX_S32, add_32 },
	{ ATOMIC_ADD, PTX_U64, add_64 },
	{ ATOMIC_ADD, PTX_S64, add_64 },
	{ ATOMIC_ADD, PTX_F32, add_f32 },
	{ ATOMIC_ADD, PTX_F64, add_f64 },
	{ ATOMIC_ADD, PTX_F16, add_f16 },
	{ ATOMIC_ADD, PTX_F16X2, add_f16x2 },
	{ ATOMIC_ADD, PTX_BF16, add_bf16 },
	{ ATOMIC_ADD, PTX_BF16X2, add_bf16x2 },
	{ ATOMIC_MIN, PTX_U32, min_u32 },
	{ ATOMIC_MIN, PTX_S32, min_s32 },
	{ ATOMIC_MIN, PTX_U64, min_u64 },
	{ ATOMIC_MIN, PTX_S64, min_s64 },
	{ ATOMIC_MAX, PTX_U32, max_u32 },
	{ ATOMIC_MAX, PTX_S32, max_s32 },
	{ ATOMIC_MAX, PTX_U64, max_u64 },
	{ ATOMIC_MAX, PTX_S64, max_s64 },
	{ ATOMIC_MIN, PTX_F16, min_f16 },
	{ ATOMIC_MIN, PTX_F16X2, min_f16x2 },
	{ ATOMIC_MIN, PTX_BF16, min_bf16 },
	{ ATOMIC_MIN, PTX_BF16X2, min_bf16x2 },
	{ ATOMIC_MAX, PTX_F16, max_f16 },
	{ ATOMIC_MAX, PTX_F16X2, max_f16x2 },
	{ ATOMIC_MAX, PTX_BF16, max_bf16 },
	{ ATOMIC_MAX, PTX_BF16X2, max_bf16x2 },
	{ ATOMIC_AND, PTX_B32, and_32 },
	{ ATOMIC_AND, PTX_B64, and_64 },
	{ ATOMIC_OR, PTX_B32, or_32 },
	{ ATOMIC_OR, PTX_B64, or_64 },
	{ ATOMIC_XOR, PTX_B32, xor_32 },
	{ ATOMIC_XOR, PTX_B64, xor_64 },
	{ ATOMIC_INC, PTX_U32, inc_u32 },
	{ ATOMIC_DEC, PTX_U32, dec_u32 },
	{ ATOMIC_EXCHANGE, PTX_B32, exchange_32 },
	{ ATOMIC_EXCHANGE, PTX_B64, exchange_64 },
	{ ATOMIC_CAS, PTX_B16, cas_16 },
	{ ATOMIC_CAS, PTX_B32, cas_32 },
	{ ATOMIC_CAS, PTX_B64, cas_64 },
};

bool atomic_find(enum atomic_op op, enum ptx_type type, uint32_t *variant)
{
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		if (variants[i].op == op && variants[i].type == type) {
			*variant = (uint32_t)i;
			return true;
		}
	}
	return false;
}

uint64_t atomic_apply(uint32_t variant, void *address, uint64_t a, uint64_t b)
{
	atomic_function *function = variants[variant].function;
	return (function == add_f32 ? add_f32_flushed : function)(address, a, b);
}

/* add.f32 keeps subnormals in shared memory and flushes them in global memory ("atom", "red"). */
static atomic_function *function_at(const struct block *block, atomic_function *function, uint64_t pointer)
{
	bool flushes = function == add_f32 && !cluster_holds(block, (const char *)(uintptr_t)pointer);
	return flushes ? add_f32_flushed : function;
}

static uint64_t value_of(const struct warp *warp, const struct insn *insn, int n, uint32_t lane)
{
	switch (insn->size) {
	case 2: return SOURCE(uint16_t, n)[lane];
	case 4: return SOURCE(uint32_t, n)[lane];
	default: return SOURCE(uint64_t, n)[lane];
	}
}

const struct insn *op_atom(struct warp *warp, const struct insn *insn)
{
	atomic_function *function = variants[insn->count].function;
	bool cas = variants[insn->count].op == ATOMIC_CAS;
	if (!memory_resolve(warp, insn, (enum access_space)insn->r[3], insn->size, true))
		return NULL;
	for_each_lane(lane, warp->mask) {
		uint64_t a = value_of(warp, insn, 1, lane), b = cas ? value_of(warp, insn, 2, lane) : 0;
		uint64_t pointer = warp->pointers[lane];
		uint64_t old = function_at(warp->block, function, pointer)((void *)(uintptr_t)pointer, a, b);
		if (insn->flags & INSN_NO_RESULT)
			continue;
		if (insn->size == 2)
			RESULT(uint16_t, 0)[lane] = (uint16_t)old;
		else if (insn->size == 4)
			RESULT(uint32_t, 0)[lane] = (uint32_t)old;
		else
			RESULT(uint64_t, 0)[lane] = old;
	}
	return insn + 1;
}
