/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPC of memory that is placed by virtual memory management, for which the driver has no IPC handles: the extent behind an
 * allocation is exported as a descriptor, and the other worker maps the whole extent.
 */
#include "cuda_remote/server/placed/placed_ipc.h"

#include "cuda_remote/server/placed/placed_virtual.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MAGIC "HRplaced"

/* Memory of another worker that is mapped here. */
struct imported {
	struct imported *next;
	CUdeviceptr address; /* of the allocation */
	CUdeviceptr base;    /* of the extent */
	uint64_t bytes;      /* of the extent */
	CUcontext context;   /* that it ends with */
	uint64_t worker, id; /* as in struct placed_exported */
	unsigned references; /* opened so often */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct imported *list;

static uint64_t drawn;

static void draw(void)
{
	while (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
		;
}

/* Tells this worker's memory from that of others. */
static uint64_t own_number(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, draw);
	return drawn;
}

bool placed_ipc_is_placed(const struct placed_exported *exported, int file)
{
	return file >= 0 && !memcmp(exported->magic, MAGIC, sizeof exported->magic);
}

void placed_ipc_describe(struct placed_exported *exported, uint64_t extent, uint64_t offset, uint64_t bytes, uint64_t id)
{
	*exported = (struct placed_exported){ .extent = extent, .offset = offset, .bytes = bytes, .worker = own_number(),
					      .id = id };
	memcpy(exported->magic, MAGIC, sizeof exported->magic);
}

/* Maps memory anywhere, for the current context's device. */
static CUresult map(CUmemGenericAllocationHandle memory, uint64_t bytes, CUdeviceptr *base)
{
	CUdevice device;
	CUresult result = driver.cuCtxGetDevice(&device);
	if (result == CUDA_SUCCESS)
		result = driver.cuMemAddressReserve(base, bytes, 0, 0, 0);
	if (result != CUDA_SUCCESS)
		return result;
	CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
				   .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	result = driver.cuMemMap(*base, bytes, 0, memory, 0);
	if (result == CUDA_SUCCESS) {
		result = driver.cuMemSetAccess(*base, bytes, &access, 1);
		if (result != CUDA_SUCCESS)
			(void)driver.cuMemUnmap(*base, bytes);
	}
	if (result != CUDA_SUCCESS)
		(void)driver.cuMemAddressFree(*base, bytes);
	return result;
}

static void unmap(CUdeviceptr base, uint64_t bytes)
{
	(void)driver.cuMemUnmap(base, bytes);
	(void)driver.cuMemAddressFree(base, bytes);
}

/* Opens memory once more that is mapped for the context. */
static bool import_again(const struct placed_exported *exported, CUcontext context, CUdeviceptr *address)
{
	pthread_mutex_lock(&lock);
	struct imported *known = list;
	while (known && (known->worker != exported->worker || known->id != exported->id || known->context != context))
		known = known->next;
	if (known) {
		known->references++;
		*address = known->address;
	}
	pthread_mutex_unlock(&lock);
	return known;
}

CUresult placed_ipc_import(const struct placed_exported *exported, int file, CUdeviceptr *address)
{
	CUmemGenericAllocationHandle memory;
	CUcontext context = NULL;
	driver.cuCtxGetCurrent(&context);
	if (exported->worker == own_number())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (import_again(exported, context, address))
		return CUDA_SUCCESS;
	struct imported *imported = malloc(sizeof *imported);
	if (!imported)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = driver.cuMemImportFromShareableHandle ?
				  driver.cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)file,
									CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) :
				  CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS) {
		result = map(memory, exported->extent, &imported->base);
		(void)driver.cuMemRelease(memory); /* the mapping keeps the memory */
	}
	if (result != CUDA_SUCCESS) {
		free(imported);
		return result;
	}
	imported->address = *address = imported->base + exported->offset;
	imported->bytes = exported->extent;
	imported->context = context;
	imported->worker = exported->worker;
	imported->id = exported->id;
	imported->references = 1;
	pthread_mutex_lock(&lock);
	imported->next = list;
	list = imported;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* Takes the memory at this address (0: any) of this context (NULL: any) out of the list. NULL: there is none. */
static struct imported *take(CUdeviceptr address, CUcontext context)
{
	pthread_mutex_lock(&lock);
	struct imported **at = &list;
	while (*at && ((address && (*at)->address != address) || (context && (*at)->context != context)))
		at = &(*at)->next;
	struct imported *found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult placed_ipc_close(CUdeviceptr address)
{
	CUcontext context = NULL;
	driver.cuCtxGetCurrent(&context);
	struct imported *imported = take(address, context);
	if (!imported)
		return CUDA_ERROR_NOT_FOUND;
	if (--imported->references) {
		pthread_mutex_lock(&lock);
		imported->next = list;
		list = imported;
		pthread_mutex_unlock(&lock);
		return CUDA_SUCCESS;
	}
	(void)driver.cuCtxSynchronize(); /* work may use the memory */
	unmap(imported->base, imported->bytes);
	free(imported);
	return CUDA_SUCCESS;
}

void placed_ipc_rename(CUcontext from, CUcontext to)
{
	pthread_mutex_lock(&lock);
	for (struct imported *each = list; each; each = each->next)
		if (each->context == from)
			each->context = to;
	pthread_mutex_unlock(&lock);
}

void placed_ipc_forget(CUcontext context)
{
	for (struct imported *imported; (imported = take(0, context));) {
		unmap(imported->base, imported->bytes);
		free(imported);
	}
}

CUresult placed_ipc_copy(CUmemGenericAllocationHandle memory, CUdeviceptr from, uint64_t bytes)
{
	CUdeviceptr to;
	CUresult result = map(memory, bytes, &to);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuMemcpyDtoD_v2 ? driver.cuMemcpyDtoD_v2(to, from, bytes) : CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = driver.cuCtxSynchronize();
	unmap(to, bytes);
	return result;
}
