/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-perf cuda: runs the CUDA program remotely and locally, and prints what it has measured beside the floors. */
#include "config.h"
#include "cuda_calls.h"

#include "cuda_rows.h"
#include "cuda_run.h"
#include "headrace/channel.h"
#include "measure.h"
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* local_driver NULL: runs the program on the server, else on this driver in its own process. */
static int run_client(const char *self, const char *local_driver, struct cuda_figures *figures)
{
	static char local_option[] = "--local", client[] = "cuda-client";
	char driver_option[32];
	char *const under[] = { local_option, driver_option, NULL }, *const arguments[] = { client, NULL };
	snprintf(driver_option, sizeof driver_option, "--driver=%s", local_driver ? local_driver : "");
	return cuda_run(self, local_driver ? under : under + 2, arguments, figures, sizeof *figures);
}

/* What a figure is compared with. */
enum floor_kind { WITH_TRIP, WITH_MICROSECOND, WITH_LOCAL, WITH_MEMCPY, WITH_LONGER, WITH_STREAM_UP, WITH_STREAM_DOWN };

static const struct {
	enum cuda_row row;
	const char *name;
	enum floor_kind floor;
} lines[] = {
	{ ROW_CALL, "cuda: waiting call (cuMemGetInfo)", WITH_TRIP },
	{ ROW_LAUNCH, "cuda: empty asynchronous launch, caller", WITH_MICROSECOND },
	{ ROW_LAUNCHES, "cuda: empty launch, sustained", WITH_LOCAL },
	{ ROW_UP_64, "cuda: 64 B to the device", WITH_TRIP },
	{ ROW_DOWN_64, "cuda: 64 B from the device", WITH_TRIP },
	{ ROW_PINNED_UP_64, "cuda: 64 B to the device, pinned", WITH_TRIP },
	{ ROW_PINNED_DOWN_64, "cuda: 64 B from the device, pinned", WITH_TRIP },
	{ ROW_EVENT, "cuda: event record and synchronise", WITH_TRIP },
	{ ROW_LAUNCH_EVENT, "cuda: launch, event record and synchronise", WITH_LOCAL },
	{ ROW_ALLOC, "cuda: cuMemAlloc of 1 MB", WITH_LOCAL },
	{ ROW_FREE, "cuda: cuMemFree", WITH_LOCAL },
	{ ROW_ASYNC_MIDDLE, "cuda: 128 KB to the device, pinned, and a wait", WITH_TRIP },
	{ ROW_PINNED_UP, "cuda: 32 MB to the device, pinned", WITH_LOCAL },
	{ ROW_PINNED_DOWN, "cuda: 32 MB from the device, pinned", WITH_LOCAL },
	{ ROW_UP, "cuda: 32 MB to the device", WITH_LOCAL },
	{ ROW_DOWN, "cuda: 32 MB from the device", WITH_LOCAL },
	{ ROW_UP, "cuda: 32 MB to the device", WITH_MEMCPY },
	{ ROW_DOWN, "cuda: 32 MB from the device", WITH_MEMCPY },
	{ ROW_ASYNC_UP, "cuda: 64 MB to the device, time in the call", WITH_LOCAL },
	{ ROW_ASYNC_DOWN, "cuda: 64 MB from the device, in the call", WITH_LOCAL },
	{ ROW_COPY_AND_KERNEL, "cuda: 64 MB beside a kernel as long", WITH_LONGER },
	{ ROW_ROWS_UP, "cuda: million rows of 4 B to the device", WITH_LOCAL },
	{ ROW_ROWS_DOWN, "cuda: million rows of 4 B from the device", WITH_LOCAL },
	{ ROW_PINNED_UP_LONG, "cuda: 64 MB to the device, pinned", WITH_STREAM_UP },
	{ ROW_PINNED_DOWN_LONG, "cuda: 64 MB from the device, pinned", WITH_STREAM_DOWN },
	{ ROW_UP_LONG, "cuda: 64 MB to the device", WITH_STREAM_UP },
	{ ROW_DOWN_LONG, "cuda: 64 MB from the device", WITH_STREAM_DOWN },
};

struct floors {
	double round_trip;  /* of the channel, over shm or, if tcp is set, over tcp */
	bool tcp, local;    /* the server is reached over this host's loopback; the local program has run */
	struct cuda_figures of_local;
};

static void print_line(const struct options *options, size_t i, const struct cuda_figures *f, const struct floors *floors)
{
	const char *name = NULL;
	double us = NAN;
	switch (lines[i].floor) {
	case WITH_TRIP: name = "channel round trip", us = floors->round_trip; break;
	case WITH_MICROSECOND: name = "one microsecond", us = 1; break;
	case WITH_MEMCPY: name = "memcpy", us = f->row[ROW_MEMCPY].median; break;
	case WITH_LONGER: name = "the longer of the two", us = f->row[ROW_LONGER_ALONE].median; break;
	case WITH_LOCAL:
		if (floors->local)
			name = "local", us = floors->of_local.row[lines[i].row].median;
		break;
	case WITH_STREAM_UP: case WITH_STREAM_DOWN:
		if (!floors->tcp)
			return;
		name = "raw TCP in turn";
		us = f->row[lines[i].floor == WITH_STREAM_UP ? ROW_STREAM_UP : ROW_STREAM_DOWN].median;
	}
	report_figure(options, lines[i].name, f->row[lines[i].row].median, f->row[lines[i].row].p99, name, us);
}

static void print_processor_time(const struct options *options, const struct cuda_figures *f,
				 const struct cuda_figures *local)
{
	static const char *const names[CPUS] = {
		"cuda: CPU, 64 MB to the device, pinned", "cuda: CPU, 64 MB from the device, pinned",
		"cuda: CPU, 64 MB to the device", "cuda: CPU, 64 MB from the device",
	};
	for (int i = 0; i < CPUS; i++)
		report_processor_time(options, names[i], f->cpu[i].client, f->cpu[i].server, local ? local->cpu[i].client : NAN);
}

/* True if the server is reached by TCP within this host: then a TCP stream of this host is the floor of its copies. */
static bool is_loopback(void)
{
	const char *server = getenv("HEADRACE_SERVER");
	return server && (!strncmp(server, "127.", 4) || !strncmp(server, "localhost", 9) || !strncmp(server, "[::1]", 5));
}

int measure_cuda(const struct options *options, const char *self)
{
	struct cuda_figures f;
	struct floors floors = { .tcp = is_loopback() };
	double one_way[2], flag[2], tcp, raw_tcp;
	floors.local = !run_client(self, options->local_driver ? options->local_driver : "softgpu", &floors.of_local);
	if (measure_channel_latency(HR_TRANSPORT_SHM, &one_way[0], &flag[0]) || run_client(self, NULL, &f) ||
	    measure_channel_latency(HR_TRANSPORT_SHM, &one_way[1], &flag[1]) ||
	    measure_channel_latency(HR_TRANSPORT_TCP, &tcp, &raw_tcp))
		return -1;
	/* One-way times before and after: their sum is twice their mean, so a round trip. */
	double round_trip = one_way[0] + one_way[1], flag_trip = flag[0] + flag[1];
	floors.round_trip = floors.tcp ? 2 * tcp : round_trip;
	report_figure(options, "channel: 8 bytes over shm, round trip", round_trip, NAN, "flag round trip", flag_trip);
	report_figure(options, "channel: 8 bytes over tcp, round trip", 2 * tcp, NAN, "raw TCP round trip", 2 * raw_tcp);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		print_line(options, i, &f, &floors);
	print_processor_time(options, &f, floors.local ? &floors.of_local : NULL);
	return 0;
}
