/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of NVML's binary interface that this library implements: values and layouts as in nvml.h of NVML 13. The
 * build does not need that header. Functions return one of these values, or 0 for success.
 */
#ifndef RC_NVML_API_H
#define RC_NVML_API_H

#include <assert.h>
#include <stdint.h>

#define NVML_EXPORT __attribute__((visibility("default")))

enum nvml_result {
	NVML_SUCCESS = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_ALREADY_INITIALIZED = 5,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_LIBRARY_NOT_FOUND = 12,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_GPU_IS_LOST = 15,
	NVML_MEMORY = 20,
	NVML_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_UNKNOWN = 999,
};

#define NVML_DEVICES_MAX 64
#define NVML_VALUE_UNKNOWN UINT64_MAX /* "not available" in a figure of 64 bits */

struct nvml_device; /* a program's nvmlDevice_t points to it */

struct nvml_memory {
	uint64_t total, free, used; /* bytes */
};
static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");

#define NVML_MEMORY_2 (40u | 2u << 24) /* value of version */

struct nvml_memory_2 {
	uint32_t version;
	uint64_t total, reserved, free, used; /* bytes */
};
static_assert(sizeof(struct nvml_memory_2) == 40, "nvmlMemory_v2_t");

struct nvml_pci {
	char old_id[16]; /* "0000:3B:00.0" */
	uint32_t domain, bus, device;
	uint32_t device_id, subsystem_id; /* 0: not known */
	char id[32]; /* "00000000:3B:00.0" */
};
static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");

/* Of nvmlDeviceGetPciInfo and its second version. */
struct nvml_pci_old {
	char old_id[16];
	uint32_t domain, bus, device, device_id, subsystem_id;
	uint32_t reserved[4];
};
static_assert(sizeof(struct nvml_pci_old) == 52, "nvmlPciInfo_t before version 3");

#define NVML_PCI_EXT_1 (64u | 1u << 24) /* value of version */

struct nvml_pci_ext {
	uint32_t version, domain, bus, device;
	uint32_t device_id, subsystem_id, base_class, sub_class; /* 0: not known */
	char id[32];
};
static_assert(sizeof(struct nvml_pci_ext) == 64, "nvmlPciInfoExt_v1_t");

#define NVML_BRANCH_1 (84u | 1u << 24) /* value of version */

struct nvml_branch {
	uint32_t version;
	char branch[80];
};
static_assert(sizeof(struct nvml_branch) == 84, "nvmlSystemDriverBranchInfo_v1_t");

struct nvml_process_1 {
	uint32_t pid;
	uint64_t memory; /* bytes, or NVML_VALUE_UNKNOWN */
};
static_assert(sizeof(struct nvml_process_1) == 16, "nvmlProcessInfo_v1_t");

struct nvml_process {
	uint32_t pid;
	uint64_t memory;
	uint32_t gpu_instance, compute_instance; /* UINT32_MAX: the device is not partitioned */
};
static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_v2_t");

#endif
