/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA 12's runtime library over the software GPU: the structures and functions that differ from CUDA 13's, called as a
 * program does that is compiled with CUDA 12; and both libraries in one process.
 */
#include "test/cuda/runtime/cuda12_abi.h"

#include <check.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that a structure is followed by, to see that nothing is written there. */
enum { GUARD = 64, GUARD_BYTE = 0x5a };

static void check_guard(const unsigned char *end)
{
	for (int i = 0; i < GUARD; i++)
		ck_assert_uint_eq(end[i], GUARD_BYTE);
}

START_TEST(the_version_is_of_cuda_12)
{
	int version = 0;
	ck_assert_int_eq(cudaRuntimeGetVersion(&version), SUCCESS);
	ck_assert_int_eq(version, 12090);
}
END_TEST

static const struct member {
	size_t offset, size;
	int attribute;
	const char *name;
} members[] = {
#define MEMBER(offset, size, attribute, name) { offset, size, attribute, name },
	DEVICE_PROP_MEMBERS
#undef MEMBER
};

START_TEST(each_property_is_at_its_offset)
{
	unsigned char prop[DEVICE_PROP_BYTES + GUARD];
	unsigned nonzero = 0;
	memset(prop, GUARD_BYTE, sizeof prop);
	ck_assert_int_eq(cudaGetDeviceProperties_v2(prop, 0), SUCCESS);
	check_guard(prop + DEVICE_PROP_BYTES);
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		const struct member *member = &members[i];
		uint64_t have = 0;
		int attribute = 0;
		ck_assert_int_eq(cudaDeviceGetAttribute(&attribute, member->attribute, 0), SUCCESS);
		memcpy(&have, prop + member->offset, member->size);
		ck_assert_msg(have == (unsigned)attribute, "%s is %llu, the attribute is %d", member->name,
			      (unsigned long long)have, attribute);
		nonzero += attribute != 0;
	}
	ck_assert_uint_gt(nonzero, 60);
	size_t memory;
	memcpy(&memory, prop + DEVICE_PROP_TOTAL_MEMORY, sizeof memory);
	ck_assert(*prop && memory > 1 << 20);
	ck_assert_int_eq(cudaGetDeviceProperties_v2(prop, 99), INVALID_DEVICE);
	ck_assert_int_eq(cudaGetLastError(), INVALID_DEVICE);
}
END_TEST

START_TEST(the_old_name_fills_in_the_structure_of_cuda_11)
{
	unsigned char prop[DEVICE_PROP_BYTES], old[DEVICE_PROP_BYTES_11 + GUARD];
	int device = -1;
	memset(old, GUARD_BYTE, sizeof old);
	ck_assert_int_eq(cudaGetDeviceProperties_v2(prop, 0), SUCCESS);
	ck_assert_int_eq(cudaGetDeviceProperties(old, 0), SUCCESS);
	ck_assert_mem_eq(old, prop, DEVICE_PROP_BYTES_11);
	check_guard(old + DEVICE_PROP_BYTES_11);
	ck_assert_int_eq(cudaGetDeviceProperties(NULL, 0), INVALID_VALUE);
	ck_assert_int_eq(cudaChooseDevice(&device, prop), SUCCESS);
	ck_assert_int_eq(device, 0);
}
END_TEST

START_TEST(attributes_of_a_pointer_end_where_cuda_12_ends_them)
{
	struct {
		pointer_attributes_t attributes;
		unsigned char guard[GUARD];
	} got;
	void *memory;
	ck_assert_int_eq(cudaMalloc(&memory, 4096), SUCCESS);
	memset(&got, GUARD_BYTE, sizeof got);
	ck_assert_int_eq(cudaPointerGetAttributes(&got, memory), SUCCESS);
	ck_assert_int_eq(got.attributes.type, MEMORY_TYPE_DEVICE);
	ck_assert_int_eq(got.attributes.device, 0);
	ck_assert_ptr_eq(got.attributes.device_pointer, memory);
	check_guard(got.guard);
	ck_assert_int_eq(cudaFree(memory), SUCCESS);
}
END_TEST

static int range(int attribute, const void *memory)
{
	int value = INT_MIN;
	ck_assert_int_eq(cudaMemRangeGetAttribute(&value, sizeof value, attribute, memory, 4096), SUCCESS);
	return value;
}

START_TEST(advice_and_prefetches_name_a_device)
{
	const location_t device = { LOCATION_DEVICE, 0 }, host = { LOCATION_HOST, 0 };
	void *memory;
	ck_assert_int_eq(cudaMallocManaged(&memory, 4096, 1), SUCCESS);
	ck_assert_int_eq(cudaMemAdvise(memory, 4096, ADVISE_PREFERRED_LOCATION, 0), SUCCESS);
	ck_assert_int_eq(range(RANGE_PREFERRED_LOCATION, memory), 0);
	ck_assert_int_eq(cudaMemAdvise(memory, 4096, ADVISE_PREFERRED_LOCATION, CPU_DEVICE), SUCCESS);
	ck_assert_int_eq(range(RANGE_PREFERRED_LOCATION, memory), CPU_DEVICE);
	ck_assert_int_eq(cudaMemAdvise_v2(memory, 4096, ADVISE_PREFERRED_LOCATION, device), SUCCESS);
	ck_assert_int_eq(range(RANGE_PREFERRED_LOCATION, memory), 0);

	ck_assert_int_eq(cudaMemPrefetchAsync(memory, 4096, 0, NULL), SUCCESS);
	ck_assert_int_eq(range(RANGE_LAST_PREFETCH, memory), 0);
	ck_assert_int_eq(cudaMemPrefetchAsync_ptsz(memory, 4096, CPU_DEVICE, NULL), SUCCESS);
	ck_assert_int_eq(range(RANGE_LAST_PREFETCH, memory), CPU_DEVICE);
	ck_assert_int_eq(cudaMemPrefetchAsync(memory, 4096, 0, NULL), SUCCESS);
	ck_assert_int_eq(cudaMemPrefetchAsync_v2(memory, 4096, host, 0, NULL), SUCCESS);
	ck_assert_int_eq(range(RANGE_LAST_PREFETCH, memory), CPU_DEVICE);
	ck_assert_int_ne(cudaMemPrefetchAsync(memory, 4096, 99, NULL), SUCCESS);
	ck_assert_int_eq(cudaFree(memory), SUCCESS);
}
END_TEST

typedef int batch_call(void **to, void **from, size_t *sizes, size_t count, copy_attributes_t *attributes,
		       size_t *starts, size_t attribute_count, size_t *failed, stream_t stream);

static void copy_a_batch(batch_call *copy)
{
	int from[2] = { 41, 42 }, to[2] = { 0, 0 };
	void *device[2], *source[2] = { &from[0], &from[1] };
	size_t sizes[2] = { sizeof *from, sizeof *from }, starts[1] = { 0 }, failed = 7;
	copy_attributes_t attributes = { .order = 1 };
	stream_t stream;
	ck_assert_int_eq(cudaStreamCreate(&stream), SUCCESS);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(cudaMalloc(&device[i], 256), SUCCESS);
	ck_assert_int_eq(copy(device, source, sizes, 2, &attributes, starts, 1, &failed, stream), SUCCESS);
	ck_assert_int_eq(cudaStreamSynchronize(stream), SUCCESS);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(cudaMemcpy(&to[i], device[i], sizeof *to, 2), SUCCESS);
	ck_assert(to[0] == 41 && to[1] == 42);
	/* A batch without copies. */
	ck_assert_int_eq(copy(device, source, sizes, 0, &attributes, starts, 1, &failed, stream), INVALID_VALUE);
	ck_assert_uint_eq(failed, SIZE_MAX);
	ck_assert_int_eq(cudaGetLastError(), INVALID_VALUE);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(cudaFree(device[i]), SUCCESS);
	ck_assert_int_eq(cudaStreamDestroy(stream), SUCCESS);
}

START_TEST(a_batch_of_copies_reports_the_failed_one)
{
	copy_a_batch(cudaMemcpyBatchAsync);
	copy_a_batch(cudaMemcpyBatchAsync_ptsz);
}
END_TEST

START_TEST(graphs_have_edges_with_and_without_data)
{
	/* cudaGraphNodeParams: the type and three words, then the parameters; an empty node has none. */
	int empty[64] = { 5 };
	graph_t graph;
	node_t nodes[4], from[4], to[4];
	edge_data_t data[4];
	size_t count;
	ck_assert_int_eq(cudaGraphCreate(&graph, 0), SUCCESS);
	ck_assert_int_eq(cudaGraphAddEmptyNode(&nodes[0], graph, NULL, 0), SUCCESS);
	ck_assert_int_eq(cudaGraphAddNode(&nodes[1], graph, nodes, 1, empty), SUCCESS);
	ck_assert_int_eq(cudaGraphAddNode_v2(&nodes[2], graph, nodes, NULL, 1, empty), SUCCESS);
	ck_assert_int_eq(cudaGraphAddEmptyNode(&nodes[3], graph, NULL, 0), SUCCESS);

	ck_assert_int_eq(cudaGraphAddDependencies(graph, &nodes[2], &nodes[3], 1), SUCCESS);
	ck_assert_int_eq(cudaGraphAddDependencies_v2(graph, &nodes[1], &nodes[3], NULL, 1), SUCCESS);
	ck_assert_int_eq(cudaGraphGetEdges(graph, NULL, NULL, &count), SUCCESS);
	ck_assert_uint_eq(count, 4);
	ck_assert_int_eq(cudaGraphGetEdges(graph, from, to, &count), SUCCESS);
	ck_assert(count == 4 && from[0] == nodes[0]);
	memset(data, 1, sizeof data);
	ck_assert_int_eq(cudaGraphGetEdges_v2(graph, from, to, data, &count), SUCCESS);
	ck_assert(count == 4 && data[3].from_port == 0 && data[3].type == 0);

	count = 4;
	ck_assert_int_eq(cudaGraphNodeGetDependencies(nodes[3], from, &count), SUCCESS);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(cudaGraphNodeGetDependencies_v2(nodes[1], from, data, &count), SUCCESS);
	ck_assert(count == 1 && from[0] == nodes[0]);
	count = 4;
	ck_assert_int_eq(cudaGraphNodeGetDependentNodes(nodes[0], to, &count), SUCCESS);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(cudaGraphNodeGetDependentNodes_v2(nodes[2], to, data, &count), SUCCESS);
	ck_assert(count == 1 && to[0] == nodes[3]);

	ck_assert_int_eq(cudaGraphRemoveDependencies(graph, &nodes[2], &nodes[3], 1), SUCCESS);
	ck_assert_int_eq(cudaGraphRemoveDependencies_v2(graph, &nodes[1], &nodes[3], NULL, 1), SUCCESS);
	ck_assert_int_eq(cudaGraphGetEdges(graph, NULL, NULL, &count), SUCCESS);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(cudaGraphKernelNodeCopyAttributes(nodes[0], nodes[1]), NOT_SUPPORTED);
	ck_assert_int_eq(cudaGraphDestroy(graph), SUCCESS);
}
END_TEST

START_TEST(a_capture_is_seen_by_all_versions)
{
	graph_t graph, other = NULL;
	node_t node;
	const node_t *dependencies;
	const edge_data_t *data;
	unsigned long long first = 0, id = 1;
	size_t count = 9;
	stream_t stream;
	int status = -1;
	ck_assert_int_eq(cudaStreamCreate(&stream), SUCCESS);
	ck_assert_int_eq(cudaStreamGetCaptureInfo(stream, &status, &id), SUCCESS);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(cudaStreamBeginCapture(stream, CAPTURE_RELAXED), SUCCESS);
	ck_assert_int_eq(cudaStreamGetCaptureInfo(stream, &status, &first), SUCCESS);
	ck_assert_int_eq(status, CAPTURE_ACTIVE);
	status = -1;
	ck_assert_int_eq(cudaStreamGetCaptureInfo_ptsz(stream, &status, &id), SUCCESS);
	ck_assert(status == CAPTURE_ACTIVE && id == first);

	ck_assert_int_eq(cudaStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &dependencies, &count), SUCCESS);
	ck_assert(status == CAPTURE_ACTIVE && id == first && count == 0);
	ck_assert_int_eq(cudaGraphAddEmptyNode(&node, graph, NULL, 0), SUCCESS);
	ck_assert_int_eq(cudaStreamUpdateCaptureDependencies(stream, &node, 1, SET_DEPENDENCIES), SUCCESS);
	ck_assert_int_eq(cudaStreamGetCaptureInfo_v2(stream, &status, NULL, &other, &dependencies, &count), SUCCESS);
	ck_assert(other == graph && count == 1 && dependencies[0] == node);
	ck_assert_int_eq(cudaStreamUpdateCaptureDependencies_v2(stream, NULL, NULL, 0, SET_DEPENDENCIES), SUCCESS);
	ck_assert_int_eq(cudaStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &dependencies, &data, &count),
			 SUCCESS);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), SUCCESS);
	ck_assert_int_eq(cudaGraphDestroy(graph), SUCCESS);
	ck_assert_int_eq(cudaStreamDestroy(stream), SUCCESS);
}
END_TEST

START_TEST(both_versions_measure_time)
{
	event_t events[2];
	float one = -1, two = -2;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(cudaEventCreate(&events[i]), SUCCESS);
		ck_assert_int_eq(cudaEventRecord(events[i], NULL), SUCCESS);
	}
	ck_assert_int_eq(cudaThreadSynchronize(), SUCCESS);
	ck_assert_int_eq(cudaEventElapsedTime(&one, events[0], events[1]), SUCCESS);
	ck_assert_int_eq(cudaEventElapsedTime_v2(&two, events[0], events[1]), SUCCESS);
	ck_assert(one >= 0 && one == two);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(cudaEventDestroy(events[i]), SUCCESS);
}
END_TEST

START_TEST(descriptions_of_textures_have_the_size_of_cuda_12)
{
	enum { VIEW_FLOAT = 22 };
	const texture_desc_t texture = { .read_mode = 0 };
	const int channel[5] = { 32, 0, 0, 0, 0 };
	struct {
		linear_resource_t resource;
		unsigned char guard[GUARD];
	} made = { .resource = { .type = 2, .bits = { 32 }, .size = 1024 } }, got;
	struct {
		view_desc_t view;
		unsigned char guard[GUARD];
	} view = { .view = { .format = VIEW_FLOAT, .width = 16, .height = 8 } }, got_view;
	unsigned long long object;
	void *array;
	/* What follows the descriptions is not read: with CUDA 13's layout, it would be flags and reserved words. */
	memset(made.guard, GUARD_BYTE, sizeof made.guard);
	memset(view.guard, GUARD_BYTE, sizeof view.guard);
	ck_assert_int_eq(cudaMalloc(&made.resource.pointer, 1024), SUCCESS);
	ck_assert_int_eq(cudaCreateTextureObject(&object, &made, &texture, NULL), SUCCESS);
	memset(&got, GUARD_BYTE, sizeof got);
	ck_assert_int_eq(cudaGetTextureObjectResourceDesc(&got, object), SUCCESS);
	ck_assert(got.resource.type == 2 && got.resource.pointer == made.resource.pointer && got.resource.size == 1024);
	check_guard(got.guard);
	ck_assert_int_eq(cudaDestroyTextureObject(object), SUCCESS);
	ck_assert_int_eq(cudaFree(made.resource.pointer), SUCCESS);

	ck_assert_int_eq(cudaMallocArray(&array, channel, 16, 8, 0), SUCCESS);
	memset(&made.resource, 0, sizeof made.resource);
	made.resource.pointer = array;
	ck_assert_int_eq(cudaCreateTextureObject(&object, &made, &texture, &view), SUCCESS);
	memset(&got_view, GUARD_BYTE, sizeof got_view);
	ck_assert_int_eq(cudaGetTextureObjectResourceViewDesc(&got_view, object), SUCCESS);
	ck_assert(got_view.view.format == VIEW_FLOAT && got_view.view.width == 16 && got_view.view.height == 8);
	check_guard(got_view.guard);
	ck_assert_int_eq(cudaDestroyTextureObject(object), SUCCESS);
	ck_assert_int_eq(cudaFreeArray(array), SUCCESS);
}
END_TEST

START_TEST(names_of_the_first_versions_work)
{
	enum { HEAP_LIMIT = 2, PREFER_L1 = 2 };
	size_t value = 0, same = 1;
	int config = -1;
	double number = 0.1;
	ck_assert_int_eq(cudaThreadSetLimit(HEAP_LIMIT, 16 << 20), SUCCESS);
	ck_assert_int_eq(cudaThreadGetLimit(&value, HEAP_LIMIT), SUCCESS);
	ck_assert_int_eq(cudaDeviceGetLimit(&same, HEAP_LIMIT), SUCCESS);
	ck_assert(value == same && value >= 16 << 20);
	ck_assert_int_eq(cudaThreadSetCacheConfig(PREFER_L1), SUCCESS);
	ck_assert_int_eq(cudaThreadGetCacheConfig(&config), SUCCESS);
	ck_assert_int_ge(config, 0);
	ck_assert_int_eq(cudaSetDoubleForDevice(&number), SUCCESS);
	ck_assert_int_eq(cudaSetDoubleForHost(&number), SUCCESS);
	ck_assert(number == 0.1);
	ck_assert_int_eq(cudaThreadExit(), SUCCESS);
}
END_TEST

START_TEST(what_cannot_be_served_is_refused)
{
	ck_assert_int_eq(cudaLaunchCooperativeKernelMultiDevice(NULL, 0, 0), NOT_SUPPORTED);
	ck_assert_int_eq(cudaSignalExternalSemaphoresAsync_v2(NULL, NULL, 0, NULL), NOT_SUPPORTED);
	ck_assert_int_eq(cudaGetLastError(), NOT_SUPPORTED);
}
END_TEST

static const char ptx[] = ".version 7.0\n"
			  ".target sm_52\n"
			  ".address_size 64\n"
			  ".visible .entry twice(.param .u64 p)\n"
			  "{\n"
			  "	.reg .b32 %r<3>;\n"
			  "	.reg .b64 %rd<3>;\n"
			  "	ld.param.u64 %rd1, [p];\n"
			  "	ld.global.u32 %r1, [%rd1];\n"
			  "	add.u32 %r2, %r1, %r1;\n"
			  "	st.global.u32 [%rd1], %r2;\n"
			  "	ret;\n"
			  "}\n";

static const struct {
	uint32_t magic, version;
	const void *container, *units;
} wrapper = { 0x466243b1, 1, ptx, NULL };

/* As the host function of a kernel does that is called by <<<1, 1>>>. */
static void launch_twice(const void *host, void *memory)
{
	void *args[] = { &memory };
	dim_t grid, block;
	size_t shared;
	stream_t stream;
	ck_assert_uint_eq(__cudaPushCallConfiguration((dim_t){ 1, 1, 1 }, (dim_t){ 1, 1, 1 }, 0, NULL), 0);
	ck_assert_int_eq(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), SUCCESS);
	ck_assert_int_eq(cudaLaunchKernel(host, grid, block, args, shared, stream), SUCCESS);
}

/* Both runtimes share the device's primary context, its memory and its streams. */
START_TEST(the_runtime_of_cuda_13_works_beside)
{
	static const char host;
	const char *build = getenv("top_builddir");
	char path[PATH_MAX];
	int value = 21, version = 0;
	void *memory;
	ck_assert_ptr_nonnull(build);
	snprintf(path, sizeof path, "%s/cuda_remote/runtime/.libs/libcudart.so.13", build);
	void *other = dlopen(path, RTLD_NOW);
	ck_assert_msg(other, "%s", dlerror());
	__typeof__(&cudaMemcpy) copy_13 = (__typeof__(&cudaMemcpy))dlsym(other, "cudaMemcpy");
	__typeof__(&cudaRuntimeGetVersion) version_13 =
			(__typeof__(&cudaRuntimeGetVersion))dlsym(other, "cudaRuntimeGetVersion");
	__typeof__(&cudaFree) free_13 = (__typeof__(&cudaFree))dlsym(other, "cudaFree");
	__typeof__(&cudaThreadExit) reset_13 = (__typeof__(&cudaThreadExit))dlsym(other, "cudaDeviceReset");
	ck_assert(copy_13 && version_13 && free_13 && reset_13);

	void **handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(handle, &host, NULL, "twice", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
	ck_assert_int_eq(version_13(&version), SUCCESS);
	ck_assert_int_eq(version, 13000);
	ck_assert_int_eq(cudaRuntimeGetVersion(&version), SUCCESS);
	ck_assert_int_eq(version, 12090);
	ck_assert_int_eq(cudaMalloc(&memory, 64), SUCCESS);
	ck_assert_int_eq(copy_13(memory, &value, sizeof value, 1), SUCCESS);
	launch_twice(&host, memory);
	value = 0;
	ck_assert_int_eq(copy_13(&value, memory, sizeof value, 2), SUCCESS);
	ck_assert_int_eq(value, 42);
	ck_assert_int_eq(free_13(memory), SUCCESS);

	/* A reset by the other runtime destroys the context of both: this one says so until it is told of the reset. */
	ck_assert_int_eq(reset_13(), SUCCESS);
	ck_assert_int_eq(cudaMalloc(&memory, 64), CONTEXT_IS_DESTROYED);
	ck_assert_int_eq(cudaThreadExit(), SUCCESS);
	ck_assert_int_eq(cudaMalloc(&memory, 64), SUCCESS);
	value = 4;
	ck_assert_int_eq(cudaMemcpy(memory, &value, sizeof value, 1), SUCCESS);
	launch_twice(&host, memory);
	ck_assert_int_eq(copy_13(&value, memory, sizeof value, 2), SUCCESS);
	ck_assert_int_eq(value, 8);
	__cudaUnregisterFatBinary(handle);
	ck_assert_int_eq(dlclose(other), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda12_calls");
	TCase *tests = tcase_create("calls");
	tcase_add_test(tests, the_version_is_of_cuda_12);
	tcase_add_test(tests, each_property_is_at_its_offset);
	tcase_add_test(tests, the_old_name_fills_in_the_structure_of_cuda_11);
	tcase_add_test(tests, attributes_of_a_pointer_end_where_cuda_12_ends_them);
	tcase_add_test(tests, advice_and_prefetches_name_a_device);
	tcase_add_test(tests, a_batch_of_copies_reports_the_failed_one);
	tcase_add_test(tests, graphs_have_edges_with_and_without_data);
	tcase_add_test(tests, a_capture_is_seen_by_all_versions);
	tcase_add_test(tests, both_versions_measure_time);
	tcase_add_test(tests, descriptions_of_textures_have_the_size_of_cuda_12);
	tcase_add_test(tests, names_of_the_first_versions_work);
	tcase_add_test(tests, what_cannot_be_served_is_refused);
	tcase_add_test(tests, the_runtime_of_cuda_13_works_beside);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
