/* SPDX-License-Identifier: BSD-3-Clause */
/* The bandwidth of copies between host and device memory, if HEADRACE_SOFTGPU_BUS_MBPS sets one. */
#include "cuda_remote/softgpu/driver/memory/copy_pace.h"

#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

HR_SETTING(bus_setting, "HEADRACE_SOFTGPU_BUS_MBPS", "0", 0, 1000000,
	   "software GPU: for measurements: bandwidth of copies between host and device, 10^6 bytes per second; 0: no limit");

static uint64_t bandwidth; /* 10^6 bytes per second; 0: no limit */

static void read_bandwidth(void)
{
	if (hr_setting_u64(&bus_setting, &bandwidth))
		bandwidth = 0; /* logged */
}

bool copy_is_paced(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, read_bandwidth);
	return bandwidth > 0;
}

uint64_t copy_pace_begin(const copy_box_t *box)
{
	struct timespec now;
	bool over_bus = (box->to.kind == COPY_HOST) != (box->from.kind == COPY_HOST);
	if (!copy_is_paced() || !over_bus)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec +
	       (uint64_t)(box->width * box->height * box->depth) * 1000 / bandwidth;
}

void copy_pace_end(uint64_t until)
{
	struct timespec time = { .tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u) };
	while (until && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		continue;
}
