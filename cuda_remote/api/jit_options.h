/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JIT options of cuModuleLoadDataEx and cuLibraryLoadData that a client forwards, and the only ones that a worker
 * hands to its driver. The value of each is a number. Options whose value is a pointer must not be added: the driver
 * would follow the client's pointer.
 */
#ifndef RC_API_JIT_OPTIONS_H
#define RC_API_JIT_OPTIONS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const CUjit_option rc_jit_options[] = {
	CU_JIT_MAX_REGISTERS,
	CU_JIT_OPTIMIZATION_LEVEL,
	CU_JIT_TARGET_FROM_CUCONTEXT,
	CU_JIT_TARGET,
	CU_JIT_FALLBACK_STRATEGY,
	CU_JIT_GENERATE_DEBUG_INFO,
	CU_JIT_LOG_VERBOSE,
	CU_JIT_GENERATE_LINE_INFO,
	CU_JIT_CACHE_MODE,
	CU_JIT_LTO,
	CU_JIT_FTZ,
	CU_JIT_PREC_DIV,
	CU_JIT_PREC_SQRT,
	CU_JIT_FMA,
	CU_JIT_POSITION_INDEPENDENT_CODE,
};

/* Options of one call that travel. */
#define RC_JIT_OPTIONS_MAX 32

static inline bool rc_jit_option_travels(uint32_t option)
{
	for (size_t i = 0; i < sizeof rc_jit_options / sizeof rc_jit_options[0]; i++)
		if (option == (uint32_t)rc_jit_options[i])
			return true;
	return false;
}

#endif
