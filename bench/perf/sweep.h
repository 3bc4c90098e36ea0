/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two studies of the InfiniBand tuning of rCUDA (Reaño & Silla): bandwidth by the number of queue pairs of a
 * connection, and by the depth of its send queues, for messages of 2 bytes to 4 MB. All settings are open at once and
 * take turns (measure.c).
 */
#ifndef PERF_SWEEP_H
#define PERF_SWEEP_H

#include "options.h"
#include "report.h"

/* Puts the studies' variants into the options and, where none were asked for, their sizes and time. */
void sweep_fill(struct options *options);

/* Keeps the cells of the ith size, one for each variant, for sweep_report. */
void sweep_note(const struct cell *cells, unsigned i);

/* Both studies as tables, size by setting, and the mean gain of each setting; nothing but in format table. */
void sweep_report(const struct options *options);

#endif
