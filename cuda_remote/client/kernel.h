/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels and the modules and libraries that they are part of (module.c, kernel.c, library.c), and launches (launch.c). */
#ifndef RC_CLIENT_KERNEL_H
#define RC_CLIENT_KERNEL_H

#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rc_library_image;
struct rc_old_launch;
struct rc_session;

/* ---- module.c, kernel.c ---- */

#define RC_SET_ON_SEVERAL UINT32_MAX

struct rc_kernel {
	uint64_t handle;    /* of the function or the library's kernel */
	char *name;
	uint32_t parameters, block; /* count; bytes of the parameter block */
	struct rc_parameter {
		uint32_t offset, size;
	} *parameter;
	uint32_t known;
	int32_t attribute[RC_KERNEL_ATTRIBUTES];
	uint32_t dynamic_most; /* bytes of dynamic shared memory that a launch may ask for, if it is known; atomic */
	uint32_t set_on;       /* 1 + the device it was set for last, RC_SET_ON_SEVERAL: several; 0: none; atomic */
	struct rc_old_launch *old_launch; /* what the calls of CUDA 3.2 have set, or NULL; allocated */
	uint64_t resident; /* of launch.c: blocks that fit a multiprocessor, as last asked for; atomic */
	struct rc_module *module;
};

struct rc_module {
	uint64_t handle;
	CUcontext context; /* of a module; NULL for a library */
	bool library;
	uint64_t of_library; /* a library's module: the library's handle; else 0 */
	/* Of a library (library.c). Its copies are on other servers. */
	struct rc_module *home;   /* of a copy: the program's library; else NULL */
	struct rc_module *copies, *next_copy;
	struct rc_library_image *image; /* allocated; NULL if there is one server only, and of copies */
	uint32_t n;
	struct rc_kernel *kernel;
};

/* Forgets the modules of a context that is gone. */
void rc_module_forget_context(CUcontext context);

/* The kernel of a CUfunction or CUkernel; NULL if the handle is neither. */
struct rc_kernel *rc_kernel_find(uint64_t handle);

/* ---- library.c ---- */

/* Exchanges a library's kernel for the same kernel on the server of the session. A server that lacks the library loads it.
 * CUDA_ERROR_INVALID_HANDLE: a module's function of another server. NULL as session: changes nothing. */
CUresult rc_kernel_on(struct rc_session *session, struct rc_kernel **kernel);
/* The program's handle of the library that the kernel belongs to. */
CUlibrary rc_kernel_library(const struct rc_kernel *kernel);

/* ---- launch.c ---- */

/* Checks a launch's dimensions against the limits of the current device and of the kernel. cluster: as the launch gives it,
 * or 0 three times. */
CUresult rc_launch_check_shape(const struct rc_kernel *kernel, const uint32_t *grid, const uint32_t *block, uint32_t shared,
			       const uint32_t *cluster);
/* Fills to[0..kernel->block-1] from a launch's parameters or from its argument "extra". */
CUresult rc_launch_pack(const struct rc_kernel *kernel, void **parameters, void **extra, uint8_t *to);

#endif
