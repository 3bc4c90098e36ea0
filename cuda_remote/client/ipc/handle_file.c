/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and sockets that hold the handles of remote objects. */
#define _GNU_SOURCE /* memfd_create */
#include "cuda_remote/client/ipc/handle_file.h"
#include "cuda_remote/client/session.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_S 5 /* for the worker's answer */

CUresult rc_handle_file_make(const struct rc_wire_shared *handle, int *file)
{
	int made = memfd_create("headrace-handle", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (made < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (write(made, handle, sizeof *handle) != (ssize_t)sizeof *handle ||
	    fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)) {
		close(made);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*file = made;
	return CUDA_SUCCESS;
}

/* The worker's answer stays in the socket: each process that gets the descriptor reads it there. */
static bool worker_holds(int socket, const struct rc_wire_shared *handle)
{
	const struct timeval limit = { .tv_sec = PATIENCE_S }, none = { 0 };
	struct rc_wire_shared answer;
	(void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	bool holds = send(socket, handle, sizeof *handle, MSG_NOSIGNAL) == (ssize_t)sizeof *handle &&
		     recv(socket, &answer, sizeof answer, MSG_PEEK | MSG_WAITALL) == (ssize_t)sizeof answer &&
		     !memcmp(&answer, handle, sizeof answer);
	(void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
	return holds;
}

CUresult rc_handle_file_open(const struct rc_session *session, const struct rc_wire_shared *handle, int *file)
{
	int socket;
	if (rc_session_handle(session, &socket))
		return rc_handle_file_make(handle, file);
	if (!worker_holds(socket, handle)) {
		close(socket);
		return rc_handle_file_make(handle, file);
	}
	*file = socket;
	return CUDA_SUCCESS;
}

CUresult rc_handle_file_read(int file, struct rc_wire_shared *handle)
{
	struct stat about;
	if (fstat(file, &about))
		return CUDA_ERROR_INVALID_VALUE;
	ssize_t got = -1;
	if (S_ISSOCK(about.st_mode))
		got = recv(file, handle, sizeof *handle, MSG_PEEK | MSG_DONTWAIT);
	else if (S_ISREG(about.st_mode) && about.st_size == (off_t)sizeof *handle)
		got = pread(file, handle, sizeof *handle, 0);
	return got == (ssize_t)sizeof *handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
