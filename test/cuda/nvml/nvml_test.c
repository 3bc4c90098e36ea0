/* SPDX-License-Identifier: BSD-3-Clause */
/* NVML as a monitor uses it: the library is found by its name, and the driver's answers are compared with it. */
#include "cuda_remote/nvml/nvml_api.h"
#include "test/cuda/softgpu/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void *library;

/* The function of this name. All of them return an int. */
#define NVML(name, ...) ((int (*)(__VA_ARGS__))find(#name))
static void *find(const char *name)
{
	void *function = dlsym(library, name);
	CHECK(function != NULL);
	return function;
}

static void check_versions(void)
{
	char text[96];
	int version, expected;
	OK(cuDriverGetVersion(&expected));
	CHECK(NVML(nvmlSystemGetCudaDriverVersion_v2, int *)(&version) == 0 && version == expected);
	CHECK(NVML(nvmlSystemGetDriverVersion, char *, unsigned)(text, sizeof text) == 0 && *text);
	CHECK(NVML(nvmlSystemGetDriverVersion, char *, unsigned)(text, 2) == NVML_INSUFFICIENT_SIZE);
	struct nvml_branch branch = { .version = NVML_BRANCH_1 };
	CHECK(NVML(nvmlSystemGetDriverBranch, void *, unsigned)(&branch, sizeof branch.branch) == 0 && *branch.branch);
	CHECK(NVML(nvmlSystemGetDriverBranch, void *, unsigned)(&branch, 2) == NVML_INSUFFICIENT_SIZE);
	branch.version = 7;
	CHECK(NVML(nvmlSystemGetDriverBranch, void *, unsigned)(&branch, sizeof branch.branch) ==
	      NVML_ARGUMENT_VERSION_MISMATCH);
	CHECK(!strncmp(((const char *(*)(int))find("nvmlErrorString"))(NVML_NOT_FOUND), "no such", 7));
}

static void check_identity(void *device, void *same(const char *name, const char *text))
{
	char text[96], name[96];
	struct nvml_pci pci;
	int major, minor, value;
	CHECK(NVML(nvmlDeviceGetName, void *, char *, unsigned)(device, text, sizeof text) == 0);
	OK(cuDeviceGetName(name, sizeof name, 0));
	CHECK(!strcmp(text, name));
	CHECK(NVML(nvmlDeviceGetUUID, void *, char *, unsigned)(device, text, sizeof text) == 0);
	CHECK(!strncmp(text, "GPU-", 4) && strlen(text) == 40);
	CHECK(same("nvmlDeviceGetHandleByUUID", text) == device);
	CHECK(NVML(nvmlDeviceGetPciInfo_v3, void *, struct nvml_pci *)(device, &pci) == 0);
	CHECK(same("nvmlDeviceGetHandleByPciBusId_v2", pci.id) == device);
	struct nvml_pci_ext ext = { .version = NVML_PCI_EXT_1 };
	CHECK(NVML(nvmlDeviceGetPciInfoExt, void *, void *)(device, &ext) == 0 && ext.bus == pci.bus && !strcmp(ext.id, pci.id));
	ext.version = 7;
	CHECK(NVML(nvmlDeviceGetPciInfoExt, void *, void *)(device, &ext) == NVML_ARGUMENT_VERSION_MISMATCH);
	CHECK(same("nvmlDeviceGetHandleByPciBusId", pci.old_id) == device);
	OK(cuDeviceGetPCIBusId(name, sizeof name, 0));
	CHECK(same("nvmlDeviceGetHandleByPciBusId_v2", name) == device);
	CHECK(same("nvmlDeviceGetHandleByUUID", "GPU-none") == NULL);
	CHECK(same("nvmlDeviceGetHandleByPciBusId_v2", "nonsense") == NULL);
	CHECK(NVML(nvmlDeviceGetCudaComputeCapability, void *, int *, int *)(device, &major, &minor) == 0);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	CHECK(major == value);
}

static unsigned value_of(const char *name, void *device)
{
	unsigned value = 77;
	CHECK(((int (*)(void *, unsigned *))find(name))(device, &value) == 0);
	return value;
}

/* Of two devices if there are two. */
static void check_peers(void *device, unsigned count)
{
	void *peer = NULL;
	unsigned status = 77;
	int access;
	CHECK(NVML(nvmlDeviceGetP2PStatus, void *, void *, unsigned, unsigned *)(device, device, 0, &status) ==
	      NVML_INVALID_ARGUMENT);
	if (count < 2)
		return;
	CHECK(NVML(nvmlDeviceGetHandleByIndex_v2, unsigned, void **)(1, &peer) == 0);
	CHECK(NVML(nvmlDeviceGetP2PStatus, void *, void *, unsigned, unsigned *)(device, peer, 0, &status) == 0);
	OK(cuDeviceCanAccessPeer(&access, 0, 1));
	CHECK(access == (status == 0));
	CHECK(NVML(nvmlDeviceGetP2PStatus, void *, void *, unsigned, unsigned *)(device, peer, 2, &status) ==
	      NVML_NOT_SUPPORTED);
}

static void check_kind(void *device)
{
	int value;
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0));
	CHECK(value_of("nvmlDeviceGetMultiGpuBoard", device) == (unsigned)value);
	CHECK(value_of("nvmlDeviceGetBrand", device) == 0);
	CHECK(value_of("nvmlDeviceGetMaxMigDeviceCount", device) == 0);
	CHECK(value_of("nvmlDeviceIsMigDeviceHandle", device) == 0);
	CHECK(NVML(nvmlDeviceIsMigDeviceHandle, void *, unsigned *)(&value, NULL) == NVML_INVALID_ARGUMENT);
}

static void check_clocks(void *device)
{
	static const char *const names[] = { "nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetApplicationsClock",
					     "nvmlDeviceGetDefaultApplicationsClock" };
	int core, memory;
	OK(cuDeviceGetAttribute(&core, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0));
	OK(cuDeviceGetAttribute(&memory, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 0));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int (*clock_of)(void *, unsigned, unsigned *) = (int (*)(void *, unsigned, unsigned *))find(names[i]);
		for (unsigned type = 0; type < 3; type++) { /* graphics, SM, memory */
			unsigned clock = 0;
			CHECK(clock_of(device, type, &clock) == 0 && clock == (unsigned)(type == 2 ? memory : core) / 1000);
		}
		CHECK(clock_of(device, 3, &(unsigned){ 0 }) == NVML_NOT_SUPPORTED); /* video */
		CHECK(clock_of(device, 4, &(unsigned){ 0 }) == NVML_INVALID_ARGUMENT && clock_of(device, 0, NULL) == NVML_INVALID_ARGUMENT);
	}
}

static void *same(const char *name, const char *text)
{
	void *device = NULL;
	int result = ((int (*)(const char *, void **))find(name))(text, &device);
	CHECK((result == 0) == (device != NULL));
	return device;
}

static void check_memory(void *device)
{
	struct nvml_memory before, after;
	struct nvml_memory_2 second = { .version = NVML_MEMORY_2 };
	CUdeviceptr memory;
	CHECK(NVML(nvmlDeviceGetMemoryInfo, void *, struct nvml_memory *)(device, &before) == 0);
	OK(cuMemAlloc(&memory, 8 * MIB));
	CHECK(NVML(nvmlDeviceGetMemoryInfo, void *, struct nvml_memory *)(device, &after) == 0);
	CHECK(after.used - before.used >= 8 * MIB && after.total == before.total && after.free + after.used == after.total);
	CHECK(NVML(nvmlDeviceGetMemoryInfo_v2, void *, struct nvml_memory_2 *)(device, &second) == 0);
	CHECK(second.used == after.used && second.total == after.total && second.reserved == 0);
	second.version = 7;
	CHECK(NVML(nvmlDeviceGetMemoryInfo_v2, void *, struct nvml_memory_2 *)(device, &second) ==
	      NVML_ARGUMENT_VERSION_MISMATCH);
	OK(cuMemFree(memory));
}

/* With a server, this process is one of its sessions. The local software GPU knows no other process. */
static void check_processes(void *device)
{
	struct nvml_process list[8];
	unsigned count = 8;
	bool own = false;
	int drawing = NVML(nvmlDeviceGetGraphicsRunningProcesses_v3, void *, unsigned *, void *)(device, &count, list);
	CHECK(drawing == NVML_NOT_SUPPORTED || (drawing == 0 && count == 0));
	CHECK((drawing == 0) == (getenv("HEADRACE_SERVER") != NULL));
	count = 8;
	int result = NVML(nvmlDeviceGetComputeRunningProcesses_v3, void *, unsigned *, struct nvml_process *)(device, &count,
													    list);
	if (!getenv("HEADRACE_SERVER")) {
		CHECK(result == NVML_NOT_SUPPORTED);
		return;
	}
	CHECK(result == 0);
	for (unsigned i = 0; i < count; i++)
		own |= list[i].pid == (unsigned)getpid();
	CHECK(own);
	count = 0;
	CHECK(NVML(nvmlDeviceGetComputeRunningProcesses_v3, void *, unsigned *, struct nvml_process *)(device, &count, NULL) ==
	      NVML_INSUFFICIENT_SIZE && count > 0);
}

/* Each name that nvml.h declares is there; those that are not implemented say so, whatever their arguments are. */
static void check_names(const char *path)
{
	FILE *file = fopen(path, "r");
	char name[96];
	int names = 0;
	CHECK(file != NULL);
	while (fgets(name, sizeof name, file)) {
		name[strcspn(name, "\n")] = 0;
		names += *name != '#' && find(name) != NULL;
	}
	fclose(file);
	CHECK(names > 400);
	CHECK(NVML(nvmlDeviceGetTemperature, void *, int, unsigned *)(NULL, 0, NULL) == NVML_NOT_SUPPORTED);
	CHECK(NVML(nvmlDeviceGetPowerUsage, void *, unsigned *)(NULL, NULL) == NVML_NOT_SUPPORTED);
}

int main(int argc, char **argv)
{
	unsigned count;
	void *device = NULL, *none = NULL;
	library = argc == 2 ? dlopen("libnvidia-ml.so.1", RTLD_NOW) : NULL;
	CHECK(library != NULL);
	CHECK(NVML(nvmlDeviceGetCount_v2, unsigned *)(&count) == NVML_UNINITIALIZED);
	CHECK(NVML(nvmlInit_v2, void)() == 0);
	start();
	CHECK(NVML(nvmlDeviceGetCount_v2, unsigned *)(&count) == 0 && count >= 1);
	CHECK(NVML(nvmlDeviceGetHandleByIndex_v2, unsigned, void **)(0, &device) == 0);
	CHECK(NVML(nvmlDeviceGetHandleByIndex_v2, unsigned, void **)(count, &none) == NVML_INVALID_ARGUMENT);
	CHECK(NVML(nvmlDeviceGetIndex, void *, unsigned *)(&count, &count) == NVML_INVALID_ARGUMENT);
	check_peers(device, count);
	check_versions();
	check_identity(device, same);
	check_kind(device);
	check_clocks(device);
	check_memory(device);
	check_processes(device);
	check_names(argv[1]);
	CHECK(NVML(nvmlShutdown, void)() == 0);
	CHECK(NVML(nvmlShutdown, void)() == NVML_UNINITIALIZED);
	end();
	return 0;
}
