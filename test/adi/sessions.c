/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions: process sets, groups, communicators; alone, one after another, and beside the world model. An argument makes the
 * program call MPI_Init as well.
 */
#include "test/adi/check_mpi.h"

#include <string.h>

static MPI_Group group_of(MPI_Session session, const char *pset, int *size)
{
	MPI_Group group;
	MPI_Info info;
	char text[16];
	int len = sizeof text, flag;
	CHECK(MPI_Group_from_session_pset(session, pset, &group) == MPI_SUCCESS);
	CHECK(MPI_Group_size(group, size) == MPI_SUCCESS);
	CHECK(MPI_Session_get_pset_info(session, pset, &info) == MPI_SUCCESS);
	CHECK(MPI_Info_get_string(info, "mpi_size", &len, text, &flag) == MPI_SUCCESS && flag && atoi(text) == *size);
	CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
	return group;
}

static void psets_are_there(MPI_Session session)
{
	int n, world = 0, self = 0;
	CHECK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n) == MPI_SUCCESS && n >= 2);
	for (int i = 0; i < n; i++) {
		char name[MPI_MAX_PSET_NAME_LEN];
		int len = 0;
		CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &len, NULL) == MPI_SUCCESS && len > 1);
		CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &len, name) == MPI_SUCCESS);
		CHECK(len == (int)strlen(name) + 1);
		world += !strcmp(name, "mpi://WORLD");
		self += !strcmp(name, "mpi://SELF");
	}
	CHECK(world == 1 && self == 1);
	int len = 0;
	CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &len, NULL) == MPI_ERR_ARG);
}

static void pass_around(MPI_Comm comm)
{
	int rank = 0, size = 1, got = -1;
	CHECK(MPI_Comm_rank(comm, &rank) == MPI_SUCCESS && MPI_Comm_size(comm, &size) == MPI_SUCCESS);
	CHECK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, (rank + size - 1) % size, 1, comm,
			   MPI_STATUS_IGNORE) == MPI_SUCCESS);
	CHECK(got == (rank + size - 1) % size);
	CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
}

static void use(MPI_Session session)
{
	MPI_Comm comm;
	int size, one;
	MPI_Group world = group_of(session, "mpi://WORLD", &size), self = group_of(session, "mpi://SELF", &one);
	CHECK(one == 1);
	CHECK(MPI_Comm_create_from_group(world, "test/adi/sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm) == MPI_SUCCESS);
	pass_around(comm);
	CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
	CHECK(MPI_Comm_create_from_group(self, "self", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
	pass_around(comm);
	CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
	CHECK(MPI_Group_free(&world) == MPI_SUCCESS && MPI_Group_free(&self) == MPI_SUCCESS);
}

static MPI_Session start(const char *level)
{
	MPI_Session session;
	MPI_Info info, used;
	char text[64];
	int flag, len = sizeof text;
	CHECK(MPI_Info_create(&info) == MPI_SUCCESS && MPI_Info_set(info, "thread_level", level) == MPI_SUCCESS);
	CHECK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
	CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
	CHECK(MPI_Session_get_info(session, &used) == MPI_SUCCESS);
	CHECK(MPI_Info_get_string(used, "thread_level", &len, text, &flag) == MPI_SUCCESS && flag && !strcmp(text, level));
	CHECK(MPI_Info_free(&used) == MPI_SUCCESS);
	return session;
}

int main(int argc, char **argv)
{
	int flag;
	MPI_Session first = start("MPI_THREAD_SINGLE");
	CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
	psets_are_there(first);
	use(first);
	if (argc > 1) {
		MPI_Init(&argc, &argv);
		pass_around(MPI_COMM_WORLD);
	}
	MPI_Session second = start("MPI_THREAD_MULTIPLE");
	use(second);
	CHECK(MPI_Session_finalize(&first) == MPI_SUCCESS && first == MPI_SESSION_NULL);
	use(second);
	CHECK(MPI_Session_finalize(&second) == MPI_SUCCESS);
	MPI_Session third = start("MPI_THREAD_SERIALIZED");
	use(third);
	if (argc > 1) {
		pass_around(MPI_COMM_WORLD);
		MPI_Finalize();
		use(third);
	}
	CHECK(MPI_Session_finalize(&third) == MPI_SUCCESS);
	return 0;
}
