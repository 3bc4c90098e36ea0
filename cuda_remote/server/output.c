/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What device code prints: printf on the process's stdout, assertions and the driver's own messages on its stderr. Each
 * of the two is a file in memory, so that the driver never blocks in a write. Calls that wait send what was written
 * since the last such call, stdout before stderr, and free the memory. The worker's own log goes where the daemon's
 * does.
 *
 * A file has a fixed size, HEADRACE_SESSION_OUTPUT, and is sealed against growth. If it is more than half full, a new
 * file replaces it once its bytes have been sent.
 *
 * Most calls that wait find that nothing was written. So the worker maps each file and looks at the first bytes that were
 * not sent: as long as they are 0, nothing was written, or text that begins with as many NUL characters. For these,
 * every ASK_AFTER-th call of a connection asks the kernel; that would take longer than all else in a short call.
 */
#define _GNU_SOURCE /* memfd_create, fallocate */
#include "config.h"

#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (64u << 10)   /* bytes of one TEXT */
#define LOOKED_AT 8
#define ASK_AFTER 64
/* A write that would end beyond the file fails as a whole. If fewer bytes than this are free, a write may have
 * failed. */
#define MARGIN (128u << 10)

/* A function of the sanitizers. If the worker was built with one, its reports go to the log. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct output {
	int fd; /* where the driver writes */
	enum rc_text_stream stream;
	off_t taken;     /* bytes of the file that were sent; atomic */
	const uint8_t *view; /* the mapped file; NULL: it is not mapped; atomic */
	int old;         /* the file before this one: a write to it may have ended after the replacement. -1: none; atomic */
	off_t old_taken;
} outputs[] = {
	{ .fd = STDOUT_FILENO, .stream = RC_TEXT_STDOUT, .old = -1 },
	{ .fd = STDERR_FILENO, .stream = RC_TEXT_STDERR, .old = -1 },
};
#define OUTPUTS (sizeof outputs / sizeof outputs[0])
static bool sending; /* a thread has the lock, and changes the outputs; atomic */

/* Other threads look at the view without a lock, so it is never unmapped: the new file is mapped elsewhere and then moved to where
 * the one before is. If that fails, threads look at no view from then on, and the one before stays mapped. */
static void show_file(struct output *output, int file, size_t size)
{
	void *before = (void *)(uintptr_t)output->view, *view = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, file, 0);
	if (view != MAP_FAILED && before && mremap(view, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, before) == MAP_FAILED) {
		munmap(view, size);
		view = MAP_FAILED;
	}
	if (view != MAP_FAILED && before)
		view = before;
	__atomic_store_n(&output->view, view == MAP_FAILED ? NULL : view, __ATOMIC_RELAXED);
}

/* Makes the output's descriptor refer to a new file. */
static int fresh_file(struct output *output, const char *name)
{
	int fd = output->fd, file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error = 0;
	if (file < 0 || ftruncate(file, (off_t)server_limit(SERVER_LIMIT_OUTPUT)) ||
	    fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) || dup2(file, fd) < 0)
		error = -errno;
	size_t size = (size_t)server_limit(SERVER_LIMIT_OUTPUT);
	if (!error)
		show_file(output, file, size);
	if (file >= 0)
		close(file);
	return error;
}

int server_output_take(void)
{
	int log = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (log >= 0) {
		hr_log_set_fd(log);
		if (__sanitizer_set_report_fd)
			__sanitizer_set_report_fd((void *)(intptr_t)log);
	}
	fflush(stdout);
	fflush(stderr);
	int error = fresh_file(&outputs[0], "headrace-stdout");
	return error ? error : fresh_file(&outputs[1], "headrace-stderr");
}

/* Bytes written so far. All writers share the descriptor's offset. */
static off_t written(int fd)
{
	return lseek(fd, 0, SEEK_CUR);
}

static int send_text(struct server_thread *thread, enum rc_text_stream stream, const void *text, size_t len)
{
	struct rc_wire_text wire = { .stream = stream };
	return server_thread_send(thread, RC_PACKET_TEXT, &wire, sizeof wire, text, len);
}

/* Sends the bytes of a file from offset *taken on, and frees their memory. */
static int drain(struct server_thread *thread, int fd, enum rc_text_stream stream, off_t *taken, char *piece)
{
	int error = 0;
	off_t at = *taken, end = written(fd);
	while (at < end && !error) {
		size_t want = end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE;
		ssize_t n = pread(fd, piece, want, at);
		if (n <= 0)
			break;
		at += n;
		error = send_text(thread, stream, piece, (size_t)n);
	}
	if (at != *taken)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, at);
	__atomic_store_n(taken, at, __ATOMIC_RELAXED);
	return error;
}

/* Reports to the client that output may be lost. Once for each file. */
static int tell_lost(struct server_thread *thread, off_t limit)
{
	char text[160];
	int len = snprintf(text, sizeof text,
			   "headraced: device output beyond HEADRACE_SESSION_OUTPUT=%llu bytes between two waiting calls is lost\n",
			   (unsigned long long)limit);
	return send_text(thread, RC_TEXT_STDERR, text, (size_t)len);
}

static int replace(struct server_thread *thread, struct output *output)
{
	off_t limit = (off_t)server_limit(SERVER_LIMIT_OUTPUT);
	int error = output->taken > limit - (off_t)MARGIN ? tell_lost(thread, limit) : 0;
	int old = fcntl(output->fd, F_DUPFD_CLOEXEC, 3);
	if (old < 0 || fresh_file(output, "headrace-output")) {
		if (old >= 0)
			close(old);
		return error; /* keep the present file until it is full */
	}
	__atomic_store_n(&output->old, old, __ATOMIC_RELAXED);
	output->old_taken = output->taken;
	__atomic_store_n(&output->taken, 0, __ATOMIC_RELAXED);
	return error;
}

static int ship(struct server_thread *thread, struct output *output, char *piece)
{
	int error = 0;
	if (output->old >= 0) {
		error = drain(thread, output->old, output->stream, &output->old_taken, piece);
		close(output->old);
		__atomic_store_n(&output->old, -1, __ATOMIC_RELAXED);
	}
	if (!error)
		error = drain(thread, output->fd, output->stream, &output->taken, piece);
	if (!error && output->taken > (off_t)server_limit(SERVER_LIMIT_OUTPUT) / 2)
		error = replace(thread, output);
	return error;
}

/* Takes no lock. What was written before this call is either seen, or sent by a thread that began to send after this had looked
 * at `sending`. */
static bool seems_written(const struct output *output)
{
	static const uint8_t nothing[LOOKED_AT];
	uint8_t first[LOOKED_AT];
	const uint8_t *view = __atomic_load_n(&output->view, __ATOMIC_RELAXED);
	off_t taken = __atomic_load_n(&output->taken, __ATOMIC_RELAXED);
	if (!view || __atomic_load_n(&output->old, __ATOMIC_RELAXED) >= 0 ||
	    taken > (off_t)server_limit(SERVER_LIMIT_OUTPUT) - LOOKED_AT)
		return true;
	memcpy(first, view + taken, LOOKED_AT);
	return memcmp(first, nothing, LOOKED_AT) != 0;
}

/* True if it is not worth to ask the kernel whether anything was written. */
static bool is_quiet(struct server_thread *thread)
{
	/* Acquire pairs with the release in server_output_ship. */
	bool any = ++thread->looks % ASK_AFTER == 0 || __atomic_load_n(&sending, __ATOMIC_ACQUIRE);
	for (size_t i = 0; i < OUTPUTS && !any; i++)
		any = seems_written(&outputs[i]);
	return !any;
}

int server_output_ship(struct server_thread *thread)
{
	bool any = false;
	int error = 0;
	/* What a kernel prints before the call that waits for it is in the buffer by now. */
	if (__fpending(stdout))
		fflush(stdout);
	if (is_quiet(thread))
		return 0;
	for (size_t i = 0; i < OUTPUTS; i++)
		any |= written(outputs[i].fd) != __atomic_load_n(&outputs[i].taken, __ATOMIC_RELAXED);
	if (!any)
		return 0;
	pthread_mutex_lock(&lock);
	__atomic_store_n(&sending, true, __ATOMIC_SEQ_CST);
	char *piece = malloc(PIECE); /* if NULL, a later call sends the output */
	for (size_t i = 0; i < OUTPUTS && piece && !error; i++)
		error = ship(thread, &outputs[i], piece);
	free(piece);
	__atomic_store_n(&sending, false, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return error;
}
