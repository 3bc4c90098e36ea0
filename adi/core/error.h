/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors. A function that fails says what was wrong with adi_error and returns the class. The binding of the MPI function
 * then calls adi_fail, which adds the name of the function and calls the error handler of the communicator, window or
 * session (MPI 5.0, section 9.3).
 */
#ifndef ADI_CORE_ERROR_H
#define ADI_CORE_ERROR_H

#include "adi/core/object.h"
#include "adi/mpi.h"

/* Keeps the text, for this thread, until adi_fail. Returns class. A text names argument, value and what is valid: "tag is
 * -5; valid tags: 0 and above". */
int adi_error(int class, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* Puts prefix before the text, which begins with the name of an argument: "tag is -5" becomes "sendtag is -5". Returns
 * class. */
int adi_error_of(const char *prefix, int class) __attribute__((cold));
/* The text, which may be empty; and no text. */
const char *adi_error_text(void);
void adi_error_forget(void);
/* Keeps the text for MPI_Error_string, until the next error of this thread: MPI_<function> returns this code. */
void adi_error_reported(const char *function, int code) __attribute__((cold));
/* "MPI_WIN_NULL" for a null handle, its value for others. Valid until the next call of this thread. */
const char *adi_handle_text(const void *handle) __attribute__((cold));
/* Converts 0 or a negated errno value of the layers below to an error class, without a text. */
int adi_class(int error);
/* As adi_class, with the text of the errno value behind what was done: "what: No such file". */
int adi_error_below(int error, const char *what);
/* Returns the class of an error code, which may be a code that the program has added; -1: no such code. */
int adi_class_of_code(int code);
/* Returns "MPI_ERR_TRUNCATE", or NULL if there is no such predefined class. */
const char *adi_class_name(int class);
/* Returns a short English text for a code, predefined or added, or NULL. */
const char *adi_class_text(int code);

/* The value of MPI_LASTUSEDCODE. */
int adi_error_last_code(void);

struct adi_errhandler {
	struct adi_object object;
	enum { ADI_ERRORS_ABORT_JOB, ADI_ERRORS_ABORT_COMM, ADI_ERRORS_RETURN, ADI_ERRORS_CALL } action;
	enum adi_kind of; /* ADI_ERRORS_CALL: what the function is for: ADI_COMM, ADI_WIN or ADI_SESSION */
	union {
		void (*any)(void);
		MPI_Comm_errhandler_function *comm;
		MPI_Win_errhandler_function *win;
		MPI_Session_errhandler_function *session;
	} call;
};
extern struct adi_errhandler adi_errors_are_fatal, adi_errors_abort, adi_errors_return;

/* A handler that calls function, which is of the type in union call that belongs to `of`. */
int adi_errhandler_new(enum adi_kind of, void (*function)(void), MPI_Errhandler *handle);
int adi_errhandler_take(MPI_Errhandler handle, const char *argument, struct adi_errhandler **found);
/* Returns MPI_ERR_ERRHANDLER if a handler's function is for another kind of object. */
int adi_errhandler_check(const struct adi_errhandler *handler, enum adi_kind kind, const char *argument);
/* Replaces *place, which holds a reference. */
void adi_errhandler_set(struct adi_errhandler **place, struct adi_errhandler *handler);
void adi_errhandler_release(struct adi_errhandler *handler);

/*
 * Reports that MPI_<function> failed with class. object: the struct adi_comm, adi_win or adi_session whose error handler
 * is called; NULL: that of MPI_COMM_SELF, or, if that is still the default, of MPI_COMM_WORLD. Returns class if the handler
 * returns. The text is that of adi_error.
 */
int adi_fail(struct adi_object *object, const char *function, int class) __attribute__((cold));
/* As adi_fail, for a function that would have created an object with the handler `given`. The handler's function gets the null
 * handle of its kind. NULL: the handler was invalid, and adi_fail(NULL, ...) reports the error. */
int adi_fail_given(struct adi_errhandler *given, const char *function, int class) __attribute__((cold));
/* Where the error handler for NULL is kept. */
struct adi_errhandler **adi_default_errhandler(void);

/*
 * Names the object whose error handler adi_fail calls if it is called without one: an implementation whose MPI function has
 * no communicator, window or session as an argument (MPI_Wait) calls this beside adi_error, with the communicator of the
 * request. Retains the object until the next adi_fail. Only adi_fail forgets it.
 */
void adi_error_on(struct adi_object *object) __attribute__((cold));

/* Ends the job and this process. Runs no exit handlers. */
void adi_abort(int code, const char *message) __attribute__((noreturn));

#endif
