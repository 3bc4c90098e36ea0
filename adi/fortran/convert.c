/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversions of arguments, and the common blocks whose addresses are special arguments. */
#include "adi/fortran/fortran.h"

#include <stdio.h>
#include <string.h>

/* The program has them too, as common blocks: the dynamic linker gives both the same address. */
#define COMMON __attribute__((aligned(32)))
COMMON MPI_Fint hrmpi_bottom_[1], hrmpi_in_place_[1], hrmpi_buffer_automatic_[1], hrmpi_status_ignore_[MPI_F_STATUS_SIZE],
	hrmpi_statuses_ignore_[MPI_F_STATUS_SIZE], hrmpi_unweighted_[1], hrmpi_weights_empty_[1], hrmpi_errcodes_ignore_[1];
COMMON char hrmpi_argv_null_[1], hrmpi_argvs_null_[1];

static void *memory(size_t bytes)
{
	void *new = malloc(bytes ? bytes : 1);
	if (!new) {
		fprintf(stderr, "headrace: no memory for an argument of %zu bytes in Fortran\n", bytes);
		PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	}
	return new;
}

void hrf_start(struct hrf_handles *handles, MPI_Count n)
{
	handles->n = n > 0 ? (int)n : 0;
	handles->handle = handles->few;
	if ((size_t)handles->n > sizeof handles->few / sizeof *handles->few)
		handles->handle = memory((size_t)handles->n * sizeof *handles->handle);
}

static int neighbors_of(MPI_Comm comm, int send)
{
	int topology = MPI_UNDEFINED, n = 0, other = 0;
	PMPI_Topo_test(comm, &topology);
	if (topology == MPI_CART) {
		PMPI_Cartdim_get(comm, &n);
		return 2 * n;
	}
	if (topology == MPI_GRAPH) {
		PMPI_Comm_rank(comm, &other);
		PMPI_Graph_neighbors_count(comm, other, &n);
	} else if (topology == MPI_DIST_GRAPH) {
		int weighted;
		PMPI_Dist_graph_neighbors_count(comm, send ? &other : &n, send ? &n : &other, &weighted);
	}
	return n;
}

int hrf_peers(MPI_Comm comm, int neighbors, int send)
{
	int inter = 0, n = 0;
	if (comm == MPI_COMM_NULL)
		return 0;
	if (neighbors)
		return neighbors_of(comm, send);
	if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
		return 0;
	if (inter)
		PMPI_Comm_remote_size(comm, &n);
	else
		PMPI_Comm_size(comm, &n);
	return n;
}

char *hrf_string(const char *text, size_t length)
{
	while (length > 0 && text[length - 1] == ' ')
		length--;
	char *string = memory(length + 1);
	memcpy(string, text, length);
	string[length] = '\0';
	return string;
}

char *hrf_key(const char *text, size_t length)
{
	while (length > 0 && *text == ' ') {
		text++;
		length--;
	}
	return hrf_string(text, length);
}

void hrf_give(const char *string, char *text, size_t length)
{
	size_t used = strnlen(string, length);
	memcpy(text, string, used);
	memset(text + used, ' ', length - used);
}
