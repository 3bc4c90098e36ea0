/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies from worker to worker.
 *	peer_links count     how many bytes a copy costs the client; its servers must be reached over TCP
 *	peer_links midway    says "copying" and copies without end between three servers, until the second one is lost; then
 *	                     what is left must work
 *	peer_links cut       the connection from the first server's worker to the second's is cut in the second copy, of 4 MB
 */
#include "test/cuda/softgpu/driver.h"

#include <dirent.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>

#define DEVICES 3
#define BYTES (4u << 20)
#define COPIES 20

static CUcontext contexts[DEVICES];
static CUstream streams[DEVICES];
static CUdeviceptr memory[DEVICES];
static uint32_t *there, *back;

static void use(int device)
{
	OK(cuCtxSetCurrent(contexts[device]));
}

static void set_up(int devices)
{
	there = malloc(BYTES);
	back = malloc(BYTES);
	for (int i = 0; i < devices; i++) {
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		use(i);
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc(&memory[i], BYTES));
	}
	for (uint32_t i = 0; i < BYTES / 4; i++)
		there[i] = i * 2654435761u;
}

static void expect(int device)
{
	memset(back, 0xee, BYTES);
	OK(cuMemcpyDtoH(back, memory[device], BYTES));
	CHECK(!memcmp(back, there, BYTES));
}

/* ---- bytes ---- */

/* The bytes of all TCP connections of this process so far, both ways. */
static uint64_t bytes_so_far(void)
{
	uint64_t sum = 0;
	DIR *folder = opendir("/proc/self/fd");
	CHECK(folder);
	for (struct dirent *entry; (entry = readdir(folder));) {
		struct tcp_info info;
		socklen_t size = sizeof info;
		if (!getsockopt(atoi(entry->d_name), IPPROTO_TCP, TCP_INFO, &info, &size))
			sum += info.tcpi_bytes_acked + info.tcpi_bytes_received;
	}
	closedir(folder);
	return sum;
}

static void expect_few_bytes(const char *what, uint64_t before)
{
	uint64_t each = (bytes_so_far() - before) / COPIES;
	printf("%s: %llu bytes through the client for each copy\n", what, (unsigned long long)each);
	CHECK(each && each < 1024);
}

static void count(void)
{
	set_up(2);
	OK(cuMemcpyHtoD(memory[0], there, BYTES));
	/* The links open, and all threads of the library connect. */
	for (int i = 0; i < 4; i++)
		OK(cuMemcpyPeer(memory[1 - i % 2], contexts[1 - i % 2], memory[i % 2], contexts[i % 2], BYTES));
	use(0);
	uint64_t before = bytes_so_far();
	for (int i = 0; i < COPIES; i++)
		OK(cuMemcpyPeerAsync(memory[1], contexts[1], memory[0], contexts[0], BYTES, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
	expect_few_bytes("asynchronous", before);
	expect(1);
	OK(cuMemcpyHtoD(memory[0], back, BYTES));
	OK(cuCtxSynchronize());
	before = bytes_so_far();
	for (int i = 0; i < COPIES; i++)
		OK(cuMemcpyPeer(memory[i % 2], contexts[i % 2], memory[1 - i % 2], contexts[1 - i % 2], BYTES));
	expect_few_bytes("cuMemcpyPeer", before);
	expect(0);
}

/* ---- a loss in the middle ---- */

static CUresult round_of_copies(void)
{
	CUresult result = CUDA_SUCCESS;
	for (int from = 0; from < DEVICES && result == CUDA_SUCCESS; from++)
		for (int to = 0; to < DEVICES && result == CUDA_SUCCESS; to++) {
			use(from);
			if (to != from)
				result = cuMemcpyAsync(memory[to], memory[from], BYTES, streams[from]);
		}
	for (int i = 0; i < DEVICES && result == CUDA_SUCCESS; i++) {
		use(i);
		result = cuStreamSynchronize(streams[i]);
	}
	return result;
}

/* The calls on a server report what has failed there; then they succeed. */
static void recovers(int device)
{
	CUresult result = CUDA_ERROR_UNKNOWN;
	use(device);
	for (int i = 0; i < 20 && result != CUDA_SUCCESS; i++) {
		result = cuCtxSynchronize();
		CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_DEVICE_UNAVAILABLE);
	}
	CHECK(result == CUDA_SUCCESS);
}

static void midway(void)
{
	CUresult result = CUDA_SUCCESS;
	set_up(DEVICES);
	for (int i = 0; i < DEVICES; i++)
		OK(cuMemcpyHtoD(memory[i], there, BYTES));
	OK(round_of_copies());
	puts("copying");
	fflush(stdout);
	while (result == CUDA_SUCCESS)
		result = round_of_copies();
	CHECK(result == CUDA_ERROR_DEVICE_UNAVAILABLE);
	use(1);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	EXPECT(cuMemcpyPeer(memory[0], contexts[0], memory[1], contexts[1], BYTES), CUDA_ERROR_DEVICE_UNAVAILABLE);
	recovers(0);
	recovers(2);
	use(0);
	OK(cuMemcpyHtoD(memory[0], there, BYTES));
	OK(cuMemsetD8(memory[2], 0, BYTES));
	OK(cuMemcpyPeer(memory[2], contexts[2], memory[0], contexts[0], BYTES));
	expect(2);
}

/* ---- a link that fails ---- */

static void expect_words(int device, uint32_t value)
{
	OK(cuMemcpyDtoH(back, memory[device], BYTES));
	for (uint32_t i = 0; i < BYTES / 4; i++)
		CHECK(back[i] == value);
}

/* No call returns an error, and the stream does not go on before the copy is made. */
static void cut(void)
{
	set_up(2);
	use(0);
	for (uint32_t round = 1; round <= 4; round++) {
		OK(cuMemsetD32Async(memory[0], round, BYTES / 4, streams[0]));
		OK(cuMemcpyAsync(memory[1], memory[0], BYTES, streams[0]));
		OK(cuMemsetD32Async(memory[0], round + 100, BYTES / 4, streams[0]));
		OK(cuStreamSynchronize(streams[0]));
		expect_words(1, round);
		expect_words(0, round + 100);
	}
}

int main(int argc, char **argv)
{
	OK(cuInit(0));
	if (argc == 2 && !strcmp(argv[1], "count"))
		count();
	else if (argc == 2 && !strcmp(argv[1], "midway"))
		midway();
	else if (argc == 2 && !strcmp(argv[1], "cut"))
		cut();
	else
		return 2;
	free(there);
	free(back);
	return 0;
}
