/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting references of objects, and the table of their numbers in Fortran. A slot of the table holds an object, or, if it is
 * free, the index of the next free slot, marked by its lowest bit.
 */
#include "adi/core/object.h"

#include <stdlib.h>

#define NO_SLOT (UINTPTR_MAX >> 1)

static uintptr_t *table;
static size_t slots, used;
static uintptr_t first_free = NO_SLOT;

void adi_object_init(struct adi_object *object, enum adi_kind kind)
{
	*object = (struct adi_object){ .magic = ADI_MAGIC + kind, .references = 1 };
}

void adi_object_predefine(struct adi_object *object, enum adi_kind kind, uintptr_t constant)
{
	adi_object_init(object, kind);
	object->constant = (uint16_t)constant;
}

static void slot_free(size_t slot)
{
	table[slot] = first_free << 1 | 1;
	first_free = slot;
}

bool adi_object_release(struct adi_object *object)
{
	if (--object->references > 0 || object->constant)
		return false;
	object->magic = 0;
	if (object->number) {
		slot_free((size_t)object->number - ADI_CONSTANTS);
		used--;
		object->number = 0;
	}
	return true;
}

static bool table_grow(void)
{
	size_t more = slots ? 2 * slots : 64;
	uintptr_t *grown = more <= INT32_MAX - ADI_CONSTANTS ? realloc(table, more * sizeof *table) : NULL;
	if (!grown)
		return false;
	table = grown;
	while (more > slots)
		slot_free(--more);
	slots = slots ? 2 * slots : 64;
	return true;
}

int adi_object_number(struct adi_object *object)
{
	if (object->constant)
		return object->constant;
	if (object->number)
		return object->number;
	if (first_free == NO_SLOT && !table_grow())
		return -1;
	size_t slot = first_free;
	first_free = table[slot] >> 1;
	table[slot] = (uintptr_t)object;
	used++;
	object->number = (int)(slot + ADI_CONSTANTS);
	return object->number;
}

struct adi_object *adi_object_numbered(int number, enum adi_kind kind)
{
	if (number < (int)ADI_CONSTANTS || (size_t)number - ADI_CONSTANTS >= slots)
		return NULL;
	uintptr_t entry = table[(size_t)number - ADI_CONSTANTS];
	struct adi_object *object = entry & 1 ? NULL : (struct adi_object *)entry;
	return object && object->magic == ADI_MAGIC + kind ? object : NULL;
}

/* Objects that the program may keep beyond MPI_Finalize, for example of MPI_Info, keep their numbers. */
void adi_objects_end(void)
{
	if (used)
		return;
	free(table);
	table = NULL;
	slots = 0;
	first_free = NO_SLOT;
}
