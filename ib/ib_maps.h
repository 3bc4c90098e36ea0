/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up a mapping of this process in /proc/self/maps. */
#ifndef IB_MAPS_H
#define IB_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct ib_mapping {
	uintptr_t start, end;
	bool private_anonymous; /* only this process, through its own mapping, can change the memory */
};

/* Finds the mapping that contains an address. maps: a descriptor of /proc/self/maps that no other thread uses at the
 * same time. -ENOENT: nothing is mapped there. -EIO: the file cannot be read. ib_maps_find queries the one mapping if
 * the kernel supports that (Linux 6.11); otherwise it reads the file's text, as ib_maps_find_text always does. Neither
 * allocates. */
int ib_maps_find(int maps, uintptr_t at, struct ib_mapping *mapping);
int ib_maps_find_text(int maps, uintptr_t at, struct ib_mapping *mapping);

/* The same for the first mapping that ends after an address. -ENOENT: there is none. */
int ib_maps_next(int maps, uintptr_t at, struct ib_mapping *mapping);
int ib_maps_next_text(int maps, uintptr_t at, struct ib_mapping *mapping);

#endif
