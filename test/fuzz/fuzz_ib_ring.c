/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both ends of the verbs ring with a peer that writes anything where it may: into the receiver's ring and the tails.
 * The memory is exactly as large as stated, so that the sanitizer finds every access outside.
 *
 * Input: the ring's geometry, then operations: each a byte that selects it, and its arguments.
 */
#include "config.h"

#include "ib/ib_ring.h"
#include "test/fuzz/input.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

struct ends {
	struct ib_geometry geometry;
	uint8_t *ring, *staging;
	struct ib_sender sender;
	struct ib_receiver receiver;
	bool dead;
};

/* A write of the peer's adapter: anywhere in the ring. */
static void scribble(struct ends *ends, struct fuzz_input *input)
{
	size_t size = ib_geometry_bytes(&ends->geometry), at = fuzz_u32(input) % size;
	uint8_t bytes[16];
	size_t n = fuzz_take(input, bytes, 1 + fuzz_u8(input) % sizeof bytes);
	memcpy(ends->ring + at, bytes, n < size - at ? n : size - at);
}

/* Writes the flag that the receiver waits for, with any size. The receiver must check the size. */
static void announce(struct ends *ends, struct fuzz_input *input)
{
	uint32_t chunk = ends->receiver.next + fuzz_u8(input) % ends->geometry.n_chunks;
	uint32_t top = ends->geometry.chunk_bytes * ((chunk & (ends->geometry.n_chunks - 1)) + 1);
	uint32_t size = fuzz_u8(input) & 1 ? fuzz_u32(input) : fuzz_u16(input);
	struct ib_chunk_end end = { htole32(size), htole32(chunk + 1) };
	memcpy(ends->ring + top - sizeof end, &end, sizeof end);
	uint32_t span = (uint32_t)sizeof(struct ib_chunk_front) + ((size + 7) & ~7u) + (uint32_t)sizeof end;
	if (size > ib_geometry_payload(&ends->geometry))
		return;
	struct ib_chunk_front front = { htole32(chunk + 1), htole32(fuzz_u32(input)) };
	memcpy(ends->ring + top - span, &front, sizeof front);
}

/* Announces any memory of the peer. */
static void announce_memory(struct ends *ends, struct fuzz_input *input)
{
	struct ib_announcement announcement = { .address = fuzz_u32(input), .rkey = 1, .len = fuzz_u16(input) };
	struct ib_span span;
	if (!ib_sender_room(&ends->sender))
		return;
	ib_sender_announce(&ends->sender, &announcement, fuzz_u32(input), &span);
	memcpy(ends->ring + span.offset, ends->staging + span.offset, span.len);
}

/* Builds one chunk and delivers it whole, as a correct peer does. */
static void build(struct ends *ends, struct fuzz_input *input)
{
	size_t n = 1 + fuzz_u16(input) % 1000;
	if (!ib_sender_room(&ends->sender))
		return;
	uint8_t *bytes = calloc(1, n);
	struct iovec iov = { bytes, n };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	struct ib_span span;
	uint32_t size = ib_sender_build(&ends->sender, &place, n, fuzz_u32(input), &span);
	if (size == 0 || size > n || span.offset + span.len > ib_geometry_bytes(&ends->geometry))
		abort();
	memcpy(ends->ring + span.offset, ends->staging + span.offset, span.len);
	free(bytes);
}

static void credit(struct ends *ends, uint32_t tail)
{
	if (ib_sender_credit(&ends->sender, tail))
		ends->dead = true;
	if (ib_sender_room(&ends->sender) > ends->geometry.n_chunks)
		abort();
}

static void take(struct ends *ends, struct fuzz_input *input)
{
	size_t n = 1 + fuzz_u16(input) % 1000;
	uint8_t *bytes = malloc(n);
	struct iovec iov = { bytes, n };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	uint32_t tail = ends->sender.tail;
	if (ib_receiver_is_announcement(&ends->receiver)) {
		struct ib_announcement announcement;
		ib_receiver_take_announcement(&ends->receiver, &announcement, &tail);
		credit(ends, tail);
		free(bytes);
		return;
	}
	bool ready = ib_receiver_ready(&ends->receiver);
	int taken = ib_receiver_take(&ends->receiver, &place, n, &tail);
	if (taken > (int)n || (!ready && taken))
		abort();
	ends->dead = taken < 0;
	free(bytes);
}

static void step(struct ends *ends, struct fuzz_input *input)
{
	uint32_t tail;
	switch (fuzz_u8(input) % 9) {
	case 0: scribble(ends, input); break;
	case 1: announce(ends, input); break;
	case 2: build(ends, input); break;
	case 3: credit(ends, fuzz_u32(input)); break;
	case 4: credit(ends, ends->sender.tail + fuzz_u8(input)); break;
	case 5:
		if (ib_receiver_peek(&ends->receiver, &tail))
			credit(ends, tail);
		break;
	case 6:
		if (ib_receiver_owes(&ends->receiver))
			ends->receiver.tail_told = ends->receiver.next;
		break;
	case 7: announce_memory(ends, input); break;
	default: take(ends, input); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	struct ends ends = { 0 };
	ends.geometry = (struct ib_geometry){ fuzz_u32(&input), fuzz_u32(&input) };
	if (!ib_geometry_valid(&ends.geometry) || ib_geometry_bytes(&ends.geometry) > 65536)
		ends.geometry = (struct ib_geometry){ 256, 4 };
	ends.ring = aligned_alloc(64, ib_geometry_bytes(&ends.geometry));
	ends.staging = aligned_alloc(64, ib_geometry_bytes(&ends.geometry));
	memset(ends.ring, 0, ib_geometry_bytes(&ends.geometry));
	memset(ends.staging, 0, ib_geometry_bytes(&ends.geometry));
	ib_sender_init(&ends.sender, &ends.geometry, ends.staging);
	ib_receiver_init(&ends.receiver, &ends.geometry, ends.ring);
	/* Half of the inputs begin shortly before the counters wrap around. */
	if (fuzz_u8(&input) & 1)
		ends.sender.head = ends.sender.tail = ends.receiver.next = ends.receiver.peeked =
			ends.receiver.tail_told = ends.receiver.tail_written =
			UINT32_MAX - fuzz_u8(&input) % 16;
	while (input.left && !ends.dead)
		step(&ends, &input);
	free(ends.ring);
	free(ends.staging);
	return 0;
}
