/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of single copy over shared memory: whether the system allows it. */
#ifndef HR_TEST_SHM_KIT_H
#define HR_TEST_SHM_KIT_H

#include <stdbool.h>

/* Returns whether a process may read its sibling's memory here at all. */
bool may_read_siblings(void);
/* From now on this process may neither read nor write another's memory. */
void forbid_copies(void);

#endif
