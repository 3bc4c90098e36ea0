/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups and communicators: MPI 5.0, chapters 7 and 8.
 *
 * group.c, group_make.c: groups. comm.c: the life of communicators, the predefined ones, queries. context.c: what contexts
 * are in use. agree.c: messages by which processes agree on a context. duplicate.c, create.c, split.c: new communicators.
 * inter.c: intercommunicators. hints.c: info. topology.c: topologies; cart.c, dims.c, graph.c, dist_graph.c,
 * dist_graph_create.c: their kinds.
 */
#ifndef ADI_COMM_COMM_H
#define ADI_COMM_COMM_H

#include "adi/core/attribute.h"
#include "adi/core/entry.h"
#include "adi/core/error.h"
#include "adi/core/info.h"
#include "adi/core/job.h"

struct adi_topology;
struct adi_buffer;
struct adi_session;

struct adi_group {
	struct adi_object object;
	int size;
	int rank;                    /* of this process; MPI_UNDEFINED if it is no member */
	int first;                   /* if world is NULL: the world ranks are first, first + 1, ... */
	int *world;                  /* [size]: ranks in MPI_COMM_WORLD */
	int *order;                  /* [size]: ranks sorted by world rank, made when first needed; NULL before */
	struct adi_session *session; /* from whose process sets the group was derived: NULL: none. Not counted */
};

static inline int adi_group_world(const struct adi_group *group, int rank)
{
	return group->world ? group->world[rank] : group->first + rank;
}
/* The rank in the group of a process of MPI_COMM_WORLD; MPI_UNDEFINED: no member. */
int adi_group_rank(struct adi_group *group, int world);
/* A group of these world ranks. Takes over world, which malloc returned; frees it on failure. NULL: no memory. */
struct adi_group *adi_group_new(int size, int *world);
/* The same, derived from another group. */
struct adi_group *adi_group_derived(const struct adi_group *from, int size, int *world);
/* The same processes, derived from a session: for mpi_group_from_session_pset. NULL: no memory. */
struct adi_group *adi_group_of_session(const struct adi_group *group, struct adi_session *session);
int adi_group_take(MPI_Group handle, const char *argument, struct adi_group **found);
void adi_group_release(struct adi_group *group);
static inline MPI_Group adi_group_handle(struct adi_group *group)
{
	return (MPI_Group)adi_object_handle(&group->object);
}
/* The result of MPI_Group_compare. */
int adi_group_compared(struct adi_group *group1, struct adi_group *group2);
extern struct adi_group adi_group_empty;
/* The group of all processes; NULL before adi_comms_start. */
extern struct adi_group *adi_group_all;

/*
 * Contexts keep the messages of communicators apart. A communicator has four, which follow each other: for point-to-point
 * messages, for collectives, and two for the messages that create communicators. A member of a new communicator chooses the
 * number from numbers of its own and tells the others; it takes a freed number again only after all others.
 */
enum {
	ADI_CONTEXT_COLLECTIVE = 1,
	ADI_CONTEXT_TAGGED = 2,  /* creation with a tag of the program: create_group, intercomm_create */
	ADI_CONTEXT_ORDERED = 3, /* creation by all members, in the same order: the tag is 0 */
	ADI_CONTEXT_STEP = 4,
	/* Contexts of all jobs. */
	ADI_CONTEXT_WORLD = 0,
	ADI_CONTEXT_SELF = 4,
	ADI_CONTEXT_STRINGTAG = 8, /* creation from groups: the tag is a hash of the string */
};
#define ADI_CONTEXT_NONE 0xfffffffcu /* no message has it */

struct adi_comm {
	struct adi_object object;
	char name[MPI_MAX_OBJECT_NAME];
	uint32_t context;              /* a multiple of ADI_CONTEXT_STEP */
	int rank, size;                /* of the local group */
	int remote_size;               /* of the remote group */
	struct adi_group *local;
	struct adi_group *remote;      /* whom ranks in messages name: of an intracommunicator the same as local */
	bool inter;
	struct adi_comm *inside;       /* of an intercommunicator: intracommunicator of the local group, for its collectives */
	struct adi_errhandler *errhandler;
	struct adi_info *info;         /* hints that were set; NULL: none */
	struct adi_attributes attributes;
	struct adi_topology *topology; /* holds a reference; NULL: none */
	struct adi_session *session;   /* from whose groups it was derived: whose buffer its buffered sends use; NULL: none */
	uint32_t collectives[2];       /* nonblocking, blocking collectives started: the tags of their messages */
	void *node;                    /* collective/: state of the shared segment; NULL: none */
	struct adi_buffer *buffer;     /* message/: of MPI_Comm_attach_buffer; NULL: none. mpi_comm_free ends it */
	struct adi_comm *next;         /* context.c: in the table of communicators */
};

/* What errors and the log call a communicator. */
static inline const char *adi_comm_text(const struct adi_comm *comm)
{
	return comm->name[0] ? comm->name : "without a name";
}

extern struct adi_comm adi_world, adi_self;

int adi_comm_take_other(MPI_Comm handle, const char *argument, struct adi_comm **found);
static inline int adi_comm_take(MPI_Comm handle, const char *argument, struct adi_comm **found)
{
	if (!ADI_LIKELY(handle == MPI_COMM_WORLD))
		return adi_comm_take_other(handle, argument, found);
	*found = &adi_world;
	return MPI_SUCCESS;
}
static inline MPI_Comm adi_comm_handle(struct adi_comm *comm)
{
	return (MPI_Comm)adi_object_handle(&comm->object);
}
/* Drops a reference. An operation in progress holds one. */
void adi_comm_release(struct adi_comm *comm);

/* machine.c: exchanges the machines of all processes, of an intercommunicator those of both groups. *number: the lowest world rank
 * of those on this process's machine; *several: there is more than one machine. Collective. Returns an error class. */
int adi_comm_machines(struct adi_comm *comm, int *number, bool *several);

/* The world rank of a rank in messages of the communicator. */
static inline int adi_comm_world(const struct adi_comm *comm, int rank)
{
	return adi_group_world(comm->remote, rank);
}
int adi_error_rank(const struct adi_comm *comm, int rank, const char *argument, bool null, bool any) __attribute__((cold));
/* Checks a rank: of the remote group; null: or MPI_PROC_NULL; any: or MPI_ANY_SOURCE. */
static inline int adi_check_rank(const struct adi_comm *comm, int rank, const char *argument, bool null, bool any)
{
	if (ADI_LIKELY((unsigned)rank < (unsigned)comm->remote_size) || (null && rank == MPI_PROC_NULL) ||
	    (any && rank == MPI_ANY_SOURCE))
		return MPI_SUCCESS;
	return adi_error_rank(comm, rank, argument, null, any);
}
int adi_error_root(const struct adi_comm *comm, int root) __attribute__((cold));
/* Checks the root of a collective; in an intercommunicator MPI_ROOT and MPI_PROC_NULL too. */
static inline int adi_check_root(const struct adi_comm *comm, int root)
{
	if (ADI_LIKELY((unsigned)root < (unsigned)comm->remote_size) ||
	    (comm->inter && (root == MPI_ROOT || root == MPI_PROC_NULL)))
		return MPI_SUCCESS;
	return adi_error_root(comm, root);
}

/* Makes an intracommunicator of a group with a context that all its members agreed on, or an intercommunicator of two
 * groups. Retains groups and error handler. NULL: no memory. */
struct adi_comm *adi_comm_new(struct adi_group *group, uint32_t context, struct adi_errhandler *errhandler);
struct adi_comm *adi_inter_new(struct adi_group *local, struct adi_group *remote, uint32_t context, uint32_t inside,
			       struct adi_errhandler *errhandler);
/* A communicator of the library's own with the group or groups of comm and its error handler, without its attributes,
 * topology and hints. Collective over comm; blocks. The caller releases it. */
int adi_comm_duplicate(struct adi_comm *comm, struct adi_comm **duplicate);

/* Starts the predefined communicators and groups, from adi_job; returns an error class. Ends them and all communicators that
 * were not freed, without callbacks of attributes; after it adi_comms_start may be called again. */
int adi_comms_start(void);
void adi_comms_end(void);

#endif
