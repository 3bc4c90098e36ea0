/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion of requests: MPI 5.0, sections 3.7.3 to 3.7.6. */
#include "adi/message/internal.h"

int adi_error_request(MPI_Request handle, const char *argument)
{
	return adi_error(MPI_ERR_REQUEST, "%s is %s, no request", argument, adi_handle_text(handle));
}

/* Stores the request of a handle, NULL for MPI_REQUEST_NULL. Returns an error class. */
static inline int find(MPI_Request handle, const char *argument, struct adi_request **found)
{
	*found = adi_request_at(handle);
	return ADI_LIKELY(*found || handle == MPI_REQUEST_NULL) ? MPI_SUCCESS : adi_error_request(handle, argument);
}

static int check_all(int count, const MPI_Request handles[])
{
	if (count < 0)
		return adi_error(MPI_ERR_COUNT, "count is %d; valid counts: 0 and above", count);
	if (count > 0 && !handles)
		return adi_error(MPI_ERR_REQUEST, "array_of_requests is a null pointer, count is %d", count);
	for (int i = 0; i < count; i++) {
		struct adi_request *unused;
		int class = find(handles[i], "a handle in array_of_requests", &unused);
		if (class)
			return class;
	}
	return MPI_SUCCESS;
}

/* Whether there is nothing to wait for: no request, or a persistent one that was not started. */
static inline bool idle(const struct adi_request *request)
{
	return !request || adi_request_inactive(request);
}

static inline bool done(struct adi_request *request)
{
	return idle(request) || adi_request_done_now(request);
}

/* Ends a complete request: stores its status and frees it, or makes it inactive. Returns its error class. */
static __attribute__((noinline)) int finish_any(struct adi_request *request, MPI_Request *handle, MPI_Status *status)
{
	if (idle(request)) {
		adi_status_empty(status);
		return MPI_SUCCESS;
	}
	int of_status = adi_request_status(request, status);
	int class = adi_request_error(request);
	if (!class)
		class = of_status;
	if (request->persistent) {
		request->active = false;
		return class;
	}
	if (request->of == &adi_generalized_class) {
		int of_free = adi_generalized_free(request);
		class = of_free ? of_free : class;
	}
	adi_request_free(request);
	*handle = MPI_REQUEST_NULL;
	return class;
}

/* Stores the status of a complete, plain request. */
static inline void plain_status(struct adi_request *request, MPI_Status *status)
{
	if (request->cancelled || (request->kind == ADI_RECEIVE && request->rank < 0))
		adi_request_status(request, status);
	else if (request->kind == ADI_RECEIVE)
		adi_status_set(status, request->rank, request->node.key.tag,
			       request->bytes < request->capacity ? request->bytes : request->capacity);
	else
		adi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
}

/* Ends a request as the function above does. Inline: a message without an error. */
static inline int finish(struct adi_request *request, MPI_Request *handle, MPI_Status *status)
{
	if (!ADI_LIKELY(request && adi_request_is_plain(request) && !request->class))
		return finish_any(request, handle, status);
	if (status != MPI_STATUS_IGNORE)
		plain_status(request, status);
	if (request != &adi_request_none)
		adi_request_recycle(request);
	*handle = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

static inline MPI_Status *status_at(MPI_Status *statuses, int i)
{
	return statuses ? &statuses[i] : MPI_STATUS_IGNORE;
}

int mpi_wait(MPI_Request *handle, MPI_Status *status)
{
	struct adi_request *request;
	int class = find(*handle, "request", &request);
	if (class)
		return class;
	while (!done(request))
		adi_progress();
	return finish(request, handle, status);
}

int mpi_test(MPI_Request *handle, int *flag, MPI_Status *status)
{
	struct adi_request *request;
	int class = find(*handle, "request", &request);
	if (class)
		return class;
	if (!done(request))
		adi_poll();
	*flag = done(request);
	return *flag ? finish(request, handle, status) : MPI_SUCCESS;
}

/* ---- all ---- */

/* Remembers in the statuses that request i of n has failed with class. The first failure sets the error fields of all. */
static void failed(MPI_Status *statuses, int n, int i, int class, bool first)
{
	if (!statuses)
		return;
	for (int k = 0; first && k < n; k++)
		statuses[k].MPI_ERROR = MPI_SUCCESS;
	statuses[i].MPI_ERROR = class;
}

/* Waits for n requests and ends each. The handles are valid. */
static int finish_all(int n, MPI_Request handles[], MPI_Status *statuses)
{
	bool any = false;
	for (int i = 0; i < n; i++) {
		struct adi_request *request = adi_request_at(handles[i]);
		while (!done(request))
			adi_progress_for((unsigned)(n - i));
		int class = finish(request, &handles[i], status_at(statuses, i));
		if (class == MPI_SUCCESS)
			continue;
		failed(statuses, n, i, class, !any);
		any = true;
	}
	return any ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int mpi_waitall(int count, MPI_Request handles[], MPI_Status *statuses)
{
	int class = check_all(count, handles);
	if (class)
		return class;
	return finish_all(count, handles, statuses);
}

static bool all_done(int count, const MPI_Request handles[])
{
	for (int i = 0; i < count; i++)
		if (!done(adi_request_at(handles[i])))
			return false;
	return true;
}

int mpi_testall(int count, MPI_Request handles[], int *flag, MPI_Status *statuses)
{
	int class = check_all(count, handles);
	if (class)
		return class;
	*flag = all_done(count, handles);
	if (!*flag) {
		adi_poll();
		*flag = all_done(count, handles);
	}
	return *flag ? finish_all(count, handles, statuses) : MPI_SUCCESS;
}

/* ---- any ---- */

/* Returns the index of a complete request, -1 if none is complete, MPI_UNDEFINED if there is nothing to wait for. */
static int one_done(int count, const MPI_Request handles[])
{
	int none = MPI_UNDEFINED;
	for (int i = 0; i < count; i++) {
		struct adi_request *request = adi_request_at(handles[i]);
		if (idle(request))
			continue;
		if (adi_request_test(request))
			return i;
		none = -1;
	}
	return none;
}

int mpi_waitany(int count, MPI_Request handles[], int *indx, MPI_Status *status)
{
	int class = check_all(count, handles);
	if (class)
		return class;
	int i;
	while ((i = one_done(count, handles)) == -1)
		adi_progress();
	*indx = i;
	if (i != MPI_UNDEFINED)
		return finish(adi_request_at(handles[i]), &handles[i], status);
	adi_status_empty(status);
	return MPI_SUCCESS;
}

int mpi_testany(int count, MPI_Request handles[], int *indx, int *flag, MPI_Status *status)
{
	int class = check_all(count, handles);
	if (class)
		return class;
	int i = one_done(count, handles);
	if (i == -1) {
		adi_poll();
		i = one_done(count, handles);
	}
	*flag = i != -1;
	*indx = i >= 0 ? i : MPI_UNDEFINED;
	if (i >= 0)
		return finish(adi_request_at(handles[i]), &handles[i], status);
	if (i == MPI_UNDEFINED)
		adi_status_empty(status);
	return MPI_SUCCESS;
}

/* ---- some ---- */

static int finish_some(int count, MPI_Request handles[], int *outcount, int indices[], MPI_Status *statuses)
{
	int n = 0;
	bool any = false;
	for (int i = 0; i < count; i++) {
		struct adi_request *request = adi_request_at(handles[i]);
		if (idle(request) || !adi_request_test(request))
			continue;
		int class = finish(request, &handles[i], status_at(statuses, n));
		indices[n++] = i;
		if (class)
			failed(statuses, n, n - 1, class, !any);
		else if (any && statuses)
			statuses[n - 1].MPI_ERROR = MPI_SUCCESS;
		any |= class != MPI_SUCCESS;
	}
	*outcount = n;
	return any ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

static int some(int count, MPI_Request handles[], int *outcount, int indices[], MPI_Status *statuses, bool wait)
{
	int class = check_all(count, handles);
	if (class)
		return class;
	if (count > 0 && !indices)
		return adi_error(MPI_ERR_ARG, "array_of_indices is a null pointer");
	int i = one_done(count, handles);
	if (i == -1 && !wait)
		adi_poll();
	while (wait && (i = one_done(count, handles)) == -1)
		adi_progress();
	if (i != MPI_UNDEFINED)
		return finish_some(count, handles, outcount, indices, statuses);
	*outcount = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

int mpi_waitsome(int incount, MPI_Request handles[], int *outcount, int indices[], MPI_Status *statuses)
{
	return some(incount, handles, outcount, indices, statuses, true);
}

int mpi_testsome(int incount, MPI_Request handles[], int *outcount, int indices[], MPI_Status *statuses)
{
	return some(incount, handles, outcount, indices, statuses, false);
}

/* ---- status without freeing ---- */

static void look(struct adi_request *request, MPI_Status *status)
{
	if (idle(request))
		adi_status_empty(status);
	else
		adi_request_status(request, status);
}

int mpi_request_get_status(MPI_Request handle, int *flag, MPI_Status *status)
{
	struct adi_request *request;
	int class = find(handle, "request", &request);
	if (class)
		return class;
	if (!done(request))
		adi_poll();
	*flag = done(request);
	if (*flag)
		look(request, status);
	return MPI_SUCCESS;
}

int mpi_request_get_status_all(int count, const MPI_Request handles[], int *flag, MPI_Status *statuses)
{
	int class = check_all(count, handles);
	if (class)
		return class;
	*flag = all_done(count, handles);
	if (!*flag) {
		adi_poll();
		*flag = all_done(count, handles);
	}
	for (int i = 0; *flag && statuses && i < count; i++)
		look(adi_request_at(handles[i]), &statuses[i]);
	return MPI_SUCCESS;
}

int mpi_request_get_status_any(int count, const MPI_Request handles[], int *indx, int *flag, MPI_Status *status)
{
	int class = check_all(count, handles);
	if (class)
		return class;
	int i = one_done(count, handles);
	if (i == -1) {
		adi_poll();
		i = one_done(count, handles);
	}
	*flag = i != -1;
	*indx = i >= 0 ? i : MPI_UNDEFINED;
	if (*flag)
		look(i >= 0 ? adi_request_at(handles[i]) : NULL, status);
	return MPI_SUCCESS;
}

int mpi_request_get_status_some(int incount, const MPI_Request handles[], int *outcount, int indices[], MPI_Status *statuses)
{
	int class = check_all(incount, handles);
	if (class)
		return class;
	if (incount > 0 && !indices)
		return adi_error(MPI_ERR_ARG, "array_of_indices is a null pointer");
	int n = 0;
	if (one_done(incount, handles) == -1)
		adi_poll();
	if (one_done(incount, handles) == MPI_UNDEFINED) {
		*outcount = MPI_UNDEFINED;
		return MPI_SUCCESS;
	}
	for (int i = 0; i < incount; i++) {
		struct adi_request *request = adi_request_at(handles[i]);
		if (idle(request) || !adi_request_test(request))
			continue;
		look(request, status_at(statuses, n));
		indices[n++] = i;
	}
	*outcount = n;
	return MPI_SUCCESS;
}

/* ---- freeing and cancelling ---- */

int mpi_request_free(MPI_Request *handle)
{
	struct adi_request *request = adi_request_at(*handle);
	if (!request)
		return adi_error_request(*handle, "request");
	*handle = MPI_REQUEST_NULL;
	if (request == &adi_request_none)
		return MPI_SUCCESS;
	if (!done(request)) {
		/* Its number and handle are invalid from now on, but not its memory. */
		request->freed = true;
		adi_request_drop(request);
		return MPI_SUCCESS;
	}
	int class = request->of == &adi_generalized_class ? adi_generalized_free(request) : MPI_SUCCESS;
	adi_request_free(request);
	return class;
}

int mpi_cancel(MPI_Request *handle)
{
	struct adi_request *request = adi_request_at(*handle);
	if (!request)
		return adi_error_request(*handle, "request");
	if (request == &adi_request_none || adi_request_inactive(request))
		return MPI_SUCCESS;
	if (request->of && request->of->cancel)
		return request->of->cancel(request);
	request->sent_at_once = false;
	if (request->kind == ADI_RECEIVE)
		adi_receive_cancel(request);
	else if (request->kind == ADI_SEND)
		adi_send_cancel(request);
	return MPI_SUCCESS;
}
