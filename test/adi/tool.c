/* SPDX-License-Identifier: BSD-3-Clause */
/* The tool interface MPI_T: control variables, performance variables, categories, events; before, during and after MPI. */
#include "test/adi/check_mpi.h"

#include <string.h>

static void control_variables(bool running)
{
	int n, index, verbosity, bind, scope, count, name_len = 4, desc_len = 0;
	char name[64];
	MPI_Datatype type;
	MPI_T_enum choices;
	MPI_T_cvar_handle handle;
	unsigned long long value, changed = 12345, again;
	CHECK(MPI_T_cvar_get_num(&n) == MPI_SUCCESS && n > 10);
	CHECK(MPI_T_cvar_get_index("HEADRACE_EAGER_MAX", &index) == MPI_SUCCESS && index >= 0 && index < n);
	CHECK(MPI_T_cvar_get_index("HEADRACE_NOTHING", &count) == MPI_T_ERR_INVALID_NAME);
	CHECK(MPI_T_cvar_get_info(index, name, &name_len, &verbosity, &type, &choices, NULL, &desc_len, &bind, &scope) == MPI_SUCCESS);
	/* A buffer that is too short gets the beginning, and the length that is needed. */
	CHECK(strcmp(name, "HEA") == 0 && name_len == sizeof "HEADRACE_EAGER_MAX" && desc_len > 10);
	CHECK(type == MPI_UNSIGNED_LONG_LONG && choices == MPI_T_ENUM_NULL && bind == MPI_T_BIND_NO_OBJECT);
	CHECK(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
	CHECK(MPI_T_cvar_handle_alloc(-1, NULL, &handle, &count) == MPI_T_ERR_INVALID_INDEX);
	CHECK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS && count == 1);
	CHECK(MPI_T_cvar_read(handle, &value) == MPI_SUCCESS);
	CHECK(MPI_T_cvar_write(handle, &changed) == (running ? MPI_T_ERR_CVAR_SET_NOT_NOW : MPI_SUCCESS));
	CHECK(MPI_T_cvar_read(handle, &again) == MPI_SUCCESS && again == (running ? value : changed));
	changed = 1ull << 60;
	CHECK(running || MPI_T_cvar_write(handle, &changed) == MPI_T_ERR_INVALID);
	CHECK(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && handle == MPI_T_CVAR_HANDLE_NULL);
	CHECK(MPI_T_cvar_read(handle, &value) == MPI_T_ERR_INVALID_HANDLE);
}

static unsigned long long read_variable(MPI_T_pvar_session session, const char *name, int class)
{
	int index, count;
	MPI_T_pvar_handle handle;
	unsigned long long value;
	CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS);
	CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS && count == 1);
	CHECK(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
	CHECK(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE);
	CHECK(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS);
	CHECK(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS && handle == MPI_T_PVAR_HANDLE_NULL);
	return value;
}

/* Sends 1000 bytes around all ranks, and looks at the counters. */
static void performance_variables(void)
{
	int n, rank, size, index, class, readonly, continuous, atomic;
	char data[1000] = { 0 };
	MPI_T_pvar_session session;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
	unsigned long long before = read_variable(session, "bytes_sent", MPI_T_PVAR_CLASS_COUNTER);
	MPI_Sendrecv_replace(data, sizeof data, MPI_BYTE, (rank + 1) % size, 0, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	unsigned long long after = read_variable(session, "bytes_sent", MPI_T_PVAR_CLASS_COUNTER);
	CHECK(size == 1 ? after == before : after >= before + sizeof data);
	CHECK((size == 1) == (read_variable(session, "connections", MPI_T_PVAR_CLASS_LEVEL) == 0));
	CHECK(MPI_T_pvar_get_index("bytes_sent", MPI_T_PVAR_CLASS_LEVEL, &index) == MPI_T_ERR_INVALID_NAME);
	CHECK(MPI_T_pvar_get_num(&n) == MPI_SUCCESS && n > 0);
	for (int i = 0; i < n; i++) {
		CHECK(MPI_T_pvar_get_info(i, NULL, NULL, NULL, &class, NULL, NULL, NULL, NULL, NULL, &readonly, &continuous, &atomic) ==
		      MPI_SUCCESS);
		CHECK(readonly == 1 && continuous == 1 && atomic == 0);
	}
	CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
	CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS && session == MPI_T_PVAR_SESSION_NULL);
	CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_T_ERR_INVALID_SESSION);
}

static void categories(void)
{
	int n, variables, index, members[4] = { -1, -1, -1, -1 };
	CHECK(MPI_T_category_get_num(&n) == MPI_SUCCESS && n > 0);
	CHECK(MPI_T_category_get_index("settings", &index) == MPI_SUCCESS);
	CHECK(MPI_T_category_get_info(index, NULL, NULL, NULL, NULL, &variables, NULL, NULL) == MPI_SUCCESS);
	CHECK(MPI_T_cvar_get_num(&n) == MPI_SUCCESS && n == variables);
	CHECK(MPI_T_category_get_cvars(index, 3, members) == MPI_SUCCESS && members[2] >= 0 && members[3] == -1);
	CHECK(MPI_T_category_get_cvars(-1, 3, members) == MPI_T_ERR_INVALID_INDEX);
	CHECK(MPI_T_event_get_num(&n) == MPI_SUCCESS && n == 0);
	CHECK(MPI_T_event_get_index("event", &index) == MPI_T_ERR_INVALID_NAME);
}

int main(int argc, char **argv)
{
	int provided, n;
	CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
	CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
	CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
	CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
	control_variables(false);
	MPI_Init(&argc, &argv);
	control_variables(true);
	performance_variables();
	categories();
	CHECK(MPI_T_finalize() == MPI_SUCCESS);
	MPI_Finalize();
	CHECK(MPI_T_cvar_get_num(&n) == MPI_SUCCESS);
	CHECK(MPI_T_finalize() == MPI_SUCCESS);
	CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
	return 0;
}
