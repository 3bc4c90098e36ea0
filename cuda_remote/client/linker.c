/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JIT linker. The server's driver links; the client keeps the caller's log buffers, which every call fills, and the image
 * that the program gets.
 */
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"

#include "cuda_remote/client/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one CUlinkState. */
struct linker {
	uint64_t handle;
	struct rc_image_options options;
	void **values;   /* the program's, which it keeps: sizes of the logs are written there */
	uint8_t *image;  /* after cuLinkComplete */
	size_t size;
};

static CUresult linker_get(CUlinkState state, struct linker **linker, struct rc_link **link)
{
	uint64_t handle = (uint64_t)(uintptr_t)state;
	struct rc_route route = { NULL, 0, false };
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&route, RC_KIND_LINK, handle);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, link);
	if (result != CUDA_SUCCESS)
		return result;
	*linker = rc_handle_data(RC_KIND_LINK, handle);
	return *linker ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Reads the head of a reply and gives the program the logs. *rest: what follows. */
static CUresult read_reply(struct rc_link *link, enum rc_call function, const struct linker *linker, const uint8_t **rest,
			   size_t *rest_len)
{
	struct rc_wire_linked wire;
	size_t left = link->reply_len - sizeof wire;
	if (link->reply_len < sizeof wire)
		return rc_link_broken(link, function);
	memcpy(&wire, link->reply, sizeof wire);
	if (wire.log_info > left || wire.log_error > left - wire.log_info)
		return rc_link_broken(link, function);
	const uint8_t *logs = link->reply + sizeof wire;
	rc_image_logs(&linker->options, linker->values, logs, wire.log_info, logs + wire.log_info, wire.log_error);
	*rest = logs + wire.log_info + wire.log_error;
	*rest_len = left - wire.log_info - wire.log_error;
	return (CUresult)wire.result;
}

CUresult cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *state)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_link_create call;
	} message = { .call = { .link = 0 } };
	struct rc_link *link;
	CUresult result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (!state || (n && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	struct linker *linker = calloc(1, sizeof *linker);
	if (!linker)
		return CUDA_ERROR_OUT_OF_MEMORY;
	linker->values = values;
	result = rc_image_options(n, options, values, &linker->options);
	if (result == CUDA_SUCCESS)
		result = rc_handle_new(RC_KIND_LINK, link->session, &linker->handle);
	if (result != CUDA_SUCCESS)
		goto free_linker;
	message.call = (struct rc_wire_link_create){ linker->handle, linker->options.n, (uint32_t)linker->options.info_size,
						     (uint32_t)linker->options.error_size, 0 };
	struct iovec iov = { linker->options.wire, linker->options.n * sizeof linker->options.wire[0] };
	result = rc_link_call(link, RC_CALL_link_create, 0, &message.head, sizeof message, &iov, 1);
	if (result != CUDA_SUCCESS)
		goto delete_handle;
	rc_handle_attach(linker->handle, linker);
	*state = (CUlinkState)(uintptr_t)linker->handle;
	return CUDA_SUCCESS;

delete_handle:
	rc_handle_delete(linker->handle);
free_linker:
	free(linker);
	return result;
}

/* The bytes to send of an input. Text is sent with a NUL, which the program need not have. */
static size_t input_bytes(CUjitInputType type, const void *data, size_t size)
{
	return type == CU_JIT_INPUT_PTX ? strnlen(data, size) : size;
}

static CUresult add(CUlinkState state, CUjitInputType type, const void *data, size_t size, const char *name, unsigned n,
		    CUjit_option *options, void **values)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_link_add call;
	} message = { .call = { .link = (uint64_t)(uintptr_t)state, .type = type } };
	struct rc_image_options own;
	struct linker *linker;
	struct rc_link *link;
	const uint8_t *rest;
	size_t rest_len;
	CUresult result = linker_get(state, &linker, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if ((unsigned)type >= CU_JIT_NUM_INPUT_TYPES || linker->image || !data || !size || (n && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	result = rc_image_options(n, options, values, &own);
	if (result != CUDA_SUCCESS)
		return result;
	message.call.bytes = input_bytes(type, data, size) + (type == CU_JIT_INPUT_PTX);
	message.call.name = name ? (uint32_t)strnlen(name, RC_TEXT_MAX) : 0;
	message.call.options = own.n;
	if (message.call.bytes > RC_CALL_BYTES_MAX - 2 * RC_TEXT_MAX || message.call.name == RC_TEXT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	struct iovec iov[] = { { (void *)(uintptr_t)data, input_bytes(type, data, size) },
			       { (void *)(uintptr_t)"", type == CU_JIT_INPUT_PTX },
			       { (void *)(uintptr_t)name, message.call.name },
			       { own.wire, own.n * sizeof own.wire[0] } };
	result = rc_link_call(link, RC_CALL_link_add, 0, &message.head, sizeof message, iov, 4);
	return result == CUDA_SUCCESS ? read_reply(link, RC_CALL_link_add, linker, &rest, &rest_len) : result;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned n,
			  CUjit_option *options, void **values)
{
	return add(state, type, data, size, name, n, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned n, CUjit_option *options,
			  void **values)
{
	struct linker *linker;
	struct rc_link *link;
	void *data;
	size_t size;
	CUresult result = linker_get(state, &linker, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if ((unsigned)type >= CU_JIT_NUM_INPUT_TYPES || linker->image || !path)
		return CUDA_ERROR_INVALID_VALUE;
	result = rc_image_read(path, &data, &size);
	if (result != CUDA_SUCCESS) {
		char text[512];
		int length = snprintf(text, sizeof text, "linker: cannot read %.400s\n", path);
		rc_image_logs(&linker->options, linker->values, "", 0, text, (size_t)length);
		return result;
	}
	result = add(state, type, data, size, path, n, options, values);
	free(data);
	return result;
}

static CUresult complete(struct linker *linker, struct rc_link *link)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_link call;
	} message = { .call = { linker->handle } };
	const uint8_t *rest;
	size_t rest_len;
	CUresult result = rc_link_call(link, RC_CALL_link_complete, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS)
		result = read_reply(link, RC_CALL_link_complete, linker, &rest, &rest_len);
	if (result != CUDA_SUCCESS)
		return result;
	linker->image = calloc(1, rest_len + 16); /* whoever finds out what it is may read some bytes beyond a short text */
	if (!linker->image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(linker->image, rest, rest_len);
	linker->size = rest_len;
	return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size)
{
	struct linker *linker;
	struct rc_link *link;
	CUresult result = linker_get(state, &linker, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!linker->image)
		result = complete(linker, link);
	if (result != CUDA_SUCCESS)
		return result;
	*image = linker->image;
	if (size)
		*size = linker->size;
	return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_link call;
	} message = { .call = { (uint64_t)(uintptr_t)state } };
	struct linker *linker;
	struct rc_link *link;
	CUresult result = linker_get(state, &linker, &link);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_call(link, RC_CALL_link_destroy, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	rc_handle_delete(linker->handle);
	free(linker->image);
	free(linker);
	return CUDA_SUCCESS;
}

/* ---- the names of CUDA 5.5, which are the same with 64-bit pointers ---- */

CUresult cuLinkCreate(unsigned n, CUjit_option *options, void **values, CUlinkState *state)
{
	return cuLinkCreate_v2(n, options, values, state);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned n,
		       CUjit_option *options, void **values)
{
	return cuLinkAddData_v2(state, type, data, size, name, n, options, values);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned n, CUjit_option *options,
		       void **values)
{
	return cuLinkAddFile_v2(state, type, path, n, options, values);
}
