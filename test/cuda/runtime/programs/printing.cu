/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels print with printf is on stdout once the host has synchronized, each thread's line whole. */
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

int main()
{
	char name[] = "/tmp/printing.XXXXXX", line[256];
	int file = mkstemp(name), screen = dup(STDOUT_FILENO);
	EXPECT(file >= 0);
	unlink(name);
	EXPECT(dup2(file, STDOUT_FILENO) >= 0);
	prints<<<3, 4>>>(1.5f, NULL);
	CHECK(cudaDeviceSynchronize());
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
	while (fgets(line, sizeof line, printed))
		seen.insert(line);
	fclose(printed);
	for (const auto &l : seen)
		if (!expected.count(l))
			fprintf(stderr, "unexpected: %s", l.c_str());
	EXPECT(seen == expected);
	return 0;
}
