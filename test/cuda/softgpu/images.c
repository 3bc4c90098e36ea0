/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which images can be loaded as a module or library, which cannot and with what message; damaged images of every kind.
 */
#include "config.h"

#include "driver.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef HAVE_LZ4
#include <lz4.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

static const char program[] =
	"double\nappend wait fault write nothing                                                \n";

enum packing { RAW, LZ4, ZSTD };
enum { PTX = 1, ELF = 2 };

static unsigned char fatbin[8192];
static size_t fatbin_bytes;

static void put(size_t at, uint64_t value, size_t bytes)
{
	memcpy(fatbin + at, &value, bytes);
}

static void begin(void)
{
	memset(fatbin, 0, sizeof fatbin);
	put(0, 0xBA55ED50u, 4);
	put(4, 1, 2);
	put(6, 16, 2);
	fatbin_bytes = 16;
}

/* Packs payload after the entry's header. Returns its size; 0: this build cannot. */
static size_t pack(enum packing packing, const char *payload, size_t bytes, unsigned char *to)
{
	(void)to;
	switch (packing) {
#ifdef HAVE_LZ4
	case LZ4:
		return (size_t)LZ4_compress_default(payload, (char *)to, (int)bytes, 4096);
#endif
#ifdef HAVE_ZSTD
	case ZSTD:
		return ZSTD_compress(to, 4096, payload, bytes, 3);
#endif
	case RAW:
		memcpy(to, payload, bytes);
		return bytes;
	default:
		return 0;
	}
}

/* Appends an entry; false if this build has no such compression. */
static int entry(int kind, unsigned sm, enum packing packing, const char *payload, size_t bytes)
{
	size_t at = fatbin_bytes, packed = pack(packing, payload, bytes, fatbin + at + 64);
	if (!packed)
		return 0;
	size_t padded = (packed + 7) & ~(size_t)7;
	put(at, (uint64_t)kind, 2);
	put(at + 2, 0x101, 2);
	put(at + 4, 64, 4);
	put(at + 8, padded, 8);
	put(at + 16, packing == RAW ? 0 : packed, 4);
	put(at + 28, sm, 4);
	put(at + 40, packing == LZ4 ? 0x2000 : packing == ZSTD ? 0x8000 : 0, 8);
	put(at + 56, packing == RAW ? 0 : bytes, 8);
	fatbin_bytes += 64 + padded;
	put(8, fatbin_bytes - 16, 8);
	return 1;
}

/* A program of the double with a kernel of its own, to tell entries apart. */
static void named(char text[64], const char *name)
{
	snprintf(text, 64, "double\n%s\n", name);
}

static CUresult load(CUmodule *module)
{
	return cuModuleLoadData(module, fatbin);
}

static void every_packing_unpacks(void)
{
	for (int packing = RAW; packing <= ZSTD; packing++) {
		CUmodule module;
		CUfunction function;
		begin();
		if (!entry(PTX, 75, (enum packing)packing, program, sizeof program)) {
			printf("packing %d: not in this build\n", packing);
			continue;
		}
		OK(load(&module));
		OK(cuModuleGetFunction(&function, module, "append"));
		EXPECT(cuModuleGetFunction(&function, module, "absent"), CUDA_ERROR_NOT_FOUND);
		OK(cuModuleUnload(module));
		EXPECT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
		struct {
			uint32_t magic, version;
			const void *data, *units;
		} wrapper = { 0x466243B1u, 1, fatbin, NULL };
		OK(cuModuleLoadFatBinary(&module, &wrapper));
		OK(cuModuleUnload(module));
		const void *units[] = { fatbin, NULL };
		wrapper.version = 2;
		wrapper.units = units;
		OK(cuModuleLoadData(&module, &wrapper));
		OK(cuModuleUnload(module));
		wrapper.version = 9;
		EXPECT(cuModuleLoadData(&module, &wrapper), CUDA_ERROR_INVALID_IMAGE);
	}
}

static void the_highest_architecture_that_runs_is_taken(void)
{
	char low[64], best[64], high[64];
	CUmodule module;
	CUfunction function;
	named(low, "wait");
	named(best, "append");
	named(high, "fault");
	begin();
	entry(PTX, 75, RAW, low, sizeof low);
	entry(ELF, 90, RAW, "\177ELF", 4);
	entry(PTX, 90, RAW, best, sizeof best);
	entry(PTX, 80, RAW, low, sizeof low);
	entry(PTX, 100, RAW, high, sizeof high);
	OK(load(&module));
	OK(cuModuleGetFunction(&function, module, "append"));
	OK(cuModuleUnload(module));
}

/* The log says why, and is cut to the buffer. */
static CUresult load_with_log(const void *image, char *error, size_t room)
{
	CUmodule module;
	char info[100] = "untouched";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
				   CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL };
	void *values[] = { error, (void *)room, info, (void *)sizeof info, (void *)4 };
	CUresult result = cuModuleLoadDataEx(&module, image, 5, options, values);
	CHECK((size_t)values[1] == strlen(error) && strlen(error) < room);
	CHECK(info[0] == '\0');
	return result;
}

static void refusals_say_why(void)
{
	char error[600];
	begin();
	entry(ELF, 90, RAW, "\177ELF", 4);
	EXPECT(load_with_log(fatbin, error, sizeof error), CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK(strstr(error, "needs PTX"));
	begin();
	entry(PTX, 100, RAW, program, sizeof program);
	EXPECT(load_with_log(fatbin, error, sizeof error), CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK(strstr(error, "sm_100"));
	EXPECT(load_with_log(fatbin, error, 10), CUDA_ERROR_NO_BINARY_FOR_GPU);
	EXPECT(load_with_log("\177ELF\2\1\1", error, sizeof error), CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK(strstr(error, "cubin"));
	EXPECT(load_with_log("this is no PTX", error, sizeof error), CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(error, "line 1"));
	EXPECT(load_with_log("", error, sizeof error), CUDA_ERROR_INVALID_IMAGE);
	CUmodule module;
	EXPECT(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuModuleLoad(&module, "/no/such/file"), CUDA_ERROR_FILE_NOT_FOUND);
	CUjit_option unknown = (CUjit_option)99;
	void *value = NULL;
	EXPECT(cuModuleLoadDataEx(&module, program, 1, &unknown, &value), CUDA_ERROR_INVALID_VALUE);
}

static CUresult load_file(const void *data, size_t bytes)
{
	char name[] = "/tmp/headrace-image-XXXXXX";
	int file = mkstemp(name);
	CHECK(file >= 0 && write(file, data, bytes) == (ssize_t)bytes);
	close(file);
	CUmodule module;
	CUresult result = cuModuleLoad(&module, name);
	unlink(name);
	if (!result)
		OK(cuModuleUnload(module));
	return result;
}

/* Every byte changed in turn, and cut off at every length: an error or a program, never a crash. */
static void damaged_images_are_refused(void)
{
	for (int packing = RAW; packing <= ZSTD; packing++) {
		begin();
		entry(ELF, 90, RAW, "\177ELF", 4);
		if (!entry(PTX, 75, (enum packing)packing, program, sizeof program))
			continue;
		OK(load_file(fatbin, fatbin_bytes));
		unsigned refused = 0;
		for (size_t at = 0; at < fatbin_bytes; at++) {
			const unsigned char changes[] = { 0x00, 0xFF, 0x80, 0x01 };
			for (size_t i = 0; i < sizeof changes; i++) {
				unsigned char before = fatbin[at];
				fatbin[at] = i < 2 ? changes[i] : before ^ changes[i];
				refused += load_file(fatbin, fatbin_bytes) != CUDA_SUCCESS;
				fatbin[at] = before;
			}
			if (at < fatbin_bytes)
				CHECK(load_file(fatbin, at) != CUDA_SUCCESS);
		}
		CHECK(refused > 60);
	}
}

/* The limit leaves no room for as much memory as the header says, so the load must not try to allocate it. */
static void a_size_that_the_payload_cannot_have_is_refused_before_memory_is_allocated(void)
{
	struct rlimit before, less;
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "r");
	CHECK(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	OK(getrlimit(RLIMIT_AS, &before) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
	less = before;
	less.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)64 << 20);
	for (int packing = LZ4; packing <= ZSTD; packing++) {
		CUmodule module;
		begin();
		if (!entry(PTX, 75, (enum packing)packing, program, sizeof program))
			continue;
		put(16 + 56, (uint64_t)500 << 20, 8);
		CHECK(!setrlimit(RLIMIT_AS, &less));
		CUresult result = load(&module);
		CHECK(!setrlimit(RLIMIT_AS, &before));
		EXPECT(result, CUDA_ERROR_INVALID_IMAGE);
	}
}

static void libraries_follow_contexts(CUcontext first)
{
	CUlibrary library;
	CUkernel kernels[5], append_kernel;
	CUfunction here, there;
	CUcontext second;
	CUdeviceptr cell_here, cell_there;
	const char *name;
	unsigned count;
	size_t bytes;
	OK(cuCtxSetCurrent(NULL));
	OK(cuLibraryLoadData(&library, program, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernelCount(&count, library));
	CHECK(count == 5);
	OK(cuLibraryEnumerateKernels(kernels, 5, library));
	OK(cuLibraryGetKernel(&append_kernel, library, "append"));
	EXPECT(cuLibraryGetKernel(&append_kernel, library, "none"), CUDA_ERROR_NOT_FOUND);
	OK(cuKernelGetName(&name, append_kernel));
	CHECK(!strcmp(name, "append"));
	EXPECT(cuKernelGetName(&name, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuFuncGetName(&name, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuKernelGetFunction(&here, append_kernel), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(first));
	OK(cuKernelGetFunction(&here, append_kernel));
	OK(cuLibraryGetGlobal(&cell_here, &bytes, library, "cell"));
	CHECK(bytes == 16);
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuKernelGetFunction(&there, append_kernel));
	OK(cuLibraryGetGlobal(&cell_there, &bytes, library, "cell"));
	CHECK(here != there && cell_here != cell_there);
	/* A kernel handle can be launched in the current context in place of a function. */
	void *memory;
	uint32_t value = 3;
	OK(cuMemHostAlloc(&memory, 64, 0));
	memset(memory, 0, 64);
	void *parameters[] = { &memory, &value };
	OK(cuLaunchKernel((CUfunction)append_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	EXPECT(cuLaunchKernel(here, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxSynchronize());
	CHECK(((uint32_t *)memory)[0] == 1 && ((uint32_t *)memory)[1] == 3);
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(first));
	int registers;
	OK(cuKernelGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, append_kernel, 0));
	CHECK(registers == 32);
	EXPECT(cuMemFree(cell_here), CUDA_ERROR_INVALID_VALUE);
	OK(cuLibraryUnload(library));
	EXPECT(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuKernelGetName(&name, append_kernel), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuLaunchKernel(here, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void variables_are_memory(void)
{
	CUmodule module;
	CUdeviceptr cell;
	size_t bytes;
	char zero[16] = { 0 }, back[16];
	OK(cuModuleLoadData(&module, program));
	OK(cuModuleGetGlobal(&cell, &bytes, module, "cell"));
	EXPECT(cuModuleGetGlobal(&cell, &bytes, module, "no_such_cell"), CUDA_ERROR_NOT_FOUND);
	OK(cuMemcpyDtoH(back, cell, 16));
	CHECK(!memcmp(back, zero, 16));
	EXPECT(cuMemcpyDtoH(back, cell, 17), CUDA_ERROR_INVALID_VALUE);
	OK(cuModuleUnload(module));
	EXPECT(cuMemcpyDtoH(back, cell, 16), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
	setenv("HEADRACE_SOFTGPU_MEMORY", "64M", 1);
	setenv("HEADRACE_SOFTGPU_CAPABILITY", "90", 1);
	CUcontext context = start();
	/* Every damaged image would be an error in the log. */
	int quiet = open("/dev/null", O_WRONLY), loud = dup(2);
	every_packing_unpacks();
	the_highest_architecture_that_runs_is_taken();
	refusals_say_why();
	dup2(quiet, 2);
	damaged_images_are_refused();
	a_size_that_the_payload_cannot_have_is_refused_before_memory_is_allocated();
	dup2(loud, 2);
	libraries_follow_contexts(context);
	variables_are_memory();
	OK(cuDevicePrimaryCtxRelease(0));
	return 0;
}
