/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication: MPI 5.0, chapter 4. Each partition of the sender is a message of its own, which travels when it is
 * ready. The n-th MPI_Psend_init with an envelope matches the n-th MPI_Precv_init with it. When the send is first started, it
 * sends a plan: a message that n identifies, with the number and the size of its partitions and an id. Then the receive knows
 * which bytes arrive together, and posts a receive for each of the sender's partitions. The messages of partitions have the
 * context of collectives, the partition as tag, and the id, which no other partitioned send of the process has. Partitions of
 * later starts match later receives, because messages with the same envelope match in order.
 */
#include "adi/message/internal.h"

#include <limits.h>
#include <stdlib.h>

/* The payload of a plan. */
struct plan {
	uint64_t bytes; /* sender: of each partition; receiver: checks that the sum of all is a size_t */
	uint32_t n;     /* sender: number of partitions, at least 1 and at most INT_MAX; receiver: checks it */
	uint32_t id;    /* sender: not 0; receiver: checks it */
};
static_assert(sizeof(struct plan) == 16, "wire format");

/* The side of a send or of a receive; owned by its request. */
struct partitions {
	struct adi_request *request;
	struct adi_task task;
	bool waiting;         /* the task is registered */
	int n;                /* of this side */
	struct plan plan;     /* id 0: not sent or not received yet */
	struct adi_request of_plan; /* the message with the plan */
	int class;            /* the first error since the start */

	/* Send. */
	int left;                   /* partitions that are not ready yet */
	bool *ready;                /* [n] */
	struct adi_request *first, **end; /* messages that are not complete */

	/* Receive. */
	struct part {
		struct adi_request request;
		char *unaligned;  /* data that begin or end inside an element of the receive's type, until they are unpacked */
	} *part;                  /* [plan.n]; NULL: no plan yet */
	uint32_t arrived;         /* the first parts, which are complete */
};

/* How often an envelope was used to initialise a send (or a receive) to this world rank. The key's number is 0 of sends and 1 of
 * receives. Exists until MPI ends: a new communicator with the same context goes on counting on both sides. */
struct counter {
	struct adi_queued node; /* first */
	struct counter *next;
	uint32_t used;
};

static struct adi_table counters;
static struct counter *all_counters;

/* Returns the next number of an envelope, 0 if there is no memory. */
static uint32_t next_number(const struct adi_key *key)
{
	uint32_t hash = adi_key_hash(key);
	if (!counters.bucket)
		adi_table_init(&counters);
	/* The node is the first member. */
	struct counter *counter = (struct counter *)*adi_table_find(&counters, key, hash);
	if (!counter) {
		counter = malloc(sizeof *counter);
		if (!counter)
			return 0;
		counter->node.key = *key;
		counter->used = 0;
		counter->next = all_counters;
		all_counters = counter;
		adi_table_append(&counters, &counter->node, hash);
	}
	if (++counter->used == 0)
		counter->used = 1;
	return counter->used;
}

void adi_partitioned_end(void)
{
	while (all_counters) {
		struct counter *counter = all_counters;
		all_counters = counter->next;
		free(counter);
	}
	if (counters.bucket)
		adi_table_free(&counters);
}

/* Starts a message between the two sides that is not MPI's. */
static void go(struct adi_request *message, const struct adi_request *of, uint32_t context, int tag, uint32_t number, const void *buf,
	       MPI_Count count, struct adi_type *type)
{
	adi_message_begin(message);
	adi_message_prepare(message, (int)of->kind, of->comm, context, of->rank, tag, buf, count, type);
	message->node.key.number = number;
	adi_message_go(message, ADI_SEND_STANDARD);
}

static void go_plan(struct partitions *partitions)
{
	const struct adi_request *of = partitions->request;
	partitions->of_plan.object.magic = 0;
	go(&partitions->of_plan, of, of->context, of->tag, of->node.key.number, &partitions->plan, sizeof partitions->plan,
	   adi_type_byte);
}

static void note_error(struct partitions *partitions, int class)
{
	if (!partitions->class)
		partitions->class = class;
}

static void wait_by_task(struct partitions *partitions)
{
	if (!partitions->waiting)
		adi_task_add(&partitions->task);
	partitions->waiting = true;
}

/* The last use of the partitions if the program has freed the request. */
static void complete(struct partitions *partitions)
{
	if (partitions->waiting)
		adi_task_remove(&partitions->task);
	partitions->waiting = false;
	adi_request_complete(partitions->request, partitions->class);
}

/* ---- send ---- */

static uint32_t latest_id;

/* Ends the messages that are complete. Returns whether there were any. */
static bool send_advance(struct partitions *partitions)
{
	bool some = false;
	for (struct adi_request *first; (first = partitions->first) && adi_request_test(first); some = true) {
		note_error(partitions, first->class);
		partitions->first = first->next;
		adi_request_free(first);
	}
	if (!partitions->first)
		partitions->end = &partitions->first;
	if (partitions->first || partitions->left > 0 || !adi_request_test(&partitions->of_plan))
		return some;
	note_error(partitions, partitions->of_plan.class);
	complete(partitions);
	return true;
}

static bool on_send(struct adi_task *task)
{
	return send_advance((struct partitions *)(void *)((char *)task - offsetof(struct partitions, task)));
}

static int send_partition(struct partitions *partitions, int i)
{
	const struct adi_request *of = partitions->request;
	struct adi_request *message = adi_request_take_message();
	if (!message)
		return adi_error_no_request();
	MPI_Count count = partitions->n ? of->count / partitions->n : 0;
	go(message, of, of->comm->context + ADI_CONTEXT_COLLECTIVE, i, partitions->plan.id,
	   (const void *)((uintptr_t)of->buf + (uintptr_t)(i * count * of->type->extent)), count, of->type);
	message->next = NULL;
	*partitions->end = message;
	partitions->end = &message->next;
	return MPI_SUCCESS;
}

static int send_start(struct partitions *partitions)
{
	int class = MPI_SUCCESS;
	partitions->left = partitions->n;
	for (int i = 0; i < partitions->n; i++)
		partitions->ready[i] = false;
	if (!partitions->plan.id) {
		latest_id += latest_id == UINT32_MAX ? 2 : 1;
		partitions->plan.id = latest_id;
		partitions->plan.n = partitions->n ? (uint32_t)partitions->n : 1;
		partitions->plan.bytes = partitions->request->capacity / partitions->plan.n;
		go_plan(partitions);
	}
	if (partitions->n == 0)
		class = send_partition(partitions, 0);
	if (!class)
		wait_by_task(partitions);
	return class;
}

/* ---- receive ---- */

/* Part i of the sender has these bytes of the receive; less or none if the receive is too short. */
static void post_part(struct partitions *partitions, uint32_t i)
{
	const struct adi_request *of = partitions->request;
	struct part *part = &partitions->part[i];
	size_t at = i * (size_t)partitions->plan.bytes, some = 0, size = (size_t)of->type->size;
	if (at < of->capacity)
		some = of->capacity - at < partitions->plan.bytes ? of->capacity - at : (size_t)partitions->plan.bytes;
	uintptr_t buf = (uintptr_t)of->data + at;
	struct adi_type *type = adi_type_byte;
	MPI_Count count = (MPI_Count)some;
	if (!of->flat && some > 0 && (at % size || some % size)) {
		part->unaligned = malloc(some);
		buf = (uintptr_t)part->unaligned;
		if (!part->unaligned) {
			note_error(partitions, MPI_ERR_NO_MEM);
			count = 0;
		}
	} else if (!of->flat) {
		buf = (uintptr_t)of->buf + at / size * (uintptr_t)of->type->extent;
		type = of->type;
		count = (MPI_Count)(some / size);
	}
	part->request.object.magic = 0;
	go(&part->request, of, of->comm->context + ADI_CONTEXT_COLLECTIVE, (int)i, partitions->plan.id, (void *)buf, count, type);
}

static void post_parts(struct partitions *partitions)
{
	partitions->arrived = 0;
	for (uint32_t i = 0; i < partitions->plan.n; i++)
		post_part(partitions, i);
}

/* The plan has arrived, or cannot arrive. Returns an error class. */
static int take_plan(struct partitions *partitions)
{
	struct plan plan = partitions->plan;
	uint64_t all;
	partitions->plan.id = 0;
	if (partitions->of_plan.class)
		return partitions->of_plan.class;
	if (partitions->of_plan.bytes != sizeof plan || !plan.id || !plan.n || plan.n > INT_MAX ||
	    __builtin_mul_overflow(plan.bytes, plan.n, &all) || all > SIZE_MAX)
		return MPI_ERR_OTHER;
	partitions->part = calloc(plan.n, sizeof *partitions->part);
	if (!partitions->part)
		return MPI_ERR_NO_MEM;
	partitions->plan = plan;
	return MPI_SUCCESS;
}

/* Whether part i is complete in the buffer of the receive. */
static bool part_arrived(struct partitions *partitions, uint32_t i)
{
	const struct adi_request *of = partitions->request;
	struct part *part = &partitions->part[i];
	struct adi_stream stream;
	if (!part->request.complete)
		return false;
	if (part->unaligned && !part->request.class) {
		int class = adi_stream_start(&stream, of->buf, of->count, of->type);
		note_error(partitions, class);
		if (!class) {
			adi_stream_seek(&stream, i * (size_t)partitions->plan.bytes);
			adi_stream_unpack(&stream, part->unaligned, part->request.bytes);
		}
	}
	free(part->unaligned);
	part->unaligned = NULL;
	return true;
}

static void receive_end(struct partitions *partitions)
{
	struct adi_request *of = partitions->request;
	of->bytes = 0;
	for (uint32_t i = 0; partitions->part && i < partitions->plan.n; i++) {
		note_error(partitions, partitions->part[i].request.class);
		of->bytes += partitions->part[i].request.bytes;
	}
	complete(partitions);
}

static bool receive_advance(struct partitions *partitions)
{
	if (!partitions->part) {
		if (!partitions->of_plan.complete)
			return false;
		partitions->class = take_plan(partitions);
		if (partitions->class) {
			receive_end(partitions);
			return true;
		}
		post_parts(partitions);
	}
	uint32_t before = partitions->arrived;
	while (partitions->arrived < partitions->plan.n && part_arrived(partitions, partitions->arrived))
		partitions->arrived++;
	bool some = partitions->arrived > before;
	if (partitions->arrived == partitions->plan.n)
		receive_end(partitions);
	return some;
}

static bool on_receive(struct adi_task *task)
{
	return receive_advance((struct partitions *)(void *)((char *)task - offsetof(struct partitions, task)));
}

static void receive_start(struct partitions *partitions)
{
	struct adi_request *of = partitions->request;
	of->node.key.source = adi_comm_world(of->comm, of->rank);
	of->node.key.tag = of->tag;
	if (partitions->part)
		post_parts(partitions);
	else
		go_plan(partitions);
	wait_by_task(partitions);
}

/* ---- requests ---- */

static int partitioned_start(struct adi_request *request)
{
	struct partitions *partitions = request->owner;
	partitions->class = MPI_SUCCESS;
	request->cancelled = false;
	if (request->rank == MPI_PROC_NULL) {
		partitions->left = partitions->n;
		for (int i = 0; i < partitions->n && request->kind == ADI_SEND; i++)
			partitions->ready[i] = false;
		request->complete = request->kind == ADI_RECEIVE || partitions->n == 0;
		return MPI_SUCCESS;
	}
	if (request->kind == ADI_SEND)
		return send_start(partitions);
	receive_start(partitions);
	return MPI_SUCCESS;
}

/* Cancels a receive of which nothing has arrived. Sends are not cancelled. */
static int partitioned_cancel(struct adi_request *request)
{
	struct partitions *partitions = request->owner;
	if (request->kind == ADI_SEND || request->complete)
		return MPI_SUCCESS;
	if (!partitions->part) {
		request->cancelled = adi_receive_cancel(&partitions->of_plan);
	} else {
		for (uint32_t i = 0; i < partitions->plan.n; i++)
			if (!partitions->part[i].request.posted)
				return MPI_SUCCESS;
		for (uint32_t i = 0; i < partitions->plan.n; i++)
			adi_receive_cancel(&partitions->part[i].request);
		request->cancelled = true;
	}
	if (request->cancelled)
		complete(partitions);
	return MPI_SUCCESS;
}

static void partitions_free(struct partitions *partitions)
{
	for (uint32_t i = 0; partitions->part && i < partitions->plan.n; i++)
		free(partitions->part[i].unaligned);
	free(partitions->part);
	free(partitions->ready);
	free(partitions);
}

static void partitioned_destroy(struct adi_request *request)
{
	partitions_free(request->owner);
}

static const struct adi_request_class partitioned_class = {
	.start = partitioned_start, .cancel = partitioned_cancel, .destroy = partitioned_destroy
};

static struct partitions *partitions_new(int kind, int n)
{
	struct partitions *partitions = calloc(1, sizeof *partitions);
	if (!partitions)
		return NULL;
	partitions->n = n;
	partitions->task = (struct adi_task){ .advance = kind == ADI_SEND ? on_send : on_receive, .by_engine = true };
	partitions->end = &partitions->first;
	partitions->of_plan.complete = true;
	if (kind != ADI_SEND)
		return partitions;
	partitions->ready = malloc((size_t)n + 1);
	if (partitions->ready)
		return partitions;
	free(partitions);
	return NULL;
}

static int init(int kind, const void *buf, int n, MPI_Count count, struct adi_type *type, int rank, int tag,
		struct adi_comm *comm, MPI_Request *handle)
{
	MPI_Count all;
	if (n < 0)
		return adi_error(MPI_ERR_ARG, "partitions is %d; valid numbers: 0 and above", n);
	if (__builtin_mul_overflow(count, n, &all))
		return adi_error(MPI_ERR_COUNT, "count is %lld: %d such partitions cannot be addressed", (long long)count, n);
	int class = adi_check_rank(comm, rank, kind == ADI_SEND ? "dest" : "source", true, false);
	if (!class)
		class = adi_check_message(buf, all, type, tag, false);
	if (class)
		return class;
	int world = rank == MPI_PROC_NULL ? MPI_PROC_NULL : adi_comm_world(comm, rank);
	struct adi_key key = { comm->context, world, tag, kind == ADI_RECEIVE };
	struct partitions *partitions = partitions_new(kind, n);
	struct adi_request *request = partitions ? adi_request_take() : NULL;
	uint32_t number = request ? next_number(&key) : 0;
	if (!number) {
		if (partitions)
			partitions_free(partitions);
		if (request)
			adi_request_free(request);
		return adi_error_no_request();
	}
	partitions->request = request;
	adi_message_prepare(request, kind, comm, comm->context, rank, tag, buf, all, type);
	request->node.key.number = number;
	request->of = &partitioned_class;
	request->owner = partitions;
	request->persistent = true;
	request->complete = true;
	adi_request_own(request);
	*handle = adi_request_handle(request);
	return MPI_SUCCESS;
}

int mpi_psend_init(const void *buf, int partitions, MPI_Count count, struct adi_type *datatype, int dest, int tag,
		   struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	return init(ADI_SEND, buf, partitions, count, datatype, dest, tag, comm, request);
}

int mpi_precv_init(void *buf, int partitions, MPI_Count count, struct adi_type *datatype, int source, int tag,
		   struct adi_comm *comm, struct adi_info *info, MPI_Request *request)
{
	(void)info;
	return init(ADI_RECEIVE, buf, partitions, count, datatype, source, tag, comm, request);
}

/* ---- partitions ---- */

static int find(MPI_Request handle, int kind, struct adi_request **found)
{
	struct adi_request *request = adi_request_at(handle);
	*found = NULL;
	if (!request)
		return adi_error_request(handle, "request");
	if (request->comm)
		adi_error_on(&request->comm->object);
	if (request->of != &partitioned_class || (int)request->kind != kind)
		return adi_error(MPI_ERR_REQUEST, "request is not of %s", kind == ADI_SEND ? "MPI_Psend_init" : "MPI_Precv_init");
	*found = request;
	return MPI_SUCCESS;
}

static int check_partition(const struct partitions *partitions, int i)
{
	if (i < 0 || i >= partitions->n)
		return adi_error(MPI_ERR_ARG, "partition is %d; valid partitions: 0 to %d", i, partitions->n - 1);
	return MPI_SUCCESS;
}

static int make_ready(struct adi_request *request, int i)
{
	struct partitions *partitions = request->owner;
	int class = check_partition(partitions, i);
	if (class)
		return class;
	if (!request->active)
		return adi_error(MPI_ERR_REQUEST, "request is not active: call MPI_Start before MPI_Pready");
	if (partitions->ready[i])
		return adi_error(MPI_ERR_ARG, "partition %d is ready already", i);
	if (request->rank != MPI_PROC_NULL)
		class = send_partition(partitions, i);
	if (class)
		return class;
	partitions->ready[i] = true;
	partitions->left--;
	if (request->rank != MPI_PROC_NULL)
		send_advance(partitions);
	else if (partitions->left == 0)
		request->complete = true;
	return MPI_SUCCESS;
}

int mpi_pready(int partition, MPI_Request handle)
{
	struct adi_request *request;
	int class = find(handle, ADI_SEND, &request);
	if (!class)
		class = make_ready(request, partition);
	return class;
}

int mpi_pready_range(int partition_low, int partition_high, MPI_Request handle)
{
	struct adi_request *request;
	int class = find(handle, ADI_SEND, &request);
	if (!class && partition_low > partition_high)
		class = adi_error(MPI_ERR_ARG, "partition_low is %d, above partition_high %d", partition_low, partition_high);
	if (!class)
		class = check_partition(request->owner, partition_high);
	for (int i = partition_low; !class && i <= partition_high; i++)
		class = make_ready(request, i);
	return class;
}

int mpi_pready_list(int length, const int partitions[], MPI_Request handle)
{
	struct adi_request *request;
	int class = find(handle, ADI_SEND, &request);
	if (!class && length < 0)
		class = adi_error(MPI_ERR_ARG, "length is %d; valid: 0 and above", length);
	if (!class && length > 0 && !partitions)
		class = adi_error(MPI_ERR_ARG, "array_of_partitions is NULL, length is %d", length);
	for (int i = 0; !class && i < length; i++)
		class = make_ready(request, partitions[i]);
	return class;
}

/* Whether a partition of the receive has arrived: all parts of the sender that have bytes of it. */
static bool arrived(const struct adi_request *request, int partition)
{
	struct partitions *partitions = request->owner;
	uint64_t bytes = partitions->n ? request->capacity / (size_t)partitions->n : 0, part = partitions->plan.bytes;
	if (request->complete)
		return true;
	if (!partitions->part || !bytes || !part)
		return false;
	uint64_t from = (uint64_t)partition * bytes / part, to = (((uint64_t)partition + 1) * bytes - 1) / part;
	for (uint64_t i = from; i <= to && i < partitions->plan.n; i++)
		if (!part_arrived(partitions, (uint32_t)i))
			return false;
	return from < partitions->plan.n;
}

int mpi_parrived(MPI_Request handle, int partition, int *flag)
{
	struct adi_request *request;
	if (handle == MPI_REQUEST_NULL) {
		*flag = 1;
		return MPI_SUCCESS;
	}
	int class = find(handle, ADI_RECEIVE, &request);
	if (!class)
		class = check_partition(request->owner, partition);
	if (class)
		return class;
	adi_error_on(NULL);
	*flag = adi_request_inactive(request) || arrived(request, partition);
	if (*flag)
		return MPI_SUCCESS;
	adi_poll();
	*flag = arrived(request, partition);
	return MPI_SUCCESS;
}
