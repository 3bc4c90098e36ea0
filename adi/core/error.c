/* SPDX-License-Identifier: BSD-3-Clause */
/* Error classes, the classes and codes that the program adds, their texts, and the text of the error being reported. */
#include "adi/bindings/functions.h"
#include "adi/core/entry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct class_name {
	const char *name, *text;
};

/* The classes of MPI 5.0, section 9.4, by number. */
static const struct class_name classes[] = {
	[MPI_SUCCESS] = { "MPI_SUCCESS", "no error" },
	[MPI_ERR_BUFFER] = { "MPI_ERR_BUFFER", "invalid buffer pointer" },
	[MPI_ERR_COUNT] = { "MPI_ERR_COUNT", "invalid count" },
	[MPI_ERR_TYPE] = { "MPI_ERR_TYPE", "invalid datatype" },
	[MPI_ERR_TAG] = { "MPI_ERR_TAG", "invalid tag" },
	[MPI_ERR_COMM] = { "MPI_ERR_COMM", "invalid communicator" },
	[MPI_ERR_RANK] = { "MPI_ERR_RANK", "invalid rank" },
	[MPI_ERR_REQUEST] = { "MPI_ERR_REQUEST", "invalid request" },
	[MPI_ERR_ROOT] = { "MPI_ERR_ROOT", "invalid root" },
	[MPI_ERR_GROUP] = { "MPI_ERR_GROUP", "invalid group" },
	[MPI_ERR_OP] = { "MPI_ERR_OP", "invalid operation" },
	[MPI_ERR_TOPOLOGY] = { "MPI_ERR_TOPOLOGY", "invalid topology" },
	[MPI_ERR_DIMS] = { "MPI_ERR_DIMS", "invalid dimension" },
	[MPI_ERR_ARG] = { "MPI_ERR_ARG", "invalid argument" },
	[MPI_ERR_UNKNOWN] = { "MPI_ERR_UNKNOWN", "unknown error" },
	[MPI_ERR_TRUNCATE] = { "MPI_ERR_TRUNCATE", "message truncated on receive" },
	[MPI_ERR_OTHER] = { "MPI_ERR_OTHER", "known error not in this list" },
	[MPI_ERR_INTERN] = { "MPI_ERR_INTERN", "internal error" },
	[MPI_ERR_PENDING] = { "MPI_ERR_PENDING", "request still pending" },
	[MPI_ERR_IN_STATUS] = { "MPI_ERR_IN_STATUS", "the error code is in the status" },
	[MPI_ERR_ACCESS] = { "MPI_ERR_ACCESS", "permission denied" },
	[MPI_ERR_AMODE] = { "MPI_ERR_AMODE", "invalid access mode" },
	[MPI_ERR_ASSERT] = { "MPI_ERR_ASSERT", "invalid assertion" },
	[MPI_ERR_BAD_FILE] = { "MPI_ERR_BAD_FILE", "invalid file name" },
	[MPI_ERR_BASE] = { "MPI_ERR_BASE", "invalid base address" },
	[MPI_ERR_CONVERSION] = { "MPI_ERR_CONVERSION", "error in a data conversion function" },
	[MPI_ERR_DISP] = { "MPI_ERR_DISP", "invalid displacement" },
	[MPI_ERR_DUP_DATAREP] = { "MPI_ERR_DUP_DATAREP", "data representation already defined" },
	[MPI_ERR_FILE_EXISTS] = { "MPI_ERR_FILE_EXISTS", "file exists" },
	[MPI_ERR_FILE_IN_USE] = { "MPI_ERR_FILE_IN_USE", "file is in use" },
	[MPI_ERR_FILE] = { "MPI_ERR_FILE", "invalid file handle" },
	[MPI_ERR_INFO_KEY] = { "MPI_ERR_INFO_KEY", "info key too long" },
	[MPI_ERR_INFO_NOKEY] = { "MPI_ERR_INFO_NOKEY", "no such info key" },
	[MPI_ERR_INFO_VALUE] = { "MPI_ERR_INFO_VALUE", "info value too long" },
	[MPI_ERR_INFO] = { "MPI_ERR_INFO", "invalid info object" },
	[MPI_ERR_IO] = { "MPI_ERR_IO", "input or output error" },
	[MPI_ERR_KEYVAL] = { "MPI_ERR_KEYVAL", "invalid attribute key" },
	[MPI_ERR_LOCKTYPE] = { "MPI_ERR_LOCKTYPE", "invalid lock type" },
	[MPI_ERR_NAME] = { "MPI_ERR_NAME", "no such published name" },
	[MPI_ERR_NO_MEM] = { "MPI_ERR_NO_MEM", "out of memory" },
	[MPI_ERR_NOT_SAME] = { "MPI_ERR_NOT_SAME", "argument differs between processes" },
	[MPI_ERR_NO_SPACE] = { "MPI_ERR_NO_SPACE", "not enough space" },
	[MPI_ERR_NO_SUCH_FILE] = { "MPI_ERR_NO_SUCH_FILE", "no such file" },
	[MPI_ERR_PORT] = { "MPI_ERR_PORT", "invalid port name" },
	[MPI_ERR_QUOTA] = { "MPI_ERR_QUOTA", "quota exceeded" },
	[MPI_ERR_READ_ONLY] = { "MPI_ERR_READ_ONLY", "read-only file or file system" },
	[MPI_ERR_RMA_ATTACH] = { "MPI_ERR_RMA_ATTACH", "memory cannot be attached" },
	[MPI_ERR_RMA_CONFLICT] = { "MPI_ERR_RMA_CONFLICT", "conflicting accesses to a window" },
	[MPI_ERR_RMA_RANGE] = { "MPI_ERR_RMA_RANGE", "target memory is not part of the window" },
	[MPI_ERR_RMA_SHARED] = { "MPI_ERR_RMA_SHARED", "memory cannot be shared" },
	[MPI_ERR_RMA_SYNC] = { "MPI_ERR_RMA_SYNC", "wrong synchronization of window calls" },
	[MPI_ERR_SERVICE] = { "MPI_ERR_SERVICE", "no such published service" },
	[MPI_ERR_SIZE] = { "MPI_ERR_SIZE", "invalid size" },
	[MPI_ERR_SPAWN] = { "MPI_ERR_SPAWN", "processes cannot be started" },
	[MPI_ERR_UNSUPPORTED_DATAREP] = { "MPI_ERR_UNSUPPORTED_DATAREP", "unsupported data representation" },
	[MPI_ERR_UNSUPPORTED_OPERATION] = { "MPI_ERR_UNSUPPORTED_OPERATION", "unsupported operation" },
	[MPI_ERR_WIN] = { "MPI_ERR_WIN", "invalid window" },
	[MPI_ERR_RMA_FLAVOR] = { "MPI_ERR_RMA_FLAVOR", "wrong flavor of window" },
	[MPI_ERR_PROC_ABORTED] = { "MPI_ERR_PROC_ABORTED", "a peer process has ended" },
	[MPI_ERR_VALUE_TOO_LARGE] = { "MPI_ERR_VALUE_TOO_LARGE", "value too large to store" },
	[MPI_ERR_SESSION] = { "MPI_ERR_SESSION", "invalid session" },
	[MPI_ERR_ERRHANDLER] = { "MPI_ERR_ERRHANDLER", "invalid error handler" },
	[MPI_ERR_ABI] = { "MPI_ERR_ABI", "mismatch of ABI" },
};

#define FIRST_OF_TOOLS MPI_T_ERR_CANNOT_INIT

/* The classes of MPI_T (MPI 5.0, section 15.3.10), by number from FIRST_OF_TOOLS. */
static const struct class_name tools[] = {
	[MPI_T_ERR_CANNOT_INIT - FIRST_OF_TOOLS] = { "MPI_T_ERR_CANNOT_INIT", "MPI_T cannot be initialised" },
	[MPI_T_ERR_NOT_ACCESSIBLE - FIRST_OF_TOOLS] = { "MPI_T_ERR_NOT_ACCESSIBLE", "not accessible" },
	[MPI_T_ERR_NOT_INITIALIZED - FIRST_OF_TOOLS] = { "MPI_T_ERR_NOT_INITIALIZED", "MPI_T is not initialised" },
	[MPI_T_ERR_NOT_SUPPORTED - FIRST_OF_TOOLS] = { "MPI_T_ERR_NOT_SUPPORTED", "not supported" },
	[MPI_T_ERR_MEMORY - FIRST_OF_TOOLS] = { "MPI_T_ERR_MEMORY", "out of memory" },
	[MPI_T_ERR_INVALID - FIRST_OF_TOOLS] = { "MPI_T_ERR_INVALID", "invalid argument" },
	[MPI_T_ERR_INVALID_INDEX - FIRST_OF_TOOLS] = { "MPI_T_ERR_INVALID_INDEX", "invalid index" },
	[MPI_T_ERR_INVALID_ITEM - FIRST_OF_TOOLS] = { "MPI_T_ERR_INVALID_ITEM", "invalid index of an item" },
	[MPI_T_ERR_INVALID_SESSION - FIRST_OF_TOOLS] = { "MPI_T_ERR_INVALID_SESSION", "invalid session" },
	[MPI_T_ERR_INVALID_HANDLE - FIRST_OF_TOOLS] = { "MPI_T_ERR_INVALID_HANDLE", "invalid handle" },
	[MPI_T_ERR_INVALID_NAME - FIRST_OF_TOOLS] = { "MPI_T_ERR_INVALID_NAME", "invalid name" },
	[MPI_T_ERR_OUT_OF_HANDLES - FIRST_OF_TOOLS] = { "MPI_T_ERR_OUT_OF_HANDLES", "no more handles" },
	[MPI_T_ERR_OUT_OF_SESSIONS - FIRST_OF_TOOLS] = { "MPI_T_ERR_OUT_OF_SESSIONS", "no more sessions" },
	[MPI_T_ERR_CVAR_SET_NOT_NOW - FIRST_OF_TOOLS] = { "MPI_T_ERR_CVAR_SET_NOT_NOW", "the variable cannot be set now" },
	[MPI_T_ERR_CVAR_SET_NEVER - FIRST_OF_TOOLS] = { "MPI_T_ERR_CVAR_SET_NEVER", "the variable cannot be set" },
	[MPI_T_ERR_PVAR_NO_WRITE - FIRST_OF_TOOLS] = { "MPI_T_ERR_PVAR_NO_WRITE", "the variable cannot be written" },
	[MPI_T_ERR_PVAR_NO_STARTSTOP - FIRST_OF_TOOLS] = { "MPI_T_ERR_PVAR_NO_STARTSTOP",
							   "the variable cannot be started and stopped" },
	[MPI_T_ERR_PVAR_NO_ATOMIC - FIRST_OF_TOOLS] = { "MPI_T_ERR_PVAR_NO_ATOMIC",
							"the variable cannot be read and reset at once" },
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* The classes and codes of the program: MPI_ERR_LASTCODE + 1 is that of added[0]. */
static struct added {
	int class;   /* its own number: a class; 0: removed */
	int codes;   /* of a class: number of its codes */
	char *text;  /* owned; NULL: none */
} *added;
static int n_added;

static _Thread_local char error_text[512];

int adi_error(int class, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(error_text, sizeof error_text, format, args);
	va_end(args);
	return class;
}

int adi_error_of(const char *prefix, int class)
{
	char text[sizeof error_text];
	memcpy(text, error_text, sizeof text);
	return adi_error(class, "%s%.480s", prefix, text);
}

const char *adi_error_text(void)
{
	return error_text;
}

/* The latest error that a function of this thread has returned, for MPI_Error_string: codes are classes, which say neither
 * function nor argument. */
static _Thread_local struct {
	int code;
	char text[sizeof error_text];
} latest;

void adi_error_reported(const char *function, int code)
{
	latest.code = code;
	latest.text[0] = '\0';
	if (*error_text && snprintf(latest.text, sizeof latest.text, "MPI_%s: %s", function, error_text) < 0)
		latest.text[0] = '\0';
}

const char *adi_handle_text(const void *handle)
{
	static const struct {
		const void *handle;
		const char *name;
	} nulls[] = {
		{ MPI_COMM_NULL, "MPI_COMM_NULL" }, { MPI_WIN_NULL, "MPI_WIN_NULL" }, { MPI_SESSION_NULL, "MPI_SESSION_NULL" },
		{ MPI_INFO_NULL, "MPI_INFO_NULL" }, { MPI_ERRHANDLER_NULL, "MPI_ERRHANDLER_NULL" },
		{ MPI_REQUEST_NULL, "MPI_REQUEST_NULL" }, { MPI_MESSAGE_NULL, "MPI_MESSAGE_NULL" },
	};
	static _Thread_local char number[32];
	for (int i = 0; i < COUNT(nulls); i++)
		if (nulls[i].handle == handle)
			return nulls[i].name;
	snprintf(number, sizeof number, "%p", handle);
	return number;
}

void adi_error_forget(void)
{
	error_text[0] = '\0';
}

int adi_class(int error)
{
	switch (error) {
	case 0: return MPI_SUCCESS;
	case -ENOMEM: return MPI_ERR_NO_MEM;
	case -ECONNRESET:
	case -ETIMEDOUT:
	case -ESHUTDOWN: return MPI_ERR_PROC_ABORTED;
	default: return MPI_ERR_OTHER;
	}
}

int adi_error_below(int error, const char *what)
{
	return adi_error(adi_class(error), "%s: %s", what, strerror(-error));
}

static const struct class_name *predefined(int code)
{
	if (code >= 0 && code < COUNT(classes))
		return &classes[code];
	if (code >= FIRST_OF_TOOLS && code - FIRST_OF_TOOLS < COUNT(tools))
		return &tools[code - FIRST_OF_TOOLS];
	return NULL;
}

static struct added *added_find(int code)
{
	int i = code - MPI_ERR_LASTCODE - 1;
	return code > MPI_ERR_LASTCODE && i < n_added && added[i].class ? &added[i] : NULL;
}

int adi_class_of_code(int code)
{
	const struct added *found = added_find(code);
	if (found)
		return found->class;
	return predefined(code) || code == MPI_ERR_LASTCODE ? code : -1;
}

const char *adi_class_name(int class)
{
	const struct class_name *found = predefined(class);
	return found ? found->name : NULL;
}

const char *adi_class_text(int code)
{
	const struct added *found = added_find(code);
	if (found)
		return found->text ? found->text : "";
	return predefined(code) ? predefined(code)->text : NULL;
}

int adi_error_last_code(void)
{
	return MPI_ERR_LASTCODE + n_added;
}

static int no_such_code(int code)
{
	return adi_error(MPI_ERR_ARG, "errorcode is %d, no error code", code);
}

static int not_added(int code, const char *what)
{
	return adi_error(MPI_ERR_ARG, "%s is %d, no error %s that this program has added",
			 !strcmp(what, "class") ? "errorclass" : "errorcode", code, what);
}

/* Adds a class (class 0) or a code of a class. Numbers are not used again, so that an old number never gets a new meaning. */
static int add(int class, int *number)
{
	struct added *grown = realloc(added, (size_t)(n_added + 1) * sizeof *added);
	if (!grown)
		return adi_error(MPI_ERR_NO_MEM, "no memory for error code %d", n_added);
	added = grown;
	*number = MPI_ERR_LASTCODE + 1 + n_added;
	added[n_added++] = (struct added){ .class = class ? class : *number };
	return MPI_SUCCESS;
}

int mpi_add_error_class(int *errorclass)
{
	return add(0, errorclass);
}

int mpi_add_error_code(int errorclass, int *errorcode)
{
	if (errorclass < 0 || adi_class_of_code(errorclass) != errorclass)
		return adi_error(MPI_ERR_ARG, "errorclass is %d, no error class", errorclass);
	int class = add(errorclass, errorcode);
	struct added *of = added_find(errorclass);
	if (!class && of)
		of->codes++;
	return class;
}

int mpi_add_error_string(int errorcode, const char *string)
{
	struct added *found = added_find(errorcode);
	if (!found)
		return not_added(errorcode, "class or code");
	if (strlen(string) >= MPI_MAX_ERROR_STRING)
		return adi_error(MPI_ERR_ARG, "string has %zu characters; at most %d are valid", strlen(string),
				 MPI_MAX_ERROR_STRING - 1);
	char *copy = strdup(string);
	if (!copy)
		return adi_error(MPI_ERR_NO_MEM, "no memory for the string of error code %d", errorcode);
	free(found->text);
	found->text = copy;
	return MPI_SUCCESS;
}

int mpi_remove_error_class(int errorclass)
{
	struct added *found = added_find(errorclass);
	if (!found || found->class != errorclass)
		return not_added(errorclass, "class");
	if (found->codes || found->text)
		return adi_error(MPI_ERR_ARG, "error class %d still has %s", errorclass, found->codes ? "codes" : "a string");
	found->class = 0;
	return MPI_SUCCESS;
}

int mpi_remove_error_code(int errorcode)
{
	struct added *found = added_find(errorcode);
	if (!found || found->class == errorcode)
		return not_added(errorcode, "code");
	if (found->text)
		return adi_error(MPI_ERR_ARG, "error code %d still has a string", errorcode);
	struct added *of = added_find(found->class);
	if (of)
		of->codes--;
	found->class = 0;
	return MPI_SUCCESS;
}

int mpi_remove_error_string(int errorcode)
{
	struct added *found = added_find(errorcode);
	if (!found)
		return not_added(errorcode, "class or code");
	if (!found->text)
		return adi_error(MPI_ERR_ARG, "error code %d has no string", errorcode);
	free(found->text);
	found->text = NULL;
	return MPI_SUCCESS;
}

int mpi_error_class(int errorcode, int *errorclass)
{
	int class = adi_class_of_code(errorcode);
	if (class < 0)
		return no_such_code(errorcode);
	*errorclass = class;
	return MPI_SUCCESS;
}

int mpi_error_string(int errorcode, char *string, int *resultlen)
{
	const char *text = adi_class_text(errorcode), *name = adi_class_name(errorcode);
	if (errorcode == MPI_ERR_LASTCODE)
		text = "the last predefined error code";
	if (!text)
		return no_such_code(errorcode);
	if (name && errorcode == latest.code && *latest.text)
		snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s (%.400s)", name, text, latest.text);
	else
		snprintf(string, MPI_MAX_ERROR_STRING, "%s%s%s", name ? name : "", name ? ": " : "", text);
	*resultlen = (int)strlen(string);
	return MPI_SUCCESS;
}
