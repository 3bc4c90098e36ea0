/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of 32-bit ids that a peer uses to refer to local objects. */
#include "ch3/internal.h"

#include <errno.h>
#include <stdlib.h>

/* An id is the slot's index + 1 in the low bits and the slot's generation above them. */
#define INDEX_BITS 24
#define INDEX_MASK ((1u << INDEX_BITS) - 1)

static int ids_grow(struct ch3_ids *ids)
{
	uint32_t n = ids->n ? ids->n * 2 : 16;
	if (n > INDEX_MASK)
		return -ENOBUFS;
	struct ch3_id_slot *slot = realloc(ids->slot, n * sizeof *slot);
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = n; i-- > ids->n;) {
		slot[i] = (struct ch3_id_slot){ .next_free = ids->first_free };
		ids->first_free = i + 1;
	}
	ids->slot = slot;
	ids->n = n;
	return 0;
}

int ch3_ids_add(struct ch3_ids *ids, void *object, uint32_t *id)
{
	if (!ids->first_free) {
		int error = ids_grow(ids);
		if (error)
			return error;
	}
	uint32_t index = ids->first_free - 1;
	struct ch3_id_slot *slot = &ids->slot[index];
	ids->first_free = slot->next_free;
	slot->object = object;
	slot->generation++;
	*id = slot->generation << INDEX_BITS | (index + 1);
	return 0;
}

static struct ch3_id_slot *ids_slot(const struct ch3_ids *ids, uint32_t id)
{
	uint32_t index = (id & INDEX_MASK) - 1; /* an id of 0 becomes too large an index */
	if (index >= ids->n)
		return NULL;
	struct ch3_id_slot *slot = &ids->slot[index];
	return slot->object && slot->generation << INDEX_BITS == (id & ~INDEX_MASK) ? slot : NULL;
}

void *ch3_ids_find(const struct ch3_ids *ids, uint32_t id)
{
	const struct ch3_id_slot *slot = ids_slot(ids, id);
	return slot ? slot->object : NULL;
}

void ch3_ids_remove(struct ch3_ids *ids, uint32_t id)
{
	struct ch3_id_slot *slot = ids_slot(ids, id);
	if (!slot)
		return;
	slot->object = NULL;
	slot->next_free = ids->first_free;
	ids->first_free = (uint32_t)(slot - ids->slot) + 1;
}

void ch3_ids_destroy(struct ch3_ids *ids)
{
	free(ids->slot);
	*ids = (struct ch3_ids){ 0 };
}
