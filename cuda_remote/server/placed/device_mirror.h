/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mirrors (cuda_remote/mirror/mirror.h) whose memory the worker's processors cannot read. A kernel finds the pages that were
 * changed: the device holds 32 hashes for each page of the twin, and compares them with those of the memory. These take
 * 6.3 % of the mirror's size in device memory. Only changed pages are copied to the host, and compared with the twin there.
 * Another kernel stores the client's changes.
 *
 * The lock of mirror.c is held in all calls. They make the mirror's context current.
 */
#ifndef RC_CUDA_DEVICE_MIRROR_H
#define RC_CUDA_DEVICE_MIRROR_H

#include "cuda_remote/mirror/mirror.h"
#include "cuda_remote/server/internal.h"

struct device_mirror;

/* For a mirror of the current context, which is its owner, and whose twin holds zeros. Clears the mirror's memory. */
CUresult device_mirror_new(const struct mirror *mirror, struct device_mirror **made);
/* Begins to find the changed pages; end waits for that. */
CUresult device_mirror_scan_begin(const struct mirror *mirror);
CUresult device_mirror_scan_end(const struct mirror *mirror);
/* As mirror_collect, of the pages that the last scan has found. *stop: where it stopped. */
CUresult device_mirror_collect(const struct mirror *mirror, uint64_t from, struct mirror_changes *changes, uint64_t *stop);
/* As mirror_store. The memory has the bytes after device_mirror_flush, which is called before any other function here is.
 * CUDA_ERROR_INVALID_VALUE: part of the record is outside of the mirror. */
CUresult device_mirror_store(const struct mirror *mirror, const struct rc_wire_change *record, const uint8_t *bytes);
CUresult device_mirror_flush(void);
/* The mirror has been removed. context_ends: the driver frees what belongs to its context. Else the call may wait for all work
 * of the device, and needs no lock. */
void device_mirror_free(struct device_mirror *device, bool context_ends);
/* The context is about to end. */
void device_mirrors_forget(CUcontext context);

#endif
