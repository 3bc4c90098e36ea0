/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens libcuda.so.1 and fills the table of driver functions. */
#include "cuda_remote/runtime/driver.h"

#include "cuda_remote/runtime/error.h"
#include "rdma_channel/base/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

struct runtime_driver runtime_driver;

static pthread_once_t open_once = PTHREAD_ONCE_INIT, init_once = PTHREAD_ONCE_INIT;
static cudaError_t open_error, init_error;

static const struct driver_entry {
	const char *name;
	size_t offset; /* in struct runtime_driver */
} entries[] = {
#define CALL(name) { #name, offsetof(struct runtime_driver, name) },
#define CALL_BOTH(name) CALL(name) { #name "_ptds", offsetof(struct runtime_driver, name##_ptds) },
#include "cuda_remote/runtime/driver_calls.h"
#undef CALL
#undef CALL_BOTH
};

/* In place of a function that the driver does not export. It reads no arguments, so any prototype will do. */
static CUresult missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void resolve(void *library)
{
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
		void *address = dlsym(library, entries[i].name);
		if (!address) {
			hr_log(HR_LOG_INFO, "the CUDA driver does not export %s", entries[i].name);
			address = __extension__(void *)missing;
		}
		*(void **)((char *)&runtime_driver + entries[i].offset) = address;
	}
}

static void open_driver(void)
{
	static const char name[] = "libcuda.so.1";
	open_error = cudaErrorInsufficientDriver;
	void *library = dlopen(name, RTLD_NOW);
	if (!library) {
		hr_log(HR_LOG_WARN, "cannot open the CUDA driver: %s", dlerror());
		return;
	}
	if (!dlsym(library, "cuInit") || !dlsym(library, "cuDeviceGetCount")) {
		hr_log(HR_LOG_ERROR, "%s is not a CUDA driver: it does not export cuInit or cuDeviceGetCount", name);
		return;
	}
	resolve(library);
	open_error = cudaSuccess;
}

cudaError_t runtime_driver_open(void)
{
	pthread_once(&open_once, open_driver);
	return open_error;
}

static void init_driver(void)
{
	init_error = runtime_driver_open();
	if (!init_error)
		init_error = runtime_error_translate(runtime_driver.cuInit(0));
}

cudaError_t runtime_driver_init(void)
{
	pthread_once(&init_once, init_driver);
	return init_error;
}
