/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices: how many, their identity, and the limits that launches are checked against. */
#ifndef SOFTGPU_DEVICE_H
#define SOFTGPU_DEVICE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/engine.h"

#include <stdbool.h>
#include <stdint.h>

/* The device's limits, which the execution engine can run. */
enum {
	DEVICE_MAX_THREADS = 1024,        /* in a block, and in its x and y dimensions */
	DEVICE_MAX_BLOCK_Z = 64,
	DEVICE_MAX_GRID_YZ = 65535,       /* x: 2^31 - 1 */
	DEVICE_SHARED_BYTES = 48 << 10,   /* of a block, by default */
	DEVICE_SHARED_OPTIN = 227 << 10,  /* of a block, after cuFuncSetAttribute */
	DEVICE_SHARED_SM = SOFTGPU_SM_SHARED,
	DEVICE_SHARED_RESERVED = SOFTGPU_SM_SHARED_RESERVED,
	DEVICE_THREADS_SM = SOFTGPU_SM_THREADS,
	DEVICE_BLOCKS_SM = SOFTGPU_SM_BLOCKS,
	DEVICE_REGISTERS_SM = SOFTGPU_SM_REGISTERS,
	DEVICE_PARAMETER_BYTES = 32764,   /* PTX ISA, kernel function parameters */
};

/* What HEADRACE_SOFTGPU_DEVICES, _MEMORY and _CAPABILITY ask for. */
struct device_settings {
	int count;           /* devices */
	uint64_t memory;     /* of each device, bytes, whole pages of 4 KB */
	unsigned capability; /* 10 * major + minor */
};

/* Reads the settings. CUDA_ERROR_INVALID_VALUE if one is invalid; the log says which. */
CUresult device_settings_read(struct device_settings *settings);

/* Reads the settings and opens devices and address space; called once. CUDA_ERROR_NO_DEVICE; _OUT_OF_MEMORY. */
CUresult device_open(void);

/* The number of visible devices (after CUDA_VISIBLE_DEVICES). */
int device_count(void);

/* True if this is a visible device. */
bool device_valid(CUdevice device);

/* The index of a visible device among all devices of the machine; memory is accounted to it. */
int device_physical(CUdevice device);

/* The UUID of a visible device; the same in every process of a machine. */
CUuuid device_uuid(CUdevice device);

/* The compute capability of all devices: 10 * major + minor. */
unsigned device_capability(void);

#endif
