/* SPDX-License-Identifier: BSD-3-Clause */
/* Integer and bit instructions as the ISA's chapters define them, in 128 bits. */
#include "test/cuda/softgpu/vectors/vectors.h"

#include <stdlib.h>
#include <string.h>

struct type {
	unsigned width;
	bool is_signed;
};

static bool type_of(const char *name, struct type *type)
{
	if (!*name || !strchr("bus", name[0]) || name[1] < '0' || name[1] > '9')
		return false;
	char *end;
	type->width = (unsigned)strtoul(name + 1, &end, 10);
	type->is_signed = name[0] == 's';
	return *end == 0;
}

static uint64_t mask_of(unsigned width)
{
	return width >= 64 ? UINT64_MAX : (1ull << width) - 1;
}

/* The number that bits stand for. */
static s128 number(struct type type, uint64_t bits)
{
	bits &= mask_of(type.width);
	if (type.is_signed && bits >> (type.width - 1) & 1)
		return (s128)bits - ((s128)1 << type.width);
	return (s128)bits;
}

static s128 lowest(struct type type)
{
	return type.is_signed ? -((s128)1 << (type.width - 1)) : 0;
}

static s128 highest(struct type type)
{
	return ((s128)1 << (type.width - type.is_signed)) - 1;
}

static s128 clamped(struct type type, s128 value)
{
	return value < lowest(type) ? lowest(type) : value > highest(type) ? highest(type) : value;
}

static void give(struct outcome *out, unsigned width, s128 value)
{
	outcome_exact(out, (uint64_t)(u128)value & mask_of(width), width);
}

static void give_open(struct outcome *out, unsigned width)
{
	outcome_exact(out, 0, width);
	out->element[0].rule = RULE_OPEN;
}

static bool arithmetic(const struct words *words, struct type t, const uint64_t *in, struct outcome *out)
{
	const char *op = words->opcode;
	s128 a = number(t, in[0]), b = number(t, in[1]), c = number(t, in[2]), r;
	if (!strcmp(op, "add"))
		r = a + b;
	else if (!strcmp(op, "sub"))
		r = a - b;
	else if (!strcmp(op, "min"))
		r = a < b ? a : b;
	else if (!strcmp(op, "max"))
		r = a > b ? a : b;
	else if (!strcmp(op, "abs"))
		r = a < 0 ? -a : a;
	else if (!strcmp(op, "neg"))
		r = -a;
	else if (!strcmp(op, "sad"))
		r = c + (a < b ? b - a : a - b);
	else
		return false;
	if (words_have(words, "sat"))
		r = clamped(t, r);
	if (words_have(words, "relu") && r < 0)
		r = 0;
	give(out, t.width, r);
	return true;
}

static bool divide(const struct words *words, struct type t, const uint64_t *in, struct outcome *out)
{
	bool rem = !strcmp(words->opcode, "rem");
	s128 a = number(t, in[0]), b = number(t, in[1]);
	if (strcmp(words->opcode, "div") && !rem)
		return false;
	if (b == 0)
		give_open(out, t.width); /* "an unspecified, machine-specific value" */
	else
		give(out, t.width, rem ? a % b : a / b);
	return true;
}

/* mul and mad, all of lo, hi, wide, and of 24 bits. */
static bool multiply(const struct words *words, struct type t, const uint64_t *in, struct outcome *out)
{
	bool is_mad = !strncmp(words->opcode, "mad", 3), is_24 = strstr(words->opcode, "24") != NULL;
	struct type factor = { is_24 ? 24 : t.width, t.is_signed }, whole = { t.width * 2, false };
	if (strncmp(words->opcode, "mul", 3) && !is_mad)
		return false;
	/* Products modulo 2^128 are right whatever the sign. */
	u128 product = (u128)number(factor, in[0]) * (u128)number(factor, in[1]);
	unsigned width = words_have(words, "wide") ? whole.width : t.width;
	if (words_have(words, "hi"))
		product = is_24 ? (u128)((s128)product >> 16) :
			  t.is_signed ? (u128)((s128)product >> t.width) : product >> t.width;
	s128 r = number((struct type){ t.width, t.is_signed }, (uint64_t)product);
	if (words_have(words, "wide"))
		r = (s128)product;
	if (is_mad)
		r = (s128)((u128)r + in[2]);
	if (words_have(words, "sat")) {
		struct type s = { 32, true };
		r = clamped(s, number(s, (uint64_t)product) + number(s, in[2]));
	}
	give(out, width, r);
	return true;
}

static uint64_t find_nth(uint32_t mask, uint32_t base, int32_t offset)
{
	if (offset == 0)
		return base < 32 && mask >> base & 1 ? base : UINT32_MAX;
	int64_t position = base, count = (offset < 0 ? -(int64_t)offset : offset) - 1;
	for (; position >= 0 && position < 32; position += offset > 0 ? 1 : -1)
		if (mask >> position & 1 && count-- == 0)
			return (uint64_t)position;
	return UINT32_MAX;
}

static uint64_t find_bit(const struct words *words, struct type t, uint64_t a)
{
	uint64_t d = UINT32_MAX;
	if (number(t, a) < 0)
		a = ~a;
	for (unsigned i = 0; i < t.width; i++)
		if (a >> i & 1)
			d = i;
	return words_have(words, "shiftamt") && d != UINT32_MAX ? t.width - 1 - d : d;
}

/* bfe and bfi bit by bit. */
static uint64_t extract(struct type t, uint64_t a, uint64_t position, uint64_t length)
{
	uint64_t r = 0, last = t.width - 1, top = position + length - 1 < last ? position + length - 1 : last;
	uint64_t sign = t.is_signed && length ? a >> top & 1 : 0;
	for (uint64_t i = 0; i <= last; i++)
		r |= (i < length && position + i <= last ? a >> (position + i) & 1 : sign) << i;
	return r;
}

static uint64_t insert(unsigned width, uint64_t a, uint64_t b, uint64_t position, uint64_t length)
{
	for (uint64_t i = 0; i < length && position + i < width; i++)
		b = (b & ~(1ull << (position + i))) | (a >> i & 1) << (position + i);
	return b;
}

static uint64_t sign_or_zero_extend(const struct words *words, struct type t, uint32_t a, uint32_t b)
{
	bool too_large = b >= 32 && words_have(words, "clamp");
	uint32_t b1 = b & 31, mask = too_large ? 0 : UINT32_MAX << b1;
	bool sign = b1 && !too_large && t.is_signed && a >> ((b1 - 1) & 31) & 1;
	return (a & ~mask) | (sign ? mask : 0);
}

static uint64_t bit_mask(const struct words *words, uint32_t a, uint32_t b)
{
	bool clamp = words_have(words, "clamp");
	uint64_t r = 0, from = clamp ? a : a & 31, length = clamp ? b : b & 31;
	for (uint64_t i = from; i < 32 && i < from + length; i++)
		r |= 1ull << i;
	return r;
}

static bool bits(const struct words *words, struct type t, const uint64_t *in, struct outcome *out)
{
	const char *op = words->opcode;
	uint64_t a = in[0] & mask_of(t.width), r = 0;
	if (!strcmp(op, "popc"))
		for (; a; a &= a - 1)
			r++;
	else if (!strcmp(op, "clz"))
		while (r < t.width && !(a >> (t.width - 1 - r) & 1))
			r++;
	else if (!strcmp(op, "bfind"))
		r = find_bit(words, t, a);
	else if (!strcmp(op, "fns"))
		r = find_nth((uint32_t)a, (uint32_t)in[1], (int32_t)in[2]);
	else
		return false;
	outcome_exact(out, r, 32);
	return true;
}

static bool fields(const struct words *words, struct type t, const uint64_t *in, struct outcome *out)
{
	const char *op = words->opcode;
	uint64_t a = in[0] & mask_of(t.width), r = 0;
	if (!strcmp(op, "brev"))
		for (unsigned i = 0; i < t.width; i++)
			r |= (a >> i & 1) << (t.width - 1 - i);
	else if (!strcmp(op, "bfe"))
		r = extract(t, a, in[1] & 255, in[2] & 255);
	else if (!strcmp(op, "bfi"))
		r = insert(t.width, a, in[1], in[2] & 255, in[3] & 255);
	else if (!strcmp(op, "szext"))
		r = sign_or_zero_extend(words, t, (uint32_t)a, (uint32_t)in[1]);
	else if (!strcmp(op, "bmsk"))
		r = bit_mask(words, (uint32_t)a, (uint32_t)in[1]);
	else
		return false;
	outcome_exact(out, r & mask_of(t.width), t.width);
	return true;
}

static bool dot_product(const struct words *words, const uint64_t *in, struct outcome *out)
{
	bool four = !strcmp(words->opcode, "dp4a");
	struct type ta, tb;
	if ((!four && strcmp(words->opcode, "dp2a")) || !type_of(words_last(words, 1), &ta) ||
	    !type_of(words_last(words, 0), &tb))
		return false;
	ta.width = four ? 8 : 16;
	tb.width = 8;
	uint64_t b = words_have(words, "hi") ? in[1] >> 16 : in[1];
	s128 sum = (s128)in[2];
	for (unsigned n = 0; n < (four ? 4u : 2u); n++)
		sum += number(ta, in[0] >> n * ta.width) * number(tb, b >> n * 8);
	give(out, 32, sum);
	return true;
}

static uint64_t look_up(uint64_t a, uint64_t b, uint64_t c, int table)
{
	uint64_t r = 0;
	for (unsigned i = 0; i < 32; i++)
		r |= (uint64_t)(table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
	return r;
}

static bool look_up_table(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	if (strcmp(words->opcode, "lop3"))
		return false;
	uint64_t r = look_up(in[0], in[1], in[2], form->immediate);
	outcome_exact(&out[0], r, 32);
	if (form->results[1])
		outcome_exact(&out[1], words_have(words, "or") ? r != 0 || in[3] : r != 0 && in[3], 1);
	return true;
}

static bool logic(const struct words *words, unsigned width, const uint64_t *in, struct outcome *out)
{
	const char *op = words->opcode;
	uint64_t a = in[0], b = in[1], r;
	if (!strcmp(op, "and"))
		r = a & b;
	else if (!strcmp(op, "or"))
		r = a | b;
	else if (!strcmp(op, "xor"))
		r = a ^ b;
	else if (!strcmp(op, "not"))
		r = ~a;
	else if (!strcmp(op, "cnot"))
		r = (a & mask_of(width)) == 0;
	else
		return false;
	outcome_exact(out, r & mask_of(width), width);
	return true;
}

static bool shift(const struct words *words, struct type t, const uint64_t *in, struct outcome *out)
{
	const char *op = words->opcode;
	uint64_t n = in[1] > t.width ? t.width : in[1];
	if (!strcmp(op, "shl")) {
		give(out, t.width, (s128)((u128)in[0] << n));
	} else if (!strcmp(op, "shr")) {
		give(out, t.width, number(t, in[0]) >> n);
	} else if (!strcmp(op, "shf")) {
		uint64_t both = in[1] << 32 | in[0];
		n = words_have(words, "clamp") ? (in[2] > 32 ? 32 : in[2]) : in[2] & 31;
		outcome_exact(out, words_have(words, "l") ? (uint64_t)(((u128)both << n) >> 32) & UINT32_MAX :
							  (both >> n) & UINT32_MAX, 32);
	} else {
		return false;
	}
	return true;
}

/* The ISA's table of prmt's modes. */
static bool permute(const struct words *words, const uint64_t *in, struct outcome *out)
{
	static const struct {
		const char *mode;
		uint16_t selectors[4];
	} modes[] = {
		{ "f4e", { 0x3210, 0x4321, 0x5432, 0x6543 } },	{ "b4e", { 0x5670, 0x6701, 0x7012, 0x0123 } },
		{ "rc8", { 0x0000, 0x1111, 0x2222, 0x3333 } },	{ "ecl", { 0x3210, 0x3211, 0x3222, 0x3333 } },
		{ "ecr", { 0x0000, 0x1110, 0x2210, 0x3210 } },	{ "rc16", { 0x1010, 0x3232, 0x1010, 0x3232 } },
	};
	uint64_t selector = in[2], bytes = in[1] << 32 | in[0], r = 0;
	if (strcmp(words->opcode, "prmt"))
		return false;
	for (size_t n = 0; n < sizeof modes / sizeof *modes; n++)
		if (words_have(words, modes[n].mode))
			selector = modes[n].selectors[in[2] & 3];
	for (unsigned i = 0; i < 4; i++) {
		uint64_t s = selector >> 4 * i & 15, byte = bytes >> 8 * (s & 7) & 255;
		r |= (s & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
	}
	outcome_exact(out, r, 32);
	return true;
}

/* add.cc and its kin: out[0] the sum, out[1], if asked for, the carry or borrow that goes out. */
static bool carries(const struct form *form, const struct words *words, struct type t, const uint64_t *in,
		    struct outcome *out)
{
	size_t length = strlen(words->opcode);
	bool takes = length == 4 && words->opcode[3] == 'c', subtracts = !strncmp(words->opcode, "sub", 3);
	bool is_mad = !strncmp(words->opcode, "mad", 3);
	if ((!takes && !words_have(words, "cc")) || (strncmp(words->opcode, "add", 3) && !subtracts && !is_mad))
		return false;
	u128 a = in[0] & mask_of(t.width), b = in[1] & mask_of(t.width), r;
	uint64_t in_carry = takes ? in[is_mad ? 3 : 2] & 1 : 0;
	if (is_mad) {
		u128 product = (u128)number(t, in[0]) * (u128)number(t, in[1]);
		a = (words_have(words, "hi") ? product >> t.width : product) & mask_of(t.width);
		b = in[2] & mask_of(t.width);
	}
	r = subtracts ? a - b - in_carry : a + b + in_carry;
	outcome_exact(&out[0], (uint64_t)r & mask_of(t.width), t.width);
	if (form->results[1])
		outcome_exact(&out[1], (uint64_t)(r >> t.width) & 1, letter_width(form->results[1]));
	return true;
}

/* mov, selp, slct with an integer; moves between vectors and scalars by the widths of the operands. */
static bool move(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	const char *op = words->opcode;
	unsigned width = letter_width(form->results[0]);
	if (!strcmp(op, "selp")) {
		outcome_exact(out, in[2] & 1 ? in[0] : in[1], width);
	} else if (!strcmp(op, "slct") && !strcmp(words_last(words, 0), "s32")) {
		outcome_exact(out, (int32_t)in[2] >= 0 ? in[0] : in[1], width);
	} else if (!strcmp(op, "cvta")) {
		outcome_exact(out, in[0], 64); /* there and back again */
	} else if (!strcmp(op, "mov") && form->sources[1]) {
		uint64_t r = 0;
		for (unsigned n = 0; form->sources[n]; n++)
			r |= in[n] << n * letter_width(form->sources[n]);
		outcome_exact(out, r, width);
	} else if (!strcmp(op, "mov") && form->results[1]) {
		/* {a, _, b, _} leaves out every other part. */
		unsigned step = strchr(form->text, '_') ? 2 * width : width;
		outcome_exact(&out[0], in[0] & mask_of(width), width);
		outcome_exact(&out[1], in[0] >> step & mask_of(width), width);
	} else if (!strcmp(op, "mov")) {
		outcome_exact(out, in[0], width);
	} else {
		return false;
	}
	return true;
}

bool integer_reference(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	struct type t = { 1, false };
	if (move(form, words, in, out) || dot_product(words, in, out) || look_up_table(form, words, in, out) ||
	    permute(words, in, out))
		return true;
	if (!strcmp(words_last(words, 0), "pred"))
		return logic(words, 1, in, out);
	bool relu_last = !strcmp(words_last(words, 0), "relu"); /* min.s32.relu, as NVIDIA's headers write it */
	if (!type_of(words_last(words, relu_last), &t) || !strcmp(words->opcode, "cvt") ||
	    !strncmp(words->opcode, "set", 3) || words->opcode[0] == 'v')
		return false;
	return carries(form, words, t, in, out) || arithmetic(words, t, in, out) || divide(words, t, in, out) ||
	       multiply(words, t, in, out) || bits(words, t, in, out) || fields(words, t, in, out) ||
	       logic(words, t.width, in, out) || shift(words, t, in, out);
}
