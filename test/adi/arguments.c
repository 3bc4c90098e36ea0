/* SPDX-License-Identifier: BSD-3-Clause */
/* Error classes for invalid arguments, sizes of datatypes, and inquiry functions. */
#include "test/adi/check_mpi.h"

#include <limits.h>
#include <string.h>

static void refused_with_the_right_class(void)
{
	int value = 0, size;
	MPI_Request request;
	MPI_Status status;
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Comm_size(w, &size);
	CHECK(MPI_Send(&value, -1, MPI_INT, 0, 0, w) == MPI_ERR_COUNT);
	CHECK(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, w) == MPI_ERR_TYPE);
	CHECK(MPI_Send(&value, 1, (MPI_Datatype)&value, 0, 0, w) == MPI_ERR_TYPE);
	CHECK(MPI_Send(&value, 1, MPI_INT, size, 0, w) == MPI_ERR_RANK);
	CHECK(MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, w) == MPI_ERR_RANK);
	CHECK(MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, w) == MPI_ERR_TAG);
	CHECK(MPI_Send(&value, 1, MPI_INT, 0, -5, w) == MPI_ERR_TAG);
	CHECK(MPI_Send(NULL, 1, MPI_INT, 0, 0, w) == MPI_ERR_BUFFER);
	CHECK(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL) == MPI_ERR_COMM);
	CHECK(MPI_Recv(&value, 1, MPI_INT, -7, 0, w, &status) == MPI_ERR_RANK);
	CHECK(MPI_Recv(&value, 1, MPI_INT, 0, -3, w, &status) == MPI_ERR_TAG);
	CHECK(MPI_Isend(&value, 1, MPI_INT, 0, 0, w, NULL) == MPI_ERR_ARG);
	CHECK(MPI_Irecv(&value, 1, MPI_INT, 1, 0, MPI_COMM_SELF, &request) == MPI_ERR_RANK);
	CHECK(MPI_Wait(NULL, &status) == MPI_ERR_ARG);
	request = (MPI_Request)0x181;
	CHECK(MPI_Wait(&request, &status) == MPI_ERR_REQUEST);
	CHECK(MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE) == MPI_ERR_COUNT);
	CHECK(MPI_Barrier(MPI_COMM_NULL) == MPI_ERR_COMM);
	CHECK(MPI_Comm_rank(w, NULL) == MPI_ERR_ARG);
	CHECK(MPI_Comm_set_errhandler(w, MPI_ERRHANDLER_NULL) == MPI_ERR_ERRHANDLER);
	CHECK(MPI_Type_size(MPI_DATATYPE_NULL, &value) == MPI_ERR_TYPE);
	CHECK(MPI_Comm_size(MPI_COMM_WORLD, NULL) == MPI_ERR_ARG);
	int argc = 0;
	CHECK(MPI_Init(&argc, NULL) == MPI_ERR_OTHER);
}

static void datatypes_have_their_sizes(void)
{
	static const struct {
		MPI_Datatype type;
		size_t size;
	} want[] = {
		{ MPI_CHAR, 1 }, { MPI_SIGNED_CHAR, 1 }, { MPI_UNSIGNED_CHAR, 1 }, { MPI_BYTE, 1 },
		{ MPI_SHORT, sizeof(short) }, { MPI_UNSIGNED_SHORT, sizeof(short) }, { MPI_INT, sizeof(int) },
		{ MPI_UNSIGNED, sizeof(int) }, { MPI_LONG, sizeof(long) }, { MPI_UNSIGNED_LONG, sizeof(long) },
		{ MPI_LONG_LONG_INT, sizeof(long long) }, { MPI_UNSIGNED_LONG_LONG, sizeof(long long) },
		{ MPI_FLOAT, sizeof(float) }, { MPI_DOUBLE, sizeof(double) }, { MPI_LONG_DOUBLE, sizeof(long double) },
		{ MPI_WCHAR, sizeof(wchar_t) }, { MPI_C_BOOL, sizeof(bool) }, { MPI_INT8_T, 1 }, { MPI_UINT16_T, 2 },
		{ MPI_INT32_T, 4 }, { MPI_UINT64_T, 8 }, { MPI_C_DOUBLE_COMPLEX, 2 * sizeof(double) },
		{ MPI_AINT, sizeof(MPI_Aint) }, { MPI_COUNT, sizeof(MPI_Count) }, { MPI_2INT, 2 * sizeof(int) },
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		int size;
		CHECK(MPI_Type_size(want[i].type, &size) == MPI_SUCCESS && (size_t)size == want[i].size);
	}
}

static void environment_tells_the_truth(void)
{
	int a, b, len;
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	CHECK(MPI_Get_version(&a, &b) == MPI_SUCCESS && a == 5 && b == 0);
	CHECK(MPI_Abi_get_version(&a, &b) == MPI_SUCCESS && a == 1 && b == 0);
	CHECK(MPI_Get_library_version(text, &len) == MPI_SUCCESS && (size_t)len == strlen(text));
	CHECK(!strncmp(text, "Headrace ", 9));
	CHECK(MPI_Get_processor_name(text, &len) == MPI_SUCCESS && (size_t)len == strlen(text) && len > 0);
	CHECK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &len) == MPI_SUCCESS && strstr(text, "MPI_ERR_TRUNCATE"));
	CHECK(MPI_Error_class(MPI_ERR_ABI, &a) == MPI_SUCCESS && a == MPI_ERR_ABI);
	CHECK(MPI_Error_class(12345, &a) == MPI_ERR_ARG);
	double start = MPI_Wtime();
	CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1);
	CHECK(MPI_Wtime() >= start);
	CHECK(MPI_Query_thread(&a) == MPI_SUCCESS && a == MPI_THREAD_MULTIPLE);
	CHECK(MPI_Initialized(&a) == MPI_SUCCESS && a == 1);
	CHECK(MPI_Finalized(&a) == MPI_SUCCESS && a == 0);
	CHECK(sizeof(MPI_Status) == 8 * sizeof(int));
}

int main(int argc, char **argv)
{
	int provided, flag;
	CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag == 0);
	CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
	CHECK(provided == MPI_THREAD_MULTIPLE);
	CHECK(MPI_Is_thread_main(&flag) == MPI_SUCCESS && flag);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	refused_with_the_right_class();
	datatypes_have_their_sizes();
	environment_tells_the_truth();
	CHECK(MPI_Finalize() == MPI_SUCCESS);
	CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && flag == 1);
	puts("arguments: correct");
	return 0;
}
