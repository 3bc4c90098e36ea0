/* SPDX-License-Identifier: BSD-3-Clause */
/* What device printf wrote, kept by block until the launch ends. */
#include "cuda_remote/softgpu/exec/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (1u << 20) /* CUDA's default */
#define RECORD_COST 16
#define ARGUMENT_COST 8
#define TEXT_PER_COST 256 /* bytes of text that a record may have for each byte of its cost: a bound of the host's memory */

struct record {
	uint32_t bytes; /* of the text that follows */
	uint32_t cost;
};

static uint64_t limit_of(const struct launch *launch)
{
	uint64_t bytes = launch->request->limits.print_bytes;
	return bytes ? bytes : BUFFER_BYTES;
}

static bool grow(struct print_buffer *print, size_t length)
{
	size_t room = print->room ? print->room * 2 : 4096;
	while (room < print->used + length)
		room *= 2;
	char *grown = realloc(print->text, room);
	if (!grown)
		return false;
	print->text = grown;
	print->room = room;
	return true;
}

void output_append(struct print_buffer *print, const char *text, size_t length)
{
	if (length > print->room - print->used && !grow(print, length))
		return;
	memcpy(print->text + print->used, text, length);
	print->used += length;
}

size_t output_begin(struct print_buffer *print)
{
	size_t record = print->used;
	output_append(print, (const char *)&(struct record){ 0, 0 }, sizeof(struct record));
	return record;
}

/* Drops the oldest record. */
static void drop(struct print_buffer *print)
{
	struct record record;
	memcpy(&record, print->text + print->first, sizeof record);
	print->first += sizeof record + record.bytes;
	print->cost -= record.cost;
	if (print->first == print->used)
		print->first = print->used = 0;
}

void output_end(struct block *block, size_t record, uint32_t arguments)
{
	struct print_buffer *print = &block->print;
	struct record head = { .cost = RECORD_COST + ARGUMENT_COST * arguments };
	if (print->used < record + sizeof head) {
		print->used = record; /* there was no memory for its head */
		return;
	}
	head.bytes = (uint32_t)(print->used - record - sizeof head);
	if (head.bytes / TEXT_PER_COST > head.cost)
		head.cost = head.bytes / TEXT_PER_COST;
	memcpy(print->text + record, &head, sizeof head);
	print->cost += head.cost;
	while (print->cost > limit_of(block->launch))
		drop(print);
	if (print->first > print->room / 2) {
		memmove(print->text, print->text + print->first, print->used - print->first);
		print->used -= print->first;
		print->first = 0;
	}
}

/* ---- the heap of blocks that have ended: the block at n has a lower number than those at 2n + 1 and 2n + 2 */
static bool heap_room(struct launch *launch)
{
	if (launch->output_count < launch->output_room)
		return true;
	size_t room = launch->output_room ? launch->output_room * 2 : 16;
	struct kept_output *grown = realloc(launch->output, room * sizeof *grown);
	if (!grown)
		return false;
	launch->output = grown;
	launch->output_room = room;
	return true;
}

static void heap_add(struct launch *launch, const struct kept_output *added)
{
	struct kept_output *heap = launch->output;
	size_t at = launch->output_count++;
	for (; at && heap[(at - 1) / 2].block > added->block; at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = *added;
}

/* Removes the first block, and frees its records. */
static void heap_remove(struct launch *launch)
{
	struct kept_output *heap = launch->output;
	free(heap[0].print.text);
	size_t count = --launch->output_count, at = 0, next;
	for (; (next = 2 * at + 1) < count; at = next) {
		next += next + 1 < count && heap[next + 1].block < heap[next].block;
		if (heap[count].block < heap[next].block)
			break;
		heap[at] = heap[next];
	}
	heap[at] = heap[count];
}

void output_keep(struct launch *launch, struct block *block)
{
	if (!heap_room(launch))
		return;
	heap_add(launch, &(struct kept_output){ block->number, block->print });
	launch->output_cost += block->print.cost;
	block->print = (struct print_buffer){ 0 };
	while (launch->output_cost > limit_of(launch)) {
		struct print_buffer *oldest = &launch->output[0].print;
		uint64_t before = oldest->cost;
		drop(oldest);
		launch->output_cost -= before - oldest->cost;
		if (!oldest->used)
			heap_remove(launch);
	}
}

static void write_block(const struct print_buffer *print)
{
	struct record record;
	for (size_t at = print->first; at < print->used; at += sizeof record + record.bytes) {
		memcpy(&record, print->text + at, sizeof record);
		fwrite(print->text + at + sizeof record, 1, record.bytes, stdout);
	}
}

void output_write(struct launch *launch)
{
	if (!launch->output)
		return;
	for (; launch->output_count; heap_remove(launch))
		write_block(&launch->output[0].print);
	fflush(stdout);
	free(launch->output);
}
