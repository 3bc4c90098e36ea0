/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs this program as a CUDA program under headrace-run. */
#include "cuda_run.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of all words: those of the caller, and five. */
#define WORDS_MAX 32

static void exec_under_run(const char *self, char *const options[], char *const arguments[], int result_fd)
{
	char run[PATH_MAX], fd_text[16];
	char *words[WORDS_MAX];
	int n = 0;
	snprintf(run, sizeof run, "%s", self);
	char *slash = strrchr(run, '/');
	snprintf(slash ? slash + 1 : run, sizeof run - (size_t)(slash ? slash + 1 - run : 0), "headrace-run");
	snprintf(fd_text, sizeof fd_text, "%d", result_fd);
	char *program = slash && access(run, X_OK) == 0 ? run : "headrace-run";
	char *asked = getenv("HEADRACE_RUN");
	if (asked && *asked)
		program = asked;
	words[n++] = program;
	while (*options && n < WORDS_MAX - 4)
		words[n++] = *options++;
	words[n++] = (char *)(uintptr_t)self;
	while (*arguments && n < WORDS_MAX - 3)
		words[n++] = *arguments++;
	words[n++] = "--result-fd";
	words[n++] = fd_text;
	words[n] = NULL;
	execvp(program, words);
	fprintf(stderr, "headrace-perf: %s: %s\n", program, strerror(errno));
	_exit(127);
}

int cuda_run(const char *self, char *const options[], char *const arguments[], void *results, size_t size)
{
	char path[PATH_MAX];
	int ends[2];
	ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
	if (len > 0)
		path[len] = 0;
	if (pipe(ends)) {
		fprintf(stderr, "headrace-perf: pipe: %s\n", strerror(errno));
		return -1;
	}
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		exec_under_run(len > 0 ? path : self, options, arguments, ends[1]);
	close(ends[1]);
	size_t got = 0;
	ssize_t n;
	while (got < size && (n = read(ends[0], (char *)results + got, size - got)) > 0)
		got += (size_t)n;
	close(ends[0]);
	int status = -1;
	if (child > 0)
		waitpid(child, &status, 0);
	if (!got && child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == CUDA_RUN_MISSING)
		return CUDA_RUN_MISSING;
	if (got != size || status != 0) {
		fprintf(stderr, "headrace-perf: the CUDA program under headrace-run%s%s did not finish\n", *options ? " " : "",
			*options ? *options : "");
		return -1;
	}
	return 0;
}
