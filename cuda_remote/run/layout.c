/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds Headrace's CUDA libraries, headraced and NVIDIA's driver, in an installation or a build tree. */
#include "cuda_remote/run/layout.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The makefile names HR_PREFIX, HR_PKGLIBDIR and HR_SBINDIR. */

HR_SETTING(libdir, "HEADRACE_LIBDIR", "", 0, 0,
	   "folder of client/, softgpu/ and runtime/ with Headrace's CUDA libraries; empty: as installed");

static const struct {
	const char *folder, *file;
} parts[] = {
	[RC_LAYOUT_CLIENT] = { "client", "libcuda.so.1" },
	[RC_LAYOUT_SOFTGPU] = { "softgpu", "libcuda.so.1" },
	[RC_LAYOUT_RUNTIME] = { "runtime", "libcudart.so.13" },
};

static bool join(char path[PATH_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool join(char path[PATH_MAX], const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(path, PATH_MAX, format, args);
	va_end(args);
	return n > 0 && n < PATH_MAX;
}

/* The folder of the running program's file. */
static bool own_folder(char folder[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	if (n <= 0)
		return false;
	folder[n] = 0;
	char *slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = 0;
	return true;
}

/* The part of an installed folder's name that follows the prefix, or NULL if the folder is not below the prefix. */
static const char *below_prefix(const char *folder)
{
	size_t n = strlen(HR_PREFIX);
	return !strncmp(folder, HR_PREFIX "/", n + 1) ? folder + n + 1 : NULL;
}

/* The i-th place to search; client/, softgpu/ and runtime/ are below it. False past the last place. *path is "" if the
 * place does not apply. */
static bool library_place(int i, char path[PATH_MAX])
{
	char own[PATH_MAX];
	const char *configured = *hr_setting_text(&libdir) ? hr_setting_text(&libdir) : NULL;
	path[0] = 0;
	if (configured)
		return i == 0 && join(path, "%s", configured);
	if (i > 4)
		return false;
	if (i == 4)
		return join(path, "%s", HR_PKGLIBDIR);
	if (!own_folder(own))
		return true;
	bool fits = true;
	if (i == 0 && below_prefix(HR_PKGLIBDIR))
		fits = join(path, "%s/../%s", own, below_prefix(HR_PKGLIBDIR));
	else if (i == 1)
		fits = join(path, "%s/..", own); /* cuda_remote/run of a build tree */
	else if (i == 2)
		fits = join(path, "%s/../..", own); /* cuda_remote/run/.libs */
	else if (i == 3)
		fits = join(path, "%s/../../cuda_remote", own); /* bench/info */
	if (!fits)
		path[0] = 0;
	return true;
}

int rc_layout_folder(enum rc_layout_part part, char folder[PATH_MAX])
{
	char place[PATH_MAX], candidate[PATH_MAX], file[PATH_MAX];
	for (int i = 0; library_place(i, place); i++) {
		for (int libs = 0; libs < 2 && *place; libs++) {
			if (!join(candidate, "%s/%s%s", place, parts[part].folder, libs ? "/.libs" : "") ||
			    !join(file, "%s/%s", candidate, parts[part].file) || access(file, R_OK))
				continue;
			if (!realpath(candidate, folder))
				return -errno;
			return 0;
		}
	}
	hr_log(HR_LOG_ERROR, "%s/%s of Headrace is not installed in %s: set HEADRACE_LIBDIR", parts[part].folder,
	       parts[part].file, *hr_setting_text(&libdir) ? hr_setting_text(&libdir) : HR_PKGLIBDIR);
	return -ENOENT;
}

int rc_layout_library(enum rc_layout_part part, char path[PATH_MAX])
{
	char folder[PATH_MAX];
	int error = rc_layout_folder(part, folder);
	if (!error && !join(path, "%s/%s", folder, parts[part].file))
		error = -ENAMETOOLONG;
	return error;
}

int rc_layout_daemon(char path[PATH_MAX])
{
	static const char *const beside[] = { "headraced", "../server/headraced", "../../server/headraced",
					      "../../cuda_remote/server/headraced" };
	char own[PATH_MAX];
	if (own_folder(own)) {
		if (below_prefix(HR_SBINDIR) && join(path, "%s/../%s/headraced", own, below_prefix(HR_SBINDIR)) &&
		    !access(path, X_OK))
			return 0;
		for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
			if (join(path, "%s/%s", own, beside[i]) && !access(path, X_OK))
				return 0;
	}
	if (join(path, "%s/headraced", HR_SBINDIR) && !access(path, X_OK))
		return 0;
	hr_log(HR_LOG_ERROR, "headraced is not installed in %s", HR_SBINDIR);
	return -ENOENT;
}

int rc_layout_system_driver(char path[PATH_MAX])
{
	/* Folders of NVIDIA's driver. LD_LIBRARY_PATH is not searched, as it may lead to Headrace's libcuda. */
	static const char *const places[] = {
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib",
		"/run/opengl-driver/lib", "/usr/local/nvidia/lib64",
	};
	if (access("/dev/nvidiactl", R_OK | W_OK) && access("/dev/dxg", R_OK | W_OK) &&
	    access("/dev/nvhost-ctrl", R_OK | W_OK))
		return -ENODEV;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (join(path, "%s/libcuda.so.1", places[i]) && !access(path, R_OK))
			return 0;
	return -ENODEV;
}
