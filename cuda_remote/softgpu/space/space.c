/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allocator of the software GPU's address space. It has two levels: pages of 2 MiB, and blocks, which are pages
 * divided into granules of 512 bytes. An allocation of up to 1 MiB is a run of granules in one block, a larger
 * allocation is a run of whole pages. Both levels allocate first fit from the low end, so that the used part of the
 * range stays compact.
 *
 * Pages are numbered by their addresses, from address 0 on. Beside the range that is reserved at start there are windows
 * (windows.c): there the caller chooses the address of each allocation.
 *
 * Lookup takes no lock. The entry of a page is 0 (free), a pointer to a record, or a pointer to a block with bit 0 set;
 * the block's table points to the record of each granule. Entries are stored with release and loaded with acquire: a
 * reader that sees the entry sees the record's fields. Records and blocks are recycled and never returned to malloc. So
 * a reader of an address that is being freed at the same time reads old or new fields, but no freed memory. The fields
 * that it checks are read atomically.
 */
#include "config.h"

#include "cuda_remote/softgpu/space/space.h"

#include "cuda_remote/softgpu/memory_map.h"
#include "cuda_remote/bitmap.h"
#include "cuda_remote/softgpu/space/registered.h"
#include "cuda_remote/softgpu/space/shared.h"
#include "cuda_remote/softgpu/space/windows.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

HR_SETTING(bounds_setting, "HEADRACE_SOFTGPU_BOUNDS", "exact", 0, 0,
	   "exact: a kernel may access the software GPU's allocations only; page: the 2 MiB pages that hold them, as on a GPU");

HR_SETTING(base_setting, "HEADRACE_SOFTGPU_BASE", "32768G", 4096, UINT64_C(1) << 47,
	   "where the software GPU's range of addresses begins, if that is free; a worker of headraced draws its own");

#define PAGE_SHIFT 21
#define PAGE_BYTES (UINT64_C(1) << PAGE_SHIFT)
#define TABLE_PAGES ((size_t)1 << (47 - PAGE_SHIFT)) /* of all addresses that a program can have */
#define BLOCK_GRANULES (PAGE_BYTES / SOFTGPU_GRANULE)
#define SMALL_LIMIT (PAGE_BYTES / 2)
#define COMMIT_STEP (UINT64_C(64) << 20)
/* Reserved address space costs nothing, but a thread sanitizer leaves little of it to the program. */
#ifdef HR_SANITIZED
#define RANGE_BYTES (UINT64_C(16) << 30)
#define RANGE_SPARE 0
#else
#define RANGE_BYTES (UINT64_C(256) << 30)
#define RANGE_SPARE 4 /* minimum size of the range, as a multiple of the memory of all devices and the host */
#endif

typedef struct record {
	softgpu_allocation_t allocation;
	struct record *next_free;
	struct record *previous, *next; /* in the list of all live records */
	uint64_t pages_at, pages_bytes; /* softgpu_space_map: the mapped pages; else pages_bytes is 0 */
	int file;                       /* descriptor of a large shared allocation, plus 1; 0: not shared */
	window_t *window;               /* that the allocation counts in; NULL: it counts in its device's memory */
} record_t;

typedef struct block {
	record_t *owner_of[BLOCK_GRANULES];
	uint64_t taken[BLOCK_GRANULES / 64];
	uint32_t free;         /* number of free granules */
	uint32_t largest;      /* upper bound of the longest free run, granules */
	size_t page;
	int file;              /* descriptor of a shared block, plus 1; 0: not shared */
	struct block *previous, *next; /* in the list of blocks with room; next also in the list of recycled blocks */
	bool listed;
	bool host;             /* contains memory that the host writes outside of commands: never moved into a file */
} block_t;

static struct {
	pthread_mutex_t lock;     /* protects all fields; lookups read page_entry and the records without it */
	uint64_t base, size;      /* constant after open */
	uint64_t committed;       /* bytes from base that are readable and writable */
	uintptr_t *page_entry;    /* TABLE_PAGES entries: see the top of the file. Only the used part has memory. */
	uint64_t *page_taken;     /* a bit for each page of the range */
	size_t pages;             /* of the range */
	block_t *roomy, *spare_block;
	block_t *placed; /* the blocks of windows: a leak checker does not find them by the table */
	record_t *spare_record, live;
	unsigned empty_blocks;
	uint64_t next_id;
	uint64_t total, used[SOFTGPU_MAX_DEVICES];
	uint64_t host_used, host_limit;
	unsigned devices;
	bool page_bounds;         /* constant after open: kernels may access whole pages */
	uint64_t generation;
} space = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread int module_device;
static __thread const void *module_owner;

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

/*
 * Reserves *size bytes of address space, at base if that is free (the address is a hint), else anywhere. If that
 * fails, tries half the size, and so on, and changes *size.
 */
static void *reserve(uint64_t base, uint64_t *size)
{
	for (; *size >= PAGE_BYTES * 2; *size /= 2) {
		void *at =
			mmap((void *)(uintptr_t)base, *size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at != MAP_FAILED)
			return at;
	}
	return NULL;
}

static bool wants_page_bounds(void)
{
	const char *bounds = hr_setting_text(&bounds_setting);
	if (strcmp(bounds, "exact") && strcmp(bounds, "page"))
		hr_log(HR_LOG_ERROR, "softgpu: HEADRACE_SOFTGPU_BOUNDS=%s is neither exact nor page: using exact", bounds);
	return !strcmp(bounds, "page");
}

int softgpu_space_open(unsigned devices, uint64_t memory)
{
	uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t size = RANGE_BYTES;
	while (size < RANGE_SPARE * (memory * devices + physical))
		size *= 2;
	uint64_t base;
	if (hr_setting_u64(&base_setting, &base))
		return -EINVAL;
	char *at = reserve(base, &size);
	if (!at) {
		hr_log(HR_LOG_ERROR, "software GPU: no address space to reserve: errno %d", errno);
		return -ENOMEM;
	}
	space.base = round_up((uint64_t)(uintptr_t)at, PAGE_BYTES);
	space.size = ((uint64_t)(uintptr_t)at + size - space.base) & ~(PAGE_BYTES - 1);
	space.pages = space.size >> PAGE_SHIFT;
	void *table = mmap(NULL, TABLE_PAGES * sizeof *space.page_entry, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	space.page_taken = calloc((space.pages + 63) / 64, sizeof *space.page_taken);
	if (table == MAP_FAILED || !space.page_taken) {
		if (table != MAP_FAILED)
			munmap(table, TABLE_PAGES * sizeof *space.page_entry);
		free(space.page_taken);
		munmap(at, size);
		return -ENOMEM;
	}
	space.page_entry = table;
	space.live.next = space.live.previous = &space.live;
	space.total = memory;
	space.devices = devices;
	space.host_limit = physical;
	space.page_bounds = wants_page_bounds();
	return 0;
}

/* Makes the range readable and writable up to end, in large steps. So the used part of the range is one mapping of the
 * process, whatever the number of allocations. */
static int commit(uint64_t end)
{
	if (end <= space.committed)
		return 0;
	end = round_up(end, COMMIT_STEP);
	if (end > space.size)
		end = space.size;
	if (mprotect((void *)(uintptr_t)(space.base + space.committed), end - space.committed, PROT_READ | PROT_WRITE))
		return -ENOMEM;
	space.committed = end;
	return 0;
}

/* Returns the page number of the range's start. */
static size_t pages_before(void)
{
	return (size_t)(space.base >> PAGE_SHIFT);
}

static int take_pages(size_t count, size_t align, size_t *first)
{
	size_t at = bitmap_find_run(space.page_taken, space.pages, pages_before(), count, align);
	if (at == BITMAP_NONE || commit((uint64_t)(at + count) << PAGE_SHIFT))
		return -ENOMEM;
	bitmap_fill(space.page_taken, at, count, true);
	*first = pages_before() + at;
	return 0;
}

static uint64_t page_address(size_t page)
{
	return (uint64_t)page << PAGE_SHIFT;
}

/* Returns whether address lies in the range that was reserved at start. */
static bool in_range(uint64_t address)
{
	return address - space.base < space.size;
}

static void give_pages(size_t first, size_t count)
{
	if (in_range(page_address(first)))
		bitmap_fill(space.page_taken, first - pages_before(), count, false);
	madvise((void *)(uintptr_t)page_address(first), (uint64_t)count << PAGE_SHIFT, MADV_DONTNEED);
}

/* Replaces the mapping of a file by anonymous memory. */
static void unmap_file(uint64_t at, uint64_t bytes)
{
	/* If mmap fails, the file stays mapped, and the next allocation here uses the file's memory. */
	if (mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
		 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		hr_log_once(HR_LOG_ERROR, "software GPU: shared memory could not be unmapped: errno %d", errno);
}

static void drop_file(int *file, uint64_t at, uint64_t bytes)
{
	if (!*file)
		return;
	close(*file - 1);
	*file = 0;
	unmap_file(at, bytes);
}

static void publish_page(size_t page, uintptr_t entry)
{
	/* Orders the record's or block's fields before the entry; pairs with the acquire in find_record. */
	__atomic_store_n(&space.page_entry[page], entry, __ATOMIC_RELEASE);
}

static void push_block(block_t **first, block_t *block)
{
	block->next = *first;
	block->previous = NULL;
	if (*first)
		(*first)->previous = block;
	*first = block;
}

static void remove_block(block_t **first, block_t *block)
{
	if (block->next)
		block->next->previous = block->previous;
	if (block->previous)
		block->previous->next = block->next;
	else
		*first = block->next;
}

static void list_block(block_t *block)
{
	push_block(&space.roomy, block);
	block->listed = true;
}

static void unlist_block(block_t *block)
{
	remove_block(&space.roomy, block);
	block->listed = false;
}

static block_t *take_block(void)
{
	block_t *block = space.spare_block;
	if (block)
		space.spare_block = block->next;
	else if (!(block = calloc(1, sizeof *block)))
		return NULL;
	block->free = block->largest = BLOCK_GRANULES;
	return block;
}

static void give_block(block_t *block)
{
	block->next = space.spare_block;
	space.spare_block = block;
}

static block_t *new_block(void)
{
	block_t *block = take_block();
	if (block && take_pages(1, 1, &block->page)) {
		give_block(block);
		return NULL;
	}
	if (!block)
		return NULL;
	list_block(block);
	space.empty_blocks++;
	publish_page(block->page, (uintptr_t)block | 1);
	return block;
}

/* Relaxed, as in new_record. */
static void set_base(record_t *record, uint64_t base)
{
	__atomic_store_n(&record->allocation.base, base, __ATOMIC_RELAXED);
}

/* Returns whether the host writes memory of this kind outside of commands: pinned and managed memory at any time, a
 * module's variables while it loads the module. */
static bool host_writes(enum softgpu_space_kind kind)
{
	return kind == SOFTGPU_SPACE_HOST || kind == SOFTGPU_SPACE_MANAGED || kind == SOFTGPU_SPACE_MODULE;
}

static uint32_t granules_of(const record_t *record)
{
	return (uint32_t)(round_up(record->allocation.size, SOFTGPU_GRANULE) / SOFTGPU_GRANULE);
}

/* Gives the free granules from at on to the record. */
static void fill_block(block_t *block, size_t at, record_t *record)
{
	uint32_t count = granules_of(record);
	bitmap_fill(block->taken, at, count, true);
	block->free -= count;
	set_base(record, page_address(block->page) + at * SOFTGPU_GRANULE);
	/* Orders the record's fields before the entry, as publish_page does; pairs with the acquire in find_record. */
	for (size_t i = at; i < at + count; i++)
		__atomic_store_n(&block->owner_of[i], record, __ATOMIC_RELEASE);
}

static int alloc_small(record_t *record, uint64_t align)
{
	bool host = host_writes(record->allocation.kind);
	uint32_t count = granules_of(record);
	size_t at = BITMAP_NONE;
	block_t *block;
	for (block = space.roomy; block; block = block->next) {
		if (block->largest < count || (block->host != host && block->free < BLOCK_GRANULES))
			continue;
		at = bitmap_find_run(block->taken, BLOCK_GRANULES, 0, count, align / SOFTGPU_GRANULE);
		if (at != BITMAP_NONE)
			break;
		if (align == SOFTGPU_GRANULE)
			block->largest = count - 1;
	}
	if (!block) {
		block = new_block();
		if (!block)
			return -ENOMEM;
		at = 0;
	}
	if (block->free == BLOCK_GRANULES)
		space.empty_blocks--;
	block->host = host;
	fill_block(block, at, record);
	if (!block->free)
		unlist_block(block);
	return 0;
}

static void free_small(record_t *record, block_t *block)
{
	size_t at = (record->allocation.base - page_address(block->page)) / SOFTGPU_GRANULE;
	uint32_t count = granules_of(record);
	for (size_t i = at; i < at + count; i++)
		__atomic_store_n(&block->owner_of[i], NULL, __ATOMIC_RELAXED);
	bitmap_fill(block->taken, at, count, false);
	if (!block->listed && !record->window)
		list_block(block);
	block->free += count;
	block->largest = block->free;
	if (block->free < BLOCK_GRANULES)
		return;
	/*
	 * Keep one empty block of the range and one of each window, so that a program that allocates and frees one
	 * buffer in a loop makes no system call. Do not keep a block that is shared with other processes.
	 */
	unsigned *empty_blocks = record->window ? &record->window->empty_blocks : &space.empty_blocks;
	if (!*empty_blocks && !block->file) {
		++*empty_blocks;
		return;
	}
	publish_page(block->page, 0);
	if (record->window)
		remove_block(&space.placed, block);
	else if (block->listed)
		unlist_block(block);
	drop_file(&block->file, page_address(block->page), PAGE_BYTES);
	give_pages(block->page, 1);
	give_block(block);
}

static void fill_pages(size_t first, size_t count, record_t *record)
{
	set_base(record, page_address(first));
	madvise((void *)(uintptr_t)record->allocation.base, (uint64_t)count << PAGE_SHIFT, MADV_HUGEPAGE);
	for (size_t i = first; i < first + count; i++)
		publish_page(i, (uintptr_t)record);
}

static int alloc_large(record_t *record, uint64_t align)
{
	size_t first, count = (size_t)(round_up(record->allocation.size, PAGE_BYTES) >> PAGE_SHIFT);
	if (take_pages(count, align > PAGE_BYTES ? (size_t)(align >> PAGE_SHIFT) : 1, &first))
		return -ENOMEM;
	fill_pages(first, count, record);
	return 0;
}

static void free_large(record_t *record)
{
	size_t first = (size_t)(record->allocation.base >> PAGE_SHIFT);
	size_t count = (size_t)(round_up(record->allocation.size, PAGE_BYTES) >> PAGE_SHIFT);
	for (size_t i = first; i < first + count; i++)
		publish_page(i, 0);
	drop_file(&record->file, record->allocation.base, (uint64_t)count << PAGE_SHIFT);
	give_pages(first, count);
}

static uint64_t *meter(const softgpu_allocation_t *allocation, uint64_t *limit)
{
	bool host = allocation->kind == SOFTGPU_SPACE_HOST;
	*limit = host ? space.host_limit : space.total;
	return host ? &space.host_used : &space.used[allocation->device];
}

/* Returns whether the memory of a mapped allocation counts in this process: a pool's memory in the process that created
 * it. */
static bool maps_own_memory(const softgpu_allocation_t *allocation)
{
	return allocation->kind == SOFTGPU_SPACE_DEVICE && !allocation->imported;
}

static record_t *new_record(const softgpu_allocation_t *want)
{
	record_t *record = space.spare_record;
	if (record)
		space.spare_record = record->next_free;
	else if (!(record = calloc(1, sizeof *record)))
		return NULL;
	/* Relaxed: a reader of a freed address may read base and size at the same time (see the top of the file). For
	 * all other readers, the entry orders the fields. */
	__atomic_store_n(&record->allocation.size, 0, __ATOMIC_RELAXED);
	record->allocation.kind = want->kind;
	record->allocation.device = want->device;
	record->allocation.flags = want->flags;
	__atomic_store_n(&record->allocation.read_only, want->read_only, __ATOMIC_RELAXED);
	__atomic_store_n(&record->allocation.hidden, want->hidden, __ATOMIC_RELAXED);
	record->allocation.sync_memops = want->sync_memops;
	record->allocation.imported = want->imported;
	record->allocation.freeing = false;
	record->pages_bytes = 0;
	record->file = 0;
	record->window = NULL;
	record->allocation.owner = want->owner;
	record->allocation.pool = want->pool;
	record->allocation.id = ++space.next_id;
	__atomic_store_n(&record->allocation.size, want->size, __ATOMIC_RELAXED);
	return record;
}

static void list_live(record_t *record)
{
	record->next = space.live.next;
	record->previous = &space.live;
	record->next->previous = space.live.next = record;
}

static void spare_record(record_t *record)
{
	record->next_free = space.spare_record;
	space.spare_record = record;
}

static int alloc_locked(softgpu_allocation_t *want, uint64_t align)
{
	uint64_t limit, bytes = round_up(want->size, SOFTGPU_GRANULE);
	uint64_t *used = meter(want, &limit);
	if (want->size > limit || bytes > limit - *used)
		return -ENOMEM;
	record_t *record = new_record(want);
	if (!record)
		return -ENOMEM;
	bool small = bytes <= SMALL_LIMIT && align <= SMALL_LIMIT;
	if (small ? alloc_small(record, align) : alloc_large(record, align)) {
		spare_record(record);
		return -ENOMEM;
	}
	*used += bytes;
	list_live(record);
	want->base = record->allocation.base;
	want->id = record->allocation.id;
	return 0;
}

int softgpu_space_alloc(softgpu_allocation_t *want, uint64_t align)
{
	pthread_mutex_lock(&space.lock);
	int error = alloc_locked(want, align < SOFTGPU_GRANULE ? SOFTGPU_GRANULE : align);
	pthread_mutex_unlock(&space.lock);
	return error;
}

/* ---- allocations at an address that the caller chooses ---- */

int softgpu_space_window(int device, uint64_t base, uint64_t size)
{
	if (base % PAGE_BYTES || size % PAGE_BYTES || !size || base >> PAGE_SHIFT >= TABLE_PAGES ||
	    size >> PAGE_SHIFT > TABLE_PAGES - (base >> PAGE_SHIFT))
		return -EINVAL;
	pthread_mutex_lock(&space.lock);
	int error = windows_add(device, base, size);
	pthread_mutex_unlock(&space.lock);
	return error;
}

int softgpu_space_budget(int device, uint64_t more, uint64_t less)
{
	pthread_mutex_lock(&space.lock);
	window_t *window = windows_of(device);
	int error = window ? 0 : -EINVAL;
	if (!error && less > window->budget - window->used)
		error = -EINVAL;
	if (!error && more > space.total - space.used[device])
		error = -ENOMEM;
	if (!error) {
		window->budget += more - less;
		space.used[device] += more - less;
	}
	pthread_mutex_unlock(&space.lock);
	return error;
}

/* Gives free granules of one page of the window to the record. */
static int place_small(record_t *record, uint64_t base)
{
	size_t page = (size_t)(base >> PAGE_SHIFT), at = (base & (PAGE_BYTES - 1)) / SOFTGPU_GRANULE;
	uint32_t count = granules_of(record);
	uintptr_t entry = space.page_entry[page];
	if ((entry && !(entry & 1)) || count > BLOCK_GRANULES - at)
		return -EEXIST;
	block_t *block = (block_t *)(entry & ~(uintptr_t)1);
	if (!block) {
		block = take_block();
		if (!block)
			return -ENOMEM;
		block->page = page;
		block->host = false;
		push_block(&space.placed, block);
	} else if (bitmap_next(block->taken, at + count, at, true) != at + count) {
		return -EEXIST;
	} else if (block->free == BLOCK_GRANULES) {
		record->window->empty_blocks--;
	}
	fill_block(block, at, record);
	if (!entry)
		publish_page(page, (uintptr_t)block | 1);
	return 0;
}

/* Gives free pages of the window to the record. */
static int place_large(record_t *record, uint64_t base)
{
	size_t first = (size_t)(base >> PAGE_SHIFT);
	size_t count = (size_t)(round_up(record->allocation.size, PAGE_BYTES) >> PAGE_SHIFT);
	for (size_t i = first; i < first + count; i++) {
		block_t *block = (block_t *)(space.page_entry[i] & ~(uintptr_t)1);
		if (!space.page_entry[i])
			continue;
		if (!(space.page_entry[i] & 1) || block->free < BLOCK_GRANULES)
			return -EEXIST;
		/* The empty block that free_small has kept. */
		publish_page(i, 0);
		record->window->empty_blocks--;
		remove_block(&space.placed, block);
		give_block(block);
	}
	fill_pages(first, count, record);
	return 0;
}

static int place_locked(softgpu_allocation_t *want)
{
	window_t *window = windows_find(want->base);
	bool large = want->size > SMALL_LIMIT;
	uint64_t bytes = round_up(want->size, SOFTGPU_GRANULE), room = round_up(want->size, large ? PAGE_BYTES : SOFTGPU_GRANULE);
	if (!window || want->base % (large ? PAGE_BYTES : SOFTGPU_GRANULE) || window->device != want->device ||
	    want->size > window->size || room > window->base + window->size - want->base)
		return -EINVAL;
	if (bytes > window->budget - window->used || windows_commit(window, want->base + room))
		return -ENOMEM;
	record_t *record = new_record(want);
	if (!record)
		return -ENOMEM;
	record->window = window;
	int error = large ? place_large(record, want->base) : place_small(record, want->base);
	if (error) {
		spare_record(record);
		return error;
	}
	window->used += bytes;
	list_live(record);
	want->id = record->allocation.id;
	return 0;
}

int softgpu_space_place(softgpu_allocation_t *want)
{
	pthread_mutex_lock(&space.lock);
	int error = place_locked(want);
	pthread_mutex_unlock(&space.lock);
	return error;
}

static record_t *find_record(uint64_t address, block_t **in)
{
	if (address >> PAGE_SHIFT >= TABLE_PAGES)
		return NULL;
	/* Pairs with publish_page. */
	uintptr_t entry = __atomic_load_n(&space.page_entry[address >> PAGE_SHIFT], __ATOMIC_ACQUIRE);
	if (!(entry & 1))
		return (record_t *)entry;
	block_t *block = (block_t *)(entry & ~(uintptr_t)1);
	if (in)
		*in = block;
	return __atomic_load_n(&block->owner_of[(address & (PAGE_BYTES - 1)) / SOFTGPU_GRANULE], __ATOMIC_ACQUIRE);
}

/* Removes a mapping. The addresses of a SOFTGPU_SPACE_DEVICE allocation become free, all others stay reserved. */
static void take_mapping_away(record_t *record)
{
	size_t first = (size_t)(record->pages_at >> PAGE_SHIFT);
	for (size_t i = 0; i < record->pages_bytes >> PAGE_SHIFT; i++)
		publish_page(first + i, 0);
	unmap_file(record->pages_at, record->pages_bytes);
	if (record->allocation.kind == SOFTGPU_SPACE_DEVICE)
		give_pages(first, (size_t)(record->pages_bytes >> PAGE_SHIFT));
}

static void free_record(record_t *record, block_t *block)
{
	uint64_t limit;
	if (record->window)
		record->window->used -= round_up(record->allocation.size, SOFTGPU_GRANULE);
	else if (!record->pages_bytes || maps_own_memory(&record->allocation))
		*meter(&record->allocation, &limit) -= round_up(record->allocation.size, SOFTGPU_GRANULE);
	record->next->previous = record->previous;
	record->previous->next = record->next;
	if (record->pages_bytes)
		take_mapping_away(record);
	else if (block)
		free_small(record, block);
	else
		free_large(record);
	/*
	 * Change the generation after the entries are cleared, so that a reader that sees the new generation does not
	 * find the allocation; and before the lock is released and the memory can be allocated again. Pairs with the
	 * acquire in softgpu_memory_generation.
	 */
	__atomic_add_fetch(&space.generation, 1, __ATOMIC_RELEASE);
	spare_record(record);
}

int softgpu_space_free(uint64_t base)
{
	pthread_mutex_lock(&space.lock);
	block_t *block = NULL;
	record_t *record = find_record(base, &block);
	bool found = record && record->allocation.base == base;
	if (found)
		free_record(record, block);
	pthread_mutex_unlock(&space.lock);
	return found ? 0 : -EINVAL;
}

int softgpu_space_charge(int device, uint64_t bytes)
{
	pthread_mutex_lock(&space.lock);
	bool fits = bytes <= space.total && space.used[device] <= space.total - bytes;
	if (fits)
		space.used[device] += bytes;
	pthread_mutex_unlock(&space.lock);
	return fits ? 0 : -ENOMEM;
}

void softgpu_space_discharge(int device, uint64_t bytes)
{
	pthread_mutex_lock(&space.lock);
	space.used[device] -= bytes;
	pthread_mutex_unlock(&space.lock);
}

/* Takes count pages at address hint. Returns false if hint is 0 or invalid, or if the pages are not free. */
static bool take_hinted(uint64_t hint, size_t count, size_t align, size_t *first)
{
	uint64_t offset = hint - space.base;
	size_t at = (size_t)(offset >> PAGE_SHIFT);
	if (!hint || offset >= space.size || (offset & (PAGE_BYTES - 1)) || (pages_before() + at) % align ||
	    count > space.pages - at ||
	    bitmap_next(space.page_taken, at + count, at, true) != at + count ||
	    commit((uint64_t)(at + count) << PAGE_SHIFT))
		return false;
	bitmap_fill(space.page_taken, at, count, true);
	*first = pages_before() + at;
	return true;
}

/* Addresses that the range does not hold. */
static bool reserve_outside(uint64_t hint, uint64_t size, uint64_t align)
{
	return hint && hint % PAGE_BYTES == 0 && (align < 2 || hint % align == 0) && hint >> PAGE_SHIFT < TABLE_PAGES &&
	       size >> PAGE_SHIFT <= TABLE_PAGES - (hint >> PAGE_SHIFT) &&
	       (hint >= space.base + space.size || hint + size <= space.base) && windows_reserve(hint, size);
}

int softgpu_space_reserve(uint64_t size, uint64_t align, uint64_t hint, uint64_t *base)
{
	size_t first, count = (size_t)(size >> PAGE_SHIFT);
	size_t page_align = align > PAGE_BYTES ? (size_t)(align >> PAGE_SHIFT) : 1;
	int error = 0;
	pthread_mutex_lock(&space.lock);
	if (reserve_outside(hint, size, align))
		first = (size_t)(hint >> PAGE_SHIFT);
	else if (!take_hinted(hint, count, page_align, &first))
		error = take_pages(count, page_align, &first);
	if (!error)
		*base = page_address(first);
	pthread_mutex_unlock(&space.lock);
	return error;
}

void softgpu_space_unreserve(uint64_t base, uint64_t size)
{
	pthread_mutex_lock(&space.lock);
	if (!windows_unreserve(base, size))
		give_pages((size_t)(base >> PAGE_SHIFT), (size_t)(size >> PAGE_SHIFT));
	pthread_mutex_unlock(&space.lock);
}

int softgpu_space_map(softgpu_allocation_t *want, uint64_t at, int file, uint64_t offset)
{
	uint64_t bytes = round_up(want->base + want->size - at, PAGE_BYTES);
	pthread_mutex_lock(&space.lock);
	uint64_t limit, *used = maps_own_memory(want) ? meter(want, &limit) : NULL;
	record_t *record = used && (bytes > limit || *used > limit - bytes) ? NULL : new_record(want);
	if (!record || mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, file,
			    (off_t)offset) == MAP_FAILED) {
		if (record)
			spare_record(record);
		pthread_mutex_unlock(&space.lock);
		return -ENOMEM;
	}
	if (used)
		*used += round_up(want->size, SOFTGPU_GRANULE);
	set_base(record, want->base);
	record->pages_at = at;
	record->pages_bytes = bytes;
	list_live(record);
	for (size_t i = 0, first = (size_t)(at >> PAGE_SHIFT); i < bytes >> PAGE_SHIFT; i++)
		publish_page(first + i, (uintptr_t)record);
	want->id = record->allocation.id;
	pthread_mutex_unlock(&space.lock);
	return 0;
}

/* Returns the record of the allocation that starts at base, or NULL. Called with the lock held. */
static record_t *starts_at(uint64_t base)
{
	record_t *record = find_record(base, NULL);
	return record && record->allocation.base == base ? record : NULL;
}

bool softgpu_space_set_access(uint64_t base, bool hidden, bool read_only)
{
	pthread_mutex_lock(&space.lock);
	record_t *record = starts_at(base);
	if (record) {
		__atomic_store_n(&record->allocation.hidden, hidden, __ATOMIC_RELAXED);
		__atomic_store_n(&record->allocation.read_only, read_only, __ATOMIC_RELAXED);
		/* Invalidates cached results of lookups; pairs with the acquire in softgpu_memory_generation. */
		__atomic_add_fetch(&space.generation, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&space.lock);
	return record;
}

bool softgpu_space_set_sync(uint64_t base, bool sync_memops)
{
	pthread_mutex_lock(&space.lock);
	record_t *record = starts_at(base);
	if (record)
		record->allocation.sync_memops = sync_memops;
	pthread_mutex_unlock(&space.lock);
	return record;
}

bool softgpu_space_set_freeing(uint64_t base)
{
	pthread_mutex_lock(&space.lock);
	record_t *record = starts_at(base);
	bool first = record && !record->allocation.freeing;
	if (first)
		record->allocation.freeing = true;
	pthread_mutex_unlock(&space.lock);
	return first;
}

/* Moves the bytes at an address into a new file and maps the file at the same address. */
static int move_into_file(uint64_t at, uint64_t bytes, int *file)
{
	int made = softgpu_shared_file("ipc", 0, bytes);
	if (made < 0)
		return made;
	void *there = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
	if (there == MAP_FAILED) {
		close(made);
		return -ENOMEM;
	}
	memcpy(there, (const void *)(uintptr_t)at, bytes);
	munmap(there, bytes);
	if (mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, made, 0) == MAP_FAILED) {
		close(made);
		return -ENOMEM;
	}
	*file = made + 1;
	return 0;
}

int softgpu_space_share(uint64_t address, int *file, uint64_t *start, uint64_t *bytes)
{
	int error = 0, *known = NULL;
	pthread_mutex_lock(&space.lock);
	block_t *block = NULL;
	record_t *record = find_record(address, &block);
	if (!record || record->pages_bytes || record->allocation.kind != SOFTGPU_SPACE_DEVICE) {
		error = -EINVAL;
	} else if (block) {
		known = &block->file;
		*start = page_address(block->page);
		*bytes = PAGE_BYTES;
	} else {
		known = &record->file;
		*start = record->allocation.base;
		*bytes = round_up(record->allocation.size, PAGE_BYTES);
	}
	if (!error && !*known)
		error = move_into_file(*start, *bytes, known);
	if (!error)
		*file = *known - 1;
	pthread_mutex_unlock(&space.lock);
	return error;
}

void softgpu_space_free_owned(const void *owner, void (*freed)(const softgpu_allocation_t *allocation))
{
	pthread_mutex_lock(&space.lock);
	for (record_t *next, *record = space.live.next; record != &space.live; record = next) {
		next = record->next;
		if (record->allocation.owner != owner)
			continue;
		block_t *block = NULL;
		find_record(record->allocation.base, &block);
		freed(&record->allocation);
		free_record(record, block);
	}
	pthread_mutex_unlock(&space.lock);
	softgpu_registered_remove_owned(owner);
	__atomic_add_fetch(&space.generation, 1, __ATOMIC_RELEASE);
}

int softgpu_space_register(const softgpu_allocation_t *range)
{
	if ((range->base < space.base + space.size && range->base + range->size > space.base) ||
	    windows_overlap(range->base, range->size))
		return -EINVAL;
	softgpu_allocation_t copy = *range;
	pthread_mutex_lock(&space.lock);
	copy.id = ++space.next_id;
	pthread_mutex_unlock(&space.lock);
	copy.kind = SOFTGPU_SPACE_REGISTERED;
	return softgpu_registered_add(&copy);
}

int softgpu_space_unregister(uint64_t base)
{
	int error = softgpu_registered_remove(base);
	__atomic_add_fetch(&space.generation, 1, __ATOMIC_RELEASE);
	return error;
}

int softgpu_space_keep(uint64_t base, bool given)
{
	return softgpu_registered_keep(base, given);
}

void softgpu_space_verify_registered(void)
{
	/* Invalidates cached results of lookups; pairs with the acquire in softgpu_memory_generation. */
	if (softgpu_registered_verify())
		__atomic_add_fetch(&space.generation, 1, __ATOMIC_RELEASE);
}

void softgpu_space_verify_registered_at(uint64_t address)
{
	if (softgpu_registered_verify_at(address))
		__atomic_add_fetch(&space.generation, 1, __ATOMIC_RELEASE);
}

bool softgpu_space_find(uint64_t address, softgpu_allocation_t *found)
{
	if (!softgpu_space_holds(address))
		return softgpu_registered_find(address, found);
	pthread_mutex_lock(&space.lock);
	record_t *record = find_record(address, NULL);
	bool inside = record && record->allocation.kind != SOFTGPU_SPACE_HEAP &&
		      address - record->allocation.base < record->allocation.size;
	if (inside)
		*found = record->allocation;
	pthread_mutex_unlock(&space.lock);
	return inside;
}

bool softgpu_space_load_registered(uint64_t address, unsigned bytes, uint64_t *value)
{
	softgpu_space_verify_registered_at(address);
	return softgpu_registered_load(address, bytes, value);
}

bool softgpu_space_store_registered(uint64_t address, unsigned bytes, uint64_t value)
{
	softgpu_space_verify_registered_at(address);
	return softgpu_registered_store(address, bytes, value);
}

bool softgpu_space_holds(uint64_t address)
{
	return in_range(address) || windows_find(address);
}

void softgpu_space_usage(int device, uint64_t *free_bytes, uint64_t *total)
{
	pthread_mutex_lock(&space.lock);
	*free_bytes = space.total - space.used[device];
	*total = space.total;
	pthread_mutex_unlock(&space.lock);
}

void softgpu_space_module_owner(int device, const void *owner)
{
	module_device = device;
	module_owner = owner;
}

/* Stores the bounds of the allocation. Returns whether it contains address and is not hidden. */
static bool exact_span(const record_t *record, uint64_t address, softgpu_span_t *span)
{
	if (!record)
		return false;
	span->base = __atomic_load_n(&record->allocation.base, __ATOMIC_RELAXED);
	span->size = __atomic_load_n(&record->allocation.size, __ATOMIC_RELAXED);
	span->read_only = __atomic_load_n(&record->allocation.read_only, __ATOMIC_RELAXED);
	return address - span->base < span->size && !__atomic_load_n(&record->allocation.hidden, __ATOMIC_RELAXED);
}

/* HEADRACE_SOFTGPU_BOUNDS=page: stores the bounds of the whole pages around address. Returns false if no allocation
 * lies in them. Hidden and read-only memory keeps its exact bounds. */
static bool page_span(const record_t *record, uint64_t address, softgpu_span_t *span)
{
	bool exact = exact_span(record, address, span);
	if (exact && span->read_only)
		return true;
	/* Pairs with publish_page. */
	uintptr_t entry = __atomic_load_n(&space.page_entry[address >> PAGE_SHIFT], __ATOMIC_ACQUIRE);
	if (!entry || (record && (__atomic_load_n(&record->allocation.hidden, __ATOMIC_RELAXED) ||
				  __atomic_load_n(&record->allocation.read_only, __ATOMIC_RELAXED))))
		return false;
	uint64_t start = address, end = address + 1;
	/* All pages of a large allocation are one span, so that few look-ups find it. */
	if (!(entry & 1) && exact) {
		start = span->base;
		end = span->base + span->size;
	}
	span->base = start & ~(PAGE_BYTES - 1);
	span->size = round_up(end, PAGE_BYTES) - span->base;
	return true;
}

bool softgpu_memory_find(uint64_t address, softgpu_span_t *span)
{
	if (!softgpu_space_holds(address)) {
		softgpu_allocation_t found;
		if (!softgpu_registered_find(address, &found))
			return false;
		*span = (softgpu_span_t){ found.base, found.size, found.read_only };
		return true;
	}
	const record_t *record = find_record(address, NULL);
	return space.page_bounds ? page_span(record, address, span) : exact_span(record, address, span);
}

bool softgpu_memory_bounds_exact(void)
{
	return !space.page_bounds;
}

uint64_t softgpu_memory_generation(void)
{
	return __atomic_load_n(&space.generation, __ATOMIC_ACQUIRE);
}

uint64_t softgpu_memory_alloc(uint64_t size, uint64_t align)
{
	softgpu_allocation_t want = { .size = size, .kind = SOFTGPU_SPACE_MODULE, .device = module_device,
				      .owner = module_owner };
	if (!size || softgpu_space_alloc(&want, align))
		return 0;
	/* Large allocations are zero already: their pages come fresh from the operating system. */
	if (round_up(size, SOFTGPU_GRANULE) <= SMALL_LIMIT)
		memset((void *)(uintptr_t)want.base, 0, size);
	return want.base;
}

void softgpu_memory_free(uint64_t base)
{
	softgpu_space_free(base);
}

uint64_t softgpu_heap_alloc(softgpu_heap_t *heap, uint64_t size)
{
	if (!heap)
		return 0;
	if (!softgpu_heap_begun(heap))
		__atomic_store_n(&heap->begun, true, __ATOMIC_RELAXED);
	if (!size || size > UINT64_MAX - 16)
		return 0;
	/* Relaxed: the counters order no other memory. Freed memory is allocated again under the lock of the space. */
	uint64_t limit = __atomic_load_n(&heap->limit, __ATOMIC_RELAXED), bytes = round_up(size, 16);
	uint64_t used = __atomic_load_n(&heap->used, __ATOMIC_RELAXED);
	do {
		if (used > limit || bytes > limit - used)
			return 0;
	} while (!__atomic_compare_exchange_n(&heap->used, &used, used + bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	softgpu_allocation_t want = { .size = size, .kind = SOFTGPU_SPACE_HEAP, .device = heap->device,
				      .owner = heap->owner };
	if (!softgpu_space_alloc(&want, 16))
		return want.base;
	__atomic_sub_fetch(&heap->used, bytes, __ATOMIC_RELAXED);
	return 0;
}

bool softgpu_heap_free(softgpu_heap_t *heap, uint64_t base)
{
	uint64_t bytes = 0;
	pthread_mutex_lock(&space.lock);
	block_t *block = NULL;
	record_t *record = find_record(base, &block);
	if (record && record->allocation.base == base && record->allocation.kind == SOFTGPU_SPACE_HEAP &&
	    heap && record->allocation.owner == heap->owner) {
		bytes = round_up(record->allocation.size, 16);
		free_record(record, block);
	}
	pthread_mutex_unlock(&space.lock);
	if (bytes)
		__atomic_sub_fetch(&heap->used, bytes, __ATOMIC_RELAXED);
	return bytes;
}
