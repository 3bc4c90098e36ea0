/* SPDX-License-Identifier: BSD-3-Clause */
/* The section devices in a build without the CUDA half. */
#include "bench/info/info.h"

#include <stdio.h>

int info_devices(const char *list)
{
	(void)list;
	puts("Devices");
	puts("  built without the CUDA toolkit: no remote CUDA and no software GPU");
	return 0;
}
