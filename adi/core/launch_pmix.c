/* SPDX-License-Identifier: BSD-3-Clause */
/* Start-up under a process manager that speaks PMIx: Open MPI's mpirun, srun --mpi=pmix. */
#include "adi/core/launch.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <limits.h>
#include <pmix.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CARD_KEY "headrace.card"
#define FETCH_SECONDS 60
/* Rank r asks for the states of all ranks each LOOK_SECONDS * (1 + r / LOOKERS) seconds of its wait in the fence: the lowest
 * ranks often, all others rarely, as each answer contains all ranks. */
#define LOOK_SECONDS 1
#define LOOKERS 8

static pmix_proc_t self;
static atomic_bool met, ending;
static pmix_status_t met_status;

static int launch_error(const char *call, pmix_status_t status)
{
	hr_log(HR_LOG_ERROR, "adi: %s: %s", call, PMIx_Error_string(status));
	return -EIO;
}

/* Returns a 32-bit number that the process manager has stored for the job under key; 0 if there is none. */
static uint32_t job_number(const char *key)
{
	pmix_proc_t job;
	PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
	pmix_value_t *value = NULL;
	if (PMIx_Get(&job, key, NULL, 0, &value) != PMIX_SUCCESS)
		return 0;
	uint32_t n = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
	PMIX_VALUE_RELEASE(value);
	return n;
}

static int job_size(int *size, int *local_size)
{
	uint32_t n = job_number(PMIX_JOB_SIZE), local = job_number(PMIX_LOCAL_SIZE);
	if (n == 0 || n > INT_MAX || self.rank >= n || local > n) {
		hr_log(HR_LOG_ERROR, "adi: inconsistent answer of the process manager: rank %u of %u, %u local ranks", self.rank, n,
		       local);
		return -EINVAL;
	}
	*size = (int)n;
	*local_size = local ? (int)local : 1;
	return 0;
}

/* Called on a thread of PMIx. Without its process manager nothing would end this process if a peer is gone. */
static void on_lost_server(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
			   pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *context)
{
	(void)id, (void)status, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
	if (!atomic_load_explicit(&ending, memory_order_relaxed)) {
		hr_log(HR_LOG_ERROR, "adi: the process manager has ended; rank %u ends too", self.rank);
		_exit(EXIT_FAILURE);
	}
	if (done)
		done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, context);
}

static int pmix_init(int *rank, int *size, int *local_size)
{
	/* A process manager sets this variable. Without one PMIx_Init would search for a server for a while. */
	if (!getenv("PMIX_NAMESPACE"))
		return -ENOENT;
	pmix_status_t status = PMIx_Init(&self, NULL, 0);
	if (status == PMIX_ERR_UNREACH)
		return -ENOENT;
	if (status != PMIX_SUCCESS)
		return launch_error("PMIx_Init", status);
	pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
	PMIx_Register_event_handler(&lost, 1, NULL, 0, on_lost_server, NULL, NULL);
	int error = job_size(size, local_size);
	if (!error)
		*rank = (int)self.rank;
	return error;
}

/* ---- the fence of MPI_Init ---- */

static sem_t news;             /* posted by each of the callbacks below */
static atomic_bool fenced;
static pmix_status_t fence_status;
static atomic_bool asking;     /* a query has no answer yet */
static atomic_bool no_table;   /* the process manager does not answer such queries */
static atomic_long dead = -1;  /* a rank that has ended */

/* Called on a thread of PMIx. */
static void on_fenced(pmix_status_t status, void *context)
{
	(void)context;
	fence_status = status;
	/* Orders the status before the flag; pairs with the acquire in fence. */
	atomic_store_explicit(&fenced, true, memory_order_release);
	sem_post(&news);
}

static void look_at(const pmix_proc_info_t *process)
{
	if (process->state >= PMIX_PROC_STATE_TERMINATED)
		atomic_store_explicit(&dead, (long)process->proc.rank, memory_order_relaxed);
}

/* Called on a thread of PMIx. The standard has an array of processes. Open MPI answers with an array of
 * values, each of which describes a process. */
static void on_table(pmix_status_t status, pmix_info_t info[], size_t n, void *context, pmix_release_cbfunc_t release,
		     void *release_context)
{
	(void)context;
	if (status != PMIX_SUCCESS)
		atomic_store_explicit(&no_table, true, memory_order_relaxed);
	for (size_t i = 0; status == PMIX_SUCCESS && i < n; i++) {
		const pmix_data_array_t *array = info[i].value.type == PMIX_DATA_ARRAY ? info[i].value.data.darray : NULL;
		for (size_t j = 0; array && array->type == PMIX_PROC_INFO && j < array->size; j++)
			look_at(&((const pmix_proc_info_t *)array->array)[j]);
		for (size_t j = 0; array && array->type == PMIX_INFO && j < array->size; j++) {
			const pmix_value_t *value = &((const pmix_info_t *)array->array)[j].value;
			if (value->type == PMIX_PROC_INFO)
				look_at(value->data.pinfo);
		}
	}
	if (release)
		release(release_context);
	atomic_store_explicit(&asking, false, memory_order_relaxed);
	sem_post(&news);
}

/* Asks for the states of all ranks, unless the last question was not answered yet. The query outlives this function. */
static void ask_for_table(void)
{
	static char key[] = PMIX_QUERY_PROC_TABLE;
	static char *keys[] = { key, NULL };
	static pmix_info_t job;
	static pmix_query_t query = { .keys = keys, .qualifiers = &job, .nqual = 1 };
	if (atomic_exchange_explicit(&asking, true, memory_order_relaxed))
		return;
	if (!*job.key)
		PMIX_INFO_LOAD(&job, PMIX_NSPACE, self.nspace, PMIX_STRING);
	if (PMIx_Query_info_nb(&query, 1, on_table, NULL) != PMIX_SUCCESS)
		atomic_store_explicit(&no_table, true, memory_order_relaxed);
}

/* Waits for all ranks. Open MPI's server does not end the fence if a rank died before it had called PMIx_Init, so a rank that
 * waits looks at the states of all ranks. The fence does not collect the cards at each machine: most of them are never
 * needed there. */
static int fence(void)
{
	if (sem_init(&news, 0, 0))
		return -errno;
	pmix_status_t status = PMIx_Fence_nb(NULL, 0, NULL, 0, on_fenced, NULL);
	if (status == PMIX_OPERATION_SUCCEEDED)
		return 0;
	if (status != PMIX_SUCCESS)
		return launch_error("PMIx_Fence_nb", status);
	while (!atomic_load_explicit(&fenced, memory_order_acquire)) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += LOOK_SECONDS * (1 + (time_t)self.rank / LOOKERS);
		bool late = sem_timedwait(&news, &until) && errno == ETIMEDOUT;
		long rank = atomic_load_explicit(&dead, memory_order_relaxed);
		if (rank >= 0) {
			hr_log(HR_LOG_ERROR, "adi: rank %ld has ended before all ranks were in MPI_Init", rank);
			return -ECONNRESET;
		}
		if (late && !atomic_load_explicit(&no_table, memory_order_relaxed))
			ask_for_table();
	}
	return fence_status == PMIX_SUCCESS ? 0 : launch_error("PMIx_Fence_nb", fence_status);
}

static int pmix_publish(const hr_card_t *card)
{
	pmix_value_t value;
	PMIX_VALUE_CONSTRUCT(&value);
	value.type = PMIX_BYTE_OBJECT;
	value.data.bo.bytes = (char *)card->data;
	value.data.bo.size = card->len;
	pmix_status_t status = PMIx_Put(PMIX_GLOBAL, CARD_KEY, &value);
	if (status != PMIX_SUCCESS)
		return launch_error("PMIx_Put", status);
	status = PMIx_Commit();
	if (status != PMIX_SUCCESS)
		return launch_error("PMIx_Commit", status);
	return fence();
}

/* The process manager asks the machine of the peer, which may be down: so there is a time-out. */
static int pmix_fetch(int rank, hr_card_t *card)
{
	pmix_proc_t peer;
	PMIX_LOAD_PROCID(&peer, self.nspace, (pmix_rank_t)rank);
	pmix_value_t *value = NULL;
	pmix_info_t limit;
	int seconds = FETCH_SECONDS;
	PMIX_INFO_CONSTRUCT(&limit);
	PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &seconds, PMIX_INT);
	pmix_status_t status = PMIx_Get(&peer, CARD_KEY, &limit, 1, &value);
	PMIX_INFO_DESTRUCT(&limit);
	if (status != PMIX_SUCCESS) {
		hr_log(HR_LOG_ERROR, "adi: PMIx_Get of the card of rank %d: %s", rank, PMIx_Error_string(status));
		return -EHOSTUNREACH;
	}
	int error = 0;
	if (value->type == PMIX_BYTE_OBJECT && value->data.bo.size >= 1 && value->data.bo.size <= sizeof card->data) {
		card->len = (uint32_t)value->data.bo.size;
		memcpy(card->data, value->data.bo.bytes, value->data.bo.size);
	} else {
		hr_log(HR_LOG_ERROR, "adi: rank %d published an invalid card", rank);
		error = -EPROTO;
	}
	PMIX_VALUE_RELEASE(value);
	return error;
}

/* Called on a thread of PMIx. */
static void on_met(pmix_status_t status, void *context)
{
	(void)context;
	met_status = status;
	/* Orders the status before the flag; pairs with the acquire in pmix_meet_test. */
	atomic_store_explicit(&met, true, memory_order_release);
}

static int pmix_meet_start(void)
{
	pmix_status_t status = PMIx_Fence_nb(NULL, 0, NULL, 0, on_met, NULL);
	if (status == PMIX_OPERATION_SUCCEEDED)
		return 1;
	return status == PMIX_SUCCESS ? 0 : launch_error("PMIx_Fence_nb", status);
}

static int pmix_meet_test(void)
{
	if (!atomic_load_explicit(&met, memory_order_acquire))
		return 0;
	if (met_status == PMIX_ERR_PARTIAL_SUCCESS || met_status == PMIX_ERR_LOST_CONNECTION) {
		hr_log(HR_LOG_ERROR, "adi: other ranks ended without MPI_Finalize");
		return -ECONNRESET;
	}
	return met_status == PMIX_SUCCESS ? 1 : launch_error("PMIx_Fence_nb", met_status);
}

static void pmix_abort(int code, const char *message)
{
	PMIx_Abort(code, message, NULL, 0);
}

static void pmix_finalize(void)
{
	atomic_store_explicit(&ending, true, memory_order_relaxed);
	PMIx_Finalize(NULL, 0);
}

const struct launch_manager launch_pmix = {
	pmix_init, pmix_publish, pmix_fetch, pmix_meet_start, pmix_meet_test, pmix_abort, pmix_finalize,
};
