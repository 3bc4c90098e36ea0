/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring of the basic design: bytes without chunks or flags, separate head and tail pointers. */
#include "ib/ib_flat.h"

#include <errno.h>

struct ib_geometry ib_flat_geometry(const struct ib_geometry *chunks)
{
	struct ib_geometry flat = { .chunk_bytes = 1, .n_chunks = 1 };
	while ((uint64_t)flat.n_chunks * 2 <= ib_geometry_bytes(chunks))
		flat.n_chunks *= 2;
	return flat;
}

/* Stores the spans of len bytes from byte number at on: two spans if the bytes pass the end of the ring. */
static void cut(const struct ib_geometry *geometry, uint32_t at, uint32_t len, struct ib_span spans[2])
{
	uint32_t offset = at & (geometry->n_chunks - 1);
	uint32_t to_end = geometry->n_chunks - offset;
	spans[0] = (struct ib_span){ offset, len < to_end ? len : to_end };
	spans[1] = (struct ib_span){ 0, len - spans[0].len };
}

uint32_t ib_flat_fill(struct ib_sender *sender, struct hr_iov_place *place, size_t left, struct ib_span spans[2])
{
	uint32_t room = ib_sender_room(sender);
	uint32_t len = left < room ? (uint32_t)left : room;
	cut(&sender->geometry, sender->head, len, spans);
	for (int i = 0; i < 2; i++)
		ib_gather(place, sender->staging + spans[i].offset, spans[i].len);
	sender->head += len;
	return len;
}

int64_t ib_flat_take(struct ib_receiver *receiver, uint32_t head, struct hr_iov_place *place, size_t left)
{
	uint32_t there = head - receiver->next;
	/* A head that is only half written looks older than it is, never newer: then nothing has arrived. */
	if ((int32_t)there <= 0)
		return 0;
	if (there > receiver->geometry.n_chunks)
		return -EPROTO;
	uint32_t len = left < there ? (uint32_t)left : there;
	struct ib_span spans[2];
	cut(&receiver->geometry, receiver->next, len, spans);
	for (int i = 0; i < 2; i++)
		ib_scatter(place, receiver->ring + spans[i].offset, spans[i].len);
	receiver->next += len;
	return len;
}
