/* SPDX-License-Identifier: BSD-3-Clause */
/* The context in which a call works, and the calls that choose or destroy contexts. */
#include "cuda_remote/runtime/runtime.h"

#include "rdma_channel/base/log.h"

#include <pthread.h>

__thread struct runtime_context *runtime_thread_context;

/* The device that the thread has chosen; -1: none, the process's default is used. */
static __thread int thread_device = -1;

/*
 * Primary contexts of devices first, then contexts that the program has created, in order of their first use. The lock
 * guards every write, valid_devices and the program's contexts. handle may be read without the lock: it is stored with
 * release order after the other fields, and loaded with acquire order.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct runtime_context contexts[RUNTIME_MAX_CONTEXTS];
static unsigned own_contexts; /* in use after the RUNTIME_MAX_DEVICES primary contexts */
static int valid_devices[RUNTIME_MAX_DEVICES];
static int valid_count;

static CUcontext handle_of(struct runtime_context *context)
{
	/* Pairs with publish. */
	return atomic_load_explicit(&context->handle, memory_order_acquire);
}

static void publish(struct runtime_context *context, CUcontext handle)
{
	/* Orders device, primary, id and index before the handle by which others find them. */
	atomic_store_explicit(&context->handle, handle, memory_order_release);
}

static cudaError_t retain_primary(int ordinal, struct runtime_context **context)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	if (error)
		return error;
	struct runtime_context *c = &contexts[ordinal];
	if (!handle_of(c)) {
		CUcontext handle;
		CUresult result = runtime_driver.cuDevicePrimaryCtxRetain(&handle, device);
		if (result != CUDA_SUCCESS)
			return runtime_error_translate(result);
		if (!c->last_handle) { /* the first time only: after a reset, other threads may read these */
			c->index = (unsigned)ordinal;
			c->device = ordinal;
			c->primary = true;
		}
		c->last_handle = handle;
		c->id = 0;
		(void)runtime_driver.cuCtxGetId(handle, &c->id); /* stays 0 with a driver older than contexts' numbers */
		publish(c, handle);
	}
	*context = c;
	return cudaSuccess;
}

cudaError_t runtime_context_primary(int ordinal, struct runtime_context **context)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	if (error)
		return error;
	*context = &contexts[ordinal];
	if (handle_of(*context))
		return cudaSuccess;
	pthread_mutex_lock(&lock);
	error = retain_primary(ordinal, context);
	pthread_mutex_unlock(&lock);
	return error;
}

/* Retains the primary context of the thread's device, or of the first usable one of cudaSetValidDevices. Lock held. */
static cudaError_t retain_default(struct runtime_context **context)
{
	if (thread_device >= 0)
		return retain_primary(thread_device, context);
	if (!valid_count)
		return retain_primary(0, context);
	cudaError_t error = cudaErrorDevicesUnavailable;
	for (int i = 0; i < valid_count && error; i++)
		error = retain_primary(valid_devices[i], context);
	return error;
}

static cudaError_t bind_default(struct runtime_context **context)
{
	cudaError_t error = retain_default(context);
	if (!error)
		error = runtime_error_translate(runtime_driver.cuCtxSetCurrent(handle_of(*context)));
	return error;
}

/* The slot for a context of the program, which is current. With the lock held. */
static cudaError_t adopt(CUcontext handle, struct runtime_context **context)
{
	unsigned long long id = 0;
	runtime_driver.cuCtxGetId(handle, &id); /* stays 0 with a driver older than contexts' numbers */
	struct runtime_context *c = contexts + RUNTIME_MAX_DEVICES, *end = c + own_contexts;
	while (c < end && handle_of(c) != handle)
		c++;
	if (c < end && c->id == id) {
		*context = c;
		return cudaSuccess;
	}
	if (c == end && own_contexts == RUNTIME_MAX_CONTEXTS - RUNTIME_MAX_DEVICES) {
		hr_log(HR_LOG_ERROR, "the runtime is used in more than %u contexts of cuCtxCreate: destroy unused ones",
		       own_contexts);
		return cudaErrorIncompatibleDriverContext;
	}
	CUdevice device;
	CUresult result = runtime_driver.cuCtxGetDevice(&device);
	if (result != CUDA_SUCCESS)
		return runtime_error_translate(result);
	if (c == end)
		own_contexts++;
	c->index = (unsigned)(c - contexts);
	runtime_registry_forget(c, false); /* of a destroyed context at the same address */
	c->device = runtime_device_ordinal(device);
	c->primary = false;
	c->id = id;
	publish(c, handle);
	*context = c;
	return cudaSuccess;
}

/*
 * The slot of the primary context whose id the current context, a green one, reports; NULL: none. With the lock held.
 */
static struct runtime_context *find_primary_of_green(CUcontext current)
{
	unsigned long long id = 0;
	if (runtime_driver.cuCtxGetId(current, &id) != CUDA_SUCCESS || !id)
		return NULL;
	for (int i = 0; i < RUNTIME_MAX_DEVICES; i++)
		if (handle_of(&contexts[i]) && contexts[i].id == id)
			return &contexts[i];
	return NULL;
}

/* The slot of the current context, if there is one and it is alive. With the lock held. */
static cudaError_t find_current(CUcontext current, struct runtime_context **context)
{
	for (int i = 0; i < RUNTIME_MAX_DEVICES; i++) {
		struct runtime_context *c = &contexts[i];
		if (handle_of(c) == current) {
			*context = c;
			return cudaSuccess;
		}
		if (!handle_of(c) && c->last_handle == current) {
			/* The device was reset: the next call of this thread retains its context again. */
			cudaError_t error = retain_primary(c->device, context);
			if (!error)
				error = runtime_error_translate(runtime_driver.cuCtxSetCurrent(handle_of(*context)));
			return error;
		}
	}
	*context = find_primary_of_green(current);
	return *context ? cudaSuccess : adopt(current, context);
}

/*
 * The program may have retained a primary context itself, through the driver. So before the current context counts as
 * the program's own, it is compared with the primary context of its device, which is retained for this. With the lock
 * held.
 */
static void retain_if_primary(CUcontext current)
{
	CUdevice device;
	unsigned flags;
	int active = 0;
	struct runtime_context *context;
	if (runtime_driver.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return;
	int ordinal = runtime_device_ordinal(device);
	if (ordinal < 0 || handle_of(&contexts[ordinal]) || contexts[ordinal].last_handle == current)
		return;
	if (runtime_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active)
		(void)retain_primary(ordinal, &context);
}

static cudaError_t enter_slowly(CUcontext current, struct runtime_context **context)
{
	cudaError_t error;
	pthread_mutex_lock(&lock);
	if (current) {
		retain_if_primary(current);
		error = find_current(current, context);
	} else {
		error = bind_default(context);
	}
	pthread_mutex_unlock(&lock);
	return error;
}

cudaError_t runtime_context_enter(struct runtime_context **context)
{
	CUcontext current = NULL;
	cudaError_t error = runtime_driver_init();
	if (error)
		return runtime_fail(error);
	CUresult result = runtime_driver.cuCtxGetCurrent(&current);
	if (result != CUDA_SUCCESS)
		return runtime_done(result);
	struct runtime_context *c = runtime_thread_context;
	if (!current || !c || !c->primary || handle_of(c) != current)
		error = enter_slowly(current, &c);
	if (error)
		return runtime_fail(error);
	runtime_thread_context = c;
	*context = c;
	return cudaSuccess;
}

RUNTIME_API cudaError_t cudaSetDevice(int ordinal)
{
	struct runtime_context *context;
	cudaError_t error = runtime_context_primary(ordinal, &context);
	if (!error)
		error = runtime_error_translate(runtime_driver.cuCtxSetCurrent(handle_of(context)));
	if (error)
		return runtime_fail(error);
	thread_device = ordinal;
	runtime_thread_context = context;
	return cudaSuccess;
}

RUNTIME_API cudaError_t cudaGetDevice(int *ordinal)
{
	CUdevice device;
	CUcontext current = NULL;
	if (!ordinal)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_device(0, &device);
	if (!error)
		error = runtime_error_translate(runtime_driver.cuCtxGetCurrent(&current));
	if (error)
		return runtime_fail(error);
	struct runtime_context *context = runtime_thread_context;
	if (current && !(context && context->primary && handle_of(context) == current)) {
		error = runtime_context_enter(&context);
		if (error)
			return error;
	}
	if (current) {
		*ordinal = context->device;
		return cudaSuccess;
	}
	pthread_mutex_lock(&lock);
	*ordinal = thread_device >= 0 ? thread_device : valid_count ? valid_devices[0] : 0;
	pthread_mutex_unlock(&lock);
	return cudaSuccess;
}

RUNTIME_API cudaError_t cudaSetValidDevices(int *ordinals, int count)
{
	if (count < 0 || count > RUNTIME_MAX_DEVICES || (count && !ordinals))
		return runtime_fail(cudaErrorInvalidValue);
	for (int i = 0; i < count; i++) {
		CUdevice device;
		cudaError_t error = runtime_device(ordinals[i], &device);
		if (error)
			return runtime_fail(error);
	}
	pthread_mutex_lock(&lock);
	for (int i = 0; i < count; i++)
		valid_devices[i] = ordinals[i];
	valid_count = count;
	pthread_mutex_unlock(&lock);
	return cudaSuccess;
}

static const unsigned device_flags = cudaDeviceScheduleMask | cudaDeviceMapHost | cudaDeviceLmemResizeToMax |
				     cudaDeviceSyncMemops;

static cudaError_t set_flags(int ordinal, unsigned flags)
{
	CUdevice device;
	if (flags & ~device_flags)
		return cudaErrorInvalidValue;
	cudaError_t error = runtime_device(ordinal, &device);
	if (error)
		return error;
	/* Host memory is always mapped, as in every 64-bit runtime; the driver has no flag for it. */
	return runtime_error_translate(runtime_driver.cuDevicePrimaryCtxSetFlags_v2(device,
			flags & ~(unsigned)cudaDeviceMapHost));
}

RUNTIME_API cudaError_t cudaInitDevice(int ordinal, unsigned flags_of_device, unsigned flags)
{
	struct runtime_context *context;
	if (flags & ~(unsigned)cudaInitDeviceFlagsAreValid)
		return runtime_fail(cudaErrorInvalidValue);
	if (flags & cudaInitDeviceFlagsAreValid) {
		cudaError_t error = set_flags(ordinal, flags_of_device);
		if (error)
			return runtime_fail(error);
	}
	return runtime_fail(runtime_context_primary(ordinal, &context));
}

RUNTIME_API cudaError_t cudaSetDeviceFlags(unsigned flags)
{
	int ordinal;
	cudaError_t error = cudaGetDevice(&ordinal);
	if (error)
		return error;
	error = set_flags(ordinal, flags);
	return error ? runtime_fail(error) : runtime_enter();
}

RUNTIME_API cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
	int ordinal, active;
	CUdevice device;
	if (!flags)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = cudaGetDevice(&ordinal);
	if (!error)
		error = runtime_device(ordinal, &device);
	if (error)
		return runtime_fail(error);
	CUresult result = runtime_driver.cuDevicePrimaryCtxGetState(device, flags, &active);
	*flags |= cudaDeviceMapHost;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaDeviceReset(void)
{
	struct runtime_context *context;
	CUdevice device;
	runtime_error_clear();
	cudaError_t error = runtime_context_enter(&context);
	if (error)
		return error;
	runtime_registry_forget(context, !context->primary);
	if (!context->primary)
		return cudaSuccess;
	error = runtime_device(context->device, &device);
	if (error)
		return runtime_fail(error);
	pthread_mutex_lock(&lock);
	CUresult result = runtime_driver.cuDevicePrimaryCtxReset_v2(device);
	if (result == CUDA_SUCCESS) {
		/* "Resetting the primary context does not release it": the runtime's own reference goes with it. */
		(void)runtime_driver.cuDevicePrimaryCtxRelease_v2(device);
		publish(context, NULL);
	}
	pthread_mutex_unlock(&lock);
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaDeviceSynchronize(void)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuCtxSynchronize());
}

RUNTIME_API cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuCtxSetLimit((CUlimit)limit, value));
}

RUNTIME_API cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuCtxGetLimit(value, (CUlimit)limit));
}

RUNTIME_API cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuCtxSetCacheConfig((CUfunc_cache)config));
}

RUNTIME_API cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuCtxGetCacheConfig((CUfunc_cache *)config));
}

RUNTIME_API cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuCtxSetSharedMemConfig((CUsharedconfig)config));
}

RUNTIME_API cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuCtxGetSharedMemConfig((CUsharedconfig *)config));
}

RUNTIME_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuCtxGetStreamPriorityRange(least, greatest));
}

RUNTIME_API cudaError_t cudaCtxResetPersistingL2Cache(void)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuCtxResetPersistingL2Cache());
}

RUNTIME_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	struct runtime_context *context, *peer_context;
	cudaError_t error = runtime_context_enter(&context);
	if (error)
		return error;
	error = runtime_context_primary(peer, &peer_context);
	if (error)
		return runtime_fail(error);
	if (context->device == peer)
		return runtime_fail(cudaErrorInvalidDevice);
	return runtime_done(runtime_driver.cuCtxEnablePeerAccess(handle_of(peer_context), flags));
}

RUNTIME_API cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	struct runtime_context *context, *peer_context;
	cudaError_t error = runtime_context_enter(&context);
	if (error)
		return error;
	error = runtime_context_primary(peer, &peer_context);
	if (error)
		return runtime_fail(error);
	return runtime_done(runtime_driver.cuCtxDisablePeerAccess(handle_of(peer_context)));
}
