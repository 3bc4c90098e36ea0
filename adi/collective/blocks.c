/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of a buffer, one for each peer: their arguments checked, and steps of a schedule with them. */
#include "adi/collective/blocks.h"

static const char *name_of(enum adi_side side, const char *sends, const char *receives)
{
	return side == ADI_SENDS ? sends : receives;
}

int adi_check_not_in_place(const void *buf, enum adi_side side, const char *where)
{
	if (buf != MPI_IN_PLACE)
		return MPI_SUCCESS;
	return adi_error(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE; this is not valid %s", name_of(side, "sendbuf", "recvbuf"), where);
}

int adi_blocks_equal(struct adi_blocks *blocks, enum adi_side side, const void *buf, MPI_Count count, MPI_Datatype type)
{
	*blocks = (struct adi_blocks){ .buf = (uintptr_t)buf, .count = count };
	int class = adi_check_count(count, name_of(side, "sendcount", "recvcount"));
	if (!class)
		class = adi_check_not_in_place(buf, side, "here");
	if (!class)
		class = adi_type_take_committed(type, name_of(side, "sendtype", "recvtype"), &blocks->type);
	if (!class && !buf)
		class = adi_check_buffer(buf, count, blocks->type, false, name_of(side, "sendbuf", "recvbuf"));
	if (!class)
		blocks->unit = count * blocks->type->extent;
	return class;
}

int adi_blocks_same(struct adi_blocks *blocks, enum adi_side side, const void *buf, MPI_Count count, MPI_Datatype type)
{
	int class = adi_blocks_equal(blocks, side, buf, count, type);
	blocks->unit = 0;
	return class;
}

/* Counts and displacements of n peers, all of one type or not. */
static int check_arrays(struct adi_array counts, struct adi_array displs, enum adi_side side, int n)
{
	const char *name = name_of(side, "sendcounts", "recvcounts");
	if (n && !counts.values)
		return adi_error(MPI_ERR_ARG, "%s is NULL; valid: an array of %d", name, n);
	if (n && !displs.values)
		return adi_error(MPI_ERR_ARG, "the array of displacements %s (or displs) is NULL; valid: an array of %d",
				 name_of(side, "sdispls", "rdispls"), n);
	for (int i = 0; i < n; i++)
		if (adi_at(counts, i) < 0)
			return adi_error(MPI_ERR_COUNT, "%s[%d] is %lld; valid counts: 0 and above", name, i,
					 (long long)adi_at(counts, i));
	return MPI_SUCCESS;
}

int adi_blocks_v(struct adi_blocks *blocks, enum adi_side side, const void *buf, struct adi_array counts, struct adi_array displs,
		 MPI_Datatype type, int n)
{
	*blocks = (struct adi_blocks){ .buf = (uintptr_t)buf, .counts = counts, .displs = displs };
	int class = check_arrays(counts, displs, side, n);
	if (!class)
		class = adi_check_not_in_place(buf, side, "here");
	if (!class)
		class = adi_type_take_committed(type, name_of(side, "sendtype", "recvtype"), &blocks->type);
	if (!class)
		blocks->unit = blocks->type->extent;
	/* If the buffer is MPI_BOTTOM, displacements can be addresses. */
	for (int i = 0; !buf && !class && i < n; i++)
		class = adi_check_buffer(adi_block_at(blocks, i), adi_at(counts, i), blocks->type, false,
					 name_of(side, "sendbuf", "recvbuf"));
	return class;
}

int adi_blocks_w(struct adi_blocks *blocks, enum adi_side side, const void *buf, struct adi_array counts, struct adi_array displs,
		 const MPI_Datatype *types, int n)
{
	*blocks = (struct adi_blocks){ .buf = (uintptr_t)buf, .counts = counts, .displs = displs, .unit = 1, .types = types };
	const char *name = name_of(side, "sendtypes", "recvtypes");
	int class = check_arrays(counts, displs, side, n);
	if (!class)
		class = adi_check_not_in_place(buf, side, "here");
	if (!class && n && !types)
		class = adi_error(MPI_ERR_ARG, "%s is NULL; valid: an array of %d", name, n);
	struct adi_type *type;
	for (int i = 0; i < n && !class; i++)
		if (adi_at(counts, i)) {
			class = adi_type_take_committed(types[i], name, &type);
			if (!class && !buf)
				class = adi_check_buffer(adi_block_at(blocks, i), adi_at(counts, i), type, false,
							 name_of(side, "sendbuf", "recvbuf"));
		}
	return class;
}

int adi_check_alias(const struct adi_blocks *send, int i, const struct adi_blocks *receive, int j)
{
	if (!adi_block_bytes(send, i) || !adi_block_bytes(receive, j) || adi_block_at(send, i) != adi_block_at(receive, j))
		return MPI_SUCCESS;
	if (adi_block_type(send, i)->contents || adi_block_type(receive, j)->contents)
		return MPI_SUCCESS;
	return adi_error(MPI_ERR_BUFFER, "the data to send and to receive are in the same memory; valid: MPI_IN_PLACE");
}

struct adi_type *adi_block_type_of_handle(const struct adi_blocks *blocks, int i)
{
	struct adi_type *type = NULL;
	adi_type_take(blocks->types[i], "type", &type);
	return type;
}

static void hold(const struct adi_blocks *blocks, int n)
{
	if (blocks->type)
		adi_object_retain(&blocks->type->object);
	for (int i = 0; blocks->types && i < n; i++)
		if (adi_block_count(blocks, i))
			adi_object_retain(&adi_block_type(blocks, i)->object);
}

static void release(const struct adi_blocks *blocks, int n)
{
	if (blocks->type)
		adi_type_release(blocks->type);
	for (int i = 0; blocks->types && i < n; i++)
		if (adi_block_count(blocks, i))
			adi_type_release(adi_block_type(blocks, i));
}

void adi_blocks_hold(const struct adi_blocks *send, const struct adi_blocks *receive, int n)
{
	hold(send, n);
	hold(receive, n);
}

int adi_blocks_end(int class, struct adi_schedule *schedule, const struct adi_blocks *send, const struct adi_blocks *receive, int n)
{
	if (!class && schedule)
		class = adi_schedule_wait(schedule);
	release(send, n);
	release(receive, n);
	return class;
}

void adi_block_send(struct adi_schedule *schedule, const struct adi_blocks *blocks, int i, int peer)
{
	if (adi_block_bytes(blocks, i))
		adi_schedule_send(schedule, adi_block_at(blocks, i), adi_block_count(blocks, i), adi_block_type(blocks, i), peer);
}

void adi_block_receive(struct adi_schedule *schedule, const struct adi_blocks *blocks, int i, int peer)
{
	if (adi_block_bytes(blocks, i))
		adi_schedule_receive(schedule, adi_block_at(blocks, i), adi_block_count(blocks, i), adi_block_type(blocks, i),
				     peer);
}

void adi_block_copy(struct adi_schedule *schedule, const struct adi_blocks *from, int i, const struct adi_blocks *to, int j)
{
	if (!adi_block_bytes(from, i))
		return;
	if (adi_block_bytes(to, j))
		adi_schedule_copy(schedule, adi_block_at(from, i), adi_block_count(from, i), adi_block_type(from, i),
				  adi_block_at(to, j), adi_block_count(to, j), adi_block_type(to, j));
	else /* The copy reports that the data are longer than the buffer. */
		adi_schedule_copy(schedule, adi_block_at(from, i), adi_block_count(from, i), adi_block_type(from, i), NULL, 0,
				  adi_type_byte);
}

void adi_blocks_pack(struct adi_schedule *schedule, const struct adi_blocks *from, int first, int n, char *to)
{
	int each = adi_blocks_joined(from) ? n : 1;
	for (int i = first; i < first + n; i += each) {
		MPI_Count bytes = adi_block_bytes(from, i) * each;
		if (bytes)
			adi_schedule_copy(schedule, adi_block_at(from, i), adi_block_count(from, i) * each, adi_block_type(from, i),
					  to, bytes, adi_type_byte);
		to += bytes;
	}
}

void adi_blocks_unpack(struct adi_schedule *schedule, const char *from, const struct adi_blocks *to, int first, int n)
{
	int each = adi_blocks_joined(to) ? n : 1;
	for (int i = first; i < first + n; i += each) {
		MPI_Count bytes = adi_block_bytes(to, i) * each;
		if (bytes)
			adi_schedule_copy(schedule, from, bytes, adi_type_byte, adi_block_at(to, i), adi_block_count(to, i) * each,
					  adi_block_type(to, i));
		from += bytes;
	}
}
