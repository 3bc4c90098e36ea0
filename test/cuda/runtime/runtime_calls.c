/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that the runtime makes to the driver, and its own results, over the test double. The test registers kernels
 * and variables as compiled host code does.
 */
#include "cuda_remote/runtime/registration.h"
#include "test/cuda/runtime/double.h"

#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudaError_t cudaLaunchKernel_ptsz(
		const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);
cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t size, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync_ptsz(
		void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream);

struct wrapper {
	uint32_t magic, version;
	const void *container, *relocatable;
};

static const struct wrapper wrapper = { 0x466243B1, 1, "a container", NULL };

/* Host variables whose addresses stand for kernels and variables of the device. */
static char scale, offset_kernel, missing_kernel, table, missing_table, unknown;
static void *managed;
static void **handle;

static const dim3 one = { 1, 1, 1 };

static void registers(void)
{
	handle = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
	__cudaRegisterFunction(handle, &scale, NULL, "scale", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, &offset_kernel, NULL, "offset", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, &missing_kernel, NULL, "missing_kernel", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, &table, NULL, "table", 0, DOUBLE_VARIABLE_BYTES, 0, 0);
	__cudaRegisterVar(handle, &missing_table, NULL, "missing_table", 0, DOUBLE_VARIABLE_BYTES, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
}

static void setup(void)
{
	memset(&double_record, 0, sizeof double_record);
	double_record.check_context = 1;
	registers();
}

static void teardown(void)
{
	__cudaUnregisterFatBinary(handle);
}

static cudaError_t launch(const void *kernel)
{
	return cudaLaunchKernel(kernel, one, one, NULL, 0, NULL);
}

START_TEST(registration_does_not_touch_the_driver)
{
	ck_assert_int_eq(double_record.calls, 0);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_int_eq(double_record.loads, 1);
}
END_TEST

START_TEST(a_launch_is_one_driver_call)
{
	int value = 7;
	void *args[] = { &value };
	cudaKernel_t kernel;
	cudaStream_t stream = (cudaStream_t)0x1234;
	ck_assert_int_eq(__cudaGetKernel(&kernel, &scale), cudaSuccess);
	ck_assert_int_eq(double_record.calls, 0);
	ck_assert_int_eq(__cudaLaunchKernel(kernel, one, one, args, 0, NULL), cudaSuccess);
	int before = double_record.calls;
	ck_assert_int_eq(__cudaLaunchKernel(kernel, (dim3){ 2, 3, 4 }, (dim3){ 5, 6, 7 }, args, 80, stream),
			cudaSuccess);
	ck_assert_int_eq(cudaLaunchKernel(&scale, (dim3){ 2, 3, 4 }, (dim3){ 5, 6, 7 }, args, 80, stream), cudaSuccess);
	ck_assert_int_eq(double_record.calls, before + 2);
	ck_assert_str_eq(double_record.kernel, "scale");
	ck_assert_uint_eq(double_record.grid[0] * 100 + double_record.grid[1] * 10 + double_record.grid[2], 234);
	ck_assert_uint_eq(double_record.block[0] * 100 + double_record.block[1] * 10 + double_record.block[2], 567);
	ck_assert_uint_eq(double_record.shared, 80);
	ck_assert_ptr_eq(double_record.stream, stream);
	ck_assert_ptr_eq(double_record.args, args);
}
END_TEST

START_TEST(configurations_nest)
{
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
	ck_assert_uint_eq(__cudaPushCallConfiguration((dim3){ 1, 1, 1 }, one, 10, NULL), 0);
	ck_assert_uint_eq(__cudaPushCallConfiguration((dim3){ 2, 1, 1 }, one, 20, (cudaStream_t)2), 0);
	ck_assert_int_eq(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
	ck_assert(grid.x == 2 && shared == 20 && stream == (cudaStream_t)2);
	ck_assert_int_eq(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
	ck_assert(grid.x == 1 && shared == 10 && !stream);
	ck_assert_int_eq(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaErrorMissingConfiguration);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorMissingConfiguration);
}
END_TEST

START_TEST(per_thread_variants_use_the_threads_own_default_stream)
{
	int from = 1, to = 0;
	ck_assert_int_eq(cudaLaunchKernel_ptsz(&scale, one, one, NULL, 0, NULL), cudaSuccess);
	ck_assert_ptr_eq(double_record.stream, CU_STREAM_PER_THREAD);
	ck_assert_int_eq(cudaLaunchKernel_ptsz(&scale, one, one, NULL, 0, cudaStreamLegacy), cudaSuccess);
	ck_assert_ptr_eq(double_record.stream, CU_STREAM_LEGACY);
	ck_assert_int_eq(cudaMemcpyAsync_ptsz(&to, &from, sizeof to, cudaMemcpyHostToDevice, NULL), cudaSuccess);
	ck_assert_ptr_eq(double_record.copy_stream, CU_STREAM_PER_THREAD);
	ck_assert_int_eq(cudaMemcpyAsync(&to, &from, sizeof to, cudaMemcpyHostToDevice, NULL), cudaSuccess);
	ck_assert_ptr_null(double_record.copy_stream);
	ck_assert_int_eq(cudaMemcpy_ptds(&to, &from, sizeof to, cudaMemcpyHostToDevice), cudaSuccess);
	ck_assert_str_eq(double_record.copy, "cuMemcpyHtoD_v2_ptds");
	ck_assert_int_eq(cudaMemcpy_ptds(&to, &from, sizeof to, cudaMemcpyDefault), cudaSuccess);
	ck_assert_str_eq(double_record.copy, "cuMemcpy_ptds");
}
END_TEST

START_TEST(each_kind_of_copy_has_its_driver_call)
{
	static const struct {
		enum cudaMemcpyKind kind;
		const char *call;
	} kinds[] = {
		{ cudaMemcpyHostToHost, "cuMemcpy" }, { cudaMemcpyHostToDevice, "cuMemcpyHtoD_v2" },
		{ cudaMemcpyDeviceToHost, "cuMemcpyDtoH_v2" }, { cudaMemcpyDeviceToDevice, "cuMemcpyDtoD_v2" },
		{ cudaMemcpyDefault, "cuMemcpy" },
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		int from = 41 + (int)i, to = 0;
		ck_assert_int_eq(cudaMemcpy(&to, &from, sizeof to, kinds[i].kind), cudaSuccess);
		ck_assert_str_eq(double_record.copy, kinds[i].call);
		ck_assert_int_eq(to, from);
	}
	int cell = 0, before = double_record.calls - double_record.get_current;
	ck_assert_int_eq(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault), cudaSuccess);
	ck_assert_int_eq(
			cudaMemcpy(&cell, &cell, sizeof cell, (enum cudaMemcpyKind)5), cudaErrorInvalidMemcpyDirection);
	ck_assert_int_eq(cudaMemcpy2D(&cell, 1, &cell, 4, 2, 1, cudaMemcpyDefault), cudaErrorInvalidPitchValue);
	ck_assert_int_eq(double_record.calls - double_record.get_current, before);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidPitchValue);
}
END_TEST

START_TEST(symbols_are_found_and_their_bounds_kept)
{
	char in[8] = "payload", out[8] = "";
	void *address = NULL;
	size_t size = 0;
	ck_assert_int_eq(cudaGetSymbolSize(&size, &table), cudaSuccess);
	ck_assert_uint_eq(size, DOUBLE_VARIABLE_BYTES);
	ck_assert_int_eq(cudaGetSymbolAddress(&address, &table), cudaSuccess);
	ck_assert_int_eq(cudaMemcpyToSymbol(&table, in, sizeof in, 8, cudaMemcpyHostToDevice), cudaSuccess);
	ck_assert_mem_eq((char *)address + 8, in, sizeof in);
	ck_assert_int_eq(cudaMemcpyFromSymbol(out, &table, sizeof out, 8, cudaMemcpyDeviceToHost), cudaSuccess);
	ck_assert_str_eq(out, in);
	ck_assert_int_eq(cudaMemcpyToSymbol(&table, in, 8, 60, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	ck_assert_int_eq(cudaMemcpyToSymbol(&table, in, 8, SIZE_MAX, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	ck_assert_int_eq(cudaMemcpyToSymbol(&table, in, 8, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
	ck_assert_int_eq(cudaGetSymbolSize(&size, &unknown), cudaErrorInvalidSymbol);
	ck_assert_int_eq(cudaGetSymbolAddress(&address, &scale), cudaErrorInvalidSymbol);
	ck_assert_int_eq(cudaGetSymbolAddress(&address, &missing_table), cudaErrorInvalidSymbol);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidSymbol);
}
END_TEST

START_TEST(a_launch_that_cannot_be_says_why)
{
	ck_assert_int_eq(launch(&unknown), cudaErrorInvalidDeviceFunction);
	ck_assert_int_eq(launch(&table), cudaErrorInvalidDeviceFunction);
	ck_assert_int_eq(launch(&missing_kernel), cudaErrorInvalidDeviceFunction);
	double_record.launch_result = CUDA_ERROR_INVALID_VALUE;
	ck_assert_int_eq(
			cudaLaunchKernel(&scale, (dim3){ 0, 1, 1 }, one, NULL, 0, NULL), cudaErrorInvalidConfiguration);
	ck_assert_int_eq(cudaLaunchKernel(&scale, one, (dim3){ 1025, 1, 1 }, NULL, 0, NULL),
			cudaErrorInvalidConfiguration);
	ck_assert_int_eq(cudaLaunchKernel(&scale, one, (dim3){ 33, 32, 1 }, NULL, 0, NULL),
			cudaErrorInvalidConfiguration);
	ck_assert_int_eq(
			cudaLaunchKernel(&scale, one, (dim3){ 32, 32, 1 }, NULL, 1 << 20, NULL), cudaErrorInvalidValue);
	double_record.launch_result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	ck_assert_int_eq(launch(&scale), cudaErrorLaunchOutOfResources);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorLaunchOutOfResources);
	ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
}
END_TEST

START_TEST(a_module_that_finds_no_room_is_loaded_later)
{
	double_record.load_result = CUDA_ERROR_OUT_OF_MEMORY;
	ck_assert_int_eq(launch(&scale), cudaErrorMemoryAllocation);
	double_record.load_result = CUDA_SUCCESS;
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
}
END_TEST

START_TEST(a_module_with_nothing_for_the_device_is_not_offered_again)
{
	double_record.load_result = CUDA_ERROR_NO_BINARY_FOR_GPU;
	ck_assert_int_eq(launch(&scale), cudaErrorNoKernelImageForDevice);
	int calls = double_record.calls - double_record.get_current;
	ck_assert_int_eq(launch(&scale), cudaErrorNoKernelImageForDevice);
	ck_assert_int_eq(launch(&offset_kernel), cudaErrorNoKernelImageForDevice);
	ck_assert_int_eq(double_record.calls - double_record.get_current, calls);
	double_record.load_result = CUDA_SUCCESS;
	ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
}
END_TEST

START_TEST(linked_units_are_offered_before_the_linked_container)
{
	static char kernel;
	static const char unit[16] = "no container"; /* as long as the head of one */
	static const void *const units[] = { unit, NULL };
	const struct wrapper linked = { 0x466243B1, 2, "machine code", units };
	void **module = __cudaRegisterFatBinary((void *)(uintptr_t)&linked);
	__cudaRegisterFunction(module, &kernel, NULL, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
	ck_assert_int_eq(launch(&kernel), cudaSuccess);
	ck_assert_ptr_eq(double_record.image, &linked);
	ck_assert_int_eq(cudaDeviceReset(), cudaSuccess);
	double_record.no_image = &linked;
	ck_assert_int_eq(launch(&kernel), cudaSuccess);
	ck_assert_ptr_eq(double_record.image, linked.container);
	ck_assert_int_eq(cudaDeviceReset(), cudaSuccess);
	double_record.load_result = CUDA_ERROR_NO_BINARY_FOR_GPU;
	ck_assert_int_eq(launch(&kernel), cudaErrorInvalidKernelImage);
	ck_assert_int_eq(launch(&scale), cudaErrorNoKernelImageForDevice);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
	__cudaUnregisterFatBinary(module);
}
END_TEST

START_TEST(the_last_error_stays_until_it_is_fetched)
{
	ck_assert_int_eq(cudaMalloc(NULL, 1), cudaErrorInvalidValue);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorInvalidValue);
	ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorInvalidValue);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidValue);
	ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
}
END_TEST

START_TEST(not_ready_is_no_error)
{
	double_record.query_result = CUDA_ERROR_NOT_READY;
	ck_assert_int_eq(cudaStreamQuery(NULL), cudaErrorNotReady);
	ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
}
END_TEST

START_TEST(a_lost_context_is_reported_until_the_device_is_reset)
{
	double_record.synchronize_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	ck_assert_int_eq(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
	ck_assert_int_eq(cudaMalloc(NULL, 1), cudaErrorInvalidValue);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
	ck_assert_int_eq(cudaDeviceReset(), cudaSuccess);
	ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
	ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
}
END_TEST

static void *fails_elsewhere(void *unused)
{
	(void)unused;
	return cudaMalloc(NULL, 1) == cudaErrorInvalidValue && cudaPeekAtLastError() == cudaErrorInvalidValue ? &unknown
													      : NULL;
}

START_TEST(the_last_error_is_each_threads_own)
{
	pthread_t thread;
	void *result;
	pthread_create(&thread, NULL, fails_elsewhere, NULL);
	pthread_join(thread, &result);
	ck_assert_ptr_nonnull(result);
	ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
}
END_TEST

START_TEST(a_module_is_loaded_once_for_each_device)
{
	int device = -1;
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_int_eq(launch(&offset_kernel), cudaSuccess);
	ck_assert_int_eq(double_record.loads, 1);
	CUcontext first = double_record.context;
	ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
	ck_assert_int_eq(cudaGetDevice(&device), cudaSuccess);
	ck_assert_int_eq(device, 1);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_ptr_ne(double_record.context, first);
	ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_ptr_eq(double_record.context, first);
	ck_assert_int_eq(double_record.loads, 2);
	ck_assert_int_eq(cudaSetDevice(2), cudaErrorInvalidDevice);
	ck_assert_int_eq(cudaSetDevice(-1), cudaErrorInvalidDevice);
	ck_assert_int_eq(cudaGetDevice(&device), cudaSuccess);
	ck_assert_int_eq(device, 0);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDevice);
}
END_TEST

START_TEST(a_reset_device_loads_again)
{
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_int_eq(cudaDeviceReset(), cudaSuccess);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_int_eq(double_record.loads, 2);
}
END_TEST

START_TEST(launches_follow_the_context_that_the_program_sets)
{
	CUcontext own;
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	CUcontext first = double_record.context;
	ck_assert_int_eq(double_make_context(&own), CUDA_SUCCESS);
	cuCtxSetCurrent(own);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_ptr_eq(double_record.context, own);
	cuCtxSetCurrent(NULL);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_ptr_eq(double_record.context, first);
	ck_assert_int_eq(double_record.loads, 2);
	/* A handle that is wrong for another reason stays an error. */
	double_record.launch_result = CUDA_ERROR_INVALID_HANDLE;
	ck_assert_int_eq(launch(&scale), cudaErrorInvalidResourceHandle);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	free(own);
}
END_TEST

START_TEST(attributes_and_properties_are_asked_once)
{
	struct cudaDeviceProp prop;
	int value = 0;
	ck_assert_int_eq(cudaGetDeviceProperties(&prop, 1), cudaSuccess);
	ck_assert_int_eq(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1), cudaSuccess);
	int before = double_record.calls;
	ck_assert_int_eq(cudaGetDeviceProperties(&prop, 1), cudaSuccess);
	ck_assert_int_eq(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1), cudaSuccess);
	ck_assert_int_eq(double_record.calls, before);
	ck_assert_str_eq(prop.name, "double 1");
	ck_assert_uint_eq(prop.totalGlobalMem, (size_t)2 << 33);
	ck_assert_int_eq(prop.warpSize, 1000 + CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	ck_assert_uint_eq(prop.sharedMemPerBlockOptin, 1000 + CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	ck_assert_int_eq(prop.maxSurfaceCubemapLayered[1],
			 1000 + CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS);
	ck_assert_int_eq(value, prop.warpSize);
	ck_assert_int_eq(cudaGetDeviceProperties(&prop, 2), cudaErrorInvalidDevice);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDevice);
}
END_TEST

START_TEST(a_managed_variable_needs_access_by_the_host)
{
	managed = NULL;
	__cudaRegisterManagedVar(handle, &managed, NULL, "shared_counter", 0, 4, 0, 0);
	ck_assert_int_eq(__cudaInitModule(handle), 0);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorNotSupported);
	ck_assert_ptr_null(managed);
}
END_TEST

START_TEST(a_kernel_registered_twice_survives_the_first_object)
{
	void **again = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
	__cudaRegisterFunction(again, &scale, NULL, "scale_again", -1, NULL, NULL, NULL, NULL, NULL);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_str_eq(double_record.kernel, "scale");
	__cudaUnregisterFatBinary(handle);
	ck_assert_int_eq(double_record.unloads, 1);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_str_eq(double_record.kernel, "scale_again");
	ck_assert_int_eq(launch(&offset_kernel), cudaErrorInvalidDeviceFunction);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
	__cudaUnregisterFatBinary(again);
	registers();
}
END_TEST

START_TEST(many_kernels_are_all_found)
{
	enum { KERNELS = 3000 };
	static char hosts[KERNELS], names[KERNELS][16];
	void **many = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
	for (int i = 0; i < KERNELS; i++) {
		snprintf(names[i], sizeof names[i], "kernel%d", i);
		__cudaRegisterFunction(many, &hosts[i], NULL, names[i], -1, NULL, NULL, NULL, NULL, NULL);
	}
	for (int i = 0; i < KERNELS; i++) {
		ck_assert_int_eq(launch(&hosts[i]), cudaSuccess);
		ck_assert_str_eq(double_record.kernel, names[i]);
	}
	__cudaUnregisterFatBinary(many);
	for (int i = 0; i < KERNELS; i++)
		ck_assert_int_eq(launch(&hosts[i]), cudaErrorInvalidDeviceFunction);
	ck_assert_int_eq(launch(&scale), cudaSuccess);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
}
END_TEST

static void *launches_often(void *unused)
{
	enum { LAUNCHES = 1000 };
	(void)unused;
	for (int i = 0; i < LAUNCHES; i++)
		if (launch(i & 1 ? &scale : &offset_kernel) != cudaSuccess)
			return &unknown;
	return NULL;
}

START_TEST(threads_that_meet_at_first_use_load_once)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, launches_often, NULL);
	for (int i = 0; i < THREADS; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		ck_assert_ptr_null(failed);
	}
	ck_assert_int_eq(double_record.loads, 1);
	ck_assert_int_eq(double_record.launches, 4000);
}
END_TEST

START_TEST(errors_have_names_and_texts)
{
	ck_assert_str_eq(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
	ck_assert_str_eq(cudaGetErrorString(cudaSuccess), "no error");
	ck_assert_str_eq(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument");
	ck_assert_str_eq(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
	ck_assert_str_eq(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
}
END_TEST

START_TEST(what_is_not_there_says_so)
{
	int calls = double_record.calls;
	ck_assert_int_eq(cudaGraphicsUnregisterResource(NULL), cudaErrorNotSupported);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorNotSupported);
	ck_assert_int_eq(double_record.calls, calls);
	/* And what the driver lacks. */
	ck_assert_int_eq(cudaDeviceSetLimit(cudaLimitStackSize, 1024), cudaErrorNotSupported);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorNotSupported);
}
END_TEST

static Suite *runtime_suite(void)
{
	Suite *suite = suite_create("runtime calls");
	TCase *tests = tcase_create("over the double");
	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, registration_does_not_touch_the_driver);
	tcase_add_test(tests, a_launch_is_one_driver_call);
	tcase_add_test(tests, configurations_nest);
	tcase_add_test(tests, per_thread_variants_use_the_threads_own_default_stream);
	tcase_add_test(tests, each_kind_of_copy_has_its_driver_call);
	tcase_add_test(tests, symbols_are_found_and_their_bounds_kept);
	tcase_add_test(tests, a_launch_that_cannot_be_says_why);
	tcase_add_test(tests, a_module_that_finds_no_room_is_loaded_later);
	tcase_add_test(tests, a_module_with_nothing_for_the_device_is_not_offered_again);
	tcase_add_test(tests, linked_units_are_offered_before_the_linked_container);
	tcase_add_test(tests, the_last_error_stays_until_it_is_fetched);
	tcase_add_test(tests, not_ready_is_no_error);
	tcase_add_test(tests, a_lost_context_is_reported_until_the_device_is_reset);
	tcase_add_test(tests, the_last_error_is_each_threads_own);
	tcase_add_test(tests, a_module_is_loaded_once_for_each_device);
	tcase_add_test(tests, a_reset_device_loads_again);
	tcase_add_test(tests, launches_follow_the_context_that_the_program_sets);
	tcase_add_test(tests, attributes_and_properties_are_asked_once);
	tcase_add_test(tests, a_managed_variable_needs_access_by_the_host);
	tcase_add_test(tests, a_kernel_registered_twice_survives_the_first_object);
	tcase_add_test(tests, many_kernels_are_all_found);
	tcase_add_test(tests, threads_that_meet_at_first_use_load_once);
	tcase_add_test(tests, errors_have_names_and_texts);
	tcase_add_test(tests, what_is_not_there_says_so);
	suite_add_tcase(suite, tests);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(runtime_suite());
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
