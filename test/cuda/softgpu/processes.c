/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory and events of another process. The test starts itself as a child and talks to it over a socket pair. Each
 * process writes to the other's memory.
 */
#include "line.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1000 };

/* What the parent sends. */
typedef struct offer {
	CUipcMemHandle small, large, neighbour;
	CUipcEventHandle event;
	CUmemPoolPtrExportData pointer;
} offer_t;

static void send_file(int line, int file)
{
	char byte = 0, room[CMSG_SPACE(sizeof file)] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room,
				  .msg_controllen = sizeof room };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof file);
	memcpy(CMSG_DATA(head), &file, sizeof file);
	CHECK(sendmsg(line, &message, 0) == 1);
}

static int receive_file(int line)
{
	int file;
	char byte, room[CMSG_SPACE(sizeof file)] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room,
				  .msg_controllen = sizeof room };
	CHECK(recvmsg(line, &message, 0) == 1);
	memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
	return file;
}

static void expect_words(CUdeviceptr from, uint32_t first)
{
	static uint32_t words[WORDS];
	OK(cuMemcpyDtoH(words, from, sizeof words));
	for (uint32_t i = 0; i < WORDS; i++)
		CHECK(words[i] == first + i);
}

static void put_words(CUdeviceptr to, uint32_t first)
{
	static uint32_t words[WORDS];
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = first + i;
	OK(cuMemcpyHtoD(to, words, sizeof words));
}

/* The pool's memory: imported by descriptor and pointer. */
static void use_pool(int line, CUmemPoolPtrExportData *pointer)
{
	CUmemoryPool pool;
	CUdeviceptr at;
	int file = receive_file(line);
	OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					      0));
	close(file);
	CUcontext own;
	OK(cuCtxPopCurrent(&own));
	OK(cuMemPoolImportPointer(&at, pool, pointer)); /* needs no context */
	OK(cuCtxPushCurrent(own));
	expect_words(at, 3000);
	put_words(at, 30000);
	EXPECT(cuMemAllocFromPoolAsync(&at, 100, pool, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
	CUmemPoolPtrExportData wrong = *pointer;
	((unsigned char *)&wrong)[0] ^= 1;
	EXPECT(cuMemPoolImportPointer(&at, pool, &wrong), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolDestroy(pool));
}

static int child(int line)
{
	offer_t offer;
	CUdeviceptr small, again, large;
	CUevent event;
	CUstream stream;
	char byte = 0;
	start();
	hear(line, &offer, sizeof offer);
	OK(cuIpcOpenMemHandle(&small, offer.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcOpenMemHandle(&again, offer.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CHECK(small == again);
	OK(cuIpcOpenMemHandle(&large, offer.large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	expect_words(small, 1000);
	expect_words(large, 2000);
	/* The handle is for one allocation, not for the memory beside it. */
	EXPECT(cuMemsetD8(small, 0, WORDS * 4 + 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFree(small), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFreeAsync(small, NULL), CUDA_ERROR_INVALID_VALUE);
	put_words(small, 10000);
	OK(cuIpcOpenEventHandle(&event, offer.event));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY); /* recorded behind a kernel that waits */
	OK(cuStreamWaitEvent(stream, event, 0));
	append(stream, large + 4096, 5);
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	say(line, &byte, 1);
	OK(cuStreamSynchronize(stream));
	OK(cuEventQuery(event));
	uint32_t log[2];
	OK(cuMemcpyDtoH(log, large + 4096, sizeof log));
	CHECK(log[0] == 1 && log[1] == 5);
	/* Now this process records and the child waits. */
	OK(cuEventRecord(event, stream));
	OK(cuEventSynchronize(event));
	use_pool(line, &offer.pointer);
	OK(cuIpcCloseMemHandle(small));
	expect_words(small, 10000); /* opened twice, closed once */
	OK(cuIpcCloseMemHandle(small));
	EXPECT(cuMemcpyDtoH(log, small, 4), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcCloseMemHandle(small), CUDA_ERROR_INVALID_VALUE);
	memset(&offer.small, 0x11, sizeof offer.small);
	EXPECT(cuIpcOpenMemHandle(&small, offer.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_HANDLE);
	say(line, &byte, 1);
	OK(cuIpcCloseMemHandle(large));
	return 0;
}

static CUdeviceptr shared_pool(CUmemPoolPtrExportData *pointer, int *file)
{
	CUmemoryPool pool;
	CUdeviceptr at, filler;
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				      .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	OK(cuMemPoolCreate(&pool, &properties));
	OK(cuMemAllocFromPoolAsync(&filler, 100, pool, NULL));
	OK(cuMemAllocFromPoolAsync(&at, WORDS * 4, pool, NULL));
	OK(cuMemFreeAsync(filler, NULL));
	OK(cuStreamSynchronize(NULL));
	put_words(at, 3000);
	OK(cuMemPoolExportToShareableHandle(file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolExportPointer(pointer, at));
	return at;
}

static void parent(int line)
{
	offer_t offer = { 0 };
	CUdeviceptr small, neighbour, large, pooled, ordinary;
	CUevent event;
	uint32_t *flag;
	CUstream stream;
	char byte;
	int file;
	OK(cuMemAlloc(&small, WORDS * 4));
	OK(cuMemAlloc(&neighbour, WORDS * 4));
	OK(cuMemAlloc(&large, 5 << 20));
	put_words(small, 1000);
	put_words(neighbour, 4000);
	put_words(large, 2000);
	OK(cuMemsetD8(large + 4096, 0, 64));
	OK(cuMemHostAlloc((void **)&flag, 4, 0));
	*flag = 0;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	EXPECT(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	OK(cuIpcGetMemHandle(&offer.small, small));
	OK(cuIpcGetMemHandle(&offer.large, large));
	/* The bytes have not moved for this process, nor those beside them. */
	expect_words(small, 1000);
	expect_words(neighbour, 4000);
	expect_words(large, 2000);
	EXPECT(cuIpcGetMemHandle(&offer.neighbour, (CUdeviceptr)(uintptr_t)flag), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcOpenMemHandle(&ordinary, offer.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
	       CUDA_ERROR_INVALID_CONTEXT); /* one's own */
	hold(stream, (CUdeviceptr)(uintptr_t)flag);
	OK(cuEventRecord(event, stream));
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	OK(cuIpcGetEventHandle(&offer.event, event));
	CUevent plain;
	OK(cuEventCreate(&plain, 0));
	EXPECT(cuIpcGetEventHandle(&(CUipcEventHandle){ { 0 } }, plain), CUDA_ERROR_INVALID_VALUE);
	pooled = shared_pool(&offer.pointer, &file);
	EXPECT(cuIpcGetMemHandle(&offer.neighbour, pooled), CUDA_ERROR_INVALID_VALUE);
	say(line, &offer, sizeof offer);
	hear(line, &byte, 1);
	let_go(flag);
	OK(cuEventSynchronize(event));
	send_file(line, file);
	close(file);
	hear(line, &byte, 1);
	OK(cuEventSynchronize(event));
	expect_words(small, 10000);
	expect_words(neighbour, 4000);
	expect_words(pooled, 30000);
	OK(cuMemFree(small));
	OK(cuMemFree(neighbour));
	OK(cuMemFree(large));
	OK(cuMemFree(pooled));
	OK(cuMemAlloc(&ordinary, 5 << 20));
	put_words(ordinary, 1);
	expect_words(ordinary, 1);
}

/* ---- a recording whose process is killed ---- */

/* Records the event behind a kernel that waits, and waits to be killed. */
static int recorder(int line)
{
	CUipcEventHandle handle;
	CUevent event;
	CUstream stream;
	uint32_t *flag;
	start();
	hear(line, &handle, sizeof handle);
	OK(cuIpcOpenEventHandle(&event, handle));
	OK(cuMemHostAlloc((void **)&flag, 4, 0));
	*flag = 0;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	hold(stream, (CUdeviceptr)(uintptr_t)flag);
	OK(cuEventRecord(event, stream));
	say(line, &handle, 1);
	for (;;)
		pause();
}

/* An event keeps 250 recordings. The one that takes the place of the first comes while the first one's process lives, and then
 * waits for it. */
static void later_recordings_do_not_wait_for_a_dead_process(int line, pid_t other)
{
	CUipcEventHandle handle;
	CUevent event;
	CUstream stream;
	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuIpcGetEventHandle(&handle, event));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	say(line, &handle, sizeof handle);
	hear(line, &handle, 1);
	for (int i = 0; i < 250; i++)
		OK(cuEventRecord(event, stream));
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	CHECK(!kill(other, SIGKILL) && waitpid(other, NULL, 0) == other);
	alarm(60); /* ends a wait without end */
	OK(cuEventSynchronize(event));
	OK(cuStreamSynchronize(stream));
	alarm(0);
	OK(cuEventDestroy(event));
}

static pid_t start_other(char *self, const char *what, int *line)
{
	int lines[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, lines));
	pid_t other = fork();
	if (!other) {
		char number[16];
		close(lines[0]);
		snprintf(number, sizeof number, "%d", lines[1]);
		execl("/proc/self/exe", self, what, number, (char *)NULL);
		_exit(1);
	}
	close(lines[1]);
	*line = lines[0];
	return other;
}

int main(int argc, char **argv)
{
	int line, second, status;
	if (argc == 3)
		return !strcmp(argv[1], "child") ? child(atoi(argv[2])) : recorder(atoi(argv[2]));
	pid_t other = start_other(argv[0], "child", &line), killed = start_other(argv[0], "recorder", &second);
	start();
	parent(line);
	CHECK(waitpid(other, &status, 0) == other && status == 0);
	later_recordings_do_not_wait_for_a_dead_process(second, killed);
	return 0;
}
