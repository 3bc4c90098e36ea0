/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries that the CUDA driver answers by an attribute. */
#include "cuda_remote/api/softgpu_name.h"
#include "cuda_remote/nvml/internal.h"

#include <string.h>

typedef struct nvml_device *handle_t;

/* NVML_NOT_SUPPORTED: the driver reports nothing. */
static int read_attribute(const struct nvml_device *device, CUdevice_attribute which, int *value)
{
	return nvml_driver.cuDeviceGetAttribute(value, which, device->device) == CUDA_SUCCESS ? NVML_SUCCESS :
													  NVML_NOT_SUPPORTED;
}

NVML_EXPORT int nvmlDeviceGetCudaComputeCapability(handle_t device, int *major, int *minor);
int nvmlDeviceGetCudaComputeCapability(handle_t device, int *major, int *minor)
{
	int error = nvml_check(device, major ? minor : NULL);
	if (!error)
		error = read_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major);
	if (!error)
		error = read_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor);
	return error;
}

/* NVML's number of the first architecture whose compute capability is at least this. */
static const struct {
	int capability; /* 10 * major + minor */
	unsigned architecture;
} architectures[] = {
	{ 100, 10 }, { 90, 9 }, { 89, 8 }, { 80, 7 }, { 75, 6 }, { 70, 5 }, { 60, 4 }, { 50, 3 }, { 30, 2 },
};

NVML_EXPORT int nvmlDeviceGetArchitecture(handle_t device, unsigned *architecture);
int nvmlDeviceGetArchitecture(handle_t device, unsigned *architecture)
{
	int major, minor, error = nvml_check(device, architecture);
	if (!error)
		error = nvmlDeviceGetCudaComputeCapability(device, &major, &minor);
	for (size_t i = 0; i < sizeof architectures / sizeof *architectures && !error; i++)
		if (10 * major + minor >= architectures[i].capability) {
			*architecture = architectures[i].architecture;
			return NVML_SUCCESS;
		}
	return error ? error : NVML_NOT_SUPPORTED;
}

enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO, CLOCKS };

/* In MHz; the driver has kHz. */
NVML_EXPORT int nvmlDeviceGetMaxClockInfo(handle_t device, unsigned type, unsigned *clock);
int nvmlDeviceGetMaxClockInfo(handle_t device, unsigned type, unsigned *clock)
{
	int khz = 0, error = nvml_check(device, clock);
	if (!error && type >= CLOCKS)
		error = NVML_INVALID_ARGUMENT;
	if (!error && type == CLOCK_VIDEO)
		error = NVML_NOT_SUPPORTED;
	if (!error)
		error = read_attribute(device, type == CLOCK_MEMORY ? CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE :
				       CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &khz);
	if (!error && khz <= 0)
		error = NVML_NOT_SUPPORTED;
	if (!error)
		*clock = (unsigned)khz / 1000;
	return error;
}

/* The clock of a software GPU is constant, so the largest one is the current one, and the one that programs run with. */
static int constant_clock(handle_t device, unsigned type, unsigned *clock)
{
	int error = nvml_check(device, clock);
	if (!error && type >= CLOCKS)
		error = NVML_INVALID_ARGUMENT;
	if (!error && strcmp(device->name, RC_SOFTGPU_NAME))
		error = NVML_NOT_SUPPORTED;
	return error ? error : nvmlDeviceGetMaxClockInfo(device, type, clock);
}

NVML_EXPORT int nvmlDeviceGetClockInfo(handle_t device, unsigned type, unsigned *clock);
int nvmlDeviceGetClockInfo(handle_t device, unsigned type, unsigned *clock)
{
	return constant_clock(device, type, clock);
}

NVML_EXPORT int nvmlDeviceGetApplicationsClock(handle_t device, unsigned type, unsigned *clock);
int nvmlDeviceGetApplicationsClock(handle_t device, unsigned type, unsigned *clock)
{
	return constant_clock(device, type, clock);
}

NVML_EXPORT int nvmlDeviceGetDefaultApplicationsClock(handle_t device, unsigned type, unsigned *clock);
int nvmlDeviceGetDefaultApplicationsClock(handle_t device, unsigned type, unsigned *clock)
{
	return constant_clock(device, type, clock);
}

NVML_EXPORT int nvmlDeviceGetMemoryBusWidth(handle_t device, unsigned *bits);
int nvmlDeviceGetMemoryBusWidth(handle_t device, unsigned *bits)
{
	int value = 0, error = nvml_check(device, bits);
	if (!error)
		error = read_attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &value);
	if (!error && value <= 0)
		error = NVML_NOT_SUPPORTED;
	if (!error)
		*bits = (unsigned)value;
	return error;
}

/* CUDA's values of the mode are NVML's. */
NVML_EXPORT int nvmlDeviceGetComputeMode(handle_t device, unsigned *mode);
int nvmlDeviceGetComputeMode(handle_t device, unsigned *mode)
{
	int value, error = nvml_check(device, mode);
	if (!error)
		error = read_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, &value);
	if (!error)
		*mode = (unsigned)value;
	return error;
}

NVML_EXPORT int nvmlDeviceGetMultiGpuBoard(handle_t device, unsigned *is_multi);
int nvmlDeviceGetMultiGpuBoard(handle_t device, unsigned *is_multi)
{
	int value, error = nvml_check(device, is_multi);
	if (!error)
		error = read_attribute(device, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, &value);
	if (!error)
		*is_multi = (unsigned)value;
	return error;
}

enum { P2P_READ, P2P_WRITE, P2P_NVLINK, P2P_ATOMICS, P2P_PCI, P2P_CAPS };
enum { P2P_STATUS_OK = 0, P2P_STATUS_NOT_SUPPORTED = 5 };

/* CUDA does not say by which link two devices reach each other. */
NVML_EXPORT int nvmlDeviceGetP2PStatus(handle_t device, handle_t peer, unsigned caps, unsigned *status);
int nvmlDeviceGetP2PStatus(handle_t device, handle_t peer, unsigned caps, unsigned *status)
{
	int value = 0, error = nvml_check(device, status);
	if (!error)
		error = nvml_check(peer, status);
	if (!error && (caps >= P2P_CAPS || device == peer))
		error = NVML_INVALID_ARGUMENT;
	if (!error && (caps == P2P_NVLINK || caps == P2P_PCI))
		error = NVML_NOT_SUPPORTED;
	if (!error)
		error = nvml_result_of(nvml_driver.cuDeviceGetP2PAttribute(
			&value, caps == P2P_ATOMICS ? CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED :
						      CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
			device->device, peer->device));
	if (!error)
		*status = value ? P2P_STATUS_OK : P2P_STATUS_NOT_SUPPORTED;
	return error;
}
