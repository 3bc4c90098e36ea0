/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headrace-run preloads this library. It interposes dlopen: if a program opens a library that Headrace replaces, by
 * whatever path, it gets Headrace's. A preloaded library satisfies DT_NEEDED entries and dlopen by its SONAME, whatever
 * RPATH and LD_LIBRARY_PATH say; only dlopen with a path would reach another file. See docs/decisions/remote-cuda.md.
 *
 * It also lets cuda_remote/relink see the objects that dlopen loads, before their constructors run.
 */
#define _GNU_SOURCE /* RTLD_NEXT, dladdr */
#include "cuda_remote/redirect/tail_call.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folders of Headrace's libraries. */
enum folder { RUNTIME, DRIVER };

/* The files that are replaced: their name is `start`, or `start` and a dot with more behind it. */
static const struct replacement {
	const char *start;
	enum folder folder;
	const char *file;
} replacements[] = {
	{ "libcuda.so", DRIVER, "libcuda.so.1" },
	{ "libnvidia-ml.so", DRIVER, "libnvidia-ml.so.1" },
	{ "libcudart.so.12", RUNTIME, "libcudart.so.12" },
	{ "libcudart.so.13", RUNTIME, "libcudart.so.13" },
};
enum { REPLACEMENTS = sizeof replacements / sizeof *replacements };

typedef void *dlopen_function(const char *, int);

TAIL_CALL_PART dlopen_function *redirect_real_dlopen;
TAIL_CALL_PART const char *redirect_name(const char *name, int mode);

/* ---- Headrace's files ---- */

/* Writes the path of a file in the folder of the object that contains an address. */
static bool beside(const void *address, const char *file, char path[PATH_MAX])
{
	Dl_info info;
	const char *slash;
	if (!dladdr(address, &info) || !info.dli_fname || !(slash = strrchr(info.dli_fname, '/')))
		return false;
	int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, file);
	return n > 0 && n < PATH_MAX && !access(path, R_OK);
}

/* Headrace's driver is preloaded, and its version script exports no name that another driver lacks. */
static bool beside_driver(const char *file, char path[PATH_MAX])
{
	void *driver = redirect_real_dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *function = driver ? dlsym(driver, "cuInit") : NULL;
	bool found = function && beside(function, file, path);
	if (driver)
		dlclose(driver);
	return found;
}

/* The path of a replacement; "": Headrace has none. Computed once; threads may do so at the same time. */
static const char *replacement_path(size_t index)
{
	static char *_Atomic paths[REPLACEMENTS];
	const struct replacement *replacement = &replacements[index];
	char *known = atomic_load(&paths[index]), path[PATH_MAX];
	if (known)
		return known;
	bool found = replacement->folder == RUNTIME ? beside((const void *)&redirect_real_dlopen, replacement->file, path) :
						      beside_driver(replacement->file, path);
	char *copy = strdup(found ? path : "");
	if (!copy)
		return "";
	if (atomic_compare_exchange_strong(&paths[index], &known, copy))
		return copy;
	free(copy);
	return known;
}

/* ---- what the program asks for ---- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* The index of the replacement of a file's name; REPLACEMENTS: it has none. */
static size_t find(const char *file)
{
	for (size_t i = 0; i < REPLACEMENTS; i++) {
		size_t n = strlen(replacements[i].start);
		if (!strncmp(file, replacements[i].start, n) && (!file[n] || file[n] == '.'))
			return i;
	}
	return REPLACEMENTS;
}

/* As find, for a name that dlopen gets. libcudart.so without a number is a link to the file of a version. */
static size_t find_asked(const char *name)
{
	char target[PATH_MAX];
	if (strcmp(last_part(name), "libcudart.so"))
		return find(last_part(name));
	return realpath(name, target) ? find(last_part(target)) : find("libcudart.so.13");
}

/* Loads the object that makes the dynamic linker call relink (relink/late.c). If two threads call this at once, the object
 * is loaded once. A lock here could deadlock with the dynamic linker's. */
static void load_late_relink(void)
{
	static atomic_bool loaded;
	char path[PATH_MAX];
	if (atomic_load(&loaded))
		return;
	if (beside((const void *)&redirect_real_dlopen, "libheadrace-late.so", path))
		redirect_real_dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
	atomic_store(&loaded, true);
}

/* Chooses the name for the real dlopen. */
const char *redirect_name(const char *name, int mode)
{
	(void)mode;
	if (!redirect_real_dlopen)
		*(void **)&redirect_real_dlopen = dlsym(RTLD_NEXT, "dlopen");
	load_late_relink();
	size_t index = name ? find_asked(name) : REPLACEMENTS;
	const char *path = index < REPLACEMENTS ? replacement_path(index) : "";
	return *path ? path : name;
}

#if defined(__x86_64__)
TAIL_CALL(dlopen, redirect_name,
	  "	mov %rax, %rdi\n"
	  "	jmp *redirect_real_dlopen(%rip)\n");
#else
/* The caller's RUNPATH counts only if the compiler makes this call a jump. */
__attribute__((visibility("default"))) void *dlopen(const char *name, int mode)
{
	const char *chosen = redirect_name(name, mode);
	return redirect_real_dlopen(chosen, mode);
}
#endif
