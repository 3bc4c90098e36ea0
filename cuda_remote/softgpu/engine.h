/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The execution engine: turns PTX text into kernels that run on the CPU. It implements PTX (comments name the chapters
 * of the ISA), threads, warps and blocks. Contexts, streams and handles are driver/'s.
 */
#ifndef SOFTGPU_ENGINE_H
#define SOFTGPU_ENGINE_H

#include "cuda_remote/softgpu/texture.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct softgpu_program softgpu_program_t; /* one PTX module: kernels, functions, variables */
typedef struct softgpu_kernel softgpu_kernel_t;

/* Text for the JIT's error and info logs: NUL-terminated, cut to size. */
typedef struct softgpu_log {
	char *text;
	size_t size, used;
} softgpu_log_t;

/*
 * Parses, checks and decodes PTX; allocates and initialises the module's variables (memory_map.h).
 * CUDA_ERROR_INVALID_PTX: not PTX, or an unknown instruction; CUDA_ERROR_NOT_SUPPORTED: PTX that this engine does not
 * execute. For both, log (NULL: only the library's log) names the line and the instruction.
 */
CUresult softgpu_program_load(const char *ptx, size_t length, softgpu_log_t *log, softgpu_program_t **program);

/* One of several texts of PTX. name: what messages call it (NULL: nothing). */
typedef struct softgpu_unit {
	const char *name;
	const char *text;
	size_t length;
	bool on_demand; /* of a library: linked only if it defines a name that the units linked so far need */
} softgpu_unit_t;

/*
 * softgpu_program_load for several texts that are linked into one program (PTX ISA, "Linking Directives"). Kernels are
 * in the order of the units. CUDA_ERROR_INVALID_SOURCE: a name is defined twice, or nowhere, or its definition differs
 * from its declaration; the log names it.
 */
CUresult softgpu_program_link(const softgpu_unit_t *units, size_t count, softgpu_log_t *log, softgpu_program_t **program);

/* Only parses one unit. Reports what parsing finds, such as CUDA_ERROR_INVALID_PTX; linking finds all other errors. */
CUresult softgpu_program_check(const softgpu_unit_t *unit, softgpu_log_t *log);

void softgpu_program_unload(softgpu_program_t *program);

/* Kernels in the order of the text; NULL past the last or for an unknown name. They live as long as the program. */
softgpu_kernel_t *softgpu_program_kernel(softgpu_program_t *program, size_t index);
softgpu_kernel_t *softgpu_program_find(softgpu_program_t *program, const char *name);
/* A .global or .const variable: device address and bytes. CUDA_ERROR_NOT_FOUND. */
CUresult softgpu_program_variable(softgpu_program_t *program, const char *name, uint64_t *address, uint64_t *size);
/* A .texref or .surfref variable of that kind: its handle, which lives as long as the program. CUDA_ERROR_NOT_FOUND. */
CUresult softgpu_program_reference(softgpu_program_t *program, const char *name, enum softgpu_texture_kind kind,
				   uint64_t *handle);

/* Properties of a kernel, for launches and the driver's queries. */
typedef struct softgpu_kernel_info {
	const char *name;
	uint32_t parameters;       /* count */
	uint32_t parameter_bytes;  /* size of the parameter block */
	uint32_t static_shared;    /* bytes */
	uint32_t constant_bytes, local_bytes, registers; /* registers: 32-bit ones a thread, capped at 255 */
	uint32_t max_threads;      /* of .maxntid, else 1024 */
	uint32_t required_block[3]; /* .reqntid, else 0 */
	uint32_t required_cluster[3]; /* blocks of .reqnctapercluster, else 0 */
	uint32_t max_cluster;      /* blocks of .maxclusterrank, else 0 */
	bool explicit_cluster;     /* .explicitcluster */
	uint32_t ptx_version;      /* 10 * major + minor of .target's sm, e.g. 75 */
	bool prints;               /* it may call printf */
} softgpu_kernel_info_t;
void softgpu_kernel_info(const softgpu_kernel_t *kernel, softgpu_kernel_info_t *info);
/* Parameter index: offset and size in the block. CUDA_ERROR_INVALID_VALUE past the last. */
CUresult softgpu_kernel_parameter(const softgpu_kernel_t *kernel, size_t index, size_t *offset, size_t *size);

/* The resources of a multiprocessor: the occupancy model's limits. */
enum {
	SOFTGPU_SM_BLOCKS = 32,
	SOFTGPU_SM_THREADS = 2048,
	SOFTGPU_SM_REGISTERS = 65536,
	SOFTGPU_SM_SHARED = 228 << 10,          /* bytes */
	SOFTGPU_SM_SHARED_RESERVED = 1 << 10,   /* bytes of it, for each block */
};

/* Blocks of a cluster: as many as CUDA permits everywhere, and as many as this engine runs. */
enum { SOFTGPU_CLUSTER_PORTABLE = 8, SOFTGPU_CLUSTER_MAX = 16 };

/* How many blocks of this many threads and bytes of dynamic shared memory one multiprocessor holds; 0: none fits. */
uint32_t softgpu_occupancy(const softgpu_kernel_info_t *kernel, uint32_t threads, uint64_t dynamic_shared);

/* The limits of a launch, from its context. */
typedef struct softgpu_limits {
	struct softgpu_heap *heap; /* for malloc in kernels (memory_map.h); NULL: malloc returns NULL */
	uint32_t stack_bytes;      /* a thread's, beyond what the kernel's calls are known to need; 0: 1024 */
	uint64_t print_bytes;      /* printf's buffer, as exec/output.h counts; 0: 1 MiB. The oldest output is lost. */
} softgpu_limits_t;

typedef struct softgpu_launch {
	const softgpu_kernel_t *kernel;
	uint32_t grid[3], block[3];
	uint32_t cluster[3];     /* blocks of a cluster, which divide the grid; 0: as the kernel requires, else one */
	uint32_t dynamic_shared; /* bytes */
	const void *parameters;  /* the parameter block, parameter_bytes long */
	bool cooperative;        /* grid.sync works: all blocks resident */
	softgpu_limits_t limits;
} softgpu_launch_t;

/*
 * Runs a grid to its end on the engine's threads (HEADRACE_SOFTGPU_THREADS, default one per core, shared by all launches);
 * the calling thread helps. Several launches may run at once. Arguments were checked by the driver.
 * Up to softgpu_occupancy × softgpu_threads blocks are resident at the same time: each of them makes progress, so
 * that blocks may wait for each other. The blocks of a cluster are resident together. Blocks (clusters) begin in the
 * order of their numbers.
 * CUDA_ERROR_ILLEGAL_ADDRESS, _MISALIGNED_ADDRESS, _LAUNCH_FAILED, _ASSERT, _ILLEGAL_INSTRUCTION …: the first fault; kernel, block,
 * thread, PTX line and address are logged. Device printf goes to stdout in order of blocks' own output when the launch ends.
 */
CUresult softgpu_launch(const softgpu_launch_t *launch);

/*
 * A graph's conditional handle is the device address of this structure. cudaGraphSetConditional, which the engine
 * provides to device code, stores to value. The creator sets check. A handle of anything else is
 * CUDA_ERROR_ILLEGAL_ADDRESS.
 */
typedef struct softgpu_conditional {
	uint32_t value, check;
} softgpu_conditional_t;
#define SOFTGPU_CONDITIONAL_CHECK UINT32_C(0x5e7c04d1)

/* Threads that run blocks, as HEADRACE_SOFTGPU_THREADS says: the device's multiprocessor count. At least 1; any time. */
unsigned softgpu_threads(void);

#endif
