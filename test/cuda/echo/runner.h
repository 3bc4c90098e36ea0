/* SPDX-License-Identifier: BSD-3-Clause */
/* What the generated cases (echo.py) use: random arguments, objects that exist on both sides, comparisons. */
#ifndef TEST_CUDA_ECHO_RUNNER_H
#define TEST_CUDA_ECHO_RUNNER_H

#include "cuda_remote/wire.h"
#include "test/cuda/echo/echo.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "test/cuda/echo/direct.h"

#define LIST_MAX 16  /* elements of a list among the arguments */
#define TEXT_MAX 256 /* bytes of a text, its NUL included */

/* An object: the direct driver's handle and the client's. */
struct pair {
	uint64_t direct, remote;
};
struct device_pair {
	int direct, remote;
};

struct run;
struct echo_case {
	const char *name;
	void (*run)(struct run *run);
	unsigned function; /* in which the driver is called */
	bool async;        /* the client does not wait for the result */
	bool in_context;   /* the call belongs to the current context */
	bool breakable;    /* it has an argument that both sides must refuse */
	bool alias;        /* the client answers it itself if it was called with these arguments before */
	enum rc_kind makes;
	int numbers;       /* 1 + the kind of number that it makes; 0: none */
};
extern const struct echo_case echo_cases[];
extern const unsigned echo_n_cases;
extern void (*const translators[])(const struct run *, void *);

struct run {
	struct {
#define DIRECT(name) __typeof__(&name) name;
		ECHO_FUNCTIONS(DIRECT)
#undef DIRECT
	} direct;
	const struct echo_case *current, *before;
	uint64_t random; /* state of the generator */
	bool wrong;      /* one argument is to be wrong */
	bool wild;       /* numbers are any bits, which the client may refuse */
	bool succeeds;   /* the driver is not to return an error */
	bool ok;         /* both sides returned CUDA_SUCCESS */
	bool answered;   /* by the client: the worker's driver was not called */
	bool alone;      /* what the two sides wrote is not comparable: one of them has refused the call or answered it itself */
	struct echo_control *control[2]; /* the direct driver's, the worker's */
	CUresult result[2];
	struct pair context; /* the current one */
};

/* ---- drawing ---- */

uint64_t draw(struct run *run);
uint64_t draw_below(struct run *run, uint64_t end);
void draw_bytes(struct run *run, void *to, size_t size);
void draw_text(struct run *run, char *to);
/* Device memory of 64 KiB at least, which both sides know. */
uint64_t draw_address(struct run *run);
/* Memory that both sides have just allocated. */
uint64_t draw_allocation(struct run *run);
/* An address in a reservation, with 64 KiB at least behind it. */
uint64_t draw_reserved(struct run *run);
CUstreamAttrID draw_stream_attribute(struct run *run);
unsigned draw_event_flags(struct run *run);
/* own: one that the program may destroy. wrong: something that is not a live object of this kind. */
struct pair draw_object(struct run *run, enum rc_kind kind, bool own, bool wrong);
/* An event of the device's primary context, which then may be current; any: of whatever context. */
struct pair draw_event(struct run *run, int device, bool any);
/* A function that is not a kernel. */
struct pair draw_function(struct run *run);
/* The context in which the object was made. */
struct pair context_of(struct run *run, struct pair object);
/* A stream of the object's context, which then may be current; of any, if the object has none. */
struct pair stream_with(struct run *run, struct pair object);
struct device_pair draw_device(struct run *run, bool wrong);
uint64_t draw_number(struct run *run, enum rc_number kind, bool wrong);

/* ---- a case ---- */

/* The worker's handle for the direct driver's. */
uint64_t translate(const struct run *run, uint64_t direct);
void case_begins(struct run *run);
void case_direct(struct run *run, CUresult result);
/* Also compares the results and the records. */
void case_remote(struct run *run, CUresult result);
void compare_bytes(struct run *run, const char *name, const void *direct, const void *remote, size_t size);
void object_made(struct run *run, enum rc_kind kind, uint64_t direct, uint64_t remote, bool alias, uint64_t owner);
void object_gone(struct run *run, struct pair object);
/* The call has made this object, which is not to be drawn by other cases. */
void object_same(struct run *run, struct pair made);
/* Runs another case, which succeeds, before the current one begins. */
void run_other(struct run *run, const char *name);
void number_made(struct run *run, enum rc_number kind, uint64_t number);
void number_gone(struct run *run, enum rc_number kind, uint64_t number);

#endif
