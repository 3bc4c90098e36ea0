/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy control messages from a peer that announces any memory. An announcement is refused, or its bytes are read
 * and delivered in order, through the bounce buffer or directly to the user, in reads of any size that complete late.
 * No read may go outside of the announced memory, or write outside of the memory it was planned for.
 *
 * Input: the sizes of the bounce buffer and of the window to it (0: none), then operations.
 */
#include "config.h"

#include "headrace/channel.h"
#include "ib/ib_pull.h"
#include "test/fuzz/input.h"

#include <stdlib.h>

#define ANNOUNCED_MOST 1024
#define QUEUES 1

struct announced {
	uint64_t address, len;
};

static struct {
	struct ib_pulls pulls;
	struct announced announced[ANNOUNCED_MOST];
	size_t n_announced, at;  /* at: the announcement to deliver next */
	uint64_t offset;         /* in that announcement */
	uint32_t posted, done;
	uint8_t *user;           /* memory of the direct pull in progress */
	size_t user_len, user_done;
} it;

/* The byte at an address of the peer's memory. */
static uint8_t content(uint64_t address)
{
	return (uint8_t)(address * 31 + (address >> 9));
}

static void announce(struct fuzz_input *input)
{
	uint8_t kind = fuzz_u8(input);
	struct ib_announcement announcement = { .address = fuzz_u32(input), .rkey = 7, .len = fuzz_u16(input) };
	if (kind & 1)
		announcement.address = UINT64_MAX - fuzz_u16(input);
	if (kind & 2)
		announcement.len = (uint64_t)fuzz_u32(input) << (kind >> 3);
	if (kind & 4)
		announcement.reserved = kind;
	if (it.n_announced == ANNOUNCED_MOST || ib_pulls_announce(&it.pulls, &announcement))
		return;
	if (!announcement.len || announcement.address + announcement.len < announcement.address)
		abort();
	it.announced[it.n_announced++] = (struct announced){ announcement.address, announcement.len };
}

static void post(struct fuzz_input *input)
{
	struct ib_read_request request;
	if (!ib_pulls_next_read(&it.pulls, 1 + (uint64_t)fuzz_u16(input), &request))
		return;
	bool inside = false;
	for (size_t i = it.at; i < it.n_announced && !inside; i++)
		inside = request.from >= it.announced[i].address &&
			 request.from - it.announced[i].address + request.len <= it.announced[i].len;
	if (!inside || !request.len || request.rkey != 7)
		abort();
	for (uint64_t i = 0; i < request.len; i++)
		request.to[i] = content(request.from + i);
	ib_pulls_posted(&it.pulls, request.len, 0, ++it.posted);
}

static void complete(struct fuzz_input *input)
{
	uint32_t done[QUEUES] = { 0 };
	it.done += fuzz_u8(input) % 8;
	if (it.done > it.posted)
		it.done = it.posted;
	done[0] = it.done;
	ib_pulls_complete(&it.pulls, done);
	while (ib_pulls_release(&it.pulls))
		continue;
}

/* Plans a pull directly to the user. Only if no pull is in progress; and no other is planned until it is delivered. */
static void plan_direct(struct fuzz_input *input)
{
	size_t len = HR_ZERO_COPY_MIN + fuzz_u16(input);
	if (it.user || it.pulls.first != it.pulls.end || ib_pulls_plannable(&it.pulls) < len)
		return;
	it.user = malloc(len);
	it.user_len = len;
	it.user_done = 0;
	ib_pulls_plan_direct(&it.pulls, it.user, len, 1, it.user);
}

static void check_delivered(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		while (it.at < it.n_announced && it.offset == it.announced[it.at].len) {
			it.at++;
			it.offset = 0;
		}
		if (it.at == it.n_announced || bytes[i] != content(it.announced[it.at].address + it.offset++))
			abort();
	}
}

static void deliver(struct fuzz_input *input)
{
	size_t n = it.user ? it.user_len - it.user_done : 1 + (size_t)fuzz_u16(input);
	uint8_t *bytes = it.user ? it.user + it.user_done : malloc(n);
	struct iovec iov = { bytes, n };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	size_t delivered = ib_pulls_deliver(&it.pulls, &place, n);
	if (delivered > n)
		abort();
	check_delivered(bytes, delivered);
	if (!it.user) {
		free(bytes);
		return;
	}
	it.user_done += delivered;
	if (it.user_done == it.user_len) {
		complete(&(struct fuzz_input){ 0 });
		free(it.user);
		it.user = NULL;
	}
}

static void step(struct fuzz_input *input)
{
	switch (fuzz_u8(input) % 8) {
	case 0:
	case 1: announce(input); break;
	case 2: plan_direct(input); break;
	case 3:
		if (!it.user)
			ib_pulls_plan_bounce(&it.pulls, 1 + (uint64_t)fuzz_u16(input));
		break;
	case 4:
	case 5: post(input); break;
	case 6: complete(input); break;
	default: deliver(input); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	memset(&it, 0, sizeof it);
	size_t bounce_bytes = 256 + (size_t)fuzz_u16(&input);
	uint8_t *bounce = malloc(bounce_bytes);
	size_t window_bytes = fuzz_u8(&input) % 64 * 16;
	uint8_t *window = window_bytes ? malloc(window_bytes) : NULL;
	ib_pulls_bounce(&it.pulls, bounce, bounce_bytes, 2);
	if (window)
		ib_pulls_window(&it.pulls, window, window_bytes, 3);
	while (input.left)
		step(&input);
	free(it.user);
	free(bounce);
	free(window);
	return 0;
}
