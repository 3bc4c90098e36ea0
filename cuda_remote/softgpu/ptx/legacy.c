/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modules for sm_10 to sm_13: modifiers that their instructions have implicitly and that later targets write out (PTX
 * ISA, "Floating Point Instructions", under "Subnormal numbers" and "Target ISA Notes"). Instructions on f32 flush
 * subnormal numbers. mad needs no rounding; it is fused, as ptxas compiles it for targets that can fuse.
 */
#include "cuda_remote/softgpu/ptx/parser.h"

#include <string.h>

static const char *const flushing[] = { "abs", "add", "cos", "cvt", "div", "ex2", "lg2", "mad", "max", "min", "mul",
					"neg", "rcp", "rsqrt", "set", "setp", "sin", "slct", "sqrt", "sub" };

static bool flushes(struct ptx_text opcode, const struct ptx_text *modifiers, uint32_t count)
{
	bool known = false;
	for (size_t n = 0; n < sizeof flushing / sizeof *flushing && !known; n++)
		known = ptx_text_is(opcode, flushing[n]);
	if (!known || !count || !ptx_text_is(modifiers[count - 1], ".f32"))
		return false;
	for (uint32_t n = 0; n < count; n++)
		if (ptx_text_is(modifiers[n], ".ftz"))
			return false;
	/* "The cvt instruction did not flush … if the destination type size was 64-bits." */
	return !ptx_text_is(opcode, "cvt") || (count > 1 && ptx_type_size(ptx_type_of(modifiers[count - 2])) < 8);
}

/* The position of .ftz: after roundings and comparisons, before .sat and the types. */
static uint32_t place(const struct ptx_text *modifiers, uint32_t count)
{
	uint32_t n = 0;
	while (n < count && !ptx_text_is(modifiers[n], ".sat") && ptx_type_of(modifiers[n]) == PTX_NO_TYPE)
		n++;
	return n;
}

static uint32_t insert(struct ptx_text *modifiers, uint32_t count, uint32_t at, const char *word)
{
	memmove(modifiers + at + 1, modifiers + at, (count - at) * sizeof *modifiers);
	modifiers[at] = (struct ptx_text){ word, (uint32_t)strlen(word) };
	return count + 1;
}

uint32_t ptx_legacy_modifiers(struct ptx_text opcode, struct ptx_text *modifiers, uint32_t count)
{
	if (!flushes(opcode, modifiers, count))
		return count;
	count = insert(modifiers, count, place(modifiers, count), ".ftz");
	if (ptx_text_is(opcode, "mad"))
		count = insert(modifiers, count, 0, ".rn");
	return count;
}
