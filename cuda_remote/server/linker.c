/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JIT linker. Linking may take long, so each call lets the next one be issued. One lock for all linkers keeps a client that
 * uses a linker in two threads from ending it while the driver uses it.
 */
#include "cuda_remote/api/jit_options.h"
#include "cuda_remote/server/image.h"
#include "cuda_remote/server/internal.h"

#include <stdlib.h>
#include <string.h>

#define LOG_MAX (1u << 20)

/* What the worker keeps of a linker. The driver writes the logs, and their sizes into value, as long as the linker lives. */
struct linker {
	CUlinkState state;
	char *info, *error;
	unsigned n;
	CUjit_option name[RC_JIT_OPTIONS_MAX + 4];
	void *value[RC_JIT_OPTIONS_MAX + 4];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void linker_free(struct linker *linker)
{
	free(linker->info);
	free(linker->error);
	free(linker);
}

static void add_log(struct linker *linker, CUjit_option buffer, char *text, CUjit_option size, uint32_t bytes)
{
	if (!bytes)
		return;
	linker->name[linker->n] = buffer;
	linker->value[linker->n++] = text;
	linker->name[linker->n] = size;
	linker->value[linker->n++] = (void *)(uintptr_t)bytes;
}

static CUresult linker_take(struct server_call *call, const struct rc_wire_link_create *args, struct linker *linker)
{
	uint32_t info = args->log_info < LOG_MAX ? args->log_info : LOG_MAX;
	uint32_t error = args->log_error < LOG_MAX ? args->log_error : LOG_MAX;
	CUresult result = server_jit_options(call, args->options, linker->name, linker->value);
	if (result != CUDA_SUCCESS)
		return result;
	linker->n = args->options;
	linker->info = calloc(1, info + 1);
	linker->error = calloc(1, error + 1);
	if (!linker->info || !linker->error)
		return CUDA_ERROR_OUT_OF_MEMORY;
	add_log(linker, CU_JIT_INFO_LOG_BUFFER, linker->info, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, info);
	add_log(linker, CU_JIT_ERROR_LOG_BUFFER, linker->error, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
	return driver.cuLinkCreate_v2(linker->n, linker->name, linker->value, &linker->state);
}

CUresult serve_link_create(struct server_call *call)
{
	struct rc_wire_link_create args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuLinkCreate_v2 || !driver.cuLinkAddData_v2 || !driver.cuLinkComplete || !driver.cuLinkDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct linker *linker = calloc(1, sizeof *linker);
	if (!linker)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = linker_take(call, &args, linker);
	if (result != CUDA_SUCCESS) {
		linker_free(linker);
		return result;
	}
	result = server_object_bind(RC_KIND_LINK, args.link, linker->state, linker);
	if (result != CUDA_SUCCESS) {
		driver.cuLinkDestroy(linker->state);
		linker_free(linker);
	}
	return result;
}

/* Results of a call: its own result, the logs as they are now, and the image if there is one. */
static CUresult give(struct server_call *call, const struct linker *linker, CUresult result, const void *image, size_t size)
{
	struct rc_wire_linked wire = { result, 0, 0, 0 };
	wire.log_info = (uint32_t)strlen(linker->info);
	wire.log_error = (uint32_t)strlen(linker->error);
	CUresult given = server_give_bytes(call, &wire, sizeof wire);
	if (given == CUDA_SUCCESS)
		given = server_give_bytes(call, linker->info, wire.log_info);
	if (given == CUDA_SUCCESS)
		given = server_give_bytes(call, linker->error, wire.log_error);
	return given == CUDA_SUCCESS && size ? server_give_bytes(call, image, size) : given;
}

/* True if the driver may read these bytes, whose number it is told. */
static bool input_is_sound(uint32_t type, const uint8_t *data, uint64_t size)
{
	static const char archive[] = "!<arch>\n";
	if (type == CU_JIT_INPUT_LIBRARY && size >= sizeof archive - 1 && !memcmp(data, archive, sizeof archive - 1))
		return true;
	return server_image_is_sound(data, size);
}

struct input {
	struct rc_wire_link_add args;
	struct server_image copy;
	char *path; /* what the program calls the input */
	CUjit_option name[RC_JIT_OPTIONS_MAX];
	void *value[RC_JIT_OPTIONS_MAX];
};

static CUresult input_take(struct server_call *call, struct input *input)
{
	if (!server_take_into(call, &input->args, sizeof input->args) || input->args.name > RC_TEXT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	const uint8_t *data = server_take(call, input->args.bytes, 1);
	const char *name = data ? server_take(call, input->args.name, 1) : NULL;
	if (!name || !input->args.bytes)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_jit_options(call, input->args.options, input->name, input->value);
	if (result != CUDA_SUCCESS)
		return result;
	input->path = strndup(name, input->args.name);
	if (!input->path)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (input->args.type > CU_JIT_INPUT_LIBRARY)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = server_image_copy(data, input->args.bytes, &input->copy);
	if (result != CUDA_SUCCESS)
		return result;
	return input_is_sound(input->args.type, input->copy.bytes, input->args.bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult serve_link_add(struct server_call *call)
{
	struct input input = { .path = NULL };
	CUresult taken = input_take(call, &input);
	server_order_release(call);
	pthread_mutex_lock(&lock);
	struct linker *linker = server_object_data(RC_KIND_LINK, input.args.link);
	CUresult result = linker ? taken : CUDA_ERROR_INVALID_HANDLE;
	if (linker && result == CUDA_SUCCESS)
		result = driver.cuLinkAddData_v2(linker->state, (CUjitInputType)input.args.type, input.copy.bytes,
						 input.args.bytes, input.path, input.args.options, input.name, input.value);
	/* The driver has written the logs only if it was asked. */
	if (linker && taken == CUDA_SUCCESS)
		result = give(call, linker, result, NULL, 0);
	pthread_mutex_unlock(&lock);
	server_image_free(&input.copy);
	free(input.path);
	return result;
}

CUresult serve_link_complete(struct server_call *call)
{
	struct rc_wire_link args;
	void *image = NULL;
	size_t size = 0;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	pthread_mutex_lock(&lock);
	struct linker *linker = server_object_data(RC_KIND_LINK, args.link);
	CUresult result = CUDA_ERROR_INVALID_HANDLE;
	if (linker) {
		result = driver.cuLinkComplete(linker->state, &image, &size);
		result = give(call, linker, result, image, result == CUDA_SUCCESS ? size : 0);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult serve_link_destroy(struct server_call *call)
{
	struct rc_wire_link args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	pthread_mutex_lock(&lock);
	struct linker *linker = server_object_data(RC_KIND_LINK, args.link);
	CUresult result = linker ? driver.cuLinkDestroy(linker->state) : CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS) {
		server_object_unbind(args.link);
		linker_free(linker);
	}
	pthread_mutex_unlock(&lock);
	return result;
}
