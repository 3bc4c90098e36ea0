/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors: tests of each form of a PTX instruction, in a kernel of its own, with edge values of its operands. The
 * results are compared with references that share no code with the engine: integers of 128 bits, and MPFR.
 */
#ifndef TEST_VECTORS_H
#define TEST_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCES_MAX 6 /* 16-byte accesses of a vector are aligned */
#define RESULTS_MAX 2

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

/* A row of forms.table. */
struct form {
	const char *mnemonic;
	const char *results, *sources; /* letters of operands; see forms.table */
	const char *target;            /* least sm_ */
	const char *text;              /* what the kernel executes; expand.py has the notation */
	int immediate;                 /* -1: none */
};

/* A mnemonic, split at its dots. */
#define WORDS_MAX 12
struct words {
	char opcode[16];
	char word[WORDS_MAX][16];
	unsigned count;
};
void words_of(const char *mnemonic, struct words *words);
bool words_have(const struct words *words, const char *word);
/* The n-th word from the end, 0 the last; "" if there is none. */
const char *words_last(const struct words *words, unsigned n);

/* The rule for one part of a result. */
enum rule {
	RULE_EXACT,    /* exactly these bits */
	RULE_NAN,      /* any NaN of the format: PTX does not specify which */
	RULE_ZERO,     /* a zero of either sign */
	RULE_WITHIN,   /* a number from low to high */
	RULE_OPEN,     /* any value: PTX does not specify it */
};
struct element {
	enum rule rule;
	unsigned shift, width;
	uint64_t bits;
	const struct format *format; /* for RULE_NAN, RULE_ZERO, RULE_WITHIN */
	double low, high;
};
#define ELEMENTS_MAX 6
struct outcome {
	unsigned count;
	struct element element[ELEMENTS_MAX];
};
bool outcome_holds(const struct outcome *outcome, uint64_t got);
void outcome_exact(struct outcome *outcome, uint64_t bits, unsigned width);

/* Sets *out to the rules for the results of a form with these sources (operands in the order of the form, in the low
 * bits). False: this reference does not cover the form. */
typedef bool reference(const struct form *form, const struct words *words, const uint64_t *in, struct outcome *out);
reference integer_reference, packed_reference, video_reference, memory_reference,
	float_reference, convert_reference, compare_reference;

/* Binary floating-point formats. */
struct format {
	const char *name;
	unsigned width, precision; /* bits of the whole; bits of the significand, the hidden bit included */
	int bias;
	bool has_infinity, has_nan;
	uint64_t nan, largest;     /* the canonical NaN; the largest finite number */
};
/* Returns the format of a type, such as "f16"; NULL if there is none. */
const struct format *format_of(const char *name);
const struct format *format_of_letter(char letter);
bool format_is_nan(const struct format *format, uint64_t bits);
double format_value(const struct format *format, uint64_t bits);
/* Returns the number of bits of an operand with that letter; 0 for p. */
unsigned letter_width(char letter);

/* Makes the sources for a form: returns the number of vectors, each of SOURCES_MAX values; the same on every
 * machine. */
size_t inputs_make(const struct form *form, uint64_t *inputs, size_t most);
/* Writes the kernel's text into a buffer. Returns its length. */
size_t kernel_write(const struct form *form, unsigned number, char *text, size_t room);

/* A device, with the driver that was loaded at run time. */
struct device;
/* library: path for dlopen. Returns NULL, with the reason on stderr, if there is no device. */
struct device *device_open(const char *library);
/* Destroys the context and all that belongs to it. */
void device_close(struct device *device);
int device_capability(const struct device *device); /* 75, 90, … */
const char *device_name(const struct device *device);
/* Loads a module of PTX text. NULL: the driver refused it; its log is in log. */
struct module;
struct module *device_load(struct device *device, const char *ptx, char *log, size_t log_size);
void device_unload(struct device *device, struct module *module);
/*
 * Runs kernel `name` with (input, output, count, alone) in blocks of 128 threads. alone: each vector has a warp of its
 * own, in which a single lane executes the instruction, a different lane each time. 0, or the driver's error.
 */
int device_run(struct device *device, struct module *module, const char *name, const uint64_t *inputs,
	       uint64_t *outputs, uint32_t count, bool alone);

/* Words of one output: the results, then the results of a second copy of the instruction, which only odd threads
 * execute. */
#define SCRATCH_WORDS 2 /* 16 bytes of global memory for the thread's own use */
#define OUTPUT_WORDS (2 * RESULTS_MAX + SCRATCH_WORDS)
#define SENTINEL 0x5a5a5a5a5a5a5a5aull

#endif
