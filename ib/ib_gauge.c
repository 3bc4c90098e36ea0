/* SPDX-License-Identifier: BSD-3-Clause */
/* The threshold of zero copy, from the times of RDMA reads. */
#include "ib/ib_gauge.h"

/* Round trips that a message of the size of the threshold takes on the link. */
#define ROUND_TRIPS 16u

uint32_t ib_gauge_next(const struct ib_gauge *gauge)
{
	if (gauge->reads < IB_GAUGE_READS)
		return IB_GAUGE_SHORT;
	return gauge->reads < 2 * IB_GAUGE_READS ? IB_GAUGE_LONG : 0;
}

void ib_gauge_ended(struct ib_gauge *gauge, uint64_t ns)
{
	uint64_t *shortest = gauge->reads < IB_GAUGE_READS ? &gauge->short_ns : &gauge->long_ns;
	if (*shortest == 0 || ns < *shortest)
		*shortest = ns ? ns : 1;
	gauge->reads++;
}

uint32_t ib_gauge_threshold(const struct ib_gauge *gauge)
{
	/* A link so fast that 64 KB take no longer than 8 bytes. */
	uint64_t link_ns = gauge->long_ns > gauge->short_ns ? gauge->long_ns - gauge->short_ns : 1;
	double bytes = (double)ROUND_TRIPS * (double)gauge->short_ns * (double)(IB_GAUGE_LONG - IB_GAUGE_SHORT) / (double)link_ns;
	uint32_t threshold = IB_GAUGE_MIN;
	while (threshold < IB_GAUGE_MAX && threshold < bytes)
		threshold *= 2;
	return threshold;
}
