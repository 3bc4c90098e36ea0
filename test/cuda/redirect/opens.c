/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens libraries that Headrace replaces in a folder of other libraries with these names, each of which defines
 * other_library.
 *
 *	opens ours FOLDER     each library is Headrace's
 *	opens child FOLDER    the same in a program that this one executes, with a LD_LIBRARY_PATH of its own
 *	opens others FOLDER   without Headrace, each is the folder's
 *	opens needed FOLDER   a library of the folder that opens another one by its RUNPATH finds it
 */
#define _GNU_SOURCE /* dlinfo */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *file, *function;
} libraries[] = {
	{ "libcuda.so.1", "cuInit" },           { "libcuda.so", "cuLaunchKernel" },
	{ "libcuda.so.999.1", "cuInit" },       { "libcudart.so.13", "cudaMalloc" },
	{ "libcudart.so.13.0.88", "cudaFree" }, { "libcudart.so", "cudaMalloc" },
	{ "libnvidia-ml.so.1", "nvmlInit_v2" },
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

/* Whether a library opened by its path is the folder's. -1: it is neither that nor Headrace's. */
static int is_folders(const char *path, const char *function)
{
	for (int i = 0; i < 2; i++) {
		/* If it is loaded, RTLD_NOLOAD must find the same one. */
		void *library = dlopen(path, i ? RTLD_NOW | RTLD_NOLOAD : RTLD_LAZY);
		if (!library) {
			printf("%s\n", dlerror());
			return -1;
		}
		bool folders = dlsym(library, "other_library");
		if (folders == !!dlsym(library, function))
			return -1;
		if (i)
			return folders;
	}
	return -1;
}

static int opens(const char *folder, int expected)
{
	char path[4096];
	for (int i = 0; i < LIBRARIES; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, libraries[i].file);
		if (is_folders(path, libraries[i].function) != expected)
			return printf("%s is the wrong library\n", path), 1;
	}
	/* A name that only begins like one of them. */
	snprintf(path, sizeof path, "%s/libcudax.so.1", folder);
	if (is_folders(path, "cuInit") != 1)
		return printf("%s is the wrong library\n", path), 1;
	return 0;
}

static int needed(const char *folder)
{
	char path[4096];
	void *(*open_other)(const char *);
	snprintf(path, sizeof path, "%s/libopener.so", folder);
	void *opener = dlopen(path, RTLD_NOW);
	if (!opener)
		return printf("%s\n", dlerror()), 1;
	*(void **)&open_other = dlsym(opener, "open_other");
	void *other = open_other("libinner.so");
	if (!other)
		return printf("%s\n", dlerror()), 1;
	return open_other("libabsent.so") || !dlerror();
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (!strcmp(argv[1], "ours") || !strcmp(argv[1], "others"))
		return opens(argv[2], !strcmp(argv[1], "others"));
	if (!strcmp(argv[1], "needed"))
		return needed(argv[2]);
	setenv("LD_LIBRARY_PATH", argv[2], 1);
	execl("/proc/self/exe", argv[0], "ours", argv[2], (char *)NULL);
	return 2;
}
