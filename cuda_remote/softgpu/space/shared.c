/* SPDX-License-Identifier: BSD-3-Clause */
/* Files behind shared memory: creates, checks and opens memfds. */
#include "config.h"

#include "cuda_remote/softgpu/space/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "headrace-softgpu-"

int softgpu_shared_file(const char *purpose, int device, uint64_t bytes)
{
	char name[64];
	snprintf(name, sizeof name, NAME "%s-%d", purpose, device);
	int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file < 0)
		return -errno;
	/* Without the seal another process could truncate the file, and an access in this process would get SIGBUS. */
	if (ftruncate(file, (off_t)bytes) || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK)) {
		int error = -errno;
		close(file);
		return error;
	}
	return file;
}

bool softgpu_shared_check(int file, const char *purpose, int *device, uint64_t *bytes)
{
	char path[32], name[96], want[64];
	struct stat about;
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	ssize_t length = readlink(path, name, sizeof name - 1);
	if (length < 0 || fstat(file, &about) || about.st_size < 0)
		return false;
	name[length] = '\0';
	int used = 0;
	snprintf(want, sizeof want, "/memfd:" NAME "%s-", purpose);
	if (strncmp(name, want, strlen(want)) || sscanf(name + strlen(want), "%d%n", device, &used) != 1 ||
	    strcmp(name + strlen(want) + used, " (deleted)"))
		return false;
	int seals = fcntl(file, F_GET_SEALS);
	*bytes = (uint64_t)about.st_size;
	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

int softgpu_shared_open(int process, int file)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", process, file);
	int opened = open(path, O_RDWR | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}
