/* SPDX-License-Identifier: BSD-3-Clause */
/* Intracommunicators: duplicates, splits, creation from groups, names, hints, and that their messages do not meet. */
#include "check_mpi.h"

#include <string.h>

static int rank, size;

static int compare(MPI_Comm a, MPI_Comm b)
{
	int result;
	CHECK(!MPI_Comm_compare(a, b, &result));
	return result;
}

/* Communication on comm works: its ranks sum up, and a message goes round. */
static void use(MPI_Comm comm, int expected_size)
{
	int n, me, got = -1, sum;
	CHECK(!MPI_Comm_size(comm, &n));
	CHECK(!MPI_Comm_rank(comm, &me));
	CHECK(n == expected_size);
	CHECK(!MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % n, 3, &got, 1, MPI_INT, (me + n - 1) % n, 3, comm,
			    MPI_STATUS_IGNORE));
	CHECK(got == (me + n - 1) % n);
	CHECK(!MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm));
	CHECK(sum == n * (n - 1) / 2);
}

/* Receives on one communicator do not take messages of another one with the same tag. */
static void check_apart(MPI_Comm a, MPI_Comm b)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, one = 1, two = 2, got[2] = { 0 };
	MPI_Request request[4];
	CHECK(!MPI_Irecv(&got[0], 1, MPI_INT, before, 0, a, &request[0]));
	CHECK(!MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, b, &request[1]));
	CHECK(!MPI_Isend(&two, 1, MPI_INT, next, 0, b, &request[2]));
	CHECK(!MPI_Isend(&one, 1, MPI_INT, next, 0, a, &request[3]));
	CHECK(!MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
	CHECK(got[0] == 1 && got[1] == 2);
}

static int copies, deletions;

static int copy_attribute(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	(void)comm, (void)keyval;
	copies++;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return *(int *)extra;
}

static int delete_attribute(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm, (void)keyval, (void)value, (void)extra;
	deletions++;
	return MPI_SUCCESS;
}

static void check_dup(void)
{
	int keyval, flag, failure = 0;
	char *value;
	MPI_Comm a, b;
	CHECK(!MPI_Comm_create_keyval(copy_attribute, delete_attribute, &keyval, &failure));
	CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &a));
	CHECK(compare(a, MPI_COMM_WORLD) == MPI_CONGRUENT);
	CHECK(compare(a, a) == MPI_IDENT);
	CHECK(!MPI_Comm_set_attr(a, keyval, &copies));
	CHECK(!MPI_Comm_dup(a, &b));
	CHECK(!MPI_Comm_get_attr(b, keyval, &value, &flag));
	CHECK(flag && value == (char *)&copies + 1);
	check_apart(a, b);
	CHECK(!MPI_Comm_free(&b));
	CHECK(b == MPI_COMM_NULL);
	CHECK(copies == 1 && deletions == 1);
	failure = MPI_ERR_OTHER;
	CHECK(MPI_Comm_dup(a, &b) == MPI_ERR_OTHER);
	CHECK(MPI_Comm_idup(a, &b, &(MPI_Request){ MPI_REQUEST_NULL }) == MPI_ERR_OTHER);
	use(a, size);
	CHECK(!MPI_Comm_free(&a));
	CHECK(!MPI_Comm_free_keyval(&keyval));
	CHECK(deletions == 2);
}

/* Several duplicates are under way at once, and messages between. */
static void check_idup(void)
{
	MPI_Comm comm[4];
	MPI_Request request[4];
	for (int i = 0; i < 4; i++)
		CHECK(!MPI_Comm_idup(i ? MPI_COMM_WORLD : MPI_COMM_SELF, &comm[i], &request[i]));
	use(MPI_COMM_WORLD, size);
	CHECK(!MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
	use(comm[0], 1);
	check_apart(comm[1], comm[2]);
	check_apart(comm[3], MPI_COMM_WORLD);
	for (int i = 0; i < 4; i++)
		CHECK(!MPI_Comm_free(&comm[i]));
}

static void check_split(void)
{
	MPI_Comm half, reversed, none, shared;
	CHECK(!MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
	use(half, (size + 1 - rank % 2) / 2);
	CHECK(!MPI_Comm_split(MPI_COMM_WORLD, 7, -rank, &reversed));
	int r;
	MPI_Comm_rank(reversed, &r);
	CHECK(r == size - 1 - rank);
	use(reversed, size);
	CHECK(compare(reversed, MPI_COMM_WORLD) == (size == 1 ? MPI_CONGRUENT : MPI_SIMILAR));
	CHECK(!MPI_Comm_split(MPI_COMM_WORLD, rank ? 1 : MPI_UNDEFINED, 0, &none));
	CHECK((none == MPI_COMM_NULL) == !rank);
	if (rank) {
		use(none, size - 1);
		CHECK(!MPI_Comm_free(&none));
	}
	CHECK(MPI_Comm_split(MPI_COMM_WORLD, -3, 0, &none) == MPI_ERR_ARG);
	CHECK(!MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
	MPI_Comm_size(shared, &r);
	use(shared, r);
	CHECK(!MPI_Comm_split_type(half, MPI_UNDEFINED, 0, MPI_INFO_NULL, &none));
	CHECK(none == MPI_COMM_NULL);
	CHECK(!MPI_Comm_free(&half));
	CHECK(!MPI_Comm_free(&reversed));
	CHECK(!MPI_Comm_free(&shared));
}

static void check_guided(void)
{
	MPI_Info info;
	MPI_Comm comm;
	CHECK(!MPI_Info_create(&info));
	CHECK(!MPI_Info_set(info, "mpi_hw_resource_type", "no such resource"));
	CHECK(!MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm));
	CHECK(comm == MPI_COMM_NULL);
	CHECK(!MPI_Info_delete(info, "mpi_hw_resource_type"));
	CHECK(!MPI_Info_set(info, "mpi_pset_name", "mpi://SELF"));
	CHECK(!MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &comm));
	CHECK(compare(comm, MPI_COMM_SELF) == MPI_CONGRUENT);
	CHECK(!MPI_Comm_free(&comm));
	CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, 1, 0, info, &comm) == MPI_ERR_ARG);
	CHECK(!MPI_Info_free(&info));
}

/* Even and odd ranks create at the same time, each with a group of their own. */
static void check_create(void)
{
	MPI_Group all, group;
	MPI_Comm comm, self;
	int range[1][3] = { { rank % 2, size - 1 - (size - 1 - rank % 2) % 2, 2 } };
	CHECK(!MPI_Comm_group(MPI_COMM_WORLD, &all));
	CHECK(!MPI_Group_range_incl(all, 1, range, &group));
	int n = (size + 1 - rank % 2) / 2;
	CHECK(!MPI_Comm_create(MPI_COMM_WORLD, group, &comm));
	use(comm, n);
	CHECK(!MPI_Comm_free(&comm));
	for (int tag = 0; tag < 3; tag++) {
		CHECK(!MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &comm));
		use(comm, n);
		CHECK(!MPI_Comm_free(&comm));
	}
	CHECK(!MPI_Comm_create_from_group(group, "test of communicators", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
	use(comm, n);
	CHECK(!MPI_Comm_free(&comm));
	CHECK(!MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
	CHECK(comm == MPI_COMM_NULL);
	CHECK(MPI_Comm_create(MPI_COMM_SELF, all, &self) == (size == 1 ? MPI_SUCCESS : MPI_ERR_GROUP));
	if (size == 1)
		CHECK(!MPI_Comm_free(&self));
	CHECK(!MPI_Group_free(&all));
	CHECK(!MPI_Group_free(&group));
}

static void check_names(void)
{
	char name[MPI_MAX_OBJECT_NAME], text[2 * MPI_MAX_OBJECT_NAME];
	int len;
	MPI_Comm comm;
	CHECK(!MPI_Comm_get_name(MPI_COMM_WORLD, name, &len));
	CHECK(!strcmp(name, "MPI_COMM_WORLD") && len == 14);
	CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	CHECK(!MPI_Comm_get_name(comm, name, &len));
	CHECK(!strcmp(name, "") && len == 0);
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = 0;
	CHECK(!MPI_Comm_set_name(comm, text));
	CHECK(!MPI_Comm_get_name(comm, name, &len));
	CHECK(len == MPI_MAX_OBJECT_NAME - 1 && (int)strlen(name) == len);
	CHECK(!MPI_Comm_free(&comm));
}

static void check_hints(void)
{
	MPI_Info info, used;
	MPI_Comm comm;
	char value[8];
	int len = sizeof value, flag;
	CHECK(!MPI_Info_create(&info));
	CHECK(!MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
	CHECK(!MPI_Info_set(info, "unknown", "true"));
	CHECK(!MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
	CHECK(!MPI_Comm_get_info(comm, &used));
	CHECK(!MPI_Info_get_string(used, "mpi_assert_no_any_tag", &len, value, &flag));
	CHECK(flag && !strcmp(value, "true"));
	CHECK(!MPI_Info_get_string(used, "unknown", &len, value, &flag));
	CHECK(!flag);
	CHECK(!MPI_Info_free(&used));
	CHECK(!MPI_Info_free(&info));
	CHECK(!MPI_Comm_free(&comm));
}

/* A communicator that is freed while a message is under way lives until the message has arrived. */
static void check_pending(void)
{
	MPI_Comm comm;
	MPI_Request request[2];
	int got = -1;
	CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	CHECK(!MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 5, comm, &request[0]));
	CHECK(!MPI_Barrier(comm));
	CHECK(!MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 5, comm, &request[1]));
	CHECK(!MPI_Comm_free(&comm));
	CHECK(!MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
	CHECK(got == (rank + size - 1) % size);
}

/* Contexts of communicators that were freed come back. */
static void check_many(void)
{
	enum { KEPT = 50 };
	MPI_Comm kept[KEPT], comm;
	for (int i = 0; i < KEPT; i++)
		CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &kept[i]));
	for (int i = 0; i < 2000; i++) {
		CHECK(!MPI_Comm_split(kept[i % KEPT], 0, 0, &comm));
		CHECK(!MPI_Comm_free(&comm));
	}
	for (int i = 1; i < KEPT; i++)
		check_apart(kept[i - 1], kept[i]);
	for (int i = 0; i < KEPT; i++)
		CHECK(!MPI_Comm_free(&kept[i]));
}

static void check_invalid(void)
{
	MPI_Comm comm = MPI_COMM_NULL, world = MPI_COMM_WORLD;
	MPI_Group group;
	int n;
	CHECK(MPI_Comm_size(comm, &n) == MPI_ERR_COMM);
	CHECK(MPI_Comm_free(&comm) == MPI_ERR_COMM);
	CHECK(MPI_Comm_free(&world) == MPI_ERR_COMM);
	CHECK(MPI_Comm_remote_size(MPI_COMM_WORLD, &n) == MPI_ERR_COMM);
	CHECK(MPI_Comm_remote_group(MPI_COMM_WORLD, &group) == MPI_ERR_COMM);
	CHECK(!MPI_Comm_get_parent(&comm));
	CHECK(comm == MPI_COMM_NULL);
}

int main(void)
{
	CHECK(!MPI_Init(NULL, NULL));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	check_dup();
	check_idup();
	check_split();
	check_guided();
	check_create();
	check_names();
	check_hints();
	check_pending();
	check_many();
	check_invalid();
	return MPI_Finalize();
}
