/* SPDX-License-Identifier: BSD-3-Clause */
/* Alltoall, alltoallv and alltoallw: blocking, nonblocking and persistent, on an intra- and an intercommunicator, in place, with
 * derived datatypes, for blocks of random sizes. */
#include "kinds.h"

static MPI_Comm comm;
static int rank, peers;
static bool inter, odd; /* odd: this rank is in the second group of the intercommunicator */

enum shape { EQUAL, V, W, SHAPES };

struct one {
	enum form form;
	enum shape shape;
	const struct kind *send, *receive;
	int units;
	unsigned seed;
	bool in_place;
};

/* Units from rank a to rank b; a is in the second group if a_odd. In place they are the same in both directions. */
static int units_between(const struct one *one, int a, bool a_odd, int b)
{
	if (one->shape == EQUAL)
		return one->units;
	int low = one->in_place && b < a ? b : a, high = one->in_place && b < a ? a : b;
	unsigned state = one->seed + (unsigned)low * 71 + (unsigned)high * 13 + (inter && a_odd ? 1000 : 0);
	next_random(&state);
	return (int)(next_random(&state) % (unsigned)(one->units + 1));
}

/* Arguments of one side. Of w each block has a kind of its own, which peer and seed decide. */
struct side {
	struct layout layout;       /* of v and of equal blocks */
	int counts[64], displs[64]; /* of w: bytes */
	MPI_Datatype types[64];
	const struct kind *kinds[64];
	int *buf, *expected;
	size_t bytes;
};

static void make_side(struct side *side, const struct one *one, const struct kind *kind, const int *units)
{
	unsigned state = one->seed + 3;
	memset(side, 0, sizeof *side);
	if (one->shape != W) {
		side->layout = make_layout(kind, peers, units, one->shape == V ? &state : NULL);
		side->bytes = bytes_of(kind, side->layout.elements);
	}
	for (int i = 0; one->shape == W && i < peers; i++) {
		side->kinds[i] = units[i] ? &kinds[next_random(&state) % KINDS] : NULL;
		side->types[i] = units[i] ? side->kinds[i]->type : MPI_DATATYPE_NULL;
		side->counts[i] = units[i] ? elements_of(side->kinds[i], units[i]) : 0;
		side->displs[i] = (int)side->bytes;
		side->bytes += units[i] ? bytes_of(side->kinds[i], side->counts[i]) : 4;
	}
	side->buf = malloc(side->bytes);
	side->expected = malloc(side->bytes);
	memset(side->buf, 0xff, side->bytes);
	memset(side->expected, 0xff, side->bytes);
}

static void free_side(struct side *side)
{
	free(side->buf);
	free(side->expected);
	free_layout(&side->layout);
}

static void put_block(int *buf, const struct one *one, const struct side *side, int i, int units, int from, int to)
{
	if (one->shape != W)
		put(buf, side->layout.kind, side->layout.displs[i], units, from, to);
	else if (units)
		put((int *)(void *)((char *)buf + side->displs[i]), side->kinds[i], 0, units, from, to);
}

static void call(const struct one *one, const struct side *send, struct side *receive)
{
	const void *sendbuf = one->in_place ? MPI_IN_PLACE : send->buf;
	MPI_Datatype type = one->in_place ? MPI_DATATYPE_NULL : one->send->type;
	const int *counts = one->in_place ? NULL : send->layout.counts, *displs = one->in_place ? NULL : send->layout.displs;
	if (one->shape == EQUAL)
		RUN(one->form, Alltoall, Ialltoall, sendbuf, one->in_place ? -3 : counts[0], type, receive->buf,
		    receive->layout.counts[0], one->receive->type, comm);
	else if (one->shape == V)
		RUN(one->form, Alltoallv, Ialltoallv, sendbuf, counts, displs, type, receive->buf, receive->layout.counts,
		    receive->layout.displs, one->receive->type, comm);
	else if (one->in_place)
		RUN(one->form, Alltoallw, Ialltoallw, MPI_IN_PLACE, NULL, NULL, NULL, receive->buf, receive->counts, receive->displs,
		    receive->types, comm);
	else
		RUN(one->form, Alltoallw, Ialltoallw, sendbuf, send->counts, send->displs, send->types, receive->buf, receive->counts,
		    receive->displs, receive->types, comm);
}

static void exchange(const struct one *one)
{
	int going[64] = { 0 }, coming[64] = { 0 };
	struct side send, receive;
	for (int i = 0; i < peers; i++) {
		going[i] = units_between(one, rank, odd, i);
		coming[i] = units_between(one, i, !odd, rank);
	}
	make_side(&send, one, one->send, going);
	make_side(&receive, one, one->receive, coming);
	for (int i = 0; i < peers; i++) {
		put_block(send.buf, one, &send, i, going[i], rank, i);
		put_block(receive.expected, one, &receive, i, coming[i], i, rank);
		if (one->in_place)
			put_block(receive.buf, one, &receive, i, coming[i], rank, i);
	}
	call(one, &send, &receive);
	CHECK(!memcmp(receive.buf, receive.expected, receive.bytes));
	free_side(&send);
	free_side(&receive);
}

static void all(void)
{
	static const int sizes[] = { 0, 1, 3, 150, 4000 };
	for (int i = 0; i < 5; i++)
		for (int pair = 0; pair < KINDS * KINDS; pair += sizes[i] == 1 ? 1 : 3)
			for (int shape = 0; shape < SHAPES; shape++)
				for (int way = 0; way < FORMS * (inter ? 1 : 2); way++) {
					struct one one = { .form = way % FORMS, .shape = shape, .send = &kinds[pair / KINDS],
							   .receive = &kinds[pair % KINDS], .units = sizes[i],
							   .seed = 5u + (unsigned)pair, .in_place = way >= FORMS };
					exchange(&one);
				}
}

/* Several under way on one communicator, completed in any order. */
static void many(void)
{
	enum { N = 10 };
	MPI_Request request[N];
	int *from = malloc(N * peers * sizeof(int)), *to = malloc(N * peers * sizeof(int)), index;
	for (int k = 0; k < N; k++) {
		for (int i = 0; i < peers; i++)
			from[k * peers + i] = value(rank, i, k);
		MPI_Ialltoall(from + k * peers, 1, MPI_INT, to + k * peers, 1, MPI_INT, comm, &request[k]);
	}
	for (int k = 0; k < N; k++)
		CHECK(!MPI_Waitany(N, request, &index, MPI_STATUS_IGNORE) && index != MPI_UNDEFINED);
	for (int k = 0; k < N; k++)
		for (int i = 0; i < peers; i++)
			CHECK(to[k * peers + i] == value(i, rank, k));
	free(from);
	free(to);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	make_kinds();
	comm = MPI_COMM_WORLD;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &peers);
	all();
	many();
	odd = rank % 2;
	comm = make_inter();
	inter = comm != MPI_COMM_NULL;
	if (inter) {
		MPI_Comm_rank(comm, &rank);
		MPI_Comm_remote_size(comm, &peers);
		all();
		many();
		MPI_Comm_free(&comm);
	}
	free_kinds();
	MPI_Finalize();
	return 0;
}
