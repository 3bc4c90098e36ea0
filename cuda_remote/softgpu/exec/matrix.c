/* SPDX-License-Identifier: BSD-3-Clause */
/* wmma.load, wmma.store, ldmatrix, stmatrix, movmatrix, and mma.m8n8k4 of f16, which is four small products. */
#include "cuda_remote/softgpu/exec/matrix.h"

#include "cuda_remote/softgpu/exec/lanes/lane_float.h"

#include <string.h>

/* True: the whole warp is here. False: the path waits for the other lanes; *next is the instruction to go on at. */
static bool whole_warp(struct warp *warp, const struct insn *insn, const struct insn **next)
{
	if (warp_converge(warp, insn, FULL_MASK))
		return true;
	warp_park(warp, insn, warp->mask, PATH_CONVERGE);
	*next = warp_next_path(warp);
	return false;
}

static uint64_t address_of(const struct warp *warp, const struct insn *insn, uint32_t lane)
{
	if (insn->flags & INSN_NARROW)
		return (uint32_t)(SOURCE(uint32_t, 4)[lane] + (uint32_t)insn->imm);
	return SOURCE(uint64_t, 4)[lane] + insn->imm;
}

static char *pointer_of(struct warp *warp, const struct insn *insn, uint32_t lane, uint64_t bytes, uint32_t align,
			bool write)
{
	uint64_t address = address_of(warp, insn, lane);
	char *pointer = NULL;
	if (address & (align - 1))
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned matrix", address);
	else if (!(pointer = memory_translate_in(warp, lane, (enum access_space)insn->slot, address, bytes, write)))
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS, "matrix outside every allocation",
			   address);
	return pointer;
}

/* ---- wmma.load and wmma.store: all lanes give the same matrix; the operands of the first active lane are used */
struct tile {
	char *base;
	uint64_t stride; /* elements from a row (column) to the next */
	uint32_t unit;   /* bits of an element in memory */
};

static bool find_tile(struct warp *warp, const struct insn *insn, const struct matrix_form *form, bool write,
		      struct tile *tile)
{
	const struct matrix_fragment *fragment = &form->d;
	uint32_t lane = (uint32_t)__builtin_ctz(warp->mask);
	bool words = fragment->type == MATRIX_B1;
	uint32_t along = (form->column_major ? fragment->rows : fragment->columns) * (words ? 32u : 1u),
		 lines = form->column_major ? fragment->columns : fragment->rows;
	uint32_t bits = words ? 1 : fragment->bits;
	tile->stride = insn->r[3] < 0 ? along : SOURCE(uint32_t, 3)[lane];
	tile->unit = bits;
	uint64_t bytes = ((lines - 1) * tile->stride + along) * bits / 8;
	tile->base = pointer_of(warp, insn, lane, bytes, bits < 32 ? 4 : bits / 8, write);
	if (tile->base && bits < 8 && tile->stride % 32) {
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_MISALIGNED_ADDRESS, "matrix rows that are not whole words",
			   tile->stride);
		return false;
	}
	return tile->base != NULL;
}

/*
 * The distance in bits from the matrix's first element to the element at a position. A fragment's steps never carry
 * from one row into the next, so the distances of a lane, a register and an element can be added, like their positions.
 */
static uint64_t distance_to(const struct tile *tile, const struct matrix_form *form, uint32_t position)
{
	uint64_t row = position / form->d.columns, column = position % form->d.columns;
	uint32_t word = form->d.type == MATRIX_B1 ? 32 : 1;
	return (form->column_major ? column * tile->stride + row * word : row * tile->stride + column * word) * tile->unit;
}

/* Move one register of each lane: move_pieces as one piece of memory, move_elements element by element. */
static void move_pieces(char *row, char *const *lanes, uint32_t mask, uint32_t width, bool write)
{
	for_each_lane(lane, mask) {
		char *cell = row + lane * width;
		if (width == 8)
			memcpy(write ? lanes[lane] : cell, write ? cell : lanes[lane], 8);
		else
			memcpy(write ? lanes[lane] : cell, write ? cell : lanes[lane], 4);
	}
}

static void move_elements(char *row, char *const *lanes, uint32_t mask, const uint64_t *steps, uint32_t elements,
			  bool write)
{
	uint32_t bytes = 4 / elements;
	for (uint32_t i = 0; i < elements; i++) {
		for_each_lane(lane, mask) {
			char *cell = row + lane * 4 + i * bytes, *memory = lanes[lane] + steps[i] / 8;
			if (bytes == 2)
				memcpy(write ? memory : cell, write ? cell : memory, 2);
			else
				memcpy(write ? memory : cell, write ? cell : memory, 1);
		}
	}
}

static void move_rows(struct warp *warp, const struct insn *insn, const struct tile *tile, bool write)
{
	const struct matrix_form *form = matrix_form_of(insn);
	const struct matrix_fragment *fragment = &form->d;
	uint64_t lane_distance[WARP_LANES], steps[WARP_LANES];
	char *lanes[WARP_LANES];
	uint32_t width = fragment->bits == 64 ? 8 : 4, elements = tile->unit < 8 ? 1 : fragment->elements;
	for (uint32_t lane = 0; lane < WARP_LANES; lane++)
		lane_distance[lane] = distance_to(tile, form, matrix_lane_position(fragment, lane));
	for (uint32_t i = 0; i < elements; i++)
		steps[i] = distance_to(tile, form, i * fragment->element_step);
	bool whole = elements == 1 || steps[1] == tile->unit;
	for (uint32_t r = 0; r < fragment->registers; r++) {
		char *row = warp->regs + matrix_row(insn, r);
		uint64_t distance = distance_to(tile, form, fragment->offset[r % fragment->distinct]);
		for (uint32_t lane = 0; lane < WARP_LANES; lane++)
			lanes[lane] = tile->base + (distance + lane_distance[lane]) / 8;
		if (whole)
			move_pieces(row, lanes, warp->mask, width, write);
		else
			move_elements(row, lanes, warp->mask, steps, elements, write);
	}
}

static const struct insn *move_tile(struct warp *warp, const struct insn *insn, bool write)
{
	const struct matrix_form *form = matrix_form_of(insn);
	const struct insn *next;
	struct tile tile;
	if (!whole_warp(warp, insn, &next))
		return next;
	if (!find_tile(warp, insn, form, write, &tile))
		return NULL;
	move_rows(warp, insn, &tile, write);
	return insn + 1 + form->carriers;
}

const struct insn *op_matrix_load(struct warp *warp, const struct insn *insn)
{
	return move_tile(warp, insn, false);
}

const struct insn *op_matrix_store(struct warp *warp, const struct insn *insn)
{
	return move_tile(warp, insn, true);
}

/* ---- ldmatrix, stmatrix: matrices of 8 x 8 halves; lane 8 j + i has the address of row i of matrix j */
typedef uint16_t rows_of_halves[8][8];

static bool find_rows(struct warp *warp, const struct insn *insn, bool write, char *rows[WARP_LANES])
{
	for (uint32_t lane = 0; lane < 8u * insn->count; lane++) {
		rows[lane] = NULL;
		if (!(warp->mask >> lane & 1))
			continue;
		rows[lane] = pointer_of(warp, insn, lane, 16, 16, write);
		if (!rows[lane])
			return false;
	}
	return true;
}

/* Moves the two halves of a lane's register to the matrix (write) or from it. */
static void move_halves(rows_of_halves matrix, uint32_t lane, uint32_t *word, bool transposed, bool write)
{
	uint32_t line = lane / 4, at = lane % 4 * 2;
	uint16_t *first = transposed ? &matrix[at][line] : &matrix[line][at],
		 *second = transposed ? &matrix[at + 1][line] : &matrix[line][at + 1];
	if (write) {
		*first = low(*word);
		*second = high(*word);
	} else {
		*word = both(*first, *second);
	}
}

const struct insn *op_ldmatrix(struct warp *warp, const struct insn *insn)
{
	const struct insn *next;
	char *rows[WARP_LANES];
	if (!whole_warp(warp, insn, &next))
		return next;
	if (!find_rows(warp, insn, false, rows))
		return NULL;
	for (uint32_t n = 0; n < insn->count; n++) {
		rows_of_halves matrix = { { 0 } };
		for (uint32_t i = 0; i < 8; i++)
			if (rows[8 * n + i])
				memcpy(matrix[i], rows[8 * n + i], 16);
		uint32_t *words = matrix_words(warp, insn, n);
		for_each_lane(lane, warp->mask)
			move_halves(matrix, lane, &words[lane], insn->size, false);
	}
	return insn + 2;
}

const struct insn *op_stmatrix(struct warp *warp, const struct insn *insn)
{
	const struct insn *next;
	char *rows[WARP_LANES];
	if (!whole_warp(warp, insn, &next))
		return next;
	if (!find_rows(warp, insn, true, rows))
		return NULL;
	for (uint32_t n = 0; n < insn->count; n++) {
		rows_of_halves matrix = { { 0 } };
		uint32_t *words = matrix_words(warp, insn, n);
		for (uint32_t lane = 0; lane < WARP_LANES; lane++)
			move_halves(matrix, lane, &words[lane], insn->size, true);
		for (uint32_t i = 0; i < 8; i++)
			if (rows[8 * n + i])
				memcpy(rows[8 * n + i], matrix[i], 16);
	}
	return insn + 2;
}

const struct insn *op_movmatrix(struct warp *warp, const struct insn *insn)
{
	const struct insn *next;
	rows_of_halves matrix;
	if (!whole_warp(warp, insn, &next))
		return next;
	uint32_t words[WARP_LANES];
	memcpy(words, SOURCE(uint32_t, 1), sizeof words);
	for (uint32_t lane = 0; lane < WARP_LANES; lane++)
		move_halves(matrix, lane, &words[lane], false, true);
	uint32_t *results = RESULT(uint32_t, 0);
	for_each_lane(lane, warp->mask)
		move_halves(matrix, lane, &results[lane], true, false);
	return insn + 1;
}

/* ---- mma.m8n8k4 of f16: lanes 4 q … 4 q + 3 and 16 + 4 q … 19 + 4 q compute product q */
struct quad_product {
	double a[8][4], b[4][8], c[8][8];
};

static double half_at(const struct warp *warp, const struct insn *insn, uint32_t first, uint32_t lane, uint32_t i)
{
	uint32_t word = matrix_words(warp, insn, first + i / 2)[lane];
	return (double)float_of(i & 1 ? high(word) : low(word));
}

/* Row and column of element i of an f32 accumulator. within: the lane's number in its group of four. */
static uint32_t quad_row(uint32_t within, uint32_t i)
{
	return (within & 1) + (i & 2);
}

static uint32_t quad_column(uint32_t within, uint32_t i)
{
	return (i & 4) + (within & 2) + (i & 1);
}

static void read_quad(const struct warp *warp, const struct insn *insn, const struct matrix_form *form, uint32_t lane,
		      struct quad_product *product)
{
	uint32_t within = lane % 4, half = lane >= 16 ? 4 : 0;
	for (uint32_t i = 0; i < 4; i++) {
		double a = half_at(warp, insn, 0, lane, i), b = half_at(warp, insn, 2, lane, i);
		if (form->a_by_columns)
			product->a[half + i][within] = a;
		else
			product->a[half + within][i] = a;
		if (form->b_by_rows)
			product->b[within][half + i] = b;
		else
			product->b[i][half + within] = b;
	}
	for (uint32_t i = 0; i < 8; i++) {
		if (form->c.type == MATRIX_F16)
			product->c[half + within][i] = half_at(warp, insn, 4, lane, i);
		else
			product->c[half + quad_row(within, i)][quad_column(within, i)] =
				(double)f32_of_bits(matrix_words(warp, insn, 4 + i)[lane]);
	}
}

static void write_quad(struct warp *warp, const struct insn *insn, const struct matrix_form *form, uint32_t lane,
		       const struct quad_product *product)
{
	uint32_t within = lane % 4, half = lane >= 16 ? 4 : 0, first = 4u + form->c.registers;
	for (uint32_t i = 0; i < 8; i++) {
		double value = product->c[half + within][i];
		if (form->d.type == MATRIX_F32) {
			value = product->c[half + quad_row(within, i)][quad_column(within, i)];
			matrix_words(warp, insn, first + i)[lane] =
				value == value ? bits_of_f32((float)value) : 0x7fffffffu;
			continue;
		}
		uint32_t *word = &matrix_words(warp, insn, first + i / 2)[lane];
		uint16_t rounded = value == value ? half_of_double(value) : 0x7fff;
		*word = i & 1 ? both(low(*word), rounded) : rounded;
	}
}

const struct insn *op_matrix_quads(struct warp *warp, const struct insn *insn)
{
	const struct matrix_form *form = matrix_form_of(insn);
	const struct insn *next;
	struct quad_product products[4];
	if (!whole_warp(warp, insn, &next))
		return next;
	for (uint32_t lane = 0; lane < WARP_LANES; lane++)
		read_quad(warp, insn, form, lane, &products[lane / 4 % 4]);
	for (uint32_t q = 0; q < 4; q++)
		for (uint32_t row = 0; row < 8; row++)
			for (uint32_t column = 0; column < 8; column++)
				for (uint32_t i = 0; i < 4; i++)
					products[q].c[row][column] += products[q].a[row][i] * products[q].b[i][column];
	for_each_lane(lane, warp->mask)
		write_quad(warp, insn, form, lane, &products[lane / 4 % 4]);
	return insn + 1 + form->carriers;
}
