/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiles a datatype into a layout. A layout shares the layouts of the types from which its type was derived. */
#include "adi/datatype/build.h"

#include <stdlib.h>
#include <string.h>

void adi_layout_release(struct adi_layout *layout)
{
	if (!layout || --layout->references > 0)
		return;
	for (size_t i = 0; layout->children && i < layout->count; i++)
		adi_layout_release(layout->children[i]);
	adi_layout_release(layout->child);
	free(layout->children);
	free(layout->offset);
	free(layout->start);
	free(layout);
}

static struct adi_layout *retain(struct adi_layout *layout)
{
	layout->references++;
	return layout;
}

static struct adi_layout *new_layout(MPI_Count first, size_t bytes)
{
	struct adi_layout *layout = calloc(1, sizeof *layout);
	if (layout) {
		layout->references = 1;
		layout->first = first;
		layout->bytes = bytes;
	}
	return layout;
}

static struct adi_layout *new_run(MPI_Count first, size_t bytes)
{
	struct adi_layout *layout = new_layout(first, bytes);
	if (layout) {
		layout->count = bytes ? 1 : 0;
		layout->block = bytes;
	}
	return layout;
}

/* Whether a layout is a loop whose next round would continue at stride bytes. */
static bool continues(const struct adi_layout *layout, MPI_Count stride)
{
	MPI_Count whole;
	return !layout->offset && layout->count > 1 &&
	       !__builtin_mul_overflow((MPI_Count)layout->count, layout->stride, &whole) && whole == stride;
}

/* count > 0 times a child with data. Takes over the reference to child, which may be NULL; so may the result. */
static struct adi_layout *loop(size_t count, MPI_Count stride, struct adi_layout *child)
{
	if (!child || count == 1)
		return child;
	struct adi_layout *layout = new_layout(child->first, count * child->bytes);
	if (!layout) {
		adi_layout_release(child);
		return NULL;
	}
	layout->count = count;
	layout->stride = stride;
	layout->block = child->bytes;
	if (continues(child, stride)) {
		layout->count = count * child->count;
		layout->stride = child->stride;
		layout->block = child->block;
		layout->child = child->child ? retain(child->child) : NULL;
	} else if (!adi_layout_is_run(child)) {
		layout->child = retain(child);
	}
	adi_layout_release(child);
	return layout;
}

/* The list of a type's blocks while it grows. */
struct growing {
	size_t n, room;
	MPI_Count *offset;            /* from the origin of the type */
	size_t *bytes;
	struct adi_layout **children; /* NULL: a run */
};

static void growing_free(struct growing *list)
{
	for (size_t i = 0; list->children && i < list->n; i++)
		adi_layout_release(list->children[i]);
	free(list->offset);
	free(list->bytes);
	free(list->children);
}

static bool reserve(struct growing *list)
{
	if (list->n < list->room)
		return true;
	size_t room = list->room ? 2 * list->room : 8;
	void *offset = realloc(list->offset, room * sizeof *list->offset);
	list->offset = offset ? offset : list->offset;
	void *bytes = realloc(list->bytes, room * sizeof *list->bytes);
	list->bytes = bytes ? bytes : list->bytes;
	void *children = realloc(list->children, room * sizeof *list->children);
	list->children = children ? children : list->children;
	if (!offset || !bytes || !children)
		return false;
	list->room = room;
	return true;
}

/* Adds a run, or a child, whose reference it takes over. Joins a run to one that ends where it begins. */
static bool append(struct growing *list, MPI_Count offset, size_t bytes, struct adi_layout *child)
{
	size_t last = list->n - 1;
	if (!child && list->n && !list->children[last] && list->offset[last] + (MPI_Count)list->bytes[last] == offset) {
		list->bytes[last] += bytes;
		return true;
	}
	if (!reserve(list)) {
		adi_layout_release(child);
		return false;
	}
	list->offset[list->n] = offset;
	list->bytes[list->n] = bytes;
	list->children[list->n++] = child;
	return true;
}

/* length elements of a type, as a layout that the caller owns. */
static struct adi_layout *elements(struct adi_type *type, MPI_Count length)
{
	if (type->contiguous || (type->run && length == 1))
		return new_run(type->true_lb, (size_t)(length * type->size));
	if (adi_layout_compile(type))
		return NULL;
	return loop((size_t)length, type->extent, retain(type->layout));
}

/* Appends length elements of a type at an offset. *same: the layout of the last block, for a block like it. */
static bool append_block(struct growing *list, const struct adi_block *block, const struct adi_block *last,
			 struct adi_layout **same)
{
	struct adi_type *type = block->type;
	if (type->contiguous || (type->run && block->length == 1))
		return append(list, block->at + type->true_lb, (size_t)(block->length * type->size), NULL);
	if (!*same || last->type != type || last->length != block->length) {
		adi_layout_release(*same);
		*same = elements(type, block->length);
	}
	if (!*same)
		return false;
	return append(list, block->at + (*same)->first, (*same)->bytes, retain(*same));
}

static bool grow(struct growing *list, const struct adi_type_contents *contents)
{
	struct adi_block last = { 0 };
	struct adi_layout *same = NULL;
	bool fine = true;
	for (MPI_Count i = 0; i < contents->n && fine; i++) {
		struct adi_block block = adi_contents_block(contents, i);
		if (!block.length || !block.type->size)
			continue;
		fine = append_block(list, &block, &last, &same);
		last = block;
	}
	adi_layout_release(same);
	return fine;
}

/* Whether all entries have the same child or number of bytes. */
static bool uniform(const struct growing *list)
{
	for (size_t i = 1; i < list->n; i++)
		if (list->children[i] != list->children[0] || list->bytes[i] != list->bytes[0])
			return false;
	return true;
}

static bool regular(const struct growing *list)
{
	for (size_t i = 2; i < list->n; i++)
		if (list->offset[i] - list->offset[i - 1] != list->offset[1] - list->offset[0])
			return false;
	return true;
}

/* Fills a layout of different children, which it takes over. */
static bool fill_different(struct adi_layout *layout, struct growing *list)
{
	layout->start = malloc((list->n + 1) * sizeof *layout->start);
	if (!layout->start)
		return false;
	size_t sum = 0;
	bool runs = true;
	for (size_t i = 0; i < list->n; i++) {
		layout->start[i] = sum;
		sum += list->bytes[i];
		runs &= !list->children[i];
	}
	layout->start[list->n] = sum;
	if (!runs) {
		layout->children = list->children;
		list->children = NULL;
	}
	return true;
}

static void *trimmed(void *array, size_t bytes)
{
	void *less = realloc(array, bytes);
	return less ? less : array;
}

/* The layout of a list of two or more entries. Takes arrays of it over. */
static struct adi_layout *list_layout(struct growing *list)
{
	struct adi_layout *layout = new_layout(list->offset[0], 0);
	if (!layout)
		return NULL;
	layout->count = list->n;
	for (size_t i = 0; i < list->n; i++)
		layout->bytes += list->bytes[i];
	if (uniform(list)) {
		layout->block = list->bytes[0];
		layout->child = list->children[0] ? retain(list->children[0]) : NULL;
		if (regular(list)) {
			layout->stride = list->offset[1] - list->offset[0];
			return layout;
		}
	} else if (!fill_different(layout, list)) {
		adi_layout_release(layout);
		return NULL;
	}
	for (size_t i = 0; i < list->n; i++)
		list->offset[i] -= layout->first;
	layout->offset = trimmed(list->offset, list->n * sizeof *list->offset);
	list->offset = NULL;
	return layout;
}

/* A layout at another offset. Takes over the reference. */
static struct adi_layout *moved(struct adi_layout *layout, MPI_Count first)
{
	struct adi_layout *copy = new_layout(first, layout->bytes);
	if (copy && !layout->offset) {
		copy->count = layout->count;
		copy->stride = layout->stride;
		copy->block = layout->block;
		copy->child = layout->child ? retain(layout->child) : NULL;
	} else if (copy) {
		copy->count = 1;
		copy->block = layout->bytes;
		copy->child = retain(layout);
	}
	adi_layout_release(layout);
	return copy;
}

static struct adi_layout *finish(struct growing *list)
{
	if (list->n > 1)
		return list_layout(list);
	if (!list->children[0])
		return new_run(list->offset[0], list->bytes[0]);
	struct adi_layout *child = list->children[0];
	list->n = 0;
	return moved(child, list->offset[0]);
}

static struct adi_layout *of_list(const struct adi_type *type)
{
	struct growing list = { 0 };
	struct adi_layout *layout = NULL;
	if (grow(&list, type->contents))
		layout = finish(&list);
	growing_free(&list);
	return layout;
}

/* A pair whose index, an int, does not follow the value at once. */
static struct adi_layout *of_pair(const struct adi_type *type)
{
	struct growing list = { 0 };
	struct adi_layout *layout = NULL;
	size_t value = (size_t)type->size - sizeof(int);
	if (append(&list, 0, value, NULL) && append(&list, type->true_extent - (MPI_Count)sizeof(int), sizeof(int), NULL))
		layout = finish(&list);
	growing_free(&list);
	return layout;
}

int adi_layout_compile(struct adi_type *type)
{
	const struct adi_type_contents *contents = type->contents;
	if (type->layout)
		return MPI_SUCCESS;
	if (type->run || !type->size)
		type->layout = new_run(type->true_lb, (size_t)type->size);
	else if (!contents)
		type->layout = of_pair(type);
	else if (contents->lengths || contents->displacements)
		type->layout = of_list(type);
	else
		type->layout = loop((size_t)contents->n, contents->stride * contents->unit,
				    elements(contents->part[0], contents->length));
	return type->layout ? MPI_SUCCESS : adi_error(MPI_ERR_NO_MEM, "no memory for the layout of a datatype");
}
