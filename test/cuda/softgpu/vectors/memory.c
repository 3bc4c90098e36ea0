/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads, stores and atomics of memory that is the thread's own. The first sources are the 16 bytes that are there
 * before, or of an atomic the one value; the immediate is the offset.
 */
#include "config.h"

#include "test/cuda/softgpu/vectors/vectors.h"

#include <stdlib.h>
#include <string.h>

struct access {
	unsigned bytes, count; /* of an element; elements */
	bool is_signed;
};

static struct access access_of(const struct words *words)
{
	const char *type = words_last(words, 0);
	unsigned count = words_have(words, "v2") ? 2 : words_have(words, "v4") ? 4 : 1;
	return (struct access){ (unsigned)atoi(type + 1) / 8, count, type[0] == 's' };
}

static void load(const struct form *form, const struct access *access, const uint64_t *in, struct outcome *out)
{
	const unsigned char *bytes = (const unsigned char *)in + form->immediate;
	if (strstr(form->text, "{%t")) /* the first two of four go elsewhere */
		bytes += 2 * access->bytes;
	for (unsigned n = 0; form->results[n]; n++) {
		uint64_t value = 0;
		for (unsigned i = 0; i < access->bytes; i++)
			value |= (uint64_t)bytes[n * access->bytes + i] << 8 * i;
		unsigned width = letter_width(form->results[n]);
		if (access->is_signed && access->bytes < 8 && value >> (8 * access->bytes - 1))
			value |= UINT64_MAX << 8 * access->bytes;
		outcome_exact(&out[n], width == 64 ? value : value & ((1ull << width) - 1), width);
	}
}

/* v4 stores the two values twice, the second time in either order. */
static void store(const struct form *form, const struct access *access, const uint64_t *in, struct outcome *out)
{
	uint64_t memory[2] = { in[0], in[1] };
	unsigned char *bytes = (unsigned char *)memory + form->immediate;
	bool turned = strstr(form->text, "$5, $5") != NULL;
	for (unsigned n = 0; n < access->count; n++)
		for (unsigned i = 0; i < access->bytes; i++)
			bytes[n * access->bytes + i] = (unsigned char)(in[2 + (n % 2 ^ (turned && n > 1))] >> 8 * i);
	outcome_exact(&out[0], memory[0], 64);
	outcome_exact(&out[1], memory[1], 64);
}

static uint64_t changed(const char *op, bool is_signed, unsigned width, uint64_t r, uint64_t s, uint64_t t)
{
	unsigned unused = 64 - width;
	bool less = is_signed ? (int64_t)(r << unused) < (int64_t)(s << unused) : r < s;
	if (!strcmp(op, "add"))
		return r + s;
	if (!strcmp(op, "min"))
		return less ? r : s;
	if (!strcmp(op, "max"))
		return less ? s : r;
	if (!strcmp(op, "and"))
		return r & s;
	if (!strcmp(op, "or"))
		return r | s;
	if (!strcmp(op, "xor"))
		return r ^ s;
	if (!strcmp(op, "inc"))
		return r >= s ? 0 : r + 1;
	if (!strcmp(op, "dec"))
		return r == 0 || r > s ? s : r - 1;
	return !strcmp(op, "cas") ? (r == s ? t : r) : s;
}

static const char *operation_of(const struct words *words)
{
	static const char *const all[] = { "add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas" };
	for (size_t n = 0; n < sizeof all / sizeof *all; n++)
		if (words_have(words, all[n]))
			return all[n];
	return "";
}

/* What is there afterwards, of floats as add has it; of single precision on global memory with .ftz. */
static bool add_floats(const struct words *words, char letter, const uint64_t *in, struct outcome *out)
{
#ifdef HAVE_MPFR
	const char results[] = { letter, 0 }, sources[] = { letter, letter, 0 };
	struct words sum = { .opcode = "add", .count = 1 };
	struct form form = { .mnemonic = "add", .results = results, .sources = sources, .text = "" };
	if (letter == 'f' && !words_have(words, "shared"))
		strcpy(sum.word[0], "ftz");
	return float_reference(&form, &sum, in, out);
#else
	(void)words, (void)letter, (void)in, (void)out;
	return false;
#endif
}

static bool atomic(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	char letter = form->results[0];
	unsigned width = letter_width(letter), last = form->results[1] ? 1 : 0;
	uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1;
	if (last)
		outcome_exact(&out[0], in[0], width);
	if (strchr("fdexby", letter))
		return add_floats(words, letter, in, &out[last]);
	uint64_t r = changed(operation_of(words), words_last(words, 0)[0] == 's', width, in[0], in[1], in[2]);
	outcome_exact(&out[last], r & mask, width);
	return true;
}

bool memory_reference(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out)
{
	struct access access = access_of(words);
	if (!strcmp(words->opcode, "atom") || !strcmp(words->opcode, "red"))
		return atomic(form, words, in, out);
	if (!strcmp(words->opcode, "ld") || !strcmp(words->opcode, "ldu"))
		load(form, &access, in, out);
	else if (!strcmp(words->opcode, "st"))
		store(form, &access, in, out);
	else if (!strcmp(words->opcode, "fence") || !strcmp(words->opcode, "membar") ||
		 !strcmp(words->opcode, "nanosleep") || !strcmp(words->opcode, "prefetch"))
		outcome_exact(out, in[0], 32); /* what was stored before, or the source */
	else
		return false;
	return true;
}
