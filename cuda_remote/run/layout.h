/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the installed parts. The libraries that replace NVIDIA's are in three folders, as two of them have the same
 * name:
 *
 *	client/libcuda.so.1    forwards to a server
 *	softgpu/libcuda.so.1   the software GPU
 *	runtime/libcudart.so.13 and libcudart.so.12
 *
 * If HEADRACE_LIBDIR is set, only that folder is searched. Else the places are, in this order: the prefix that the
 * running program is installed in, which may differ from the configured one; the build tree that the program runs from;
 * the configured folder. In each of them a library may also be in .libs, where libtool builds it.
 */
#ifndef RC_LAYOUT_H
#define RC_LAYOUT_H

#include <limits.h>

enum rc_layout_part { RC_LAYOUT_CLIENT, RC_LAYOUT_SOFTGPU, RC_LAYOUT_RUNTIME };

/* The folder of a part's library. -ENOENT: it is in none of the places (logged). */
int rc_layout_folder(enum rc_layout_part part, char folder[PATH_MAX]);

/* The path of a part's library. As above. */
int rc_layout_library(enum rc_layout_part part, char path[PATH_MAX]);

/* The path of headraced. As above. */
int rc_layout_daemon(char path[PATH_MAX]);

/* The path of the NVIDIA driver's libcuda.so.1. -ENODEV (not logged) if this host does not have it, or has no NVIDIA
 * device that this user may open. */
int rc_layout_system_driver(char path[PATH_MAX]);

#endif
