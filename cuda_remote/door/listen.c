/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and closes the daemon's listening sockets: Unix socket files, abstract names, TCP addresses. */
#include "cuda_remote/door/listen.h"

#include "rdma_channel/base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 128
#define LOCK_TRIES 100 /* times 20 ms */

/* ---- Unix ---- */

/* Opens the socket's folder, and makes it if it is missing. -EPERM if another user than this one and root could replace
 * files in it. */
static int open_folder(const char *path)
{
	char folder[108] = ".";
	const char *slash = strrchr(path, '/');
	if (slash)
		snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (mkdir(folder, geteuid() ? 0700 : 0755) && errno != EEXIST)
		return -errno;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat status;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) || (status.st_uid != geteuid() && status.st_uid != 0) ||
	    ((status.st_mode & 022) && !(status.st_mode & S_ISVTX))) {
		hr_log(HR_LOG_ERROR, "socket %s: other users could replace files in its folder", path);
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* Locks the folder, as two daemons may start at the same time. The lock is on the folder, so it needs no lock file. */
static int lock_folder(int folder)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(folder, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
	return -ETIMEDOUT;
}

/* Removes the socket file of a dead daemon. 0: there is no file now. */
static int remove_stale(const struct sockaddr_un *address)
{
	struct stat status;
	if (lstat(address->sun_path, &status))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int error = 0;
	if (!connect(fd, (const struct sockaddr *)address, sizeof *address) || errno != ECONNREFUSED)
		error = -EADDRINUSE;
	close(fd);
	if (error)
		return error;
	hr_log(HR_LOG_INFO, "socket %s: left by a daemon that is gone; replaced", address->sun_path);
	return unlink(address->sun_path) ? -errno : 0;
}

/* Binds and listens. Any user may connect to a root daemon's socket. To another's, only its owner and root may. */
static int bind_unix(int fd, const struct sockaddr_un *address)
{
	mode_t saved = umask(0177);
	int error = bind(fd, (const struct sockaddr *)address, sizeof *address) ? -errno : 0;
	umask(saved);
	if (error)
		return error;
	if (!geteuid() && chmod(address->sun_path, 0666))
		return -errno;
	return listen(fd, BACKLOG) ? -errno : 0;
}

/* Listens at an abstract name, which the kernel removes with the socket. */
static int listen_abstract(const char *name, struct door_listener *listener)
{
	struct sockaddr_un address;
	socklen_t length;
	rc_server_unix_address(name, &address, &length);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, length) || listen(fd, BACKLOG)) {
		int error = -errno;
		close(fd);
		return error;
	}
	listener->fd = fd;
	listener->path[0] = 0;
	return 0;
}

static int listen_unix(const char *path, struct door_listener *listener)
{
	struct sockaddr_un address;
	socklen_t length;
	struct stat status;
	rc_server_unix_address(path, &address, &length);
	int folder = open_folder(path);
	if (folder < 0)
		return folder;
	int error = lock_folder(folder);
	if (error)
		goto close_folder;
	error = remove_stale(&address);
	if (error)
		goto close_folder;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		error = -errno;
		goto close_folder;
	}
	error = bind_unix(fd, &address);
	if (!error && stat(path, &status))
		error = -errno;
	if (error) {
		close(fd);
		goto close_folder;
	}
	listener->fd = fd;
	listener->device = status.st_dev;
	listener->inode = status.st_ino;
	memcpy(listener->path, path, sizeof listener->path);
close_folder:
	close(folder);
	return error;
}

/* ---- TCP ---- */

static bool beyond_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 != 127;
	return !IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static int listen_address(const struct addrinfo *at, struct door_listener *listener)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (at->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 1 }, sizeof(int));
	if (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, BACKLOG)) {
		int error = -errno;
		close(fd);
		return error;
	}
	listener->fd = fd;
	listener->path[0] = 0;
	return 0;
}

static int listen_inet(const rc_server_t *place, bool allow_network, struct door_listener *listeners, size_t max,
		       size_t *n)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *found;
	char port[8], name[RC_SERVER_NAME_MAX + 16];
	size_t count = 0;
	snprintf(port, sizeof port, "%u", place->port);
	rc_server_name(place, name, sizeof name);
	int status = getaddrinfo(place->host, port, &hints, &found);
	if (status) {
		hr_log(HR_LOG_ERROR, "cannot listen at %s: %s", name, gai_strerror(status));
		return -ENXIO;
	}
	int error = 0;
	for (const struct addrinfo *at = found; at && count < max; at = at->ai_next) {
		if (!allow_network && beyond_loopback(at->ai_addr)) {
			hr_log(HR_LOG_ERROR,
			       "will not listen at %s without a credential: whoever reaches that address could run "
			       "code here; give --key-file (headraced --make-key FILE writes one) or --credential=munge",
			       name);
			error = -EPERM;
			break;
		}
		int last = listen_address(at, &listeners[count]);
		/* Some addresses of a name may not be this host's, or IPv6 may be off. One that works is enough. */
		if (!last)
			count++;
		else if (!error)
			error = last;
	}
	freeaddrinfo(found);
	if (error == -EPERM || !count) {
		while (count)
			door_listener_close(&listeners[--count]);
		if (error != -EPERM)
			hr_log(HR_LOG_ERROR, "cannot listen at %s: %s", name, strerror(-error));
		return error ? error : -ENXIO;
	}
	*n = count;
	return 0;
}

int door_listen(const rc_server_t *place, bool allow_network, struct door_listener *listeners, size_t max, size_t *n)
{
	if (!*place->path)
		return listen_inet(place, allow_network, listeners, max, n);
	if (!max)
		return -ENOSPC;
	int error = *place->path == '@' ? listen_abstract(place->path, listeners) : listen_unix(place->path, listeners);
	if (error) {
		hr_log(HR_LOG_ERROR, "cannot listen at unix:%s: %s", place->path,
		       error == -EADDRINUSE ? "a daemon is listening there" : strerror(-error));
		return error;
	}
	*n = 1;
	return 0;
}

bool door_listens_to_network(const struct door_listener *listener)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	if (getsockname(listener->fd, (struct sockaddr *)&address, &size))
		return true;
	return address.ss_family != AF_UNIX && beyond_loopback((const struct sockaddr *)&address);
}

int door_listener_address(const struct door_listener *listener, char *text, size_t size)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_storage space;
	} address;
	socklen_t bytes = sizeof address;
	if (getsockname(listener->fd, &address.any, &bytes))
		return -errno;
	const void *number = address.any.sa_family == AF_INET ? (const void *)&address.v4.sin_addr :
								(const void *)&address.v6.sin6_addr;
	return inet_ntop(address.any.sa_family, number, text, (socklen_t)size) ? 0 : -errno;
}

static int check_adopted(int fd, bool allow_network)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	int type = 0, listening = 0;
	if (getsockname(fd, (struct sockaddr *)&address, &size) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof type }) ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &(socklen_t){ sizeof listening }))
		return -errno;
	if (type != SOCK_STREAM || !listening)
		return -EPROTOTYPE;
	if (address.ss_family == AF_UNIX)
		return 0;
	if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	return allow_network || !beyond_loopback((const struct sockaddr *)&address) ? 0 : -EPERM;
}

int door_adopt(int fd, bool allow_network, struct door_listener *listener)
{
	int error = check_adopted(fd, allow_network);
	if (error == -EPERM)
		hr_log(HR_LOG_ERROR, "will not serve the network at descriptor %d (LISTEN_FDS) without a credential: give --key-file or --credential=munge",
		       fd);
	else if (error)
		hr_log(HR_LOG_ERROR, "descriptor %d (LISTEN_FDS): %s; want a listening stream socket of TCP or Unix", fd,
		       strerror(-error));
	else if (fcntl(fd, F_SETFL, O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		error = -errno;
	if (!error)
		*listener = (struct door_listener){ .fd = fd };
	return error;
}

void door_listener_close(struct door_listener *listener)
{
	struct stat status;
	if (*listener->path && !lstat(listener->path, &status) && status.st_dev == listener->device &&
	    status.st_ino == listener->inode)
		unlink(listener->path);
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
	listener->path[0] = 0;
}
