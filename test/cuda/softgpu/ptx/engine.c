/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory map that the engine needs, over malloc, and the helpers that its tests share. */
#include "test/cuda/softgpu/ptx/engine.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOCATIONS_MAX 1024

static struct {
	pthread_mutex_t lock;
	struct {
		uint64_t base, size;
	} spans[ALLOCATIONS_MAX];
	size_t count;
	uint64_t generation;
} heap = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint64_t softgpu_memory_alloc(uint64_t size, uint64_t align)
{
	uint64_t room = (size + align - 1) / align * align;
	char *memory = room < 1u << 30 ? aligned_alloc(align, room) : NULL;
	pthread_mutex_lock(&heap.lock);
	if (memory && heap.count < ALLOCATIONS_MAX) {
		memset(memory, 0, room);
		heap.spans[heap.count].base = (uint64_t)(uintptr_t)memory;
		heap.spans[heap.count++].size = size;
	} else {
		free(memory);
		memory = NULL;
	}
	pthread_mutex_unlock(&heap.lock);
	return (uint64_t)(uintptr_t)memory;
}

void softgpu_memory_free(uint64_t base)
{
	pthread_mutex_lock(&heap.lock);
	for (size_t n = 0; n < heap.count; n++) {
		if (heap.spans[n].base != base)
			continue;
		free((void *)(uintptr_t)base);
		heap.spans[n] = heap.spans[--heap.count];
		heap.generation++;
		break;
	}
	pthread_mutex_unlock(&heap.lock);
}

/* Without a limit, and of everybody: a heap's limits are the driver's, and tested there. */
uint64_t softgpu_heap_alloc(softgpu_heap_t *unused, uint64_t size)
{
	(void)unused;
	return size ? softgpu_memory_alloc(size, 16) : 0;
}

bool softgpu_heap_free(softgpu_heap_t *unused, uint64_t base)
{
	softgpu_span_t span;
	(void)unused;
	bool known = softgpu_memory_find(base, &span) && span.base == base;
	if (known)
		softgpu_memory_free(base);
	return known;
}

bool softgpu_memory_find(uint64_t address, softgpu_span_t *span)
{
	bool found = false;
	pthread_mutex_lock(&heap.lock);
	for (size_t n = 0; n < heap.count && !found; n++) {
		found = address - heap.spans[n].base < heap.spans[n].size;
		if (found)
			*span = (softgpu_span_t){ heap.spans[n].base, heap.spans[n].size, false };
	}
	pthread_mutex_unlock(&heap.lock);
	return found;
}

bool softgpu_memory_bounds_exact(void)
{
	return true;
}

uint64_t softgpu_memory_generation(void)
{
	return __atomic_load_n(&heap.generation, __ATOMIC_RELAXED);
}

void *device_alloc(size_t size)
{
	uint64_t base = softgpu_memory_alloc(size, 256);
	ck_assert_msg(base != 0, "no memory");
	return (void *)(uintptr_t)base;
}

void device_reset(void)
{
	while (heap.count)
		softgpu_memory_free(heap.spans[0].base);
}

size_t device_allocations(void)
{
	return heap.count;
}

static CUresult load(const char *body, softgpu_log_t *log, softgpu_program_t **program)
{
	static const char head[] = ".version 8.4\n.target sm_75\n.address_size 64\n";
	size_t size = sizeof head + strlen(body);
	char *whole = malloc(size);
	snprintf(whole, size, "%s%s", head, body);
	CUresult result = softgpu_program_load(whole, size - 1, log, program);
	free(whole);
	return result;
}

softgpu_program_t *load_ptx(const char *body)
{
	char said[512] = "";
	softgpu_log_t log = { said, sizeof said, 0 };
	softgpu_program_t *program = NULL;
	CUresult result = load(body, &log, &program);
	ck_assert_msg(result == CUDA_SUCCESS, "load gave %d: %s", (int)result, said);
	return program;
}

CUresult load_bad_ptx(const char *body, char *said, size_t size)
{
	softgpu_log_t log = { said, size, 0 };
	softgpu_program_t *program = NULL;
	said[0] = '\0';
	CUresult result = load(body, &log, &program);
	if (result == CUDA_SUCCESS)
		softgpu_program_unload(program);
	return result;
}

softgpu_kernel_t *kernel_of(softgpu_program_t *program, const char *name)
{
	softgpu_kernel_t *kernel = softgpu_program_find(program, name);
	ck_assert_msg(kernel != NULL, "no kernel %s", name);
	return kernel;
}

CUresult launch_1d(softgpu_kernel_t *kernel, uint32_t blocks, uint32_t threads, const void *parameters)
{
	softgpu_launch_t launch = { .kernel = kernel, .grid = { blocks, 1, 1 }, .block = { threads, 1, 1 },
				    .parameters = parameters };
	return softgpu_launch(&launch);
}

CUresult run_ptx(const char *body, uint32_t blocks, uint32_t threads, const void *parameters)
{
	softgpu_program_t *program = load_ptx(body);
	CUresult result = launch_1d(kernel_of(program, "k"), blocks, threads, parameters);
	softgpu_program_unload(program);
	return result;
}

void *run_output(const char *body, uint32_t blocks, uint32_t threads, size_t bytes)
{
	void *out = device_alloc(bytes);
	ck_assert_int_eq(run_ptx(body, blocks, threads, &out), CUDA_SUCCESS);
	return out;
}

uint32_t *run_words(const char *body, uint32_t blocks, uint32_t threads)
{
	return run_output(body, blocks, threads, (size_t)blocks * threads * sizeof(uint32_t));
}

static char text[1 << 17];
static size_t text_used;

void text_begin(void)
{
	text_used = 0;
}

void say(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(text + text_used, sizeof text - text_used, format, arguments);
	va_end(arguments);
	ck_assert(n >= 0 && (size_t)n < sizeof text - text_used);
	text_used += (size_t)n;
}

CUresult text_run(uint32_t blocks, uint32_t threads, const void *parameters)
{
	return run_ptx(text, blocks, threads, parameters);
}

void use_isa(int isa)
{
	static const char *const names[] = { "baseline", "avx2", "avx512" };
	setenv("HEADRACE_SOFTGPU_ISA", names[isa], 1);
}

static Suite *suite;

TCase *test_case(const char *name)
{
	TCase *cases = tcase_create(name);
	/* Far more than any takes: a machine may be busy with other things. */
	tcase_set_timeout(cases, 120);
	tcase_add_checked_fixture(cases, NULL, device_reset);
	suite = suite_create(name);
	suite_add_tcase(suite, cases);
	return cases;
}

int run_tests(void)
{
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
