/* SPDX-License-Identifier: BSD-3-Clause */
/* Error messages about images, for the program's JIT log and for Headrace's log. */
#include "cuda_remote/softgpu/fatbin/complain.h"

#include "rdma_channel/base/log.h"

#include <stdarg.h>
#include <stdio.h>

void fatbin_complain(softgpu_log_t *log, const char *format, ...)
{
	char line[512];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	hr_log(log && log->text ? HR_LOG_INFO : HR_LOG_ERROR, "%s", line);
	if (!log || !log->text || log->used + 1 >= log->size)
		return;
	int more = snprintf(log->text + log->used, log->size - log->used, "%s\n", line);
	log->used += more < 0 ? 0 : (size_t)more < log->size - log->used ? (size_t)more : log->size - log->used - 1;
}
