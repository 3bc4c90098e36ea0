/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocols of sd_notify(3) and sd_listen_fds(3), without the library: a datagram, and variables. */
#include "cuda_remote/server/daemon/systemd.h"

#include "rdma_channel/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define FIRST_SOCKET 3

void systemd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof address.sun_path)
		return;
	memcpy(address.sun_path, path, strlen(path));
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (*path == '@')
		address.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, length);
		close(fd);
	}
}

void systemd_notify_reloading(void)
{
	struct timespec now;
	char state[80];
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%lld",
		 (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
	systemd_notify(state);
}

/* The number in LISTEN_FDS, 0 if the sockets are not for this process. */
static size_t passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid())
		return 0;
	long n = strtol(count, NULL, 10);
	return n > 0 ? (size_t)n : 0;
}

bool systemd_activated(void)
{
	return passed() > 0;
}

size_t systemd_sockets(int fds[SYSTEMD_SOCKETS_MAX])
{
	size_t n = passed();
	if (n > SYSTEMD_SOCKETS_MAX) {
		hr_log(HR_LOG_WARN, "LISTEN_FDS=%zu: headraced listens at the first %d of these sockets", n, SYSTEMD_SOCKETS_MAX);
		n = SYSTEMD_SOCKETS_MAX;
	}
	for (size_t i = 0; i < n; i++)
		fds[i] = FIRST_SOCKET + (int)i;
	return n;
}
