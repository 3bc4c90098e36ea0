/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device is, and its memory. */
#include "cuda_remote/nvml/internal.h"

#include <string.h>
#include <strings.h>

typedef struct nvml_device *handle_t;

/* ---- finding ---- */

NVML_EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
	int error = nvml_ready();
	if (error || !count)
		return error ? error : NVML_INVALID_ARGUMENT;
	*count = nvml_device_count;
	return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetCount(unsigned *count);
int nvmlDeviceGetCount(unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

NVML_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle_t *device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle_t *device)
{
	int error = nvml_ready();
	if (error || !device || index >= nvml_device_count)
		return error ? error : NVML_INVALID_ARGUMENT;
	*device = &nvml_devices[index];
	return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, handle_t *device);
int nvmlDeviceGetHandleByIndex(unsigned index, handle_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, handle_t *device);
int nvmlDeviceGetHandleByUUID(const char *uuid, handle_t *device)
{
	int error = nvml_ready();
	if (error || !uuid || !device)
		return error ? error : NVML_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < nvml_device_count; i++)
		if (nvml_devices[i].has_uuid && !strcasecmp(nvml_devices[i].uuid, uuid)) {
			*device = &nvml_devices[i];
			return NVML_SUCCESS;
		}
	return NVML_NOT_FOUND;
}

NVML_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, handle_t *device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, handle_t *device)
{
	struct nvml_pci pci;
	int error = nvml_ready();
	if (error || !id || !device || !nvml_parse_pci(id, &pci))
		return error ? error : NVML_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < nvml_device_count; i++)
		if (nvml_devices[i].has_pci && !strcmp(nvml_devices[i].pci.id, pci.id)) {
			*device = &nvml_devices[i];
			return NVML_SUCCESS;
		}
	return NVML_NOT_FOUND;
}

NVML_EXPORT int nvmlDeviceGetHandleByPciBusId(const char *id, handle_t *device);
int nvmlDeviceGetHandleByPciBusId(const char *id, handle_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

/* ---- identity ---- */

NVML_EXPORT int nvmlDeviceGetIndex(handle_t device, unsigned *index);
int nvmlDeviceGetIndex(handle_t device, unsigned *index)
{
	int error = nvml_check(device, index);
	if (!error)
		*index = device->index;
	return error;
}

NVML_EXPORT int nvmlDeviceGetName(handle_t device, char *name, unsigned size);
int nvmlDeviceGetName(handle_t device, char *name, unsigned size)
{
	int error = nvml_check(device, name);
	return error ? error : nvml_give_text(device->name, name, size);
}

NVML_EXPORT int nvmlDeviceGetUUID(handle_t device, char *uuid, unsigned size);
int nvmlDeviceGetUUID(handle_t device, char *uuid, unsigned size)
{
	int error = nvml_check(device, uuid);
	if (error)
		return error;
	return device->has_uuid ? nvml_give_text(device->uuid, uuid, size) : NVML_NOT_SUPPORTED;
}

NVML_EXPORT int nvmlDeviceGetPciInfo_v3(handle_t device, struct nvml_pci *pci);
int nvmlDeviceGetPciInfo_v3(handle_t device, struct nvml_pci *pci)
{
	int error = nvml_check(device, pci);
	if (error || !device->has_pci)
		return error ? error : NVML_NOT_SUPPORTED;
	*pci = device->pci;
	return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetPciInfo_v2(handle_t device, struct nvml_pci_old *pci);
int nvmlDeviceGetPciInfo_v2(handle_t device, struct nvml_pci_old *pci)
{
	int error = nvml_check(device, pci);
	if (error || !device->has_pci)
		return error ? error : NVML_NOT_SUPPORTED;
	*pci = (struct nvml_pci_old){ .domain = device->pci.domain, .bus = device->pci.bus, .device = device->pci.device };
	memcpy(pci->old_id, device->pci.old_id, sizeof pci->old_id);
	return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetPciInfoExt(handle_t device, struct nvml_pci_ext *pci);
int nvmlDeviceGetPciInfoExt(handle_t device, struct nvml_pci_ext *pci)
{
	int error = nvml_check(device, pci);
	if (!error && pci->version != NVML_PCI_EXT_1)
		error = NVML_ARGUMENT_VERSION_MISMATCH;
	if (error || !device->has_pci)
		return error ? error : NVML_NOT_SUPPORTED;
	*pci = (struct nvml_pci_ext){ .version = NVML_PCI_EXT_1, .domain = device->pci.domain, .bus = device->pci.bus,
				      .device = device->pci.device, .device_id = device->pci.device_id,
				      .subsystem_id = device->pci.subsystem_id };
	memcpy(pci->id, device->pci.id, sizeof pci->id);
	return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetPciInfo(handle_t device, struct nvml_pci_old *pci);
int nvmlDeviceGetPciInfo(handle_t device, struct nvml_pci_old *pci)
{
	return nvmlDeviceGetPciInfo_v2(device, pci);
}

static int give_zero(handle_t device, unsigned *value)
{
	int error = nvml_check(device, value);
	if (!error)
		*value = 0;
	return error;
}

/* CUDA does not report the brand: the value is NVML_BRAND_UNKNOWN. */
NVML_EXPORT int nvmlDeviceGetBrand(handle_t device, unsigned *brand);
int nvmlDeviceGetBrand(handle_t device, unsigned *brand)
{
	return give_zero(device, brand);
}

/* A device of the list is never divided into instances: those of a server's GPU cannot be reached through it. */
NVML_EXPORT int nvmlDeviceGetMaxMigDeviceCount(handle_t device, unsigned *count);
int nvmlDeviceGetMaxMigDeviceCount(handle_t device, unsigned *count)
{
	return give_zero(device, count);
}

NVML_EXPORT int nvmlDeviceIsMigDeviceHandle(handle_t device, unsigned *is_instance);
int nvmlDeviceIsMigDeviceHandle(handle_t device, unsigned *is_instance)
{
	return give_zero(device, is_instance);
}

/* ---- memory ---- */

/* The driver reports the memory of the current context's device. */
static CUresult read_memory(const struct nvml_device *device, size_t *free_bytes, size_t *total)
{
	CUcontext context;
	CUresult result = nvml_driver.cuDevicePrimaryCtxRetain(&context, device->device);
	if (result != CUDA_SUCCESS)
		return result;
	result = nvml_driver.cuCtxPushCurrent_v2(context);
	if (result == CUDA_SUCCESS) {
		result = nvml_driver.cuMemGetInfo_v2(free_bytes, total);
		nvml_driver.cuCtxPopCurrent_v2(&context);
	}
	nvml_driver.cuDevicePrimaryCtxRelease_v2(device->device);
	return result;
}

NVML_EXPORT int nvmlDeviceGetMemoryInfo(handle_t device, struct nvml_memory *memory);
int nvmlDeviceGetMemoryInfo(handle_t device, struct nvml_memory *memory)
{
	size_t free_bytes, total;
	int error = nvml_check(device, memory);
	if (!error)
		error = nvml_result_of(read_memory(device, &free_bytes, &total));
	if (!error)
		*memory = (struct nvml_memory){ .total = total, .free = free_bytes, .used = total - free_bytes };
	return error;
}

NVML_EXPORT int nvmlDeviceGetMemoryInfo_v2(handle_t device, struct nvml_memory_2 *memory);
int nvmlDeviceGetMemoryInfo_v2(handle_t device, struct nvml_memory_2 *memory)
{
	struct nvml_memory plain;
	int error = nvml_check(device, memory);
	if (!error && memory->version != NVML_MEMORY_2)
		error = NVML_ARGUMENT_VERSION_MISMATCH;
	if (!error)
		error = nvmlDeviceGetMemoryInfo(device, &plain);
	if (error)
		return error;
	memory->total = plain.total;
	memory->free = plain.free;
	memory->used = plain.used;
	memory->reserved = 0; /* the driver's figures contain none */
	return NVML_SUCCESS;
}
