/* SPDX-License-Identifier: BSD-3-Clause */
/* Info objects, also before MPI_Init and after MPI_Finalize; handles as Fortran's integers; facts about the library. */
#include "test/adi/check_mpi.h"

#include <string.h>

static bool has(MPI_Info info, const char *key, const char *wanted)
{
	char value[MPI_MAX_INFO_VAL];
	int flag = 0, len = sizeof value;
	CHECK(MPI_Info_get_string(info, key, &len, value, &flag) == MPI_SUCCESS);
	return flag && len == (int)strlen(value) + 1 && (!wanted || !strcmp(value, wanted));
}

static void keys_have_values(void)
{
	MPI_Info info, copy;
	char value[MPI_MAX_INFO_VAL], key[MPI_MAX_INFO_KEY];
	int n, flag, len;
	CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
	CHECK(MPI_Info_set(info, "a", "1") == MPI_SUCCESS && MPI_Info_set(info, "b", "two") == MPI_SUCCESS);
	CHECK(MPI_Info_set(info, "a", "one") == MPI_SUCCESS && MPI_Info_set(info, "c", "") == MPI_SUCCESS);
	CHECK(MPI_Info_get_nkeys(info, &n) == MPI_SUCCESS && n == 3);
	CHECK(has(info, "a", "one") && has(info, "b", "two") && has(info, "c", "") && !has(info, "d", NULL));
	CHECK(MPI_Info_get_nthkey(info, 1, key) == MPI_SUCCESS && !strcmp(key, "b"));
	CHECK(MPI_Info_dup(info, &copy) == MPI_SUCCESS);
	CHECK(MPI_Info_delete(info, "b") == MPI_SUCCESS && !has(info, "b", NULL) && has(copy, "b", "two"));
	CHECK(MPI_Info_get_nthkey(info, 1, key) == MPI_SUCCESS && !strcmp(key, "c"));
	CHECK(MPI_Info_get(copy, "b", 2, value, &flag) == MPI_SUCCESS && flag && !strcmp(value, "tw"));
	CHECK(MPI_Info_get_valuelen(copy, "b", &len, &flag) == MPI_SUCCESS && flag && len == 3);
	len = 0;
	strcpy(value, "kept");
	CHECK(MPI_Info_get_string(copy, "b", &len, value, &flag) == MPI_SUCCESS && flag && len == 4 && !strcmp(value, "kept"));
	len = 3;
	CHECK(MPI_Info_get_string(copy, "b", &len, value, &flag) == MPI_SUCCESS && len == 4 && !strcmp(value, "tw"));
	CHECK(MPI_Info_free(&copy) == MPI_SUCCESS && copy == MPI_INFO_NULL);
	CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
}

static void environment_is_described(void)
{
	MPI_Info info;
	char *argv[] = { "prog", "x", "y", NULL };
	CHECK(has(MPI_INFO_ENV, "command", NULL) && has(MPI_INFO_ENV, "argv", NULL) && has(MPI_INFO_ENV, "arch", NULL));
	CHECK(MPI_Info_create_env(3, argv, &info) == MPI_SUCCESS);
	CHECK(has(info, "command", "prog") && has(info, "argv", "x y") && has(info, "wdir", NULL));
	CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
}

static void errors_have_their_class(void)
{
	MPI_Info info, null = MPI_INFO_NULL, env = MPI_INFO_ENV;
	char text[MPI_MAX_INFO_VAL + 2];
	int n, flag;
	CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
	CHECK(MPI_Info_delete(info, "key") == MPI_ERR_INFO_NOKEY);
	CHECK(MPI_Info_get_nthkey(info, 0, text) == MPI_ERR_ARG);
	CHECK(MPI_Info_set(info, "", "value") == MPI_ERR_INFO_KEY);
	memset(text, 'k', sizeof text);
	text[MPI_MAX_INFO_KEY] = '\0';
	CHECK(MPI_Info_set(info, text, "value") == MPI_ERR_INFO_KEY);
	text[MPI_MAX_INFO_KEY - 1] = '\0';
	CHECK(MPI_Info_set(info, text, "value") == MPI_SUCCESS && has(info, text, "value"));
	memset(text, 'v', sizeof text);
	text[MPI_MAX_INFO_VAL] = '\0';
	CHECK(MPI_Info_set(info, "long", text) == MPI_ERR_INFO_VALUE);
	text[MPI_MAX_INFO_VAL - 1] = '\0';
	CHECK(MPI_Info_set(info, "long", text) == MPI_SUCCESS && has(info, "long", text));
	CHECK(MPI_Info_get_nkeys(MPI_INFO_NULL, &n) == MPI_ERR_INFO && MPI_Info_free(&null) == MPI_ERR_INFO);
	CHECK(MPI_Info_set(MPI_INFO_ENV, "a", "b") == MPI_ERR_INFO && MPI_Info_free(&env) == MPI_ERR_INFO);
	CHECK(MPI_Info_get(info, NULL, 1, text, &flag) == MPI_ERR_ARG);
	CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
}

static void handles_have_numbers(void)
{
	MPI_Info info, other;
	CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 0x101 && MPI_Comm_fromint(0x101) == MPI_COMM_WORLD);
	CHECK(MPI_Type_toint(MPI_INT) == 0x209 && MPI_Op_fromint(MPI_Op_toint(MPI_SUM)) == MPI_SUM);
	CHECK(MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
	CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
	CHECK(MPI_Info_create(&info) == MPI_SUCCESS && MPI_Info_create(&other) == MPI_SUCCESS);
	int number = MPI_Info_toint(info);
	CHECK(number >= 0x1000 && MPI_Info_toint(info) == number && MPI_Info_toint(other) != number);
	CHECK(MPI_Info_fromint(number) == info && MPI_Group_fromint(number) == (MPI_Group)0);
	MPI_Info_free(&info);
	CHECK(MPI_Info_fromint(number) == (MPI_Info)0);
	MPI_Info_free(&other);
	static MPI_Info many[1000];
	for (int i = 0; i < 1000; i++)
		CHECK(MPI_Info_create(&many[i]) == MPI_SUCCESS && MPI_Info_fromint(MPI_Info_toint(many[i])) == many[i]);
	for (int i = 0; i < 1000; i++)
		CHECK(MPI_Info_fromint(MPI_Info_toint(many[i])) == many[i] && MPI_Info_free(&many[i]) == MPI_SUCCESS);
}

/* What the info object calls supported has a size. */
static void fortran_datatypes_are_as_described(MPI_Info info)
{
	const struct {
		const char *key;
		MPI_Datatype type;
		int size;
	} optional[] = {
		{ "mpi_real2_supported", MPI_REAL2, 2 },          { "mpi_complex4_supported", MPI_COMPLEX4, 4 },
		{ "mpi_real16_supported", MPI_REAL16, 16 },       { "mpi_complex32_supported", MPI_COMPLEX32, 32 },
		{ "mpi_integer16_supported", MPI_INTEGER16, 16 }, { "mpi_logical16_supported", MPI_LOGICAL16, 16 },
	};
	for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
		int size = 0;
		CHECK(has(info, optional[i].key, "true"));
		CHECK(MPI_Type_size(optional[i].type, &size) == MPI_SUCCESS && size == optional[i].size);
	}
}

static void library_describes_itself(void)
{
	MPI_Info info;
	char one[16], zero[16];
	int set;
	CHECK(MPI_Abi_get_info(&info) == MPI_SUCCESS && has(info, "mpi_count_size", "8"));
	MPI_Info_free(&info);
	CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && has(info, "mpi_integer_size", "4"));
	fortran_datatypes_are_as_described(info);
	CHECK(MPI_Abi_set_fortran_info(info) == MPI_ERR_ABI);
	MPI_Info_free(&info);
	CHECK(MPI_Abi_get_fortran_booleans(4, one, zero, &set) == MPI_SUCCESS && set && !memcmp(one, &set, 4));
	CHECK(MPI_Abi_get_fortran_booleans(3, one, zero, &set) == MPI_ERR_ARG);
}

static void memory_is_aligned(void)
{
	MPI_Info info;
	void *memory;
	CHECK(MPI_Alloc_mem(100, MPI_INFO_NULL, &memory) == MPI_SUCCESS && memory);
	memset(memory, 1, 100);
	CHECK(MPI_Free_mem(memory) == MPI_SUCCESS);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096");
	CHECK(MPI_Alloc_mem(0, info, &memory) == MPI_SUCCESS && !((uintptr_t)memory & 4095));
	CHECK(MPI_Free_mem(memory) == MPI_SUCCESS);
	MPI_Info_set(info, "mpi_minimum_memory_alignment", "12");
	CHECK(MPI_Alloc_mem(8, info, &memory) == MPI_ERR_INFO_VALUE);
	CHECK(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory) == MPI_ERR_SIZE);
	MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
	int size;
	char number[16];
	MPI_Info kept;
	keys_have_values();
	environment_is_described();
	handles_have_numbers();
	CHECK(MPI_Info_create(&kept) == MPI_SUCCESS && MPI_Info_set(kept, "key", "value") == MPI_SUCCESS);
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	snprintf(number, sizeof number, "%d", size);
	CHECK(has(MPI_INFO_ENV, "maxprocs", number) && has(MPI_INFO_ENV, "thread_level", "MPI_THREAD_SINGLE"));
	keys_have_values();
	errors_have_their_class();
	library_describes_itself();
	memory_is_aligned();
	MPI_Finalize();
	CHECK(has(kept, "key", "value"));
	handles_have_numbers();
	MPI_Info_free(&kept);
	return 0;
}
