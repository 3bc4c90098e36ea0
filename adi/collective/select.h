/* SPDX-License-Identifier: BSD-3-Clause */
/* Which algorithm a collective uses. The table is in select.c; HEADRACE_MPI_ALGORITHM overrides it. */
#ifndef ADI_COLLECTIVE_SELECT_H
#define ADI_COLLECTIVE_SELECT_H

#include <stdbool.h>
#include <stddef.h>

enum adi_collective {
	ADI_COLLECTIVE_BARRIER,
	ADI_COLLECTIVE_BCAST,
	ADI_COLLECTIVE_REDUCE,
	ADI_COLLECTIVE_ALLREDUCE,
	ADI_COLLECTIVE_REDUCE_SCATTER, /* and MPI_Reduce_scatter_block */
	ADI_COLLECTIVE_GATHER,
	ADI_COLLECTIVE_SCATTER,
	ADI_COLLECTIVE_ALLGATHER,      /* and MPI_Allgatherv */
	ADI_COLLECTIVE_ALLTOALL,
	ADI_COLLECTIVES
};

enum adi_algorithm {
	ADI_ALGORITHM_NODE,          /* shared segment: node.h; blocking collectives of ranks on one machine */
	ADI_ALGORITHM_DIRECT,        /* shared segment: node_direct.c; each rank reads the memory of the others */
	ADI_ALGORITHM_TWO_LEVEL,     /* two_level.h; ranks on several machines */
	ADI_ALGORITHM_DISSEMINATION,
	ADI_ALGORITHM_BINOMIAL,
	ADI_ALGORITHM_SCATTER_RING,  /* binomial scatter, ring allgather */
	ADI_ALGORITHM_CHAIN,         /* pipeline through all ranks */
	ADI_ALGORITHM_DOUBLING,      /* recursive doubling */
	ADI_ALGORITHM_RABENSEIFNER,  /* recursive halving, then gather or allgather */
	ADI_ALGORITHM_RING,
	ADI_ALGORITHM_HALVING,       /* recursive halving */
	ADI_ALGORITHM_PAIRWISE,
	ADI_ALGORITHM_LINEAR,        /* between the root and each rank */
	ADI_ALGORITHM_SPREAD,        /* between all ranks at once, up to a limit; large blocks pairwise */
	ADI_ALGORITHM_BRUCK,         /* as doubling, for any number of ranks */
	ADI_ALGORITHMS
};

/* bytes: of the whole vector, or of one block (gather, scatter, allgather, alltoall), the same at all ranks. ranks > 1. ordered:
 * the operation does not commute. may: ADI_MAY_NODE for a blocking collective if the ranks share a segment, ADI_MAY_TWO_LEVEL if
 * their machines are known. All ranks of a collective must get the same answer from the same arguments. */
enum { ADI_MAY_NODE = 1, ADI_MAY_TWO_LEVEL = 2 };
enum adi_algorithm adi_select(enum adi_collective collective, size_t bytes, int ranks, bool ordered, unsigned may);

/* Line i of the table, for headrace-info; false: there is none. bytes and ranks: at most; SIZE_MAX and INT_MAX: any. */
struct adi_select_line {
	const char *collective, *algorithm;
	size_t bytes;
	int ranks;
	bool ordered; /* keeps the order of operands */
};
bool adi_select_line(size_t i, struct adi_select_line *line);

#endif
