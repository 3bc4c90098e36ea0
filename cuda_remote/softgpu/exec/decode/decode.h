/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decoder turns a function's statements into drafts, whose operands are still numbers of PTX registers. allocate.c
 * then gives each register a row (registers that are never live at once share one) and turns the drafts into the code
 * that runs.
 */
#ifndef SOFTGPU_EXEC_DECODE_H
#define SOFTGPU_EXEC_DECODE_H

#include "cuda_remote/softgpu/exec/atomic.h"
#include "cuda_remote/softgpu/exec/warp.h"

#define OPERANDS 6

enum role { ROLE_NONE, ROLE_USE, ROLE_DEFINE, ROLE_CONSTANT };

enum target_kind { TARGET_NONE, TARGET_STATEMENT, TARGET_DRAFT, TARGET_LIST };

struct draft {
	struct insn insn;          /* r[n]: number of the register or constant, the final value for ROLE_NONE */
	uint8_t role[OPERANDS];
	bool guarded;              /* may not be executed: its result's earlier value can still be live after it */
	bool ends_path;            /* nothing falls through to the next draft */
	enum target_kind target_kind;
	uint32_t target;           /* statement or draft by number */
	struct ptx_operand *targets; /* TARGET_LIST */
};

/* A row that no instruction writes: a constant, or a value that the launch gives. */
struct constant {
	uint64_t bits;
	uint32_t size;
	uint32_t row; /* allocate.c's */
	bool of_launch;
	struct launch_row launch;
};

#define CONSTANT_SLOTS 256

/* The special register with the offset of the shared memory reserved for the system; the size of that memory. */
#define RESERVED_SHARED_NAME "%reserved_smem_offset_1"
enum { RESERVED_SHARED_BYTES = 1024 };

struct decoder {
	struct ptx_context *context;
	struct softgpu_program *program;
	const struct lane_ops *ops;
	/* of the function being decoded */
	struct ptx_function *function;
	struct code *code;
	struct ptx_statement *statement;
	struct draft *drafts;
	uint32_t draft_count, draft_room;
	uint32_t *draft_of_statement; /* first draft, by statement number; one more at the end */
	uint8_t *is_target;           /* by statement: 1 of a backward branch, 2 of a forward one */
	uint32_t frame_register, return_register; /* functions; UINT32_MAX in a kernel */
	struct constant *constants;
	uint32_t constant_count, constant_room;
	uint32_t constant_slots[CONSTANT_SLOTS]; /* by hash: 1 + the newest constant's number; 0: none */
	uint32_t reserved_shared;     /* 1 + the value of %reserved_smem_offset_1; 0: not in this function */
	uint32_t *pair_of;            /* by 128-bit register: 1 + the first of its two 64-bit registers; or NULL */
	uint32_t spans;               /* memory accesses so far; they take the cached spans in turn */
};

/* An operand that a draft can take. */
struct value {
	enum role role;
	int32_t number;
};

/* decode.c */
void decode_function(struct decoder *decoder, struct code *code);
struct draft *decode_emit(struct decoder *decoder, insn_handler *handler);
void decode_use(struct draft *draft, int n, struct value value);
void decode_define(struct draft *draft, int n, uint32_t number);
struct value decode_constant(struct decoder *decoder, uint64_t bits, uint32_t size);
/* The row of a special register or kernel parameter; launch->row is filled in later. */
struct value decode_launch_row(struct decoder *decoder, const struct launch_row *launch);
uint32_t decode_temporary(struct decoder *decoder, uint32_t size); /* size 0: a predicate */
/* The instruction's n-th operand; gives up if there are fewer. */
struct ptx_operand *decode_operand(struct decoder *decoder, uint32_t n);
void decode_operand_count(struct decoder *decoder, uint32_t least, uint32_t most);
/* A source operand of the kind that letter means (op_form.operands). */
struct value decode_source(struct decoder *decoder, struct ptx_operand *operand, char letter);
/* The two 64-bit registers, as linked operands, that hold a 128-bit register; gives up at any other operand. */
struct ptx_operand *decode_halves(struct decoder *decoder, const struct ptx_operand *operand);
/* A register to write; gives up if its size is not that of the letter. */
uint32_t decode_result(struct decoder *decoder, struct ptx_operand *operand, char letter);
uint32_t decode_register_size(struct decoder *decoder, uint32_t number);
/* The letter for a row of that many bytes a lane: p h w l. */
char decode_letter(uint32_t size);
/* Emits the tables' operation with this mnemonic; the caller fills in the operands. */
struct draft *decode_emit_op(struct decoder *decoder, const char *mnemonic);
/* Decodes the whole statement by the tables' form with this mnemonic. False: there is no such form. */
bool decode_by_table(struct decoder *decoder, const char *mnemonic);
_Noreturn void decode_unsupported(struct decoder *decoder, const char *what);
_Noreturn void decode_invalid(struct decoder *decoder, const char *what);
bool decode_has(const struct decoder *decoder, const char *modifier);
/* The address of a variable as a constant or, in a function's frame, as a computed register. */
struct value decode_address_of(struct decoder *decoder, const struct ptx_symbol *symbol, uint64_t offset);
struct ptx_symbol *decode_symbol(struct decoder *decoder, struct ptx_operand *operand);

/* decode_compare.c: set, setp, lop3, min, max; decode_video.c */
void decode_setp(struct decoder *decoder), decode_set(struct decoder *decoder), decode_lop3(struct decoder *decoder),
	decode_extremum(struct decoder *decoder), decode_video(struct decoder *decoder);

/* decode_special.c: mov, cvt, cvta, special registers, carries */
void decode_mov(struct decoder *decoder), decode_cvt(struct decoder *decoder), decode_cvta(struct decoder *decoder),
	decode_carry(struct decoder *decoder), decode_isspacep(struct decoder *decoder);
bool decode_is_special(struct ptx_text name, char component, uint32_t *id, uint32_t *size);
/* The value of a special register; id and size are those of decode_is_special. */
struct value decode_special(struct decoder *decoder, uint32_t id, uint32_t size);

/* decode_memory.c: ld, st, atom, red, prefetch */
void decode_load(struct decoder *decoder), decode_store(struct decoder *decoder), decode_atom(struct decoder *decoder),
	decode_nothing(struct decoder *decoder);

/* The address: a row for r[4], the distance from it, and flags. */
struct address {
	struct value row;
	uint64_t offset;
	uint8_t flags;
};
struct address decode_address(struct decoder *decoder, struct ptx_operand *operand, enum access_space space);
void decode_put_address(struct decoder *decoder, struct draft *draft, const struct address *address);

/* Which operation an atomic's modifiers name; gives up if none. */
enum atomic_op atomic_op_of(struct decoder *decoder);

/* decode_async.c: cp, mbarrier, and the asynchronous forms of st and red, whose access the given function decodes */
void decode_cp(struct decoder *decoder), decode_mbarrier(struct decoder *decoder);
void decode_async_access(struct decoder *decoder, void (*access)(struct decoder *));
/* Operand n, an address with an offset, as one row of 64 bits. */
struct value decode_whole_address(struct decoder *decoder, uint32_t n, enum access_space space);

/* decode_tensor.c: copies by a tensor map; changes of one */
void decode_tensor(struct decoder *decoder), decode_tensormap(struct decoder *decoder);

/* decode_matrix.c: mma, wmma, wgmma, ldmatrix, stmatrix, movmatrix */
void decode_mma(struct decoder *decoder), decode_wmma(struct decoder *decoder), decode_wgmma(struct decoder *decoder),
	decode_ldmatrix(struct decoder *decoder), decode_stmatrix(struct decoder *decoder),
	decode_movmatrix(struct decoder *decoder);

/* decode_cluster.c: clusters, fences, hints */
void decode_elect(struct decoder *decoder), decode_griddepcontrol(struct decoder *decoder),
	decode_setmaxnreg(struct decoder *decoder), decode_createpolicy(struct decoder *decoder),
	decode_mapa(struct decoder *decoder), decode_getctarank(struct decoder *decoder),
	decode_cluster_barrier(struct decoder *decoder), decode_fence(struct decoder *decoder);
struct value decode_explicit_cluster(struct decoder *decoder);

/* decode_control.c: branches, calls, barriers, warp collectives */
void decode_branch(struct decoder *decoder), decode_brx(struct decoder *decoder), decode_call(struct decoder *decoder),
	decode_return(struct decoder *decoder), decode_exit(struct decoder *decoder),
	decode_trap(struct decoder *decoder), decode_barrier(struct decoder *decoder),
	decode_nanosleep(struct decoder *decoder),
	decode_shfl(struct decoder *decoder), decode_vote(struct decoder *decoder),
	decode_match(struct decoder *decoder), decode_activemask(struct decoder *decoder),
	decode_redux(struct decoder *decoder);
/* Whether the engine itself has a function of this name, which PTX only declares. */
bool decode_is_builtin(struct ptx_text name);
/* Lays out a function's formals and locals in local memory. Comes before any function is decoded. */
void decode_layout_frame(struct decoder *decoder, struct code *code);

/* decode_texture.c: tex, tld4, txq, suq, suld, sust, sured, istypep */
void decode_tex(struct decoder *decoder), decode_tld4(struct decoder *decoder),
	decode_texture_query(struct decoder *decoder), decode_suld(struct decoder *decoder),
	decode_sust(struct decoder *decoder), decode_sured(struct decoder *decoder),
	decode_istypep(struct decoder *decoder);

/* allocate.c: rows for registers; writes code->insns */
void decode_allocate(struct decoder *decoder);

#endif
