/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that computes and checks every result: steady ROUNDS. Prints the ms that it took. The driver is the software GPU.
 * Each round: copy up, a kernel that adds 3 * i + round to element i, copy down, compare.
 */
#include "test/cuda/softgpu/driver.h"

#include <time.h>

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry add(.param .u64 data, .param .u32 round) {\n"
	"	.reg .b64 p, o; .reg .b32 i, b, t, r, v, w;\n"
	"	ld.param.u64 p, [data]; ld.param.u32 r, [round]; cvta.to.global.u64 p, p;\n"
	"	mov.u32 b, %ctaid.x; mov.u32 t, %tid.x; mad.lo.u32 i, b, 256, t;\n"
	"	mul.wide.u32 o, i, 4; add.u64 p, p, o;\n"
	"	ld.global.u32 v, [p]; mad.lo.u32 w, i, 3, r; add.u32 v, v, w; st.global.u32 [p], v;\n"
	"	ret;\n}\n";

int main(int argc, char **argv)
{
	enum { N = 64 * 256 };
	static uint32_t host[N], back[N];
	CUmodule module;
	CUfunction add;
	CUdeviceptr device;
	struct timespec from, to;
	CHECK(argc == 2);
	start();
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&add, module, "add"));
	OK(cuMemAlloc(&device, sizeof host));
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (uint32_t round = 0, rounds = (uint32_t)atoi(argv[1]); round < rounds; round++) {
		for (uint32_t i = 0; i < N; i++)
			host[i] = i * 2654435761u + round;
		void *parameters[] = { &device, &round };
		OK(cuMemcpyHtoD(device, host, sizeof host));
		OK(cuLaunchKernel(add, N / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
		OK(cuMemcpyDtoH(back, device, sizeof back));
		for (uint32_t i = 0; i < N; i++)
			CHECK(back[i] == host[i] + 3 * i + round);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%lld\n", (long long)(to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000);
	return 0;
}
