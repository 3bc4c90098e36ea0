/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of several processes (CU_EVENT_INTERPROCESS): a counter and a ring of places in a page that they share. A
 * recording takes the next number and writes it into its place when its stream has got there; who waits waits for that,
 * whatever was recorded since. Of the recordings of one place, 250 numbers apart, the later one waits for the earlier
 * one to complete.
 */
#ifndef SOFTGPU_IPC_EVENT_H
#define SOFTGPU_IPC_EVENT_H

#include "cuda_remote/softgpu/driver/context/context.h"

typedef struct ipc_event ipc_event_t;

/* A new one, with one reference. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult ipc_event_new(ipc_event_t **event);

/* One reference less. */
void ipc_event_drop(ipc_event_t *event);

CUresult ipc_event_record(ipc_event_t *event, CUstream stream);
/* The stream's later commands wait for the last recording in any process. */
CUresult ipc_event_wait(ipc_event_t *event, CUstream stream);
/* CUDA_ERROR_NOT_READY, or with block: returns when the last recording is complete. */
CUresult ipc_event_query(ipc_event_t *event, bool block);

/* For cuIpcGetEventHandle and cuIpcOpenEventHandle. */
CUresult ipc_event_export(const ipc_event_t *event, CUipcEventHandle *handle);
CUresult ipc_event_import(const CUipcEventHandle *handle, ipc_event_t **event);

#endif
