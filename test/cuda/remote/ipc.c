/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory and events of another process, each process with a worker of its own.
 *	ipc                       the test starts itself as a child, and talks to it over a socket pair
 *	ipc quota                 the same, on a server with a quota of 16 MiB
 *	ipc charged               descriptors without memory, on such a server
 *	ipc small                 small allocations, on such a server that places them by virtual memory management
 *	ipc export FILE           writes a handle to FILE, prints "ready" and waits for the end of its input
 *	ipc open FILE RESULT      opens the handle, and expects this number
 */
#define _GNU_SOURCE /* memfd_create */
#include "test/cuda/softgpu/line.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 1000, ROUNDS = 200, MIB = 1 << 20, DEADLINE_S = 60 };

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
	OK(cuStreamSynchronize(NULL));
}

static CUstream stream_new(void)
{
	CUstream stream;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

/* Starts this program again, with this argument and the number of its end of the line. */
static pid_t start_other(char *self, const char *argument, int *line)
{
	int ends[2];
	char number[16];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	pid_t other = fork();
	if (!other) {
		close(ends[0]);
		snprintf(number, sizeof number, "%d", ends[1]);
		execl("/proc/self/exe", self, argument, number, (char *)NULL);
		_exit(1);
	}
	close(ends[1]);
	*line = ends[0];
	return other;
}

static void expect_end(pid_t other)
{
	int status;
	CHECK(waitpid(other, &status, 0) == other && status == 0);
}

/* ---- both processes use the memory and the event ---- */

typedef struct offer {
	CUipcMemHandle small, large;
	CUipcEventHandle event;
} offer_t;

/* A handle that differs in one bit is no handle. */
static void no_guess_is_right(const offer_t *offer)
{
	CUdeviceptr address;
	CUevent event;
	for (size_t i = 0; i < sizeof offer->small.reserved - 20; i++) {
		CUipcMemHandle memory = offer->small;
		CUipcEventHandle other = offer->event;
		memory.reserved[i] = (char)(memory.reserved[i] ^ 1);
		other.reserved[i] = (char)(other.reserved[i] ^ 1);
		EXPECT(cuIpcOpenMemHandle(&address, memory, 1), CUDA_ERROR_INVALID_HANDLE);
		EXPECT(cuIpcOpenEventHandle(&event, other), CUDA_ERROR_INVALID_HANDLE);
	}
	CUipcMemHandle wrong_kind;
	memcpy(&wrong_kind, &offer->event, sizeof wrong_kind);
	EXPECT(cuIpcOpenMemHandle(&address, wrong_kind, 1), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuIpcOpenMemHandle(&address, offer->small, 2), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcOpenMemHandle(NULL, offer->small, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcOpenEventHandle(NULL, offer->event), CUDA_ERROR_INVALID_VALUE);
}

/* The other process records each round behind a fill, and says so at once. */
static void rounds_arrive_in_order(int line, CUdeviceptr memory, CUevent event)
{
	CUstream stream = stream_new();
	uint32_t said, got;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		hear(line, &said, sizeof said);
		OK(cuStreamWaitEvent(stream, event, 0));
		OK(cuMemcpyDtoHAsync(&got, memory, sizeof got, stream));
		OK(cuStreamSynchronize(stream));
		CHECK(said == i && got == i);
		say(line, &got, sizeof got);
	}
	OK(cuStreamDestroy(stream));
}

/* A small copy behind the other process's event reads its source when that process lets the stream go, and not before. */
static CUdeviceptr copy_behind_event(CUstream stream, uint32_t source[16])
{
	CUdeviceptr to;
	OK(cuMemHostRegister(source, 16 * sizeof *source, 0));
	OK(cuMemAlloc(&to, 16 * sizeof *source));
	OK(cuMemcpyHtoDAsync(to, source, 16 * sizeof *source, stream));
	for (uint32_t i = 0; i < 16; i++)
		source[i] = 700 + i;
	return to;
}

/* A kernel holds a small copy back. Then a stream begins to wait for the other process's event. Behind it, the stream lets the kernel
 * end. */
struct behind_kernel {
	CUstream held, waits;
	CUdeviceptr flag, to;
	uint32_t source[16];
};

static void copy_behind_kernel(struct behind_kernel *behind, CUevent event)
{
	memset(behind->source, 0, sizeof behind->source);
	behind->held = stream_new();
	behind->waits = stream_new();
	OK(cuMemAlloc(&behind->flag, 4));
	OK(cuMemAlloc(&behind->to, sizeof behind->source));
	OK(cuMemsetD32(behind->flag, 0, 1));
	OK(cuMemHostRegister(behind->source, sizeof behind->source, 0));
	OK(cuCtxSynchronize());
	hold(behind->held, behind->flag);
	OK(cuMemcpyHtoDAsync(behind->to, behind->source, sizeof behind->source, behind->held));
	OK(cuStreamWaitEvent(behind->waits, event, 0));
	OK(cuMemsetD32Async(behind->flag, 1, 1, behind->waits));
}

/* No call of this process comes between this and the end of the kernel. */
static void change_source(struct behind_kernel *behind)
{
	for (uint32_t i = 0; i < 16; i++)
		behind->source[i] = 300 + i;
}

static void expect_changed_source(struct behind_kernel *behind)
{
	uint32_t found[16];
	OK(cuStreamSynchronize(behind->held));
	OK(cuMemcpyDtoH(found, behind->to, sizeof found));
	CHECK(!memcmp(found, behind->source, sizeof found));
	OK(cuMemHostUnregister(behind->source));
	OK(cuMemFree(behind->to));
	OK(cuMemFree(behind->flag));
	OK(cuStreamDestroy(behind->held));
	OK(cuStreamDestroy(behind->waits));
}

static int child(int line)
{
	uint32_t source[16] = { 0 };
	struct behind_kernel behind;
	offer_t offer;
	CUdeviceptr small, again, large, whole;
	CUevent event;
	size_t bytes;
	char byte = 0;
	bool capable = true;
	start();
	CUstream stream = stream_new();
	hear(line, &offer, sizeof offer);
	/* Before this process shares memory: then the sources of small copies are read when their streams have come to them. */
	OK(cuIpcOpenEventHandle(&event, offer.event));
	copy_behind_kernel(&behind, event);
	no_guess_is_right(&offer);
	OK(cuIpcOpenMemHandle(&small, offer.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcOpenMemHandle(&again, offer.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CHECK(small == again);
	OK(cuIpcOpenMemHandle(&large, offer.large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuMemGetAddressRange(&whole, &bytes, large + 100));
	CHECK(whole == large && bytes == 5 * MIB);
	expect_words(small, 1000);
	expect_words(large, 2000);
	/* The handle is for one allocation, not for the memory beside it; and the memory is the other process's. */
	EXPECT(cuMemsetD8(small, 0, WORDS * 4 + 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFree(small), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFreeAsync(small, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcGetMemHandle(&offer.small, small), CUDA_ERROR_INVALID_VALUE);
	OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, small));
	CHECK(!capable);
	put_words(small, 10000);
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY); /* recorded behind a kernel that waits */
	OK(cuStreamWaitEvent(stream, event, 0));
	CUdeviceptr copied = copy_behind_event(stream, source);
	append(stream, large + 4096, 5);
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	change_source(&behind);
	say(line, &byte, 1);
	OK(cuStreamSynchronize(stream));
	OK(cuEventQuery(event));
	OK(cuMemcpyDtoH(source, copied, sizeof source));
	for (uint32_t i = 0; i < 16; i++)
		CHECK(source[i] == 700 + i);
	expect_changed_source(&behind);
	OK(cuMemHostUnregister(source));
	OK(cuMemFree(copied));
	uint32_t log[2];
	OK(cuMemcpyDtoH(log, large + 4096, sizeof log));
	CHECK(log[0] == 1 && log[1] == 5);
	/* Now this process records and the other one waits. */
	OK(cuEventRecord(event, stream));
	OK(cuEventSynchronize(event));
	say(line, &byte, 1);
	rounds_arrive_in_order(line, large, event);
	OK(cuIpcCloseMemHandle(small));
	expect_words(small, 10000); /* opened twice, closed once */
	OK(cuIpcCloseMemHandle(small));
	EXPECT(cuMemcpyDtoH(log, small, 4), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcCloseMemHandle(small), CUDA_ERROR_INVALID_VALUE);
	OK(cuEventDestroy(event));
	OK(cuIpcCloseMemHandle(large));
	return 0;
}

static void record_rounds(int line, CUdeviceptr memory, CUevent event, CUstream stream)
{
	uint32_t heard;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		OK(cuMemsetD32Async(memory, i, 1, stream));
		OK(cuEventRecord(event, stream));
		say(line, &i, sizeof i);
		hear(line, &heard, sizeof heard);
		CHECK(heard == i);
	}
}

static void refuse_others(CUdeviceptr pooled)
{
	CUipcMemHandle handle;
	CUevent plain;
	void *host;
	OK(cuMemHostAlloc(&host, 4096, 0));
	EXPECT(cuIpcGetMemHandle(&handle, (CUdeviceptr)(uintptr_t)host), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcGetMemHandle(&handle, 4096), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcGetMemHandle(&handle, pooled), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcGetMemHandle(NULL, pooled), CUDA_ERROR_INVALID_VALUE);
	OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	EXPECT(cuIpcGetEventHandle(&(CUipcEventHandle){ { 0 } }, plain), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuEventCreate(&plain, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	OK(cuEventDestroy(plain));
	OK(cuMemFreeHost(host));
}

static void share_with_child(char *self)
{
	offer_t offer, same;
	CUdeviceptr small, neighbour, large, flag, pooled, ordinary, page, pages;
	CUevent event;
	int line, supported;
	char byte;
	pid_t other = start_other(self, "child", &line);
	start();
	CUstream stream = stream_new(), release = stream_new();
	OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
	CHECK(supported);
	OK(cuMemAlloc(&small, WORDS * 4));
	OK(cuMemAlloc(&neighbour, WORDS * 4));
	/* Where the worker maps memory, the large allocation now consists of several parts. */
	OK(cuMemAlloc(&page, 2 * MIB));
	OK(cuMemAlloc(&pages, 4 * MIB));
	OK(cuMemFree(page));
	OK(cuMemFree(pages));
	OK(cuMemAlloc(&large, 5 * MIB));
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemAllocAsync(&pooled, 4096, NULL));
	OK(cuMemsetD32(flag, 0, 1));
	put_words(small, 1000);
	put_words(neighbour, 4000);
	put_words(large, 2000);
	OK(cuMemsetD8(large + 4096, 0, 64));
	OK(cuCtxSynchronize());
	refuse_others(pooled);
	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuIpcGetMemHandle(&offer.small, small));
	OK(cuIpcGetMemHandle(&offer.large, large));
	OK(cuIpcGetMemHandle(&same.large, large));
	CHECK(!memcmp(&same.large, &offer.large, sizeof same.large) && memcmp(&offer.small, &offer.large, sizeof offer.small));
	expect_words(small, 1000);
	expect_words(neighbour, 4000);
	EXPECT(cuIpcOpenMemHandle(&ordinary, offer.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
	       CUDA_ERROR_INVALID_CONTEXT); /* one's own */
	OK(cuIpcGetEventHandle(&offer.event, event));
	hold(stream, flag);
	OK(cuEventRecord(event, stream));
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	say(line, &offer, sizeof offer);
	hear(line, &byte, 1);
	OK(cuMemsetD32Async(flag, 1, 1, release));
	OK(cuEventSynchronize(event));
	hear(line, &byte, 1);
	OK(cuEventSynchronize(event));
	record_rounds(line, large, event, stream);
	expect_end(other);
	close(line);
	expect_words(small, 10000);
	expect_words(neighbour, 4000);
	OK(cuMemFree(small));
	OK(cuMemFree(neighbour));
	OK(cuMemFree(large));
	OK(cuMemAlloc(&ordinary, 5 * MIB));
	put_words(ordinary, 1);
	expect_words(ordinary, 1);
	OK(cuMemFree(ordinary));
	OK(cuMemFree(flag));
	OK(cuMemFree(pooled));
	OK(cuEventDestroy(event));
}

/* ---- the exporting process is killed ---- */

/* Exports memory and an event that is never complete, and waits to be killed. */
static int victim(int line)
{
	offer_t offer = { 0 };
	CUdeviceptr memory, flag;
	CUevent event;
	start();
	OK(cuMemAlloc(&memory, WORDS * 4));
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemsetD32(flag, 0, 1));
	put_words(memory, 7);
	CUstream stream = stream_new();
	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	hold(stream, flag);
	OK(cuEventRecord(event, stream));
	OK(cuIpcGetEventHandle(&offer.event, event));
	say(line, &offer.event, sizeof offer.event);
	/* The kernel that waits must not keep the memory from being exported: the driver would wait for it. */
	OK(cuMemsetD32(flag, 1, 1));
	OK(cuIpcGetMemHandle(&offer.small, memory));
	say(line, &offer, sizeof offer);
	for (;;)
		pause();
}

static void survive_its_death(char *self)
{
	offer_t offer;
	CUipcEventHandle handle;
	CUdeviceptr memory, again;
	CUevent event;
	CUresult result;
	int line;
	pid_t other = start_other(self, "victim", &line);
	hear(line, &handle, sizeof handle);
	hear(line, &offer, sizeof offer);
	OK(cuIpcOpenEventHandle(&event, handle));
	OK(cuIpcOpenMemHandle(&memory, offer.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuEventSynchronize(event));
	CHECK(!kill(other, SIGKILL) && waitpid(other, NULL, 0) == other);
	close(line);
	expect_words(memory, 7);
	put_words(memory, 8);
	expect_words(memory, 8);
	/* Its worker ends soon after it, and with it the handle. */
	time_t until = time(NULL) + DEADLINE_S;
	do {
		result = cuIpcOpenMemHandle(&again, offer.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
		if (result == CUDA_SUCCESS)
			OK(cuIpcCloseMemHandle(again));
	} while (result == CUDA_SUCCESS && time(NULL) < until);
	CHECK(result == CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuIpcOpenEventHandle(&event, handle), CUDA_ERROR_INVALID_HANDLE);
	expect_words(memory, 8);
	OK(cuIpcCloseMemHandle(memory));
	OK(cuEventDestroy(event));
}

/* Memory that a context has opened ends with the context, not with the other process's use. */
static int second_user(int line)
{
	CUcontext first = start(), second;
	CUipcMemHandle handle;
	CUdeviceptr one, other;
	uint32_t word;
	hear(line, &handle, sizeof handle);
	OK(cuIpcOpenMemHandle(&one, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuIpcOpenMemHandle(&other, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CHECK(one != other);
	expect_words(other, 77);
	EXPECT(cuIpcCloseMemHandle(one), CUDA_ERROR_INVALID_VALUE); /* another context's */
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(first));
	EXPECT(cuMemcpyDtoH(&word, other, 4), CUDA_ERROR_INVALID_VALUE);
	expect_words(one, 77);
	say(line, &word, 1);
	return 0; /* without closing */
}

static void contexts_end_what_they_opened(char *self)
{
	CUipcMemHandle handle;
	CUdeviceptr memory;
	int line;
	char byte;
	pid_t other = start_other(self, "second", &line);
	OK(cuMemAlloc(&memory, WORDS * 4));
	put_words(memory, 77);
	OK(cuIpcGetMemHandle(&handle, memory));
	say(line, &handle, sizeof handle);
	hear(line, &byte, 1);
	expect_end(other);
	close(line);
	expect_words(memory, 77);
	OK(cuMemFree(memory));
}

/* ---- shareable handles of virtual memory ---- */

static void send_file(int line, int file)
{
	char byte = 0, room[CMSG_SPACE(sizeof file)] __attribute__((aligned(8))) = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
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
	char byte, room[CMSG_SPACE(sizeof file)] __attribute__((aligned(8))) = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	CHECK(recvmsg(line, &message, 0) == 1);
	memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
	return file;
}

static const CUmemAllocationHandleType descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

static CUresult import(CUmemGenericAllocationHandle *memory, int file)
{
	return cuMemImportFromShareableHandle(memory, (void *)(intptr_t)file, descriptor);
}

static void map(CUdeviceptr *address, CUmemGenericAllocationHandle memory)
{
	CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
				   .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	OK(cuMemAddressReserve(address, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(*address, 2 * MIB, 0, memory, 0));
	OK(cuMemSetAccess(*address, 2 * MIB, &access, 1));
}

static void unmap(CUdeviceptr address)
{
	OK(cuMemUnmap(address, 2 * MIB));
	OK(cuMemAddressFree(address, 2 * MIB));
}

static int importer(int line)
{
	CUmemGenericAllocationHandle memory, again;
	CUmemAllocationProp told;
	CUdeviceptr address;
	char byte = 0;
	start();
	int file = receive_file(line);
	OK(import(&memory, file));
	OK(cuMemGetAllocationPropertiesFromHandle(&told, memory));
	CHECK(told.location.type == CU_MEM_LOCATION_TYPE_DEVICE && told.location.id == 0 &&
	      told.requestedHandleTypes == descriptor);
	map(&address, memory);
	OK(cuMemRelease(memory));
	expect_words(address, 50);
	put_words(address, 60);
	say(line, &byte, 1);
	hear(line, &byte, 1); /* the other process has unmapped and released it */
	expect_words(address, 60);
	OK(import(&again, file)); /* the descriptor keeps it */
	OK(cuMemRelease(again));
	close(file);
	EXPECT(import(&again, file), CUDA_ERROR_INVALID_VALUE);
	EXPECT(import(&again, line), CUDA_ERROR_INVALID_VALUE);
	unmap(address);
	return 0;
}

static void share_virtual_memory(char *self)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = descriptor,
					   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	CUmemGenericAllocationHandle memory, mine, plain;
	CUdeviceptr address, second;
	int line, file, supported;
	char byte = 0;
	pid_t other = start_other(self, "importer", &line);
	OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
	CHECK(supported);
	OK(cuMemCreate(&memory, 2 * MIB, &properties, 0));
	properties.requestedHandleTypes = 0;
	OK(cuMemCreate(&plain, 2 * MIB, &properties, 0));
	EXPECT(cuMemExportToShareableHandle(&file, plain, descriptor, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemExportToShareableHandle(&file, memory, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuMemExportToShareableHandle(NULL, memory, descriptor, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemRelease(plain));
	OK(cuMemExportToShareableHandle(&file, memory, descriptor, 0));
	map(&address, memory);
	put_words(address, 50);
	OK(import(&mine, file)); /* a process may import what it has exported */
	map(&second, mine);
	OK(cuMemRelease(mine));
	expect_words(second, 50);
	send_file(line, file);
	close(file);
	hear(line, &byte, 1);
	expect_words(second, 60);
	unmap(second);
	unmap(address);
	OK(cuMemRelease(memory));
	say(line, &byte, 1);
	expect_end(other);
	close(line);
}

/* ---- descriptors that outlive their memory's owner ---- */

static CUmemAllocationProp with_descriptor = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					       .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };

/* Makes memory with words from first on, of which only the descriptor is left. */
static int make_orphan(uint32_t first)
{
	CUmemGenericAllocationHandle memory;
	CUdeviceptr address;
	int file;
	OK(cuMemCreate(&memory, 2 * MIB, &with_descriptor, 0));
	map(&address, memory);
	put_words(address, first);
	OK(cuMemExportToShareableHandle(&file, memory, descriptor, 0));
	unmap(address);
	OK(cuMemRelease(memory));
	return file;
}

static void expect_orphan(int file, uint32_t first)
{
	CUmemGenericAllocationHandle memory;
	CUdeviceptr address;
	OK(import(&memory, file));
	map(&address, memory);
	OK(cuMemRelease(memory));
	expect_words(address, first);
	unmap(address);
}

/* A file with the handle of the descriptor, which does not keep the memory. */
static int copy_of(int file)
{
	char handle[CU_IPC_HANDLE_SIZE];
	int copy = memfd_create("handle", MFD_CLOEXEC);
	CHECK(recv(file, handle, sizeof handle, MSG_PEEK) == sizeof handle);
	CHECK(copy >= 0 && write(copy, handle, sizeof handle) == sizeof handle);
	return copy;
}

/* The memory ends soon after its last descriptor. */
static void expect_no_memory(int copy)
{
	CUmemGenericAllocationHandle memory;
	CUresult result;
	time_t until = time(NULL) + DEADLINE_S;
	while ((result = import(&memory, copy)) == CUDA_SUCCESS && time(NULL) < until)
		OK(cuMemRelease(memory));
	CHECK(result == CUDA_ERROR_INVALID_VALUE);
}

/* Exports memory of which only the descriptor is left, and memory that it still has. Waits to be killed. */
static int owner(int line)
{
	CUmemGenericAllocationHandle memory;
	CUdeviceptr address;
	int file;
	start();
	OK(cuMemCreate(&memory, 2 * MIB, &with_descriptor, 0));
	map(&address, memory);
	put_words(address, 950);
	OK(cuMemExportToShareableHandle(&file, memory, descriptor, 0));
	send_file(line, make_orphan(900));
	send_file(line, file);
	for (;;)
		pause();
}

static void descriptors_keep_memory(char *self)
{
	int line, file = make_orphan(800), second = dup(file), copy = copy_of(file);
	expect_orphan(file, 800);
	close(file);
	expect_orphan(second, 800);
	expect_orphan(copy, 800); /* the handle counts, whatever holds it */
	close(second);
	expect_no_memory(copy);
	close(copy);

	pid_t other = start_other(self, "owner", &line);
	file = receive_file(line);
	second = receive_file(line);
	expect_orphan(file, 900);
	CHECK(!kill(other, SIGKILL) && waitpid(other, NULL, 0) == other);
	for (int i = 0; i < 20; i++) { /* while its worker ends what else it had */
		expect_orphan(file, 900);
		expect_orphan(second, 950);
		CHECK(!usleep(10000));
	}
	copy = copy_of(second);
	close(second);
	expect_no_memory(copy); /* although the process has not released it, and another descriptor is left */
	close(copy);
	expect_orphan(file, 900);
	copy = copy_of(file);
	close(file);
	expect_no_memory(copy);
	close(copy);
	close(line);
}

/* Of 16 MiB, descriptors have 12. */
static void descriptors_are_charged(void)
{
	CUmemGenericAllocationHandle memory;
	int file[6];
	time_t until = time(NULL) + DEADLINE_S;
	CUresult result;
	start();
	for (int i = 0; i < 6; i++)
		file[i] = make_orphan(1);
	EXPECT(cuMemCreate(&memory, 6 * MIB, &with_descriptor, 0), CUDA_ERROR_OUT_OF_MEMORY);
	for (int i = 0; i < 6; i++)
		close(file[i]);
	while ((result = cuMemCreate(&memory, 16 * MIB, &with_descriptor, 0)) != CUDA_SUCCESS && time(NULL) < until)
		;
	CHECK(result == CUDA_SUCCESS);
	OK(cuMemRelease(memory));
}

/* ---- pools ---- */

static int pool_user(int line)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, none;
	CUdeviceptr address, other;
	char byte = 0;
	size_t bytes;
	int device;
	OK(cuInit(0));
	int file = receive_file(line);
	hear(line, &data, sizeof data);
	EXPECT(cuMemPoolImportFromShareableHandle(&none, (void *)(intptr_t)line, descriptor, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemPoolImportFromShareableHandle(NULL, (void *)(intptr_t)file, descriptor, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)file, descriptor, 0));
	close(file);
	/* This process has no context yet: a pool is of a device. */
	OK(cuMemPoolImportPointer(&address, pool, &data));
	OK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address));
	OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
	CHECK(bytes >= 4 * WORDS && device == 0);
	start();
	expect_words(address, 3000);
	put_words(address, 30000);
	EXPECT(cuMemAllocFromPoolAsync(&other, 100, pool, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemPoolExportPointer(&data, address), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuIpcCloseMemHandle(address), CUDA_ERROR_INVALID_VALUE);
	CUmemPoolPtrExportData wrong = data;
	wrong.reserved[30] ^= 1;
	EXPECT(cuMemPoolImportPointer(&other, pool, &wrong), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolImportPointer(&other, pool, &data));
	expect_words(other, 30000);
	OK(cuMemFreeAsync(address, NULL));
	OK(cuMemFree(other));
	EXPECT(cuMemFree(other), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolDestroy(pool));
	say(line, &byte, 1);
	return 0;
}

static void share_pool(char *self)
{
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = descriptor,
				      .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, usual;
	CUdeviceptr address, plain;
	int line, file, types;
	char byte;
	pid_t other = start_other(self, "pool", &line);
	OK(cuDeviceGetAttribute(&types, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
	CHECK(types == (int)descriptor);
	OK(cuMemPoolCreate(&pool, &properties));
	OK(cuMemAllocFromPoolAsync(&address, WORDS * 4, pool, NULL));
	put_words(address, 3000);
	OK(cuMemPoolExportToShareableHandle(&file, pool, descriptor, 0));
	OK(cuMemPoolExportPointer(&data, address));
	OK(cuDeviceGetDefaultMemPool(&usual, 0));
	EXPECT(cuMemPoolExportToShareableHandle(&types, usual, descriptor, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemPoolExportToShareableHandle(NULL, pool, descriptor, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAlloc(&plain, 4096));
	EXPECT(cuMemPoolExportPointer(&data, plain), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(plain));
	send_file(line, file);
	close(file);
	say(line, &data, sizeof data);
	hear(line, &byte, 1);
	expect_end(other);
	close(line);
	expect_words(address, 30000);
	OK(cuMemFreeAsync(address, NULL));
	OK(cuMemPoolDestroy(pool));
}

/* ---- on a server with a quota of 16 MiB ---- */

static int greedy(int line)
{
	CUipcMemHandle handle;
	CUdeviceptr own, opened[3];
	char byte = 0;
	start();
	for (int i = 0; i < 3; i++) {
		hear(line, &handle, sizeof handle);
		/* It is charged to both, as its owner may free it while it is open here. */
		EXPECT(cuIpcOpenMemHandle(&opened[i], handle, 1), i < 2 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
		say(line, &byte, 1);
	}
	EXPECT(cuMemAlloc(&own, MIB), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuIpcCloseMemHandle(opened[0]));
	OK(cuMemAlloc(&own, 8 * MIB));
	EXPECT(cuIpcOpenMemHandle(&opened[2], handle, 1), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree(own));
	OK(cuIpcOpenMemHandle(&opened[2], handle, 1));
	say(line, &byte, 1);
	return 0;
}

static void nobody_maps_more_than_the_quota(char *self)
{
	CUipcMemHandle handle;
	CUdeviceptr memory;
	int line;
	char byte;
	pid_t other = start_other(self, "greedy", &line);
	start();
	for (int i = 0; i < 3; i++) {
		OK(cuMemAlloc(&memory, 8 * MIB));
		OK(cuIpcGetMemHandle(&handle, memory));
		say(line, &handle, sizeof handle);
		hear(line, &byte, 1);
		if (i < 2)
			OK(cuMemFree(memory));
	}
	hear(line, &byte, 1);
	expect_end(other);
}

/* A mapping of a small allocation keeps the 2 MiB that it lies in. */
enum { SMALL_ONES = 9 };

static int keeper(int line)
{
	CUipcMemHandle handle;
	CUdeviceptr opened;
	char byte = 0;
	start();
	for (int i = 0; i < SMALL_ONES; i++) {
		hear(line, &handle, sizeof handle);
		EXPECT(cuIpcOpenMemHandle(&opened, handle, 1), i < SMALL_ONES - 1 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
		say(line, &byte, 1);
	}
	return 0;
}

static void small_allocations_count_as_what_is_kept(char *self)
{
	CUipcMemHandle handle;
	CUdeviceptr memory;
	int line;
	char byte;
	pid_t other = start_other(self, "keeper", &line);
	start();
	for (int i = 0; i < SMALL_ONES; i++) {
		OK(cuMemAlloc(&memory, 512));
		OK(cuIpcGetMemHandle(&handle, memory));
		say(line, &handle, sizeof handle);
		hear(line, &byte, 1);
		OK(cuMemFree(memory));
	}
	expect_end(other);
}

/* ---- two programs that a script starts ---- */

static int export_to(const char *path)
{
	CUipcMemHandle handle;
	CUdeviceptr memory;
	FILE *file = fopen(path, "w");
	start();
	OK(cuMemAlloc(&memory, WORDS * 4));
	OK(cuIpcGetMemHandle(&handle, memory));
	CHECK(file && fwrite(&handle, sizeof handle, 1, file) == 1 && !fclose(file));
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}

static int open_from(const char *path, int wanted)
{
	CUipcMemHandle handle;
	CUdeviceptr memory;
	FILE *file = fopen(path, "r");
	CHECK(file && fread(&handle, sizeof handle, 1, file) == 1 && !fclose(file));
	start();
	EXPECT(cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), (CUresult)wanted);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "export") && argc == 3)
		return export_to(argv[2]);
	if (!strcmp(what, "open") && argc == 4)
		return open_from(argv[2], atoi(argv[3]));
	if (argc == 3) {
		int line = atoi(argv[2]);
		return !strcmp(what, "child") ? child(line) : !strcmp(what, "victim") ? victim(line) :
		       !strcmp(what, "second") ? second_user(line) : !strcmp(what, "importer") ? importer(line) :
		       !strcmp(what, "pool") ? pool_user(line) : !strcmp(what, "keeper") ? keeper(line) :
		       !strcmp(what, "owner") ? owner(line) : greedy(line);
	}
	if (!strcmp(what, "quota")) {
		nobody_maps_more_than_the_quota(argv[0]);
		return 0;
	}
	if (!strcmp(what, "charged")) {
		descriptors_are_charged();
		return 0;
	}
	if (!strcmp(what, "small")) {
		small_allocations_count_as_what_is_kept(argv[0]);
		return 0;
	}
	share_with_child(argv[0]);
	survive_its_death(argv[0]);
	contexts_end_what_they_opened(argv[0]);
	share_virtual_memory(argv[0]);
	descriptors_keep_memory(argv[0]);
	share_pool(argv[0]);
	return 0;
}
