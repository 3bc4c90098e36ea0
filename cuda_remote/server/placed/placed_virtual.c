/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows, the budget and allocations on virtual memory management (placed_virtual.h). The budget counts in pages: a page
 * with small allocations counts as a whole, so that the memory that the budget stands for always suffices.
 */
#include "cuda_remote/server/placed/placed_virtual.h"

#include "cuda_remote/bitmap.h"
#include "cuda_remote/server/ipc/meeting.h"
#include "cuda_remote/server/placed/placed_ipc.h"

#include <stdlib.h>
#include <time.h>

#define PAGE_LEAST ((size_t)2 << 20)
#define GRANULES (sizeof((struct virtual_block *)0)->taken * 8) /* of a page */

#define IDLE_TRIES 2000 /* an export of memory that must be moved waits for 2 s at most */
#define IDLE_PAUSE_NS 1000000

/* An allocation, in a hash table by address. */
struct server_placed {
	struct server_placed *next;
	CUdeviceptr address;
	size_t bytes;
	struct virtual_window *window;
	CUcontext context;
	uint64_t exported; /* number that other workers know it by; 0: they do not */
	CUevent freed; /* cuMemFreeAsync was called for it, and frees it when this event is complete; NULL: it was not */
	CUcontext freeing; /* the context of that event */
};

#define BUCKETS 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all data */
static struct virtual_window windows[RC_DEVICES_MAX];
static unsigned n_windows;
static struct {
	CUdevice owner, user;
} grants[RC_DEVICES_MAX * RC_DEVICES_MAX]; /* the user may access the owner's memory, that of its later window too */
static unsigned n_grants;
static struct server_placed *buckets[BUCKETS];
static struct server_placed *leaving; /* list of those with an event, which are not in the table */
static struct rc_placed_memory table;

/* ---- windows ---- */

static struct virtual_window *window_at(CUdeviceptr address)
{
	for (unsigned i = 0; i < n_windows; i++)
		if (address - windows[i].base < windows[i].pages * windows[i].page_bytes)
			return &windows[i];
	return NULL;
}

/* The window of a device. NULL: there is none. */
static struct virtual_window *window_of(CUdevice device)
{
	for (unsigned i = 0; i < n_windows; i++)
		if (windows[i].device == device)
			return &windows[i];
	return NULL;
}

static CUmemAccessDesc access_of(CUdevice device)
{
	return (CUmemAccessDesc){ .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
}

static bool can_export(CUdevice device)
{
	int value;
	return driver.cuMemExportToShareableHandle &&
	       driver.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
					   device) == CUDA_SUCCESS &&
	       value;
}

/* Under the lock. */
static CUresult window_add(CUdevice device, CUdeviceptr base, size_t bytes)
{
	CUdeviceptr address;
	if (window_of(device) || n_windows == RC_DEVICES_MAX || window_at(base) || window_at(base + bytes - 1))
		return CUDA_ERROR_ALREADY_MAPPED;
	struct virtual_page *page = calloc(bytes / table.page, sizeof *page);
	if (!page)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (driver.cuMemAddressReserve(&address, bytes, table.page, base, 0) != CUDA_SUCCESS) {
		free(page);
		return CUDA_ERROR_ALREADY_MAPPED;
	}
	if (address != base) {
		(void)driver.cuMemAddressFree(address, bytes);
		free(page);
		return CUDA_ERROR_ALREADY_MAPPED;
	}
	struct virtual_window *window = &windows[n_windows++];
	*window = (struct virtual_window){ .device = device, .base = base, .page_bytes = table.page,
						      .pages = bytes / table.page, .page = page, .access = { access_of(device) },
						      .n_access = 1, .exportable = can_export(device) };
	for (unsigned i = 0; i < n_grants && window->n_access < RC_DEVICES_MAX; i++)
		if (grants[i].owner == device)
			window->access[window->n_access++] = access_of(grants[i].user);
	return CUDA_SUCCESS;
}

static CUresult make_window(CUdeviceptr base, size_t bytes)
{
	CUdevice device;
	if (!bytes || base % table.page || bytes % table.page || bytes > UINT64_MAX - base)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver.cuCtxGetDevice(&device);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	result = window_add(device, base, bytes);
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- allocations ---- */

static struct server_placed **bucket_of(CUdeviceptr address)
{
	return &buckets[(address / table.granule ^ address / table.page) % BUCKETS];
}

static struct server_placed **find(CUdeviceptr address)
{
	struct server_placed **at = bucket_of(address);
	while (*at && (*at)->address != address)
		at = &(*at)->next;
	return at;
}

static size_t granules(size_t bytes)
{
	return (bytes + table.granule - 1) / table.granule;
}

/* Pages of a large allocation. */
static size_t pages_of(size_t bytes)
{
	return bytes / table.page + !!(bytes % table.page);
}

static CUresult take_granules(struct virtual_window *window, size_t page, size_t at, size_t count)
{
	struct virtual_block *block = window->page[page].block;
	bool fresh = !block;
	if (window->page[page].whole || (block && bitmap_next(block->taken, at + count, at, true) != at + count))
		return CUDA_ERROR_ALREADY_MAPPED;
	if (fresh) {
		if (window->used == window->budget)
			return CUDA_ERROR_OUT_OF_MEMORY;
		block = calloc(1, sizeof *block);
		CUresult result = block ? virtual_back(window, page, 1) : CUDA_ERROR_OUT_OF_MEMORY;
		if (result != CUDA_SUCCESS) {
			free(block);
			return result;
		}
		window->page[page].block = block;
		window->used++;
	}
	bitmap_fill(block->taken, at, count, true);
	block->used += count;
	return CUDA_SUCCESS;
}

static CUresult take_pages(struct virtual_window *window, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++)
		if (window->page[i].whole || window->page[i].block)
			return CUDA_ERROR_ALREADY_MAPPED;
	if (count > window->budget - window->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = virtual_back(window, first, count);
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = first; i < first + count; i++)
		window->page[i].whole = true;
	window->used += count;
	return CUDA_SUCCESS;
}

static void give_granules(struct virtual_window *window, size_t page, size_t at, size_t count)
{
	struct virtual_block *block = window->page[page].block;
	bitmap_fill(block->taken, at, count, false);
	block->used -= count;
	if (block->used)
		return;
	free(block);
	window->page[page].block = NULL;
	window->used--;
	virtual_unback(window, page, 1);
}

static void give_pages(struct virtual_window *window, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++)
		window->page[i].whole = false;
	window->used -= count;
	virtual_unback(window, first, count);
}

/* How other workers know an allocation. */
static void describe(const struct server_placed *allocation, struct placed_exported *exported)
{
	size_t offset = allocation->bytes > table.small ? 0 : (allocation->address - allocation->window->base) % table.page;
	size_t pages = allocation->bytes > table.small ? pages_of(allocation->bytes) : 1;
	placed_ipc_describe(exported, pages * table.page, offset, allocation->bytes, allocation->exported);
}

/* Ends an allocation, which no work uses any more and which is in no list. */
static void end(struct server_placed *gone)
{
	size_t offset = gone->address - gone->window->base;
	if (gone->exported) {
		struct placed_exported exported;
		describe(gone, &exported);
		meeting_end(MEETING_MEMORY, &exported);
	}
	if (gone->bytes > table.small)
		give_pages(gone->window, offset / table.page, pages_of(gone->bytes));
	else
		give_granules(gone->window, offset / table.page, offset % table.page / table.granule, granules(gone->bytes));
	free(gone);
}

/* Frees what cuMemFreeAsync was called for, if the stream is there. It does not wait: the call that would end the wait may come
 * after this one. */
static void end_leaving(void)
{
	for (struct server_placed **at = &leaving, *gone; (gone = *at);) {
		if (driver.cuEventQuery(gone->freed) == CUDA_ERROR_NOT_READY) {
			at = &gone->next;
			continue;
		}
		*at = gone->next;
		(void)driver.cuEventDestroy_v2(gone->freed);
		end(gone);
	}
}

static CUresult take(const struct server_placed *wanted)
{
	size_t offset = wanted->address - wanted->window->base, page = offset / table.page;
	size_t at = offset % table.page / table.granule;
	if (wanted->bytes <= table.small) {
		size_t count = granules(wanted->bytes);
		if (offset % table.granule || count > GRANULES - at)
			return CUDA_ERROR_INVALID_VALUE;
		return take_granules(wanted->window, page, at, count);
	}
	size_t count = pages_of(wanted->bytes);
	if (offset % table.page || count > wanted->window->pages - page)
		return CUDA_ERROR_INVALID_VALUE;
	return take_pages(wanted->window, page, count);
}

/* Under the lock. */
static CUresult place_locked(struct server_placed *wanted, CUdevice device)
{
	wanted->window = window_at(wanted->address);
	if (!wanted->window || wanted->window->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	end_leaving();
	CUresult result = take(wanted);
	if (result != CUDA_SUCCESS)
		return result;
	struct server_placed **bucket = bucket_of(wanted->address);
	wanted->next = *bucket;
	*bucket = wanted;
	return CUDA_SUCCESS;
}

static CUresult place(CUdeviceptr address, size_t bytes)
{
	CUdevice device;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver.cuCtxGetDevice(&device);
	if (result != CUDA_SUCCESS)
		return result;
	struct server_placed *wanted = malloc(sizeof *wanted);
	if (!wanted)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*wanted = (struct server_placed){ .address = address, .bytes = bytes };
	driver.cuCtxGetCurrent(&wanted->context);
	pthread_mutex_lock(&lock);
	result = place_locked(wanted, device);
	pthread_mutex_unlock(&lock);
	if (result != CUDA_SUCCESS)
		free(wanted);
	return result;
}

static CUresult change_budget(size_t more, size_t less)
{
	CUdevice device;
	if ((more && less) || more % table.page || less % table.page)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver.cuCtxGetDevice(&device);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct virtual_window *window = window_of(device);
	end_leaving();
	if (!window || less / table.page > window->budget - window->used)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = virtual_create(window, more / table.page);
	if (result == CUDA_SUCCESS) {
		window->budget += more / table.page;
		window->budget -= less / table.page;
		virtual_settle(window);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- freeing ---- */

bool server_placed_at(CUdeviceptr address)
{
	pthread_mutex_lock(&lock);
	bool found = window_at(address);
	pthread_mutex_unlock(&lock);
	return found;
}

/* Waits for all work of a context, as cuMemFree does. */
static CUresult synchronize(CUcontext context)
{
	CUcontext current;
	CUresult result = driver.cuCtxGetCurrent(&current);
	if (result == CUDA_SUCCESS && current != context)
		result = driver.cuCtxSetCurrent(context);
	if (result == CUDA_SUCCESS)
		result = driver.cuCtxSynchronize();
	if (current != context)
		(void)driver.cuCtxSetCurrent(current);
	return result;
}

/* One extent is the memory of the allocation, or of its page. Under the lock. */
static bool is_whole(const struct server_placed *allocation)
{
	size_t first = (allocation->address - allocation->window->base) / table.page;
	const struct virtual_extent *extent = allocation->window->page[first].extent;
	return extent && extent->pages ==
	       (allocation->bytes > table.small ? pages_of(allocation->bytes) : 1);
}

static struct server_placed *take_at(CUdeviceptr address)
{
	struct server_placed **at = find(address), *found = *at;
	if (found)
		*at = found->next;
	return found;
}

CUresult server_placed_free(CUdeviceptr address, bool wait)
{
	pthread_mutex_lock(&lock);
	const struct server_placed *known = *find(address);
	CUcontext context = known ? known->context : NULL;
	pthread_mutex_unlock(&lock);
	CUresult result = !known ? CUDA_ERROR_INVALID_VALUE : wait ? synchronize(context) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct server_placed *gone = take_at(address);
	if (gone)
		end(gone);
	pthread_mutex_unlock(&lock);
	return gone ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Records an event of the stream's own context, which need not be the current one. */
static CUresult record(CUstream stream, CUevent *event, CUcontext *context)
{
	CUcontext current;
	CUresult result = driver.cuCtxGetCurrent(&current);
	*context = current;
	if (driver.cuStreamGetCtx && driver.cuStreamGetCtx(stream, context) != CUDA_SUCCESS)
		*context = current; /* perhaps a stream of a green context; for a wrong one the record fails */
	if (result == CUDA_SUCCESS && *context != current)
		result = driver.cuCtxSetCurrent(*context);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS) {
		result = driver.cuEventRecord(*event, stream);
		if (result != CUDA_SUCCESS)
			(void)driver.cuEventDestroy_v2(*event);
	}
	if (*context != current)
		(void)driver.cuCtxSetCurrent(current);
	return result;
}

CUresult server_placed_free_async(CUdeviceptr address, CUstream stream)
{
	CUevent event;
	CUcontext context;
	CUresult result = record(stream, &event, &context);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct server_placed *gone = take_at(address);
	if (gone) {
		gone->freed = event;
		gone->freeing = context;
		gone->next = leaving;
		leaving = gone;
	}
	pthread_mutex_unlock(&lock);
	if (gone)
		return CUDA_SUCCESS;
	(void)driver.cuEventDestroy_v2(event);
	return CUDA_ERROR_INVALID_VALUE;
}

/* Moves the allocations of a list that end with a context. Under the lock. */
static void move(struct server_placed **from, struct server_placed **to, CUcontext context)
{
	for (struct server_placed **at = from, *gone; (gone = *at);) {
		if (gone->context != context && !(gone->freed && gone->freeing == context)) {
			at = &gone->next;
			continue;
		}
		*at = gone->next;
		gone->next = *to;
		*to = gone;
	}
}

struct server_placed *server_placed_take(CUcontext context)
{
	struct server_placed *taken = NULL;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < BUCKETS; i++)
		move(&buckets[i], &taken, context);
	move(&leaving, &taken, context);
	pthread_mutex_unlock(&lock);
	return taken;
}

void server_placed_put(struct server_placed *taken)
{
	pthread_mutex_lock(&lock);
	for (struct server_placed *next; taken; taken = next) {
		struct server_placed **list = taken->freed ? &leaving : bucket_of(taken->address);
		next = taken->next;
		taken->next = *list;
		*list = taken;
	}
	pthread_mutex_unlock(&lock);
}

void server_placed_end(struct server_placed *taken, CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (struct server_placed *next; taken; taken = next) {
		next = taken->next;
		if (taken->freed && taken->freeing != context) /* else the event has ended with its context */
			(void)driver.cuEventDestroy_v2(taken->freed);
		end(taken);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- other workers ---- */

/* Under the lock. */
static CUresult export_locked(CUdeviceptr address, struct placed_exported *exported, int *file)
{
	static uint64_t last;
	struct virtual_extent *extent;
	struct server_placed *allocation = *find(address);
	if (!allocation)
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation->window->exportable)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct virtual_window *window = allocation->window;
	size_t count = allocation->bytes > table.small ? pages_of(allocation->bytes) : 1;
	CUresult result = virtual_join(window, (address - window->base) / table.page, count, &extent);
	if (result == CUDA_SUCCESS)
		result = driver.cuMemExportToShareableHandle(file, extent->memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (!allocation->exported)
		allocation->exported = ++last;
	describe(allocation, exported);
	return CUDA_SUCCESS;
}

/* Polls until the context has no work, for at most IDLE_TRIES pauses. The caller is in the order of calls, so a stream may wait
 * for a call that comes later; CUDA_ERROR_NOT_SUPPORTED then. */
static CUresult become_idle(CUcontext context)
{
	CUevent event;
	if (!driver.cuCtxRecordEvent)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuCtxRecordEvent(context, event);
	for (int tries = 0; result == CUDA_SUCCESS; tries++) {
		result = driver.cuEventQuery(event);
		if (result != CUDA_ERROR_NOT_READY || tries == IDLE_TRIES)
			break;
		nanosleep(&(struct timespec){ 0, IDLE_PAUSE_NS }, NULL);
		result = CUDA_SUCCESS;
	}
	(void)driver.cuEventDestroy_v2(event);
	return result == CUDA_ERROR_NOT_READY ? CUDA_ERROR_NOT_SUPPORTED : result;
}

/* Memory in several parts is moved into one. No work may use it meanwhile, and that of other GPUs is not known. */
static CUresult export_in_context(CUdeviceptr address, CUcontext context, bool shared, struct placed_exported *exported, int *file)
{
	CUresult result = shared ? CUDA_ERROR_NOT_SUPPORTED : become_idle(context);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		hr_log_once(HR_LOG_WARN, "memory at %#llx is in several parts, and in use: it cannot be exported",
			    (unsigned long long)address);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	result = export_locked(address, exported, file);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult server_placed_export(CUdeviceptr address, struct rc_wire_shared *handle)
{
	struct placed_exported exported;
	CUcontext current = NULL;
	int file;
	pthread_mutex_lock(&lock);
	const struct server_placed *known = *find(address);
	CUcontext context = known ? known->context : NULL;
	bool shared = known && known->window->n_access > 1;
	CUresult result = !known ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	bool whole = known && is_whole(known);
	if (whole)
		result = export_locked(address, &exported, &file);
	pthread_mutex_unlock(&lock);
	if (known && !whole) {
		result = driver.cuCtxGetCurrent(&current);
		if (result == CUDA_SUCCESS)
			result = driver.cuCtxSetCurrent(context);
		if (result == CUDA_SUCCESS)
			result = export_in_context(address, context, shared, &exported, &file);
		(void)driver.cuCtxSetCurrent(current);
	}
	return result == CUDA_SUCCESS ? meeting_export_file(MEETING_MEMORY, &exported, file, handle) : result;
}

/* ---- other GPUs ---- */

/* Under the lock. */
static bool is_granted(CUdevice owner, CUdevice user)
{
	for (unsigned i = 0; i < n_grants; i++)
		if (grants[i].owner == owner && grants[i].user == user)
			return true;
	return owner == user;
}

/* Under the lock. */
static CUresult grant_window(struct virtual_window *window, CUdevice user)
{
	if (window->n_access == RC_DEVICES_MAX)
		return CUDA_ERROR_INVALID_DEVICE;
	window->access[window->n_access++] = access_of(user);
	CUresult result = virtual_grant(window);
	if (result != CUDA_SUCCESS)
		window->n_access--;
	return result;
}

CUresult server_placed_grant(CUdevice owner, CUdevice user)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (!is_granted(owner, user)) {
		struct virtual_window *window = window_of(owner);
		if (n_grants == RC_DEVICES_MAX * RC_DEVICES_MAX)
			result = CUDA_ERROR_INVALID_DEVICE;
		else if (window)
			result = grant_window(window, user);
		if (result == CUDA_SUCCESS) {
			grants[n_grants].owner = owner;
			grants[n_grants++].user = user;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* The context of the allocation that holds this address. NULL: there is none. Under the lock. */
static CUcontext context_at(CUdeviceptr address)
{
	for (int i = 0; i < BUCKETS; i++)
		for (const struct server_placed *at = buckets[i]; at; at = at->next)
			if (address - at->address < at->bytes)
				return at->context;
	return NULL;
}

bool server_placed_apart(CUdeviceptr to, CUdeviceptr from, struct server_placed_sides *sides)
{
	*sides = (struct server_placed_sides){ NULL, NULL };
	pthread_mutex_lock(&lock);
	const struct virtual_window *at = window_at(to), *other = window_at(from);
	if (at && other && at != other && !(is_granted(at->device, other->device) && is_granted(other->device, at->device))) {
		sides->to = context_at(to);
		sides->from = context_at(from);
	}
	pthread_mutex_unlock(&lock);
	return sides->to && sides->from;
}

/* ---- what the driver can do ---- */

static bool has_functions(void)
{
	return driver.cuMemAddressReserve && driver.cuMemAddressFree && driver.cuMemCreate && driver.cuMemRelease &&
	       driver.cuMemMap && driver.cuMemUnmap && driver.cuMemSetAccess && driver.cuMemGetAllocationGranularity &&
	       driver.cuCtxGetDevice && driver.cuCtxSynchronize && driver.cuDeviceGetAttribute;
}

/* The page size that suits a device; 0: it has no virtual memory management. */
static size_t page_size(CUdevice device)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = access_of(device).location };
	int supported;
	size_t size;
	if (driver.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) ||
	    !supported ||
	    driver.cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) ||
	    !size || size & (size - 1))
		return 0;
	return size < PAGE_LEAST ? PAGE_LEAST : size;
}

const struct rc_placed_memory *placed_virtual_find(void)
{
	size_t page = 0;
	if (!has_functions())
		return NULL;
	for (uint32_t i = 0; i < worker.gpus; i++) {
		size_t size = page_size(worker.device[i]);
		if (!size)
			return NULL;
		page = size > page ? size : page;
	}
	if (!page)
		return NULL;
	table = (struct rc_placed_memory){ .size = sizeof table, .granule = page / GRANULES, .small = page / 2, .page = page,
					   .unit = page, .window = make_window, .budget = change_budget, .place = place };
	return &table;
}
