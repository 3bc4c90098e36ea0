/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: pinned memory that copies go through, in three sizes, kept for later copies. A slot's event is complete when
 * the device no longer uses the slot. */
#include "cuda_remote/kept_memory.h"
#include "cuda_remote/server/internal.h"

#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

HR_SETTING(staging, "HEADRACE_STAGING", "256M", 1u << 20, 1ull << 40,
	   "bytes of asynchronous copies to the host that a worker holds until the client takes them");

/* Slots that are pinned before a client connects. */
#define PREPARED 4

static const size_t sizes[] = { SERVER_OWN_SLOT, 65536, RC_CHUNK_MAX };
#define SIZES (sizeof sizes / sizeof sizes[0])

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Held while events end, and while slots are marked; taken before the other lock. The driver is not called under the other lock, which
 * the data connection's thread takes. */
static pthread_mutex_t ends_lock = PTHREAD_MUTEX_INITIALIZER;
static struct server_slot *unused[SIZES];
static struct server_slot *left; /* the device may still use them; atomic */
static struct server_slot *made; /* all slots; those of this file are never freed */
static uint64_t allocated;       /* bytes */

/* Tells the software GPU that the memory, which it has registered, stays mapped, and whether the client reads it. */
static void keep(const struct server_slot *slot)
{
	static const CUuuid id = RC_KEPT_MEMORY_UUID;
	const void *table;
	if (!driver.cuGetExportTable || driver.cuGetExportTable(&table, &id) != CUDA_SUCCESS)
		return;
	const struct rc_kept_memory *kept = table;
	if (kept->size != sizeof *kept)
		return;
	(void)kept->keep(slot->memory);
	if (slot->staging)
		(void)kept->give(slot->memory);
}

/* Pins the memory. If the driver cannot, copies through the slot are slower. The end of the context unpins the memory; it
 * stays mapped. */
static CUresult slot_pin(struct server_slot *slot)
{
	CUcontext context = NULL;
	driver.cuCtxGetCurrent(&context);
	__atomic_store_n(&slot->pinned, context, __ATOMIC_RELAXED);
	if (!driver.cuMemHostRegister_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuMemHostRegister_v2(slot->memory, slot->size, CU_MEMHOSTREGISTER_PORTABLE);
	if (result == CUDA_SUCCESS)
		keep(slot);
	return result;
}

static void slot_list(struct server_slot *slot)
{
	pthread_mutex_lock(&lock);
	slot->next_made = made;
	made = slot;
	pthread_mutex_unlock(&lock);
}

static struct server_slot *slot_new(size_t size)
{
	struct server_slot *slot = calloc(1, sizeof *slot);
	void *memory = slot ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
	if (memory == MAP_FAILED) {
		free(slot);
		return NULL;
	}
	slot->memory = memory;
	slot->size = size;
	slot_pin(slot);
	slot_list(slot);
	return slot;
}

/* If a context of the slot has ended: forgets the event that ended with it, and pins the memory again. */
static void slot_renew(struct server_slot *slot)
{
	if (__atomic_load_n(&slot->event_gone, __ATOMIC_RELAXED)) {
		__atomic_store_n(&slot->event_gone, false, __ATOMIC_RELAXED);
		slot->event = NULL;
		slot->recorded = false;
	}
	if (__atomic_load_n(&slot->pin_gone, __ATOMIC_RELAXED)) {
		__atomic_store_n(&slot->pin_gone, false, __ATOMIC_RELAXED);
		slot_pin(slot);
	}
}

CUresult server_slot_list(struct server_slot *slot, uint8_t *memory, size_t size)
{
	slot->memory = memory;
	slot->size = size;
	CUresult result = slot_pin(slot);
	if (result == CUDA_SUCCESS)
		slot_list(slot);
	return result;
}

CUresult server_slot_repin(struct server_slot *slot)
{
	if (!__atomic_load_n(&slot->pin_gone, __ATOMIC_RELAXED))
		return CUDA_SUCCESS;
	CUresult result = slot_pin(slot);
	if (result == CUDA_SUCCESS)
		__atomic_store_n(&slot->pin_gone, false, __ATOMIC_RELAXED);
	return result;
}

void server_slot_stage(struct server_slot *slot)
{
	slot->staging = true;
	keep(slot);
}

bool server_slot_is_pinned(const struct server_slot *slot)
{
	return !__atomic_load_n(&slot->pin_gone, __ATOMIC_RELAXED) && !__atomic_load_n(&slot->pin_ends, __ATOMIC_RELAXED);
}

void server_slot_unlist(struct server_slot *slot)
{
	pthread_mutex_lock(&lock);
	struct server_slot **at = &made;
	while (*at != slot)
		at = &(*at)->next_made;
	*at = slot->next_made;
	bool pinned = server_slot_is_pinned(slot);
	pthread_mutex_unlock(&lock);
	if (pinned && driver.cuMemHostUnregister)
		driver.cuMemHostUnregister(slot->memory);
}

int server_slots_prepare(void)
{
	int error = hr_setting_u64(&staging, &worker.staging);
	for (int i = 0; i < PREPARED && !error; i++) {
		struct server_slot *slot = slot_new(RC_CHUNK_MAX);
		if (!slot) {
			hr_log(HR_LOG_ERROR, "no pinned memory for copies");
			return -EIO;
		}
		allocated += slot->size;
		server_slot_put(slot);
	}
	return error;
}

static void slot_keep_left(struct server_slot *slot)
{
	pthread_mutex_lock(&lock);
	slot->next = left;
	__atomic_store_n(&left, slot, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

/* Puts back the slots that the device has left by now. */
static void take_back(void)
{
	pthread_mutex_lock(&lock);
	struct server_slot *slot = left, *next;
	__atomic_store_n(&left, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	for (; slot; slot = next) {
		next = slot->next;
		if (server_slot_is_free(slot))
			server_slot_put(slot);
		else
			slot_keep_left(slot);
	}
}

CUresult server_slot_get(size_t size, struct server_slot **slot)
{
	size_t class = 0;
	if (__atomic_load_n(&left, __ATOMIC_RELAXED))
		take_back();
	while (class < SIZES && sizes[class] < size)
		class++;
	if (class == SIZES)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	struct server_slot *found = unused[class];
	/* The client keeps the bytes that it requests below staging. Slots may be larger than the bytes they hold. */
	bool allowed = found || allocated + sizes[class] <= 4 * worker.staging + (64ull << 20);
	if (found)
		unused[class] = found->next;
	else if (allowed)
		allocated += sizes[class];
	pthread_mutex_unlock(&lock);
	if (!found && allowed && !(found = slot_new(sizes[class]))) {
		pthread_mutex_lock(&lock);
		allocated -= sizes[class];
		pthread_mutex_unlock(&lock);
	}
	if (!found)
		return CUDA_ERROR_OUT_OF_MEMORY;
	slot_renew(found);
	found->recorded = false;
	*slot = found;
	return CUDA_SUCCESS;
}

CUresult server_slot_own(struct server_thread *thread, struct server_slot **slot)
{
	CUresult result = CUDA_SUCCESS;
	if (!thread->own)
		result = server_slot_get(SERVER_OWN_SLOT, &thread->own);
	if (result != CUDA_SUCCESS)
		return result;
	slot_renew(thread->own);
	thread->own->recorded = false;
	*slot = thread->own;
	return CUDA_SUCCESS;
}

void server_slot_put(struct server_slot *slot)
{
	if (!slot)
		return;
	size_t class = 0;
	while (sizes[class] != slot->size)
		class++;
	pthread_mutex_lock(&lock);
	slot->next = unused[class];
	unused[class] = slot;
	pthread_mutex_unlock(&lock);
}

uint64_t server_slots_end(CUcontext context)
{
	static uint64_t ends;
	pthread_mutex_lock(&ends_lock);
	pthread_mutex_lock(&lock);
	uint64_t end = ++ends;
	for (struct server_slot *slot = made; slot; slot = slot->next_made) {
		if (__atomic_load_n(&slot->context, __ATOMIC_RELAXED) == context)
			__atomic_store_n(&slot->event_ends, end, __ATOMIC_RELAXED);
		if (__atomic_load_n(&slot->pinned, __ATOMIC_RELAXED) == context)
			__atomic_store_n(&slot->pin_ends, end, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&ends_lock);
	return end;
}

void server_slots_forget(uint64_t end)
{
	pthread_mutex_lock(&ends_lock);
	pthread_mutex_lock(&lock);
	for (struct server_slot *slot = made; slot; slot = slot->next_made) {
		if (__atomic_load_n(&slot->event_ends, __ATOMIC_RELAXED) == end) {
			__atomic_store_n(&slot->event_gone, true, __ATOMIC_RELAXED);
			__atomic_store_n(&slot->event_ends, 0, __ATOMIC_RELEASE);
		}
		if (__atomic_load_n(&slot->pin_ends, __ATOMIC_RELAXED) == end) {
			__atomic_store_n(&slot->pin_gone, true, __ATOMIC_RELAXED);
			__atomic_store_n(&slot->pin_ends, 0, __ATOMIC_RELAXED);
		}
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&ends_lock);
}

/* Under a lock, so that the end of the old event's context cannot mark the slot's next event as gone. */
static void slot_drop_event(struct server_slot *slot)
{
	pthread_mutex_lock(&ends_lock);
	if (!__atomic_load_n(&slot->event_gone, __ATOMIC_RELAXED) && !__atomic_load_n(&slot->event_ends, __ATOMIC_RELAXED))
		driver.cuEventDestroy_v2(slot->event);
	__atomic_store_n(&slot->event_gone, false, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->event_ends, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->context, NULL, __ATOMIC_RELAXED);
	slot->event = NULL;
	pthread_mutex_unlock(&ends_lock);
}

/* An event belongs to a context. If the slot is used in another context, it gets a new event. */
CUresult server_slot_record(struct server_slot *slot, CUstream stream)
{
	CUcontext context;
	slot_renew(slot);
	CUresult result = driver.cuCtxGetCurrent(&context);
	if (result == CUDA_SUCCESS && slot->event &&
	    (slot->context != context || __atomic_load_n(&slot->event_ends, __ATOMIC_RELAXED)))
		slot_drop_event(slot);
	if (result == CUDA_SUCCESS && !slot->event)
		result = driver.cuEventCreate(&slot->event, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS) {
		__atomic_store_n(&slot->context, context, __ATOMIC_RELAXED);
		result = driver.cuEventRecord(slot->event, stream);
	}
	slot->recorded = result == CUDA_SUCCESS;
	return result;
}

/* The software GPU makes a small copy in an idle stream at once. Then an event would take longer than the copy. */
CUresult server_slot_record_rest(struct server_slot *slot, CUstream stream)
{
	if (!driver.cuStreamQuery || driver.cuStreamQuery(stream) != CUDA_SUCCESS)
		return server_slot_record(slot, stream);
	slot->recorded = false;
	return CUDA_SUCCESS;
}

bool server_slot_is_free(struct server_slot *slot)
{
	/* The driver may be ending the event. Acquire pairs with the release in server_slots_forget: slot_renew sees that it
	 * has. */
	if (slot->recorded && __atomic_load_n(&slot->event_ends, __ATOMIC_ACQUIRE))
		return false;
	slot_renew(slot);
	if (slot->recorded && driver.cuEventQuery(slot->event) == CUDA_ERROR_NOT_READY)
		return false;
	slot->recorded = false;
	return true;
}

CUresult server_slot_wait(struct server_slot *slot)
{
	slot_renew(slot);
	if (!slot->recorded)
		return CUDA_SUCCESS;
	slot->recorded = false;
	return driver.cuEventSynchronize(slot->event);
}

void server_slot_leave(struct server_slot *slot, CUstream stream)
{
	if (server_slot_record(slot, stream) == CUDA_SUCCESS)
		slot_keep_left(slot);
}
