/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups made of groups: set operations, subsets, ranges (MPI 5.0, section 7.3.2). */
#include "adi/bindings/functions.h"
#include "adi/comm/comm.h"

#include <stdlib.h>

static int no_memory(int size)
{
	return adi_error(MPI_ERR_NO_MEM, "no memory for a group of %d processes", size);
}

/* Memory for a group of at most size processes; NULL: no memory. */
static int *room(int size)
{
	return malloc((size ? (size_t)size : 1) * sizeof(int));
}

/* Makes the group and stores its handle. Takes over world. */
static int finish(const struct adi_group *from, int size, int *world, MPI_Group *newgroup)
{
	struct adi_group *group = adi_group_derived(from, size, world);
	if (!group)
		return no_memory(size);
	*newgroup = adi_group_handle(group);
	return MPI_SUCCESS;
}

/* Appends those processes of group which are members of other (member), or are not, to world. Returns the new number. */
static int append(struct adi_group *group, struct adi_group *other, bool member, int *world, int n)
{
	for (int i = 0; i < group->size; i++) {
		int process = adi_group_world(group, i);
		if ((adi_group_rank(other, process) != MPI_UNDEFINED) == member)
			world[n++] = process;
	}
	return n;
}

int mpi_group_union(struct adi_group *group1, struct adi_group *group2, MPI_Group *newgroup)
{
	int *world = room(group1->size + group2->size);
	if (!world)
		return no_memory(group1->size + group2->size);
	for (int i = 0; i < group1->size; i++)
		world[i] = adi_group_world(group1, i);
	return finish(group1, append(group2, group1, false, world, group1->size), world, newgroup);
}

static int select_members(struct adi_group *group1, struct adi_group *group2, bool member, MPI_Group *newgroup)
{
	int *world = room(group1->size);
	if (!world)
		return no_memory(group1->size);
	return finish(group1, append(group1, group2, member, world, 0), world, newgroup);
}

int mpi_group_intersection(struct adi_group *group1, struct adi_group *group2, MPI_Group *newgroup)
{
	return select_members(group1, group2, true, newgroup);
}

int mpi_group_difference(struct adi_group *group1, struct adi_group *group2, MPI_Group *newgroup)
{
	return select_members(group1, group2, false, newgroup);
}

/* Ranks of a group that were chosen, each at most once, in the order of choice. */
struct choice {
	const struct adi_group *group;
	int n;
	int *rank;    /* [group->size] */
	bool *chosen; /* [group->size] */
};

static int choice_start(struct choice *choice, const struct adi_group *group)
{
	*choice = (struct choice){ .group = group };
	choice->rank = room(group->size);
	choice->chosen = calloc(group->size ? (size_t)group->size : 1, sizeof *choice->chosen);
	return choice->rank && choice->chosen ? MPI_SUCCESS : no_memory(group->size);
}

static void choice_end(struct choice *choice)
{
	free(choice->rank);
	free(choice->chosen);
}

static int choose(struct choice *choice, int rank, const char *argument, int i)
{
	if (rank < 0 || rank >= choice->group->size)
		return adi_error(MPI_ERR_RANK, "%s[%d] names rank %d; valid: ranks below %d, the size of the group",
				 argument, i, rank, choice->group->size);
	if (choice->chosen[rank])
		return adi_error(MPI_ERR_RANK, "%s[%d] names rank %d again; valid: each rank once", argument, i, rank);
	choice->chosen[rank] = true;
	choice->rank[choice->n++] = rank;
	return MPI_SUCCESS;
}

static int choose_ranks(struct choice *choice, int n, const int *ranks)
{
	int class = MPI_SUCCESS;
	if (n && !ranks)
		class = adi_error(MPI_ERR_ARG, "the array of ranks or ranges is a null pointer and n is %d", n);
	for (int i = 0; !class && i < n; i++)
		class = choose(choice, ranks[i], "ranks", i);
	return class;
}

static int choose_range(struct choice *choice, const int range[3], int i)
{
	int64_t first = range[0], last = range[1], stride = range[2];
	int size = choice->group->size;
	if (!stride || (first < last && stride < 0) || (first > last && stride > 0))
		return adi_error(MPI_ERR_ARG, "ranges[%d] is (%d, %d, %d); valid: a stride that leads from first to last", i,
				 range[0], range[1], range[2]);
	if (first < 0 || first >= size || last < 0 || last >= size)
		return adi_error(MPI_ERR_RANK, "ranges[%d] is (%d, %d, %d); valid: ranks below %d, the size of the group", i,
				 range[0], range[1], range[2], size);
	int class = MPI_SUCCESS;
	for (int64_t rank = first; !class && (stride > 0 ? rank <= last : rank >= last); rank += stride)
		class = choose(choice, (int)rank, "ranges", i);
	return class;
}

static int choose_ranges(struct choice *choice, int n, int ranges[][3])
{
	int class = n && !ranges ? adi_error(MPI_ERR_ARG, "ranges is a null pointer and n is %d", n) : MPI_SUCCESS;
	for (int i = 0; !class && i < n; i++)
		class = choose_range(choice, ranges[i], i);
	return class;
}

/* The group of the chosen ranks (keep), or of the others. */
static int finish_choice(struct choice *choice, bool keep, MPI_Group *newgroup)
{
	const struct adi_group *group = choice->group;
	int size = keep ? choice->n : group->size - choice->n;
	int *world = room(size), n = 0;
	if (!world)
		return no_memory(size);
	for (int i = 0; i < (keep ? choice->n : group->size); i++)
		if (keep || !choice->chosen[i])
			world[n++] = adi_group_world(group, keep ? choice->rank[i] : i);
	return finish(group, size, world, newgroup);
}

static int select_ranks(struct adi_group *group, int n, const int *ranks, int (*ranges)[3], bool keep, MPI_Group *newgroup)
{
	if (n < 0)
		return adi_error(MPI_ERR_ARG, "n is %d; valid: 0 and above", n);
	struct choice choice;
	int class = choice_start(&choice, group);
	if (!class)
		class = ranges ? choose_ranges(&choice, n, ranges) : choose_ranks(&choice, n, ranks);
	if (!class)
		class = finish_choice(&choice, keep, newgroup);
	choice_end(&choice);
	return class;
}

int mpi_group_incl(struct adi_group *group, int n, const int ranks[], MPI_Group *newgroup)
{
	return select_ranks(group, n, ranks, NULL, true, newgroup);
}

int mpi_group_excl(struct adi_group *group, int n, const int ranks[], MPI_Group *newgroup)
{
	return select_ranks(group, n, ranks, NULL, false, newgroup);
}

int mpi_group_range_incl(struct adi_group *group, int n, int ranges[][3], MPI_Group *newgroup)
{
	return select_ranks(group, n, NULL, ranges, true, newgroup);
}

int mpi_group_range_excl(struct adi_group *group, int n, int ranges[][3], MPI_Group *newgroup)
{
	return select_ranks(group, n, NULL, ranges, false, newgroup);
}
