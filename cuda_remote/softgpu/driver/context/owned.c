/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of the objects that a context owns. */
#include "cuda_remote/softgpu/driver/context/owned.h"

void owned_list_init(owned_list_t *list, queue_group_t *group)
{
	*list = (owned_list_t){ .group = group };
	pthread_mutex_init(&list->lock, NULL);
}

void owned_add(owned_list_t *list, owned_t *owned, enum owned_kind kind, void (*destroy)(owned_t *owned))
{
	pthread_mutex_lock(&list->lock);
	*owned = (owned_t){ .next = list->first[kind], .list = list, .kind = kind, .destroy = destroy };
	if (owned->next)
		owned->next->previous = owned;
	list->first[kind] = owned;
	pthread_mutex_unlock(&list->lock);
}

/* With the list's lock held. */
static void unlink_owned(owned_list_t *list, owned_t *owned)
{
	if (owned->next)
		owned->next->previous = owned->previous;
	if (owned->previous)
		owned->previous->next = owned->next;
	else
		list->first[owned->kind] = owned->next;
	__atomic_store_n(&owned->list, NULL, __ATOMIC_RELAXED);
}

bool owned_take(owned_t *owned)
{
	/* Orders nothing: the lock does. owned->list only changes to NULL, never to another list. */
	owned_list_t *list = __atomic_load_n(&owned->list, __ATOMIC_RELAXED);
	if (!list)
		return false;
	pthread_mutex_lock(&list->lock);
	bool taken = owned->list;
	if (taken)
		unlink_owned(list, owned);
	pthread_mutex_unlock(&list->lock);
	return taken;
}

void owned_destroy(owned_t *owned)
{
	owned_list_t *list = __atomic_load_n(&owned->list, __ATOMIC_RELAXED);
	if (!owned_take(owned))
		return;
	queue_wait_group(list->group);
	owned->destroy(owned);
}

static owned_t *take_first(owned_list_t *list, enum owned_kind kind)
{
	pthread_mutex_lock(&list->lock);
	owned_t *first = list->first[kind];
	if (first)
		unlink_owned(list, first);
	pthread_mutex_unlock(&list->lock);
	return first;
}

void owned_destroy_all(owned_list_t *list)
{
	for (unsigned kind = 0; kind < OWNED_KINDS; kind++)
		for (owned_t *owned; (owned = take_first(list, (enum owned_kind)kind));) {
			queue_wait_group(list->group);
			owned->destroy(owned);
		}
	pthread_mutex_destroy(&list->lock);
}
