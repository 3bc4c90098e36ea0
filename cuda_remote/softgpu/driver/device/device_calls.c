/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that list devices and identify them. What a device can do is in device_attributes.c. */
#include "cuda_remote/api/softgpu_name.h"
#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/space/space.h"

#include <stdio.h>

#define PCI_FIRST_BUS 0xE0

/* Every query of a device checks this first. */
static CUresult check(const void *output, CUdevice device)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!output)
		return CUDA_ERROR_INVALID_VALUE;
	return device_valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetCount(int *count)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = device_count();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult result = check(device, ordinal);
	if (!result)
		*device = ordinal;
	return result;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	CUresult result = check(name, dev);
	if (result)
		return result;
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, RC_SOFTGPU_NAME);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	CUresult result = check(uuid, dev);
	if (result)
		return result;
	*uuid = device_uuid(dev);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	CUresult result = check(bytes, dev);
	if (result)
		return result;
	uint64_t free_bytes, total;
	softgpu_space_usage(device_physical(dev), &free_bytes, &total);
	*bytes = total;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	CUresult result = check(pciBusId, dev);
	if (result)
		return result;
	if (len < 13)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", PCI_FIRST_BUS + device_physical(dev));
	return CUDA_SUCCESS;
}

/* [domain:]bus:device[.function], hexadecimal. */
static bool parse_pci(const char *text, unsigned *domain, unsigned *bus, unsigned *slot, unsigned *function)
{
	int used = 0;
	*domain = *function = 0;
	if (sscanf(text, "%x:%x:%x.%x%n", domain, bus, slot, function, &used) == 4 && !text[used])
		return true;
	used = 0;
	*function = 0;
	if (sscanf(text, "%x:%x:%x%n", domain, bus, slot, &used) == 3 && !text[used])
		return true;
	used = 0;
	*domain = 0;
	if (sscanf(text, "%x:%x.%x%n", bus, slot, function, &used) == 3 && !text[used])
		return true;
	used = 0;
	*function = 0;
	return sscanf(text, "%x:%x%n", bus, slot, &used) == 2 && !text[used];
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	CUresult result = init_check();
	if (result)
		return result;
	unsigned domain, bus, slot, function;
	if (!dev || !pciBusId || !parse_pci(pciBusId, &domain, &bus, &slot, &function))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < device_count(); i++)
		if (!domain && !slot && !function && bus == (unsigned)(PCI_FIRST_BUS + device_physical(i))) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_DEVICE;
}

/* All devices share one address space and one set of processors. */
CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	CUresult result = check(canAccessPeer, dev);
	if (!result && !device_valid(peerDev))
		result = CUDA_ERROR_INVALID_DEVICE;
	if (!result)
		*canAccessPeer = dev != peerDev;
	return result;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	CUresult result = check(value, srcDevice);
	if (result)
		return result;
	if (!device_valid(dstDevice) || srcDevice == dstDevice)
		return CUDA_ERROR_INVALID_DEVICE;
	switch (attrib) {
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
		*value = 0;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*value = 1;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
