/* SPDX-License-Identifier: BSD-3-Clause */
/* Performance variables: sessions and handles. All variables are read only and always counting. */
#include "adi/bindings/functions.h"
#include "adi/core/entry.h"
#include "adi/core/job.h"
#include "adi/tool/tool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_MAGIC 0x70736573u
#define HANDLE_MAGIC 0x70766172u

struct handle {
	uint32_t magic;
	const struct tool_measure *measure;
	struct handle *next;
};

struct session {
	uint32_t magic;
	struct handle *handles;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists of handles */

static const struct tool_measure *measure(int index)
{
	return index >= 0 && index < tool_measures() ? &tool_measure[index] : NULL;
}

static struct session *session_of(MPI_T_pvar_session session)
{
	struct session *found = (struct session *)session;
	return found && found->magic == SESSION_MAGIC ? found : NULL;
}

/* The link of a handle in its session; NULL: no handle of the session. The caller holds the lock. */
static struct handle **handle_find(struct session *session, MPI_T_pvar_handle handle)
{
	for (struct handle **link = &session->handles; *link; link = &(*link)->next)
		if (*link == (struct handle *)handle)
			return link;
	return NULL;
}

int mpi_t_pvar_get_num(int *num_pvar)
{
	TOOL_CHECK_RUNNING();
	if (!num_pvar)
		return MPI_T_ERR_INVALID;
	*num_pvar = tool_measures();
	return MPI_SUCCESS;
}

int mpi_t_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class, MPI_Datatype *datatype,
			MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *readonly, int *continuous, int *atomic)
{
	TOOL_CHECK_RUNNING();
	const struct tool_measure *found = measure(pvar_index);
	if (!found)
		return MPI_T_ERR_INVALID_INDEX;
	tool_text(found->name, name, name_len);
	tool_text(found->description, desc, desc_len);
	tool_put(verbosity, MPI_T_VERBOSITY_USER_BASIC);
	tool_put(var_class, found->class);
	if (datatype)
		*datatype = MPI_UNSIGNED_LONG_LONG;
	if (enumtype)
		*enumtype = MPI_T_ENUM_NULL;
	tool_put(bind, MPI_T_BIND_NO_OBJECT);
	tool_put(readonly, 1);
	tool_put(continuous, 1);
	tool_put(atomic, 0);
	return MPI_SUCCESS;
}

int mpi_t_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
	TOOL_CHECK_RUNNING();
	if (!name || !pvar_index)
		return MPI_T_ERR_INVALID;
	for (int i = 0; i < tool_measures(); i++)
		if (tool_measure[i].class == var_class && strcmp(tool_measure[i].name, name) == 0) {
			*pvar_index = i;
			return MPI_SUCCESS;
		}
	return MPI_T_ERR_INVALID_NAME;
}

int mpi_t_pvar_session_create(MPI_T_pvar_session *session)
{
	TOOL_CHECK_RUNNING();
	if (!session)
		return MPI_T_ERR_INVALID;
	struct session *made = calloc(1, sizeof *made);
	if (!made)
		return MPI_T_ERR_MEMORY;
	made->magic = SESSION_MAGIC;
	*session = (MPI_T_pvar_session)made;
	return MPI_SUCCESS;
}

int mpi_t_pvar_session_free(MPI_T_pvar_session *session)
{
	TOOL_CHECK_RUNNING();
	struct session *found = session ? session_of(*session) : NULL;
	if (!found)
		return MPI_T_ERR_INVALID_SESSION;
	pthread_mutex_lock(&lock);
	while (found->handles) {
		struct handle *handle = found->handles;
		found->handles = handle->next;
		free(handle);
	}
	pthread_mutex_unlock(&lock);
	found->magic = 0;
	free(found);
	*session = MPI_T_PVAR_SESSION_NULL;
	return MPI_SUCCESS;
}

int mpi_t_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle, MPI_T_pvar_handle *handle, int *count)
{
	(void)obj_handle;
	TOOL_CHECK_RUNNING();
	struct session *in = session_of(session);
	if (!in)
		return MPI_T_ERR_INVALID_SESSION;
	const struct tool_measure *found = measure(pvar_index);
	if (!found)
		return MPI_T_ERR_INVALID_INDEX;
	if (!handle || !count)
		return MPI_T_ERR_INVALID;
	struct handle *made = malloc(sizeof *made);
	if (!made)
		return MPI_T_ERR_MEMORY;
	pthread_mutex_lock(&lock);
	*made = (struct handle){ HANDLE_MAGIC, found, in->handles };
	in->handles = made;
	pthread_mutex_unlock(&lock);
	*handle = (MPI_T_pvar_handle)made;
	*count = 1;
	return MPI_SUCCESS;
}

int mpi_t_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
	TOOL_CHECK_RUNNING();
	struct session *in = session_of(session);
	if (!in)
		return MPI_T_ERR_INVALID_SESSION;
	pthread_mutex_lock(&lock);
	struct handle **link = handle ? handle_find(in, *handle) : NULL, *found = link ? *link : NULL;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&lock);
	if (!found)
		return MPI_T_ERR_INVALID_HANDLE;
	free(found);
	*handle = MPI_T_PVAR_HANDLE_NULL;
	return MPI_SUCCESS;
}

/* Finds the variable of a handle. all: MPI_T_PVAR_ALL_HANDLES is allowed; *found is NULL then. */
static int handle_take(MPI_T_pvar_session session, MPI_T_pvar_handle handle, bool all, const struct tool_measure **found)
{
	TOOL_CHECK_RUNNING();
	struct session *in = session_of(session);
	*found = NULL;
	if (!in)
		return MPI_T_ERR_INVALID_SESSION;
	if (all && handle == MPI_T_PVAR_ALL_HANDLES)
		return MPI_SUCCESS;
	pthread_mutex_lock(&lock);
	struct handle **link = handle_find(in, handle);
	if (link)
		*found = (*link)->measure;
	pthread_mutex_unlock(&lock);
	return link ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
	const struct tool_measure *found;
	int code = handle_take(session, handle, false, &found);
	if (code)
		return code;
	if (!buf)
		return MPI_T_ERR_INVALID;
	unsigned long long value = 0;
	if (adi_running && adi_enter() == MPI_SUCCESS) {
		value = found->read();
		adi_leave();
	}
	memcpy(buf, &value, sizeof value);
	return MPI_SUCCESS;
}

/* For all handles: those that do not allow the operation are left out, which are all. */
static int refuse(MPI_T_pvar_session session, MPI_T_pvar_handle handle, bool all, int refusal)
{
	const struct tool_measure *found;
	int code = handle_take(session, handle, all, &found);
	return code ? code : found ? refusal : MPI_SUCCESS;
}

int mpi_t_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return refuse(session, handle, true, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

int mpi_t_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return refuse(session, handle, true, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

int mpi_t_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return refuse(session, handle, true, MPI_T_ERR_PVAR_NO_WRITE);
}

int mpi_t_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
	(void)buf;
	return refuse(session, handle, false, MPI_T_ERR_PVAR_NO_WRITE);
}

int mpi_t_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
	(void)buf;
	return refuse(session, handle, false, MPI_T_ERR_PVAR_NO_ATOMIC);
}
