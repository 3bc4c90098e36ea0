/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the program that headrace-run is to run, and checking if it can work under Headrace. */
#ifndef RC_RUN_PROGRAM_H
#define RC_RUN_PROGRAM_H

#include <limits.h>

/* Finds name as execvp does. -ENOENT: not found; -EACCES: found, but not executable or not a file. */
int program_find(const char *name, char path[PATH_MAX]);

/* Warns on stderr if the program needs the shared runtime of another CUDA version. Does not warn if the file is not
 * ELF: it may be a script. A static runtime is the matter of cuda_remote/relink, in the program's own process. */
void program_check(const char *path);

#endif
