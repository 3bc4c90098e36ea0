/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker without CUDA, to test the daemon with: each byte a client sends is a command.
 *
 *	p	answers with the process's id and user, "PID UID\n"
 *	c	crashes
 *	x	exits with 3
 *	g	answers with the GPU that it was prepared for and the one that the session is granted, "GPU GPU\n", -1: all
 *	s	asks for a packet socket, which no worker needs: answers with the errno, "ERRNO\n"
 *	w	opens a userfaultfd that sees faults of user mode only, W one without this limit: answers with the errno
 *	q	answers with the session's quota of memory of GPU 0, "BYTES\n"
 *	v	executes a program, which only an intruder does
 *
 * Others come back as they are. Each command counts as a call; 4 MiB are reported in use. Drivers: "echo" and whatever is called libcuda.so.1 have two GPUs; "!FILE" fails while
 * that file is there; "none" cannot be loaded; "slow" takes a second; "crash" dies.
 */
#include "cuda_remote/server/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CONNECTIONS 64
#define USER_MODE_ONLY 1 /* UFFD_USER_MODE_ONLY of Linux 5.11; a system's headers may be older */

static uint32_t prepared, granted;
static struct worker_usage *counts;
static uint64_t memory; /* quota of GPU 0 */

/* Linked with --wrap: handing a client over fails once for each time that the file $HR_TEST_HAND_OVER is there. */
int __real_rc_door_peer_send(int socket, const rc_door_peer_t *peer);
int __wrap_rc_door_peer_send(int socket, const rc_door_peer_t *peer);
int __wrap_rc_door_peer_send(int socket, const rc_door_peer_t *peer)
{
	const char *fault = getenv("HR_TEST_HAND_OVER");
	return fault && !unlink(fault) ? -EAGAIN : __real_rc_door_peer_send(socket, peer);
}

bool server_link_addresses_valid(const char *list)
{
	(void)list; /* this worker opens no links */
	return true;
}

void worker_count_in(struct worker_usage *usage)
{
	counts = usage;
	counts->memory = 4 << 20;
	counts->gpu_used[1] = counts->gpu_charged[1] = UINT64_MAX; /* a lie */
}

void worker_limit_memory(const uint64_t *bytes, uint32_t count)
{
	memory = count ? bytes[0] : 0;
}

int worker_prepare(const char *driver, uint32_t gpu, uint32_t *gpus)
{
	if (!strcmp(driver, "crash"))
		abort();
	if (*driver == '!' && !access(driver + 1, F_OK))
		return -EIO;
	if (!strcmp(driver, "slow"))
		sleep(1);
	else if (*driver != '!' && strcmp(driver, "echo") && !strstr(driver, "libcuda.so.1"))
		return -ENOENT;
	prepared = gpu;
	*gpus = gpu == RC_SERVER_ALL_GPUS ? 2 : 1;
	return 0;
}

static int take(const rc_door_peer_t *peer)
{
	static const hr_card_t card = { 4, "ECHO" };
	return rc_door_peer_welcome(peer, &card, 2, 0, 0, "echo");
}

/* False: the client has gone. */
static bool execute(int fd)
{
	char byte, text[32];
	if (read(fd, &byte, 1) != 1)
		return false;
	__atomic_fetch_add(&counts->calls, 1, __ATOMIC_RELAXED);
	if (byte == 'c')
		abort();
	if (byte == 'x')
		exit(3);
	if (byte == 'v')
		execl("/bin/true", "true", (char *)NULL);
	int n;
	if (byte == 'g')
		n = snprintf(text, sizeof text, "%d %d\n", (int)prepared, (int)granted);
	else if (byte == 'q')
		n = snprintf(text, sizeof text, "%llu\n", (unsigned long long)memory);
	else if (byte == 's')
		n = snprintf(text, sizeof text, "%d\n", socket(AF_PACKET, SOCK_RAW, 0) < 0 ? errno : 0);
	else if (byte == 'w' || byte == 'W') {
		int watch = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | (byte == 'w' ? USER_MODE_ONLY : 0));
		n = snprintf(text, sizeof text, "%d\n", watch < 0 ? errno : 0);
		if (watch >= 0)
			close(watch);
	} else if (byte == 'p')
		n = snprintf(text, sizeof text, "%d %u\n", (int)getpid(), (unsigned)getuid());
	else
		return write(fd, &byte, 1) == 1;
	return write(fd, text, (size_t)n) == n;
}

static bool answer(int fd)
{
	bool here = execute(fd);
	__atomic_store_n(&counts->ended, __atomic_load_n(&counts->calls, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	return here;
}

int worker_serve(const rc_door_peer_t *first, int control)
{
	struct pollfd set[1 + CONNECTIONS] = { { .fd = control, .events = POLLIN },
					       { .fd = first->fd, .events = POLLIN } };
	nfds_t n = 2;
	granted = first->gpu;
	int error = take(first);
	while (!error) {
		if (poll(set, n, -1) < 0)
			return -errno;
		rc_door_peer_t peer;
		if (set[0].revents && rc_door_peer_receive(control, &peer) == 1 && n < 1 + CONNECTIONS) {
			take(&peer);
			set[n++] = (struct pollfd){ .fd = peer.fd, .events = POLLIN };
		}
		for (nfds_t i = 1; i < n; i++) {
			if (!set[i].revents || answer(set[i].fd))
				continue;
			if (i == 1)
				return 0;
			close(set[i].fd);
			set[i] = set[--n];
		}
	}
	return error;
}
