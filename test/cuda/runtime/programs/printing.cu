/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels print with printf is on stdout once the host has synchronized, each thread's line whole, as C has it. */
#include "program.cuh"

#include <cstring>
#include <set>
#include <string>
#include <unistd.h>

__global__ void prints(float x, const char *text)
{
	printf("block %d thread %d: %.2f %5s|%c|%lld %u%%\n", blockIdx.x, threadIdx.x, x + threadIdx.x, "in", 'c',
	       (long long)blockIdx.x << 40, 7u);
}

#define EIGHT(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
#define EIGHT_TIMES "%d %d %d %d %d %d %d %d "

/* Half an int and a quarter of one; more arguments than the 32 that count; and what is returned. */
__global__ void odd(int *returned, const char *none, short half, signed char quarter)
{
	returned[0] = printf("%hx %hd %hu %hhx %hhd %#hho %lx\n", half, 70000, 70000, quarter, 300, -1, -1l);
	returned[1] = printf("no argument\n");
	returned[2] = printf(none);
	returned[3] = printf(EIGHT_TIMES EIGHT_TIMES EIGHT_TIMES EIGHT_TIMES "%5d %*d\n", EIGHT(0), EIGHT(8),
			     EIGHT(16), EIGHT(24), 32, 33, 34);
}

static void check_odd(FILE *printed, const int *returned)
{
	static const int want[] = { 7, 0, -1, 32 };
	char line[256];
	std::string numbers;
	for (int n = 0; n < 32; n++)
		numbers += std::to_string(n) + " ";
	EXPECT(fgets(line, sizeof line, printed) && !strcmp(line, "fffe 4464 4464 fd 44 0377 ffffffffffffffff\n"));
	EXPECT(fgets(line, sizeof line, printed) && !strcmp(line, "no argument\n"));
	EXPECT(fgets(line, sizeof line, printed) && line == numbers + "%5d %*d\n");
	EXPECT(!fgets(line, sizeof line, printed));
	for (int n = 0; n < 4; n++)
		EXPECT(returned[n] == want[n]);
}

int main()
{
	int *device, returned[4];
	char name[] = "/tmp/printing.XXXXXX", line[256];
	int file = mkstemp(name), screen = dup(STDOUT_FILENO);
	EXPECT(file >= 0);
	unlink(name);
	EXPECT(dup2(file, STDOUT_FILENO) >= 0);
	prints<<<3, 4>>>(1.5f, NULL);
	CHECK(cudaDeviceSynchronize());
	fflush(stdout);
	off_t end = lseek(file, 0, SEEK_CUR);
	CHECK(cudaMalloc(&device, sizeof returned));
	odd<<<1, 1>>>(device, NULL, -2, -3);
	CHECK(cudaMemcpy(returned, device, sizeof returned, cudaMemcpyDeviceToHost));
	fflush(stdout);
	dup2(screen, STDOUT_FILENO);

	std::multiset<std::string> expected, seen;
	for (int b = 0; b < 3; b++)
		for (int t = 0; t < 4; t++) {
			snprintf(line, sizeof line, "block %d thread %d: %.2f %5s|%c|%lld %u%%\n", b, t, 1.5 + t, "in",
					'c', (long long)b << 40, 7u);
			expected.insert(line);
		}
	lseek(file, 0, SEEK_SET);
	FILE *printed = fdopen(file, "r");
	while (ftell(printed) < end && fgets(line, sizeof line, printed))
		seen.insert(line);
	check_odd(printed, returned);
	fclose(printed);
	for (const auto &l : seen)
		if (!expected.count(l))
			fprintf(stderr, "unexpected: %s", l.c_str());
	EXPECT(seen == expected);
	return 0;
}
