/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoded code: what the decoder writes and the interpreter runs.
 *
 * A warp's registers lie in one block of memory, one row a register, one column a lane: 32 predicates are one 32-bit
 * mask, a 16-bit register takes 64 bytes, a 32-bit one 128, a 64-bit one 256. An operand is the row's offset from the
 * warp's base. Constants have rows too, in every warp, written once a launch, so that every operand is a row.
 */
#ifndef SOFTGPU_EXEC_INSN_H
#define SOFTGPU_EXEC_INSN_H

#include "cuda_remote/softgpu/ptx/module.h"

#define WARP_LANES 32
#define FULL_MASK 0xffffffffu

struct warp;
struct insn;
struct lane_ops;

/* Runs one instruction; returns the next one, or NULL to leave the interpreter with warp->stop saying why. */
typedef const struct insn *insn_handler(struct warp *warp, const struct insn *insn);

enum insn_flag {
	INSN_NEGATE = 1,    /* the predicate operand counts inverted */
	INSN_NARROW = 2,    /* the address is in a 32-bit register */
	INSN_NO_RESULT = 4, /* red: the old value is not stored */
	INSN_SIGNED = 8,    /* extend with the sign */
};

struct insn {
	insn_handler *handler;
	const void *label; /* of single_lane.c, which executes it */
	int32_t r[6]; /* operands: [0] the result, [1]… sources; memory: [0]…[3] the elements, [4] the address */
	union {
		uint64_t imm; /* immediate, offset of an address */
		const struct insn *target;
		insn_handler *inner; /* the handler that op_rounded_* calls */
		const struct call_site *call;
		const struct jump_table *jumps;
	};
	uint32_t line;
	uint8_t flags;
	uint8_t slot;  /* of the block's cached spans */
	uint8_t count; /* elements of a vector access; cost of a backward branch; variant of an operation */
	uint8_t size;  /* bytes of one element */
};

struct jump_table {
	uint32_t count;
	const struct insn *targets[];
};

/* One argument or result of a call: bytes copied between the caller's and the callee's frame in local memory. */
struct call_copy {
	uint32_t from, to, size;
};

struct code;
struct call_site {
	struct code *callee;       /* NULL: indirect (the function's address is in r[1]) or built in */
	insn_handler *builtin;     /* vprintf and the like; arguments are in the caller's frame at arguments[].from */
	uint32_t signature;        /* bytes of results and of parameters, hashed: an indirect callee must agree */
	uint32_t frame_size;       /* of the caller: the callee's frame starts there */
	uint32_t argument_count;
	struct call_copy *arguments; /* from: the caller's frame, to: the callee's */
	uint32_t result_count;
	struct call_copy *results;   /* from: the callee's frame, to: the caller's */
};

/* A row whose value depends on the launch, the block or the warp. */
struct launch_row {
	uint32_t row;
	uint16_t special;     /* a special register, or LAUNCH_PARAMETER */
	uint8_t bytes, width; /* of the parameter; of the row's element */
	bool is_signed;
	uint32_t offset;      /* of the parameter */
};
#define LAUNCH_PARAMETER 0xffff

/* One decoded function. */
struct code {
	struct code *next;
	struct softgpu_program *program;
	struct ptx_function *function;
	const char *name;
	struct insn *insns;
	uint32_t insn_count;
	uint32_t register_base, register_bytes; /* rows of this function in the warp's block */
	uint32_t class_start[5];  /* from register_base: rows of 64, 32 and 16 bits, predicates; their end */
	uint32_t constant_row, constant_bytes; /* rows of constants, and what is in them */
	char *constant_data;
	struct launch_row *launch_rows;
	uint32_t launch_row_count;
	uint32_t frame_size;      /* local memory of one activation */
	uint32_t frame_row;       /* row (u64) that holds the activation's start in local memory */
	uint32_t return_row;      /* row (u64) of return addresses */
	uint32_t signature;
	uint32_t shared_bytes;    /* static shared memory of the function itself */
	uint32_t parameter_bytes;
	bool recursive, calls_indirect, address_taken;
	uint32_t haste; /* atomic; of a kernel: how soon lanes go ahead in its launches (residency.c) */
	struct call_site **calls;
	uint32_t call_count;
	uint32_t mark; /* of a walk over the call graph */
	struct code *walk_from;  /* of that walk: where it goes on after this function */
	uint32_t walk_next;      /* of that walk: the next call to follow */
	bool local_depth_known;
	uint64_t local_depth; /* frames of the deepest chain of calls from here */
};

struct softgpu_kernel {
	softgpu_kernel_info_t info;
	struct code *code;
	uint32_t local_bytes;    /* a thread's local memory, callees included */
	bool open_stack;         /* calls itself or through pointers: it may need more than local_bytes */
	uint32_t reserved_shared; /* 1 + the offset of the shared memory reserved for the system; 0: none */
	uint32_t shared_bytes;   /* static */
	uint32_t shared_align;
	uint32_t warp_bytes;     /* registers of one warp, callees included */
};

struct softgpu_program {
	struct ptx_context context;
	struct ptx_module *module;
	const struct lane_ops *ops;
	struct code *codes;
	struct softgpu_kernel *kernels;
	size_t kernel_count;
	uint32_t register_bytes; /* of all functions that are not kernels */
	bool has_recursion;
	bool reads_smid; /* some function reads %smid */
	uint8_t checks; /* enum check_flag (check.h): what its code was decoded for */
	uint64_t const_base, const_size; /* .const variables */
	uint64_t *allocations;   /* device memory of variables */
	size_t allocation_count;
};

/* Generic addresses of shared, local and parameter memory: one window each, far from any host address. */
#define WINDOW_SHIFT 56
#define WINDOW_SHARED 1ull
#define WINDOW_LOCAL 2ull
#define WINDOW_PARAM 3ull
#define WINDOW_BASE(window) ((window) << WINDOW_SHIFT)

/* Addresses of shared memory: below 1 << CLUSTER_SHIFT, offsets into the block's own; above, 1 + the rank of a block of the
 * cluster, and in the lower bits an offset into that block's (PTX ISA, "mapa"). */
#define CLUSTER_SHIFT 24

/* An entry of the tables in ops/, which the decoder finds by the mnemonic as written. */
struct op_form {
	const char *mnemonic;
	const char *operands; /* one letter each, the result first: p h w l (predicate, 16, 32, 64 bits), e f d
				 (floats), i (immediate) */
	uint8_t table;        /* of its operation */
	uint16_t op;          /* number of the operation in that table */
	uint8_t rounding;     /* 0 nearest; 1 toward zero, 2 down, 3 up */
};
const struct op_form *op_find(const char *mnemonic);

/* One build of the lane operations for one instruction set; handlers by number. */
struct lane_ops {
	const char *isa;
	void (*run)(struct warp *warp,
		    const struct insn *insn); /* the interpreter: from insn on until the warp stops */
	void (*run_counting)(struct warp *warp, const struct insn *insn); /* it counts, too */
	insn_handler *const *const *ops; /* by table and number */
	insn_handler *const (*loads)[4][4]; /* [space][log2 bytes][row: 1 16-bit, 2 32-bit, 3 64-bit]; memory_ops.c */
	insn_handler *const (*signed_loads)[4][4];
	insn_handler *const (*stores)[4][4];
	insn_handler *matrix_multiply; /* matrix_ops.c */
	/* One instruction, counted if the launch counts; then the warp is preempted, unless it stops by itself. */
	void (*run_step)(struct warp *warp, const struct insn *insn);
	/* single_lane.c: insn->label for a handler; and the instruction that enters that interpreter, which goes on at
	 * warp->single_lane_at. */
	const void *(*single_lane_label)(insn_handler *handler);
	const struct insn *(*single_lane_entry)(void);
};
extern const struct lane_ops lane_ops_avx512, lane_ops_avx2, lane_ops_baseline;

/* The build for this CPU, or what HEADRACE_SOFTGPU_ISA asks for. */
const struct lane_ops *lane_ops_choose(void);

#endif
