/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which loaded objects a pass over all of them has already looked at, so that a pass opens the files of new objects
 * only. A pass calls known_objects_look for every object, in the order of dl_iterate_phdr, which is that of loading.
 */
#ifndef RC_RELINK_KNOWN_OBJECTS_H
#define RC_RELINK_KNOWN_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

/* Begins a pass. unloads: how many objects were unloaded so far (dlpi_subs). */
void known_objects_begin(unsigned long long unloads);

/* Whether the pass before this one has seen the object of this base address and path, and need not be repeated for it. */
bool known_objects_look(uintptr_t base, const char *path);

/* The object of the last call has a static runtime. If objects were unloaded since, it may have been loaded anew at the
 * same address; then the next pass does not treat it as known. */
void known_objects_mark(void);

/* The object of the last call is looked at again in the next pass. */
void known_objects_forget(void);

#endif
