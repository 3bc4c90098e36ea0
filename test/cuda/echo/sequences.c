/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sequences DRIVER CLIENT ROUNDS SEED: makes the same calls directly in a driver, and through the client and a worker that has
 * loaded the same driver. These are the calls whose arguments cannot be compared one by one, as they reach the worker in another
 * form: contexts, graphs, images, shared memory, functions of the host. All results, all outputs and the memory that the calls
 * change must be equal. Each function of ECHO_COVERED must succeed once at least, on both sides.
 */
#include "test/cuda/echo/sequences.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTES 4096

struct note {
	const char *what;
	int64_t value;
	size_t size;
	uint8_t *bytes;
};

static const char *const covered[] = {
#define NAME(name) #name,
	ECHO_COVERED(NAME)
};
#define COVERED (sizeof covered / sizeof covered[0])
static unsigned successes[2][COVERED];
static unsigned different;
const char *sequence_program;

const char sequence_image[] =
	".version 8.4\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 table[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };\n"
	".visible .global .attribute(.managed) .align 4 .u32 common[8];\n"
	".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
	".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 v)\n{\n"
	".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %a<3>;\n"
	"mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.ge.u32 %p, %r1, %r2; @%p ret;\n"
	"ld.param.u64 %a1, [p]; mul.wide.u32 %a2, %r1, 4; add.u64 %a1, %a1, %a2;\n"
	"ld.param.u32 %r2, [v]; ld.global.u32 %r3, [%a1]; add.u32 %r3, %r3, %r2; st.global.u32 [%a1], %r3; ret;\n}\n"
	".visible .entry set(.param .u64 h, .param .u32 v)\n{\n"
	".reg .b32 %r1; .reg .b64 %a1; ld.param.u64 %a1, [h]; ld.param.u32 %r1, [v];\n"
	"{ .param .b64 x; st.param.b64 [x], %a1; .param .b32 y; st.param.b32 [y], %r1; call cudaGraphSetConditional, (x, y); }\n"
	"ret;\n}\n";

uint64_t below(struct side *s, uint64_t end)
{
	s->random += 0x9e3779b97f4a7c15ull;
	uint64_t x = (s->random ^ s->random >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (x ^ x >> 31) % end;
}

/* ---- notes ---- */

void note_bytes(struct side *s, const char *what, const void *bytes, size_t size)
{
	if (s->n_notes == NOTES) {
		printf("a sequence has more than %d notes\n", NOTES);
		exit(1);
	}
	struct note *made = &s->notes[s->n_notes++];
	*made = (struct note){ what, 0, size, malloc(size + 1) };
	if (!made->bytes)
		exit(1);
	memcpy(made->bytes, bytes, size);
}

void note(struct side *s, const char *what, int64_t value)
{
	note_bytes(s, what, "", 0);
	s->notes[s->n_notes - 1].value = value;
}

CUresult noted(struct side *s, const char *name, CUresult result)
{
	for (unsigned i = 0; i < COVERED; i++)
		successes[s->remote][i] += !strcmp(covered[i], name) && result == CUDA_SUCCESS;
	note(s, name, (int64_t)result);
	return result;
}

void note_said(struct side *s, const char *said)
{
	for (unsigned i = 0; i < COVERED; i++) {
		char line[80];
		snprintf(line, sizeof line, "%s: 0\n", covered[i]);
		const char *at = strstr(said, line);
		successes[s->remote][i] += at && (at == said || at[-1] == '\n');
	}
	note_bytes(s, "what the other process says", said, strlen(said));
}

void needed(const struct side *s, const char *name, CUresult result)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s, %s: CUresult %d\n", name, s->remote ? "remote" : "direct", (int)result);
	exit(1);
}

static void forget(struct side *s)
{
	for (size_t i = 0; i < s->n_notes; i++)
		free(s->notes[i].bytes);
	s->n_notes = 0;
	s->n_called = 0;
}

/* Prints the first difference, with the note before it. */
static void compare(const struct side *direct, const struct side *remote, const char *sequence)
{
	for (size_t i = 0; i < direct->n_notes || i < remote->n_notes; i++) {
		static const struct note end = { "the end", 0, 0, NULL };
		const struct note *a = i < direct->n_notes ? &direct->notes[i] : &end;
		const struct note *b = i < remote->n_notes ? &remote->notes[i] : &end;
		if (!strcmp(a->what, b->what) && a->value == b->value && a->size == b->size &&
		    !(a->size && memcmp(a->bytes, b->bytes, a->size)))
			continue;
		size_t byte = 0;
		while (byte < a->size && byte < b->size && a->bytes[byte] == b->bytes[byte])
			byte++;
		printf("%s, step %zu, after %s, %s: direct %s %lld, %zu bytes; remote %s %lld, %zu bytes; first other byte %zu\n", sequence, i,
		       i > 1 ? direct->notes[i - 2].what : "nothing", i ? direct->notes[i - 1].what : "nothing", a->what, (long long)a->value, a->size, b->what, (long long)b->value,
		       b->size, byte);
		different++;
		return;
	}
}

/* ---- what the sequences share ---- */

CUdeviceptr words(struct side *s)
{
	CUdeviceptr address;
	NEED(cuMemAlloc_v2, &address, WORDS * 4);
	NEED(cuMemsetD32_v2, address, 0, WORDS);
	return address;
}

void note_words(struct side *s, const char *what, CUdeviceptr address)
{
	uint32_t content[WORDS];
	memset(content, 0xee, sizeof content);
	CALL(cuMemcpyDtoH_v2, content, address, sizeof content);
	note_bytes(s, what, content, sizeof content);
}

struct appended *host_function(struct side *s, uint32_t value)
{
	static struct appended made[2][HOST_FUNCTIONS];
	static unsigned n[2];
	struct appended *one = &made[s->remote][n[s->remote]++ % HOST_FUNCTIONS];
	*one = (struct appended){ s, value };
	return one;
}

void append_value(void *appended)
{
	const struct appended *one = appended;
	unsigned at = __atomic_fetch_add(&one->side->n_called, 1, __ATOMIC_ACQ_REL);
	if (at < HOST_FUNCTIONS)
		one->side->called[at] = one->value;
}

void note_host_functions(struct side *s)
{
	unsigned n = __atomic_load_n(&s->n_called, __ATOMIC_ACQUIRE);
	note(s, "host functions", n);
	note_bytes(s, "what they left", s->called, (n < HOST_FUNCTIONS ? n : HOST_FUNCTIONS) * sizeof s->called[0]);
}

void run_add(struct side *s, CUfunction function, CUdeviceptr address, uint32_t n, uint32_t value)
{
	void *parameters[] = { &address, &n, &value };
	CALL(cuLaunchKernel, function, 1, 1, 1, WORDS, 1, 1, 0, s->stream, parameters, NULL);
	CALL(cuCtxSynchronize, );
}

/* ---- the two sides ---- */

static void *open_library(const char *path)
{
	/* Not linked: the driver's calls of its own functions must not reach the client's. */
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("%s\n", dlerror());
		exit(1);
	}
	return library;
}

static void open_side(struct side *s, const char *path, bool remote)
{
	void *library = open_library(path);
	s->library = path;
	s->remote = remote;
	s->notes = calloc(NOTES, sizeof *s->notes);
	if (!s->notes)
		exit(1);
#define OPEN(name) \
	s->f.name = (__typeof__(&name))dlsym(library, #name); \
	needed(s, #name, s->f.name ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
	ECHO_COVERED(OPEN)
	SEQUENCE_OTHERS(OPEN)
	NEED(cuInit, 0);
}

static void begin(struct side *s)
{
	NEED(cuDevicePrimaryCtxRetain, &s->context, 0);
	NEED(cuCtxSetCurrent, s->context);
	NEED(cuStreamCreate, &s->stream, 0);
	NEED(cuModuleLoadData, &s->module, sequence_image);
	NEED(cuModuleGetFunction, &s->add, s->module, "add");
	NEED(cuModuleGetFunction, &s->set, s->module, "set");
}

static void end(struct side *s)
{
	CALL(cuCtxSynchronize, );
	CALL(cuCtxSetCurrent, s->context);
	CALL(cuStreamDestroy_v2, s->stream);
	CALL(cuModuleUnload, s->module);
	CALL(cuDevicePrimaryCtxRelease_v2, 0);
}

static const struct {
	const char *name;
	void (*run)(struct side *s);
} sequences[] = {
	{ "contexts", sequence_contexts }, { "graphs", sequence_graphs }, { "host functions", sequence_host_functions },
	{ "images", sequence_images }, { "ipc", sequence_ipc }, { "launches", sequence_launches }, { "linker", sequence_linker },
	{ "memory", sequence_memory }, { "pools", sequence_pools }, { "tensor maps", sequence_tensor_maps },
	{ "virtual memory", sequence_virtual },
};
#define SEQUENCES (sizeof sequences / sizeof sequences[0])

static void run(struct side *s, unsigned sequence, uint64_t seed)
{
	s->random = seed;
	begin(s);
	sequences[sequence].run(s);
	end(s);
}

int main(int argc, char **argv)
{
	static struct side direct, remote;
	sequence_program = argv[0];
	if (argc == 5 && !strcmp(argv[1], "child")) {
		open_side(&direct, argv[2], false);
		return ipc_child(&direct, argv[3], argv[4]);
	}
	if (argc < 5) {
		printf("usage: %s DRIVER CLIENT ROUNDS SEED\n", argv[0]);
		return 2;
	}
	uint64_t seed = strtoull(argv[4], NULL, 0);
	unsigned rounds = (unsigned)strtoul(argv[3], NULL, 10), missing = 0;
	const char *only = getenv("HEADRACE_TEST_SEQUENCE");
	open_side(&direct, argv[1], false);
	open_side(&remote, argv[2], true);
	for (unsigned i = 0; i < rounds && different < 20; i++)
		for (unsigned n = 0; n < SEQUENCES; n++) {
			if (only && strcmp(only, sequences[n].name) != 0)
				continue;
			run(&direct, n, seed + i * SEQUENCES + n);
			run(&remote, n, seed + i * SEQUENCES + n);
			compare(&direct, &remote, sequences[n].name);
			forget(&direct);
			forget(&remote);
		}
	for (unsigned i = 0; i < COVERED && !only; i++)
		if (!successes[0][i] || !successes[1][i]) {
			printf("%s did not succeed in any sequence (direct %u, remote %u)\n", covered[i], successes[0][i], successes[1][i]);
			missing++;
		}
	printf("%zu functions in %zu sequences, %u rounds, seed %s: %u differences\n", COVERED, SEQUENCES, rounds, argv[4], different);
	free(direct.notes);
	free(remote.notes);
	return different || missing;
}
