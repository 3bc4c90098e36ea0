/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's part of a transfer. The bytes go through buffers in pinned host memory or in device memory, or the
 * connection uses the device memory itself. The last two need a driver whose device memory the host's processors can read
 * and write. Copies between buffers and device memory are asynchronous, in a stream for each context. A copy is issued when its
 * bytes move; streams of the program wait for it by then.
 */
#define _GNU_SOURCE /* memfd_create */
#include "cuda_remote/server/peer/link.h"
#include "cuda_remote/stream_priority.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EVENT_BYTES 4096  /* of the smallest slots: only their events are used */
#define WHOLE (1u << 30)  /* longest part of a transfer without buffers */
/* If the session may not have more memory; each link has at least this. */
#define LEAST_BUFFERS 2
#define LEAST_CHUNK (128u << 10)
#define LEAST_MEMORY (4u << 20) /* enough for most plans */
#define PREPARED 8    /* events */

/* ---- memory of the buffers ---- */

/*
 * A driver may wait for all work of a device before it frees, unpins, allocates or pins memory. Among this work may be a stream
 * that waits for the very transfer that asks. So memory that is not used any more goes into a pool, and is freed only with its
 * context. Memory is allocated when the link opens and in trials; the client calls no copy of the link before these have ended.
 */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct peer_memory *pool;

/* Bytes of all memory that is counted; under the lock. At most the bytes that the worker may hold for copies to the host. */
static uint64_t total;

static void memory_put(struct peer_memory *memory)
{
	if (!memory)
		return;
	pthread_mutex_lock(&pool_lock);
	memory->next = pool;
	pool = memory;
	pthread_mutex_unlock(&pool_lock);
}

/* The context has ended, and the driver has freed the memory that was allocated in it. */
void peer_pool_forget(CUcontext context)
{
	pthread_mutex_lock(&pool_lock);
	for (struct peer_memory **at = &pool; *at;) {
		struct peer_memory *memory = *at;
		if (memory->context == context) {
			*at = memory->next;
			total -= memory->counted ? memory->size : 0;
			free(memory);
		} else {
			at = &memory->next;
		}
	}
	pthread_mutex_unlock(&pool_lock);
}

static struct peer_memory *pool_take(uint64_t size, CUcontext context)
{
	struct peer_memory **at = &pool;
	while (*at && ((*at)->context != context || (*at)->size < size))
		at = &(*at)->next;
	struct peer_memory *found = *at;
	if (found)
		*at = found->next;
	return found;
}

static uint8_t *host_memory(struct peer_memory *memory)
{
	void *at = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	/* If the driver does not pin it, copies are slower. */
	memory->pinned = server_slot_list(&memory->slot, at, memory->size) == CUDA_SUCCESS;
	return at;
}

static uint8_t *device_memory(const struct peer_memory *memory)
{
	CUdeviceptr at;
	bool made = driver.cuMemAlloc_v2 && driver.cuMemAlloc_v2(&at, memory->size) == CUDA_SUCCESS;
	return made ? (uint8_t *)(uintptr_t)at : NULL;
}

/* Memory of at least size bytes. context: the current one, for device memory, or NULL, for pinned memory. NULL: the session
 * may not have more, or the pool has none and none may be made. */
static struct peer_memory *memory_get(uint64_t size, CUcontext context, bool make)
{
	uint64_t wanted = size < LEAST_MEMORY ? LEAST_MEMORY : size;
	pthread_mutex_lock(&pool_lock);
	struct peer_memory *memory = pool_take(size, context);
	bool counted = !memory && make && wanted <= worker.staging && total <= worker.staging - wanted;
	if (counted)
		total += wanted;
	pthread_mutex_unlock(&pool_lock);
	if (memory || !make || (!counted && size > LEAST_BUFFERS * LEAST_CHUNK))
		return memory;
	memory = calloc(1, sizeof *memory);
	if (memory) {
		memory->size = counted ? wanted : size;
		memory->counted = counted;
		memory->context = context;
		memory->at = context ? device_memory(memory) : host_memory(memory);
	}
	if (memory && memory->at)
		return memory;
	free(memory);
	pthread_mutex_lock(&pool_lock);
	total -= counted ? wanted : 0;
	pthread_mutex_unlock(&pool_lock);
	return NULL;
}

/* Replaces *memory if it does not suffice. If there is none that does, *memory stays as it is. */
static CUresult memory_need(struct peer_memory **memory, uint64_t size, CUcontext context, bool make)
{
	if (!*memory || (*memory)->size < size || (*memory)->context != context) {
		struct peer_memory *found = memory_get(size, context, make);
		if (!found)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memory_put(*memory);
		*memory = found;
	}
	if ((*memory)->pinned)
		(void)server_slot_repin(&(*memory)->slot);
	return CUDA_SUCCESS;
}

struct peer_memory *peer_memory_borrow(uint64_t size)
{
	CUcontext context = __atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED);
	return driver.cuCtxSetCurrent(context) == CUDA_SUCCESS ? memory_get(size, context, true) : NULL;
}

void peer_memory_return(struct peer_memory *memory)
{
	memory_put(memory);
}

/* ---- is device memory memory of the host? ---- */

#define PROBE 4096

/* The kernel reads the memory for us: it returns an error if the processor cannot. */
static bool kernel_reads(CUdeviceptr memory, uint8_t value)
{
	uint8_t read_back[PROBE];
	int fd = memfd_create("probe", MFD_CLOEXEC);
	bool same = fd >= 0 && write(fd, (const void *)(uintptr_t)memory, PROBE) == PROBE &&
		    pread(fd, read_back, PROBE, 0) == PROBE;
	for (int i = 0; i < PROBE && same; i++)
		same = read_back[i] == value;
	if (fd >= 0)
		close(fd);
	return same;
}

/* In a stream of its own, as other streams may be waiting. */
static bool probe_with(CUdeviceptr memory, uint8_t value, CUstream stream)
{
	return driver.cuMemsetD8Async(memory, value, PROBE, stream) == CUDA_SUCCESS &&
	       driver.cuStreamSynchronize(stream) == CUDA_SUCCESS && kernel_reads(memory, value);
}

static bool direct;

static void probe(void)
{
	CUstream stream;
	struct peer_memory *memory;
	if (!driver.cuMemsetD8Async || !driver.cuStreamSynchronize || !driver.cuMemGetAddressRange_v2 ||
	    !driver.cuStreamCreate || !driver.cuStreamDestroy_v2 || !(memory = peer_memory_borrow(PROBE)))
		return;
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)memory->at;
	if (driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) {
		direct = probe_with(at, 0x5a, stream) && probe_with(at, 0xa5, stream);
		driver.cuStreamDestroy_v2(stream);
	}
	peer_memory_return(memory);
}

bool peer_memory_is_direct(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, probe);
	return direct;
}

/* ---- a transfer ---- */

/* In the current context. */
static CUresult stream_new(CUstream *stream)
{
	int least = 0, greatest = 0;
	if (!driver.cuStreamCreateWithPriority)
		return driver.cuStreamCreate ? driver.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING) : CUDA_ERROR_NOT_SUPPORTED;
	if (driver.cuCtxGetStreamPriorityRange)
		(void)driver.cuCtxGetStreamPriorityRange(&least, &greatest);
	return driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, rc_stream_own_priority(least, greatest));
}

static CUresult lane_stream(struct peer_device *device, CUcontext context, CUstream *stream)
{
	unsigned i = 0;
	while (i < PEER_LANES && device->lane[i].context != context)
		i++;
	if (i == PEER_LANES) {
		i = device->oldest++ % PEER_LANES;
		if (device->lane[i].context && driver.cuStreamDestroy_v2)
			driver.cuStreamDestroy_v2(device->lane[i].stream);
		device->lane[i].context = NULL;
		CUresult result = stream_new(&device->lane[i].stream);
		if (result != CUDA_SUCCESS)
			return result;
		device->lane[i].context = context;
	}
	*stream = device->lane[i].stream;
	return CUDA_SUCCESS;
}

/* True if the box is one piece of memory that the driver has allocated: nothing else may be read or written directly. */
static bool is_one_piece(const struct rc_wire_box *box)
{
	CUdeviceptr base;
	size_t size;
	return box->height == 1 && box->depth == 1 &&
	       driver.cuMemGetAddressRange_v2(&base, &size, box->device) == CUDA_SUCCESS && box->device >= base &&
	       box->width <= size && box->device - base <= size - box->width;
}

static CUresult need_events(struct peer_device *device, unsigned n)
{
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; i < n && result == CUDA_SUCCESS; i++)
		if (!device->event[i])
			result = server_slot_get(EVENT_BYTES, &device->event[i]);
	return result;
}

/* Makes number and size of the buffers fit into the pinned memory that the link has. False: it is too small for any buffers. */
static bool fit_buffers(struct peer_way *way)
{
	const struct peer_memory *host = way->device->host;
	if (!host || host->size < (uint64_t)LEAST_BUFFERS * RC_PEER_CHUNK_MIN)
		return false;
	if (way->chunk > host->size / LEAST_BUFFERS)
		way->chunk = host->size / LEAST_BUFFERS;
	if (way->buffers > host->size / way->chunk)
		way->buffers = (unsigned)(host->size / way->chunk);
	way->way = RC_PEER_BY_HOST;
	return true;
}

/* Uses no more buffers than the link has events, if it has any. */
static void fit_events(struct peer_way *way)
{
	unsigned n = 0;
	while (n < way->buffers && way->device->event[n])
		n++;
	way->buffers = n ? n : 1;
}

/* If the session may not have the memory that the plan wants, or the link does not have it yet, a copy goes by few small buffers of
 * pinned memory. */
static CUresult need_buffers(struct peer_way *way, bool trial)
{
	bool on_device = way->way == RC_PEER_BY_DEVICE;
	struct peer_memory **memory = on_device ? &way->device->device : &way->device->host;
	if (!trial)
		fit_events(way);
	CUresult result = need_events(way->device, way->buffers);
	if (result != CUDA_SUCCESS)
		return result;
	result = memory_need(memory, way->buffers * way->chunk, on_device ? way->context : NULL, trial);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		memory = &way->device->host;
		if (trial || !fit_buffers(way)) {
			way->way = RC_PEER_BY_HOST;
			way->buffers = way->buffers < LEAST_BUFFERS ? way->buffers : LEAST_BUFFERS;
			way->chunk = way->chunk < LEAST_CHUNK ? way->chunk : LEAST_CHUNK;
		}
		result = memory_need(memory, way->buffers * way->chunk, NULL, true);
	}
	if (result == CUDA_SUCCESS)
		way->memory = (*memory)->at;
	return result;
}

CUresult peer_way_open(struct peer_device *device, const struct rc_wire_peer_plan *plan, const struct rc_wire_box *box,
		       uint32_t index, bool trial, struct peer_way *way)
{
	*way = (struct peer_way){ .device = device, .box = *box, .index = index, .way = plan->way, .buffers = plan->buffers,
				  .chunk = plan->chunk };
	if (way->way != RC_PEER_BY_HOST && !peer_memory_is_direct())
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_context_hold(index, &way->context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!way->context) {
		server_stream_let_go();
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (way->way == RC_PEER_BY_NONE && !is_one_piece(box)) {
		way->way = RC_PEER_BY_HOST;
		way->buffers = LEAST_BUFFERS;
		way->chunk = RC_CHUNK_MAX;
	}
	if (way->way == RC_PEER_BY_NONE)
		way->chunk = WHOLE;
	else
		result = need_buffers(way, trial);
	server_stream_let_go();
	return result;
}

/* One piece of a box, between it and a buffer. */
static CUresult copy_rows(const struct peer_way *way, CUdeviceptr at, uint64_t width, uint64_t rows, uint8_t *buffer,
			  bool to_device, CUstream stream)
{
	CUmemorytype kind = way->way == RC_PEER_BY_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	CUdeviceptr other = (CUdeviceptr)(uintptr_t)buffer;
	if (rows == 1 && kind == CU_MEMORYTYPE_DEVICE)
		return driver.cuMemcpyDtoDAsync_v2(to_device ? at : other, to_device ? other : at, width, stream);
	if (rows == 1)
		return to_device ? driver.cuMemcpyHtoDAsync_v2(at, buffer, width, stream) :
				   driver.cuMemcpyDtoHAsync_v2(buffer, at, width, stream);
	if (!driver.cuMemcpy2DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUDA_MEMCPY2D copy = { .WidthInBytes = width, .Height = rows };
	copy.srcMemoryType = to_device ? kind : CU_MEMORYTYPE_DEVICE;
	copy.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : kind;
	copy.srcHost = copy.dstHost = buffer;
	copy.srcDevice = to_device ? other : at;
	copy.dstDevice = to_device ? at : other;
	copy.srcPitch = to_device ? width : way->box.pitch;
	copy.dstPitch = to_device ? way->box.pitch : width;
	return driver.cuMemcpy2DAsync_v2(&copy, stream);
}

CUresult peer_way_copy(struct peer_way *way, unsigned buffer, uint64_t offset, uint64_t len, bool to_device)
{
	CUcontext context;
	CUstream stream;
	CUdeviceptr at;
	uint64_t width, rows;
	server_box_part(&way->box, offset, len, &at, &width, &rows);
	CUresult result = server_context_hold(way->index, &context);
	if (result != CUDA_SUCCESS)
		return result;
	/* Another context, or buffers that ended with theirs: the context has been reset meanwhile. */
	const struct peer_memory *memory = way->device->device;
	if (context != way->context || (way->way == RC_PEER_BY_DEVICE && (!memory || memory->context != context)))
		result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (result == CUDA_SUCCESS)
		result = lane_stream(way->device, context, &stream);
	if (result == CUDA_SUCCESS)
		result = copy_rows(way, at, width, rows, way->memory + buffer * way->chunk, to_device, stream);
	if (result == CUDA_SUCCESS)
		result = server_slot_record(way->device->event[buffer], stream);
	server_stream_let_go();
	return result;
}

CUresult peer_way_wait(struct peer_way *way, unsigned buffer)
{
	return server_slot_wait(way->device->event[buffer]);
}

CUresult peer_way_finish(struct peer_way *way)
{
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; way->way != RC_PEER_BY_NONE && i < way->buffers; i++) {
		CUresult waited = way->device->event[i] ? peer_way_wait(way, i) : CUDA_SUCCESS;
		if (result == CUDA_SUCCESS)
			result = waited;
	}
	return result;
}

/* ---- begin and end of a link ---- */

void peer_device_prepare(struct peer_device *device)
{
	/* Without them, transfers try again. */
	(void)driver.cuCtxSetCurrent(__atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED));
	if (memory_need(&device->host, LEAST_MEMORY, NULL, true) != CUDA_SUCCESS)
		(void)memory_need(&device->host, LEAST_BUFFERS * LEAST_CHUNK, NULL, true);
	(void)need_events(device, PREPARED);
}

/* The driver ends the streams and the memory with the context. */
void peer_device_forget(struct peer_device *device, CUcontext context)
{
	for (unsigned i = 0; i < PEER_LANES; i++)
		if (device->lane[i].context == context)
			device->lane[i].context = NULL;
	if (device->device && device->device->context == context) {
		memory_put(device->device);
		device->device = NULL;
	}
}

void peer_device_close(struct peer_device *device)
{
	for (unsigned i = 0; i < RC_PEER_BUFFERS_MAX; i++)
		server_slot_put(device->event[i]);
	server_streams_lock();
	for (unsigned i = 0; i < PEER_LANES; i++)
		if (device->lane[i].context && driver.cuStreamDestroy_v2)
			driver.cuStreamDestroy_v2(device->lane[i].stream);
	memory_put(device->device);
	memory_put(device->host);
	*device = (struct peer_device){ .oldest = 0 };
	server_streams_unlock();
}
