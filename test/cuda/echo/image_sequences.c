/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules, libraries, the linker, launches of old programs, occupancy, tensor maps: noted by what the loaded code does. */
#include "test/cuda/echo/sequences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the image to a file of the test's folder; the name stays valid until the next call. */
static const char *file_of(const char *text)
{
	static char path[256];
	const char *folder = getenv("HEADRACE_TEST_FOLDER");
	snprintf(path, sizeof path, "%s/sequence.ptx", folder ? folder : ".");
	FILE *file = fopen(path, "w");
	if (!file || fputs(text, file) < 0 || fclose(file)) {
		printf("%s cannot be written\n", path);
		exit(1);
	}
	return path;
}

/* ---- modules ---- */

static void use_module(struct side *s, CUmodule module)
{
	CUfunction function;
	CUmodule owner = NULL;
	CUdeviceptr table = 0;
	size_t size = 0;
	uint32_t content[8] = { 0 };
	CUdeviceptr memory = words(s);
	if (CALL(cuModuleGetFunction, &function, module, below(s, 8) ? "add" : "none") == CUDA_SUCCESS) {
		CALL(cuFuncGetModule, &owner, function);
		note(s, "the function's module", owner == module);
		run_add(s, function, memory, (uint32_t)below(s, WORDS), (uint32_t)below(s, 1000));
	}
	if (CALL(cuModuleGetGlobal_v2, &table, &size, module, below(s, 8) ? "table" : "none") == CUDA_SUCCESS) {
		note(s, "size", (int64_t)size);
		run_add(s, s->add, table, (uint32_t)below(s, 9), (uint32_t)below(s, 1000));
		CALL(cuMemcpyDtoH_v2, content, table, sizeof content);
		note_bytes(s, "table", content, sizeof content);
	}
	CALL(cuModuleGetGlobal_v2, NULL, &size, module, "table");
	note_words(s, "memory", memory);
	NEED(cuMemFree_v2, memory);
}

static void load_module(struct side *s)
{
	CUmodule module = NULL;
	char log[512] = "";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof log };
	const char *image = below(s, 8) ? sequence_image : ".version 8.4\n.target sm_75\n.address_size 64\n.func x() { nonsense; }\n";
	switch (below(s, 4)) {
	case 0:
		CALL(cuModuleLoad, &module, below(s, 8) ? file_of(image) : "/nonexistent/sequence");
		break;
	case 1:
		CALL(cuModuleLoadData, &module, image);
		break;
	case 2:
		CALL(cuModuleLoadDataEx, &module, image, 2, options, values);
		note_bytes(s, "log", log, strlen(log));
		break;
	default:
		CALL(cuModuleLoadFatBinary, &module, image);
	}
	if (!module)
		return;
	unsigned n = 0;
	CALL(cuModuleGetFunctionCount, &n, module);
	note(s, "functions", n);
	use_module(s, module);
	CALL(cuModuleUnload, module);
}

/* ---- libraries ---- */

static void use_managed(struct side *s, CUlibrary library)
{
	CUdeviceptr common;
	size_t size = 0;
	if (CALL(cuLibraryGetManaged, &common, &size, library, below(s, 8) ? "common" : "none") != CUDA_SUCCESS)
		return;
	uint32_t *host = (uint32_t *)(uintptr_t)common;
	note(s, "size", (int64_t)size);
	for (int i = 0; i < 8; i++)
		host[i] = (uint32_t)below(s, 1000);
	run_add(s, s->add, common, (uint32_t)below(s, 9), (uint32_t)below(s, 1000));
	note_bytes(s, "managed variable", host, 32);
}

static void load_library(struct side *s)
{
	CUlibrary library = NULL;
	CUmodule module = NULL;
	CUkernel kernel;
	CUdeviceptr table;
	size_t size = 0;
	uint32_t content[8] = { 0 };
	unsigned n = 0;
	if (below(s, 2))
		CALL(cuLibraryLoadData, &library, below(s, 8) ? sequence_image : "nothing", NULL, NULL, 0, NULL, NULL, 0);
	else
		CALL(cuLibraryLoadFromFile, &library, below(s, 8) ? file_of(sequence_image) : "/nonexistent/sequence", NULL, NULL, 0, NULL,
		     NULL, 0);
	if (!library)
		return;
	CALL(cuLibraryGetKernelCount, &n, library);
	note(s, "kernels", n);
	CALL(cuLibraryGetKernel, &kernel, library, below(s, 8) ? "add" : "none");
	if (CALL(cuLibraryGetModule, &module, library) == CUDA_SUCCESS)
		use_module(s, module);
	if (CALL(cuLibraryGetGlobal, &table, &size, library, below(s, 8) ? "table" : "none") == CUDA_SUCCESS) {
		note(s, "size", (int64_t)size);
		run_add(s, s->add, table, (uint32_t)below(s, 9), (uint32_t)below(s, 1000));
		CALL(cuMemcpyDtoH_v2, content, table, sizeof content);
		note_bytes(s, "table", content, sizeof content);
	}
	use_managed(s, library);
	CALL(cuLibraryUnload, library);
}

void sequence_images(struct side *s)
{
	for (int i = 0; i < 2; i++) {
		load_module(s);
		load_library(s);
	}
	CALL(cuModuleLoadData, NULL, sequence_image);
	CALL(cuModuleUnload, NULL);
	CALL(cuLibraryUnload, NULL);
}

/* ---- the linker ---- */

#define HEAD ".version 8.4\n.target sm_75\n.address_size 64\n"
static char uses[] = HEAD ".extern .func (.param .b32 r) answer();\n"
	".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 v)\n{\n"
	".reg .b32 %r<3>; .reg .b64 %l<3>; ld.param.u64 %l1, [p]; .param .b32 o; call (o), answer, ();\n"
	"ld.param.b32 %r1, [o]; st.global.u32 [%l1], %r1; ret;\n}\n";
static char gives[] = HEAD ".visible .func (.param .b32 r) answer()\n{\n.reg .b32 %r<3>; mov.b32 %r1, 42;\n"
	"st.param.b32 [r], %r1; ret;\n}\n";

static void add_input(struct side *s, CUlinkState state, char *text)
{
	CUjitInputType type = below(s, 12) ? CU_JIT_INPUT_PTX : (CUjitInputType)99;
	switch (below(s, 4)) {
	case 0:
		CALL(cuLinkAddData, state, type, text, strlen(text) + 1, "input", 0, NULL, NULL);
		break;
	case 1:
		CALL(cuLinkAddData_v2, state, type, text, strlen(text) + 1, "input", 0, NULL, NULL);
		break;
	case 2:
		CALL(cuLinkAddFile, state, type, file_of(text), 0, NULL, NULL);
		break;
	default:
		CALL(cuLinkAddFile_v2, state, type, below(s, 8) ? file_of(text) : "/nonexistent/sequence", 0, NULL, NULL);
	}
}

void sequence_linker(struct side *s)
{
	CUlinkState state;
	CUmodule module;
	CUfunction function;
	void *image = NULL;
	size_t size = 0;
	CUdeviceptr memory = words(s);
	if (below(s, 2))
		CALL(cuLinkCreate, 0, NULL, NULL, &state);
	else
		CALL(cuLinkCreate_v2, 0, NULL, NULL, &state);
	add_input(s, state, uses);
	add_input(s, state, gives);
	/* The image itself is the driver's own format: what counts is what it does. */
	if (CALL(cuLinkComplete, state, &image, &size) == CUDA_SUCCESS &&
	    CALL(cuModuleLoadData, &module, image) == CUDA_SUCCESS) {
		note(s, "size of the image", (int64_t)size);
		if (CALL(cuModuleGetFunction, &function, module, "add") == CUDA_SUCCESS)
			run_add(s, function, memory + 4 * below(s, WORDS), 1, 1);
		CALL(cuModuleUnload, module);
	}
	CALL(cuLinkDestroy, state);
	note_words(s, "memory", memory);
	NEED(cuMemFree_v2, memory);
}

/* ---- launches ---- */

static void old_launch(struct side *s, CUdeviceptr memory)
{
	CUdeviceptr address = memory + 4 * below(s, WORDS / 2);
	CALL(cuFuncSetBlockShape, s->add, 1 + (int)below(s, WORDS / 2), 1, 1);
	CALL(cuFuncSetSharedSize, s->add, (unsigned)below(s, 512));
	CALL(cuParamSetv, s->add, 0, &address, sizeof address);
	CALL(cuParamSeti, s->add, 8, (unsigned)below(s, WORDS / 2));
	CALL(cuParamSeti, s->add, 12, (unsigned)below(s, 1000));
	CALL(cuParamSetSize, s->add, 16);
	switch (below(s, 3)) {
	case 0:
		CALL(cuLaunch, s->add);
		break;
	case 1:
		CALL(cuLaunchGrid, s->add, below(s, 8) ? 1 : 0, 1);
		break;
	default:
		CALL(cuLaunchGridAsync, s->add, 1, 1, s->stream);
	}
	CALL(cuCtxSynchronize, );
	note_words(s, "memory", memory);
}

static size_t CUDA_CB shared_for(int threads)
{
	return (size_t)threads * 16;
}

void sequence_launches(struct side *s)
{
	int grid = 0, block = 0, clusters = 0;
	CUdeviceptr memory = words(s);
	CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
	CUlaunchConfig config = { .gridDimX = 1 + (unsigned)below(s, 8), .gridDimY = 1, .gridDimZ = 1, .blockDimY = 1, .blockDimZ = 1,
				  .hStream = s->stream, .attrs = &cluster, .numAttrs = 1 };
	config.blockDimX = 32 * (1 + (unsigned)below(s, 8));
	config.sharedMemBytes = (unsigned)below(s, 4096);
	cluster.value.clusterDim.x = 1 + (unsigned)below(s, 2);
	cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
	old_launch(s, memory);
	if (CALL(cuOccupancyMaxPotentialBlockSize, &grid, &block, s->add, below(s, 2) ? shared_for : NULL, below(s, 4096),
		 (int)below(s, 2000)) == CUDA_SUCCESS)
		note(s, "grid and block", ((int64_t)grid << 32) + block);
	if (CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &block, s->add, below(s, 2) ? shared_for : NULL, below(s, 4096),
		 (int)below(s, 2000), (unsigned)below(s, 2)) == CUDA_SUCCESS)
		note(s, "grid and block", ((int64_t)grid << 32) + block);
	if (CALL(cuOccupancyMaxActiveClusters, &clusters, s->add, &config) == CUDA_SUCCESS)
		note(s, "clusters", clusters);
	if (CALL(cuOccupancyMaxPotentialClusterSize, &clusters, s->add, &config) == CUDA_SUCCESS)
		note(s, "cluster", clusters);
	CALL(cuFuncSetSharedMemConfig, s->add, (CUsharedconfig)below(s, 3));
	NEED(cuMemFree_v2, memory);
}

/* ---- tensor maps ---- */

void sequence_tensor_maps(struct side *s)
{
	CUtensorMap map;
	CUdeviceptr memory;
	NEED(cuMemAlloc_v2, &memory, 1 << 16);
	cuuint32_t rank = 1 + (cuuint32_t)below(s, 5), box[5], steps[5];
	cuuint64_t sizes[5], strides[5], stride = 4;
	for (int i = 0; i < 5; i++) {
		sizes[i] = 4 * (1 + below(s, 3));
		stride = (stride * sizes[i] + 15) / 16 * 16;
		strides[i] = stride;
		box[i] = 4;
		steps[i] = 1;
	}
	memset(&map, 0, sizeof map);
	/* The map has the address in it, which is not the same on both sides: both maps are noted with another one. */
	if (CALL(cuTensorMapEncodeTiled, &map, below(s, 8) ? CU_TENSOR_MAP_DATA_TYPE_UINT32 : (CUtensorMapDataType)99, rank,
		 (void *)(uintptr_t)memory, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		 CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS &&
	    CALL(cuTensorMapReplaceAddress, &map, (void *)(uintptr_t)(16 * (1 + below(s, 1000)))) == CUDA_SUCCESS)
		note_bytes(s, "tensor map", &map, sizeof map);
	CALL(cuTensorMapReplaceAddress, &map, (void *)(uintptr_t)(memory + 1));
	NEED(cuMemFree_v2, memory);
}
