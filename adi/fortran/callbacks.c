/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction operations, error handlers and generalized requests whose functions are in Fortran. C passes handles to these
 * functions, Fortran expects integers. Functions of operations and error handlers have no argument of their own, so each gets a
 * C function of a fixed number of slots. The slot of an operation is free after MPI_Op_free, and slots are taken in turn, so
 * that an operation in progress keeps its slot for long. The slot of an error handler is never free: objects may still have it.
 */
#include "adi/fortran/fortran.h"

#include <pthread.h>
#include <stdbool.h>

#define SLOTS 256 /* six functions each; with 1024 slots this file took 12 s to compile */
/* F(0000) ... F(0377): octal numbers. */
#define EIGHT(F, a) F(a##0) F(a##1) F(a##2) F(a##3) F(a##4) F(a##5) F(a##6) F(a##7)
#define SIXTY_FOUR(F, a)                                                                                \
	EIGHT(F, a##0) EIGHT(F, a##1) EIGHT(F, a##2) EIGHT(F, a##3) EIGHT(F, a##4) EIGHT(F, a##5) EIGHT(F, a##6) EIGHT(F, a##7)
#define ALL_SLOTS(F) SIXTY_FOUR(F, 00) SIXTY_FOUR(F, 01) SIXTY_FOUR(F, 02) SIXTY_FOUR(F, 03)

typedef void reduction(void *in, void *inout, void *len, MPI_Fint *datatype);
typedef void handler(MPI_Fint *object, MPI_Fint *error);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool used;
	reduction *function; /* stays after MPI_Op_free: reductions may be in progress */
	MPI_Op op;
} ops[SLOTS];
static struct {
	handler *function;
	enum { OF_COMM, OF_WIN, OF_FILE, OF_SESSION } of;
} handlers[SLOTS];

/* noinline: the slots' functions are many. */
static __attribute__((noinline)) void reduce(unsigned slot, void *in, void *inout, void *len, MPI_Datatype *datatype)
{
	MPI_Fint number = PMPI_Type_toint(*datatype);
	ops[slot].function(in, inout, len, &number);
}

/* A Fortran program may stop here: MPI calls error handlers only after errors, so speed does not matter. */
static __attribute__((noinline)) void handle(unsigned slot, void *object, int *error)
{
	MPI_Fint number = 0, code = *error;
	switch (handlers[slot].of) {
	case OF_COMM: number = PMPI_Comm_toint(*(MPI_Comm *)object); break;
	case OF_WIN: number = PMPI_Win_toint(*(MPI_Win *)object); break;
	case OF_FILE: number = PMPI_File_toint(*(MPI_File *)object); break;
	case OF_SESSION: number = PMPI_Session_toint(*(MPI_Session *)object); break;
	}
	handlers[slot].function(&number, &code);
}

#define OP(n)                                                                               \
	static void op_##n(void *in, void *inout, int *len, MPI_Datatype *datatype)         \
	{                                                                                   \
		reduce(n, in, inout, len, datatype);                                        \
	}                                                                                   \
	static void op_c_##n(void *in, void *inout, MPI_Count *len, MPI_Datatype *datatype) \
	{                                                                                   \
		reduce(n, in, inout, len, datatype);                                        \
	}
ALL_SLOTS(OP)
#define OP_NAME(n) op_##n,
static MPI_User_function *const op_functions[SLOTS] = { ALL_SLOTS(OP_NAME) };
#define OP_C_NAME(n) op_c_##n,
static MPI_User_function_c *const op_c_functions[SLOTS] = { ALL_SLOTS(OP_C_NAME) };

#define HANDLER(n)                                                  \
	static void comm_##n(MPI_Comm *object, int *error, ...)     \
	{                                                           \
		handle(n, object, error);                           \
	}                                                           \
	static void win_##n(MPI_Win *object, int *error, ...)       \
	{                                                           \
		handle(n, object, error);                           \
	}                                                           \
	static void file_##n(MPI_File *object, int *error, ...)     \
	{                                                           \
		handle(n, object, error);                           \
	}                                                           \
	static void session_##n(MPI_Session *object, int *error, ...) \
	{                                                           \
		handle(n, object, error);                           \
	}
ALL_SLOTS(HANDLER)
#define COMM_NAME(n) comm_##n,
static MPI_Comm_errhandler_function *const comm_functions[SLOTS] = { ALL_SLOTS(COMM_NAME) };
#define WIN_NAME(n) win_##n,
static MPI_Win_errhandler_function *const win_functions[SLOTS] = { ALL_SLOTS(WIN_NAME) };
#define FILE_NAME(n) file_##n,
static MPI_File_errhandler_function *const file_functions[SLOTS] = { ALL_SLOTS(FILE_NAME) };
#define SESSION_NAME(n) session_##n,
static MPI_Session_errhandler_function *const session_functions[SLOTS] = { ALL_SLOTS(SESSION_NAME) };

/* Returns the slot, or -1 if all are taken. */
static int take_op(reduction *function)
{
	static int next;
	int found = -1;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < SLOTS && found < 0; i++) {
		if (!ops[next].used) {
			found = next;
			ops[found].used = true;
			ops[found].function = function;
		}
		next = (next + 1) % SLOTS;
	}
	pthread_mutex_unlock(&mutex);
	return found;
}

static int take_handler(handler *function, int of)
{
	static int used;
	int found = -1;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < used && found < 0; i++)
		if (handlers[i].function == function && (int)handlers[i].of == of)
			found = i;
	if (found < 0 && used < SLOTS) {
		found = used++;
		handlers[found].function = function;
		handlers[found].of = of;
	}
	pthread_mutex_unlock(&mutex);
	return found;
}

/* Notes the operation of a slot. If another slot has the same handle, C has freed that operation; so that slot is free. */
static void set_op(int slot, MPI_Op op)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < SLOTS; i++)
		if (ops[i].op == op)
			ops[i].used = false;
	ops[slot].op = op;
	ops[slot].used = true;
	pthread_mutex_unlock(&mutex);
}

static void free_op(int slot)
{
	pthread_mutex_lock(&mutex);
	ops[slot].used = false;
	ops[slot].op = MPI_OP_NULL;
	pthread_mutex_unlock(&mutex);
}

#define OP_CREATE(name, Name, functions)                                                            \
	void pmpi_##name##_(reduction *function, MPI_Fint *commute, MPI_Fint *op, MPI_Fint *ierror); \
	void pmpi_##name##_(reduction *function, MPI_Fint *commute, MPI_Fint *op, MPI_Fint *ierror)  \
	{                                                                                           \
		int slot = take_op(function), class = MPI_ERR_NO_MEM;                               \
		if (slot >= 0) {                                                                    \
			MPI_Op new = MPI_OP_NULL;                                                   \
			class = PMPI_##Name(functions[slot], *commute != 0, &new);                  \
			if (class == MPI_SUCCESS) {                                                 \
				set_op(slot, new);                                                  \
				*op = PMPI_Op_toint(new);                                           \
			} else {                                                                    \
				free_op(slot);                                                      \
			}                                                                           \
		}                                                                                   \
		hrf_return(class);                                                                  \
	}                                                                                           \
	HRF_NAMES(name)
OP_CREATE(op_create, Op_create, op_functions);
OP_CREATE(op_create_c, Op_create_c, op_c_functions);

/* The slot of an operation; -1: it has none. */
static int slot_of(MPI_Op op)
{
	int found = -1;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < SLOTS && found < 0; i++)
		if (ops[i].used && ops[i].op == op)
			found = i;
	pthread_mutex_unlock(&mutex);
	return found;
}

void pmpi_op_free_(MPI_Fint *op, MPI_Fint *ierror);
void pmpi_op_free_(MPI_Fint *op, MPI_Fint *ierror)
{
	MPI_Op handle = hrf_op(*op);
	/* Before the operation is freed: later another thread may create one with the same handle. */
	int slot = slot_of(handle), class = PMPI_Op_free(&handle);
	*op = PMPI_Op_toint(handle);
	if (slot >= 0 && class == MPI_SUCCESS)
		free_op(slot);
	hrf_return(class);
}
HRF_NAMES(op_free);

#define ERRHANDLER(name, Name, kind)                                                                           \
	void pmpi_##name##_create_errhandler_(handler *function, MPI_Fint *errhandler, MPI_Fint *ierror);      \
	void pmpi_##name##_create_errhandler_(handler *function, MPI_Fint *errhandler, MPI_Fint *ierror)       \
	{                                                                                                      \
		int slot = take_handler(function, kind), class = MPI_ERR_NO_MEM;                               \
		MPI_Errhandler new = MPI_ERRHANDLER_NULL;                                                      \
		if (slot >= 0)                                                                                 \
			class = PMPI_##Name##_create_errhandler(name##_functions[slot], &new);                 \
		if (class == MPI_SUCCESS)                                                                      \
			*errhandler = PMPI_Errhandler_toint(new);                                              \
		hrf_return(class);                                                                             \
	}                                                                                                      \
	HRF_NAMES(name##_create_errhandler)
ERRHANDLER(comm, Comm, OF_COMM);
ERRHANDLER(win, Win, OF_WIN);
ERRHANDLER(file, File, OF_FILE);
ERRHANDLER(session, Session, OF_SESSION);

/* Generalized requests: the extra state in C is a struct that the free function frees. */
struct grequest {
	void (*query)(MPI_Aint *extra_state, MPI_Fint *status, MPI_Fint *ierror);
	void (*free)(MPI_Aint *extra_state, MPI_Fint *ierror);
	void (*cancel)(MPI_Aint *extra_state, MPI_Fint *complete, MPI_Fint *ierror);
	MPI_Aint extra_state;
};

static int grequest_query(void *extra_state, MPI_Status *status)
{
	struct grequest *request = extra_state;
	MPI_Fint error = MPI_SUCCESS;
	request->query(&request->extra_state, (MPI_Fint *)(void *)status, &error);
	return error;
}

static int grequest_free(void *extra_state)
{
	struct grequest *request = extra_state;
	MPI_Fint error = MPI_SUCCESS;
	request->free(&request->extra_state, &error);
	free(request);
	return error;
}

static int grequest_cancel(void *extra_state, int complete)
{
	struct grequest *request = extra_state;
	MPI_Fint error = MPI_SUCCESS, is_complete = complete != 0;
	request->cancel(&request->extra_state, &is_complete, &error);
	return error;
}

void pmpi_grequest_start_(void (*query)(MPI_Aint *, MPI_Fint *, MPI_Fint *), void (*freed)(MPI_Aint *, MPI_Fint *),
			  void (*cancel)(MPI_Aint *, MPI_Fint *, MPI_Fint *), MPI_Aint *extra_state, MPI_Fint *request,
			  MPI_Fint *ierror);
void pmpi_grequest_start_(void (*query)(MPI_Aint *, MPI_Fint *, MPI_Fint *), void (*freed)(MPI_Aint *, MPI_Fint *),
			  void (*cancel)(MPI_Aint *, MPI_Fint *, MPI_Fint *), MPI_Aint *extra_state, MPI_Fint *request,
			  MPI_Fint *ierror)
{
	struct grequest *state = malloc(sizeof *state);
	int class = MPI_ERR_NO_MEM;
	MPI_Request new = MPI_REQUEST_NULL;
	if (state) {
		*state = (struct grequest){ query, freed, cancel, *extra_state };
		class = PMPI_Grequest_start(grequest_query, grequest_free, grequest_cancel, state, &new);
	}
	if (class == MPI_SUCCESS)
		*request = PMPI_Request_toint(new);
	else
		free(state);
	hrf_return(class);
}
HRF_NAMES(grequest_start);
