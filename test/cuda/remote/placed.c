/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory whose addresses the client chooses, on the software GPU.
 *	placed one      one server: limits, wrong frees, reuse, threads
 *	placed driver   the same, if the server lets the driver choose
 *	placed two      two servers: no address occurs twice; kernels follow pointers on both
 *	placed endless  prints a line, then allocates and frees until it is killed
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>

#define PIECES 200
#define THREADS 4
#define ROUNDS 300

/* chase: follows count pointers from start and stores where it got. slow: counts to turns, then stores 1 at to. */
static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry chase(.param .u64 start, .param .u32 count, .param .u64 to)\n{\n"
	".reg .u64 %a, %t;\n.reg .u32 %n;\n.reg .pred %p;\n"
	"ld.param.u64 %a, [start];\nld.param.u32 %n, [count];\nld.param.u64 %t, [to];\n"
	"again:\nld.global.u64 %a, [%a];\nsub.u32 %n, %n, 1;\nsetp.ne.u32 %p, %n, 0;\n@%p bra again;\n"
	"st.global.u64 [%t], %a;\nret;\n}\n"
	".visible .entry slow(.param .u64 to, .param .u32 turns)\n{\n"
	".reg .u64 %t;\n.reg .u32 %n, %one;\n.reg .pred %p;\n"
	"ld.param.u64 %t, [to];\nld.param.u32 %n, [turns];\n"
	"again:\nsub.u32 %n, %n, 1;\nsetp.ne.u32 %p, %n, 0;\n@%p bra again;\n"
	"mov.u32 %one, 1;\nst.global.u32 [%t], %one;\nret;\n}\n";

static bool by_driver; /* the driver chooses the addresses */

static size_t free_bytes(void)
{
	size_t available, total;
	OK(cuMemGetInfo(&available, &total));
	return available;
}

/* ---- limits ---- */

/* The client answers at the call, as soon as the memory that cuMemGetInfo tells is used up, and not before. */
static void out_of_memory_comes_at_the_call(void)
{
	enum { STEP = 96 << 20, MAX = 64 };
	CUdeviceptr piece[MAX], last, none;
	size_t left = free_bytes(), before = left;
	int n = 0;
	EXPECT(cuMemAlloc(&none, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(cuMemAlloc(&none, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	for (; left >= STEP && n < MAX; left -= STEP) {
		OK(cuMemAlloc(&piece[n++], STEP));
		CHECK(free_bytes() == left - STEP);
	}
	EXPECT(cuMemAlloc(&none, left + 512), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc(&last, left));
	CHECK(free_bytes() == 0);
	EXPECT(cuMemAlloc(&none, 1), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(cuMemAlloc(&none, 1), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree(piece[0]));
	OK(cuMemAlloc(&piece[0], STEP));
	EXPECT(cuMemAlloc(&none, 1), CUDA_ERROR_OUT_OF_MEMORY);
	while (n)
		OK(cuMemFree(piece[--n]));
	OK(cuMemFree(last));
	CHECK(free_bytes() == before);
}

/* What the client has in reserve does not keep other kinds of allocations from the device's last bytes. */
static void the_budget_does_not_hide_memory(void)
{
	CUdeviceptr small, rest;
	OK(cuMemAlloc(&small, 512)); /* the client has a budget now */
	size_t page = 2 << 20, left = free_bytes() / page * page;
	OK(cuMemAllocAsync(&rest, left - 8 * page, NULL));
	CHECK(free_bytes() <= 9 * page);
	OK(cuMemFreeAsync(rest, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemFree(small));
}

static void a_wrong_free_is_refused_at_the_call(void)
{
	CUdeviceptr memory, other;
	OK(cuMemAlloc(&memory, 4096));
	OK(cuMemAlloc(&other, 4096));
	EXPECT(cuMemFree(memory + 512), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFree(memory - 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFree((CUdeviceptr)(uintptr_t)&memory), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(memory));
	EXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD8(memory, 0, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(0));
	OK(cuMemFree(other));
}

/* ---- order ---- */

static void a_free_waits_for_the_work(CUfunction slow)
{
	CUdeviceptr memory, other, mark;
	CUstream stream;
	uint32_t turns = 200000, value = 0;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&mark, 4));
	OK(cuMemsetD32(mark, 0, 1));
	OK(cuCtxSynchronize());
	for (int i = 0; i < 3; i++) {
		OK(cuMemAlloc(&memory, 3 << 20));
		OK(cuMemAlloc(&other, 512));
		void *parameters[] = { &memory, &turns };
		OK(cuLaunchKernel(slow, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
		OK(cuMemFree(memory));
		OK(cuStreamQuery(stream)); /* CUDA_ERROR_NOT_READY: the free has not waited */
		OK(cuMemFree(other));
	}
	OK(cuMemcpyDtoH(&value, mark, 4));
	CHECK(value == 0);
	OK(cuMemFree(mark));
	OK(cuStreamDestroy(stream));
}

/* The address of freed memory is used again, but not while a stream still has to free it. */
static void addresses_are_reused_when_they_are_free(CUfunction slow)
{
	CUdeviceptr memory, again, later[PIECES];
	CUstream stream;
	uint32_t turns = 200000, value;
	size_t before = free_bytes();
	OK(cuMemAlloc(&memory, 5000));
	OK(cuMemFree(memory));
	OK(cuMemAlloc(&again, 5000));
	CHECK(by_driver || again == memory);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	void *parameters[] = { &memory, &turns };
	OK(cuLaunchKernel(slow, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
	OK(cuMemFreeAsync(memory, stream));
	for (int i = 0; i < PIECES; i++) {
		OK(cuMemAlloc(&later[i], 5000));
		CHECK(by_driver || later[i] != memory); /* the driver knows when the stream has freed it */
		OK(cuMemsetD32(later[i], 7, 1250));
	}
	OK(cuCtxSynchronize());
	for (int i = 0; i < PIECES; i++) {
		OK(cuMemcpyDtoH(&value, later[i], 4));
		CHECK(value == 7);
		OK(cuMemFree(later[i]));
	}
	OK(cuStreamDestroy(stream));
	CHECK(free_bytes() == before);
}

static void a_reset_ends_the_allocations(void)
{
	CUdeviceptr memory[PIECES];
	size_t before = free_bytes();
	for (int i = 0; i < PIECES; i++)
		OK(cuMemAlloc(&memory[i], (size_t)(i % 7 ? 1000 * i + 1 : 3 << 20)));
	OK(cuDevicePrimaryCtxReset(0));
	EXPECT(cuMemFree(memory[5]), CUDA_ERROR_INVALID_VALUE);
	CHECK(free_bytes() >= before);
	OK(cuMemAlloc(&memory[0], before / 2));
	OK(cuMemFree(memory[0]));
}

/* ---- threads ---- */

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Allocates pieces of all sizes until the device is full, and frees some, again and again. What the client allows, the server
 * has memory for: cuCtxSynchronize would return the error of an allocation that has failed there. */
static void a_full_device_finds_memory_for_each_size(void)
{
	enum { PLACES = 160, TURNS = 3 };
	CUdeviceptr at[PLACES] = { 0 };
	size_t bytes[PLACES], before = free_bytes();
	uint32_t state = 7, read, refused = 0;
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		for (uint32_t i = 0; i < PLACES; i++) {
			bytes[i] = at[i] ? bytes[i] : 4 + 12 * (size_t)(draw(&state) % (draw(&state) % 3 ? 16u << 20 : 2000));
			if (!at[i] && cuMemAlloc(&at[i], bytes[i]) != CUDA_SUCCESS) {
				refused++;
				continue;
			}
			OK(cuMemsetD32(at[i], 1000 * turn + i, 1));
			OK(cuMemsetD32(at[i] + bytes[i] - 4, 1000 * turn + i, 1));
		}
		OK(cuCtxSynchronize());
		for (uint32_t i = 0; i < PLACES; i++) {
			if (!at[i])
				continue;
			OK(cuMemcpyDtoH(&read, at[i], 4));
			CHECK(read == 1000 * turn + i);
			OK(cuMemcpyDtoH(&read, at[i] + bytes[i] - 4, 4));
			CHECK(read == 1000 * turn + i);
			if (turn == TURNS - 1 || draw(&state) % 2) {
				OK(cuMemFree(at[i]));
				at[i] = 0;
			}
		}
	}
	CHECK(refused);
	CHECK(free_bytes() == before);
}

/* Each piece begins and ends with a value that only this thread writes. */
static void *allocate_and_free(void *argument)
{
	struct piece {
		CUdeviceptr at;
		size_t words;
		uint32_t value;
	} piece[16] = { { 0, 0, 0 } };
	uint32_t state = (uint32_t)(uintptr_t)argument, read;
	CUcontext context;
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct piece *one = &piece[draw(&state) % 16];
		if (one->at) {
			OK(cuMemcpyDtoH(&read, one->at, 4));
			CHECK(read == one->value);
			OK(cuMemcpyDtoH(&read, one->at + 4 * (one->words - 1), 4));
			CHECK(read == one->value);
			OK(cuMemFree(one->at));
			one->at = 0;
		} else {
			one->words = 1 + draw(&state) % (draw(&state) % 8 ? 2000 : 1000000);
			one->value = (uint32_t)(uintptr_t)argument << 24 | round;
			OK(cuMemAlloc(&one->at, 4 * one->words));
			OK(cuMemsetD32(one->at, one->value, one->words));
		}
	}
	for (int i = 0; i < 16; i++)
		OK(cuMemFree(piece[i].at));
	return NULL;
}

/* A thread that only allocates and frees. */
static void *only_allocate(void *argument)
{
	CUdeviceptr memory;
	CUcontext context;
	(void)argument;
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < 20 * ROUNDS; i++) {
		OK(cuMemAlloc(&memory, (size_t)(1 + i % 5000)));
		OK(cuMemFree(memory));
	}
	return NULL;
}

static void threads_do_not_share_memory(void)
{
	pthread_t thread[THREADS];
	size_t before = free_bytes();
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, i < 3 ? allocate_and_free : only_allocate, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK(free_bytes() == before);
}

/* ---- two servers ---- */

struct side {
	CUcontext context;
	CUfunction chase;
	CUdeviceptr piece[PIECES];
};

static void build_chain(struct side *side, int device)
{
	CUmodule module;
	OK(cuDevicePrimaryCtxRetain(&side->context, device));
	OK(cuCtxSetCurrent(side->context));
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&side->chase, module, "chase"));
	for (int i = 0; i < PIECES; i++)
		OK(cuMemAlloc(&side->piece[i], (size_t)(i % 10 ? 100 * i : 3 << 20)));
	/* Each piece holds the address of the one before it. */
	for (int i = 0; i < PIECES; i++)
		OK(cuMemcpyHtoD(side->piece[i], &side->piece[i ? i - 1 : PIECES - 1], 8));
}

static void follow_chain(struct side *side, int device)
{
	CUdeviceptr reached;
	uint32_t count = 10 * PIECES + 3;
	int owner = -1;
	OK(cuCtxSetCurrent(side->context));
	CUdeviceptr to;
	OK(cuMemAlloc(&to, 8));
	void *parameters[] = { &side->piece[10], &count, &to };
	OK(cuLaunchKernel(side->chase, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuMemcpyDtoH(&reached, to, 8));
	CHECK(reached == side->piece[7]);
	OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, reached));
	CHECK(owner == device);
	OK(cuMemFree(to));
}

static void two_servers_share_no_address(void)
{
	static struct side side[2];
	for (int i = 0; i < 2; i++)
		build_chain(&side[i], i);
	for (int i = 0; i < PIECES; i++)
		for (int other = 0; other < PIECES; other++)
			CHECK(side[0].piece[i] + (3 << 20) <= side[1].piece[other] ||
			      side[1].piece[other] + (3 << 20) <= side[0].piece[i]);
	/* Where the preloaded object of occupy.c has memory, there is none of a server. */
	const char *text = getenv("OCCUPY");
	uint64_t occupied = text ? strtoull(text, NULL, 0) : 0;
	for (int i = 0; text && i < PIECES; i++)
		CHECK(side[0].piece[i] - occupied >= 1ull << 40 && side[1].piece[i] - occupied >= 1ull << 40);
	for (int i = 0; i < 2; i++)
		follow_chain(&side[i], i);
	for (int i = 0; i < 2; i++) {
		OK(cuCtxSetCurrent(side[!i].context)); /* an address says which server it belongs to */
		for (int k = 0; k < PIECES; k++)
			OK(cuMemFree(side[i].piece[k]));
	}
}

static void one_server(void)
{
	CUmodule module;
	CUfunction slow;
	start();
	a_wrong_free_is_refused_at_the_call();
	out_of_memory_comes_at_the_call();
	the_budget_does_not_hide_memory();
	threads_do_not_share_memory();
	if (!by_driver)
		a_full_device_finds_memory_for_each_size();
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&slow, module, "slow"));
	a_free_waits_for_the_work(slow);
	addresses_are_reused_when_they_are_free(slow);
	a_reset_ends_the_allocations();
}

static void endless(void)
{
	CUdeviceptr memory[PIECES];
	start();
	puts("allocating");
	fflush(stdout);
	for (;;) {
		for (int i = 0; i < PIECES; i++)
			OK(cuMemAlloc(&memory[i], (size_t)(1 + i * 5000)));
		for (int i = 0; i < PIECES; i++)
			OK(cuMemFree(memory[i]));
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "one";
	if (!strcmp(what, "endless"))
		endless();
	if (!strcmp(what, "two")) {
		OK(cuInit(0));
		two_servers_share_no_address();
		return 0;
	}
	by_driver = !strcmp(what, "driver");
	one_server();
	return 0;
}
