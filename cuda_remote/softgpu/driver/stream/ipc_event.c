/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that processes share through a page of memory. */
#include "cuda_remote/softgpu/driver/stream/ipc_event.h"

#include "cuda_remote/softgpu/driver/ipc_handle.h"
#include "cuda_remote/softgpu/space/shared.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define LOOK_NS 100000000 /* how often a waiter checks that the recording process still lives */

/* Recording number n uses place n % PLACES. Recordings complete in any order, those of one place in order. */
#define PLACES 250

typedef struct place {
	uint64_t completed; /* the greatest completed number of this place */
	uint64_t recorder;  /* of the last recording: the lower half of its number, then the process id */
} place_t;

/* In shared memory, where every process may write anything: only numbers are read from it, never pointers or sizes. */
typedef struct shared_page {
	uint64_t recorded; /* numbers given to recordings */
	uint32_t changes;  /* of what is complete: the futex */
	uint32_t reserved;
	place_t places[PLACES];
} shared_page_t;
_Static_assert(sizeof(shared_page_t) <= PAGE, "fits in the page");

struct ipc_event {
	shared_page_t *page;
	int file;
	unsigned references; /* atomic: the event's, its commands' */
};

typedef struct event_command {
	command_t command;
	ipc_event_t *event;
	uint64_t number;
	int32_t process; /* that recorded what the command may wait for, if its place named it at the call; else 0 */
} event_command_t;

static CUresult make(int file, ipc_event_t **event)
{
	ipc_event_t *made = calloc(1, sizeof *made);
	void *page = made ? mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
	if (page == MAP_FAILED) {
		free(made);
		close(file);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*made = (ipc_event_t){ .page = page, .file = file, .references = 1 };
	*event = made;
	return CUDA_SUCCESS;
}

CUresult ipc_event_new(ipc_event_t **event)
{
	int file = softgpu_shared_file("event", 0, PAGE);
	return file < 0 ? CUDA_ERROR_OUT_OF_MEMORY : make(file, event);
}

void ipc_event_drop(ipc_event_t *event)
{
	/* Release and acquire: before the last holder unmaps the page, it sees what the other holders did with it. */
	if (__atomic_sub_fetch(&event->references, 1, __ATOMIC_ACQ_REL))
		return;
	munmap(event->page, PAGE);
	close(event->file);
	free(event);
}

static void drop_of_command(command_t *command)
{
	ipc_event_drop(((event_command_t *)command)->event);
}

static bool complete(const shared_page_t *page, uint64_t number)
{
	/* Pairs with the release in record_run, in any process: a thread that sees the number sees the stream's
	 * work. */
	return __atomic_load_n(&page->places[number % PLACES].completed, __ATOMIC_ACQUIRE) >= number;
}

/* The process that recorded this number; 0: its place names another recording, an earlier or a later one. */
static int32_t recorder_of(const shared_page_t *page, uint64_t number)
{
	uint64_t recorder = __atomic_load_n(&page->places[number % PLACES].recorder, __ATOMIC_RELAXED);
	int32_t process = (int32_t)(uint32_t)recorder;
	return (uint32_t)(recorder >> 32) == (uint32_t)number && process > 0 ? process : 0;
}

/* The process that recorded this number, if it has ended; else 0. known: what recorder_of said earlier. */
static int32_t gone(const shared_page_t *page, uint64_t number, int32_t known)
{
	int32_t process = recorder_of(page, number);
	process = process ? process : known;
	return process && kill(process, 0) && errno == ESRCH ? process : 0;
}

/* Waits for a number. known: as above. CUDA_ERROR_UNKNOWN: the process that recorded it has ended. */
static CUresult wait_for(shared_page_t *page, uint64_t number, int32_t known)
{
	const struct timespec look = { 0, LOOK_NS };
	for (;;) {
		/* Pairs with the release in record_run. */
		uint32_t changes = __atomic_load_n(&page->changes, __ATOMIC_ACQUIRE);
		if (complete(page, number))
			return CUDA_SUCCESS;
		int32_t process = gone(page, number, known);
		if (process && !complete(page, number)) {
			hr_log(HR_LOG_ERROR, "software GPU: process %d ended before its recorded event was complete",
			       (int)process);
			return CUDA_ERROR_UNKNOWN;
		}
		syscall(SYS_futex, &page->changes, FUTEX_WAIT, changes, &look, NULL, 0);
	}
}

static CUresult record_run(command_t *command)
{
	const event_command_t *record = (const event_command_t *)command;
	shared_page_t *page = record->event->page;
	uint64_t *completed = &page->places[record->number % PLACES].completed;
	/*
	 * The place's previous recording must complete first (it may be in another stream): the larger number would
	 * make it look complete.
	 */
	if (record->number > PLACES && !complete(page, record->number - PLACES)) {
		queue_rest_begin();
		(void)wait_for(page, record->number - PLACES, record->process);
		queue_rest_end();
	}
	/* Orders the work of the stream before the number; pairs with complete. */
	__atomic_store_n(completed, record->number, __ATOMIC_RELEASE);
	/* After the number: a waiter that has read this value of changes sees the number, or is woken. */
	__atomic_add_fetch(&page->changes, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return CUDA_SUCCESS;
}

/* Takes the number of a new recording, and names this process as its recorder. *before: the recorder of the place's previous
 * recording, which the place names no longer; 0: there is none, or the place did not name it. */
static uint64_t next_number(shared_page_t *page, int32_t *before)
{
	uint64_t number = __atomic_add_fetch(&page->recorded, 1, __ATOMIC_RELEASE);
	place_t *place = &page->places[number % PLACES];
	/* A recording of this place whose process has ended would block this one for ever: complete it. */
	*before = number > PLACES ? recorder_of(page, number - PLACES) : 0;
	if (number > PLACES && !complete(page, number - PLACES) && gone(page, number - PLACES, *before))
		__atomic_store_n(&place->completed, number - PLACES, __ATOMIC_RELEASE);
	/* Orders nothing: a waiter checks the process only once it is named. */
	__atomic_store_n(&place->recorder, number << 32 | (uint32_t)getpid(), __ATOMIC_RELAXED);
	return number;
}

static CUresult wait_run(command_t *command)
{
	const event_command_t *wait = (const event_command_t *)command;
	queue_rest_begin();
	CUresult result = wait_for(wait->event->page, wait->number, wait->process);
	queue_rest_end();
	return result;
}

static CUresult submit(ipc_event_t *event, CUstream stream, bool record)
{
	event_command_t *command = calloc(1, sizeof *command);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	shared_page_t *page = event->page;
	/* Orders nothing: another reference exists already. */
	__atomic_add_fetch(&event->references, 1, __ATOMIC_RELAXED);
	command->event = event;
	command->command.run = record ? record_run : wait_run;
	command->command.finish = drop_of_command;
	command->command.despite_fault = record;
	/* A host thread that waits for other work must not run this command and block in it. */
	command->command.host_code = !record;
	if (record) {
		command->number = next_number(page, &command->process);
	} else {
		command->number = __atomic_load_n(&page->recorded, __ATOMIC_ACQUIRE);
		command->process = recorder_of(page, command->number);
	}
	queue_submit(stream, &command->command);
	return CUDA_SUCCESS;
}

CUresult ipc_event_record(ipc_event_t *event, CUstream stream)
{
	return submit(event, stream, true);
}

CUresult ipc_event_wait(ipc_event_t *event, CUstream stream)
{
	/* Pairs with the release in submit. */
	if (complete(event->page, __atomic_load_n(&event->page->recorded, __ATOMIC_ACQUIRE)))
		return CUDA_SUCCESS;
	return submit(event, stream, false);
}

CUresult ipc_event_query(ipc_event_t *event, bool block)
{
	uint64_t number = __atomic_load_n(&event->page->recorded, __ATOMIC_ACQUIRE);
	if (complete(event->page, number))
		return CUDA_SUCCESS;
	if (!block)
		return CUDA_ERROR_NOT_READY;
	queue_call_follows(false); /* this thread runs nothing while it waits */
	return wait_for(event->page, number, recorder_of(event->page, number));
}

CUresult ipc_event_export(const ipc_event_t *event, CUipcEventHandle *handle)
{
	ipc_handle_t described;
	CUresult result = ipc_describe(event->file, &described);
	if (result)
		return result;
	memset(handle, 0, sizeof *handle);
	memcpy(handle, &described, sizeof described);
	return CUDA_SUCCESS;
}

CUresult ipc_event_import(const CUipcEventHandle *handle, ipc_event_t **event)
{
	ipc_handle_t described;
	int file, device;
	uint64_t bytes;
	memcpy(&described, handle, sizeof described);
	CUresult result = ipc_open(&described, "event", &file, &device, &bytes);
	if (result)
		return result;
	if (bytes != PAGE) {
		close(file);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	return make(file, event);
}
