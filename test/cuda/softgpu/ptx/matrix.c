/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrix instructions against products that the host sums in long double or in 64-bit integers. The places of mma's
 * elements are written here as the ISA writes them, shape by shape ("Matrix Fragments for mma").
 */
#include "test/cuda/softgpu/ptx/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t random_bits(void)
{
	static uint64_t state = 88172645463325252ull;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

/* ---- values of each type, by the definition of its bits */
static long double binary(uint32_t bits, int exponent_bits, int mantissa_bits, int bias, bool has_infinity)
{
	int32_t exponent = (int32_t)(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
	uint32_t mantissa = bits & ((1u << mantissa_bits) - 1), top = (1u << exponent_bits) - 1;
	bool negative = bits >> (exponent_bits + mantissa_bits) & 1;
	long double value;
	if ((uint32_t)exponent == top && has_infinity)
		value = mantissa ? (long double)NAN : (long double)INFINITY;
	else if ((uint32_t)exponent == top && mantissa == (1u << mantissa_bits) - 1 && !has_infinity)
		value = (long double)NAN;
	else if (exponent == 0)
		value = ldexpl((long double)mantissa, 1 - bias - mantissa_bits);
	else
		value = ldexpl((long double)(mantissa | 1u << mantissa_bits), exponent - bias - mantissa_bits);
	return negative ? -value : value;
}

struct kind {
	const char *name; /* of a and b */
	int bits;
};

static long double value_of(const char *type, uint64_t bits)
{
	uint32_t word = (uint32_t)bits;
	double wide;
	if (!strcmp(type, "f16"))
		return binary(word & 0xffff, 5, 10, 15, true);
	if (!strcmp(type, "bf16"))
		return binary(word & 0xffff, 8, 7, 127, true);
	if (!strcmp(type, "tf32"))
		return binary(word & 0xffffe000u, 8, 23, 127, true);
	if (!strcmp(type, "f32"))
		return binary(word, 8, 23, 127, true);
	if (!strcmp(type, "e4m3"))
		return binary(word & 0xff, 4, 3, 7, false);
	if (!strcmp(type, "e5m2"))
		return binary(word & 0xff, 5, 2, 15, true);
	if (!strcmp(type, "s8"))
		return (int8_t)word;
	if (!strcmp(type, "u8"))
		return word & 0xff;
	if (!strcmp(type, "s4"))
		return (int)(word & 15) - (word & 8 ? 16 : 0);
	if (!strcmp(type, "u4"))
		return word & 15;
	if (!strcmp(type, "b1"))
		return word & 1;
	if (!strcmp(type, "s32"))
		return (int32_t)word;
	memcpy(&wide, &bits, sizeof wide);
	return (long double)wide;
}

static int bits_of(const char *type)
{
	static const struct kind kinds[] = { { "f16", 16 }, { "bf16", 16 }, { "tf32", 32 }, { "f32", 32 },
					     { "e4m3", 8 },
					     { "e5m2", 8 }, { "s8", 8 },    { "u8", 8 },    { "s4", 4 },   { "u4", 4 },
					     { "b1", 1 },   { "s32", 32 },  { "f64", 64 } };
	for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++)
		if (!strcmp(kinds[n].name, type))
			return kinds[n].bits;
	ck_abort_msg("no type %s", type);
}

/* Random bits of a type: any integer; floats of moderate size, all of them finite. */
static uint64_t random_value(const char *type)
{
	uint32_t r = random_bits();
	if (!strcmp(type, "f64")) {
		double value = (double)(int32_t)r / 65537.0;
		uint64_t bits;
		memcpy(&bits, &value, sizeof bits);
		return bits;
	}
	if (!strcmp(type, "f16"))
		return (r & 0x83ff) | (10 + r / 65536 % 8) << 10;
	if (!strcmp(type, "bf16"))
		return (r & 0x807f) | (120 + r / 65536 % 10) << 7;
	if (!strcmp(type, "tf32") || !strcmp(type, "f32"))
		return (r & 0x807fe000u) | (120 + r % 10) << 23;
	if (!strcmp(type, "e4m3"))
		return (r & 127) == 127 ? r & 0x80 : r & 255;
	if (!strcmp(type, "e5m2"))
		return (r & 0x83) | (r >> 8) % 20 << 2;
	return bits_of(type) == 32 ? r : r & ((1u << bits_of(type)) - 1);
}

/* ---- matrices as values and as bits */
#define CELLS (64 * 256)
struct matrix {
	int rows, columns;
	uint64_t bits[CELLS];
	long double values[CELLS];
};

static void fill(struct matrix *matrix, int rows, int columns, const char *type)
{
	matrix->rows = rows;
	matrix->columns = columns;
	for (int n = 0; n < rows * columns; n++) {
		matrix->bits[n] = random_value(type);
		matrix->values[n] = value_of(type, matrix->bits[n]);
	}
}

struct product {
	struct matrix a, b, c;
	const char *ta, *tb, *tc, *td;
	int m, n, k;
	bool saturate, bits, bit_and;
	long double size; /* of the greatest sum of magnitudes: what an error is measured by */
};

static long double product_at(const struct product *p, int row, int column, long double *size)
{
	long double sum = p->c.values[row * p->n + column];
	*size = fabsl(sum);
	for (int i = 0; i < p->k; i++) {
		long double a = p->a.values[row * p->k + i], b = p->b.values[i * p->n + column];
		if (p->bits)
			sum += p->bit_and ? a * b : (long double)(a != b);
		else if (!strcmp(p->ta, "f64"))
			sum = (long double)fma((double)a, (double)b, (double)sum);
		else
			sum += a * b;
		*size += fabsl(a * b);
	}
	if (p->saturate)
		sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
	else if (!strcmp(p->td, "s32"))
		sum = (int32_t)(uint32_t)(int64_t)sum;
	return sum;
}

static void check_result(const struct product *p, int row, int column, uint64_t bits)
{
	long double size, want = product_at(p, row, column, &size), got = value_of(p->td, bits), allowed = 0;
	if (!strcmp(p->td, "f32"))
		allowed = size * 0x1p-24L;
	else if (!strcmp(p->td, "f16"))
		allowed = fabsl(want) * 0x1p-11L + size * 0x1p-24L + 0x1p-25L;
	bool overflow = !strcmp(p->td, "f16") && fabsl(want) >= 65520 && fabsl(got) > 65504;
	ck_assert_msg(overflow || fabsl(got - want) <= allowed, "%dx%dx%d %s %s: [%d][%d] is %.17Lg, want %.17Lg", p->m,
		      p->n, p->k, p->ta, p->td, row, column, got, want);
}

static void fill_product(struct product *p)
{
	fill(&p->a, p->m, p->k, p->ta);
	fill(&p->b, p->k, p->n, p->tb);
	fill(&p->c, p->m, p->n, p->tc);
}

/* ---- text */
/* {%a0,%a1,…} */
static void say_vector(const char *name, int count)
{
	say("{");
	for (int n = 0; n < count; n++)
		say("%s%s%d", n ? "," : "", name, n);
	say("}");
}

/* ---- mma: places of the elements */
struct place {
	int row, column;
};

/* The ISA's text: for a of a shape with 16 rows, elements i of a thread. */
static struct place place_a(int m, int k, const char *type, int lane, int i)
{
	int group = lane >> 2, thread = lane % 4, bits = bits_of(type);
	if (bits == 64 && m == 8)
		return (struct place){ group, thread };
	if (bits == 64)
		return (struct place){ i % 2 == 0 ? group : group + 8, k == 4 ? thread : i / 2 * 4 + thread };
	if (bits == 32 && k == 4)
		return (struct place){ i == 0 ? group : group + 8, thread };
	if (bits == 32)
		return (struct place){ i == 0 || i == 2 ? group : group + 8, i < 2 ? thread : thread + 4 };
	if (bits == 16 && k == 8)
		return (struct place){ i < 2 ? group : group + 8, thread * 2 + (i & 1) };
	if (bits == 16)
		return (struct place){ i < 2 || (i >= 4 && i < 6) ? group : group + 8,
				       i < 4 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8 };
	if (bits == 8 && m == 8)
		return (struct place){ group, thread * 4 + i };
	if (bits == 8 && k == 16)
		return (struct place){ i < 4 ? group : group + 8, thread * 4 + (i & 3) };
	if (bits == 8)
		return (struct place){ i < 4 || (i >= 8 && i < 12) ? group : group + 8,
				       i < 8 ? thread * 4 + (i & 3) : thread * 4 + (i & 3) + 16 };
	if (bits == 4 && m == 8)
		return (struct place){ group, thread * 8 + i };
	if (bits == 4 && k == 32)
		return (struct place){ i < 8 ? group : group + 8, thread * 8 + (i & 7) };
	if (bits == 4)
		return (struct place){ i < 8 || (i >= 16 && i < 24) ? group : group + 8,
				       i < 16 ? thread * 8 + (i & 7) : thread * 8 + (i & 7) + 32 };
	if (m == 8)
		return (struct place){ group, thread * 32 + i };
	if (k == 128)
		return (struct place){ i < 32 ? group : group + 8, thread * 32 + (i & 31) };
	return (struct place){ i < 32 || (i >= 64 && i < 96) ? group : group + 8,
			       i < 64 ? thread * 32 + (i & 31) : thread * 32 + (i & 31) + 128 };
}

static struct place place_b(int k, const char *type, int lane, int i)
{
	int group = lane >> 2, thread = lane % 4, bits = bits_of(type);
	switch (bits) {
	case 64: return (struct place){ k == 16 ? i * 4 + thread : i == 0 ? thread : thread + 4, group };
	case 32: return (struct place){ i == 0 ? thread : thread + 4, group };
	case 16: return (struct place){ i < 2 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8, group };
	case 8: return (struct place){ i < 4 ? thread * 4 + (i & 3) : thread * 4 + (i & 3) + 16, group };
	case 4: return (struct place){ i < 8 ? thread * 8 + (i & 7) : thread * 8 + (i & 7) + 32, group };
	default: return (struct place){ i < 32 ? thread * 32 + (i & 31) : thread * 32 + (i & 31) + 128, group };
	}
}

static struct place place_c(int m, int lane, int i)
{
	int group = lane >> 2, thread = lane % 4;
	return (struct place){ m == 8 || i < 2 ? group : group + 8, thread * 2 + (i & 1) };
}

static const struct mma_case {
	int m, n, k;
	const char *ta, *tb, *tc, *td, *more, *after;
} mma_cases[] = {
	{ 16, 8, 8, "f16", "f16", "f16", "f16", "", "" },
	{ 16, 8, 8, "f16", "f16", "f32", "f32", "", "" },
	{ 16, 8, 16, "f16", "f16", "f16", "f16", "", "" },
	{ 16, 8, 16, "f16", "f16", "f32", "f32", "", "" },
	{ 16, 8, 8, "bf16", "bf16", "f32", "f32", "", "" },
	{ 16, 8, 16, "bf16", "bf16", "f32", "f32", "", "" },
	{ 16, 8, 4, "tf32", "tf32", "f32", "f32", "", "" },
	{ 16, 8, 8, "tf32", "tf32", "f32", "f32", "", "" },
	{ 16, 8, 16, "e4m3", "e5m2", "f32", "f32", "", "" },
	{ 16, 8, 32, "e4m3", "e4m3", "f32", "f32", "", "" },
	{ 16, 8, 32, "e5m2", "e4m3", "f16", "f16", "", "" },
	{ 8, 8, 4, "f64", "f64", "f64", "f64", "", "" },
	{ 16, 8, 4, "f64", "f64", "f64", "f64", "", "" },
	{ 16, 8, 8, "f64", "f64", "f64", "f64", "", "" },
	{ 16, 8, 16, "f64", "f64", "f64", "f64", "", "" },
	{ 8, 8, 16, "s8", "u8", "s32", "s32", "", "" },
	{ 16, 8, 16, "u8", "s8", "s32", "s32", "", "" },
	{ 16, 8, 32, "s8", "s8", "s32", "s32", "", "" },
	{ 16, 8, 32, "u8", "u8", "s32", "s32", ".satfinite", "" },
	{ 8, 8, 32, "s4", "u4", "s32", "s32", "", "" },
	{ 16, 8, 32, "u4", "s4", "s32", "s32", "", "" },
	{ 16, 8, 64, "s4", "s4", "s32", "s32", ".satfinite", "" },
	{ 8, 8, 128, "b1", "b1", "s32", "s32", "", ".xor.popc" },
	{ 16, 8, 128, "b1", "b1", "s32", "s32", "", ".and.popc" },
	{ 16, 8, 256, "b1", "b1", "s32", "s32", "", ".xor.popc" },
};
#define MMA_CASES (int)(sizeof mma_cases / sizeof *mma_cases)

/* Registers of a fragment of that many elements. */
static int registers_of(int elements, const char *type)
{
	int bits = bits_of(type);
	return bits == 64 ? elements / 32 : elements * bits / 1024;
}

struct registers {
	uint64_t cells[32][32]; /* register, lane */
};

static void put(struct registers *registers, int first, int lane, int i, int bits, uint64_t value)
{
	int each = bits == 64 ? 1 : 32 / bits;
	registers->cells[first + i / each][lane] |= value << (bits == 64 ? 0 : i % each * bits);
}

static uint64_t get(const struct registers *registers, int lane, int i, int bits)
{
	int each = bits == 64 ? 1 : 32 / bits;
	uint64_t cell = registers->cells[i / each][lane];
	return bits == 64 ? cell : cell >> (i % each * bits) & (0xffffffffu >> (32 - bits));
}

static void say_loads(const char *name, int first, int count, bool wide)
{
	for (int n = 0; n < count; n++)
		say("ld.global.%s %%%s%d, [%%l2+%d];\n", wide ? "b64" : "b32", name, n, (first + n) * 256);
}

/* k(in, out): registers from in, of 8 bytes each, a, b, c and, if there is a selector, the metadata; d's to out. */
static void sparse_text(const char *mnemonic, bool wide, int a, int b, int c, int d, int selector)
{
	const char *type = wide ? "b64" : "b32";
	text_begin();
	say(".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b32 %%r<4>; .reg .b64 %%l<8>;\n"
	    ".reg .%s %%a<8>; .reg .%s %%b<8>; .reg .%s %%c<8>; .reg .%s %%d<8>;\n", type, type, type, type);
	say("mov.u32 %%r1, %%tid.x; mul.wide.u32 %%l1, %%r1, 8; ld.param.u64 %%l2, [in]; add.u64 %%l2, %%l2, %%l1;\n"
	    "ld.param.u64 %%l3, [out]; add.u64 %%l3, %%l3, %%l1;\n");
	say_loads("a", 0, a, wide);
	say_loads("b", a, b, wide);
	say_loads("c", a + b, c, wide);
	if (selector >= 0)
		say("ld.global.b32 %%r2, [%%l2+%d];\n", (a + b + c) * 256);
	say("%s ", mnemonic);
	say_vector("%d", d);
	say(", ");
	say_vector("%a", a);
	say(", ");
	say_vector("%b", b);
	say(", ");
	say_vector("%c", c);
	if (selector >= 0)
		say(", %%r2, %d", selector);
	say(";\n");
	for (int n = 0; n < d; n++)
		say("st.global.%s [%%l3+%d], %%d%d;\n", type, n * 256, n);
	say("ret;\n}\n");
}

static void mma_text(const char *mnemonic, bool wide, int a, int b, int c, int d)
{
	sparse_text(mnemonic, wide, a, b, c, d, -1);
}

static void run_mma(const struct registers *in, struct registers *out)
{
	struct {
		struct registers *in, *out;
	} parameters = { device_alloc(sizeof *in), device_alloc(sizeof *out) };
	memcpy(parameters.in, in, sizeof *in);
	ck_assert_int_eq(text_run(1, 32, &parameters), CUDA_SUCCESS);
	memcpy(out, parameters.out, sizeof *out);
	device_reset();
}

static struct product product_of(const struct mma_case *test)
{
	struct product p = { .ta = test->ta, .tb = test->tb, .tc = test->tc, .td = test->td, .m = test->m, .n = test->n,
			     .k = test->k };
	p.saturate = strstr(test->more, "satfinite") != NULL;
	p.bits = !strcmp(test->ta, "b1");
	p.bit_and = strstr(test->after, "and") != NULL;
	fill_product(&p);
	return p;
}

START_TEST(mma_multiplies_what_its_fragments_hold)
{
	const struct mma_case *test = &mma_cases[_i % MMA_CASES];
	use_isa(_i / MMA_CASES);
	static struct product p;
	static struct registers in, out;
	char mnemonic[128];
	p = product_of(test);
	memset(&in, 0, sizeof in);
	int a = p.m * p.k / 32, b = p.k * p.n / 32, c = p.m * p.n / 32, bits = bits_of(p.ta);
	int ra = registers_of(a * 32, p.ta), rb = registers_of(b * 32, p.tb), rc = registers_of(c * 32, p.tc);
	for (int lane = 0; lane < 32; lane++) {
		for (int i = 0; i < a; i++) {
			struct place at = place_a(p.m, p.k, p.ta, lane, i);
			put(&in, 0, lane, i, bits, p.a.bits[at.row * p.k + at.column]);
		}
		for (int i = 0; i < b; i++) {
			struct place at = place_b(p.k, p.tb, lane, i);
			put(&in, ra, lane, i, bits, p.b.bits[at.row * p.n + at.column]);
		}
		for (int i = 0; i < c; i++) {
			struct place at = place_c(p.m, lane, i);
			put(&in, ra + rb, lane, i, bits_of(p.tc), p.c.bits[at.row * p.n + at.column]);
		}
	}
	snprintf(mnemonic, sizeof mnemonic, "mma.sync.aligned.m%dn%dk%d.row.col%s.%s.%s.%s.%s%s", p.m, p.n, p.k,
		 test->more, p.td, p.ta, p.tb, p.tc, test->after);
	mma_text(mnemonic, bits == 64, ra, rb, rc, registers_of(c * 32, p.td));
	run_mma(&in, &out);
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < c; i++) {
			struct place at = place_c(p.m, lane, i);
			check_result(&p, at.row, at.column, get(&out, lane, i, bits_of(p.td)));
		}
}
END_TEST

/* ---- mma.sp */
static const struct sparse_case {
	struct mma_case product;
	int selectors;
} sparse_cases[] = {
	{ { 16, 8, 16, "f16", "f16", "f32", "f32", "", "" }, 4 },
	{ { 16, 8, 32, "f16", "f16", "f16", "f16", "", "" }, 2 },
	{ { 16, 8, 32, "bf16", "bf16", "f32", "f32", "", "" }, 2 },
	{ { 16, 8, 8, "tf32", "tf32", "f32", "f32", "", "" }, 4 },
	{ { 16, 8, 16, "tf32", "tf32", "f32", "f32", "", "" }, 2 },
	{ { 16, 8, 64, "e4m3", "e5m2", "f32", "f32", "", "" }, 1 },
	{ { 16, 8, 32, "s8", "u8", "s32", "s32", "", "" }, 2 },
	{ { 16, 8, 64, "u8", "s8", "s32", "s32", ".satfinite", "" }, 1 },
	{ { 16, 8, 64, "s4", "u4", "s32", "s32", "", "" }, 2 },
	{ { 16, 8, 128, "u4", "s4", "s32", "s32", "", "" }, 1 },
};
#define SPARSE_CASES (int)(sizeof sparse_cases / sizeof *sparse_cases)

/* The element of b that element (row, column) of the stored a is multiplied with, by the row's metadata. */
static int along_k(const struct sparse_case *test, uint64_t metadata, int column)
{
	int bits = bits_of(test->product.ta);
	if (bits == 32)
		return column * 2 + ((metadata >> column * 4 & 15) == 0xe);
	if (bits == 4)
		return column / 4 * 8 + (int)(metadata >> column / 2 * 2 & 3) * 2 + column % 2;
	return column / 2 * 4 + (int)(metadata >> column * 2 & 3);
}

/* Four bits for each group along k: two places in ascending order, or for tf32 0x4 or 0xe. */
static uint64_t random_metadata(const struct sparse_case *test)
{
	static const uint8_t pairs[] = { 0x4, 0x8, 0xc, 0x9, 0xd, 0xe };
	uint64_t metadata = 0;
	for (int group = 0; group < 16; group++) {
		uint64_t four = bits_of(test->product.ta) == 32 ? (random_bits() & 1 ? 0xe : 0x4) :
								  pairs[random_bits() % 6];
		metadata |= four << group * 4;
	}
	return metadata;
}

/* Which lane has a half or a whole word of a row's metadata, and where in its word (as CUTLASS orders them). */
static void put_metadata(const struct sparse_case *test, struct registers *in, int first, int row, int selector,
			 uint64_t metadata)
{
	int k = test->product.k, bits = bits_of(test->product.ta), lane = row % 8 * 4;
	if (bits >= 16) {
		int lanes = bits == 32 ? k / 8 : k / 16;
		for (int n = 0; n < lanes; n++)
			in->cells[first][lane + selector * lanes + n] |=
				(metadata >> n * 16 & 0xffff) << (row < 8 ? 0 : 16);
	} else {
		for (int n = 0; n < k / (bits == 4 ? 64 : 32); n++)
			in->cells[first][lane + selector * 2 + n * 2 + (row >= 8)] = metadata >> n * 32 & 0xffffffffu;
	}
}

START_TEST(sparse_products_take_the_elements_that_the_metadata_names)
{
	const struct sparse_case *test = &sparse_cases[_i % SPARSE_CASES];
	int selector = _i / SPARSE_CASES % 4;
	if (selector >= test->selectors)
		return;
	use_isa(_i / SPARSE_CASES / 4);
	static struct product p;
	static struct matrix stored;
	static struct registers in, out;
	char mnemonic[128];
	p = product_of(&test->product);
	memset(&in, 0, sizeof in);
	memset(&p.a, 0, sizeof p.a);
	int half = p.k / 2, bits = bits_of(p.ta), rc = registers_of(p.m * p.n, p.tc);
	int ra = registers_of(p.m * half, p.ta), rb = registers_of(p.k * p.n, p.tb);
	fill(&stored, p.m, half, p.ta);
	for (int lane = 0; lane < 32; lane++)
		in.cells[ra + rb + rc][lane] = random_bits();
	for (int row = 0; row < 8; row++) /* the lanes that the selector names; all others keep random bits */
		for (int n = 0; n < 4 / test->selectors; n++)
			in.cells[ra + rb + rc][row * 4 + selector * (4 / test->selectors) + n] = 0;
	for (int row = 0; row < p.m; row++) {
		uint64_t metadata = random_metadata(test);
		put_metadata(test, &in, ra + rb + rc, row, selector, metadata);
		for (int column = 0; column < half; column++)
			p.a.values[row * p.k + along_k(test, metadata, column)] = stored.values[row * half + column];
	}
	for (int lane = 0; lane < 32; lane++) {
		int span = 4 * (bits == 32 ? 1 : 32 / bits), each = span / 4;
		for (int i = 0; i < p.m * half / 32; i++) {
			struct place at = place_a(p.m, half, p.ta, lane, i);
			put(&in, 0, lane, i, bits, stored.bits[at.row * half + at.column]);
		}
		for (int i = 0; i < p.k * p.n / 32; i++)
			put(&in, ra, lane, i, bits,
			    p.b.bits[(i / each * span + lane % 4 * each + i % each) * p.n + lane / 4]);
		for (int i = 0; i < p.m * p.n / 32; i++) {
			struct place at = place_c(p.m, lane, i);
			put(&in, ra + rb, lane, i, bits_of(p.tc), p.c.bits[at.row * p.n + at.column]);
		}
	}
	snprintf(mnemonic, sizeof mnemonic, "mma.sp%s.sync.aligned.m%dn%dk%d.row.col%s.%s.%s.%s.%s",
		 selector ? "" : "::ordered_metadata", p.m, p.n, p.k, test->product.more, p.td, p.ta, p.tb, p.tc);
	sparse_text(mnemonic, false, ra, rb, rc, registers_of(p.m * p.n, p.td), selector);
	run_mma(&in, &out);
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < p.m * p.n / 32; i++) {
			struct place at = place_c(p.m, lane, i);
			check_result(&p, at.row, at.column, get(&out, lane, i, bits_of(p.td)));
		}
}
END_TEST

/* a is 1 in column 0 and keeps the first two of four; b is infinite in its rows 2 and 3, of which none is kept. */
START_TEST(sparse_products_ignore_the_rest_of_b)
{
	static struct registers in, out;
	use_isa(_i);
	memset(&in, 0, sizeof in);
	for (int lane = 0; lane < 32; lane++) {
		in.cells[0][lane] = lane % 4 == 0 ? 0x3c00 : 0;
		in.cells[2][lane] = lane % 4 == 0 ? 0x4000 : lane % 4 == 1 ? 0x7c007c00 : 0;
		in.cells[8][lane] = 0x44444444;
	}
	sparse_text("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", false, 2, 2, 4, 4, 0);
	run_mma(&in, &out);
	for (int lane = 0; lane < 32; lane++)
		ck_assert_uint_eq(out.cells[0][lane], 0x40000000);
}
END_TEST

/* mma.m8n8k4 of f16: four products, one for the lanes 4 q … 4 q + 3 and 16 + 4 q … 19 + 4 q. */
START_TEST(small_products_belong_to_quad_pairs)
{
	use_isa(_i / 8);
	bool a_columns = _i & 1, b_rows = _i & 2, wide = _i & 4;
	static struct product p[4];
	static struct registers in, out;
	char mnemonic[128];
	memset(&in, 0, sizeof in);
	for (int q = 0; q < 4; q++) {
		p[q] = (struct product){ .ta = "f16", .tb = "f16", .tc = wide ? "f32" : "f16",
					 .td = wide ? "f32" : "f16",
					 .m = 8, .n = 8, .k = 4 };
		fill_product(&p[q]);
	}
	for (int lane = 0; lane < 32; lane++) {
		struct product *mine = &p[lane / 4 % 4];
		int base = lane < 16 ? lane % 4 : lane % 4 + 4;
		for (int i = 0; i < 4; i++) {
			int far = lane < 16 ? i : i + 4;
			put(&in, 0, lane, i, 16,
			    a_columns ? mine->a.bits[far * 4 + lane % 4] : mine->a.bits[base * 4 + i]);
			put(&in, 2, lane, i, 16,
			    b_rows ? mine->b.bits[lane % 4 * 8 + far] : mine->b.bits[i * 8 + base]);
		}
		for (int i = 0; i < 8; i++) {
			int x = (lane & 1) + (i & 2), row = wide ? (lane < 16 ? x : x + 4) : base,
			    column = wide ? (i & 4) + (lane & 2) + (i & 1) : i;
			put(&in, 4, lane, i, wide ? 32 : 16, mine->c.bits[row * 8 + column]);
		}
	}
	snprintf(mnemonic, sizeof mnemonic, "mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s", a_columns ? "col" : "row",
		 b_rows ? "row" : "col", p[0].td, p[0].tc);
	mma_text(mnemonic, false, 2, 2, wide ? 8 : 4, wide ? 8 : 4);
	run_mma(&in, &out);
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 8; i++) {
			int x = (lane & 1) + (i & 2), half = lane < 16 ? 0 : 4, row = wide ? x + half : lane % 4 + half,
			    column = wide ? (i & 4) + (lane & 2) + (i & 1) : i;
			check_result(&p[lane / 4 % 4], row, column, get(&out, lane, i, wide ? 32 : 16));
		}
}
END_TEST

/* One product: a is x in its first column, b is y in its first row, c is z. */
static uint32_t one_product(const char *mnemonic, uint32_t x, uint32_t y, uint32_t z, int c, int d)
{
	static struct registers in, out;
	memset(&in, 0, sizeof in);
	for (int lane = 0; lane < 32; lane++) {
		in.cells[0][lane] = in.cells[1][lane] = lane % 4 == 0 ? x : 0;
		in.cells[4][lane] = lane % 4 == 0 ? y : 0;
		for (int n = 0; n < c; n++)
			in.cells[6 + n][lane] = z;
	}
	mma_text(mnemonic, false, 4, 2, c, d);
	run_mma(&in, &out);
	return (uint32_t)out.cells[0][17];
}

#define MMA_F32 "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#define MMA_F16 "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
#define MMA_TF32 "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#define MMA_S8 "mma.sync.aligned.m16n8k32.row.col%s.s32.s8.s8.s32"

START_TEST(products_of_special_values)
{
	use_isa(_i);
	/* infinity, infinity times 0, a subnormal half times a subnormal half, f32's overflow, tf32's unused bits */
	ck_assert_uint_eq(one_product(MMA_F32, 0x7c00, 0x3c00, 0, 4, 4), 0x7f800000);
	ck_assert_uint_eq(one_product(MMA_F32, 0x7c00, 0x0000, 0, 4, 4), 0x7fffffff);
	ck_assert_uint_eq(one_product(MMA_F32, 0x0001, 0x0001, 0, 4, 4), 0x27800000);
	ck_assert_uint_eq(one_product(MMA_F32, 0x7bff, 0x7bff, 0x7f7fffff, 4, 4), 0x7f7fffff);
	ck_assert_uint_eq(one_product(MMA_F32, 0x3c00, 0x3c00, 0xbf800000, 4, 4), 0x00000000);
	ck_assert_uint_eq(one_product(MMA_TF32, 0x3f801fff, 0x3f800000, 0, 4, 4), 0x3f800000);
	/* 2048 + 1 is a tie to even in a half; 65504 + 16 is infinity */
	ck_assert_uint_eq(one_product(MMA_F16, 0x3c00, 0x3c00, 0x68006800, 2, 2) & 0xffff, 0x6800);
	ck_assert_uint_eq(one_product(MMA_F16, 0x4c00, 0x3c00, 0x7bff7bff, 2, 2) & 0xffff, 0x7c00);
	/* -128 * -128 on top of the greatest integer wraps, or does not */
	char plain[80], clamped[80];
	snprintf(plain, sizeof plain, MMA_S8, "");
	snprintf(clamped, sizeof clamped, MMA_S8, ".satfinite");
	ck_assert_uint_eq(one_product(plain, 0x80, 0x80, 0x7fffffff, 4, 4), 0x80003fff);
	ck_assert_uint_eq(one_product(clamped, 0x80, 0x80, 0x7fffffff, 4, 4), 0x7fffffff);
	ck_assert_uint_eq(one_product(clamped, 0x80, 0x7f, 0x80000000, 4, 4), 0x80000000);
}
END_TEST

/* ---- wmma: load, load, load, mma, store against memory */
static const struct wmma_case {
	int m, n, k;
	const char *type, *c, *d;
	int ra, rb;
} wmma_cases[] = {
	{ 16, 16, 16, "f16", "f32", "f32", 8, 8 }, { 16, 16, 16, "f16", "f16", "f16", 8, 8 },
	{ 8, 32, 16, "f16", "f32", "f16", 8, 8 },  { 32, 8, 16, "f16", "f16", "f32", 8, 8 },
	{ 16, 16, 16, "bf16", "f32", "f32", 4, 4 }, { 8, 32, 16, "bf16", "f32", "f32", 2, 8 },
	{ 32, 8, 16, "bf16", "f32", "f32", 8, 2 },  { 16, 16, 8, "tf32", "f32", "f32", 4, 4 },
	{ 16, 16, 16, "s8", "s32", "s32", 2, 2 },   { 8, 32, 16, "u8", "s32", "s32", 1, 4 },
	{ 32, 8, 16, "u8", "s32", "s32", 4, 1 },    { 8, 8, 4, "f64", "f64", "f64", 1, 1 },
	{ 8, 8, 32, "s4", "s32", "s32", 1, 1 },     { 8, 8, 32, "u4", "s32", "s32", 1, 1 },
	{ 8, 8, 128, "b1", "s32", "s32", 1, 1 },
};
#define WMMA_CASES (int)(sizeof wmma_cases / sizeof *wmma_cases)

/* Elements of a matrix in memory, with a distance of stride elements between rows, or columns. */
static void to_memory(const struct matrix *matrix, int bits, bool by_columns, int stride, uint8_t *memory)
{
	for (int row = 0; row < matrix->rows; row++) {
		for (int column = 0; column < matrix->columns; column++) {
			size_t element = (size_t)(by_columns ? column * stride + row : row * stride + column);
			uint64_t value = matrix->bits[row * matrix->columns + column];
			if (bits >= 8)
				memcpy(memory + element * (size_t)bits / 8, &value, (size_t)bits / 8);
			else
				memory[element * (size_t)bits / 8] |= (uint8_t)(value << element * (size_t)bits % 8);
		}
	}
}

static void say_wmma(const struct wmma_case *test, bool ca, bool cb, bool cc, const int strides[3], const char *space)
{
	char shape[32];
	const char *la = ca ? "col" : "row", *lb = cb ? "col" : "row", *lc = cc ? "col" : "row";
	int rc = test->m * test->n / 32, half_c = !strcmp(test->c, "f16") ? rc / 2 : rc,
	    half_d = !strcmp(test->d, "f16") ? rc / 2 : rc;
	snprintf(shape, sizeof shape, "m%dn%dk%d", test->m, test->n, test->k);
	say("wmma.load.a.sync.aligned.%s.%s%s.%s ", la, shape, space, test->type);
	say_vector("%a", test->ra);
	say(", [%%l2], %d;\nwmma.load.b.sync.aligned.%s.%s%s.%s ", strides[0], lb, shape, space, test->type);
	say_vector("%b", test->rb);
	say(", [%%l3], %d;\nwmma.load.c.sync.aligned.%s.%s%s.%s ", strides[1], lc, shape, space, test->c);
	say_vector("%c", half_c);
	if (strides[2] == (cc ? test->m : test->n))
		say(", [%%l4+16];\n"); /* the distance is the matrix's own */
	else
		say(", [%%l4+16], %d;\n", strides[2]);
	if (!strcmp(test->type, "b1"))
		say("wmma.mma.xor.popc.sync.aligned.row.col.%s.s32.b1.b1.s32 ", shape);
	else if (!strcmp(test->type, "f16"))
		say("wmma.mma.sync.aligned.%s.%s.%s.%s.%s ", la, lb, shape, test->d, test->c);
	else
		say("wmma.mma.sync.aligned.%s.%s.%s.%s.%s.%s.%s "
		"", la, lb, shape, test->d, test->type, test->type, test->c);
	say_vector("%d", half_d);
	say(", ");
	say_vector("%a", test->ra);
	say(", ");
	say_vector("%b", test->rb);
	say(", ");
	say_vector("%c", half_c);
	say(";\nwmma.store.d.sync.aligned.%s.%s.global.%s [%%l5], ", lc, shape, test->d);
	say_vector("%d", half_d);
	say(", %d;\nret;\n}\n", strides[2]);
}

#define SHARED_BYTES 16384

static void wmma_text(const struct wmma_case *test, bool ca, bool cb, bool cc, const int strides[3], bool shared)
{
	const char *type = !strcmp(test->type, "f64") ? "b64" : "b32";
	text_begin();
	say(".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n"
	    ".shared .align 128 .b8 tile[%d]; .reg .b32 %%r<4>; .reg .b64 %%l<8>; .reg .pred %%p;\n"
	    ".reg .%s %%a<8>; .reg .%s %%b<8>; .reg .%s %%c<8>; .reg .%s %%d<8>;\n",
	    SHARED_BYTES, type, type, type, type);
	say("ld.param.u64 %%l2, [a]; ld.param.u64 %%l3, [b]; ld.param.u64 %%l4, [c]; ld.param.u64 %%l5, [d];\n");
	if (shared) {
		/* a through shared memory, with a 32-bit address */
		say("mov.u32 %%r1, %%tid.x; shl.b32 %%r1, %%r1, 2; mov.u32 %%r2, tile; add.u32 %%r2, %%r2, %%r1; "
		    "cvt.u64.u32 %%l1, %%r1; add.u64 %%l1, %%l1, %%l2;\n"
		    "COPY: ld.global.b32 %%r3, [%%l1]; st.shared.b32 [%%r2], %%r3; add.u64 %%l1, %%l1, 128; "
		    "add.u32 %%r2, %%r2, 128; add.u32 %%r1, %%r1, 128; setp.lt.u32 %%p, %%r1, %d; @%%p bra COPY;\n"
		    "mov.u64 %%l2, tile; cvta.shared.u64 %%l2, %%l2; bar.sync 0;\n", SHARED_BYTES);
	}
	say_wmma(test, ca, cb, cc, strides, shared ? "" : ".global");
}

START_TEST(wmma_agrees_with_the_matrices_in_memory)
{
	const struct wmma_case *test = &wmma_cases[_i / ISAS % WMMA_CASES];
	use_isa(_i % ISAS);
	int bits = bits_of(test->type);
	for (int layouts = 0; layouts < 16; layouts++) {
		bool ca = layouts & 1, cb = layouts & 2, cc = layouts & 4, shared = layouts & 8;
		if (bits < 8 && (ca || !cb))
			continue;
		static struct product p;
		p = (struct product){ .ta = test->type, .tb = test->type, .tc = test->c, .td = test->d, .m = test->m,
				      .n = test->n, .k = test->k, .bits = bits == 1 };
		fill_product(&p);
		int strides[3] = { (ca ? p.m : p.k) + (bits < 8 ? 32 : 8), (cb ? p.k : p.n) + (bits < 8 ? 32 : 24),
				   (cc ? p.m : p.n) + (layouts & 2 ? 4 : 0) };
		if (bits == 1)
			strides[0] = strides[1] = 256;
		struct {
			uint8_t *a, *b, *c, *d;
		} memory = { device_alloc(SHARED_BYTES), device_alloc(SHARED_BYTES), device_alloc(SHARED_BYTES),
			     device_alloc(SHARED_BYTES) };
		to_memory(&p.a, bits, ca, strides[0], memory.a);
		to_memory(&p.b, bits, cb, strides[1], memory.b);
		to_memory(&p.c, bits_of(p.tc), cc, strides[2], memory.c + 16);
		wmma_text(test, ca, cb, cc, strides, shared);
		ck_assert_int_eq(text_run(1, 32, &memory), CUDA_SUCCESS);
		int size = bits_of(p.td) / 8;
		for (int row = 0; row < p.m; row++)
			for (int column = 0; column < p.n; column++) {
				int at = cc ? column * strides[2] + row : row * strides[2] + column;
				uint64_t value = 0;
				memcpy(&value, memory.d + at * size, (size_t)size);
				check_result(&p, row, column, value);
			}
		device_reset();
	}
}
END_TEST

START_TEST(a_matrix_that_ends_outside_its_memory_is_a_fault)
{
	use_isa(_i);
	const struct wmma_case *test = &wmma_cases[0];
	const int strides[3] = { 16, 16, 16 };
	struct {
		uint8_t *a, *b, *c, *d;
	} memory = { device_alloc(512), device_alloc(512), device_alloc(1024 + 16), device_alloc(1024) };
	wmma_text(test, false, false, false, strides, false);
	ck_assert_int_eq(text_run(1, 32, &memory), CUDA_SUCCESS);
	memory.b += 4; /* two elements too far */
	ck_assert_int_eq(text_run(1, 32, &memory), CUDA_ERROR_ILLEGAL_ADDRESS);
	memory.b -= 2;
	ck_assert_int_eq(text_run(1, 32, &memory), CUDA_ERROR_MISALIGNED_ADDRESS);
}
END_TEST

/* ---- wgmma: a and b in shared memory, in the layouts of the PTX ISA ("Shared Memory Matrix Layout") */
static const struct wgmma_case {
	int n, k;
	const char *ta, *tb, *td, *more;
	int width;             /* chunks of 16 bytes in a row of the swizzled pattern; 1: none */
	bool a_by_m, b_by_n, a_in_registers;
	int sign_a, sign_b;
	bool adds;
} wgmma_cases[] = {
	{ 8, 16, "f16", "f16", "f32", "", 1, false, false, false, 1, 1, true },
	{ 64, 16, "bf16", "bf16", "f32", "", 8, false, false, false, 1, -1, true },
	{ 256, 16, "f16", "f16", "f16", "", 4, false, false, true, 1, 1, true },
	{ 24, 16, "f16", "f16", "f32", "", 2, false, false, true, -1, 1, false },
	{ 16, 16, "f16", "f16", "f32", "", 1, true, true, false, 1, 1, true },
	{ 128, 16, "f16", "f16", "f32", "", 8, true, true, false, -1, -1, false },
	{ 64, 16, "bf16", "bf16", "f32", "", 4, false, true, true, 1, 1, true },
	{ 32, 16, "f16", "f16", "f16", "", 2, true, true, false, 1, 1, true },
	{ 40, 8, "tf32", "tf32", "f32", "", 8, false, false, false, 1, 1, true },
	{ 8, 8, "tf32", "tf32", "f32", "", 2, false, false, true, 1, 1, true },
	{ 48, 32, "e4m3", "e5m2", "f32", "", 4, false, false, false, 1, 1, true },
	{ 16, 32, "e5m2", "e4m3", "f16", "", 8, false, false, true, 1, 1, false },
	{ 96, 32, "s8", "u8", "s32", "", 8, false, false, false, 1, 1, true },
	{ 32, 32, "u8", "s8", "s32", ".satfinite", 1, false, false, true, 1, 1, true },
};
#define WGMMA_CASES (int)(sizeof wgmma_cases / sizeof *wgmma_cases)
#define WGMMA_BYTES 16384 /* shared memory for each of a and b */

/*
 * The descriptor's byte offsets. Stride: between groups of eight lines, or along k if the lines are neighbours in memory
 * and swizzled. Leading: without a swizzle, between the chunks of a line or the groups along k; with a swizzle, between
 * the patterns along m or n.
 */
static int stride_of(const struct wgmma_case *test)
{
	return test->width * 128;
}

static int leading_of(const struct wgmma_case *test)
{
	return test->width == 1 ? 5120 : 2048;
}

/* Where element i along k of a line lies in its area. by_line: in memory the lines are neighbours, not the elements. */
static int wgmma_offset(const struct wgmma_case *test, bool by_line, int bytes, int line, int i)
{
	int each = 16 / bytes, width = test->width, at;
	if (!by_line)
		at = line % 8 * width * 16 + line / 8 * stride_of(test) +
		     i / each * (width == 1 ? leading_of(test) : 16) + i % each * bytes;
	else if (width == 1)
		at = line % each * bytes + line / each * stride_of(test) + i % 8 * 16 + i / 8 * leading_of(test);
	else
		at = line % (each * width) * bytes + line / (each * width) * leading_of(test) + i % 8 * width * 16 +
		     i / 8 * stride_of(test);
	int rows = at / 128;
	return width == 8 ? at ^ rows % 8 * 16 : width == 4 ? at ^ rows % 4 * 16 : width == 2 ? at ^ rows % 2 * 16 : at;
}

static uint64_t wgmma_descriptor(const struct wgmma_case *test)
{
	uint64_t mode = test->width == 8 ? 1 : test->width == 4 ? 2 : test->width == 2 ? 3 : 0;
	return (uint64_t)(leading_of(test) / 16) << 16 | (uint64_t)(stride_of(test) / 16) << 32 | mode << 62;
}

#define WGMMA_COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WGMMA_WAIT(pending) "wgmma.wait_group.sync.aligned " pending ";\n"

/* k(areas, registers of a, registers of d): a's and b's areas go to shared memory, and one product is computed. before and
 * after: code around the product. */
static void wgmma_text(const struct wgmma_case *test, uint64_t descriptor, int ra, int rd, const char *before,
		       const char *after)
{
	text_begin();
	say(".visible .entry k(.param .u64 areas, .param .u64 a, .param .u64 d)\n{\n"
	    ".shared .align 1024 .b8 area[%d]; .reg .b32 %%r<4>, %%a<4>, %%d<128>; .reg .b64 %%l<8>; "
	    ".reg .pred %%p, %%s, %%late;\n",
	    2 * WGMMA_BYTES);
	say("mov.u32 %%r1, %%tid.x; shl.b32 %%r1, %%r1, 2; mov.u32 %%r2, area; add.u32 %%r2, %%r2, %%r1; "
	    "cvt.u64.u32 %%l1, %%r1; ld.param.u64 %%l2, [areas]; add.u64 %%l2, %%l2, %%l1;\n"
	    "COPY: ld.global.b32 %%r3, [%%l2]; st.shared.b32 [%%r2], %%r3; add.u64 %%l2, %%l2, 512; add.u32 %%r2, %%r2, 512; "
	    "add.u32 %%r1, %%r1, 512; setp.lt.u32 %%p, %%r1, %d; @%%p bra COPY;\n"
	    "ld.param.u64 %%l2, [a]; add.u64 %%l2, %%l2, %%l1; ld.param.u64 %%l3, [d]; add.u64 %%l3, %%l3, %%l1;\n"
	    "mov.u32 %%r1, area; shr.u32 %%r1, %%r1, 4; cvt.u64.u32 %%l4, %%r1; or.b64 %%l4, %%l4, 0x%llx; "
	    "add.u64 %%l5, %%l4, %d; setp.%s.u32 %%s, %%r1, %%r1; bar.sync 0;\n",
	    2 * WGMMA_BYTES, (unsigned long long)descriptor, WGMMA_BYTES / 16, test->adds ? "eq" : "ne");
	for (int n = 0; n < ra; n++)
		say("ld.global.b32 %%a%d, [%%l2+%d];\n", n, n * 512);
	for (int n = 0; n < rd; n++)
		say("ld.global.b32 %%d%d, [%%l3+%d];\n", n, n * 512);
	say("%s", before);
	say("wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n%dk%d%s.%s.%s.%s ", test->n, test->k, test->more,
	    test->td, test->ta, test->tb);
	say_vector("%d", rd);
	say(", ");
	if (ra)
		say_vector("%a", ra);
	else
		say("%%l4");
	say(", %%l5, %%s");
	if (strcmp(test->td, "s32"))
		say(", %d, %d", test->sign_a, test->sign_b);
	if (test->k == 16)
		say(ra ? ", %d" : ", %d, %d", ra ? test->b_by_n : test->a_by_m, test->b_by_n);
	say(";\n%s", after);
	for (int n = 0; n < rd; n++)
		say("st.global.b32 [%%l3+%d], %%d%d;\n", n * 512, n);
	say("ret;\n}\n");
}

static void put_word(uint32_t *words, int thread, int i, int bits, uint64_t value)
{
	int each = 32 / bits;
	uint32_t mask = 0xffffffffu >> (32 - bits), shift = (uint32_t)(i % each * bits);
	uint32_t *word = &words[i / each * 128 + thread];
	*word = (*word & ~(mask << shift)) | (uint32_t)value << shift;
}

/* Row and column of element i of a thread's d. */
static struct place place_d(int thread, int i)
{
	return (struct place){ thread / 32 * 16 + thread % 32 / 4 + (i & 2) * 4, i / 4 * 8 + thread % 4 * 2 + (i & 1) };
}

/* One product, compared with the host's if the launch succeeds. except: a warp that computes nothing, or -1. */
static CUresult run_wgmma(const struct wgmma_case *test, const char *before, const char *after, int except)
{
	static struct product p;
	p = (struct product){ .ta = test->ta, .tb = test->tb, .tc = test->td, .td = test->td, .m = 64, .n = test->n,
			      .k = test->k, .saturate = test->more[0] };
	fill_product(&p);
	int bits = bits_of(p.ta), bytes = bits / 8, bits_d = bits_of(p.td), rd = p.n / 2 * bits_d / 32;
	struct {
		uint8_t *areas;
		uint32_t *a, *d;
	} memory = { device_alloc(2 * WGMMA_BYTES), device_alloc(4 * 512), device_alloc(128 * 512) };
	for (int row = 0; row < p.m; row++)
		for (int i = 0; i < p.k; i++)
			memcpy(memory.areas + wgmma_offset(test, test->a_by_m, bytes, row, i),
			       &p.a.bits[row * p.k + i], (size_t)bytes);
	for (int column = 0; column < p.n; column++)
		for (int i = 0; i < p.k; i++)
			memcpy(memory.areas + WGMMA_BYTES + wgmma_offset(test, test->b_by_n, bytes, column, i),
			       &p.b.bits[i * p.n + column], (size_t)bytes);
	for (int thread = 0; thread < 128; thread++) {
		for (int i = 0; i < 16 * p.k / 32; i++) {
			struct place at = place_a(16, p.k, p.ta, thread % 32, i);
			put_word(memory.a, thread, i, bits, p.a.bits[(thread / 32 * 16 + at.row) * p.k + at.column]);
		}
		for (int i = 0; i < p.n / 2; i++) {
			struct place at = place_d(thread, i);
			put_word(memory.d, thread, i, bits_d, p.c.bits[at.row * p.n + at.column]);
		}
	}
	for (int i = 0; i < p.m * p.k; i++)
		p.a.values[i] *= test->sign_a * test->sign_b;
	for (int i = 0; i < p.m * p.n && !test->adds; i++)
		p.c.values[i] = 0;
	wgmma_text(test, wgmma_descriptor(test), test->a_in_registers ? 4 : 0, rd, before, after);
	CUresult result = text_run(1, 128, &memory);
	for (int thread = 0; thread < 128 && !result; thread++)
		for (int i = 0; i < p.n / 2 && thread / 32 != except; i++) {
			struct place at = place_d(thread, i);
			int each = 32 / bits_d;
			check_result(&p, at.row, at.column,
				     memory.d[i / each * 128 + thread] >> (i % each * bits_d) &
					     (0xffffffffu >> (32 - bits_d)));
		}
	device_reset();
	return result;
}

START_TEST(wgmma_multiplies_matrices_in_shared_memory)
{
	use_isa(_i / WGMMA_CASES);
	ck_assert_int_eq(run_wgmma(&wgmma_cases[_i % WGMMA_CASES], "", WGMMA_COMMIT WGMMA_WAIT("0"), -1), CUDA_SUCCESS);
}
END_TEST

/* %late: whether the thread's warp is the one that is late. */
#define IS_LATE "mov.u32 %%r1, %%tid.x; shr.u32 %%r1, %%r1, 5; setp.eq.u32 %%late, %%r1, %d;\n"
/* Each thread writes NaNs to its part of a and b. */
#define OVERWRITE                                                                                                        \
	"mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2; mov.u32 %r2, area; add.u32 %r2, %r2, %r1; mov.u32 %r3, 0xffffffff;\n" \
	"CLEAR: st.shared.b32 [%r2], %r3; add.u32 %r2, %r2, 512; add.u32 %r1, %r1, 512; "                                \
	"setp.lt.u32 %p, %r1, 32768; @%p bra CLEAR;\n"

/* The code before the product. late: the warp that the code is for. */
static const char *for_late(int late, const char *code)
{
	static char text[512];
	int length = snprintf(text, sizeof text, IS_LATE, late);
	snprintf(text + length, sizeof text - (size_t)length, "%s", code);
	return text;
}

/* The warp issues the product long after the others, which change a and b when they have waited for it. */
#define DELAY                                                                                                     \
	"@!%late bra ISSUE; mov.u32 %r2, 0; DELAY: add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 50000; @%p bra DELAY;\n" \
	"ISSUE:\n"

START_TEST(wgmma_waits_for_all_warps_of_the_group)
{
	use_isa(0);
	ck_assert_int_eq(run_wgmma(&wgmma_cases[1], for_late(_i, DELAY), WGMMA_COMMIT WGMMA_WAIT("0") OVERWRITE, -1),
			 CUDA_SUCCESS);
	/* Groups without products are complete, also if only the other warps have them. */
	ck_assert_int_eq(run_wgmma(&wgmma_cases[2], for_late(_i, "@!%late " WGMMA_COMMIT DELAY),
				   WGMMA_COMMIT WGMMA_COMMIT WGMMA_COMMIT WGMMA_WAIT("2") OVERWRITE, -1), CUDA_SUCCESS);
}
END_TEST

/* The warp issues the product after the others have waited for all groups but the last, which has the product. */
START_TEST(wgmma_lets_groups_be_pending)
{
	use_isa(0);
	ck_assert_int_eq(run_wgmma(&wgmma_cases[1], for_late(_i, "@%late bar.sync 1, 128;\n"),
				   WGMMA_COMMIT WGMMA_WAIT("1") "@!%late bar.sync 1, 128;\n" WGMMA_WAIT("0") OVERWRITE, -1),
			 CUDA_SUCCESS);
	ck_assert_int_eq(run_wgmma(&wgmma_cases[1], for_late(_i, "@%late bar.sync 1, 128;\n"),
				   WGMMA_COMMIT WGMMA_COMMIT WGMMA_WAIT("100") "@!%late bar.sync 1, 128;\n" WGMMA_WAIT("1")
				   OVERWRITE, -1), CUDA_SUCCESS);
}
END_TEST

/* The warp ends, before or while the others wait for it. */
START_TEST(wgmma_does_not_wait_for_warps_that_have_ended)
{
	use_isa(0);
	ck_assert_int_eq(run_wgmma(&wgmma_cases[1], for_late(_i, "@%late ret;\n"), WGMMA_COMMIT WGMMA_WAIT("0"), _i), CUDA_SUCCESS);
	ck_assert_int_eq(run_wgmma(&wgmma_cases[1], for_late(_i, DELAY "@%late ret;\n"),
				   WGMMA_COMMIT WGMMA_WAIT("0"), _i), CUDA_SUCCESS);
}
END_TEST

/* The warp waits at a barrier for the others, which wait for its part of the product. */
START_TEST(wgmma_faults_if_a_warp_never_comes)
{
	use_isa(0);
	ck_assert_int_eq(run_wgmma(&wgmma_cases[1], for_late(_i, "@%late bar.sync 1, 128;\n"),
				   WGMMA_COMMIT WGMMA_WAIT("0") "@!%late bar.sync 1, 128;\n", -1), CUDA_ERROR_LAUNCH_FAILED);
}
END_TEST

START_TEST(wgmma_faults_if_a_descriptor_is_wrong)
{
	use_isa(_i);
	const struct wgmma_case *test = &wgmma_cases[1];
	uint64_t descriptor = wgmma_descriptor(test);
	struct {
		uint8_t *areas;
		uint32_t *a, *d;
	} memory = { device_alloc(2 * WGMMA_BYTES), device_alloc(4 * 512), device_alloc(128 * 512) };
	wgmma_text(test, descriptor, 0, 32, "", "");
	ck_assert_int_eq(text_run(1, 128, &memory), CUDA_SUCCESS);
	wgmma_text(test, descriptor | 1ull << 49, 0, 32, "", ""); /* a base offset */
	ck_assert_int_eq(text_run(1, 128, &memory), CUDA_ERROR_NOT_SUPPORTED);
	wgmma_text(test, descriptor | 0x3fffull << 32, 0, 32, "", ""); /* the second group of eight lines is far away */
	ck_assert_int_eq(text_run(1, 128, &memory), CUDA_ERROR_ILLEGAL_ADDRESS);
	device_reset();
}
END_TEST

/* ---- ldmatrix, stmatrix, movmatrix */
#define HALVES_HEAD                                                                                               \
	".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.shared .align 128 .b8 tile[1024]; " \
	".reg .b32 %r<24>; .reg .b64 %l<8>;\n"                                                                   \
	"mov.u32 %r1, %tid.x; mul.wide.u32 %l1, %r1, 16; ld.param.u64 %l2, [in]; add.u64 %l2, %l2, %l1; "        \
	"ld.param.u64 %l3, [out]; add.u64 %l3, %l3, %l1; shl.b32 %r2, %r1, 4; mov.u32 %r3, tile; "               \
	"add.u32 %r3, %r3, %r2; xor.b32 %r4, %r3, 112;\n"

/* 32 rows of halves: those that a kernel is given, and those that it leaves. */
struct rows {
	uint16_t (*in)[8], (*out)[8];
};

/* The first at random, and the beginning of the kernel's text. */
static struct rows begin_rows(void)
{
	struct rows rows = { device_alloc(512), device_alloc(512) };
	for (int n = 0; n < 256; n++)
		rows.in[n / 8][n % 8] = (uint16_t)random_bits();
	text_begin();
	say("%s", HALVES_HEAD);
	return rows;
}

START_TEST(ldmatrix_spreads_rows_over_the_warp)
{
	use_isa(_i % ISAS);
	bool transposed = _i / ISAS & 1;
	int count = 1 << _i / (2 * ISAS);
	struct rows memory = begin_rows();
	/* Each lane names the row it stored, counted the other way round in its matrix. */
	say("ld.global.v4.b32 {%%r8,%%r9,%%r10,%%r11}, [%%l2]; st.shared.v4.b32 [%%r3], {%%r8,%%r9,%%r10,%%r11}; "
	    "bar.sync 0;\nmov.b32 %%r12, 0; mov.b32 %%r13, 0; mov.b32 %%r14, 0; mov.b32 %%r15, 0;\n"
	    "ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 ", count, transposed ? ".trans" : "");
	say("{%%r12%s}, [%%r4];\n", count == 1 ? "" : count == 2 ? ",%r13" : ",%r13,%r14,%r15");
	say("st.global.v4.b32 [%%l3], {%%r12,%%r13,%%r14,%%r15}; ret;\n}\n");
	ck_assert_int_eq(text_run(1, 32, &memory), CUDA_SUCCESS);
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 8; i++) {
			int matrix = i / 2, row = lane / 4, column = lane % 4 * 2 + i % 2;
			uint16_t want = transposed ? memory.in[matrix * 8 + 7 - column][row] :
						     memory.in[matrix * 8 + 7 - row][column];
			ck_assert_uint_eq(memory.out[lane][i], matrix < count ? want : 0);
		}
}
END_TEST

START_TEST(stmatrix_gathers_rows_from_the_warp)
{
	use_isa(_i % ISAS);
	bool transposed = _i / ISAS & 1;
	int count = 1 << _i / (2 * ISAS);
	struct rows memory = begin_rows();
	say("mov.b32 %%r8, 0; st.shared.v4.b32 [%%r3], {%%r8,%%r8,%%r8,%%r8}; "
	    "ld.global.v4.b32 {%%r8,%%r9,%%r10,%%r11}, [%%l2]; bar.sync 0;\n"
	    "stmatrix.sync.aligned.m8n8.x%d%s.shared::cta.b16 ", count, transposed ? ".trans" : "");
	say("[%%r4], {%%r8%s};\n", count == 1 ? "" : count == 2 ? ",%r9" : ",%r9,%r10,%r11");
	say("bar.sync 0; ld.shared.v4.b32 {%%r12,%%r13,%%r14,%%r15}, [%%r3]; "
	    "st.global.v4.b32 [%%l3], {%%r12,%%r13,%%r14,%%r15}; ret;\n}\n");
	ck_assert_int_eq(text_run(1, 32, &memory), CUDA_SUCCESS);
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 8; i++) {
			int matrix = lane / 8, row = 7 - lane % 8, a = transposed ? i : row, b = transposed ? row : i;
			uint16_t want = memory.in[a * 4 + b / 2][matrix * 2 + b % 2];
			ck_assert_uint_eq(memory.out[lane][i], matrix < count ? want : 0);
		}
}
END_TEST

START_TEST(movmatrix_transposes)
{
	use_isa(_i);
	struct rows memory = begin_rows();
	say("ld.global.b32 %%r8, [%%l2]; movmatrix.sync.aligned.m8n8.trans.b16 %%r8, %%r8; st.global.b32 [%%l3], %%r8; "
	    "ret;\n}\n");
	ck_assert_int_eq(text_run(1, 32, &memory), CUDA_SUCCESS);
	for (int row = 0; row < 8; row++)
		for (int column = 0; column < 8; column++)
			ck_assert_uint_eq(memory.out[row * 4 + column / 2][column % 2],
					  memory.in[column * 4 + row / 2][row % 2]);
}
END_TEST

int main(void)
{
	TCase *cases = test_case("ptx matrix");
	tcase_add_loop_test(cases, mma_multiplies_what_its_fragments_hold, 0, ISAS * MMA_CASES);
	tcase_add_loop_test(cases, sparse_products_take_the_elements_that_the_metadata_names, 0,
			    ISAS * 4 * SPARSE_CASES);
	tcase_add_loop_test(cases, sparse_products_ignore_the_rest_of_b, 0, ISAS);
	tcase_add_loop_test(cases, small_products_belong_to_quad_pairs, 0, ISAS * 8);
	tcase_add_loop_test(cases, products_of_special_values, 0, ISAS);
	tcase_add_loop_test(cases, wmma_agrees_with_the_matrices_in_memory, 0, ISAS * WMMA_CASES);
	tcase_add_loop_test(cases, a_matrix_that_ends_outside_its_memory_is_a_fault, 0, ISAS);
	tcase_add_loop_test(cases, wgmma_multiplies_matrices_in_shared_memory, 0, ISAS * WGMMA_CASES);
	tcase_add_loop_test(cases, wgmma_waits_for_all_warps_of_the_group, 0, 4);
	tcase_add_loop_test(cases, wgmma_lets_groups_be_pending, 0, 4);
	tcase_add_loop_test(cases, wgmma_does_not_wait_for_warps_that_have_ended, 0, 4);
	tcase_add_loop_test(cases, wgmma_faults_if_a_warp_never_comes, 0, 4);
	tcase_add_loop_test(cases, wgmma_faults_if_a_descriptor_is_wrong, 0, ISAS);
	tcase_add_loop_test(cases, ldmatrix_spreads_rows_over_the_warp, 0, ISAS * 6);
	tcase_add_loop_test(cases, stmatrix_gathers_rows_from_the_warp, 0, ISAS * 6);
	tcase_add_loop_test(cases, movmatrix_transposes, 0, ISAS);
	return run_tests();
}
