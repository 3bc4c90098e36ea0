/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modules, and what libraries (library.c) have in common with them. Loading sends the image. The reply has every kernel's
 * name, parameter layout and attributes. So finding, querying and launching functions waits for no further reply.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/module.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include "cuda_remote/client/mirror/client_mirror.h"

#include <stdlib.h>
#include <string.h>

struct rc_kernel *rc_kernel_find(uint64_t handle)
{
	uint64_t holder = rc_handle_module(handle);
	struct rc_module *module = holder ? rc_handle_data(rc_handle_kind(holder), holder) : NULL;
	uint32_t ordinal = rc_handle_ordinal(handle);
	return module && ordinal < module->n ? &module->kernel[ordinal] : NULL;
}

static void module_free(struct rc_module *module)
{
	for (uint32_t i = 0; i < module->n; i++) {
		free(module->kernel[i].name);
		free(module->kernel[i].parameter);
		free(module->kernel[i].old_launch);
	}
	free(module->kernel);
	free(module->image);
	free(module);
}

/* ---- the answer to a load ---- */

/* The part of a reply that has not been read. */
struct reader {
	const uint8_t *at;
	size_t left;
};

static bool take(struct reader *reader, void *to, size_t size)
{
	if (size > reader->left)
		return false;
	memcpy(to, reader->at, size);
	reader->at += size;
	reader->left -= size;
	return true;
}

static bool read_parameters(struct reader *reader, struct rc_kernel *kernel)
{
	if (kernel->parameters > reader->left / sizeof *kernel->parameter)
		return false;
	kernel->parameter = malloc((kernel->parameters + 1) * sizeof *kernel->parameter);
	if (!kernel->parameter || !take(reader, kernel->parameter, kernel->parameters * sizeof *kernel->parameter))
		return false;
	for (uint32_t i = 0; i < kernel->parameters; i++)
		if (kernel->parameter[i].offset > kernel->block ||
		    kernel->parameter[i].size > kernel->block - kernel->parameter[i].offset)
			return false;
	return true;
}

static bool read_kernel(struct reader *reader, struct rc_module *module, struct rc_kernel *kernel)
{
	struct rc_wire_kernel wire;
	if (!take(reader, &wire, sizeof wire) || wire.name > reader->left || wire.block > 65536)
		return false;
	kernel->module = module;
	kernel->parameters = wire.parameters;
	kernel->block = wire.block;
	kernel->known = wire.known;
	memcpy(kernel->attribute, wire.attribute, sizeof kernel->attribute);
	kernel->dynamic_most = (uint32_t)wire.attribute[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
	if (!read_parameters(reader, kernel) || wire.name > reader->left)
		return false;
	kernel->name = malloc(wire.name + 1);
	if (!kernel->name || !take(reader, kernel->name, wire.name))
		return false;
	kernel->name[wire.name] = '\0';
	kernel->handle = rc_handle_kernel(module->handle, (uint32_t)(kernel - module->kernel));
	return true;
}

static struct rc_module *read_module(struct reader *reader, const struct rc_wire_module *wire, uint64_t handle)
{
	struct rc_module *module = calloc(1, sizeof *module);
	if (!module || wire->kernels > reader->left / sizeof(struct rc_wire_kernel) || wire->kernels > RC_KERNELS_MAX)
		goto free_module;
	module->handle = handle;
	module->library = rc_handle_kind(handle) == RC_KIND_LIBRARY;
	module->context = module->library ? NULL : rc_context_current();
	module->kernel = calloc(wire->kernels + 1, sizeof *module->kernel);
	if (!module->kernel)
		goto free_module;
	for (; module->n < wire->kernels; module->n++)
		if (!read_kernel(reader, module, &module->kernel[module->n]))
			goto free_kernels;
	rc_handle_attach(handle, module);
	return module;

free_kernels:
	module->n += module->n < wire->kernels;
	module_free(module);
	return NULL;
free_module:
	free(module);
	return NULL;
}

/* ---- loading ---- */

/* Reads the reply to a load. */
static CUresult loaded(struct rc_link *link, uint64_t handle, const struct rc_image_options *options, void **values,
		       struct rc_module **module)
{
	struct rc_wire_module wire;
	struct reader reader = { link->reply, link->reply_len };
	if (!take(&reader, &wire, sizeof wire) || wire.log_info > reader.left || wire.log_error > reader.left - wire.log_info)
		return rc_link_broken(link, RC_CALL_module_load);
	rc_image_logs(options, values, reader.at, wire.log_info, reader.at + wire.log_info, wire.log_error);
	reader.at += wire.log_info + wire.log_error;
	reader.left -= wire.log_info + wire.log_error;
	if (wire.result != CUDA_SUCCESS)
		return (CUresult)wire.result;
	*module = read_module(&reader, &wire, handle);
	return *module ? CUDA_SUCCESS : rc_link_broken(link, RC_CALL_module_load);
}

CUresult rc_module_read(struct rc_link *link, enum rc_call call, uint64_t handle, struct rc_module **module)
{
	struct rc_wire_module wire;
	struct reader reader = { link->reply, link->reply_len };
	*module = take(&reader, &wire, sizeof wire) ? read_module(&reader, &wire, handle) : NULL;
	return *module ? CUDA_SUCCESS : rc_link_broken(link, call);
}

CUresult rc_module_load(struct rc_link *link, struct rc_image *image, const struct rc_image_options *options, void **values,
			bool library, struct rc_module **module)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_load call;
	} message = { .call = { .library = library, .image = image->bytes, .units = (uint16_t)image->units, .options = options->n,
				.log_info = (uint32_t)options->info_size, .log_error = (uint32_t)options->error_size } };
	struct iovec iov[sizeof image->piece / sizeof image->piece[0] + 1];
	memcpy(iov, image->piece, (size_t)image->n * sizeof *iov);
	iov[image->n] = (struct iovec){ (void *)(uintptr_t)options->wire, options->n * sizeof options->wire[0] };
	CUresult result = rc_handle_new(library ? RC_KIND_LIBRARY : RC_KIND_MODULE, link->session, &message.call.handle);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_call(link, RC_CALL_module_load, 0, &message.head, sizeof message, iov, image->n + 1);
	if (result == CUDA_SUCCESS)
		result = loaded(link, message.call.handle, options, values, module);
	/* The reply says so in its content: see rc_link_call. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && rc_placing_return(link)) {
		result = rc_link_call(link, RC_CALL_module_load, 0, &message.head, sizeof message, iov, image->n + 1);
		if (result == CUDA_SUCCESS)
			result = loaded(link, message.call.handle, options, values, module);
	}
	if (result != CUDA_SUCCESS)
		rc_handle_delete(message.call.handle);
	return result;
}

CUresult rc_module_find_image(const void *bytes, unsigned n_options, CUjit_option *names, void **values, struct rc_image *image,
			      struct rc_image_options *options)
{
	CUresult result = rc_image_find(bytes, image);
	if (result == CUDA_SUCCESS)
		result = rc_image_options(n_options, names, values, options);
	if (result == CUDA_SUCCESS && image->bytes > RC_CALL_BYTES_MAX - 65536)
		result = CUDA_ERROR_INVALID_IMAGE;
	if (result != CUDA_SUCCESS)
		rc_image_free(image);
	return result;
}

CUresult rc_module_unload(struct rc_module *module)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_unload call;
	} message = { .call = { module->handle } };
	struct rc_link *link;
	CUresult result = rc_link_to(rc_handle_session(module->handle), (uint64_t)(uintptr_t)module->context, &link);
	if (result != CUDA_SUCCESS)
		return result;
	rc_mirror_module_ending((CUmodule)(uintptr_t)module->handle, true);
	result = rc_link_call(link, RC_CALL_module_unload, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS)
		rc_module_end(module);
	else /* the call may have returned the failure of an earlier one, and was not executed then */
		rc_mirror_module_ending((CUmodule)(uintptr_t)module->handle, false);
	return result;
}

void rc_module_end(struct rc_module *module)
{
	rc_memory_forget_module((CUmodule)(uintptr_t)module->handle);
	rc_handle_delete(module->handle);
	module_free(module);
}

static void forget(uint64_t handle, void *data, void *context)
{
	struct rc_module *module = data;
	if (!module || module->context != context)
		return;
	rc_handle_delete(handle);
	module_free(module);
}

void rc_module_forget_context(CUcontext context)
{
	rc_handle_each(RC_KIND_MODULE, forget, context);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *options, void **values)
{
	struct rc_image found;
	struct rc_image_options known;
	struct rc_link *link;
	struct rc_module *loaded;
	if (!module || !image || (n && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_module_find_image(image, n, options, values, &found, &known);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	if (result == CUDA_SUCCESS)
		result = rc_module_load(link, &found, &known, values, false, &loaded);
	rc_image_free(&found);
	if (result == CUDA_SUCCESS)
		*module = (CUmodule)(uintptr_t)loaded->handle;
	return result;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	void *image;
	size_t size;
	if (!module || !path)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_image_read(path, &image, &size);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuModuleLoadData(module, image);
	free(image);
	return result;
}

CUresult rc_module_get(enum rc_kind kind, uint64_t handle, struct rc_module **module)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	*module = rc_handle_data(kind, handle);
	return *module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleUnload(CUmodule handle)
{
	struct rc_module *module;
	CUresult result = rc_module_get(RC_KIND_MODULE, (uint64_t)(uintptr_t)handle, &module);
	if (result == CUDA_SUCCESS && module->of_library)
		result = CUDA_ERROR_NOT_PERMITTED;
	return result == CUDA_SUCCESS ? rc_module_unload(module) : result;
}

/* ---- what is in a module ---- */

CUresult rc_module_kernel(const struct rc_module *module, const char *name, uint64_t *found)
{
	for (uint32_t i = 0; i < module->n; i++) {
		if (!strcmp(module->kernel[i].name, name)) {
			*found = module->kernel[i].handle;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
	struct rc_module *module;
	uint64_t found;
	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_module_get(RC_KIND_MODULE, (uint64_t)(uintptr_t)handle, &module);
	if (result == CUDA_SUCCESS)
		result = rc_module_kernel(module, name, &found);
	if (result == CUDA_SUCCESS)
		*function = (CUfunction)(uintptr_t)found;
	return result;
}

CUresult rc_module_count(enum rc_kind kind, uint64_t handle, unsigned *count)
{
	struct rc_module *module;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_module_get(kind, handle, &module);
	if (result == CUDA_SUCCESS)
		*count = module->n;
	return result;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
	return rc_module_count(RC_KIND_MODULE, (uint64_t)(uintptr_t)module, count);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned n, CUmodule handle)
{
	struct rc_module *module;
	if (!functions || !n)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_module_get(RC_KIND_MODULE, (uint64_t)(uintptr_t)handle, &module);
	for (uint32_t i = 0; result == CUDA_SUCCESS && i < n && i < module->n; i++)
		functions[i] = (CUfunction)(uintptr_t)module->kernel[i].handle;
	return result;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	struct rc_process *process;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		*mode = CU_MODULE_EAGER_LOADING;
	return result;
}

CUresult rc_module_global(uint64_t handle, const char *name, CUdeviceptr *address, size_t *size)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_global call;
	} message = { .call = { .module = handle } };
	if (!name || strlen(name) > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	message.call.name = (uint32_t)strlen(name);
	struct iovec iov = { (void *)(uintptr_t)name, message.call.name };
	struct rc_link *link;
	struct rc_route route = { NULL, 0, false };
	CUresult result = rc_route_handle(&route, rc_handle_kind(handle), handle);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_module_global, 0, &message.head, sizeof message, &iov, 1);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t found[2];
	if (link->reply_len != sizeof found)
		return rc_link_broken(link, RC_CALL_module_global);
	memcpy(found, link->reply, sizeof found);
	struct rc_span span = { .base = found[0], .size = found[1], .kind = RC_MEMORY_GLOBAL, .session = link->session,
				.context = rc_context_current(), .module = (CUmodule)(uintptr_t)handle };
	struct rc_span known;
	if (!rc_memory_find(found[0], &known))
		result = rc_memory_add(&span);
	else if (known.session != link->session)
		result = CUDA_ERROR_ALREADY_MAPPED;
	if (result == CUDA_ERROR_ALREADY_MAPPED) {
		hr_log(HR_LOG_ERROR, "server %s: the variable %s is at %#llx, where the program has other memory; run the program again",
		       link->server, name, (unsigned long long)found[0]);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (address)
		*address = found[0];
	if (size)
		*size = found[1];
	return result;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule handle, const char *name)
{
	struct rc_module *module;
	CUresult result = rc_module_get(RC_KIND_MODULE, (uint64_t)(uintptr_t)handle, &module);
	return result == CUDA_SUCCESS ? rc_module_global(module->handle, name, address, size) : result;
}
