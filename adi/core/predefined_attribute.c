/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of MPI_TAG_UB and so on, which all communicators have, and those of windows, for which window/ is asked. */
#include "adi/core/predefined_attribute.h"

#include "adi/core/error.h"
#include "adi/core/job.h"
#include "adi/window/window.h"

#include <limits.h>

bool adi_predefined_attribute_is(int keyval, enum adi_kind of)
{
	if (of == ADI_COMM)
		return keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE;
	return of == ADI_WIN && keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL;
}

/* Returns whether the communicators have the attribute. */
static bool of_comm(int keyval, int *value)
{
	switch (keyval) {
	case MPI_TAG_UB: *value = INT_MAX; break;
	case MPI_IO: *value = MPI_ANY_SOURCE; break;
	case MPI_HOST: *value = MPI_PROC_NULL; break;
	case MPI_WTIME_IS_GLOBAL: *value = 0; break;
	case MPI_LASTUSEDCODE: *value = adi_error_last_code(); break;
	case MPI_UNIVERSE_SIZE: *value = adi_job.size; break;
	default: return false; /* MPI_APPNUM: the process manager gives no number */
	}
	return true;
}

/* The value is a pointer to int. */
static int from_comm(int keyval, void **value, int *flag)
{
	static int values[MPI_UNIVERSE_SIZE - MPI_TAG_UB + 1];
	int *place = &values[keyval - MPI_TAG_UB];
	*flag = of_comm(keyval, place);
	if (*flag)
		*value = place;
	return MPI_SUCCESS;
}

int adi_predefined_attribute(struct adi_object *object, int keyval, void **value, int *flag)
{
	if (object->magic != ADI_MAGIC + ADI_WIN)
		return from_comm(keyval, value, flag);
	*flag = adi_window_attribute((struct adi_win *)object, keyval, value);
	return MPI_SUCCESS;
}
