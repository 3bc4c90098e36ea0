/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gives several PTX texts to the linker: the input, cut at each byte 1. The first byte says which texts are a
 * library's. The program is refused with a reason, or loaded and queried for its kernels. Nothing is run.
 */
#include "cuda_remote/softgpu/engine.h"

#include <stdlib.h>
#include <string.h>

#define UNITS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(softgpu_program_t *program)
{
	softgpu_kernel_t *kernel;
	uint64_t address, bytes;
	for (size_t i = 0; (kernel = softgpu_program_kernel(program, i)); i++) {
		softgpu_kernel_info_t info;
		softgpu_kernel_info(kernel, &info);
		if (!softgpu_program_find(program, info.name))
			abort();
	}
	if (softgpu_program_variable(program, "x", &address, &bytes) == CUDA_SUCCESS && !address)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[UNITS_MAX] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	static const char head[] = ".version 8.4\n.target sm_75\n.address_size 64\n";
	softgpu_unit_t units[UNITS_MAX];
	softgpu_program_t *program;
	char said[256], *texts[UNITS_MAX];
	softgpu_log_t log = { said, sizeof said, 0 };
	size_t count = 0;
	uint8_t libraries = size ? *data : 0;
	for (size_t at = 1; at < size && count < UNITS_MAX; count++) {
		const uint8_t *end = memchr(data + at, 1, size - at);
		size_t length = end ? (size_t)(end - data) - at : size - at;
		char *text = malloc(sizeof head + length);
		if (!text)
			break;
		memcpy(text, head, sizeof head - 1);
		memcpy(text + sizeof head - 1, data + at, length);
		text[sizeof head - 1 + length] = '\0';
		texts[count] = text;
		units[count] = (softgpu_unit_t){ names[count], text, sizeof head - 1 + length, libraries >> count & 1 };
		at += length + 1;
	}
	CUresult result = softgpu_program_link(units, count, &log, &program);
	/* A loaded program does not need its texts. */
	for (size_t n = 0; n < count; n++)
		free(texts[n]);
	if (result == CUDA_SUCCESS) {
		ask(program);
		softgpu_program_unload(program);
	}
	return 0;
}
