/* SPDX-License-Identifier: BSD-3-Clause */
/* Initialisation, the list of devices, versions and the names of errors. */
#include "cuda_remote/nvml/internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct nvml_device nvml_devices[NVML_DEVICES_MAX];
uint32_t nvml_device_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users; /* atomic: nvmlInit without nvmlShutdown. Release in init pairs with acquire in nvml_ready */
static bool loaded;

int nvml_ready(void)
{
	return __atomic_load_n(&users, __ATOMIC_ACQUIRE) ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

int nvml_check(const struct nvml_device *device, const void *output)
{
	int error = nvml_ready();
	if (error)
		return error;
	for (uint32_t i = 0; i < nvml_device_count; i++)
		if (device == &nvml_devices[i])
			return output ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
	return NVML_INVALID_ARGUMENT;
}

int nvml_give_text(const char *text, char *buffer, unsigned size)
{
	size_t n = strlen(text) + 1;
	if (!buffer)
		return NVML_INVALID_ARGUMENT;
	if (n > size)
		return NVML_INSUFFICIENT_SIZE;
	memcpy(buffer, text, n);
	return NVML_SUCCESS;
}

/* ---- the list ---- */

bool nvml_parse_pci(const char *text, struct nvml_pci *pci)
{
	unsigned domain = 0, bus, device, function = 0;
	int end = -1;
	static const char *const forms[] = { "%8x:%2x:%2x.%1x%n", "%8x:%2x:%2x%n" };
	bool found = false;
	for (size_t i = 0; i < 2 && !found; i++) {
		end = -1;
		int n = i == 0 ? sscanf(text, forms[0], &domain, &bus, &device, &function, &end) :
				 sscanf(text, forms[1], &domain, &bus, &device, &end);
		found = n == (i == 0 ? 4 : 3) && end >= 0 && !text[end];
	}
	if (!found) {
		domain = function = 0;
		end = -1;
		found = sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &end) == 3 && end >= 0 && !text[end];
	}
	if (!found || function)
		return false;
	*pci = (struct nvml_pci){ .domain = domain, .bus = bus, .device = device };
	snprintf(pci->old_id, sizeof pci->old_id, "%04X:%02X:%02X.0", domain & 0xffff, bus & 0xff, device & 0xff);
	snprintf(pci->id, sizeof pci->id, "%08X:%02X:%02X.0", domain, bus & 0xff, device & 0xff);
	return true;
}

static void write_uuid(const CUuuid *uuid, char text[48])
{
	int n = snprintf(text, 48, "GPU");
	for (int i = 0; i < 16; i++) {
		bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
		n += snprintf(text + n, 48 - (size_t)n, "%s%02x", dash ? "-" : "", (uint8_t)uuid->bytes[i]);
	}
}

static CUresult describe(struct nvml_device *device)
{
	CUuuid uuid;
	char pci[32];
	CUresult result = nvml_driver.cuDeviceGet(&device->device, (int)device->index);
	if (result == CUDA_SUCCESS)
		result = nvml_driver.cuDeviceGetName(device->name, sizeof device->name, device->device);
	if (result != CUDA_SUCCESS)
		return result;
	device->has_uuid = nvml_driver.cuDeviceGetUuid_v2(&uuid, device->device) == CUDA_SUCCESS;
	if (device->has_uuid)
		write_uuid(&uuid, device->uuid);
	device->has_pci = nvml_driver.cuDeviceGetPCIBusId(pci, sizeof pci, device->device) == CUDA_SUCCESS &&
			  nvml_parse_pci(pci, &device->pci);
	return CUDA_SUCCESS;
}

static int list_devices(void)
{
	int count = 0;
	CUresult result = nvml_driver.cuInit(0);
	if (result == CUDA_SUCCESS)
		result = nvml_driver.cuDeviceGetCount(&count);
	if (result == CUDA_ERROR_NO_DEVICE) {
		result = CUDA_SUCCESS;
		count = 0;
	}
	nvml_device_count = 0;
	for (int i = 0; i < count && i < NVML_DEVICES_MAX && result == CUDA_SUCCESS; i++) {
		nvml_devices[i] = (struct nvml_device){ .index = (uint32_t)i };
		result = describe(&nvml_devices[i]);
		nvml_device_count = (uint32_t)i + 1;
	}
	return result == CUDA_SUCCESS ? NVML_SUCCESS : NVML_DRIVER_NOT_LOADED;
}

NVML_EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	int error = NVML_SUCCESS;
	pthread_mutex_lock(&lock);
	if (!loaded)
		error = nvml_driver_load();
	loaded = !error;
	if (!error && !users)
		error = list_devices();
	if (!error)
		__atomic_add_fetch(&users, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return error;
}

NVML_EXPORT int nvmlInit(void);
int nvmlInit(void)
{
	return nvmlInit_v2();
}

/* flags: no GPU is no error here in any case, and nothing is attached. */
NVML_EXPORT int nvmlInitWithFlags(unsigned flags);
int nvmlInitWithFlags(unsigned flags)
{
	return flags & ~3u ? NVML_INVALID_ARGUMENT : nvmlInit_v2();
}

NVML_EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
	int error = NVML_SUCCESS;
	pthread_mutex_lock(&lock);
	if (users)
		__atomic_sub_fetch(&users, 1, __ATOMIC_RELEASE);
	else
		error = NVML_UNINITIALIZED;
	pthread_mutex_unlock(&lock);
	return error;
}

/* ---- versions ---- */

NVML_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	int error = nvml_ready();
	if (error || !version)
		return error ? error : NVML_INVALID_ARGUMENT;
	return nvml_result_of(nvml_driver.cuDriverGetVersion(version));
}

NVML_EXPORT int nvmlSystemGetCudaDriverVersion(int *version);
int nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* The driver is Headrace's, and so is its version. */
NVML_EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned size);
int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
	int error = nvml_ready();
	return error ? error : nvml_give_text(HR_VERSION, version, size);
}

/* size: of info->branch. NVIDIA's branches are named as "r580_00"; this driver has one, named after the project. */
NVML_EXPORT int nvmlSystemGetDriverBranch(struct nvml_branch *info, unsigned size);
int nvmlSystemGetDriverBranch(struct nvml_branch *info, unsigned size)
{
	int error = nvml_ready();
	if (error || !info)
		return error ? error : NVML_INVALID_ARGUMENT;
	if (info->version != NVML_BRANCH_1)
		return NVML_ARGUMENT_VERSION_MISMATCH;
	return nvml_give_text("headrace", info->branch, size < sizeof info->branch ? size : sizeof info->branch);
}

NVML_EXPORT int nvmlSystemGetNVMLVersion(char *version, unsigned size);
int nvmlSystemGetNVMLVersion(char *version, unsigned size)
{
	int error = nvml_ready();
	return error ? error : nvml_give_text("13." HR_VERSION, version, size);
}

/* ---- errors ---- */

NVML_EXPORT const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
	switch (result) {
	case NVML_SUCCESS: return "success";
	case NVML_UNINITIALIZED: return "NVML is not initialised: call nvmlInit first";
	case NVML_INVALID_ARGUMENT: return "an argument is invalid";
	case NVML_NOT_SUPPORTED: return "Headrace does not support this query";
	case NVML_NO_PERMISSION: return "this user has no permission";
	case NVML_ALREADY_INITIALIZED: return "NVML is already initialised";
	case NVML_NOT_FOUND: return "no such device or object";
	case NVML_INSUFFICIENT_SIZE: return "the buffer is too small";
	case NVML_DRIVER_NOT_LOADED: return "libcuda.so.1 could not be loaded, or its devices could not be opened";
	case NVML_TIMEOUT: return "time-out";
	case NVML_LIBRARY_NOT_FOUND: return "a library was not found";
	case NVML_FUNCTION_NOT_FOUND: return "libcuda.so.1 lacks a function";
	case NVML_GPU_IS_LOST: return "the GPU, or the server that has it, is lost";
	case NVML_MEMORY: return "out of memory";
	case NVML_ARGUMENT_VERSION_MISMATCH: return "the version of the struct is not one that Headrace knows";
	default: return "an error that Headrace does not know";
	}
}
