/* SPDX-License-Identifier: BSD-3-Clause */
/* Info objects: MPI 5.0, chapter 10. */
#ifndef ADI_CORE_INFO_H
#define ADI_CORE_INFO_H

#include "adi/core/error.h"

struct adi_info {
	struct adi_object object;
	int n;
	struct adi_info_entry {
		char *key, *value; /* owned */
	} *entry; /* [n], in order of insertion */
};

/* MPI_INFO_NULL is taken if allow_null; *found is NULL then. */
int adi_info_take(MPI_Info handle, const char *argument, bool allow_null, struct adi_info **found);
/* The value of a key, or NULL. info may be NULL. */
const char *adi_info_get(const struct adi_info *info, const char *key);
int adi_info_put(struct adi_info *info, const char *key, const char *value);
struct adi_info *adi_info_new(void);
/* A copy; of NULL an empty one. NULL: no memory. */
struct adi_info *adi_info_copy(const struct adi_info *info);
void adi_info_release(struct adi_info *info);

#endif
