/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds NVIDIA's libraries, and interposes dlsym: a program that opens one of them with dlopen and asks for a function
 * that has a stand-in gets the stand-in. The library itself stays the program's: how it is found, and all of its other
 * functions, are as without Headrace.
 */
#define _GNU_SOURCE /* RTLD_NEXT, dladdr1, dl_iterate_phdr */
#include "cuda_remote/softgpu/nvrtc/toolkit.h"

#include "cuda_remote/redirect/tail_call.h"
#include "rdma_channel/base/log.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

typedef void *dlsym_function(void *, const char *);

TAIL_CALL_PART dlsym_function *toolkit_real_dlsym;
TAIL_CALL_PART void *toolkit_dlsym(void *handle, const char *name);

static struct {
	pthread_mutex_t mutex;
	int count;
	const void *base[TOOLKIT_LIBRARIES];
	void *handle[TOOLKIT_LIBRARIES];
} libraries = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* A sanitizer's library calls dlsym before it is initialised. What runs then must not be instrumented, and must not call
 * functions that the sanitizer intercepts. */
#define EARLY __attribute__((no_sanitize("address", "thread", "undefined")))

/* dlsym cannot be looked up by itself. Its version is that of glibc 2.34, or of the machine's first glibc. */
EARLY static dlsym_function *real_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17" };
	for (size_t i = 0; i < sizeof versions / sizeof *versions && !toolkit_real_dlsym; i++)
		*(void **)&toolkit_real_dlsym = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	return toolkit_real_dlsym;
}

/* ---- the libraries ---- */

/* The object that contains an address; NULL: none. Valid as a handle of dlsym while the object is loaded. */
static struct link_map *object_of(const void *address)
{
	Dl_info info;
	void *map = NULL;
	return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) ? map : NULL;
}

static int index_of_base(const void *base)
{
	for (int i = 0; i < libraries.count; i++)
		if (libraries.base[i] == base)
			return i;
	return TOOLKIT_NONE;
}

/* Keeps the library loaded. */
static int add(const struct link_map *object, const void *base)
{
	if (libraries.count == TOOLKIT_LIBRARIES) {
		hr_log_once(HR_LOG_ERROR, "%s: more than %d libraries of NVRTC and nvJitLink are loaded: this one is not "
					  "adapted to the software GPU", object->l_name, TOOLKIT_LIBRARIES);
		return TOOLKIT_NONE;
	}
	void *handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return TOOLKIT_NONE;
	libraries.base[libraries.count] = base;
	libraries.handle[libraries.count] = handle;
	return libraries.count++;
}

int toolkit_index(const void *function)
{
	Dl_info info;
	const struct link_map *object = object_of(function);
	if (!object || object == object_of((const void *)&toolkit_index) || !dladdr(function, &info))
		return TOOLKIT_NONE;
	pthread_mutex_lock(&libraries.mutex);
	int index = index_of_base(info.dli_fbase);
	if (index == TOOLKIT_NONE)
		index = add(object, info.dli_fbase);
	pthread_mutex_unlock(&libraries.mutex);
	return index;
}

void *toolkit_function(int index, const char *name)
{
	return index == TOOLKIT_NONE ? NULL : real_dlsym()(libraries.handle[index], name);
}

struct search {
	const char *file;
	char path[4096];
};

static int find_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	const char *slash = strrchr(info->dlpi_name, '/');
	(void)size;
	if (!slash || strncmp(slash + 1, search->file, strlen(search->file)) ||
	    strlen(info->dlpi_name) >= sizeof search->path)
		return 0;
	strcpy(search->path, info->dlpi_name);
	return 1;
}

/* A function of a loaded library whose file name begins so. */
static void *function_of_loaded(const char *name, const char *file)
{
	struct search search = { .file = file };
	if (!dl_iterate_phdr(find_loaded, &search))
		return NULL;
	void *handle = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
	void *function = handle ? real_dlsym()(handle, name) : NULL;
	if (handle)
		dlclose(handle);
	return function;
}

int toolkit_index_for_caller(const char *name, const char *file, const void *caller)
{
	int index = toolkit_index(real_dlsym()(RTLD_NEXT, name));
	struct link_map *object = object_of(caller);
	/* The caller may be a library of dlopen's: its libraries are not in the global scope. */
	if (index == TOOLKIT_NONE && object)
		index = toolkit_index(real_dlsym()(object, name));
	return index == TOOLKIT_NONE ? toolkit_index(function_of_loaded(name, file)) : index;
}

/* ---- dlsym ---- */

/* True for names of NVRTC and nvJitLink: nv..., __nv... */
EARLY static bool is_candidate(const char *name)
{
	if (name && name[0] == '_' && name[1] == '_')
		name += 2;
	return name && name[0] == 'n' && name[1] == 'v';
}

/* The stand-in that dlsym is to return; NULL: the program gets what the real dlsym finds. */
EARLY void *toolkit_dlsym(void *handle, const char *name)
{
	dlsym_function *real = real_dlsym();
	/* RTLD_DEFAULT and RTLD_NEXT find the functions that this library exports. */
	if (!is_candidate(name) || handle == RTLD_DEFAULT || handle == RTLD_NEXT || (!nvrtc_standin(name, 0) && !jitlink_standin(name, 0)))
		return NULL;
	int index = toolkit_index(real(handle, name));
	if (index == TOOLKIT_NONE)
		return NULL;
	void *function = nvrtc_standin(name, index);
	return function ? function : jitlink_standin(name, index);
}

#if defined(__x86_64__)
TAIL_CALL(dlsym, toolkit_dlsym,
	  "	test %rax, %rax\n"
	  "	jne 1f\n"
	  "	jmp *toolkit_real_dlsym(%rip)\n"
	  "1:	ret\n");
#else
/* What RTLD_NEXT means follows from the caller only if the compiler makes this call a jump. */
__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name)
{
	void *function = toolkit_dlsym(handle, name);
	return function ? function : toolkit_real_dlsym(handle, name);
}
#endif
