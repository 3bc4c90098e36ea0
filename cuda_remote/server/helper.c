/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers: threads that free device memory. The driver's cuMemFree waits for the work of the context, and the client does
 * not wait for cuMemFree. So the call would hold up the later calls of its thread and, as these have numbers, of all
 * threads. Therefore a helper makes it, while the calls that follow are issued. The jobs of one connection are done one
 * after another; those of different connections do not wait for each other. If no device has work, cuMemFree does not
 * wait, and no helper is needed.
 */
#include "cuda_remote/server/internal.h"

#include <stdlib.h>

struct job {
	struct job *next;
	const struct server_thread *owner; /* compared, never followed; NULL: its connection is closed */
	CUcontext context;                 /* current at the call */
	CUdeviceptr address;
	uint64_t number;
	bool taken;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static struct job *jobs, **jobs_end = &jobs; /* oldest first; a job stays until it is done */
static unsigned idle;                        /* helpers that wait for a job and have not been called */
static unsigned called;                      /* helpers that have been called and have not woken up yet */
static uint64_t pending;                     /* number of jobs; atomic */

/* ---- work: what the devices may still have to do ---- */

static struct {
	uint64_t issued;     /* calls that may have given work to a device */
	uint64_t known_idle; /* value of issued at which all of that work was done */
	CUcontext only;      /* the context of all work since then */
	bool several;        /* there were other contexts too */
} work;

/* Calls that give no work to a device. */
static const bool gives_none[RC_CALLS] = {
	[RC_CALL_hello] = true, [RC_CALL_cuMemAlloc_v2] = true, [RC_CALL_cuMemAllocPitch_v2] = true,
	[RC_CALL_cuMemFree_v2] = true, [RC_CALL_cuMemGetInfo_v2] = true, [RC_CALL_context_synchronize] = true,
	[RC_CALL_cuEventCreate] = true, [RC_CALL_cuEventDestroy_v2] = true, [RC_CALL_cuEventQuery] = true,
	[RC_CALL_cuEventSynchronize] = true, [RC_CALL_cuStreamCreate] = true, [RC_CALL_cuStreamQuery] = true,
	[RC_CALL_cuStreamSynchronize] = true, [RC_CALL_module_global] = true,
};

void server_work_issued(uint16_t function, CUcontext context)
{
	if (gives_none[function])
		return;
	pthread_mutex_lock(&lock);
	if (work.issued == work.known_idle) {
		work.only = context;
		work.several = false;
	} else if (work.only != context) {
		work.several = true;
	}
	work.issued++;
	pthread_mutex_unlock(&lock);
}

uint64_t server_work_count(void)
{
	pthread_mutex_lock(&lock);
	uint64_t issued = work.issued;
	pthread_mutex_unlock(&lock);
	return issued;
}

void server_work_done(CUcontext context, uint64_t count)
{
	pthread_mutex_lock(&lock);
	if (work.issued == count && work.only == context && !work.several)
		work.known_idle = count;
	pthread_mutex_unlock(&lock);
}

static bool no_work(void)
{
	pthread_mutex_lock(&lock);
	bool none = work.issued == work.known_idle;
	pthread_mutex_unlock(&lock);
	return none;
}

/* ---- the helpers ---- */

/* The oldest job that no helper has taken and whose owner has no job that a helper has taken. Under the lock. */
static struct job *job_next(void)
{
	for (struct job *job = jobs; job; job = job->next) {
		bool owner_waits = false;
		for (struct job *older = jobs; older != job && !owner_waits; older = older->next)
			owner_waits = older->owner == job->owner;
		if (!job->taken && !owner_waits)
			return job;
	}
	return NULL;
}

/* Removes a job from the list. Under the lock. */
static void job_remove(struct job *job)
{
	struct job **at = &jobs;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	if (!job->next)
		jobs_end = at;
	__atomic_sub_fetch(&pending, 1, __ATOMIC_RELEASE);
}

static void job_do(const struct job *job)
{
	CUresult result = driver.cuCtxSetCurrent(job->context);
	if (result == CUDA_SUCCESS)
		result = driver.cuMemFree_v2(job->address);
	driver.cuCtxSetCurrent(NULL);
	if (result != CUDA_SUCCESS)
		server_latch_set(job->number, RC_CALL_cuMemFree_v2, result);
}

static void *help(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&lock);
	for (;;) {
		struct job *job = job_next();
		if (!job) {
			idle++;
			while (!called)
				pthread_cond_wait(&given, &lock);
			called--;
			continue;
		}
		job->taken = true;
		pthread_mutex_unlock(&lock);
		job_do(job);
		pthread_mutex_lock(&lock);
		job_remove(job);
		free(job);
		pthread_cond_broadcast(&finished);
	}
	return NULL;
}

/* Calls a helper, or starts one if all are at work. Under the lock. False: there is none. */
static bool call_helper(void)
{
	static unsigned helpers;
	pthread_t thread;
	if (idle) {
		idle--;
		called++;
		pthread_cond_signal(&given);
		return true;
	}
	if (!pthread_create(&thread, NULL, help, NULL)) {
		pthread_detach(thread);
		helpers++;
	}
	return helpers > 0; /* one that is at work takes the job afterwards */
}

static CUresult give_job(const struct server_call *call, CUdeviceptr address)
{
	struct job *job = calloc(1, sizeof *job);
	if (!job)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*job = (struct job){ .owner = call->thread, .context = call->thread->current, .address = address,
			     .number = call->number };
	pthread_mutex_lock(&lock);
	*jobs_end = job;
	jobs_end = &job->next;
	__atomic_add_fetch(&pending, 1, __ATOMIC_RELAXED);
	/* If an older job of the same connection is in progress, its helper takes this one afterwards. */
	bool helped = !job_next() || call_helper();
	if (!helped)
		job_remove(job);
	pthread_mutex_unlock(&lock);
	if (!helped)
		free(job);
	return helped ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult serve_memory_free(struct server_call *call)
{
	struct rc_args_cuMemFree_v2 args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemFree_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* A helper may be in the driver for the same context. */
	if (no_work() && !server_helper_pending())
		return driver.cuMemFree_v2(args.dptr);
	return give_job(call, args.dptr);
}

bool server_helper_pending(void)
{
	return __atomic_load_n(&pending, __ATOMIC_ACQUIRE) > 0;
}

void server_helper_await(const struct server_thread *owner, CUcontext context, uint64_t number)
{
	if (!server_helper_pending())
		return;
	pthread_mutex_lock(&lock);
	for (struct job *job = jobs; job;) {
		if ((!owner || job->owner == owner) && (!context || job->context == context) && job->number < number) {
			pthread_cond_wait(&finished, &lock);
			job = jobs;
		} else {
			job = job->next;
		}
	}
	pthread_mutex_unlock(&lock);
}

void server_helper_forget(const struct server_thread *owner)
{
	pthread_mutex_lock(&lock);
	for (struct job *job = jobs; job; job = job->next)
		if (job->owner == owner)
			job->owner = NULL;
	pthread_mutex_unlock(&lock);
}
