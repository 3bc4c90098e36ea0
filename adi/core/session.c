/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: MPI 5.0, section 11.3. The process sets are mpi://WORLD and mpi://SELF. */
#include "adi/core/session.h"

#include "adi/bindings/functions.h"
#include "adi/comm/comm.h"
#include "adi/core/info_env.h"
#include "adi/core/init.h"
#include "adi/message/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const psets[] = { "mpi://WORLD", "mpi://SELF" };
enum { PSET_WORLD, PSET_SELF, PSETS };

int adi_session_take(MPI_Session handle, const char *argument, struct adi_session **found)
{
	struct adi_session *session = adi_object_at(handle, ADI_SESSION);
	if (!session)
		return adi_error(MPI_ERR_SESSION, "%s is %s, no session", argument, adi_handle_text(handle));
	*found = session;
	return MPI_SUCCESS;
}

/* Without the key thread_level any number of threads may use the session. */
static int level_of(const struct adi_info *info, int *level)
{
	const char *name = adi_info_get(info, "thread_level");
	*level = name ? adi_thread_level_named(name) : MPI_THREAD_MULTIPLE;
	if (*level < 0)
		return adi_error(MPI_ERR_INFO_VALUE, "thread_level is \"%s\"; valid: MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, "
				 "MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE", name);
	return MPI_SUCCESS;
}

static struct adi_info *info_used(int level)
{
	struct adi_info *info = adi_info_new();
	if (info && !adi_info_put(info, "thread_level", adi_thread_level_name(level)) &&
	    !adi_info_put(info, "mpi_memory_alloc_kinds", "system,mpi"))
		return info;
	adi_info_release(info);
	return NULL;
}

static void session_free(struct adi_session *session)
{
	adi_info_release(session->info);
	if (session->errhandler)
		adi_errhandler_release(session->errhandler);
	free(session);
}

int mpi_session_init(struct adi_info *info, struct adi_errhandler *errhandler, MPI_Session *session)
{
	int level, class = level_of(info, &level);
	if (class)
		return class;
	struct adi_session *new = calloc(1, sizeof *new);
	struct adi_info *used = new ? info_used(level) : NULL;
	if (!used) {
		free(new);
		return adi_error(MPI_ERR_NO_MEM, "no memory for a session");
	}
	adi_object_init(&new->object, ADI_SESSION);
	new->info = used;
	adi_errhandler_set(&new->errhandler, errhandler);
	class = adi_job_enter(level);
	if (class) {
		session_free(new);
		return class;
	}
	*session = (MPI_Session)new;
	return MPI_SUCCESS;
}

int mpi_session_finalize(MPI_Session *session)
{
	struct adi_session *found = NULL;
	int class = adi_session_take(*session, "session", &found);
	if (class)
		return class;
	adi_buffer_end(&found->buffer);
	if (adi_object_release(&found->object))
		session_free(found);
	*session = MPI_SESSION_NULL;
	return adi_job_leave(false);
}

int mpi_session_get_info(struct adi_session *session, MPI_Info *info_used_)
{
	struct adi_info *copy = adi_info_copy(session->info);
	if (!copy)
		return adi_error(MPI_ERR_NO_MEM, "no memory for an info object");
	*info_used_ = (MPI_Info)copy;
	return MPI_SUCCESS;
}

int mpi_session_get_num_psets(struct adi_session *session, struct adi_info *info, int *npset_names)
{
	(void)session;
	(void)info;
	*npset_names = PSETS;
	return MPI_SUCCESS;
}

/* *pset_len: size of the buffer, its NUL included, or 0: only tell the size. */
int mpi_session_get_nth_pset(struct adi_session *session, struct adi_info *info, int n, int *pset_len, char *pset_name)
{
	(void)session;
	(void)info;
	if (n < 0 || n >= PSETS)
		return adi_error(MPI_ERR_ARG, "n is %d; valid numbers of process sets: 0 to %d", n, PSETS - 1);
	if (*pset_len < 0 || (*pset_len > 0 && !pset_name))
		return adi_error(MPI_ERR_ARG, "pset_len is %d, pset_name %p", *pset_len, (void *)pset_name);
	if (*pset_len > 0)
		snprintf(pset_name, (size_t)*pset_len, "%s", psets[n]);
	*pset_len = (int)strlen(psets[n]) + 1;
	return MPI_SUCCESS;
}

static int pset_find(const char *name, int *found)
{
	for (int i = 0; i < PSETS; i++)
		if (!strcasecmp(name, psets[i])) {
			*found = i;
			return MPI_SUCCESS;
		}
	return adi_error(MPI_ERR_ARG, "pset_name is \"%.100s\"; valid names: %s, %s", name, psets[0], psets[1]);
}

int mpi_session_get_pset_info(struct adi_session *session, const char *pset_name, MPI_Info *info)
{
	(void)session;
	char number[16];
	int which = 0, class = pset_find(pset_name, &which);
	if (class)
		return class;
	struct adi_info *new = adi_info_new();
	snprintf(number, sizeof number, "%d", which == PSET_WORLD ? adi_job.size : 1);
	if (!new || adi_info_put(new, "mpi_size", number)) {
		adi_info_release(new);
		return adi_error(MPI_ERR_NO_MEM, "no memory for an info object");
	}
	*info = (MPI_Info)new;
	return MPI_SUCCESS;
}

int mpi_group_from_session_pset(struct adi_session *session, const char *pset_name, MPI_Group *newgroup)
{
	int which = 0, class = pset_find(pset_name, &which);
	if (class)
		return class;
	struct adi_group *group = adi_group_of_session(which == PSET_WORLD ? adi_world.local : adi_self.local, session);
	if (!group)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a group");
	*newgroup = adi_group_handle(group);
	return MPI_SUCCESS;
}
