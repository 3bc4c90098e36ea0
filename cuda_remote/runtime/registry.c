/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fat binaries, and their kernels and variables, which static constructors of compiled host code register. Constructors
 * run in any order, possibly before this library's own and before there is a driver, so a registration is only
 * recorded. A fat binary is loaded into a context when one of its symbols is first used there.
 */
#include "cuda_remote/runtime/runtime.h"

#include "cuda_remote/runtime/fatbin.h"
#include "cuda_remote/runtime/registration.h"
#include "cuda_remote/runtime/symbol_map.h"
#include "rdma_channel/base/log.h"

#include <pthread.h>
#include <stdlib.h>

/* A fat binary in one context: loaded, or without code for its device. */
struct instance {
	CUmodule module; /* NULL after an error */
	bool of_library; /* module belongs to the library, and is unloaded with it */
	cudaError_t error;
	unsigned symbols; /* length of values */
	_Atomic uint64_t values[]; /* by symbol index: CUfunction or device address; 0: not resolved yet */
};

/* A registered fat binary; compiled code uses its address as a handle. */
struct runtime_module {
	const struct fatbin_wrapper *wrapper;
	struct runtime_module *next;
	struct runtime_symbol *symbols;
	unsigned count;
	CUlibrary library; /* its library in the driver; NULL: not loaded, or the driver does not support libraries */
	/* By context index. Stored with release order after module and values; loaded with acquire order. */
	_Atomic(struct instance *) instances[RUNTIME_MAX_CONTEXTS];
};

/* Guards the list of modules, their lists of symbols, and writes of instances and of the map. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct runtime_module *modules;
static struct symbol_map map;

/* Set when exit() begins to run handlers: the driver may be gone before this library. */
static atomic_bool exiting;

static void note_exit(void)
{
	/* Orders nothing: only later handlers of this thread read it. */
	atomic_store_explicit(&exiting, true, memory_order_relaxed);
}

static void watch_exit(void)
{
	/*
	 * Registered at the first load, after the atexit calls of all static constructors: so it runs before their
	 * handlers.
	 */
	atexit(note_exit);
}

RUNTIME_API void **__cudaRegisterFatBinary(void *fat_binary)
{
	const struct fatbin_wrapper *wrapper = fat_binary;
	struct runtime_module *module = calloc(1, sizeof *module);
	if (!module) {
		hr_log(HR_LOG_ERROR, "out of memory while registering a fat binary");
		return NULL;
	}
	if (wrapper->magic != FATBIN_WRAPPER_MAGIC)
		hr_log(HR_LOG_ERROR, "cannot register a fat binary: its magic is %#x, expected %#x", wrapper->magic,
		       FATBIN_WRAPPER_MAGIC);
	else
		module->wrapper = wrapper;
	pthread_mutex_lock(&lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&lock);
	return (void **)module;
}

RUNTIME_API void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle; /* modules are loaded at first use: nothing to do at the end of registration */
}

static void add_symbol(void **handle, const struct runtime_symbol *symbol)
{
	struct runtime_module *module = (struct runtime_module *)handle;
	if (!module)
		return; /* __cudaRegisterFatBinary has logged the reason */
	struct runtime_symbol *s = malloc(sizeof *s);
	if (!s) {
		hr_log(HR_LOG_ERROR, "out of memory while registering %s", symbol->name);
		return;
	}
	*s = *symbol;
	s->module = module;
	pthread_mutex_lock(&lock);
	s->index = module->count++;
	s->next = module->symbols;
	module->symbols = s;
	if (!symbol_map_add(&map, s))
		hr_log(HR_LOG_ERROR, "out of memory while registering %s", s->name);
	pthread_mutex_unlock(&lock);
}

RUNTIME_API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int threads,
					uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
	(void)device, (void)threads, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
	add_symbol(handle, &(struct runtime_symbol){ .host = host, .name = name, .kind = RUNTIME_KERNEL });
}

RUNTIME_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t size,
				   int constant, int global)
{
	(void)device, (void)ext, (void)constant, (void)global;
	add_symbol(handle,
			&(struct runtime_symbol){ .host = host, .name = name, .size = size, .kind = RUNTIME_VARIABLE });
}

RUNTIME_API void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
		size_t size, int constant, int global)
{
	(void)device, (void)ext, (void)constant, (void)global;
	add_symbol(handle, &(struct runtime_symbol){
		.host = host, .name = name, .size = size, .managed = host, .kind = RUNTIME_MANAGED });
}

/*
 * Several objects may register the same kernel of a template or inline function: the first one counts, until its module
 * is unregistered. With the lock held.
 */
static void remove_symbol(struct runtime_symbol *symbol)
{
	if (!symbol_map_remove(&map, symbol))
		return;
	for (struct runtime_module *m = modules; m; m = m->next)
		for (struct runtime_symbol *s = m->symbols; s; s = s->next)
			if (s->host == symbol->host) {
				symbol_map_add(&map, s);
				return;
			}
}

static void unlink_module(struct runtime_module *module)
{
	struct runtime_module **link = &modules;
	while (*link && *link != module)
		link = &(*link)->next;
	if (*link)
		*link = module->next;
}

static void unload_instance(struct instance *instance)
{
	if (instance->module && !instance->of_library)
		(void)runtime_driver.cuModuleUnload(instance->module);
	instance->module = NULL;
}

static void discard(struct instance *instance, bool unload)
{
	if (instance && unload)
		unload_instance(instance);
	free(instance);
}

RUNTIME_API void __cudaUnregisterFatBinary(void **handle)
{
	struct runtime_module *module = (struct runtime_module *)handle;
	/*
	 * At exit the kernels stay loaded: other handlers may still launch them, and all memory of the process is freed
	 * anyway.
	 */
	if (!module || atomic_load_explicit(&exiting, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	unlink_module(module);
	for (struct runtime_symbol *s = module->symbols, *next; s; s = next) {
		next = s->next;
		remove_symbol(s);
		free(s);
	}
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < RUNTIME_MAX_CONTEXTS; i++) {
		/*
		 * No other thread uses a module that is being unregistered; the lock above orders its loading before
		 * this.
		 */
		struct instance *instance = atomic_load_explicit(&module->instances[i], memory_order_relaxed);
		discard(instance, true);
	}
	if (module->library)
		(void)runtime_driver.cuLibraryUnload(module->library);
	free(module);
}

struct runtime_symbol *runtime_symbol_find(const void *host)
{
	return symbol_map_find(&map, host);
}

uint64_t runtime_symbol_resolved(const struct runtime_symbol *symbol, const struct runtime_context *context)
{
	if (!symbol->module)
		return (uint64_t)(uintptr_t)symbol->host;
	/* Pairs with load_module's release. */
	struct instance *instance =
			atomic_load_explicit(&symbol->module->instances[context->index], memory_order_acquire);
	if (!instance || symbol->index >= instance->symbols)
		return 0;
	/* Orders nothing: what the value refers to was made visible with the instance, or is ordered by the driver. */
	return atomic_load_explicit(&instance->values[symbol->index], memory_order_relaxed);
}

static cudaError_t query(const struct instance *instance, const struct runtime_symbol *symbol, uint64_t *value)
{
	CUresult result;
	if (symbol->kind == RUNTIME_KERNEL) {
		CUfunction function = NULL;
		result = runtime_driver.cuModuleGetFunction(&function, instance->module, symbol->name);
		*value = (uint64_t)(uintptr_t)function;
	} else {
		CUdeviceptr address = 0;
		size_t size = 0;
		result = runtime_driver.cuModuleGetGlobal_v2(&address, &size, instance->module, symbol->name);
		*value = address;
	}
	if (result == CUDA_ERROR_NOT_FOUND) {
		hr_log(HR_LOG_WARN, "the loaded module does not define %s", symbol->name);
		return symbol->kind == RUNTIME_KERNEL ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidSymbol;
	}
	return runtime_error_translate(result);
}

/* Of a device whose memory the host cannot access: the driver keeps a copy of the variable for the host. */
static cudaError_t query_managed(const struct instance *instance, const struct runtime_symbol *symbol, uint64_t *value)
{
	CUdeviceptr address = 0;
	size_t size = 0;
	if (*symbol->managed) { /* it belongs to another device */
		*value = (uint64_t)(uintptr_t)*symbol->managed;
		return cudaSuccess;
	}
	if (!instance->of_library)
		return cudaErrorNotSupported;
	CUresult result = runtime_driver.cuLibraryGetManaged(&address, &size, symbol->module->library, symbol->name);
	*value = address;
	return runtime_error_translate(result);
}

/*
 * Host code reads a managed variable through a pointer that the runtime sets. That works only if the host can access
 * the device's memory; otherwise the pointer stays NULL and the log says why.
 */
static cudaError_t place_managed(const struct instance *instance, const struct runtime_context *context,
				 const struct runtime_symbol *symbol)
{
	uint64_t address;
	cudaError_t error;
	if (symbol->kind != RUNTIME_MANAGED)
		return cudaSuccess;
	if (runtime_device_attribute(context->device, cudaDevAttrDirectManagedMemAccessFromHost))
		error = query(instance, symbol, &address);
	else
		error = query_managed(instance, symbol, &address);
	if (error == cudaErrorNotSupported)
		hr_log(HR_LOG_ERROR, "the host cannot access the memory of device %d: cannot use __managed__ variable %s; allocate the "
		       "memory with cudaMallocManaged instead", context->device, symbol->name);
	if (!error && !*symbol->managed)
		*symbol->managed = (void *)(uintptr_t)address;
	return error;
}

/* Loads an image. output is a CUmodule * or a CUlibrary *. */
typedef CUresult image_loader_t(void *output, const void *image);

static CUresult load_as_module(void *output, const void *image)
{
	return runtime_driver.cuModuleLoadData(output, image);
}

static CUresult load_as_library(void *output, const void *image)
{
	return runtime_driver.cuLibraryLoadData(output, image, NULL, NULL, 0, NULL, NULL, 0);
}

/*
 * Every driver accepts a container. For a program of several linked units the wrapper is tried first: a driver that
 * accepts it links the units.
 */
static CUresult load_image(image_loader_t *load, void *output, const struct fatbin_wrapper *wrapper)
{
	if (wrapper->version != 2 || !wrapper->units)
		return load(output, wrapper->container);
	void *merged = fatbin_with_ptx(wrapper);
	CUresult result = load(output, merged ? merged : (const void *)wrapper);
	free(merged);
	if (merged || (result != CUDA_ERROR_INVALID_IMAGE && result != CUDA_ERROR_INVALID_PTX &&
		       result != CUDA_ERROR_INVALID_VALUE))
		return result;
	/* Either the driver does not accept this form of image, or the image is bad; then the container fails too. */
	CUresult linked = load(output, wrapper->container);
	return linked == CUDA_ERROR_NO_BINARY_FOR_GPU ? result : linked;
}

/* True if the driver supports modules of libraries; tested once, without a library. With the lock held. */
static bool have_libraries(void)
{
	static bool asked, have;
	CUmodule none;
	if (!asked)
		have = runtime_driver.cuLibraryGetModule(&none, NULL) != CUDA_ERROR_NOT_SUPPORTED;
	asked = true;
	return have;
}

/*
 * Primary contexts share a library, so that a kernel has one handle that is valid in all of them (cudaGetKernel). In a
 * context that the program has created, the image is loaded as a module, which cudaDeviceReset unloads.
 */
static CUresult fill_module(struct instance *instance, struct runtime_module *module,
			    const struct runtime_context *context)
{
	instance->of_library = context->primary && have_libraries();
	if (!instance->of_library)
		return load_image(load_as_module, &instance->module, module->wrapper);
	CUlibrary library = module->library;
	CUresult result = library ? CUDA_SUCCESS : load_image(load_as_library, &library, module->wrapper);
	if (result)
		return result;
	module->library = library;
	return runtime_driver.cuLibraryGetModule(&instance->module, library);
}

/* True if another attempt with the same image would fail in the same way. */
static bool is_final(cudaError_t error)
{
	return error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidPtx ||
	       error == cudaErrorUnsupportedPtxVersion || error == cudaErrorInvalidKernelImage ||
	       error == cudaErrorNotSupported;
}

static cudaError_t fill_instance(struct instance *instance, struct runtime_module *module,
				 const struct runtime_context *context)
{
	if (!module->wrapper)
		return cudaErrorInvalidKernelImage;
	cudaError_t error = runtime_error_translate(fill_module(instance, module, context));
	if (error) {
		instance->module = NULL;
		hr_log(HR_LOG_INFO, "loading a fat binary into device %d failed: %s", context->device,
		       cudaGetErrorString(error));
		return error;
	}
	instance->symbols = module->count;
	for (struct runtime_symbol *s = module->symbols; s && !error; s = s->next)
		error = place_managed(instance, context, s);
	return error;
}

static cudaError_t load_module(struct runtime_module *module, const struct runtime_context *context,
			       struct instance **loaded)
{
	static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
	pthread_once(&exit_once, watch_exit);
	struct instance *instance = calloc(1, sizeof *instance + module->count * sizeof instance->values[0]);
	if (!instance)
		return cudaErrorMemoryAllocation;
	cudaError_t error = fill_instance(instance, module, context);
	if (error && !is_final(error)) {
		discard(instance, true);
		return error;
	}
	if (error) {
		/* The failure is recorded, so that not every launch sends the image to the driver again. */
		unload_instance(instance);
		instance->symbols = 0;
		instance->error = error;
	}
	/* Orders the instance's contents before the pointer through which runtime_symbol_resolved reaches them. */
	atomic_store_explicit(&module->instances[context->index], instance, memory_order_release);
	*loaded = instance;
	return error;
}

/* Outputs the instance of a module in the context. With the lock held. */
static cudaError_t need_instance(struct runtime_module *module, const struct runtime_context *context,
				 struct instance **instance)
{
	/* Stores happen under the lock. */
	*instance = atomic_load_explicit(&module->instances[context->index], memory_order_relaxed);
	return *instance ? (*instance)->error : load_module(module, context, instance);
}

cudaError_t runtime_symbol_resolve(struct runtime_symbol *symbol, struct runtime_context *context, uint64_t *value)
{
	struct instance *instance;
	*value = runtime_symbol_resolved(symbol, context);
	if (*value)
		return cudaSuccess;
	pthread_mutex_lock(&lock);
	cudaError_t error = need_instance(symbol->module, context, &instance);
	if (!error)
		error = query(instance, symbol, value);
	if (!error && symbol->index < instance->symbols)
		atomic_store_explicit(&instance->values[symbol->index], *value, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return error;
}

void runtime_registry_forget(struct runtime_context *context, bool unload)
{
	pthread_mutex_lock(&lock);
	for (struct runtime_module *m = modules; m; m = m->next) {
		struct instance *instance = atomic_load_explicit(&m->instances[context->index], memory_order_relaxed);
		if (!instance)
			continue;
		/* No other thread may use a device during its reset, so no reader remains of what is freed below. */
		atomic_store_explicit(&m->instances[context->index], NULL, memory_order_relaxed);
		for (struct runtime_symbol *s = m->symbols; s; s = s->next)
			if (s->managed)
				*s->managed = NULL;
		discard(instance, unload);
	}
	pthread_mutex_unlock(&lock);
}

cudaError_t runtime_symbol_remember(const void *handle)
{
	if (symbol_map_find(&map, handle))
		return cudaSuccess;
	struct runtime_symbol *symbol = calloc(1, sizeof *symbol);
	if (!symbol)
		return cudaErrorMemoryAllocation;
	symbol->host = handle;
	symbol->kind = RUNTIME_KERNEL;
	pthread_mutex_lock(&lock);
	bool added = !symbol_map_find(&map, handle) && symbol_map_add(&map, symbol);
	pthread_mutex_unlock(&lock);
	if (!added)
		free(symbol);
	return symbol_map_find(&map, handle) ? cudaSuccess : cudaErrorMemoryAllocation;
}

/*
 * Adds a second address by which a kernel is found: the driver's handle. Lives as long as its module. With the lock
 * held.
 */
static cudaError_t add_alias(const struct runtime_symbol *symbol, const void *handle)
{
	if (symbol_map_find(&map, handle))
		return cudaSuccess;
	struct runtime_symbol *alias = malloc(sizeof *alias);
	if (!alias)
		return cudaErrorMemoryAllocation;
	*alias = *symbol;
	alias->host = handle;
	alias->alias = true;
	if (!symbol_map_add(&map, alias)) {
		free(alias);
		return cudaErrorMemoryAllocation;
	}
	alias->next = symbol->module->symbols;
	symbol->module->symbols = alias;
	return cudaSuccess;
}

cudaError_t runtime_symbol_kernel(struct runtime_symbol *symbol, struct runtime_context *context, CUkernel *kernel)
{
	struct instance *instance;
	pthread_mutex_lock(&lock);
	cudaError_t error = need_instance(symbol->module, context, &instance);
	if (!error && (!instance->of_library || !symbol->module->library))
		error = cudaErrorNotSupported;
	if (!error) {
		CUresult result = runtime_driver.cuLibraryGetKernel(kernel, symbol->module->library, symbol->name);
		error = result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction
						       : runtime_error_translate(result);
	}
	if (!error)
		error = add_alias(symbol, *kernel);
	pthread_mutex_unlock(&lock);
	return error;
}

/* Finds the kernel that resolved to this function in any context. With the lock held. */
static const void *host_in(const struct runtime_module *module, uint64_t function)
{
	for (int i = 0; i < RUNTIME_MAX_CONTEXTS; i++) {
		/* Stores happen under the lock. */
		const struct instance *instance = atomic_load_explicit(&module->instances[i], memory_order_relaxed);
		for (const struct runtime_symbol *s = module->symbols; s && instance; s = s->next)
			if (s->kind == RUNTIME_KERNEL && !s->alias && s->index < instance->symbols &&
			    atomic_load_explicit(&instance->values[s->index], memory_order_relaxed) == function)
				return s->host;
	}
	return NULL;
}

const void *runtime_symbol_of_function(CUfunction function)
{
	const void *host = NULL;
	pthread_mutex_lock(&lock);
	for (const struct runtime_module *m = modules; m && !host; m = m->next)
		host = host_in(m, (uint64_t)(uintptr_t)function);
	pthread_mutex_unlock(&lock);
	return host;
}

/*
 * Host code calls this before it first reads a managed variable of the module. The result 1 means that it need not call
 * again. Host code cannot learn of a failure and will read through a NULL pointer, so the log says why.
 */
RUNTIME_API char __cudaInitModule(void **handle)
{
	struct runtime_context *context;
	struct instance *instance;
	cudaError_t error = handle ? runtime_context_enter(&context) : cudaErrorInvalidResourceHandle;
	if (!error) {
		pthread_mutex_lock(&lock);
		error = need_instance((struct runtime_module *)handle, context, &instance);
		pthread_mutex_unlock(&lock);
	}
	if (error)
		hr_log(HR_LOG_ERROR, "cannot initialize __managed__ variables: %s", cudaGetErrorString(error));
	return runtime_fail(error) == cudaSuccess;
}

RUNTIME_API cudaError_t cudaGetSymbolAddress(void **address, const void *host)
{
	struct runtime_context *context;
	uint64_t value;
	if (!address)
		return runtime_fail(cudaErrorInvalidValue);
	struct runtime_symbol *symbol = runtime_symbol_find(host);
	if (!symbol || symbol->kind == RUNTIME_KERNEL)
		return runtime_fail(cudaErrorInvalidSymbol);
	cudaError_t error = runtime_context_enter(&context);
	if (error)
		return error;
	error = runtime_symbol_resolve(symbol, context, &value);
	if (!error)
		*address = (void *)(uintptr_t)value;
	return runtime_fail(error);
}

RUNTIME_API cudaError_t cudaGetSymbolSize(size_t *size, const void *host)
{
	if (!size)
		return runtime_fail(cudaErrorInvalidValue);
	struct runtime_symbol *symbol = runtime_symbol_find(host);
	if (!symbol || symbol->kind == RUNTIME_KERNEL)
		return runtime_fail(cudaErrorInvalidSymbol);
	*size = symbol->size;
	return cudaSuccess;
}
