/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement by virtual memory management (server/placed/) on a driver of this test: what it is asked for, and what happens
 * when it refuses. The software GPU lets every device use all memory and refuses nothing.
 */
#include "cuda_remote/server/internal.h"
#include "cuda_remote/server/placed/placed_virtual.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
	((condition) ? (void)0 : (fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition), exit(1)))
#define OK(call) CHECK((call) == CUDA_SUCCESS)

#define PAGE ((size_t)2 << 20)
#define WINDOW (64 * PAGE)
#define BASE(device) ((CUdeviceptr)(1 + (device)) << 40)

/* ---- the driver ---- */

/* A context or a stream; an event is that of its context. */
struct CUctx_st {
	CUdevice device;
};

static struct CUctx_st contexts[3] = { { 0 }, { 1 }, { 2 } }, *current = &contexts[0];
static CUmemAccessDesc granted[8]; /* of the last call */
static size_t n_granted;
static unsigned mapped; /* mappings */
static bool busy;       /* events are not complete */
static CUcontext ended; /* with its events */
static unsigned until_refusal[2]; /* mapping and unmapping: 1: the next call is refused; 0: none is */

static CUresult refusal(unsigned *until)
{
	return *until && !--*until ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device)
{
	*device = current->device;
	return CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
	CHECK(!busy); /* it would wait */
	return CUDA_SUCCESS;
}

static CUresult attribute(int *value, CUdevice_attribute which, CUdevice device)
{
	(void)which;
	(void)device;
	*value = 1;
	return CUDA_SUCCESS;
}

static CUresult granularity(size_t *size, const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags option)
{
	(void)properties;
	(void)option;
	*size = PAGE;
	return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	(void)size;
	(void)alignment;
	(void)flags;
	*address = hint ? hint : BASE(10);
	return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr address, size_t size)
{
	(void)address;
	(void)size;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *memory, size_t size, const CUmemAllocationProp *properties,
		       unsigned long long flags)
{
	static CUmemGenericAllocationHandle last;
	(void)size;
	(void)properties;
	(void)flags;
	*memory = ++last;
	return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle memory)
{
	(void)memory;
	return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle memory,
		    unsigned long long flags)
{
	(void)address;
	(void)size;
	(void)offset;
	(void)memory;
	(void)flags;
	CUresult result = refusal(&until_refusal[0]);
	mapped += result == CUDA_SUCCESS;
	return result;
}

static CUresult unmap(CUdeviceptr address, size_t size)
{
	(void)address;
	(void)size;
	CUresult result = refusal(&until_refusal[1]);
	mapped -= result == CUDA_SUCCESS;
	return result;
}

static CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count)
{
	(void)address;
	(void)size;
	CHECK(count <= 8);
	memcpy(granted, access, count * sizeof *access);
	n_granted = count;
	return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *event, unsigned flags)
{
	(void)flags;
	*event = (CUevent)current;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	return (void *)event == (void *)(stream ? (CUcontext)stream : current) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult event_query(CUevent event)
{
	CHECK((void *)event != (void *)ended);
	return busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult event_synchronize(CUevent event)
{
	(void)event;
	return synchronize();
}

static CUresult event_destroy(CUevent event)
{
	CHECK((void *)event != (void *)ended);
	return CUDA_SUCCESS;
}

static CUresult context_of(CUstream stream, CUcontext *context)
{
	*context = stream ? (CUcontext)stream : current;
	return CUDA_SUCCESS;
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	(void)to;
	(void)from;
	(void)bytes;
	CHECK(current->device == 2 && n_granted == 1 && granted[0].location.id == 2); /* for the memory's device */
	return CUDA_SUCCESS;
}

static CUresult record_context(CUcontext context, CUevent event)
{
	return (void *)event == (void *)context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult export(void *file, CUmemGenericAllocationHandle memory, CUmemAllocationHandleType type,
		       unsigned long long flags)
{
	(void)memory;
	(void)type;
	(void)flags;
	*(int *)file = open("/dev/null", O_RDONLY);
	return CUDA_SUCCESS;
}

static CUcontext copied_to, copied_from; /* of the last peer copy */
static unsigned plain_copies;

static CUresult copy_plain(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)to;
	(void)from;
	(void)bytes;
	(void)stream;
	plain_copies++;
	return CUDA_SUCCESS;
}

static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
			  CUstream stream)
{
	(void)to;
	(void)from;
	(void)bytes;
	(void)stream;
	copied_to = to_context;
	copied_from = from_context;
	return CUDA_SUCCESS;
}

static CUresult copy_peer_rows(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	CHECK(copy->WidthInBytes == 8 && copy->Height == 4 && copy->Depth == 1 && copy->srcPitch == 16 && copy->dstPitch == 16);
	return copy_peer(copy->dstDevice, copy->dstContext, copy->srcDevice, copy->srcContext, 32, stream);
}

static const struct rc_placed_memory *placed;

static void begin(void)
{
	driver.cuCtxGetDevice = get_device;
	driver.cuCtxGetCurrent = get_current;
	driver.cuCtxSetCurrent = set_current;
	driver.cuCtxSynchronize = synchronize;
	driver.cuDeviceGetAttribute = attribute;
	driver.cuMemGetAllocationGranularity = granularity;
	driver.cuMemAddressReserve = reserve;
	driver.cuMemAddressFree = unreserve;
	driver.cuMemCreate = create;
	driver.cuMemRelease = release;
	driver.cuMemMap = map;
	driver.cuMemUnmap = unmap;
	driver.cuMemSetAccess = set_access;
	driver.cuEventCreate = event_create;
	driver.cuEventRecord = event_record;
	driver.cuEventQuery = event_query;
	driver.cuEventSynchronize = event_synchronize;
	driver.cuEventDestroy_v2 = event_destroy;
	driver.cuStreamGetCtx = context_of;
	driver.cuMemcpyDtoD_v2 = copy;
	driver.cuMemExportToShareableHandle = export;
	driver.cuCtxRecordEvent = record_context;
	driver.cuMemcpyDtoDAsync_v2 = copy_plain;
	driver.cuMemcpyPeerAsync = copy_peer;
	driver.cuMemcpy3DPeerAsync = copy_peer_rows;
	worker.gpus = 3;
	worker.device[1] = 1;
	worker.device[2] = 2;
	placed = placed_virtual_find();
	CHECK(placed);
}

/* ---- tests ---- */

static bool may_use(CUdevice device)
{
	for (size_t i = 0; i < n_granted; i++)
		if (granted[i].location.id == device && granted[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return true;
	return false;
}

/* Peer access that was enabled before a GPU's first allocation holds for its memory. */
static void an_early_grant_holds(void)
{
	OK(server_placed_grant(0, 1));
	OK(placed->window(BASE(0), WINDOW));
	OK(placed->budget(4 * PAGE, 0));
	OK(placed->place(BASE(0), 512));
	CHECK(may_use(0) && may_use(1));
	current = &contexts[1];
	OK(placed->window(BASE(1), WINDOW));
	OK(placed->budget(4 * PAGE, 0));
	OK(placed->place(BASE(1), 512));
	CHECK(may_use(1) && !may_use(0));
	OK(server_placed_grant(1, 0)); /* later */
	CHECK(may_use(0));
	OK(server_placed_free(BASE(1), true));
	current = &contexts[0];
	OK(server_placed_free(BASE(0), true));
}

/* Memory that a stream has not freed yet is not waited for. */
static void a_placement_waits_for_no_stream(void)
{
	OK(placed->place(BASE(0), 4 * PAGE));
	busy = true;
	OK(server_placed_free_async(BASE(0), NULL));
	CHECK(placed->place(BASE(0), 512) == CUDA_ERROR_ALREADY_MAPPED);
	CHECK(placed->place(BASE(0) + 4 * PAGE, 512) == CUDA_ERROR_OUT_OF_MEMORY);
	busy = false;
	OK(placed->place(BASE(0), 512));
	OK(server_placed_free(BASE(0), true));
}

/* A stream of another context frees memory, and that context ends before the stream has come there. */
static void a_stream_of_another_context_frees(void)
{
	OK(placed->place(BASE(0), 512));
	busy = true;
	OK(server_placed_free_async(BASE(0), (CUstream)&contexts[1]));
	CHECK(current == &contexts[0]);
	ended = &contexts[1];
	server_placed_end(server_placed_take(ended), ended);
	OK(placed->place(BASE(0), 512));
	ended = NULL;
	busy = false;
	OK(server_placed_free(BASE(0), true));
}

/* An allocation whose memory is in two parts, as two others have left it. */
static void place_two_parts(CUdeviceptr address)
{
	for (int i = 0; i < 2; i++)
		OK(placed->place(address + (size_t)i * PAGE, PAGE));
	for (int i = 0; i < 2; i++)
		OK(server_placed_free(address + (size_t)i * PAGE, true));
	unsigned before = mapped;
	OK(placed->place(address, 2 * PAGE));
	CHECK(mapped == before);
}

/* Memory in two parts is exported as one. Whatever the driver refuses meanwhile, the allocation keeps memory. */
static void an_export_that_fails_changes_nothing(void)
{
	static const unsigned refused[3][2] = { { 2, 0 }, { 0, 2 }, { 0, 3 } }; /* the first calls are those of the copy */
	CUdeviceptr address = BASE(2);
	struct rc_wire_shared handle;
	current = &contexts[2];
	OK(placed->window(address, WINDOW));
	OK(placed->budget(4 * PAGE, 0));
	place_two_parts(address);
	current = &contexts[0]; /* not that of the memory */
	unsigned before = mapped;
	for (int i = 0; i < 3; i++) {
		memcpy(until_refusal, refused[i], sizeof until_refusal);
		CHECK(server_placed_export(address, &handle) == CUDA_ERROR_UNKNOWN);
		CHECK(mapped == before && !until_refusal[0] && !until_refusal[1]);
	}
	OK(server_placed_export(address, &handle));
	CHECK(mapped == before - 1);
	OK(server_placed_free(address, true));
	CHECK(mapped == before - 2 && current == &contexts[0]);
}

/* Memory that must be moved is not exported while work may use it. */
static void an_export_waits_for_no_work(void)
{
	CUdeviceptr address = BASE(2) + 8 * PAGE;
	struct rc_wire_shared handle;
	current = &contexts[2];
	place_two_parts(address);
	busy = true;
	CHECK(server_placed_export(address, &handle) == CUDA_ERROR_NOT_SUPPORTED);
	busy = false;
	OK(server_placed_grant(2, 0));
	CHECK(server_placed_export(address, &handle) == CUDA_ERROR_NOT_SUPPORTED);
	OK(server_placed_free(address, true));
	current = &contexts[0];
}

/* A context ends, and before the worker hears that, a new one has its address and places memory. If a context does not end,
 * its memory stays. */
static void a_context_has_the_address_of_another(void)
{
	OK(placed->place(BASE(0), 512));
	OK(placed->place(BASE(0) + PAGE, PAGE));
	struct server_placed *taken = server_placed_take(current);
	CHECK(server_placed_free(BASE(0), true) == CUDA_ERROR_INVALID_VALUE);
	server_placed_put(taken);
	OK(server_placed_free(BASE(0), true));
	taken = server_placed_take(current);
	OK(placed->place(BASE(0), 512));
	server_placed_end(taken, current);
	OK(server_placed_free(BASE(0), true));
	CHECK(server_placed_free(BASE(0) + PAGE, true) == CUDA_ERROR_INVALID_VALUE);
}

static void copy_across(CUdeviceptr to, CUdeviceptr from, uint64_t rows)
{
	struct rc_wire_across across = { .to = { to, 16, 64, 8, rows, 1 }, .from = { from, 16, 64, 8, rows, 1 } };
	struct server_call call = { .in = (const uint8_t *)&across, .in_len = sizeof across };
	copied_to = copied_from = NULL;
	OK(serve_copy_across(&call));
}

/* Memory of two devices without peer access to each other is copied by the driver's peer copies. */
static void copies_between_devices(void)
{
	OK(placed->place(BASE(0), 512));
	current = &contexts[2];
	OK(placed->place(BASE(2), 512));
	for (uint64_t rows = 1; rows <= 4; rows += 3) {
		copy_across(BASE(0) + 100, BASE(2) + 8, rows);
		CHECK(copied_to == &contexts[0] && copied_from == &contexts[2]);
	}
	copy_across(BASE(2), BASE(2) + 100, 1);
	CHECK(!copied_to && plain_copies == 1);
	OK(server_placed_grant(0, 2)); /* and the other direction, by an earlier test */
	copy_across(BASE(0), BASE(2), 1);
	CHECK(!copied_to && plain_copies == 2);
	OK(server_placed_free(BASE(2), true));
	current = &contexts[0];
	OK(server_placed_free(BASE(0), true));
}

int main(void)
{
	begin();
	an_early_grant_holds();
	a_placement_waits_for_no_stream();
	a_stream_of_another_context_frees();
	an_export_that_fails_changes_nothing();
	an_export_waits_for_no_work();
	a_context_has_the_address_of_another();
	copies_between_devices();
	return 0;
}
