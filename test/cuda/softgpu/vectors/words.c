/* SPDX-License-Identifier: BSD-3-Clause */
/* Mnemonics in parts, floating-point formats, and what a result may be. */
#include "test/cuda/softgpu/vectors/vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void words_of(const char *mnemonic, struct words *words)
{
	memset(words, 0, sizeof *words);
	const char *at = mnemonic, *dot = strchr(at, '.');
	size_t length = dot ? (size_t)(dot - at) : strlen(at);
	if (length >= sizeof words->opcode)
		abort();
	memcpy(words->opcode, at, length);
	while (dot && words->count < WORDS_MAX) {
		at = dot + 1;
		dot = strchr(at, '.');
		length = dot ? (size_t)(dot - at) : strlen(at);
		if (length >= sizeof words->word[0])
			abort();
		memcpy(words->word[words->count++], at, length);
	}
}

bool words_have(const struct words *words, const char *word)
{
	for (unsigned n = 0; n < words->count; n++)
		if (!strcmp(words->word[n], word))
			return true;
	return false;
}

const char *words_last(const struct words *words, unsigned n)
{
	return n < words->count ? words->word[words->count - 1 - n] : "";
}

static const struct format formats[] = {
	{ "f16", 16, 11, 15, true, true, 0x7fff, 0x7bff },
	{ "bf16", 16, 8, 127, true, true, 0x7fff, 0x7f7f },
	{ "f32", 32, 24, 127, true, true, 0x7fffffff, 0x7f7fffff },
	{ "f64", 64, 53, 1023, true, true, 0xfff8000000000000, 0x7fefffffffffffff },
	{ "tf32", 19, 11, 127, true, true, 0x3ffff, 0x3fbff },
	{ "e4m3", 8, 4, 7, false, true, 0x7f, 0x7e },
	{ "e5m2", 8, 3, 15, true, true, 0x7f, 0x7b },
	{ "e2m3", 6, 4, 1, false, false, 0, 0x1f },
	{ "e3m2", 6, 3, 3, false, false, 0, 0x1f },
	{ "e2m1", 4, 2, 1, false, false, 0, 0x7 },
};

const struct format *format_of(const char *name)
{
	size_t length = strlen(name);
	/* x2, x4: as many of the format */
	if (length > 2 && name[length - 2] == 'x')
		length -= 2;
	for (size_t n = 0; n < sizeof formats / sizeof *formats; n++)
		if (strlen(formats[n].name) == length && !strncmp(formats[n].name, name, length))
			return &formats[n];
	return NULL;
}

const struct format *format_of_letter(char letter)
{
	switch (letter) {
	case 'e': case 'x': return format_of("f16");
	case 'b': case 'y': return format_of("bf16");
	case 'f': case 'q': return format_of("f32");
	case 'd': return format_of("f64");
	default: return NULL;
	}
}

bool format_is_nan(const struct format *format, uint64_t bits)
{
	uint64_t magnitude = bits & ((1ull << (format->width - 1)) - 1);
	if (!format->has_nan)
		return false;
	/* e4m3 has one NaN, all ones; the others those above infinity. */
	return format->has_infinity ? magnitude > format->largest + 1 : magnitude > format->largest;
}

double format_value(const struct format *format, uint64_t bits)
{
	uint64_t sign = bits >> (format->width - 1) & 1, magnitude = bits & ((1ull << (format->width - 1)) - 1);
	unsigned fraction = format->precision - 1;
	int exponent = (int)(magnitude >> fraction);
	uint64_t significand = magnitude & ((1ull << fraction) - 1);
	double value;
	if (format_is_nan(format, bits))
		return NAN;
	if (format->has_infinity && magnitude == format->largest + 1)
		value = INFINITY;
	else if (exponent == 0)
		value = ldexp((double)significand, 1 - format->bias - (int)fraction);
	else
		value = ldexp((double)(significand | 1ull << fraction), exponent - format->bias - (int)fraction);
	return sign ? -value : value;
}

unsigned letter_width(char letter)
{
	switch (letter) {
	case 'p': return 0;
	case 'h': case 'e': case 'b': case 't': return 16;
	case 'w': case 'f': case 'x': case 'y': case 'v': return 32;
	default: return 64;
	}
}

static bool element_holds(const struct element *element, uint64_t got)
{
	uint64_t mask = element->width < 64 ? (1ull << element->width) - 1 : UINT64_MAX;
	uint64_t bits = got >> element->shift & mask;
	switch (element->rule) {
	case RULE_EXACT: return bits == (element->bits & mask);
	case RULE_NAN: return format_is_nan(element->format, bits);
	case RULE_ZERO: return (bits & (mask >> 1)) == 0;
	case RULE_WITHIN: {
		double value = format_value(element->format, bits);
		return value >= element->low && value <= element->high;
	}
	default: return true;
	}
}

bool outcome_holds(const struct outcome *outcome, uint64_t got)
{
	for (unsigned n = 0; n < outcome->count; n++)
		if (!element_holds(&outcome->element[n], got))
			return false;
	return true;
}

void outcome_exact(struct outcome *outcome, uint64_t bits, unsigned width)
{
	outcome->count = 1;
	outcome->element[0] = (struct element){ .rule = RULE_EXACT, .width = width ? width : 1, .bits = bits };
}
