/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers that meet at a socket, in the abstract name space of Unix sockets: see meeting.h. */
#define _GNU_SOURCE /* accept4, struct ucred, POLLRDHUP */
#include "cuda_remote/server/ipc/meeting.h"

#include "cuda_remote/handle_files.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "HRshare1"
#define EXPORTS_MAX 16384 /* the handle that was made first ends if there are more */
#define PATIENCE_S 5      /* for the other worker */
#define PAUSE_NS 10000000 /* after an accept that failed: no descriptor may be left */

struct request {
	uint32_t kind;
	struct server_owner owner; /* of the session */
	uint8_t secret[16];
};

struct answer {
	int32_t found; /* 1, 0 */
	uint8_t native[CU_IPC_HANDLE_SIZE];
};

struct export {
	enum meeting_kind kind; /* 0: unused */
	uint8_t secret[16];
	uint8_t native[CU_IPC_HANDLE_SIZE];
	int file; /* of an export by meeting_export_file, plus 1; else 0 */
	unsigned holders; /* clients that hold the handle */
	bool ended;       /* the object has ended; the next two are its charge */
	uint32_t gpu;
	uint64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all these */
static struct export *exports; /* EXPORTS_MAX; NULL: nothing was exported */
static uint64_t made;          /* exports so far */
static int listener = -1;
static uint8_t place[16];      /* names the socket */
static unsigned holders;       /* of all exports; atomic, written under the lock */
static pthread_cond_t nobody_holds = PTHREAD_COND_INITIALIZER;

static const struct rc_handle_files *files; /* NULL: the driver does not have it */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_files(void)
{
	static const CUuuid id = RC_HANDLE_FILES_UUID;
	const void *table;
	if (!driver.cuGetExportTable || driver.cuGetExportTable(&table, &id) != CUDA_SUCCESS)
		return;
	const struct rc_handle_files *found = table;
	if (found->size == sizeof *found)
		files = found;
}

/* ---- sockets ---- */

static socklen_t address_of(const uint8_t *name, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	char *to = address->sun_path + 1; /* an abstract name begins with a 0 byte */
	int length = snprintf(to, sizeof address->sun_path - 1, "headrace-share-");
	for (int i = 0; i < 16; i++)
		length += snprintf(to + length, sizeof address->sun_path - 1 - (size_t)length, "%02x", name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static void be_patient(int socket)
{
	const struct timeval limit = { .tv_sec = PATIENCE_S };
	(void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	(void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* Workers of different clients may have one user, so this alone does not permit an exchange. */
static bool same_user(int socket)
{
	struct ucred other;
	socklen_t size = sizeof other;
	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) && other.uid == geteuid();
}

/* ---- the exporting worker ---- */

/* In constant time, so that the time does not reveal how many bytes of a guess are right. */
static bool same_secret(const uint8_t *a, const uint8_t *b)
{
	uint8_t difference = 0;
	for (int i = 0; i < 16; i++)
		difference |= a[i] ^ b[i];
	return !difference;
}

/* *file: a descriptor of the caller's own, or -1 if the object needs none. False: the object was not exported, or has ended. */
static bool look_up(const struct request *request, uint8_t *native, int *file)
{
	bool found = false, finds = false;
	*file = -1;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < made && i < EXPORTS_MAX && !found; i++) {
		const struct export *export = &exports[i];
		found = export->kind && export->kind == request->kind && same_secret(export->secret, request->secret);
		if (!found)
			continue;
		memcpy(native, export->native, CU_IPC_HANDLE_SIZE);
		finds = export->file || (files && (export->kind == MEETING_MEMORY || export->kind == MEETING_EVENT));
		if (export->file)
			*file = fcntl(export->file - 1, F_DUPFD_CLOEXEC, 0);
	}
	pthread_mutex_unlock(&lock);
	if (finds && *file < 0 && files)
		*file = files->file(native);
	return found && (!finds || *file >= 0);
}

/* file: -1 for none. */
static void send_answer(int socket, const struct answer *answer, int file)
{
	char room[CMSG_SPACE(sizeof file)] __attribute__((aligned(8))) = { 0 };
	struct iovec part = { (void *)(uintptr_t)answer, sizeof *answer };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	if (file >= 0) {
		message.msg_control = room;
		message.msg_controllen = sizeof room;
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof file);
		memcpy(CMSG_DATA(head), &file, sizeof file);
	}
	(void)!sendmsg(socket, &message, MSG_NOSIGNAL);
}

static void answer_one(int socket)
{
	struct request request;
	struct answer answer = { 0 };
	be_patient(socket);
	if (!same_user(socket) || recv(socket, &request, sizeof request, 0) != (ssize_t)sizeof request)
		return;
	int file = -1;
	answer.found = !memcmp(&request.owner, &worker.owner, sizeof request.owner) && look_up(&request, answer.native, &file);
	if (!answer.found)
		memset(answer.native, 0, sizeof answer.native);
	send_answer(socket, &answer, file);
	if (file >= 0)
		close(file);
}

static void *serve(void *argument)
{
	(void)argument;
	for (;;) {
		int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (socket < 0) {
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
			continue;
		}
		answer_one(socket);
		close(socket);
	}
	return NULL;
}

static int start_thread(void)
{
	pthread_t thread;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	int error = -pthread_create(&thread, &attr, serve, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

/* Opens the socket, at the first export. Under the lock. */
static int open_place(void)
{
	struct sockaddr_un address;
	if (listener >= 0)
		return 0;
	if (getrandom(place, sizeof place, 0) != sizeof place)
		return -errno;
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (listener < 0)
		return -errno;
	int error = bind(listener, (struct sockaddr *)&address, address_of(place, &address)) || listen(listener, 64) ? -errno : 0;
	if (!error)
		error = start_thread();
	if (error) {
		close(listener);
		listener = -1;
	}
	return error;
}

/* Under the lock. */
static struct export *find(enum meeting_kind kind, const void *native)
{
	for (unsigned i = 0; i < made && i < EXPORTS_MAX; i++)
		if (exports[i].kind == kind && !memcmp(exports[i].native, native, CU_IPC_HANDLE_SIZE))
			return &exports[i];
	return NULL;
}

/* Under the lock. */
static void forget(struct export *export)
{
	if (export->file)
		close(export->file - 1);
	export->file = 0;
	export->kind = 0;
}

/* The place of the next export. The handle that was made first ends, but not one that a client holds. Under the lock. */
static struct export *next_place(void)
{
	while (exports[made % EXPORTS_MAX].holders)
		made++;
	struct export *export = &exports[made++ % EXPORTS_MAX];
	forget(export);
	return export;
}

/* The export of this object, or a new one. NULL: no randomness. Under the lock. */
static struct export *find_or_make(enum meeting_kind kind, const void *native)
{
	struct export *export = find(kind, native);
	if (export)
		return export;
	export = next_place();
	if (getrandom(export->secret, sizeof export->secret, 0) != sizeof export->secret)
		return NULL;
	export->kind = kind;
	memcpy(export->native, native, CU_IPC_HANDLE_SIZE);
	return export;
}

void meeting_end(enum meeting_kind kind, const void *native)
{
	pthread_mutex_lock(&lock);
	struct export *export = find(kind, native);
	if (export)
		forget(export);
	pthread_mutex_unlock(&lock);
}

bool meeting_end_held(enum meeting_kind kind, const void *native, uint32_t gpu, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	struct export *export = find(kind, native);
	bool held = export && export->holders;
	if (held) {
		export->ended = true;
		export->gpu = gpu;
		export->bytes = bytes;
	} else if (export) {
		forget(export);
	}
	pthread_mutex_unlock(&lock);
	return held;
}

CUresult meeting_export(enum meeting_kind kind, const void *native, struct rc_wire_shared *handle)
{
	return meeting_export_file(kind, native, -1, handle);
}

CUresult meeting_export_file(enum meeting_kind kind, const void *native, int file, struct rc_wire_shared *handle)
{
	pthread_once(&once, find_files);
	pthread_mutex_lock(&lock);
	if (!exports)
		exports = calloc(EXPORTS_MAX, sizeof *exports);
	int error = exports ? open_place() : -ENOMEM;
	struct export *export = error ? NULL : find_or_make(kind, native);
	if (export && file >= 0 && !export->file) {
		export->file = file + 1;
		file = -1;
	}
	if (export) {
		*handle = (struct rc_wire_shared){ .kind = kind };
		memcpy(handle->magic, MAGIC, sizeof handle->magic);
		memcpy(handle->place, place, sizeof place);
		memcpy(handle->secret, export->secret, sizeof export->secret);
	}
	pthread_mutex_unlock(&lock);
	if (file >= 0)
		close(file);
	if (error)
		hr_log(HR_LOG_ERROR, "worker: no socket for other workers: %s", strerror(-error));
	return export ? CUDA_SUCCESS : error == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
}

/* ---- clients that hold a handle ---- */

static struct export *hold(const struct rc_wire_shared *handle)
{
	struct export *found = NULL;
	if (memcmp(handle->magic, MAGIC, sizeof handle->magic) || handle->kind != MEETING_ALLOCATION)
		return NULL;
	pthread_mutex_lock(&lock);
	bool here = exports && !memcmp(handle->place, place, sizeof place);
	for (unsigned i = 0; here && i < made && i < EXPORTS_MAX && !found; i++)
		if (exports[i].kind == MEETING_ALLOCATION && same_secret(exports[i].secret, handle->secret))
			found = &exports[i];
	if (found) {
		found->holders++;
		__atomic_store_n(&holders, holders + 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void let_go(struct export *export)
{
	pthread_mutex_lock(&lock);
	if (!--export->holders && export->ended) {
		forget(export);
		export->ended = false;
		server_quota_release(export->gpu, export->bytes);
		server_usage_sub(export->gpu, export->bytes);
	}
	__atomic_store_n(&holders, holders - 1, __ATOMIC_RELAXED);
	if (!holders)
		pthread_cond_broadcast(&nobody_holds);
	pthread_mutex_unlock(&lock);
}

/* Of another host that vanishes, the connection ends within two minutes. The calls fail for a Unix socket. */
static void keep_alive(int socket)
{
	const int on = 1, idle_s = 60, interval_s = 10, count = 6;
	(void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	(void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
	(void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/* All processes have closed their descriptors of the other end. What they may have sent is not read. */
static void wait_for_end(int socket)
{
	struct pollfd set = { socket, POLLRDHUP, 0 };
	while (poll(&set, 1, -1) < 0 || !set.revents)
		;
}

void meeting_hold(const rc_door_peer_t *peer)
{
	struct rc_wire_shared handle;
	struct export *export = NULL;
	if (!rc_door_peer_welcome(peer, NULL, worker.gpus, 0, 0, "")) {
		be_patient(peer->fd);
		if (recv(peer->fd, &handle, sizeof handle, MSG_WAITALL) == (ssize_t)sizeof handle)
			export = hold(&handle);
	}
	if (export && send(peer->fd, &handle, sizeof handle, MSG_NOSIGNAL) == (ssize_t)sizeof handle) {
		keep_alive(peer->fd);
		wait_for_end(peer->fd);
	}
	close(peer->fd);
	if (export)
		let_go(export);
}

bool meeting_is_held(void)
{
	return __atomic_load_n(&holders, __ATOMIC_RELAXED) != 0;
}

void meeting_wait(void)
{
	pthread_mutex_lock(&lock);
	while (holders)
		pthread_cond_wait(&nobody_holds, &lock);
	pthread_mutex_unlock(&lock);
}

/* ---- the importing worker ---- */

static bool receive_answer(int socket, struct answer *answer, int *file)
{
	char room[CMSG_SPACE(sizeof *file)] __attribute__((aligned(8)));
	struct iovec part = { answer, sizeof *answer };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	*file = -1;
	ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *head = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof *file))
		memcpy(file, CMSG_DATA(head), sizeof *file);
	if (got == (ssize_t)sizeof *answer && answer->found)
		return true;
	if (*file >= 0)
		close(*file);
	return false;
}

static bool ask(const struct rc_wire_shared *handle, const struct request *request, struct answer *answer, int *file)
{
	struct sockaddr_un address;
	socklen_t length = address_of(handle->place, &address);
	int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (to < 0)
		return false;
	be_patient(to);
	bool found = !connect(to, (struct sockaddr *)&address, length) && same_user(to) &&
		     send(to, request, sizeof *request, MSG_NOSIGNAL) == (ssize_t)sizeof *request &&
		     receive_answer(to, answer, file);
	close(to);
	return found;
}

CUresult meeting_import(enum meeting_kind kind, const struct rc_wire_shared *handle, struct meeting_found *found)
{
	struct request request = { .kind = kind, .owner = worker.owner };
	struct answer answer = { 0 };
	pthread_once(&once, find_files);
	memcpy(request.secret, handle->secret, sizeof request.secret);
	if (memcmp(handle->magic, MAGIC, sizeof handle->magic) || handle->kind != kind ||
	    !ask(handle, &request, &answer, &found->file))
		return CUDA_ERROR_INVALID_HANDLE;
	memcpy(found->native, answer.native, sizeof found->native);
	if (files)
		files->offer(found->file);
	return CUDA_SUCCESS;
}

void meeting_done(struct meeting_found *found)
{
	if (files)
		files->offer(-1);
	if (found->file >= 0)
		close(found->file);
}
