/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intercommunicators: MPI 5.0, section 7.6. Both groups use the same two contexts: one for messages between the groups, one
 * for messages inside each group. The side whose leader has the lower world rank chooses them. In every operation the
 * leaders exchange what the sides must know of each other, and tell their own groups.
 */
#include "adi/bindings/functions.h"
#include "adi/collective/schedule.h"
#include "adi/comm/inter.h"

#include <stdlib.h>

int adi_error_elsewhere(int class)
{
	bool known = class > 0 && class <= MPI_ERR_LASTCODE && adi_class_name(class);
	return adi_error(known ? class : MPI_ERR_OTHER, "another process of the new communicator reports %s",
			 known ? adi_class_name(class) : "an error");
}

/* How a side of a new intercommunicator talks: leaders with each other, and the leader with its group. */
struct sides {
	struct adi_group *local;
	int leader;             /* rank in local */
	int remote_leader;      /* world rank; the leader knows it */
	struct adi_place outer; /* between the leaders */
	struct adi_place inner; /* inside the group */
	uint64_t value;         /* of the offers: both sides must have the same */
	struct adi_errhandler *errhandler;
};

/* World ranks of a group. NULL: no memory. */
static int *ranks_of(const struct adi_group *group)
{
	int *world = malloc((size_t)group->size * sizeof *world);
	for (int i = 0; world && i < group->size; i++)
		world[i] = adi_group_world(group, i);
	return world;
}

/* The leader's part: exchanges offers and ranks. *offer then describes the remote group and has the contexts of the side
 * that decides. Stores the remote group's world ranks, allocated. */
static int meet_leader(const struct sides *sides, struct adi_offer *offer, int **world)
{
	struct adi_offer mine = adi_offer_new(true), theirs = { 0 };
	mine.size = sides->local->size;
	mine.value = sides->value;
	int class = adi_agree_exchange(sides->outer, sides->remote_leader, &mine, sizeof mine, &theirs, sizeof theirs);
	if (class)
		return class;
	if (theirs.size <= 0 || theirs.size > adi_job.size || theirs.value != sides->value)
		return adi_error(MPI_ERR_ARG,
				 "the remote leader, process %d of MPI_COMM_WORLD, creates another communicator",
				 sides->remote_leader);
	int *own = ranks_of(sides->local);
	*world = malloc((size_t)theirs.size * sizeof **world);
	class = own && *world ? MPI_SUCCESS : adi_error(MPI_ERR_NO_MEM, "no memory for %d ranks", theirs.size);
	if (!class)
		class = adi_agree_exchange(sides->outer, sides->remote_leader, own, (size_t)mine.size * sizeof *own, *world,
					   (size_t)theirs.size * sizeof **world);
	free(own);
	*offer = theirs;
	if (adi_job.rank < sides->remote_leader) {
		offer->context = mine.context;
		offer->inside = mine.inside;
	}
	return class;
}

/* Makes a group of world ranks from another process. Takes over world. */
static int take_remote(int size, int *world, struct adi_group *local, struct adi_group **group)
{
	for (int i = 0; i < size; i++) {
		if (world[i] >= 0 && world[i] < adi_job.size && adi_group_rank(local, world[i]) == MPI_UNDEFINED)
			continue;
		int class = world[i] < 0 || world[i] >= adi_job.size
				    ? adi_error(MPI_ERR_OTHER, "the remote leader sent process %d; the job has %d", world[i],
						adi_job.size)
				    : adi_error(MPI_ERR_COMM,
						"process %d of MPI_COMM_WORLD is in both groups; valid: disjoint groups",
						world[i]);
		free(world);
		return class;
	}
	*group = adi_group_new(size, world);
	return *group ? MPI_SUCCESS : adi_error(MPI_ERR_NO_MEM, "no memory for a group of %d processes", size);
}

/* The remote group and the contexts, for all of a side. class: of an error that the leader has met before. */
static int meet(const struct sides *sides, int class, struct adi_offer *offer, struct adi_group **remote)
{
	bool leads = sides->local->rank == sides->leader;
	int *world = NULL;
	*offer = (struct adi_offer){ 0 };
	if (leads && !class)
		class = meet_leader(sides, offer, &world);
	offer->class = class;
	int told = adi_agree_tell(sides->inner, sides->local, sides->leader, offer, sizeof *offer);
	if (!class && (told || offer->class))
		class = told ? told : adi_error_elsewhere(offer->class);
	if (!class && (offer->size <= 0 || offer->size > adi_job.size))
		class = adi_error(MPI_ERR_OTHER, "the leader told of a group of %d processes; the job has %d", offer->size,
				  adi_job.size);
	if (!class && !world && !(world = malloc((size_t)offer->size * sizeof *world)))
		class = adi_error(MPI_ERR_NO_MEM, "no memory for %d ranks", offer->size);
	if (!class)
		class = adi_agree_tell(sides->inner, sides->local, sides->leader, world,
				       (size_t)offer->size * sizeof *world);
	if (class)
		free(world);
	return class ? class : take_remote(offer->size, world, sides->local, remote);
}

static int finish(const struct adi_offer *offer, struct adi_group *local, struct adi_group *remote,
		  struct adi_errhandler *errhandler, MPI_Comm *newcomm)
{
	if (!offer->context || !offer->inside)
		return adi_error_contexts();
	struct adi_comm *created = adi_inter_new(local, remote, offer->context, offer->inside, errhandler);
	if (!created)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a communicator");
	*newcomm = adi_comm_handle(created);
	return MPI_SUCCESS;
}

static int create(const struct sides *sides, int class, MPI_Comm *newcomm)
{
	struct adi_offer offer;
	struct adi_group *remote;
	*newcomm = MPI_COMM_NULL;
	class = meet(sides, class, &offer, &remote);
	if (class)
		return class;
	class = finish(&offer, sides->local, remote, sides->errhandler, newcomm);
	adi_group_release(remote);
	return class;
}

/* What only the leader says: the peer communicator and the remote leader's rank in it. */
static int take_peer(MPI_Comm peer_comm, int remote_leader, int tag, struct sides *sides)
{
	struct adi_comm *peer;
	int class = adi_comm_take(peer_comm, "peer_comm", &peer);
	if (!class)
		class = adi_check_rank(peer, remote_leader, "remote_leader", false, false);
	if (class)
		return class;
	sides->remote_leader = adi_comm_world(peer, remote_leader);
	if (sides->remote_leader == adi_job.rank)
		return adi_error(MPI_ERR_RANK,
				 "remote_leader is %d, which is the local leader; valid: a process of another group",
				 remote_leader);
	sides->outer = (struct adi_place){ peer->context + ADI_CONTEXT_TAGGED, tag };
	return MPI_SUCCESS;
}

int mpi_intercomm_create(struct adi_comm *local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
			 MPI_Comm *newintercomm)
{
	*newintercomm = MPI_COMM_NULL;
	if (local_comm->inter)
		return adi_error(MPI_ERR_COMM, "local_comm is an intercommunicator; valid: an intracommunicator");
	int class = adi_check_rank(local_comm, local_leader, "local_leader", false, false);
	if (class)
		return class;
	struct sides sides = { .local = local_comm->local,
			       .leader = local_leader,
			       .inner = adi_place_ordered(local_comm),
			       .errhandler = local_comm->errhandler };
	if (local_comm->rank != local_leader)
		return create(&sides, MPI_SUCCESS, newintercomm);
	class = tag < 0 ? adi_error(MPI_ERR_TAG, "tag is %d; valid tags: 0 and above", tag)
			: take_peer(peer_comm, remote_leader, tag, &sides);
	return create(&sides, class, newintercomm);
}

int mpi_intercomm_create_from_groups(struct adi_group *local_group, int local_leader, struct adi_group *remote_group,
				     int remote_leader, const char *stringtag, struct adi_info *info,
				     struct adi_errhandler *errhandler, MPI_Comm *newintercomm)
{
	(void)info; /* no hints are known for the creation */
	*newintercomm = MPI_COMM_NULL;
	if (local_group->rank == MPI_UNDEFINED)
		return adi_error(MPI_ERR_GROUP, "this process is no member of local_group");
	if (local_leader < 0 || local_leader >= local_group->size)
		return adi_error(MPI_ERR_RANK, "local_leader is %d; valid: ranks below %d", local_leader, local_group->size);
	struct sides sides = { .local = local_group, .leader = local_leader, .errhandler = errhandler };
	int class = adi_agree_string(stringtag, &sides.inner, &sides.value);
	sides.outer = sides.inner;
	if (class || local_group->rank != local_leader)
		return class ? class : create(&sides, class, newintercomm);
	/* remote_group is significant at the leader only. */
	if (remote_leader < 0 || remote_leader >= remote_group->size)
		class = adi_error(MPI_ERR_RANK, "remote_leader is %d; valid: ranks below %d, the size of remote_group",
				  remote_leader, remote_group->size);
	else
		sides.remote_leader = adi_group_world(remote_group, remote_leader);
	return create(&sides, class, newintercomm);
}

int adi_inter_exchange(struct adi_comm *comm, const void *mine, size_t mine_bytes, void *theirs, size_t theirs_bytes)
{
	int class = MPI_SUCCESS;
	if (!comm->rank)
		class = adi_agree_exchange(adi_place_ordered(comm), adi_comm_world(comm, 0), mine, mine_bytes, theirs,
					   theirs_bytes);
	int told = adi_bcast(theirs, theirs_bytes, 0, comm->inside);
	return class ? class : told;
}

/* Groups one behind the other. NULL: no memory. */
static struct adi_group *joined(const struct adi_group *first, const struct adi_group *second)
{
	int size = first->size + second->size, *world = malloc((size_t)size * sizeof *world);
	if (!world)
		return NULL;
	for (int i = 0; i < size; i++)
		world[i] = i < first->size ? adi_group_world(first, i) : adi_group_world(second, i - first->size);
	return adi_group_derived(first, size, world);
}

int mpi_intercomm_merge(struct adi_comm *intercomm, int high, MPI_Comm *newintracomm)
{
	struct adi_group *local = intercomm->local, *remote = intercomm->remote;
	*newintracomm = MPI_COMM_NULL;
	if (!intercomm->inter)
		return adi_error(MPI_ERR_COMM, "intercomm is an intracommunicator; valid: an intercommunicator");
	struct adi_offer mine = { .context = intercomm->rank ? 0 : adi_context_new(), .value = high != 0 }, theirs = { 0 };
	int class = adi_bcast(&mine, sizeof mine, 0, intercomm->inside);
	int exchanged = adi_inter_exchange(intercomm, &mine, sizeof mine, &theirs, sizeof theirs);
	if (class || exchanged)
		return class ? class : exchanged;
	bool behind = mine.value != theirs.value ? mine.value : adi_group_world(local, 0) > adi_group_world(remote, 0);
	uint32_t context = behind ? theirs.context : mine.context;
	struct adi_group *group = behind ? joined(remote, local) : joined(local, remote);
	if (!group)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a group of %d processes", local->size + remote->size);
	group->session = local->session;
	struct adi_comm *created = context ? adi_comm_new(group, context, intercomm->errhandler) : NULL;
	adi_group_release(group);
	if (!created)
		return context ? adi_error(MPI_ERR_NO_MEM, "no memory for a communicator") : adi_error_contexts();
	*newintracomm = adi_comm_handle(created);
	return MPI_SUCCESS;
}

/* Makes the intercommunicator of a color from what all of both groups said. */
static int make_split(struct adi_comm *comm, const struct adi_split *said, const struct adi_split *theirs, int color,
		      MPI_Comm *newcomm)
{
	int n, m, first, remote_first, class;
	int *own = adi_split_members(said, comm->local, color, &n, &first);
	int *other = adi_split_members(theirs, comm->remote, color, &m, &remote_first);
	struct adi_group *local = own ? adi_group_derived(comm->local, n, own) : NULL,
			 *remote = other ? adi_group_new(m, other) : NULL;
	if (!local || !remote) {
		class = adi_error(MPI_ERR_NO_MEM, "no memory for a group of %d processes", comm->size + comm->remote_size);
	} else if (!m) {
		class = MPI_SUCCESS;
	} else {
		bool here = adi_group_world(local, 0) < adi_group_world(remote, 0);
		const struct adi_split *decides = here ? &said[first] : &theirs[remote_first];
		struct adi_offer offer = { .context = decides->context, .inside = decides->inside };
		class = finish(&offer, local, remote, comm->errhandler, newcomm);
	}
	adi_group_release(local);
	adi_group_release(remote);
	return class;
}

int adi_inter_split(struct adi_comm *comm, int color, int key, MPI_Comm *newcomm)
{
	bool takes_part = color != MPI_UNDEFINED;
	struct adi_split mine = { color, key, takes_part ? adi_context_new() : 0, takes_part ? adi_context_new() : 0 };
	struct adi_split *said = calloc((size_t)comm->size, sizeof *said),
			 *theirs = calloc((size_t)comm->remote_size, sizeof *theirs);
	*newcomm = MPI_COMM_NULL;
	int class = said && theirs ? MPI_SUCCESS
				   : adi_error(MPI_ERR_NO_MEM, "no memory for the colors of %d processes",
					       comm->size + comm->remote_size);
	if (!class)
		class = adi_allgather(&mine, sizeof mine, said, comm->inside);
	if (!class)
		class = adi_inter_exchange(comm, said, (size_t)comm->size * sizeof *said, theirs,
					(size_t)comm->remote_size * sizeof *theirs);
	if (!class && takes_part)
		class = make_split(comm, said, theirs, color, newcomm);
	free(said);
	free(theirs);
	return class;
}
