/* SPDX-License-Identifier: BSD-3-Clause */
/* The first failure, over all threads, of a call without reply. The next call that waits for a stream, an event, a context or a
 * copy to the host returns it after it has waited, as CUDA reports errors of earlier asynchronous work. */
#include "cuda_remote/api/context_errors.h"
#include "cuda_remote/server/internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool latched; /* atomic; set under the lock */
static struct {
	uint64_t number;
	uint16_t function;
	uint32_t context; /* index of the call's context; 0: not known */
	CUresult result;
} failure;

void server_latch_set(uint64_t number, uint16_t function, uint32_t context, CUresult result)
{
	hr_log(HR_LOG_INFO, "call %llu %s failed: %s", (unsigned long long)number, rc_call_names[function],
	       server_error_name(result));
	pthread_mutex_lock(&lock);
	if (!latched) {
		failure.number = number;
		failure.function = function;
		failure.context = context;
		failure.result = result;
		__atomic_store_n(&latched, true, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
}

/* Relaxed suffices for the first look: the call order (call_order.c) synchronises this call with the earlier ones. */
bool server_latch_take(uint64_t *number, uint16_t *function, CUresult *result)
{
	if (!__atomic_load_n(&latched, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&lock);
	bool taken = latched;
	if (taken) {
		*number = failure.number;
		*function = failure.function;
		*result = failure.result;
		__atomic_store_n(&latched, false, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

void server_latch_forget(uint32_t context)
{
	pthread_mutex_lock(&lock);
	if (latched && (failure.context ? failure.context == context : rc_error_stays(failure.result)))
		__atomic_store_n(&latched, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}
