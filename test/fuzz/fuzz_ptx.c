/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads any PTX text. It is refused with a reason, or loaded and queried as the driver queries it. Nothing is run. */
#include "cuda_remote/softgpu/engine.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(softgpu_program_t *program)
{
	softgpu_kernel_t *kernel;
	for (size_t i = 0; (kernel = softgpu_program_kernel(program, i)); i++) {
		softgpu_kernel_info_t info;
		softgpu_kernel_info(kernel, &info);
		size_t offset, bytes;
		for (size_t p = 0; p < info.parameters; p++)
			if (softgpu_kernel_parameter(kernel, p, &offset, &bytes) != CUDA_SUCCESS ||
			    offset + bytes > info.parameter_bytes)
				abort();
		if (softgpu_kernel_parameter(kernel, info.parameters, &offset, &bytes) == CUDA_SUCCESS)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[256];
	softgpu_log_t log = { text, sizeof text, 0 };
	softgpu_program_t *program;
	/* As the driver passes it: with a NUL after the last byte. */
	char *ptx = malloc(size + 1);
	if (!ptx)
		return 0;
	memcpy(ptx, data, size);
	ptx[size] = '\0';
	if (softgpu_program_load(ptx, size, &log, &program) == CUDA_SUCCESS) {
		ask(program);
		softgpu_program_unload(program);
	}
	free(ptx);
	return 0;
}
