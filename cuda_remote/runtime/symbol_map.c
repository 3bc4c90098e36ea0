/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash table that finds registered kernels and variables by their host address. */
#include "cuda_remote/runtime/symbol_map.h"

#include <stdlib.h>

struct symbol_table {
	struct symbol_table *older; /* kept, as a thread may be reading it; all older ones together are smaller */
	size_t size;                /* a power of two */
	_Atomic(struct runtime_symbol *) slots[];
};

enum { FIRST_SIZE = 256 };

/* Marks a slot whose symbol was removed, so that probing continues past it. */
static struct runtime_symbol removed;

static size_t hash(const void *host)
{
	/* Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4): addresses differ in the middle bits. */
	return (size_t)((uint64_t)(uintptr_t)host * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* The slot with this address, or the empty one where the search ends. */
static _Atomic(struct runtime_symbol *) *probe(struct symbol_table *table, const void *host)
{
	for (size_t i = hash(host);; i++) {
		_Atomic(struct runtime_symbol *) *slot = &table->slots[i & (table->size - 1)];
		/* Pairs with symbol_map_add's release: a symbol that is seen is seen complete. */
		struct runtime_symbol *symbol = atomic_load_explicit(slot, memory_order_acquire);
		if (!symbol || (symbol != &removed && symbol->host == host))
			return slot;
	}
}

struct runtime_symbol *symbol_map_find(struct symbol_map *map, const void *host)
{
	/* Pairs with grow's release: the table's size and slots. */
	struct symbol_table *table = atomic_load_explicit(&map->table, memory_order_acquire);
	return table ? atomic_load_explicit(probe(table, host), memory_order_acquire) : NULL;
}

static struct symbol_table *grow(struct symbol_map *map, struct symbol_table *old)
{
	size_t size = old ? old->size * 2 : FIRST_SIZE;
	struct symbol_table *table = calloc(1, sizeof *table + size * sizeof table->slots[0]);
	if (!table)
		return NULL;
	table->older = old;
	table->size = size;
	map->used = 0;
	for (size_t i = 0; old && i < old->size; i++) {
		struct runtime_symbol *symbol = atomic_load_explicit(&old->slots[i], memory_order_relaxed);
		if (!symbol || symbol == &removed)
			continue;
		atomic_store_explicit(probe(table, symbol->host), symbol, memory_order_relaxed);
		map->used++;
	}
	/* Orders the filled table before its address. */
	atomic_store_explicit(&map->table, table, memory_order_release);
	return table;
}

bool symbol_map_add(struct symbol_map *map, struct runtime_symbol *symbol)
{
	/* Written under the caller's lock. */
	struct symbol_table *table = atomic_load_explicit(&map->table, memory_order_relaxed);
	if (!table || map->used >= table->size / 2)
		table = grow(map, table);
	if (!table)
		return false;
	_Atomic(struct runtime_symbol *) *slot = probe(table, symbol->host);
	if (atomic_load_explicit(slot, memory_order_relaxed))
		return true;
	/* Orders the symbol's fields before the pointer by which readers without a lock find it. */
	atomic_store_explicit(slot, symbol, memory_order_release);
	map->used++;
	return true;
}

bool symbol_map_remove(struct symbol_map *map, const struct runtime_symbol *symbol)
{
	struct symbol_table *table = atomic_load_explicit(&map->table, memory_order_relaxed);
	if (!table)
		return false;
	_Atomic(struct runtime_symbol *) *slot = probe(table, symbol->host);
	if (atomic_load_explicit(slot, memory_order_relaxed) != symbol)
		return false;
	/* No thread looks up a symbol that is being unregistered, so none depends on when this is seen. */
	atomic_store_explicit(slot, &removed, memory_order_relaxed);
	return true;
}
