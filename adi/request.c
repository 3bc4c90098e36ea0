/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: allocation, the functions of the MPI_Wait and MPI_Test family, statuses. */
#include "adi/adi.h"

#include "rdma_channel/base/log.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SLAB_REQUESTS 64
#define TURNS 500

struct slab {
	struct slab *next;
	struct adi_request request[SLAB_REQUESTS];
};

static struct slab *slabs;
static struct adi_request *pool;

struct adi_request *adi_request_new(void)
{
	if (!pool) {
		struct slab *slab = calloc(1, sizeof *slab);
		if (!slab)
			return NULL;
		slab->next = slabs;
		slabs = slab;
		for (int i = 0; i < SLAB_REQUESTS; i++) {
			slab->request[i].next = pool;
			pool = &slab->request[i];
		}
	}
	struct adi_request *request = pool;
	pool = request->next;
	memset(request, 0, sizeof *request);
	request->magic = ADI_REQUEST_MAGIC;
	return request;
}

void adi_request_free(struct adi_request *request)
{
	request->magic = 0;
	request->next = pool;
	pool = request;
}

void adi_requests_destroy(void)
{
	while (slabs) {
		struct slab *slab = slabs;
		slabs = slab->next;
		free(slab);
	}
	pool = NULL;
}

bool adi_request_complete(struct adi_request *request)
{
	if (request->send && ch3_request_test(request->send)) {
		request->class = adi_class(ch3_request_error(request->send));
		request->complete = true;
		ch3_request_free(request->send);
		request->send = NULL;
	}
	return request->complete;
}

/* If there are more ranks than processors, the awaited rank may need this processor. So yield the processor up to TURNS
 * times before sleeping: waking up takes longer than a yield. */
static bool progress_in_turns(void)
{
	for (int turn = 0; turn < TURNS; turn++) {
		if (ch3_progress_poll(adi.engine))
			return true;
		sched_yield();
	}
	return false;
}

/* Makes progress; sleeps until a callback has run. Ends the job if progress fails. */
static void progress(void)
{
	if (adi.oversubscribed && progress_in_turns())
		return;
	int ran = ch3_progress_wait(adi.engine, -1);
	if (ran < 0) {
		hr_log(HR_LOG_ERROR, "adi: progress failed: %s; aborting the job", strerror(-ran));
		adi_abort(MPI_ERR_INTERN, "progress failed");
	}
}

int adi_request_wait(struct adi_request *request)
{
	while (!adi_request_complete(request))
		progress();
	return request->class;
}

static void status_set(MPI_Status *status, int source, int tag, uint64_t bytes)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = source;
	status->MPI_TAG = tag;
	memset(status->MPI_internal, 0, sizeof status->MPI_internal);
	status->MPI_internal[0] = (int)(uint32_t)bytes;
	status->MPI_internal[1] = (int)(uint32_t)(bytes >> 32);
}

void adi_request_status(const struct adi_request *request, MPI_Status *status)
{
	if (request->kind == ADI_SEND || request->source == MPI_ANY_SOURCE)
		status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	else if (request->source == MPI_PROC_NULL)
		status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	else
		status_set(status, request->source - request->comm->first, request->tag,
			   request->bytes < request->capacity ? request->bytes : request->capacity);
}

int adi_request_raise(const struct adi_request *request, const char *function)
{
	if (request->class == MPI_SUCCESS)
		return MPI_SUCCESS;
	const char *what = request->kind == ADI_SEND ? "send" : "receive";
	if (request->class == MPI_ERR_TRUNCATE)
		return adi_raise(request->comm, function, request->class,
				 "message of %zu bytes from rank %d, tag %d, does not fit the %zu bytes of the receive",
				 request->bytes, request->source - request->comm->first, request->tag,
				 request->capacity);
	return adi_raise(request->comm, function, request->class, "%s, context %u, tag %d: %s", what, request->context,
			 request->tag, adi_class_text(request->class));
}

static struct adi_request *request_find(MPI_Request handle)
{
	struct adi_request *request = (struct adi_request *)handle;
	/* Predefined handles are small numbers, not addresses. */
	if ((uintptr_t)handle < 0x1000 || (uintptr_t)handle % _Alignof(struct adi_request) ||
	    request->magic != ADI_REQUEST_MAGIC)
		return NULL;
	return request;
}

/* Returns the request of *handle. Returns NULL for MPI_REQUEST_NULL, with class MPI_SUCCESS and an empty status, and
 * for an invalid handle, with the class of the error. */
static struct adi_request *request_of(MPI_Request *handle, const char *function, MPI_Status *status, int *class)
{
	*class = adi_check_running(function);
	if (*class)
		return NULL;
	struct adi_request *request = handle ? request_find(*handle) : NULL;
	if (request)
		return request;
	if (!handle || *handle != MPI_REQUEST_NULL)
		*class = adi_raise(NULL, function, MPI_ERR_REQUEST, "not a request");
	else
		status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	return NULL;
}

/* Stores the status of a complete request, reports its error and frees it. Returns the error class. */
static int request_finish(struct adi_request *request, MPI_Request *handle, MPI_Status *status, const char *function)
{
	adi_request_status(request, status);
	int class = adi_request_raise(request, function);
	adi_request_free(request);
	*handle = MPI_REQUEST_NULL;
	return class;
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
	int class;
	struct adi_request *found = request_of(request, "MPI_Wait", status, &class);
	if (!found)
		return class;
	adi_request_wait(found);
	return request_finish(found, request, status, "MPI_Wait");
}
ADI_PROFILED(Wait);

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	int class;
	if (!flag)
		return adi_raise(NULL, "MPI_Test", MPI_ERR_ARG, "flag is a null pointer");
	struct adi_request *found = request_of(request, "MPI_Test", status, &class);
	*flag = 1;
	if (!found)
		return class;
	if (!adi_request_complete(found))
		ch3_progress_poll(adi.engine);
	*flag = adi_request_complete(found);
	return *flag ? request_finish(found, request, status, "MPI_Test") : MPI_SUCCESS;
}
ADI_PROFILED(Test);

int PMPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses)
{
	int class = adi_check_running("MPI_Waitall");
	if (class)
		return class;
	if (count < 0 || (count > 0 && !array_of_requests))
		return adi_raise(NULL, "MPI_Waitall", count < 0 ? MPI_ERR_COUNT : MPI_ERR_REQUEST, "count %d", count);
	bool failed = false;
	for (int i = 0; i < count; i++) {
		MPI_Status *status = array_of_statuses ? &array_of_statuses[i] : MPI_STATUS_IGNORE;
		struct adi_request *found = request_of(&array_of_requests[i], "MPI_Waitall", status, &class);
		if (found) {
			adi_request_wait(found);
			class = request_finish(found, &array_of_requests[i], status, "MPI_Waitall");
		}
		failed |= class != MPI_SUCCESS;
		if (status)
			status->MPI_ERROR = class;
	}
	return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}
ADI_PROFILED(Waitall);
