/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVIDIA's libraries (NVRTC, nvJitLink) whose functions this library stands in for. A process may have several of them
 * loaded, such as those of CUDA 12 and 13; each has an index.
 */
#ifndef RC_NVRTC_TOOLKIT_H
#define RC_NVRTC_TOOLKIT_H

#include <stddef.h>

enum { TOOLKIT_LIBRARIES = 4, TOOLKIT_NONE = -1 };

/* The index of the library that defines a function, which stays loaded from now on. TOOLKIT_NONE: there are too many
 * libraries (logged), or it is in none. */
int toolkit_index(const void *function);

/* The same for a function of a name, called by the code at an address: the library that the caller is linked with.
 * file: how the library's file name begins, in case another object has loaded it. */
int toolkit_index_for_caller(const char *name, const char *file, const void *caller);

/* A library's function, or NULL. */
void *toolkit_function(int index, const char *name);

/* The stand-in for a name that a program looks up in the library of an index, or NULL. */
void *nvrtc_standin(const char *name, int index);
void *jitlink_standin(const char *name, int index);

#endif
