/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks of a communicator are on one machine, and barrier, bcast, reduce and allreduce in two levels: two_level.h. */
#include "adi/collective/two_level.h"
#include "adi/collective/node.h"

#include <stdlib.h>

/* ---- machines ---- */

void adi_levels_free(struct adi_levels *levels)
{
	if (!levels)
		return;
	free(levels->machine);
	free(levels);
}

static struct adi_levels *levels_new(int size)
{
	struct adi_levels *levels = calloc(1, sizeof *levels);
	if (!levels)
		return NULL;
	levels->machine = malloc(5 * (size_t)size * sizeof *levels->machine);
	if (!levels->machine) {
		free(levels);
		return NULL;
	}
	levels->place = levels->machine + size;
	levels->first = levels->place + size;
	levels->ranks = levels->first + size;
	levels->local = levels->ranks + size;
	return levels;
}

static int find_machine(const struct adi_levels *levels, const struct adi_machine *of, const struct adi_machine *machine)
{
	for (int i = 0; i < levels->machines; i++)
		if (adi_machine_same(&of[levels->first[i]], machine))
			return i;
	return levels->machines;
}

static void fill(struct adi_levels *levels, const struct adi_machine *of, const struct adi_comm *comm)
{
	levels->blocks = true;
	for (int rank = 0; rank < comm->size; rank++) {
		int i = find_machine(levels, of, &of[rank]);
		if (i == levels->machines) {
			levels->first[i] = rank;
			levels->ranks[i] = 0;
			levels->machines++;
		}
		levels->machine[rank] = i;
		levels->place[rank] = levels->ranks[i]++;
		levels->blocks &= i == levels->machines - 1;
	}
	levels->mine = levels->machine[comm->rank];
	for (int rank = 0; rank < comm->size; rank++)
		if (levels->machine[rank] == levels->mine)
			levels->local[levels->place[rank]] = rank;
}

int adi_levels_make(struct adi_comm *comm, struct adi_levels **made)
{
	struct adi_machine *of = malloc((size_t)comm->size * sizeof *of);
	struct adi_levels *levels = levels_new(comm->size);
	*made = NULL;
	/* The others would wait for this rank. */
	if (!of || !levels)
		adi_abort(MPI_ERR_NO_MEM, "no memory for the machines of a communicator");
	int class = adi_allgather(&adi_job.machine, sizeof *of, of, comm);
	if (!class)
		fill(levels, of, comm);
	free(of);
	if (!class && levels->machines > 1 && levels->machines < comm->size)
		*made = levels;
	else
		adi_levels_free(levels);
	return class;
}

static int choose(const struct adi_comm *comm, enum adi_collective collective, size_t bytes, bool ordered,
		  const struct adi_levels **levels)
{
	const struct node_state *node = comm->node;
	bool broken = node && node->state == NODE_BROKEN;
	*levels = NULL;
	if (!broken && (!node || !node->levels || (ordered && !node->levels->blocks)))
		return MPI_SUCCESS;
	if (adi_select(collective, bytes, comm->size, ordered, ADI_MAY_TWO_LEVEL) != ADI_ALGORITHM_TWO_LEVEL)
		return MPI_SUCCESS;
	if (broken)
		return adi_node_error_broken(comm);
	*levels = node->levels;
	return MPI_SUCCESS;
}

/* The caller takes its number, comm->collectives[false], when it starts the schedule. */
int adi_two_level_known(const struct adi_comm *comm, enum adi_collective collective, size_t bytes, bool ordered,
			const struct adi_levels **levels)
{
	const struct node_state *node = comm->node;
	*levels = NULL;
	/* Numbers wrap. */
	if (!node || (int32_t)(comm->collectives[false] - node->levels_from) < 0)
		return MPI_SUCCESS;
	return choose(comm, collective, bytes, ordered, levels);
}

int adi_two_level_use(struct adi_comm *comm, enum adi_collective collective, size_t bytes, bool ordered,
		      const struct adi_levels **levels)
{
	struct node_state *node = comm->node ? comm->node : adi_node_find(comm);
	/* adi_node_use has counted the call if the segment may be used. */
	if (node->state == NODE_FIRST_CALLS &&
	    adi_select(collective, bytes, comm->size, ordered, ADI_MAY_TWO_LEVEL) == ADI_ALGORITHM_TWO_LEVEL &&
	    adi_select(collective, bytes, comm->size, ordered, ADI_MAY_NODE) != ADI_ALGORITHM_NODE)
		adi_node_make(comm, node);
	return choose(comm, collective, bytes, ordered, levels);
}

/* ---- views ---- */

static struct adi_view *view_new(struct adi_schedule *schedule, int rank, int size, const int *ranks)
{
	struct adi_view *view = adi_schedule_memory(schedule, sizeof *view);
	if (view)
		*view = (struct adi_view){ .comm = { .rank = rank, .size = size, .remote_size = size }, .ranks = ranks };
	return view;
}

static struct adi_view *leaders_new(struct adi_schedule *schedule, const struct adi_levels *levels, int root)
{
	int *ranks = adi_schedule_memory(schedule, (size_t)levels->machines * sizeof *ranks);
	for (int i = 0; ranks && i < levels->machines; i++)
		ranks[i] = levels->first[i];
	if (!ranks)
		return NULL;
	ranks[levels->machine[root]] = root;
	return view_new(schedule, levels->mine, levels->machines, ranks);
}

bool adi_two_level_start(struct adi_two_level *way, struct adi_schedule *schedule, const struct adi_levels *levels, int root)
{
	int rank = adi_schedule_comm(schedule)->rank;
	*way = (struct adi_two_level){ .schedule = schedule, .levels = levels, .root = levels->machine[root] };
	way->top = way->root == levels->mine ? levels->place[root] : 0;
	way->local = view_new(schedule, levels->place[rank], levels->ranks[levels->mine], levels->local);
	bool leader = levels->place[rank] == way->top;
	if (leader)
		way->leaders = leaders_new(schedule, levels, root);
	return way->local && (!leader || way->leaders);
}

/* ---- collectives ---- */

/* Empty messages up a binomial tree: place 0 gets them when all have come. */
static void fan_in(struct adi_schedule *schedule, const struct adi_comm *local)
{
	int mask = 1;
	for (; mask < local->size && !(local->rank & mask); mask *= 2)
		if ((local->rank | mask) < local->size)
			adi_schedule_receive(schedule, NULL, 0, adi_type_byte, local->rank | mask);
	adi_schedule_round(schedule);
	if (local->rank)
		adi_schedule_send(schedule, NULL, 0, adi_type_byte, local->rank - mask);
	adi_schedule_round(schedule);
}

void adi_two_level_barrier(struct adi_schedule *schedule, const struct adi_levels *levels)
{
	struct adi_two_level way;
	if (!adi_two_level_start(&way, schedule, levels, 0))
		return;
	adi_schedule_among(schedule, way.local);
	fan_in(schedule, &way.local->comm);
	if (way.leaders) {
		adi_schedule_among(schedule, way.leaders);
		adi_build_barrier(schedule);
	}
	adi_schedule_among(schedule, way.local);
	adi_build_bcast(schedule, NULL, 0, adi_type_byte, 0);
}

void adi_two_level_bcast(struct adi_schedule *schedule, const struct adi_levels *levels, void *buf, MPI_Count count,
			 struct adi_type *type, int root)
{
	struct adi_two_level way;
	if (!adi_two_level_start(&way, schedule, levels, root))
		return;
	if (way.leaders) {
		adi_schedule_among(schedule, way.leaders);
		adi_build_bcast(schedule, buf, count, type, way.root);
		adi_schedule_round(schedule);
	}
	adi_schedule_among(schedule, way.local);
	adi_build_bcast(schedule, buf, count, type, way.top);
}

/* Reduces the vectors of this machine at its leader. Returns where the partial result is: at `into`, or, if the machine has one
 * rank, where the rank's data are. */
static const void *reduce_local(const struct adi_two_level *way, const struct adi_reduction *reduction, void *into)
{
	struct adi_reduction here = *reduction;
	if (way->local->comm.size == 1)
		return reduction->send;
	here.receive = into;
	adi_schedule_among(way->schedule, way->local);
	adi_build_reduce(way->schedule, &here, way->top);
	adi_schedule_round(way->schedule);
	return into;
}

void adi_two_level_reduce(struct adi_schedule *schedule, const struct adi_levels *levels, const struct adi_reduction *reduction,
			  int root)
{
	struct adi_two_level way;
	bool at_root = adi_schedule_comm(schedule)->rank == root;
	void *into = NULL;
	if (!adi_two_level_start(&way, schedule, levels, root))
		return;
	if (way.leaders)
		into = at_root ? reduction->receive : adi_schedule_elements(schedule, reduction->count, reduction->type);
	struct adi_reduction among = *reduction;
	among.send = reduce_local(&way, reduction, into);
	among.receive = at_root ? reduction->receive : NULL;
	if (!way.leaders)
		return;
	adi_schedule_among(schedule, way.leaders);
	adi_build_reduce(schedule, &among, way.root);
}

void adi_two_level_allreduce(struct adi_schedule *schedule, const struct adi_levels *levels, const struct adi_reduction *reduction)
{
	struct adi_two_level way;
	if (!adi_two_level_start(&way, schedule, levels, 0))
		return;
	struct adi_reduction among = *reduction;
	among.send = reduce_local(&way, reduction, way.leaders ? reduction->receive : NULL);
	if (way.leaders) {
		adi_schedule_among(schedule, way.leaders);
		adi_build_allreduce(schedule, &among);
		adi_schedule_round(schedule);
	}
	adi_schedule_among(schedule, way.local);
	adi_build_bcast(schedule, reduction->receive, reduction->count, reduction->type, 0);
}
