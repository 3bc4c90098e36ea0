/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fork in the moment in which another thread has closed a channel's epoll set, and its number has been given to
 * another file: the child has that file. The linker lets the test act behind close.
 */
#include "headrace/channel.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int set = -1; /* the number of the epoll set */
static int status = -1;

int __real_close(int fd);
int __wrap_close(int fd);

static void fork_with_another_file(int fd)
{
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (file != fd) { /* not the lowest number that was free */
		dup2(file, fd);
		__real_close(file);
	}
	pid_t child = fork();
	if (child == 0)
		_exit(fcntl(fd, F_GETFD) < 0);
	if (child < 0 || waitpid(child, &status, 0) != child)
		status = -1;
	__real_close(fd);
}

int __wrap_close(int fd)
{
	int result = __real_close(fd);
	if (result == 0 && fd == set) {
		set = -1;
		fork_with_another_file(fd);
	}
	return result;
}

int main(void)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	hr_channel_t *channel;
	hr_card_t card;
	attr.transports = HR_TRANSPORT_TCP;
	int error = hr_channel_init(&attr, &channel, &card);
	if (error) {
		fprintf(stderr, "hr_channel_init: %d\n", error);
		return 1;
	}
	set = hr_channel_fd(channel);
	hr_channel_finalize(channel);
	if (status == 0)
		return 0;
	fprintf(stderr, status < 0 ? "there was no fork behind the close\n" : "the child has lost a file\n");
	return 1;
}
