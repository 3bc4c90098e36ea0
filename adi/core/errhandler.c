/* SPDX-License-Identifier: BSD-3-Clause */
/* Error handlers of communicators, windows and sessions: MPI 5.0, section 9.3. Ending the job. */
#include "adi/bindings/functions.h"
#include "adi/comm/comm.h"
#include "adi/core/session.h"
#include "adi/window/window.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREDEFINED(constant_of, action_of)                                                             \
	{ .object = { .magic = ADI_MAGIC + ADI_ERRHANDLER, .references = 1, .constant = (constant_of) }, \
	  .action = (action_of) }

struct adi_errhandler adi_errors_are_fatal = PREDEFINED(0x141, ADI_ERRORS_ABORT_JOB);
struct adi_errhandler adi_errors_abort = PREDEFINED(0x142, ADI_ERRORS_ABORT_COMM);
struct adi_errhandler adi_errors_return = PREDEFINED(0x143, ADI_ERRORS_RETURN);

int adi_errhandler_take(MPI_Errhandler handle, const char *argument, struct adi_errhandler **found)
{
	struct adi_errhandler *handler = NULL;
	if (handle == MPI_ERRORS_ARE_FATAL)
		handler = &adi_errors_are_fatal;
	else if (handle == MPI_ERRORS_ABORT)
		handler = &adi_errors_abort;
	else if (handle == MPI_ERRORS_RETURN)
		handler = &adi_errors_return;
	else
		handler = adi_object_at(handle, ADI_ERRHANDLER);
	if (!handler)
		return adi_error(MPI_ERR_ERRHANDLER, "%s is %s, no error handler", argument, adi_handle_text(handle));
	*found = handler;
	return MPI_SUCCESS;
}

int adi_errhandler_check(const struct adi_errhandler *handler, enum adi_kind kind, const char *argument)
{
	if (handler->action != ADI_ERRORS_CALL || handler->of == kind)
		return MPI_SUCCESS;
	return adi_error(MPI_ERR_ERRHANDLER, "%s is %p, whose function is for another kind of object", argument,
			 (const void *)handler);
}

void adi_errhandler_set(struct adi_errhandler **place, struct adi_errhandler *handler)
{
	struct adi_errhandler *old = *place;
	adi_object_retain(&handler->object);
	*place = handler;
	if (old)
		adi_errhandler_release(old);
}

void adi_errhandler_release(struct adi_errhandler *handler)
{
	if (adi_object_release(&handler->object))
		free(handler);
}

int adi_errhandler_new(enum adi_kind of, void (*function)(void), MPI_Errhandler *handle)
{
	if (!function)
		return adi_error(MPI_ERR_ARG, "%s_errhandler_fn is a null pointer",
				 of == ADI_COMM ? "comm" : of == ADI_WIN ? "win" : "session");
	struct adi_errhandler *handler = malloc(sizeof *handler);
	if (!handler)
		return adi_error(MPI_ERR_NO_MEM, "no memory for an error handler");
	adi_object_init(&handler->object, ADI_ERRHANDLER);
	handler->action = ADI_ERRORS_CALL;
	handler->of = of;
	handler->call.any = function;
	*handle = (MPI_Errhandler)handler;
	return MPI_SUCCESS;
}

int mpi_errhandler_free(MPI_Errhandler *errhandler)
{
	struct adi_errhandler *found = NULL;
	int class = adi_errhandler_take(*errhandler, "errhandler", &found);
	if (class)
		return class;
	if (!found->object.constant)
		adi_errhandler_release(found);
	*errhandler = MPI_ERRHANDLER_NULL;
	return MPI_SUCCESS;
}

void adi_abort(int code, const char *message)
{
	fflush(NULL);
	adi_launch_abort(code, message);
	_exit(code & 0xff ? code & 0xff : EXIT_FAILURE);
}

static const char *host_name(void)
{
	static char name[MPI_MAX_PROCESSOR_NAME];
	if (gethostname(name, sizeof name - 1))
		snprintf(name, sizeof name, "unknown host");
	return name;
}

/* Appends which rank has died. */
static void append_death(char *line, size_t size)
{
	int dead = adi_death_find();
	if (dead < 0)
		return;
	const struct adi_peer *peer = &adi_job.peer[dead];
	hr_conn_t *conn = peer->vc ? ch3_vc_conn(peer->vc) : NULL;
	size_t used = strlen(line);
	snprintf(line + used, size - used, " (rank %d, %s: %s)", dead, conn ? hr_conn_peer(conn) : "not connected",
		 peer->error ? strerror(-peer->error) : "reported by another rank");
}

/* Writes the one line about the error, and ends the job. */
static void fail_fatally(const char *function, int code) __attribute__((noreturn));
static void fail_fatally(const char *function, int code)
{
	char line[1024];
	const char *name = adi_class_name(code), *text = adi_error_text();
	int used = snprintf(line, sizeof line, "MPI_%s", function);
	if (adi_running || adi_job.size > 1)
		used += snprintf(line + used, sizeof line - (size_t)used, " on rank %d of %d", adi_job.rank, adi_job.size);
	used += snprintf(line + used, sizeof line - (size_t)used, ", host %.64s: ", host_name());
	if (name)
		used += snprintf(line + used, sizeof line - (size_t)used, "%s: ", name);
	else
		used += snprintf(line + used, sizeof line - (size_t)used, "error code %d: ", code);
	snprintf(line + used, sizeof line - (size_t)used, "%s", *text || !adi_class_text(code) ? text : adi_class_text(code));
	bool death = adi_class_of_code(code) == MPI_ERR_PROC_ABORTED;
	if (death) {
		append_death(line, sizeof line);
		if (adi_death_reported())
			adi_abort(code, line);
	}
	hr_log(HR_LOG_ERROR, "%s; aborting the job", line);
	/* Afterwards: a rank that is told ends the job at once, and this rank with it. */
	if (death)
		adi_death_report();
	adi_abort(code, line);
}

/* object: NULL for the null handle. */
static void call(const struct adi_errhandler *handler, struct adi_object *object, int code)
{
	void *handle = object ? adi_object_handle(object) : NULL;
	if (handler->of == ADI_COMM) {
		MPI_Comm comm = object ? handle : MPI_COMM_NULL;
		handler->call.comm(&comm, &code);
	} else if (handler->of == ADI_WIN) {
		MPI_Win win = object ? handle : MPI_WIN_NULL;
		handler->call.win(&win, &code);
	} else {
		MPI_Session session = object ? handle : MPI_SESSION_NULL;
		handler->call.session(&session, &code);
	}
}

/* Where the object keeps its error handler; NULL: it is none of the kinds that have one. */
static struct adi_errhandler **place_of(struct adi_object *object)
{
	switch (object->magic - ADI_MAGIC) {
	case ADI_COMM: return &((struct adi_comm *)object)->errhandler;
	case ADI_WIN: return &((struct adi_win *)object)->errhandler;
	case ADI_SESSION: return &((struct adi_session *)object)->errhandler;
	default: return NULL;
	}
}

static void handle_error(struct adi_errhandler *handler, struct adi_object *object, const char *function, int code)
{
	switch (handler->action) {
	case ADI_ERRORS_RETURN:
		break;
	case ADI_ERRORS_CALL:
		/* The function may free the handler or the object. */
		adi_object_retain(&handler->object);
		call(handler, object, code);
		adi_errhandler_release(handler);
		break;
	default:
		fail_fatally(function, code);
	}
}

static struct adi_errhandler *handler_of(struct adi_object *object)
{
	struct adi_errhandler **place = place_of(object);
	return place && *place ? *place : &adi_errors_are_fatal;
}

static _Thread_local struct adi_object *named; /* by adi_error_on; holds a reference if it is a communicator */

void adi_error_on(struct adi_object *object)
{
	struct adi_object *old = named;
	if (object && object->magic == ADI_MAGIC + ADI_COMM)
		adi_object_retain(object);
	named = object;
	if (old && old->magic == ADI_MAGIC + ADI_COMM)
		adi_comm_release((struct adi_comm *)old);
}

/* Errors without an object are MPI_COMM_SELF's since MPI 4.0; before, they were MPI_COMM_WORLD's. A program that left the handler
 * of MPI_COMM_SELF alone may be older. Before the two exist and after their end, every error is fatal. */
static struct adi_object *default_object(void)
{
	return &(adi_self.errhandler == &adi_errors_are_fatal ? &adi_world : &adi_self)->object;
}

struct adi_errhandler **adi_default_errhandler(void)
{
	return place_of(default_object());
}

int adi_fail(struct adi_object *object, const char *function, int class)
{
	if (!object)
		object = named ? named : default_object();
	adi_error_reported(function, class);
	handle_error(handler_of(object), object, function, class);
	adi_error_forget();
	adi_error_on(NULL);
	return class;
}

int adi_fail_given(struct adi_errhandler *given, const char *function, int class)
{
	if (!given)
		return adi_fail(NULL, function, class);
	adi_error_reported(function, class);
	handle_error(given, NULL, function, class);
	adi_error_forget();
	adi_error_on(NULL);
	return class;
}

int mpi_abort(struct adi_comm *comm, int errorcode)
{
	char line[256];
	snprintf(line, sizeof line, "MPI_Abort(%s, %d) on rank %d of %d, host %.64s",
		 comm->name[0] ? comm->name : "a communicator without a name", errorcode, adi_job.rank, adi_job.size, host_name());
	hr_log(HR_LOG_ERROR, "%s", line);
	adi_abort(errorcode, line);
}

/* The functions below exist for each kind of object that has an error handler. */

static int set(struct adi_object *object, struct adi_errhandler *handler)
{
	int class = adi_errhandler_check(handler, object->magic - ADI_MAGIC, "errhandler");
	if (!class)
		adi_errhandler_set(place_of(object), handler);
	return class;
}

static int get(struct adi_object *object, MPI_Errhandler *handle)
{
	struct adi_errhandler **place = place_of(object);
	struct adi_errhandler *handler = *place ? *place : &adi_errors_are_fatal;
	if (!handler->object.constant)
		adi_object_retain(&handler->object);
	*handle = (MPI_Errhandler)adi_object_handle(&handler->object);
	return MPI_SUCCESS;
}

static int call_on_request(struct adi_object *object, const char *function, int code)
{
	adi_error_forget();
	if (adi_class_of_code(code) < 0)
		return adi_error(MPI_ERR_ARG, "errorcode is %d, no error code", code);
	handle_error(handler_of(object), object, function, code);
	return MPI_SUCCESS;
}

int mpi_comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
	return adi_errhandler_new(ADI_COMM, (void (*)(void))comm_errhandler_fn, errhandler);
}

int mpi_comm_set_errhandler(struct adi_comm *comm, struct adi_errhandler *errhandler)
{
	return set(&comm->object, errhandler);
}

int mpi_comm_get_errhandler(struct adi_comm *comm, MPI_Errhandler *errhandler)
{
	return get(&comm->object, errhandler);
}

int mpi_comm_call_errhandler(struct adi_comm *comm, int errorcode)
{
	return call_on_request(&comm->object, "Comm_call_errhandler", errorcode);
}

int mpi_win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn, MPI_Errhandler *errhandler)
{
	return adi_errhandler_new(ADI_WIN, (void (*)(void))win_errhandler_fn, errhandler);
}

int mpi_win_set_errhandler(struct adi_win *win, struct adi_errhandler *errhandler)
{
	return set(&win->object, errhandler);
}

int mpi_win_get_errhandler(struct adi_win *win, MPI_Errhandler *errhandler)
{
	return get(&win->object, errhandler);
}

int mpi_win_call_errhandler(struct adi_win *win, int errorcode)
{
	return call_on_request(&win->object, "Win_call_errhandler", errorcode);
}

int mpi_session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn, MPI_Errhandler *errhandler)
{
	return adi_errhandler_new(ADI_SESSION, (void (*)(void))session_errhandler_fn, errhandler);
}

int mpi_session_set_errhandler(struct adi_session *session, struct adi_errhandler *errhandler)
{
	return set(&session->object, errhandler);
}

int mpi_session_get_errhandler(struct adi_session *session, MPI_Errhandler *errhandler)
{
	return get(&session->object, errhandler);
}

int mpi_session_call_errhandler(struct adi_session *session, int errorcode)
{
	return call_on_request(&session->object, "Session_call_errhandler", errorcode);
}
