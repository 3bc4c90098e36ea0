/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: allocation, completion, release, errors. */
#include "adi/message/internal.h"

#include <stdlib.h>
#include <string.h>

#define SLAB_REQUESTS 64

/* A request with the alignment that its handle needs. */
union place {
	struct adi_request request;
	_Alignas(ADI_REQUEST_ALIGN) char bytes[1];
};

struct slab {
	struct slab *next;
	union place place[SLAB_REQUESTS];
};

static struct slab *slabs;
struct adi_request *adi_request_pool;
int adi_requests_taken;

_Alignas(ADI_REQUEST_ALIGN) struct adi_request adi_request_none = {
	.object = { ADI_MAGIC + ADI_REQUEST, 1, 0, 0, 0 }, .kind = ADI_SEND, .complete = true, .rank = MPI_PROC_NULL
};

bool adi_request_pool_grow(void)
{
	struct slab *slab = aligned_alloc(ADI_REQUEST_ALIGN, sizeof *slab);
	if (!slab)
		return false;
	slab->next = slabs;
	slabs = slab;
	for (int i = 0; i < SLAB_REQUESTS; i++) {
		struct adi_request *request = &slab->place[i].request;
		adi_request_make_sent(request, 0);
		request->next = adi_request_pool;
		adi_request_pool = request;
	}
	return true;
}

int adi_error_no_request(void)
{
	return adi_error(MPI_ERR_NO_MEM, "no memory for a request");
}

struct adi_request *adi_request_take(void)
{
	struct adi_request *request = adi_request_from_pool();
	if (!request)
		return NULL;
	uint16_t generation = request->object.generation;
	memset(request, 0, sizeof *request);
	request->object = (struct adi_object){ ADI_MAGIC + ADI_REQUEST, 1, 0, 0, generation };
	return request;
}

struct adi_request *adi_request_new(const struct adi_request_class *of, void *owner, struct adi_comm *comm)
{
	struct adi_request *request = adi_request_take();
	if (!request)
		return NULL;
	request->kind = ADI_OTHER;
	request->of = of;
	request->owner = owner;
	request->comm = comm;
	adi_request_own(request);
	return request;
}

struct adi_request *adi_request_done(void)
{
	return &adi_request_none;
}

void adi_request_own_any(struct adi_request *request)
{
	bool comm = request->comm && !request->comm->object.constant;
	bool type = request->type && !request->type->object.constant;
	if (comm)
		adi_object_retain(&request->comm->object);
	if (type)
		adi_object_retain(&request->type->object);
	request->owned = comm || type;
}

void adi_request_number(struct adi_request *request)
{
	request->world = request->rank == MPI_PROC_NULL ? MPI_PROC_NULL : adi_comm_world(request->comm, request->rank);
	request->number = request->rank == MPI_PROC_NULL ? 0 : adi_number_sent(request->world);
}

static void disown(struct adi_request *request)
{
	if (request->comm && !request->comm->object.constant)
		adi_comm_release(request->comm);
	if (request->type && !request->type->object.constant)
		adi_type_release(request->type);
	request->owned = false;
}

void adi_request_free(struct adi_request *request)
{
	if (request == &adi_request_none)
		return;
	if (request->of && request->of->destroy)
		request->of->destroy(request);
	if (request->owned)
		disown(request);
	if (request->object.number)
		adi_object_release(&request->object);
	adi_request_make_sent(request, (request->object.generation + 2) % ADI_REQUEST_ALIGN);
	request->next = adi_request_pool;
	adi_request_pool = request;
	adi_requests_taken--;
}

void adi_requests_end(void)
{
	while (slabs && adi_requests_taken == 0) {
		struct slab *slab = slabs;
		slabs = slab->next;
		free(slab);
		adi_request_pool = NULL;
	}
}

/* ---- completion ---- */

/* Sends that the program has freed, but whose data this process still holds. */
static struct adi_request *orphans;
static bool orphans_advance(struct adi_task *task);
static struct adi_task orphans_task = { .advance = orphans_advance, .by_engine = true };

static bool orphans_advance(struct adi_task *task)
{
	bool some = false;
	for (struct adi_request **link = &orphans, *request; (request = *link);) {
		if (ch3_request_test(request->send)) {
			*link = request->next;
			ch3_request_free(request->send);
			adi_request_free(request);
			some = true;
		} else {
			link = &request->next;
		}
	}
	if (!orphans)
		adi_task_remove(task);
	return some;
}

void adi_request_drop(struct adi_request *request)
{
	if (request->cancelling)
		return;
	if (request->kind == ADI_SEND && request->send && !request->complete) {
		if (!orphans)
			adi_task_add(&orphans_task);
		request->next = orphans;
		orphans = request;
		return;
	}
	if (request->complete)
		adi_request_free(request);
}

void adi_request_complete(struct adi_request *request, int class)
{
	request->class = class;
	request->complete = true;
	if (request->freed)
		adi_request_drop(request);
}

bool adi_request_test(struct adi_request *request)
{
	if (request->send && ch3_request_test(request->send)) {
		int error = ch3_request_error(request->send);
		ch3_request_free(request->send);
		request->send = NULL;
		bool cancelling = request->cancelling;
		adi_send_complete(request, adi_class(error));
		if (cancelling)
			request->complete = false;
	}
	return request->complete;
}

int adi_request_wait(struct adi_request *request)
{
	while (!adi_request_test(request))
		adi_progress();
	return request->class == MPI_SUCCESS ? MPI_SUCCESS : adi_request_error(request);
}

/* ---- errors and statuses ---- */

/* The source of a receive that is complete, in its communicator. */
static int source_rank(const struct adi_request *request)
{
	int world = request->node.key.source;
	if (request->rank != MPI_ANY_SOURCE || world < 0)
		return request->rank;
	return adi_group_rank(request->comm->remote, world);
}

int adi_request_error(struct adi_request *request)
{
	if (request->class == MPI_SUCCESS)
		return MPI_SUCCESS;
	if (request->comm)
		adi_error_on(&request->comm->object);
	if (request->kind == ADI_OTHER)
		return request->class;
	if (request->class == MPI_ERR_TRUNCATE)
		return adi_error(request->class, "message of %zu bytes from rank %d, tag %d, does not fit the %zu bytes of the receive",
				 request->bytes, source_rank(request), request->node.key.tag, request->capacity);
	const char *what = request->kind == ADI_SEND ? "send to" : "receive from", *text = adi_class_text(request->class);
	if (request->rank == MPI_ANY_SOURCE)
		return adi_error(request->class, "receive from any source, tag %d: %s", request->tag, text);
	return adi_error(request->class, "%s rank %d, tag %d: %s", what, request->rank, request->tag, text);
}

int adi_request_status(struct adi_request *request, MPI_Status *status)
{
	if (request->of && request->of->status && !adi_request_inactive(request)) {
		MPI_Status unused;
		adi_status_empty(status ? status : &unused);
		return request->of->status(request, status ? status : &unused);
	}
	if (status == MPI_STATUS_IGNORE)
		return MPI_SUCCESS;
	if (adi_request_inactive(request)) {
		adi_status_empty(status);
	} else if (request->cancelled || request->kind != ADI_RECEIVE) {
		adi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
		status->MPI_internal[2] = request->cancelled;
	} else if (request->rank == MPI_PROC_NULL) {
		adi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	} else {
		adi_status_set(status, source_rank(request), request->node.key.tag,
			       request->bytes < request->capacity ? request->bytes : request->capacity);
	}
	return MPI_SUCCESS;
}
