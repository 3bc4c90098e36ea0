/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to a worker with arguments that are nearly right, for fuzz-worker: those whose structs any bytes seldom fill with
 * something valid. What an answer names (addresses, IPC handles) is used in later calls.
 */
#ifndef TEST_FUZZ_WORKER_CALLS_H
#define TEST_FUZZ_WORKER_CALLS_H

#include "cuda_remote/api/calls.h"
#include "cuda_remote/wire.h"
#include "test/fuzz/input.h"

#define CALLS_HANDLES 4 /* number of handles that the client chooses, of each kind */
#define CALLS_STAGING rc_handle_make(RC_KIND_PINNED, 2000, 1)
#define CALLS_PRIMARY rc_handle_make(RC_KIND_CONTEXT, 1000, 1)

/* The window of the device, in which the client places memory. */
#define CALLS_WINDOW ((uint64_t)0x30 << 40)
#define CALLS_WINDOW_BYTES (1ull << 32)

/* A handle that the client chooses. An index is that of one object only, whatever its kind. */
static inline uint64_t calls_handle(enum rc_kind kind, uint32_t which)
{
	return rc_handle_make(kind, 1 + (uint32_t)kind * CALLS_HANDLES + which % CALLS_HANDLES, 1);
}

struct made_call {
	enum rc_call function;
	unsigned words;                        /* of the fixed arguments */
	uint64_t word[RC_CALL_INLINE / 8];
	size_t len;                            /* of the payload */
	uint8_t payload[4096];
};

/* What answers have named. */
struct calls_told {
	uint64_t address, module, kernel; /* of device memory, of the last module and its kernel */
	uint64_t page;                    /* of the window */
	uint64_t opened, reserved, pooled;
	struct rc_wire_shared memory, event, allocation, pool, pointer;
	uint8_t tensor[RC_TENSOR_MAP_BYTES];
};
extern struct calls_told calls_told;

/* Makes a call as the input says. */
void calls_make(struct fuzz_input *input, struct made_call *to);
/* Remembers what the answer to a call names. */
void calls_answered(enum rc_call function, const uint8_t *results, size_t n);
/* Forgets all that ends with the primary context. */
void calls_forget(void);

#endif
