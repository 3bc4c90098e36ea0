/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls with wrong arguments: each returns the error that CUDA documents for it, and the device works afterwards. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dlfcn.h>

#include <cuda.h>
#include <cuda_runtime.h>

static int failures;

#define EXPECT(call, expected)                                                                            \
	do {                                                                                              \
		cudaError_t got_ = (call);                                                                \
		if (got_ != (expected)) {                                                                 \
			printf("line %d: %s: %s, expected %s\n", __LINE__, #call, cudaGetErrorName(got_), \
			       cudaGetErrorName(expected));                                               \
			failures++;                                                                       \
		}                                                                                         \
	} while (0)

#define EXPECT_CU(call, expected)                                                                           \
	do {                                                                                                \
		CUresult got_ = (call);                                                                     \
		if (got_ != (expected)) {                                                                   \
			printf("line %d: %s: %d, expected %d\n", __LINE__, #call, (int)got_, (int)(expected)); \
			failures++;                                                                         \
		}                                                                                           \
	} while (0)

__global__ void add_one(int *values, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		values[i] += 1;
}

static void check_device_works(void)
{
	const int n = 1000;
	std::vector<int> values(n);
	int *device;
	for (int i = 0; i < n; i++)
		values[i] = i;
	EXPECT(cudaMalloc(&device, n * sizeof(int)), cudaSuccess);
	EXPECT(cudaMemcpy(device, values.data(), n * sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
	add_one<<<(n + 127) / 128, 128>>>(device, n);
	EXPECT(cudaGetLastError(), cudaSuccess);
	EXPECT(cudaMemcpy(values.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
	EXPECT(cudaFree(device), cudaSuccess);
	for (int i = 0; i < n; i++) {
		if (values[i] != i + 1) {
			printf("wrong result at %d: %d\n", i, values[i]);
			failures++;
			return;
		}
	}
}

static void launch(dim3 grid, dim3 block, size_t shared, cudaError_t expected, int line)
{
	int *none = nullptr;
	add_one<<<grid, block, shared>>>(none, 0);
	cudaError_t got = cudaGetLastError();
	if (got != expected) {
		printf("launch at line %d: %s, expected %s\n", line, cudaGetErrorName(got), cudaGetErrorName(expected));
		failures++;
	}
	EXPECT(cudaGetLastError(), cudaSuccess);
}

static void bad_launches(void)
{
	const cudaError_t wrong = cudaErrorInvalidConfiguration;
	launch(dim3(0), dim3(1), 0, wrong, __LINE__);
	launch(dim3(1, 0), dim3(1), 0, wrong, __LINE__);
	launch(dim3(1), dim3(0), 0, wrong, __LINE__);
	launch(dim3(1), dim3(1, 1, 0), 0, wrong, __LINE__);
	launch(dim3(1, 65536), dim3(1), 0, wrong, __LINE__);
	launch(dim3(1), dim3(1025), 0, wrong, __LINE__);
	launch(dim3(1), dim3(32, 33), 0, wrong, __LINE__);
	launch(dim3(1), dim3(1, 1, 65), 0, wrong, __LINE__);
	launch(dim3(1), dim3(1), size_t(1) << 30, cudaErrorInvalidValue, __LINE__);
	launch(dim3(2), dim3(32), 0, cudaSuccess, __LINE__);
	EXPECT(cudaDeviceSynchronize(), cudaSuccess);
	check_device_works();
}

static void bad_copies(void)
{
	char host[64] = "";
	char *device;
	EXPECT(cudaMalloc(&device, 64), cudaSuccess);
	EXPECT(cudaMemcpy(device, host, 64, (cudaMemcpyKind)99), cudaErrorInvalidMemcpyDirection);
	EXPECT(cudaMemcpy(device, host, size_t(1) << 30, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(host, device, size_t(1) << 30, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(nullptr, host, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy((void *)uintptr_t(16), host, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	EXPECT(cudaMemset((void *)uintptr_t(16), 0, 16), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice), cudaSuccess);
	EXPECT(cudaFree(device), cudaSuccess);
	EXPECT(cudaFree(device), cudaErrorInvalidValue);
	EXPECT(cudaMalloc(&device, size_t(1) << 60), cudaErrorMemoryAllocation);
	(void)cudaGetLastError();
	check_device_works();
}

/* The driver's call of that name, found as a program without -lcuda finds it. */
template <typename Function> static void find(Function *&function, const char *name)
{
	static void *const library = dlopen("libcuda.so.1", RTLD_NOW);
	function = reinterpret_cast<Function *>(library ? dlsym(library, name) : nullptr);
	if (!function) {
		printf("no %s: %s\n", name, dlerror());
		exit(1);
	}
}

static void bad_modules(void)
{
	decltype(cuModuleLoadData) *load_data;
	decltype(cuModuleLoad) *load;
	decltype(cuModuleGetFunction) *get_function;
	decltype(cuModuleUnload) *unload;
	find(load_data, "cuModuleLoadData");
	find(load, "cuModuleLoad");
	find(get_function, "cuModuleGetFunction");
	find(unload, "cuModuleUnload");
#define HEADER ".version 7.0\n.target sm_75\n.address_size 64\n"
	static const char *const texts[] = {
		"this is not PTX",
		HEADER ".visible .entry cut_off(.param .u64 a) {\n\tld.param.u64",
		HEADER ".visible .entry undeclared() {\n\tmov.u32 %r1, 1;\n\tret;\n}\n",
	};
	CUmodule module;
	CUfunction function;
	for (const char *text : texts)
		EXPECT_CU(load_data(&module, text), CUDA_ERROR_INVALID_PTX);
	/* What is no instruction may also be one that this driver does not know. */
	CUresult unknown = load_data(&module, HEADER ".visible .entry broken() {\n\tadd.nonsense %r1, %r2;\n}\n");
	if (unknown != CUDA_ERROR_NOT_SUPPORTED)
		EXPECT_CU(unknown, CUDA_ERROR_INVALID_PTX);
	EXPECT_CU(load(&module, "/nonexistent/module.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
	static const char good[] = HEADER ".visible .entry empty() {\n\tret;\n}\n";
	EXPECT_CU(load_data(&module, good), CUDA_SUCCESS);
	EXPECT_CU(get_function(&function, module, "absent"), CUDA_ERROR_NOT_FOUND);
	EXPECT_CU(get_function(&function, module, "empty"), CUDA_SUCCESS);
	EXPECT_CU(unload(module), CUDA_SUCCESS);
	check_device_works();
}

int main()
{
	check_device_works();
	bad_launches();
	bad_copies();
	bad_modules();
	puts(failures ? "FAILED" : "passed");
	return failures != 0;
}
