/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the program that headrace-run is to run, and checks by its ELF headers if it can work under Headrace. */
#include "cuda_remote/run/program.h"

#include "cuda_remote/relink/elf_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- finding ---- */

static int may_run(const char *path)
{
	struct stat status;
	if (stat(path, &status))
		return -errno;
	return S_ISREG(status.st_mode) && !access(path, X_OK) ? 0 : -EACCES;
}

int program_find(const char *name, char path[PATH_MAX])
{
	if (!*name)
		return -ENOENT;
	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return -ENOENT;
		return may_run(path) == -EACCES ? -EACCES : may_run(path) ? -ENOENT : 0;
	}
	const char *at = getenv("PATH");
	bool denied = false;
	for (at = at ? at : "/bin:/usr/bin";; at++) {
		size_t n = strcspn(at, ":");
		int length = snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, at, n ? "/" : "", name);
		int error = length < PATH_MAX ? may_run(path) : -ENOENT;
		if (!error)
			return 0;
		denied |= error == -EACCES;
		at += n;
		if (!*at)
			return denied ? -EACCES : -ENOENT;
	}
}

/* ---- looking inside ---- */

static bool have_runtime(const char *name)
{
	return !strcmp(name, "libcudart.so.12") || !strcmp(name, "libcudart.so.13");
}

void program_check(const char *path)
{
	static const char runtime[] = "libcudart.so.";
	elf_file_t file;
	const char *needed;
	if (!elf_file_open(path, &file))
		return;
	for (unsigned i = 0; (needed = elf_file_dynamic(&file, DT_NEEDED, i)); i++)
		if (!strncmp(needed, runtime, strlen(runtime)) && !have_runtime(needed))
			fprintf(stderr,
				"headrace-run: warning: %s needs %.64s; Headrace has libcudart.so.12 and "
				"libcudart.so.13: build it with CUDA 12 or 13\n",
				path, needed);
	elf_file_close(&file);
}
