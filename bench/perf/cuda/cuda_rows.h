/* SPDX-License-Identifier: BSD-3-Clause */
/* What headrace-perf cuda measures: a row for each figure. The CUDA program fills them, remotely and locally. */
#ifndef PERF_CUDA_ROWS_H
#define PERF_CUDA_ROWS_H

#define COPY_BYTES ((size_t)32 << 20)
#define LONG_BYTES ((size_t)64 << 20)

enum cuda_row {
	ROW_CALL, ROW_LAUNCH, ROW_LAUNCHES, ROW_UP_64, ROW_DOWN_64, ROW_PINNED_UP_64, ROW_PINNED_DOWN_64, ROW_EVENT, ROW_ALLOC,
	ROW_FREE, ROW_PINNED_UP, ROW_PINNED_DOWN, ROW_UP, ROW_DOWN, ROW_ASYNC_UP, ROW_ASYNC_DOWN, ROW_COPY_AND_KERNEL,
	ROW_ROWS_UP, ROW_ROWS_DOWN, ROW_PINNED_UP_LONG, ROW_PINNED_DOWN_LONG, ROW_UP_LONG, ROW_DOWN_LONG, ROW_LONGER_ALONE,
	ROW_MEMCPY, ROW_STREAM_UP, ROW_STREAM_DOWN, ROW_ASYNC_MIDDLE, ROW_LAUNCH_EVENT, ROWS
};

/* Of copies of LONG_BYTES. */
enum cuda_cpu { CPU_PINNED_UP, CPU_PINNED_DOWN, CPU_UP, CPU_DOWN, CPUS };

/* In microseconds. p99 is NaN for a row of few samples. */
struct cuda_figures {
	struct {
		double median, p99;
	} row[ROWS];
	/* Processor time in seconds for a GB; NaN: not known. */
	struct {
		double client, server;
	} cpu[CPUS];
};

#endif
