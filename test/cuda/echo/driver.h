/* SPDX-License-Identifier: BSD-3-Clause */
/* The echo driver, inside: what its generated functions call. */
#ifndef TEST_CUDA_ECHO_DRIVER_H
#define TEST_CUDA_ECHO_DRIVER_H

#include "cuda_remote/wire.h"
#include "test/cuda/echo/echo.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* One call of a generated function. */
struct echo_call {
	bool armed;      /* it is recorded */
	CUresult result; /* what it returns; CUDA_SUCCESS until an argument is wrong */
};

void echo_begin(struct echo_call *call, unsigned function);
/* The result. Outputs are written and objects made and ended only if it is CUDA_SUCCESS. */
CUresult echo_decide(struct echo_call *call);

/* An argument that is a number. */
void echo_value(struct echo_call *call, unsigned parameter, const void *value, size_t size);
/* An argument that is a handle. Wrong: it is not of a live object of this kind. */
void echo_handle(struct echo_call *call, unsigned parameter, enum rc_kind kind, uint64_t handle);
/* A device's number. Wrong: there is no such device. */
void echo_device(struct echo_call *call, unsigned parameter, CUdevice device);
/* A number that the driver gave to a texture or surface object. */
void echo_number(struct echo_call *call, unsigned parameter, uint64_t number);
/* A pointer; wrong if it is NULL and not optional. */
void echo_pointer(struct echo_call *call, unsigned parameter, const void *pointer, bool optional);
/* The bytes at a pointer that was found right. type: index of a struct with handles, plus 1; 0: plain bytes. */
void echo_bytes(struct echo_call *call, unsigned parameter, const void *bytes, size_t size, unsigned type);
/* Whether a handle or a device in a struct is right. */
void echo_check_handle(struct echo_call *call, enum rc_kind kind, uint64_t handle);
void echo_check_device(struct echo_call *call, int device);

/* Results. */
void echo_fill(const struct echo_call *call, unsigned parameter, void *to, size_t size);
/* An address at which there is nothing, with 2 MiB behind it: of a call that is not recorded. */
CUdeviceptr echo_addresses(void);
uint64_t echo_new(enum rc_kind kind, uint64_t owner);
/* The object of an owner that has this key; made at the first call. */
uint64_t echo_alias(enum rc_kind kind, unsigned function, uint64_t owner, uint64_t key);
uint64_t echo_text_key(const char *text);
void echo_delete(uint64_t handle);
void echo_number_new(uint64_t number);
void echo_number_delete(uint64_t number);

#endif
