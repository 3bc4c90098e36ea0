/* SPDX-License-Identifier: BSD-3-Clause */
/* What MPI-3 removed and what MPI deprecates still works in programs compiled with mpi.h, in C and C++. */
#include "test/adi/check_mpi.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

static int seen;

static void handler(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	seen = *code;
}

static void check_datatypes(void)
{
	struct {
		int a;
		double b;
	} pair, result = { 0, 0 };
	MPI_Aint start, place[2], extent, lb, ub;
	int lengths[2] = { 1, 1 };
	MPI_Datatype types[2] = { MPI_INT, MPI_DOUBLE }, type;
	CHECK(MPI_Address(&pair, &start) == MPI_SUCCESS);
	MPI_Address(&pair.a, &place[0]);
	MPI_Address(&pair.b, &place[1]);
	place[0] -= start;
	place[1] -= start;
	CHECK(MPI_Type_struct(2, lengths, place, types, &type) == MPI_SUCCESS);
	MPI_Type_commit(&type);
	CHECK(MPI_Type_extent(type, &extent) == MPI_SUCCESS && extent == (MPI_Aint)sizeof pair);
	CHECK(MPI_Type_lb(type, &lb) == MPI_SUCCESS && lb == 0);
	CHECK(MPI_Type_ub(type, &ub) == MPI_SUCCESS && ub == extent);
	pair.a = 5;
	pair.b = 2.5;
	MPI_Sendrecv(&pair, 1, type, 0, 1, &result, 1, type, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	CHECK(result.a == 5 && result.b == 2.5);
	MPI_Type_free(&type);
	CHECK(MPI_Type_hvector(2, 1, 8, MPI_INT, &type) == MPI_SUCCESS);
	MPI_Type_free(&type);
	CHECK(MPI_Type_hindexed(2, lengths, place, MPI_INT, &type) == MPI_SUCCESS);
	MPI_Type_free(&type);
}

static void check_errhandler(void)
{
	MPI_Errhandler mine, found;
	MPI_Comm_errhandler_function *function = handler;
	CHECK(MPI_Errhandler_create(function, &mine) == MPI_SUCCESS);
	CHECK(MPI_Errhandler_set(MPI_COMM_SELF, mine) == MPI_SUCCESS);
	CHECK(MPI_Errhandler_get(MPI_COMM_SELF, &found) == MPI_SUCCESS && found == mine);
	MPI_Errhandler_free(&found);
	MPI_Errhandler_free(&mine);
	CHECK(MPI_Send(NULL, 0, MPI_INT, 7, 0, MPI_COMM_SELF) == MPI_ERR_RANK && seen == MPI_ERR_RANK);
	MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void check_attributes(void)
{
	int key, flag, value = 3;
	void *found = NULL;
	CHECK(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL) == MPI_SUCCESS);
	CHECK(MPI_Attr_put(MPI_COMM_SELF, key, &value) == MPI_SUCCESS);
	CHECK(MPI_Attr_get(MPI_COMM_SELF, key, &found, &flag) == MPI_SUCCESS && flag && found == &value);
	CHECK(MPI_Attr_delete(MPI_COMM_SELF, key) == MPI_SUCCESS);
	CHECK(MPI_Keyval_free(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
}

static void check_fortran_handles(void)
{
	MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), integers[MPI_F_STATUS_SIZE], copied = 0;
	MPI_Status status, same;
	MPI_Comm copy;
	MPI_Count size;
	CHECK(MPI_Comm_f2c(world) == MPI_COMM_WORLD);
	MPI_Comm_dup(MPI_COMM_SELF, &copy);
	CHECK(MPI_Comm_f2c(MPI_Comm_c2f(copy)) == copy);
	MPI_Comm_free(&copy);
	MPI_Sendrecv(&world, 1, MPI_INT, 0, 9, &copied, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &status);
	CHECK(copied == world);
	CHECK(MPI_Status_c2f(&status, integers) == MPI_SUCCESS && integers[MPI_F_TAG] == 9);
	CHECK(MPI_Status_f2c(integers, &same) == MPI_SUCCESS && same.MPI_TAG == 9);
	CHECK(MPI_Type_size_x(MPI_INT, &size) == MPI_SUCCESS && size == 4);
	CHECK(MPI_Get_elements_x(&same, MPI_INT, &size) == MPI_SUCCESS && size == 1);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	check_datatypes();
	check_errhandler();
	check_attributes();
	check_fortran_handles();
	MPI_Finalize();
	return 0;
}
