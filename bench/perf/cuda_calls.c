/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-perf cuda: times CUDA driver calls and copies, local and remote. */
#include "config.h"
#include "cuda_calls.h"

#include "endpoint.h"
#include "headrace/channel.h"
#include "measure.h"
#include "report.h"
#include "stats.h"

#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 2000
#define LAUNCH_BATCH 32
#define COPY_BYTES (32u << 20)

/* The results of the CUDA program, in microseconds and MB/s. */
struct cuda_figures {
	double call_us, call_p99_us;     /* cuMemGetInfo, which waits for the server's answer */
	double launch_us, launch_p99_us; /* time in the call of an asynchronous launch of an empty kernel */
	double to_device_MBps, from_device_MBps, memcpy_MBps;
};

static const char empty_kernel[] =
	".version 6.4\n.target sm_50\n.address_size 64\n.visible .entry empty()\n{\n\tret;\n}\n";

/* The driver's functions, loaded as any CUDA program loads them. */
struct driver {
	CUresult (*init)(unsigned);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set_current)(CUcontext);
	CUresult (*mem_get_info)(size_t *, size_t *);
	CUresult (*module_load)(CUmodule *, const void *);
	CUresult (*get_function)(CUfunction *, CUmodule, const char *);
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
			   void **);
	CUresult (*synchronize)(void);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*to_device)(CUdeviceptr, const void *, size_t);
	CUresult (*from_device)(void *, CUdeviceptr, size_t);
};

static void *symbol(void *library, const char *name)
{
	void *address = dlsym(library, name);
	if (!address) {
		fprintf(stderr, "headrace-perf: libcuda.so.1 has no %s\n", name);
		exit(EXIT_FAILURE);
	}
	return address;
}

static void driver_open(struct driver *d)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "headrace-perf: %s\n", dlerror());
		exit(EXIT_FAILURE);
	}
	*(void **)&d->init = symbol(library, "cuInit");
	*(void **)&d->retain = symbol(library, "cuDevicePrimaryCtxRetain");
	*(void **)&d->set_current = symbol(library, "cuCtxSetCurrent");
	*(void **)&d->mem_get_info = symbol(library, "cuMemGetInfo_v2");
	*(void **)&d->module_load = symbol(library, "cuModuleLoadData");
	*(void **)&d->get_function = symbol(library, "cuModuleGetFunction");
	*(void **)&d->launch = symbol(library, "cuLaunchKernel");
	*(void **)&d->synchronize = symbol(library, "cuCtxSynchronize");
	*(void **)&d->alloc = symbol(library, "cuMemAlloc_v2");
	*(void **)&d->to_device = symbol(library, "cuMemcpyHtoD_v2");
	*(void **)&d->from_device = symbol(library, "cuMemcpyDtoH_v2");
}

static void check(CUresult result, const char *call)
{
	if (result != CUDA_SUCCESS) {
		fprintf(stderr, "headrace-perf: %s: CUDA error %d\n", call, (int)result);
		exit(EXIT_FAILURE);
	}
}

static void measure_calls(const struct driver *d, struct cuda_figures *figures)
{
	struct samples calls;
	samples_init(&calls, CALLS);
	for (int i = 0; i < CALLS + 100; i++) {
		size_t free_bytes, total;
		double begin = now_seconds();
		CUresult result = d->mem_get_info(&free_bytes, &total);
		double end = now_seconds();
		check(result, "cuMemGetInfo");
		if (i >= 100)
			samples_add(&calls, 1e6 * (end - begin));
	}
	figures->call_us = samples_quantile(&calls, 0.5);
	figures->call_p99_us = samples_quantile(&calls, 0.99);
	samples_free(&calls);
}

/* Launches in small batches with a synchronisation after each, so that the queue never fills and no launch waits. */
static void measure_launches(const struct driver *d, struct cuda_figures *figures)
{
	CUmodule module;
	CUfunction kernel;
	check(d->module_load(&module, empty_kernel), "cuModuleLoadData");
	check(d->get_function(&kernel, module, "empty"), "cuModuleGetFunction");
	struct samples launches;
	samples_init(&launches, CALLS);
	for (int batch = 0; batch < CALLS / LAUNCH_BATCH + 2; batch++) {
		double each[LAUNCH_BATCH];
		for (int i = 0; i < LAUNCH_BATCH; i++) {
			double begin = now_seconds();
			check(d->launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
			each[i] = 1e6 * (now_seconds() - begin);
		}
		check(d->synchronize(), "cuCtxSynchronize");
		for (int i = 0; batch >= 2 && i < LAUNCH_BATCH; i++)
			samples_add(&launches, each[i]);
	}
	figures->launch_us = samples_quantile(&launches, 0.5);
	figures->launch_p99_us = samples_quantile(&launches, 0.99);
	samples_free(&launches);
}

static void measure_copies(const struct driver *d, struct cuda_figures *figures)
{
	char *host = malloc(COPY_BYTES), *other = malloc(COPY_BYTES);
	CUdeviceptr device;
	if (!host || !other)
		check(CUDA_ERROR_OUT_OF_MEMORY, "malloc");
	memset(host, 1, COPY_BYTES);
	memset(other, 2, COPY_BYTES);
	check(d->alloc(&device, COPY_BYTES), "cuMemAlloc");
	struct samples to, from, copy;
	samples_init(&to, 9);
	samples_init(&from, 9);
	samples_init(&copy, 9);
	for (int round = 0; round < 10; round++) {
		double t0 = now_seconds();
		check(d->to_device(device, host, COPY_BYTES), "cuMemcpyHtoD");
		double t1 = now_seconds();
		check(d->from_device(other, device, COPY_BYTES), "cuMemcpyDtoH");
		double t2 = now_seconds();
		memcpy(host, other, COPY_BYTES);
		double t3 = now_seconds();
		if (round == 0)
			continue;
		samples_add(&to, t1 - t0);
		samples_add(&from, t2 - t1);
		samples_add(&copy, t3 - t2);
	}
	figures->to_device_MBps = 1e-6 * COPY_BYTES / samples_quantile(&to, 0.5);
	figures->from_device_MBps = 1e-6 * COPY_BYTES / samples_quantile(&from, 0.5);
	figures->memcpy_MBps = 1e-6 * COPY_BYTES / samples_quantile(&copy, 0.5);
	free(host);
	free(other);
}

int measure_cuda_client(const struct options *options)
{
	struct driver driver;
	struct cuda_figures figures;
	CUcontext context;
	driver_open(&driver);
	check(driver.init(0), "cuInit");
	check(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
	check(driver.set_current(context), "cuCtxSetCurrent");
	measure_calls(&driver, &figures);
	measure_launches(&driver, &figures);
	measure_copies(&driver, &figures);
	control_write(options->result_fd, &figures, sizeof figures);
	return 0;
}

/* Runs this program as a CUDA program under headrace-run: $HEADRACE_RUN, else the one in this program's directory, else
 * the one on PATH. */
static void exec_under_run(const char *self, int result_fd)
{
	char run[PATH_MAX], fd_text[16];
	snprintf(run, sizeof run, "%s", self);
	char *slash = strrchr(run, '/');
	snprintf(slash ? slash + 1 : run, sizeof run - (size_t)(slash ? slash + 1 - run : 0), "headrace-run");
	snprintf(fd_text, sizeof fd_text, "%d", result_fd);
	const char *program = slash && access(run, X_OK) == 0 ? run : "headrace-run";
	const char *asked = getenv("HEADRACE_RUN");
	if (asked && *asked)
		program = asked;
	execlp(program, program, self, "cuda-client", "--result-fd", fd_text, (char *)NULL);
	fprintf(stderr, "headrace-perf: %s: %s\n", program, strerror(errno));
	_exit(127);
}

static int run_client(const char *self, struct cuda_figures *figures)
{
	int results[2];
	if (pipe(results)) {
		fprintf(stderr, "headrace-perf: pipe: %s\n", strerror(errno));
		return -1;
	}
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		exec_under_run(self, results[1]);
	close(results[1]);
	size_t got = 0;
	ssize_t n;
	while (got < sizeof *figures && (n = read(results[0], (char *)figures + got, sizeof *figures - got)) > 0)
		got += (size_t)n;
	close(results[0]);
	int status = -1;
	if (child > 0)
		waitpid(child, &status, 0);
	if (got != sizeof *figures || status != 0) {
		fprintf(stderr, "headrace-perf: the CUDA program under headrace-run did not finish\n");
		return -1;
	}
	return 0;
}

int measure_cuda(const struct options *options, const char *self)
{
	char path[PATH_MAX];
	struct cuda_figures f;
	double one_way[2], flag[2], tcp, raw_tcp;
	ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
	if (len > 0)
		path[len] = 0;
	if (measure_channel_latency(HR_TRANSPORT_SHM, &one_way[0], &flag[0]) || run_client(len > 0 ? path : self, &f) ||
	    measure_channel_latency(HR_TRANSPORT_SHM, &one_way[1], &flag[1]) ||
	    measure_channel_latency(HR_TRANSPORT_TCP, &tcp, &raw_tcp))
		return -1;
	/* One-way times before and after: their sum is twice their mean, so a round trip. */
	double round_trip = one_way[0] + one_way[1], flag_trip = flag[0] + flag[1];
	report_figure(options, "channel: 8 bytes over shm, round trip", round_trip, NAN, "flag round trip", flag_trip);
	report_figure(options, "channel: 8 bytes over tcp, round trip", 2 * tcp, NAN, "raw TCP round trip", 2 * raw_tcp);
	report_figure(options, "cuda: waiting call (cuMemGetInfo)", f.call_us, f.call_p99_us, "channel round trip",
		      round_trip);
	report_figure(options, "cuda: empty asynchronous launch, caller", f.launch_us, f.launch_p99_us, "one microsecond",
		      1.0);
	double megabytes = 1e-6 * COPY_BYTES;
	report_figure(options, "cuda: 32 MB to the device", 1e6 * megabytes / f.to_device_MBps, NAN, "memcpy",
		      1e6 * megabytes / f.memcpy_MBps);
	report_figure(options, "cuda: 32 MB from the device", 1e6 * megabytes / f.from_device_MBps, NAN, "memcpy",
		      1e6 * megabytes / f.memcpy_MBps);
	return 0;
}
