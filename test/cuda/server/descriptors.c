/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client may pass any descriptor as its pinned memory, and name any bytes of it. The worker maps only memory that cannot
 * shrink, within the session's limit (the script sets it to 16 MB), and serves on after every other request.
 */
#define _GNU_SOURCE /* memfd_create */
#include "test/cuda/server/raw_client.h"

#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MEGABYTE (1u << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static raw_t raw;
static uint64_t number, memory;
static uint32_t context;
static int passing = -1; /* the socket */

#define CHECK(condition) RAW_CHECK(raw, condition)

static uint64_t handle(uint32_t index)
{
	return rc_handle_make(RC_KIND_PINNED, index, 1);
}

static int open_passing(const uint8_t *token)
{
	rc_door_connect_t wanted = { .purpose = RC_DOOR_MEMORY };
	rc_door_welcome_t welcome;
	CHECK(!rc_server_parse_place(getenv("HEADRACE_SERVER"), &wanted.server));
	memcpy(wanted.token, token, sizeof wanted.token);
	int error = rc_door_connect(&wanted, &welcome);
	return error ? error : welcome.fd;
}

static int file(uint64_t size, unsigned seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(fd >= 0 && !ftruncate(fd, (off_t)size) && !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static struct rc_wire_pinned last;

/* Passes a descriptor and closes it. The worker's result; -1: it closed the socket. */
static int pass_at(uint64_t named, uint64_t bytes, uint64_t address, int fd)
{
	struct rc_wire_pin ask = { named, bytes, address, RC_PIN_WHOLE, 0 };
	int error = rc_door_pass(passing, &ask, sizeof ask, fd);
	close(fd);
	if (error || recv(passing, &last, sizeof last, MSG_WAITALL) != (ssize_t)sizeof last)
		return -1;
	CHECK(last.pinned == named);
	return last.result;
}

static int pass(uint64_t named, uint64_t bytes, int fd)
{
	int result = pass_at(named, bytes, 0, fd);
	CHECK(result || !last.mapped);
	return result;
}

static int free_pinned(uint64_t named)
{
	struct rc_wire_pinned_free args = { named, 0 };
	return raw_call(&raw, ++number, RC_CALL_pinned_free, context, &args, sizeof args, NULL, 0);
}

static void unsuitable_descriptors(void)
{
	int pair[2];
	CHECK(pass(handle(1), MEGABYTE, file(MEGABYTE, 0)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(pass(handle(1), MEGABYTE, file(MEGABYTE, F_SEAL_GROW)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(pass(handle(1), MEGABYTE, file(MEGABYTE - 4096, SEALS)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(pass(handle(1), MEGABYTE, file(0, SEALS)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(pass(handle(1), 0, file(MEGABYTE, SEALS)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(pass(handle(1), UINT64_MAX, file(MEGABYTE, SEALS)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(pass(handle(1), UINT64_MAX - 4095, file(MEGABYTE, SEALS)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(pass(handle(1), 1ull << 44, file(1ull << 44, SEALS)) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(pass(handle(1), MEGABYTE, file(MEGABYTE, SEALS | F_SEAL_WRITE)) != CUDA_SUCCESS);
	CHECK(pass(handle(1), MEGABYTE, open("/dev/zero", O_RDWR)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(pass(handle(1), MEGABYTE, open("/proc/self/exe", O_RDONLY)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!pipe(pair));
	close(pair[1]);
	CHECK(pass(handle(1), MEGABYTE, pair[0]) == CUDA_ERROR_INVALID_VALUE);
	int huge = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (huge >= 0 && !ftruncate(huge, 2 * MEGABYTE) && !fcntl(huge, F_ADD_SEALS, SEALS))
		CHECK(pass(handle(1), MEGABYTE, huge) == CUDA_ERROR_INVALID_VALUE);
}

/* The client's address: the worker never replaces memory of its own. */
static void unsuitable_addresses(void)
{
	static const uint64_t wrong[] = { 1, 4096, RC_PIN_LOWEST - 4096, RC_PIN_LOWEST + 1, 1ull << 63, UINT64_MAX - 4095,
					  (1ull << 47) - 4096 };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK(pass_at(handle(3), 2 * 4096, wrong[i], file(2 * 4096, SEALS)) != CUDA_SUCCESS && !last.mapped);
	uint64_t free_address = 0x123456789000;
	CHECK(pass_at(handle(3), 4096, free_address, file(4096, SEALS)) == CUDA_SUCCESS && last.mapped == 1);
	CHECK(pass_at(handle(4), 4096, free_address, file(4096, SEALS)) == CUDA_ERROR_ALREADY_MAPPED && !last.mapped);
	CHECK(pass_at(handle(4), 2 * 4096, free_address - 4096, file(2 * 4096, SEALS)) == CUDA_ERROR_ALREADY_MAPPED);
	CHECK(pass_at(handle(4), 4096, memory & ~4095ull, file(4096, SEALS)) == CUDA_ERROR_ALREADY_MAPPED);
	CHECK(free_pinned(handle(3)) == CUDA_SUCCESS);
	CHECK(pass_at(handle(4), 4096, free_address, file(4096, SEALS)) == CUDA_SUCCESS && last.mapped == 1);
	CHECK(free_pinned(handle(4)) == CUDA_SUCCESS);
}

static void unsuitable_handles(void)
{
	CHECK(pass(rc_handle_make(RC_KIND_STREAM, 5, 1), 4096, file(4096, SEALS)) == CUDA_ERROR_INVALID_HANDLE);
	CHECK(pass(0, 4096, file(4096, SEALS)) == CUDA_ERROR_INVALID_HANDLE);
	CHECK(pass(UINT64_MAX, 4096, file(4096, SEALS)) == CUDA_ERROR_INVALID_HANDLE);
	CHECK(pass(handle(2), 4096, file(4096, SEALS)) == CUDA_SUCCESS);
	CHECK(pass(handle(2), 4096, file(4096, SEALS)) == CUDA_ERROR_INVALID_HANDLE);
}

/* The limit counts what is mapped: freed memory makes room, refused memory takes none. */
static void limit(void)
{
	for (uint32_t i = 0; i < 15; i++)
		CHECK(pass(handle(10 + i), MEGABYTE, file(MEGABYTE, SEALS)) == CUDA_SUCCESS);
	CHECK(pass(handle(30), MEGABYTE, file(MEGABYTE, SEALS)) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(free_pinned(handle(10)) == CUDA_SUCCESS);
	CHECK(free_pinned(handle(10)) == CUDA_ERROR_INVALID_HANDLE);
	CHECK(pass(handle(30), MEGABYTE, file(MEGABYTE, SEALS)) == CUDA_SUCCESS);
	for (uint32_t i = 1; i < 15; i++)
		CHECK(free_pinned(handle(10 + i)) == CUDA_SUCCESS);
}

static int copy(uint64_t named, uint64_t offset, uint64_t pitch, uint64_t slice, struct rc_wire_box box)
{
	struct rc_wire_copy_pinned args = { .pinned = named, .offset = offset, .pitch = pitch, .slice = slice, .box = box,
					    .to_device = 1 };
	int up = raw_call(&raw, ++number, RC_CALL_copy_pinned_wait, context, &args, sizeof args, NULL, 0);
	args.to_device = 0;
	int down = raw_call(&raw, ++number, RC_CALL_copy_pinned_wait, context, &args, sizeof args, NULL, 0);
	CHECK(up == down);
	return up;
}

static struct rc_wire_box box(uint64_t width, uint64_t height, uint64_t depth)
{
	return (struct rc_wire_box){ memory, width, width * height, width, height, depth };
}

/* handle(30) has 1 MB. */
static void bounds(void)
{
	const uint64_t all = handle(30);
	CHECK(copy(all, 0, 0, 0, box(MEGABYTE, 1, 1)) == CUDA_SUCCESS);
	CHECK(copy(all, MEGABYTE - 1, 0, 0, box(1, 1, 1)) == CUDA_SUCCESS);
	CHECK(copy(all, MEGABYTE, 0, 0, box(1, 1, 1)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy(all, 1, 0, 0, box(MEGABYTE, 1, 1)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy(all, UINT64_MAX, 0, 0, box(2, 1, 1)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy(all, 0, MEGABYTE / 2, 0, box(16, 2, 1)) == CUDA_SUCCESS);
	CHECK(copy(all, 0, MEGABYTE, 0, box(16, 2, 1)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy(all, 0, UINT64_MAX, 0, box(16, 2, 1)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy(all, 0, 1ull << 63, 0, box(16, 3, 1)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy(all, 0, 16, MEGABYTE, box(16, 2, 2)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy(all, 0, 16, 1ull << 63, box(16, 2, 3)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy(all, 0, 16, 32, box(16, 2, 3)) == CUDA_SUCCESS);
	CHECK(copy(all, 0, 0, 0, box(0, 1, 1)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(copy(handle(11), 0, 0, 0, box(1, 1, 1)) == CUDA_ERROR_INVALID_HANDLE);
	CHECK(copy(handle(10), 0, 0, 0, box(1, 1, 1)) == CUDA_ERROR_INVALID_HANDLE);
	CHECK(copy(rc_handle_make(RC_KIND_CONTEXT, 1000, 1), 0, 0, 0, box(1, 1, 1)) == CUDA_ERROR_INVALID_HANDLE);
}

static int try(uint64_t named, uint64_t bytes, uint64_t address)
{
	struct rc_wire_pin ask = { named, bytes, address, RC_PIN_TRY, 0 };
	int fd = file(bytes, SEALS), error = rc_door_pass(passing, &ask, sizeof ask, fd);
	close(fd);
	CHECK(!error && recv(passing, &last, sizeof last, MSG_WAITALL) == (ssize_t)sizeof last);
	CHECK(last.pinned == named && !(last.mapped & RC_PIN_MAPPED));
	return last.result;
}

/* -1: the worker closed the socket. */
static int decide(uint64_t named, uint32_t step)
{
	struct rc_wire_pin ask = { .pinned = named, .step = step };
	CHECK(send(passing, &ask, sizeof ask, MSG_NOSIGNAL) == (ssize_t)sizeof ask);
	if (recv(passing, &last, sizeof last, MSG_WAITALL) != (ssize_t)sizeof last)
		return -1;
	CHECK(last.pinned == named);
	return last.result;
}

/* What was tried is there for copies and kernels only once it is kept. What is not kept leaves nothing, also in the limit. */
static void tries(void)
{
	const uint64_t address = 0x123456789000, most = 14 * MEGABYTE;
	CHECK(try(handle(31), MEGABYTE, address) == CUDA_SUCCESS);
	CHECK(copy(handle(31), 0, 0, 0, box(1, 1, 1)) == CUDA_ERROR_INVALID_HANDLE);
	CHECK(decide(handle(31), RC_PIN_KEEP) == CUDA_SUCCESS && last.mapped == RC_PIN_MAPPED);
	CHECK(copy(handle(31), 0, 0, 0, box(1, 1, 1)) == CUDA_SUCCESS);
	CHECK(try(handle(32), MEGABYTE, address) == CUDA_ERROR_ALREADY_MAPPED);
	CHECK(free_pinned(handle(31)) == CUDA_SUCCESS);
	CHECK(try(handle(32), most, address) == CUDA_SUCCESS && decide(handle(32), RC_PIN_DROP) == CUDA_SUCCESS);
	CHECK(free_pinned(handle(32)) == CUDA_ERROR_INVALID_HANDLE);
	CHECK(try(handle(30), most, address) == CUDA_SUCCESS);
	CHECK(decide(handle(30), RC_PIN_KEEP) == CUDA_ERROR_INVALID_HANDLE && !last.mapped); /* which other memory has */
	static const struct { uint64_t handle; uint32_t step; } wrong[] = {
		{ 33, RC_PIN_WHOLE }, { 33, RC_PIN_TRY }, { 33, RC_PIN_DROP + 1 }, { 34, RC_PIN_KEEP }, { 34, RC_PIN_DROP }
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		CHECK(try(handle(33), most, address) == CUDA_SUCCESS);
		CHECK(decide(handle((uint32_t)wrong[i].handle), wrong[i].step) == -1);
		close(passing);
		passing = open_passing(raw.token);
		CHECK(passing >= 0);
	}
	CHECK(try(handle(33), most, address) == CUDA_SUCCESS && decide(handle(33), RC_PIN_DROP) == CUDA_SUCCESS);
}

/* A request that is not one message with one descriptor ends the socket, and nothing else. */
static void broken_requests(void)
{
	static const uint8_t wrong[RC_DOOR_TOKEN_BYTES] = { 1 };
	struct rc_wire_pin ask = { handle(40), 4096, 0, RC_PIN_WHOLE, 0 };
	char byte;
	CHECK(send(passing, &ask, sizeof ask, MSG_NOSIGNAL) == (ssize_t)sizeof ask);
	CHECK(recv(passing, &byte, 1, 0) <= 0);
	close(passing);
	passing = open_passing(raw.token);
	CHECK(passing >= 0);
	int fd = file(4096, SEALS);
	CHECK(!rc_door_pass(passing, &ask, 3, fd));
	CHECK(recv(passing, &byte, 1, 0) <= 0);
	close(passing);
	CHECK(open_passing(wrong) == -ESRCH);
	passing = open_passing(raw.token);
	CHECK(passing >= 0 && pass(handle(41), 4096, fd) == CUDA_SUCCESS);
}

int main(void)
{
	CHECK(!raw_connect(&raw, NULL, RC_SERVER_ALL_GPUS));
	context = raw_hello(&raw, ++number, 0, NULL);
	CHECK(context);
	struct rc_wire_bytes alloc = { MEGABYTE };
	CHECK(!raw_call(&raw, ++number, RC_CALL_memory_alloc, context, &alloc, sizeof alloc, NULL, 0));
	memcpy(&memory, raw.results, sizeof memory);
	passing = open_passing(raw.token);
	CHECK(passing >= 0);
	unsuitable_descriptors();
	unsuitable_addresses();
	unsuitable_handles();
	limit();
	bounds();
	tries();
	broken_requests();
	CHECK(raw_call_hello(&raw, ++number) == 0);
	return 0;
}
