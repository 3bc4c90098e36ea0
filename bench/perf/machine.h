/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the machine's own speed, independent of the transport. */
#ifndef PERF_MACHINE_H
#define PERF_MACHINE_H

#include "options.h"

/* Measures and prints the flag, a memcpy of 1 MB and a raw TCP message of 8 bytes. Non-zero: failure. */
int machine_measure(const struct options *options);

#endif
