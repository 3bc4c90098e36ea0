/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unpacks any bytes as a fat binary. The result is a refusal, or PTX text that ends where its length says. Each input
 * is unpacked twice: with its length, as a file is, and with SIZE_MAX, as an image in memory is, whose size only the
 * container's header states. The library uses SIZE_MAX only for images whose header is right, so this target does too.
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
	/* A copy that ends with the container, so that the sanitizer finds a read beyond it. */
	uint8_t *exact = malloc(container);
	if (!exact)
		return 0;
	memcpy(exact, data, container);
	unpack(exact, SIZE_MAX);
	fatbin_has_ptx(exact, SIZE_MAX, 90);
	free(exact);
	return 0;
}
