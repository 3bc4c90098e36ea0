/* SPDX-License-Identifier: BSD-3-Clause */
/* Intercommunicators between the even and the odd ranks: creation, messages, duplicates, splits, subsets, merging. */
#include "check_mpi.h"

#include <string.h>

static int rank, size, side;
static MPI_Comm half;

/* Messages cross, and the sizes are those of even and odd ranks, n and m. */
static void use(MPI_Comm inter, int n, int m)
{
	int flag, local, remote, me, got = -1;
	CHECK(!MPI_Comm_test_inter(inter, &flag));
	CHECK(flag);
	CHECK(!MPI_Comm_size(inter, &local));
	CHECK(!MPI_Comm_remote_size(inter, &remote));
	CHECK(!MPI_Comm_rank(inter, &me));
	CHECK(local == n && remote == m);
	int mine = 10 * side + me;
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Status status;
	if (me < remote) {
		CHECK(!MPI_Isend(&mine, 1, MPI_INT, me, 4, inter, &request));
		CHECK(!MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 4, inter, &status));
		CHECK(got == 10 * !side + me && status.MPI_SOURCE == me);
	}
	CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE));
	/* The remote side's ranks sum up. */
	int sum;
	CHECK(!MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, inter));
	CHECK(sum == m * (m - 1) / 2);
}

static void check_merge(MPI_Comm inter, int low_side, int high)
{
	MPI_Comm merged;
	int n, me, local, remote, local_rank;
	MPI_Comm_size(inter, &local);
	MPI_Comm_remote_size(inter, &remote);
	MPI_Comm_rank(inter, &local_rank);
	CHECK(!MPI_Intercomm_merge(inter, high, &merged));
	MPI_Comm_size(merged, &n);
	MPI_Comm_rank(merged, &me);
	CHECK(n == local + remote);
	if (low_side >= 0)
		CHECK(me == local_rank + (side == low_side ? 0 : remote));
	int sum;
	CHECK(!MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, merged));
	CHECK(sum == n * (n - 1) / 2);
	CHECK(!MPI_Comm_free(&merged));
}

static void check_groups(MPI_Comm inter)
{
	MPI_Group local, remote, own, common;
	int result;
	CHECK(!MPI_Comm_group(inter, &local));
	CHECK(!MPI_Comm_remote_group(inter, &remote));
	CHECK(!MPI_Comm_group(half, &own));
	CHECK(!MPI_Group_compare(local, own, &result));
	CHECK(result == MPI_IDENT);
	CHECK(!MPI_Group_intersection(local, remote, &common));
	CHECK(common == MPI_GROUP_EMPTY);
	MPI_Group_free(&local);
	MPI_Group_free(&remote);
	MPI_Group_free(&own);
}

/* An error says what is wrong with a communicator that has no name. */
static void check_error(MPI_Comm inter)
{
	int value = 1, sum, len, class = MPI_Scan(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
	char text[MPI_MAX_ERROR_STRING];
	CHECK(class == MPI_ERR_COMM);
	CHECK(!MPI_Error_string(class, text, &len));
	CHECK(strstr(text, "comm without a name is an intercommunicator"));
}

static void check_duplicates(MPI_Comm inter, int n, int m)
{
	MPI_Comm copy, other;
	MPI_Request request;
	int result;
	CHECK(!MPI_Comm_dup(inter, &copy));
	CHECK(!MPI_Comm_compare(inter, copy, &result));
	CHECK(result == MPI_CONGRUENT);
	CHECK(!MPI_Comm_compare(inter, half, &result));
	CHECK(result == MPI_UNEQUAL);
	CHECK(!MPI_Comm_idup(copy, &other, &request));
	use(copy, n, m);
	CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE));
	use(other, n, m);
	CHECK(!MPI_Comm_free(&copy));
	CHECK(!MPI_Comm_free(&other));
}

/* The last rank of each side stays out if it has another; then all go into one color of their own rank. */
static void check_split(MPI_Comm inter, int n, int m)
{
	MPI_Comm part;
	int me;
	MPI_Comm_rank(inter, &me);
	CHECK(!MPI_Comm_split(inter, n > 1 && me == n - 1 ? MPI_UNDEFINED : 3, 0, &part));
	CHECK((part == MPI_COMM_NULL) == (n > 1 && me == n - 1));
	if (part != MPI_COMM_NULL) {
		use(part, n > 1 ? n - 1 : n, m > 1 ? m - 1 : m);
		CHECK(!MPI_Comm_free(&part));
	}
	CHECK(!MPI_Comm_split(inter, me, 0, &part));
	CHECK((part == MPI_COMM_NULL) == (me >= m));
	if (part != MPI_COMM_NULL) {
		use(part, 1, 1);
		CHECK(!MPI_Comm_free(&part));
	}
}

/* The leaders alone, in an intercommunicator of one and one. */
static void check_create(MPI_Comm inter)
{
	MPI_Group local, leader;
	MPI_Comm leaders;
	int zero = 0, me;
	MPI_Comm_rank(inter, &me);
	CHECK(!MPI_Comm_group(inter, &local));
	CHECK(!MPI_Group_incl(local, 1, &zero, &leader));
	CHECK(!MPI_Comm_create(inter, leader, &leaders));
	CHECK((leaders == MPI_COMM_NULL) == (me > 0));
	if (!me) {
		use(leaders, 1, 1);
		CHECK(!MPI_Comm_free(&leaders));
	}
	CHECK(!MPI_Comm_create(inter, side ? leader : MPI_GROUP_EMPTY, &leaders));
	CHECK(leaders == MPI_COMM_NULL);
	MPI_Group_free(&local);
	MPI_Group_free(&leader);
}

static void check_from_groups(int n, int m)
{
	MPI_Group all, groups[2];
	MPI_Comm inter;
	int even[1][3] = { { 0, size - 1 - (size - 1) % 2, 2 } };
	CHECK(!MPI_Comm_group(MPI_COMM_WORLD, &all));
	CHECK(!MPI_Group_range_incl(all, 1, even, &groups[0]));
	CHECK(!MPI_Group_range_excl(all, 1, even, &groups[1]));
	CHECK(!MPI_Intercomm_create_from_groups(groups[side], n - 1, groups[!side], m - 1, "test of intercommunicators",
						MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
	use(inter, n, m);
	CHECK(!MPI_Comm_free(&inter));
	MPI_Group_free(&all);
	MPI_Group_free(&groups[0]);
	MPI_Group_free(&groups[1]);
}

int main(void)
{
	CHECK(!MPI_Init(NULL, NULL));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size == 1)
		return MPI_Finalize();
	side = rank % 2;
	int n = (size + 1 - side) / 2, m = size - n;
	MPI_Comm inter, wrong;
	CHECK(!MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half));
	/* The last process of each side leads; peer_comm means nothing to the others. */
	int leads = rank + 2 >= size, remote_leader = rank == size - 1 ? size - 2 : size - 1;
	CHECK(!MPI_Intercomm_create(half, n - 1, leads ? MPI_COMM_WORLD : MPI_COMM_NULL, leads ? remote_leader : -1, 9,
				    &inter));
	use(inter, n, m);
	check_groups(inter);
	check_error(inter);
	check_duplicates(inter, n, m);
	check_split(inter, n, m);
	check_create(inter);
	check_merge(inter, 0, side);
	check_merge(inter, 1, !side);
	check_merge(inter, -1, 0);
	check_from_groups(n, m);
	CHECK(MPI_Intercomm_create(half, n, MPI_COMM_WORLD, 0, 9, &wrong) == MPI_ERR_RANK);
	CHECK(MPI_Intercomm_merge(half, 0, &wrong) == MPI_ERR_COMM);
	CHECK(!MPI_Comm_free(&inter));
	CHECK(!MPI_Comm_free(&half));
	return MPI_Finalize();
}
