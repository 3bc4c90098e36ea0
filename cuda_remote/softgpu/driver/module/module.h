/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modules and functions, which belong to a context; libraries and kernels, which belong to the process. A library has a
 * module in each context where one of its kernels was used.
 */
#ifndef SOFTGPU_MODULE_H
#define SOFTGPU_MODULE_H

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/engine.h"
#include "cuda_remote/softgpu/fatbin/fatbin.h"

/* A texture or surface reference of a module: the first member of texture_reference.c's objects. */
struct module_reference {
	handle_t handle;
	CUcontext context;
	struct module_reference *next; /* of the module's */
	uint64_t number;               /* the engine's; 0: a reference of no module */
};

struct CUmod_st {
	handle_t handle;
	CUcontext context;
	softgpu_program_t *program;
	CUlibrary library; /* NULL: the module was not loaded for a library */
	CUfunction *functions;
	unsigned count;
	owned_t owned;
	struct module_reference *first_texture, *first_surface; /* under the context's lock */
	CUmodule next_of_library; /* under the library's lock */
};

typedef struct function_parameter {
	uint32_t offset, size;
} function_parameter_t;

struct CUfunc_st {
	handle_t handle;
	uint64_t id; /* never used twice */
	CUmodule module;
	const softgpu_kernel_t *kernel;
	softgpu_kernel_info_t info;
	function_parameter_t *parameters; /* info.parameters elements */
	uint32_t parameter_end;           /* end of the last parameter */
	/* Atomic: */
	int max_dynamic_shared, carveout;
	int required_cluster[3], wide_cluster, cluster_policy; /* wide: more blocks than CUDA permits everywhere */
	/* Of old_launch.c: the values that cuFuncSetBlockShape, cuParamSetv and their like have set, or NULL. */
	struct old_launch *old_launch;
};

struct CUlib_st {
	handle_t handle;
	pthread_mutex_t lock;
	fatbin_ptx_t ptx;
	CUkernel *kernels;
	unsigned count;
	CUmodule modules;
};

struct CUkern_st {
	handle_t handle;
	CUlibrary library;
	unsigned index;
	char *name;
};

/* Loads PTX into a context. */
CUresult module_load(CUcontext context, const fatbin_ptx_t *ptx, CUlibrary library, softgpu_log_t *log,
		     CUmodule *module);

/* Waits for the context's work, then unloads. */
void module_unload(CUmodule module);

/* The function with this name, or NULL. */
CUfunction module_find(CUmodule module, const char *name);

/* A library's module in context; the first call for a context loads it. */
CUresult library_module(CUlibrary library, CUcontext context, CUmodule *module);
/* Removes a module that is being destroyed from its library. */
void library_forget(CUlibrary library, CUmodule module);

/*
 * The function behind a handle: a CUfunction, or a CUkernel's function in context, as for cuLaunchKernel.
 * CUDA_ERROR_INVALID_HANDLE.
 */
CUresult function_resolve(CUfunction handle, CUcontext context, CUfunction *function);

/* Get and set an attribute of a function. */
CUresult function_attribute(CUfunction function, CUfunction_attribute attribute, int *value);
CUresult function_set_attribute(CUfunction function, CUfunction_attribute attribute, int value);

#endif
