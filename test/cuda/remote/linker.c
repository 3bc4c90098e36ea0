/* SPDX-License-Identifier: BSD-3-Clause */
/* The JIT linker over a worker: inputs, logs, what comes out, and errors where CUDA has them. */
#include "test/cuda/softgpu/driver.h"

#include <unistd.h>

#define HEAD ".version 8.4\n.target sm_75\n.address_size 64\n"
static const char uses[] = HEAD ".extern .func (.param .b32 r) answer();\n.visible .entry k(.param .u64 p)\n{\n"
	".reg .b32 %r<3>; .reg .b64 %l<3>; ld.param.u64 %l1, [p]; .param .b32 o; call (o), answer, ();\n"
	"ld.param.b32 %r1, [o]; st.global.u32 [%l1], %r1; ret;\n}\n";
static const char gives[] = HEAD ".visible .func (.param .b32 r) answer()\n{\n.reg .b32 %r<3>; mov.b32 %r1, 42;\n"
	"st.param.b32 [r], %r1; ret;\n}\n";
static const char wrong[] = HEAD ".visible .func answer()\n{\nnonsense.u32;\n}\n";

static struct {
	char error[600], info[600];
	CUjit_option options[5];
	void *values[5];
} logs;

static CUlinkState begin(void)
{
	CUlinkState state;
	static const CUjit_option options[5] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
						 CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
						 CU_JIT_LOG_VERBOSE };
	void *values[5] = { logs.error, (void *)sizeof logs.error, logs.info, (void *)sizeof logs.info, (void *)1 };
	memset(&logs, 'x', sizeof logs);
	memcpy(logs.options, options, sizeof options);
	memcpy(logs.values, values, sizeof values);
	OK(cuLinkCreate(5, logs.options, logs.values, &state));
	return state;
}

static CUresult add_ptx(CUlinkState state, const char *ptx, size_t bytes, const char *name)
{
	return cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx, bytes, name, 0, NULL, NULL);
}

static void run(CUmodule module)
{
	CUfunction function;
	CUdeviceptr answer;
	uint32_t got = 0;
	void *parameters[] = { &answer };
	OK(cuMemAlloc(&answer, 4));
	OK(cuModuleGetFunction(&function, module, "k"));
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuMemcpyDtoH(&got, answer, 4));
	CHECK(got == 42);
	OK(cuMemFree(answer));
}

/* cuLibraryLoadData needs no current context; what asks about a kernel does. */
static void a_library_needs_no_context(void *image)
{
	CUcontext context;
	CUlibrary library;
	CUkernel k;
	size_t offset = 1, size = 0;
	OK(cuCtxPopCurrent(&context));
	OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&k, library, "k"));
	EXPECT(cuKernelGetParamInfo(k, 0, &offset, &size), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxPushCurrent(context));
	OK(cuKernelGetParamInfo(k, 0, &offset, &size));
	CHECK(offset == 0 && size == 8);
	OK(cuLibraryUnload(library));
}

static void text_becomes_an_image(const char *path)
{
	void *image, *again;
	size_t size;
	CUmodule module;
	CUlibrary library;
	CUlinkState state = begin(), second;
	OK(add_ptx(state, uses, sizeof uses, "uses"));
	OK(add_ptx(state, gives, sizeof gives - 1, NULL)); /* without its NUL */
	OK(cuLinkComplete(state, &image, &size));
	CHECK(image && size > 32 && (uintptr_t)logs.values[1] == strlen(logs.error) && !logs.error[0]);
	OK(cuLinkComplete(state, &again, NULL));
	CHECK(again == image);
	EXPECT(add_ptx(state, gives, sizeof gives, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuModuleLoadData(&module, image));
	run(module);
	OK(cuModuleUnload(module));
	OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryUnload(library));
	a_library_needs_no_context(image);
	/* An image of the linker is an input too. */
	second = begin();
	OK(cuLinkAddData(second, CU_JIT_INPUT_CUBIN, image, size, "linked", 0, NULL, NULL));
	OK(cuLinkComplete(second, &again, &size));
	OK(cuModuleLoadData(&module, again));
	OK(cuLinkDestroy(second));
	run(module);
	OK(cuModuleUnload(module));
	OK(cuLinkDestroy(state));
	EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
	FILE *file = fopen(path, "w");
	CHECK(file && fputs(gives, file) >= 0 && !fclose(file));
	state = begin();
	OK(add_ptx(state, uses, sizeof uses, "uses"));
	OK(cuLinkAddFile(state, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
	OK(cuLinkComplete(state, &image, &size));
	OK(cuModuleLoadData(&module, image));
	OK(cuLinkDestroy(state));
	run(module);
	OK(cuModuleUnload(module));
}

static void errors_are_in_the_logs(const char *path)
{
	void *image;
	size_t size;
	CUmodule module;
	CUlinkState state = begin();
	EXPECT(add_ptx(state, wrong, sizeof wrong, "the wrong one"), CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(logs.error, "nonsense") && (uintptr_t)logs.values[1] == strlen(logs.error));
	EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_VALUE); /* no input yet */
	unlink(path);
	EXPECT(cuLinkAddFile(state, CU_JIT_INPUT_PTX, path, 0, NULL, NULL), CUDA_ERROR_FILE_NOT_FOUND);
	CHECK(strstr(logs.error, path));
	EXPECT(cuLinkAddData(state, CU_JIT_INPUT_NVVM, &size, sizeof size, "lto", 0, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuLinkAddData(state, CU_JIT_INPUT_CUBIN, &size, sizeof size, "bad", 0, NULL, NULL), CUDA_ERROR_INVALID_IMAGE);
	EXPECT(cuLinkAddData(state, (CUjitInputType)99, &size, sizeof size, "bad", 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(add_ptx(state, uses, sizeof uses, "uses"));
	CHECK(cuLinkComplete(state, &image, &size) != CUDA_SUCCESS);
	CHECK(strstr(logs.error, "answer"));
	OK(cuLinkDestroy(state));
	/* A load has logs too. */
	begin();
	EXPECT(cuModuleLoadDataEx(&module, wrong, 4, logs.options, logs.values), CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(logs.error, "nonsense") && (uintptr_t)logs.values[1] == strlen(logs.error));
}

int main(int argc, char **argv)
{
	CHECK(argc == 2); /* a file that the test may make */
	start();
	text_becomes_an_image(argv[1]);
	errors_are_in_the_logs(argv[1]);
	return 0;
}
