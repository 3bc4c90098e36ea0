/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: constructors, set operations, ranges, comparison and translation, with contiguous and scattered members. */
#include "check_mpi.h"

static int rank, size;
static MPI_Group all;

static int size_of(MPI_Group group)
{
	int n;
	CHECK(!MPI_Group_size(group, &n));
	return n;
}

/* The world rank of a rank of the group. */
static int world_of(MPI_Group group, int r)
{
	int world;
	CHECK(!MPI_Group_translate_ranks(group, 1, &r, all, &world));
	return world;
}

static int compare(MPI_Group a, MPI_Group b)
{
	int result;
	CHECK(!MPI_Group_compare(a, b, &result));
	return result;
}

static void drop(MPI_Group *group)
{
	CHECK(!MPI_Group_free(group));
	CHECK(*group == MPI_GROUP_NULL);
}

/* The processes with the residue, from the highest down. */
static MPI_Group scattered(int modulus, int residue)
{
	int *ranks = malloc((size_t)size * sizeof(int)), n = 0;
	for (int i = size - 1; i >= 0; i--)
		if (i % modulus == residue)
			ranks[n++] = i;
	MPI_Group group;
	CHECK(!MPI_Group_incl(all, n, ranks, &group));
	CHECK(size_of(group) == n);
	for (int i = 0; i < n; i++)
		CHECK(world_of(group, i) == ranks[i]);
	free(ranks);
	return group;
}

static void check_own_rank(void)
{
	MPI_Group group = scattered(2, rank % 2);
	int r;
	CHECK(!MPI_Group_rank(group, &r));
	CHECK(world_of(group, r) == rank);
	drop(&group);
	group = scattered(2, (rank + 1) % 2);
	CHECK(!MPI_Group_rank(group, &r));
	CHECK(r == MPI_UNDEFINED);
	drop(&group);
}

static void check_sets(void)
{
	MPI_Group even = scattered(2, 0), odd = scattered(2, 1), third = scattered(3, 0), both, common, rest, none;
	CHECK(!MPI_Group_union(even, odd, &both));
	CHECK(size_of(both) == size);
	CHECK(world_of(both, 0) == (size - 1) / 2 * 2);
	CHECK(compare(both, all) == (size <= 2 ? MPI_IDENT : MPI_SIMILAR));
	CHECK(!MPI_Group_intersection(even, third, &common));
	CHECK(size_of(common) == (size + 5) / 6);
	CHECK(!MPI_Group_difference(both, odd, &rest));
	CHECK(compare(rest, even) == MPI_IDENT);
	CHECK(!MPI_Group_intersection(even, odd, &none));
	CHECK(none == MPI_GROUP_EMPTY);
	CHECK(compare(none, MPI_GROUP_EMPTY) == MPI_IDENT);
	CHECK(compare(even, MPI_GROUP_EMPTY) == MPI_UNEQUAL);
	CHECK(size < 2 || compare(even, all) == MPI_UNEQUAL);
	CHECK(!MPI_Group_union(MPI_GROUP_EMPTY, all, &none));
	CHECK(compare(none, all) == MPI_IDENT);
	drop(&even), drop(&odd), drop(&third), drop(&both), drop(&common), drop(&rest), drop(&none);
}

static void check_ranges(void)
{
	int down[1][3] = { { size - 1, 0, -1 } }, even[2][3] = { { 0, size - 1, 2 }, { 0, 0, 1 } };
	MPI_Group reversed, evens, odds, expected;
	CHECK(!MPI_Group_range_incl(all, 1, down, &reversed));
	for (int i = 0; i < size; i++)
		CHECK(world_of(reversed, i) == size - 1 - i);
	CHECK(!MPI_Group_range_incl(all, 1, even, &evens));
	CHECK(!MPI_Group_range_excl(all, 1, even, &odds));
	CHECK(size_of(evens) == (size + 1) / 2 && size_of(odds) == size / 2);
	CHECK(!MPI_Group_difference(all, evens, &expected));
	CHECK(compare(odds, expected) == MPI_IDENT);
	/* Rank 0 is named twice. */
	MPI_Group wrong;
	CHECK(MPI_Group_range_incl(all, 2, even, &wrong) == MPI_ERR_RANK);
	even[0][2] = 0;
	CHECK(MPI_Group_range_incl(all, 1, even, &wrong) == MPI_ERR_ARG);
	drop(&reversed), drop(&evens), drop(&odds), drop(&expected);
}

static void check_exclusion(void)
{
	int first = 0, twice[] = { 0, 0 }, outside = size;
	MPI_Group rest, same, wrong;
	CHECK(!MPI_Group_excl(all, 1, &first, &rest));
	CHECK(size_of(rest) == size - 1);
	CHECK(size == 1 ? rest == MPI_GROUP_EMPTY : world_of(rest, 0) == 1);
	CHECK(!MPI_Group_excl(all, 0, NULL, &same));
	CHECK(compare(same, all) == MPI_IDENT);
	CHECK(MPI_Group_excl(all, 2, twice, &wrong) == MPI_ERR_RANK);
	CHECK(MPI_Group_incl(all, 2, twice, &wrong) == MPI_ERR_RANK);
	CHECK(MPI_Group_incl(all, 1, &outside, &wrong) == MPI_ERR_RANK);
	CHECK(MPI_Group_incl(all, -1, &outside, &wrong) == MPI_ERR_ARG);
	drop(&rest), drop(&same);
}

static void check_translation(void)
{
	MPI_Group even = scattered(2, 0);
	int ranks[] = { 0, MPI_PROC_NULL, size - 1 }, to[3], wrong = size;
	CHECK(!MPI_Group_translate_ranks(all, 3, ranks, even, to));
	CHECK(to[0] == size_of(even) - 1);
	CHECK(to[1] == MPI_PROC_NULL);
	CHECK(to[2] == (size % 2 ? 0 : MPI_UNDEFINED));
	CHECK(MPI_Group_translate_ranks(all, 1, &wrong, even, to) == MPI_ERR_RANK);
	CHECK(!MPI_Group_translate_ranks(all, 0, NULL, even, NULL));
	drop(&even);
}

static void check_invalid(void)
{
	MPI_Group null = MPI_GROUP_NULL;
	int n;
	CHECK(MPI_Group_size(MPI_GROUP_NULL, &n) == MPI_ERR_GROUP);
	CHECK(MPI_Group_free(&null) == MPI_ERR_GROUP);
	CHECK(!MPI_Group_size(MPI_GROUP_EMPTY, &n));
	CHECK(n == 0);
}

int main(void)
{
	CHECK(!MPI_Init(NULL, NULL));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(!MPI_Comm_group(MPI_COMM_WORLD, &all));
	CHECK(size_of(all) == size);
	check_own_rank();
	check_sets();
	check_ranges();
	check_exclusion();
	check_translation();
	check_invalid();
	drop(&all);
	return MPI_Finalize();
}
