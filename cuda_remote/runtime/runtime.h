/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all parts of the CUDA runtime share. The runtime uses only the public driver API. Its interface is that of CUDA
 * 13.0's cuda_runtime_api.h; the functions that compiled host code calls are those of crt/host_runtime.h and
 * crt/device_functions.h.
 *
 * Streams, events, pools, IPC handles and libraries of the runtime are the driver's handles, so that programs may mix
 * both interfaces. Any thread may call anything.
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

/* Outputs the driver's device. cudaErrorInvalidDevice: no such ordinal; or the reason why there are no devices. */
cudaError_t runtime_device(int ordinal, CUdevice *device);

/* The ordinal of a driver's device, or -1 if runtime_device never outputs it. */
int runtime_device_ordinal(CUdevice device);

/* An attribute of a device, cached. 0 if the driver does not know the attribute. */
int runtime_device_attribute(int ordinal, enum cudaDeviceAttr attribute);

/* ---- contexts (context.c) ---- */

enum { RUNTIME_MAX_CONTEXTS = 128 };

/*
 * A driver context in which the runtime has worked: the primary context of a device, or a context that the program has
 * created through the driver API. Never freed.
 */
struct runtime_context {
	unsigned index;             /* index in the tables that each module keeps for all contexts */
	int device;                 /* ordinal */
	bool primary;
	unsigned long long id;      /* differs if a new context has the address of a destroyed one; under the lock */
	_Atomic(CUcontext) handle;  /* NULL while a primary context is not retained */
	CUcontext last_handle;      /* of a primary context: the handle that threads may still hold after a reset */
};

/* The context of this thread's last call in a context, or NULL. Launches use it without a check: launch_twice.c. */
extern __thread struct runtime_context *runtime_thread_context;

/*
 * Outputs the context in which a call works: the thread's current context, else the primary context of the thread's
 * device, which is retained and made current. Every public function that needs a context calls this first. A failure is
 * recorded.
 */
cudaError_t runtime_context_enter(struct runtime_context **context);

/* runtime_context_enter for a call that does not use the context. */
static inline cudaError_t runtime_enter(void)
{
	struct runtime_context *context;
	return runtime_context_enter(&context);
}

/* The primary context of a device, retained. Does not change the thread's current context. Records nothing. */
cudaError_t runtime_context_primary(int ordinal, struct runtime_context **context);

/* ---- what compiled host code registers (registry.c) ---- */

enum runtime_symbol_kind { RUNTIME_KERNEL, RUNTIME_VARIABLE, RUNTIME_MANAGED };

struct runtime_module;

/*
 * A kernel or variable, found by the host address that identifies it in compiled code. Freed with its module. A symbol
 * without a module is a handle of the driver (runtime_symbol_remember) and is never freed.
 */
struct runtime_symbol {
	const void *host;
	const char *name;              /* on the device; in the program's memory */
	struct runtime_module *module;
	struct runtime_symbol *next;   /* in the module's list */
	void **managed;                /* RUNTIME_MANAGED: the pointer that host code uses to access the variable */
	size_t size;                   /* bytes of a variable */
	unsigned index;                /* among the module's symbols */
	enum runtime_symbol_kind kind;
	bool alias;                    /* a second symbol of a kernel, which is found by the driver's handle */
};

/* NULL: no kernel or variable is registered for this address. Takes no lock. */
struct runtime_symbol *runtime_symbol_find(const void *host);

/*
 * Outputs a kernel's CUfunction or a variable's device address in this context, which must be current. The first use of
 * a module's symbol loads the module; the value is cached. cudaErrorInvalidDeviceFunction, cudaErrorInvalidSymbol: the
 * module has no such name; or the error of loading it. Records nothing.
 */
cudaError_t runtime_symbol_resolve(struct runtime_symbol *symbol, struct runtime_context *context, uint64_t *value);

/* The cached value of runtime_symbol_resolve, or 0. Takes no lock and does not call the driver. */
uint64_t runtime_symbol_resolved(const struct runtime_symbol *symbol, const struct runtime_context *context);

/* Forgets all modules loaded in a context. unload: the driver still has them, so unload them there. */
void runtime_registry_forget(struct runtime_context *context, bool unload);

/*
 * Makes runtime_symbol_find accept a kernel handle of the driver (a cudaKernel_t of cudaLibraryGetKernel, or a
 * cudaFunction_t), which programs may pass in place of a host function's address. The symbol resolves to the handle
 * itself.
 */
cudaError_t runtime_symbol_remember(const void *handle);

/*
 * The driver's handle of a kernel of compiled code; runtime_symbol_find accepts the handle from now on. The context is
 * current. cudaErrorNotSupported: the driver has no libraries, or the context is not a primary one. Records nothing.
 */
cudaError_t runtime_symbol_kernel(struct runtime_symbol *symbol, struct runtime_context *context, CUkernel *kernel);

/* The host address of a kernel that resolved to this function, or NULL. */
const void *runtime_symbol_of_function(CUfunction function);

/* ---- kernels (function.c) ---- */

/* The CUfunction of a kernel argument of a call. Enters a context. A failure is recorded. */
cudaError_t runtime_function(const void *kernel, CUfunction *function);

#endif
