/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts; memory whose addresses the client or the worker chooses; virtual memory; pools; memory and events of other processes. */
#include "test/cuda/echo/sequences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- contexts ---- */

#define CONTEXTS 4

static CUcontext create(struct side *s)
{
	CUcontext context = NULL;
	unsigned flags = (unsigned)below(s, 3) | (below(s, 2) ? CU_CTX_LMEM_RESIZE_TO_MAX : 0) | (below(s, 8) ? 0 : 1u << 20);
	CUdevice device = below(s, 8) ? 0 : 99;
	switch (below(s, 4)) {
	case 0:
		CALL(cuCtxCreate, &context, flags, device);
		break;
	case 1:
		CALL(cuCtxCreate_v2, &context, flags, device);
		break;
	case 2:
		CALL(cuCtxCreate_v3, &context, NULL, 0, flags, device);
		break;
	default:
		CALL(cuCtxCreate_v4, &context, NULL, flags, device);
	}
	return context;
}

/* Which of the contexts is current: its number, -1 for none, -2 for another one. */
static void note_current(struct side *s, const CUcontext *contexts)
{
	CUcontext current = NULL;
	int which = -2;
	CALL(cuCtxGetCurrent, &current);
	for (int i = 0; current && i < CONTEXTS; i++)
		if (contexts[i] == current)
			which = i;
	note(s, "current", current ? which : -1);
}

static void ask_context(struct side *s)
{
	unsigned value = 0;
	size_t limit = 0;
	CUdevice device = -1;
	CUdevResource resource;
	memset(&resource, 0, sizeof resource);
	if (CALL(cuCtxGetFlags, &value) == CUDA_SUCCESS)
		note(s, "flags", value);
	if (CALL(cuCtxGetApiVersion, NULL, &value) == CUDA_SUCCESS)
		note(s, "version", value);
	if (CALL(cuCtxGetDevice, &device) == CUDA_SUCCESS)
		note(s, "device", device);
	if (CALL(cuCtxGetLimit, &limit, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS)
		note(s, "limit", (int64_t)limit);
	if (CALL(cuCtxGetDevResource, NULL, &resource, below(s, 8) ? CU_DEV_RESOURCE_TYPE_SM : (CUdevResourceType)99) == CUDA_SUCCESS)
		note_bytes(s, "multiprocessors", &resource.sm.smCount, sizeof resource.sm.smCount);
}

static void attach(struct side *s)
{
	CUcontext attached = NULL, current = NULL;
	if (CALL(cuCtxAttach, &attached, below(s, 8) ? 0 : 1) != CUDA_SUCCESS)
		return;
	CALL(cuCtxGetCurrent, &current);
	note(s, "the attached context is current", attached == current);
	CALL(cuCtxDetach, attached);
}

/* A context of its own that only cuCtxDetach ends. */
static void detach(struct side *s)
{
	CUcontext context = NULL;
	NEED(cuCtxCreate_v4, &context, NULL, 0, 0);
	CALL(cuCtxDetach, context);
}

static void use_context(struct side *s, CUdeviceptr *memory)
{
	if (!*memory && below(s, 2)) {
		CALL(cuMemAlloc_v2, memory, WORDS * 4);
		CALL(cuMemsetD32_v2, *memory, (unsigned)below(s, 1000), WORDS);
	}
	if (*memory)
		note_words(s, "memory", *memory);
}

/* The handle of the primary context changes with a reset in the driver, but not in the client. None stays on the stack. */
static void empty_stack(struct side *s)
{
	CUcontext current = s->context;
	while (s->f.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current)
		s->f.cuCtxPopCurrent_v2(&current);
}

void sequence_contexts(struct side *s)
{
	CUcontext contexts[CONTEXTS] = { s->context };
	CUdeviceptr memory[CONTEXTS] = { 0 };
	unsigned left = 0, all = 0;
	for (int i = 0; i < 16; i++) {
		unsigned at = 1 + (unsigned)below(s, CONTEXTS - 1);
		switch (below(s, 6)) {
		case 0:
			if (!contexts[at])
				contexts[at] = create(s);
			break;
		case 1:
			if (contexts[at]) {
				if (below(s, 2))
					CALL(cuCtxDestroy_v2, contexts[at]);
				else
					CALL(cuCtxDestroy, contexts[at]);
				contexts[at] = NULL;
				memory[at] = 0;
			}
			break;
		case 2:
			CALL(cuCtxSetCurrent, contexts[at]);
			if (contexts[at])
				use_context(s, &memory[at]);
			break;
		case 3:
			attach(s);
			break;
		case 4:
			detach(s);
			break;
		default:
			ask_context(s);
		}
		note_current(s, contexts);
	}
	for (int i = 1; i < CONTEXTS; i++)
		if (contexts[i])
			CALL(cuCtxDestroy_v2, contexts[i]);
	CALL(cuCtxDestroy_v2, NULL);
	empty_stack(s);
	NEED(cuCtxSetCurrent, s->context);
	/* How much is free depends on what else uses the device; the sizes are those of CUDA 3.1, of 32 bits. */
	CALL(cuMemGetInfo, &left, &all);
	note(s, "memory", all);
	/* A reset ends all that the primary context has; a new use makes it anew. */
	if (below(s, 2))
		CALL(cuDevicePrimaryCtxReset_v2, 0);
	else
		CALL(cuDevicePrimaryCtxReset, below(s, 8) ? 0 : 99);
	unsigned flags = 0;
	int active = -1;
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	note(s, "active", active);
	if (active)
		return;
	NEED(cuDevicePrimaryCtxRetain, &s->context, 0);
	NEED(cuCtxSetCurrent, s->context);
	NEED(cuStreamCreate, &s->stream, 0);
	NEED(cuModuleLoadData, &s->module, sequence_image);
}

/* ---- memory ---- */

static void pitched(struct side *s)
{
	CUdeviceptr memory;
	size_t pitch = 0, width = 4 * (1 + below(s, 500)), height = 1 + below(s, 20);
	static const unsigned elements[] = { 4, 8, 16, 3 };
	uint32_t last = 0;
	if (CALL(cuMemAllocPitch_v2, &memory, &pitch, width, height, elements[below(s, 4)]) != CUDA_SUCCESS)
		return;
	note(s, "pitch", (int64_t)pitch);
	CALL(cuMemsetD2D32_v2, memory, pitch, (unsigned)below(s, 1000), width / 4, height);
	CALL(cuMemcpyDtoH_v2, &last, memory + pitch * (height - 1) + width - 4, 4);
	note(s, "last word", last);
	CALL(cuMemFree_v2, memory);
}

static void host_memory(struct side *s, CUdeviceptr memory)
{
	void *pinned = NULL, *own = aligned_alloc(4096, 4096);
	if (!own)
		exit(1);
	if (CALL(cuMemAllocHost, &pinned, below(s, 8) ? 1 + (unsigned)below(s, 100000) + WORDS * 4 : 0) == CUDA_SUCCESS) {
		CALL(cuMemcpyDtoHAsync_v2, pinned, memory, WORDS * 4, s->stream);
		CALL(cuStreamSynchronize, s->stream);
		note_bytes(s, "pinned memory", pinned, WORDS * 4);
		CALL(cuMemFreeHost, pinned);
	}
	if (CALL(cuMemHostRegister, below(s, 8) ? own : NULL, 4096, (unsigned)below(s, 3)) == CUDA_SUCCESS) {
		CALL(cuMemHostRegister, own, 4096, 0);
		CALL(cuMemcpyDtoHAsync_v2, own, memory, WORDS * 4, s->stream);
		CALL(cuStreamSynchronize, s->stream);
		note_bytes(s, "registered memory", own, WORDS * 4);
		CALL(cuMemHostUnregister, own);
	}
	CALL(cuMemHostUnregister, own);
	free(own);
}

static void managed_memory(struct side *s)
{
	CUdeviceptr managed;
	if (CALL(cuMemAllocManaged, &managed, below(s, 8) ? WORDS * 4 : 0, (unsigned)below(s, 4)) != CUDA_SUCCESS)
		return;
	uint32_t *host = (uint32_t *)(uintptr_t)managed;
	for (int i = 0; i < WORDS; i++)
		host[i] = (uint32_t)below(s, 1000);
	run_add(s, s->add, managed, (uint32_t)below(s, WORDS), (uint32_t)below(s, 1000));
	note_bytes(s, "managed memory", host, WORDS * 4);
	CALL(cuMemFree_v2, managed);
}

/* Values that streams write: the forms of CUDA 11, which CUDA 12 has refused by its own flags. */
static void stream_operations(struct side *s, CUdeviceptr memory)
{
	CUstreamBatchMemOpParams operations[2];
	memset(operations, 0, sizeof operations);
	for (int i = 0; i < 2; i++) {
		operations[i].operation = below(s, 8) ? CU_STREAM_MEM_OP_WRITE_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_64;
		operations[i].writeValue.address = memory + 8 * below(s, WORDS / 2);
		operations[i].writeValue.value64 = below(s, 1000);
	}
	if (below(s, 2))
		CALL(cuStreamBatchMemOp, s->stream, 2, operations, 0);
	else
		CALL(cuStreamBatchMemOp_ptsz, below(s, 2) ? s->stream : NULL, 2, operations, 0);
	CALL(cuCtxSynchronize, );
}

void sequence_memory(struct side *s)
{
	CUdeviceptr memory = words(s);
	CALL(cuMemsetD32_v2, memory, (unsigned)below(s, 1000), WORDS);
	pitched(s);
	host_memory(s, memory);
	managed_memory(s);
	stream_operations(s, memory);
	note_words(s, "memory", memory);
	NEED(cuMemFree_v2, memory);
}

/* ---- virtual memory ---- */

static CUmemAllocationProp properties(bool shared)
{
	CUmemAllocationProp made = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };
	made.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	made.requestedHandleTypes = shared ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
	return made;
}

/* The memory in another way: by its address, or by a descriptor. 0: none. */
static CUmemGenericAllocationHandle again(struct side *s, CUmemGenericAllocationHandle handle, CUdeviceptr address, bool shared)
{
	CUmemGenericAllocationHandle other = 0;
	int descriptor = -1;
	if (below(s, 2)) {
		CALL(cuMemRetainAllocationHandle, &other, (void *)(uintptr_t)address);
		note(s, "it is the same", other == handle);
	} else if (CALL(cuMemExportToShareableHandle, &descriptor, handle,
			shared || below(s, 2) ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_FABRIC, 0) == CUDA_SUCCESS) {
		CALL(cuMemImportFromShareableHandle, &other, (void *)(intptr_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
		close(descriptor);
	}
	return other;
}

/* Maps the memory at a second address, and looks at it there. */
static void map_again(struct side *s, CUmemGenericAllocationHandle other, CUdeviceptr address, size_t size)
{
	CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE }, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	if (CALL(cuMemMap, address, size, 0, other, 0) != CUDA_SUCCESS)
		return;
	if (CALL(cuMemSetAccess, address, size, &access, 1) == CUDA_SUCCESS)
		note_words(s, "memory, at the second address", address);
	CALL(cuMemUnmap, address, size);
}

void sequence_virtual(struct side *s)
{
	bool shared = below(s, 2);
	CUmemAllocationProp wanted = properties(shared), found;
	CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE }, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle = 0, other;
	CUdeviceptr address = 0;
	size_t step = 0, size;
	CALL(cuMemGetAllocationGranularity, &step, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	size = step * (1 + below(s, 3));
	CALL(cuMemAddressReserve, &address, 2 * size + (below(s, 8) ? 0 : 1), 0, 0, 0);
	if (!address)
		return;
	if (CALL(cuMemCreate, &handle, size, &wanted, 0) == CUDA_SUCCESS) {
		memset(&found, 0, sizeof found);
		if (CALL(cuMemGetAllocationPropertiesFromHandle, &found, handle) == CUDA_SUCCESS)
			note_bytes(s, "properties", &found, sizeof found);
		CALL(cuMemMap, address, size, below(s, 8) ? 0 : 1, handle, 0);
		if (CALL(cuMemSetAccess, address, size, &access, 1) == CUDA_SUCCESS) {
			CALL(cuMemsetD32_v2, address, (unsigned)below(s, 1000), WORDS);
			run_add(s, s->add, address, (uint32_t)below(s, WORDS), (uint32_t)below(s, 1000));
			note_words(s, "memory", address);
			other = again(s, handle, address, shared);
			if (other) {
				map_again(s, other, address + size, size);
				CALL(cuMemRelease, other);
			}
			CALL(cuCtxSynchronize, );
			CALL(cuMemUnmap, address, size);
		}
		CALL(cuMemRelease, handle);
	}
	CALL(cuMemUnmap, address, size);
	CALL(cuMemAddressFree, address, below(s, 8) ? 2 * size : size);
	CALL(cuMemAddressFree, address, 2 * size);
}

/* ---- pools ---- */

static void shared_pool(struct side *s)
{
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
	CUmemoryPool pool = NULL, imported = NULL;
	CUmemPoolPtrExportData data;
	CUdeviceptr memory, seen;
	int descriptor = -1;
	properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	CALL(cuMemPoolCreate, &pool, &properties);
	CALL(cuMemAllocFromPoolAsync, &memory, WORDS * 4, pool, s->stream);
	CALL(cuStreamSynchronize, s->stream);
	CALL(cuMemsetD32_v2, memory, (unsigned)below(s, 1000), WORDS);
	if (CALL(cuMemPoolExportToShareableHandle, &descriptor, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		 below(s, 8) ? 0 : 1) == CUDA_SUCCESS) {
		CALL(cuMemPoolImportFromShareableHandle, &imported, (void *)(intptr_t)descriptor,
		     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		close(descriptor);
	}
	if (CALL(cuMemPoolExportPointer, &data, memory) == CUDA_SUCCESS && imported &&
	    CALL(cuMemPoolImportPointer, &seen, imported, &data) == CUDA_SUCCESS) {
		note_words(s, "imported memory", seen);
		CALL(cuMemFree_v2, seen);
	}
	if (imported)
		CALL(cuMemPoolDestroy, imported);
	CALL(cuMemFreeAsync, memory, s->stream);
	CALL(cuStreamSynchronize, s->stream);
	CALL(cuMemPoolDestroy, pool);
}

void sequence_pools(struct side *s)
{
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED };
	CUmemLocation place = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
	CUmemoryPool first = NULL, pool = NULL, current = NULL;
	properties.location = place;
	shared_pool(s);
	CALL(cuMemGetDefaultMemPool, &first, &place, CU_MEM_ALLOCATION_TYPE_PINNED);
	CALL(cuDeviceGetDefaultMemPool, &current, 0);
	note(s, "one default pool", first == current);
	CALL(cuMemPoolCreate, &pool, &properties);
	for (int i = 0; i < 4; i++) {
		CUmemoryPool chosen = below(s, 2) ? pool : first;
		if (below(s, 2))
			CALL(cuMemSetMemPool, &place, CU_MEM_ALLOCATION_TYPE_PINNED, chosen);
		else
			CALL(cuDeviceSetMemPool, 0, chosen);
		if (below(s, 2))
			CALL(cuMemGetMemPool, &current, &place, CU_MEM_ALLOCATION_TYPE_PINNED);
		else
			CALL(cuDeviceGetMemPool, &current, 0);
		note(s, "the chosen pool is current", current == chosen);
	}
	CALL(cuDeviceSetMemPool, 0, first);
	CALL(cuMemPoolDestroy, pool);
	CALL(cuDeviceGetMemPool, &current, 99);
}

/* ---- another process ---- */

static void to_hex(char *to, const void *handle)
{
	for (int i = 0; i < 64; i++)
		snprintf(to + 2 * i, 3, "%02x", ((const uint8_t *)handle)[i]);
}

static void from_hex(void *handle, const char *from)
{
	for (int i = 0; i < 64; i++) {
		unsigned byte = 0;
		sscanf(from + 2 * i, "%2x", &byte);
		((uint8_t *)handle)[i] = (uint8_t)byte;
	}
}

/* Runs this program as the other process on the same side, and notes what it prints. */
static void other_process(struct side *s, const char *kind, const void *handle)
{
	char hex[129], command[1024], said[2048];
	to_hex(hex, handle);
	snprintf(command, sizeof command, "'%s' child '%s' %s %s", sequence_program, s->library, kind, hex);
	FILE *child = popen(command, "r");
	if (!child) {
		printf("%s does not start\n", command);
		exit(1);
	}
	size_t n = fread(said, 1, sizeof said - 1, child);
	note(s, "the other process ends with", pclose(child));
	said[n] = 0;
	note_said(s, said);
}

static const char *const openers[] = { "old", "new", "event" };

void sequence_ipc(struct side *s)
{
	CUdeviceptr memory = words(s);
	CUipcMemHandle handle;
	CUipcEventHandle of_event;
	CUevent event;
	const char *opener = openers[below(s, 3)];
	CALL(cuMemsetD32_v2, memory, (unsigned)below(s, 1000), WORDS);
	CALL(cuIpcGetMemHandle, NULL, memory);
	CALL(cuIpcGetMemHandle, &handle, 0);
	NEED(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	CALL(cuEventRecord, event, s->stream);
	if (!strcmp(opener, "event")) {
		if (CALL(cuIpcGetEventHandle, &of_event, event) == CUDA_SUCCESS)
			other_process(s, opener, &of_event);
	} else if (CALL(cuIpcGetMemHandle, &handle, memory) == CUDA_SUCCESS) {
		other_process(s, opener, &handle);
	}
	note_words(s, "memory", memory);
	NEED(cuEventDestroy_v2, event);
	NEED(cuMemFree_v2, memory);
}

static void child_opens_memory(struct side *s, bool old, const char *hex)
{
	CUipcMemHandle handle;
	CUdeviceptr memory = 0;
	uint32_t content[WORDS] = { 0 };
	from_hex(&handle, hex);
	CUresult result = old ? s->f.cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) :
				s->f.cuIpcOpenMemHandle_v2(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	printf("%s: %d\n", old ? "cuIpcOpenMemHandle" : "cuIpcOpenMemHandle_v2", (int)result);
	if (result != CUDA_SUCCESS)
		return;
	printf("copy: %d\n", (int)s->f.cuMemcpyDtoH_v2(content, memory, sizeof content));
	for (int i = 0; i < WORDS; i++)
		printf("%u ", content[i]);
	printf("\nfill: %d\n", (int)s->f.cuMemsetD32_v2(memory, 7 + content[0], WORDS / 2));
	printf("cuCtxSynchronize: %d\n", (int)s->f.cuCtxSynchronize());
	printf("cuIpcCloseMemHandle: %d\n", (int)s->f.cuIpcCloseMemHandle(memory));
	printf("a second cuIpcCloseMemHandle: %d\n", (int)s->f.cuIpcCloseMemHandle(memory));
}

static void child_opens_event(struct side *s, const char *hex)
{
	CUipcEventHandle handle;
	CUevent event;
	from_hex(&handle, hex);
	CUresult result = s->f.cuIpcOpenEventHandle(&event, handle);
	printf("cuIpcOpenEventHandle: %d\n", (int)result);
	if (result != CUDA_SUCCESS)
		return;
	printf("cuEventSynchronize: %d\n", (int)s->f.cuEventSynchronize(event));
	printf("cuEventQuery: %d\n", (int)s->f.cuEventQuery(event));
	printf("cuEventDestroy: %d\n", (int)s->f.cuEventDestroy_v2(event));
}

int ipc_child(struct side *s, const char *kind, const char *handle)
{
	NEED(cuDevicePrimaryCtxRetain, &s->context, 0);
	NEED(cuCtxSetCurrent, s->context);
	if (!strcmp(kind, "event"))
		child_opens_event(s, handle);
	else
		child_opens_memory(s, !strcmp(kind, "old"), handle);
	s->f.cuDevicePrimaryCtxRelease_v2(0);
	free(s->notes);
	return 0;
}
