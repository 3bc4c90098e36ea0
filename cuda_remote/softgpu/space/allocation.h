/* SPDX-License-Identifier: BSD-3-Clause */
/* What the address space records of one allocation. */
#ifndef SOFTGPU_SPACE_ALLOCATION_H
#define SOFTGPU_SPACE_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

enum softgpu_space_kind {
	SOFTGPU_SPACE_DEVICE,     /* cuMemAlloc; counts against the device's memory */
	SOFTGPU_SPACE_MODULE,     /* a module's variables; counts too, but is not the program's to free */
	SOFTGPU_SPACE_MANAGED,    /* cuMemAllocManaged; counts too */
	SOFTGPU_SPACE_HOST,       /* cuMemHostAlloc */
	SOFTGPU_SPACE_REGISTERED, /* cuMemHostRegister; outside the reserved range */
	SOFTGPU_SPACE_HEAP,       /* a kernel's malloc; counts too */
	SOFTGPU_SPACE_MAPPED,     /* cuMemMap and the like: shareable memory, counted where it was made */
};

typedef struct softgpu_allocation {
	uint64_t base, size;    /* exactly as asked for */
	uint64_t id;            /* never used twice in a process */
	enum softgpu_space_kind kind;
	int device;
	unsigned flags;         /* the caller's */
	bool read_only;         /* for kernels */
	bool hidden;            /* mapped, but nobody has access: kernels and copies do not find it */
	bool sync_memops;       /* synchronous calls on it wait in every case */
	bool imported;          /* another process's */
	const void *owner;      /* the caller's: the context */
	const void *pool;       /* the caller's: the memory pool it came from, or NULL */
} softgpu_allocation_t;

#endif
