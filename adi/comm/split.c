/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_split and MPI_Comm_split_type: MPI 5.0, section 7.4.2. */
#include "adi/bindings/functions.h"
#include "adi/collective/schedule.h"
#include "adi/comm/inter.h"

#include <stdlib.h>
#include <string.h>

struct member {
	int key, rank;
};

static int by_key(const void *a, const void *b)
{
	const struct member *first = a, *second = b;
	if (first->key != second->key)
		return first->key < second->key ? -1 : 1;
	return (first->rank > second->rank) - (first->rank < second->rank);
}

int *adi_split_members(const struct adi_split *said, struct adi_group *group, int color, int *n, int *first)
{
	size_t size = (size_t)group->size;
	struct member *member = malloc(size * sizeof *member);
	int *world = malloc(size * sizeof *world), count = 0;
	if (!member || !world) {
		free(member);
		free(world);
		return NULL;
	}
	for (int i = 0; i < group->size; i++)
		if (said[i].color == color)
			member[count++] = (struct member){ said[i].key, i };
	qsort(member, (size_t)count, sizeof *member, by_key);
	for (int i = 0; i < count; i++)
		world[i] = adi_group_world(group, member[i].rank);
	*n = count;
	*first = count ? member[0].rank : MPI_UNDEFINED;
	free(member);
	return world;
}

/* Makes the communicator of a color from what all said. */
static int make(struct adi_comm *comm, const struct adi_split *said, int color, struct adi_comm **created)
{
	int n, first;
	int *world = adi_split_members(said, comm->local, color, &n, &first);
	struct adi_group *group = world ? adi_group_derived(comm->local, n, world) : NULL;
	if (!group)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a group of %d processes", comm->size);
	int class = said[first].context ? MPI_SUCCESS : adi_error_contexts();
	if (!class && !(*created = adi_comm_new(group, said[first].context, comm->errhandler)))
		class = adi_error(MPI_ERR_NO_MEM, "no memory for a communicator");
	adi_group_release(group);
	return class;
}

int adi_comm_divide(struct adi_comm *comm, int color, int key, struct adi_comm **created)
{
	struct adi_split mine = { color, key, color == MPI_UNDEFINED ? 0 : adi_context_new(), 0 };
	struct adi_split *said = malloc((size_t)comm->size * sizeof *said);
	if (!said)
		return adi_error(MPI_ERR_NO_MEM, "no memory for the colors of %d processes", comm->size);
	*created = NULL;
	int class = adi_allgather(&mine, sizeof mine, said, comm);
	if (!class && color != MPI_UNDEFINED)
		class = make(comm, said, color, created);
	free(said);
	return class;
}

static int split(struct adi_comm *comm, int color, int key, MPI_Comm *newcomm)
{
	if (comm->inter)
		return adi_inter_split(comm, color, key, newcomm);
	struct adi_comm *created;
	int class = adi_comm_divide(comm, color, key, &created);
	*newcomm = class || !created ? MPI_COMM_NULL : adi_comm_handle(created);
	return class;
}

int mpi_comm_split(struct adi_comm *comm, int color, int key, MPI_Comm *newcomm)
{
	*newcomm = MPI_COMM_NULL;
	if (color < 0 && color != MPI_UNDEFINED)
		return adi_error(MPI_ERR_ARG, "color is %d; valid: 0 and above, and MPI_UNDEFINED", color);
	return split(comm, color, key, newcomm);
}

#define SHARED_MEMORY "mpi_shared_memory"

/* The color of this process for a split by the resource that info names; MPI_UNDEFINED: no such resource here. */
static int resource_color(const struct adi_info *info, bool sets, int machine)
{
	const char *type = adi_info_get(info, "mpi_hw_resource_type");
	if (type)
		return strcmp(type, SHARED_MEMORY) ? MPI_UNDEFINED : machine;
	const char *set = sets ? adi_info_get(info, "mpi_pset_name") : NULL;
	if (!set)
		return MPI_UNDEFINED;
	return !strcmp(set, "mpi://WORLD") ? 0 : !strcmp(set, "mpi://SELF") ? adi_job.rank : MPI_UNDEFINED;
}

/* A split without guidance gives strict subsets, or none. */
static int next_level(int machine, bool several, struct adi_info *info, int *color)
{
	*color = several ? machine : MPI_UNDEFINED;
	return info && *color != MPI_UNDEFINED ? adi_info_put(info, "mpi_hw_resource_type", SHARED_MEMORY) : MPI_SUCCESS;
}

static bool type_valid(int split_type)
{
	return split_type == MPI_UNDEFINED || split_type == MPI_COMM_TYPE_SHARED || split_type == MPI_COMM_TYPE_HW_GUIDED ||
	       split_type == MPI_COMM_TYPE_HW_UNGUIDED || split_type == MPI_COMM_TYPE_RESOURCE_GUIDED;
}

int mpi_comm_split_type(struct adi_comm *comm, int split_type, int key, struct adi_info *info, MPI_Comm *newcomm)
{
	int color = MPI_UNDEFINED, machine;
	bool several;
	*newcomm = MPI_COMM_NULL;
	if (!type_valid(split_type))
		return adi_error(
			MPI_ERR_ARG,
			"split_type is %d; valid: MPI_COMM_TYPE_SHARED, _HW_GUIDED, _HW_UNGUIDED, _RESOURCE_GUIDED, "
			"MPI_UNDEFINED",
			split_type);
	/* Processes with the type MPI_UNDEFINED take part too: the others do not know of them. */
	int class = adi_comm_machines(comm, &machine, &several);
	if (class)
		return class;
	switch (split_type) {
	case MPI_COMM_TYPE_SHARED:
		color = machine;
		break;
	case MPI_COMM_TYPE_HW_GUIDED:
		color = resource_color(info, false, machine);
		break;
	case MPI_COMM_TYPE_RESOURCE_GUIDED:
		color = resource_color(info, true, machine);
		break;
	case MPI_COMM_TYPE_HW_UNGUIDED:
		class = next_level(machine, several, info, &color);
		break;
	}
	return class ? class : split(comm, color, key, newcomm);
}
