/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JIT linker. In place of a cubin it makes an image of its own (fatbin/linked.h) with the PTX of all inputs.
 * cuModuleLoadData and the other loads accept it.
 */
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/module/image.h"
#include "cuda_remote/softgpu/fatbin/host_object.h"
#include "cuda_remote/softgpu/space/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUlinkState_st {
	handle_t handle;
	image_jit_t jit;
	linked_units_t units;
	fatbin_ptx_t image; /* made by cuLinkComplete; text is NULL before that */
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

/* Nothing can be added after cuLinkComplete. */
static CUresult enter_to_add(CUlinkState state, CUjitInputType type, unsigned count, const CUjit_option *options,
			     void **values)
{
	CUresult result = context_enter_handle(state, HANDLE_LINK);
	if (result)
		return result;
	if ((unsigned)type >= CU_JIT_NUM_INPUT_TYPES || state->image.text)
		return CUDA_ERROR_INVALID_VALUE;
	return image_jit_check(count, options, values);
}

static CUresult add_ptx(CUlinkState state, const fatbin_ptx_t *ptx, const char *name)
{
	const softgpu_unit_t unit = { name, ptx->text, ptx->length, false };
	CUresult result = softgpu_program_check(&unit, &state->jit.log);
	if (!result)
		return linked_add(&state->units, name, ptx, false);
	free(ptx->text);
	return result;
}

/* An earlier link's image may be an input. */
static CUresult add_linked(CUlinkState state, const void *data, size_t size)
{
	linked_units_t units = { 0 };
	CUresult result = linked_split(data, size, &units);
	for (size_t n = 0; n < units.count && !result; n++) {
		const softgpu_unit_t *unit = &units.unit[n];
		fatbin_ptx_t copy = { malloc(unit->length + 1), unit->length, 0 };
		if (!copy.text) {
			result = CUDA_ERROR_OUT_OF_MEMORY;
			break;
		}
		memcpy(copy.text, unit->text, unit->length + 1);
		result = linked_add(&state->units, unit->name, &copy, unit->on_demand);
	}
	linked_free(&units);
	return result;
}

static CUresult add_text(CUlinkState state, const char *data, size_t size, const char *name)
{
	size_t length = strnlen(data, size);
	fatbin_ptx_t ptx = { strndup(data, length), length, 0 };
	return ptx.text ? add_ptx(state, &ptx, name) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_fatbin(CUlinkState state, const void *data, size_t size, const char *name)
{
	fatbin_ptx_t ptx;
	CUresult result = fatbin_unpack(data, size, device_capability(), &state->jit.log, &ptx);
	return result ? result : add_ptx(state, &ptx, name);
}

/*
 * A host object or an archive of objects. An object without PTX for this device is an error; in an archive it is not.
 */
static CUresult add_object(CUlinkState state, CUjitInputType type, const void *data, size_t size, const char *name)
{
	size_t before = state->units.count;
	unsigned passed_over = 0;
	bool archive = host_object_is_archive(data, size);
	if (archive != (type == CU_JIT_INPUT_LIBRARY)) {
		fatbin_complain(&state->jit.log, "%s: not a %s", name,
				archive ? "host object" : "library of host objects");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (archive)
		return host_archive_units(data, size, name, device_capability(), &state->jit.log, &state->units,
					  &passed_over);
	CUresult result = host_object_units(data, size, name, device_capability(), false, &state->jit.log,
					    &state->units, &passed_over);
	if (!result && state->units.count == before) {
		fatbin_complain(&state->jit.log, "%s: no PTX for sm_%u in its %u fat binaries", name,
				device_capability(), passed_over);
		result = CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	return result;
}

static CUresult add(CUlinkState state, CUjitInputType type, const void *data, size_t size, const char *name)
{
	uint32_t magic = 0;
	memcpy(&magic, data, size < sizeof magic ? size : sizeof magic);
	switch (type) {
	case CU_JIT_INPUT_PTX:
		return add_text(state, data, size, name);
	case CU_JIT_INPUT_CUBIN:
	case CU_JIT_INPUT_FATBINARY:
		if (image_is_linked(data, size))
			return add_linked(state, data, size);
		if (magic == FATBIN_MAGIC)
			return add_fatbin(state, data, size, name);
		if (host_object_is_elf(data, size)) {
			fatbin_complain(&state->jit.log, "%s: machine code (a cubin): the software GPU links PTX", name);
			return CUDA_ERROR_NO_BINARY_FOR_GPU;
		}
		fatbin_complain(&state->jit.log, "%s: neither a fat binary nor an image of this linker", name);
		return CUDA_ERROR_INVALID_IMAGE;
	case CU_JIT_INPUT_OBJECT:
	case CU_JIT_INPUT_LIBRARY:
		return add_object(state, type, data, size, name);
	default:
		fatbin_complain(&state->jit.log, "%s: intermediate code for link-time optimisation is not supported", name);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
			  unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	char numbered[32];
	CUresult result = enter_to_add(state, type, numOptions, options, optionValues);
	if (result)
		return result;
	if (!data || !size)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(numbered, sizeof numbered, "input %u", ++state->inputs);
	return image_jit_report(&state->jit, add(state, type, data, size, name && *name ? name : numbered));
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
			  CUjit_option *options, void **optionValues)
{
	char *data;
	size_t size;
	CUresult result = enter_to_add(state, type, numOptions, options, optionValues);
	if (result)
		return result;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	result = image_read_file(path, &data, &size);
	if (result) {
		fatbin_complain(&state->jit.log, "linker: cannot read %s", path);
		return image_jit_report(&state->jit, result);
	}
	state->inputs++;
	result = add(state, type, data, size, path);
	free(data);
	return image_jit_report(&state->jit, result);
}

/* Links the program now, as a check: errors are reported here instead of at the load. */
static CUresult complete(CUlinkState state)
{
	softgpu_program_t *program;
	softgpu_space_module_owner(0, NULL);
	CUresult result = softgpu_program_link(state->units.unit, state->units.count, &state->jit.log, &program);
	if (result)
		return result;
	softgpu_program_unload(program);
	return linked_join(&state->units, &state->image);
}

CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	CUresult result = context_enter_handle(state, HANDLE_LINK);
	if (result)
		return result;
	if (!cubinOut || !state->units.count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!state->image.text)
		result = complete(state);
	if (!result) {
		*cubinOut = state->image.text;
		if (sizeOut)
			*sizeOut = state->image.length;
	}
	return image_jit_report(&state->jit, result);
}

CUresult cuLinkDestroy(CUlinkState state)
{
	CUresult result = context_enter_handle(state, HANDLE_LINK);
	if (result)
		return result;
	linked_free(&state->units);
	free(state->image.text);
	free(state->jit.log.text);
	handle_retire(state);
	handle_release(state);
	return CUDA_SUCCESS;
}

/* CUDA 5.5's names of the calls, which are the same with 64-bit pointers. */
CUresult cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
	return cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
		       unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	return cuLinkAddData_v2(state, type, data, size, name, numOptions, options, optionValues);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
		       CUjit_option *options, void **optionValues)
{
	return cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}
