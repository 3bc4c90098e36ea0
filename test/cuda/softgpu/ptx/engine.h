/* SPDX-License-Identifier: BSD-3-Clause */
/* For the engine's own tests: device memory without a driver, and short ways to load and launch PTX text. */
#ifndef TEST_PTX_ENGINE_H
#define TEST_PTX_ENGINE_H

#include "cuda_remote/softgpu/engine.h"
#include "cuda_remote/softgpu/memory_map.h"

#include <check.h>

/* Allocates zeroed device memory, which the host may access directly. */
void *device_alloc(size_t size);
/* Frees everything that device_alloc has allocated. Each test of test_case ends with it. */
void device_reset(void);
size_t device_allocations(void);

/* Loads a module: .version, .target and .address_size, then body. The test fails if it does not load. */
softgpu_program_t *load_ptx(const char *body);
/* The same for a body that must not load. Returns the result, and the log's text in log. */
CUresult load_bad_ptx(const char *body, char *log, size_t log_size);
softgpu_kernel_t *kernel_of(softgpu_program_t *program, const char *name);
/* Launches blocks × threads, in one dimension. */
CUresult launch_1d(softgpu_kernel_t *kernel, uint32_t blocks, uint32_t threads, const void *parameters);
/* Loads a module, launches its kernel "k", and unloads it. */
CUresult run_ptx(const char *body, uint32_t blocks, uint32_t threads, const void *parameters);
/* The same for a kernel with one parameter, the address of `bytes` zeroed bytes. Returns these bytes after the launch,
 * which must succeed. */
void *run_output(const char *body, uint32_t blocks, uint32_t threads, size_t bytes);
/* The same with a word of 32 bits for every thread. */
uint32_t *run_words(const char *body, uint32_t blocks, uint32_t threads);

/* Build a module's body piece by piece: text_begin, then say for each piece, then text_run, which is as run_ptx. */
void text_begin(void);
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
CUresult text_run(uint32_t blocks, uint32_t threads, const void *parameters);

/* The number of instruction sets that the tree has builds for. use_isa loads all following modules with one of them. */
#ifdef SOFTGPU_X86_64
#define ISAS 3
#else
#define ISAS 1
#endif
void use_isa(int isa);

/* Returns the case that contains all tests of a program. */
TCase *test_case(const char *name);
/* Runs these tests. Returns the exit status for main. */
int run_tests(void);

#endif
