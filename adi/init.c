/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init, MPI_Finalize, the predefined communicators and the queries on them. */
#include "adi/adi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Initialised statically, so that errors before MPI_Init can be reported: such an error ends the process. */
struct adi adi = {
	.world = { "MPI_COMM_WORLD", ADI_CONTEXT_WORLD, .size = 1, .errhandler = MPI_ERRORS_ARE_FATAL },
	.self = { "MPI_COMM_SELF", ADI_CONTEXT_SELF, .size = 1, .errhandler = MPI_ERRORS_ARE_FATAL },
};

struct adi_comm *adi_comm_find(MPI_Comm handle)
{
	if (handle == MPI_COMM_WORLD)
		return &adi.world;
	return handle == MPI_COMM_SELF ? &adi.self : NULL;
}

int adi_check_running(const char *function)
{
	if (adi.state == ADI_RUNNING)
		return MPI_SUCCESS;
	return adi_raise(NULL, function, MPI_ERR_OTHER, "called %s",
			 adi.state == ADI_BEFORE ? "before MPI_Init" : "after MPI_Finalize");
}

/* Adds all other ranks to the engine, as connections on demand: in a large job most pairs of ranks exchange no
 * messages. */
static int add_all(const hr_card_t *cards)
{
	for (int i = 0; i < adi.world.size; i++) {
		adi.peer[i].rank = i;
		if (i == adi.world.rank)
			continue;
		int error = ch3_add(adi.engine, &cards[i], &adi.peer[i], &adi.peer[i].vc);
		if (error)
			return error;
	}
	return 0;
}

static int start(void)
{
	int local_size;
	int error = adi_launch_init(&adi.world.rank, &adi.world.size, &local_size);
	if (error)
		return error;
	adi.oversubscribed = local_size > sysconf(_SC_NPROCESSORS_ONLN);
	hr_card_t card;
	/* A rank may compute for a long time between two MPI calls. Connections to it must not time out meanwhile. */
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_PATIENT;
	error = ch3_open(&attr, &adi.engine, &card);
	if (error)
		return error;
	error = adi_match_start();
	if (!error)
		error = adi_meet_prepare();
	if (error)
		return error;
	hr_card_t *cards = calloc((size_t)adi.world.size, sizeof *cards);
	adi.peer = calloc((size_t)adi.world.size, sizeof *adi.peer);
	error = cards && adi.peer ? adi_launch_exchange(&card, cards, adi.world.size) : -ENOMEM;
	if (!error)
		error = add_all(cards);
	free(cards);
	adi.self.first = adi.world.rank;
	return error;
}

static int init(const char *function, int required)
{
	if (adi.state != ADI_BEFORE)
		return adi_raise(NULL, function, MPI_ERR_OTHER, "called a second time");
	/* Every failure from here on ends the process, so nothing is undone. */
	int error = start();
	if (error)
		return adi_raise(NULL, function, adi_class(error), "%s", strerror(-error));
	adi.thread_level = required < MPI_THREAD_SERIALIZED ? required : MPI_THREAD_SERIALIZED;
	adi.state = ADI_RUNNING;
	return MPI_SUCCESS;
}

int PMPI_Init(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return init("MPI_Init", MPI_THREAD_SINGLE);
}
ADI_PROFILED(Init);

int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	(void)argc;
	(void)argv;
	if (!provided || required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
		return adi_raise(NULL, "MPI_Init_thread", MPI_ERR_ARG, "thread support %d, or a null pointer",
				 required);
	int class = init("MPI_Init_thread", required);
	if (!class)
		*provided = adi.thread_level;
	return class;
}
ADI_PROFILED(Init_thread);

int PMPI_Query_thread(int *provided)
{
	int class = adi_check_running("MPI_Query_thread");
	if (class)
		return class;
	if (!provided)
		return adi_raise(NULL, "MPI_Query_thread", MPI_ERR_ARG, "provided is a null pointer");
	*provided = adi.thread_level;
	return MPI_SUCCESS;
}
ADI_PROFILED(Query_thread);

int PMPI_Initialized(int *flag)
{
	if (!flag)
		return adi_raise(NULL, "MPI_Initialized", MPI_ERR_ARG, "flag is a null pointer");
	*flag = adi.state != ADI_BEFORE;
	return MPI_SUCCESS;
}
ADI_PROFILED(Initialized);

int PMPI_Finalized(int *flag)
{
	if (!flag)
		return adi_raise(NULL, "MPI_Finalized", MPI_ERR_ARG, "flag is a null pointer");
	*flag = adi.state == ADI_AFTER;
	return MPI_SUCCESS;
}
ADI_PROFILED(Finalized);

int PMPI_Finalize(void)
{
	int class = adi_check_running("MPI_Finalize");
	if (class)
		return class;
	/* Wait for all ranks before closing: a rank that still waits for a message from this one would get an error. */
	class = adi_meet();
	if (class)
		class = adi_raise(&adi.world, "MPI_Finalize", class, "%s", adi_class_text(class));
	adi.state = ADI_AFTER;
	ch3_close(adi.engine);
	adi.engine = NULL;
	adi_match_end();
	adi_requests_destroy();
	free(adi.peer);
	adi.peer = NULL;
	adi_launch_finalize();
	return class;
}
ADI_PROFILED(Finalize);

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
	int class = adi_check_running("MPI_Comm_rank");
	if (class)
		return class;
	const struct adi_comm *found = adi_comm_find(comm);
	if (!found)
		return adi_raise(NULL, "MPI_Comm_rank", MPI_ERR_COMM, "%p is not a communicator", (void *)comm);
	if (!rank)
		return adi_raise(found, "MPI_Comm_rank", MPI_ERR_ARG, "rank is a null pointer");
	*rank = found->rank;
	return MPI_SUCCESS;
}
ADI_PROFILED(Comm_rank);

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
	int class = adi_check_running("MPI_Comm_size");
	if (class)
		return class;
	const struct adi_comm *found = adi_comm_find(comm);
	if (!found)
		return adi_raise(NULL, "MPI_Comm_size", MPI_ERR_COMM, "%p is not a communicator", (void *)comm);
	if (!size)
		return adi_raise(found, "MPI_Comm_size", MPI_ERR_ARG, "size is a null pointer");
	*size = found->size;
	return MPI_SUCCESS;
}
ADI_PROFILED(Comm_size);
