/* SPDX-License-Identifier: BSD-3-Clause */
/* The floors of this machine by themselves, whatever the transport was. */
#ifndef PERF_MACHINE_H
#define PERF_MACHINE_H

#include "options.h"

/* Measures and prints the flag, a memcpy of 1 MB and a raw TCP message of 8 bytes. Non-zero: it failed. */
int machine_measure(const struct options *options);

#endif
