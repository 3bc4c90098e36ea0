/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the edges of distributed graphs, for the files of comm/ only. All return an error class. */
#ifndef ADI_COMM_EDGES_H
#define ADI_COMM_EDGES_H

#include "adi/comm/comm.h"

int adi_no_memory_for_edges(int64_t n);
/* n ranks of comm. */
int adi_check_edges(const struct adi_comm *comm, int n, const int *ranks, const char *argument);
/* Weights of n edges, or MPI_UNWEIGHTED; without edges also MPI_WEIGHTS_EMPTY. */
int adi_check_weights(int n, const int *weights, const char *argument);

#endif
