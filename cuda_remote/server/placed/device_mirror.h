/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mirrors (cuda_remote/mirror/mirror.h) whose memory the worker's processors cannot read. A kernel finds the pages that were
 * changed: the device holds 32 hashes for each page of the twin, and compares them with those of the memory. These take
 * 6.3 % of the mirror's size in device memory. Only changed pages are copied to the host, and compared with the twin there.
 * Another kernel stores the client's changes.
 *
 * The lock of mirror.c is held in all calls, except where it says otherwise. They make the mirror's context current.
 */
#ifndef RC_CUDA_DEVICE_MIRROR_H
#define RC_CUDA_DEVICE_MIRROR_H

#include "cuda_remote/mirror/mirror.h"
#include "cuda_remote/server/internal.h"

struct device_mirror;
struct device_mirror_engine;

/* The kernels of a context are loaded once, and before its first mirror. */
bool device_mirror_is_ready(CUcontext context);
/* Loads them in the current context. Without the lock: this may take long. */
CUresult device_mirror_load(CUcontext context, struct device_mirror_engine **loaded);
void device_mirror_use(struct device_mirror_engine *loaded);
/* For a mirror of the current context, which is its owner, and whose twin holds zeros. Clears the mirror's memory.
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: the context has no kernels (any more). */
CUresult device_mirror_new(const struct mirror *mirror, struct device_mirror **made);
/* Finds the changed pages of all mirrors of the table that are of this kind: one wait for each context. */
CUresult device_mirrors_scan(const struct mirror_table *table);
/* As mirror_collect, of the pages that the last scan has found. *stop: where it stopped. */
CUresult device_mirror_collect(const struct mirror *mirror, uint64_t from, struct mirror_changes *changes, uint64_t *stop);
/* As mirror_store. The memory has the bytes after device_mirror_flush, which is called before any other function here is.
 * CUDA_ERROR_INVALID_VALUE: part of the record is outside of the mirror. */
CUresult device_mirror_store(const struct mirror *mirror, const struct rc_wire_change *record, const uint8_t *bytes);
CUresult device_mirror_flush(void);
/* The mirror has been removed. Its memory on the device is for the next mirrors of the context; no function of the driver is
 * called. */
void device_mirror_free(struct device_mirror *device);
/* The context is about to end. */
void device_mirrors_forget(CUcontext context);

#endif
