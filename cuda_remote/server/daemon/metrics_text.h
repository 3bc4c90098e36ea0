/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the counters in the text format of Prometheus, version 0.0.4. */
#ifndef RC_DAEMON_METRICS_TEXT_H
#define RC_DAEMON_METRICS_TEXT_H

#include "cuda_remote/door/counters.h"

#include <stddef.h>

#define METRICS_TEXT_MAX 65536 /* more than the longest text */

/* Returns the length of the text. driver: a label, without quotes and backslashes. */
size_t metrics_text(const struct rc_counters *counters, const char *driver, char text[METRICS_TEXT_MAX]);

#endif
