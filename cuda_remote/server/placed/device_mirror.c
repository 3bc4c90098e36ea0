/* SPDX-License-Identifier: BSD-3-Clause */
/* Mirrors in memory that only the device reads and writes: see device_mirror.h. */
#include "cuda_remote/server/placed/device_mirror.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE RC_MIRROR_PAGE
#define LANES 32u                    /* threads that hash a page; each has a hash of its own */
#define ROW (LANES * sizeof(uint64_t)) /* bytes of the hashes of a page */
#define SEED UINT64_C(0x9e3779b97f4a7c15)
#define FACTOR UINT64_C(0xff51afd7ed558ccd) /* odd, so that each step is a bijection of the hash and of the word */

/*
 * hash: four warps of a block hash a page each. Lane l reads the words l, l + 32, ... of the page. store: stores the hashes,
 * else compares them, and sets the flag of a page where one differs.
 * merge: each block stores the bytes of a piece (struct piece) that differ from the old ones.
 */
static const char hash_and_merge[] =
	".address_size 64\n"
	".visible .entry hash(.param .u64 memory, .param .u64 rows, .param .u64 flags, .param .u32 pages, .param .u32 store)\n{\n"
	".reg .pred %p;\n.reg .u32 %x, %page, %i, %n;\n.reg .u64 %a, %r, %f, %h, %w, %t;\n"
	"ld.param.u64 %a, [memory];\nld.param.u64 %r, [rows];\nld.param.u64 %f, [flags];\nld.param.u32 %n, [pages];\n"
	"mov.u32 %x, %tid.x;\nmov.u32 %page, %ctaid.x;\nshl.b32 %page, %page, 2;\nshr.u32 %i, %x, 5;\n"
	"add.u32 %page, %page, %i;\nand.b32 %x, %x, 31;\n"
	"setp.ge.u32 %p, %page, %n;\n@%p bra done;\n"
	"mul.wide.u32 %t, %page, 4096;\nadd.u64 %a, %a, %t;\nmul.wide.u32 %t, %page, 256;\nadd.u64 %r, %r, %t;\n"
	"mul.wide.u32 %t, %x, 8;\nadd.u64 %a, %a, %t;\nadd.u64 %r, %r, %t;\n"
	"cvt.u64.u32 %t, %page;\nadd.u64 %f, %f, %t;\n"
	"mov.u64 %h, 0x9e3779b97f4a7c15;\nmov.u32 %i, 16;\n"
	"again:\nld.global.u64 %w, [%a];\nxor.b64 %h, %h, %w;\nmul.lo.u64 %h, %h, 0xff51afd7ed558ccd;\n"
	"shr.u64 %t, %h, 32;\nxor.b64 %h, %h, %t;\n"
	"add.u64 %a, %a, 256;\nsub.u32 %i, %i, 1;\nsetp.ne.u32 %p, %i, 0;\n@%p bra again;\n"
	"ld.param.u32 %n, [store];\nsetp.eq.u32 %p, %n, 0;\n@%p bra compare;\n"
	"st.global.u64 [%r], %h;\nbra done;\n"
	"compare:\nld.global.u64 %w, [%r];\nsetp.eq.u64 %p, %w, %h;\n@%p bra done;\n"
	"mov.u32 %n, 1;\nst.global.u8 [%f], %n;\n"
	"done:\nret;\n}\n"
	".visible .entry merge(.param .u64 pieces)\n{\n"
	".reg .pred %p, %all;\n.reg .u32 %i, %n, %b, %c;\n.reg .u64 %a, %to, %fresh, %old, %t, %u;\n"
	"ld.param.u64 %a, [pieces];\nmov.u32 %i, %ctaid.x;\nmul.wide.u32 %t, %i, 32;\nadd.u64 %a, %a, %t;\n"
	"ld.global.u64 %to, [%a];\nld.global.u64 %fresh, [%a+8];\nld.global.u64 %old, [%a+16];\nld.global.u32 %n, [%a+24];\n"
	"setp.eq.u64 %all, %old, 0;\nmov.u32 %i, %tid.x;\n"
	"again:\nsetp.ge.u32 %p, %i, %n;\n@%p bra done;\ncvt.u64.u32 %t, %i;\n"
	"add.u64 %u, %fresh, %t;\nld.global.u8 %b, [%u];\n@%all bra put;\n"
	"add.u64 %u, %old, %t;\nld.global.u8 %c, [%u];\nsetp.eq.u32 %p, %b, %c;\n@%p bra next;\n"
	"put:\nadd.u64 %u, %to, %t;\nst.global.u8 [%u], %b;\n"
	"next:\nadd.u32 %i, %i, 128;\nbra again;\n"
	"done:\nret;\n}\n";

#define THREADS 128u
#define PIECES 1024u
#define PIECE_MOST 4096u
#define STAGING_BYTES (512u << 10)

/* What the kernel `merge` reads: n bytes that are stored where they differ from the old ones. old 0: all of them. */
struct piece {
	uint64_t to, fresh, old;
	uint32_t n, reserved;
};

/* Device memory for hashes. It is used again, and not freed before its context ends: NVIDIA's cuMemFree waits for the device,
 * and may block other threads' calls meanwhile, one of which a kernel may be waiting for. */
struct rows {
	struct rows *next; /* in the list of those that no mirror uses */
	CUdeviceptr address;
	size_t bytes;
};

#define ROWS_LEAST 4096u /* bytes */

/* The kernels of a context, and the way to it. */
struct device_mirror_engine {
	struct device_mirror_engine *next;
	CUcontext context;
	CUfunction hash, merge;
	CUstream stream;
	CUdeviceptr staging; /* pieces, and then their bytes */
	struct rows *spare;
	struct rows *flags; /* of the pages of all mirrors, one after the other; NULL: there was no scan yet */
	uint8_t *found;     /* the flags of the last scan; those that were collected are 0 */
	size_t pages;       /* of that scan */
};

struct device_mirror {
	struct device_mirror_engine *engine;
	uint32_t pages;
	struct rows *rows;
	bool scanned;  /* by the engine's last scan */
	size_t at;     /* of the first flag */
	uint8_t *copy; /* changed pages, each at its offset */
};

static struct device_mirror_engine *engines;

/* Pieces that are not stored yet, of one engine. */
static struct {
	struct device_mirror_engine *engine;
	unsigned n;
	size_t used; /* bytes behind the pieces */
	uint8_t memory[PIECES * sizeof(struct piece) + STAGING_BYTES];
	const struct mirror *mirror; /* whose pages from..until-1 need new hashes; NULL: none */
	uint64_t from, until;
} pending;

/* ---- kernels ---- */

/* Drivers that no longer compile for the older architecture compile for the newer one. */
static CUresult load(CUmodule *module)
{
	static const char *const targets[] = { "sm_52", "sm_75" };
	char text[sizeof hash_and_merge + 64];
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < sizeof targets / sizeof targets[0] && result != CUDA_SUCCESS; i++) {
		snprintf(text, sizeof text, ".version 6.3\n.target %s\n%s", targets[i], hash_and_merge);
		result = driver.cuModuleLoadDataEx(module, text, 0, NULL, NULL);
	}
	return result;
}

/* Everything ends with the context. */
static CUresult open_engine(struct device_mirror_engine *engine)
{
	CUmodule module;
	int least = 0, greatest = 0;
	if (!driver.cuModuleLoadDataEx || !driver.cuModuleGetFunction || !driver.cuLaunchKernel || !driver.cuMemsetD8Async ||
	    !driver.cuMemAlloc_v2 || !driver.cuStreamCreateWithPriority || !driver.cuStreamSynchronize)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = load(&module);
	if (result == CUDA_SUCCESS)
		result = driver.cuModuleGetFunction(&engine->hash, module, "hash");
	if (result == CUDA_SUCCESS)
		result = driver.cuModuleGetFunction(&engine->merge, module, "merge");
	if (result == CUDA_SUCCESS)
		result = driver.cuMemAlloc_v2(&engine->staging, sizeof pending.memory);
	if (driver.cuCtxGetStreamPriorityRange)
		(void)driver.cuCtxGetStreamPriorityRange(&least, &greatest);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamCreateWithPriority(&engine->stream, CU_STREAM_NON_BLOCKING, greatest);
	return result;
}

/* NULL: the context has none. */
static struct device_mirror_engine *engine_of(CUcontext context)
{
	struct device_mirror_engine *engine = engines;
	while (engine && engine->context != context)
		engine = engine->next;
	return engine;
}

bool device_mirror_is_ready(CUcontext context)
{
	return engine_of(context);
}

CUresult device_mirror_load(CUcontext context, struct device_mirror_engine **loaded)
{
	struct device_mirror_engine *engine = calloc(1, sizeof *engine);
	if (!engine)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = open_engine(engine);
	if (result != CUDA_SUCCESS) {
		hr_log_once(HR_LOG_ERROR, "managed memory: the kernels that find changed pages cannot be loaded: %s",
			    server_error_name(result));
		free(engine);
		return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_ERROR_NOT_SUPPORTED;
	}
	engine->context = context;
	*loaded = engine;
	return CUDA_SUCCESS;
}

void device_mirror_use(struct device_mirror_engine *loaded)
{
	if (engine_of(loaded->context)) { /* another thread has loaded one meanwhile */
		free(loaded);
		return;
	}
	loaded->next = engines;
	engines = loaded;
}

/* ---- memory for hashes ---- */

/* Frees what no mirror uses, as the device has no other memory. */
static void free_spare(struct device_mirror_engine *engine)
{
	for (struct rows *gone; (gone = engine->spare);) {
		engine->spare = gone->next;
		(void)driver.cuMemFree_v2(gone->address);
		free(gone);
	}
}

static CUresult rows_new(struct device_mirror_engine *engine, size_t bytes, struct rows **found)
{
	bytes = bytes < ROWS_LEAST ? ROWS_LEAST : bytes;
	for (struct rows **at = &engine->spare; *at; at = &(*at)->next)
		if ((*at)->bytes >= bytes && (*at)->bytes <= 2 * bytes) {
			*found = *at;
			*at = (*at)->next;
			return CUDA_SUCCESS;
		}
	struct rows *rows = calloc(1, sizeof *rows);
	if (!rows)
		return CUDA_ERROR_OUT_OF_MEMORY;
	rows->bytes = bytes;
	CUresult result = driver.cuMemAlloc_v2(&rows->address, bytes);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && engine->spare) {
		free_spare(engine);
		result = driver.cuMemAlloc_v2(&rows->address, bytes);
	}
	if (result == CUDA_SUCCESS)
		*found = rows;
	else
		free(rows);
	return result;
}

static void rows_free(struct device_mirror_engine *engine, struct rows *rows)
{
	if (!rows)
		return;
	rows->next = engine->spare;
	engine->spare = rows;
}

static CUresult launch_hash(const struct mirror *mirror, uint32_t store)
{
	struct device_mirror *device = mirror->device;
	CUdeviceptr memory = mirror->address, rows = device->rows->address;
	CUdeviceptr flags = store ? 0 : device->engine->flags->address + device->at;
	void *parameters[] = { &memory, &rows, &flags, &device->pages, &store };
	unsigned blocks = (device->pages + THREADS / LANES - 1) / (THREADS / LANES);
	return driver.cuLaunchKernel(device->engine->hash, blocks, 1, 1, THREADS, 1, 1, 0, device->engine->stream, parameters,
				     NULL);
}

/* The same hashes, of a page of the twin. */
static void hash_page(const uint8_t *page, uint8_t *row)
{
	for (unsigned lane = 0; lane < LANES; lane++) {
		uint64_t hash = SEED, word;
		for (unsigned i = 0; i < PAGE / ROW; i++) {
			memcpy(&word, page + i * ROW + lane * sizeof word, sizeof word);
			hash = (hash ^ word) * FACTOR;
			hash ^= hash >> 32;
		}
		memcpy(row + lane * sizeof hash, &hash, sizeof hash);
	}
}

/* ---- begin and end ---- */

static CUresult prepare(const struct mirror *mirror)
{
	struct device_mirror *device = mirror->device;
	CUresult result = rows_new(device->engine, device->pages * ROW, &device->rows);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver.cuMemsetD8Async(mirror->address, 0, (size_t)device->pages * PAGE, device->engine->stream);
	if (result == CUDA_SUCCESS)
		result = launch_hash(mirror, 1);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamSynchronize(device->engine->stream);
	return result;
}

CUresult device_mirror_new(const struct mirror *mirror, struct device_mirror **made)
{
	uint64_t pages = (mirror->size + PAGE - 1) / PAGE;
	struct device_mirror_engine *engine = engine_of(mirror->owner);
	if (!engine)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	struct device_mirror *device = pages <= INT32_MAX ? calloc(1, sizeof *device) : NULL;
	if (!device)
		return CUDA_ERROR_OUT_OF_MEMORY;
	device->engine = engine;
	device->pages = (uint32_t)pages;
	device->copy = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CUresult result = device->copy != MAP_FAILED ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		struct mirror with = *mirror;
		with.device = device;
		result = prepare(&with);
	}
	if (result == CUDA_SUCCESS)
		*made = device;
	else
		device_mirror_free(device);
	return result;
}

void device_mirror_free(struct device_mirror *device)
{
	if (!device)
		return;
	rows_free(device->engine, device->rows);
	if (device->copy != MAP_FAILED)
		munmap(device->copy, (size_t)device->pages * PAGE);
	free(device);
}

static void engine_free(struct device_mirror_engine *engine)
{
	rows_free(engine, engine->flags);
	for (struct rows *gone; (gone = engine->spare);) {
		engine->spare = gone->next;
		free(gone);
	}
	free(engine->found);
	free(engine);
}

void device_mirrors_forget(CUcontext context)
{
	for (struct device_mirror_engine **at = &engines, *gone; (gone = *at);) {
		if (gone->context != context) {
			at = &gone->next;
			continue;
		}
		*at = gone->next;
		engine_free(gone);
	}
}

/* ---- storing ---- */

/* Room in the staging area for a piece of n bytes, twice. */
static bool has_room(size_t n)
{
	return pending.n < PIECES && STAGING_BYTES - pending.used >= 2 * n;
}

static CUresult send_pieces(void)
{
	struct device_mirror_engine *engine = pending.engine;
	size_t bytes = PIECES * sizeof(struct piece) + pending.used;
	if (!pending.n)
		return CUDA_SUCCESS;
	void *parameters[] = { &engine->staging };
	CUresult result = driver.cuMemcpyHtoDAsync_v2(engine->staging, pending.memory, bytes, engine->stream);
	if (result == CUDA_SUCCESS)
		result = driver.cuLaunchKernel(engine->merge, pending.n, 1, 1, THREADS, 1, 1, 0, engine->stream, parameters, NULL);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamSynchronize(engine->stream);
	pending.n = 0;
	pending.used = 0;
	return result;
}

/* Takes n <= PIECE_MOST bytes into the staging area. old: NULL, if all are to be stored. */
static CUresult add_piece(CUdeviceptr to, const uint8_t *fresh, const uint8_t *old, size_t n)
{
	CUresult result = has_room(n) ? CUDA_SUCCESS : send_pieces();
	size_t head = PIECES * sizeof(struct piece);
	CUdeviceptr at = pending.engine->staging + head + pending.used;
	struct piece piece = { .to = to, .fresh = at, .old = old ? at + n : 0, .n = (uint32_t)n };
	memcpy(pending.memory + pending.n++ * sizeof piece, &piece, sizeof piece);
	memcpy(pending.memory + head + pending.used, fresh, n);
	pending.used += n;
	if (old) {
		memcpy(pending.memory + head + pending.used, old, n);
		pending.used += n;
	}
	return result;
}

/* New hashes for the pages first..until-1 of the twin. */
static CUresult add_rows(const struct mirror *mirror, uint64_t first, uint64_t until)
{
	uint8_t rows[PIECE_MOST];
	CUresult result = CUDA_SUCCESS;
	while (first < until && result == CUDA_SUCCESS) {
		uint64_t n = until - first < PIECE_MOST / ROW ? until - first : PIECE_MOST / ROW;
		for (uint64_t i = 0; i < n; i++)
			hash_page(mirror->twin + (first + i) * PAGE, rows + i * ROW);
		result = add_piece(mirror->device->rows->address + first * ROW, rows, NULL, n * ROW);
		first += n;
	}
	return result;
}

/* The pages need new hashes. A page that the last record has also changed gets them once: pieces are not ordered. */
static CUresult need_rows(const struct mirror *mirror, uint64_t first, uint64_t until)
{
	CUresult result = CUDA_SUCCESS;
	if (pending.mirror == mirror && first < pending.until && first >= pending.from) {
		result = add_rows(mirror, pending.from, first);
		until = until > pending.until ? until : pending.until;
	} else if (pending.mirror) {
		result = add_rows(pending.mirror, pending.from, pending.until);
		/* Records that do not ascend could give a page new hashes twice. */
		if (result == CUDA_SUCCESS && (pending.mirror != mirror || first < pending.from))
			result = send_pieces();
	}
	pending.mirror = mirror;
	pending.from = first;
	pending.until = until;
	return result;
}

CUresult device_mirror_flush(void)
{
	CUresult result = CUDA_SUCCESS;
	if (pending.mirror)
		result = add_rows(pending.mirror, pending.from, pending.until);
	pending.mirror = NULL;
	if (pending.engine && result == CUDA_SUCCESS)
		result = send_pieces();
	pending.n = 0;
	pending.used = 0;
	pending.engine = NULL;
	return result;
}

/* The pieces of another engine are stored first. */
static CUresult use(const struct mirror *mirror)
{
	CUresult result = CUDA_SUCCESS;
	if (pending.engine == mirror->device->engine)
		return CUDA_SUCCESS;
	if (pending.engine)
		result = device_mirror_flush();
	if (result == CUDA_SUCCESS)
		result = driver.cuCtxSetCurrent(mirror->owner);
	if (result == CUDA_SUCCESS)
		pending.engine = mirror->device->engine;
	return result;
}

CUresult device_mirror_store(const struct mirror *mirror, const struct rc_wire_change *record, const uint8_t *bytes)
{
	uint64_t offset = record->address - mirror->address, n = record->bytes;
	if (record->address < mirror->address || offset >= mirror->size || n > mirror->size - offset)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = use(mirror);
	if (result == CUDA_SUCCESS)
		result = need_rows(mirror, offset / PAGE, (offset + n - 1) / PAGE + 1);
	for (uint64_t done = 0; done < n && result == CUDA_SUCCESS;) {
		size_t part = n - done < PIECE_MOST ? n - done : PIECE_MOST;
		uint8_t *twin = mirror->twin + offset + done;
		if (memcmp(twin, bytes + done, part)) {
			result = add_piece(record->address + done, bytes + done, twin, part);
			memcpy(twin, bytes + done, part);
		}
		done += part;
	}
	return result;
}

/* ---- collecting ---- */

/* Makes room for the flags of all pages. */
static CUresult flags_room(struct device_mirror_engine *engine)
{
	if (engine->flags && engine->flags->bytes >= engine->pages)
		return CUDA_SUCCESS;
	rows_free(engine, engine->flags);
	engine->flags = NULL;
	CUresult result = rows_new(engine, engine->pages, &engine->flags);
	if (result != CUDA_SUCCESS)
		return result;
	uint8_t *found = realloc(engine->found, engine->flags->bytes);
	if (found) {
		engine->found = found;
		return CUDA_SUCCESS;
	}
	rows_free(engine, engine->flags);
	engine->flags = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Begins to look at all mirrors of an engine. */
static CUresult scan_begin(struct device_mirror_engine *engine, const struct mirror_table *table)
{
	engine->pages = 0;
	for (size_t i = 0; i < table->n; i++) {
		struct device_mirror *device = table->list[i].device;
		if (!device || device->engine != engine)
			continue;
		device->at = engine->pages;
		device->scanned = true;
		engine->pages += device->pages;
	}
	if (!engine->pages)
		return CUDA_SUCCESS;
	CUresult result = driver.cuCtxSetCurrent(engine->context);
	if (result == CUDA_SUCCESS)
		result = flags_room(engine);
	if (result == CUDA_SUCCESS)
		result = driver.cuMemsetD8Async(engine->flags->address, 0, engine->pages, engine->stream);
	for (size_t i = 0; i < table->n && result == CUDA_SUCCESS; i++)
		if (table->list[i].device && table->list[i].device->engine == engine)
			result = launch_hash(&table->list[i], 0);
	return result;
}

static CUresult scan_end(struct device_mirror_engine *engine)
{
	if (!engine->pages)
		return CUDA_SUCCESS;
	CUresult result = driver.cuCtxSetCurrent(engine->context);
	if (result == CUDA_SUCCESS)
		result = driver.cuMemcpyDtoHAsync_v2(engine->found, engine->flags->address, engine->pages, engine->stream);
	return result == CUDA_SUCCESS ? driver.cuStreamSynchronize(engine->stream) : result;
}

CUresult device_mirrors_scan(const struct mirror_table *table)
{
	CUresult result = CUDA_SUCCESS;
	for (struct device_mirror_engine *engine = engines; engine && result == CUDA_SUCCESS; engine = engine->next)
		result = scan_begin(engine, table);
	for (struct device_mirror_engine *engine = engines; engine && result == CUDA_SUCCESS; engine = engine->next)
		result = scan_end(engine);
	if (result != CUDA_SUCCESS) /* no flags are known */
		for (size_t i = 0; i < table->n; i++)
			if (table->list[i].device)
				table->list[i].device->scanned = false;
	return result;
}

/* Collects the changed pages first..first+count-1, for which there is room. */
static CUresult collect_run(const struct mirror *mirror, uint32_t first, uint32_t count, struct mirror_changes *changes)
{
	struct device_mirror *device = mirror->device;
	uint64_t from = (uint64_t)first * PAGE, until = from + (uint64_t)count * PAGE;
	struct mirror copy = *mirror;
	copy.copy = device->copy;
	CUresult result = driver.cuMemcpyDtoHAsync_v2(device->copy + from, mirror->address + from, until - from,
						      device->engine->stream);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamSynchronize(device->engine->stream);
	if (result != CUDA_SUCCESS)
		return result;
	mirror_compare(&copy, from, until < mirror->size ? until : mirror->size, changes);
	memset(device->engine->found + device->at + first, 0, count);
	madvise(device->copy + from, until - from, MADV_DONTNEED);
	return need_rows(mirror, first, first + count);
}

CUresult device_mirror_collect(const struct mirror *mirror, uint64_t from, struct mirror_changes *changes, uint64_t *stop)
{
	const size_t most = PAGE + sizeof(struct rc_wire_change);
	struct device_mirror *device = mirror->device;
	uint8_t *found = device->scanned ? device->engine->found + device->at : NULL;
	*stop = mirror->size;
	if (!found || !memchr(found, 1, device->pages))
		return CUDA_SUCCESS;
	CUresult result = use(mirror);
	for (uint32_t page = (uint32_t)(from / PAGE); page < device->pages && result == CUDA_SUCCESS;) {
		size_t room = (changes->room - changes->used) / most;
		const uint8_t *next = memchr(found + page, 1, device->pages - page);
		if (!next)
			break;
		page = (uint32_t)(next - found);
		if (!room) {
			*stop = (uint64_t)page * PAGE;
			return CUDA_SUCCESS;
		}
		uint32_t count = 1;
		while (count < room && page + count < device->pages && found[page + count])
			count++;
		result = collect_run(mirror, page, count, changes);
		page += count;
	}
	return result;
}
