/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of one allocation in the software GPU's address space. */
#ifndef SOFTGPU_SPACE_ALLOCATION_H
#define SOFTGPU_SPACE_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

enum softgpu_space_kind {
	SOFTGPU_SPACE_DEVICE,     /* cuMemAlloc; counts against the device's memory */
	SOFTGPU_SPACE_MODULE,     /* a module's variables; counts against it; the program cannot free it */
	SOFTGPU_SPACE_MANAGED,    /* cuMemAllocManaged; counts against it */
	SOFTGPU_SPACE_HOST,       /* cuMemHostAlloc; counts against the host's memory */
	SOFTGPU_SPACE_REGISTERED, /* cuMemHostRegister; outside the reserved range */
	SOFTGPU_SPACE_HEAP,       /* a kernel's malloc; counts against the device's memory */
	SOFTGPU_SPACE_MAPPED,     /* cuMemMap and the like: shareable memory; counts where it was created */
};

typedef struct softgpu_allocation {
	uint64_t base, size;    /* bytes; size is the requested size */
	uint64_t id;            /* unique in the process */
	enum softgpu_space_kind kind;
	int device;
	unsigned flags;         /* set by the caller */
	bool read_only;         /* kernels may only read */
	bool hidden;            /* mapped without access rights: kernels and copies do not find it */
	bool sync_memops;       /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: synchronous calls on it always wait */
	bool imported;          /* created by another process */
	bool freeing;           /* a stream frees it when it comes there */
	bool kept;              /* registered memory that stays mapped */
	bool given;             /* kept memory: another process reads what copies write */
	const void *owner;      /* set by the caller: the context */
	const void *pool;       /* set by the caller: the memory pool of the allocation, or NULL */
} softgpu_allocation_t;

#endif
