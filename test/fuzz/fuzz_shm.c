/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of a shared-memory connection. Each may find anything in the memory that they share: ring headers, tails,
 * armed flags, payload. Neither may access memory outside of the rings, which lie between inaccessible pages (mmap is
 * wrapped for that), nor take or deliver more bytes than it was given. This file emulates single copy, as both ends are
 * in one process: an end may name any address of its peer, but the access is made only within the peer's own memory.
 *
 * Input: operations on either end, and writes into the memory.
 */
#include "rdma_channel/transport.h"
#include "test/fuzz/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define GUARD 65536u /* bytes on either side */

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t size);

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (fd < 0 || at)
		return __real_mmap(at, size, protection, flags, fd, offset);
	uint8_t *all = __real_mmap(NULL, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return MAP_FAILED;
	return __real_mmap(all + GUARD, size, protection, flags | MAP_FIXED, fd, offset);
}

int __wrap_munmap(void *at, size_t size)
{
	return __real_munmap((uint8_t *)at - GUARD, size + 2 * GUARD);
}

struct end {
	void *conn;
	int stream;
	uint8_t *memory; /* what its peer may write */
	size_t size;
	bool dead;
	hr_conn_stats_t stats;
	struct hr_conn_env env;
};

static void *context;
static uint64_t token_address;
static uint8_t put_bytes[65536], get_bytes[65536]; /* the memory that the callers pass to put and to get */

static bool lies_in(const struct iovec *piece, const uint8_t *bytes, size_t size)
{
	uintptr_t at = (uintptr_t)piece->iov_base, from = (uintptr_t)bytes;
	return at >= from && at - from <= size && piece->iov_len <= size - (at - from);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags);

/* The address to read may be anything. Unless it is the token's, the bytes must go to the memory of get. */
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags)
{
	ssize_t done = 0;
	(void)pid;
	(void)flags;
	for (unsigned long i = 0; i < n && i < m; i++) {
		bool token = (uintptr_t)there[i].iov_base == token_address && there[i].iov_len == sizeof(uint64_t);
		if (here[i].iov_len != there[i].iov_len || (!token && !lies_in(&here[i], get_bytes, sizeof get_bytes)))
			abort();
		if (!token && !lies_in(&there[i], put_bytes, sizeof put_bytes))
			break;
		memmove(here[i].iov_base, there[i].iov_base, here[i].iov_len);
		done += (ssize_t)here[i].iov_len;
	}
	if (done)
		return done;
	errno = EFAULT;
	return -1;
}

/* The address to write may be anything. The bytes to write must be in the memory of put. */
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags)
{
	(void)pid;
	(void)flags;
	if (n != 1 || m != 1 || here->iov_len != there->iov_len || !lies_in(here, put_bytes, sizeof put_bytes))
		abort();
	if (lies_in(there, get_bytes, sizeof get_bytes)) {
		memmove(there->iov_base, here->iov_base, here->iov_len);
		return (ssize_t)here->iov_len;
	}
	errno = EFAULT;
	return -1;
}

static void open_end(struct end *end, int stream, struct hr_half *half)
{
	struct stat status;
	end->stream = stream;
	end->stats.size = sizeof end->stats;
	end->env = (struct hr_conn_env){ .ring_bytes = 8192, .timeout_ms = 1000, .peer = "fuzz:0",
					   .stats = &end->stats };
	half->len = 0;
	half->n_fds = 0;
	if (hr_transport_shm.conn_open(context, &end->env, half, &end->conn) || fstat(half->fds[0], &status))
		abort();
	end->size = (size_t)status.st_size;
	end->memory = __real_mmap(NULL, end->size, PROT_READ | PROT_WRITE, MAP_SHARED, half->fds[0], 0);
	if (end->memory == MAP_FAILED)
		abort();
	memcpy(&token_address, half->blob + 16, sizeof token_address); /* shm_half_wire; the same for both ends */
}

static void close_end(struct end *end)
{
	hr_transport_shm.conn_close(end->conn);
	__real_munmap(end->memory, end->size);
	close(end->stream);
}

/* Writes a word anywhere; mostly a word that the protocol reads: of the control page, or the first of a cache line. */
static void scribble(struct end *end, struct fuzz_input *input)
{
	size_t at = fuzz_u16(input);
	uint8_t kind = fuzz_u8(input);
	uint64_t word;
	if (kind & 1)
		at = end->size - 4096 + at % 64 * 64; /* the control page */
	else if (kind & 2)
		at = at % ((end->size - 4096) / 64) * 64;
	at %= end->size - sizeof word + 1;
	memcpy(&word, end->memory + at, sizeof word);
	if (kind & 4)
		fuzz_take(input, &word, sizeof word);
	else if (kind & 8)
		word += fuzz_u8(input);
	else if (kind & 16)
		word -= fuzz_u8(input);
	else
		word ^= 1ull << (fuzz_u8(input) & 63);
	memcpy(end->memory + at, &word, sizeof word);
}

static void put(struct end *end, struct fuzz_input *input)
{
	size_t n = 1 + fuzz_u16(input), accepted = 0;
	struct iovec iov[2] = { { put_bytes, n / 3 }, { put_bytes + n / 3, n - n / 3 } };
	if (!end->dead && hr_transport_shm.put(end->conn, iov, 2, &accepted))
		end->dead = true;
	if (accepted > n)
		abort();
}

static void get(struct end *end, struct fuzz_input *input)
{
	size_t n = 1 + fuzz_u16(input), delivered = 0;
	struct iovec iov[2] = { { get_bytes, n / 2 }, { get_bytes + n / 2, n - n / 2 } };
	if (!end->dead && hr_transport_shm.get(end->conn, iov, 2, &delivered))
		end->dead = true;
	if (delivered > n)
		abort();
}

/* Records in place: writes all reserved bytes, reads all bytes that have arrived. */
static void put_in_place(struct end *end, struct fuzz_input *input)
{
	size_t front = fuzz_u8(input) % (HR_FRONT_MAX + 1), len = front + 1 + fuzz_u16(input) % (HR_RECORD_MAX - HR_FRONT_MAX);
	void *bytes = end->dead ? NULL : hr_transport_shm.reserve(end->conn, front, len);
	if (!bytes)
		return;
	memset(bytes, 0x5a, len);
	if (len >= HR_FILL_MIN)
		hr_transport_shm.fill(end->conn, bytes, put_bytes, len);
	hr_transport_shm.commit(end->conn, len);
}

static void get_in_place(struct end *end, struct fuzz_input *input)
{
	const uint8_t *bytes;
	size_t len, count = fuzz_u16(input);
	if (end->dead || hr_transport_shm.peek(end->conn, &bytes, &len) != HR_ARRIVED)
		return;
	if (!len || len > sizeof get_bytes)
		abort();
	if (len >= HR_DRAIN_MIN)
		hr_transport_shm.drain(end->conn, get_bytes, bytes, len);
	else
		memcpy(get_bytes, bytes, len);
	hr_transport_shm.consume(end->conn, count < len ? count : len);
}

static void step(struct end *end, struct fuzz_input *input, uint8_t operation)
{
	uint8_t byte;
	switch (operation % 8) {
	case 0:
	case 1:
	case 2: scribble(end, input); break;
	case 3: (operation & 64 ? put_in_place : put)(end, input); break;
	case 4: get_in_place(end, input); break;
	case 5: get(end, input); break;
	case 6:
		if (!end->dead)
			hr_transport_shm.conn_arm(end->conn, operation & 64);
		if (!end->dead)
			hr_transport_shm.conn_pending(end->conn, operation & 64);
		break;
	default: /* a byte arrives on the peer's stream */
		byte = fuzz_u8(input);
		send(end->stream, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hr_channel_env channel_env = { .timeout_ms = 1000 };
	struct fuzz_input input = { data, size };
	struct end ends[2] = { 0 };
	struct hr_half halves[2];
	uint8_t section[HR_SECTION_MAX];
	size_t section_len;
	int streams[2];
	if (!context && hr_transport_shm.open(&channel_env, &context, section, &section_len))
		abort();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, streams))
		abort();
	for (int i = 0; i < 2; i++)
		open_end(&ends[i], streams[i], &halves[i]);
	for (int i = 0; i < 2; i++)
		if (hr_transport_shm.conn_establish(ends[i].conn, &halves[!i], streams[i]))
			abort();
	while (input.left && !(ends[0].dead && ends[1].dead)) {
		uint8_t operation = fuzz_u8(&input);
		step(&ends[operation >> 7], &input, operation);
	}
	for (int i = 0; i < 2; i++)
		close_end(&ends[i]);
	return 0;
}
