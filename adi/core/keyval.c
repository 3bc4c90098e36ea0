/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_*_create_keyval, MPI_*_set_attr and so on of communicators, datatypes and windows. */
#include "adi/bindings/functions.h"
#include "adi/comm/comm.h"
#include "adi/core/attribute.h"
#include "adi/datatype/type.h"
#include "adi/window/window.h"

int mpi_comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn, MPI_Comm_delete_attr_function *comm_delete_attr_fn,
			   int *comm_keyval, void *extra_state)
{
	return adi_keyval_create(ADI_COMM, (void (*)(void))comm_copy_attr_fn, (void (*)(void))comm_delete_attr_fn,
				 extra_state, comm_keyval);
}

int mpi_comm_free_keyval(int *comm_keyval)
{
	return adi_keyval_free(ADI_COMM, comm_keyval);
}

int mpi_comm_set_attr(struct adi_comm *comm, int comm_keyval, void *attribute_val)
{
	return adi_attribute_set(&comm->object, comm_keyval, attribute_val);
}

int mpi_comm_get_attr(struct adi_comm *comm, int comm_keyval, void *attribute_val, int *flag)
{
	return adi_attribute_get(&comm->object, comm_keyval, attribute_val, flag);
}

int mpi_comm_delete_attr(struct adi_comm *comm, int comm_keyval)
{
	return adi_attribute_remove(&comm->object, comm_keyval);
}

int mpi_type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn, MPI_Type_delete_attr_function *type_delete_attr_fn,
			   int *type_keyval, void *extra_state)
{
	return adi_keyval_create(ADI_TYPE, (void (*)(void))type_copy_attr_fn, (void (*)(void))type_delete_attr_fn,
				 extra_state, type_keyval);
}

int mpi_type_free_keyval(int *type_keyval)
{
	return adi_keyval_free(ADI_TYPE, type_keyval);
}

int mpi_type_set_attr(struct adi_type *datatype, int type_keyval, void *attribute_val)
{
	return adi_attribute_set(&datatype->object, type_keyval, attribute_val);
}

int mpi_type_get_attr(struct adi_type *datatype, int type_keyval, void *attribute_val, int *flag)
{
	return adi_attribute_get(&datatype->object, type_keyval, attribute_val, flag);
}

int mpi_type_delete_attr(struct adi_type *datatype, int type_keyval)
{
	return adi_attribute_remove(&datatype->object, type_keyval);
}

int mpi_win_create_keyval(MPI_Win_copy_attr_function *win_copy_attr_fn, MPI_Win_delete_attr_function *win_delete_attr_fn,
			   int *win_keyval, void *extra_state)
{
	return adi_keyval_create(ADI_WIN, (void (*)(void))win_copy_attr_fn, (void (*)(void))win_delete_attr_fn,
				 extra_state, win_keyval);
}

int mpi_win_free_keyval(int *win_keyval)
{
	return adi_keyval_free(ADI_WIN, win_keyval);
}

int mpi_win_set_attr(struct adi_win *win, int win_keyval, void *attribute_val)
{
	return adi_attribute_set(&win->object, win_keyval, attribute_val);
}

int mpi_win_get_attr(struct adi_win *win, int win_keyval, void *attribute_val, int *flag)
{
	return adi_attribute_get(&win->object, win_keyval, attribute_val, flag);
}

int mpi_win_delete_attr(struct adi_win *win, int win_keyval)
{
	return adi_attribute_remove(&win->object, win_keyval);
}
