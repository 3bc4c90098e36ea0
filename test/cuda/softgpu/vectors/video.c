/* SPDX-License-Identifier: BSD-3-Clause */
/* Video instructions ("Scalar Video Instructions", "SIMD Video Instructions"), after the ISA's pseudo-code. */
#include "test/cuda/softgpu/vectors/vectors.h"

#include <stdlib.h>
#include <string.h>

/* The operands as the template writes them: "$1.h0" and "-$2". */
struct operand {
	char selector[8];
	bool negated;
};

static void operands_of(const struct form *form, struct operand *operands)
{
	memset(operands, 0, 4 * sizeof *operands);
	for (const char *at = strchr(form->text, '$'); at; at = strchr(at + 1, '$')) {
		if (at[1] < '0' || at[1] > '3')
			continue;
		struct operand *operand = &operands[at[1] - '0'];
		operand->negated = at[-1] == '-';
		if (at[2] == '.') {
			size_t length = strcspn(at + 3, ", ;");
			memcpy(operand->selector, at + 3, length);
		}
	}
}

static int64_t part(uint64_t bits, unsigned width, bool is_signed)
{
	uint64_t mask = (1ull << width) - 1;
	bits &= mask;
	return is_signed && bits >> (width - 1) ? (int64_t)bits - (int64_t)(mask + 1) : (int64_t)bits;
}

/* Scalar: b0 … b3, h0, h1, or the whole word. */
static unsigned selected_width(const char *selector)
{
	return selector[0] == 'b' ? 8 : selector[0] == 'h' ? 16 : 32;
}

static int64_t selected(const char *selector, uint64_t bits, bool is_signed)
{
	unsigned width = selected_width(selector);
	unsigned at = selector[0] ? (unsigned)(selector[1] - '0') * width : 0;
	return part(bits >> at, width, is_signed);
}

static s128 clamp(s128 value, unsigned width, bool is_signed)
{
	s128 low = is_signed ? -((s128)1 << (width - 1)) : 0, high = ((s128)1 << (width - is_signed)) - 1;
	return value < low ? low : value > high ? high : value;
}

static bool comparison(const struct words *words, int64_t a, int64_t b)
{
	if (words_have(words, "eq"))
		return a == b;
	if (words_have(words, "ne"))
		return a != b;
	if (words_have(words, "lt"))
		return a < b;
	if (words_have(words, "le"))
		return a <= b;
	return words_have(words, "gt") ? a > b : a >= b;
}

static s128 shifted(const struct words *words, int64_t a, int64_t b)
{
	uint32_t n = (uint32_t)b;
	n = words_have(words, "wrap") ? n & 31 : n > 32 ? 32 : n;
	return words->opcode[3] == 'l' ? (s128)((u128)(s128)a << n) : (s128)a >> n;
}

static s128 operation(const struct words *words, int64_t a, int64_t b)
{
	const char *op = words->opcode;
	if (!strncmp(op, "vadd", 4))
		return (s128)a + b;
	if (!strncmp(op, "vsub", 4))
		return (s128)a - b;
	if (!strncmp(op, "vabsdiff", 8))
		return a > b ? (s128)a - b : (s128)b - a;
	if (!strncmp(op, "vmin", 4))
		return a < b ? a : b;
	if (!strncmp(op, "vmax", 4))
		return a > b ? a : b;
	if (!strncmp(op, "vavrg", 5)) /* rounds half away from zero, as far as the shift does */
		return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
	if (!strncmp(op, "vset", 4))
		return comparison(words, a, b);
	return shifted(words, a, b);
}

/* dtype.atype.btype or, for vset, atype.btype: the n-th from the first */
static bool is_signed_type(const struct words *words, unsigned n)
{
	return words->word[n][0] == 's';
}

static bool multiply_add(const struct words *words, const struct operand *o, const uint64_t *in, struct outcome *out)
{
	bool sa = is_signed_type(words, 1), sb = is_signed_type(words, 2), negate = o[1].negated != o[2].negated;
	bool is_signed = sa || sb || negate || o[3].negated;
	s128 product = (s128)selected(o[1].selector, in[0], sa) * selected(o[2].selector, in[1], sb);
	s128 c = part(in[2], 32, is_signed);
	s128 r = (negate ? -product : product) + (o[3].negated ? -c : c) + words_have(words, "po");
	r >>= words_have(words, "shr7") ? 7 : words_have(words, "shr15") ? 15 : 0;
	if (words_have(words, "sat"))
		r = clamp(r, 32, is_signed);
	outcome_exact(out, (uint64_t)r & UINT32_MAX, 32);
	/* (u32 * u32) - u32: the text takes c without a sign, the pseudo-code with one; it shows beyond 32 bits only.
	 */
	if (o[3].negated && !sa && !sb && in[2] >> 31 && words->count > 3)
		out->element[0].rule = RULE_OPEN;
	return true;
}

static bool scalar(const struct words *words, const struct operand *o, bool has_c, const uint64_t *in,
		   struct outcome *out)
{
	bool is_set = !strcmp(words->opcode, "vset"), merges = o[0].selector[0] != 0;
	unsigned first = is_set ? 0 : 1, width = selected_width(o[0].selector);
	bool to_signed = !is_set && is_signed_type(words, 0);
	s128 t = operation(words, selected(o[1].selector, in[0], is_signed_type(words, first)),
			   selected(o[2].selector, in[1], is_signed_type(words, first + 1)));
	if (words_have(words, "sat"))
		t = clamp(t, width, to_signed);
	int64_t narrow = part((uint64_t)t, 32, to_signed), c = part(in[2], 32, to_signed);
	uint64_t r = (uint64_t)t;
	if (merges) {
		unsigned at = (unsigned)(o[0].selector[1] - '0') * width;
		uint64_t mask = ((1ull << width) - 1) << at;
		r = (in[2] & ~mask) | ((uint64_t)t << at & mask);
	} else if (has_c && words_have(words, "add")) {
		r = (uint64_t)t + in[2];
	} else if (has_c && words_have(words, "min")) {
		r = (uint64_t)(narrow < c ? narrow : c);
	} else if (has_c && words_have(words, "max")) {
		r = (uint64_t)(narrow > c ? narrow : c);
	}
	outcome_exact(out, r & UINT32_MAX, 32);
	return true;
}

/* Two of 16 bits or four of 8; a selector's digits are the elements, the last for the lowest. */
static bool vector(const struct words *words, const struct operand *o, unsigned count, const uint64_t *in,
		   struct outcome *out)
{
	bool is_set = !strncmp(words->opcode, "vset", 4), accumulate = words_have(words, "add");
	unsigned width = 32 / count, first = is_set ? 0 : 1;
	bool to_signed = !is_set && is_signed_type(words, 0);
	uint64_t both = in[1] << 32 | in[0], r = accumulate ? in[2] : 0;
	const char *sa = o[1].selector[0] ? o[1].selector + 1 : count == 4 ? "3210" : "10";
	const char *sb = o[2].selector[0] ? o[2].selector + 1 : count == 4 ? "7654" : "32";
	const char *mask = o[0].selector[0] ? o[0].selector + 1 : "3210";
	for (unsigned i = 0; i < count; i++) {
		int64_t a =
			part(both >> (unsigned)(sa[count - 1 - i] - '0') * width, width, is_signed_type(words, first));
		int64_t b = part(both >> (unsigned)(sb[count - 1 - i] - '0') * width, width,
				 is_signed_type(words, first + 1));
		s128 t = operation(words, a, b);
		bool here = strchr(mask, (int)('0' + i)) != NULL;
		if (words_have(words, "sat"))
			t = clamp(t, width, to_signed);
		uint64_t lanes = ((1ull << width) - 1) << i * width;
		if (accumulate)
			r += here ? (uint64_t)t : 0;
		else
			r |= (here ? (uint64_t)t << i * width : in[2]) & lanes;
	}
	outcome_exact(out, r & UINT32_MAX, 32);
	return true;
}

bool video_reference(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	struct operand operands[4];
	size_t length = strlen(words->opcode);
	char last = words->opcode[length - 1];
	if (words->opcode[0] != 'v')
		return false;
	operands_of(form, operands);
	if (!strcmp(words->opcode, "vmad"))
		return multiply_add(words, operands, in, out);
	if (last == '2' || last == '4')
		return vector(words, operands, (unsigned)(last - '0'), in, out);
	return scalar(words, operands, form->sources[2] != 0, in, out);
}
