/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HEADRACE_SOFTGPU_BOUNDS: kernels that write past the end of an allocation. Each case runs in a process of its own, as
 * the setting is read once and an illegal address stays with the context.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)

static const char store_ptx[] = ".version 8.4\n.target sm_75\n.address_size 64\n"
				".visible .entry store(.param .u64 at, .param .u32 value)\n{\n"
				".reg .b64 %a<2>; .reg .b32 %w<2>;\n"
				"ld.param.u64 %a1, [at]; ld.param.u32 %w1, [value]; st.global.u32 [%a1], %w1; ret;\n}\n";

/* Stores value at an address by a kernel. */
static CUresult store(CUdeviceptr at, uint32_t value)
{
	static CUfunction function;
	CUmodule module;
	if (!function) {
		OK(cuModuleLoadData(&module, store_ptx));
		OK(cuModuleGetFunction(&function, module, "store"));
	}
	void *parameters[] = { &at, &value };
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	return cuCtxSynchronize();
}

static uint32_t word_at(CUdeviceptr at)
{
	uint32_t value;
	OK(cuMemcpyDtoH(&value, at, sizeof value));
	return value;
}

static CUdeviceptr allocate(size_t bytes)
{
	CUdeviceptr memory;
	OK(cuMemAlloc(&memory, bytes));
	OK(cuMemsetD32(memory, 7, bytes / 4));
	return memory;
}

static void one_byte_too_far_is_illegal(void)
{
	CUdeviceptr memory = allocate(100);
	OK(store(memory + 96, 1));
	EXPECT(store(memory + 100, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void an_overrun_of_a_small_allocation_is_tolerated(void)
{
	CUdeviceptr first = allocate(100), second = allocate(100);
	OK(store(first + 100, 1));
	OK(store(first + 508, 1));
	/* Both lie in one page. What belongs to the second allocation is overwritten, and only there. */
	CHECK(second == first + 512);
	CHECK(word_at(second) == 7 && word_at(first + 96) == 7);
	OK(store(first + 512, 9));
	CHECK(word_at(second) == 9 && word_at(second + 4) == 7);
	OK(cuMemFree(first));
	OK(cuMemFree(second));
	CHECK(word_at(allocate(100)) == 7);
}

static void an_overrun_of_a_large_allocation_ends_with_its_last_page(void)
{
	CUdeviceptr memory = allocate(3 * MIB);
	CHECK(memory % (2 * MIB) == 0);
	OK(store(memory + 3 * MIB, 1));
	OK(store(memory + 4 * MIB - 4, 1));
	CHECK(word_at(memory + 3 * MIB - 4) == 7);
	EXPECT(store(memory + 4 * MIB, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void the_host_s_copies_keep_exact_bounds(void)
{
	char bytes[104];
	CUdeviceptr memory = allocate(100);
	EXPECT(cuMemcpyDtoH(bytes, memory, sizeof bytes), CUDA_ERROR_INVALID_VALUE);
}

static void freed_memory_is_illegal(void)
{
	CUdeviceptr memory = allocate(3 * MIB);
	OK(store(memory, 1));
	OK(cuMemFree(memory));
	EXPECT(store(memory, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Runs a case with a value of the setting. What it wrote to stderr; NULL if it failed. */
static const char *run(const char *bounds, void (*test)(void))
{
	static char text[4096];
	int log = memfd_create("log", 0), status;
	pid_t child = fork();
	CHECK(log >= 0 && child >= 0);
	if (!child) {
		dup2(log, 2);
		setenv("HEADRACE_SOFTGPU_BOUNDS", bounds, 1);
		start();
		test();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	ssize_t size = pread(log, text, sizeof text - 1, 0);
	text[size > 0 ? size : 0] = 0;
	close(log);
	if (status)
		fprintf(stderr, "HEADRACE_SOFTGPU_BOUNDS=%s: %s", bounds, text);
	return status ? NULL : text;
}

int main(void)
{
	const char *text = run("exact", one_byte_too_far_is_illegal);
	CHECK(text && strstr(text, "bounds are exact") && strstr(text, "HEADRACE_SOFTGPU_BOUNDS=page"));
	CHECK(run("", one_byte_too_far_is_illegal));
	text = run("blurred", one_byte_too_far_is_illegal);
	CHECK(text && strstr(text, "HEADRACE_SOFTGPU_BOUNDS=blurred is neither exact nor page"));
	CHECK(run("page", an_overrun_of_a_small_allocation_is_tolerated));
	text = run("page", an_overrun_of_a_large_allocation_ends_with_its_last_page);
	CHECK(text && !strstr(text, "bounds are exact"));
	CHECK(run("page", the_host_s_copies_keep_exact_bounds));
	CHECK(run("page", freed_memory_is_illegal));
	CHECK(run("exact", freed_memory_is_illegal));
	return 0;
}
