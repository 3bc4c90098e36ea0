/* SPDX-License-Identifier: BSD-3-Clause */
/* The reply to hello: everything that a program may query of the devices. */
#include "cuda_remote/server/internal.h"

#include <stdio.h>
#include <string.h>

static void describe_attributes(uint32_t index, struct rc_wire_device *wire)
{
	for (int i = 0; i < CU_DEVICE_ATTRIBUTE_MAX && i < RC_DEVICE_ATTRIBUTES; i++) {
		int value;
		if (driver.cuDeviceGetAttribute(&value, (CUdevice_attribute)i, worker.device[index]) != CUDA_SUCCESS)
			continue;
		wire->known[i] = 1;
		wire->attribute[i] = value;
	}
}

static void describe_peers(uint32_t index, struct rc_wire_device *wire)
{
	for (uint32_t i = 0; i < worker.gpus; i++) {
		int can;
		if (i == index || !driver.cuDeviceCanAccessPeer ||
		    driver.cuDeviceCanAccessPeer(&can, worker.device[index], worker.device[i]) != CUDA_SUCCESS)
			continue;
		wire->peers[i] = can != 0;
		for (int a = 1; a < 8 && driver.cuDeviceGetP2PAttribute; a++) {
			int value;
			if (driver.cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)a, worker.device[index],
							   worker.device[i]) == CUDA_SUCCESS)
				wire->p2p[i][a] = (uint8_t)value;
		}
	}
}

static CUresult describe(uint32_t index, struct rc_wire_device *wire)
{
	CUdevice device = worker.device[index];
	size_t memory;
	if (!driver.cuDeviceGetName || !driver.cuDeviceTotalMem_v2 || !driver.cuDeviceGetAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuDeviceGetName(wire->name, sizeof wire->name, device);
	if (result == CUDA_SUCCESS)
		result = driver.cuDeviceTotalMem_v2(&memory, device);
	if (result != CUDA_SUCCESS)
		return result;
	wire->memory = memory;
	CUuuid uuid;
	if (driver.cuDeviceGetUuid_v2 && driver.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS)
		memcpy(wire->uuid, uuid.bytes, sizeof wire->uuid);
	if (driver.cuDeviceGetPCIBusId)
		driver.cuDeviceGetPCIBusId(wire->pci, sizeof wire->pci, device);
	int least, greatest;
	if (driver.cuCtxGetStreamPriorityRange && driver.cuCtxSetCurrent(worker.primary[index]) == CUDA_SUCCESS &&
	    driver.cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS) {
		wire->least_priority = least;
		wire->greatest_priority = greatest;
	}
	describe_attributes(index, wire);
	describe_peers(index, wire);
	return CUDA_SUCCESS;
}

/* Gives the primary contexts the handles that the client chose. */
static CUresult name_primaries(uint64_t first)
{
	if (worker.primary_handle)
		return worker.primary_handle == first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (rc_handle_index(first) > RC_HANDLE_COUNT - worker.gpus)
		return CUDA_ERROR_INVALID_HANDLE;
	for (uint32_t i = 0; i < worker.gpus; i++) {
		CUresult result = server_object_bind(RC_KIND_CONTEXT, first + i, worker.primary[i], NULL);
		if (result != CUDA_SUCCESS) {
			while (i--)
				server_object_unbind(first + i);
			return result;
		}
	}
	worker.primary_handle = first;
	return CUDA_SUCCESS;
}

CUresult serve_hello(struct server_call *call)
{
	struct rc_wire_greeting greeting;
	struct rc_wire_hello hello = { .devices = worker.gpus, .staging = worker.staging,
				       .pinned = server_limit(SERVER_LIMIT_PINNED) };
	if (!server_take_into(call, &greeting, sizeof greeting))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = name_primaries(greeting.primary);
	if (result == CUDA_SUCCESS)
		result = driver.cuDriverGetVersion(&hello.driver_version);
	if (result == CUDA_SUCCESS)
		result = server_give_bytes(call, &hello, sizeof hello);
	for (uint32_t i = 0; i < worker.gpus && result == CUDA_SUCCESS; i++) {
		struct rc_wire_device *wire = server_give(call, 1, sizeof *wire);
		result = wire ? describe(i, wire) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	driver.cuCtxSetCurrent(worker.primary[0]);
	return result;
}
