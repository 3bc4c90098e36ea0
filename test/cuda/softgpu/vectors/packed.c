/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers of less than a register: pairs of 16 bits, conversions between integers, cvt.pack. */
#include "test/cuda/softgpu/vectors/vectors.h"

#include <stdlib.h>
#include <string.h>

static bool integer_type(const char *name, unsigned *width, bool *is_signed)
{
	char *end;
	if ((name[0] != 'u' && name[0] != 's') || name[1] < '0' || name[1] > '9')
		return false;
	*width = (unsigned)strtoul(name + 1, &end, 10);
	*is_signed = name[0] == 's';
	return *end == 0;
}

static s128 extended(uint64_t bits, unsigned width, bool is_signed)
{
	u128 kept = width == 64 ? bits : bits & ((1ull << width) - 1);
	return is_signed && kept >> (width - 1) & 1 ? (s128)kept - ((s128)1 << width) : (s128)kept;
}

static s128 saturated(s128 value, unsigned width, bool is_signed)
{
	s128 low = is_signed ? -((s128)1 << (width - 1)) : 0, high = ((s128)1 << (width - is_signed)) - 1;
	return value < low ? low : value > high ? high : value;
}

static bool pairs(const struct words *words, const uint64_t *in, struct outcome *out)
{
	const char *op = words->opcode, *type = words_last(words, !strcmp(words_last(words, 0), "relu"));
	bool is_signed = !strcmp(type, "s16x2");
	uint64_t r = 0;
	if (!is_signed && strcmp(type, "u16x2"))
		return false;
	for (unsigned shift = 0; shift < 32; shift += 16) {
		s128 a = extended(in[0] >> shift, 16, is_signed), b = extended(in[1] >> shift, 16, is_signed);
		s128 value = !strcmp(op, "add") ? a + b : !strcmp(op, "min") ? (a < b ? a : b) : (a > b ? a : b);
		if (words_have(words, "relu") && value < 0)
			value = 0;
		r |= ((uint64_t)value & 0xffff) << shift;
	}
	outcome_exact(out, r, 32);
	return true;
}

/* The result fills the register, whose width may be more than the type's. */
static bool convert(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	unsigned from, to;
	bool from_signed, to_signed;
	if (!integer_type(words_last(words, 0), &from, &from_signed) ||
	    !integer_type(words_last(words, 1), &to, &to_signed))
		return false;
	s128 value = extended(in[0], from, from_signed);
	if (words_have(words, "sat"))
		value = saturated(value, to, to_signed);
	value = extended((uint64_t)value, to, to_signed);
	unsigned width = letter_width(form->results[0]);
	outcome_exact(out, (uint64_t)value & (width == 64 ? UINT64_MAX : (1ull << width) - 1), width);
	return true;
}

static bool pack(const struct words *words, const uint64_t *in, struct outcome *out)
{
	unsigned size;
	bool is_signed;
	if (!integer_type(words->word[2], &size, &is_signed))
		return false;
	uint64_t mask = (1ull << size) - 1;
	uint64_t a = (uint64_t)saturated(extended(in[0], 32, true), size, is_signed) & mask;
	uint64_t b = (uint64_t)saturated(extended(in[1], 32, true), size, is_signed) & mask;
	uint64_t rest = size < 16 ? in[2] << 2 * size : 0;
	outcome_exact(out, (rest | a << size | b) & UINT32_MAX, 32);
	return true;
}

bool packed_reference(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	if (!strcmp(words->opcode, "cvt"))
		return words_have(words, "pack") ? pack(words, in, out) : convert(form, words, in, out);
	return pairs(words, in, out);
}
