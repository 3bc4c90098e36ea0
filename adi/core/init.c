/* SPDX-License-Identifier: BSD-3-Clause */
/* The world model: MPI_Init, MPI_Finalize and the queries on them (MPI 5.0, sections 11.2 to 11.4). */
#include "adi/core/init.h"

#include "adi/bindings/functions.h"
#include "adi/comm/comm.h"
#include "adi/core/entry.h"
#include "adi/core/info_env.h"
#include "adi/message/request.h"

#include <pthread.h>
#include <stdlib.h>

static enum { BEFORE, RUNNING, AFTER } world;
static enum { NOT_STARTED, STARTED, ENDED } job;
static int users; /* the world model and the sessions */
static pthread_t main_thread;

static int job_end(void)
{
	/* Wait for all ranks before closing: a rank that still waits for a message from this one would get an error. */
	adi_helper_end();
	int class = adi_meet();
	struct adi_errhandler *handler = NULL;
	if (class)
		adi_errhandler_set(&handler, *adi_default_errhandler());
	adi_running = false;
	job = ENDED;
	adi_job_end();
	if (class) {
		/* The handler that learns of this error outlives the communicator. */
		adi_errhandler_set(&adi_self.errhandler, handler);
		adi_errhandler_release(handler);
		adi_error(class, "%s", adi_class_text(class));
	}
	return class;
}

/* The process exits after its last session has ended. */
static void end_at_exit(void)
{
	if (job == STARTED && users == 0)
		job_end();
}

int adi_job_enter(int thread_level)
{
	if (job == ENDED)
		return adi_error(MPI_ERR_OTHER, "MPI has ended in this process and cannot start again");
	if (job == NOT_STARTED) {
		int class = adi_job_start();
		if (class)
			return class;
		job = STARTED;
		main_thread = pthread_self();
	}
	users++;
	if (thread_level > adi_job.thread_level)
		adi_job.thread_level = thread_level;
	adi_threaded |= thread_level == MPI_THREAD_MULTIPLE || adi_helper_wanted();
	adi_running = true;
	adi_helper_start();
	return MPI_SUCCESS;
}

int adi_job_leave(bool at_once)
{
	static bool registered;
	if (--users)
		return MPI_SUCCESS;
	if (at_once)
		return job_end();
	adi_running = false;
	if (!registered)
		registered = !atexit(end_at_exit);
	return MPI_SUCCESS;
}

static int level_of(int required)
{
	static const int levels[] = { MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED };
	for (int i = 0; i < 3; i++)
		if (required <= levels[i])
			return levels[i];
	return MPI_THREAD_MULTIPLE;
}

static int thread_level; /* of the world model */

static int init(int required)
{
	if (world != BEFORE)
		return adi_error(MPI_ERR_OTHER, "MPI_Init or MPI_Init_thread was called before");
	int level = level_of(required), class = adi_job_enter(level);
	if (class)
		return class;
	thread_level = level;
	main_thread = pthread_self();
	world = RUNNING;
	adi_info_env_job(adi_job.size, level);
	return MPI_SUCCESS;
}

int mpi_init(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return init(MPI_THREAD_SINGLE);
}

int mpi_init_thread(int *argc, char ***argv, int required, int *provided)
{
	(void)argc;
	(void)argv;
	if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
		return adi_error(MPI_ERR_ARG, "required is %d; valid levels: MPI_THREAD_SINGLE (%d) to MPI_THREAD_MULTIPLE (%d)",
				 required, MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE);
	int class = init(required);
	if (!class)
		*provided = thread_level;
	return class;
}

int mpi_query_thread(int *provided)
{
	*provided = world == BEFORE ? adi_job.thread_level : thread_level;
	return MPI_SUCCESS;
}

int mpi_is_thread_main(int *flag)
{
	*flag = pthread_equal(pthread_self(), main_thread) != 0;
	return MPI_SUCCESS;
}

int mpi_initialized(int *flag)
{
	*flag = world != BEFORE;
	return MPI_SUCCESS;
}

int mpi_finalized(int *flag)
{
	*flag = world == AFTER;
	return MPI_SUCCESS;
}

/* MPI_COMM_SELF's attributes are deleted first, while every function of MPI still works (MPI 5.0, section 11.2.4). */
static int end_predefined(void)
{
	int code = adi_attributes_delete(&adi_self.object, &adi_self.attributes);
	if (!code)
		code = adi_attributes_delete(&adi_world.object, &adi_world.attributes);
	if (code)
		return code;
	adi_buffer_end(&adi_self.buffer);
	adi_buffer_end(&adi_world.buffer);
	return MPI_SUCCESS;
}

int mpi_finalize(void)
{
	if (world != RUNNING)
		return adi_error(MPI_ERR_OTHER, world == BEFORE ? "MPI_Init was not called" : "MPI_Finalize was called before");
	int code = end_predefined();
	if (code)
		return code;
	world = AFTER;
	return adi_job_leave(true);
}
