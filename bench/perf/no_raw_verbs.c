/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of raw_verbs.h for a build without libibverbs: the channel has no verbs then, so no floor is needed. */
#include "config.h"
#include "raw_verbs.h"

#include <math.h>

raw_verbs_t *raw_verbs_open(int rank, int control, size_t largest)
{
	(void)rank, (void)control, (void)largest;
	return NULL;
}

void raw_verbs_close(raw_verbs_t *raw)
{
	(void)raw;
}

void raw_verbs_poll(raw_verbs_t *raw)
{
	(void)raw;
}

double raw_verbs_ping_pong(raw_verbs_t *raw, size_t size, unsigned turns)
{
	(void)raw, (void)size, (void)turns;
	return NAN;
}

double raw_verbs_stream(raw_verbs_t *raw, enum raw_direction direction, size_t size, unsigned messages)
{
	(void)raw, (void)direction, (void)size, (void)messages;
	return NAN;
}
