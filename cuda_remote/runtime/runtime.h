/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA runtime on the public driver API alone: what its parts share. Interfaces and semantics are those of
 * CUDA 13.0's cuda_runtime_api.h; the functions that compiled host code calls are those of crt/host_runtime.h and
 * crt/device_functions.h.
 *
 * A stream, event, pool, IPC handle or library of the runtime is the driver's own handle; the two interfaces may be
 * mixed. Everything may be called from any thread.
 */
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "cuda_remote/runtime/cuda_headers.h"
#include "cuda_remote/runtime/driver.h"
#include "cuda_remote/runtime/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline CUdeviceptr runtime_address(const void *pointer)
{
	return (CUdeviceptr)(uintptr_t)pointer;
}

/* ---- devices (device.c) ---- */

enum { RUNTIME_MAX_DEVICES = 64 };

/* cudaSuccess if ordinal is a device of the driver's, else cudaErrorInvalidDevice or why there are none. */
cudaError_t runtime_device(int ordinal, CUdevice *device);

/* The ordinal of a driver's device, -1 if it is none of runtime_device's. */
int runtime_device_ordinal(CUdevice device);

/* An attribute, from memory after the first time. 0 for one that the driver does not know. */
int runtime_device_attribute(int ordinal, enum cudaDeviceAttr attribute);

/* ---- contexts (context.c) ---- */

enum { RUNTIME_MAX_CONTEXTS = 128 };

/*
 * A driver context the runtime has worked in: a device's primary one, or one that the program made itself through the
 * driver API. Never freed.
 */
struct runtime_context {
	unsigned index;             /* place in the tables that modules keep per context */
	int device;                 /* ordinal */
	bool primary;
	unsigned long long id;      /* tells a new context at the address of a destroyed one from the old one; locked */
	_Atomic(CUcontext) handle;  /* NULL while a primary context is not retained */
	CUcontext last_handle;      /* of a primary one: what the thread still holds after a reset */
};

/* The context of this thread's last call that needed one; NULL before. The launch path trusts it, see launch.c. */
extern __thread struct runtime_context *runtime_thread_context;

/*
 * The context this call works in: the one current to the thread, else the primary context of the thread's device, which
 * is retained and made current. Every public function that needs a context calls this first. A failure is recorded.
 */
cudaError_t runtime_context_enter(struct runtime_context **context);

/* The same for a call that needs not know which. */
static inline cudaError_t runtime_enter(void)
{
	struct runtime_context *context;
	return runtime_context_enter(&context);
}

/* The primary context of a device, retained; the thread's current context stays as it is. Records nothing. */
cudaError_t runtime_context_primary(int ordinal, struct runtime_context **context);

/* ---- what compiled host code registers (registry.c) ---- */

enum runtime_symbol_kind { RUNTIME_KERNEL, RUNTIME_VARIABLE, RUNTIME_MANAGED };

struct runtime_module;

/*
 * A kernel or variable, found by the address of its stand-in in host memory. Lives as long as its module; one without a
 * module is a driver's handle (runtime_symbol_remember) and stays.
 */
struct runtime_symbol {
	const void *host;
	const char *name;              /* on the device; the program's memory */
	struct runtime_module *module;
	struct runtime_symbol *next;   /* of the module's */
	void **managed;                /* RUNTIME_MANAGED: where host code reads the variable's address */
	size_t size;                   /* bytes of a variable */
	unsigned index;                /* among the module's symbols */
	enum runtime_symbol_kind kind;
	bool alias;                    /* found by its handle, beside the symbol of its stand-in */
};

/* NULL if no such kernel or variable is registered. No lock. */
struct runtime_symbol *runtime_symbol_find(const void *host);

/*
 * A kernel's CUfunction, a variable's device address, in this context, which must be current. The first use of any
 * symbol of a module loads the module. Remembered. cudaErrorInvalidDeviceFunction or cudaErrorInvalidSymbol if the
 * module has no such name; else why it could not be loaded. Records nothing.
 */
cudaError_t runtime_symbol_resolve(struct runtime_symbol *symbol, struct runtime_context *context, uint64_t *value);

/* The same if it is known already, else 0. No lock and no driver call. */
uint64_t runtime_symbol_resolved(const struct runtime_symbol *symbol, const struct runtime_context *context);

/* Forgets what was loaded in a context; unload says whether the driver still has it. */
void runtime_registry_forget(struct runtime_context *context, bool unload);

/*
 * Makes runtime_symbol_find accept a kernel handle that came from the driver (a cudaKernel_t of cudaLibraryGetKernel, a
 * cudaFunction_t): programs pass those where a host stub's address would do. Such a symbol resolves to the handle
 * itself.
 */
cudaError_t runtime_symbol_remember(const void *handle);

/*
 * The driver's handle of a kernel of compiled code, by which runtime_symbol_find finds it too from now on. The context
 * is current. cudaErrorNotSupported: the driver has no libraries, or the context is not a primary one. Records nothing.
 */
cudaError_t runtime_symbol_kernel(struct runtime_symbol *symbol, struct runtime_context *context, CUkernel *kernel);

/* The stand-in of a kernel that resolved to this function; NULL if none did. */
const void *runtime_symbol_of_function(CUfunction function);

/* ---- kernels (function.c) ---- */

/* The CUfunction of what a program passes as a kernel. Enters a context. A failure is recorded. */
cudaError_t runtime_function(const void *kernel, CUfunction *function);

#endif
