/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes in Fortran: MPI 5.0, section 7.7. A key's extra state in C is a struct with the callbacks of the program. It is
 * never freed, because objects may have attributes of a key that was freed. An attribute that C has set is seen in Fortran as
 * the address, and one that Fortran has set is seen in C as the integer itself.
 */
#include "adi/fortran/fortran.h"

typedef void copy_fn(MPI_Fint *object, MPI_Fint *keyval, MPI_Aint *extra_state, MPI_Aint *in, MPI_Aint *out, MPI_Fint *flag,
		     MPI_Fint *ierror);
typedef void delete_fn(MPI_Fint *object, MPI_Fint *keyval, MPI_Aint *value, MPI_Aint *extra_state, MPI_Fint *ierror);
/* The same for MPI_KEYVAL_CREATE, whose values are of type INTEGER. */
typedef void old_copy_fn(MPI_Fint *object, MPI_Fint *keyval, MPI_Fint *extra_state, MPI_Fint *in, MPI_Fint *out, MPI_Fint *flag,
			 MPI_Fint *ierror);
typedef void old_delete_fn(MPI_Fint *object, MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *extra_state, MPI_Fint *ierror);

struct key {
	copy_fn *copy;
	delete_fn *delete;
	old_copy_fn *old_copy;
	old_delete_fn *old_delete;
	MPI_Aint extra_state;
};

static int copy(MPI_Fint object, int keyval, void *extra_state, void *in, void *out, int *flag)
{
	struct key *key = extra_state;
	MPI_Aint value = (MPI_Aint)in, new = 0;
	MPI_Fint number = keyval, copied = 0, error = MPI_SUCCESS;
	if (key->copy) {
		key->copy(&object, &number, &key->extra_state, &value, &new, &copied, &error);
	} else {
		MPI_Fint state = (MPI_Fint)key->extra_state, old = (MPI_Fint)value, result = 0;
		key->old_copy(&object, &number, &state, &old, &result, &copied, &error);
		new = result;
	}
	*(void **)out = (void *)new;
	*flag = copied != 0;
	return error;
}

static int delete(MPI_Fint object, int keyval, void *attribute, void *extra_state)
{
	struct key *key = extra_state;
	MPI_Aint value = (MPI_Aint)attribute;
	MPI_Fint number = keyval, error = MPI_SUCCESS;
	if (key->delete) {
		key->delete(&object, &number, &value, &key->extra_state, &error);
	} else {
		MPI_Fint state = (MPI_Fint)key->extra_state, old = (MPI_Fint)value;
		key->old_delete(&object, &number, &old, &state, &error);
	}
	return error;
}

static struct key *new_key(copy_fn *copies, delete_fn *deletes, MPI_Aint extra_state)
{
	struct key *key = calloc(1, sizeof *key);
	if (key) {
		key->copy = copies;
		key->delete = deletes;
		key->extra_state = extra_state;
	}
	return key;
}

/* The functions of a kind of object: create_keyval, and the callbacks that C sees. */
#define KEYS(name, Name, handle)                                                                                        \
	static int name##_copy(handle object, int keyval, void *extra_state, void *in, void *out, int *flag)            \
	{                                                                                                               \
		return copy(PMPI_##Name##_toint(object), keyval, extra_state, in, out, flag);                           \
	}                                                                                                               \
	static int name##_delete(handle object, int keyval, void *value, void *extra_state)                             \
	{                                                                                                               \
		return delete(PMPI_##Name##_toint(object), keyval, value, extra_state);                                 \
	}                                                                                                               \
	void pmpi_##name##_create_keyval_(copy_fn *copies, delete_fn *deletes, MPI_Fint *keyval, MPI_Aint *extra_state, \
					  MPI_Fint *ierror);                                                            \
	void pmpi_##name##_create_keyval_(copy_fn *copies, delete_fn *deletes, MPI_Fint *keyval, MPI_Aint *extra_state, \
					  MPI_Fint *ierror)                                                             \
	{                                                                                                               \
		struct key *key = new_key(copies, deletes, *extra_state);                                               \
		int class = key ? PMPI_##Name##_create_keyval(name##_copy, name##_delete, keyval, key) : MPI_ERR_NO_MEM; \
		if (class != MPI_SUCCESS)                                                                               \
			free(key);                                                                                      \
		hrf_return(class);                                                                                      \
	}                                                                                                               \
	HRF_NAMES(name##_create_keyval)
KEYS(comm, Comm, MPI_Comm);
KEYS(type, Type, MPI_Datatype);
KEYS(win, Win, MPI_Win);

void pmpi_keyval_create_(old_copy_fn *copies, old_delete_fn *deletes, MPI_Fint *keyval, MPI_Fint *extra_state, MPI_Fint *ierror);
void pmpi_keyval_create_(old_copy_fn *copies, old_delete_fn *deletes, MPI_Fint *keyval, MPI_Fint *extra_state, MPI_Fint *ierror)
{
	struct key *key = new_key(NULL, NULL, *extra_state);
	int class = MPI_ERR_NO_MEM;
	if (key) {
		key->old_copy = copies;
		key->old_delete = deletes;
		class = PMPI_Comm_create_keyval(comm_copy, comm_delete, keyval, key);
	}
	if (class != MPI_SUCCESS)
		free(key);
	hrf_return(class);
}
HRF_NAMES(keyval_create);

void pmpi_keyval_free_(MPI_Fint *keyval, MPI_Fint *ierror);
void pmpi_keyval_free_(MPI_Fint *keyval, MPI_Fint *ierror)
{
	hrf_return(PMPI_Comm_free_keyval(keyval));
}
HRF_NAMES(keyval_free);

/* C gets predefined attributes as addresses of integers; Fortran gets the integers. */
static MPI_Aint value_of(int keyval, void *value)
{
	if (keyval == MPI_WIN_SIZE)
		return *(MPI_Aint *)value;
	if ((keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) || (keyval >= MPI_WIN_DISP_UNIT && keyval <= MPI_WIN_MODEL))
		return *(int *)value;
	return (MPI_Aint)value;
}

#define GET(name, Name)                                                                                              \
	void pmpi_##name##_get_attr_(MPI_Fint *object, MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag,            \
				     MPI_Fint *ierror);                                                              \
	void pmpi_##name##_get_attr_(MPI_Fint *object, MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag,            \
				     MPI_Fint *ierror)                                                               \
	{                                                                                                            \
		void *found = NULL;                                                                                  \
		int has = 0, class = PMPI_##Name##_get_attr(hrf_##name(*object), *keyval, &found, &has);             \
		if (class == MPI_SUCCESS && has)                                                                     \
			*value = value_of(*keyval, found);                                                           \
		*flag = has != 0;                                                                                    \
		hrf_return(class);                                                                                   \
	}                                                                                                            \
	HRF_NAMES(name##_get_attr)
GET(comm, Comm);
GET(type, Type);
GET(win, Win);

void pmpi_attr_get_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *flag, MPI_Fint *ierror);
void pmpi_attr_get_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *flag, MPI_Fint *ierror)
{
	MPI_Aint found = 0;
	pmpi_comm_get_attr_(comm, keyval, &found, flag, ierror);
	if (*flag)
		*value = (MPI_Fint)found;
}
HRF_NAMES(attr_get);

void pmpi_attr_put_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *ierror);
void pmpi_attr_put_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *ierror)
{
	hrf_return(PMPI_Comm_set_attr(hrf_comm(*comm), *keyval, (void *)(MPI_Aint)*value));
}
HRF_NAMES(attr_put);

void pmpi_attr_delete_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *ierror);
void pmpi_attr_delete_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *ierror)
{
	hrf_return(PMPI_Comm_delete_attr(hrf_comm(*comm), *keyval));
}
HRF_NAMES(attr_delete);

/* The callbacks that MPI defines. */
#define PREDEFINED(prefix, integer)                                                                                         \
	void prefix##null_copy_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *extra_state, integer *in, integer *out,     \
				   MPI_Fint *flag, MPI_Fint *ierror);                                                       \
	void prefix##dup_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *extra_state, integer *in, integer *out,           \
			     MPI_Fint *flag, MPI_Fint *ierror);                                                             \
	void prefix##null_delete_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *value, integer *extra_state,              \
				     MPI_Fint *ierror);                                                                     \
	void prefix##null_copy_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *extra_state, integer *in, integer *out,     \
				   MPI_Fint *flag, MPI_Fint *ierror)                                                        \
	{                                                                                                                   \
		(void)object, (void)keyval, (void)extra_state, (void)in, (void)out;                                         \
		*flag = 0;                                                                                                  \
		*ierror = MPI_SUCCESS;                                                                                      \
	}                                                                                                                   \
	void prefix##dup_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *extra_state, integer *in, integer *out,           \
			     MPI_Fint *flag, MPI_Fint *ierror)                                                              \
	{                                                                                                                   \
		(void)object, (void)keyval, (void)extra_state;                                                              \
		*out = *in;                                                                                                 \
		*flag = 1;                                                                                                  \
		*ierror = MPI_SUCCESS;                                                                                      \
	}                                                                                                                   \
	void prefix##null_delete_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *value, integer *extra_state,              \
				     MPI_Fint *ierror)                                                                      \
	{                                                                                                                   \
		(void)object, (void)keyval, (void)value, (void)extra_state;                                                 \
		*ierror = MPI_SUCCESS;                                                                                      \
	}                                                                                                                   \
	_Static_assert(1, "")
PREDEFINED(mpi_comm_, MPI_Aint);
PREDEFINED(mpi_type_, MPI_Aint);
PREDEFINED(mpi_win_, MPI_Aint);
PREDEFINED(mpi_, MPI_Fint);
