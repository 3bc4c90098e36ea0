/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs this program as a CUDA program under headrace-run. */
#ifndef PERF_CUDA_RUN_H
#define PERF_CUDA_RUN_H

#include <stddef.h>

/* Exit status of a CUDA program: the servers cannot do what it measures. */
#define CUDA_RUN_MISSING 4

/* Runs $HEADRACE_RUN, else the headrace-run in this program's directory, else the one on PATH. self: argv[0]. options: of
 * headrace-run; arguments: of the CUDA program, to which --result-fd is added; both end with NULL, and have at most 20 words
 * together. Reads size bytes of results. CUDA_RUN_MISSING: the program has ended with this status, and without a result. */
int cuda_run(const char *self, char *const options[], char *const arguments[], void *results, size_t size);

#endif
