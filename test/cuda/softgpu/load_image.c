/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load_image FILE...: loads each as a module, runs its kernel "scale" and checks the result. An ELF-only image must be
 * refused with an explanation: load_image --refused FILE. Every byte changed: load_image --damaged FILE.
 */
#include "driver.h"

static CUresult load(CUmodule *module, const char *file, char *error, size_t room)
{
	FILE *in = fopen(file, "rb");
	CHECK(in);
	CHECK(!fseek(in, 0, SEEK_END));
	size_t bytes = (size_t)ftell(in);
	rewind(in);
	char *image = calloc(1, bytes + 1);
	CHECK(image && fread(image, 1, bytes, in) == bytes);
	fclose(in);
	error[0] = '\0';
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { error, (void *)room };
	CUresult result = cuModuleLoadDataEx(module, image, 2, options, values);
	free(image);
	return result;
}

/* data[i] = factor * data[i] + table[i % 4], with __constant__ int table[4]. */
static void run(CUmodule module)
{
	enum { COUNT = 1000 };
	int host[COUNT], table[4], factor = 3, count = COUNT;
	CUdeviceptr data, constant;
	CUfunction scale;
	size_t bytes;
	OK(cuModuleGetFunction(&scale, module, "scale"));
	OK(cuModuleGetGlobal(&constant, &bytes, module, "table"));
	CHECK(bytes == sizeof table);
	OK(cuMemcpyDtoH(table, constant, sizeof table));
	CHECK(table[0] == 10 && table[3] == 40);
	table[2] = -5;
	OK(cuMemcpyHtoD(constant, table, sizeof table));
	for (int i = 0; i < COUNT; i++)
		host[i] = i;
	OK(cuMemAlloc(&data, sizeof host));
	OK(cuMemcpyHtoD(data, host, sizeof host));
	void *parameters[] = { &data, &factor, &count };
	OK(cuLaunchKernel(scale, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
	OK(cuMemcpyDtoH(host, data, sizeof host));
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == 3 * i + table[i % 4]);
	OK(cuMemFree(data));
}

static void refused(const char *file)
{
	CUmodule module;
	char error[1000];
	EXPECT(load(&module, file, error, sizeof error), CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK(strstr(error, "PTX"));
}

/* Loaded from a file, where the true size is known; whatever loads is unloaded. */
static void damaged(const char *file)
{
	static unsigned char image[1 << 20];
	char copy[4096];
	FILE *in = fopen(file, "rb");
	CHECK(in);
	size_t bytes = fread(image, 1, sizeof image, in);
	fclose(in);
	CHECK(bytes && bytes < sizeof image);
	snprintf(copy, sizeof copy, "%s.damaged", file);
	uint32_t random = 12345;
	for (int round = 0; round < 400; round++) {
		random = random * 1664525 + 1013904223;
		size_t at = random % bytes;
		unsigned char before = image[at];
		image[at] ^= (unsigned char)(1 + random % 255);
		FILE *out = fopen(copy, "wb");
		CHECK(out && fwrite(image, 1, bytes, out) == bytes && !fclose(out));
		image[at] = before;
		CUmodule module;
		if (!cuModuleLoad(&module, copy))
			OK(cuModuleUnload(module));
	}
	remove(copy);
}

int main(int argc, char **argv)
{
	start();
	CHECK(argc > 1);
	for (int i = 1; i < argc; i++) {
		CUmodule module;
		char error[1000];
		if (!strcmp(argv[i], "--refused")) {
			refused(argv[++i]);
		} else if (!strcmp(argv[i], "--damaged")) {
			damaged(argv[++i]);
		} else {
			OK(load(&module, argv[i], error, sizeof error));
			run(module);
			OK(cuModuleUnload(module));
		}
		printf("%s: as it should be\n", argv[i]);
	}
	OK(cuDevicePrimaryCtxRelease(0));
	return 0;
}
