/* SPDX-License-Identifier: BSD-3-Clause */
/* headrace-info: the section devices. Each libcuda.so.1 lists its GPUs in a process of its own: if it crashes or hangs,
 * headrace-info reports that and goes on. */
#include "bench/info/info.h"
#include "bench/info/sessions.h"

#include "cuda_remote/door/door.h"
#include "cuda_remote/run/layout.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRIVER_SECONDS 30

/* The driver functions used here. */
struct driver {
	CUresult (*init)(unsigned int flags);
	CUresult (*version)(int *version);
	CUresult (*count)(int *count);
	CUresult (*get)(CUdevice *device, int ordinal);
	CUresult (*name)(char *name, int length, CUdevice device);
	CUresult (*memory)(size_t *bytes, CUdevice device);
	CUresult (*attribute)(int *value, CUdevice_attribute attribute, CUdevice device);
};

static int driver_load(const char *path, struct driver *driver)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("    cannot be loaded: %s\n", dlerror());
		return -1;
	}
	const struct {
		const char *name;
		void *slot;
	} calls[] = {
		{ "cuInit", &driver->init },           { "cuDriverGetVersion", &driver->version },
		{ "cuDeviceGetCount", &driver->count }, { "cuDeviceGet", &driver->get },
		{ "cuDeviceGetName", &driver->name },   { "cuDeviceTotalMem_v2", &driver->memory },
		{ "cuDeviceGetAttribute", &driver->attribute },
	};
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		void *address = dlsym(library, calls[i].name);
		if (!address) {
			printf("    is no CUDA driver: it has no %s\n", calls[i].name);
			return -1;
		}
		memcpy(calls[i].slot, &address, sizeof address);
	}
	return 0;
}

static void print_device(const struct driver *driver, int ordinal)
{
	CUdevice device;
	char name[128] = "";
	size_t bytes = 0;
	int major = 0, minor = 0, processors = 0;
	if (driver->get(&device, ordinal) || driver->name(name, sizeof name, device) ||
	    driver->memory(&bytes, device)) {
		printf("    %d  (does not answer)\n", ordinal);
		return;
	}
	(void)driver->attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	(void)driver->attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
	(void)driver->attribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	printf("    %d  %s, compute capability %d.%d, %d multiprocessors, %.1f GiB\n", ordinal, name, major, minor,
	       processors, (double)bytes / (1 << 30));
}

/* Prints the GPUs of one driver library. Runs in a child process. */
static int list_devices(const char *path)
{
	struct driver driver;
	int version = 0, count = 0;
	alarm(DRIVER_SECONDS);
	if (driver_load(path, &driver))
		return EXIT_FAILURE;
	CUresult result = driver.init(0);
	if (!result)
		result = driver.version(&version);
	if (!result)
		result = driver.count(&count);
	if (result) {
		printf("    does not start: CUresult %d\n", (int)result);
		return EXIT_FAILURE;
	}
	printf("    CUDA %d.%d, %d GPU%s\n", version / 1000, version % 1000 / 10, count, count == 1 ? "" : "s");
	for (int i = 0; i < count; i++)
		print_device(&driver, i);
	return EXIT_SUCCESS;
}

static int with_driver(const char *path)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		int status = list_devices(path);
		fflush(stdout);
		_exit(status);
	}
	int status = -1;
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	if (WIFSIGNALED(status))
		printf("    failed: %s\n", strsignal(WTERMSIG(status)));
	return status ? -1 : 0;
}

static int print_server(const rc_server_t *server)
{
	char name[RC_SERVER_NAME_MAX + 16], path[PATH_MAX];
	rc_door_connect_t visit = { .server = *server, .purpose = RC_DOOR_STATUS };
	rc_door_welcome_t welcome;
	printf("  server %s\n", rc_server_name(server, name, sizeof name));
	fflush(stdout);
	int error = rc_door_connect(&visit, &welcome);
	if (error) {
		printf("    cannot be queried: %s\n", strerror(-error));
		return -1;
	}
	close(welcome.fd);
	printf("    %s; GPUs %u, clients %u, workers ready %u\n", welcome.text, welcome.gpus, welcome.clients,
	       welcome.workers);
	/* First the sessions: listing the devices opens a session of its own. */
	if (print_sessions(server))
		return -1;
	if (rc_layout_library(RC_LAYOUT_CLIENT, path))
		return -1;
	setenv("HEADRACE_SERVER", name, 1);
	return with_driver(path);
}

int info_devices(const char *list)
{
	rc_server_t servers[RC_SERVER_MAX];
	char path[PATH_MAX];
	size_t n = 0;
	int status = 0;
	puts("Devices");
	puts("  this host");
	if (rc_layout_system_driver(path))
		puts("    no NVIDIA driver, or no device that this user may open");
	else
		(void)with_driver(path);
	puts("  software GPU");
	if (!rc_layout_library(RC_LAYOUT_SOFTGPU, path))
		(void)with_driver(path);
	if (!list)
		list = getenv("HEADRACE_SERVER");
	if (list && *list && rc_server_parse(list, servers, RC_SERVER_MAX, &n))
		return -1;
	for (size_t i = 0; i < n; i++)
		if (print_server(&servers[i]))
			status = -1;
	return status;
}
