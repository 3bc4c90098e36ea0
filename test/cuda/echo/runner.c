/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runner DRIVER CALLS SEED [SECONDS]: calls each forwarded function CALLS times with random arguments, directly in the echo
 * driver and through the client and a worker that has loaded the same driver. Both drivers must record the same arguments,
 * and the two callers must get the same results. The calls come in random order. With SECONDS the program then goes on
 * until the time is over.
 */
#include "test/cuda/echo/runner.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define KEPT 48 /* objects of a kind that the cases draw from */
#define LEAST 4
#define CONTEXTS 4
#define BLOCK_BYTES (1u << 20)
#define BLOCKS 4

enum { DIRECT, REMOTE };

static unsigned failures;
static void *driver;
static CUcontext contexts[CONTEXTS][2];
static uint64_t blocks[BLOCKS], reserved;

struct object {
	struct pair pair;
	uint64_t root; /* of an alias: the direct driver's handle of what it ends with, which is no alias; else 0 */
	bool alias;
	struct pair context; /* that was current when it was made */
};
static struct object *objects[RC_KINDS];
static unsigned n_objects[RC_KINDS];
static struct pair dead[256]; /* objects that were destroyed */
static unsigned n_dead;
static uint64_t numbers[2][KEPT];
static unsigned n_numbers[2];

/* The worker's handles by the direct driver's, whose index is (handle - HANDLES) / 64. */
#define HANDLES 0x100000000000ull
#define HANDLES_MAX (1u << 22)
static uint64_t *worker_handle;

static void fail(const struct run *run, const char *what)
{
	printf("%s, after %s: %s (direct %d, remote %d)%s%s\n", run->current->name, run->before ? run->before->name : "nothing", what, (int)run->result[DIRECT], (int)run->result[REMOTE],
	       run->wrong ? ", with a wrong argument" : "", run->wild ? ", with any numbers" : "");
	if (++failures > 50) {
		printf("too many differences\n");
		exit(1);
	}
}

static void must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: CUresult %d\n", what, (int)result);
	exit(1);
}
#define MUST(call) must(call, #call)
#define IN_DRIVER(name) ((__typeof__(&name))dlsym(driver, #name))

/* ---- drawing ---- */

uint64_t draw(struct run *run)
{
	run->random += 0x9e3779b97f4a7c15ull;
	return echo_mix(run->random);
}

uint64_t draw_below(struct run *run, uint64_t end)
{
	return draw(run) % end;
}

void draw_bytes(struct run *run, void *to, size_t size)
{
	uint8_t *at = to;
	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)draw(run);
}

void draw_text(struct run *run, char *to)
{
	size_t len = draw_below(run, 8) ? draw_below(run, 3) : draw_below(run, TEXT_MAX);
	for (size_t i = 0; i < len; i++)
		to[i] = (char)(1 + draw_below(run, 255));
	to[len] = 0;
}

uint64_t draw_address(struct run *run)
{
	return blocks[draw_below(run, BLOCKS)] + draw_below(run, (BLOCK_BYTES - 65536) / 4) * 4;
}

static uint64_t allocate(uint64_t bytes)
{
	CUdeviceptr direct, remote;
	MUST(IN_DRIVER(cuMemAlloc_v2)(&direct, bytes));
	MUST(cuMemAlloc_v2(&remote, bytes));
	must(direct == remote ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "the same address on both sides");
	return direct;
}

uint64_t draw_allocation(struct run *run)
{
	return allocate(1 + draw_below(run, BLOCK_BYTES));
}

uint64_t draw_reserved(struct run *run)
{
	return reserved + draw_below(run, BLOCK_BYTES - 65536);
}

CUstreamAttrID draw_stream_attribute(struct run *run)
{
	static const CUstreamAttrID known[] = {
		CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, CU_LAUNCH_ATTRIBUTE_PRIORITY,
		CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
	};
	return known[draw_below(run, sizeof known / sizeof known[0])];
}

unsigned draw_event_flags(struct run *run)
{
	unsigned flags = (unsigned)draw_below(run, 4);
	return flags & CU_EVENT_DISABLE_TIMING && draw_below(run, 2) ? flags | CU_EVENT_INTERPROCESS : flags;
}

static const struct object *any_object(struct run *run, enum rc_kind kind, bool own)
{
	for (unsigned i = 0, at = (unsigned)draw(run) % KEPT; i < n_objects[kind]; i++) {
		const struct object *found = &objects[kind][(at + i) % n_objects[kind]];
		if (!own || !found->alias)
			return found;
	}
	printf("%s: no object of kind %d\n", run->current->name, (int)kind);
	exit(1);
}

static struct pair wrong_object(struct run *run, enum rc_kind kind)
{
	uint64_t bits;
	enum rc_kind other = kind == RC_KIND_EVENT ? RC_KIND_ARRAY : RC_KIND_EVENT;
	switch (draw_below(run, 4)) {
	case 0:
		bits = draw(run) | 1ull << 62; /* of no live object */
		return (struct pair){ bits, bits };
	case 1:
		return any_object(run, other, false)->pair;
	case 2:
		if (n_dead)
			return dead[draw_below(run, n_dead)];
		/* fall through */
	default:
		/* NULL is CUDA's own stream, and in some calls the current context. */
		bits = kind == RC_KIND_STREAM ? 3 + draw_below(run, 1000) : kind == RC_KIND_CONTEXT ? 1 : draw_below(run, 2);
		return (struct pair){ bits, bits };
	}
}

struct pair draw_object(struct run *run, enum rc_kind kind, bool own, bool wrong)
{
	if (wrong)
		return wrong_object(run, kind);
	if (kind == RC_KIND_STREAM && !own && !draw_below(run, 3)) {
		uint64_t special = draw_below(run, 3);
		return (struct pair){ special, special };
	}
	/* A kernel is good wherever a function is. */
	if (kind == RC_KIND_FUNCTION && !draw_below(run, 3))
		kind = RC_KIND_KERNEL;
	return any_object(run, kind, own)->pair;
}

struct pair draw_function(struct run *run)
{
	return any_object(run, RC_KIND_FUNCTION, false)->pair;
}

struct pair context_of(struct run *run, struct pair object)
{
	for (int kind = 0; kind < RC_KINDS; kind++)
		for (unsigned i = 0; i < n_objects[kind]; i++)
			if (objects[kind][i].pair.direct == object.direct)
				return objects[kind][i].context;
	return run->context;
}

struct device_pair draw_device(struct run *run, bool wrong)
{
	static const int none[] = { -1, 2, 3, 64, 1 << 30, -1 - 0x7fffffff };
	int i = (int)draw_below(run, ECHO_DEVICES), bad = none[draw_below(run, sizeof none / sizeof none[0])];
	return wrong ? (struct device_pair){ bad, bad } : (struct device_pair){ ECHO_DEVICE(i), i };
}

uint64_t draw_number(struct run *run, enum rc_number kind, bool wrong)
{
	return wrong ? draw(run) : numbers[kind][draw_below(run, n_numbers[kind])];
}

/* ---- objects ---- */

uint64_t translate(const struct run *run, uint64_t direct)
{
	(void)run;
	uint64_t index = (direct - HANDLES) / 64;
	return direct >= HANDLES && index < HANDLES_MAX ? worker_handle[index] : direct;
}

static void same_object(uint64_t direct, uint64_t worker)
{
	uint64_t index = (direct - HANDLES) / 64;
	if (direct < HANDLES || index >= HANDLES_MAX)
		must(CUDA_ERROR_INVALID_HANDLE, "a handle of the direct driver");
	worker_handle[index] = worker;
}

static void object_keep(enum rc_kind kind, struct object object)
{
	if (!objects[kind])
		objects[kind] = calloc(KEPT, sizeof *objects[kind]);
	if (!objects[kind])
		must(CUDA_ERROR_OUT_OF_MEMORY, "calloc");
	/* A full list loses one: the object lives on, unused. */
	unsigned at = n_objects[kind] < KEPT ? n_objects[kind]++ : (unsigned)(object.pair.direct / 64 % KEPT);
	objects[kind][at] = object;
}

static const struct object *object_find(enum rc_kind kind, uint64_t direct)
{
	for (unsigned i = 0; i < n_objects[kind]; i++)
		if (objects[kind][i].pair.direct == direct)
			return &objects[kind][i];
	return NULL;
}

static uint64_t root_of(uint64_t owner)
{
	for (int kind = 0; kind < RC_KINDS; kind++) {
		const struct object *found = object_find(kind, owner);
		if (found && found->root)
			return found->root;
	}
	return owner;
}

void object_made(struct run *run, enum rc_kind kind, uint64_t direct, uint64_t remote, bool alias, uint64_t owner)
{
	if (!run->ok) {
		if (!run->current->async && !run->alone && direct != remote)
			fail(run, "a handle was written although the call failed");
		return;
	}
	const struct object *known = alias ? object_find(kind, direct) : NULL;
	if (known && known->pair.remote != remote)
		fail(run, "another handle of the same object");
	if (known)
		return;
	/* A call that the client answered itself has left nothing in the worker's driver. */
	if (!run->answered)
		same_object(direct, run->control[REMOTE]->made);
	object_keep(kind, (struct object){ { direct, remote }, root_of(owner), alias, run->context });
}

void object_gone(struct run *run, struct pair object)
{
	/* If the client does not wait, the handle has ended whatever the driver says. */
	if (!run->ok && !(run->current->async && !run->wrong))
		return;
	if (run->ok)
		dead[n_dead < 256 ? n_dead++ : draw_below(run, 256)] = object;
	for (int kind = 0; kind < RC_KINDS; kind++)
		for (unsigned i = 0; i < n_objects[kind];) {
			struct object *at = &objects[kind][i];
			if (at->pair.direct == object.direct || at->root == object.direct)
				*at = objects[kind][--n_objects[kind]];
			else
				i++;
		}
}

void number_made(struct run *run, enum rc_number kind, uint64_t number)
{
	if (run->ok)
		numbers[kind][n_numbers[kind] < KEPT ? n_numbers[kind]++ : draw_below(run, KEPT)] = number;
}

void number_gone(struct run *run, enum rc_number kind, uint64_t number)
{
	for (unsigned i = 0; run->ok && i < n_numbers[kind]; i++)
		if (numbers[kind][i] == number)
			numbers[kind][i] = numbers[kind][--n_numbers[kind]];
}

/* ---- comparing ---- */

void compare_bytes(struct run *run, const char *name, const void *direct, const void *remote, size_t size)
{
	char text[160];
	const uint8_t *a = direct, *b = remote;
	if (run->alone)
		return;
	for (size_t i = 0; i < size; i++)
		if (a[i] != b[i]) {
			snprintf(text, sizeof text, "%s differs in byte %zu of %zu: %02x, %02x", name, i, size, a[i], b[i]);
			fail(run, text);
			return;
		}
}

static void compare_piece(struct run *run, const struct echo_piece *piece, const uint8_t *direct, const uint8_t *remote)
{
	static uint64_t copy[ECHO_RECORD_BYTES / 8];
	char name[40];
	snprintf(name, sizeof name, "parameter %u", piece->parameter);
	memcpy(copy, direct, piece->bytes);
	if (piece->kind == ECHO_HANDLE)
		*copy = translate(run, *copy);
	else if (piece->kind == ECHO_STRUCTS)
		translators[piece->type](run, copy);
	compare_bytes(run, name, copy, remote, piece->bytes);
}

/* What the two drivers recorded. The lists of structs are recorded one by one. */
static void compare_records(struct run *run)
{
	const struct echo_control *a = run->control[DIRECT], *b = run->control[REMOTE];
	if (a->calls != 1 || b->calls != 1 || a->bytes != b->bytes || a->bytes > ECHO_RECORD_BYTES) {
		char text[120];
		snprintf(text, sizeof text, "recorded %u and %u times, %u and %u bytes", a->calls, b->calls, a->bytes, b->bytes);
		fail(run, text);
		return;
	}
	if (run->current->in_context && translate(run, a->context) != b->context)
		fail(run, "another context is current in the driver");
	for (uint32_t at = 0; at < a->bytes;) {
		struct echo_piece piece, other;
		memcpy(&piece, a->record + at, sizeof piece);
		memcpy(&other, b->record + at, sizeof other);
		at += (uint32_t)sizeof piece;
		if (memcmp(&piece, &other, sizeof piece)) {
			fail(run, "another list of arguments");
			return;
		}
		compare_piece(run, &piece, a->record + at, b->record + at);
		at += (piece.bytes + 7) & ~7u;
	}
}

/* ---- a case ---- */

static void arm(struct run *run, CUresult result)
{
	uint64_t seed = draw(run);
	for (int side = DIRECT; side <= REMOTE; side++) {
		struct echo_control *control = run->control[side];
		control->seed = seed;
		control->result = (int32_t)result;
		control->calls = control->refused = control->bytes = 0;
		__atomic_store_n(&control->armed, run->current->function + 1, __ATOMIC_RELEASE);
	}
}

static void disarm(struct run *run)
{
	for (int side = DIRECT; side <= REMOTE; side++)
		__atomic_store_n(&run->control[side]->armed, 0, __ATOMIC_RELEASE);
}

void case_begins(struct run *run)
{
	/* None is an error that stays with the context. The last is one of queries only. */
	static const CUresult errors[] = { CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_HANDLE,
					   CUDA_ERROR_NOT_FOUND, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED,
					   CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, CUDA_ERROR_NOT_READY };
	bool fails = !run->wrong && !run->succeeds && !draw_below(run, 8);
	uint64_t n = sizeof errors / sizeof errors[0] - run->current->async;
	arm(run, fails ? errors[draw_below(run, n)] : CUDA_SUCCESS);
}

void case_direct(struct run *run, CUresult result)
{
	run->result[DIRECT] = result;
}

/* Waits until the worker has issued all calls. The first failure of a call that was not waited for. */
static CUresult settle(void)
{
	return cuCtxSynchronize();
}

void case_remote(struct run *run, CUresult result)
{
	const struct echo_control *remote = run->control[REMOTE];
	CUresult later = run->current->async ? settle() : CUDA_SUCCESS;
	run->result[REMOTE] = result == CUDA_SUCCESS ? later : result;
	run->ok = run->result[DIRECT] == CUDA_SUCCESS && run->result[REMOTE] == CUDA_SUCCESS;
	run->answered = !remote->calls;
	disarm(run);
	run->alone = true;
	if (run->wrong) {
		if (run->result[DIRECT] == CUDA_SUCCESS)
			fail(run, "the driver accepts a wrong argument");
		else if (run->result[REMOTE] == CUDA_SUCCESS || remote->calls != remote->refused)
			fail(run, "client or worker accepts a wrong argument");
		return;
	}
	if (run->answered && run->wild && run->result[REMOTE] != CUDA_SUCCESS)
		return; /* the client refuses these numbers; the driver has written results */
	if (run->answered && run->current->alias && run->result[REMOTE] == CUDA_SUCCESS) {
		return;
	}
	run->alone = false;
	if (run->result[DIRECT] != run->result[REMOTE])
		fail(run, "another result");
	compare_records(run);
}

static const struct echo_case *case_named(const char *name)
{
	for (unsigned i = 0; i < echo_n_cases; i++)
		if (!strcmp(echo_cases[i].name, name))
			return &echo_cases[i];
	must(CUDA_ERROR_NOT_FOUND, name);
	return NULL;
}

static void run_case(struct run *run, const struct echo_case *one)
{
	run->before = run->current;
	run->current = one;
	one->run(run);
}

/* Objects of a kind that the program may destroy. */
static unsigned own_objects(enum rc_kind kind)
{
	unsigned n = 0;
	for (unsigned i = 0; i < n_objects[kind]; i++)
		n += !objects[kind][i].alias;
	return n;
}

/* Makes objects of each kind until there are enough to draw from. */
static void fill(struct run *run)
{
	bool wrong = run->wrong, wild = run->wild;
	run->wrong = run->wild = false;
	run->succeeds = true;
	for (unsigned i = 0; i < echo_n_cases; i++) {
		const struct echo_case *one = &echo_cases[i];
		int tries = 0;
		while (one->makes && own_objects(one->makes) < LEAST && tries++ < 100)
			run_case(run, one);
		while (one->numbers && n_numbers[one->numbers - 1] < LEAST && tries++ < 100)
			run_case(run, one);
	}
	run->wrong = wrong;
	run->wild = wild;
	run->succeeds = false;
}

void run_other(struct run *run, const char *name)
{
	const struct echo_case *current = run->current;
	bool wrong = run->wrong, wild = run->wild;
	run->wrong = run->wild = false;
	run->succeeds = true;
	run->current = case_named(name);
	run->current->run(run);
	run->succeeds = false;
	run->current = current;
	run->wrong = wrong;
	run->wild = wild;
}

void object_same(struct run *run, struct pair made)
{
	same_object(made.direct, run->control[REMOTE]->made);
}

static void enter(struct run *run, const CUcontext *context)
{
	MUST(IN_DRIVER(cuCtxSetCurrent)(context[DIRECT]));
	MUST(cuCtxSetCurrent(context[REMOTE]));
	run->context = (struct pair){ (uint64_t)(uintptr_t)context[DIRECT], (uint64_t)(uintptr_t)context[REMOTE] };
}

struct pair stream_with(struct run *run, struct pair object)
{
	struct pair context = context_of(run, object);
	unsigned n = n_objects[RC_KIND_STREAM], at = (unsigned)draw(run) % KEPT;
	uint64_t special = draw_below(run, 3);
	for (unsigned i = 0; i < n && draw_below(run, 3); i++) {
		const struct object *stream = &objects[RC_KIND_STREAM][(at + i) % n];
		if (!context.direct || stream->context.direct == context.direct)
			return stream->pair;
	}
	for (int i = 0; i < CONTEXTS; i++)
		if ((uint64_t)(uintptr_t)contexts[i][DIRECT] == context.direct)
			enter(run, contexts[i]);
	return (struct pair){ special, special };
}

struct pair draw_event(struct run *run, int device, bool any)
{
	for (;;) {
		for (unsigned i = 0; i < n_objects[RC_KIND_EVENT]; i++) {
			const struct object *event = &objects[RC_KIND_EVENT][i];
			if (any || event->context.direct == (uint64_t)(uintptr_t)contexts[device][DIRECT])
				return event->pair;
		}
		enter(run, contexts[device]);
		run_other(run, "cuEventCreate");
	}
}

/* One call. Of eight, one has a wrong argument and one has any numbers. */
static void step(struct run *run, const struct echo_case *one)
{
	if (!draw_below(run, 32))
		enter(run, contexts[draw_below(run, CONTEXTS)]);
	uint64_t kind = draw_below(run, 8);
	run->wrong = kind == 0 && one->breakable;
	run->wild = kind == 1;
	fill(run);
	run_case(run, one);
}

/* ---- the two sides ---- */

static void open_direct(struct run *run, const char *path)
{
	driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!driver) {
		printf("%s\n", dlerror());
		exit(1);
	}
#define DIRECT_FUNCTION(name) \
	if (!(run->direct.name = IN_DRIVER(name))) \
		must(CUDA_ERROR_NOT_FOUND, #name);
	ECHO_FUNCTIONS(DIRECT_FUNCTION)
	run->control[DIRECT] = calloc(1, sizeof *run->control[DIRECT]);
	worker_handle = calloc(HANDLES_MAX, sizeof *worker_handle);
	void (*use)(struct echo_control *, uint64_t) = (void (*)(struct echo_control *, uint64_t))dlsym(driver, "echo_use");
	if (!run->control[DIRECT] || !worker_handle || !use)
		must(CUDA_ERROR_OUT_OF_MEMORY, "echo_use");
	use(run->control[DIRECT], HANDLES);
	MUST(IN_DRIVER(cuInit)(0));
}

static void open_remote(struct run *run)
{
	int file = open(getenv("HEADRACE_TEST_ECHO"), O_RDWR);
	run->control[REMOTE] = mmap(NULL, sizeof *run->control[REMOTE], PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (file < 0 || run->control[REMOTE] == MAP_FAILED)
		must(CUDA_ERROR_FILE_NOT_FOUND, "HEADRACE_TEST_ECHO");
	close(file);
	MUST(cuInit(0));
}

/* Makes the process known whose driver records: other workers have it loaded too. */
static void find_worker(struct run *run)
{
	run->current = case_named("cuCtxGetLimit");
	size_t value;
	arm(run, CUDA_SUCCESS);
	MUST(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	must(run->control[REMOTE]->worker ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, "the worker's driver is the echo driver");
	disarm(run);
}

/* The handle that the worker's driver gave last. */
static uint64_t made(const struct run *run)
{
	MUST(settle());
	return run->control[REMOTE]->made;
}

/* Contexts: the primary ones, whose handles in the worker are the first two, and others. */
static void make_contexts(struct run *run)
{
	uint64_t first = 0;
	for (int i = 0; i < CONTEXTS; i++) {
		int device = i % ECHO_DEVICES;
		if (i < ECHO_DEVICES) {
			MUST(IN_DRIVER(cuDevicePrimaryCtxRetain)(&contexts[i][DIRECT], ECHO_DEVICE(device)));
			MUST(cuDevicePrimaryCtxRetain(&contexts[i][REMOTE], device));
			MUST(cuCtxSetCurrent(contexts[i][REMOTE]));
			find_worker(run);
		} else {
			MUST(IN_DRIVER(cuCtxCreate_v4)(&contexts[i][DIRECT], NULL, 0, ECHO_DEVICE(device)));
			MUST(cuCtxCreate_v4(&contexts[i][REMOTE], NULL, 0, device));
		}
		uint64_t direct = (uint64_t)(uintptr_t)contexts[i][DIRECT];
		if (i == ECHO_DEVICES)
			first = made(run);
		if (i >= ECHO_DEVICES)
			same_object(direct, made(run));
		object_keep(RC_KIND_CONTEXT, (struct object){ { direct, (uint64_t)(uintptr_t)contexts[i][REMOTE] }, 0, false, { 0, 0 } });
	}
	/* No case asked for the primary contexts' handles: they are the first that the worker's driver gave. */
	for (int i = 0; i < ECHO_DEVICES; i++)
		same_object((uint64_t)(uintptr_t)contexts[i][DIRECT], (first & ~0xffffffffull) + 64ull * (unsigned)i);
}

static void make_memory(void)
{
	CUdeviceptr direct, remote;
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = allocate(BLOCK_BYTES);
	MUST(IN_DRIVER(cuMemAddressReserve)(&direct, BLOCK_BYTES, 0, 0, 0));
	MUST(cuMemAddressReserve(&remote, BLOCK_BYTES, 0, 0, 0));
	must(direct == remote ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "the same reservation on both sides");
	reserved = direct;
}

static const char image[] = ".version 8.0\n.target sm_75\n.address_size 64\n";

/* Makes the functions or kernels of a module or library known. The drivers' handles follow those of their owners. */
static void keep_kernels(enum rc_kind kind, struct pair owner, uint64_t worker, struct pair context)
{
	for (unsigned i = 0; i < 3; i++) {
		char name[16];
		CUfunction function;
		CUkernel kernel;
		struct pair pair;
		snprintf(name, sizeof name, "kernel_%u", i);
		if (kind == RC_KIND_FUNCTION) {
			MUST(cuModuleGetFunction(&function, (CUmodule)(uintptr_t)owner.remote, name));
			pair = (struct pair){ owner.direct + 64ull * (1 + i), (uint64_t)(uintptr_t)function };
			same_object(pair.direct, worker + 64ull * (1 + i));
		} else {
			MUST(cuLibraryGetKernel(&kernel, (CUlibrary)(uintptr_t)owner.remote, name));
			pair = (struct pair){ owner.direct + 64ull * (2 + 2 * i), (uint64_t)(uintptr_t)kernel };
			same_object(pair.direct, worker + 64ull * (2 + 2 * i));
			same_object(pair.direct - 64, worker + 64ull * (1 + 2 * i));
		}
		object_keep(kind, (struct object){ pair, 0, false, context });
	}
}

static void make_modules(const struct run *run)
{
	for (int i = 0; i < 3; i++) {
		CUmodule direct, remote;
		MUST(IN_DRIVER(cuModuleLoadDataEx)(&direct, image, 0, NULL, NULL));
		MUST(cuModuleLoadData(&remote, image));
		struct pair pair = { (uint64_t)(uintptr_t)direct, (uint64_t)(uintptr_t)remote };
		same_object(pair.direct, made(run));
		object_keep(RC_KIND_MODULE, (struct object){ pair, 0, false, { 0, 0 } });
		keep_kernels(RC_KIND_FUNCTION, pair, made(run), run->context);
	}
	CUlibrary direct, remote;
	MUST(IN_DRIVER(cuLibraryLoadData)(&direct, image, NULL, NULL, 0, NULL, NULL, 0));
	MUST(cuLibraryLoadData(&remote, image, NULL, NULL, 0, NULL, NULL, 0));
	struct pair pair = { (uint64_t)(uintptr_t)direct, (uint64_t)(uintptr_t)remote };
	same_object(pair.direct, made(run));
	keep_kernels(RC_KIND_KERNEL, pair, made(run), (struct pair){ 0, 0 });
}

/* Surface references come from modules only. */
static void make_references(struct run *run)
{
	run->succeeds = true;
	run_case(run, case_named("cuModuleGetSurfRef"));
	run->succeeds = false;
}

/* ---- all cases in random order ---- */

static void shuffle(struct run *run, unsigned *order, unsigned n)
{
	for (unsigned i = n; i > 1; i--) {
		unsigned other = (unsigned)draw_below(run, i), kept = order[i - 1];
		order[i - 1] = order[other];
		order[other] = kept;
	}
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
	static struct run run;
	if (argc < 4 || !getenv("HEADRACE_TEST_ECHO")) {
		printf("usage: HEADRACE_TEST_ECHO=FILE %s DRIVER CALLS SEED [SECONDS]\n", argv[0]);
		return 2;
	}
	unsigned long calls = strtoul(argv[2], NULL, 10), done = 0, rounds = 0;
	double end = argc > 4 ? now() + atof(argv[4]) : 0;
	run.random = strtoull(argv[3], NULL, 0);
	unsigned *order = calloc(echo_n_cases, sizeof *order);
	open_direct(&run, argv[1]);
	open_remote(&run);
	make_contexts(&run);
	enter(&run, contexts[CONTEXTS - 1]);
	make_memory();
	make_modules(&run);
	make_references(&run);
	for (unsigned i = 0; order && i < echo_n_cases; i++)
		order[i] = i;
	for (; order && (rounds < calls || now() < end); rounds++) {
		shuffle(&run, order, echo_n_cases);
		for (unsigned i = 0; i < echo_n_cases; i++, done++)
			step(&run, &echo_cases[order[i]]);
	}
	printf("%u functions, %lu calls of each, %lu in all, seed %s: %u differences\n", echo_n_cases, rounds, done, argv[3], failures);
	free(order);
	return failures != 0;
}
