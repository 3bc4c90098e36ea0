/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that device code calls without defining them: vprintf, malloc, free, __assertfail,
 * cudaGraphSetConditional (CUDA C++ Programming Guide, "Formatted Output", "Dynamic Global Memory Allocation",
 * "Assertion").
 */
#define _GNU_SOURCE /* asprintf */
#include "cuda_remote/softgpu/memory_map.h"

#include "cuda_remote/softgpu/exec/call_frame.h"
#include "cuda_remote/softgpu/exec/check/check.h"
#include "cuda_remote/softgpu/exec/output.h"
#include "cuda_remote/softgpu/exec/warp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_MAX 1024 /* of a conversion, and of texts that need no memory of their own */
#define TEXT_MAX ((size_t)1 << 20) /* of a format, a string that it prints, a width and a precision; the rest is cut off */
#define ARGUMENTS_MAX 32 /* CUDA C++ Programming Guide, "Formatted Output": further arguments are ignored */

__attribute__((format(printf, 2, 3))) static void print_format(struct print_buffer *print, const char *format, ...)
{
	char piece[PIECE_MAX];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(piece, sizeof piece, format, args);
	va_end(args);
	if (n > 0)
		output_append(print, piece, (size_t)n < sizeof piece ? (size_t)n : sizeof piece - 1);
}

/* A conversion of a string: it can be longer than a piece. */
__attribute__((format(printf, 2, 0))) static void print_text(struct print_buffer *print, const char *format,
							     const char *text)
{
	char *whole;
	int n = asprintf(&whole, format, text);
	if (n < 0) {
		print_format(print, format, text);
		return;
	}
	output_append(print, whole, (size_t)n);
	free(whole);
}

/* A string in the device's memory, at most size - 1 of it; false if it goes on outside every allocation. */
static bool read_string(struct warp *warp, int lane, uint64_t address, char *text, size_t size)
{
	size_t n = 0;
	for (; n < size - 1; n++) {
		const char *p = memory_translate(warp, lane, address + n, 1, false);
		if (!p)
			return false;
		if (!*p)
			break;
		text[n] = *p;
	}
	text[n] = '\0';
	return true;
}

/*
 * A string in the device's memory: in place if it fits, else in memory that the caller frees. NULL: it goes on outside every
 * allocation. Without host memory for it, it is cut off.
 */
static char *read_text(struct warp *warp, int lane, uint64_t address, char place[PIECE_MAX])
{
	char *text = place;
	size_t size = PIECE_MAX;
	for (;;) {
		if (!read_string(warp, lane, address, text, size)) {
			if (text != place)
				free(text);
			return NULL;
		}
		if (strlen(text) < size - 1 || size >= TEXT_MAX)
			return text;
		char *larger = malloc(size * 4);
		if (!larger)
			return text;
		if (text != place)
			free(text);
		text = larger;
		size *= 4;
	}
}

/* The arguments of one lane's printf: packed, each at its natural alignment. */
struct arguments {
	struct warp *warp;
	int lane;
	uint64_t at;
	bool failed;
	int taken;
};

static uint64_t next_argument(struct arguments *arguments, uint32_t size)
{
	uint64_t value = 0;
	arguments->at = (arguments->at + size - 1) & ~(uint64_t)(size - 1);
	const char *p = memory_translate(arguments->warp, arguments->lane, arguments->at, size, false);
	if (p)
		memcpy(&value, p, size);
	arguments->failed |= !p;
	arguments->at += size;
	arguments->taken++;
	return value;
}

/* A conversion for the host's printf: the program's flags, width and precision, then a length and a letter for the
 * host. */
struct conversion {
	char spec[48];
	size_t used;
	int longs, shorts;
	bool overflow;
};

static void spec_put(struct conversion *conversion, char c)
{
	if (conversion->used + 4 < sizeof conversion->spec)
		conversion->spec[conversion->used++] = c;
	else
		conversion->overflow = true;
}

/* The host's printf needs as much memory as a width says, so numbers are limited. */
static void spec_put_number(struct conversion *conversion, int64_t number)
{
	const int64_t most = TEXT_MAX;
	char digits[16];
	int n = snprintf(digits, sizeof digits, "%d", (int)(number > most ? most : number < -most ? -most : number));
	for (int i = 0; i < n; i++)
		spec_put(conversion, digits[i]);
}

/* Reads a number of digits; returns a pointer to its last one. */
static const char *read_number(struct conversion *conversion, const char *p)
{
	int64_t number = 0;
	for (;; p++) {
		if (number <= (int64_t)TEXT_MAX)
			number = number * 10 + (*p - '0');
		if (p[1] < '0' || p[1] > '9')
			break;
	}
	spec_put_number(conversion, number);
	return p;
}

/* Reads "%..." up to the letter; returns a pointer to the letter. */
static const char *read_spec(struct conversion *conversion, const char *p, struct arguments *arguments)
{
	memset(conversion, 0, sizeof *conversion);
	spec_put(conversion, *p++);
	for (; *p && strchr("-+ #0123456789.*", *p); p++) {
		if (*p == '*' && arguments->taken < ARGUMENTS_MAX)
			spec_put_number(conversion, (int32_t)next_argument(arguments, 4));
		else if (*p >= '1' && *p <= '9')
			p = read_number(conversion, p);
		else
			spec_put(conversion, *p);
	}
	for (; *p && strchr("hlLqjzt", *p); p++) {
		conversion->longs += *p != 'h' && *p != 'L';
		conversion->shorts += *p == 'h';
	}
	return p;
}

/* As in C, an argument is an int or longer; of h and hh only its low bits count. */
static uint64_t next_integer(const struct conversion *conversion, bool is_signed, struct arguments *arguments)
{
	uint32_t unused = conversion->longs ? 0 : conversion->shorts > 1 ? 56 : conversion->shorts ? 48 : 32;
	uint64_t value = next_argument(arguments, conversion->longs ? 8 : 4) << unused;
	return is_signed ? (uint64_t)((int64_t)value >> unused) : value >> unused;
}

static void print_string(struct print_buffer *print, const char *spec, struct arguments *arguments)
{
	char place[PIECE_MAX] = "(null)", *text = place;
	uint64_t address = next_argument(arguments, 8);
	if (address)
		text = read_text(arguments->warp, arguments->lane, address, place);
	arguments->failed |= !text;
	if (!arguments->failed)
		print_text(print, spec, text);
	if (text != place)
		free(text);
}

/* read_spec built the spec: it has only flags, numbers and one conversion, for the one argument passed. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
static void print_conversion(struct print_buffer *print, struct conversion *conversion, char letter,
			     struct arguments *arguments)
{
	char *spec = conversion->spec;
	size_t used = conversion->used;
	bool is_integer = strchr("diouxX", letter) != NULL;
	if (is_integer) {
		spec[used++] = 'l';
		spec[used++] = 'l';
	}
	spec[used++] = letter;
	spec[used] = '\0';
	if (is_integer) {
		bool is_signed = letter == 'd' || letter == 'i';
		print_format(print, spec, (long long)next_integer(conversion, is_signed, arguments));
	} else if (strchr("fFeEgGaA", letter)) {
		uint64_t bits = next_argument(arguments, 8);
		double value;
		memcpy(&value, &bits, sizeof value);
		print_format(print, spec, value);
	} else if (letter == 'c') {
		print_format(print, spec, (int)(char)next_argument(arguments, 4));
	} else if (letter == 'p') {
		print_format(print, spec, (void *)(uintptr_t)next_argument(arguments, 8));
	} else if (letter == 's') {
		print_string(print, spec, arguments);
	}
}
#pragma GCC diagnostic pop

static int print_formatted(struct warp *warp, int lane, const char *format, uint64_t argument_address)
{
	struct print_buffer *print = &warp->block->print;
	struct arguments arguments = { warp, lane, argument_address, false, 0 };
	for (const char *p = format; *p; p++) {
		if (*p != '%' || p[1] == '%' || !p[1]) {
			output_append(print, p, 1);
			p += *p == '%' && p[1] == '%';
			continue;
		}
		struct conversion conversion;
		const char *start = p;
		p = read_spec(&conversion, p, &arguments);
		if (!*p || !strchr("diouxXfFeEgGaAcps", *p) || conversion.overflow ||
		    arguments.taken >= ARGUMENTS_MAX) {
			/* As CUDA does: text that is no conversion, or a conversion without an argument, is printed
			 * unchanged. */
			output_append(print, start, (size_t)(p - start) + (*p != 0));
			if (!*p)
				break;
			continue;
		}
		print_conversion(print, &conversion, *p, &arguments);
		if (arguments.failed)
			return -2;
	}
	return arguments.taken;
}

/* The number of arguments; -2: a string is outside every allocation. */
static int print_lane(struct warp *warp, int lane, uint64_t format_address, uint64_t argument_address)
{
	char place[PIECE_MAX], *format = read_text(warp, lane, format_address, place);
	int count = format ? print_formatted(warp, lane, format, argument_address) : -2;
	if (format != place)
		free(format);
	return count;
}

/* ---- the functions */
const struct insn *op_vprintf(struct warp *warp, const struct insn *insn)
{
	struct print_buffer *print = &warp->block->print;
	for_each_lane(lane, warp->mask) {
		uint64_t format = call_argument(warp, insn, lane, 0);
		if (!format) {
			call_set_result(warp, insn, lane, (uint64_t)-1);
			continue;
		}
		size_t record = output_begin(print);
		int count = print_lane(warp, (int)lane, format, call_argument(warp, insn, lane, 1));
		if (count == -2) {
			output_end(warp->block, record, 0);
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS,
					  "printf of a string outside every allocation", format);
		}
		output_end(warp->block, record, (uint32_t)count);
		call_set_result(warp, insn, lane, (uint64_t)(int64_t)count);
	}
	return insn + 1;
}

const struct insn *op_malloc(struct warp *warp, const struct insn *insn)
{
	struct softgpu_heap *heap = warp->block->launch->request->limits.heap;
	for_each_lane(lane, warp->mask) {
		uint64_t size = call_argument(warp, insn, lane, 0), address = softgpu_heap_alloc(heap, size);
		check_forget(warp->block->launch, address, size);
		call_set_result(warp, insn, lane, address);
	}
	return insn + 1;
}

const struct insn *op_free(struct warp *warp, const struct insn *insn)
{
	struct softgpu_heap *heap = warp->block->launch->request->limits.heap;
	for_each_lane(lane, warp->mask) {
		uint64_t address = call_argument(warp, insn, lane, 0);
		if (address && !softgpu_heap_free(heap, address))
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS,
					  "free of an address that malloc did not return", address);
	}
	return insn + 1;
}

/* cudaGraphSetConditional(handle, value): engine.h says what a handle is. */
const struct insn *op_set_conditional(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask) {
		softgpu_span_t span;
		uint64_t handle = call_argument(warp, insn, lane, 0);
		softgpu_conditional_t *conditional = (softgpu_conditional_t *)(uintptr_t)handle;
		if (!softgpu_memory_find(handle, &span) || span.base != handle || span.size != sizeof *conditional ||
		    conditional->check != SOFTGPU_CONDITIONAL_CHECK)
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS,
					  "cudaGraphSetConditional of an invalid conditional handle", handle);
		__atomic_store_n(&conditional->value, (uint32_t)call_argument(warp, insn, lane, 1), __ATOMIC_RELAXED);
	}
	return insn + 1;
}

static void print_assertion(struct warp *warp, const struct insn *insn, uint32_t lane)
{
	char message[256] = "?", file[256] = "?", function[256] = "?";
	const struct block *block = warp->block;
	uint32_t(*const ids)[WARP_LANES] = block->launch->thread_ids[warp->index];
	read_string(warp, (int)lane, call_argument(warp, insn, lane, 0), message, sizeof message);
	read_string(warp, (int)lane, call_argument(warp, insn, lane, 1), file, sizeof file);
	read_string(warp, (int)lane, call_argument(warp, insn, lane, 3), function, sizeof function);
	fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
		(uint32_t)call_argument(warp, insn, lane, 2), function, block->index[0], block->index[1], block->index[2],
		ids[0][lane], ids[1][lane], ids[2][lane], message);
}

/* __assertfail(message, file, line, function, char size): each lane that fails prints a line, as on a GPU. */
const struct insn *op_assertfail(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask)
		print_assertion(warp, insn, lane);
	return warp_fault(warp, insn, __builtin_ctz(warp->mask), CUDA_ERROR_ASSERT, "assertion failed", 0);
}
