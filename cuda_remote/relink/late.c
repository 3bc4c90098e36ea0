/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces static CUDA runtimes in objects that dlopen loads, before their constructors run.
 *
 * The start files of the C library make each program and shared library refer to __gmon_start__, a function that only
 * profiled programs (gcc -pg) define. This object defines it as an indirect function. cuda_remote/redirect loads the
 * object into the global scope at the program's first dlopen. From then on, the dynamic linker calls the resolver while
 * it relocates a new object: all objects of that dlopen are mapped then, and no constructor of them has run. The function
 * itself does nothing.
 *
 * It cannot be preloaded: the dynamic linker would call the resolver for the program's libraries before this object is
 * relocated itself. -nostartfiles keeps the object from referring to its own function.
 */
#include "cuda_remote/relink/late.h"

void __gmon_start__(void);

static void do_nothing(void)
{
}

__attribute__((used)) static void (*resolve(void))(void)
{
	headrace_relink_new_objects();
	return do_nothing;
}

__attribute__((visibility("default"), ifunc("resolve"))) void __gmon_start__(void);
