/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of the last pass and that of the present one. */
#include "cuda_remote/relink/known_objects.h"

#include <stdlib.h>

typedef struct known {
	uintptr_t base;
	uint64_t path; /* hash */
	bool marked;
} known_t;

typedef struct known_list {
	known_t *object;
	size_t count, room;
} known_list_t;

static known_list_t last, present;
static size_t cursor; /* in last: where the next object is expected */
static unsigned long long last_unloads, present_unloads;

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash;
}

void known_objects_begin(unsigned long long unloads)
{
	known_list_t list = last;
	last = present;
	present = list;
	present.count = cursor = 0;
	last_unloads = present_unloads;
	present_unloads = unloads;
}

/* Remembers an object. Without memory it is looked at again in the next pass. */
static void append(known_t object)
{
	if (present.count == present.room) {
		size_t room = present.room ? 2 * present.room : 64;
		known_t *larger = realloc(present.object, room * sizeof *larger);
		if (!larger)
			return;
		present.object = larger;
		present.room = room;
	}
	present.object[present.count++] = object;
}

bool known_objects_look(uintptr_t base, const char *path)
{
	known_t object = { base, hash_of(path), false };
	for (size_t i = cursor; i < last.count; i++) {
		const known_t *known = &last.object[i];
		if (known->base != object.base || known->path != object.path)
			continue;
		cursor = i + 1;
		if (known->marked && last_unloads != present_unloads)
			break;
		append(*known);
		return true;
	}
	append(object);
	return false;
}

void known_objects_mark(void)
{
	if (present.count)
		present.object[present.count - 1].marked = true;
}

void known_objects_forget(void)
{
	if (present.count)
		present.count--;
}
