/* SPDX-License-Identifier: BSD-3-Clause */
/* For the engine's own tests: device memory without a driver, and short ways to load and launch PTX text. */
#ifndef TEST_PTX_ENGINE_H
#define TEST_PTX_ENGINE_H

#include "cuda_remote/softgpu/engine.h"
#include "cuda_remote/softgpu/memory_map.h"

#include <check.h>

/* Zeroed device memory, which the host may touch directly. */
void *device_alloc(size_t size);
/* Frees everything that device_alloc gave. Each test of test_case ends with it. */
void device_reset(void);
size_t device_allocations(void);

/* A module of the given body, with .version, .target and .address_size before it. Fails the test if it does not load.
 */
softgpu_program_t *load_ptx(const char *body);
/* The same for a body that must not load: the result, and the log's text in log. */
CUresult load_bad_ptx(const char *body, char *log, size_t log_size);
softgpu_kernel_t *kernel_of(softgpu_program_t *program, const char *name);
/* blocks × threads in one dimension. */
CUresult launch_1d(softgpu_kernel_t *kernel, uint32_t blocks, uint32_t threads, const void *parameters);
/* Loads, launches "k", unloads. */
CUresult run_ptx(const char *body, uint32_t blocks, uint32_t threads, const void *parameters);
/* The same for a k with one parameter, the address of so many zeroed bytes: they, as k left them. It must succeed. */
void *run_output(const char *body, uint32_t blocks, uint32_t threads, size_t bytes);
/* The same with a word of 32 bits for every thread. */
uint32_t *run_words(const char *body, uint32_t blocks, uint32_t threads);

/* A module's body put together piece by piece, one at a time; then as run_ptx. */
void text_begin(void);
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
CUresult text_run(uint32_t blocks, uint32_t threads, const void *parameters);

/* The instruction sets to test, and loading with one of them from now on. */
#define ISAS 3
void use_isa(int isa);

/* The case that all tests of a program are in. */
TCase *test_case(const char *name);
/* Runs them; the exit status for main. */
int run_tests(void);

#endif
