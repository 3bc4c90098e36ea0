/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages by which processes agree on the context of a new communicator. Ranks of these messages are world ranks. A process
 * that has met an error still sends what others wait for: no bytes if a process has died, one byte after another error. So
 * they fail too.
 */
#include "adi/comm/agree.h"
#include "adi/message/request.h"

#include <stdlib.h>
#include <string.h>

static int finish(struct adi_request *request)
{
	return adi_request_wait(request);
}

/* The length of a message after an error, or without one. All messages have more than one byte. */
static size_t length(int class, size_t bytes)
{
	return class == MPI_ERR_PROC_ABORTED ? 0 : class ? 1 : bytes;
}

/* Waits for a message. Fails if it has not the expected length. */
static int finish_receive(struct adi_request *request, int world, size_t bytes)
{
	int class = adi_request_wait(request);
	if (!class && !request->bytes)
		class = adi_error(MPI_ERR_PROC_ABORTED, "process %d reports that another one has died", world);
	else if (!class && request->bytes == 1)
		class = adi_error(MPI_ERR_OTHER, "process %d reports an error", world);
	else if (!class && request->bytes != bytes)
		class = adi_error(MPI_ERR_OTHER,
				  "process %d sent %zu bytes, and %zu were expected: the processes do not create the same "
				  "communicator",
				  world, request->bytes, bytes);
	return class;
}

static void send(struct adi_request *request, struct adi_place place, int world, const void *data, size_t bytes)
{
	adi_message_send(request, &adi_world, place.context, world, place.tag, data, (MPI_Count)bytes, adi_type_byte,
			 ADI_SEND_STANDARD);
}

static void receive(struct adi_request *request, struct adi_place place, int world, void *data, size_t bytes)
{
	adi_message_receive(request, &adi_world, place.context, world, place.tag, data, (MPI_Count)bytes, adi_type_byte);
}

int adi_agree_exchange(struct adi_place place, int world, const void *mine, size_t mine_bytes, void *theirs,
		       size_t theirs_bytes)
{
	struct adi_request in, out;
	receive(&in, place, world, theirs, theirs_bytes);
	send(&out, place, world, mine, mine_bytes);
	int class = finish_receive(&in, world, theirs_bytes);
	int sent = finish(&out);
	return class ? class : sent;
}

int adi_agree_tell(struct adi_place place, struct adi_group *group, int root, void *data, size_t bytes)
{
	struct adi_request request;
	int size = group->size, rank = (group->rank - root + size) % size, class = MPI_SUCCESS;
	int64_t mask = 1;
	while (mask < size && !(rank & mask))
		mask <<= 1;
	if (rank) {
		int parent = adi_group_world(group, (int)((rank - mask + root) % size));
		receive(&request, place, parent, data, bytes);
		class = finish_receive(&request, parent, bytes);
	}
	while ((mask >>= 1)) {
		if (rank + mask >= size)
			continue;
		send(&request, place, adi_group_world(group, (int)((rank + mask + root) % size)), data,
		     length(class, bytes));
		int sent = finish(&request);
		class = class ? class : sent;
	}
	return class;
}

struct adi_offer adi_offer_new(bool inter)
{
	return (struct adi_offer){ .context = adi_context_new(), .inside = inter ? adi_context_new() : 0 };
}

int adi_agree_context(struct adi_place place, struct adi_group *group, uint32_t *context)
{
	*context = group->rank ? 0 : adi_context_new();
	int class = adi_agree_tell(place, group, 0, context, sizeof *context);
	if (class)
		return class;
	return *context ? MPI_SUCCESS : adi_error_contexts();
}

int adi_agree_comm(struct adi_place place, struct adi_group *group, struct adi_comm *parent, struct adi_comm **created)
{
	uint32_t context;
	int class = adi_agree_context(place, group, &context);
	if (class)
		return class;
	*created = adi_comm_new(group, context, parent->errhandler);
	return *created ? MPI_SUCCESS : adi_error(MPI_ERR_NO_MEM, "no memory for a communicator");
}

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const char *string)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *string; string++)
		hash = (hash ^ (unsigned char)*string) * UINT64_C(0x100000001b3);
	return hash;
}

int adi_agree_string(const char *string, struct adi_place *place, uint64_t *hash)
{
	size_t len = strnlen(string, MPI_MAX_STRINGTAG_LEN);
	if (len >= MPI_MAX_STRINGTAG_LEN)
		return adi_error(MPI_ERR_ARG, "stringtag has %d characters or more; valid: at most %d",
				 MPI_MAX_STRINGTAG_LEN, MPI_MAX_STRINGTAG_LEN - 1);
	*hash = hash_of(string);
	*place = (struct adi_place){ ADI_CONTEXT_STRINGTAG, (int)((*hash ^ *hash >> 33) & 0x7fffffff) };
	return MPI_SUCCESS;
}
