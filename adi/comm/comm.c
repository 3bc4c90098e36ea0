/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: their life, the predefined ones, and queries (MPI 5.0, sections 7.4 and 7.6.1). */
#include "adi/bindings/functions.h"
#include "adi/collective/schedule.h"
#include "adi/comm/agree.h"
#include "adi/comm/topology.h"

#include <stdlib.h>
#include <string.h>

/* Initialised statically, because errors before MPI_Init need an error handler. */
#define PREDEFINED(handle)                                                                                                  \
	{                                                                                                                   \
		.object = { .magic = ADI_MAGIC + ADI_COMM, .references = 1, .constant = (uint16_t)(uintptr_t)handle },      \
		.size = 1, .remote_size = 1, .name = #handle, .errhandler = &adi_errors_are_fatal,                          \
	}
struct adi_comm adi_world = PREDEFINED(MPI_COMM_WORLD), adi_self = PREDEFINED(MPI_COMM_SELF);

int adi_comm_take_other(MPI_Comm handle, const char *argument, struct adi_comm **found)
{
	struct adi_comm *comm = handle == MPI_COMM_WORLD  ? &adi_world
				: handle == MPI_COMM_SELF ? &adi_self
							  : adi_object_at(handle, ADI_COMM);
	if (!comm)
		return adi_error(MPI_ERR_COMM, "%s is %s; valid: the handle of a communicator that was not freed", argument,
				 handle == MPI_COMM_NULL ? "MPI_COMM_NULL" : "no communicator");
	*found = comm;
	return MPI_SUCCESS;
}

int adi_error_rank(const struct adi_comm *comm, int rank, const char *argument, bool null, bool any)
{
	return adi_error(MPI_ERR_RANK, "%s is %d; valid: ranks from 0 to %d%s%s", argument, rank, comm->remote_size - 1,
			 null ? ", MPI_PROC_NULL" : "", any ? ", MPI_ANY_SOURCE" : "");
}

int adi_error_root(const struct adi_comm *comm, int root)
{
	return adi_error(MPI_ERR_ROOT, "root is %d; valid: ranks from 0 to %d%s", root, comm->remote_size - 1,
			 comm->inter ? ", MPI_ROOT, MPI_PROC_NULL" : "");
}

static void set_groups(struct adi_comm *comm, struct adi_group *local, struct adi_group *remote)
{
	adi_object_retain(&local->object);
	adi_object_retain(&remote->object);
	comm->local = local;
	comm->remote = remote;
	comm->rank = local->rank;
	comm->size = local->size;
	comm->session = local->session;
	comm->remote_size = remote->size;
}

static struct adi_comm *new_comm(struct adi_group *local, struct adi_group *remote, uint32_t context,
				 struct adi_errhandler *errhandler)
{
	struct adi_comm *comm = calloc(1, sizeof *comm);
	if (!comm)
		return NULL;
	comm->context = context;
	if (context != ADI_CONTEXT_NONE && !adi_context_take(comm)) {
		free(comm);
		return NULL;
	}
	adi_object_init(&comm->object, ADI_COMM);
	set_groups(comm, local, remote);
	adi_object_retain(&errhandler->object);
	comm->errhandler = errhandler;
	return comm;
}

struct adi_comm *adi_comm_new(struct adi_group *group, uint32_t context, struct adi_errhandler *errhandler)
{
	return new_comm(group, group, context, errhandler);
}

struct adi_comm *adi_inter_new(struct adi_group *local, struct adi_group *remote, uint32_t context, uint32_t inside,
			       struct adi_errhandler *errhandler)
{
	struct adi_comm *comm = new_comm(local, remote, context, errhandler);
	if (!comm)
		return NULL;
	comm->inter = true;
	comm->inside = adi_comm_new(local, inside, errhandler);
	if (comm->inside)
		return comm;
	adi_comm_release(comm);
	return NULL;
}

/* Frees what a communicator owns. */
static void empty(struct adi_comm *comm)
{
	if (comm->node)
		adi_node_end(comm);
	comm->node = NULL;
	adi_topology_release(comm->topology);
	comm->topology = NULL;
	if (comm->info)
		adi_info_release(comm->info);
	comm->info = NULL;
	if (comm->inside)
		adi_comm_release(comm->inside);
	adi_group_release(comm->local);
	adi_group_release(comm->remote);
	comm->local = comm->remote = NULL;
}

static void destroy(struct adi_comm *comm)
{
	adi_context_return(comm);
	empty(comm);
	adi_errhandler_release(comm->errhandler);
	free(comm);
}

void adi_comm_release(struct adi_comm *comm)
{
	if (adi_object_release(&comm->object))
		destroy(comm);
}

static void start_predefined(struct adi_comm *comm, uint32_t context, struct adi_group *group)
{
	comm->context = context;
	comm->collectives[0] = comm->collectives[1] = 0;
	set_groups(comm, group, group);
}

/* A group of the processes from first on. */
static struct adi_group *new_range(int size, int first)
{
	int *world = malloc((size_t)size * sizeof *world);
	if (!world)
		return NULL;
	for (int i = 0; i < size; i++)
		world[i] = first + i;
	return adi_group_new(size, world);
}

int adi_comms_start(void)
{
	struct adi_group *self = new_range(1, adi_job.rank);
	adi_group_all = new_range(adi_job.size, 0);
	if (!self || !adi_group_all)
		return adi_error(MPI_ERR_NO_MEM, "no memory for the group of %d processes", adi_job.size);
	start_predefined(&adi_world, ADI_CONTEXT_WORLD, adi_group_all);
	start_predefined(&adi_self, ADI_CONTEXT_SELF, self);
	adi_group_release(self);
	return MPI_SUCCESS;
}

static void end_predefined(struct adi_comm *comm, const char *name)
{
	empty(comm);
	adi_errhandler_release(comm->errhandler);
	comm->errhandler = &adi_errors_are_fatal;
	comm->rank = 0;
	comm->size = comm->remote_size = 1;
	memset(comm->name, 0, sizeof comm->name);
	strcpy(comm->name, name);
}

void adi_comms_end(void)
{
	struct adi_comm *comm;
	while ((comm = adi_context_any())) {
		comm->inside = NULL; /* in the table too */
		comm->object.magic = 0;
		destroy(comm);
	}
	adi_contexts_end();
	end_predefined(&adi_world, "MPI_COMM_WORLD");
	end_predefined(&adi_self, "MPI_COMM_SELF");
	adi_group_release(adi_group_all);
	adi_group_all = NULL;
}

int mpi_comm_size(struct adi_comm *comm, int *size)
{
	*size = comm->size;
	return MPI_SUCCESS;
}

int mpi_comm_rank(struct adi_comm *comm, int *rank)
{
	*rank = comm->rank;
	return MPI_SUCCESS;
}

int mpi_comm_test_inter(struct adi_comm *comm, int *flag)
{
	*flag = comm->inter;
	return MPI_SUCCESS;
}

static int give_group(struct adi_group *group, MPI_Group *handle)
{
	adi_object_retain(&group->object);
	*handle = adi_group_handle(group);
	return MPI_SUCCESS;
}

int mpi_comm_group(struct adi_comm *comm, MPI_Group *group)
{
	return give_group(comm->local, group);
}

static int check_inter(const struct adi_comm *comm)
{
	return comm->inter ? MPI_SUCCESS
			   : adi_error(MPI_ERR_COMM, "comm is an intracommunicator; valid: an intercommunicator");
}

int mpi_comm_remote_size(struct adi_comm *comm, int *size)
{
	int class = check_inter(comm);
	if (!class)
		*size = comm->remote_size;
	return class;
}

int mpi_comm_remote_group(struct adi_comm *comm, MPI_Group *group)
{
	int class = check_inter(comm);
	return class ? class : give_group(comm->remote, group);
}

/* The weaker of two results. */
static int weaker(int a, int b)
{
	return a == MPI_UNEQUAL || b == MPI_UNEQUAL   ? MPI_UNEQUAL
	       : a == MPI_SIMILAR || b == MPI_SIMILAR ? MPI_SIMILAR
						      : MPI_IDENT;
}

int mpi_comm_compare(struct adi_comm *comm1, struct adi_comm *comm2, int *result)
{
	if (comm1 == comm2) {
		*result = MPI_IDENT;
		return MPI_SUCCESS;
	}
	*result = MPI_UNEQUAL;
	if (comm1->inter == comm2->inter)
		*result = adi_group_compared(comm1->local, comm2->local);
	if (comm1->inter && comm2->inter)
		*result = weaker(*result, adi_group_compared(comm1->remote, comm2->remote));
	if (*result == MPI_IDENT)
		*result = MPI_CONGRUENT;
	return MPI_SUCCESS;
}

int mpi_comm_get_parent(MPI_Comm *parent)
{
	*parent = MPI_COMM_NULL;
	return MPI_SUCCESS;
}

/* Names beyond the length of the result of MPI_Comm_get_name are cut. */
int mpi_comm_set_name(struct adi_comm *comm, const char *comm_name)
{
	size_t len = strnlen(comm_name, sizeof comm->name - 1);
	memmove(comm->name, comm_name, len);
	memset(comm->name + len, 0, sizeof comm->name - len);
	return MPI_SUCCESS;
}

/* MPI_COMM_NULL has a name too. */
int mpi_comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
	struct adi_comm *found = NULL;
	int class = comm == MPI_COMM_NULL ? MPI_SUCCESS : adi_comm_take(comm, "comm", &found);
	if (class)
		return class;
	const char *name = found ? found->name : "MPI_COMM_NULL";
	*resultlen = (int)strlen(name);
	memcpy(comm_name, name, (size_t)*resultlen + 1);
	return MPI_SUCCESS;
}

/* The attributes go first: if a callback refuses, the communicator stays. Operations in progress keep the rest. */
int mpi_comm_free(MPI_Comm *comm)
{
	struct adi_comm *found;
	int class = adi_comm_take(*comm, "comm", &found);
	if (class)
		return class;
	if (found->object.constant)
		return adi_error(MPI_ERR_COMM, "comm is %s, which is not freed",
				 found == &adi_world ? "MPI_COMM_WORLD" : "MPI_COMM_SELF");
	class = adi_attributes_delete(&found->object, &found->attributes);
	if (class)
		return class;
	if (found->buffer)
		adi_buffer_end(&found->buffer);
	adi_comm_release(found);
	*comm = MPI_COMM_NULL;
	return MPI_SUCCESS;
}

/* Without dynamic processes there is no other job to disconnect from. */
int mpi_comm_disconnect(MPI_Comm *comm)
{
	return mpi_comm_free(comm);
}
