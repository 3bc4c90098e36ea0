/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JIT linker, as far as it needs no linking: one input with PTX, whose "cubin" is the PTX text itself, which
 * cuModuleLoadData takes. Several inputs are refused when they are to be put together.
 */
#include "cuda_remote/softgpu/driver/context.h"
#include "cuda_remote/softgpu/driver/device.h"
#include "cuda_remote/softgpu/driver/image.h"
#include "cuda_remote/softgpu/engine.h"
#include "cuda_remote/softgpu/memory/space.h"

#include <stdlib.h>
#include <string.h>

struct CUlinkState_st {
	handle_t handle;
	image_jit_t jit;
	fatbin_ptx_t ptx;
	unsigned inputs;
};

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!stateOut)
		return CUDA_ERROR_INVALID_VALUE;
	CUlinkState state = handle_new(HANDLE_LINK, sizeof *state);
	if (!state)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = image_jit_begin(&state->jit, numOptions, options, optionValues);
	if (result) {
		handle_retire(state);
		handle_release(state);
		return result;
	}
	*stateOut = state;
	return CUDA_SUCCESS;
}

static CUresult enter(CUlinkState state)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	return handle_valid(state, HANDLE_LINK) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Keeps the input if it is the first; frees it if not. */
static CUresult keep(CUlinkState state, const fatbin_ptx_t *ptx)
{
	if (state->inputs++) {
		free(ptx->text);
		fatbin_complain(&state->jit.log, "linker: several inputs; linking PTX is not supported");
		return image_jit_report(&state->jit, CUDA_ERROR_NOT_SUPPORTED);
	}
	state->ptx = *ptx;
	return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
			  unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	(void)name, (void)numOptions, (void)options, (void)optionValues;
	CUresult result = enter(state);
	if (result)
		return result;
	if (!data || !size)
		return CUDA_ERROR_INVALID_VALUE;
	fatbin_ptx_t ptx;
	switch (type) {
	case CU_JIT_INPUT_PTX:
		ptx = (fatbin_ptx_t){ strndup(data, size), 0, 0 };
		if (!ptx.text)
			return CUDA_ERROR_OUT_OF_MEMORY;
		ptx.length = strlen(ptx.text);
		return keep(state, &ptx);
	case CU_JIT_INPUT_FATBINARY:
		result = fatbin_unpack(data, size, device_capability(), &state->jit.log, &ptx);
		return result ? image_jit_report(&state->jit, result) : keep(state, &ptx);
	case CU_JIT_INPUT_CUBIN:
	case CU_JIT_INPUT_OBJECT:
	case CU_JIT_INPUT_LIBRARY:
	case CU_JIT_INPUT_NVVM:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
			  CUjit_option *options, void **optionValues)
{
	(void)numOptions, (void)options, (void)optionValues;
	CUresult result = enter(state);
	if (result)
		return result;
	if (!path || type >= CU_JIT_NUM_INPUT_TYPES)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
		return CUDA_ERROR_NOT_SUPPORTED;
	fatbin_ptx_t ptx;
	result = image_from_file(path, &state->jit.log, &ptx);
	return result ? image_jit_report(&state->jit, result) : keep(state, &ptx);
}

/* The text is checked now, as a linker would: loading it would say the same later. */
CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	CUresult result = enter(state);
	if (result)
		return result;
	if (!cubinOut || state->inputs != 1)
		return CUDA_ERROR_INVALID_VALUE;
	softgpu_program_t *program;
	softgpu_space_module_owner(0, NULL);
	result = softgpu_program_load(state->ptx.text, state->ptx.length, &state->jit.log, &program);
	if (!result) {
		softgpu_program_unload(program);
		*cubinOut = state->ptx.text;
		if (sizeOut)
			*sizeOut = state->ptx.length + 1;
	}
	return image_jit_report(&state->jit, result);
}

CUresult cuLinkDestroy(CUlinkState state)
{
	CUresult result = enter(state);
	if (result)
		return result;
	free(state->ptx.text);
	free(state->jit.log.text);
	handle_retire(state);
	handle_release(state);
	return CUDA_SUCCESS;
}
