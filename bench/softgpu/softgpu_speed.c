/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softgpu_speed LIBCUDA PTX: measures how fast the software GPU executes the kernels of kernels.cu, with one thread and
 * with two, and the same work in plain C on one core, scalar and vectorised. PTX is the compiled kernels.cu.
 *
 * Each column is measured by a process of its own, as the library reads its settings only once. The columns are
 * measured in turn, several times; each figure is the median. One more process counts the instructions with
 * HEADRACE_SOFTGPU_COUNT.
 */
#define _GNU_SOURCE
#include "plain.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	VECTOR = 1 << 20,                              /* elements */
	MATRIX_HA = 320, MATRIX_WA = 320, MATRIX_WB = 640, /* the default sizes of NVIDIA's matrixMul */
	LANE_BLOCKS = 64, LANE_STEPS = 4096,
	TURNS = 5, REPEATS = 7,
};

enum kernel { VECTOR_ADD, MATRIX_MUL, ONE_LANE, KERNELS };
static const char *const names[KERNELS] = { "vector_add", "matrix_mul", "one_lane" };
static const char *const what[KERNELS] = { "vectorAdd, 2^20 elements", "matrixMul, 320x320 by 320x640",
					   "one lane of 32, 64 blocks" };

enum column { ONE_THREAD, TWO_THREADS, SCALAR_C, VECTOR_C, COLUMNS };

static void die(const char *text)
{
	fprintf(stderr, "softgpu_speed: %s\n", text);
	exit(1);
}

static double now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof *values, compare);
	return values[n / 2];
}

/* ---- plain C */

struct data {
	float *a, *b, *c;
	unsigned *words;
};

static void *filled(size_t count)
{
	float *memory = aligned_alloc(4096, (count * sizeof *memory + 4095) & ~4095ul);
	if (!memory)
		die("no memory");
	for (size_t i = 0; i < count; i++)
		memory[i] = (float)(i % 101) / 101.0f - 0.5f;
	return memory;
}

static void run_plain(const struct plain *plain, enum kernel kernel, struct data *data)
{
	if (kernel == VECTOR_ADD)
		plain->vector_add(data->a, data->b, data->c, VECTOR);
	else if (kernel == MATRIX_MUL)
		plain->matrix_mul(data->c, data->a, data->b, MATRIX_HA, MATRIX_WA, MATRIX_WB);
	else
		plain->one_lane(data->words, LANE_BLOCKS, LANE_STEPS);
}

static void measure_plain(const struct plain *plain)
{
	struct data data = { filled(VECTOR), filled(VECTOR), filled(VECTOR), filled(LANE_BLOCKS * 1024) };
	for (enum kernel kernel = 0; kernel < KERNELS; kernel++) {
		double times[REPEATS];
		run_plain(plain, kernel, &data);
		for (int i = 0; i < REPEATS; i++) {
			double begin = now_us();
			run_plain(plain, kernel, &data);
			times[i] = now_us() - begin;
		}
		printf("%s %.3f\n", names[kernel], median(times, REPEATS));
	}
}

/* ---- the software GPU, by the driver API */

#define CALLS(X)                                                                                                 \
	X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuModuleLoadData) X(cuModuleGetFunction)      \
	X(cuMemAlloc) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuLaunchKernel) X(cuCtxSynchronize)

#define DECLARE(name) static __typeof__(name) *p_##name;
CALLS(DECLARE)

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
#define RESOLVE(name)                                                                                            \
	if (!(p_##name = (__typeof__(p_##name))dlsym(library, TEXT(name))))                                      \
		die("no " TEXT(name) " in the library");

static void check(CUresult result, const char *call)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "softgpu_speed: %s: error %d\n", call, (int)result);
	exit(1);
}
#define CHECK(name, ...) check(p_##name(__VA_ARGS__), #name)

static char *read_text(const char *path)
{
	char *text = NULL;
	size_t room = 0;
	FILE *file = fopen(path, "r");
	if (!file || getdelim(&text, &room, '\0', file) < 0)
		die("the PTX cannot be read");
	fclose(file);
	return text;
}

struct device {
	CUfunction kernels[KERNELS];
	CUdeviceptr a, b, c, words;
};

static CUdeviceptr device_copy(const void *from, size_t bytes)
{
	CUdeviceptr to;
	CHECK(cuMemAlloc, &to, bytes);
	CHECK(cuMemcpyHtoD, to, from, bytes);
	return to;
}

static void open_device(struct device *device, const char *path, const char *ptx, const struct data *data)
{
	CUmodule module;
	CUcontext context;
	void *library = dlopen(path, RTLD_NOW);
	if (!library)
		die(dlerror());
	CALLS(RESOLVE)
	CHECK(cuInit, 0);
	CHECK(cuDevicePrimaryCtxRetain, &context, 0);
	CHECK(cuCtxSetCurrent, context);
	CHECK(cuModuleLoadData, &module, read_text(ptx));
	for (int n = 0; n < KERNELS; n++)
		CHECK(cuModuleGetFunction, &device->kernels[n], module, names[n]);
	device->a = device_copy(data->a, VECTOR * sizeof(float));
	device->b = device_copy(data->b, VECTOR * sizeof(float));
	device->c = device_copy(data->c, VECTOR * sizeof(float));
	device->words = device_copy(data->words, LANE_BLOCKS * 1024 * sizeof(unsigned));
}

static void run_kernel(struct device *device, enum kernel kernel)
{
	int n = VECTOR, wa = MATRIX_WA, wb = MATRIX_WB, steps = LANE_STEPS;
	CUfunction function = device->kernels[kernel];
	void *vector[] = { &device->a, &device->b, &device->c, &n };
	void *matrix[] = { &device->c, &device->a, &device->b, &wa, &wb };
	void *lane[] = { &device->words, &steps };
	if (kernel == VECTOR_ADD)
		CHECK(cuLaunchKernel, function, VECTOR / 256, 1, 1, 256, 1, 1, 0, NULL, vector, NULL);
	else if (kernel == MATRIX_MUL)
		CHECK(cuLaunchKernel, function, MATRIX_WB / 32, MATRIX_HA / 32, 1, 32, 32, 1, 0, NULL, matrix, NULL);
	else
		CHECK(cuLaunchKernel, function, LANE_BLOCKS, 1, 1, 32, 1, 1, 0, NULL, lane, NULL);
	CHECK(cuCtxSynchronize, );
}

/* Compares the device's results with those of plain C: exactly, but for matrix_mul with a tolerance. */
static void check_results(struct device *device, enum kernel kernel, struct data *data)
{
	size_t bytes = kernel == VECTOR_ADD ? VECTOR * sizeof(float)
		       : kernel == MATRIX_MUL ? MATRIX_HA * MATRIX_WB * sizeof(float)
					      : LANE_BLOCKS * 1024 * sizeof(unsigned);
	const void *wanted = kernel == ONE_LANE ? (const void *)data->words : data->c;
	float *got = filled(bytes / sizeof(float));
	CHECK(cuMemcpyDtoH, got, kernel == ONE_LANE ? device->words : device->c, bytes);
	run_plain(&plain_scalar, kernel, data);
	for (size_t i = 0; kernel == MATRIX_MUL && i < bytes / sizeof(float); i++)
		if (got[i] - data->c[i] > 1e-4f || data->c[i] - got[i] > 1e-4f || got[i] != got[i])
			die("matrix_mul gives a wrong result");
	if (kernel != MATRIX_MUL && memcmp(got, wanted, bytes))
		die("a kernel gives a wrong result");
	free(got);
}

static void measure_device(const char *library, const char *ptx, bool count)
{
	struct data data = { filled(VECTOR), filled(VECTOR), filled(VECTOR), filled(LANE_BLOCKS * 1024) };
	struct device device;
	open_device(&device, library, ptx, &data);
	for (enum kernel kernel = 0; kernel < KERNELS; kernel++) {
		double times[REPEATS];
		run_kernel(&device, kernel);
		check_results(&device, kernel, &data);
		if (count)
			continue;
		for (int i = 0; i < REPEATS; i++) {
			double begin = now_us();
			run_kernel(&device, kernel);
			times[i] = now_us() - begin;
		}
		printf("%s %.3f\n", names[kernel], median(times, REPEATS));
	}
}

/* ---- the parent */

struct child {
	pid_t pid;
	FILE *out;
};

/* Starts this program again for one column. Its output (for "count": its log) can be read from out. */
static struct child start(char *const *argv, const char *role)
{
	int ends[2];
	char *again[] = { argv[0], argv[1], argv[2], (char *)role, NULL };
	struct child child;
	if (pipe(ends) || (child.pid = fork()) < 0)
		die("no process");
	if (child.pid == 0) {
		bool count = !strcmp(role, "count");
		dup2(ends[1], count ? STDERR_FILENO : STDOUT_FILENO);
		close(ends[0]);
		setenv("HEADRACE_SOFTGPU_THREADS", !strcmp(role, "2") ? "2" : "1", 1);
		setenv("HEADRACE_SOFTGPU_COUNT", count ? "1" : "0", 1);
		if (count)
			setenv("HEADRACE_LOG", "info", 1);
		execv("/proc/self/exe", again);
		_exit(127);
	}
	close(ends[1]);
	child.out = fdopen(ends[0], "r");
	return child;
}

static void finish(struct child *child, const char *role)
{
	int status;
	fclose(child->out);
	if (waitpid(child->pid, &status, 0) < 0 || status) {
		fprintf(stderr, "softgpu_speed: the process for \"%s\" failed (status %d)\n", role, status);
		exit(1);
	}
}

static void count_instructions(char *const *argv, double lanes[KERNELS])
{
	struct child child = start(argv, "count");
	char line[512];
	while (fgets(line, sizeof line, child.out)) {
		for (int n = 0; n < KERNELS; n++) {
			const char *at = strstr(line, names[n]), *comma = at ? strchr(at, ',') : NULL;
			if (comma)
				lanes[n] = strtod(comma + 1, NULL);
		}
	}
	finish(&child, "count");
}

static const char *const roles[COLUMNS] = { "1", "2", "scalar", "vector" };

static void measure_all(char *const *argv, double times[KERNELS][COLUMNS])
{
	double all[KERNELS][COLUMNS][TURNS];
	for (int turn = 0; turn < TURNS; turn++) {
		for (int column = 0; column < COLUMNS; column++) {
			struct child child = start(argv, roles[column]);
			for (int n = 0; n < KERNELS; n++) {
				char name[32];
				if (fscanf(child.out, "%31s %lf", name, &all[n][column][turn]) != 2 ||
				    strcmp(name, names[n])) {
					finish(&child, roles[column]);
					die("a measuring process printed too few results");
				}
			}
			finish(&child, roles[column]);
		}
	}
	for (int n = 0; n < KERNELS; n++)
		for (int column = 0; column < COLUMNS; column++)
			times[n][column] = median(all[n][column], TURNS);
}

int main(int argc, char **argv)
{
	double lanes[KERNELS] = { 0 }, times[KERNELS][COLUMNS];
	if (argc < 3) {
		fprintf(stderr, "usage: softgpu_speed LIBCUDA PTX\n");
		return 2;
	}
	if (argc == 4) {
		if (!strcmp(argv[3], "scalar") || !strcmp(argv[3], "vector"))
			measure_plain(!strcmp(argv[3], "scalar") ? &plain_scalar : &plain_vector);
		else
			measure_device(argv[1], argv[2], !strcmp(argv[3], "count"));
		return 0;
	}
	count_instructions(argv, lanes);
	measure_all(argv, times);
	printf("%-32s %12s %10s %10s %8s %10s %8s %10s %8s %8s\n", "kernel", "lane insns", "1 thread", "2 threads", "speed-up",
	       "10^9/s", "of 2", "scalar C", "vector C", "of it");
	for (int n = 0; n < KERNELS; n++) {
		double *t = times[n];
		printf("%-32s %12.0f %7.0f us %7.0f us %8.2f %10.2f %8.2f %7.0f us %5.0f us %8.1f\n", what[n], lanes[n],
		       t[ONE_THREAD], t[TWO_THREADS], t[ONE_THREAD] / t[TWO_THREADS], lanes[n] / t[ONE_THREAD] / 1e3,
		       lanes[n] / t[TWO_THREADS] / 1e3, t[SCALAR_C], t[VECTOR_C], t[ONE_THREAD] / t[VECTOR_C]);
	}
	return 0;
}
