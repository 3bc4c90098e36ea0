/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvJitLink links to machine code. If a program's device is a software GPU, here or on a server, these stand-ins let the
 * driver link instead (cuLink…): it makes an image of the PTX of all inputs, which the program gets as the cubin. Before
 * that, the real library links intermediate code (LTO) to PTX. The real nvJitLinkCreate is called first, so that wrong
 * options are errors as always; the program's handle is the real one. Links for PTX (-ptx) and links for other devices are
 * the real library's.
 *
 * Interface: nvJitLink.h of CUDA 13.0. nvJitLinkHandle is a pointer; results and types of inputs are enums.
 */
#include "cuda_remote/softgpu/nvrtc/driver.h"
#include "cuda_remote/softgpu/nvrtc/toolkit.h"

#include "cuda_remote/fatbin.h"
#include "cuda_remote/linked_image.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum jitlink_result {
	JITLINK_SUCCESS = 0,
	JITLINK_INVALID_INPUT = 3,
	JITLINK_PTX_COMPILE = 4,
	JITLINK_INTERNAL = 6,
	JITLINK_UNRECOGNIZED_INPUT = 8,
	JITLINK_NULL_INPUT = 10,
};
enum jitlink_type { TYPE_CUBIN = 1, TYPE_PTX, TYPE_LTOIR, TYPE_FATBIN, TYPE_OBJECT, TYPE_LIBRARY, TYPE_ANY = 10 };
/* CUjitInputType and CUjit_option. DRIVER_NONE: the driver does not get the input. */
enum { DRIVER_UNKNOWN = -2, DRIVER_NONE = -1, DRIVER_CUBIN = 0, DRIVER_PTX = 1, DRIVER_FATBINARY = 2, DRIVER_OBJECT = 3, DRIVER_LIBRARY = 4 };
enum { OPTION_ERROR_LOG = 5, OPTION_ERROR_LOG_BYTES = 6, LOG_BYTES = 8192 };

struct input {
	int type; /* the driver's; DRIVER_NONE: intermediate code */
	char *name;
	void *data;
	size_t size;
};

/* A link that the program has created. */
struct link {
	struct link *next;
	void *handle;
	int index;     /* of the library */
	bool software; /* the driver links; the fields below are used then only */
	struct input *inputs;
	unsigned count;
	char **options; /* of nvJitLinkCreate */
	uint32_t options_n;
	void *image;
	size_t size;
	char log[LOG_BYTES];
};

static struct link *links;
static pthread_mutex_t links_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct link *link_find(void *handle)
{
	pthread_mutex_lock(&links_mutex);
	struct link *link = links;
	while (link && link->handle != handle)
		link = link->next;
	pthread_mutex_unlock(&links_mutex);
	return link;
}

static void link_insert(struct link *link)
{
	pthread_mutex_lock(&links_mutex);
	link->next = links;
	links = link;
	pthread_mutex_unlock(&links_mutex);
}

static void link_free(struct link *link)
{
	for (uint32_t i = 0; i < link->options_n; i++)
		free(link->options[i]);
	free(link->options);
	free(link);
}

static struct link *link_new(uint32_t count, const char *const *options)
{
	struct link *link = calloc(1, sizeof *link);
	if (!link)
		return NULL;
	link->options = calloc(count ? count : 1, sizeof *link->options);
	bool copied = link->options;
	for (; copied && link->options_n < count; link->options_n++) {
		link->options[link->options_n] = strdup(options[link->options_n]);
		copied = link->options[link->options_n];
	}
	if (copied)
		return link;
	link_free(link);
	return NULL;
}

static void link_remove(struct link *link)
{
	pthread_mutex_lock(&links_mutex);
	struct link **at = &links;
	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	pthread_mutex_unlock(&links_mutex);
	for (unsigned i = 0; i < link->count; i++) {
		free(link->inputs[i].name);
		free(link->inputs[i].data);
	}
	free(link->inputs);
	free(link->image);
	link_free(link);
}

static int fail(struct link *link, enum jitlink_result result, const char *text, const char *name)
{
	size_t n = strlen(link->log);
	snprintf(link->log + n, sizeof link->log - n, "%.200s: %s\n", name, text);
	return result;
}

/* ---- inputs ---- */

/* LTO intermediate code begins with this number. */
static bool is_lto(const void *data, size_t size)
{
	static const uint8_t magic[] = { 0xed, 0x43, 0x4e, 0x7f };
	return size >= sizeof magic && !memcmp(data, magic, sizeof magic);
}

/* The driver's type of an input. What NVRTC's stand-in returns as a cubin is PTX. */
static int driver_type(int type, const void *data, size_t size)
{
	static const uint32_t fatbin = FATBIN_MAGIC;
	bool is_elf = size >= 4 && !memcmp(data, "\177ELF", 4);
	bool is_fatbin = size >= sizeof fatbin && !memcmp(data, &fatbin, sizeof fatbin);
	bool is_archive = size >= 8 && !memcmp(data, "!<arch>\n", 8);
	bool is_ours = linked_is_sound(data, size);
	switch (type) {
	case TYPE_PTX: return DRIVER_PTX;
	case TYPE_CUBIN: return is_elf || is_ours ? DRIVER_CUBIN : DRIVER_PTX;
	case TYPE_FATBIN: return DRIVER_FATBINARY;
	case TYPE_OBJECT: return DRIVER_OBJECT;
	case TYPE_LIBRARY: return DRIVER_LIBRARY;
	case TYPE_LTOIR: return DRIVER_NONE;
	case TYPE_ANY:
		return is_lto(data, size) ? DRIVER_NONE : is_ours ? DRIVER_CUBIN : is_fatbin ? DRIVER_FATBINARY : is_archive ? DRIVER_LIBRARY :
		       is_elf ? DRIVER_OBJECT : DRIVER_PTX;
	default: return DRIVER_UNKNOWN;
	}
}

static int add_input(struct link *link, int type, const void *data, size_t size, const char *name)
{
	if (!data || !size)
		return JITLINK_NULL_INPUT;
	struct input input = { .type = driver_type(type, data, size) };
	if (input.type == DRIVER_UNKNOWN)
		return fail(link, JITLINK_UNRECOGNIZED_INPUT, "no type of input that Headrace's software GPU links", name);
	struct input *inputs = realloc(link->inputs, (link->count + 1) * sizeof *inputs);
	if (!inputs)
		return JITLINK_INTERNAL;
	link->inputs = inputs;
	input.name = strdup(name);
	input.data = calloc(1, size + 1); /* text need not end with a NUL */
	input.size = size + (input.type == DRIVER_PTX);
	if (!input.name || !input.data) {
		free(input.name);
		free(input.data);
		return JITLINK_INTERNAL;
	}
	memcpy(input.data, data, size);
	link->inputs[link->count++] = input;
	return JITLINK_SUCCESS;
}

static int add_file(struct link *link, int type, const char *path)
{
	FILE *file = path ? fopen(path, "rbe") : NULL;
	if (!file)
		return path ? fail(link, JITLINK_INVALID_INPUT, "cannot be read", path) : JITLINK_NULL_INPUT;
	char *data = NULL;
	size_t size = 0, n;
	do {
		char *larger = realloc(data, size + 65536);
		if (!larger)
			break;
		data = larger;
		n = fread(data + size, 1, 65536, file);
		size += n;
	} while (n);
	bool whole = data && feof(file) && !ferror(file);
	fclose(file);
	int result = whole ? add_input(link, type, data, size, path) :
			     fail(link, JITLINK_INVALID_INPUT, "cannot be read", path);
	free(data);
	return result;
}

/* ---- linking ---- */

/* The real library's functions for intermediate code. */
struct real {
	int (*create)(void **, uint32_t, const char *const *);
	int (*destroy)(void **);
	int (*add)(void *, int, const void *, size_t, const char *);
	int (*complete)(void *);
	int (*ptx_size)(void *, size_t *);
	int (*ptx)(void *, char *);
	int (*log_size)(void *, size_t *);
	int (*log)(void *, char *);
};

static bool real_find(int index, struct real *real)
{
	*(void **)&real->create = toolkit_function(index, "nvJitLinkCreate");
	*(void **)&real->destroy = toolkit_function(index, "nvJitLinkDestroy");
	*(void **)&real->add = toolkit_function(index, "nvJitLinkAddData");
	*(void **)&real->complete = toolkit_function(index, "nvJitLinkComplete");
	*(void **)&real->ptx_size = toolkit_function(index, "nvJitLinkGetLinkedPtxSize");
	*(void **)&real->ptx = toolkit_function(index, "nvJitLinkGetLinkedPtx");
	*(void **)&real->log_size = toolkit_function(index, "nvJitLinkGetErrorLogSize");
	*(void **)&real->log = toolkit_function(index, "nvJitLinkGetErrorLog");
	return real->create && real->destroy && real->add && real->complete && real->ptx_size && real->ptx &&
	       real->log_size && real->log;
}

/* Appends the real library's error log to the link's. */
static void take_log(const struct real *real, void *handle, struct link *link)
{
	size_t size = 0, used = strlen(link->log);
	if (real->log_size(handle, &size) || !size)
		return;
	char *text = calloc(1, size + 1);
	if (text && !real->log(handle, text))
		snprintf(link->log + used, sizeof link->log - used, "%s", text);
	free(text);
}

/* Adds the PTX that the real library has made as an input for the driver. */
static int take_ptx(const struct real *real, void *handle, struct link *link)
{
	size_t size = 0;
	int result = real->ptx_size(handle, &size);
	char *text = result ? NULL : calloc(1, size + 1);
	if (!text)
		return result ? result : JITLINK_INTERNAL;
	result = real->ptx(handle, text);
	if (!result)
		result = add_input(link, TYPE_PTX, text, size, "linked intermediate code");
	free(text);
	return result;
}

static int add_intermediate(const struct real *real, void *handle, const struct link *link)
{
	int result = 0;
	for (unsigned i = 0; i < link->count && !result; i++) {
		const struct input *input = &link->inputs[i];
		if (input->type == DRIVER_NONE)
			result = real->add(handle, TYPE_LTOIR, input->data, input->size, input->name);
	}
	return result ? result : real->complete(handle);
}

/* Lets the real library link all intermediate code to PTX, in a link of its own with the program's options and -ptx. */
static int link_intermediate(struct link *link)
{
	struct real real;
	void *handle;
	const char **options = calloc(link->options_n + 2, sizeof *options);
	if (!options || !real_find(link->index, &real)) {
		free(options);
		return JITLINK_INTERNAL;
	}
	memcpy(options, link->options, link->options_n * sizeof *options);
	options[link->options_n] = "-lto";
	options[link->options_n + 1] = "-ptx";
	int result = real.create(&handle, link->options_n + 2, options);
	free(options);
	if (result)
		return fail(link, result, "cannot be linked to PTX with these options", "LTO intermediate code");
	result = add_intermediate(&real, handle, link);
	if (result)
		take_log(&real, handle, link);
	else
		result = take_ptx(&real, handle, link);
	real.destroy(&handle);
	return result;
}

static bool has_intermediate(const struct link *link)
{
	for (unsigned i = 0; i < link->count; i++)
		if (link->inputs[i].type == DRIVER_NONE)
			return true;
	return false;
}

static int link_inputs(const standin_driver_t *driver, struct link *link, void *state)
{
	/* Without inputs, NVIDIA's library makes a cubin without functions; the driver refuses to link. */
	static char nothing[] = ".version 6.0\n.target sm_50\n.address_size 64\n";
	int result = 0;
	if (!link->count)
		result = driver->link_add(state, DRIVER_PTX, nothing, sizeof nothing, "nothing", 0, NULL, NULL);
	for (unsigned i = 0; i < link->count && !result; i++) {
		const struct input *input = &link->inputs[i];
		if (input->type != DRIVER_NONE)
			result = driver->link_add(state, input->type, input->data, input->size, input->name, 0, NULL,
						  NULL);
	}
	void *image;
	size_t size;
	if (result || driver->link_complete(state, &image, &size))
		return JITLINK_PTX_COMPILE;
	link->image = malloc(size);
	if (!link->image)
		return JITLINK_INTERNAL;
	memcpy(link->image, image, size);
	link->size = size;
	return JITLINK_SUCCESS;
}

/* Links in the current context. */
static int link_here(const standin_driver_t *driver, struct link *link)
{
	size_t used = strlen(link->log);
	int options[] = { OPTION_ERROR_LOG, OPTION_ERROR_LOG_BYTES };
	void *values[] = { link->log + used, (void *)(uintptr_t)(sizeof link->log - used) };
	void *state;
	if (driver->link_create(2, options, values, &state))
		return fail(link, JITLINK_INTERNAL, "the driver cannot begin a link", "nvJitLinkComplete");
	int result = link_inputs(driver, link, state);
	driver->link_destroy(state);
	return result;
}

/* The driver links in a context. If the thread has none, the primary one is made current for this. */
static int link_complete(struct link *link)
{
	const standin_driver_t *driver = standin_driver();
	void *context = NULL;
	int device;
	int result = link->image ? JITLINK_INVALID_INPUT : has_intermediate(link) ? link_intermediate(link) : 0;
	if (result)
		return result;
	if (!driver->current_context(&context) && context)
		return link_here(driver, link);
	if (!standin_device(driver, &device) || driver->retain_primary(&context, device))
		return fail(link, JITLINK_INTERNAL, "there is no context", "nvJitLinkComplete");
	result = JITLINK_INTERNAL;
	if (!driver->push_context(context)) {
		result = link_here(driver, link);
		driver->pop_context(&context);
	}
	driver->release_primary(device);
	return result;
}

/* ---- the functions ---- */

static bool wants_ptx(uint32_t count, const char *const *options)
{
	for (uint32_t i = 0; i < count; i++)
		if (options[i] && !strcmp(options[i], "-ptx"))
			return true;
	return false;
}

static int create(int index, void **handle, uint32_t count, const char *const *options)
{
	int (*real)(void **, uint32_t, const char *const *);
	*(void **)&real = toolkit_function(index, "nvJitLinkCreate");
	if (!real)
		return JITLINK_INTERNAL;
	int result = real(handle, count, options);
	if (result)
		return result;
	struct link *link = link_new(count, options);
	if (!link) {
		int (*destroy)(void **);
		*(void **)&destroy = toolkit_function(index, "nvJitLinkDestroy");
		if (destroy)
			destroy(handle);
		return JITLINK_INTERNAL;
	}
	link->handle = *handle;
	link->index = index;
	link->software = !wants_ptx(count, options) && standin_is_software_gpu();
	link_insert(link);
	return JITLINK_SUCCESS;
}

/*
 * Begins a function of a link. If the driver does not link it, the function returns what the real one returns. A handle
 * that nvJitLinkCreate did not return is an error, as the library is not known.
 */
#define BEGIN(handle, types, ...)                                                                                      \
	struct link *link = link_find(handle);                                                                         \
	if (!link)                                                                                                     \
		return JITLINK_INVALID_INPUT;                                                                          \
	if (!link->software) {                                                                                         \
		int(*real) types;                                                                                      \
		*(void **)&real = toolkit_function(link->index, __func__);                                             \
		return real ? real(__VA_ARGS__) : JITLINK_INTERNAL;                                                    \
	}

#define API __attribute__((visibility("default"))) int

int nvJitLinkCreate(void **handle, uint32_t count, const char *const *options);
int nvJitLinkDestroy(void **handle);
int nvJitLinkAddData(void *handle, int type, const void *data, size_t size, const char *name);
int nvJitLinkAddFile(void *handle, int type, const char *path);
int nvJitLinkComplete(void *handle);
int nvJitLinkGetLinkedCubinSize(void *handle, size_t *size);
int nvJitLinkGetLinkedCubin(void *handle, void *cubin);
int nvJitLinkGetErrorLogSize(void *handle, size_t *size);
int nvJitLinkGetErrorLog(void *handle, char *log);
int nvJitLinkGetInfoLogSize(void *handle, size_t *size);
int nvJitLinkGetInfoLog(void *handle, char *log);

API nvJitLinkCreate(void **handle, uint32_t count, const char *const *options)
{
	return create(toolkit_index_for_caller(__func__, "libnvJitLink.so", __builtin_return_address(0)), handle, count,
		      options);
}

API nvJitLinkDestroy(void **handle)
{
	struct link *link = handle ? link_find(*handle) : NULL;
	if (!link)
		return JITLINK_INVALID_INPUT;
	int (*real)(void **);
	*(void **)&real = toolkit_function(link->index, __func__);
	link_remove(link);
	return real ? real(handle) : JITLINK_INTERNAL;
}

API nvJitLinkAddData(void *handle, int type, const void *data, size_t size, const char *name)
{
	BEGIN(handle, (void *, int, const void *, size_t, const char *), handle, type, data, size, name)
	return add_input(link, type, data, size, name ? name : "input");
}

API nvJitLinkAddFile(void *handle, int type, const char *path)
{
	BEGIN(handle, (void *, int, const char *), handle, type, path)
	return add_file(link, type, path);
}

API nvJitLinkComplete(void *handle)
{
	BEGIN(handle, (void *), handle)
	return link_complete(link);
}

API nvJitLinkGetLinkedCubinSize(void *handle, size_t *size)
{
	BEGIN(handle, (void *, size_t *), handle, size)
	if (!link->image || !size)
		return JITLINK_INVALID_INPUT;
	*size = link->size;
	return JITLINK_SUCCESS;
}

API nvJitLinkGetLinkedCubin(void *handle, void *cubin)
{
	BEGIN(handle, (void *, void *), handle, cubin)
	if (!link->image || !cubin)
		return JITLINK_INVALID_INPUT;
	memcpy(cubin, link->image, link->size);
	return JITLINK_SUCCESS;
}

API nvJitLinkGetErrorLogSize(void *handle, size_t *size)
{
	BEGIN(handle, (void *, size_t *), handle, size)
	if (!size)
		return JITLINK_INVALID_INPUT;
	*size = *link->log ? strlen(link->log) + 1 : 0;
	return JITLINK_SUCCESS;
}

API nvJitLinkGetErrorLog(void *handle, char *log)
{
	BEGIN(handle, (void *, char *), handle, log)
	if (!log)
		return JITLINK_INVALID_INPUT;
	if (*link->log)
		strcpy(log, link->log);
	return JITLINK_SUCCESS;
}

/* The driver's link has nothing to tell. */
API nvJitLinkGetInfoLogSize(void *handle, size_t *size)
{
	BEGIN(handle, (void *, size_t *), handle, size)
	if (!size)
		return JITLINK_INVALID_INPUT;
	*size = 0;
	return JITLINK_SUCCESS;
}

API nvJitLinkGetInfoLog(void *handle, char *log)
{
	BEGIN(handle, (void *, char *), handle, log)
	return log ? JITLINK_SUCCESS : JITLINK_INVALID_INPUT;
}

/* A program that is built with nvJitLink.h calls names with its version. */
__asm__(".irp function, Create, Destroy, AddData, AddFile, Complete, GetLinkedCubinSize, GetLinkedCubin, "
	"GetErrorLogSize, GetErrorLog, GetInfoLogSize, GetInfoLog\n"
	".irp version, 12_0, 12_1, 12_2, 12_3, 12_4, 12_5, 12_6, 12_7, 12_8, 12_9, 13_0, 13_1, 13_2, 13_3, 13_4, 13_5, "
	"13_6, 13_7, 13_8, 13_9\n"
	".globl __nvJitLink\\function\\()_\\version\n"
	".set __nvJitLink\\function\\()_\\version, nvJitLink\\function\n"
	".endr\n"
	".endr\n");

/* ---- for programs that look functions up ---- */

#define STANDIN(n)                                                                                                     \
	static int create_##n(void **handle, uint32_t count, const char *const *options)                              \
	{                                                                                                              \
		return create(n, handle, count, options);                                                              \
	}
STANDIN(0)
STANDIN(1)
STANDIN(2)
STANDIN(3)

/* Whether name is nvJitLinkX or __nvJitLinkX_13_0, where function is nvJitLinkX. */
static bool is_name_of(const char *name, const char *function)
{
	size_t n = strlen(function), prefix = !strncmp(name, "__", 2) ? 2 : 0;
	const char *rest = name + prefix + n;
	if (strncmp(name + prefix, function, n))
		return false;
	return prefix ? *rest == '_' && rest[1] >= '0' && rest[1] <= '9' : !*rest;
}

void *jitlink_standin(const char *name, int index)
{
	static int (*const creates[TOOLKIT_LIBRARIES])(void **, uint32_t, const char *const *) = {
		create_0, create_1, create_2, create_3
	};
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		{ "nvJitLinkDestroy", (void *)nvJitLinkDestroy },
		{ "nvJitLinkAddData", (void *)nvJitLinkAddData },
		{ "nvJitLinkAddFile", (void *)nvJitLinkAddFile },
		{ "nvJitLinkComplete", (void *)nvJitLinkComplete },
		{ "nvJitLinkGetLinkedCubinSize", (void *)nvJitLinkGetLinkedCubinSize },
		{ "nvJitLinkGetLinkedCubin", (void *)nvJitLinkGetLinkedCubin },
		{ "nvJitLinkGetErrorLogSize", (void *)nvJitLinkGetErrorLogSize },
		{ "nvJitLinkGetErrorLog", (void *)nvJitLinkGetErrorLog },
		{ "nvJitLinkGetInfoLogSize", (void *)nvJitLinkGetInfoLogSize },
		{ "nvJitLinkGetInfoLog", (void *)nvJitLinkGetInfoLog },
	};
	if (is_name_of(name, "nvJitLinkCreate"))
		return (void *)creates[index];
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (is_name_of(name, functions[i].name))
			return functions[i].function;
	return NULL;
}
