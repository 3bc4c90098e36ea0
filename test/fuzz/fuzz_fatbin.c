/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a fat binary: refused, or PTX text that ends where its length says. */
#include "cuda_remote/softgpu/fatbin/fatbin.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[256];
	softgpu_log_t log = { text, sizeof text, 0 };
	fatbin_ptx_t ptx;
	if (fatbin_unpack(data, size, 90, &log, &ptx)) {
		if (log.used >= sizeof text)
			abort();
		return 0;
	}
	if (strlen(ptx.text) != ptx.length)
		abort();
	free(ptx.text);
	return 0;
}
