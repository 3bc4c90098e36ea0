/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules and libraries: loaded by the driver, then described to the client kernel by kernel. */
#include "cuda_remote/api/jit_options.h"
#include "cuda_remote/fatbin.h"
#include "cuda_remote/server/image.h"
#include "cuda_remote/server/usage.h"

#include <stdlib.h>
#include <string.h>

#define LOG_MAX (1u << 20)
#define PARAMETERS_MAX 4096

struct load {
	struct rc_wire_load wire;
	struct server_image copy;
	const void *image; /* the driver's argument: the copy, or the wrapper around its containers */
	struct fatbin_wrapper wrapper; /* of a linked program: points to the linked container and the units */
	const void **unit; /* allocated; NULL at the end */
	char *info, *error;
	unsigned n;
	CUjit_option name[RC_JIT_OPTIONS_MAX + 4];
	void *value[RC_JIT_OPTIONS_MAX + 4];
};

static void add_option(struct load *load, CUjit_option name, uint64_t value)
{
	load->name[load->n] = name;
	load->value[load->n++] = (void *)(uintptr_t)value;
}

/* Finds the containers of a linked program and its units, and fills the wrapper with pointers into the worker's
 * copy. */
static bool take_units(struct load *load)
{
	const uint8_t *image = load->copy.bytes;
	uint64_t at = 0, size = load->wire.image;
	load->unit = calloc(load->wire.units + 1u, sizeof *load->unit);
	if (!load->unit)
		return false;
	for (unsigned i = 0; i <= load->wire.units; i++) {
		uint64_t n = at < size ? server_image_container(image + at, size - at) : 0;
		if (!n)
			return false;
		if (i)
			load->unit[i - 1] = image + at;
		at += (n + 7) & ~7ull;
	}
	load->wrapper = (struct fatbin_wrapper){ FATBIN_WRAPPER_MAGIC, 2, image, load->unit };
	load->image = &load->wrapper;
	return true;
}

static CUresult take_image(struct server_call *call, struct load *load)
{
	const void *image = server_take(call, load->wire.image, 1);
	if (!image || !load->wire.image)
		return CUDA_ERROR_INVALID_IMAGE;
	CUresult result = server_image_copy(image, load->wire.image, &load->copy);
	if (result != CUDA_SUCCESS)
		return result;
	load->image = load->copy.bytes;
	bool sound = load->wire.units ? take_units(load) : server_image_is_sound(load->copy.bytes, load->wire.image);
	return sound ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult server_jit_options(struct server_call *call, uint32_t count, CUjit_option *names, void **values)
{
	const uint8_t *options = count <= RC_JIT_OPTIONS_MAX ? server_take(call, count, 16) : NULL;
	if (!options)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t name;
		uint64_t value;
		memcpy(&name, options + 16 * i, sizeof name);
		memcpy(&value, options + 16 * i + 8, sizeof value);
		if (!rc_jit_option_travels(name))
			return CUDA_ERROR_INVALID_VALUE;
		names[i] = (CUjit_option)name;
		values[i] = (void *)(uintptr_t)value;
	}
	return CUDA_SUCCESS;
}

static CUresult load_take(struct server_call *call, struct load *load)
{
	if (!server_take_into(call, &load->wire, sizeof load->wire))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = take_image(call, load);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_jit_options(call, load->wire.options, load->name, load->value);
	if (result != CUDA_SUCCESS)
		return result;
	load->n = load->wire.options;
	uint32_t info = load->wire.log_info < LOG_MAX ? load->wire.log_info : LOG_MAX;
	uint32_t error = load->wire.log_error < LOG_MAX ? load->wire.log_error : LOG_MAX;
	load->info = calloc(1, info + 1);
	load->error = calloc(1, error + 1);
	if (!load->info || !load->error)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (info) {
		add_option(load, CU_JIT_INFO_LOG_BUFFER, (uint64_t)(uintptr_t)load->info);
		add_option(load, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, info);
	}
	if (error) {
		add_option(load, CU_JIT_ERROR_LOG_BUFFER, (uint64_t)(uintptr_t)load->error);
		add_option(load, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
	}
	return CUDA_SUCCESS;
}

/* ---- describing ---- */

/* The driver's object to describe: a module's function or a library's kernel. */
struct subject {
	bool library;
	void *object;        /* CUfunction or CUkernel */
	CUfunction function; /* NULL: a kernel whose function the driver did not give, as there is no context */
};

static CUresult subject_parameter(const struct subject *subject, size_t index, size_t *offset, size_t *size)
{
	if (subject->library)
		return driver.cuKernelGetParamInfo ? driver.cuKernelGetParamInfo(subject->object, index, offset, size) :
						     CUDA_ERROR_NOT_SUPPORTED;
	return driver.cuFuncGetParamInfo ? driver.cuFuncGetParamInfo(subject->object, index, offset, size) :
					   CUDA_ERROR_NOT_SUPPORTED;
}

/* Reads the parameters' offsets and sizes. The first index that the driver refuses is their count. */
static CUresult kernel_parameters(const struct subject *subject, struct server_kernel *kernel)
{
	uint32_t room = 0;
	for (;;) {
		size_t offset, size;
		CUresult result = subject_parameter(subject, kernel->parameters, &offset, &size);
		if (result == CUDA_ERROR_INVALID_VALUE)
			return CUDA_SUCCESS;
		if (result != CUDA_SUCCESS)
			return result;
		if (kernel->parameters == PARAMETERS_MAX || offset + size > 65536)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (kernel->parameters == room) {
			room = room ? 2 * room : 8;
			void *larger = realloc(kernel->parameter, room * sizeof *kernel->parameter);
			if (!larger)
				return CUDA_ERROR_OUT_OF_MEMORY;
			kernel->parameter = larger;
		}
		kernel->parameter[kernel->parameters].offset = (uint32_t)offset;
		kernel->parameter[kernel->parameters++].size = (uint32_t)size;
		if (offset + size > kernel->block)
			kernel->block = (uint32_t)(offset + size);
	}
}

static void describe_attributes(const struct subject *subject, struct rc_wire_kernel *wire)
{
	for (int i = 0; i < RC_KERNEL_ATTRIBUTES && i < CU_FUNC_ATTRIBUTE_MAX; i++) {
		int value;
		if (!subject->function || !driver.cuFuncGetAttribute ||
		    driver.cuFuncGetAttribute(&value, (CUfunction_attribute)i, subject->function) != CUDA_SUCCESS)
			continue;
		wire->known |= 1u << i;
		wire->attribute[i] = value;
	}
}

static CUresult describe(struct server_call *call, const struct subject *subject, const char *name,
			 struct server_kernel *kernel)
{
	CUresult result = kernel_parameters(subject, kernel);
	if (result != CUDA_SUCCESS)
		return result;
	kernel->object = subject->object;
	struct rc_wire_kernel wire = { .name = (uint32_t)strlen(name), .parameters = kernel->parameters,
				       .block = kernel->block };
	describe_attributes(subject, &wire);
	result = server_give_bytes(call, &wire, sizeof wire);
	if (result == CUDA_SUCCESS && kernel->parameters)
		result = server_give_bytes(call, kernel->parameter, kernel->parameters * sizeof *kernel->parameter);
	if (result == CUDA_SUCCESS && wire.name)
		result = server_give_bytes(call, name, wire.name);
	return result;
}

void server_module_free(struct server_module *module)
{
	for (uint32_t i = 0; i < module->n; i++)
		free(module->kernel[i].parameter);
	free(module->kernel);
	free(module);
}

/* Gets the driver's list of the functions of a module or the kernels of a library. */
static CUresult list(bool library, void *object, unsigned *n, void ***objects)
{
	CUresult result;
	if (library ? !driver.cuLibraryGetKernelCount || !driver.cuLibraryEnumerateKernels || !driver.cuKernelGetName :
		      !driver.cuModuleGetFunctionCount || !driver.cuModuleEnumerateFunctions || !driver.cuFuncGetName)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = library ? driver.cuLibraryGetKernelCount(n, object) : driver.cuModuleGetFunctionCount(n, object);
	if (result != CUDA_SUCCESS)
		return result;
	*objects = calloc(*n + 1, sizeof **objects);
	if (!*objects)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!*n)
		return CUDA_SUCCESS;
	return library ? driver.cuLibraryEnumerateKernels((CUkernel *)*objects, *n, object) :
			 driver.cuModuleEnumerateFunctions((CUfunction *)*objects, *n, object);
}

static CUresult describe_one(struct server_call *call, bool library, void *object, struct server_kernel *kernel)
{
	struct subject subject = { library, object, library ? NULL : object };
	const char *name;
	/* A driver that loads code at its first use has no attributes of a function before. */
	if (library && driver.cuKernelGetFunction)
		driver.cuKernelGetFunction(&subject.function, object);
	else if (!library && driver.cuFuncLoad)
		driver.cuFuncLoad(object);
	CUresult result = library ? driver.cuKernelGetName(&name, object) : driver.cuFuncGetName(&name, object);
	return result == CUDA_SUCCESS ? describe(call, &subject, name, kernel) : result;
}

static CUresult describe_all(struct server_call *call, bool library, void *object, struct server_module *module)
{
	unsigned n;
	void **objects = NULL;
	CUresult result = list(library, object, &n, &objects);
	if (result == CUDA_SUCCESS && n > RC_KERNELS_MAX)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS && n && !(module->kernel = calloc(n, sizeof *module->kernel)))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < n && result == CUDA_SUCCESS; i++) {
		module->n = i + 1;
		result = describe_one(call, library, objects[i], &module->kernel[i]);
	}
	free(objects);
	return result;
}

/* A program may load a library before it has a context. The driver describes kernels in a context only. */
static CUresult describe_library(struct server_call *call, void *object, struct server_module *module)
{
	if (call->thread->current)
		return describe_all(call, true, object, module);
	CUresult result = driver.cuCtxSetCurrent(__atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED));
	if (result == CUDA_SUCCESS)
		result = describe_all(call, true, object, module);
	(void)driver.cuCtxSetCurrent(NULL);
	return result;
}

/* ---- loading ---- */

static CUresult driver_load(struct load *load, void **object)
{
	if (load->wire.library)
		return driver.cuLibraryLoadData ? driver.cuLibraryLoadData((CUlibrary *)object, load->image, load->name,
									   load->value, load->n, NULL, NULL, 0) :
						  CUDA_ERROR_NOT_SUPPORTED;
	return driver.cuModuleLoadDataEx ?
		       driver.cuModuleLoadDataEx((CUmodule *)object, load->image, load->n, load->name, load->value) :
		       CUDA_ERROR_NOT_SUPPORTED;
}

static void driver_unload(bool library, void *object)
{
	if (library && driver.cuLibraryUnload)
		driver.cuLibraryUnload(object);
	else if (!library && driver.cuModuleUnload)
		driver.cuModuleUnload(object);
}

/* Loads the image and appends the logs and the description to the results. Fills in *wire, the head of the reply. */
static CUresult load_and_describe(struct server_call *call, struct load *load, struct rc_wire_module *wire, void **loaded)
{
	void *object;
	bool library = load->wire.library != 0;
	CUresult result = driver_load(load, &object);
	wire->log_info = (uint32_t)strlen(load->info);
	wire->log_error = (uint32_t)strlen(load->error);
	CUresult given = server_give_bytes(call, load->info, wire->log_info);
	if (given == CUDA_SUCCESS)
		given = server_give_bytes(call, load->error, wire->log_error);
	if (result != CUDA_SUCCESS || given != CUDA_SUCCESS) {
		if (result == CUDA_SUCCESS)
			driver_unload(library, object);
		return result != CUDA_SUCCESS ? result : given;
	}
	size_t logs = call->out_len;
	struct server_module *module = calloc(1, sizeof *module);
	if (!module)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		module->library = library;
	if (result == CUDA_SUCCESS)
		result = library ? describe_library(call, object, module) : describe_all(call, false, object, module);
	if (result == CUDA_SUCCESS)
		result = server_object_bind(library ? RC_KIND_LIBRARY : RC_KIND_MODULE, load->wire.handle, object, module);
	if (result == CUDA_SUCCESS) {
		wire->kernels = module->n;
		*loaded = object;
		return CUDA_SUCCESS;
	}
	if (module)
		server_module_free(module);
	driver_unload(library, object);
	call->out_len = logs;
	return result;
}

/* Bytes of device memory that the variables take. Without a quota nobody asks. */
static uint64_t variables_of(const struct load *load)
{
	const uint8_t *image = load->copy.bytes, *unit;
	uint64_t units = 0;
	if (!server_quota_is_set())
		return 0;
	for (unsigned i = 0; i < load->wire.units; i++) {
		unit = load->unit[i];
		if (__builtin_add_overflow(units, server_image_variables(unit, (uint64_t)(image + load->wire.image - unit)), &units))
			return UINT64_MAX;
	}
	uint64_t whole = server_image_variables(image, load->wire.image);
	return whole > units ? whole : units;
}

/* Charges the session's quota for the variables. Those of a library live as long as the library. */
static CUresult load_charged(struct server_call *call, struct load *load, struct rc_wire_module *wire)
{
	struct server_charge charge;
	void *object = NULL;
	if (!server_usage_charge(&charge, 0, variables_of(load)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	charge.outlasts = load->wire.library;
	CUresult result = load_and_describe(call, load, wire, &object);
	server_usage_charged(&charge, result == CUDA_SUCCESS ? (uintptr_t)object : 0);
	return result;
}

CUresult serve_module_load(struct server_call *call)
{
	struct load load = { .n = 0 };
	struct rc_wire_module wire = { 0 };
	CUresult result = server_give(call, 1, sizeof wire) ? load_take(call, &load) : CUDA_ERROR_OUT_OF_MEMORY;
	server_order_release(call); /* the driver may compile the image */
	if (result == CUDA_SUCCESS) {
		server_gates_load_begin();
		result = load_charged(call, &load, &wire);
		server_gates_load_end();
	}
	wire.result = result;
	memcpy(call->thread->results, &wire, sizeof wire);
	free(load.info);
	free(load.error);
	free(load.unit);
	server_image_free(&load.copy);
	/* As the call's result it makes the client give unused budget back, and repeat the call. */
	return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_SUCCESS;
}

static enum rc_kind kind_of(uint64_t handle)
{
	return rc_handle_kind(handle) == RC_KIND_LIBRARY ? RC_KIND_LIBRARY : RC_KIND_MODULE;
}

CUresult serve_module_unload(struct server_call *call)
{
	struct rc_wire_unload args;
	void *object;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	enum rc_kind kind = kind_of(args.module);
	CUresult result = server_object(kind, args.module, &object);
	struct server_module *module = server_object_data(kind, args.module);
	if (result != CUDA_SUCCESS || !module)
		return CUDA_ERROR_INVALID_HANDLE;
	if (module->of_library)
		return CUDA_ERROR_NOT_PERMITTED;
	if (module->library ? !driver.cuLibraryUnload : !driver.cuModuleUnload)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* The driver waits for the kernels of the module. No call that is issued meanwhile finds the module. */
	server_object_unbind(args.module);
	server_mirrors_forget_library(object);
	server_order_release(call);
	struct allocation *counted = server_usage_take((uintptr_t)object);
	result = server_usage_settle(counted, module->library ? driver.cuLibraryUnload(object) : driver.cuModuleUnload(object));
	if (result != CUDA_SUCCESS && server_object_bind(kind, args.module, object, module) == CUDA_SUCCESS)
		return result;
	server_module_free(module);
	return result;
}

CUresult serve_library_module(struct server_call *call)
{
	struct rc_wire_library_module args;
	struct rc_wire_module wire = { 0 };
	void *library;
	CUmodule object;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_LIBRARY, args.library, &library);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuLibraryGetModule ? driver.cuLibraryGetModule(&object, library) : CUDA_ERROR_NOT_SUPPORTED;
	if (result != CUDA_SUCCESS)
		return result;
	struct server_module *module = server_give(call, 1, sizeof wire) ? calloc(1, sizeof *module) : NULL;
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->of_library = true;
	result = describe_all(call, false, object, module);
	if (result == CUDA_SUCCESS)
		result = server_object_bind_alias(RC_KIND_MODULE, args.module, object, module, args.library);
	if (result != CUDA_SUCCESS) {
		server_module_free(module);
		return result;
	}
	wire.kernels = module->n;
	memcpy(call->thread->results, &wire, sizeof wire);
	return CUDA_SUCCESS;
}

CUresult serve_module_global(struct server_call *call)
{
	struct rc_wire_global args;
	void *object;
	if (!server_take_into(call, &args, sizeof args) || args.name > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	const char *text = server_take(call, args.name, 1);
	enum rc_kind kind = kind_of(args.module);
	CUresult result = server_object(kind, args.module, &object);
	if (result != CUDA_SUCCESS || !text)
		return text ? result : CUDA_ERROR_INVALID_VALUE;
	char *name = strndup(text, args.name);
	if (!name)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUdeviceptr address;
	size_t size;
	if (kind == RC_KIND_LIBRARY)
		result = driver.cuLibraryGetGlobal ? driver.cuLibraryGetGlobal(&address, &size, object, name) :
						     CUDA_ERROR_NOT_SUPPORTED;
	else
		result = driver.cuModuleGetGlobal_v2 ? driver.cuModuleGetGlobal_v2(&address, &size, object, name) :
						       CUDA_ERROR_NOT_SUPPORTED;
	free(name);
	uint64_t found[2] = { 0 };
	if (result == CUDA_SUCCESS) {
		found[0] = address;
		found[1] = size;
		result = server_give_bytes(call, found, sizeof found);
	}
	return result;
}

CUresult serve_function_attribute(struct server_call *call)
{
	struct rc_wire_function_attribute args;
	void *object;
	if (!server_take_into(call, &args, sizeof args) || args.device >= worker.gpus)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc_handle_kind(args.function) == RC_KIND_KERNEL) {
		CUresult result = server_object(RC_KIND_KERNEL, args.function, &object);
		if (result != CUDA_SUCCESS)
			return result;
		return driver.cuKernelSetAttribute ?
			       driver.cuKernelSetAttribute((CUfunction_attribute)args.attribute, args.value, object,
							   worker.device[args.device]) :
			       CUDA_ERROR_NOT_SUPPORTED;
	}
	CUresult result = server_object(RC_KIND_FUNCTION, args.function, &object);
	if (result != CUDA_SUCCESS)
		return result;
	return driver.cuFuncSetAttribute ?
		       driver.cuFuncSetAttribute(object, (CUfunction_attribute)args.attribute, args.value) :
		       CUDA_ERROR_NOT_SUPPORTED;
}

CUresult serve_function_cache(struct server_call *call)
{
	struct rc_wire_function_attribute args;
	void *object;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_FUNCTION, args.function, &object);
	if (result != CUDA_SUCCESS)
		return result;
	return driver.cuFuncSetCacheConfig ? driver.cuFuncSetCacheConfig(object, (CUfunc_cache)args.value) :
					     CUDA_ERROR_NOT_SUPPORTED;
}
