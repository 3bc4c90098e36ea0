/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls from before CUDA 4.0, asynchronous notifications and RDMA flushes. Compiled without cuda.h's renaming, so that
 * a name without _v2 is the old function.
 */
#include "driver.h"

static uint32_t *mapped(CUdeviceptr *address)
{
	void *host;
	OK(cuMemHostAlloc(&host, 4096, 0));
	memset(host, 0, 4096);
	OK(cuMemHostGetDevicePointer_v2(address, host, 0));
	return host;
}

static void parameters_are_set_one_by_one(void)
{
	CUdeviceptr at;
	uint32_t *value = mapped(&at), many = 5;
	CUfunction increase = kernel("increase");
	EXPECT(cuLaunch(increase), CUDA_ERROR_INVALID_VALUE); /* nothing is set */
	OK(cuFuncSetBlockShape(increase, 1, 1, 1));
	OK(cuFuncSetSharedSize(increase, 64));
	OK(cuParamSetv(increase, 0, &at, sizeof at));
	OK(cuParamSeti(increase, 8, 3));
	OK(cuParamSetSize(increase, 8));
	EXPECT(cuLaunch(increase), CUDA_ERROR_INVALID_VALUE); /* the second parameter lies behind the end */
	OK(cuParamSetSize(increase, 12));
	OK(cuFuncSetSharedSize(increase, 4)); /* changes nothing else */
	OK(cuLaunch(increase));
	OK(cuCtxSynchronize());
	CHECK(*value == 3);
	/* What was set stays. */
	OK(cuParamSetv(increase, 8, &many, sizeof many));
	OK(cuLaunchGrid(increase, 1, 1));
	CUstream stream;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchGridAsync(increase, 1, 1, stream));
	OK(cuCtxSynchronize());
	CHECK(*value == 13);
	OK(cuStreamDestroy_v2(stream));
	EXPECT(cuLaunchGrid(increase, 0, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchGrid(increase, 1, -1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuFuncSetBlockShape(increase, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuFuncSetBlockShape(increase, 1024, 2, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuFuncSetSharedSize(increase, 1 << 30), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuParamSetSize(increase, 1 << 20), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuParamSetf(increase, -4, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuParamSetf(increase, 1 << 20, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuParamSetv(increase, 0, NULL, 4), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuParamSeti(NULL, 0, 1), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuParamSetTexRef(increase, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeHost(value));
}

static void arrays_are_copied_in_sizes_of_32_bits(void)
{
	CUDA_ARRAY_DESCRIPTOR_v1 shape = { .Width = 8, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels =
						1 }, told;
	CUDA_ARRAY3D_DESCRIPTOR_v1 solid = { .Width = 4, .Height = 3, .Depth = 2, .Format =
						CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1 }, solid_told;
	CUarray array, line, cube;
	char bytes[32], back[32];
	for (int i = 0; i < 32; i++)
		bytes[i] = (char)(i * 7);
	OK(cuArrayCreate(&array, &shape));
	OK(cuArrayGetDescriptor(&told, array));
	CHECK(told.Width == 8 && told.Height == 4 && told.NumChannels == 1);
	EXPECT(cuArrayCreate(&array, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuArrayGetDescriptor(NULL, array), CUDA_ERROR_INVALID_VALUE);
	CUDA_MEMCPY2D_v1 copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = bytes, .srcPitch = 8,
				  .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = array, .WidthInBytes = 8,
				  .Height = 4 };
	OK(cuMemcpy2D(&copy));
	copy = (CUDA_MEMCPY2D_v1){ .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = array, .srcXInBytes = 2, .srcY = 1,
				   .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .dstPitch = 4,
				   .WidthInBytes = 3, .Height = 2 };
	OK(cuMemcpy2DUnaligned(&copy));
	CHECK(!memcmp(back, bytes + 10, 3) && !memcmp(back + 4, bytes + 18, 3));
	EXPECT(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
	/* A device address of 32 bits is nobody's. */
	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = 4096;
	copy.srcPitch = 8;
	EXPECT(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
	shape.Height = 0;
	OK(cuArrayCreate(&line, &shape));
	OK(cuMemcpyHtoA(line, 2, bytes, 5));
	OK(cuMemcpyAtoH(back, line, 3, 4));
	CHECK(!memcmp(back, bytes + 1, 4));
	OK(cuArray3DCreate(&cube, &solid));
	OK(cuArray3DGetDescriptor(&solid_told, cube));
	CHECK(solid_told.Depth == 2 && solid_told.Height == 3 && solid_told.Width == 4);
	CUDA_MEMCPY3D_v1 in = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = bytes, .srcPitch = 4, .srcHeight = 3,
				.dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = cube, .WidthInBytes = 4, .Height = 3,
				.Depth = 2 };
	OK(cuMemcpy3D(&in));
	CUDA_MEMCPY3D_v1 out = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = cube, .srcXInBytes = 1, .srcY = 2,
				 .srcZ = 1, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back, .dstPitch = 4,
				 .dstHeight = 1, .WidthInBytes = 2, .Height = 1, .Depth = 1 };
	OK(cuMemcpy3DAsync(&out, NULL));
	OK(cuCtxSynchronize());
	CHECK(!memcmp(back, bytes + 21, 2));
	OK(cuArrayDestroy(array));
	OK(cuArrayDestroy(line));
	OK(cuArrayDestroy(cube));
}

static void sizes_are_cut_to_32_bits_and_addresses_refused(void)
{
	unsigned all, left, total;
	size_t really;
	CUdeviceptr_v1 address;
	void *host;
	OK(cuDeviceTotalMem(&all, 0));
	OK(cuDeviceTotalMem_v2(&really, 0));
	CHECK(all == (really > UINT32_MAX ? UINT32_MAX : really));
	EXPECT(cuDeviceTotalMem(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemGetInfo(&left, &total));
	CHECK(total == all && left <= total);
	OK(cuMemAllocHost(&host, 100));
	OK(cuMemFreeHost(host));
	EXPECT(cuMemAlloc(&address, 4096), CUDA_ERROR_NOT_SUPPORTED);
}

static void contexts_count_their_users(void)
{
	CUcontext context, again;
	OK(cuCtxCreate(&context, 0, 0));
	OK(cuCtxAttach(&again, 0));
	CHECK(again == context);
	EXPECT(cuCtxAttach(&again, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxDetach(context));
	OK(cuCtxSynchronize());
	EXPECT(cuCtxDetach(NULL), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxDetach(context));
	EXPECT(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
	/* Under it the primary context is current again, which is not counted so. */
	EXPECT(cuCtxAttach(&again, 0), CUDA_ERROR_INVALID_CONTEXT);
}

static void never(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
	(void)info, (void)data, (void)handle;
	CHECK(!"called");
}

static void notifications_are_registered(void)
{
	CUasyncCallbackHandle handle;
	OK(cuDeviceRegisterAsyncNotification(0, never, NULL, &handle));
	EXPECT(cuDeviceUnregisterAsyncNotification(1, handle), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceUnregisterAsyncNotification(0, handle));
	EXPECT(cuDeviceUnregisterAsyncNotification(0, handle), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDeviceRegisterAsyncNotification(7, never, NULL, &handle), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuDeviceRegisterAsyncNotification(0, NULL, NULL, &handle), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDeviceRegisterAsyncNotification(0, never, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void adapters_writes_need_no_flush(void)
{
	int order, options;
	OK(cuDeviceGetAttribute(&order, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0));
	OK(cuDeviceGetAttribute(&options, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0));
	CHECK(order == CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES);
	CHECK(options == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
	OK(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
				      CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
	EXPECT(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
					  (CUflushGPUDirectRDMAWritesScope)7),
	       CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuFlushGPUDirectRDMAWrites((CUflushGPUDirectRDMAWritesTarget)1,
					  CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER),
	       CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSetCurrent(NULL));
	EXPECT(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
					  CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER),
	       CUDA_ERROR_INVALID_CONTEXT);
}

int main(void)
{
	setenv("HEADRACE_SOFTGPU_DEVICES", "2", 1);
	start();
	parameters_are_set_one_by_one();
	arrays_are_copied_in_sizes_of_32_bits();
	sizes_are_cut_to_32_bits_and_addresses_refused();
	contexts_count_their_users();
	notifications_are_registered();
	adapters_writes_need_no_flush();
	return 0;
}
