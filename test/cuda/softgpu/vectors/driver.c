/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver API of whatever library is named: this tree's software GPU or a machine's own driver. */
#include "test/cuda/softgpu/vectors/vectors.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* name in the library, as cuda.h's macros have it, and type */
#define CALLS(CALL) \
	CALL(Init, "cuInit", (unsigned)) \
	CALL(DeviceGet, "cuDeviceGet", (CUdevice *, int)) \
	CALL(DeviceGetName, "cuDeviceGetName", (char *, int, CUdevice)) \
	CALL(DeviceGetAttribute, "cuDeviceGetAttribute", (int *, CUdevice_attribute, CUdevice)) \
	CALL(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice)) \
	CALL(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice)) \
	CALL(CtxSetCurrent, "cuCtxSetCurrent", (CUcontext)) \
	CALL(CtxSynchronize, "cuCtxSynchronize", (void)) \
	CALL(ModuleLoadDataEx, "cuModuleLoadDataEx", (CUmodule *, const void *, unsigned, CUjit_option *, void **)) \
	CALL(ModuleUnload, "cuModuleUnload", (CUmodule)) \
	CALL(ModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *)) \
	CALL(MemAlloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t)) \
	CALL(MemFree, "cuMemFree_v2", (CUdeviceptr)) \
	CALL(MemsetD8, "cuMemsetD8_v2", (CUdeviceptr, unsigned char, size_t)) \
	CALL(MemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t)) \
	CALL(MemcpyDtoH, "cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t)) \
	CALL(LaunchKernel, "cuLaunchKernel", (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
					      unsigned, CUstream, void **, void **))

struct device {
	void *library;
#define AS_MEMBER(name, symbol, type) CUresult(*name) type;
	CALLS(AS_MEMBER)
	char device_name[256];
	CUdevice number;
	int capability;
	CUdeviceptr input, output;
	size_t input_bytes, output_bytes;
};

static bool find_calls(struct device *device)
{
#define FIND(name, symbol, type) \
	*(void **)&device->name = dlsym(device->library, symbol); \
	if (!device->name) { \
		fprintf(stderr, "the driver has no %s\n", symbol); \
		return false; \
	}
	CALLS(FIND)
	return true;
}

static bool open_first_device(struct device *device)
{
	CUcontext context;
	int major = 0, minor = 0;
	CUresult r = device->Init(0);
	if (r == CUDA_SUCCESS)
		r = device->DeviceGet(&device->number, 0);
	if (r == CUDA_SUCCESS)
		r = device->PrimaryCtxRetain(&context, device->number);
	if (r == CUDA_SUCCESS)
		r = device->CtxSetCurrent(context);
	if (r != CUDA_SUCCESS) {
		fprintf(stderr, "the driver gives no device: CUDA error %d\n", (int)r);
		return false;
	}
	device->DeviceGetName(device->device_name, sizeof device->device_name, device->number);
	device->DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->number);
	device->DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->number);
	device->capability = major * 10 + minor;
	return true;
}

struct device *device_open(const char *library)
{
	struct device *device = calloc(1, sizeof *device);
	if (!device)
		abort();
	device->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!device->library)
		fprintf(stderr, "%s\n", dlerror());
	if (device->library && find_calls(device) && open_first_device(device))
		return device;
	free(device);
	return NULL;
}

/* The library stays: LeakSanitizer names what it left behind. */
void device_close(struct device *device)
{
	device->PrimaryCtxRelease(device->number);
	free(device);
}

int device_capability(const struct device *device)
{
	return device->capability;
}

const char *device_name(const struct device *device)
{
	return device->device_name;
}

struct module *device_load(struct device *device, const char *ptx, char *log, size_t log_size)
{
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)(uintptr_t)log_size };
	CUmodule module = NULL;
	log[0] = 0;
	CUresult r = device->ModuleLoadDataEx(&module, ptx, 2, options, values);
	return r == CUDA_SUCCESS ? (struct module *)module : NULL;
}

void device_unload(struct device *device, struct module *module)
{
	device->ModuleUnload((CUmodule)module);
}

/* Buffers are kept and grow. */
static CUresult room(struct device *device, CUdeviceptr *buffer, size_t *have, size_t wanted)
{
	CUresult r = CUDA_SUCCESS;
	if (*have >= wanted)
		return r;
	if (*have)
		r = device->MemFree(*buffer);
	*have = 0;
	if (r == CUDA_SUCCESS)
		r = device->MemAlloc(buffer, wanted);
	if (r == CUDA_SUCCESS)
		*have = wanted;
	return r;
}

int device_run(struct device *device, struct module *module, const char *name, const uint64_t *inputs,
	       uint64_t *outputs, uint32_t count, bool alone)
{
	const size_t input_bytes = (size_t)count * SOURCES_MAX * sizeof *inputs;
	const size_t output_bytes = (size_t)count * OUTPUT_WORDS * sizeof *outputs;
	const unsigned blocks = alone ? count : (count + 127) / 128, threads = alone ? 32 : 128;
	uint32_t one_lane = alone;
	CUfunction function;
	CUresult r = device->ModuleGetFunction(&function, (CUmodule)module, name);
	if (r == CUDA_SUCCESS)
		r = room(device, &device->input, &device->input_bytes, input_bytes);
	if (r == CUDA_SUCCESS)
		r = room(device, &device->output, &device->output_bytes, output_bytes);
	if (r == CUDA_SUCCESS)
		r = device->MemcpyHtoD(device->input, inputs, input_bytes);
	if (r == CUDA_SUCCESS)
		r = device->MemsetD8(device->output, 0, output_bytes);
	void *parameters[] = { &device->input, &device->output, &count, &one_lane };
	if (r == CUDA_SUCCESS)
		r = device->LaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);
	if (r == CUDA_SUCCESS)
		r = device->CtxSynchronize();
	if (r == CUDA_SUCCESS)
		r = device->MemcpyDtoH(outputs, device->output, output_bytes);
	return (int)r;
}
