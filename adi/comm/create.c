/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators from groups: MPI_Comm_create, create_group, create_from_group (MPI 5.0, section 7.4.2). */
#include "adi/bindings/functions.h"
#include "adi/comm/agree.h"
#include "adi/comm/inter.h"

int adi_check_members(struct adi_group *group, struct adi_group *of, const char *whose)
{
	if (group == of)
		return MPI_SUCCESS;
	for (int i = 0; i < group->size; i++)
		if (adi_group_rank(of, adi_group_world(group, i)) == MPI_UNDEFINED)
			return adi_error(MPI_ERR_GROUP,
					 "process %d of group is process %d of MPI_COMM_WORLD; valid: members of %s", i,
					 adi_group_world(group, i), whose);
	return MPI_SUCCESS;
}

/* Stores the handle of a new communicator, or MPI_COMM_NULL after an error. */
static int give(int class, struct adi_comm *created, MPI_Comm *newcomm)
{
	*newcomm = class ? MPI_COMM_NULL : adi_comm_handle(created);
	return class;
}

/* As a split in which the members of group have a colour and are ordered as in group. */
static int create_inter(struct adi_comm *comm, struct adi_group *group, MPI_Comm *newcomm)
{
	bool member = group->rank != MPI_UNDEFINED;
	return adi_inter_split(comm, member ? 0 : MPI_UNDEFINED, member ? group->rank : 0, newcomm);
}

int mpi_comm_create(struct adi_comm *comm, struct adi_group *group, MPI_Comm *newcomm)
{
	*newcomm = MPI_COMM_NULL;
	int class = adi_check_members(group, comm->local, "the group of comm");
	if (class)
		return class;
	if (comm->inter)
		return create_inter(comm, group, newcomm);
	struct adi_comm *created = NULL;
	if (group->rank == MPI_UNDEFINED)
		return MPI_SUCCESS;
	class = adi_agree_comm(adi_place_ordered(comm), group, comm, &created);
	return give(class, created, newcomm);
}

int mpi_comm_create_group(struct adi_comm *comm, struct adi_group *group, int tag, MPI_Comm *newcomm)
{
	*newcomm = MPI_COMM_NULL;
	if (comm->inter)
		return adi_error(MPI_ERR_COMM, "comm is an intercommunicator; valid: an intracommunicator");
	if (tag < 0)
		return adi_error(MPI_ERR_TAG, "tag is %d; valid tags: 0 and above", tag);
	int class = adi_check_members(group, comm->local, "the group of comm");
	if (class)
		return class;
	if (group->rank == MPI_UNDEFINED)
		return MPI_SUCCESS;
	struct adi_place place = { comm->context + ADI_CONTEXT_TAGGED, tag };
	struct adi_comm *created = NULL;
	class = adi_agree_comm(place, group, comm, &created);
	return give(class, created, newcomm);
}

/* The group's rank 0 also tells the hash of the string, which tells apart strings that meet at the same place. */
static int agree_with_string(const char *string, struct adi_group *group, uint32_t *context)
{
	struct adi_place place;
	uint64_t hash;
	int class = adi_agree_string(string, &place, &hash);
	if (class)
		return class;
	struct adi_offer offer = { 0 };
	if (!group->rank)
		offer = adi_offer_new(false);
	offer.value = hash;
	offer.size = group->size;
	class = adi_agree_tell(place, group, 0, &offer, sizeof offer);
	if (class)
		return class;
	if (offer.value != hash || offer.size != group->size)
		return adi_error(MPI_ERR_ARG, "stringtag or group differs between the processes");
	*context = offer.context;
	return offer.context ? MPI_SUCCESS : adi_error_contexts();
}

int mpi_comm_create_from_group(struct adi_group *group, const char *stringtag, struct adi_info *info,
			       struct adi_errhandler *errhandler, MPI_Comm *newcomm)
{
	(void)info; /* no hints are known for the creation */
	*newcomm = MPI_COMM_NULL;
	if (!group->size)
		return MPI_SUCCESS;
	if (group->rank == MPI_UNDEFINED)
		return adi_error(MPI_ERR_GROUP, "this process is no member of group");
	uint32_t context;
	int class = agree_with_string(stringtag, group, &context);
	if (class)
		return class;
	struct adi_comm *created = adi_comm_new(group, context, errhandler);
	if (!created)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a communicator");
	return give(class, created, newcomm);
}
