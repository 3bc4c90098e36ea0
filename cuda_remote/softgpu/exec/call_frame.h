/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments and results of a call of a function that the engine itself provides: in the caller's frame, lane by lane. */
#ifndef SOFTGPU_EXEC_CALL_FRAME_H
#define SOFTGPU_EXEC_CALL_FRAME_H

#include "cuda_remote/softgpu/exec/warp.h"

#include <string.h>

static inline char *call_frame(struct warp *warp, const struct insn *insn, uint32_t lane)
{
	return warp->local + (uint64_t)lane * warp->block->launch->local_bytes + SOURCE(uint64_t, 2)[lane];
}

/* Argument n, where it lies: site->arguments[n].size bytes. */
static inline const void *call_argument_at(struct warp *warp, const struct insn *insn, uint32_t lane, uint32_t n)
{
	return call_frame(warp, insn, lane) + insn->call->arguments[n].from;
}

/* Argument n of at most 8 bytes, extended with zeros. */
static inline uint64_t call_argument(struct warp *warp, const struct insn *insn, uint32_t lane, uint32_t n)
{
	uint64_t value = 0;
	uint32_t size = insn->call->arguments[n].size;
	memcpy(&value, call_argument_at(warp, insn, lane, n), size < 8 ? size : 8);
	return value;
}

static inline void call_set_result(struct warp *warp, const struct insn *insn, uint32_t lane, uint64_t value)
{
	const struct call_copy *copy = &insn->call->results[0];
	memcpy(call_frame(warp, insn, lane) + copy->to, &value, copy->size < 8 ? copy->size : 8);
}

#endif
