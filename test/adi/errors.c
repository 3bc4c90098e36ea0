/* SPDX-License-Identifier: BSD-3-Clause */
/* Error handlers, and the classes, codes and strings that a program adds. */
#include "test/adi/check_mpi.h"

#include <string.h>

static int calls, last_code;
static MPI_Comm last_comm;
static MPI_Session last_session;

static void on_comm(MPI_Comm *comm, int *code, ...)
{
	calls++;
	last_comm = *comm;
	last_code = *code;
}

static void on_session(MPI_Session *session, int *code, ...)
{
	calls++;
	last_session = *session;
	last_code = *code;
}

static void on_win(MPI_Win *win, int *code, ...)
{
	(void)win, (void)code;
	calls++;
}

static void functions_are_called(void)
{
	MPI_Errhandler handler, got, of_win;
	int value = 0, size;
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(MPI_Comm_create_errhandler(on_comm, &handler) == MPI_SUCCESS);
	CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler) == MPI_SUCCESS);
	CHECK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got) == MPI_SUCCESS && got == handler);
	CHECK(MPI_Errhandler_free(&got) == MPI_SUCCESS && got == MPI_ERRHANDLER_NULL);
	CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS);
	CHECK(MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
	CHECK(calls == 1 && last_comm == MPI_COMM_WORLD && last_code == MPI_ERR_RANK);
	CHECK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_TAG) == MPI_SUCCESS && calls == 2 && last_code == MPI_ERR_TAG);
	CHECK(MPI_Win_create_errhandler(on_win, &of_win) == MPI_SUCCESS);
	CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_win) == MPI_ERR_ERRHANDLER && calls == 3);
	CHECK(MPI_Errhandler_free(&of_win) == MPI_SUCCESS);
	/* Errors without an object are those of MPI_COMM_SELF. */
	CHECK(MPI_Comm_create_errhandler(on_comm, &handler) == MPI_SUCCESS);
	CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler) == MPI_SUCCESS);
	CHECK(MPI_Barrier(MPI_COMM_NULL) == MPI_ERR_COMM && calls == 4 && last_comm == MPI_COMM_SELF);
	CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
	CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
	CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS);
	CHECK(MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD) == MPI_ERR_RANK && calls == 4);
	CHECK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &got) == MPI_SUCCESS && got == MPI_ERRORS_RETURN);
	CHECK(MPI_Errhandler_free(&got) == MPI_SUCCESS);
	CHECK(MPI_Errhandler_free(&got) == MPI_ERR_ERRHANDLER);
}

static void communicators_inherit_handlers(void)
{
	MPI_Comm dup;
	MPI_Errhandler got;
	CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &dup) == MPI_SUCCESS);
	CHECK(MPI_Comm_get_errhandler(dup, &got) == MPI_SUCCESS && got == MPI_ERRORS_RETURN);
	CHECK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_ABORT) == MPI_SUCCESS);
	CHECK(MPI_Comm_get_errhandler(dup, &got) == MPI_SUCCESS && got == MPI_ERRORS_ABORT);
	CHECK(MPI_Comm_free(&dup) == MPI_SUCCESS);
}

static void sessions_have_handlers(void)
{
	MPI_Errhandler handler;
	MPI_Session session;
	MPI_Group group;
	int before = calls;
	CHECK(MPI_Session_create_errhandler(on_session, &handler) == MPI_SUCCESS);
	CHECK(MPI_Session_init(MPI_INFO_NULL, handler, &session) == MPI_SUCCESS);
	CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS);
	CHECK(MPI_Group_from_session_pset(session, "mpi://NOWHERE", &group) == MPI_ERR_ARG);
	CHECK(calls == before + 1 && last_session == session && last_code == MPI_ERR_ARG);
	CHECK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN) == MPI_SUCCESS);
	CHECK(MPI_Session_get_errhandler(session, &handler) == MPI_SUCCESS && handler == MPI_ERRORS_RETURN);
	CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS && session == MPI_SESSION_NULL);
}

/* Functions that create an object report their errors to the handler that the object would have had. */
static void given_handlers_are_called(void)
{
	MPI_Errhandler of_comm, of_session;
	MPI_Session session = (MPI_Session)&calls;
	MPI_Info info;
	MPI_Comm comm;
	MPI_Group group;
	int before = calls;
	CHECK(MPI_Comm_create_errhandler(on_comm, &of_comm) == MPI_SUCCESS);
	CHECK(MPI_Session_create_errhandler(on_session, &of_session) == MPI_SUCCESS);
	CHECK(MPI_Info_create(&info) == MPI_SUCCESS && MPI_Info_set(info, "thread_level", "all of them") == MPI_SUCCESS);
	last_session = session;
	CHECK(MPI_Session_init(info, of_session, &session) == MPI_ERR_INFO_VALUE && calls == before + 1);
	CHECK(last_session == MPI_SESSION_NULL && last_code == MPI_ERR_INFO_VALUE && session == (MPI_Session)&calls);
	CHECK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == MPI_ERR_INFO_VALUE && calls == before + 1);
	CHECK(MPI_Session_init(MPI_INFO_NULL, of_comm, &session) == MPI_ERR_ERRHANDLER && calls == before + 1);
	CHECK(MPI_Comm_group(MPI_COMM_SELF, &group) == MPI_SUCCESS);
	last_comm = MPI_COMM_SELF;
	CHECK(MPI_Comm_create_from_group(MPI_GROUP_NULL, "tag", MPI_INFO_NULL, of_comm, &comm) == MPI_ERR_GROUP);
	CHECK(calls == before + 2 && last_comm == MPI_COMM_NULL && last_code == MPI_ERR_GROUP);
	CHECK(MPI_Comm_create_from_group(group, "tag", MPI_INFO_NULL, of_session, &comm) == MPI_ERR_ERRHANDLER);
	CHECK(MPI_Intercomm_create_from_groups(group, 7, group, 0, "tag", MPI_INFO_NULL, of_comm, &comm) == MPI_ERR_RANK);
	CHECK(calls == before + 3 && last_comm == MPI_COMM_NULL && last_code == MPI_ERR_RANK);
	CHECK(MPI_Group_free(&group) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);
	CHECK(MPI_Errhandler_free(&of_comm) == MPI_SUCCESS && MPI_Errhandler_free(&of_session) == MPI_SUCCESS);
}

static int last_used(void)
{
	int *value, flag;
	CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag) == MPI_SUCCESS && flag);
	return *value;
}

static void classes_and_codes_are_added(void)
{
	int class, code, other, found, len;
	char text[MPI_MAX_ERROR_STRING];
	CHECK(last_used() == MPI_ERR_LASTCODE);
	CHECK(MPI_Add_error_class(&class) == MPI_SUCCESS && class > MPI_ERR_LASTCODE && class == last_used());
	CHECK(MPI_Error_string(class, text, &len) == MPI_SUCCESS && len == 0 && text[0] == '\0');
	CHECK(MPI_Add_error_code(class, &code) == MPI_SUCCESS && code == last_used());
	CHECK(MPI_Add_error_code(MPI_ERR_IO, &other) == MPI_SUCCESS);
	CHECK(MPI_Error_class(code, &found) == MPI_SUCCESS && found == class);
	CHECK(MPI_Error_class(other, &found) == MPI_SUCCESS && found == MPI_ERR_IO);
	CHECK(MPI_Add_error_code(code, &found) == MPI_ERR_ARG);
	CHECK(MPI_Add_error_string(code, "of mine") == MPI_SUCCESS);
	CHECK(MPI_Error_string(code, text, &len) == MPI_SUCCESS && !strcmp(text, "of mine") && len == 7);
	CHECK(MPI_Add_error_string(MPI_ERR_TAG, "no") == MPI_ERR_ARG);
	CHECK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, code) == MPI_SUCCESS);
	CHECK(MPI_Remove_error_class(class) == MPI_ERR_ARG);
	CHECK(MPI_Remove_error_code(code) == MPI_ERR_ARG);
	CHECK(MPI_Remove_error_string(code) == MPI_SUCCESS && MPI_Remove_error_string(code) == MPI_ERR_ARG);
	CHECK(MPI_Remove_error_code(code) == MPI_SUCCESS && MPI_Remove_error_code(code) == MPI_ERR_ARG);
	CHECK(MPI_Remove_error_class(class) == MPI_SUCCESS && MPI_Remove_error_class(class) == MPI_ERR_ARG);
	CHECK(MPI_Error_class(class, &found) == MPI_ERR_ARG);
	CHECK(MPI_Remove_error_code(other) == MPI_SUCCESS);
	CHECK(MPI_Remove_error_class(MPI_ERR_TAG) == MPI_ERR_ARG);
}

static void classes_have_names(void)
{
	char text[MPI_MAX_ERROR_STRING];
	int len, class;
	for (int i = MPI_SUCCESS; i <= MPI_ERR_ABI; i++)
		CHECK(MPI_Error_class(i, &class) == MPI_SUCCESS && class == i && MPI_Error_string(i, text, &len) == MPI_SUCCESS &&
		      (size_t)len == strlen(text) && len > 8);
	CHECK(MPI_Error_string(MPI_T_ERR_INVALID_NAME, text, &len) == MPI_SUCCESS && strstr(text, "MPI_T_ERR_INVALID_NAME"));
	CHECK(MPI_Error_class(-1, &class) == MPI_ERR_ARG && MPI_Error_class(1000, &class) == MPI_ERR_ARG);
}

/* Functions for files call no error handler. The text is theirs all the same, not that of an earlier function. */
static void missing_functions_have_texts(void)
{
	char text[MPI_MAX_ERROR_STRING], port[MPI_MAX_PORT_NAME];
	int len;
	MPI_File file;
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK(MPI_Open_port(MPI_INFO_NULL, port) == MPI_ERR_UNSUPPORTED_OPERATION);
	CHECK(MPI_File_open(MPI_COMM_SELF, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_ERR_UNSUPPORTED_OPERATION);
	CHECK(MPI_Error_string(MPI_ERR_UNSUPPORTED_OPERATION, text, &len) == MPI_SUCCESS && strstr(text, "MPI_File_open"));
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	functions_are_called();
	communicators_inherit_handlers();
	sessions_have_handlers();
	given_handlers_are_called();
	classes_and_codes_are_added();
	classes_have_names();
	missing_functions_have_texts();
	MPI_Finalize();
	return 0;
}
