/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ld.param, st.param and ld.const of every type, into registers of the type's width and of each wider one, at every
 * place of 32 bytes: of a kernel by name and by address, of a function, of a constant variable; and vectors of two and
 * four.
 */
#include "test/cuda/softgpu/ptx/engine.h"

#include <stdlib.h>
#include <string.h>

#define BYTES 32

static const struct {
	const char *type;
	unsigned width; /* bytes */
	bool is_signed, is_float;
} kinds[] = {
	{ "b8", 1, false, false },  { "u8", 1, false, false },	{ "s8", 1, true, false },  { "b16", 2, false, false },
	{ "u16", 2, false, false }, { "s16", 2, true, false },	{ "b32", 4, false, false }, { "u32", 4, false, false },
	{ "s32", 4, true, false },  { "f32", 4, false, true },	{ "b64", 8, false, false }, { "u64", 8, false, false },
	{ "s64", 8, true, false },  { "f64", 8, false, true },
};

/* Odd bytes are negative as signed ones. */
static uint8_t byte_at(unsigned n)
{
	return (uint8_t)(n * 5 + 3 + (n % 2 ? 128 : 0));
}

/* Registers that a kind goes into: bits from the first to the last, doubling. */
static unsigned first_bits(int kind)
{
	return kinds[kind].width < 2 ? 16 : 8 * kinds[kind].width;
}

static unsigned last_bits(int kind)
{
	return kinds[kind].is_float ? 8 * kinds[kind].width : 64;
}

/* Registers of so many bits have this letter. */
static char letter_of(unsigned bits)
{
	return bits == 64 ? 'l' : bits == 32 ? 'w' : 'h';
}

/* Register x of so many bits, as 64 bits to the next word of the output. */
static void put_result(const char *x, unsigned bits, unsigned word)
{
	if (bits == 64)
		say(" st.global.b64 [out+%u], %s;\n", 8 * word, x);
	else
		say(" cvt.u64.u%u wide, %s; st.global.b64 [out+%u], wide;\n", bits, x, 8 * word);
}

/* What a load of a kind at offset leaves in a register of so many bits, zeros above. */
static uint64_t loaded(int kind, unsigned offset, unsigned bits)
{
	uint64_t value = 0;
	unsigned width = kinds[kind].width;
	for (unsigned n = 0; n < width; n++)
		value |= (uint64_t)byte_at(offset + n) << 8 * n;
	if (kinds[kind].is_signed && width < 8 && value >> (8 * width - 1))
		value |= UINT64_MAX << 8 * width;
	return bits == 64 ? value : value & ((1ull << bits) - 1);
}

static void put_start(void)
{
	text_begin();
	say(".const .align 16 .b8 c[%u] = { ", BYTES);
	for (unsigned n = 0; n < BYTES; n++)
		say("%s%u", n ? ", " : "", byte_at(n));
	say(" };\n");
}

static void put_kernel(void)
{
	say(".visible .entry k(.param .u64 p, .param .align 16 .b8 s[%u])\n{\n.reg .b64 out, at, wide, l<4>;\n"
	    ".reg .b32 w<4>; .reg .b16 h<4>; ld.param.u64 out, [p];\n", BYTES);
}

static const uint64_t *run(size_t words)
{
	struct {
		void *out;
		_Alignas(16) uint8_t bytes[BYTES];
	} parameters = { .out = device_alloc(words * 8) };
	for (unsigned n = 0; n < BYTES; n++)
		parameters.bytes[n] = byte_at(n);
	ck_assert_int_eq(text_run(1, 1, &parameters), CUDA_SUCCESS);
	return parameters.out;
}

START_TEST(a_kernel_reads_its_parameters_and_constants)
{
	static const char *const from[] = {
		"ld.param.%s %s, [s+%u];", "ld.const.%s %s, [c+%u];",
		"mov.b64 at, s; ld.param.%s %s, [at+%u];", "mov.b64 at, c; ld.const.%s %s, [at+%u];",
	};
	unsigned word = 0, width = kinds[_i].width;
	put_start();
	put_kernel();
	for (unsigned offset = 0; offset < BYTES; offset += width)
		for (unsigned bits = first_bits(_i); bits <= last_bits(_i); bits *= 2)
			for (unsigned n = 0; n < 4; n++, word++) {
				const char x[] = { letter_of(bits), '0', 0 };
				say(from[n], kinds[_i].type, x, offset);
				put_result(x, bits, word);
			}
	say("ret;\n}\n");
	const uint64_t *out = run(word);
	for (unsigned offset = 0; offset < BYTES; offset += width)
		for (unsigned bits = first_bits(_i); bits <= last_bits(_i); bits *= 2)
			for (unsigned n = 0; n < 4; n++, out++)
				ck_assert_msg(*out == loaded(_i, offset, bits), "%s of %s at %u to %u bits: %llx",
					      from[n], kinds[_i].type, offset, bits, (unsigned long long)*out);
}
END_TEST

START_TEST(vectors_of_parameters_and_constants_keep_their_order)
{
	static const char *const from[] = { "ld.param.v%u.%s {%c0, %c1", "ld.const.v%u.%s {%c0, %c1" };
	unsigned word = 0, width = kinds[_i].width, bits = first_bits(_i);
	const char letter = letter_of(bits);
	put_start();
	put_kernel();
	for (unsigned count = 2; count <= 4 && count * width <= 16; count += 2)
		for (unsigned offset = 0; offset < BYTES; offset += count * width)
			for (unsigned n = 0; n < 2; n++, word += count) {
				say(from[n], count, kinds[_i].type, letter, letter);
				if (count == 4)
					say(", %c2, %c3", letter, letter);
				say("}, [%s+%u];", n ? "c" : "s", offset);
				for (unsigned e = 0; e < count; e++) {
					const char x[] = { letter, (char)('0' + e), 0 };
					put_result(x, bits, word + e);
				}
			}
	say("ret;\n}\n");
	const uint64_t *out = run(word);
	for (unsigned count = 2; count <= 4 && count * width <= 16; count += 2)
		for (unsigned offset = 0; offset < BYTES; offset += count * width)
			for (unsigned n = 0; n < 2; n++)
				for (unsigned e = 0; e < count; e++, out++)
					ck_assert_msg(*out == loaded(_i, offset + e * width, bits),
						      "element %u of v%u.%s at %u: %llx", e, count, kinds[_i].type,
						      offset, (unsigned long long)*out);
}
END_TEST

/* f gives its parameter's value at an offset; the whole of it, in two words, is the same after it was copied there. */
static void put_function(unsigned number, const char *type, unsigned bits, unsigned offset)
{
	say(".func (.param .align 16 .b8 r[48]) f%u(.param .align 16 .b8 s[%u])\n{\n.reg .b%u x; .reg .b64 wide;\n"
	    "ld.param.%s x, [s+%u]; ", number, BYTES, bits, type, offset);
	say(bits == 64 ? "st.param.b64 [r+32], x;\n" : "cvt.u64.u%u wide, x; st.param.b64 [r+32], wide;\n", bits);
	for (unsigned n = 0; n < BYTES; n += 8)
		say("ld.param.b64 wide, [s+%u]; st.param.b64 [r+%u], wide;\n", n, n);
	say("ret;\n}\n");
}

START_TEST(a_call_hands_over_each_type_and_no_more)
{
	const char *type = kinds[_i].type;
	unsigned width = kinds[_i].width, bits = first_bits(_i), calls = BYTES / width;
	put_start();
	for (unsigned n = 0; n < calls; n++)
		put_function(n, type, bits, n * width);
	put_kernel();
	for (unsigned n = 0; n < calls; n++) {
		say("{\n.param .align 16 .b8 a[%u]; .param .align 16 .b8 r[48];\nmov.b64 wide, -1;\n", BYTES);
		for (unsigned at = 0; at < BYTES; at += 8)
			say("st.param.b64 [a+%u], wide; ", at);
		say("ld.param.%s %c0, [s+%u]; st.param.%s [a+%u], %c0;\ncall (r), f%u, (a);\n", type, letter_of(bits),
		    n * width, type, n * width, letter_of(bits), n);
		for (unsigned at = 0; at < 40; at += 8)
			say("ld.param.b64 wide, [r+%u]; st.global.b64 [out+%u], wide; ", at, n * 40 + at);
		say("}\n");
	}
	say("ret;\n}\n");
	const uint64_t *out = run(calls * 5);
	for (unsigned n = 0; n < calls; n++, out += 5) {
		uint8_t want[BYTES];
		memset(want, 0xff, sizeof want);
		for (unsigned b = 0; b < width; b++)
			want[n * width + b] = byte_at(n * width + b);
		ck_assert_msg(!memcmp(out, want, BYTES), "st.param.%s at %u wrote something else", type, n * width);
		ck_assert_msg(out[4] == loaded(_i, n * width, bits), "ld.param.%s at %u gives %llx", type, n * width,
			      (unsigned long long)out[4]);
	}
}
END_TEST

int main(void)
{
	const int count = sizeof kinds / sizeof *kinds;
	TCase *cases = test_case("ptx parameters");
	tcase_add_loop_test(cases, a_kernel_reads_its_parameters_and_constants, 0, count);
	tcase_add_loop_test(cases, vectors_of_parameters_and_constants_keep_their_order, 0, count);
	tcase_add_loop_test(cases, a_call_hands_over_each_type_and_no_more, 0, count);
	return run_tests();
}
