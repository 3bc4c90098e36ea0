/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events that processes share (CU_EVENT_INTERPROCESS): a counter and a ring of 250 places in a shared page. A recording
 * takes the next number, and writes it into its place when its stream has reached the recording. A waiter waits for the
 * number that was the last when the wait was submitted, even if the event is recorded again. A recording that finds its
 * place in use, by the recording 250 numbers before, waits until that is complete.
 */
#ifndef SOFTGPU_IPC_EVENT_H
#define SOFTGPU_IPC_EVENT_H

#include "cuda_remote/softgpu/driver/context/context.h"

typedef struct ipc_event ipc_event_t;

/* Creates an event with one reference. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult ipc_event_new(ipc_event_t **event);

/* Drops a reference. */
void ipc_event_drop(ipc_event_t *event);

CUresult ipc_event_record(ipc_event_t *event, CUstream stream);
/* Makes the stream's later commands wait for the last recording, in whichever process. */
CUresult ipc_event_wait(ipc_event_t *event, CUstream stream);
/* CUDA_ERROR_NOT_READY: the last recording is not complete; block waits until it is. */
CUresult ipc_event_query(ipc_event_t *event, bool block);

/* For cuIpcGetEventHandle and cuIpcOpenEventHandle. */
CUresult ipc_event_export(const ipc_event_t *event, CUipcEventHandle *handle);
CUresult ipc_event_import(const CUipcEventHandle *handle, ipc_event_t **event);

#endif
