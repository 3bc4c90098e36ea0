/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table from host addresses to symbols: open addressing with linear probing. Callers that write hold one lock;
 * readers take none. A zeroed map is empty: static constructors use it before any initialization.
 */
#ifndef RUNTIME_SYMBOL_MAP_H
#define RUNTIME_SYMBOL_MAP_H

#include "cuda_remote/runtime/runtime.h"

struct symbol_map {
	_Atomic(struct symbol_table *) table;
	size_t used; /* slots that are not empty, removed ones included */
};

/* Adds a symbol. If the map has a symbol with this address, that one stays. False: no memory. */
bool symbol_map_add(struct symbol_map *map, struct runtime_symbol *symbol);

/* Removes a symbol. False: its address belongs to another symbol or to none. */
bool symbol_map_remove(struct symbol_map *map, const struct runtime_symbol *symbol);

/* NULL: not found. Any thread. */
struct runtime_symbol *symbol_map_find(struct symbol_map *map, const void *host);

#endif
