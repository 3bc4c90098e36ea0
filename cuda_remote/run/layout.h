/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the installed parts lie. Three folders hold the libraries that stand in for NVIDIA's, one kind each, as two
 * of them have the same name:
 *
 *	client/libcuda.so.1    forwards to a server
 *	softgpu/libcuda.so.1   the software GPU
 *	runtime/libcudart.so.13
 *
 * Looked for under HEADRACE_LIBDIR where that is set; else where the running program was installed, which may be
 * another prefix than it was configured for; else in the build tree that the program runs from; else in the
 * configured place. Below each of them a library may also lie in .libs, as libtool leaves it.
 */
#ifndef RC_LAYOUT_H
#define RC_LAYOUT_H

#include <limits.h>

enum rc_layout_part { RC_LAYOUT_CLIENT, RC_LAYOUT_SOFTGPU, RC_LAYOUT_RUNTIME };

/* The folder that holds a part's library. -ENOENT: it is in none of the places (logged, with the places). */
int rc_layout_folder(enum rc_layout_part part, char folder[PATH_MAX]);

/* The path of a part's library. As above. */
int rc_layout_library(enum rc_layout_part part, char path[PATH_MAX]);

/* The path of headraced. As above. */
int rc_layout_daemon(char path[PATH_MAX]);

/* The path of the NVIDIA driver's libcuda.so.1 if this host has that and an NVIDIA device that this user may open;
 * -ENODEV if not (not logged). */
int rc_layout_system_driver(char path[PATH_MAX]);

#endif
