/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Defines every function in the runtime's table of driver calls; double.c overrides some. Prototypes do not matter
 * here.
 */
enum { NOT_SUPPORTED = 801 }; /* CUDA_ERROR_NOT_SUPPORTED */

#define CALL(name) \
	int name(void); \
	__attribute__((weak, visibility("default"))) int name(void) { return NOT_SUPPORTED; }
#define CALL_BOTH(name) CALL(name) CALL(name##_ptds)
#include "cuda_remote/runtime/driver_calls.h"
