/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PTX module as it was written: variables, functions, statements with operands (PTX ISA, chapters "State Spaces,
 * Types, and Variables" and "Instruction Operands"). Everything lives in the context's arena.
 */
#ifndef SOFTGPU_PTX_MODULE_H
#define SOFTGPU_PTX_MODULE_H

#include "cuda_remote/softgpu/ptx/lexer.h"

enum ptx_type {
	PTX_NO_TYPE,
	PTX_PRED,
	PTX_B8, PTX_U8, PTX_S8,
	PTX_B16, PTX_U16, PTX_S16, PTX_F16, PTX_BF16,
	PTX_B32, PTX_U32, PTX_S32, PTX_F32, PTX_F16X2, PTX_BF16X2,
	PTX_B64, PTX_U64, PTX_S64, PTX_F64,
	PTX_B128,
};

enum ptx_space { PTX_NO_SPACE, PTX_REG, PTX_GLOBAL, PTX_CONST, PTX_SHARED, PTX_LOCAL, PTX_PARAM };

/* The type of a word such as ".u32"; PTX_NO_TYPE if it is none. */
enum ptx_type ptx_type_of(struct ptx_text word);
/* The state space of a word such as ".global"; PTX_NO_SPACE if it is none. */
enum ptx_space ptx_space_of(struct ptx_text word);
uint32_t ptx_type_size(enum ptx_type type); /* bytes; 0 for a predicate */
bool ptx_type_signed(enum ptx_type type);
bool ptx_type_float(enum ptx_type type);

/* Variables that are names of textures or surfaces. */
enum ptx_opaque { PTX_NOT_OPAQUE, PTX_TEXREF, PTX_SURFREF };

enum ptx_symbol_kind { PTX_SYMBOL_REGISTER, PTX_SYMBOL_VARIABLE, PTX_SYMBOL_LABEL, PTX_SYMBOL_FUNCTION, PTX_SYMBOL_LIST,
		       PTX_SYMBOL_PROTOTYPE };

/*
 * Linkage of a name (PTX ISA, "Linking Directives"). The order is that of precedence: a definition replaces a weak or
 * common one of its name that is earlier in this list.
 */
enum ptx_linkage { PTX_LOCAL_LINKAGE, PTX_WEAK, PTX_COMMON, PTX_VISIBLE };

struct ptx_function;
struct ptx_scope;
struct ptx_symbol;

/* A place in an initialiser that holds the address of something. */
struct ptx_relocation {
	struct ptx_relocation *next;
	const struct ptx_scope *scope; /* where name is to be found */
	struct ptx_text name;
	uint64_t offset; /* in the variable */
	int64_t addend;
	uint32_t size;   /* bytes to write: 1, 4 or 8 */
	uint32_t shift;  /* low bits of the address that are left out */
	uint32_t line;
};

struct ptx_symbol {
	struct ptx_symbol *next_in_bucket, *next; /* next: in the order of the text */
	struct ptx_text name;
	enum ptx_symbol_kind kind;
	enum ptx_type type;
	enum ptx_space space;
	enum ptx_linkage linkage;
	uint32_t line;
	const char *unit; /* ptx_parse's */
	bool referenced;  /* an operand or an initialiser names it */
	struct ptx_symbol *definition; /* the definition that ptx_link bound it to; NULL: itself */
	/* register: its number in the function; of NAME<count>: the first register's number, and count */
	uint32_t number, count;
	uint32_t lanes; /* consecutive registers for each name: 1, or 2 or 4 of a vector */
	bool is_range;
	/* variable */
	uint32_t align;
	uint64_t size;   /* bytes; 0 for an array of unknown size */
	uint64_t offset; /* in its block of parameters, shared or local memory */
	uint64_t address; /* .global and .const: device address */
	bool is_extern, unsized;
	enum ptx_opaque opaque; /* its address is a handle of texture.h */
	uint8_t *init;   /* NULL: zero */
	struct ptx_relocation *relocations;
	/* label: the number of the statement after it; function, prototype: function */
	uint32_t position;
	struct ptx_function *function;
	struct ptx_operand *list; /* .branchtargets */
};

#define PTX_BUCKETS 64
struct ptx_scope {
	struct ptx_scope *outer;
	struct ptx_symbol *buckets[PTX_BUCKETS];
};

enum ptx_operand_kind {
	PTX_OPERAND_REGISTER, /* symbol and number; negated for !p and -x */
	PTX_OPERAND_INTEGER,  /* value */
	PTX_OPERAND_FLOAT,    /* value: bits of a float */
	PTX_OPERAND_DOUBLE,   /* value: bits of a double */
	PTX_OPERAND_NAME,     /* name (+ value): variable, label, function, special register; component: .x .y .z .w */
	PTX_OPERAND_ADDRESS,  /* first: the operand in [ ], NULL if there is only an offset; value: the offset */
	PTX_OPERAND_VECTOR,   /* first and its next: { } */
	PTX_OPERAND_LIST,     /* the same: ( ) */
	PTX_OPERAND_PAIR,     /* first | first->next */
	PTX_OPERAND_SINK,     /* _ */
};

struct ptx_operand {
	enum ptx_operand_kind kind;
	struct ptx_operand *next, *first;
	struct ptx_symbol *symbol; /* NULL if not yet declared where it was read */
	struct ptx_text name;
	uint32_t number; /* of the register */
	uint64_t value;
	char component;
	struct ptx_text selector; /* of a video instruction: ".h1", ".b3210"; else empty */
	bool negated;
};

struct ptx_statement {
	struct ptx_statement *next;
	struct ptx_scope *scope;
	uint32_t line, position;
	char *opcode;         /* "ld" */
	char *mnemonic;       /* "ld.global.nc.v4.f32" */
	uint32_t modifiers;   /* count */
	struct ptx_text *modifier; /* ".global", … */
	struct ptx_operand *guard; /* a register; NULL: always */
	struct ptx_operand *operands;
	uint32_t operand_count;
};

struct ptx_function {
	struct ptx_function *next;
	struct ptx_text name;
	uint32_t line;
	const char *unit; /* ptx_parse's */
	bool is_kernel, has_body, noreturn, explicit_cluster;
	struct ptx_symbol *results, *parameters; /* in order, linked by next */
	struct ptx_symbol *locals;    /* .local, .shared and .param of the body, linked by next */
	struct ptx_scope *scope;
	struct ptx_statement *statements;
	uint32_t statement_count;
	uint32_t register_count;
	uint8_t *register_types;      /* enum ptx_type by number */
	uint32_t register_room;
	uint32_t max_threads, required_block[3], required_cluster[3], max_cluster; /* 0: not given */
	uint32_t carry_register;      /* 1 + the register that holds the carry flag; 0: none yet */
	void *code;                   /* the decoder's */
};

/* .alias name, target; */
struct ptx_alias {
	struct ptx_alias *next;
	struct ptx_text name, target;
	uint32_t line;
};

struct ptx_module {
	struct ptx_context *context;
	uint32_t version; /* 10 * major + minor of .version */
	uint32_t target;  /* 75 of sm_75 */
	struct ptx_scope scope;
	struct ptx_symbol *variables; /* of module scope, linked by next */
	struct ptx_symbol *names;     /* of functions, linked by next */
	struct ptx_function *functions;
	struct ptx_alias *aliases;
	/* ptx_link's: the module is joined only if it defines a name that is needed; it has been joined */
	bool on_demand, joined;
};

/*
 * Parses the text, which must live as long as the module. Gives up on any error. unit: the name of the text in
 * messages, if there are several (NULL: there is one); it must live as long as the module, too.
 */
struct ptx_module *ptx_parse(struct ptx_context *context, const char *unit, const char *text, size_t length);

/*
 * Links modules into one (PTX ISA, "Linking Directives"). Declarations are bound to the definitions of other modules.
 * Other definitions replace weak and common ones. Names without .visible, .weak or .common stay local to their module.
 * supplied: whether the engine itself has a function of this name. Gives up with CUDA_ERROR_INVALID_SOURCE if a name is
 * defined twice, declared differently or defined nowhere; in the last case with CUDA_ERROR_INVALID_PTX if units have no
 * names.
 */
struct ptx_module *ptx_link(struct ptx_context *context, struct ptx_module **modules, size_t count,
			    bool (*supplied)(struct ptx_text name));

/* The innermost declaration of name; NULL if there is none. *number: if it is a register, its number, also in a
 * range. */
struct ptx_symbol *ptx_lookup(const struct ptx_scope *scope, struct ptx_text name, uint32_t *number);

/* A new register of the function beyond those it declares. */
uint32_t ptx_new_register(struct ptx_context *context, struct ptx_function *function, enum ptx_type type);

/* Whether opcode is an instruction of PTX, supported or not. */
bool ptx_is_opcode(struct ptx_text opcode);

#endif
