/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headrace-run preloads this library. Before any constructor of the program, its own constructor looks for loaded
 * objects that are linked with NVIDIA's static CUDA runtime. It replaces the runtime's functions in them by jumps to
 * those of Headrace's libcudart.so.13 or libcudart.so.12, which are preloaded too and lie in the same folder.
 *
 * The library is linked with -z initfirst: else constructors of other libraries would run before its own, and register
 * their kernels with the runtime that is to be replaced. The C library's own constructor has not run either: so this
 * code uses neither stdio nor environ.
 *
 * Objects that dlopen loads later are looked at while they are relocated (late.c).
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "cuda_remote/relink/code_patch.h"
#include "cuda_remote/relink/elf_file.h"
#include "cuda_remote/relink/entry_points.h"
#include "cuda_remote/relink/known_objects.h"
#include "cuda_remote/relink/late.h"
#include "cuda_remote/relink/python_module.h"
#include "cuda_remote/relink/runtime_entries.h"
#include "rdma_channel/base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const runtime_names[RUNTIME_MAJORS] = { [RUNTIME_CUDA_12] = "libcudart.so.12",
							   [RUNTIME_CUDA_13] = "libcudart.so.13" };

/* A runtime of Headrace. */
struct runtime {
	bool asked, found;
	ElfW(Addr) base;
	elf_file_t file;
	runtime_entries_t entries;
};

/* What one pass over the loaded objects works with. Static, as it is large. */
static struct {
	char folder[PATH_MAX]; /* this library's */
	struct runtime runtimes[RUNTIME_MAJORS];
	runtime_entries_t entries;
	code_patch_t patches[RUNTIME_ENTRIES_MAX];
} pass;

static unsigned long long loads_seen; /* how many objects had been loaded at the last pass */

/* Stands in for functions that a later 13.x has and Headrace's runtime lacks. */
static int not_supported(void)
{
	enum { ERROR_NOT_SUPPORTED = 801 }; /* cudaErrorNotSupported */
	hr_log_once(HR_LOG_ERROR, "the program calls a function of a CUDA runtime later than 13.0, which Headrace's "
				  "runtime lacks: it returns cudaErrorNotSupported");
	return ERROR_NOT_SUPPORTED;
}

/* ---- Headrace's runtimes ---- */

static bool is_in_own_folder(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	return n && strlen(pass.folder) == n && !memcmp(path, pass.folder, n) && !strcmp(slash + 1, name);
}

static int find_runtime(struct dl_phdr_info *info, size_t size, void *major)
{
	struct runtime *runtime = &pass.runtimes[*(enum runtime_major *)major];
	(void)size;
	if (!is_in_own_folder(info->dlpi_name, runtime_names[*(enum runtime_major *)major]) ||
	    !elf_file_open(info->dlpi_name, &runtime->file))
		return 0;
	runtime->base = info->dlpi_addr;
	runtime->found = runtime_entries_exported(&runtime->file, &runtime->entries);
	return 1;
}

static int find_own_folder(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	ElfW(Addr) own = (ElfW(Addr))&not_supported - info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD || own < segment->p_vaddr || own - segment->p_vaddr >= segment->p_memsz)
			continue;
		const char *slash = strrchr(info->dlpi_name, '/');
		if (slash && (size_t)(slash - info->dlpi_name) < sizeof pass.folder)
			memcpy(pass.folder, info->dlpi_name, (size_t)(slash - info->dlpi_name));
		return 1;
	}
	return 0;
}

/* Headrace's runtime of this version, or NULL. Reads its functions once in a process. */
static const struct runtime *own_runtime(enum runtime_major major)
{
	struct runtime *runtime = &pass.runtimes[major];
	if (runtime->asked)
		return runtime->found ? runtime : NULL;
	runtime->asked = true;
	dl_iterate_phdr(find_own_folder, NULL);
	dl_iterate_phdr(find_runtime, &major);
	if (!runtime->found)
		hr_log(HR_LOG_ERROR, "%s/%s is not loaded: is it still in LD_PRELOAD, as headrace-run sets it?",
		       pass.folder, runtime_names[major]);
	return runtime->found ? runtime : NULL;
}

/* ---- one object ---- */

/* Where the n bytes of a function lie in the object's memory and in its file. False: they are not executable code. */
static bool locate(const struct dl_phdr_info *info, const elf_file_t *file, uint64_t value, uint64_t n,
		   code_patch_t *patch)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t offset = value - segment->p_vaddr;
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || (segment->p_flags & PF_W) ||
		    value < segment->p_vaddr || offset > segment->p_filesz || n > segment->p_filesz - offset)
			continue;
		/* The dynamic linker gives addresses as integers. */
		patch->code = (uint8_t *)(uintptr_t)(info->dlpi_addr + value);
		patch->file = segment->p_offset + offset < offset ?
				      NULL :
				      elf_file_at(file, segment->p_offset + offset, n);
		return patch->file;
	}
	return false;
}

static uintptr_t address_of(const struct runtime *runtime, const char *name)
{
	const runtime_entry_t *entry = runtime_entries_find(&runtime->entries, name);
	return entry ? runtime->base + entry->value : 0;
}

/* Where the jump of a function leads, in a static runtime of this release of CUDA 12; 0: of CUDA 13. */
static uintptr_t target_of(const struct runtime *runtime, unsigned release, const char *name)
{
	uintptr_t target = 0;
	if (release)
		target = entry_points_replace(name, release,
					      address_of(runtime, "cudaGetDriverEntryPointByVersion"),
					      address_of(runtime, "cudaGetDriverEntryPointByVersion_ptsz"));
	if (!target)
		target = address_of(runtime, name);
	return target ? target : (uintptr_t)&not_supported;
}

static bool prepare(const struct dl_phdr_info *info, const elf_file_t *file, const struct runtime *runtime,
		    const char **which)
{
	bool is_12 = runtime == &pass.runtimes[RUNTIME_CUDA_12];
	unsigned release = is_12 ? runtime_entries_release_12(&pass.entries) : 0;
	for (unsigned i = 0; i < pass.entries.count; i++) {
		const runtime_entry_t *entry = &pass.entries.entry[i];
		code_patch_t *patch = &pass.patches[i];
		*which = entry->name;
		*patch = (code_patch_t){ .name = entry->name, .size = entry->size };
		patch->target = target_of(runtime, release, entry->name);
		if (!locate(info, file, entry->value, entry->size, patch))
			return false;
	}
	return true;
}

/* The names of the security modules of this kernel, for a message. */
static void security_modules(char *text, size_t size)
{
	int fd = open("/sys/kernel/security/lsm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0) {
		snprintf(text, size, "unknown");
		return;
	}
	text[n] = 0;
	text[strcspn(text, "\n")] = 0;
}

static void replace(const struct dl_phdr_info *info, const char *path, const elf_file_t *file,
		    const struct runtime *runtime)
{
	static const char remedy[] = "link it with nvcc -cudart shared";
	const char *which = "";
	char modules[128];
	enum code_patch_result result = CODE_PATCH_DIFFERENT;
	if (prepare(info, file, runtime, &which))
		result = code_patch_all(path, pass.patches, pass.entries.count, &which);
	switch (result) {
	case CODE_PATCH_DONE:
		hr_log(HR_LOG_DEBUG, "%s: %u functions of its static CUDA runtime replaced", path, pass.entries.count);
		break;
	case CODE_PATCH_BEFORE: break;
	case CODE_PATCH_DIFFERENT:
		hr_log(HR_LOG_ERROR, "%s: %s of its static CUDA runtime is not in memory as in the file: %s", path,
		       which, remedy);
		break;
	case CODE_PATCH_SHORT:
		hr_log(HR_LOG_ERROR, "%s: %s of its static CUDA runtime is too short to be replaced: %s", path, which,
		       remedy);
		break;
	case CODE_PATCH_FORBIDDEN:
		security_modules(modules, sizeof modules);
		hr_log(HR_LOG_ERROR,
		       "%s: its static CUDA runtime cannot be replaced: a security module (of: %s), PR_SET_MDWE or a "
		       "filter of system calls forbids a program to change its code: %s",
		       path, modules, remedy);
		break;
	case CODE_PATCH_MACHINE:
		hr_log(HR_LOG_ERROR, "%s: its static CUDA runtime can be replaced on x86-64 only: %s", path, remedy);
		break;
	}
}

static void relink(const struct dl_phdr_info *info, const char *path, const elf_file_t *file)
{
	static const char *const versions[RUNTIME_MAJORS] = { [RUNTIME_CUDA_12] = "12", [RUNTIME_CUDA_13] = "13" };
	const char *which = "";
	if (!runtime_entries_static(file, &pass.entries)) {
		hr_log(HR_LOG_ERROR,
		       "%s defines more than %d functions cuda...: its static CUDA runtime cannot be replaced", path,
		       RUNTIME_ENTRIES_MAX);
		return;
	}
	enum runtime_major major = runtime_entries_major(&pass.entries);
	if (major == RUNTIME_OLDER) {
		hr_log(HR_LOG_ERROR,
		       "%s is linked with the static runtime of CUDA 11 or older, which Headrace cannot replace: its "
		       "CUDA calls will fail; build it with CUDA 12 or 13",
		       path);
		return;
	}
	const struct runtime *runtime = own_runtime(major);
	if (!runtime)
		return;
	switch (runtime_entries_match(&pass.entries, &runtime->entries, major, &which)) {
	case RUNTIME_SAME: replace(info, path, file, runtime); break;
	case RUNTIME_LACKS:
		hr_log(HR_LOG_ERROR,
		       "%s is linked with a static CUDA runtime that lacks %s of CUDA %s.0: its CUDA calls will fail; "
		       "link it with nvcc -cudart shared of CUDA 12 or 13",
		       path, which, versions[major]);
		break;
	case RUNTIME_UNKNOWN:
		hr_log(HR_LOG_ERROR,
		       "%s is linked with a static CUDA runtime that has %s, which CUDA %s lacks: its CUDA calls will "
		       "fail; link it with nvcc -cudart shared of CUDA 12 or 13",
		       path, which, versions[major]);
		break;
	case RUNTIME_TWICE:
		hr_log(HR_LOG_ERROR, "%s defines %s twice: its static CUDA runtime cannot be replaced", path, which);
		break;
	}
}

/* NVIDIA's libraries have static runtimes too. A program may load such a library without using it. */
static void report_stripped(const char *path, const char *soname)
{
	static const char *const nvidia[] = { "libcu", "libnv", "libnpp", "libnccl" };
	for (size_t i = 0; i < sizeof nvidia / sizeof *nvidia; i++)
		if (soname && !strncmp(soname, nvidia[i], strlen(nvidia[i]))) {
			hr_log(HR_LOG_WARN, "%s: NVIDIA's library works with NVIDIA's CUDA runtime only: its calls will fail",
			       path);
			return;
		}
	hr_log(HR_LOG_ERROR,
	       "%s has NVIDIA's static CUDA runtime and is stripped, so that Headrace cannot replace it: do not strip it, or "
	       "link it with nvcc -cudart shared",
	       path);
}

static uintptr_t find_in_runtime_13(const char *name)
{
	return address_of(&pass.runtimes[RUNTIME_CUDA_13], name);
}

/* A runtime without symbols in an object without kernels, which was loaded with a package and is often not used. */
static void look_at_bare(const struct dl_phdr_info *info, const char *path, const elf_file_t *file)
{
	switch (own_runtime(RUNTIME_CUDA_13) ? python_module_adopt(info, file, path, find_in_runtime_13) :
					       PYTHON_MODULE_NONE) {
	case PYTHON_MODULE_ADOPTED: break;
	case PYTHON_MODULE_UNTOUCHED:
		known_objects_forget();
		loads_seen = 0; /* so that the next pass takes place */
		break;
	case PYTHON_MODULE_NONE:
		hr_log(HR_LOG_WARN,
		       "%s has NVIDIA's static CUDA runtime and is stripped, so that Headrace cannot replace it: its calls "
		       "of the runtime will fail, those of the driver will not",
		       path);
		break;
	}
}

/* Returns whether the object has a static runtime with symbols. */
static bool look_at(const struct dl_phdr_info *info, const char *path, const elf_file_t *file)
{
	const char *soname = elf_file_dynamic(file, DT_SONAME, 0);
	if (soname && !strncmp(soname, "libcudart.so", 12))
		return false;
	enum runtime_presence presence = runtime_entries_presence(file);
	switch (presence) {
	case RUNTIME_ABSENT: break;
	case RUNTIME_PRESENT: relink(info, path, file); break;
	case RUNTIME_STRIPPED: report_stripped(path, soname); break;
	case RUNTIME_BARE: look_at_bare(info, path, file); break;
	}
	return presence == RUNTIME_PRESENT;
}

static void visit_object(const struct dl_phdr_info *info)
{
	char path[PATH_MAX];
	elf_file_t file;
	if (known_objects_look(info->dlpi_addr, info->dlpi_name))
		return;
	snprintf(path, sizeof path, "%s", info->dlpi_name);
	/* The program has no name here. The kernel's own object has a name, but no file. */
	if (!*path) {
		ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
		path[n > 0 ? n : 0] = 0;
	}
	if (!strchr(path, '/') || !elf_file_open(path, &file))
		return;
	if (look_at(info, path, &file))
		known_objects_mark();
	elf_file_close(&file);
}

/* A pass over the loaded objects. *began: whether the pass has begun. */
static int visit(struct dl_phdr_info *info, size_t size, void *began)
{
	bool *pass_began = began;
	(void)size;
	if (!*pass_began) {
		if (info->dlpi_adds == loads_seen)
			return 1; /* nothing was loaded since the last pass */
		loads_seen = info->dlpi_adds;
		known_objects_begin(info->dlpi_subs);
		*pass_began = true;
	}
	visit_object(info);
	return 0;
}

__attribute__((constructor, visibility("default"))) void headrace_relink_new_objects(void)
{
	bool began = false;
	dl_iterate_phdr(visit, &began);
}
