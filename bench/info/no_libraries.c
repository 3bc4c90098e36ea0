/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of the CUDA libraries in a build without the CUDA half: none. */
#include "bench/info/libraries.h"

void info_library_settings(info_settings_fn visit, void *context)
{
	(void)visit, (void)context;
}
