/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Libraries. A library is loaded on the server of the context that is current at the load. If the program uses several
 * servers, the client keeps the image, and loads it on another server when a call in a context of that server first uses the
 * library. The library has one handle in the program, and each of its kernels too; those on the other servers are copies.
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

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What is needed to load a library once more. */
struct rc_library_image {
	struct rc_image image;
	struct rc_image_options options; /* without logs */
	uint8_t bytes[];
};

static pthread_mutex_t copies = PTHREAD_MUTEX_INITIALIZER; /* of the lists of copies of all libraries */

static struct rc_module *home_of(struct rc_module *library)
{
	return library->home ? library->home : library;
}

/* ---- loading and unloading ---- */

/* Keeps a copy of the image. NULL: no memory. */
static struct rc_library_image *keep(const struct rc_image *image, const struct rc_image_options *options)
{
	struct rc_library_image *kept = malloc(sizeof *kept + image->bytes);
	if (!kept)
		return NULL;
	kept->image = *image;
	kept->image.joined = NULL;
	kept->options = *options;
	kept->options.info = kept->options.error = NULL;
	kept->options.info_size = kept->options.error_size = 0;
	kept->options.info_at = kept->options.error_at = -1;
	uint8_t *at = kept->bytes;
	for (int i = 0; i < image->n; i++) {
		memcpy(at, image->piece[i].iov_base, image->piece[i].iov_len);
		kept->image.piece[i].iov_base = at;
		at += image->piece[i].iov_len;
	}
	return kept;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values, unsigned n,
			   CUlibraryOption *library_options, void **library_values, unsigned library_n)
{
	struct rc_process *process;
	struct rc_image image;
	struct rc_image_options known;
	struct rc_link *link;
	struct rc_module *loaded;
	if (!library || !code || (n && (!options || !values)) || (library_n && !library_options))
		return CUDA_ERROR_INVALID_VALUE;
	/* BINARY_IS_PRESERVED allows the driver not to copy the code: it was copied over the wire in any case. */
	for (unsigned i = 0; i < library_n; i++)
		if (library_options[i] != CU_LIBRARY_BINARY_IS_PRESERVED)
			return CUDA_ERROR_NOT_SUPPORTED;
	(void)library_values;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		result = rc_module_find_image(code, n, options, values, &image, &known);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_library_image *kept = NULL;
	result = rc_link_get(&(struct rc_route){ NULL, 0, false }, false, &link);
	if (result == CUDA_SUCCESS && process->sessions > 1 && !(kept = keep(&image, &known)))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = rc_module_load(link, &image, &known, values, true, &loaded);
	rc_image_free(&image);
	if (result != CUDA_SUCCESS) {
		free(kept);
		return result;
	}
	loaded->image = kept;
	*library = (CUlibrary)(uintptr_t)loaded->handle;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values, unsigned n,
			       CUlibraryOption *library_options, void **library_values, unsigned library_n)
{
	void *image;
	size_t size;
	if (!library || !path)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_image_read(path, &image, &size);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuLibraryLoadData(library, image, options, values, n, library_options, library_values, library_n);
	free(image);
	return result;
}

/* Ends a library's module in some context, when the library ends. */
static void end_module_of(uint64_t handle, void *data, void *library)
{
	struct rc_module *module = data;
	(void)handle;
	if (module && module->of_library == *(const uint64_t *)library)
		rc_module_end(module);
}

static CUresult unload(struct rc_module *library)
{
	uint64_t handle = library->handle;
	CUresult result = rc_module_unload(library);
	if (result == CUDA_SUCCESS) {
		rc_handle_each(RC_KIND_MODULE, end_module_of, &handle);
		rc_alias_forget(handle);
	}
	return result;
}

CUresult cuLibraryUnload(CUlibrary handle)
{
	struct rc_module *library, *copy, *next;
	CUresult result = rc_module_get(RC_KIND_LIBRARY, (uint64_t)(uintptr_t)handle, &library);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&copies);
	copy = library->copies;
	library->copies = NULL;
	pthread_mutex_unlock(&copies);
	/* If the server of a copy is lost, so is the copy. */
	for (; copy; copy = next) {
		next = copy->next_copy;
		(void)unload(copy);
	}
	return unload(library);
}

/* ---- the copies on other servers ---- */

static struct rc_module *find_copy(const struct rc_module *library, const struct rc_session *session)
{
	struct rc_module *copy = library->copies;
	while (copy && rc_handle_session(copy->handle) != session)
		copy = copy->next_copy;
	return copy;
}

/* Adds a copy, unless another thread has added one meanwhile. Returns the library's copy on that server. */
static struct rc_module *add_copy(struct rc_module *library, struct rc_module *copy, const struct rc_session *session)
{
	copy->home = library;
	pthread_mutex_lock(&copies);
	struct rc_module *present = find_copy(library, session);
	if (!present) {
		copy->next_copy = library->copies;
		library->copies = copy;
	}
	pthread_mutex_unlock(&copies);
	if (!present)
		return copy;
	(void)unload(copy);
	return present;
}

/* The library as the server of the session has it. The library is loaded there if it was not. */
static CUresult library_on(struct rc_session *session, struct rc_module **library)
{
	struct rc_module *home = home_of(*library), *copy;
	struct rc_link *link;
	if (!session || !home->image || rc_handle_session((*library)->handle) == session)
		return CUDA_SUCCESS;
	if (rc_handle_session(home->handle) == session) {
		*library = home;
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&copies);
	copy = find_copy(home, session);
	pthread_mutex_unlock(&copies);
	if (!copy) {
		CUresult result = rc_link_get(&(struct rc_route){ session, 0, false }, false, &link);
		if (result == CUDA_SUCCESS)
			result = rc_module_load(link, &home->image->image, &home->image->options, NULL, true, &copy);
		if (result != CUDA_SUCCESS)
			return result;
		copy = add_copy(home, copy, session);
	}
	*library = copy;
	return CUDA_SUCCESS;
}

CUresult rc_kernel_on(struct rc_session *session, struct rc_kernel **kernel)
{
	struct rc_module *module = (*kernel)->module;
	uint64_t handle;
	if (!session || rc_handle_session(module->handle) == session)
		return CUDA_SUCCESS;
	if (!module->library)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = library_on(session, &module);
	if (result == CUDA_SUCCESS)
		result = rc_module_kernel(module, (*kernel)->name, &handle);
	if (result == CUDA_SUCCESS)
		*kernel = rc_kernel_find(handle);
	return result;
}

CUlibrary rc_kernel_library(const struct rc_kernel *kernel)
{
	return (CUlibrary)(uintptr_t)home_of(kernel->module)->handle;
}

/* ---- a library's module in a context ---- */

/* Asks for a library's module in the current context, and keeps its handle as an alias of the library. */
static CUresult ask_module(const struct rc_module *library, struct rc_module **found)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_library_module call;
	} message = { .call = { .library = library->handle } };
	struct rc_route route = { NULL, 0, false };
	struct rc_link *link;
	CUresult result = rc_route_handle(&route, RC_KIND_LIBRARY, library->handle);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS)
		result = rc_handle_new(RC_KIND_MODULE, link->session, &message.call.module);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_call(link, RC_CALL_library_module, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS)
		result = rc_module_read(link, RC_CALL_library_module, message.call.module, found);
	if (result != CUDA_SUCCESS) {
		rc_handle_delete(message.call.module);
		return result;
	}
	(*found)->of_library = library->handle;
	return rc_alias_add(RC_CALL_library_module, library->handle, (uint64_t)(uintptr_t)rc_context_current(), "",
			    message.call.module);
}

CUresult cuLibraryGetModule(CUmodule *handle, CUlibrary library)
{
	struct rc_context *context;
	struct rc_module *loaded, *module;
	uint64_t known;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	result = rc_module_get(RC_KIND_LIBRARY, (uint64_t)(uintptr_t)library, &loaded);
	if (result == CUDA_SUCCESS)
		result = library_on(rc_context_session(), &loaded);
	if (result != CUDA_SUCCESS)
		return result;
	if (!rc_alias_find(RC_KIND_MODULE, RC_CALL_library_module, loaded->handle, (uint64_t)(uintptr_t)context->handle, "",
			   &known)) {
		result = ask_module(loaded, &module);
		if (result != CUDA_SUCCESS)
			return result;
		known = module->handle;
	}
	*handle = (CUmodule)(uintptr_t)known;
	return CUDA_SUCCESS;
}

/* ---- what is in a library ---- */

/* The devices have no unified function pointers (cuda.h): none is ever found. */
CUresult cuLibraryGetUnifiedFunction(void **function, CUlibrary library, const char *name)
{
	struct rc_module *loaded;
	CUresult result = rc_module_get(RC_KIND_LIBRARY, (uint64_t)(uintptr_t)library, &loaded);
	if (result != CUDA_SUCCESS)
		return result;
	return function && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary handle, const char *name)
{
	struct rc_module *library;
	uint64_t found;
	if (!kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_module_get(RC_KIND_LIBRARY, (uint64_t)(uintptr_t)handle, &library);
	if (result == CUDA_SUCCESS)
		result = rc_module_kernel(library, name, &found);
	if (result == CUDA_SUCCESS)
		*kernel = (CUkernel)(uintptr_t)found;
	return result;
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
	return rc_module_count(RC_KIND_LIBRARY, (uint64_t)(uintptr_t)library, count);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned n, CUlibrary handle)
{
	struct rc_module *library;
	if (!kernels || !n)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_module_get(RC_KIND_LIBRARY, (uint64_t)(uintptr_t)handle, &library);
	for (uint32_t i = 0; result == CUDA_SUCCESS && i < n && i < library->n; i++)
		kernels[i] = (CUkernel)(uintptr_t)library->kernel[i].handle;
	return result;
}

/* Asks the worker where the variable is, and if mirror is 1, to mirror it. */
static CUresult ask_variable(const struct rc_module *library, const char *name, uint32_t mirror, struct rc_link **link,
			     uint64_t found[2])
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_global call;
	} message = { .call = { library->handle, (uint32_t)strlen(name), mirror } };
	struct iovec iov = { (void *)(uintptr_t)name, message.call.name };
	struct rc_route route = { NULL, 0, false };
	if (!rc_mirror_supported(rc_handle_session(library->handle))) {
		hr_log_once(HR_LOG_WARN, "managed variables cannot be used: they need a server whose driver places memory at the "
			    "client's addresses, as the software GPU does");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	CUresult result = rc_route_handle(&route, RC_KIND_LIBRARY, library->handle);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(*link, RC_CALL_managed_variable, 0, &message.head, sizeof message, &iov, 1);
	if (result != CUDA_SUCCESS)
		return result;
	if ((*link)->reply_len != 2 * sizeof found[0])
		return rc_link_broken(*link, RC_CALL_managed_variable);
	memcpy(found, (*link)->reply, 2 * sizeof found[0]);
	/* No process has higher addresses. */
	return found[0] > INT64_MAX || found[1] > INT64_MAX - found[0] ? rc_link_broken(*link, RC_CALL_managed_variable) :
									 CUDA_SUCCESS;
}

/* The worker sends changes from the second call on: a call of another thread may fetch them, and the client must know the variable
 * then. */
static CUresult mirror_variable(struct rc_link *link, const struct rc_module *library, const struct rc_span *span,
				const char *name)
{
	uint64_t found[2];
	CUresult result = rc_mirror_variable(link, span, name);
	if (result != CUDA_SUCCESS)
		return result;
	result = ask_variable(library, name, 1, &link, found);
	if (result == CUDA_SUCCESS && (found[0] != span->base || found[1] != span->size))
		result = rc_link_broken(link, RC_CALL_managed_variable);
	if (result == CUDA_SUCCESS)
		result = rc_mirror_fetch(link);
	if (result != CUDA_SUCCESS)
		rc_mirror_end(span->base);
	return result;
}

/* Memory that the calls see as managed, in place of the variable that cuLibraryGetGlobal may have told of. */
static CUresult add_variable(struct rc_link *link, const struct rc_module *library, const uint64_t found[2], const char *name)
{
	struct rc_span known, span = { .base = found[0], .size = found[1], .kind = RC_MEMORY_MANAGED, .session = link->session,
				       .context = rc_context_current(), .flags = CU_MEM_ATTACH_GLOBAL,
				       .module = (CUmodule)(uintptr_t)library->handle };
	if (rc_memory_find(span.base, &known)) {
		if (known.module != span.module || known.base != span.base || known.size != span.size)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (known.kind == RC_MEMORY_MANAGED)
			return CUDA_SUCCESS;
		rc_memory_remove(span.base);
	}
	CUresult result = rc_memory_add(&span);
	if (result == CUDA_SUCCESS)
		result = mirror_variable(link, library, &span, name);
	if (result != CUDA_SUCCESS)
		rc_memory_remove(span.base);
	return result;
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary handle, const char *name)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	struct rc_module *library;
	struct rc_link *link;
	uint64_t found[2];
	CUresult result = rc_module_get(RC_KIND_LIBRARY, (uint64_t)(uintptr_t)handle, &library);
	if (result == CUDA_SUCCESS)
		result = library_on(rc_context_session(), &library);
	if (result != CUDA_SUCCESS)
		return result;
	if (!name || strlen(name) > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&one_at_a_time);
	result = ask_variable(library, name, 0, &link, found);
	if (result == CUDA_SUCCESS)
		result = add_variable(link, library, found, name);
	pthread_mutex_unlock(&one_at_a_time);
	if (result == CUDA_SUCCESS && address)
		*address = found[0];
	if (result == CUDA_SUCCESS && size)
		*size = found[1];
	return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary handle, const char *name)
{
	struct rc_module *library;
	CUresult result = rc_module_get(RC_KIND_LIBRARY, (uint64_t)(uintptr_t)handle, &library);
	if (result == CUDA_SUCCESS)
		result = library_on(rc_context_session(), &library);
	return result == CUDA_SUCCESS ? rc_module_global(library->handle, name, address, size) : result;
}
