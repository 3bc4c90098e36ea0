/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * killed SEED TRIALS PID: the workers of the second of three servers, the children of PID, are killed at a drawn moment, while
 * bytes go from the host to the first server, to the second, to the third and back to the host, with host functions between. A
 * round whose calls have all succeeded has brought the right bytes. Then the other two servers must work, and what was in their
 * memory before must be there. Each trial is a process of its own.
 */
#include "test/cuda/softgpu/driver.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEVICES 3
#define DEPTH 3 /* rounds under way */
#define MOST (512u << 10) /* words */
#define LIMIT 100 /* seconds of a trial */

static uint64_t random_state;
static unsigned delay; /* us */
static int parent;
static bool killed; /* atomic */
static const char *stage = "set-up"; /* atomic */

static CUcontext contexts[DEVICES];
static CUstream streams[DEVICES][DEPTH];
static CUevent events[DEVICES][DEPTH];
static CUdeviceptr memory[DEVICES][DEPTH], kept[DEVICES];
static uint32_t *pattern, *back[DEPTH], words[DEPTH], shift[DEPTH];
static uint32_t noted[DEPTH]; /* by a host function of the third server */

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 32) * below >> 32);
}

static void now(const char *what)
{
	__atomic_store_n(&stage, what, __ATOMIC_RELEASE);
}

static void use(int device)
{
	OK(cuCtxSetCurrent(contexts[device]));
}

/* True: success. Nothing but the loss of the server may happen otherwise. */
static bool good(CUresult result, const char *call)
{
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEVICE_UNAVAILABLE) {
		fprintf(stderr, "%s: error %d\n", call, result);
		exit(1);
	}
	return result == CUDA_SUCCESS;
}
#define GOOD(call) good((call), #call)

static void set_up(void)
{
	for (int i = 0; i < DEVICES; i++) {
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		use(i);
		for (int k = 0; k < DEPTH; k++) {
			OK(cuStreamCreate(&streams[i][k], CU_STREAM_NON_BLOCKING));
			OK(cuEventCreate(&events[i][k], CU_EVENT_DISABLE_TIMING));
			OK(cuMemAlloc(&memory[i][k], 4 * MOST));
		}
		OK(cuMemAlloc(&kept[i], 4 * MOST));
	}
	OK(cuMemHostAlloc((void **)&pattern, 8 * MOST, CU_MEMHOSTALLOC_PORTABLE));
	for (uint32_t i = 0; i < 2 * MOST; i++)
		pattern[i] = i * 2654435761u;
	for (int k = 0; k < DEPTH; k++)
		OK(cuMemHostAlloc((void **)&back[k], 4 * MOST, CU_MEMHOSTALLOC_PORTABLE));
	OK(cuMemcpyHtoD(kept[0], pattern, 4 * MOST));
	OK(cuMemcpyHtoD(kept[2], pattern + 1, 4 * MOST));
}

static void note(void *argument)
{
	int k = (int)(uintptr_t)argument;
	noted[k] = back[k][words[k] - 1];
}

static bool issue(int k)
{
	bool all = true;
	static const uint32_t sizes[] = { 4, 1000, 20000, MOST };
	words[k] = 1 + draw(sizes[draw(4)]);
	shift[k] = draw(MOST);
	size_t bytes = 4 * (size_t)words[k];
	use(0);
	all &= GOOD(cuMemcpyHtoDAsync(memory[0][k], pattern + shift[k], bytes, streams[0][k]));
	all &= GOOD(cuMemcpyPeerAsync(memory[1][k], contexts[1], memory[0][k], contexts[0], bytes, streams[0][k]));
	all &= GOOD(cuEventRecord(events[0][k], streams[0][k]));
	use(1);
	all &= GOOD(cuStreamWaitEvent(streams[1][k], events[0][k], 0));
	all &= GOOD(cuMemcpyPeerAsync(memory[2][k], contexts[2], memory[1][k], contexts[1], bytes, streams[1][k]));
	all &= GOOD(cuEventRecord(events[1][k], streams[1][k]));
	use(2);
	all &= GOOD(cuStreamWaitEvent(streams[2][k], events[1][k], 0));
	all &= GOOD(cuMemcpyDtoHAsync(back[k], memory[2][k], bytes, streams[2][k]));
	all &= GOOD(cuLaunchHostFunc(streams[2][k], note, (void *)(uintptr_t)k));
	return all;
}

static bool await(int k)
{
	use(2);
	if (!GOOD(cuStreamSynchronize(streams[2][k])))
		return false;
	CHECK(!memcmp(back[k], pattern + shift[k], 4 * (size_t)words[k]));
	CHECK(noted[k] == pattern[shift[k] + words[k] - 1]);
	return true;
}

static void rounds(void)
{
	bool lost = false;
	for (unsigned after = 0; after < 4; after += __atomic_load_n(&killed, __ATOMIC_ACQUIRE)) {
		bool issued[DEPTH];
		now("the calls of a round");
		for (int k = 0; k < DEPTH; k++)
			issued[k] = issue(k);
		now("the waits of a round");
		for (int k = 0; k < DEPTH; k++) {
			if (!issued[k] || lost) {
				lost = true;
				use(2);
				GOOD(cuStreamSynchronize(streams[2][k]));
			} else {
				lost = !await(k);
			}
		}
	}
	CHECK(lost);
}

/* Each failed copy and wait is told once at most. */
static void recovers(int device)
{
	int failures = 0;
	use(device);
	while (!GOOD(cuCtxSynchronize()))
		CHECK(++failures < 100);
	OK(cuCtxSynchronize());
}

static void others_work(void)
{
	uint32_t *found = malloc(4 * MOST);
	CHECK(found);
	now("what the lost server answers");
	use(1);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	now("the first waits of the others");
	recovers(0);
	recovers(2);
	now("copies of what was there before");
	OK(cuMemcpyDtoH(found, kept[0], 4 * MOST));
	CHECK(!memcmp(found, pattern, 4 * MOST));
	OK(cuMemcpyDtoH(found, kept[2], 4 * MOST));
	CHECK(!memcmp(found, pattern + 1, 4 * MOST));
	now("copies between the others");
	for (int k = 0; k < DEPTH; k++) {
		use(0);
		OK(cuMemcpyHtoDAsync(memory[0][k], pattern + 5, 4 * MOST, streams[0][k]));
		OK(cuMemcpyPeerAsync(memory[2][k], contexts[2], memory[0][k], contexts[0], 4 * MOST, streams[0][k]));
		OK(cuEventRecord(events[0][k], streams[0][k]));
		use(2);
		OK(cuStreamWaitEvent(streams[2][k], events[0][k], 0));
		OK(cuMemcpyDtoHAsync(back[k], memory[2][k], 4 * MOST, streams[2][k]));
		OK(cuStreamSynchronize(streams[2][k]));
		CHECK(!memcmp(back[k], pattern + 5, 4 * MOST));
	}
	now("the frees");
	for (int i = 0; i < DEVICES; i += 2) {
		use(i);
		OK(cuMemFree(kept[i]));
		for (int k = 0; k < DEPTH; k++) {
			OK(cuMemFree(memory[i][k]));
			OK(cuStreamDestroy(streams[i][k]));
			OK(cuEventDestroy(events[i][k]));
		}
		OK(cuCtxSynchronize());
	}
	for (int k = 0; k < DEPTH; k++)
		OK(cuMemFreeHost(back[k]));
	OK(cuMemFreeHost(pattern));
	free(found);
}

/* The processes whose parent is the daemon. */
static void kill_workers(void)
{
	DIR *folder = opendir("/proc");
	CHECK(folder);
	for (struct dirent *entry; (entry = readdir(folder));) {
		char path[300], line[512];
		int its_parent = 0, pid = atoi(entry->d_name);
		snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
		FILE *file = pid > 0 ? fopen(path, "r") : NULL;
		if (!file)
			continue;
		if (fgets(line, sizeof line, file) && strrchr(line, ')'))
			sscanf(strrchr(line, ')'), ") %*c %d", &its_parent);
		fclose(file);
		if (its_parent == parent)
			kill(pid, SIGKILL);
	}
	closedir(folder);
}

static void *killer(void *unused)
{
	(void)unused;
	usleep(delay);
	kill_workers();
	__atomic_store_n(&killed, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *watch(void *unused)
{
	(void)unused;
	sleep(LIMIT);
	fprintf(stderr, "not over after %d s, in %s\n", LIMIT, __atomic_load_n(&stage, __ATOMIC_ACQUIRE));
	abort();
}

static int trial(uint64_t seed)
{
	pthread_t thread, watcher;
	random_state = seed * 0x9E3779B97F4A7C15u;
	delay = draw(draw(2) ? 3000 : 60000);
	CHECK(!pthread_create(&watcher, NULL, watch, NULL) && !pthread_detach(watcher));
	OK(cuInit(0));
	set_up();
	if (draw(4)) { /* otherwise the links between the workers are opened while the server dies */
		CHECK(issue(0));
		CHECK(await(0));
	}
	CHECK(!pthread_create(&thread, NULL, killer, NULL));
	rounds();
	pthread_join(thread, NULL);
	others_work();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	parent = atoi(argv[3]);
	for (uint64_t seed = strtoull(argv[1], NULL, 0), last = seed + strtoull(argv[2], NULL, 0); seed < last; seed++) {
		int status;
		pid_t child = fork();
		CHECK(child >= 0);
		if (!child)
			exit(trial(seed));
		CHECK(waitpid(child, &status, 0) == child);
		if (status) {
			fprintf(stderr, "trial %llu: status %#x\n", (unsigned long long)seed, (unsigned)status);
			return 1;
		}
	}
	return 0;
}
