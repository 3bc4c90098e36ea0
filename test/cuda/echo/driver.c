/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libcuda.so.1 that records the arguments of one function and returns patterns (echo.h). The functions of the table of
 * calls are generated (echo.py) and call the functions here. What a worker needs besides is written here: devices, contexts,
 * addresses, modules. No call does any work.
 */
#include "test/cuda/echo/direct.h"
#include "test/cuda/echo/driver.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OBJECTS_MAX (1u << 22)
#define NUMBERS_MAX (1u << 16)
#define KERNELS 3
#define ALIASES (1u << 18) /* buckets */

static struct echo_control none, *control = &none;
static uint64_t base = 0x200000000000; /* of handles */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object {
	uint8_t kind; /* 0: it is not live */
	uint64_t owner; /* ends with this one */
	uint64_t other; /* of a kernel: its function; of functions and kernels: the ordinal is in key */
	uint64_t key;
	unsigned function; /* of an alias: that made it, plus 1 */
	uint32_t next;     /* of an alias: index of the next in its bucket plus 1 */
} *objects;
static uint32_t n_objects, aliases[ALIASES];
static uint64_t numbers[NUMBERS_MAX];
static uint32_t n_numbers;
static CUcontext primary[ECHO_DEVICES];
/* LeakSanitizer sometimes crashes on thread-local memory of a library that dlopen has loaded, except with this model. */
static __thread CUcontext current __attribute__((tls_model("initial-exec")));
static uint64_t next_address = 0x500000000000;

__attribute__((visibility("default"))) void echo_use(struct echo_control *own, uint64_t handles);

/* A program that loads this library beside another libcuda gives it memory and handles of its own. */
void echo_use(struct echo_control *own, uint64_t handles)
{
	control = own;
	control->worker = getpid();
	base = handles;
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("HEADRACE_TEST_ECHO");
	int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (file >= 0) {
		void *memory = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		close(file);
		if (memory != MAP_FAILED)
			control = memory;
	}
	objects = mmap(NULL, OBJECTS_MAX * sizeof *objects, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);
	if (objects == MAP_FAILED)
		abort();
}

/* ---- objects ---- */

/* Under the lock. NULL: the handle is none of this driver's. */
static struct object *object_at(uint64_t handle)
{
	uint64_t index = (handle - base) / 64;
	return handle >= base && handle % 64 == 0 && index < n_objects ? &objects[index] : NULL;
}

static void made(uint64_t handle)
{
	if (control->worker == getpid())
		control->made = handle;
}

/* Under the lock. */
static uint64_t make_locked(enum rc_kind kind, struct object object)
{
	if (n_objects == OBJECTS_MAX)
		abort();
	uint64_t handle = base + 64ull * n_objects;
	object.kind = (uint8_t)kind;
	objects[n_objects++] = object;
	made(handle);
	return handle;
}

static uint64_t make(enum rc_kind kind, struct object object)
{
	pthread_mutex_lock(&lock);
	uint64_t handle = make_locked(kind, object);
	pthread_mutex_unlock(&lock);
	return handle;
}

uint64_t echo_new(enum rc_kind kind, uint64_t owner)
{
	return make(kind, (struct object){ .owner = owner });
}

uint64_t echo_alias(enum rc_kind kind, unsigned function, uint64_t owner, uint64_t key)
{
	uint32_t *bucket = &aliases[echo_mix(echo_mix(owner ^ function) ^ key) % ALIASES];
	pthread_mutex_lock(&lock);
	for (uint32_t at = *bucket; at; at = objects[at - 1].next) {
		struct object *object = &objects[at - 1];
		if (object->function == function + 1 && object->owner == owner && object->key == key) {
			made(base + 64ull * (at - 1));
			pthread_mutex_unlock(&lock);
			return base + 64ull * (at - 1);
		}
	}
	uint64_t handle = make_locked(kind, (struct object){ .owner = owner, .key = key, .function = function + 1, .next = *bucket });
	*bucket = n_objects;
	pthread_mutex_unlock(&lock);
	return handle;
}

uint64_t echo_text_key(const char *text)
{
	uint64_t key = 1;
	while (*text)
		key = echo_mix(key ^ (uint8_t)*text++);
	return key;
}

void echo_delete(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	struct object *object = object_at(handle);
	if (object)
		object->kind = 0;
	pthread_mutex_unlock(&lock);
}

static bool is_live(enum rc_kind kind, uint64_t handle)
{
	if (kind == RC_KIND_STREAM && rc_stream_is_special(handle))
		return true;
	pthread_mutex_lock(&lock);
	struct object *object = object_at(handle), *owner = object;
	bool live = object && (object->kind == kind || (kind == RC_KIND_FUNCTION && object->kind == RC_KIND_KERNEL));
	while (live && owner->owner && (owner = object_at(owner->owner)))
		live = owner->kind;
	pthread_mutex_unlock(&lock);
	return live;
}

void echo_number_new(uint64_t number)
{
	pthread_mutex_lock(&lock);
	if (n_numbers == NUMBERS_MAX)
		abort();
	numbers[n_numbers++] = number;
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static uint64_t *number_at(uint64_t number)
{
	for (uint32_t i = 0; i < n_numbers; i++)
		if (numbers[i] == number)
			return &numbers[i];
	return NULL;
}

void echo_number_delete(uint64_t number)
{
	pthread_mutex_lock(&lock);
	uint64_t *at = number_at(number);
	if (at)
		*at = numbers[--n_numbers];
	pthread_mutex_unlock(&lock);
}

/* ---- recording ---- */

void echo_begin(struct echo_call *call, unsigned function)
{
	*call = (struct echo_call){ .armed = __atomic_load_n(&control->armed, __ATOMIC_ACQUIRE) == function + 1,
				    .result = CUDA_SUCCESS };
	if (!call->armed)
		return;
	control->worker = getpid();
	control->calls++;
	control->context = (uint64_t)(uintptr_t)current;
}

CUresult echo_decide(struct echo_call *call)
{
	if (call->armed && call->result != CUDA_SUCCESS)
		control->refused++;
	else if (call->armed)
		call->result = (CUresult)control->result;
	return call->result;
}

static void record(struct echo_piece piece, const void *bytes)
{
	uint32_t at = control->bytes, padded = (piece.bytes + 7) & ~7u;
	control->bytes += (uint32_t)sizeof piece + padded;
	if (control->bytes > ECHO_RECORD_BYTES)
		return;
	memset(control->record + at, 0, sizeof piece + padded);
	memcpy(control->record + at, &piece, sizeof piece);
	if (piece.bytes)
		memcpy(control->record + at + sizeof piece, bytes, piece.bytes);
}

static void wrong(struct echo_call *call, CUresult result)
{
	if (call->result == CUDA_SUCCESS)
		call->result = result;
}

void echo_value(struct echo_call *call, unsigned parameter, const void *value, size_t size)
{
	if (call->armed)
		record((struct echo_piece){ ECHO_BYTES, (uint8_t)parameter, 0, (uint32_t)size }, value);
}

void echo_check_handle(struct echo_call *call, enum rc_kind kind, uint64_t handle)
{
	if (!is_live(kind, handle))
		wrong(call, kind == RC_KIND_CONTEXT ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE);
}

void echo_handle(struct echo_call *call, unsigned parameter, enum rc_kind kind, uint64_t handle)
{
	echo_check_handle(call, kind, handle);
	/* The worker asks for the function of a kernel, and passes that. */
	if (kind == RC_KIND_FUNCTION && is_live(RC_KIND_KERNEL, handle) && call->result == CUDA_SUCCESS)
		handle = object_at(handle)->other;
	if (call->armed)
		record((struct echo_piece){ ECHO_HANDLE, (uint8_t)parameter, 0, sizeof handle }, &handle);
}

void echo_check_device(struct echo_call *call, int device)
{
	for (int i = 0; i < ECHO_DEVICES; i++)
		if (device == ECHO_DEVICE(i))
			return;
	wrong(call, CUDA_ERROR_INVALID_DEVICE);
}

void echo_device(struct echo_call *call, unsigned parameter, CUdevice device)
{
	echo_check_device(call, device);
	echo_value(call, parameter, &device, sizeof device);
}

void echo_number(struct echo_call *call, unsigned parameter, uint64_t number)
{
	pthread_mutex_lock(&lock);
	if (!number_at(number))
		wrong(call, CUDA_ERROR_INVALID_VALUE);
	pthread_mutex_unlock(&lock);
	echo_value(call, parameter, &number, sizeof number);
}

void echo_pointer(struct echo_call *call, unsigned parameter, const void *pointer, bool optional)
{
	bool given = pointer;
	if (!given && !optional)
		wrong(call, CUDA_ERROR_INVALID_VALUE);
	if (optional)
		echo_value(call, parameter, &given, sizeof given);
}

void echo_bytes(struct echo_call *call, unsigned parameter, const void *bytes, size_t size, unsigned type)
{
	if (!call->armed || !bytes)
		return;
	struct echo_piece piece = { type ? ECHO_STRUCTS : ECHO_BYTES, (uint8_t)parameter, (uint16_t)(type ? type - 1 : 0),
				    (uint32_t)size };
	record(piece, bytes);
}

/* A call that is not recorded returns a large number. */
void echo_fill(const struct echo_call *call, unsigned parameter, void *to, size_t size)
{
	uint8_t *at = to;
	for (size_t i = 0; to && i < size; i++)
		at[i] = call->armed ? (uint8_t)echo_mix(control->seed ^ (uint64_t)parameter << 56 ^ i) : 0x7f;
}

/* ---- devices ---- */

CUresult cuInit(unsigned flags)
{
	(void)flags;
	for (int i = 0; i < ECHO_DEVICES && !primary[i]; i++)
		primary[i] = (CUcontext)(uintptr_t)echo_new(RC_KIND_CONTEXT, 0);
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = ECHO_DEVICES;
	return CUDA_SUCCESS;
}

static int index_of(CUdevice device)
{
	for (int i = 0; i < ECHO_DEVICES; i++)
		if (device == ECHO_DEVICE(i))
			return i;
	abort();
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	if (ordinal < 0 || ordinal >= ECHO_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ECHO_DEVICE(ordinal);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	snprintf(name, (size_t)size, "echo %d", index_of(device));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	memset(uuid, 'A' + index_of(device), sizeof *uuid);
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	*bytes = (size_t)(1 + index_of(device)) << 34;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	(void)device;
	*value = attribute < 16 ? 1024 : 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *name, int size, CUdevice device)
{
	snprintf(name, (size_t)size, "0000:%02x:00.0", 1 + index_of(device));
	return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	*can = device != peer;
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	*context = primary[index_of(device)];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	if (context && !is_live(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)context))
		return CUDA_ERROR_INVALID_CONTEXT;
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = ECHO_DEVICE(current == primary[1]);
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
	(void)params;
	(void)flags;
	(void)device;
	current = *context = (CUcontext)(uintptr_t)echo_new(RC_KIND_CONTEXT, 0);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	echo_delete((uint64_t)(uintptr_t)context);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	CUcontext before = current;
	CUresult result = context ? cuCtxSetCurrent(context) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = cuCtxSynchronize();
	current = before;
	return result;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return CUDA_SUCCESS;
}

/* ---- memory: addresses at which there is nothing ---- */

CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
	(void)memory;
	(void)bytes;
	(void)flags;
	return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *memory)
{
	(void)memory;
	return CUDA_SUCCESS;
}

CUdeviceptr echo_addresses(void)
{
	return __atomic_fetch_add(&next_address, 0x200000, __ATOMIC_RELAXED);
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	(void)bytes;
	(void)alignment;
	(void)hint;
	(void)flags;
	*address = echo_addresses();
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	(void)address;
	(void)bytes;
	return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	(void)address;
	(void)bytes;
	(void)offset;
	(void)handle;
	(void)flags;
	return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	(void)address;
	(void)bytes;
	return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	(void)to;
	(void)from;
	(void)bytes;
	(void)stream;
	return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)to;
	(void)from;
	(void)bytes;
	(void)stream;
	return CUDA_SUCCESS;
}

/* ---- functions that reach the driver of a worker as other ones ---- */

static CUresult one_operation(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams one = { .writeValue = { .operation = operation, .address = address, .flags = flags } };
	_Static_assert(offsetof(CUstreamBatchMemOpParams, writeValue.flags) == offsetof(CUstreamBatchMemOpParams, waitValue.flags),
		       "one layout for both");
	one.writeValue.value64 = value;
	return cuStreamBatchMemOp_v2(stream, 1, &one, 0);
}

#define ONE_OPERATION(name, type, operation) \
	CUresult name(CUstream stream, CUdeviceptr address, type value, unsigned flags) \
	{ \
		return one_operation(stream, operation, address, value, flags); \
	}
ONE_OPERATION(cuStreamWriteValue32, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32)
ONE_OPERATION(cuStreamWriteValue64, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64)
ONE_OPERATION(cuStreamWaitValue32, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32)
ONE_OPERATION(cuStreamWaitValue64, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64)
ONE_OPERATION(cuStreamWriteValue32_v2, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32)
ONE_OPERATION(cuStreamWriteValue64_v2, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64)
ONE_OPERATION(cuStreamWaitValue32_v2, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32)
ONE_OPERATION(cuStreamWaitValue64_v2, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64)

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
	return device == ECHO_DEVICE(0) || device == ECHO_DEVICE(1) ? cuFuncSetCacheConfig((CUfunction)kernel, config) :
								      CUDA_ERROR_INVALID_DEVICE;
}

/* ---- modules and libraries: whatever the image, they have the kernels kernel_0, kernel_1 and so on ---- */

static const char *const names[KERNELS] = { "kernel_0", "kernel_1", "kernel_2" };

static void make_functions(enum rc_kind kind, uint64_t owner)
{
	for (unsigned i = 0; i < KERNELS; i++) {
		uint64_t function = make(RC_KIND_FUNCTION, (struct object){ .owner = owner, .key = i });
		if (kind == RC_KIND_KERNEL)
			make(RC_KIND_KERNEL, (struct object){ .owner = owner, .key = i, .other = function });
	}
	made(owner);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *options, void **values)
{
	(void)image;
	(void)n;
	(void)options;
	(void)values;
	uint64_t made = echo_new(RC_KIND_MODULE, (uint64_t)(uintptr_t)current);
	make_functions(RC_KIND_FUNCTION, made);
	*module = (CUmodule)(uintptr_t)made;
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
	echo_delete((uint64_t)(uintptr_t)module);
	return CUDA_SUCCESS;
}

/* The objects of a kind that a module or a library has, in their order. */
static CUresult list(enum rc_kind kind, uint64_t owner, void **found, unsigned n)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = (uint32_t)((owner - base) / 64), at = 0; i < n_objects && at < n; i++)
		if (objects[i].kind == kind && objects[i].owner == owner && !objects[i].function)
			found[at++] = (void *)(uintptr_t)(base + 64ull * i);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
	(void)module;
	*count = KERNELS;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned n, CUmodule module)
{
	return list(RC_KIND_FUNCTION, (uint64_t)(uintptr_t)module, (void **)functions, n);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	*name = names[object_at((uint64_t)(uintptr_t)function)->key];
	return CUDA_SUCCESS;
}

/* kernel_0 has no parameter, kernel_1 one, and so on. */
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
	if (index >= object_at((uint64_t)(uintptr_t)function)->key)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = 8 * index;
	*size = 8;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	(void)function;
	*value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ||
		 attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 1024 : 0;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values, unsigned n,
			   CUlibraryOption *library_options, void **library_values, unsigned n_library)
{
	(void)image;
	(void)options;
	(void)values;
	(void)n;
	(void)library_options;
	(void)library_values;
	(void)n_library;
	uint64_t made = echo_new(RC_KIND_LIBRARY, 0);
	make_functions(RC_KIND_KERNEL, made);
	*library = (CUlibrary)(uintptr_t)made;
	return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	echo_delete((uint64_t)(uintptr_t)library);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
	(void)library;
	*count = KERNELS;
	return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned n, CUlibrary library)
{
	return list(RC_KIND_KERNEL, (uint64_t)(uintptr_t)library, (void **)kernels, n);
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	return cuFuncGetName(name, (CUfunction)kernel);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	return cuFuncGetParamInfo((CUfunction)kernel, index, offset, size);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	*function = (CUfunction)(uintptr_t)object_at((uint64_t)(uintptr_t)kernel)->other;
	return CUDA_SUCCESS;
}

/* ---- launches ---- */

/* Records what the kernel would get, however the parameters are given. */
static CUresult record_launch(unsigned index, CUfunction function, const CUlaunchConfig *config, void **parameters, void **extra)
{
	struct echo_call call;
	uint32_t shape[] = { config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
			     config->blockDimZ, config->sharedMemBytes };
	echo_begin(&call, index);
	echo_handle(&call, 0, RC_KIND_FUNCTION, (uint64_t)(uintptr_t)function);
	echo_handle(&call, 1, RC_KIND_STREAM, (uint64_t)(uintptr_t)config->hStream);
	echo_value(&call, 2, shape, sizeof shape);
	for (unsigned i = 0; i < config->numAttrs; i++)
		echo_bytes(&call, 3, &config->attrs[i], sizeof config->attrs[i], 0);
	struct object *object = object_at((uint64_t)(uintptr_t)function);
	for (unsigned i = 0; object && call.result == CUDA_SUCCESS && i < object->key; i++)
		echo_bytes(&call, 4 + i, extra ? (const uint8_t *)extra[1] + 8 * i : parameters[i], 8, 0);
	return echo_decide(&call);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
			unsigned block_z, unsigned shared, CUstream stream, void **parameters, void **extra)
{
	CUlaunchConfig config = { grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0 };
	return record_launch(ECHO_INDEX_cuLaunchKernel, function, &config, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
				   unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters)
{
	CUlaunchConfig config = { grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0 };
	return record_launch(ECHO_INDEX_cuLaunchCooperativeKernel, function, &config, parameters, NULL);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
	return record_launch(ECHO_INDEX_cuLaunchKernelEx, function, config, parameters, extra);
}

static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
			     unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters, void **extra)
{
	return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, own(stream), parameters, extra);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
					unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters)
{
	return cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, own(stream),
					 parameters);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
	CUlaunchConfig mine = *config;
	mine.hStream = own(mine.hStream);
	return cuLaunchKernelEx(&mine, function, parameters, extra);
}
