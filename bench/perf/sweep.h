/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headrace-perf sweep: the two studies of the InfiniBand tuning of rCUDA (Reaño & Silla). They measure the bandwidth
 * for messages of 2 bytes to 4 MB by the number of queue pairs of a connection, and by the depth of its send queues.
 * All settings are open at the same time and are measured in turn (measure.c).
 */
#ifndef PERF_SWEEP_H
#define PERF_SWEEP_H

#include "options.h"
#include "report.h"

/* Sets the options' variants to those of the studies, and sets sizes and time if the command line has none. */
void sweep_fill(struct options *options);

/* Stores the cells of size number i, one for each variant, for sweep_report. */
void sweep_note(const struct cell *cells, unsigned i);

/* Prints both studies as tables, sizes by settings, with the mean gain of each setting. Does nothing in other
 * formats. */
void sweep_report(const struct options *options);

#endif
