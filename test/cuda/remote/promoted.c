/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned memory that the program did not ask for as mapped, on a server of another host: it becomes a mirror when the device
 * first uses it. "promoted registered": only memory of cuMemHostRegister, which a server of this host does not map either.
 * "promoted structure" and "promoted pointer": a kernel finds an address that it cannot use. "promoted in-vain": a kernel waits
 * for memory for ever. "promoted two-servers": devices 0 and 1 are on two other hosts.
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { BYTES = 1 << 20, WORDS = BYTES / 4, THREADS = 4, ROUNDS = 50 };

static CUcontext context;
static CUstream stream, other;

static CUdeviceptr at(const void *memory)
{
	return (CUdeviceptr)(uintptr_t)memory;
}

static uint32_t *pinned(size_t bytes)
{
	void *memory;
	OK(cuMemAllocHost(&memory, bytes));
	memset(memory, 0, bytes);
	return memory;
}

/* A word of the device that holds streams until it is set. */
static CUdeviceptr new_flag(void)
{
	CUdeviceptr flag;
	OK(cuMemAlloc(&flag, 16)); /* and room for a pointer */
	OK(cuMemsetD32Async(flag, 0, 1, other));
	OK(cuStreamSynchronize(other));
	return flag;
}

static void *set_flag(void *flag)
{
	OK(cuCtxSetCurrent(context));
	OK(cuMemsetD32Async(*(const CUdeviceptr *)flag, 1, 1, other));
	OK(cuStreamSynchronize(other));
	return NULL;
}

static bool is_mapped(const void *memory)
{
	bool mapped = false;
	OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, at(memory)));
	return mapped;
}

static void increase(CUstream in, const void *word, uint32_t by)
{
	CUdeviceptr there = at(word);
	OK(launch("increase", in, &there, &by));
}

/* What the host has written before the launch reaches the kernel, and what the kernel writes reaches the host. */
static void kernel_reads_and_writes(uint32_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		words[i] = (uint32_t)i;
	increase(stream, &words[0], 5);
	increase(stream, &words[count / 2], 6);
	increase(stream, &words[count - 1], 7);
	OK(cuStreamSynchronize(stream));
	CHECK(words[0] == 5 && words[1] == 1 && words[count / 2] == count / 2 + 6 && words[count - 1] == count + 6);
	words[1] = 100;
	increase(stream, &words[1], 1);
	OK(cuStreamSynchronize(stream));
	CHECK(words[1] == 101 && words[0] == 5);
}

/* The first allocation looks for addresses that the worker has free. It does not wait for the device. */
static void allocated_while_held(void)
{
	CUdeviceptr flag = new_flag();
	hold(stream, flag);
	uint32_t *words = pinned(4096);
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	set_flag(&flag);
	OK(cuStreamSynchronize(stream));
	OK(cuMemFree(flag));
	OK(cuMemFreeHost(words));
}

static void allocated(void)
{
	static const size_t sizes[] = { 8, 4096, 5000, 1 << 20, 5 << 20 };
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		uint32_t *words = pinned(sizes[i] < 16 ? 16 : sizes[i]);
		kernel_reads_and_writes(words, sizes[i] < 16 ? 4 : sizes[i] / 4);
		OK(cuMemFreeHost(words));
	}
}

/* The pages of registered memory hold other memory of the program, which stays as it is. */
static void registered(void)
{
	uint8_t *area = malloc(3 * BYTES);
	CHECK(area);
	memset(area, 0x77, 3 * BYTES);
	uint32_t *words = (uint32_t *)(area + BYTES + 132);
	OK(cuMemHostRegister(words, BYTES, 0));
	kernel_reads_and_writes(words, WORDS);
	CHECK(is_mapped(words));
	/* What a kernel has written is there when the memory is unregistered. */
	words[9] = 1;
	increase(stream, &words[9], 1);
	OK(cuMemHostUnregister(words));
	CHECK(words[9] == 2);
	for (int i = 0; i < 132; i++)
		CHECK(area[BYTES + i] == 0x77 && area[2 * BYTES + 132 + i] == 0x77);
	/* It can be registered again, with other contents and another size. */
	memset(words, 1, BYTES);
	OK(cuMemHostRegister(words, BYTES / 2, CU_MEMHOSTREGISTER_DEVICEMAP));
	CUdeviceptr device;
	OK(cuMemHostGetDevicePointer(&device, words, 0));
	CHECK(device == at(words));
	kernel_reads_and_writes(words, WORDS / 2);
	CHECK(words[WORDS / 2] == 0x01010101);
	OK(cuMemHostUnregister(words));
	free(area);
}

/* An asynchronous copy to the memory began before the launch that has its address. The kernel comes after it. */
static void copy_under_way_to_host(void)
{
	uint32_t *words = pinned(BYTES);
	CUdeviceptr device, flag = new_flag();
	pthread_t thread;
	OK(cuMemAlloc(&device, BYTES));
	OK(cuMemsetD32Async(device, 40, WORDS, stream));
	hold(stream, flag);
	OK(cuMemcpyDtoHAsync(words, device, BYTES, stream));
	CHECK(!pthread_create(&thread, NULL, set_flag, &flag));
	increase(stream, &words[0], 2);
	increase(stream, &words[WORDS - 1], 3);
	OK(cuStreamSynchronize(stream));
	CHECK(words[0] == 42 && words[1] == 40 && words[WORDS - 1] == 43);
	pthread_join(thread, NULL);
	OK(cuMemFree(device));
	OK(cuMemFree(flag));
	OK(cuMemFreeHost(words));
}

/* The same from the memory: the device gets what it held before the kernel. */
static void copy_under_way_from_host(void)
{
	uint32_t *words = pinned(BYTES), *check = malloc(BYTES);
	CUdeviceptr device, flag = new_flag(), there = at(words);
	uint32_t bytes = BYTES;
	pthread_t thread;
	CHECK(check);
	for (int i = 0; i < WORDS; i++)
		words[i] = 11;
	OK(cuMemAlloc(&device, BYTES));
	hold(stream, flag);
	OK(cuMemcpyHtoDAsync(device, words, BYTES, stream));
	CHECK(!pthread_create(&thread, NULL, set_flag, &flag));
	OK(launch("write", stream, &there, &bytes));
	OK(cuStreamSynchronize(stream));
	pthread_join(thread, NULL);
	OK(cuMemcpyDtoH(check, device, BYTES));
	for (int i = 0; i < WORDS; i++)
		CHECK(check[i] == 11 && words[i] == 0xA5A5A5A5);
	free(check);
	OK(cuMemFree(device));
	OK(cuMemFree(flag));
	OK(cuMemFreeHost(words));
}

/* The kernel finds the pointer in device memory. The copy of the pointer has shown that the device uses the memory. */
static void pointer_in_device_memory(void)
{
	uint32_t *words = pinned(BYTES), *more = pinned(4096), by = 3;
	CUdeviceptr device, first = at(&words[WORDS - 1]), second = at(&more[1]);
	OK(cuMemAlloc(&device, 16));
	words[WORDS - 1] = 1;
	OK(cuMemcpyHtoD(device, &first, 8));
	OK(launch("increase_at", stream, &device, &by));
	OK(cuStreamSynchronize(stream));
	CHECK(words[WORDS - 1] == 4 && !words[0]);
	more[1] = 5;
	OK(cuMemcpyHtoDAsync(device, &second, 8, stream));
	OK(launch("increase_at", stream, &device, &by));
	OK(cuStreamSynchronize(stream));
	CHECK(more[1] == 8 && words[WORDS - 1] == 4);
	OK(cuMemFree(device));
	OK(cuMemFreeHost(more));
	OK(cuMemFreeHost(words));
}

/* While a stream is held, and with it a copy of the memory, an asynchronous copy of a pointer to the memory does not wait. Later the
 * pointer can be copied again. */
static void pointer_beside_held_copy(void)
{
	uint32_t *words = pinned(BYTES), by = 3;
	CUdeviceptr device, flag = new_flag(), first = at(&words[1]);
	OK(cuMemAlloc(&device, BYTES));
	OK(cuMemsetD32Async(device, 40, WORDS, other));
	OK(cuStreamSynchronize(other));
	hold(stream, flag);
	OK(cuMemcpyDtoHAsync(words, device, BYTES, stream));
	OK(cuMemcpyHtoDAsync(flag + 8, &first, 8, other));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	set_flag(&flag);
	OK(cuStreamSynchronize(stream));
	CHECK(words[0] == 40 && words[1] == 40);
	OK(cuMemcpyHtoDAsync(device, &first, 8, stream));
	OK(launch("increase_at", stream, &device, &by));
	OK(cuStreamSynchronize(stream));
	CHECK(words[1] == 43 && words[0] == 40);
	OK(cuMemFree(device));
	OK(cuMemFree(flag));
	OK(cuMemFreeHost(words));
}

/* A copy of more bytes than a pointer has is not searched for pointers. The kernel fails, and a line says what the user can do. */
static void pointer_is_refused(size_t bytes)
{
	uint32_t *words = pinned(4096), by = 3;
	CUdeviceptr device, structure[2] = { 0, at(words) }, second;
	OK(cuMemAlloc(&device, sizeof structure));
	OK(cuMemcpyHtoD(device + sizeof structure - bytes, (uint8_t *)structure + sizeof structure - bytes, bytes));
	second = device + 8;
	OK(launch("increase_at", stream, &second, &by));
	EXPECT(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void *increase_first(void *words)
{
	OK(cuCtxSetCurrent(context));
	increase(other, words, 1);
	return NULL;
}

static void *set_flag_later(void *flag)
{
	usleep(200000);
	return set_flag(flag);
}

/* Another thread's launch makes the memory a mirror between two copies of a stream. The second one comes after the first. */
static void copy_under_way_of_another_thread(void)
{
	uint32_t *words = pinned(BYTES), check = 0;
	CUdeviceptr device, flag = new_flag();
	pthread_t launches, sets;
	OK(cuMemAlloc(&device, 8));
	OK(cuMemsetD32Async(device, 40, 1, stream));
	hold(stream, flag);
	OK(cuMemcpyDtoHAsync(&words[WORDS - 1], device, 4, stream));
	CHECK(!pthread_create(&launches, NULL, increase_first, words));
	usleep(200000); /* enough for the launch; if it comes later, there is nothing to see */
	CHECK(!pthread_create(&sets, NULL, set_flag_later, &flag));
	OK(cuMemcpyHtoDAsync(device + 4, &words[WORDS - 1], 4, stream));
	OK(cuStreamSynchronize(stream));
	pthread_join(launches, NULL);
	pthread_join(sets, NULL);
	OK(cuMemcpyDtoH(&check, device + 4, 4));
	CHECK(check == 40);
	OK(cuCtxSynchronize());
	CHECK(words[0] == 1 && words[WORDS - 1] == 40);
	OK(cuMemFree(device));
	OK(cuMemFree(flag));
	OK(cuMemFreeHost(words));
}

/* Copies of memory that became a mirror are in the order of the stream, whatever the call. */
static void copies_after(void)
{
	uint32_t *words = pinned(BYTES), *plain = malloc(BYTES), one = 1;
	CUdeviceptr device;
	CHECK(plain);
	OK(cuMemAlloc(&device, BYTES));
	increase(stream, &words[3], 4);
	for (uint32_t round = 1; round <= 5; round++) {
		OK(cuMemcpyDtoDAsync(device, at(words), BYTES, stream));
		OK(cuMemcpyHtoDAsync(device, &one, 4, stream));
		OK(cuMemcpyDtoHAsync(words, device, BYTES, stream));
		increase(stream, &words[3], 1);
		OK(cuStreamSynchronize(stream));
		CHECK(words[0] == 1 && words[3] == 4 + round);
		words[5] = round;
		OK(cuMemcpyHtoDAsync(device, words, BYTES, stream));
		OK(cuStreamSynchronize(stream));
		OK(cuMemcpyDtoH(plain, device, BYTES));
		CHECK(plain[5] == round && plain[3] == 4 + round);
	}
	free(plain);
	OK(cuMemFree(device));
	OK(cuMemFreeHost(words));
}

static void fills(void)
{
	uint8_t *bytes = (uint8_t *)pinned(4096);
	OK(cuMemsetD8(at(bytes), 1, 100));
	CHECK(bytes[0] == 1 && bytes[99] == 1 && !bytes[100]);
	OK(cuMemFreeHost(bytes));
	bytes = (uint8_t *)pinned(4096);
	OK(cuMemsetD16Async(at(bytes + 2), 0x0203, 2, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(!bytes[1] && bytes[2] == 3 && bytes[3] == 2 && bytes[4] == 3 && bytes[5] == 2 && !bytes[6]);
	OK(cuMemFreeHost(bytes));
	bytes = (uint8_t *)pinned(4096);
	OK(cuMemsetD32Async(at(bytes), 0x04040404, 4, stream));
	OK(cuMemsetD2D8Async(at(bytes + 1), 8, 5, 2, 2, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(bytes[0] == 4 && bytes[1] == 5 && bytes[2] == 5 && bytes[3] == 4 && bytes[9] == 5 && bytes[15] == 4 && !bytes[16]);
	OK(cuMemsetD2D16(at(bytes + 32), 8, 0x0606, 1, 2));
	OK(cuMemsetD2D32(at(bytes + 64), 16, 0x07070707, 1, 2));
	CHECK(bytes[32] == 6 && bytes[33] == 6 && !bytes[34] && bytes[40] == 6 && bytes[64] == 7 && bytes[83] == 7 && !bytes[84]);
	EXPECT(cuMemsetD8(at(bytes), 1, 4097), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeHost(bytes));
}

/* Launches of a graph that was made before the memory became a mirror, among kernels that use it. */
static void graph_from_before(void)
{
	uint32_t *words = pinned(BYTES);
	CUdeviceptr device;
	CUgraph graph;
	CUgraphExec exec;
	OK(cuMemAlloc(&device, BYTES));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(cuMemcpyHtoDAsync(device, words, BYTES, stream));
	append(stream, device, 6);
	OK(cuMemcpyDtoHAsync(words, device, BYTES, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiate(&exec, graph, 0));
	for (uint32_t round = 1; round <= 3; round++) {
		OK(cuGraphLaunch(exec, stream));
		increase(stream, &words[100], 1);
		OK(cuGraphLaunch(exec, stream));
		increase(stream, &words[100], 1);
		OK(cuStreamSynchronize(stream));
		CHECK(words[0] == 2 * round && words[2 * round] == 6 && words[100] == 2 * round);
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(device));
	OK(cuMemFreeHost(words));
}

/* Kernels of a graph use the memory, and a fill does. */
static void in_graph(void)
{
	uint32_t *words = pinned(BYTES), *filled = pinned(4096);
	CUdeviceptr device;
	CUgraph graph;
	CUgraphExec exec;
	OK(cuMemAlloc(&device, BYTES));
	OK(cuMemsetD32Async(device, 20, WORDS, stream));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(cuMemcpyDtoHAsync(words, device, BYTES, stream));
	increase(stream, &words[7], 1);
	OK(cuMemsetD32Async(at(filled), 9, 4, stream));
	increase(stream, &filled[1], 1);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiate(&exec, graph, 0));
	for (uint32_t round = 0; round < 3; round++) {
		words[7] = filled[1] = 0;
		OK(cuGraphLaunch(exec, stream));
		OK(cuStreamSynchronize(stream));
		CHECK(words[7] == 21 && words[8] == 20 && filled[0] == 9 && filled[1] == 10 && !filled[4]);
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(device));
	OK(cuMemFreeHost(filled));
	OK(cuMemFreeHost(words));
}

/* A stream writes a word of pinned memory. The host sees it without a call that waits. */
static void written_by_stream(void)
{
	uint32_t *words = pinned(4096);
	CUdeviceptr flag = new_flag();
	increase(stream, &words[4], 3);
	hold(stream, flag);
	OK(cuStreamWriteValue32(stream, at(&words[0]), 17, 0));
	OK(cuStreamWriteValue64(stream, at(&words[2]), 18ull << 32 | 19, 0));
	increase(stream, &words[0], 1);
	CHECK(!__atomic_load_n(&words[0], __ATOMIC_ACQUIRE));
	set_flag(&flag);
	while (__atomic_load_n(&words[3], __ATOMIC_ACQUIRE) != 18)
		usleep(100);
	OK(cuStreamSynchronize(stream));
	CHECK(words[0] == 18 && words[2] == 19 && words[4] == 3);
	CUstreamBatchMemOpParams list[2] = {
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = flag, .value = 5 } },
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = at(&words[5]), .value = 6 } },
	};
	OK(cuStreamBatchMemOp(stream, 2, list, 0));
	OK(cuStreamSynchronize(stream));
	CHECK(words[5] == 6);
	OK(cuMemcpyDtoH(&words[6], flag, 4));
	CHECK(words[6] == 5);
	EXPECT(cuStreamWriteValue32(stream, at(words) + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWriteValue32(stream, at(words) + 4096, 1, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamWaitValue32(stream, at(words), 1, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemFree(flag));
	OK(cuMemFreeHost(words));
}

static void attributes(void)
{
	uint32_t *words = pinned(4096);
	CUdeviceptr device;
	unsigned flags;
	for (int round = 0; round < 2; round++) {
		CHECK(is_mapped(words));
		OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at(words + 1)));
		CHECK(device == at(words + 1));
		OK(cuMemHostGetFlags(&flags, words));
		CHECK(flags == CU_MEMHOSTALLOC_DEVICEMAP);
		increase(stream, words, 1);
		OK(cuStreamSynchronize(stream));
	}
	OK(cuMemHostGetDevicePointer(&device, words, 0));
	CHECK(device == at(words) && words[0] == 2);
	OK(cuMemFreeHost(words));
}

static uint32_t *shared;

static void *use(void *argument)
{
	uint32_t *mine = shared + *(const int *)argument * 32;
	CUstream own;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		mine[1] = round;
		increase(own, &mine[0], 1);
		uint32_t *private = pinned(4096);
		increase(own, &private[round], round);
		OK(cuStreamSynchronize(own));
		CHECK(mine[0] == round && mine[1] == round && private[round] == round);
		OK(cuMemFreeHost(private));
	}
	OK(cuStreamDestroy(own));
	return NULL;
}

/* Threads that launch kernels on the same memory at the same time, and on memory of their own. */
static void threads(void)
{
	pthread_t thread[THREADS];
	int number[THREADS];
	shared = pinned(4096);
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		CHECK(!pthread_create(&thread[i], NULL, use, &number[i]));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	OK(cuMemFreeHost(shared));
}

/* A kernel waits for a word that the host sets before it waits for the kernel. What the host wrote before is there too. */
static void kernel_waits_for_host(void)
{
	uint32_t *flag = pinned(64), *words = pinned(4096), *wide = pinned(64);
	for (uint32_t round = 0; round < 20; round++) {
		__atomic_store_n(flag, 0, __ATOMIC_RELEASE);
		words[0] = round;
		hold(stream, at(flag));
		increase(stream, &words[0], 1);
		EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
		__atomic_store_n(flag, 0x01010100u << round % 8, __ATOMIC_RELEASE);
		OK(cuStreamSynchronize(stream));
		CHECK(words[0] == round + 1);
	}
	CUdeviceptr there = at(wide);
	uint32_t wanted = 0x01000100;
	OK(launch("meet", stream, &there, &wanted)); /* adds 1, and waits for a value that differs from 0 in two bytes */
	__atomic_store_n(wide, wanted, __ATOMIC_RELEASE);
	OK(cuCtxSynchronize());
	OK(cuMemFreeHost(wide));
	OK(cuMemFreeHost(words));
	OK(cuMemFreeHost(flag));
}

/* The host changes two words, and the kernel waits for one of them: a line says that it does not end. The process is killed. */
static void kernel_waits_in_vain(void)
{
	uint32_t *words = pinned(4096);
	hold(stream, at(words));
	words[100] = 1;
	words[0] = 1;
	cuStreamSynchronize(stream);
}

/* The memory is not the context's. */
static void after_reset(void)
{
	uint32_t *words = pinned(4096), value = 9;
	CUdeviceptr there = at(words);
	CUmodule module;
	CUfunction again;
	increase(stream, words, 1);
	OK(cuStreamSynchronize(stream));
	OK(cuDevicePrimaryCtxReset(0));
	context = start();
	OK(cuModuleLoadData(&module, test_program("double\nincrease\n")));
	OK(cuModuleGetFunction(&again, module, "increase"));
	void *parameters[] = { &there, &value };
	words[0] += 10;
	OK(cuLaunchKernel(again, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
	CHECK(words[0] == 20);
	OK(cuMemFreeHost(words));
}

static void use_device(int device, const char *name, CUcontext *its, CUfunction *function)
{
	CUmodule module;
	OK(cuDevicePrimaryCtxRetain(its, device));
	OK(cuCtxSetCurrent(*its));
	OK(cuModuleLoadData(&module, test_program("double\nincrease write\n")));
	OK(cuModuleGetFunction(function, module, name));
}

struct seen {
	uint32_t *words, value;
};

/* A host function: looks at the word that a kernel of the first server has changed, and changes the next one. */
static void CUDA_CB look_and_change(void *argument)
{
	struct seen *seen = argument;
	seen->value = seen->words[1];
	seen->words[2] = 50;
}

/* A stream of the second server waits for the first one's kernel, and calls a host function. The first one's next kernel waits for
 * that. */
static void host_function_between(CUcontext *contexts, CUfunction increases, CUstream second, CUevent done, uint32_t *words)
{
	CUdeviceptr there = at(&words[1]), next = at(&words[2]);
	uint32_t value = 3, before = words[1];
	void *parameters[] = { &there, &value }, *more[] = { &next, &value };
	struct seen seen = { words, 0 };
	CUevent called;
	OK(cuCtxSetCurrent(contexts[1]));
	OK(cuEventCreate(&called, CU_EVENT_DISABLE_TIMING));
	OK(cuCtxSetCurrent(contexts[0]));
	OK(cuLaunchKernel(increases, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuEventRecord(done, NULL));
	OK(cuCtxSetCurrent(contexts[1]));
	OK(cuStreamWaitEvent(second, done, 0));
	OK(cuLaunchHostFunc(second, look_and_change, &seen));
	OK(cuEventRecord(called, second));
	OK(cuCtxSetCurrent(contexts[0]));
	OK(cuStreamWaitEvent(NULL, called, 0));
	OK(cuLaunchKernel(increases, 1, 1, 1, 1, 1, 1, 0, NULL, more, NULL));
	OK(cuCtxSynchronize());
	CHECK(seen.value == before + 3 && words[2] == 53);
	OK(cuEventDestroy(called));
}

/* The first server's kernels use the memory. The other one copies from it and to it, in the order of its streams. */
static void two_servers(void)
{
	CUcontext contexts[2];
	CUfunction functions[2];
	CUdeviceptr device, first;
	CUstream second;
	CUevent done;
	OK(cuInit(0));
	use_device(0, "increase", &contexts[0], &functions[0]);
	use_device(1, "write", &contexts[1], &functions[1]); /* whose double checks addresses */
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, BYTES));
	OK(cuCtxSetCurrent(contexts[0]));
	OK(cuMemAlloc(&first, BYTES));
	OK(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
	uint32_t *words = pinned(BYTES), *plain = malloc(BYTES), value = 3;
	CUdeviceptr there = at(&words[1]);
	void *parameters[] = { &there, &value };
	CHECK(plain);
	for (uint32_t round = 1; round <= 5; round++) {
		words[0] = round;
		OK(cuCtxSetCurrent(contexts[0]));
		OK(cuLaunchKernel(functions[0], 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
		OK(cuEventRecord(done, NULL));
		OK(cuCtxSetCurrent(contexts[1]));
		OK(cuStreamWaitEvent(second, done, 0));
		OK(cuMemcpyHtoDAsync(device, words, BYTES, second));
		OK(cuStreamSynchronize(second));
		OK(cuMemcpyDtoH(plain, device, BYTES));
		CHECK(plain[0] == round && plain[1] == 3 * round);
		OK(cuMemsetD32Async(device, 100 + round, 1, second));
		OK(cuMemcpyDtoHAsync(words, device, BYTES, second));
		OK(cuStreamSynchronize(second));
		CHECK(words[0] == 100 + round && words[1] == 3 * round);
		OK(cuCtxSetCurrent(contexts[0]));
		OK(cuMemcpyHtoD(first, words, BYTES));
		OK(cuMemcpyDtoH(plain, first, BYTES));
		CHECK(plain[0] == 100 + round && plain[1] == 3 * round);
	}
	host_function_between(contexts, functions[0], second, done, words);
	/* The second server's kernels cannot use it: a clear error. */
	OK(cuCtxSetCurrent(contexts[1]));
	OK(cuLaunchKernel(functions[1], 1, 1, 1, 1, 1, 1, 0, second, parameters, NULL));
	EXPECT(cuStreamSynchronize(second), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuCtxSetCurrent(contexts[0]));
	CHECK(words[1] == 18);
	OK(cuMemFreeHost(words));
	free(plain);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "two-servers")) {
		two_servers();
		return 0;
	}
	context = start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	kernel("wait"); /* loaded before a stream is held */
	if (argc > 1 && (!strcmp(argv[1], "structure") || !strcmp(argv[1], "pointer"))) {
		pointer_is_refused(strcmp(argv[1], "pointer") ? 2 * sizeof(CUdeviceptr) : sizeof(CUdeviceptr));
		return 0;
	}
	if (argc == 1)
		allocated_while_held();
	registered();
	if (argc > 1 && !strcmp(argv[1], "registered"))
		return 0;
	if (argc > 1 && !strcmp(argv[1], "in-vain"))
		kernel_waits_in_vain();
	allocated();
	pointer_in_device_memory();
	pointer_beside_held_copy();
	copy_under_way_to_host();
	copy_under_way_from_host();
	copy_under_way_of_another_thread();
	copies_after();
	fills();
	graph_from_before();
	in_graph();
	written_by_stream();
	attributes();
	kernel_waits_for_host();
	threads();
	after_reset();
	return 0;
}
