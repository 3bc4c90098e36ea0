/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of all MPI functions with one wrong argument each, generated from the tables of signatures by wrong_arguments.py.
 * Each call must return one of the right error classes. MPI_Error_string of the class must then name the function, the
 * argument and, where the value is a number, NULL or a null handle, the value.
 *
 * On one rank: all cases but those that need an intercommunicator. On two ranks: those cases. With an argument N: prints
 * function and argument of case N, and makes this call with MPI_ERRORS_ARE_FATAL; prints "none" if there is no such case on
 * one rank.
 */
#include "test/adi/check_mpi.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#define CLASSES_MAX 6
#define POOL 64
struct wrong {
	int (*call)(void);
	const char *function, *argument, *value;
	const char *said; /* what the message contains beside function and argument */
	bool silent;      /* the function belongs to the tool interface: there is no message */
	bool inter;       /* needs an intercommunicator */
	int classes[CLASSES_MAX];
};

/* What the generated calls use. All is valid, but what is called freed. */
static char bytes[4096] __attribute__((aligned(16))), more_bytes[4096] __attribute__((aligned(16))), chars[8192];
static char attached[64];
static MPI_Status status, statuses[4];
static MPI_Comm comm, cart, graph, dist, inter, freed_comm;
static MPI_Group group, freed_group;
static MPI_Datatype type, uncommitted, freed_type;
static MPI_Op freed_op;
static MPI_Errhandler handler, freed_errhandler;
static MPI_Info info, freed_info;
static MPI_Win win, closed, dynamic, shared, freed_win;
static MPI_Session session, freed_session;
static MPI_Request request, partitioned, partitioned_in, generalized, freed_request;
static MPI_Message found;
static MPI_T_cvar_handle cvar;
static MPI_T_pvar_handle pvar;
static MPI_T_pvar_session pvar_session;
static int comm_key, type_key, win_key, code, class;

static void on_comm(MPI_Comm *of, int *error, ...)
{
	(void)of, (void)error;
}

static void on_win(MPI_Win *of, int *error, ...)
{
	(void)of, (void)error;
}

static void on_session(MPI_Session *of, int *error, ...)
{
	(void)of, (void)error;
}

static int on_query(void *state, MPI_Status *result)
{
	(void)state, (void)result;
	return MPI_SUCCESS;
}

static int on_free(void *state)
{
	(void)state;
	return MPI_SUCCESS;
}

static int on_cancel(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_SUCCESS;
}

static void on_op(void *in, void *inout, int *len, MPI_Datatype *of)
{
	(void)in, (void)inout, (void)len, (void)of;
}

static void on_op_large(void *in, void *inout, MPI_Count *len, MPI_Datatype *of)
{
	(void)in, (void)inout, (void)len, (void)of;
}

#include "test/adi/wrong_arguments.h"

static void make_communicators(void)
{
	int one = 1, zero = 0, rank;
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Cart_create(comm, 1, &one, &zero, 0, &cart);
	MPI_Graph_create(comm, 1, &one, &zero, 0, &graph);
	MPI_Dist_graph_create_adjacent(comm, 1, &zero, MPI_UNWEIGHTED, 1, &zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &dist);
	MPI_Comm_group(comm, &group);
	MPI_Comm_size(MPI_COMM_WORLD, &one);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (one == 2)
		MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 0, &inter);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_key, NULL);
	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
	MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &win_key, NULL);
	MPI_Add_error_class(&class);
	MPI_Add_error_code(class, &code);
}

static void make_windows(void)
{
	void *base;
	MPI_Win_create(bytes, sizeof bytes, 1, MPI_INFO_NULL, comm, &win);
	MPI_Win_lock_all(0, win);
	MPI_Win_create(bytes, sizeof bytes, 1, MPI_INFO_NULL, comm, &closed);
	MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &dynamic);
	MPI_Win_attach(dynamic, attached, sizeof attached);
	MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, &base, &shared);
	MPI_Win all[] = { win, closed, dynamic, shared };
	for (int i = 0; i < 4; i++)
		MPI_Win_set_errhandler(all[i], handler);
}

static void make_others(void)
{
	int count;
	MPI_Type_contiguous(2, MPI_INT, &uncommitted);
	MPI_Type_contiguous(2, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Info_create(&info);
	MPI_Session_init(MPI_INFO_NULL, handler, &session);
	MPI_Send_init(bytes, 1, MPI_INT, 0, 0, comm, &request);
	MPI_Psend_init(bytes, 1, 1, MPI_INT, 0, 99, comm, MPI_INFO_NULL, &partitioned);
	MPI_Precv_init(more_bytes, 1, 1, MPI_INT, 0, 99, comm, MPI_INFO_NULL, &partitioned_in);
	MPI_Start(&partitioned_in);
	MPI_Start(&partitioned);
	MPI_Grequest_start(on_query, on_free, on_cancel, NULL, &generalized);
	MPI_Request send;
	MPI_Isend(bytes, 1, MPI_INT, 0, 77, comm, &send);
	MPI_Mprobe(0, 77, comm, &found, MPI_STATUS_IGNORE);
	MPI_T_cvar_handle_alloc(0, NULL, &cvar, &count);
	MPI_T_pvar_session_create(&pvar_session);
	MPI_T_pvar_handle_alloc(pvar_session, 0, NULL, &pvar, &count);
}

/* A sanitizer would report the look at freed memory, which is what the checks of handles do. */
static void make_freed(void)
{
	MPI_Comm_dup(comm, &freed_comm);
	MPI_Group_incl(group, 1, (int[]){ 0 }, &freed_group);
	MPI_Type_dup(type, &freed_type);
	MPI_Op_create(on_op, 1, &freed_op);
	MPI_Comm_create_errhandler(on_comm, &freed_errhandler);
	MPI_Info_create(&freed_info);
	MPI_Win_create(bytes, 8, 1, MPI_INFO_NULL, comm, &freed_win);
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &freed_session);
	MPI_Request pool[POOL];
	for (int i = 0; i < POOL; i++)
		MPI_Recv_init(bytes, 1, MPI_INT, 0, 0, comm, &pool[i]);
	freed_request = pool[0];
#ifndef SANITIZED
	MPI_Comm a = freed_comm;
	MPI_Group b = freed_group;
	MPI_Datatype c = freed_type;
	MPI_Op d = freed_op;
	MPI_Errhandler e = freed_errhandler;
	MPI_Info f = freed_info;
	MPI_Win g = freed_win;
	MPI_Session h = freed_session;
	MPI_Comm_free(&a), MPI_Group_free(&b), MPI_Type_free(&c), MPI_Op_free(&d), MPI_Errhandler_free(&e), MPI_Info_free(&f);
	MPI_Win_free(&g), MPI_Session_finalize(&h);
	/* The memory of the request that was freed last is used first for another one. */
	for (int i = 0; i < POOL; i++)
		MPI_Request_free(&pool[i]);
#endif
}

static bool left_out(const struct wrong *wrong)
{
#ifdef SANITIZED
	return strstr(wrong->value, "freed_") != NULL;
#else
	return (void)wrong, false;
#endif
}

static sigjmp_buf before;

/* A crash, or a call that waits, is reported like other failures, so that one run shows them all. */
static void on_signal(int number)
{
	siglongjmp(before, number);
}

/* Whether the message names the function, the argument and the value. */
static bool named(const struct wrong *wrong, const char *message)
{
	char function[128];
	snprintf(function, sizeof function, "(MPI_%s: ", wrong->function);
	const char *at = strstr(message, function);
	if (!at || !strstr(at + strlen(function), wrong->argument))
		return false;
	bool null = !strcmp(wrong->said, "NULL");
	return strstr(at + strlen(function), wrong->said) || (null && (strstr(at, "a null pointer") || strstr(at, "_IGNORE")));
}

static bool right(const struct wrong *wrong)
{
	char message[MPI_MAX_ERROR_STRING] = "";
	int len = 0, error, number = sigsetjmp(before, 1);
	bool class_right = false;
	if (number) {
		fprintf(stderr, "MPI_%s, %s is %s: signal %d\n", wrong->function, wrong->argument, wrong->value, number);
		return false;
	}
	error = wrong->call();
	for (int i = 0; i < CLASSES_MAX && wrong->classes[i]; i++)
		class_right |= error == wrong->classes[i];
	if (error)
		MPI_Error_string(error, message, &len);
	if (class_right && (wrong->silent || named(wrong, message)))
		return true;
	fprintf(stderr, "MPI_%s, %s is %s: %s, %s\n", wrong->function, wrong->argument, wrong->value,
		class_right ? "message" : "class", error ? message : "success");
	return false;
}

static int try_all(int size)
{
	const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM };
	int failures = 0, tried = 0;
	for (int i = 0; i < 5; i++)
		signal(signals[i], on_signal);
	for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
		if (wrongs[i].inter != (size == 2) || left_out(&wrongs[i]))
			continue;
		alarm(60);
		failures += !right(&wrongs[i]);
		tried++;
	}
	alarm(0);
	printf("%d calls with a wrong argument, %d not refused as they should be\n", tried, failures);
	return failures;
}

static int end_by(size_t i)
{
	const struct wrong *wrong = i < sizeof wrongs / sizeof wrongs[0] ? &wrongs[i] : NULL;
	if (!wrong || wrong->inter || wrong->silent || left_out(wrong)) {
		puts("none");
		return 0;
	}
	printf("MPI_%s %s\n", wrong->function, wrong->argument);
	fflush(stdout);
	return wrong->call() != MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int size, provided, failures;
	MPI_Init(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	handler = argc > 1 ? MPI_ERRORS_ARE_FATAL : MPI_ERRORS_RETURN;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	make_communicators();
	make_windows();
	make_others();
	make_freed();
	failures = argc > 1 ? end_by((size_t)atoi(argv[1])) : try_all(size);
	fflush(stdout);
	/* Objects can be unusable if a call was not refused. */
	if (failures)
		_exit(1);
	MPI_Session_finalize(&session);
#ifdef SANITIZED
	MPI_Session_finalize(&freed_session);
#endif
	return MPI_Finalize() != MPI_SUCCESS;
}
