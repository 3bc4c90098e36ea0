/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of the memory and threads that one session may hold in its worker, over all its connections. */
#include "cuda_remote/server/internal.h"

#include "rdma_channel/base/setting.h"

HR_SETTING(connections, "HEADRACE_SESSION_CONNECTIONS", "256", 1, 65536,
	   "connections (threads) of one client beside its first");
HR_SETTING(arguments, "HEADRACE_SESSION_ARGUMENTS", "1G", 65536, 1ull << 40,
	   "bytes of call arguments that a worker holds for its client, images of modules included");
HR_SETTING(replies, "HEADRACE_SESSION_REPLIES", "64M", 65536, 1ull << 40,
	   "bytes of replies that a worker keeps for a client that does not read them");
HR_SETTING(output, "HEADRACE_SESSION_OUTPUT", "64M", 1u << 20, 1ull << 40,
	   "bytes of device output that a worker keeps until the client's next waiting call, for stdout and stderr each");

HR_SETTING(pinned, "HEADRACE_SESSION_PINNED", "16G", 0, 1ull << 44,
	   "bytes of its client's pinned memory that a worker on the same host maps; copies of further memory go in chunks");

HR_SETTING(links, "HEADRACE_SESSION_LINKS", "64", 0, 4096,
	   "links of one session to workers of other servers; 0: copies between servers go through the client");

static const struct hr_setting *const settings[SERVER_LIMITS] = {
	[SERVER_LIMIT_CONNECTIONS] = &connections,
	[SERVER_LIMIT_ARGUMENTS] = &arguments,
	[SERVER_LIMIT_REPLIES] = &replies,
	[SERVER_LIMIT_OUTPUT] = &output,
	[SERVER_LIMIT_PINNED] = &pinned,
	[SERVER_LIMIT_LINKS] = &links,
};

static uint64_t limit[SERVER_LIMITS];
static uint64_t used[SERVER_LIMITS]; /* atomic; relaxed, as it guards no other data */

int server_limits_prepare(void)
{
	int error = 0;
	for (int i = 0; i < SERVER_LIMITS && !error; i++)
		error = hr_setting_u64(settings[i], &limit[i]);
	return error;
}

uint64_t server_limit(enum server_limit which)
{
	return limit[which];
}

bool server_limit_take(enum server_limit which, uint64_t amount)
{
	uint64_t before = __atomic_fetch_add(&used[which], amount, __ATOMIC_RELAXED);
	if (amount <= limit[which] && before <= limit[which] - amount)
		return true;
	server_limit_return(which, amount);
	return false;
}

void server_limit_return(enum server_limit which, uint64_t amount)
{
	__atomic_fetch_sub(&used[which], amount, __ATOMIC_RELAXED);
}
