/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says about a mapping of this process, from /proc/self/maps. */
#ifndef IB_MAPS_H
#define IB_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct ib_mapping {
	uintptr_t start, end;
	bool private_anonymous; /* nobody but this process, through its own mapping, can change what lies there */
};

/* maps: a descriptor of /proc/self/maps, of the caller's own use. -ENOENT: nothing is mapped at that address; -EIO: the
 * file cannot be read. ib_maps_find asks for the one mapping where the kernel can (Linux 6.11) and else reads the
 * file's text, as ib_maps_find_text always does. No allocation. */
int ib_maps_find(int maps, uintptr_t at, struct ib_mapping *mapping);
int ib_maps_find_text(int maps, uintptr_t at, struct ib_mapping *mapping);

#endif
