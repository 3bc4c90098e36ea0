/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects behind MPI handles. A handle is the object's address, or, for a predefined object, the constant of the ABI
 * (MPI 5.0, section 20.3). Every object begins with struct adi_object. Objects are counted: MPI_*_free releases the
 * program's reference, and an operation in progress holds one of its own.
 */
#ifndef ADI_CORE_OBJECT_H
#define ADI_CORE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

enum adi_kind {
	ADI_COMM = 1,
	ADI_GROUP,
	ADI_TYPE,
	ADI_OP,
	ADI_REQUEST,
	ADI_MESSAGE,
	ADI_ERRHANDLER,
	ADI_INFO,
	ADI_WIN,
	ADI_SESSION,
	ADI_KINDS
};

struct adi_object {
	uint32_t magic;     /* ADI_MAGIC + kind; 0 after the object was freed */
	int references;
	int number;         /* the handle's value in Fortran (MPI_*_toint); 0: not asked for yet */
	uint16_t constant;  /* predefined object: the handle's value; else 0 */
	uint16_t generation; /* of a request: even, below ADI_REQUEST_ALIGN, changes when its memory is used again; else 0 */
};

#define ADI_MAGIC 0x4d504900u
/* Handles below this value are constants of the ABI, not addresses. */
#define ADI_CONSTANTS 0x1000u

/* Memory of requests is used again and again. Requests are aligned to this number of bytes, and the low bits of a handle
 * are the generation. So a copy of the handle of a freed request is no handle of the next request in the same memory, nor
 * of the 30 after it. No handle of a request is odd. */
#define ADI_REQUEST_ALIGN 64u

/* Starts an object with one reference. */
void adi_object_init(struct adi_object *object, enum adi_kind kind);
/* Starts a predefined object, which is never freed. */
void adi_object_predefine(struct adi_object *object, enum adi_kind kind, uintptr_t constant);
static inline void adi_object_retain(struct adi_object *object)
{
	object->references++;
}
/* Drops a reference. Returns true if it was the last one of an object that is not predefined: the caller destroys the
 * object, and the handle and its number are invalid now. */
bool adi_object_release(struct adi_object *object);

/* The object of a handle that is not a constant; NULL if the handle is no valid object of this kind. */
static inline void *adi_object_at(const void *handle, enum adi_kind kind)
{
	uintptr_t low = (uintptr_t)handle & (kind == ADI_REQUEST ? ADI_REQUEST_ALIGN - 1 : sizeof(void *) - 1);
	struct adi_object *object = (struct adi_object *)((uintptr_t)handle - low);
	if ((uintptr_t)handle < ADI_CONSTANTS || (kind == ADI_REQUEST ? low & 1 : low))
		return 0;
	return object->magic == ADI_MAGIC + kind && object->generation == low ? object : 0;
}
/* The handle of an object; NULL objects have no handle. */
static inline void *adi_object_handle(struct adi_object *object)
{
	return object->constant ? (void *)(uintptr_t)object->constant : (void *)((uintptr_t)object + object->generation);
}

/* Fortran's integer of an object, which it keeps until it is freed, and back. Numbers of objects that are not predefined
 * start at ADI_CONSTANTS. -1: no memory. NULL: no such object of this kind. */
int adi_object_number(struct adi_object *object);
struct adi_object *adi_object_numbered(int number, enum adi_kind kind);

/* Frees the table of numbers. */
void adi_objects_end(void);

#endif
