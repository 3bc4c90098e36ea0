// SPDX-License-Identifier: BSD-3-Clause
// Compiles with NVRTC and links with nvJitLink for machine code, and runs the result. With LINKED, the program is linked
// with both libraries; else it opens them by the paths that it gets.
//
//	toolkit run NVRTC NVJITLINK       loads and runs what the libraries return: the device is a software GPU
//	toolkit machine NVRTC NVJITLINK   the libraries return machine code: the device is another GPU
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <dlfcn.h>
#include <nvJitLink.h>
#include <nvrtc.h>
#include <string>
#include <vector>

#define OK(call)                                                                                                       \
	do {                                                                                                           \
		int ok_result = (int)(call);                                                                           \
		if (ok_result) {                                                                                       \
			printf("line %d: %s: %d\n", __LINE__, #call, ok_result);                                       \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)
#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("line %d: not so: %s\n", __LINE__, #condition);                                         \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#ifdef LINKED
#define FUNCTION(library, name) static decltype(&name) p_##name = name
static void open_libraries(char **)
{
}
#else
#define FUNCTION(library, name) static decltype(&name) p_##name
#endif

#define FUNCTIONS(X)                                                                                                   \
	X(0, nvrtcCreateProgram);                                                                                      \
	X(0, nvrtcCompileProgram);                                                                                     \
	X(0, nvrtcDestroyProgram);                                                                                     \
	X(0, nvrtcGetCUBINSize);                                                                                       \
	X(0, nvrtcGetCUBIN);                                                                                           \
	X(0, nvrtcGetPTXSize);                                                                                         \
	X(0, nvrtcGetPTX);                                                                                             \
	X(0, nvrtcGetLTOIRSize);                                                                                       \
	X(0, nvrtcGetLTOIR);                                                                                           \
	X(1, nvJitLinkCreate);                                                                                         \
	X(1, nvJitLinkDestroy);                                                                                        \
	X(1, nvJitLinkAddData);                                                                                        \
	X(1, nvJitLinkAddFile);                                                                                        \
	X(1, nvJitLinkComplete);                                                                                       \
	X(1, nvJitLinkGetLinkedCubinSize);                                                                             \
	X(1, nvJitLinkGetLinkedCubin);                                                                                 \
	X(1, nvJitLinkGetLinkedPtxSize);                                                                               \
	X(1, nvJitLinkGetLinkedPtx);                                                                                   \
	X(1, nvJitLinkGetErrorLogSize);                                                                                \
	X(1, nvJitLinkGetErrorLog);                                                                                    \
	X(1, nvJitLinkGetInfoLogSize)
FUNCTIONS(FUNCTION);

#ifndef LINKED
static void open_libraries(char **paths)
{
	void *library[2];
	for (int i = 0; i < 2; i++) {
		library[i] = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
		CHECK(library[i]);
	}
#define LOOK_UP(index, name)                                                                                           \
	*(void **)&p_##name = dlsym(library[index], #name);                                                            \
	CHECK(p_##name)
	FUNCTIONS(LOOK_UP);
	CHECK(!dlsym(library[0], "nvrtcNoSuchFunction") && dlerror());
	CHECK(dlsym(library[1], "nvJitLinkVersion"));
}
#endif

static const char kernel[] = "extern \"C\" __device__ int thrice(int x);\n"
			     "extern \"C\" __global__ void k(int *p) { p[threadIdx.x] = thrice(threadIdx.x); }\n";
static const char device[] = "extern \"C\" __device__ int thrice(int x) { return 3 * x; }\n";
static const char alone[] = "extern \"C\" __global__ void k(int *p) { p[threadIdx.x] = 3 * threadIdx.x; }\n";

enum what { CUBIN, PTX, LTO };

static std::string compiled(const char *text, enum what what)
{
	nvrtcProgram program;
	const char *options[] = { what == PTX ? "-arch=compute_75" : "-arch=sm_75", "-rdc=true", "-dlto" };
	if (what == LTO)
		options[1] = "-dlto";
	size_t size = 0;
	std::string image;
	OK(p_nvrtcCreateProgram(&program, text, "unit.cu", 0, nullptr, nullptr));
	OK(p_nvrtcCompileProgram(program, 2, options));
	OK((what == CUBIN ? p_nvrtcGetCUBINSize : what == PTX ? p_nvrtcGetPTXSize : p_nvrtcGetLTOIRSize)(program, &size));
	CHECK(size);
	image.resize(size);
	OK((what == CUBIN ? p_nvrtcGetCUBIN : what == PTX ? p_nvrtcGetPTX : p_nvrtcGetLTOIR)(program, &image[0]));
	OK(p_nvrtcDestroyProgram(&program));
	return image;
}

struct input {
	nvJitLinkInputType type;
	std::string image;
};

static std::string linked(const std::vector<input> &inputs, bool lto)
{
	nvJitLinkHandle link;
	const char *options[] = { "-arch=sm_75", "-lto" };
	size_t size = 0;
	OK(p_nvJitLinkCreate(&link, lto ? 2 : 1, options));
	for (const input &input : inputs)
		OK(p_nvJitLinkAddData(link, input.type, input.image.data(), input.image.size(), "unit"));
	OK(p_nvJitLinkComplete(link));
	OK(p_nvJitLinkGetLinkedCubinSize(link, &size));
	std::string image(size, 'x');
	OK(p_nvJitLinkGetLinkedCubin(link, &image[0]));
	OK(p_nvJitLinkDestroy(&link));
	return image;
}

static void run(const std::string &image)
{
	CUcontext context;
	CUmodule module;
	CUfunction function;
	CUdeviceptr memory;
	int back[32];
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxPushCurrent(context));
	OK(cuModuleLoadData(&module, image.data()));
	OK(cuModuleGetFunction(&function, module, "k"));
	OK(cuMemAlloc(&memory, sizeof back));
	void *parameters[] = { &memory };
	OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
	OK(cuMemcpyDtoH(back, memory, sizeof back));
	for (int i = 0; i < 32; i++)
		CHECK(back[i] == 3 * i);
	OK(cuMemFree(memory));
	OK(cuModuleUnload(module));
	OK(cuCtxPopCurrent(&context));
	OK(cuDevicePrimaryCtxRelease(0));
}

/* A file as an input, and the link's output as an input of another link. */
static void test_files(const std::string &twice_linked)
{
	char path[] = "/tmp/headrace-test-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");
	CHECK(file && fwrite(twice_linked.data(), 1, twice_linked.size(), file) == twice_linked.size() && !fclose(file));
	nvJitLinkHandle link;
	const char *option = "-arch=sm_75";
	size_t size = 0;
	OK(p_nvJitLinkCreate(&link, 1, &option));
	OK(p_nvJitLinkAddFile(link, NVJITLINK_INPUT_CUBIN, path));
	CHECK(p_nvJitLinkAddFile(link, NVJITLINK_INPUT_CUBIN, "/nowhere/at/all") != NVJITLINK_SUCCESS);
	OK(p_nvJitLinkComplete(link));
	OK(p_nvJitLinkGetLinkedCubinSize(link, &size));
	std::string image(size, 'x');
	OK(p_nvJitLinkGetLinkedCubin(link, &image[0]));
	OK(p_nvJitLinkDestroy(&link));
	remove(path);
	run(image);
}

static std::string error_log(nvJitLinkHandle link)
{
	size_t size = 0;
	OK(p_nvJitLinkGetErrorLogSize(link, &size));
	std::string log(size + 1, 0);
	OK(p_nvJitLinkGetErrorLog(link, &log[0]));
	return log;
}

static void test_errors()
{
	nvJitLinkHandle link, stale;
	const char *options[] = { "-arch=sm_75", "-no-such-option" };
	size_t size = 1;
	CHECK(p_nvJitLinkCreate(&link, 2, options) == NVJITLINK_ERROR_UNRECOGNIZED_OPTION);
	CHECK(p_nvJitLinkCreate(&link, 0, options) == NVJITLINK_ERROR_MISSING_ARCH);
	OK(p_nvJitLinkCreate(&link, 1, options));
	OK(p_nvJitLinkGetInfoLogSize(link, &size));
	CHECK(!size);
	CHECK(p_nvJitLinkAddData(link, NVJITLINK_INPUT_PTX, nullptr, 3, "nothing") != NVJITLINK_SUCCESS);
	CHECK(p_nvJitLinkAddData(link, (nvJitLinkInputType)99, "x", 1, "odd") == NVJITLINK_ERROR_UNRECOGNIZED_INPUT);
	CHECK(error_log(link).find("odd") != std::string::npos);
	OK(p_nvJitLinkAddData(link, NVJITLINK_INPUT_PTX, ".version 8.0\n.no_such\n", 22, "wrong_unit"));
	CHECK(p_nvJitLinkComplete(link) == NVJITLINK_ERROR_PTX_COMPILE);
	CHECK(error_log(link).find("no_such") != std::string::npos);
	CHECK(p_nvJitLinkGetLinkedCubinSize(link, &size) != NVJITLINK_SUCCESS);
	stale = link;
	OK(p_nvJitLinkDestroy(&link));
	CHECK(p_nvJitLinkComplete(stale) != NVJITLINK_SUCCESS);

	OK(p_nvJitLinkCreate(&link, 1, options));
	OK(p_nvJitLinkAddData(link, NVJITLINK_INPUT_LTOIR, "not intermediate code", 21, "wrong_unit"));
	CHECK(p_nvJitLinkComplete(link) != NVJITLINK_SUCCESS);
	OK(p_nvJitLinkDestroy(&link));
}

/* The program asks for PTX: the library makes it. */
static void test_ptx_output()
{
	nvJitLinkHandle link;
	const char *options[] = { "-arch=sm_75", "-lto", "-ptx" };
	const std::string unit = compiled(alone, LTO);
	size_t size = 0;
	OK(p_nvJitLinkCreate(&link, 3, options));
	OK(p_nvJitLinkAddData(link, NVJITLINK_INPUT_LTOIR, unit.data(), unit.size(), "unit"));
	OK(p_nvJitLinkComplete(link));
	OK(p_nvJitLinkGetLinkedPtxSize(link, &size));
	std::string text(size, 0);
	OK(p_nvJitLinkGetLinkedPtx(link, &text[0]));
	OK(p_nvJitLinkDestroy(&link));
	CHECK(text.find(".version") != std::string::npos);
	run(text);
}

/* A link without inputs makes a cubin without functions. */
static void test_nothing()
{
	const std::string image = linked({}, false), lto = linked({}, true);
	CUcontext context;
	CUmodule module;
	CUfunction function;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxPushCurrent(context));
	OK(cuModuleLoadData(&module, image.data()));
	CHECK(cuModuleGetFunction(&function, module, "k") == CUDA_ERROR_NOT_FOUND);
	OK(cuModuleUnload(module));
	OK(cuModuleLoadData(&module, lto.data()));
	OK(cuModuleUnload(module));
	OK(cuCtxPopCurrent(&context));
	OK(cuDevicePrimaryCtxRelease(0));
}

static void test_software_gpu()
{
	test_nothing();
	run(compiled(alone, CUBIN));
	const std::string cubin = compiled(kernel, CUBIN), ptx = compiled(device, PTX), lto = compiled(kernel, LTO);
	const std::string both = linked({ { NVJITLINK_INPUT_PTX, compiled(kernel, PTX) }, { NVJITLINK_INPUT_PTX, ptx } },
					false);
	run(both);
	test_files(both);
	run(linked({ { NVJITLINK_INPUT_CUBIN, cubin }, { NVJITLINK_INPUT_ANY, ptx } }, false));
	run(linked({ { NVJITLINK_INPUT_LTOIR, lto }, { NVJITLINK_INPUT_LTOIR, compiled(device, LTO) } }, true));
	run(linked({ { NVJITLINK_INPUT_ANY, lto }, { NVJITLINK_INPUT_PTX, ptx } }, true));
	test_ptx_output();
	test_errors();
}

static void test_other_gpu()
{
	const std::string code = compiled(alone, CUBIN);
	CHECK(!code.compare(0, 4, "\177ELF"));
	CHECK(!linked({ { NVJITLINK_INPUT_PTX, compiled(alone, PTX) } }, false).compare(0, 4, "\177ELF"));
	CHECK(!linked({ { NVJITLINK_INPUT_LTOIR, compiled(alone, LTO) } }, true).compare(0, 4, "\177ELF"));
	CHECK(!linked({}, false).compare(0, 4, "\177ELF"));
}

extern "C" __attribute__((visibility("default"))) int toolkit_main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	open_libraries(argv + 2);
	if (!strcmp(argv[1], "run"))
		test_software_gpu();
	else
		test_other_gpu();
	return 0;
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
	return toolkit_main(argc, argv);
}
#endif
