/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices: how many there are, what they can do, and the limits that launches are checked against. */
#ifndef SOFTGPU_DEVICE_H
#define SOFTGPU_DEVICE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"

#include <stdbool.h>
#include <stdint.h>

/* What the execution engine executes: the device's limits. */
enum {
	DEVICE_MAX_THREADS = 1024,        /* a block; x and y the same, z 64 */
	DEVICE_MAX_BLOCK_Z = 64,
	DEVICE_MAX_GRID_YZ = 65535,       /* x: 2^31 - 1 */
	DEVICE_SHARED_BYTES = 48 << 10,   /* a block, without asking */
	DEVICE_SHARED_OPTIN = 227 << 10,  /* a block, after cuFuncSetAttribute */
	DEVICE_SHARED_SM = 228 << 10,     /* a multiprocessor: occupancy's model */
	DEVICE_SHARED_RESERVED = 1 << 10, /* of it, a block */
	DEVICE_THREADS_SM = 2048,
	DEVICE_BLOCKS_SM = 32,
	DEVICE_REGISTERS_SM = 65536,
	DEVICE_PARAMETER_BYTES = 32764,   /* PTX ISA, kernel function parameters */
};

/* Opens devices and address space as the settings say. CUDA_ERROR_NO_DEVICE; CUDA_ERROR_OUT_OF_MEMORY. Once. */
CUresult device_open(void);

/* Devices that the program sees (CUDA_VISIBLE_DEVICES applied). */
int device_count(void);

/* True if the program sees this device. */
bool device_valid(CUdevice device);

/* Index of a visible device among those of the machine: what memory is accounted to. */
int device_physical(CUdevice device);

/* The UUID of a visible device; the same in every process of a machine. */
CUuuid device_uuid(CUdevice device);

/* 10 * major + minor of the compute capability. */
unsigned device_capability(void);

#endif
