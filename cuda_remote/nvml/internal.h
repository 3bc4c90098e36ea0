/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's devices. The list is written by the first nvmlInit and does not change while NVML is initialised. */
#ifndef RC_NVML_INTERNAL_H
#define RC_NVML_INTERNAL_H

#include "cuda_remote/nvml/nvml_api.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct nvml_device {
	uint32_t index;
	CUdevice device;
	char name[96];
	char uuid[48]; /* "GPU-00000000-0000-0000-0000-000000000000" */
	bool has_uuid, has_pci;
	struct nvml_pci pci;
};

/* The libcuda.so.1 beside this library. */
struct nvml_driver {
	CUresult (*cuInit)(unsigned);
	CUresult (*cuDriverGetVersion)(int *);
	CUresult (*cuDeviceGetCount)(int *);
	CUresult (*cuDeviceGet)(CUdevice *, int);
	CUresult (*cuDeviceGetName)(char *, int, CUdevice);
	CUresult (*cuDeviceGetUuid_v2)(CUuuid *, CUdevice);
	CUresult (*cuDeviceGetPCIBusId)(char *, int, CUdevice);
	CUresult (*cuDeviceGetAttribute)(int *, CUdevice_attribute, CUdevice);
	CUresult (*cuDeviceGetP2PAttribute)(int *, CUdevice_P2PAttribute, CUdevice, CUdevice);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
	CUresult (*cuDevicePrimaryCtxRelease_v2)(CUdevice);
	CUresult (*cuCtxPushCurrent_v2)(CUcontext);
	CUresult (*cuCtxPopCurrent_v2)(CUcontext *);
	CUresult (*cuMemGetInfo_v2)(size_t *, size_t *);
};
extern struct nvml_driver nvml_driver;

/* Loads the driver, once. Any value of enum nvml_result. */
int nvml_driver_load(void);
int nvml_result_of(CUresult result);

/* Success, or NVML_UNINITIALIZED. */
int nvml_ready(void);
/* The same, and NVML_INVALID_ARGUMENT if device is none of the list or output is NULL. */
int nvml_check(const struct nvml_device *device, const void *output);

extern struct nvml_device nvml_devices[NVML_DEVICES_MAX];
extern uint32_t nvml_device_count;

/* Copies text with its NUL. NVML_INSUFFICIENT_SIZE: it does not fit. */
int nvml_give_text(const char *text, char *buffer, unsigned size);

/* Reads "DOMAIN:BUS:DEVICE.FUNCTION", hexadecimal, where domain and function may be missing. False: it is none. */
bool nvml_parse_pci(const char *text, struct nvml_pci *pci);

#endif
