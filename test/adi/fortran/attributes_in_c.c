/* SPDX-License-Identifier: BSD-3-Clause */
/* What C sees of the attributes of attributes.f90, and what it sets. */
#include "mpi.h"

static int variable = 77, deleted_value;

static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra_state)
{
	(void)comm, (void)keyval, (void)extra_state;
	deleted_value = (int)*(MPI_Aint *)value;
	return MPI_SUCCESS;
}

int c_key(void);
int c_key(void)
{
	int key = MPI_KEYVAL_INVALID;
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, 0);
	return key;
}

int c_deleted(void);
int c_deleted(void)
{
	return deleted_value;
}

MPI_Aint c_address(void);
MPI_Aint c_address(void)
{
	return (MPI_Aint)&variable;
}

void c_set(int comm, int key);
void c_set(int comm, int key)
{
	MPI_Comm_set_attr(MPI_Comm_fromint(comm), key, &variable);
}

static void *get(int comm, int key)
{
	void *value = 0;
	int flag = 0;
	MPI_Comm_get_attr(MPI_Comm_fromint(comm), key, &value, &flag);
	return flag ? value : 0;
}

/* The attribute is an address: of an MPI_Aint, of an int, of the variable. */
int c_is(int comm, int key, MPI_Aint value);
int c_is(int comm, int key, MPI_Aint value)
{
	const MPI_Aint *found = get(comm, key);
	return found && *found == value;
}

int c_is_integer(int comm, int key, int value);
int c_is_integer(int comm, int key, int value)
{
	const int *found = get(comm, key);
	return found && *found == value;
}

int c_is_own(int comm, int key);
int c_is_own(int comm, int key)
{
	return get(comm, key) == (void *)&variable;
}
