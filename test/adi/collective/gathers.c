/* SPDX-License-Identifier: BSD-3-Clause */
/* Gather, scatter and allgather, with and without v: blocking, nonblocking and persistent, on an intra- and an intercommunicator,
 * in place, with derived datatypes, for blocks of random sizes. Arguments that are not significant are invalid. */
#include "kinds.h"

struct place {
	MPI_Comm comm;
	int rank, peers; /* peers: ranks that send to a root or get from it */
	bool inter;
	bool here;       /* intercommunicator: roots are in this group */
};

static struct place place_of(MPI_Comm comm, bool here)
{
	struct place place = { .comm = comm, .here = here };
	int inter;
	MPI_Comm_rank(comm, &place.rank);
	MPI_Comm_test_inter(comm, &inter);
	place.inter = inter;
	if (inter)
		MPI_Comm_remote_size(comm, &place.peers);
	else
		MPI_Comm_size(comm, &place.peers);
	return place;
}

/* What this rank passes as root: of several ranks in the group of the root. */
static int root_argument(const struct place *place, int root)
{
	if (!place->inter || !place->here)
		return root;
	return place->rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

struct one {
	enum form form;
	const struct kind *send, *receive;
	int units;      /* of every block, if not v */
	unsigned seed;  /* v: of the sizes; 0: not v */
	bool in_place;
};

static void sizes(const struct one *one, int n, int *units)
{
	unsigned state = one->seed;
	for (int i = 0; i < n; i++)
		units[i] = one->seed ? (int)(next_random(&state) % (unsigned)(one->units + 1)) : one->units;
}

static void gather_at_root(const struct place *place, const struct one *one, int root)
{
	int units[64];
	unsigned state = one->seed + 1;
	sizes(one, place->peers, units);
	const struct kind *kind = one->receive;
	struct layout layout = make_layout(kind, place->peers, units, one->seed ? &state : NULL);
	int *buf = make_buffer(kind, layout.elements), *expected = make_buffer(kind, layout.elements);
	for (int i = 0; i < place->peers; i++)
		put(expected, kind, layout.displs[i], units[i], i, root);
	int own = place->inter ? 0 : units[place->rank];
	int *mine = make_buffer(one->send, elements_of(one->send, own));
	put(mine, one->send, 0, own, place->rank, root);
	bool in_place = one->in_place && !place->inter;
	if (in_place)
		put(buf, kind, layout.displs[place->rank], own, place->rank, root);
	const void *sendbuf = in_place ? MPI_IN_PLACE : mine;
	MPI_Datatype type = in_place || place->inter ? MPI_DATATYPE_NULL : one->send->type;
	int count = in_place || place->inter ? -3 : elements_of(one->send, own);
	int argument = root_argument(place, root);
	if (one->seed)
		RUN(one->form, Gatherv, Igatherv, sendbuf, count, type, buf, layout.counts, layout.displs, kind->type, argument,
		    place->comm);
	else
		RUN(one->form, Gather, Igather, sendbuf, count, type, buf, layout.counts[0], kind->type, argument, place->comm);
	check_equal(buf, expected, kind, layout.elements);
	free(buf);
	free(expected);
	free(mine);
	free_layout(&layout);
}

static void gather_elsewhere(const struct place *place, const struct one *one, int root)
{
	int units[64], me = place->rank;
	sizes(one, me + 1, units);
	bool sends = !place->inter || !place->here;
	const struct kind *kind = one->send;
	int *mine = make_buffer(kind, elements_of(kind, units[me]));
	put(mine, kind, 0, units[me], me, root);
	MPI_Datatype type = sends ? kind->type : MPI_DATATYPE_NULL;
	int count = sends ? elements_of(kind, units[me]) : -3, argument = root_argument(place, root);
	if (one->seed)
		RUN(one->form, Gatherv, Igatherv, mine, count, type, NULL, NULL, NULL, MPI_DATATYPE_NULL, argument, place->comm);
	else
		RUN(one->form, Gather, Igather, mine, count, type, NULL, -5, MPI_DATATYPE_NULL, argument, place->comm);
	free(mine);
}

static void scatter_at_root(const struct place *place, const struct one *one, int root)
{
	int units[64];
	unsigned state = one->seed + 1;
	sizes(one, place->peers, units);
	const struct kind *kind = one->send;
	struct layout layout = make_layout(kind, place->peers, units, one->seed ? &state : NULL);
	int *buf = make_buffer(kind, layout.elements);
	for (int i = 0; i < place->peers; i++)
		put(buf, kind, layout.displs[i], units[i], root, i);
	bool in_place = one->in_place && !place->inter, gets = !in_place && !place->inter;
	int own = gets ? units[place->rank] : 0, elements = elements_of(one->receive, own);
	int *mine = make_buffer(one->receive, elements), *expected = make_buffer(one->receive, elements);
	put(expected, one->receive, 0, own, root, place->rank);
	void *recvbuf = in_place ? MPI_IN_PLACE : mine;
	MPI_Datatype type = gets ? one->receive->type : MPI_DATATYPE_NULL;
	int count = gets ? elements : -3, argument = root_argument(place, root);
	if (one->seed)
		RUN(one->form, Scatterv, Iscatterv, buf, layout.counts, layout.displs, kind->type, recvbuf, count, type, argument,
		    place->comm);
	else
		RUN(one->form, Scatter, Iscatter, buf, layout.counts[0], kind->type, recvbuf, count, type, argument, place->comm);
	check_equal(mine, expected, one->receive, elements);
	free(buf);
	free(expected);
	free(mine);
	free_layout(&layout);
}

static void scatter_elsewhere(const struct place *place, const struct one *one, int root)
{
	int units[64], me = place->rank;
	sizes(one, me + 1, units);
	bool gets = !place->inter || !place->here;
	const struct kind *kind = one->receive;
	int elements = gets ? elements_of(kind, units[me]) : 0;
	int *mine = make_buffer(kind, elements), *expected = make_buffer(kind, elements);
	if (gets)
		put(expected, kind, 0, units[me], root, me);
	MPI_Datatype type = gets ? kind->type : MPI_DATATYPE_NULL;
	int count = gets ? elements : -3, argument = root_argument(place, root);
	if (one->seed)
		RUN(one->form, Scatterv, Iscatterv, NULL, NULL, NULL, MPI_DATATYPE_NULL, mine, count, type, argument, place->comm);
	else
		RUN(one->form, Scatter, Iscatter, NULL, -5, MPI_DATATYPE_NULL, mine, count, type, argument, place->comm);
	check_equal(mine, expected, kind, elements);
	free(expected);
	free(mine);
}

/* In an intercommunicator the blocks that one group sends have the sizes of the seed, those of the other group have others. */
static void allgather(const struct place *place, const struct one *one)
{
	int to_send[64], units[64], me = place->rank;
	struct one other = *one;
	if (place->inter && one->seed)
		other.seed += 100;
	unsigned state = one->seed + 1;
	sizes(place->here ? one : &other, me + 1, to_send);
	sizes(place->here ? &other : one, place->peers, units);
	const struct kind *kind = one->receive;
	struct layout layout = make_layout(kind, place->peers, units, one->seed ? &state : NULL);
	int *buf = make_buffer(kind, layout.elements), *expected = make_buffer(kind, layout.elements);
	for (int i = 0; i < place->peers; i++)
		put(expected, kind, layout.displs[i], units[i], i, 0);
	int count = elements_of(one->send, to_send[me]);
	int *mine = make_buffer(one->send, count);
	put(mine, one->send, 0, to_send[me], me, 0);
	bool in_place = one->in_place && !place->inter;
	if (in_place)
		put(buf, kind, layout.displs[me], units[me], me, 0);
	const void *sendbuf = in_place ? MPI_IN_PLACE : mine;
	MPI_Datatype type = in_place ? MPI_DATATYPE_NULL : one->send->type;
	if (one->seed)
		RUN(one->form, Allgatherv, Iallgatherv, sendbuf, count, type, buf, layout.counts, layout.displs, kind->type,
		    place->comm);
	else
		RUN(one->form, Allgather, Iallgather, sendbuf, count, type, buf, layout.counts[0], kind->type, place->comm);
	check_equal(buf, expected, kind, layout.elements);
	free(buf);
	free(expected);
	free(mine);
	free_layout(&layout);
}

/* roots: ranks in the group that has the root. */
static void all_forms(const struct place *place, struct one *one, int roots)
{
	for (int form = 0; form < FORMS; form++) {
		one->form = form;
		allgather(place, one);
		for (int root = 0; root < roots; root++) {
			bool here = place->rank == root && place->here;
			(here ? gather_at_root : gather_elsewhere)(place, one, root);
			(here ? scatter_at_root : scatter_elsewhere)(place, one, root);
		}
	}
}

static void all_sizes(const struct place *place, int roots)
{
	static const int sizes_in_units[] = { 0, 1, 3, 150, 3000 };
	for (int i = 0; i < 5; i++)
		for (int pair = 0; pair < KINDS * KINDS; pair += sizes_in_units[i] == 1 ? 1 : 5)
			for (int way = 0; way < 4; way++) {
				struct one one = { .send = &kinds[pair / KINDS], .receive = &kinds[pair % KINDS],
						   .units = sizes_in_units[i], .seed = way & 1 ? 17u + (unsigned)pair : 0,
						   .in_place = way & 2 };
				all_forms(place, &one, roots);
			}
}

/* Several of different kinds under way, which end in another order. */
static void many(const struct place *place)
{
	enum { N = 12 };
	MPI_Request request[2 * N];
	int n = place->peers, *all = malloc(N * n * sizeof(int)), mine[N], got[N], *sums = malloc(N * n * sizeof(int));
	for (int k = 0; k < N; k++) {
		mine[k] = value(place->rank, k, 0);
		for (int i = 0; i < n; i++)
			sums[k * n + i] = value(k % n, i, k);
		MPI_Iallgather(&mine[k], 1, MPI_INT, all + k * n, 1, MPI_INT, place->comm, &request[2 * k]);
		MPI_Iscatter(sums + k * n, 1, MPI_INT, &got[k], 1, MPI_INT, k % n, place->comm, &request[2 * k + 1]);
	}
	for (int k = 2 * N - 1; k >= 0; k -= 2)
		MPI_Wait(&request[k], MPI_STATUS_IGNORE);
	MPI_Waitall(2 * N, request, MPI_STATUSES_IGNORE);
	for (int k = 0; k < N; k++) {
		CHECK(got[k] == value(k % n, place->rank, k));
		for (int i = 0; i < n; i++)
			CHECK(all[k * n + i] == value(i, k, 0));
	}
	free(all);
	free(sums);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	make_kinds();
	struct place world = place_of(MPI_COMM_WORLD, true);
	all_sizes(&world, world.peers);
	many(&world);
	MPI_Comm inter = make_inter();
	if (inter != MPI_COMM_NULL)
		for (int odd = 0; odd < 2; odd++) {
			struct place place = place_of(inter, world.rank % 2 == odd);
			all_sizes(&place, odd ? world.peers / 2 : (world.peers + 1) / 2);
		}
	if (inter != MPI_COMM_NULL)
		MPI_Comm_free(&inter);
	free_kinds();
	MPI_Finalize();
	return 0;
}
