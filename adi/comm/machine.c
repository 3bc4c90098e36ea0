/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processes of a communicator are on one machine. */
#include "adi/collective/schedule.h"
#include "adi/comm/inter.h"

#include <stdlib.h>

static int exchange(struct adi_comm *comm, struct adi_machine *all)
{
	struct adi_comm *local = comm->inter ? comm->inside : comm;
	size_t n = (size_t)comm->size;
	int class = adi_allgather(&adi_job.machine, sizeof *all, all, local);
	if (!class && comm->inter)
		class = adi_inter_exchange(comm, all, n * sizeof *all, all + n, (size_t)comm->remote_size * sizeof *all);
	return class;
}

int adi_comm_machines(struct adi_comm *comm, int *number, bool *several)
{
	int n = comm->size + (comm->inter ? comm->remote_size : 0);
	struct adi_machine *all = malloc((size_t)n * sizeof *all);
	if (!all)
		return adi_error(MPI_ERR_NO_MEM, "no memory for the machines of %d processes", n);
	int class = exchange(comm, all);
	*number = adi_job.rank;
	*several = false;
	for (int i = 0; !class && i < n; i++) {
		int world = i < comm->size ? adi_group_world(comm->local, i) : adi_group_world(comm->remote, i - comm->size);
		bool here = adi_machine_same(&all[i], &adi_job.machine);
		if (here && world < *number)
			*number = world;
		*several |= !here;
	}
	free(all);
	return class;
}
