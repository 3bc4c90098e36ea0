/* SPDX-License-Identifier: BSD-3-Clause */
/* Error classes, their texts, error handlers, MPI_Abort. */
#include "adi/adi.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The classes of MPI 5.0, section 9.4, by number. */
static const struct {
	const char *name, *text;
} classes[] = {
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

static bool is_class(int class)
{
	return class >= 0 && class < (int)(sizeof classes / sizeof *classes);
}

const char *adi_class_name(int class)
{
	return is_class(class) ? classes[class].name : NULL;
}

const char *adi_class_text(int class)
{
	return is_class(class) ? classes[class].text : NULL;
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

void adi_abort(int code, const char *message)
{
	fflush(NULL);
	adi_launch_abort(code, message);
	_exit(code & 0xff ? code & 0xff : EXIT_FAILURE);
}

int adi_raise(const struct adi_comm *comm, const char *function, int class, const char *format, ...)
{
	MPI_Errhandler handler = comm ? comm->errhandler : adi.world.errhandler;
	if (handler == MPI_ERRORS_RETURN)
		return class;
	char what[256], line[512];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	int used = snprintf(line, sizeof line, "%s", function);
	if (adi.state == ADI_RUNNING)
		used += snprintf(line + used, sizeof line - (size_t)used, " on rank %d of %d", adi.world.rank,
				 adi.world.size);
	snprintf(line + used, sizeof line - (size_t)used, ": %s: %s", adi_class_name(class), what);
	hr_log(HR_LOG_ERROR, "%s; aborting the job", line);
	adi_abort(class, line);
}

int PMPI_Abort(MPI_Comm comm, int errorcode)
{
	const struct adi_comm *found = adi_comm_find(comm);
	hr_log(HR_LOG_ERROR, "MPI_Abort(%s, %d) on rank %d of %d", found ? found->name : "no communicator", errorcode,
	       adi.world.rank, adi.world.size);
	adi_abort(errorcode, "MPI_Abort");
}
ADI_PROFILED(Abort);

int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
	int class = adi_check_running("MPI_Comm_set_errhandler");
	if (class)
		return class;
	struct adi_comm *found = adi_comm_find(comm);
	if (!found)
		return adi_raise(NULL, "MPI_Comm_set_errhandler", MPI_ERR_COMM, "%p is not a communicator",
				 (void *)comm);
	if (errhandler != MPI_ERRORS_ARE_FATAL && errhandler != MPI_ERRORS_ABORT && errhandler != MPI_ERRORS_RETURN)
		return adi_raise(found, "MPI_Comm_set_errhandler", MPI_ERR_ERRHANDLER, "%p is not an error handler",
				 (void *)errhandler);
	found->errhandler = errhandler;
	return MPI_SUCCESS;
}
ADI_PROFILED(Comm_set_errhandler);

int PMPI_Error_class(int errorcode, int *errorclass)
{
	if (!is_class(errorcode) || !errorclass)
		return adi_raise(NULL, "MPI_Error_class", MPI_ERR_ARG, "%d is not an error code, or a null pointer",
				 errorcode);
	*errorclass = errorcode;
	return MPI_SUCCESS;
}
ADI_PROFILED(Error_class);

int PMPI_Error_string(int errorcode, char *string, int *resultlen)
{
	if (!is_class(errorcode) || !string || !resultlen)
		return adi_raise(NULL, "MPI_Error_string", MPI_ERR_ARG, "%d is not an error code, or a null pointer",
				 errorcode);
	*resultlen = snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s", classes[errorcode].name, classes[errorcode].text);
	return MPI_SUCCESS;
}
ADI_PROFILED(Error_string);
