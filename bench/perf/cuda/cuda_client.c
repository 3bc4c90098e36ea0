/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-perf cuda-client: the CUDA program, which times driver calls and copies. */
#include "config.h"
#include "cuda_calls.h"

#include "cuda_driver.h"
#include "cuda_rows.h"
#include "endpoint.h"
#include "raw_stream.h"
#include "server_cpu.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS 2000
#define WARM 100
#define LAUNCH_BATCH 32
#define LAUNCHES 20000 /* before a synchronisation */
#define COPIES 15
#define CPU_COPIES 8
#define SMALL 64
#define MIDDLE ((size_t)128 << 10)
#define ALLOCATION ((size_t)1 << 20)
/* The copy of rows of 4 bytes: on both sides every other 4 bytes. */
#define ROW_BYTES 4
#define ROW_PITCH 8
#define ROW_COUNT 1000

static const char kernels[] =
	".version 6.4\n.target sm_50\n.address_size 64\n"
	".visible .entry empty()\n{\n\tret;\n}\n"
	".visible .entry spin(.param .u64 ns)\n{\n"
	"\t.reg .u64 %t<3>;\n\t.reg .pred %p;\n"
	"\tld.param.u64 %t0, [ns];\n\tmov.u64 %t1, %globaltimer;\n\tadd.u64 %t1, %t1, %t0;\n"
	"AGAIN:\n\tmov.u64 %t2, %globaltimer;\n\tsetp.lt.u64 %p, %t2, %t1;\n\t@%p bra AGAIN;\n\tret;\n}\n";

/* The program: its driver, its memory, and the figures so far. */
struct program {
	struct cuda_driver d;
	struct cuda_figures figures;
	CUfunction empty, spin;
	CUdeviceptr device;
	CUevent event;
	char *pageable, *pinned; /* LONG_BYTES each */
};

static void keep(struct program *p, enum cuda_row row, struct samples *samples)
{
	bool many = samples->count >= 100;
	p->figures.row[row].median = samples_quantile(samples, 0.5);
	p->figures.row[row].p99 = many ? samples_quantile(samples, 0.99) : NAN;
	samples_free(samples);
}

/* ---- calls ---- */

typedef void (*call_fn)(struct program *p);

static void call_info(struct program *p)
{
	size_t free_bytes, total;
	cuda_check(p->d.mem_get_info(&free_bytes, &total), "cuMemGetInfo");
}

static void call_up(struct program *p)
{
	cuda_check(p->d.to_device(p->device, p->pageable, SMALL), "cuMemcpyHtoD");
}

static void call_down(struct program *p)
{
	cuda_check(p->d.from_device(p->pageable, p->device, SMALL), "cuMemcpyDtoH");
}

static void call_pinned_up(struct program *p)
{
	cuda_check(p->d.to_device(p->device, p->pinned, SMALL), "cuMemcpyHtoD");
}

static void call_pinned_down(struct program *p)
{
	cuda_check(p->d.from_device(p->pinned, p->device, SMALL), "cuMemcpyDtoH");
}

static void call_middle(struct program *p)
{
	cuda_check(p->d.to_device_async(p->device, p->pinned, MIDDLE, NULL), "cuMemcpyHtoDAsync");
	cuda_check(p->d.stream_synchronize(NULL), "cuStreamSynchronize");
}

static void call_event(struct program *p)
{
	cuda_check(p->d.event_record(p->event, NULL), "cuEventRecord");
	cuda_check(p->d.event_synchronize(p->event), "cuEventSynchronize");
}

/* Waits for the kernel, which takes the client a reply: of the event alone it may know that it is complete. */
static void call_launch_event(struct program *p)
{
	cuda_check(p->d.launch(p->empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
	call_event(p);
}

static void time_calls(struct program *p, enum cuda_row row, call_fn call)
{
	struct samples calls;
	samples_init(&calls, CALLS);
	for (int i = 0; i < CALLS + WARM; i++) {
		double begin = now_seconds();
		call(p);
		double end = now_seconds();
		if (i >= WARM)
			samples_add(&calls, 1e6 * (end - begin));
	}
	keep(p, row, &calls);
}

static void time_allocations(struct program *p)
{
	struct samples allocs, frees;
	samples_init(&allocs, CALLS);
	samples_init(&frees, CALLS);
	for (int i = 0; i < CALLS + WARM; i++) {
		CUdeviceptr memory;
		double begin = now_seconds();
		cuda_check(p->d.alloc(&memory, ALLOCATION), "cuMemAlloc");
		double middle = now_seconds();
		cuda_check(p->d.free(memory), "cuMemFree");
		double end = now_seconds();
		if (i < WARM)
			continue;
		samples_add(&allocs, 1e6 * (middle - begin));
		samples_add(&frees, 1e6 * (end - middle));
	}
	keep(p, ROW_ALLOC, &allocs);
	keep(p, ROW_FREE, &frees);
}

/* ---- launches ---- */

static void launch(struct program *p)
{
	cuda_check(p->d.launch(p->empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
}

/* The caller's share: in small batches with a synchronisation after each, so that the queue never fills. */
static void time_launch(struct program *p)
{
	struct samples launches;
	samples_init(&launches, CALLS);
	for (int batch = 0; batch < CALLS / LAUNCH_BATCH + 2; batch++) {
		double each[LAUNCH_BATCH];
		for (int i = 0; i < LAUNCH_BATCH; i++) {
			double begin = now_seconds();
			launch(p);
			each[i] = 1e6 * (now_seconds() - begin);
		}
		cuda_check(p->d.synchronize(), "cuCtxSynchronize");
		for (int i = 0; batch >= 2 && i < LAUNCH_BATCH; i++)
			samples_add(&launches, each[i]);
	}
	keep(p, ROW_LAUNCH, &launches);
}

/* Many launches until all have ended, for each of them. */
static void time_launches(struct program *p)
{
	struct samples rounds;
	samples_init(&rounds, 5);
	for (int round = 0; round < 6; round++) {
		double begin = now_seconds();
		for (int i = 0; i < LAUNCHES; i++)
			launch(p);
		cuda_check(p->d.synchronize(), "cuCtxSynchronize");
		if (round)
			samples_add(&rounds, 1e6 * (now_seconds() - begin) / LAUNCHES);
	}
	keep(p, ROW_LAUNCHES, &rounds);
}

/* ---- copies ---- */

static void time_copies(struct program *p, char *host, size_t bytes, enum cuda_row up_row, enum cuda_row down_row)
{
	struct samples up, down;
	samples_init(&up, COPIES);
	samples_init(&down, COPIES);
	for (int round = 0; round < COPIES + 1; round++) {
		double begin = now_seconds();
		cuda_check(p->d.to_device(p->device, host, bytes), "cuMemcpyHtoD");
		double middle = now_seconds();
		cuda_check(p->d.from_device(host, p->device, bytes), "cuMemcpyDtoH");
		double end = now_seconds();
		if (!round)
			continue;
		samples_add(&up, 1e6 * (middle - begin));
		samples_add(&down, 1e6 * (end - middle));
	}
	keep(p, up_row, &up);
	keep(p, down_row, &down);
}

/* Long copies, in turn with a TCP stream of as many bytes. */
static void time_long_copies(struct program *p)
{
	enum { PINNED_UP, PINNED_DOWN, UP, DOWN, STREAM_UP, STREAM_DOWN, KINDS };
	static const enum cuda_row rows[KINDS] = { ROW_PINNED_UP_LONG, ROW_PINNED_DOWN_LONG, ROW_UP_LONG, ROW_DOWN_LONG,
						   ROW_STREAM_UP, ROW_STREAM_DOWN };
	struct samples samples[KINDS];
	for (int kind = 0; kind < KINDS; kind++)
		samples_init(&samples[kind], COPIES);
	for (int round = 0; round < COPIES + 1; round++)
		for (int kind = 0; kind < KINDS; kind++) {
			char *host = kind < UP ? p->pinned : p->pageable;
			double begin = now_seconds();
			if (kind == STREAM_UP)
				raw_stream_send(host);
			else if (kind == STREAM_DOWN)
				raw_stream_receive(host);
			else if (kind == PINNED_UP || kind == UP)
				cuda_check(p->d.to_device(p->device, host, LONG_BYTES), "cuMemcpyHtoD");
			else
				cuda_check(p->d.from_device(host, p->device, LONG_BYTES), "cuMemcpyDtoH");
			/* A copy from pageable memory may still be on its way. */
			if (kind == PINNED_UP || kind == UP)
				cuda_check(p->d.synchronize(), "cuCtxSynchronize");
			if (round)
				samples_add(&samples[kind], 1e6 * (now_seconds() - begin));
		}
	for (int kind = 0; kind < KINDS; kind++)
		keep(p, rows[kind], &samples[kind]);
}

static double processor_seconds(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The processor time of both sides for long copies. */
static void count_processor_time(struct program *p)
{
	for (int kind = 0; kind < CPUS; kind++) {
		char *host = kind < CPU_UP ? p->pinned : p->pageable;
		const double gigabytes = 1e-9 * (double)LONG_BYTES * CPU_COPIES;
		double server = server_cpu_seconds(), client = processor_seconds();
		for (int i = 0; i < CPU_COPIES; i++)
			if (kind == CPU_PINNED_UP || kind == CPU_UP)
				cuda_check(p->d.to_device(p->device, host, LONG_BYTES), "cuMemcpyHtoD");
			else
				cuda_check(p->d.from_device(host, p->device, LONG_BYTES), "cuMemcpyDtoH");
		cuda_check(p->d.synchronize(), "cuCtxSynchronize");
		p->figures.cpu[kind].client = (processor_seconds() - client) / gigabytes;
		p->figures.cpu[kind].server = (server_cpu_seconds() - server) / gigabytes;
	}
}

static void time_memcpy(struct program *p)
{
	struct samples copies;
	samples_init(&copies, COPIES);
	for (int round = 0; round < COPIES; round++) {
		double begin = now_seconds();
		memcpy(p->pageable, p->pageable + COPY_BYTES, COPY_BYTES);
		__asm__ volatile("" : : "r"(p->pageable) : "memory");
		samples_add(&copies, 1e6 * (now_seconds() - begin));
	}
	keep(p, ROW_MEMCPY, &copies);
}

/* The time in the call of an asynchronous copy of pinned memory. */
static void time_asynchronous(struct program *p)
{
	struct samples up, down;
	samples_init(&up, COPIES);
	samples_init(&down, COPIES);
	for (int round = 0; round < COPIES; round++) {
		double begin = now_seconds();
		cuda_check(p->d.to_device_async(p->device, p->pinned, LONG_BYTES, NULL), "cuMemcpyHtoDAsync");
		samples_add(&up, 1e6 * (now_seconds() - begin));
		cuda_check(p->d.synchronize(), "cuCtxSynchronize");
		begin = now_seconds();
		cuda_check(p->d.from_device_async(p->pinned, p->device, LONG_BYTES, NULL), "cuMemcpyDtoHAsync");
		samples_add(&down, 1e6 * (now_seconds() - begin));
		cuda_check(p->d.synchronize(), "cuCtxSynchronize");
	}
	keep(p, ROW_ASYNC_UP, &up);
	keep(p, ROW_ASYNC_DOWN, &down);
}

/* The microseconds of a copy, of a kernel of this many nanoseconds (0: none), or of both at the same time. */
static double run_both(struct program *p, bool copy, uint64_t ns, CUstream of_copy, CUstream of_kernel)
{
	void *parameters[] = { &ns };
	double begin = now_seconds();
	if (ns)
		cuda_check(p->d.launch(p->spin, 1, 1, 1, 1, 1, 1, 0, of_kernel, parameters, NULL), "cuLaunchKernel");
	if (copy)
		cuda_check(p->d.to_device_async(p->device, p->pinned, LONG_BYTES, of_copy), "cuMemcpyHtoDAsync");
	cuda_check(p->d.synchronize(), "cuCtxSynchronize");
	return 1e6 * (now_seconds() - begin);
}

/* A copy and a kernel of the same length, in two streams. */
static void time_overlap(struct program *p)
{
	struct samples alone, kernel, both;
	CUstream of_copy, of_kernel;
	cuda_check(p->d.stream_create(&of_copy, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	cuda_check(p->d.stream_create(&of_kernel, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	samples_init(&alone, COPIES);
	samples_init(&kernel, COPIES);
	samples_init(&both, COPIES);
	for (int i = 0; i < COPIES; i++)
		samples_add(&alone, run_both(p, true, 0, of_copy, of_kernel));
	double copy_us = samples_quantile(&alone, 0.5);
	for (int i = 0; i < COPIES; i++) {
		samples_add(&kernel, run_both(p, false, (uint64_t)(1e3 * copy_us), of_copy, of_kernel));
		samples_add(&both, run_both(p, true, (uint64_t)(1e3 * copy_us), of_copy, of_kernel));
	}
	double kernel_us = samples_quantile(&kernel, 0.5);
	p->figures.row[ROW_LONGER_ALONE].median = copy_us > kernel_us ? copy_us : kernel_us;
	p->figures.row[ROW_LONGER_ALONE].p99 = NAN;
	samples_free(&alone);
	samples_free(&kernel);
	keep(p, ROW_COPY_AND_KERNEL, &both);
}

/* A million rows, in as many slices as a slice has rows. */
static void time_rows(struct program *p, bool up)
{
	CUDA_MEMCPY3D copy = { .WidthInBytes = ROW_BYTES, .Height = ROW_COUNT, .Depth = ROW_COUNT };
	struct samples samples;
	samples_init(&samples, COPIES);
	copy.srcPitch = copy.dstPitch = ROW_PITCH;
	copy.srcHeight = copy.dstHeight = ROW_COUNT;
	copy.srcHost = copy.dstHost = p->pageable;
	copy.srcDevice = copy.dstDevice = p->device;
	copy.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	copy.dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	for (int i = 0; i < COPIES; i++) {
		double begin = now_seconds();
		cuda_check(p->d.copy_3d(&copy), "cuMemcpy3D");
		samples_add(&samples, 1e6 * (now_seconds() - begin));
	}
	keep(p, up ? ROW_ROWS_UP : ROW_ROWS_DOWN, &samples);
}

/* ---- the program ---- */

static void prepare(struct program *p)
{
	CUcontext context;
	CUmodule module;
	void *pinned;
	raw_stream_open(LONG_BYTES);
	cuda_driver_open(&p->d);
	cuda_check(p->d.init(0), "cuInit");
	cuda_check(p->d.retain(&context, 0), "cuDevicePrimaryCtxRetain");
	cuda_check(p->d.set_current(context), "cuCtxSetCurrent");
	cuda_check(p->d.module_load(&module, kernels), "cuModuleLoadData");
	cuda_check(p->d.get_function(&p->empty, module, "empty"), "cuModuleGetFunction");
	cuda_check(p->d.get_function(&p->spin, module, "spin"), "cuModuleGetFunction");
	cuda_check(p->d.event_create(&p->event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
	cuda_check(p->d.alloc(&p->device, LONG_BYTES), "cuMemAlloc");
	cuda_check(p->d.alloc_host(&pinned, LONG_BYTES), "cuMemAllocHost");
	p->pinned = pinned;
	p->pageable = malloc(LONG_BYTES);
	if (!p->pageable)
		cuda_check(CUDA_ERROR_OUT_OF_MEMORY, "malloc");
	memset(p->pageable, 1, LONG_BYTES);
	memset(p->pinned, 2, LONG_BYTES);
}

int measure_cuda_client(const struct options *options)
{
	static struct program p;
	prepare(&p);
	time_calls(&p, ROW_CALL, call_info);
	time_launch(&p);
	time_launches(&p);
	time_calls(&p, ROW_UP_64, call_up);
	time_calls(&p, ROW_DOWN_64, call_down);
	time_calls(&p, ROW_PINNED_UP_64, call_pinned_up);
	time_calls(&p, ROW_PINNED_DOWN_64, call_pinned_down);
	time_calls(&p, ROW_EVENT, call_event);
	time_calls(&p, ROW_LAUNCH_EVENT, call_launch_event);
	time_allocations(&p);
	time_copies(&p, p.pinned, COPY_BYTES, ROW_PINNED_UP, ROW_PINNED_DOWN);
	time_copies(&p, p.pageable, COPY_BYTES, ROW_UP, ROW_DOWN);
	time_calls(&p, ROW_ASYNC_MIDDLE, call_middle);
	time_long_copies(&p);
	count_processor_time(&p);
	time_memcpy(&p);
	time_asynchronous(&p);
	time_overlap(&p);
	time_rows(&p, true);
	time_rows(&p, false);
	control_write(options->result_fd, &p.figures, sizeof p.figures);
	return 0;
}
