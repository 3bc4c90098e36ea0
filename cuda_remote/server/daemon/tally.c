/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds up what the workers count. */
#include "cuda_remote/server/daemon/tally.h"

#include "cuda_remote/door/server_name.h"

static uint64_t look(const uint64_t *figure)
{
	uint64_t value = __atomic_load_n(figure, __ATOMIC_RELAXED);
	return value < TALLY_MAX ? value : TALLY_MAX;
}

static void grow(uint64_t *seen, const uint64_t *figure)
{
	uint64_t value = look(figure);
	if (value > *seen)
		*seen = value;
}

static void add(uint64_t *sum, uint64_t n)
{
	*sum = n < TALLY_MAX - *sum ? *sum + n : TALLY_MAX;
}

void tally_look(struct tally *tally, const struct worker_usage *usage)
{
	grow(&tally->calls, &usage->calls);
	grow(&tally->kernel_launches, &usage->kernel_launches);
	grow(&tally->graph_launches, &usage->graph_launches);
	grow(&tally->to_devices, &usage->to_devices);
	grow(&tally->from_devices, &usage->from_devices);
	grow(&tally->connections, &usage->connections);
}

void tally_add(const struct tally *tally, struct rc_counters *counters)
{
	add(&counters->calls_total, tally->calls);
	add(&counters->kernel_launches_total, tally->kernel_launches);
	add(&counters->graph_launches_total, tally->graph_launches);
	add(&counters->to_devices_total, tally->to_devices);
	add(&counters->from_devices_total, tally->from_devices);
	add(&counters->connections_total, tally->connections);
}

void tally_add_session(const struct worker_usage *usage, uint32_t gpu, struct rc_counters *counters)
{
	uint64_t begun = look(&usage->connections), ended = look(&usage->connections_ended);
	add(&counters->connections, 1 + (begun > ended ? begun - ended : 0));
	for (uint32_t i = 0; i < counters->gpus && i < WORKER_GPUS_MAX; i++) {
		if (gpu != RC_SERVER_ALL_GPUS && gpu != i)
			continue;
		counters->gpu[i].sessions++;
		add(&counters->gpu[i].used, look(&usage->gpu_used[i]));
		add(&counters->gpu[i].granted, look(&usage->gpu_charged[i]));
	}
}
