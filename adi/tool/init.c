/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_T_init_thread, MPI_T_finalize, and texts. Enumerations: no variable has one. */
#include "adi/bindings/functions.h"
#include "adi/tool/tool.h"

#include <stdatomic.h>
#include <string.h>

static atomic_int users;

bool tool_running(void)
{
	return atomic_load_explicit(&users, memory_order_relaxed) > 0;
}

int mpi_t_init_thread(int required, int *provided)
{
	if (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED && required != MPI_THREAD_SERIALIZED &&
	    required != MPI_THREAD_MULTIPLE)
		return MPI_T_ERR_INVALID;
	atomic_fetch_add(&users, 1);
	tool_put(provided, MPI_THREAD_MULTIPLE);
	return MPI_SUCCESS;
}

int mpi_t_finalize(void)
{
	int before = atomic_load(&users);
	do {
		if (before == 0)
			return MPI_T_ERR_NOT_INITIALIZED;
	} while (!atomic_compare_exchange_weak(&users, &before, before - 1));
	return MPI_SUCCESS;
}

void tool_text(const char *text, char *buffer, int *len)
{
	if (!len)
		return;
	size_t need = strlen(text) + 1;
	if (buffer && *len > 0) {
		size_t some = need < (size_t)*len ? need : (size_t)*len;
		memcpy(buffer, text, some - 1);
		buffer[some - 1] = '\0';
	}
	*len = (int)need;
}

int mpi_t_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
	(void)enumtype;
	(void)num;
	(void)name;
	(void)name_len;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
	(void)enumtype;
	(void)indx;
	(void)value;
	(void)name;
	(void)name_len;
	TOOL_CHECK_RUNNING();
	return MPI_T_ERR_INVALID_HANDLE;
}
