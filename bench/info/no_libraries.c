/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without the CUDA half. */
#include "bench/info/libraries.h"

void info_library_settings(info_settings_fn visit, void *context)
{
	(void)visit, (void)context;
}
