/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuLink… over the whole software GPU: inputs of every type, what comes out is loaded in every way, the logs, and
 * errors where CUDA has them. Fat binaries, objects and archives are made here, by the formats' own rules.
 */
#include "driver.h"

#include <elf.h>
#include <unistd.h>

#define HEAD ".version 8.4\n.target sm_75\n.address_size 64\n"
static const char uses[] = HEAD ".extern .func (.param .b32 r) answer();\n.visible .entry k(.param .u64 p)\n{\n"
	".reg .b32 %r<3>; .reg .b64 %l<3>; ld.param.u64 %l1, [p]; .param .b32 o; call (o), answer, ();\n"
	"ld.param.b32 %r1, [o]; st.global.u32 [%l1], %r1; ret;\n}\n";
static const char gives[] = HEAD ".visible .func (.param .b32 r) answer()\n{\n.reg .b32 %r<3>; mov.b32 %r1, 42;\n"
	"st.param.b32 [r], %r1; ret;\n}\n";
static const char wrong[] = HEAD ".visible .func answer()\n{\nnonsense.u32;\n}\n";

static unsigned char container[4096], object[8192], archive[16384];
static size_t container_bytes, object_bytes, archive_bytes;

static void put(unsigned char *at, uint64_t value, size_t bytes)
{
	memcpy(at, &value, bytes);
}

/* A fat binary with PTX for sm, raw. */
static void make_container(const char *ptx, unsigned sm)
{
	size_t padded = (strlen(ptx) + 1 + 7) & ~(size_t)7;
	memset(container, 0, sizeof container);
	put(container, 0xBA55ED50u, 4);
	put(container + 4, 1, 2);
	put(container + 6, 16, 2);
	put(container + 8, 64 + padded, 8);
	put(container + 16, 1, 2);
	put(container + 18, 0x101, 2);
	put(container + 20, 64, 4);
	put(container + 24, padded, 8);
	put(container + 44, sm, 4);
	strcpy((char *)container + 80, ptx);
	container_bytes = 80 + padded;
}

/* A host object with that container in a section of this name. */
static void make_object(const char *section, uint16_t machine)
{
	static const char start[] = "\0.shstrtab\0";
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_REL,
			      .e_machine = machine, .e_version = EV_CURRENT, .e_ehsize = sizeof header,
			      .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 1 };
	Elf64_Shdr sections[3] = { { 0 }, { .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = 64, .sh_size = 64 },
				   { .sh_name = 11, .sh_type = SHT_PROGBITS, .sh_offset = 128 + 16 } };
	/* Zeros may stand before and behind a fat binary. */
	memset(object, 0, sizeof object);
	memcpy(object + 64, start, sizeof start);
	strcpy((char *)object + 64 + 11, section);
	sections[2].sh_offset = 128;
	sections[2].sh_size = 16 + container_bytes + 24;
	memcpy(object + 128 + 16, container, container_bytes);
	header.e_shoff = (128 + sections[2].sh_size + 7) & ~(uint64_t)7;
	memcpy(object, &header, sizeof header);
	memcpy(object + header.e_shoff, sections, sizeof sections);
	object_bytes = header.e_shoff + sizeof sections;
}

/* Moves the object's section numbers to the first section, where numbers of more than 16 bits have their place. */
static void extend_numbers(void)
{
	Elf64_Ehdr header;
	Elf64_Shdr first = { 0 };
	memcpy(&header, object, sizeof header);
	first.sh_size = header.e_shnum;
	first.sh_link = header.e_shstrndx;
	header.e_shnum = 0;
	header.e_shstrndx = SHN_XINDEX;
	memcpy(object, &header, sizeof header);
	memcpy(object + header.e_shoff, &first, sizeof first);
}

static void archive_begin(void)
{
	memcpy(archive, "!<arch>\n", 8);
	archive_bytes = 8;
}

static void archive_add(const char *name, const void *data, size_t bytes)
{
	char header[61];
	snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0, 0644, bytes);
	memcpy(archive + archive_bytes, header, 60);
	memcpy(archive + archive_bytes + 60, data, bytes);
	archive_bytes += 60 + bytes;
	if (bytes & 1)
		archive[archive_bytes++] = '\n';
}

struct logs {
	char error[600], info[600];
	float milliseconds;
	CUjit_option options[7];
	void *values[7];
};

static CUlinkState begin(struct logs *logs)
{
	CUlinkState state;
	static const CUjit_option options[7] = {
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE, CU_JIT_WALL_TIME, CU_JIT_MAX_REGISTERS };
	memset(logs, 'x', sizeof *logs);
	memcpy(logs->options, options, sizeof options);
	void *values[7] = { logs->error, (void *)sizeof logs->error, logs->info, (void *)sizeof logs->info, (void *)1, NULL,
			    (void *)32 };
	memcpy(logs->values, values, sizeof values);
	OK(cuLinkCreate(7, logs->options, logs->values, &state));
	return state;
}

static CUresult add_ptx(CUlinkState state, const char *ptx, const char *name)
{
	return cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx, strlen(ptx) + 1, name, 0, NULL, NULL);
}

/* Completes, loads, unlinks, and runs k: it must write 42. */
static void finish_and_run(CUlinkState state)
{
	void *image;
	size_t size;
	CUmodule module;
	CUfunction function;
	uint32_t *answer;
	OK(cuLinkComplete(state, &image, &size));
	OK(cuModuleLoadData(&module, image));
	OK(cuLinkDestroy(state));
	OK(cuMemHostAlloc((void **)&answer, 4, 0));
	*answer = 0;
	void *parameters[] = { &answer };
	OK(cuModuleGetFunction(&function, module, "k"));
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
	CHECK(*answer == 42);
	OK(cuMemFreeHost(answer));
	OK(cuModuleUnload(module));
}

static void every_type_of_input_links(void)
{
	struct logs logs;
	CUlinkState state = begin(&logs);
	OK(add_ptx(state, uses, "uses"));
	OK(add_ptx(state, gives, NULL));
	CHECK(logs.values[1] == 0 && !logs.error[0]);
	float took;
	memcpy(&took, &logs.values[5], sizeof took);
	CHECK(took >= 0 && took < 1e6f);
	finish_and_run(state);

	make_container(gives, 75);
	state = begin(&logs);
	OK(cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, container, container_bytes, "fat", 0, NULL, NULL));
	OK(add_ptx(state, uses, "uses"));
	finish_and_run(state);

	static const char *const sections[] = { "__nv_relfatbin", ".nv_fatbin" };
	for (int n = 0; n < 2; n++) {
		make_object(sections[n], EM_X86_64);
		state = begin(&logs);
		OK(cuLinkAddData(state, CU_JIT_INPUT_OBJECT, object, object_bytes, "object", 0, NULL, NULL));
		OK(add_ptx(state, uses, "uses"));
		finish_and_run(state);
		extend_numbers();
		state = begin(&logs);
		OK(cuLinkAddData(state, CU_JIT_INPUT_OBJECT, object, object_bytes, "object", 0, NULL, NULL));
		OK(add_ptx(state, uses, "uses"));
		finish_and_run(state);
	}
}

/* Of a library only what is wanted is linked: its other member defines k again. */
static void a_library_gives_what_is_wanted(void)
{
	struct logs logs;
	CUlinkState state = begin(&logs);
	archive_begin();
	archive_add("/", "symbols", 7);
	archive_add("//", "a_name_longer_than_16_bytes.o/\n", 31);
	make_container(uses, 75);
	make_object("__nv_relfatbin", EM_X86_64);
	archive_add("/0", object, object_bytes);
	make_container(gives, 75);
	make_object("__nv_relfatbin", EM_X86_64);
	archive_add("gives.o/", object, object_bytes);
	archive_add("text/", "no object", 9);
	OK(add_ptx(state, uses, "uses"));
	OK(cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, archive, archive_bytes, "library", 0, NULL, NULL));
	finish_and_run(state);
	state = begin(&logs);
	archive[8 + 58] ^= 1; /* the mark at the end of the first header */
	EXPECT(cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, archive, archive_bytes, "library", 0, NULL, NULL),
	       CUDA_ERROR_INVALID_IMAGE);
	CHECK(strstr(logs.error, "damaged archive"));
	OK(cuLinkDestroy(state));
}

/* As nvcc's library for device code: the engine has the function, and the library calls one that does not exist. */
static void the_device_runtime_is_not_needed(void)
{
	static const char library[] = HEAD ".extern .func missing();\n"
		".visible .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 s)\n"
		"{\ncall missing, (); ret;\n}\n"
		".visible .func (.param .b32 r) absent()\n{\ncall missing, (); ret;\n}\n";
	static const char calls[] = HEAD ".extern .func (.param .b32 r) absent();\n.visible .entry l()\n{\n"
		".param .b32 o; call (o), absent, (); ret;\n}\n";
	struct logs logs;
	void *image;
	size_t size;
	CUlinkState state = begin(&logs);
	OK(add_ptx(state, uses, "uses"));
	OK(add_ptx(state, library, "library"));
	OK(add_ptx(state, gives, "gives"));
	finish_and_run(state);
	state = begin(&logs);
	OK(add_ptx(state, calls, "calls"));
	OK(add_ptx(state, library, "library"));
	EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_SOURCE);
	CHECK(strstr(logs.error, "undefined reference to missing"));
	OK(cuLinkDestroy(state));
}

/* The length of an entry's header is 4 bytes behind its start, which is 16 behind the container's. */
static void a_damaged_container_is_not_passed_over(void)
{
	struct logs logs;
	CUlinkState state = begin(&logs);
	make_container(gives, 75);
	memset(container + 20, 0xff, 4);
	make_object("__nv_relfatbin", EM_X86_64);
	EXPECT(cuLinkAddData(state, CU_JIT_INPUT_OBJECT, object, object_bytes, "object", 0, NULL, NULL),
	       CUDA_ERROR_INVALID_IMAGE);
	CHECK(strstr(logs.error, "damaged entry"));
	OK(cuLinkDestroy(state));
}

static void what_comes_out_loads_in_every_way(void)
{
	struct logs logs;
	CUlinkState state = begin(&logs);
	void *image, *again;
	size_t size;
	CUmodule module;
	CUlibrary library;
	CUkernel found;
	char name[] = "/tmp/headrace-linked-XXXXXX";
	OK(add_ptx(state, uses, "uses"));
	OK(add_ptx(state, gives, "gives"));
	OK(cuLinkComplete(state, &image, &size));
	OK(cuLinkComplete(state, &again, NULL));
	CHECK(again == image);
	EXPECT(add_ptx(state, gives, "late"), CUDA_ERROR_INVALID_VALUE);
	int file = mkstemp(name);
	CHECK(file >= 0 && write(file, image, size) == (ssize_t)size);
	close(file);
	OK(cuModuleLoad(&module, name));
	OK(cuModuleUnload(module));
	OK(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
	OK(cuModuleUnload(module));
	OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&found, library, "k"));
	OK(cuLibraryUnload(library));
	CHECK(truncate(name, (off_t)size - 1) == 0);
	EXPECT(cuModuleLoad(&module, name), CUDA_ERROR_INVALID_IMAGE);
	unlink(name);
	/* It may be linked on, and goes with its state. */
	CUlinkState further = begin(&logs);
	OK(cuLinkAddData(further, CU_JIT_INPUT_CUBIN, image, size, "linked", 0, NULL, NULL));
	OK(cuLinkDestroy(state));
	finish_and_run(further);
}

/* The link does not end with an input that was refused. */
static void errors_are_told_where_cuda_tells_them(void)
{
	struct logs logs;
	CUlinkState state = begin(&logs);
	void *image;
	size_t size;
	EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_VALUE);
	EXPECT(add_ptx(state, wrong, "wrong"), CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(logs.error, "wrong: ptx line 6") && (size_t)logs.values[1] == strlen(logs.error));
	CHECK(!logs.info[0] && !logs.values[3]);
	OK(add_ptx(state, uses, "uses"));
	EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_SOURCE);
	CHECK(strstr(logs.error, "undefined reference to answer (in uses)"));
	OK(cuLinkDestroy(state));
	EXPECT(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);

	state = begin(&logs);
	OK(add_ptx(state, gives, "one"));
	OK(add_ptx(state, gives, "two"));
	EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_SOURCE);
	CHECK(strstr(logs.error, "two: ptx line 4: multiple definition of answer, first defined in one, line 4"));
	OK(cuLinkDestroy(state));

	state = begin(&logs);
	make_container(gives, 120);
	make_object("__nv_relfatbin", EM_X86_64);
	EXPECT(cuLinkAddData(state, CU_JIT_INPUT_OBJECT, object, object_bytes, "object", 0, NULL, NULL),
	       CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK(strstr(logs.error, "object: no PTX"));
	make_object("__nv_relfatbin", 190);
	EXPECT(cuLinkAddData(state, CU_JIT_INPUT_CUBIN, object, object_bytes, NULL, 0, NULL, NULL),
	       CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK(strstr(logs.error, "input 2: machine code"));
	EXPECT(cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, object, object_bytes, NULL, 0, NULL, NULL),
	       CUDA_ERROR_INVALID_IMAGE);
	EXPECT(cuLinkAddData(state, CU_JIT_INPUT_NVVM, object, object_bytes, NULL, 0, NULL, NULL),
	       CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuLinkAddData(state, CU_JIT_NUM_INPUT_TYPES, object, object_bytes, NULL, 0, NULL, NULL),
	       CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/no/such/file", 0, NULL, NULL), CUDA_ERROR_FILE_NOT_FOUND);
	OK(cuLinkDestroy(state));
	CUjit_option both[] = { CU_JIT_THREADS_PER_BLOCK, CU_JIT_TARGET }, level = CU_JIT_OPTIMIZATION_LEVEL;
	void *values[] = { (void *)128, (void *)75 }, *five = (void *)5;
	EXPECT(cuLinkCreate(2, both, values, &state), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLinkCreate(1, &level, &five, &state), CUDA_ERROR_INVALID_VALUE);
}

/* Every byte of an object, an archive and an image changed in turn: refused or linked, never a crash. */
static void damaged_inputs_do_no_harm(void)
{
	struct logs logs;
	CUlinkState state;
	CUmodule module;
	void *image;
	size_t size;
	make_container(gives, 75);
	make_object("__nv_relfatbin", EM_X86_64);
	archive_begin();
	archive_add("gives.o/", object, object_bytes);
	for (size_t at = 0; at < archive_bytes; at++) {
		archive[at] ^= 0xff;
		state = begin(&logs);
		cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, archive, archive_bytes, NULL, 0, NULL, NULL);
		cuLinkAddData(state, CU_JIT_INPUT_OBJECT, archive + 68, archive_bytes - 68, NULL, 0, NULL, NULL);
		OK(cuLinkDestroy(state));
		archive[at] ^= 0xff;
	}
	state = begin(&logs);
	OK(add_ptx(state, uses, "uses"));
	OK(add_ptx(state, gives, "gives"));
	OK(cuLinkComplete(state, &image, &size));
	unsigned char *bytes = image;
	for (size_t at = 0; at < size; at++) {
		CUlinkState other = begin(&logs);
		bytes[at] ^= 0x81;
		cuLinkAddData(other, CU_JIT_INPUT_CUBIN, bytes, size, NULL, 0, NULL, NULL);
		if (at >= 24 && cuModuleLoadData(&module, bytes) == CUDA_SUCCESS)
			OK(cuModuleUnload(module));
		bytes[at] ^= 0x81;
		OK(cuLinkDestroy(other));
	}
	OK(cuLinkDestroy(state));
}

int main(void)
{
	setenv("HEADRACE_SOFTGPU_MEMORY", "64M", 1);
	CUcontext context = start();
	(void)context;
	every_type_of_input_links();
	a_library_gives_what_is_wanted();
	the_device_runtime_is_not_needed();
	a_damaged_container_is_not_passed_over();
	what_comes_out_loads_in_every_way();
	errors_are_told_where_cuda_tells_them();
	CHECK(freopen("/dev/null", "w", stderr) != NULL);
	damaged_inputs_do_no_harm();
	OK(cuDevicePrimaryCtxRelease(0));
	return 0;
}
