/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine for the driver's tests: its "programs" are a first line "double" and a line for each kernel, whose
 * behaviour is C and goes by the name:
 *
 *	append(u64 log, u32 value)   log[++log[0]] = value, with u32 log[]
 *	wait(u64 flag)               returns when the u32 at flag is not 0
 *	fault(u32 code)              ends with that CUresult
 *	write(u64 address, u32 n)    writes n bytes if they lie in one allocation, else CUDA_ERROR_ILLEGAL_ADDRESS
 *	nothing()
 *	increase(u64 address, u32 n) adds n to the u32 there
 *	increase_at(u64 pointer, u32 n) the same at the address that the u64 there holds, if it is in an allocation
 *	meet(u64 address, u32 n)     adds 1 to the u32 there and returns when it is at least n
 *	choose(u64 handle, u32 n)    cudaGraphSetConditional
 *	shaped()                     nothing; only in blocks of 32 threads
 *	print()                      nothing; counts as a kernel that prints
 *	decrease(u64 address, u64 handle) takes 1 from the u32 there and sets the condition to what is left
 *
 * It has 2 threads, or as many as SOFTGPU_DOUBLE_THREADS says. Each program has a variable "cell" of 16 bytes. A line "error TEXT" makes the load fail with CUDA_ERROR_INVALID_PTX.
 */
#include "cuda_remote/softgpu/engine.h"
#include "cuda_remote/softgpu/memory_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct softgpu_kernel {
	const char *name;
	uint32_t parameters;
	struct {
		uint32_t offset, size;
	} parameter[2];
	uint32_t bytes;
	CUresult (*run)(const unsigned char *parameters);
};

struct softgpu_program {
	const struct softgpu_kernel *kernels[16];
	size_t count;
	uint64_t cell;
};

static uint64_t u64_at(const unsigned char *parameters)
{
	uint64_t value;
	memcpy(&value, parameters, sizeof value);
	return value;
}

static uint32_t u32_at(const unsigned char *parameters)
{
	uint32_t value;
	memcpy(&value, parameters, sizeof value);
	return value;
}

static CUresult run_append(const unsigned char *parameters)
{
	uint32_t *log = (uint32_t *)(uintptr_t)u64_at(parameters);
	log[__atomic_add_fetch(&log[0], 1, __ATOMIC_RELAXED)] = u32_at(parameters + 8);
	return CUDA_SUCCESS;
}

/* A kernel that reads device memory while a copy writes it: allowed on a device, so ThreadSanitizer does not look. */
__attribute__((no_sanitize("thread"))) static CUresult run_wait(const unsigned char *parameters)
{
	const uint32_t *flag = (const uint32_t *)(uintptr_t)u64_at(parameters);
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
	return CUDA_SUCCESS;
}

static CUresult run_fault(const unsigned char *parameters)
{
	return (CUresult)u32_at(parameters);
}

static CUresult run_write(const unsigned char *parameters)
{
	uint64_t address = u64_at(parameters);
	uint32_t bytes = u32_at(parameters + 8);
	softgpu_span_t span;
	if (!softgpu_memory_find(address, &span) || span.read_only || bytes > span.size - (address - span.base))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	memset((void *)(uintptr_t)address, 0xA5, bytes);
	return CUDA_SUCCESS;
}

static CUresult run_nothing(const unsigned char *parameters)
{
	(void)parameters;
	return CUDA_SUCCESS;
}

static CUresult run_increase(const unsigned char *parameters)
{
	__atomic_add_fetch((uint32_t *)(uintptr_t)u64_at(parameters), u32_at(parameters + 8), __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

static CUresult run_increase_at(const unsigned char *parameters)
{
	uint64_t at = *(const uint64_t *)(uintptr_t)u64_at(parameters);
	softgpu_span_t span;
	if (!softgpu_memory_find(at, &span))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	__atomic_add_fetch((uint32_t *)(uintptr_t)at, u32_at(parameters + 8), __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

static CUresult run_meet(const unsigned char *parameters)
{
	uint32_t *here = (uint32_t *)(uintptr_t)u64_at(parameters);
	__atomic_add_fetch(here, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(here, __ATOMIC_ACQUIRE) < u32_at(parameters + 8))
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
	return CUDA_SUCCESS;
}

static CUresult choose(uint64_t handle, uint32_t value)
{
	softgpu_conditional_t *conditional = (softgpu_conditional_t *)(uintptr_t)handle;
	if (conditional->check != SOFTGPU_CONDITIONAL_CHECK)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	conditional->value = value;
	return CUDA_SUCCESS;
}

static CUresult run_choose(const unsigned char *parameters)
{
	return choose(u64_at(parameters), u32_at(parameters + 8));
}

static CUresult run_decrease(const unsigned char *parameters)
{
	uint32_t *left = (uint32_t *)(uintptr_t)u64_at(parameters);
	return choose(u64_at(parameters + 8), --*left);
}

static const struct softgpu_kernel kernels[] = {
	{ "append", 2, { { 0, 8 }, { 8, 4 } }, 12, run_append },
	{ "wait", 1, { { 0, 8 } }, 8, run_wait },
	{ "fault", 1, { { 0, 4 } }, 4, run_fault },
	{ "write", 2, { { 0, 8 }, { 8, 4 } }, 12, run_write },
	{ "nothing", 0, { { 0, 0 } }, 0, run_nothing },
	{ "print", 0, { { 0, 0 } }, 0, run_nothing },
	{ "shaped", 0, { { 0, 0 } }, 0, run_nothing },
	{ "increase", 2, { { 0, 8 }, { 8, 4 } }, 12, run_increase },
	{ "increase_at", 2, { { 0, 8 }, { 8, 4 } }, 12, run_increase_at },
	{ "meet", 2, { { 0, 8 }, { 8, 4 } }, 12, run_meet },
	{ "choose", 2, { { 0, 8 }, { 8, 4 } }, 12, run_choose },
	{ "decrease", 2, { { 0, 8 }, { 8, 8 } }, 16, run_decrease },
};

static void complain(softgpu_log_t *log, const char *text)
{
	if (log && log->text && log->size)
		log->used = (size_t)snprintf(log->text, log->size, "%s", text);
}

CUresult softgpu_program_load(const char *ptx, size_t length, softgpu_log_t *log, softgpu_program_t **program)
{
	if (length < 6 || memcmp(ptx, "double", 6) || strstr(ptx, "\nerror")) {
		complain(log, "line 1: not a program of the double");
		return CUDA_ERROR_INVALID_PTX;
	}
	softgpu_program_t *made = calloc(1, sizeof *made);
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		if (strstr(ptx, kernels[i].name))
			made->kernels[made->count++] = &kernels[i];
	made->cell = softgpu_memory_alloc(16, 16);
	if (!made->cell) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*program = made;
	return CUDA_SUCCESS;
}

/* A program of the double's has no names to link: the kernels of all units together. */
CUresult softgpu_program_link(const softgpu_unit_t *units, size_t count, softgpu_log_t *log, softgpu_program_t **program)
{
	char all[4096] = "";
	for (size_t n = 0; n < count; n++) {
		CUresult result = softgpu_program_check(&units[n], log);
		if (result)
			return result;
		strncat(all, units[n].text, sizeof all - 1 - strlen(all));
	}
	return softgpu_program_load(all, strlen(all), log, program);
}

CUresult softgpu_program_check(const softgpu_unit_t *unit, softgpu_log_t *log)
{
	if (unit->length >= 6 && !memcmp(unit->text, "double", 6) && !strstr(unit->text, "\nerror"))
		return CUDA_SUCCESS;
	complain(log, "line 1: not a program of the double");
	return CUDA_ERROR_INVALID_PTX;
}

void softgpu_program_unload(softgpu_program_t *program)
{
	softgpu_memory_free(program->cell);
	free(program);
}

softgpu_kernel_t *softgpu_program_kernel(softgpu_program_t *program, size_t index)
{
	return index < program->count ? (softgpu_kernel_t *)(uintptr_t)program->kernels[index] : NULL;
}

softgpu_kernel_t *softgpu_program_find(softgpu_program_t *program, const char *name)
{
	for (size_t i = 0; i < program->count; i++)
		if (!strcmp(program->kernels[i]->name, name))
			return (softgpu_kernel_t *)(uintptr_t)program->kernels[i];
	return NULL;
}

CUresult softgpu_program_variable(softgpu_program_t *program, const char *name, uint64_t *address, uint64_t *size)
{
	if (strcmp(name, "cell"))
		return CUDA_ERROR_NOT_FOUND;
	*address = program->cell;
	*size = 16;
	return CUDA_SUCCESS;
}

CUresult softgpu_program_reference(softgpu_program_t *program, const char *name, enum softgpu_texture_kind kind,
				   uint64_t *handle)
{
	(void)program;
	(void)name;
	(void)kind;
	(void)handle;
	return CUDA_ERROR_NOT_FOUND;
}

void softgpu_kernel_info(const softgpu_kernel_t *kernel, softgpu_kernel_info_t *info)
{
	*info = (softgpu_kernel_info_t){ .name = kernel->name, .parameters = kernel->parameters,
					 .parameter_bytes = kernel->bytes, .static_shared = 1024, .registers = 32,
					 .max_threads = 512, .ptx_version = 75,
					 .prints = !strcmp(kernel->name, "print") };
	if (!strcmp(kernel->name, "shaped"))
		memcpy(info->required_block, (uint32_t[]){ 32, 1, 1 }, sizeof info->required_block);
}

CUresult softgpu_kernel_parameter(const softgpu_kernel_t *kernel, size_t index, size_t *offset, size_t *size)
{
	if (index >= kernel->parameters)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = kernel->parameter[index].offset;
	*size = kernel->parameter[index].size;
	return CUDA_SUCCESS;
}

CUresult softgpu_launch(const softgpu_launch_t *launch)
{
	return launch->kernel->run(launch->parameters);
}

unsigned softgpu_threads(void)
{
	const char *number = getenv("SOFTGPU_DOUBLE_THREADS");
	return number ? (unsigned)atoi(number) : 2;
}
