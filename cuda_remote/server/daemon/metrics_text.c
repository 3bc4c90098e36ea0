/* SPDX-License-Identifier: BSD-3-Clause */
/* The names, the help and the values of the metrics. */
#include "cuda_remote/server/daemon/metrics_text.h"

#include "cuda_remote/door/door.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct page {
	char *text;
	size_t len;
};

static void __attribute__((format(printf, 2, 3))) add(struct page *page, const char *format, ...)
{
	va_list args;
	size_t left = METRICS_TEXT_MAX - page->len;
	va_start(args, format);
	int n = vsnprintf(page->text + page->len, left, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < left)
		page->len += (size_t)n;
}

static void head(struct page *page, const char *name, const char *type, const char *help)
{
	add(page, "# HELP headrace_%s %s\n# TYPE headrace_%s %s\n", name, help, name, type);
}

static void value(struct page *page, const char *name, const char *type, const char *help, uint64_t n)
{
	head(page, name, type, help);
	add(page, "headrace_%s %" PRIu64 "\n", name, n);
}

static void add_sessions(struct page *page, const struct rc_counters *counters)
{
	value(page, "sessions", "gauge", "Sessions (clients) now.", counters->sessions);
	value(page, "sessions_total", "counter", "Sessions since the daemon's start.", counters->sessions_total);
	value(page, "handshakes_total", "counter", "Connections that the daemon has accepted.", counters->handshakes_total);
	head(page, "refused_total", "counter", "Connections that were refused or dropped, by reason.");
	for (int i = 0; i < RC_REFUSED_KINDS; i++)
		add(page, "headrace_refused_total{reason=\"%s\"} %" PRIu64 "\n", rc_refused_name((enum rc_refused)i),
		    counters->refused_total[i]);
	value(page, "session_connections", "gauge", "Connections (threads) of sessions now.", counters->connections);
	value(page, "session_connections_total", "counter", "Connections of sessions since the daemon's start.",
	      counters->connections_total);
	value(page, "workers_ready", "gauge", "Workers that wait for a client of all GPUs.", counters->workers_ready);
	head(page, "worker_exits_total", "counter", "Worker processes that have ended, by cause.");
	for (int i = 0; i < RC_EXIT_KINDS; i++)
		add(page, "headrace_worker_exits_total{cause=\"%s\"} %" PRIu64 "\n", rc_exit_name((enum rc_exit)i),
		    counters->exits_total[i]);
}

static void add_work(struct page *page, const struct rc_counters *counters)
{
	value(page, "calls_total", "counter", "CUDA calls served.", counters->calls_total);
	value(page, "kernel_launches_total", "counter", "Kernel launches outside of graphs.", counters->kernel_launches_total);
	value(page, "graph_launches_total", "counter", "Graph launches.", counters->graph_launches_total);
	head(page, "copied_bytes_total", "counter", "Bytes copied between clients and GPUs, outside of graphs.");
	add(page, "headrace_copied_bytes_total{direction=\"to_gpu\"} %" PRIu64 "\n", counters->to_devices_total);
	add(page, "headrace_copied_bytes_total{direction=\"from_gpu\"} %" PRIu64 "\n", counters->from_devices_total);
}

/* A metric with a value for each GPU, at that offset in its counters. */
static void add_each_gpu(struct page *page, const struct rc_counters *counters, const char *name, const char *help,
			 size_t offset)
{
	head(page, name, "gauge", help);
	for (uint64_t i = 0; i < counters->gpus && i < RC_COUNTERS_GPUS; i++) {
		const char *gpu = (const char *)&counters->gpu[i];
		add(page, "headrace_%s{gpu=\"%" PRIu64 "\"} %" PRIu64 "\n", name, i, *(const uint64_t *)(const void *)(gpu + offset));
	}
}

static void add_gpus(struct page *page, const struct rc_counters *counters)
{
	static const struct {
		const char *name, *help;
		size_t offset;
	} metrics[] = {
		{ "gpu_sessions", "Sessions that may use the GPU.", offsetof(struct rc_gpu_counters, sessions) },
		{ "gpu_memory_used_bytes", "Memory that sessions have allocated.", offsetof(struct rc_gpu_counters, used) },
		{ "gpu_memory_granted_bytes", "Memory charged to the quotas of sessions: allocated or set aside.", offsetof(struct rc_gpu_counters, granted) },
		{ "gpu_memory_quota_bytes", "Quota of each new session; 0: none.", offsetof(struct rc_gpu_counters, quota) },
		{ "gpu_exclusive", "1: at most one session.", offsetof(struct rc_gpu_counters, exclusive) },
	};
	value(page, "gpus", "gauge", "GPUs of this host.", counters->gpus);
	for (size_t i = 0; i < sizeof metrics / sizeof *metrics && counters->gpus; i++)
		add_each_gpu(page, counters, metrics[i].name, metrics[i].help, metrics[i].offset);
}

size_t metrics_text(const struct rc_counters *counters, const char *driver, char text[METRICS_TEXT_MAX])
{
	struct page page = { .text = text };
	head(&page, "build_info", "gauge", "Version of headraced; the value is 1.");
	add(&page, "headrace_build_info{version=\"%s\",protocol=\"%d\",driver=\"%s\"} 1\n", HR_VERSION, RC_DOOR_VERSION, driver);
	head(&page, "uptime_seconds", "gauge", "Time since the daemon's start.");
	add(&page, "headrace_uptime_seconds %" PRIu64 ".%03u\n", counters->uptime_us / 1000000,
	    (unsigned)(counters->uptime_us / 1000 % 1000));
	add_sessions(&page, counters);
	add_work(&page, counters);
	add_gpus(&page, counters);
	return page.len;
}
