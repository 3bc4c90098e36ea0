/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that headrace-run is to run: finding it, and seeing whether it can work under Headrace. */
#ifndef RC_RUN_PROGRAM_H
#define RC_RUN_PROGRAM_H

#include <limits.h>

/* Finds name as execvp does. 0; -ENOENT: nowhere; -EACCES: found, but may not be run, or is a folder. */
int program_find(const char *name, char path[PATH_MAX]);

/* Warns on stderr if the program carries NVIDIA's static runtime or needs one of another CUDA version. Says nothing
 * of what is no ELF program: a script may start one. */
void program_check(const char *path);

#endif
