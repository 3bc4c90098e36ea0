/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes in Fortran: MPI 5.0, sections 7.7 and 19.3.7. A key's extra state in C is a struct with the callbacks of the
 * program. It is never freed, because objects may have attributes of a key that was freed. An attribute that C has set is seen
 * in Fortran as the address. If Fortran sets an attribute, its value is stored in a cell, and C gets the cell's address.
 * The delete callback of a key that Fortran created frees the cell. The cell of a key that C created is never freed,
 * because copies of the object may share it.
 */
#include "adi/fortran/fortran.h"

#include <pthread.h>
#include <stdbool.h>

/* The value of an attribute that Fortran has set. */
struct cell {
	union {
		MPI_Aint value;
		MPI_Fint integer;  /* if old */
		struct cell *next; /* if not used */
	};
	bool used, old; /* old: by MPI_ATTR_PUT */
};

/* Each slab has twice as many cells as the one before, so that few slabs are searched. */
#define FIRST_CELLS 16
#define SLABS 40
static struct {
	struct cell *cell;
	size_t n;
} slab[SLABS];
static int slabs;
static struct cell *free_cells;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void more_cells(void)
{
	size_t n = (size_t)FIRST_CELLS << slabs;
	struct cell *cells = slabs < SLABS ? calloc(n, sizeof *cells) : NULL;
	if (!cells)
		return;
	slab[slabs].cell = cells;
	slab[slabs++].n = n;
	for (size_t i = 0; i < n; i++) {
		cells[i].next = free_cells;
		free_cells = &cells[i];
	}
}

/* NULL: no memory. */
static struct cell *new_cell(MPI_Aint value, bool old)
{
	pthread_mutex_lock(&mutex);
	if (!free_cells)
		more_cells();
	struct cell *cell = free_cells;
	if (cell) {
		free_cells = cell->next;
		cell->used = true;
		cell->old = old;
		if (old)
			cell->integer = (MPI_Fint)value;
		else
			cell->value = value;
	}
	pthread_mutex_unlock(&mutex);
	return cell;
}

static void free_cell(struct cell *cell)
{
	if (!cell)
		return;
	pthread_mutex_lock(&mutex);
	cell->used = false;
	cell->next = free_cells;
	free_cells = cell;
	pthread_mutex_unlock(&mutex);
}

/* The cell at the address that C sees as an attribute's value; NULL: C has set the attribute. */
static struct cell *cell_of(void *value)
{
	struct cell *found = NULL;
	uintptr_t address = (uintptr_t)value;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < slabs && !found; i++) {
		uintptr_t first = (uintptr_t)slab[i].cell;
		if (address >= first && address < first + slab[i].n * sizeof *slab[i].cell && (address - first) % sizeof *found == 0)
			found = value;
	}
	if (found && !found->used)
		found = NULL;
	pthread_mutex_unlock(&mutex);
	return found;
}

/* The value in Fortran of an attribute's value in C. */
static MPI_Aint in_fortran(void *value)
{
	const struct cell *cell = cell_of(value);
	if (!cell)
		return (MPI_Aint)value;
	return cell->old ? cell->integer : cell->value;
}

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
	MPI_Aint value = in_fortran(in), new = 0;
	MPI_Fint number = keyval, copied = 0, error = MPI_SUCCESS;
	if (key->copy) {
		key->copy(&object, &number, &key->extra_state, &value, &new, &copied, &error);
	} else {
		MPI_Fint state = (MPI_Fint)key->extra_state, old = (MPI_Fint)value, result = 0;
		key->old_copy(&object, &number, &state, &old, &result, &copied, &error);
		new = result;
	}
	*flag = copied != 0;
	if (!copied || error != MPI_SUCCESS)
		return error;
	/* If the program's function has copied an address that C has set, C sees this address in the copy too. */
	bool address = !cell_of(in) && new == value;
	struct cell *cell = address ? NULL : new_cell(new, key->old_copy != NULL);
	*(void **)out = address ? in : (void *)cell;
	return address || cell ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int delete(MPI_Fint object, int keyval, void *attribute, void *extra_state)
{
	struct key *key = extra_state;
	MPI_Aint value = in_fortran(attribute);
	MPI_Fint number = keyval, error = MPI_SUCCESS;
	if (key->delete) {
		key->delete(&object, &number, &value, &key->extra_state, &error);
	} else {
		MPI_Fint state = (MPI_Fint)key->extra_state, old = (MPI_Fint)value;
		key->old_delete(&object, &number, &old, &state, &error);
	}
	if (error == MPI_SUCCESS)
		free_cell(cell_of(attribute));
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
	return in_fortran(value);
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

#define SET(name, Name)                                                                                        \
	static int name##_set(MPI_Fint object, int keyval, MPI_Aint value, bool old)                           \
	{                                                                                                      \
		struct cell *cell = new_cell(value, old);                                                      \
		int class = cell ? PMPI_##Name##_set_attr(hrf_##name(object), keyval, cell) : MPI_ERR_NO_MEM;  \
		if (class != MPI_SUCCESS)                                                                      \
			free_cell(cell);                                                                       \
		return class;                                                                                  \
	}                                                                                                      \
	void pmpi_##name##_set_attr_(MPI_Fint *object, MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *ierror);   \
	void pmpi_##name##_set_attr_(MPI_Fint *object, MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *ierror)    \
	{                                                                                                      \
		hrf_return(name##_set(*object, *keyval, *value, false));                                       \
	}                                                                                                      \
	HRF_NAMES(name##_set_attr)
SET(comm, Comm);
SET(type, Type);
SET(win, Win);

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
	hrf_return(comm_set(*comm, *keyval, *value, true));
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
