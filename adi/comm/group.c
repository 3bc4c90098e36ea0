/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: what they are, queries and comparison (MPI 5.0, section 7.3). group_make.c makes groups of groups. */
#include "adi/bindings/functions.h"
#include "adi/comm/comm.h"

#include <stdlib.h>

struct adi_group adi_group_empty = {
	.object = { .magic = ADI_MAGIC + ADI_GROUP, .references = 1, .constant = (uint16_t)(uintptr_t)MPI_GROUP_EMPTY },
	.rank = MPI_UNDEFINED,
};
struct adi_group *adi_group_all;

/* Whether the ranks follow each other. */
static bool contiguous(int size, const int *world)
{
	for (int i = 1; i < size; i++)
		if (world[i] != world[0] + i)
			return false;
	return true;
}

static int own_rank(const struct adi_group *group)
{
	for (int i = 0; i < group->size; i++)
		if (group->world[i] == adi_job.rank)
			return i;
	return MPI_UNDEFINED;
}

struct adi_group *adi_group_new(int size, int *world)
{
	if (!size) {
		free(world);
		return &adi_group_empty;
	}
	struct adi_group *group = calloc(1, sizeof *group);
	if (!group) {
		free(world);
		return NULL;
	}
	adi_object_init(&group->object, ADI_GROUP);
	group->size = size;
	if (contiguous(size, world)) {
		group->first = world[0];
		free(world);
		group->rank = adi_group_rank(group, adi_job.rank);
	} else {
		group->first = -1;
		group->world = world;
		group->rank = own_rank(group);
	}
	return group;
}

struct adi_group *adi_group_derived(const struct adi_group *from, int size, int *world)
{
	struct adi_group *group = adi_group_new(size, world);
	if (group && size)
		group->session = from->session;
	return group;
}

struct adi_group *adi_group_of_session(const struct adi_group *group, struct adi_session *session)
{
	int *world = malloc((size_t)group->size * sizeof *world);
	for (int i = 0; world && i < group->size; i++)
		world[i] = adi_group_world(group, i);
	struct adi_group *made = world ? adi_group_new(group->size, world) : NULL;
	if (made)
		made->session = session;
	return made;
}

int adi_group_take(MPI_Group handle, const char *argument, struct adi_group **found)
{
	struct adi_group *group = handle == MPI_GROUP_EMPTY ? &adi_group_empty : adi_object_at(handle, ADI_GROUP);
	if (!group)
		return adi_error(MPI_ERR_GROUP, "%s is %s; valid: the handle of a group that was not freed", argument,
				 handle == MPI_GROUP_NULL ? "MPI_GROUP_NULL" : "no group");
	*found = group;
	return MPI_SUCCESS;
}

void adi_group_release(struct adi_group *group)
{
	if (!group || !adi_object_release(&group->object))
		return;
	free(group->world);
	free(group->order);
	free(group);
}

struct place {
	int world, rank;
};

static int by_world(const void *a, const void *b)
{
	int first = ((const struct place *)a)->world, second = ((const struct place *)b)->world;
	return (first > second) - (first < second);
}

/* Sorts the ranks. Returns false without memory. */
static bool sort(struct adi_group *group)
{
	size_t size = (size_t)group->size;
	struct place *place = malloc(size * sizeof *place);
	int *order = malloc(size * sizeof *order);
	if (!place || !order) {
		free(place);
		free(order);
		return false;
	}
	for (int i = 0; i < group->size; i++)
		place[i] = (struct place){ group->world[i], i };
	qsort(place, size, sizeof *place, by_world);
	for (int i = 0; i < group->size; i++)
		order[i] = place[i].rank;
	free(place);
	group->order = order;
	return true;
}

static int search(const struct adi_group *group, int world)
{
	for (int i = 0; i < group->size; i++)
		if (group->world[i] == world)
			return i;
	return MPI_UNDEFINED;
}

int adi_group_rank(struct adi_group *group, int world)
{
	if (!group->world)
		return world >= group->first && world - group->first < group->size ? world - group->first : MPI_UNDEFINED;
	if (!group->order && !sort(group))
		return search(group, world);
	int low = 0, high = group->size;
	while (high - low > 1) {
		int middle = low + (high - low) / 2;
		if (group->world[group->order[middle]] <= world)
			low = middle;
		else
			high = middle;
	}
	return group->world[group->order[low]] == world ? group->order[low] : MPI_UNDEFINED;
}

int mpi_group_size(struct adi_group *group, int *size)
{
	*size = group->size;
	return MPI_SUCCESS;
}

int mpi_group_rank(struct adi_group *group, int *rank)
{
	*rank = group->rank;
	return MPI_SUCCESS;
}

int mpi_group_free(MPI_Group *group)
{
	struct adi_group *found = NULL;
	int class = adi_group_take(*group, "group", &found);
	if (class)
		return class;
	adi_group_release(found);
	*group = MPI_GROUP_NULL;
	return MPI_SUCCESS;
}

int mpi_group_translate_ranks(struct adi_group *group1, int n, const int ranks1[], struct adi_group *group2, int ranks2[])
{
	if (n < 0)
		return adi_error(MPI_ERR_ARG, "n is %d; valid: 0 and above", n);
	if (n && (!ranks1 || !ranks2))
		return adi_error(MPI_ERR_ARG, "%s is a null pointer and n is %d", ranks1 ? "ranks2" : "ranks1", n);
	for (int i = 0; i < n; i++) {
		int rank = ranks1[i];
		if (rank != MPI_PROC_NULL && (rank < 0 || rank >= group1->size))
			return adi_error(MPI_ERR_RANK,
					 "ranks1[%d] is %d; valid: ranks below %d, the size of group1, and MPI_PROC_NULL", i,
					 rank, group1->size);
		ranks2[i] = rank == MPI_PROC_NULL ? rank : adi_group_rank(group2, adi_group_world(group1, rank));
	}
	return MPI_SUCCESS;
}

int adi_group_compared(struct adi_group *group1, struct adi_group *group2)
{
	if (group1 == group2)
		return MPI_IDENT;
	if (group1->size != group2->size)
		return MPI_UNEQUAL;
	int result = MPI_IDENT;
	for (int i = 0; i < group1->size; i++) {
		int world = adi_group_world(group1, i);
		if (world == adi_group_world(group2, i))
			continue;
		if (adi_group_rank(group2, world) == MPI_UNDEFINED)
			return MPI_UNEQUAL;
		result = MPI_SIMILAR;
	}
	return result;
}

int mpi_group_compare(struct adi_group *group1, struct adi_group *group2, int *result)
{
	*result = adi_group_compared(group1, group2);
	return MPI_SUCCESS;
}
