/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The values and layouts of the standard ABI: MPI 5.0, chapter 20. A program is compiled with them, so mpi.h may not change
 * them. The values are written here a second time for this reason.
 */
#include "test/adi/check_mpi.h"

#include <stddef.h>

_Static_assert(sizeof(MPI_Status) == 32, "MPI_Status");
_Static_assert(offsetof(MPI_Status, MPI_SOURCE) == 0, "MPI_SOURCE");
_Static_assert(offsetof(MPI_Status, MPI_TAG) == 4, "MPI_TAG");
_Static_assert(offsetof(MPI_Status, MPI_ERROR) == 8, "MPI_ERROR");
_Static_assert(sizeof(MPI_Aint) == sizeof(void *) && (MPI_Aint)-1 < 0, "MPI_Aint");
_Static_assert(sizeof(MPI_Count) == 8 && (MPI_Count)-1 < 0, "MPI_Count");
_Static_assert(sizeof(MPI_Offset) == 8 && (MPI_Offset)-1 < 0, "MPI_Offset");
_Static_assert(sizeof(MPI_T_cb_safety) == sizeof(int) && sizeof(MPI_T_source_order) == sizeof(int), "enumerations");

struct value {
	const char *name;
	intptr_t value, expected;
};
#define V(name) #name, (intptr_t)name

static const struct value handles[] = {
	{ V(MPI_COMM_NULL), 0x100 }, { V(MPI_COMM_WORLD), 0x101 }, { V(MPI_COMM_SELF), 0x102 },
	{ V(MPI_GROUP_NULL), 0x108 }, { V(MPI_GROUP_EMPTY), 0x109 }, { V(MPI_DATATYPE_NULL), 0x200 },
	{ V(MPI_AINT), 0x201 }, { V(MPI_COUNT), 0x202 }, { V(MPI_OFFSET), 0x203 }, { V(MPI_PACKED), 0x207 },
	{ V(MPI_SHORT), 0x208 }, { V(MPI_INT), 0x209 }, { V(MPI_LONG), 0x20a }, { V(MPI_LONG_LONG), 0x20b },
	{ V(MPI_UNSIGNED_SHORT), 0x20c }, { V(MPI_UNSIGNED), 0x20d }, { V(MPI_UNSIGNED_LONG), 0x20e },
	{ V(MPI_UNSIGNED_LONG_LONG), 0x20f }, { V(MPI_FLOAT), 0x210 }, { V(MPI_C_FLOAT_COMPLEX), 0x212 },
	{ V(MPI_CXX_FLOAT_COMPLEX), 0x213 }, { V(MPI_DOUBLE), 0x214 }, { V(MPI_C_DOUBLE_COMPLEX), 0x216 },
	{ V(MPI_CXX_DOUBLE_COMPLEX), 0x217 }, { V(MPI_LOGICAL), 0x218 }, { V(MPI_INTEGER), 0x219 }, { V(MPI_REAL), 0x21a },
	{ V(MPI_COMPLEX), 0x21b }, { V(MPI_DOUBLE_PRECISION), 0x21c }, { V(MPI_DOUBLE_COMPLEX), 0x21d },
	{ V(MPI_CHARACTER), 0x21e }, { V(MPI_LONG_DOUBLE), 0x220 }, { V(MPI_C_LONG_DOUBLE_COMPLEX), 0x224 },
	{ V(MPI_CXX_LONG_DOUBLE_COMPLEX), 0x225 }, { V(MPI_FLOAT_INT), 0x228 }, { V(MPI_DOUBLE_INT), 0x229 },
	{ V(MPI_LONG_INT), 0x22a }, { V(MPI_2INT), 0x22b }, { V(MPI_SHORT_INT), 0x22c }, { V(MPI_LONG_DOUBLE_INT), 0x22d },
	{ V(MPI_2REAL), 0x230 }, { V(MPI_2DOUBLE_PRECISION), 0x231 }, { V(MPI_2INTEGER), 0x232 }, { V(MPI_C_BOOL), 0x238 },
	{ V(MPI_CXX_BOOL), 0x239 }, { V(MPI_WCHAR), 0x23c }, { V(MPI_INT8_T), 0x240 }, { V(MPI_UINT8_T), 0x241 },
	{ V(MPI_CHAR), 0x243 }, { V(MPI_SIGNED_CHAR), 0x244 }, { V(MPI_UNSIGNED_CHAR), 0x245 }, { V(MPI_BYTE), 0x247 },
	{ V(MPI_INT16_T), 0x248 }, { V(MPI_UINT16_T), 0x249 }, { V(MPI_INT32_T), 0x250 }, { V(MPI_UINT32_T), 0x251 },
	{ V(MPI_INT64_T), 0x258 }, { V(MPI_UINT64_T), 0x259 }, { V(MPI_LOGICAL1), 0x2c0 }, { V(MPI_INTEGER1), 0x2c1 },
	{ V(MPI_LOGICAL2), 0x2c8 }, { V(MPI_INTEGER2), 0x2c9 }, { V(MPI_REAL2), 0x2ca }, { V(MPI_LOGICAL4), 0x2d0 },
	{ V(MPI_INTEGER4), 0x2d1 }, { V(MPI_REAL4), 0x2d2 }, { V(MPI_COMPLEX4), 0x2d3 }, { V(MPI_LOGICAL8), 0x2d8 },
	{ V(MPI_INTEGER8), 0x2d9 }, { V(MPI_REAL8), 0x2da }, { V(MPI_COMPLEX8), 0x2db }, { V(MPI_LOGICAL16), 0x2e0 },
	{ V(MPI_INTEGER16), 0x2e1 }, { V(MPI_REAL16), 0x2e2 }, { V(MPI_COMPLEX16), 0x2e3 }, { V(MPI_COMPLEX32), 0x2eb },
	{ V(MPI_OP_NULL), 0x20 }, { V(MPI_SUM), 0x21 }, { V(MPI_MIN), 0x22 }, { V(MPI_MAX), 0x23 }, { V(MPI_PROD), 0x24 },
	{ V(MPI_BAND), 0x28 }, { V(MPI_BOR), 0x29 }, { V(MPI_BXOR), 0x2a }, { V(MPI_LAND), 0x30 }, { V(MPI_LOR), 0x31 },
	{ V(MPI_LXOR), 0x32 }, { V(MPI_MINLOC), 0x38 }, { V(MPI_MAXLOC), 0x39 }, { V(MPI_REPLACE), 0x3c },
	{ V(MPI_NO_OP), 0x3d }, { V(MPI_REQUEST_NULL), 0x180 }, { V(MPI_MESSAGE_NULL), 0x128 },
	{ V(MPI_MESSAGE_NO_PROC), 0x129 }, { V(MPI_ERRHANDLER_NULL), 0x140 }, { V(MPI_ERRORS_ARE_FATAL), 0x141 },
	{ V(MPI_ERRORS_ABORT), 0x142 }, { V(MPI_ERRORS_RETURN), 0x143 }, { V(MPI_INFO_NULL), 0x130 },
	{ V(MPI_INFO_ENV), 0x131 }, { V(MPI_WIN_NULL), 0x110 }, { V(MPI_FILE_NULL), 0x118 }, { V(MPI_SESSION_NULL), 0x120 },
};

static const struct value constants[] = {
	{ V(MPI_ERR_UNSUPPORTED_OPERATION), 55 }, { V(MPI_VERSION), 5 }, { V(MPI_SUBVERSION), 0 },
	{ V(MPI_ABI_VERSION), 1 }, { V(MPI_ABI_SUBVERSION), 0 }, { V(MPI_LONG_LONG_INT), 523 }, { V(MPI_C_COMPLEX), 530 },
	{ V(MPI_SUCCESS), 0 }, { V(MPI_ERR_BUFFER), 1 }, { V(MPI_ERR_COUNT), 2 }, { V(MPI_ERR_TYPE), 3 },
	{ V(MPI_ERR_TAG), 4 }, { V(MPI_ERR_COMM), 5 }, { V(MPI_ERR_RANK), 6 }, { V(MPI_ERR_REQUEST), 7 },
	{ V(MPI_ERR_ROOT), 8 }, { V(MPI_ERR_GROUP), 9 }, { V(MPI_ERR_OP), 10 }, { V(MPI_ERR_TOPOLOGY), 11 },
	{ V(MPI_ERR_DIMS), 12 }, { V(MPI_ERR_ARG), 13 }, { V(MPI_ERR_UNKNOWN), 14 }, { V(MPI_ERR_TRUNCATE), 15 },
	{ V(MPI_ERR_OTHER), 16 }, { V(MPI_ERR_INTERN), 17 }, { V(MPI_ERR_PENDING), 18 }, { V(MPI_ERR_IN_STATUS), 19 },
	{ V(MPI_ERR_ACCESS), 20 }, { V(MPI_ERR_AMODE), 21 }, { V(MPI_ERR_ASSERT), 22 }, { V(MPI_ERR_BAD_FILE), 23 },
	{ V(MPI_ERR_BASE), 24 }, { V(MPI_ERR_CONVERSION), 25 }, { V(MPI_ERR_DISP), 26 }, { V(MPI_ERR_DUP_DATAREP), 27 },
	{ V(MPI_ERR_FILE_EXISTS), 28 }, { V(MPI_ERR_FILE_IN_USE), 29 }, { V(MPI_ERR_FILE), 30 },
	{ V(MPI_ERR_INFO_KEY), 31 }, { V(MPI_ERR_INFO_NOKEY), 32 }, { V(MPI_ERR_INFO_VALUE), 33 }, { V(MPI_ERR_INFO), 34 },
	{ V(MPI_ERR_IO), 35 }, { V(MPI_ERR_KEYVAL), 36 }, { V(MPI_ERR_LOCKTYPE), 37 }, { V(MPI_ERR_NAME), 38 },
	{ V(MPI_ERR_NO_MEM), 39 }, { V(MPI_ERR_NOT_SAME), 40 }, { V(MPI_ERR_NO_SPACE), 41 },
	{ V(MPI_ERR_NO_SUCH_FILE), 42 }, { V(MPI_ERR_PORT), 43 }, { V(MPI_ERR_QUOTA), 44 }, { V(MPI_ERR_READ_ONLY), 45 },
	{ V(MPI_ERR_RMA_ATTACH), 46 }, { V(MPI_ERR_RMA_CONFLICT), 47 }, { V(MPI_ERR_RMA_RANGE), 48 },
	{ V(MPI_ERR_RMA_SHARED), 49 }, { V(MPI_ERR_RMA_SYNC), 50 }, { V(MPI_ERR_SERVICE), 51 }, { V(MPI_ERR_SIZE), 52 },
	{ V(MPI_ERR_SPAWN), 53 }, { V(MPI_ERR_UNSUPPORTED_DATAREP), 54 }, { V(MPI_ERR_WIN), 56 },
	{ V(MPI_ERR_RMA_FLAVOR), 57 }, { V(MPI_ERR_PROC_ABORTED), 58 }, { V(MPI_ERR_VALUE_TOO_LARGE), 59 },
	{ V(MPI_ERR_SESSION), 60 }, { V(MPI_ERR_ERRHANDLER), 61 }, { V(MPI_ERR_ABI), 62 },
	{ V(MPI_T_ERR_CANNOT_INIT), 1001 }, { V(MPI_T_ERR_NOT_ACCESSIBLE), 1002 }, { V(MPI_T_ERR_NOT_INITIALIZED), 1003 },
	{ V(MPI_T_ERR_NOT_SUPPORTED), 1004 }, { V(MPI_T_ERR_MEMORY), 1005 }, { V(MPI_T_ERR_INVALID), 1006 },
	{ V(MPI_T_ERR_INVALID_INDEX), 1007 }, { V(MPI_T_ERR_INVALID_ITEM), 1008 }, { V(MPI_T_ERR_INVALID_SESSION), 1009 },
	{ V(MPI_T_ERR_INVALID_HANDLE), 1010 }, { V(MPI_T_ERR_INVALID_NAME), 1011 }, { V(MPI_T_ERR_OUT_OF_HANDLES), 1012 },
	{ V(MPI_T_ERR_OUT_OF_SESSIONS), 1013 }, { V(MPI_T_ERR_CVAR_SET_NOT_NOW), 1014 },
	{ V(MPI_T_ERR_CVAR_SET_NEVER), 1015 }, { V(MPI_T_ERR_PVAR_NO_WRITE), 1016 },
	{ V(MPI_T_ERR_PVAR_NO_STARTSTOP), 1017 }, { V(MPI_T_ERR_PVAR_NO_ATOMIC), 1018 }, { V(MPI_ERR_LASTCODE), 16383 },
	{ V(MPI_ANY_SOURCE), -1 }, { V(MPI_ANY_TAG), -2 }, { V(MPI_PROC_NULL), -3 }, { V(MPI_ROOT), -4 },
	{ V(MPI_UNDEFINED), -32766 }, { V(MPI_THREAD_SINGLE), 0 }, { V(MPI_THREAD_FUNNELED), 1024 },
	{ V(MPI_THREAD_SERIALIZED), 2048 }, { V(MPI_THREAD_MULTIPLE), 4096 }, { V(MPI_ORDER_C), 12 },
	{ V(MPI_ORDER_FORTRAN), 15 }, { V(MPI_DISTRIBUTE_NONE), 16 }, { V(MPI_DISTRIBUTE_BLOCK), 17 },
	{ V(MPI_DISTRIBUTE_CYCLIC), 18 }, { V(MPI_DISTRIBUTE_DFLT_DARG), 19 }, { V(MPI_COMBINER_NAMED), 101 },
	{ V(MPI_COMBINER_DUP), 102 }, { V(MPI_COMBINER_CONTIGUOUS), 103 }, { V(MPI_COMBINER_VECTOR), 104 },
	{ V(MPI_COMBINER_HVECTOR), 105 }, { V(MPI_COMBINER_INDEXED), 106 }, { V(MPI_COMBINER_HINDEXED), 107 },
	{ V(MPI_COMBINER_INDEXED_BLOCK), 108 }, { V(MPI_COMBINER_HINDEXED_BLOCK), 109 }, { V(MPI_COMBINER_STRUCT), 110 },
	{ V(MPI_COMBINER_SUBARRAY), 111 }, { V(MPI_COMBINER_DARRAY), 112 }, { V(MPI_COMBINER_F90_REAL), 113 },
	{ V(MPI_COMBINER_F90_COMPLEX), 114 }, { V(MPI_COMBINER_F90_INTEGER), 115 }, { V(MPI_COMBINER_RESIZED), 116 },
	{ V(MPI_COMBINER_VALUE_INDEX), 117 }, { V(MPIX_TYPECLASS_LOGICAL), 191 }, { V(MPI_TYPECLASS_INTEGER), 192 },
	{ V(MPI_TYPECLASS_REAL), 193 }, { V(MPI_TYPECLASS_COMPLEX), 194 }, { V(MPI_IDENT), 201 }, { V(MPI_CONGRUENT), 202 },
	{ V(MPI_SIMILAR), 203 }, { V(MPI_UNEQUAL), 204 }, { V(MPI_CART), 211 }, { V(MPI_GRAPH), 212 },
	{ V(MPI_DIST_GRAPH), 213 }, { V(MPI_COMM_TYPE_SHARED), 221 }, { V(MPI_COMM_TYPE_HW_UNGUIDED), 222 },
	{ V(MPI_COMM_TYPE_HW_GUIDED), 223 }, { V(MPI_COMM_TYPE_RESOURCE_GUIDED), 224 }, { V(MPI_LOCK_EXCLUSIVE), 301 },
	{ V(MPI_LOCK_SHARED), 302 }, { V(MPI_WIN_FLAVOR_CREATE), 311 }, { V(MPI_WIN_FLAVOR_ALLOCATE), 312 },
	{ V(MPI_WIN_FLAVOR_DYNAMIC), 313 }, { V(MPI_WIN_FLAVOR_SHARED), 314 }, { V(MPI_WIN_UNIFIED), 321 },
	{ V(MPI_WIN_SEPARATE), 322 }, { V(MPI_MODE_NOCHECK), 1024 }, { V(MPI_MODE_NOPRECEDE), 2048 },
	{ V(MPI_MODE_NOPUT), 4096 }, { V(MPI_MODE_NOSTORE), 8192 }, { V(MPI_MODE_NOSUCCEED), 16384 },
	{ V(MPI_MODE_APPEND), 1 }, { V(MPI_MODE_CREATE), 2 }, { V(MPI_MODE_DELETE_ON_CLOSE), 4 }, { V(MPI_MODE_EXCL), 8 },
	{ V(MPI_MODE_RDONLY), 16 }, { V(MPI_MODE_RDWR), 32 }, { V(MPI_MODE_SEQUENTIAL), 64 },
	{ V(MPI_MODE_UNIQUE_OPEN), 128 }, { V(MPI_MODE_WRONLY), 256 }, { V(MPI_SEEK_CUR), 401 }, { V(MPI_SEEK_END), 402 },
	{ V(MPI_SEEK_SET), 403 }, { V(MPI_DISPLACEMENT_CURRENT), -1 }, { V(MPI_KEYVAL_INVALID), 0 }, { V(MPI_TAG_UB), 501 },
	{ V(MPI_IO), 502 }, { V(MPI_HOST), 503 }, { V(MPI_WTIME_IS_GLOBAL), 504 }, { V(MPI_APPNUM), 505 },
	{ V(MPI_LASTUSEDCODE), 506 }, { V(MPI_UNIVERSE_SIZE), 507 }, { V(MPI_WIN_BASE), 601 },
	{ V(MPI_WIN_DISP_UNIT), 602 }, { V(MPI_WIN_SIZE), 603 }, { V(MPI_WIN_CREATE_FLAVOR), 604 },
	{ V(MPI_WIN_MODEL), 605 }, { V(MPI_F_STATUS_SIZE), 8 }, { V(MPI_F_SOURCE), 0 }, { V(MPI_F_TAG), 1 },
	{ V(MPI_F_ERROR), 2 }, { V(MPI_BOTTOM), 0 }, { V(MPI_IN_PLACE), 1 }, { V(MPI_BUFFER_AUTOMATIC), 2 },
	{ V(MPI_ARGV_NULL), 0 }, { V(MPI_ARGVS_NULL), 0 }, { V(MPI_ERRCODES_IGNORE), 0 }, { V(MPI_STATUS_IGNORE), 0 },
	{ V(MPI_STATUSES_IGNORE), 0 }, { V(MPI_UNWEIGHTED), 10 }, { V(MPI_WEIGHTS_EMPTY), 11 },
	{ V(MPI_MAX_DATAREP_STRING), 128 }, { V(MPI_MAX_ERROR_STRING), 512 }, { V(MPI_MAX_INFO_KEY), 256 },
	{ V(MPI_MAX_INFO_VAL), 1024 }, { V(MPI_MAX_LIBRARY_VERSION_STRING), 8192 }, { V(MPI_MAX_OBJECT_NAME), 128 },
	{ V(MPI_MAX_PORT_NAME), 1024 }, { V(MPI_MAX_PROCESSOR_NAME), 256 }, { V(MPI_MAX_STRINGTAG_LEN), 1024 },
	{ V(MPI_MAX_PSET_NAME_LEN), 1024 }, { V(MPI_BSEND_OVERHEAD), 512 }, { V(MPI_COMM_NULL_COPY_FN), 0 },
	{ V(MPI_COMM_DUP_FN), 1 }, { V(MPI_COMM_NULL_DELETE_FN), 0 }, { V(MPI_TYPE_NULL_COPY_FN), 0 },
	{ V(MPI_TYPE_DUP_FN), 1 }, { V(MPI_TYPE_NULL_DELETE_FN), 0 }, { V(MPI_WIN_NULL_COPY_FN), 0 },
	{ V(MPI_WIN_DUP_FN), 1 }, { V(MPI_WIN_NULL_DELETE_FN), 0 }, { V(MPI_CONVERSION_FN_NULL), 0 },
	{ V(MPI_CONVERSION_FN_NULL_C), 0 }, { V(MPI_NULL_COPY_FN), 0 }, { V(MPI_DUP_FN), 1 }, { V(MPI_NULL_DELETE_FN), 0 },
	{ V(MPI_T_ENUM_NULL), 0 }, { V(MPI_T_CVAR_HANDLE_NULL), 0 }, { V(MPI_T_PVAR_SESSION_NULL), 0 },
	{ V(MPI_T_PVAR_HANDLE_NULL), 0 }, { V(MPI_T_PVAR_ALL_HANDLES), 1 }, { V(MPI_T_CB_REQUIRE_NONE), 0 },
	{ V(MPI_T_CB_REQUIRE_MPI_RESTRICTED), 3 }, { V(MPI_T_CB_REQUIRE_THREAD_SAFE), 15 },
	{ V(MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE), 63 }, { V(MPI_T_SOURCE_ORDERED), 1 }, { V(MPI_T_SOURCE_UNORDERED), 2 },
	{ V(MPI_T_VERBOSITY_USER_BASIC), 9 }, { V(MPI_T_VERBOSITY_USER_DETAIL), 10 }, { V(MPI_T_VERBOSITY_USER_ALL), 12 },
	{ V(MPI_T_VERBOSITY_TUNER_BASIC), 17 }, { V(MPI_T_VERBOSITY_TUNER_DETAIL), 18 },
	{ V(MPI_T_VERBOSITY_TUNER_ALL), 20 }, { V(MPI_T_VERBOSITY_MPIDEV_BASIC), 33 },
	{ V(MPI_T_VERBOSITY_MPIDEV_DETAIL), 34 }, { V(MPI_T_VERBOSITY_MPIDEV_ALL), 36 }, { V(MPI_T_BIND_NO_OBJECT), 1 },
	{ V(MPI_T_BIND_MPI_COMM), 2 }, { V(MPI_T_BIND_MPI_DATATYPE), 3 }, { V(MPI_T_BIND_MPI_ERRHANDLER), 4 },
	{ V(MPI_T_BIND_MPI_FILE), 5 }, { V(MPI_T_BIND_MPI_GROUP), 6 }, { V(MPI_T_BIND_MPI_OP), 7 },
	{ V(MPI_T_BIND_MPI_REQUEST), 8 }, { V(MPI_T_BIND_MPI_WIN), 9 }, { V(MPI_T_BIND_MPI_MESSAGE), 10 },
	{ V(MPI_T_BIND_MPI_INFO), 11 }, { V(MPI_T_BIND_MPI_SESSION), 12 }, { V(MPI_T_SCOPE_CONSTANT), 1 },
	{ V(MPI_T_SCOPE_READONLY), 2 }, { V(MPI_T_SCOPE_LOCAL), 3 }, { V(MPI_T_SCOPE_GROUP), 4 },
	{ V(MPI_T_SCOPE_GROUP_EQ), 5 }, { V(MPI_T_SCOPE_ALL), 6 }, { V(MPI_T_SCOPE_ALL_EQ), 7 },
	{ V(MPI_T_PVAR_CLASS_STATE), 1 }, { V(MPI_T_PVAR_CLASS_LEVEL), 2 }, { V(MPI_T_PVAR_CLASS_SIZE), 3 },
	{ V(MPI_T_PVAR_CLASS_PERCENTAGE), 4 }, { V(MPI_T_PVAR_CLASS_HIGHWATERMARK), 5 },
	{ V(MPI_T_PVAR_CLASS_LOWWATERMARK), 6 }, { V(MPI_T_PVAR_CLASS_COUNTER), 7 }, { V(MPI_T_PVAR_CLASS_AGGREGATE), 8 },
	{ V(MPI_T_PVAR_CLASS_TIMER), 9 }, { V(MPI_T_PVAR_CLASS_GENERIC), 10 },
};

static int wrong(const struct value *values, size_t n)
{
	int count = 0;
	for (size_t i = 0; i < n; i++) {
		if (values[i].value == values[i].expected)
			continue;
		fprintf(stderr, "%s is %ld instead of %ld\n", values[i].name, (long)values[i].value, (long)values[i].expected);
		count++;
	}
	return count;
}

/* Predefined handles have the same value in Fortran, and the size of a datatype of fixed size is part of its value. */
static int wrong_datatypes(void)
{
	int count = 0;
	for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
		intptr_t value = handles[i].expected;
		if (value < 0x200)
			continue;
		MPI_Datatype type = (MPI_Datatype)value;
		int size = MPI_UNDEFINED;
		bool fixed = (value & 0x3c0) == 0x240 || (value & 0x3c0) == 0x2c0;
		bool right = MPI_Type_toint(type) == value && MPI_Type_fromint((int)value) == type;
		if (right && fixed && MPI_Type_size(type, &size) == MPI_SUCCESS)
			right = size == MPI_UNDEFINED || size == 1 << ((value >> 3) & 7);
		if (!right)
			fprintf(stderr, "%s: in Fortran %d, size %d\n", handles[i].name, MPI_Type_toint(type), size);
		count += !right;
	}
	return count;
}

static void check_other_handles(void)
{
	CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 0x101 && MPI_Comm_fromint(0x102) == MPI_COMM_SELF);
	CHECK(MPI_Group_toint(MPI_GROUP_EMPTY) == 0x109);
	CHECK(MPI_Op_toint(MPI_SUM) == 0x21 && MPI_Op_fromint(0x24) == MPI_PROD);
	CHECK(MPI_Errhandler_toint(MPI_ERRORS_RETURN) == 0x143);
	CHECK(MPI_Info_toint(MPI_INFO_ENV) == 0x131 && MPI_Request_toint(MPI_REQUEST_NULL) == 0x180);
	CHECK(MPI_Win_toint(MPI_WIN_NULL) == 0x110 && MPI_File_toint(MPI_FILE_NULL) == 0x118);
}

int main(int argc, char **argv)
{
	int errors = wrong(handles, sizeof handles / sizeof *handles) + wrong(constants, sizeof constants / sizeof *constants);
	if (errors)
		return 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	check_other_handles();
	errors = wrong_datatypes();
	MPI_Finalize();
	return errors != 0;
}
