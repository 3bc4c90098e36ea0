/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the tests of collectives: kinds of datatypes whose elements are ints at known places, streams of ints in buffers of
 * such elements, and layouts of blocks. A block has a number of units; a unit is 6 ints, which are whole elements of every kind.
 */
#ifndef TEST_ADI_KINDS_H
#define TEST_ADI_KINDS_H

#include "check_mpi.h"

#include <string.h>

#define KINDS 4
#define UNIT 6
#define SLACK 8 /* ints behind the last element that an element may reach */

struct kind {
	MPI_Datatype type;
	int extent, n, at[3]; /* an element: n ints at these places; the next begins after extent ints */
};
static struct kind kinds[KINDS];

static inline void make_kinds(void)
{
	kinds[0] = (struct kind){ MPI_INT, 1, 1, { 0 } };
	kinds[1] = (struct kind){ MPI_DATATYPE_NULL, 3, 1, { 0 } };
	kinds[2] = (struct kind){ MPI_DATATYPE_NULL, 3, 2, { 0, 2 } };
	kinds[3] = (struct kind){ MPI_DATATYPE_NULL, 4, 3, { 4, 1, 2 } };
	MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &kinds[1].type);
	MPI_Type_vector(2, 1, 2, MPI_INT, &kinds[2].type);
	MPI_Type_indexed(2, (int[]){ 1, 2 }, (int[]){ 4, 1 }, MPI_INT, &kinds[3].type);
	for (int i = 1; i < KINDS; i++)
		MPI_Type_commit(&kinds[i].type);
}

static inline void free_kinds(void)
{
	for (int i = 1; i < KINDS; i++)
		MPI_Type_free(&kinds[i].type);
}

/* The same sequence at all ranks. */
static inline unsigned next_random(unsigned *state)
{
	*state = *state * 1103515245u + 12345u;
	return *state >> 16;
}

static inline int value(int from, int to, int i)
{
	return from * 1000003 + to * 10007 + i * 7 + 1;
}

/* Writes the stream that rank from sends to rank to, beginning with element displ. */
static inline void put(int *buf, const struct kind *kind, int displ, int units, int from, int to)
{
	for (int i = 0; i < units * UNIT; i++)
		buf[(displ + i / kind->n) * kind->extent + kind->at[i % kind->n]] = value(from, to, i);
}

struct layout {
	int n, elements;
	int *counts, *displs;
	const struct kind *kind;
};

static inline int elements_of(const struct kind *kind, int units)
{
	return units * UNIT / kind->n;
}

/* Blocks of these numbers of units one behind the other, or, if state is not NULL, with gaps and the last block first. */
static inline struct layout make_layout(const struct kind *kind, int n, const int *units, unsigned *state)
{
	struct layout layout = { n, 0, malloc(n * sizeof(int)), malloc(n * sizeof(int)), kind };
	for (int k = 0; k < n; k++) {
		int i = state ? n - 1 - k : k;
		layout.counts[i] = elements_of(kind, units[i]);
		layout.displs[i] = layout.elements + (state ? (int)(next_random(state) % 3) : 0);
		layout.elements = layout.displs[i] + layout.counts[i];
	}
	return layout;
}

static inline void free_layout(struct layout *layout)
{
	free(layout->counts);
	free(layout->displs);
}

static inline size_t bytes_of(const struct kind *kind, int elements)
{
	return (size_t)(elements * kind->extent + SLACK) * sizeof(int);
}

/* A buffer in which every int is -1. */
static inline int *make_buffer(const struct kind *kind, int elements)
{
	int *buf = malloc(bytes_of(kind, elements));
	memset(buf, 0xff, bytes_of(kind, elements));
	return buf;
}

static inline void check_equal(const int *buf, const int *expected, const struct kind *kind, int elements)
{
	CHECK(!memcmp(buf, expected, bytes_of(kind, elements)));
}

/* Calls MPI_Name, or MPI_Iname and MPI_Wait, or MPI_Name_init and starts it three times. The last argument is the communicator. */
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
#define RUN(form, Name, Iname, ...)                                                   \
	do {                                                                          \
		MPI_Request request;                                                  \
		if ((form) == BLOCKING) {                                             \
			CHECK(!MPI_##Name(__VA_ARGS__));                              \
		} else if ((form) == NONBLOCKING) {                                   \
			CHECK(!MPI_##Iname(__VA_ARGS__, &request));                   \
			CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE));                \
		} else {                                                              \
			CHECK(!MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request)); \
			for (int run = 0; run < 3; run++) {                           \
				CHECK(!MPI_Start(&request));                          \
				CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE));        \
			}                                                             \
			CHECK(!MPI_Request_free(&request));                           \
		}                                                                     \
	} while (0)

/* An intercommunicator between the even and the odd ranks; MPI_COMM_NULL if there is only one rank. */
static inline MPI_Comm make_inter(void)
{
	int rank, size;
	MPI_Comm half, inter = MPI_COMM_NULL;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size == 1)
		return inter;
	CHECK(!MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
	CHECK(!MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 7, &inter));
	MPI_Comm_free(&half);
	return inter;
}

#endif
