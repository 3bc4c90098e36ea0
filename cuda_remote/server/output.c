/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What device code prints. The driver writes it to the process's stdout; that is a file in memory here, so that the driver
 * never blocks on it. Calls that wait send what has come since and give its memory back.
 */
#include "config.h"

#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (64u << 10) /* bytes of one TEXT */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static off_t taken;

int server_output_take(void)
{
	int file = memfd_create("headrace-stdout", MFD_CLOEXEC);
	if (file < 0)
		return -errno;
	int flags = fcntl(file, F_GETFL);
	fflush(stdout);
	if (flags < 0 || fcntl(file, F_SETFL, flags | O_APPEND) < 0 || dup2(file, STDOUT_FILENO) < 0) {
		int error = -errno;
		close(file);
		return error;
	}
	close(file);
	return 0;
}

static int ship(struct server_thread *thread, off_t end)
{
	char *piece = malloc(PIECE);
	if (!piece)
		return 0; /* later */
	int error = 0;
	while (taken < end && !error) {
		ssize_t n = pread(STDOUT_FILENO, piece, PIECE, taken);
		if (n <= 0)
			break;
		taken += n;
		error = server_thread_send(thread, RC_PACKET_TEXT, NULL, 0, piece, (size_t)n);
	}
	free(piece);
	fallocate(STDOUT_FILENO, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, taken);
	return error;
}

int server_output_ship(struct server_thread *thread)
{
	struct stat now;
	fflush(stdout);
	if (fstat(STDOUT_FILENO, &now) || now.st_size == __atomic_load_n(&taken, __ATOMIC_RELAXED))
		return 0;
	pthread_mutex_lock(&lock);
	int error = ship(thread, now.st_size);
	pthread_mutex_unlock(&lock);
	return error;
}
