/* SPDX-License-Identifier: BSD-3-Clause */
/* What the generated bindings use: checks of arguments in line, and the common end of every function. */
#ifndef ADI_BINDINGS_BIND_H
#define ADI_BINDINGS_BIND_H

#include "adi/bindings/functions.h"
#include "adi/collective/op.h"
#include "adi/comm/comm.h"
#include "adi/core/entry.h"
#include "adi/core/info.h"
#include "adi/core/session.h"
#include "adi/datatype/type.h"
#include "adi/window/window.h"

#include <limits.h>
#include <stddef.h>

_Static_assert(sizeof(MPI_Aint) == sizeof(MPI_Count), "bindings pass an MPI_Aint * as MPI_Count *");

/* Goes to the end of the binding if a step fails. */
#define TRY(step)                                                    \
	do {                                                         \
		if (!ADI_LIKELY((class = (step)) == MPI_SUCCESS))    \
			goto end;                                    \
	} while (0)

static inline int adi_bind_info(MPI_Info handle, const char *argument, struct adi_info **found)
{
	return adi_info_take(handle, argument, true, found);
}

static inline int adi_bind_info_not_null(MPI_Info handle, const char *argument, struct adi_info **found)
{
	return adi_info_take(handle, argument, false, found);
}

/* An error handler for an object of this kind that the function creates. */
static inline int adi_bind_given(enum adi_kind kind, MPI_Errhandler handle, const char *argument,
				 struct adi_errhandler **found)
{
	struct adi_errhandler *handler = NULL;
	int class = adi_errhandler_take(handle, argument, &handler);
	if (!class)
		class = adi_errhandler_check(handler, kind, argument);
	if (!class)
		*found = handler;
	return class;
}

/* The origin's datatype is ignored if the operation is MPI_NO_OP (MPI 5.0, section 12.3.4). */
static inline int adi_bind_origin(MPI_Op op, MPI_Datatype handle, const char *argument, struct adi_type **found)
{
	if (op != MPI_NO_OP)
		return adi_type_take_committed(handle, argument, found);
	*found = adi_type_byte;
	return MPI_SUCCESS;
}

/* A message of rank MPI_PROC_NULL has no data, so its datatype may be MPI_DATATYPE_NULL. */
static inline int adi_bind_message_type(int rank, MPI_Datatype handle, const char *argument, struct adi_type **found)
{
	int class = adi_type_take_committed(handle, argument, found);
	if (ADI_LIKELY(!class) || rank != MPI_PROC_NULL || handle != MPI_DATATYPE_NULL)
		return class;
	*found = adi_type_byte;
	return MPI_SUCCESS;
}

static inline int adi_bind_count(MPI_Count count, const char *argument)
{
	return ADI_LIKELY(count >= 0) ? MPI_SUCCESS : adi_check_count(count, argument);
}

static inline int adi_bind_pointer(const void *pointer, const char *argument)
{
	return ADI_LIKELY(pointer != NULL) ? MPI_SUCCESS : adi_check_pointer(pointer, argument);
}

/* Stores a result in the int of the caller. */
static inline int adi_give_int(MPI_Count value, int *place, const char *argument)
{
	if (value > INT_MAX || value < INT_MIN)
		return adi_error_too_large(value, argument);
	*place = (int)value;
	return MPI_SUCCESS;
}

/* The same for sizes and numbers of elements: one that is too large is MPI_UNDEFINED. */
static inline int adi_give_query(MPI_Count value, int *place, const char *argument)
{
	(void)argument;
	*place = value > INT_MAX || value < INT_MIN ? MPI_UNDEFINED : (int)value;
	return MPI_SUCCESS;
}

static inline int adi_bind_unsupported(void)
{
	return adi_error(MPI_ERR_UNSUPPORTED_OPERATION, "this MPI library does not implement this function");
}

/* Of functions that call no error handler: MPI_Error_string tells which function it was. */
static inline int adi_bind_unsupported_silent(const char *name)
{
	int class = adi_bind_unsupported();
	adi_error_reported(name, class);
	adi_error_forget();
	return class;
}

static inline void adi_bind_end_running(void)
{
	adi_leave();
}

/* Of functions that may be called while MPI is not initialised: they always take the lock. */
static inline void adi_bind_end_anytime(void)
{
	adi_unlock();
}

#endif
