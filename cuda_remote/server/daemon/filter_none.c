/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of a build without libseccomp: workers may make every system call. */
#include "cuda_remote/server/daemon/filter.h"

bool filter_supported(void)
{
	return false;
}

int filter_prepare(void)
{
	return 0;
}

int filter_load(pid_t reach)
{
	(void)reach;
	return 0;
}
