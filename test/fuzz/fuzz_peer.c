/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another worker, or a stranger, that says anything to a worker's link. The input's first byte: odd: a hello, with a valid
 * proof or without; even: frames of transfers, most of them right, some with a wrong field or with bytes that are no frame.
 * The device is replaced: what comes over the link must stay within the transfer's buffers and memory, and must be complete.
 */
#include "cuda_remote/server/peer/link.h"
#include "test/fuzz/input.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BYTES 300u /* of a transfer */
#define TRANSFERS 4
#define STREAM 8192

/* ---- the device: one transfer at a time, into memory of the transfer's size ---- */

static uint8_t *target;
static uint64_t copied;

/* The types are those of the functions, so that the compiler notices if one changes. */
__typeof__(peer_way_open) __wrap_peer_way_open;
CUresult __wrap_peer_way_open(struct peer_device *device, const struct rc_wire_peer_plan *plan, const struct rc_wire_box *box,
			      uint32_t index, bool trial, struct peer_way *way)
{
	(void)trial;
	bool none = plan->way == RC_PEER_BY_NONE;
	*way = (struct peer_way){ .device = device, .box = *box, .index = index, .way = plan->way,
				  .buffers = none ? 0 : plan->buffers, .chunk = none ? 1u << 30 : plan->chunk };
	target = calloc(1, rc_box_bytes(box));
	if (none)
		way->box.device = (uintptr_t)target;
	else
		way->memory = malloc(way->buffers * way->chunk);
	copied = 0;
	return CUDA_SUCCESS;
}

__typeof__(peer_way_copy) __wrap_peer_way_copy;
CUresult __wrap_peer_way_copy(struct peer_way *way, unsigned buffer, uint64_t offset, uint64_t len, bool to_device)
{
	uint64_t bytes = rc_box_bytes(&way->box);
	if (!to_device || buffer >= way->buffers || !len || len > way->chunk || offset != copied || len > bytes - offset)
		abort();
	memcpy(target + offset, way->memory + buffer * way->chunk, len);
	copied += len;
	return CUDA_SUCCESS;
}

__typeof__(peer_way_wait) __wrap_peer_way_wait;
CUresult __wrap_peer_way_wait(struct peer_way *way, unsigned buffer)
{
	if (buffer >= way->buffers)
		abort();
	return CUDA_SUCCESS;
}

__typeof__(peer_way_finish) __wrap_peer_way_finish;
CUresult __wrap_peer_way_finish(struct peer_way *way)
{
	free(way->memory);
	free(target);
	target = NULL;
	return CUDA_SUCCESS;
}

/* ---- the connection: the bytes of stream, then its end ---- */

static struct fuzz_input stream;

int __wrap_hr_channel_get(hr_conn_t *conn, const struct iovec *iov, int n, size_t *delivered);
int __wrap_hr_channel_get(hr_conn_t *conn, const struct iovec *iov, int n, size_t *delivered)
{
	(void)conn;
	if (n != 1 || !stream.left)
		return -ECONNRESET;
	*delivered = iov->iov_len < stream.left ? iov->iov_len : stream.left;
	memcpy(iov->iov_base, stream.at, *delivered);
	stream.at += *delivered;
	stream.left -= *delivered;
	return 0;
}

/* ---- frames ---- */

/* Writes frames, and what is none, as the input says. */
static size_t make_stream(struct fuzz_input *input, uint8_t *bytes)
{
	struct rc_wire_peer_frame frame = { .transfer = 1, .total = BYTES };
	size_t n = 0;
	while (input->left && n + sizeof frame + BYTES < STREAM) {
		uint8_t how = fuzz_u8(input), part = fuzz_u8(input);
		frame.bytes = part < BYTES - frame.offset ? part : (uint32_t)(BYTES - frame.offset);
		frame.result = 0;
		struct rc_wire_peer_frame sent = frame;
		switch (how % 16) {
		case 0: sent.transfer = fuzz_u8(input); break;
		case 1: sent.total = (uint64_t)fuzz_u32(input) << how / 16 * 3; break;
		case 2: sent.offset = (uint64_t)fuzz_u32(input) << how / 16 * 3; break;
		case 3: sent.bytes = fuzz_u32(input); break;
		case 4: sent.result = (int32_t)fuzz_u32(input); sent.bytes = 0; break;
		case 5: n += fuzz_take(input, bytes + n, part); continue;
		default: break;
		}
		memcpy(bytes + n, &sent, sizeof sent);
		n += sizeof sent;
		memset(bytes + n, how, frame.bytes);
		n += frame.bytes;
		frame.offset += frame.bytes;
		if (frame.offset == BYTES || how % 16 == 4) {
			frame.offset = 0;
			frame.transfer++;
		}
	}
	return n;
}

static void receive_frames(struct fuzz_input *input)
{
	static uint8_t bytes[STREAM];
	struct peer_pipe pipe = { .until = 0 };
	uint8_t how = fuzz_u8(input), rows = fuzz_u8(input) % 3;
	struct peer_job job = { .plan = { .way = how % 2 ? RC_PEER_BY_HOST : RC_PEER_BY_NONE, .buffers = 1 + how / 2 % 4,
					  .chunk = 1 + how / 8 * 7u } };
	/* Through buffers also in rows: 300 bytes are 3 rows of 100, or 2 slices of 3 rows of 50. */
	static const struct rc_wire_box boxes[] = { { 4096, 0, 0, BYTES, 1, 1 }, { 4096, 128, 0, 100, 3, 1 },
						    { 4096, 64, 256, 50, 3, 2 } };
	job.box = boxes[how % 2 ? rows : 0];
	stream = (struct fuzz_input){ bytes, make_stream(input, bytes) };
	int error = 0;
	for (job.transfer = 1; job.transfer <= TRANSFERS && !error; job.transfer++) {
		CUresult result = CUDA_ERROR_UNKNOWN;
		job.refused = how / 64 == job.transfer ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
		copied = 0;
		error = peer_transfer_receive(&pipe, &job, NULL, &result);
		if (!error && result == CUDA_SUCCESS && (job.refused || (job.plan.way == RC_PEER_BY_HOST && copied != BYTES)))
			abort();
	}
	if (!error)
		(void)peer_notes_get(&pipe);
	free(pipe.drain);
}

/* ---- hellos ---- */

static int connect_to(const struct rc_wire_peer_invitation *invitation)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t name = strlen(invitation->name);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	memcpy(address.sun_path + 1, invitation->name, name);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name);
	while (connect(fd, (struct sockaddr *)&address, size))
		if (errno != EINTR) /* libFuzzer's timer */
			abort();
	return fd;
}

static void say_hello(struct fuzz_input *input)
{
	struct peer_meeting meeting;
	struct peer_connection connection;
	struct rc_wire_peer_invitation invitation;
	struct rc_wire_peer_hello hello = { .magic = RC_PEER_MAGIC };
	uint8_t how = fuzz_u8(input);
	if (peer_meet_invite(&meeting, &invitation))
		return; /* no descriptor or no memory */
	fuzz_take(input, hello.nonce, sizeof hello.nonce);
	hello.card_bytes = how & 1 ? fuzz_u32(input) : fuzz_u8(input);
	hello.encrypt = how & 2 ? fuzz_u32(input) : how >> 7;
	fuzz_take(input, hello.card, sizeof hello.card);
	if (how & 4)
		fuzz_take(input, hello.magic, sizeof hello.magic);
	rc_door_secret_proof(meeting.ticket, "headrace link hello", &hello, offsetof(struct rc_wire_peer_hello, proof), hello.proof);
	bool proved = !(how & 8);
	if (!proved)
		hello.proof[fuzz_u8(input) % sizeof hello.proof] ^= (uint8_t)(1 + fuzz_u8(input) % 255);
	int fd = connect_to(&invitation);
	(void)!send(fd, &hello, how & 16 ? fuzz_u32(input) % sizeof hello : sizeof hello, MSG_NOSIGNAL);
	if (how & 32)
		shutdown(fd, SHUT_WR);
	if (!peer_meet_accept(&meeting, how & 64, 5, -1, &connection)) {
		if (!proved || hello.card_bytes > HR_CARD_MAX || hello.encrypt > 1)
			abort();
		peer_connection_close(&connection);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	if (fuzz_u8(&input) & 1)
		say_hello(&input);
	else
		receive_frames(&input);
	return 0;
}
