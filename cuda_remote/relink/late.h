/* SPDX-License-Identifier: BSD-3-Clause */
/* What libheadrace-relink.so offers to libheadrace-late.so. */
#ifndef RC_RELINK_LATE_H
#define RC_RELINK_LATE_H

/* Replaces the static CUDA runtimes of the objects that were loaded since the last call. The caller holds the dynamic
 * linker's lock, as every dlopen does, and none of the new objects' code has run. */
void headrace_relink_new_objects(void);

#endif
