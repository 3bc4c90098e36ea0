/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed memory of a server that is reached over TCP: what travels, and when. managed_far [CHANGES]: after all else, this number
 * of random changes by both sides is compared with a model. managed_far both-managed | both-pinned: both sides change the same
 * words at a time. managed.c has the calls that are the same within a host.
 */
#include "test/cuda/softgpu/driver.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static CUcontext context;
static CUstream stream, other;

static CUdeviceptr at(const void *memory)
{
	return (CUdeviceptr)(uintptr_t)memory;
}

static void *managed(size_t bytes, unsigned flags)
{
	CUdeviceptr address;
	OK(cuMemAllocManaged(&address, bytes, flags));
	return (void *)(uintptr_t)address;
}

static void increase(CUstream in, uint32_t *word, uint32_t by)
{
	CUdeviceptr there = at(word);
	OK(launch("increase", in, &there, &by));
}

/* Bytes that this process's TCP connections have carried in both directions, as the kernel counts them. */
static uint64_t carried(void)
{
	uint64_t sum = 0;
	for (int fd = 0; fd < 256; fd++) {
		struct tcp_info info;
		socklen_t len = sizeof info;
		if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) && len == sizeof info)
			sum += info.tcpi_bytes_acked + info.tcpi_bytes_received;
	}
	return sum;
}

/* Pages that this process has touched for the first time, or for the first time since they were protected. */
static long touched(void)
{
	struct rusage usage;
	CHECK(!getrusage(RUSAGE_SELF, &usage));
	return usage.ru_minflt;
}

/* True if the kernel can tell which pages were written, and the library may ask it. */
static bool kernel_tells(void)
{
	const char *setting = getenv("HEADRACE_MANAGED_SCAN");
	struct uffdio_api api = { .api = UFFD_API, .features = (uint64_t)1 << 15 }; /* asynchronous write protection */
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1);
	bool can = fd >= 0 && !ioctl(fd, UFFDIO_API, &api);
	if (fd >= 0)
		close(fd);
	return can && !(setting && !strcmp(setting, "0"));
}

/* Of a large allocation only the pages travel that were changed, and the other pages are not even read. */
static void pages_travel_alone(void)
{
	const size_t size = (size_t)1 << 30;
	long pages = touched();
	uint8_t *memory = managed(size, CU_MEM_ATTACH_GLOBAL);
	uint32_t *by_device = (uint32_t *)(memory + size / 2), *by_host = (uint32_t *)(memory + size - 4);
	increase(stream, by_device, 1); /* connections, the kernel's module */
	OK(cuCtxSynchronize());
	uint64_t before = carried();
	for (uint32_t round = 1; round <= 4; round++) {
		*by_host = round;
		increase(stream, by_device, 1);
		increase(stream, by_host, 100);
		OK(cuCtxSynchronize());
		CHECK(*by_device == 1 + round && *by_host == round + 100);
	}
	uint64_t bytes = carried() - before;
	pages = touched() - pages;
	printf("4 rounds with 2 changed pages of 1 GB: %llu bytes on the wire, %ld pages touched\n", (unsigned long long)bytes,
	       pages);
	CHECK(bytes < (uint64_t)4 * 2 * 2 * 4096);
	CHECK(!kernel_tells() || pages < 1000);
	before = carried();
	memset(memory, 7, 1 << 20);
	increase(stream, by_device, 1);
	OK(cuCtxSynchronize());
	bytes = carried() - before;
	CHECK(bytes >= 1 << 20 && bytes < (1 << 20) + 65536);
	OK(cuMemFree(at(memory)));
}

/* Calls that give the device work but launch no kernel: the host may change memory after them, until a kernel is launched. */
static void changes_after_other_calls(void)
{
	static const uint8_t plain[4096];
	const CUDA_ARRAY_DESCRIPTOR shape = { 16, 16, CU_AD_FORMAT_FLOAT, 1 };
	uint32_t *words = managed((size_t)64 << 20, CU_MEM_ATTACH_GLOBAL);
	CUdeviceptr device, later;
	CUarray array;
	OK(cuMemAlloc(&device, sizeof plain));
	for (int how = 0; how < 6; how++) {
		words[77] = 1;
		increase(stream, &words[77], 1);
		OK(cuCtxSynchronize());
		CHECK(words[77] == 2);
		switch (how) {
		case 0:
			OK(cuMemcpyHtoD(device, plain, sizeof plain));
			break;
		case 1:
			OK(cuMemsetD8(device, 0, sizeof plain));
			break;
		case 2:
			OK(cuMemcpyDtoD(device, device + 2048, 2048));
			break;
		case 3:
			OK(cuMemAllocAsync(&later, sizeof plain, stream));
			OK(cuMemFreeAsync(later, stream));
			break;
		case 4:
			OK(cuArrayCreate(&array, &shape));
			OK(cuArrayDestroy(array));
			break;
		default:
			OK(cuMemcpyHtoD(at(&words[100]), plain, sizeof plain));
		}
		words[77] = 100;
		increase(stream, &words[77], 1);
		OK(cuCtxSynchronize());
		CHECK(words[77] == 101);
	}
	OK(cuMemFree(device));
	OK(cuMemFree(at(words)));
}

/* A kernel's result is used by a host function, and the next kernel uses what that has written; once by calls, once in a graph. */
struct talk {
	uint32_t *words, seen;
};

static void CUDA_CB read_and_write(void *argument)
{
	struct talk *talk = argument;
	talk->seen = talk->words[0];
	talk->words[1] = talk->words[0] * 10;
	talk->words[2000] = 5;
}

static void host_functions(bool graph)
{
	struct talk talk = { managed(16384, CU_MEM_ATTACH_GLOBAL), 0 };
	CUgraphExec exec = NULL;
	CUgraph captured;
	talk.words[0] = 3;
	if (graph)
		OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	increase(stream, &talk.words[0], 1);
	OK(cuLaunchHostFunc(stream, read_and_write, &talk));
	increase(stream, &talk.words[1], 2);
	increase(stream, &talk.words[2000], 1);
	if (graph) {
		OK(cuStreamEndCapture(stream, &captured));
		OK(cuGraphInstantiate(&exec, captured, 0));
		OK(cuGraphDestroy(captured));
		OK(cuGraphLaunch(exec, stream));
	}
	OK(cuStreamSynchronize(stream));
	CHECK(talk.seen == 4 && talk.words[0] == 4 && talk.words[1] == 42 && talk.words[2000] == 6);
	if (graph)
		OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(at(talk.words)));
}

/* The program's own handler sees the program's own faults, and no others. */
static uint8_t *guarded;
static uint32_t *noted;
static volatile sig_atomic_t faults;

static void on_fault(int number, siginfo_t *info, void *unused)
{
	(void)number;
	(void)unused;
	faults = faults + 1;
	if ((uint8_t *)info->si_addr != guarded || mprotect(guarded, 4096, PROT_READ | PROT_WRITE))
		_exit(3);
	noted[1000] += 1;
}

static void own_handler(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, before;
	noted = managed(8192, CU_MEM_ATTACH_GLOBAL);
	guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(guarded != MAP_FAILED && !sigaction(SIGSEGV, &action, &before));
	for (uint32_t round = 1; round <= 3; round++) {
		CHECK(!mprotect(guarded, 4096, PROT_NONE));
		noted[0] = round;
		*(volatile uint8_t *)guarded = 1;
		increase(stream, &noted[1000], 10);
		OK(cuStreamSynchronize(stream));
		CHECK(faults == (int)round && noted[0] == round && noted[1000] == 11 * round);
	}
	CHECK(!sigaction(SIGSEGV, &before, NULL));
	munmap(guarded, 4096);
	OK(cuMemFree(at(noted)));
}

/* Memory that is attached to a stream or to the host may be written while another stream is at work, and the next launch sees
 * it. */
static void attached(void)
{
	uint32_t *one = managed(4 << 20, CU_MEM_ATTACH_GLOBAL), *two = managed(4 << 20, CU_MEM_ATTACH_HOST);
	CUdeviceptr flag;
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemsetD32Async(flag, 0, 1, other));
	OK(cuStreamAttachMemAsync(stream, at(one), 0, CU_MEM_ATTACH_SINGLE));
	OK(cuStreamSynchronize(stream));
	OK(cuStreamSynchronize(other));
	hold(other, flag);
	for (uint32_t round = 1; round <= 3; round++) {
		one[500000] = round;
		increase(stream, &one[500000], 100);
		two[0] = round;
		increase(stream, &two[0], 200);
		OK(cuStreamSynchronize(stream));
		CHECK(one[500000] == 100 + round && two[0] == 200 + round);
	}
	OK(cuMemsetD32Async(flag, 1, 1, stream));
	OK(cuCtxSynchronize());
	OK(cuMemFree(at(one)));
	OK(cuMemFree(at(two)));
	OK(cuMemFree(flag));
}

/* Each kind of wait brings what the device has changed: it is complete when the call says so. */
static void waits(void)
{
	uint32_t *word = managed(4, CU_MEM_ATTACH_GLOBAL), expected = 0, plain;
	CUdeviceptr device;
	CUevent event;
	OK(cuMemAlloc(&device, 4));
	OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
	for (int round = 0; round < 5; round++) {
		CUresult result = CUDA_SUCCESS;
		increase(stream, word, 1);
		OK(cuEventRecord(event, stream));
		do
			result = cuStreamQuery(stream);
		while (result == CUDA_ERROR_NOT_READY);
		OK(result);
		CHECK(*word == ++expected);
		increase(stream, word, 1);
		OK(cuEventRecord(event, stream));
		do
			result = cuEventQuery(event);
		while (result == CUDA_ERROR_NOT_READY);
		OK(result);
		CHECK(*word == ++expected);
		increase(stream, word, 1);
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		CHECK(*word == ++expected);
		increase(NULL, word, 1);
		OK(cuMemcpyDtoH(&plain, device, 4)); /* in the same stream */
		CHECK(*word == ++expected);
		increase(stream, word, 1);
		OK(cuMemFree(device)); /* waits for all work */
		CHECK(*word == ++expected);
		OK(cuMemAlloc(&device, 4));
	}
	OK(cuEventDestroy(event));
	OK(cuMemFree(device));
	OK(cuMemFree(at(word)));
}

/* Many small allocations; each has its own bytes. */
static void many(void)
{
	enum { MANY = 1500 };
	static uint32_t *words[MANY];
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			words[i] = managed(4 + i % 50 * 100, CU_MEM_ATTACH_GLOBAL);
			CHECK(!words[i][0]);
			words[i][0] = i;
		}
		for (uint32_t i = 0; i < MANY; i += 100)
			increase(stream, words[i], 1000000);
		OK(cuCtxSynchronize());
		for (uint32_t i = 0; i < MANY; i++) {
			CHECK(words[i][0] == (i % 100 ? i : i + 1000000));
			OK(cuMemFree(at(words[i])));
		}
	}
}

/* Allocations that lie next to each other, all of whose bytes change, on both sides. */
static void side_by_side(void)
{
	enum { BYTES = 12288 };
	uint8_t *memory[20];
	uint32_t bytes = BYTES;
	for (int i = 0; i < 20; i++)
		memory[i] = managed(BYTES, CU_MEM_ATTACH_GLOBAL);
	for (int round = 1; round < 4; round++) {
		for (int i = 0; i < 20; i++)
			memset(memory[i], round, BYTES);
		for (int i = 0; i < 20; i += 3) {
			CUdeviceptr there = at(memory[i]);
			OK(launch("write", stream, &there, &bytes));
		}
		OK(cuCtxSynchronize());
		for (int i = 0; i < 20; i++)
			for (int k = 0; k < BYTES; k++)
				CHECK(memory[i][k] == (i % 3 ? round : 0xA5));
		for (int i = 0; i < 20; i++)
			OK(cuMemsetD8Async(at(memory[i]), (unsigned char)(i + round), BYTES, stream));
		OK(cuCtxSynchronize());
		for (int i = 0; i < 20; i++)
			CHECK(memory[i][0] == i + round && memory[i][BYTES - 1] == i + round);
	}
	for (int i = 0; i < 20; i++)
		OK(cuMemFree(at(memory[i])));
}

/* Threads with streams and memory of their own. */
static void *work(void *unused)
{
	CUstream mine;
	(void)unused;
	OK(cuCtxSetCurrent(context));
	uint32_t *words = managed(65536, CU_MEM_ATTACH_HOST);
	OK(cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
	for (uint32_t round = 0; round < 100; round++) {
		words[round] = round;
		words[16000] = round;
		increase(mine, &words[round], 7);
		increase(mine, &words[16000], 1);
		OK(cuStreamSynchronize(mine));
		CHECK(words[round] == round + 7 && words[16000] == round + 1);
	}
	OK(cuStreamDestroy(mine));
	OK(cuMemFree(at(words)));
	return NULL;
}

static void threads(void)
{
	pthread_t thread[4];
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

/* Random changes by host and device to neighbouring bytes, compared with a model of the memory. */
static void at_random(unsigned changes)
{
	enum { SIZE = 100000 };
	uint8_t *memory = managed(SIZE, CU_MEM_ATTACH_GLOBAL), *model = calloc(1, SIZE), *back = malloc(SIZE);
	uint64_t state = 88172645463325252;
	CHECK(model && back);
	for (unsigned n = 0; n < changes;) {
		unsigned together = 1 + (unsigned)(state >> 20) % 20;
		for (unsigned i = 0; i < together; i++, n++) {
			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			uint64_t place = (state >> 8) % 3 ? (state >> 16) % 300 : (state >> 16) % (SIZE - 100);
			uint32_t bytes = 1 + (uint32_t)(state >> 50) % 100;
			bool by_device = state >> 40 & 1;
			CUdeviceptr there = at(memory + place);
			if (by_device)
				OK(launch("write", stream, &there, &bytes));
			if (by_device)
				OK(cuStreamSynchronize(stream));
			if (!by_device)
				memset(memory + place, (int)(state >> 33), bytes);
			memset(model + place, by_device ? 0xA5 : (int)(state >> 33), bytes);
		}
		OK(cuMemcpyDtoH(back, at(memory), SIZE));
		CHECK(!memcmp(memory, model, SIZE) && !memcmp(back, model, SIZE));
	}
	free(model);
	free(back);
	OK(cuMemFree(at(memory)));
}

/* The program changes words that a kernel changes too, and does not wait for the kernel. In managed memory that is an error of the
 * next call that waits, and of no other one; in mapped memory a line says it. */
static void changed_by_both(bool mapped)
{
	uint32_t *words;
	if (mapped)
		OK(cuMemHostAlloc((void **)&words, 16384, CU_MEMHOSTALLOC_DEVICEMAP));
	else
		words = managed(16384, CU_MEM_ATTACH_GLOBAL);
	memset(words, 0, 16384);
	increase(stream, &words[0], 1);
	increase(stream, &words[3000], 1);
	words[1] = 2; /* a neighbour */
	words[3000] = 1; /* what the kernel writes, too */
	OK(cuStreamSynchronize(stream));
	CHECK(words[0] == 1 && words[1] == 2 && words[3000] == 1);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t *word = &words[i * 1000];
		increase(stream, word, 0x111);
		*word += 0x222;
		EXPECT(cuStreamSynchronize(stream), mapped ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
		OK(cuStreamSynchronize(stream));
		increase(stream, word, 1);
		OK(cuStreamSynchronize(stream));
	}
	if (mapped)
		OK(cuMemFreeHost(words));
	else
		OK(cuMemFree(at(words)));
}

int main(int argc, char **argv)
{
	context = start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	if (argc > 1 && !strncmp(argv[1], "both-", 5)) {
		changed_by_both(!strcmp(argv[1] + 5, "pinned"));
		return 0;
	}
	kernel("wait"); /* loaded before a stream is held */
	pages_travel_alone();
	changes_after_other_calls();
	host_functions(false);
	host_functions(true);
	own_handler();
	attached();
	waits();
	many();
	side_by_side();
	threads();
	at_random(argc > 1 ? (unsigned)atoi(argv[1]) : 500);
	return 0;
}
