/* SPDX-License-Identifier: BSD-3-Clause */
/* Generalized requests: MPI 5.0, section 13.2. */
#include "adi/message/internal.h"

#include <stdlib.h>

struct generalized {
	MPI_Grequest_query_function *query;
	MPI_Grequest_free_function *free;
	MPI_Grequest_cancel_function *cancel;
	void *state;
};

static int generalized_status(struct adi_request *request, MPI_Status *status)
{
	struct generalized *generalized = request->owner;
	return generalized->query(generalized->state, status);
}

static int generalized_cancel(struct adi_request *request)
{
	struct generalized *generalized = request->owner;
	return generalized->cancel(generalized->state, request->complete);
}

int adi_generalized_free(struct adi_request *request)
{
	struct generalized *generalized = request->owner;
	int class = generalized->free(generalized->state);
	request->owner = NULL;
	free(generalized);
	return class;
}

/* Of a request that MPI_Request_free freed before it was complete. */
static void generalized_destroy(struct adi_request *request)
{
	if (request->owner)
		adi_generalized_free(request);
}

const struct adi_request_class adi_generalized_class = {
	.cancel = generalized_cancel, .status = generalized_status, .destroy = generalized_destroy
};

int mpi_grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
		       MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *handle)
{
	if (!query_fn || !free_fn || !cancel_fn)
		return adi_error(MPI_ERR_ARG, "%s is a null pointer", !query_fn ? "query_fn" : !free_fn ? "free_fn" : "cancel_fn");
	struct generalized *generalized = malloc(sizeof *generalized);
	struct adi_request *request = generalized ? adi_request_new(&adi_generalized_class, generalized, NULL) : NULL;
	if (!request) {
		free(generalized);
		return adi_error_no_request();
	}
	*generalized = (struct generalized){ query_fn, free_fn, cancel_fn, extra_state };
	*handle = adi_request_handle(request);
	return MPI_SUCCESS;
}

int mpi_grequest_complete(MPI_Request handle)
{
	struct adi_request *request = adi_request_at(handle);
	if (!request)
		return adi_error_request(handle, "request");
	if (request->of != &adi_generalized_class || request->complete)
		return adi_error(MPI_ERR_REQUEST, "request is %s",
				 request->complete ? "complete already" : "not of MPI_Grequest_start");
	adi_request_complete(request, MPI_SUCCESS);
	return MPI_SUCCESS;
}
