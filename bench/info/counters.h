/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-info: the counters of a server. */
#ifndef HR_INFO_COUNTERS_H
#define HR_INFO_COUNTERS_H

#include "cuda_remote/door/counters.h"

void print_counters(const struct rc_counters *counters);

#endif
