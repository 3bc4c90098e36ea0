// SPDX-License-Identifier: BSD-3-Clause
// What programs do besides calling CUDA. The status is 0 if all is well, and 7 in the modes that end without cleaning up.
//
//	habits works     uses the GPU
//	habits nothing   makes no CUDA call
//	habits exits     ends by exit with memory allocated and a kernel just launched; habits ends: by _exit
//	habits forks     its child uses the GPU; then the program does
//	habits execs     sets LD_LIBRARY_PATH and executes itself, to use the GPU
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

static __global__ void twice(int *value)
{
	*value *= 2;
}

// Leaves the memory allocated.
static int *start(int value)
{
	int *memory;
	if (cudaMalloc((void **)&memory, sizeof *memory) ||
	    cudaMemcpy(memory, &value, sizeof value, cudaMemcpyHostToDevice))
		exit(1);
	twice<<<1, 1>>>(memory);
	return memory;
}

static int works()
{
	int *memory = start(21), result = 0;
	if (cudaMemcpy(&result, memory, sizeof result, cudaMemcpyDeviceToHost) || cudaFree(memory))
		return 1;
	return result == 42 ? 0 : 1;
}

static int forks()
{
	int status = 0;
	pid_t child = fork();
	if (child == 0)
		exit(works());
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return 1;
	return works();
}

int main(int argc, char **argv)
{
	const char *mode = argc == 2 ? argv[1] : "";
	if (!strcmp(mode, "works"))
		return works();
	if (!strcmp(mode, "nothing"))
		return 0;
	if (!strcmp(mode, "exits"))
		exit(start(1) ? 7 : 1);
	if (!strcmp(mode, "ends"))
		_exit(start(1) ? 7 : 1);
	if (!strcmp(mode, "forks"))
		return forks();
	setenv("LD_LIBRARY_PATH", "/nowhere", 1);
	execl("/proc/self/exe", argv[0], "works", (char *)NULL);
	return 1;
}
