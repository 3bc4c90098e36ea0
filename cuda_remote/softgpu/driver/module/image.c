/* SPDX-License-Identifier: BSD-3-Clause */
/* Recognizes what a program loads as a module and reduces it to PTX; handles JIT options. */
#include "cuda_remote/softgpu/driver/module/image.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/fatbin/linked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LOG_ROOM 16384
#define ELF_MAGIC 0x464C457Fu
#define LINKED_START 0x54505248u /* the first four bytes of an image of the linker */

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static CUresult jit_option(image_jit_t *jit, CUjit_option option, void **value)
{
	size_t number = (size_t)(uintptr_t)*value;
	switch (option) {
	case CU_JIT_INFO_LOG_BUFFER:
		jit->info = *value;
		break;
	case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
		jit->info_room = (unsigned)number;
		jit->info_size = value;
		break;
	case CU_JIT_ERROR_LOG_BUFFER:
		jit->error = *value;
		break;
	case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
		jit->error_room = (unsigned)number;
		jit->error_size = value;
		break;
	case CU_JIT_WALL_TIME:
		jit->wall_time = value;
		break;
	case CU_JIT_GLOBAL_SYMBOL_COUNT:
	case CU_JIT_LTO:
		return number ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
	case CU_JIT_OPTIMIZATION_LEVEL:
		return (unsigned)number > 4 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_JIT_FALLBACK_STRATEGY:
		return (unsigned)number > CU_PREFER_BINARY ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	default:
		return option < 0 || option >= CU_JIT_NUM_OPTIONS ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	}
	return CUDA_SUCCESS;
}

/* cuda.h: CU_JIT_THREADS_PER_BLOCK "cannot be combined with" CU_JIT_TARGET. */
static bool contradictory(unsigned count, const CUjit_option *options)
{
	bool threads = false, target = false;
	for (unsigned i = 0; i < count; i++) {
		threads |= options[i] == CU_JIT_THREADS_PER_BLOCK;
		target |= options[i] == CU_JIT_TARGET;
	}
	return threads && target;
}

CUresult image_jit_begin(image_jit_t *jit, unsigned count, const CUjit_option *options, void **values)
{
	memset(jit, 0, sizeof *jit);
	if (count && (!options || !values || contradictory(count, options)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		CUresult result = jit_option(jit, options[i], &values[i]);
		if (result)
			return result;
	}
	if (jit->info || jit->error) {
		jit->log.text = calloc(1, LOG_ROOM);
		jit->log.size = jit->log.text ? LOG_ROOM : 0;
	}
	jit->started = now();
	return CUDA_SUCCESS;
}

CUresult image_jit_check(unsigned count, const CUjit_option *options, void **values)
{
	image_jit_t unused;
	CUresult result = image_jit_begin(&unused, count, options, values);
	free(unused.log.text);
	return result;
}

/* Copies text to one of the caller's buffers, and outputs its length. */
static void hand_over(const char *text, char *buffer, size_t room, void **size)
{
	size_t length = 0;
	if (buffer && room) {
		length = strnlen(text, room - 1);
		memcpy(buffer, text, length);
		buffer[length] = '\0';
	}
	if (size)
		*size = (void *)(uintptr_t)length;
}

CUresult image_jit_report(image_jit_t *jit, CUresult result)
{
	const char *text = jit->log.text ? jit->log.text : "";
	hand_over(result ? text : "", jit->error, jit->error_room, jit->error_size);
	hand_over(result ? "" : text, jit->info, jit->info_room, jit->info_size);
	if (jit->wall_time) {
		float milliseconds = (float)((double)(now() - jit->started) / 1e6);
		*jit->wall_time = NULL;
		memcpy(jit->wall_time, &milliseconds, sizeof milliseconds);
	}
	return result;
}

CUresult image_jit_end(image_jit_t *jit, CUresult result)
{
	image_jit_report(jit, result);
	free(jit->log.text);
	jit->log = (softgpu_log_t){ 0 };
	return result;
}

static CUresult refuse_elf(softgpu_log_t *log)
{
	fatbin_complain(log, "module: machine code (a cubin), but no PTX: the software GPU needs PTX; compile with "
			"nvcc -ptx, or for compute_75 instead of sm_75");
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static CUresult from_text(const char *text, size_t length, softgpu_log_t *log, fatbin_ptx_t *ptx)
{
	if (!length) {
		fatbin_complain(log, "module: empty");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	char *copy = malloc(length + 1);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*ptx = (fatbin_ptx_t){ copy, length, 0 };
	return CUDA_SUCCESS;
}

/*
 * A program linked from relocatable device code: the linked container holds only machine code, the PTX is in the units.
 * Units without PTX, such as NVIDIA's device runtime, are left out. If the program needs one, linking reports the names
 * that are not defined.
 */
static CUresult from_units(const void *const *units, softgpu_log_t *log, fatbin_ptx_t *ptx)
{
	linked_units_t found = { 0 };
	fatbin_ptx_t more;
	char name[32];
	CUresult result = CUDA_SUCCESS;
	unsigned number = 0;
	for (; *units && !result; units++) {
		snprintf(name, sizeof name, "unit %u", ++number);
		if (!fatbin_has_ptx(*units, SIZE_MAX, device_capability()))
			continue;
		result = fatbin_unpack(*units, SIZE_MAX, device_capability(), log, &more);
		if (!result)
			result = linked_add(&found, name, &more, false);
	}
	if (!result && !found.count) {
		fatbin_complain(log, "module: %u units of relocatable device code, none with PTX for sm_%u: "
				"compile with nvcc -arch=compute_75 or -gencode arch=compute_75,code=compute_75", number,
				device_capability());
		result = CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (!result && found.count == 1)
		result = from_text(found.unit[0].text, found.unit[0].length, log, ptx);
	else if (!result)
		result = linked_join(&found, ptx);
	linked_free(&found);
	return result;
}

static CUresult from_wrapper(const void *image, softgpu_log_t *log, fatbin_ptx_t *ptx)
{
	struct fatbin_wrapper wrapper;
	memcpy(&wrapper, image, sizeof wrapper);
	if (wrapper.version == 2 && wrapper.units)
		return from_units(wrapper.units, log, ptx);
	if (!wrapper.container || (wrapper.version != 1 && wrapper.version != 2)) {
		fatbin_complain(log, "fat binary: wrapper of unknown version %u", wrapper.version);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	return fatbin_unpack(wrapper.container, SIZE_MAX, device_capability(), log, ptx);
}

/* Copies the image. image_program splits the copy into its units. */
static CUresult from_linked(const void *image, size_t length, softgpu_log_t *log, fatbin_ptx_t *ptx)
{
	linked_units_t units;
	CUresult result = linked_split(image, length, &units);
	if (result) {
		fatbin_complain(log, "module: a damaged image of the software GPU's linker");
		return result;
	}
	linked_free(&units);
	char *copy = malloc(length);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, image, length);
	*ptx = (fatbin_ptx_t){ copy, length, 0 };
	return CUDA_SUCCESS;
}

bool image_is_linked(const void *data, size_t size)
{
	return size >= LINKED_HEADER_BYTES && linked_is(data);
}

CUresult image_program(const fatbin_ptx_t *ptx, softgpu_log_t *log, softgpu_program_t **program)
{
	linked_units_t units;
	if (!image_is_linked(ptx->text, ptx->length))
		return softgpu_program_load(ptx->text, ptx->length, log, program);
	CUresult result = linked_split(ptx->text, ptx->length, &units);
	if (result)
		return result;
	result = softgpu_program_link(units.unit, units.count, log, program);
	linked_free(&units);
	return result;
}

CUresult image_from_memory(const void *image, softgpu_log_t *log, fatbin_ptx_t *ptx)
{
	/* Reads no byte after a NUL: a text may be shorter than four bytes. */
	const char *text = image;
	uint32_t magic = 0;
	for (unsigned i = 0; i < 4 && (i == 0 || text[i - 1]); i++)
		magic |= (uint32_t)(unsigned char)text[i] << (8 * i);
	switch (magic) {
	case FATBIN_WRAPPER_MAGIC:
		return from_wrapper(image, log, ptx);
	case FATBIN_MAGIC:
		return fatbin_unpack(image, SIZE_MAX, device_capability(), log, ptx);
	case ELF_MAGIC:
		return refuse_elf(log);
	case LINKED_START:
		if (linked_is(image))
			return from_linked(image, linked_bytes(image), log, ptx);
		return from_text(text, strlen(text), log, ptx);
	default:
		return from_text(text, strlen(text), log, ptx);
	}
}

CUresult image_read_file(const char *name, char **data, size_t *size)
{
	FILE *file = fopen(name, "rb");
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	struct stat status;
	CUresult result = CUDA_ERROR_FILE_NOT_FOUND;
	if (!fstat(fileno(file), &status) && S_ISREG(status.st_mode)) {
		*size = (size_t)status.st_size;
		*data = malloc(*size + 1);
		result = !*data ? CUDA_ERROR_OUT_OF_MEMORY :
			 fread(*data, 1, *size, file) == *size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
		if (!result)
			(*data)[*size] = '\0';
		else
			free(*data);
	}
	fclose(file);
	return result;
}

CUresult image_from_file(const char *name, softgpu_log_t *log, fatbin_ptx_t *ptx)
{
	char *data;
	size_t size;
	CUresult result = image_read_file(name, &data, &size);
	if (result) {
		fatbin_complain(log, "module: cannot read %s", name);
		return result;
	}
	uint32_t magic = 0;
	memcpy(&magic, data, size < sizeof magic ? size : sizeof magic);
	if (magic == FATBIN_MAGIC)
		result = fatbin_unpack(data, size, device_capability(), log, ptx);
	else if (magic == ELF_MAGIC)
		result = refuse_elf(log);
	else if (image_is_linked(data, size))
		result = from_linked(data, size, log, ptx);
	else
		result = from_text(data, strlen(data), log, ptx);
	free(data);
	return result;
}
