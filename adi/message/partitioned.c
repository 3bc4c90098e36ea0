/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication: MPI 5.0, chapter 4. All partitions are one message, which is sent when the last of them is ready,
 * and so all of them arrive together. The n-th MPI_Psend_init with an envelope matches the n-th MPI_Precv_init with it: n is
 * part of the message's envelope.
 */
#include "adi/message/internal.h"

#include <limits.h>
#include <stdlib.h>

struct partitions {
	int n, left; /* partitions that are not ready yet */
	bool ready[];
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

static int partitioned_start(struct adi_request *request)
{
	struct partitions *partitions = request->owner;
	partitions->left = partitions->n;
	for (int i = 0; i < partitions->n; i++)
		partitions->ready[i] = false;
	if (request->kind == ADI_RECEIVE || partitions->n == 0 || request->rank == MPI_PROC_NULL)
		adi_message_go(request, ADI_SEND_STANDARD);
	return MPI_SUCCESS;
}

static void partitioned_destroy(struct adi_request *request)
{
	free(request->owner);
}

static const struct adi_request_class partitioned_class = { .start = partitioned_start, .destroy = partitioned_destroy };

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
	struct partitions *partitions = malloc(sizeof *partitions + (size_t)n * sizeof *partitions->ready);
	struct adi_request *request = partitions ? adi_request_take() : NULL;
	uint32_t number = request ? next_number(&key) : 0;
	if (!number) {
		free(partitions);
		if (request)
			adi_request_free(request);
		return adi_error_no_request();
	}
	partitions->n = n;
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
	partitions->ready[i] = true;
	if (--partitions->left == 0 && request->rank != MPI_PROC_NULL)
		adi_message_go(request, ADI_SEND_STANDARD);
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
	if (!adi_request_inactive(request) && !adi_request_test(request))
		adi_poll();
	*flag = adi_request_inactive(request) || adi_request_test(request);
	return MPI_SUCCESS;
}
