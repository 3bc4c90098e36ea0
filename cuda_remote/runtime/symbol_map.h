/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host address -> symbol: open addressing with linear probing. Writers hold a lock of their own; readers hold none. A
 * map of zeroes is an empty one, as it must be for static constructors.
 */
#ifndef RUNTIME_SYMBOL_MAP_H
#define RUNTIME_SYMBOL_MAP_H

#include "cuda_remote/runtime/runtime.h"

struct symbol_map {
	_Atomic(struct symbol_table *) table;
	size_t used; /* slots that are not empty, removed ones included */
};

/* Adds; a symbol with the same address that is there already stays. False when memory runs out. */
bool symbol_map_add(struct symbol_map *map, struct runtime_symbol *symbol);

/* Removes; false if the address belongs to another symbol or to none. */
bool symbol_map_remove(struct symbol_map *map, const struct runtime_symbol *symbol);

/* NULL if there is none. Any thread. */
struct runtime_symbol *symbol_map_find(struct symbol_map *map, const void *host);

#endif
