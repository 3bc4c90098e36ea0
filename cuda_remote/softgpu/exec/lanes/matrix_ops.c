/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The multiplication of mma, wmma and wgmma, compiled once for each instruction set. Floats other than f64 are multiplied and
 * summed in double, where each product is exact, and rounded once at the end: PTX asks for no less than single
 * precision and leaves the order open. f64 fuses, in the order of k. The integers' sum is exact before it wraps or
 * saturates. mma.sp reads only those rows of b that the metadata names: an infinity in another row changes nothing.
 */
#include "cuda_remote/softgpu/exec/async/warpgroup.h"
#include "cuda_remote/softgpu/exec/lanes/lanes.h"
#include "cuda_remote/softgpu/exec/matrix.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#define ELEMENTS_MAX 1024
#define SUMS_MAX 256

typedef double doubles __attribute__((vector_size(64), may_alias));
typedef int32_t integers __attribute__((vector_size(32), may_alias));

static inline float float_of_e4m3(uint32_t bits)
{
	uint32_t magnitude = bits & 127, sign = (bits & 128) << 24;
	/* Shifted into a float, the exponent is 120 too small. The product is right for subnormal numbers too. */
	float value = f32_of_bits(magnitude << 20) * 0x1p120f;
	return f32_of_bits(sign | (magnitude == 127 ? 0x7fffffffu : bits_of_f32(value)));
}

static inline double value_of(uint8_t type, uint32_t bits)
{
	switch (type) {
	case MATRIX_F16: return (double)float_of((uint16_t)bits);
	case MATRIX_BF16: return (double)float_of_bfloat((uint16_t)bits);
	case MATRIX_E4M3: return (double)float_of_e4m3(bits & 255);
	case MATRIX_E5M2: return (double)float_of((uint16_t)(bits << 8));
	case MATRIX_TF32: return (double)f32_of_bits((bits & 0x7fffffffu) > 0x7f800000u ? bits : bits & 0xffffe000u);
	default: return (double)f32_of_bits(bits);
	}
}

static inline int32_t integer_of(uint8_t type, uint32_t bits)
{
	switch (type) {
	case MATRIX_S8: return (int8_t)bits;
	case MATRIX_U8: return (int32_t)(bits & 255);
	case MATRIX_S4: return (int32_t)(bits << 28) >> 28;
	case MATRIX_U4: return (int32_t)(bits & 15);
	default: return (int32_t)bits;
	}
}

/* One loop for each type, so that the compiler sees which conversion it is. */
#define UNPACK(type_name, convert)                                                                \
	case type_name:                                                                           \
		for (uint32_t i = 0; i < fragment->elements; i++) {                               \
			ALL_LANES                                                                 \
				values[lane] = convert(type_name, words[lane] >> i * fragment->bits); \
			for (uint32_t lane = 0; lane < WARP_LANES; lane++)                        \
				to[positions[lane] + offset + i * fragment->element_step] = values[lane]; \
		}                                                                                 \
		break

#define FOR_REGISTERS                                                                                    \
	uint32_t positions[WARP_LANES];                                                                  \
	for (uint32_t lane = 0; lane < WARP_LANES; lane++)                                               \
		positions[lane] = matrix_lane_position(fragment, lane);                                  \
	for (uint32_t r = 0; r < fragment->distinct; r++)

static void unpack_floats(const struct warp *warp, const struct insn *insn, uint32_t first,
			  const struct matrix_fragment *fragment, double *to)
{
	_Alignas(64) double values[WARP_LANES];
	FOR_REGISTERS {
		const uint32_t *words = matrix_words(warp, insn, first + r);
		uint32_t offset = fragment->offset[r];
		switch (fragment->type) {
			UNPACK(MATRIX_F16, value_of);
			UNPACK(MATRIX_BF16, value_of);
			UNPACK(MATRIX_TF32, value_of);
			UNPACK(MATRIX_E4M3, value_of);
			UNPACK(MATRIX_E5M2, value_of);
			UNPACK(MATRIX_F32, value_of);
		default: {
			const double *wide = (const double *)(const void *)words;
			for (uint32_t lane = 0; lane < WARP_LANES; lane++)
				to[positions[lane] + offset] = wide[lane];
		}
		}
	}
}

static void unpack_integers(const struct warp *warp, const struct insn *insn, uint32_t first,
			    const struct matrix_fragment *fragment, int32_t *to)
{
	_Alignas(64) int32_t values[WARP_LANES];
	FOR_REGISTERS {
		const uint32_t *words = matrix_words(warp, insn, first + r);
		uint32_t offset = fragment->offset[r];
		switch (fragment->type) {
			UNPACK(MATRIX_S8, integer_of);
			UNPACK(MATRIX_U8, integer_of);
			UNPACK(MATRIX_S4, integer_of);
			UNPACK(MATRIX_U4, integer_of);
			UNPACK(MATRIX_B1, integer_of);
		default:
			for (uint32_t lane = 0; lane < WARP_LANES; lane++)
				to[positions[lane] + offset] = (int32_t)words[lane];
		}
	}
}

/* Every NaN becomes the PTX ISA's canonical NaN. */
static inline uint32_t f32_result(double value)
{
	return value == value ? bits_of_f32((float)value) : 0x7fffffffu;
}

static inline uint16_t f16_result(double value)
{
	return value == value ? half_of_double(value) : 0x7fff;
}

static void pack_floats(struct warp *warp, const struct insn *insn, uint32_t first,
			const struct matrix_fragment *fragment, const double *from)
{
	FOR_REGISTERS {
		uint32_t *words = matrix_words(warp, insn, first + r);
		for_each_lane(lane, warp->mask) {
			const double *value = &from[positions[lane] + fragment->offset[r]];
			if (fragment->type == MATRIX_F32)
				words[lane] = f32_result(*value);
			else if (fragment->type == MATRIX_F16)
				words[lane] = both(f16_result(value[0]), f16_result(value[1]));
			else
				((double *)(void *)words)[lane] = *value;
		}
	}
}

/* d += a * b; four rows at a time, so that additions of different rows do not wait for each other. */
static void multiply_doubles(const struct matrix_form *form, const double *a, const double *b, double *d)
{
	uint32_t m = form->m, n = form->n, k = form->k;
	for (uint32_t column = 0; column < n; column += 8) {
		for (uint32_t row = 0; row < m; row += 4) {
			const double *left = a + row * k;
			doubles *sums = (doubles *)(void *)(d + row * n + column);
			doubles s0 = sums[0], s1 = sums[n / 8], s2 = sums[2 * n / 8], s3 = sums[3 * n / 8];
			for (uint32_t i = 0; i < k; i++) {
				doubles right = *(const doubles *)(const void *)(b + i * n + column);
				s0 += left[i] * right;
				s1 += left[k + i] * right;
				s2 += left[2 * k + i] * right;
				s3 += left[3 * k + i] * right;
			}
			sums[0] = s0;
			sums[n / 8] = s1;
			sums[2 * n / 8] = s2;
			sums[3 * n / 8] = s3;
		}
	}
}

/* Not inlined: it runs under a rounding mode that is set before the call. */
static __attribute__((noinline)) void fuse_doubles(const struct matrix_form *form, const double *a, const double *b,
						   double *d)
{
	for (uint32_t row = 0; row < form->m; row++)
		for (uint32_t i = 0; i < form->k; i++)
			INDEPENDENT for (uint32_t column = 0; column < 8; column++)
				d[row * 8 + column] = fma(a[row * form->k + i], b[i * 8 + column], d[row * 8 + column]);
}

static void multiply_integers(const struct matrix_form *form, const int32_t *a, const int32_t *b, int32_t *d)
{
	for (uint32_t column = 0; column < form->n; column += 8) {
		for (uint32_t row = 0; row < form->m; row++) {
			const int32_t *left = a + row * form->k;
			integers sum = { 0 };
			for (uint32_t i = 0; i < form->k; i++)
				sum += left[i] * *(const integers *)(const void *)(b + i * form->n + column);
			*(integers *)(void *)(d + row * form->n + column) = sum;
		}
	}
}

static void multiply_bits(const struct matrix_form *form, const int32_t *a, const int32_t *b, int32_t *d)
{
	for (uint32_t row = 0; row < form->m; row++) {
		for (uint32_t column = 0; column < form->n; column++) {
			int32_t sum = 0;
			for (uint32_t i = 0; i < form->k / 32; i++) {
				uint32_t left = (uint32_t)a[row * (form->k / 32) + i],
					 right = (uint32_t)b[i * form->n + column];
				sum += __builtin_popcount(form->bit_and ? left & right : left ^ right);
			}
			d[row * form->n + column] = sum;
		}
	}
}

/* ---- mma.sp */
#define SPARSE_ROWS 16
#define SPARSE_COLUMNS 64

/* The row of b that belongs to each element of a. */
typedef uint8_t sparse_rows[SPARSE_ROWS][SPARSE_COLUMNS];

/*
 * Four bits of metadata describe a group of neighbours along k: of eight 4-bit elements two pairs are kept, of four
 * elements of 8 or 16 bits two, of two 32-bit elements one. Two bits are the place of a kept element or pair in its
 * group; of a tf32 the upper one of the first two. A row of 16- and 32-bit elements has 16 bits of metadata in a word,
 * the lower half for row group and the upper half for row group + 8; the next 16 bits of both rows are in the next
 * lane. A row of smaller elements has a whole word: lane 0 and 1 of the four have those of rows group and group + 8,
 * lanes 2 and 3 the next words.
 */
static void read_metadata(const struct warp *warp, const struct insn *insn, const struct matrix_form *form,
			  sparse_rows rows)
{
	uint32_t last = (uint32_t)form->a.registers + form->b.registers + form->c.registers + form->d.registers;
	const uint32_t *words = matrix_words(warp, insn, last);
	uint32_t bits = form->a.bits, span = bits == 4 ? 8 : bits == 32 ? 2 : 4, pair = bits == 4 ? 2 : 1;
	uint32_t kept = span / 2, lanes = form->k / span * 4 / 16; /* lanes that have the metadata of two rows */
	for (uint32_t row = 0; row < SPARSE_ROWS; row++) {
		for (uint32_t group = 0; group < form->k / span; group++) {
			uint32_t lane = row % 8 * 4 + form->selector * lanes, shift = group % 8 * 4;
			if (bits >= 16) {
				lane += group / 4;
				shift = group % 4 * 4 + row / 8 * 16;
			} else {
				lane += group / 8 * 2 + row / 8;
			}
			uint32_t places = words[lane] >> shift & 15;
			for (uint32_t i = 0; i < kept; i++) {
				uint32_t place = bits == 32 ? places >> 1 & 1 : places >> i / pair * 2 & 3;
				rows[row][group * kept + i] = (uint8_t)(group * span + place * pair + i % pair);
			}
		}
	}
}

static void multiply_sparse_doubles(const struct matrix_form *form, const sparse_rows rows, const double *a,
				    const double *b, double *d)
{
	for (uint32_t row = 0; row < SPARSE_ROWS; row++)
		for (uint32_t i = 0; i < form->a.columns; i++)
			INDEPENDENT for (uint32_t column = 0; column < 8; column++)
				d[row * 8 + column] += a[row * form->a.columns + i] * b[rows[row][i] * 8 + column];
}

static void multiply_sparse_integers(const struct matrix_form *form, const sparse_rows rows, const int32_t *a,
				     const int32_t *b, int32_t *d)
{
	memset(d, 0, SPARSE_ROWS * 8 * sizeof *d);
	for (uint32_t row = 0; row < SPARSE_ROWS; row++)
		for (uint32_t i = 0; i < form->a.columns; i++)
			INDEPENDENT for (uint32_t column = 0; column < 8; column++)
				d[row * 8 + column] += a[row * form->a.columns + i] * b[rows[row][i] * 8 + column];
}

static void multiply_floats_of(struct warp *warp, const struct insn *insn, const struct matrix_form *form)
{
	_Alignas(64) double a[ELEMENTS_MAX], b[ELEMENTS_MAX], d[SUMS_MAX];
	unpack_floats(warp, insn, 0, &form->a, a);
	unpack_floats(warp, insn, form->a.registers, &form->b, b);
	unpack_floats(warp, insn, form->a.registers + form->b.registers, &form->c, d);
	if (form->sparse) {
		sparse_rows rows;
		read_metadata(warp, insn, form, rows);
		multiply_sparse_doubles(form, (const uint8_t(*)[SPARSE_COLUMNS])rows, a, b, d);
	} else if (form->a.type == MATRIX_F64) {
		if (form->rounding != FE_TONEAREST)
			fesetround(form->rounding);
		fuse_doubles(form, a, b, d);
		if (form->rounding != FE_TONEAREST)
			fesetround(FE_TONEAREST);
	} else {
		multiply_doubles(form, a, b, d);
	}
	pack_floats(warp, insn, (uint32_t)form->a.registers + form->b.registers + form->c.registers, &form->d, d);
}

static void multiply_integers_of(struct warp *warp, const struct insn *insn, const struct matrix_form *form)
{
	_Alignas(64) int32_t a[ELEMENTS_MAX], b[ELEMENTS_MAX], c[SUMS_MAX], d[SUMS_MAX];
	const struct matrix_fragment *fragment = &form->d;
	uint32_t first = (uint32_t)form->a.registers + form->b.registers;
	unpack_integers(warp, insn, 0, &form->a, a);
	unpack_integers(warp, insn, form->a.registers, &form->b, b);
	unpack_integers(warp, insn, first, &form->c, c);
	if (form->sparse) {
		sparse_rows rows;
		read_metadata(warp, insn, form, rows);
		multiply_sparse_integers(form, (const uint8_t(*)[SPARSE_COLUMNS])rows, a, b, d);
	} else {
		(form->a.type == MATRIX_B1 ? multiply_bits : multiply_integers)(form, a, b, d);
	}
	FOR_REGISTERS {
		uint32_t *words = matrix_words(warp, insn, first + form->c.registers + r);
		for_each_lane(lane, warp->mask) {
			uint32_t at = positions[lane] + fragment->offset[r];
			int64_t sum = (int64_t)c[at] + d[at];
			if (form->saturate)
				sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
			words[lane] = (uint32_t)sum;
		}
	}
}

/* ---- wgmma */
#define WGMMA_ROWS 16
#define CHUNK 16u /* bytes that stay side by side under every swizzle */

/* A matrix in shared memory: the fields of a descriptor (PTX ISA, "Matrix descriptor format"), in bytes. */
struct described {
	uint64_t start, leading, stride;
	uint32_t width; /* chunks in a row of a swizzled pattern; 1: none */
};

static bool read_descriptor(struct warp *warp, const struct insn *insn, uint32_t n, struct described *matrix)
{
	static const uint8_t widths[] = { 1, 8, 4, 2 };
	uint32_t lane = (uint32_t)__builtin_ctz(warp->mask);
	uint64_t bits;
	memcpy(&bits, warp->regs + matrix_row(insn, n) + lane * sizeof bits, sizeof bits);
	matrix->start = (bits & 0x3fff) * CHUNK;
	matrix->leading = (bits >> 16 & 0x3fff) * CHUNK;
	matrix->stride = (bits >> 32 & 0x3fff) * CHUNK;
	matrix->width = widths[bits >> 62];
	if (bits >> 49 & 7)
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_NOT_SUPPORTED,
			   "a matrix descriptor with a base offset is not supported", bits);
	return !(bits >> 49 & 7);
}

/* The chunk that begins with element (line, along): of a matrix by lines, or of its transpose in memory. */
static const char *chunk_at(struct warp *warp, const struct insn *insn, const struct described *matrix, bool transposed,
			    uint32_t line, uint32_t along)
{
	uint64_t at = matrix->start, width = matrix->width;
	if (!transposed) /* along: the number of the chunk */
		at += line % 8 * width * CHUNK + line / 8 * matrix->stride +
		      along * (width == 1 ? matrix->leading : CHUNK);
	else if (width == 1) /* line: of eight, along: the line of the transpose */
		at += line / 8 * matrix->stride + along % 8 * CHUNK + along / 8 * matrix->leading;
	else
		at += line / 8 % width * CHUNK + line / 8 / width * matrix->leading + along % 8 * width * CHUNK +
		      along / 8 * matrix->stride;
	at ^= (at >> 7 & (width - 1)) * CHUNK;
	uint32_t lane = (uint32_t)__builtin_ctz(warp->mask);
	const char *chunk = memory_translate_in(warp, lane, ACCESS_SHARED, at, CHUNK, false);
	if (!chunk)
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS, "matrix outside shared memory", at);
	return chunk;
}

static double element_of(uint8_t type, uint32_t bits)
{
	return type == MATRIX_S8 || type == MATRIX_U8 ? (double)integer_of(type, bits) : value_of(type, bits);
}

static void unpack_chunk(const char *chunk, const struct matrix_fragment *fragment, double *to, uint32_t step)
{
	uint32_t bytes = fragment->bits / 8u;
	for (uint32_t i = 0; i < CHUNK / bytes; i++) {
		uint32_t bits = 0;
		memcpy(&bits, chunk + i * bytes, bytes);
		to[i * step] = element_of(fragment->type, bits);
	}
}

/* Reads `lines` lines of k elements from the one with number first on; element (i, j) goes to i * line_step + j * step. */
static bool read_described(struct warp *warp, const struct insn *insn, uint32_t row, bool transposed,
			   const struct matrix_fragment *fragment, uint32_t first, uint32_t lines, uint32_t k, double *to,
			   uint32_t line_step, uint32_t step)
{
	struct described matrix;
	uint32_t each = CHUNK * 8 / fragment->bits;
	if (!read_descriptor(warp, insn, row, &matrix))
		return false;
	for (uint32_t line = 0; line < lines; line += transposed ? 8 : 1) {
		for (uint32_t n = 0; n < (transposed ? k : k / each); n++) {
			const char *chunk = chunk_at(warp, insn, &matrix, transposed, first + line, n);
			if (!chunk)
				return false;
			double *place = to + line * line_step + n * (transposed ? 1 : each) * step;
			unpack_chunk(chunk, fragment, place, transposed ? line_step : step);
		}
	}
	return true;
}

/* Rows 16 w … 16 w + 15 of a, where w is the warp's number in its group of four. */
static bool read_a(struct warp *warp, const struct insn *insn, const struct matrix_form *form, double *a)
{
	int32_t integers_of_a[WGMMA_ROWS * 32];
	if (form->a_in_memory)
		return read_described(warp, insn, 0, form->a_by_m, &form->a, warp->index % 4 * WGMMA_ROWS, WGMMA_ROWS,
				      form->k, a, form->k, 1);
	if (form->d.type != MATRIX_S32) {
		unpack_floats(warp, insn, 0, &form->a, a);
		return true;
	}
	unpack_integers(warp, insn, 0, &form->a, integers_of_a);
	for (uint32_t i = 0; i < WGMMA_ROWS * form->k; i++)
		a[i] = integers_of_a[i];
	return true;
}

/* d's fragment: in each block of eight columns that of a small product, two registers for a row, or one of two halves. */
static void read_sums(const struct warp *warp, const struct insn *insn, const struct matrix_form *form, uint32_t first,
		      double *d)
{
	uint32_t halves = form->d.type == MATRIX_F16 ? 1 : 2;
	for (uint32_t r = 0; r < wgmma_accumulators(form); r++) {
		const uint32_t *words = matrix_words(warp, insn, first + r);
		uint32_t block = r / halves / 2, lower = r / halves % 2 * 8;
		for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
			double *to = d + (lower + lane / 4) * form->n + block * 8 + lane % 4 * 2 + r % halves;
			if (form->d.type == MATRIX_F32)
				to[0] = (double)f32_of_bits(words[lane]);
			else if (form->d.type == MATRIX_S32)
				to[0] = (int32_t)words[lane];
			else
				for (uint32_t i = 0; i < 2; i++)
					to[i] = value_of(MATRIX_F16, i ? high(words[lane]) : low(words[lane]));
		}
	}
}

static uint32_t wrapped(const struct matrix_form *form, double value)
{
	int64_t sum = (int64_t)value;
	if (form->saturate)
		sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
	return (uint32_t)sum;
}

static void write_sums(struct warp *warp, const struct insn *insn, const struct matrix_form *form, uint32_t first,
		       const double *d)
{
	uint32_t halves = form->d.type == MATRIX_F16 ? 1 : 2;
	for (uint32_t r = 0; r < wgmma_accumulators(form); r++) {
		uint32_t *words = matrix_words(warp, insn, first + r);
		uint32_t block = r / halves / 2, lower = r / halves % 2 * 8;
		for_each_lane(lane, warp->mask) {
			const double *from = d + (lower + lane / 4) * form->n + block * 8 + lane % 4 * 2 + r % halves;
			words[lane] = form->d.type == MATRIX_F32 ? f32_result(*from) :
				      form->d.type == MATRIX_S32 ? wrapped(form, *from) :
								   both(f16_result(from[0]), f16_result(from[1]));
		}
	}
}

/* Each warp computes its own 16 rows when it issues the product. */
static bool multiply_described(struct warp *warp, const struct insn *insn, const struct matrix_form *form)
{
	_Alignas(64) double a[WGMMA_ROWS * 32], b[32 * WGMMA_COLUMNS_MAX], d[WGMMA_ROWS * WGMMA_COLUMNS_MAX];
	uint32_t first = form->a_in_memory ? 1 : form->a.registers, adds;
	if (!read_a(warp, insn, form, a) ||
	    !read_described(warp, insn, first, form->b_by_n, &form->b, 0, form->n, form->k, b, 1, form->n))
		return false;
	for (uint32_t i = 0; form->negative && i < WGMMA_ROWS * form->k; i++)
		a[i] = -a[i];
	memcpy(&adds, warp->regs + matrix_row(insn, first + 1), sizeof adds);
	if (adds & warp->mask)
		read_sums(warp, insn, form, first + 2, d);
	else
		memset(d, 0, sizeof *d * WGMMA_ROWS * form->n);
	multiply_doubles(form, a, b, d);
	write_sums(warp, insn, form, first + 2 + wgmma_accumulators(form), d);
	return true;
}

const struct insn *LANES_NAME(op_matrix_multiply)(struct warp *warp, const struct insn *insn)
{
	const struct matrix_form *form = matrix_form_of(insn);
	if (!warp_converge(warp, insn, FULL_MASK)) {
		warp_park(warp, insn, warp->mask, PATH_CONVERGE);
		return warp_next_path(warp);
	}
	if (form->warpgroup) {
		if (!multiply_described(warp, insn, form))
			return NULL;
		warpgroup_multiplied(warp);
	} else if (form->d.type == MATRIX_S32) {
		multiply_integers_of(warp, insn, form);
	} else {
		multiply_floats_of(warp, insn, form);
	}
	return insn + 1 + form->carriers;
}
