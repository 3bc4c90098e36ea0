/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of handles (wire.h): chunks of entries that are never freed, so that a look-up takes no lock. One source file
 * of a library includes this, and defines struct entry before. The entry's member word is atomic. It is kind << 16 |
 * generation; the kind is 0 while the entry is free. A handle is live if its kind and generation equal its entry's
 * word.
 */
#ifndef RC_HANDLE_TABLE_H
#define RC_HANDLE_TABLE_H

#include "cuda_remote/wire.h"

#include <stdlib.h>

#define CHUNK 4096u
#define CHUNKS (RC_HANDLE_COUNT / CHUNK)

static struct entry *chunks[CHUNKS]; /* atomic; set once */

/* Acquire pairs with the release in entry_make: the reader sees the chunk's zeros. */
static struct entry *entry_at(uint32_t index)
{
	struct entry *chunk = __atomic_load_n(&chunks[index / CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk[index % CHUNK] : NULL;
}

/* Called under the lock of the including file. NULL: no memory. */
static struct entry *entry_make(uint32_t index)
{
	if (!chunks[index / CHUNK]) {
		struct entry *chunk = calloc(CHUNK, sizeof *chunk);
		if (!chunk)
			return NULL;
		__atomic_store_n(&chunks[index / CHUNK], chunk, __ATOMIC_RELEASE);
	}
	return &chunks[index / CHUNK][index % CHUNK];
}

static uint32_t handle_word(uint64_t handle)
{
	return (uint32_t)(handle >> RC_HANDLE_INDEX_BITS);
}

/* The live entry of a handle of any kind. Acquire pairs with the release that made it live, so the reader sees its
 * other members. */
static struct entry *entry_find(uint64_t handle)
{
	if (handle >> 48 || !(handle >> 40))
		return NULL;
	struct entry *entry = entry_at(rc_handle_index(handle));
	return entry && __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE) == handle_word(handle) ? entry : NULL;
}

#endif
