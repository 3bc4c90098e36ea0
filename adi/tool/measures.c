/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of the performance variables. Before MPI is initialised they are 0. Counts of connections that were closed are lost. */
#include "adi/message/statistics.h"
#include "adi/tool/tool.h"

#include <stddef.h>
#include <string.h>

/* The sum of a field of hr_conn_stats_t over all connections. */
static uint64_t connections_sum(size_t field)
{
	uint64_t sum = 0;
	for (int i = 0; adi_job.peer && i < adi_job.size; i++) {
		hr_conn_stats_t stats = { .size = sizeof stats };
		hr_conn_t *conn = adi_job.peer[i].vc ? ch3_vc_conn(adi_job.peer[i].vc) : NULL;
		if (conn && hr_conn_stats(conn, &stats) == 0)
			sum += *(const uint64_t *)(const void *)((const char *)&stats + field);
	}
	return sum;
}

/* All functions run under the library's lock, while MPI is initialised. */
static uint64_t connections(void)
{
	return adi_job.engine ? (uint64_t)ch3_connections(adi_job.engine) : 0;
}

#define CONNECTIONS(field)                                              \
	static uint64_t field(void)                                     \
	{                                                               \
		return connections_sum(offsetof(hr_conn_stats_t, field)); \
	}
CONNECTIONS(put_bytes)
CONNECTIONS(get_bytes)
CONNECTIONS(put_short)
CONNECTIONS(wakeups_sent)
CONNECTIONS(memory_bytes)
CONNECTIONS(zero_copy_bytes)

/* Packets to processes that are not reached by shared memory. */
static uint64_t packets_between(void)
{
	uint64_t sum = 0;
	for (int i = 0; adi_job.peer && i < adi_job.size; i++) {
		ch3_vc_t *vc = adi_job.peer[i].vc;
		hr_conn_t *conn = vc ? ch3_vc_conn(vc) : NULL;
		if (conn && strcmp(hr_conn_transport(conn), "shm"))
			sum += ch3_sent(vc);
	}
	return sum;
}

static uint64_t posted(void)
{
	return adi_messages_posted();
}

static uint64_t unexpected(void)
{
	return adi_messages_unexpected();
}

const struct tool_measure tool_measure[] = {
	{ "connections", "open connections to other processes", MPI_T_PVAR_CLASS_LEVEL, connections },
	{ "connection_memory", "memory of the connections, bytes", MPI_T_PVAR_CLASS_LEVEL, memory_bytes },
	{ "bytes_sent", "bytes sent on all connections, headers included", MPI_T_PVAR_CLASS_COUNTER, put_bytes },
	{ "bytes_received", "bytes received on all connections, headers included", MPI_T_PVAR_CLASS_COUNTER, get_bytes },
	{ "bytes_sent_zero_copy", "bytes sent without a copy", MPI_T_PVAR_CLASS_COUNTER, zero_copy_bytes },
	{ "sends_waiting", "times that a connection could not take all bytes at once", MPI_T_PVAR_CLASS_COUNTER, put_short },
	{ "wakeups", "system calls made to wake another process", MPI_T_PVAR_CLASS_COUNTER, wakeups_sent },
	{ "packets_between_machines", "packets sent on connections that are not shared memory", MPI_T_PVAR_CLASS_COUNTER,
	  packets_between },
	{ "posted_receives", "receives that wait for a message", MPI_T_PVAR_CLASS_LEVEL, posted },
	{ "unexpected_messages", "messages that wait for a receive", MPI_T_PVAR_CLASS_LEVEL, unexpected },
};

int tool_measures(void)
{
	int n = (int)(sizeof tool_measure / sizeof tool_measure[0]);
	return adi_messages_posted && adi_messages_unexpected ? n : n - 2;
}
