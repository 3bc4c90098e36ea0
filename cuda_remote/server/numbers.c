/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers that the driver gave to texture and surface objects of the session. A kernel reads such a number, so the
 * client cannot choose it. A driver may follow a number as a pointer: only numbers that are listed here reach the driver.
 */
#include "cuda_remote/server/internal.h"

#include <stdlib.h>

#define BUCKETS 1024

struct number {
	struct number *next;
	uint64_t value;
	enum rc_number kind;
	CUcontext context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct number *buckets[BUCKETS];

/*
 * The link to a number of this context, or else to the number of another one, or to the end of its bucket: the driver may give
 * equal numbers in two contexts, and a program may name an object while another context is current. Under the lock.
 */
static struct number **place(enum rc_number kind, uint64_t value, CUcontext context)
{
	struct number **at = &buckets[(value ^ value >> 20) % BUCKETS], **other = NULL;
	for (; *at; at = &(*at)->next) {
		if ((*at)->value != value || (*at)->kind != kind)
			continue;
		if ((*at)->context == context)
			return at;
		other = other ? other : at;
	}
	return other ? other : at;
}

/* Under the lock. */
static void drop(struct number **at)
{
	struct number *gone = *at;
	*at = gone->next;
	free(gone);
}

CUresult server_number_add(struct server_call *call, enum rc_number kind, uint64_t value)
{
	struct number *made = malloc(sizeof *made);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	struct number **at = place(kind, value, call->thread->current);
	if (*at && (*at)->context == call->thread->current)
		drop(at); /* its object ended without a call that says so */
	*made = (struct number){ *at, value, kind, call->thread->current };
	*at = made;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

bool server_number_known(enum rc_number kind, uint64_t value)
{
	pthread_mutex_lock(&lock);
	bool known = *place(kind, value, NULL);
	pthread_mutex_unlock(&lock);
	return known;
}

void server_number_remove(struct server_call *call, enum rc_number kind, uint64_t value)
{
	pthread_mutex_lock(&lock);
	struct number **at = place(kind, value, call->thread->current);
	if (*at)
		drop(at);
	pthread_mutex_unlock(&lock);
}

void server_numbers_forget(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct number **at = &buckets[i]; *at;) {
			if ((*at)->context == context)
				drop(at);
			else
				at = &(*at)->next;
		}
	pthread_mutex_unlock(&lock);
}
