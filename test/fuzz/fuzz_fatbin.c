/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a fat binary: refused, or PTX text that ends where its length says. Once with the length of the bytes, as
 * for a file, and once with SIZE_MAX, as for an image in memory of which only the container's header tells the size. The
 * product does the second only where that size is right.
 */
#include "cuda_remote/softgpu/fatbin/fatbin.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unpack(const uint8_t *data, size_t limit)
{
	char text[256];
	softgpu_log_t log = { text, sizeof text, 0 };
	fatbin_ptx_t ptx;
	if (fatbin_unpack(data, limit, 90, &log, &ptx)) {
		if (log.used >= sizeof text)
			abort();
		return;
	}
	if (strlen(ptx.text) != ptx.length)
		abort();
	free(ptx.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unpack(data, size);
	size_t container = fatbin_container_bytes(data, size);
	if (!container)
		return 0;
	/* A copy that ends with the container: what is read behind it is found. */
	uint8_t *exact = malloc(container);
	if (!exact)
		return 0;
	memcpy(exact, data, container);
	unpack(exact, SIZE_MAX);
	fatbin_has_ptx(exact, SIZE_MAX, 90);
	free(exact);
	return 0;
}
