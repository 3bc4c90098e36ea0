/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast in a shared segment, in pieces: while the others read one, the root writes the next. node.h has the protocol. */
#include "adi/collective/node.h"

#include <string.h>

/* The data of a broadcast: packed if they are not contiguous. */
struct payload {
	char *at; /* NULL: use the stream */
	struct adi_stream stream;
};

static int payload_start(struct payload *payload, void *buf, MPI_Count count, struct adi_type *type)
{
	payload->at = type->contiguous ? (char *)buf + type->true_lb : NULL;
	return type->contiguous ? MPI_SUCCESS : adi_stream_start(&payload->stream, buf, count, type);
}

static void payload_get(const struct node_state *node, struct payload *payload, void *to, size_t bytes)
{
	if (!payload->at) {
		adi_stream_pack(&payload->stream, to, bytes);
		return;
	}
	adi_node_copy(node, to, payload->at, bytes);
	payload->at += bytes;
}

static void payload_put(struct payload *payload, const void *from, size_t bytes)
{
	if (!payload->at) {
		adi_stream_unpack(&payload->stream, from, bytes);
		return;
	}
	memcpy(payload->at, from, bytes);
	payload->at += bytes;
}

/* total: bytes of all pieces. */
static int bcast_piece(struct adi_comm *comm, struct node_state *node, struct payload *payload, size_t bytes, size_t total,
		       int root)
{
	if (comm->rank == root) {
		int class = adi_node_begin(comm, node, bytes);
		if (class)
			return class;
		payload_get(node, payload, adi_node_data(node, root, bytes), bytes);
		adi_node_publish(comm, node, total);
		adi_node_prepare(comm, node, NODE_LATER);
		return MPI_SUCCESS;
	}
	adi_node_skip(comm, node);
	int class = adi_node_await(comm, node, root, total);
	if (!class)
		payload_put(payload, adi_node_data(node, root, bytes), bytes);
	return class;
}

/* Whether the root of a broadcast of two has not used the segment. The caller has not left: once it has left, the root may use the
 * slot again. */
static bool sends_message(const struct adi_comm *comm, const struct node_state *node, int root)
{
	bool wrote;
	return !adi_node_wrote(comm, node, root, &wrote) && !wrote;
}

int adi_node_bcast(struct adi_comm *comm, void *buf, MPI_Count count, struct adi_type *type, int root, bool *message)
{
	struct node_state *node = comm->node;
	size_t total = (size_t)(count * type->size), left = total, piece = adi_node_piece(node, total), some;
	struct payload payload;
	int class = adi_node_enter(comm, node);
	adi_schedule_none(comm);
	*message = false;
	if (class)
		return class;
	adi_node_measure(comm, node, total);
	class = payload_start(&payload, buf, count, type);
	/* Without data there is one step too: other ranks may expect data. */
	do {
		some = left < piece ? left : piece;
		if (!class)
			class = bcast_piece(comm, node, &payload, some, total, root);
		if (class == MPI_ERR_TRUNCATE && left == total && comm->size == 2)
			*message = sends_message(comm, node, root);
		left -= some;
	} while (left > 0 && !class);
	adi_node_leave(comm, node);
	return class;
}
