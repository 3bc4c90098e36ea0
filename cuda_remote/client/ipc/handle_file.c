/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that hold the handles of remote objects. */
#define _GNU_SOURCE /* memfd_create */
#include "cuda_remote/client/ipc/handle_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

CUresult rc_handle_file_read(int file, struct rc_wire_shared *handle)
{
	struct stat about;
	bool sound = !fstat(file, &about) && S_ISREG(about.st_mode) && about.st_size == (off_t)sizeof *handle &&
		     pread(file, handle, sizeof *handle, 0) == (ssize_t)sizeof *handle;
	return sound ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
