/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device describes itself without contradiction; pointers are known for what they are; a reset device works again.
 */
#include "program.cuh"

#include <cstring>

__global__ void set(int *where, int value)
{
	*where = value;
}

static void description(void)
{
	int count, value, runtime, driver, back;
	char bus[32];
	cudaDeviceProp prop;
	CHECK(cudaGetDeviceCount(&count));
	EXPECT(count >= 1);
	CHECK(cudaGetDeviceProperties(&prop, 0));
	EXPECT(prop.name[0] && prop.totalGlobalMem > 0);
	const struct {
		cudaDeviceAttr attribute;
		long long property;
	} same[] = {
		{ cudaDevAttrWarpSize, prop.warpSize }, { cudaDevAttrMaxThreadsPerBlock, prop.maxThreadsPerBlock },
		{ cudaDevAttrMaxGridDimZ, prop.maxGridSize[2] }, { cudaDevAttrComputeCapabilityMajor, prop.major },
		{ cudaDevAttrMaxSharedMemoryPerBlock, (long long)prop.sharedMemPerBlock },
		{ cudaDevAttrMultiProcessorCount, prop.multiProcessorCount },
		{ cudaDevAttrMaxBlocksPerMultiprocessor, prop.maxBlocksPerMultiProcessor },
		{ cudaDevAttrHostNumaMultinodeIpcSupported, prop.hostNumaMultinodeIpcSupported },
	};
	for (const auto &s : same) {
		CHECK(cudaDeviceGetAttribute(&value, s.attribute, 0));
		EXPECT(value == s.property);
	}
	EXPECT(prop.warpSize == 32);
	CHECK(cudaRuntimeGetVersion(&runtime));
	CHECK(cudaDriverGetVersion(&driver));
	EXPECT(runtime == CUDART_VERSION && driver >= runtime);
	CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
	CHECK(cudaDeviceGetByPCIBusId(&back, bus));
	EXPECT(back == 0);
	EXPECT_ERROR(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, count));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, (cudaDeviceAttr)100000, 0));
	CHECK(cudaChooseDevice(&value, &prop));
	EXPECT(value >= 0 && value < count);
	EXPECT_ERROR(cudaErrorInvalidValue, cudaGetLastError());
}

static void memory_accounting(void)
{
	size_t before, after, total;
	void *p;
	CHECK(cudaMemGetInfo(&before, &total));
	CHECK(cudaMalloc(&p, 64 << 20));
	CHECK(cudaMemGetInfo(&after, &total));
	EXPECT(after + (64 << 20) <= before && before <= total);
	CHECK(cudaFree(p));
}

static void pointers(void)
{
	cudaPointerAttributes attributes;
	int local, mapped = 0, *device, *pinned, *seen;
	unsigned flags;
	/* A device in another machine cannot see the host's memory, and says so. */
	CHECK(cudaDeviceGetAttribute(&mapped, cudaDevAttrCanMapHostMemory, 0));
	CHECK(cudaMalloc(&device, 64));
	CHECK(cudaHostAlloc(&pinned, 64, mapped ? cudaHostAllocMapped : cudaHostAllocPortable));
	CHECK(cudaPointerGetAttributes(&attributes, device + 3));
	EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 &&
			attributes.devicePointer == device + 3);
	CHECK(cudaPointerGetAttributes(&attributes, pinned));
	EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
	CHECK(cudaPointerGetAttributes(&attributes, &local));
	EXPECT(attributes.type == cudaMemoryTypeUnregistered && attributes.device == cudaInvalidDeviceId);
	CHECK(cudaHostGetFlags(&flags, pinned));
	EXPECT(flags & (mapped ? cudaHostAllocMapped : cudaHostAllocPortable));
	CHECK(cudaFree(device));

	/* Mapped host memory is written by kernels where the host reads it. */
	if (mapped) {
		CHECK(cudaHostGetDevicePointer(&seen, pinned, 0));
		set<<<1, 1>>>(seen, 4711);
		CHECK(cudaDeviceSynchronize());
		EXPECT(*pinned == 4711);
	}
	CHECK(cudaFreeHost(pinned));
}

static void registered(void)
{
	static int block[4096];
	int *device;
	CHECK(cudaHostRegister(block, sizeof block, cudaHostRegisterDefault));
	EXPECT_ERROR(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(block, sizeof block, 0));
	EXPECT_ERROR(cudaErrorHostMemoryAlreadyRegistered, cudaGetLastError());
	CHECK(cudaMalloc(&device, sizeof block));
	block[4095] = 99;
	CHECK(cudaMemcpyAsync(device, block, sizeof block, cudaMemcpyHostToDevice, 0));
	CHECK(cudaDeviceSynchronize());
	block[4095] = 0;
	CHECK(cudaMemcpy(block, device, sizeof block, cudaMemcpyDeviceToHost));
	EXPECT(block[4095] == 99);
	CHECK(cudaHostUnregister(block));
	CHECK(cudaFree(device));
}

static void reset(void)
{
	int *p, value = 0;
	CHECK(cudaDeviceReset());
	CHECK(cudaMalloc(&p, sizeof *p));
	set<<<1, 1>>>(p, 11);
	CHECK(cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost));
	EXPECT(value == 11);
	CHECK(cudaFree(p));
}

int main()
{
	description();
	memory_accounting();
	pointers();
	registered();
	reset();
	CHECK(cudaGetLastError());
	return 0;
}
