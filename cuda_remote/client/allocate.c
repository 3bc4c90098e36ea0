/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuMemAlloc and cuMemFree. If the server lets the client choose addresses, each device has a window of the process's own
 * addresses and a budget of the device's memory, which the server has set aside. An allocation inside of both needs no
 * reply. A server whose driver chooses the addresses answers each allocation.
 *
 * A free needs no reply if all work before it is known to be complete (rc_link_post_settled): then the driver would not wait
 * either. An address is used again once a later call of the session cannot overtake the free.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/window.h"
#include "rdma_channel/base/log.h"

#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

HR_SETTING(window_setting, "HEADRACE_WINDOW", "0", 0, (uint64_t)1 << 46,
	   "addresses that a program reserves for each remote GPU's memory, bytes; 0: four times the GPU's memory");

#define ATTEMPTS 16                    /* to find addresses that are free in both processes */
#define WINDOW_LEAST ((uint64_t)1 << 30)
#define WINDOW_MOST ((uint64_t)1 << 45)
#define AHEAD_MOST ((uint64_t)64 << 20) /* of budget, beyond what an allocation needs */
#define PITCH_MAX 2147483647u

/*
 * Memory whose address is not used again until the call with this number, and all before it, are known to be complete:
 * cuMemFreeAsync was called for it, or no graph uses it any more. The latter is then still to be freed at the server.
 */
struct leaving {
	struct leaving *next;
	uint64_t address, bytes, number;
	bool by_client; /* the client has chosen the address */
	bool to_free;   /* at the server, where it belongs to this context */
	CUcontext context;
};

enum state { STATE_NEW, STATE_WINDOW, STATE_DRIVER };

/* Of one device. The lock of its session guards it. */
struct rc_placing {
	struct rc_session *session;
	uint64_t context; /* the device's primary context */
	enum state state; /* STATE_DRIVER: the driver chooses addresses */
	struct rc_window window;
	uint64_t budget;  /* bytes that the server has set aside and no allocation uses */
	uint64_t ahead;   /* bytes to ask for beyond what is needed */
	struct leaving *leaving;
};

static struct rc_placing *placings[RC_SERVER_MAX * RC_DEVICES_MAX]; /* by the program's number of the device */
static pthread_mutex_t locks[RC_SERVER_MAX] = { [0 ... RC_SERVER_MAX - 1] = PTHREAD_MUTEX_INITIALIZER };

static void lock(const struct rc_session *session)
{
	pthread_mutex_lock(&locks[session->index]);
}

static void unlock(const struct rc_session *session)
{
	pthread_mutex_unlock(&locks[session->index]);
}

static uint64_t charge(const struct rc_placing *placing, uint64_t bytes)
{
	return (bytes + placing->window.granule - 1) & ~(placing->window.granule - 1);
}

/* ---- the window ---- */

static uint64_t window_bytes(const struct rc_device *device)
{
	uint64_t bytes;
	if (hr_setting_u64(&window_setting, &bytes) || !bytes)
		bytes = device->wire.memory < WINDOW_MOST / 4 ? 4 * device->wire.memory : WINDOW_MOST;
	if (bytes < WINDOW_LEAST)
		return WINDOW_LEAST;
	return (bytes + WINDOW_LEAST - 1) / WINDOW_LEAST * WINDOW_LEAST;
}

/* Offers a window to the server. CUDA_ERROR_ALREADY_MAPPED: the server has other memory there. */
static CUresult window_offer(struct rc_link *link, struct rc_placing *placing, uint64_t base, uint64_t bytes)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_window call;
	} message = { .call = { base, bytes } };
	struct rc_wire_placing answer;
	CUresult result = rc_link_call(link, RC_CALL_memory_window, 0, &message.head, sizeof message, NULL, 0);
	/* An earlier call's failure says nothing about the window. */
	if (result == CUDA_ERROR_NOT_SUPPORTED && link->head.failed == message.head.number)
		placing->state = STATE_DRIVER;
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof answer)
		return rc_link_broken(link, RC_CALL_memory_window);
	memcpy(&answer, link->reply, sizeof answer);
	placing->window = (struct rc_window){ .base = base, .bytes = bytes, .granule = answer.granule, .small = answer.small,
					      .page = answer.page, .unit = answer.unit };
	int error = rc_window_open(&placing->window);
	if (error)
		return error == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : rc_link_broken(link, RC_CALL_memory_window);
	placing->state = STATE_WINDOW;
	placing->ahead = (placing->ahead < AHEAD_MOST ? placing->ahead : AHEAD_MOST) / answer.page * answer.page;
	return CUDA_SUCCESS;
}

/* Finds out who chooses the addresses of the device, which is the link's context's. */
static CUresult window_open(struct rc_link *link, struct rc_placing *placing, const struct rc_device *device)
{
	uint64_t bytes = window_bytes(device);
	CUresult result = CUDA_ERROR_ALREADY_MAPPED;
	for (unsigned attempt = 0; attempt < ATTEMPTS && result == CUDA_ERROR_ALREADY_MAPPED; attempt++) {
		uint64_t base = rc_window_reserve(bytes, false, attempt);
		if (!base)
			break;
		result = window_offer(link, placing, base, bytes);
		if (result != CUDA_SUCCESS)
			rc_window_release(base, bytes);
	}
	if (result == CUDA_ERROR_ALREADY_MAPPED) {
		hr_log(HR_LOG_WARN, "no %llu bytes of addresses are free here and at server %s: the server chooses the addresses of its memory; HEADRACE_WINDOW sets the size",
		       (unsigned long long)bytes, link->server);
		placing->state = STATE_DRIVER;
	}
	return placing->state == STATE_DRIVER ? CUDA_SUCCESS : result;
}

/* The struct of the current context's device. Its lock is held on success, and its window is open unless the driver chooses
 * the addresses. */
static CUresult placing_enter(struct rc_link *link, struct rc_placing **found)
{
	struct rc_context *context;
	struct rc_device *device;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(context->device, &device);
	if (result != CUDA_SUCCESS)
		return result;
	lock(link->session);
	struct rc_placing *placing = placings[context->device];
	if (!placing && (placing = calloc(1, sizeof *placing))) {
		*placing = (struct rc_placing){ .session = device->session, .context = device->primary,
						.ahead = device->wire.memory / 16 };
		placings[context->device] = placing;
	}
	if (!placing)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else if (placing->state == STATE_NEW)
		result = window_open(link, placing, device);
	if (result != CUDA_SUCCESS)
		unlock(link->session);
	*found = placing;
	return result;
}

/* ---- the budget ---- */

static CUresult budget_call(struct rc_link *link, const struct rc_wire_budget *wanted, uint64_t *added)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_budget call;
	} message = { .call = *wanted };
	CUresult result = rc_link_call(link, RC_CALL_memory_budget, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof *added)
		return rc_link_broken(link, RC_CALL_memory_budget);
	memcpy(added, link->reply, sizeof *added);
	return *added < wanted->least || *added > wanted->most ? rc_link_broken(link, RC_CALL_memory_budget) : CUDA_SUCCESS;
}

static CUresult free_and_wait(struct rc_link *link, CUdeviceptr pointer, uint64_t *number)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_address call;
	} message = { .call = { pointer } };
	CUresult result = rc_link_call(link, RC_CALL_memory_free, 0, &message.head, sizeof message, NULL, 0);
	*number = message.head.number;
	return result;
}

/* Gives back addresses; then less of the budget is in use. */
static void give_addresses(struct rc_placing *placing, uint64_t address, uint64_t bytes)
{
	uint64_t used = placing->window.used;
	rc_window_give(&placing->window, address, bytes);
	placing->budget += used - placing->window.used;
}

/* The same for those of an allocation that no longer exists. */
static void give(struct rc_placing *placing, uint64_t address, uint64_t bytes)
{
	give_addresses(placing, address, charge(placing, bytes));
}

/* Managed memory has whole pages of this process for itself. */
static uint64_t whole_pages(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	return (bytes + page - 1) & ~(page - 1);
}

static void give_managed(struct rc_placing *placing, uint64_t address, uint64_t bytes)
{
	give_addresses(placing, address, charge(placing, whole_pages(bytes)));
}

/* Finds addresses for managed memory that begin at a page of this process. Takes more than it needs, and gives the rest back.
 * 0: there are none. */
static uint64_t take_managed(struct rc_placing *placing, uint64_t bytes)
{
	struct rc_window *window = &placing->window;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = charge(placing, whole_pages(bytes));
	uint64_t spare = page > window->granule ? page - window->granule : 0;
	if (pages > window->small || !spare)
		return rc_window_take(window, pages);
	uint64_t taken = rc_window_take(window, pages + spare);
	if (!taken || pages + spare > window->small)
		return taken;
	uint64_t address = (taken + page - 1) & ~(page - 1);
	if (address > taken)
		rc_window_give(window, taken, address - taken);
	if (address - taken < spare)
		rc_window_give(window, address + pages, spare - (address - taken));
	return address;
}

/* Ends an entry of the list. Its memory does not exist at the server any more. */
static void left(struct rc_placing *placing, struct leaving **at)
{
	struct leaving *left = *at;
	*at = left->next;
	if (left->by_client)
		give(placing, left->address, left->bytes);
	free(left);
}

static bool is_settled(const struct rc_placing *placing, const struct leaving *left)
{
	return left->number <= rc_link_settled(placing->session);
}

/* Ends the entries whose calls are complete, and frees their memory at the server. */
static void give_left(struct rc_link *link, struct rc_placing *placing)
{
	for (struct leaving **at = &placing->leaving; *at;) {
		struct {
			struct rc_wire_call head;
			struct rc_wire_address call;
		} message = { .call = { (*at)->address } };
		if (!is_settled(placing, *at) ||
		    ((*at)->to_free && rc_link_post(link, RC_CALL_memory_unplace, 0, &message.head, sizeof message, NULL, 0)))
			at = &(*at)->next;
		else
			left(placing, at);
	}
}

/* Frees the memory of this context that graphs have used, also if the client does not know which calls are complete. */
static void give_unused(struct rc_link *link, struct rc_placing *placing)
{
	uint64_t number;
	for (struct leaving **at = &placing->leaving; *at;)
		if ((*at)->to_free && (*at)->context == rc_context_current() &&
		    free_and_wait(link, (*at)->address, &number) == CUDA_SUCCESS)
			left(placing, at);
		else
			at = &(*at)->next;
}

/* The device has no memory left: frees what only waits for the end of earlier calls. False: there is nothing such. */
static bool make_room(struct rc_link *link, struct rc_placing *placing)
{
	/* cuCtxSynchronize would end a capture, which an allocation need not do. */
	if (!placing->leaving || capture_possible() || cuCtxSynchronize() != CUDA_SUCCESS)
		return false;
	give_left(link, placing);
	give_unused(link, placing);
	return true;
}

/* Makes the budget at least bytes. */
static CUresult budget_get(struct rc_link *link, struct rc_placing *placing, uint64_t bytes)
{
	uint64_t added;
	give_left(link, placing);
	if (bytes <= placing->budget)
		return CUDA_SUCCESS;
	uint64_t least = bytes - placing->budget;
	CUresult result = budget_call(link, &(struct rc_wire_budget){ least, least + placing->ahead, 0 }, &added);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && make_room(link, placing)) {
		if (bytes <= placing->budget)
			return CUDA_SUCCESS;
		least = bytes - placing->budget;
		result = budget_call(link, &(struct rc_wire_budget){ least, least + placing->ahead, 0 }, &added);
	}
	if (result == CUDA_SUCCESS)
		placing->budget += added;
	return result;
}

bool rc_placing_return(struct rc_link *link)
{
	bool any = false;
	uint32_t context = link->context;
	uint64_t added;
	lock(link->session);
	for (size_t i = 0; i < sizeof placings / sizeof placings[0]; i++) {
		struct rc_placing *placing = placings[i];
		if (!placing || placing->session != link->session || !placing->budget)
			continue;
		link->context = rc_handle_index(placing->context);
		if (budget_call(link, &(struct rc_wire_budget){ 0, 0, placing->budget }, &added) != CUDA_SUCCESS)
			continue;
		placing->budget = 0;
		any = true;
	}
	unlock(link->session);
	link->context = context;
	return any;
}

/* At least so much will be free when an allocation of the client's has ended: where the budget counts in pages, other
 * allocations may be in the page of a small one. */
static uint64_t returned(const struct rc_placing *placing, uint64_t bytes)
{
	if (placing->window.unit == placing->window.granule)
		return charge(placing, bytes);
	return bytes > placing->window.small ? (bytes + placing->window.page - 1) & ~(placing->window.page - 1) : 0;
}

CUresult memory_done_info(size_t *available, size_t *total)
{
	struct rc_context *context;
	(void)total;
	if (rc_context_get(&context) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	struct rc_session *session = rc_context_session();
	lock(session);
	struct rc_placing *placing = placings[context->device];
	if (placing) {
		for (struct leaving **at = &placing->leaving; *at;) {
			bool settled = is_settled(placing, *at);
			if (settled && !(*at)->to_free && (*at)->by_client) {
				left(placing, at);
				continue;
			}
			if (settled)
				*available += (*at)->by_client ? returned(placing, (*at)->bytes) : (*at)->bytes;
			at = &(*at)->next;
		}
		*available += placing->budget;
	}
	unlock(session);
	return CUDA_SUCCESS;
}

/* ---- allocating ---- */

/* Finds addresses for an allocation, pays for it from the budget and adds it to the table. Under the session's lock. */
static CUresult place_span(struct rc_link *link, struct rc_placing *placing, struct rc_span *span, uint64_t bytes)
{
	struct rc_window *window = &placing->window;
	CUresult result;
	give_left(link, placing);
	do {
		uint64_t used = window->used;
		span->base = span->kind == RC_MEMORY_DEVICE ? rc_window_take(window, bytes) : take_managed(placing, span->size);
		if (!span->base) {
			hr_log_once(HR_LOG_WARN, "the addresses of a remote GPU's memory are used up: HEADRACE_WINDOW sets their number");
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		uint64_t price = window->used - used;
		result = budget_get(link, placing, price);
		if (result != CUDA_SUCCESS) {
			rc_window_give(window, span->base, bytes);
			return result;
		}
		result = rc_memory_add(span);
		/* Another server's driver has placed memory of its own there: these addresses are never used. A page in which
		 * they are the first is paid for, as other addresses of the page can be used. */
		if (result == CUDA_SUCCESS ||
		    (result == CUDA_ERROR_ALREADY_MAPPED && window->unit == window->page && bytes <= window->small))
			placing->budget -= price;
	} while (result == CUDA_ERROR_ALREADY_MAPPED);
	if (result != CUDA_SUCCESS)
		rc_window_give(window, span->base, bytes);
	return result;
}

/* Allocates at an address of the window. Under the session's lock. */
static CUresult place(struct rc_link *link, struct rc_placing *placing, uint64_t size, CUdeviceptr *pointer)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_place call;
	} message = { .call = { 0, size } };
	struct rc_span span = { .size = size, .kind = RC_MEMORY_DEVICE, .session = link->session,
				.context = rc_context_current(), .placing = placing };
	if (size > placing->window.bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = place_span(link, placing, &span, charge(placing, size));
	if (result != CUDA_SUCCESS)
		return result;
	message.call.address = span.base;
	result = rc_link_post(link, RC_CALL_memory_place, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS)
		*pointer = span.base;
	else
		rc_memory_remove(span.base);
	return result;
}

/* As place, for managed memory; the server answers. Under the session's lock. */
static CUresult place_managed(struct rc_link *link, struct rc_placing *placing, struct rc_span *span)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_place call;
	} message = { .call = { 0, span->size } };
	if (span->size > placing->window.bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	span->placing = placing;
	CUresult result = place_span(link, placing, span, charge(placing, whole_pages(span->size)));
	if (result != CUDA_SUCCESS)
		return result;
	message.call.address = span->base;
	result = rc_link_call(link, RC_CALL_managed_make, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS) {
		rc_memory_remove(span->base);
		give_managed(placing, span->base, span->size);
	}
	return result;
}

CUresult rc_memory_allocate_managed(struct rc_span *span)
{
	struct rc_placing *placing;
	struct rc_link *link;
	CUresult result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	if (result == CUDA_SUCCESS)
		result = placing_enter(link, &placing);
	if (result != CUDA_SUCCESS)
		return result;
	result = placing->state == STATE_DRIVER ? CUDA_ERROR_NOT_SUPPORTED : place_managed(link, placing, span);
	unlock(link->session);
	return result;
}

/* After an error that stays with the context, every call in it returns that error. */
CUresult rc_link_health(struct rc_link *link)
{
	uint64_t added;
	if (!__atomic_load_n(&link->session->sick, __ATOMIC_RELAXED))
		return CUDA_SUCCESS;
	CUresult result = budget_call(link, &(struct rc_wire_budget){ 0, 0, 0 }, &added);
	if (result == CUDA_SUCCESS)
		__atomic_store_n(&link->session->sick, false, __ATOMIC_RELAXED);
	return result;
}

CUresult rc_memory_health(void)
{
	struct rc_link *link;
	CUresult result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	return result == CUDA_SUCCESS ? rc_link_health(link) : result;
}

/* *by_driver: the driver chooses the addresses of this device, and nothing was allocated. */
static CUresult allocate(struct rc_link *link, uint64_t size, CUdeviceptr *pointer, bool *by_driver)
{
	struct rc_placing *placing;
	CUresult result = placing_enter(link, &placing);
	if (result != CUDA_SUCCESS)
		return result;
	*by_driver = placing->state == STATE_DRIVER;
	if (!*by_driver)
		result = rc_link_health(link);
	if (!*by_driver && result == CUDA_SUCCESS)
		result = place(link, placing, size, pointer);
	else if (*by_driver)
		give_left(link, placing);
	unlock(link->session);
	return result;
}

/* ---- addresses that the driver chooses ---- */

/* Servers that choose addresses do not know of each other, or of the program's own memory. If one chooses an address that is
 * in use, it is asked again, and holds the memory meanwhile, so that it chooses another address. */
static CUresult ask(struct rc_link *link, enum rc_call function, struct rc_wire_call *head, size_t len, unsigned tries,
		    uint64_t answer[2])
{
	size_t bytes = function == RC_CALL_memory_alloc ? 8 : 16;
	uint64_t height = answer[1], number;
	CUresult result = rc_link_call(link, function, 0, head, len, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != bytes)
		return rc_link_broken(link, function);
	memcpy(answer, link->reply, bytes);
	struct rc_span span = { .base = answer[0], .size = bytes == 8 ? answer[1] : answer[1] * height, .kind = RC_MEMORY_DEVICE,
				.session = link->session, .context = rc_context_current() };
	result = rc_memory_add(&span);
	if (result == CUDA_SUCCESS)
		return result;
	if (result == CUDA_ERROR_ALREADY_MAPPED && tries > 1) {
		answer[1] = height;
		result = ask(link, function, head, len, tries - 1, answer);
	} else if (result == CUDA_ERROR_ALREADY_MAPPED) {
		hr_log(HR_LOG_ERROR, "the server allocates memory at %#llx, where the program has other memory, %d times; run the program again",
		       (unsigned long long)span.base, ATTEMPTS);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	free_and_wait(link, span.base, &number);
	return result;
}

/* True if another request may succeed after CUDA_ERROR_OUT_OF_MEMORY. */
static bool driver_has_room(struct rc_link *link)
{
	struct rc_placing *placing;
	if (placing_enter(link, &placing) != CUDA_SUCCESS)
		return false;
	bool made = make_room(link, placing);
	unlock(link->session);
	return made;
}

CUresult rc_memory_allocate(size_t size, CUdeviceptr *pointer)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_bytes call;
	} message = { .call = { size } };
	struct rc_link *link;
	bool by_driver = false;
	CUresult result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	if (result == CUDA_SUCCESS)
		result = allocate(link, size, pointer, &by_driver);
	if (!by_driver)
		return result;
	uint64_t answer[2] = { 0, size };
	result = ask(link, RC_CALL_memory_alloc, &message.head, sizeof message, ATTEMPTS, answer);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && driver_has_room(link)) {
		answer[1] = size;
		result = ask(link, RC_CALL_memory_alloc, &message.head, sizeof message, ATTEMPTS, answer);
	}
	if (result == CUDA_SUCCESS)
		*pointer = answer[0];
	return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
	CUresult result = capture_refuse_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	return pointer && size ? rc_memory_allocate(size, pointer) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_rows call;
	} message = { .call = { width, height, element, 0 } };
	struct rc_link *link;
	struct rc_placing *placing;
	uint64_t row, bytes;
	if (!pointer || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = capture_refuse_unsafe();
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	if (result == CUDA_SUCCESS)
		result = placing_enter(link, &placing);
	if (result != CUDA_SUCCESS)
		return result;
	bool by_driver = placing->state == STATE_DRIVER;
	unlock(link->session);
	if (by_driver) {
		uint64_t answer[2] = { 0, height };
		result = ask(link, RC_CALL_memory_alloc_pitch, &message.head, sizeof message, ATTEMPTS, answer);
		*pointer = result == CUDA_SUCCESS ? answer[0] : *pointer;
		*pitch = result == CUDA_SUCCESS ? answer[1] : *pitch;
		return result;
	}
	if (width > PITCH_MAX || (row = charge(placing, width)) > PITCH_MAX ||
	    __builtin_mul_overflow(row, (uint64_t)height, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	result = allocate(link, bytes, pointer, &by_driver);
	if (result == CUDA_SUCCESS)
		*pitch = row;
	return result;
}

/* ---- freeing ---- */

/* The allocation is no longer in the table, so that no other thread can free it too. */
static CUresult free_placed(struct rc_link *link, const struct rc_span *span)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_address call;
	} message = { .call = { span->base } };
	bool posted;
	uint64_t number;
	lock(span->session);
	CUresult result = rc_link_post_settled(link, RC_CALL_memory_unplace, &message.head, sizeof message, NULL, 0, &posted);
	if (posted)
		give(span->placing, span->base, span->size);
	unlock(span->session);
	if (posted || result != CUDA_SUCCESS)
		return result;
	result = free_and_wait(link, span->base, &number);
	if (result != CUDA_SUCCESS)
		return result; /* the memory may exist, so its address is not used again */
	rc_link_settle(link->session, (uint64_t)(uintptr_t)span->context, number);
	rc_placing_gone(span);
	return result;
}

void rc_placing_gone(const struct rc_span *span)
{
	lock(span->session);
	if (span->kind != RC_MEMORY_DEVICE)
		give_managed(span->placing, span->base, span->size);
	else
		give(span->placing, span->base, span->size);
	unlock(span->session);
}

static void leave(struct rc_placing *placing, const struct leaving *what)
{
	struct leaving *left = malloc(sizeof *left);
	if (!left)
		return; /* the address is not used again */
	lock(placing->session);
	*left = *what;
	left->next = placing->leaving;
	placing->leaving = left;
	unlock(placing->session);
}

void rc_placing_leave(const struct rc_span *span, uint64_t number)
{
	leave(span->placing, &(struct leaving){ .address = span->base, .bytes = span->size, .number = number,
						.by_client = true });
}

/* The placing that was found when the memory was allocated stays. */
void rc_memory_leave(const struct rc_span *span)
{
	struct rc_context *context = rc_handle_data(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)span->context);
	if (context)
		leave(placings[context->device],
		      &(struct leaving){ .address = span->base, .bytes = span->size, .by_client = span->placing, .to_free = true,
					 .context = span->context,
					 .number = __atomic_load_n(&span->session->numbered, __ATOMIC_RELAXED) });
}

void rc_memory_left_with(CUcontext context)
{
	for (size_t i = 0; i < sizeof placings / sizeof placings[0]; i++) {
		struct rc_placing *placing = placings[i];
		if (!placing)
			continue;
		lock(placing->session);
		for (struct leaving **at = &placing->leaving; *at;)
			if ((*at)->to_free && (*at)->context == context)
				left(placing, at);
			else
				at = &(*at)->next;
		unlock(placing->session);
	}
}

bool rc_memory_renew(const struct rc_span *span)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_place call;
	} message = { .call = { span->base, span->size } };
	struct rc_link *link;
	uint64_t number;
	return span->placing && rc_link_to(span->session, (uint64_t)(uintptr_t)span->context, &link) == CUDA_SUCCESS &&
	       free_and_wait(link, span->base, &number) == CUDA_SUCCESS &&
	       rc_link_post(link, RC_CALL_memory_place, 0, &message.head, sizeof message, NULL, 0) == CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	struct rc_route route = { NULL, 0, false };
	struct rc_link *link;
	struct rc_span span = { .placing = NULL, .imported = false };
	uint64_t number;
	CUresult result = capture_refuse_unsafe();
	if (result == CUDA_SUCCESS)
		result = rc_route_address(&route, pointer);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS && (rc_managed_free(pointer, &result) || rc_graph_memory_free(pointer, &result)))
		return result;
	if (result == CUDA_SUCCESS)
		rc_peer_settle_allocation(pointer);
	if (result == CUDA_SUCCESS && pointer && !rc_memory_take(pointer, RC_MEMORY_DEVICE, &span))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	if (span.placing)
		return free_placed(link, &span);
	result = free_and_wait(link, pointer, &number);
	if (span.imported)
		rc_ipc_gone(&span);
	return result;
}
