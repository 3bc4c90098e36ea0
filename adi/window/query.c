/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program can ask about a window: group, name, info, predefined attributes, shared memory. */
#include "adi/bindings/functions.h"
#include "adi/window/internal.h"

#include <string.h>

int mpi_win_get_group(struct adi_win *win, MPI_Group *group)
{
	adi_object_retain(&win->comm->local->object);
	*group = (MPI_Group)adi_object_handle(&win->comm->local->object);
	return MPI_SUCCESS;
}

int mpi_win_set_name(struct adi_win *win, const char *win_name)
{
	size_t len = strnlen(win_name, sizeof win->name - 1);
	memcpy(win->name, win_name, len);
	win->name[len] = '\0';
	return MPI_SUCCESS;
}

int mpi_win_get_name(MPI_Win win, char *win_name, int *resultlen)
{
	struct adi_win *found = NULL;
	int class = win == MPI_WIN_NULL ? MPI_SUCCESS : adi_win_take(win, "win", &found);
	if (class)
		return class;
	const char *name = found ? found->name : "MPI_WIN_NULL";
	size_t len = strlen(name);
	memcpy(win_name, name, len + 1);
	*resultlen = (int)len;
	return MPI_SUCCESS;
}

int mpi_win_set_info(struct adi_win *win, struct adi_info *info)
{
	for (int i = 0; info && i < info->n; i++) {
		int class = adi_info_put(win->info, info->entry[i].key, info->entry[i].value);
		if (class)
			return class;
	}
	return MPI_SUCCESS;
}

int mpi_win_get_info(struct adi_win *win, MPI_Info *info_used)
{
	struct adi_info *copy = adi_info_copy(win->info);
	if (!copy)
		return adi_error(MPI_ERR_NO_MEM, "no memory for an info object");
	*info_used = (MPI_Info)adi_object_handle(&copy->object);
	return MPI_SUCCESS;
}

bool adi_window_attribute(struct adi_win *win, int keyval, void **value)
{
	switch (keyval) {
	case MPI_WIN_BASE: *value = win->base; return true;
	case MPI_WIN_SIZE: *value = &win->size; return true;
	case MPI_WIN_DISP_UNIT: *value = &win->disp_unit; return true;
	case MPI_WIN_CREATE_FLAVOR: *value = &win->flavor; return true;
	case MPI_WIN_MODEL: *value = &win->model; return true;
	default: return false;
	}
}

/* MPI 5.0, section 12.2.3: the first process with memory, if rank is MPI_PROC_NULL. Memory that this process cannot address
 * has size 0. */
int mpi_win_shared_query(struct adi_win *win, int rank, MPI_Aint *size, MPI_Count *disp_unit, void *baseptr)
{
	if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return adi_error(MPI_ERR_RMA_FLAVOR,
				 "win was created by MPI_Win_create_dynamic; its memory has no shared segments");
	int class = adi_check_rank(win->comm, rank, "rank", true, false);
	if (class)
		return class;
	void *base = NULL;
	*size = 0;
	*disp_unit = 1;
	for (int i = 0; rank == MPI_PROC_NULL && i < win->comm->size; i++)
		if (win->target[i].size > 0)
			rank = i;
	if (rank != MPI_PROC_NULL) {
		*disp_unit = win->target[rank].disp_unit;
		base = win->target[rank].size ? win->target[rank].base : NULL;
		*size = base ? win->target[rank].size : 0;
	}
	memcpy(baseptr, &base, sizeof base);
	return MPI_SUCCESS;
}
