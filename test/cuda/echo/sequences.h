/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the sequences have in common. A sequence is a function that makes calls with drawn arguments on one side and notes each
 * result and each output. It is called for both sides with the same state of the generator; the notes must be equal.
 */
#ifndef TEST_CUDA_ECHO_SEQUENCES_H
#define TEST_CUDA_ECHO_SEQUENCES_H

#include "test/cuda/echo/covered.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS 64 /* of 32 bits in a piece of device memory, see words */
#define HOST_FUNCTIONS 1024 /* more than a sequence makes */

/* Functions that the sequences use and that other tests compare, or that send nothing. */
#define SEQUENCE_OTHERS(F) \
	F(cuInit) F(cuDevicePrimaryCtxRetain) F(cuDevicePrimaryCtxRelease_v2) F(cuDevicePrimaryCtxGetState) F(cuCtxSetCurrent) \
	F(cuCtxGetCurrent) F(cuCtxPushCurrent_v2) F(cuCtxPopCurrent_v2) F(cuCtxGetFlags) F(cuCtxGetApiVersion) F(cuCtxGetDevice) \
	F(cuCtxSynchronize) F(cuCtxSetLimit) F(cuCtxGetLimit) F(cuStreamCreate) F(cuStreamDestroy_v2) F(cuStreamSynchronize) \
	F(cuEventCreate) F(cuEventDestroy_v2) F(cuEventRecord) F(cuEventQuery) F(cuEventSynchronize) F(cuMemAlloc_v2) \
	F(cuMemFree_v2) F(cuMemHostAlloc) F(cuMemFreeHost) F(cuMemHostUnregister) F(cuMemcpyHtoD_v2) F(cuMemcpyDtoH_v2) \
	F(cuMemcpyDtoHAsync_v2) F(cuMemsetD32_v2) F(cuMemsetD2D32_v2) F(cuLaunchKernel) F(cuModuleGetFunction) F(cuFuncGetName) \
	F(cuLibraryGetKernel) F(cuLibraryGetKernelCount) F(cuKernelGetFunction) F(cuModuleGetFunctionCount) \
	F(cuFuncSetBlockShape) F(cuFuncSetSharedSize) F(cuParamSetSize) F(cuParamSetv) F(cuParamSeti) F(cuGraphCreate) \
	F(cuGraphDestroy) F(cuGraphAddKernelNode_v2) F(cuGraphKernelNodeSetParams_v2) F(cuGraphAddMemsetNode) \
	F(cuGraphMemsetNodeSetParams) F(cuGraphAddMemcpyNode) F(cuGraphMemcpyNodeSetParams) F(cuGraphAddHostNode) \
	F(cuGraphHostNodeSetParams) F(cuGraphAddChildGraphNode) F(cuGraphChildGraphNodeGetGraph) F(cuGraphAddEventRecordNode) \
	F(cuGraphAddEventWaitNode) F(cuGraphAddBatchMemOpNode) F(cuGraphAddEmptyNode) F(cuGraphAddNode_v2) F(cuGraphGetNodes) \
	F(cuGraphNodeGetEnabled) F(cuGraphExecGetFlags) F(cuMemCreate) F(cuMemRelease) F(cuMemSetAccess) \
	F(cuMemGetAllocationGranularity) F(cuMemPoolCreate) F(cuMemPoolDestroy) F(cuDeviceGetDefaultMemPool) \
	F(cuDeviceSetMemPool) F(cuMemAllocFromPoolAsync) F(cuMemAllocAsync) F(cuMemFreeAsync) F(cuMemGetInfo_v2)

struct side {
	struct {
#define POINTER(name) __typeof__(&name) name;
		ECHO_COVERED(POINTER) SEQUENCE_OTHERS(POINTER)
#undef POINTER
	} f;
	const char *library; /* the file of these functions */
	bool remote;
	uint64_t random;
	CUcontext context;   /* the primary one of device 0, current when a sequence begins */
	CUmodule module;     /* of sequence_image */
	CUfunction add, set; /* add(u64 address, u32 n, u32 value), set(u64 condition, u32 value) */
	CUstream stream;
	struct note *notes;
	size_t n_notes;
	uint32_t called[HOST_FUNCTIONS]; /* what the host functions left, in their order */
	unsigned n_called;
};

extern const char sequence_image[]; /* PTX with add, set, the variable table and the managed variable common */
extern const char *sequence_program; /* this program's file */

/* Draws a number below end. */
uint64_t below(struct side *s, uint64_t end);
void note(struct side *s, const char *what, int64_t value);
void note_bytes(struct side *s, const char *what, const void *bytes, size_t size);
/* Notes the result of a call, and returns it. */
CUresult noted(struct side *s, const char *name, CUresult result);
/* Notes what another process of this side has printed. A line "NAME: 0" is a call of it that succeeded. */
void note_said(struct side *s, const char *said);
#define CALL(name, ...) noted(s, #name, s->f.name(__VA_ARGS__))
/* For what every sequence needs: ends the program if the call fails. */
void needed(const struct side *s, const char *name, CUresult result);
#define NEED(name, ...) needed(s, #name, s->f.name(__VA_ARGS__))
/* WORDS words of device memory, all 0; their content. */
CUdeviceptr words(struct side *s);
void note_words(struct side *s, const char *what, CUdeviceptr address);
/* The argument of a host function that appends value to the list of the side when it runs. */
struct appended {
	struct side *side;
	uint32_t value;
};
struct appended *host_function(struct side *s, uint32_t value);
void append_value(void *appended);
void note_host_functions(struct side *s);
/* Runs add. */
void run_add(struct side *s, CUfunction function, CUdeviceptr address, uint32_t n, uint32_t value);

/* ---- the sequences ---- */
void sequence_contexts(struct side *s);
void sequence_graphs(struct side *s);
void sequence_host_functions(struct side *s);
void sequence_images(struct side *s);
void sequence_ipc(struct side *s);
void sequence_launches(struct side *s);
void sequence_linker(struct side *s);
void sequence_memory(struct side *s);
void sequence_pools(struct side *s);
void sequence_tensor_maps(struct side *s);
void sequence_virtual(struct side *s);
/* The other process of sequence_ipc. */
int ipc_child(struct side *s, const char *kind, const char *handle);

#endif
