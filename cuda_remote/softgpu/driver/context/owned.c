/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/softgpu/driver/context/owned.h"

void owned_add(owned_t *owned)
{
	CUcontext context = owned->context;
	pthread_mutex_lock(&context->lock);
	owned->previous = NULL;
	owned->next = context->first_owned;
	if (owned->next)
		owned->next->previous = owned;
	context->first_owned = owned;
	pthread_mutex_unlock(&context->lock);
}

void owned_destroy(owned_t *owned)
{
	CUcontext context = owned->context;
	queue_wait_group(&context->group);
	pthread_mutex_lock(&context->lock);
	if (owned->next)
		owned->next->previous = owned->previous;
	if (owned->previous)
		owned->previous->next = owned->next;
	else
		context->first_owned = owned->next;
	pthread_mutex_unlock(&context->lock);
	owned->destroy(owned);
}

void owned_destroy_all(CUcontext context)
{
	while (context->first_owned)
		owned_destroy(context->first_owned);
}
