/* SPDX-License-Identifier: BSD-3-Clause */
/* A preloaded object. Counts the program's sends, and writes "sends N" to stderr at its end, if that is open. The program can
 * ask for the sends of the calling thread. */
#define _GNU_SOURCE /* syscall */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned count;
static __thread unsigned of_thread;

static void count_send(void)
{
	__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	of_thread++;
}

__attribute__((visibility("default"))) unsigned sends_of_thread(void);
unsigned sends_of_thread(void)
{
	return of_thread;
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	count_send();
	return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	count_send();
	return syscall(SYS_sendmsg, fd, message, flags);
}

__attribute__((destructor)) static void report(void)
{
	char text[32];
	int len = snprintf(text, sizeof text, "sends %u\n", count);
	/* Programs such as timeout have closed their stderr by now. */
	ssize_t written = write(STDERR_FILENO, text, (size_t)len);
	(void)written;
}
