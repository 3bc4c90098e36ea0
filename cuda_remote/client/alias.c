/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aliases: handles of objects that the driver keeps inside of another object, such as a level of a mipmapped array, or on a
 * device, such as its default pool. The driver returns the same object each time. So the client asks the server once for each
 * alias, and keeps the handle until its owner ends.
 */
#include "cuda_remote/client/handle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct alias {
	struct alias *next;
	enum rc_call function;
	uint64_t owner, key, handle;
	char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct alias *aliases;

/* Under the lock. */
static void drop(struct alias **at)
{
	struct alias *gone = *at;
	*at = gone->next;
	free(gone);
}

/* A context's end ends its arrays and their handles without a call for each: such aliases are dropped when they are met. */
bool rc_alias_find(enum rc_kind kind, enum rc_call function, uint64_t owner, uint64_t key, const char *text,
		   uint64_t *handle)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (struct alias **at = &aliases; *at && !found;) {
		struct alias *alias = *at;
		bool same = alias->function == function && alias->owner == owner && alias->key == key &&
			    !strcmp(alias->text, text);
		found = same && rc_handle_check(kind, alias->handle) == CUDA_SUCCESS;
		if (found)
			*handle = alias->handle;
		else if (same)
			drop(at);
		else
			at = &alias->next;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult rc_alias_add(enum rc_call function, uint64_t owner, uint64_t key, const char *text, uint64_t handle)
{
	struct alias *alias = malloc(sizeof *alias + strlen(text) + 1);
	if (!alias)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alias->function = function;
	alias->owner = owner;
	alias->key = key;
	alias->handle = handle;
	strcpy(alias->text, text);
	pthread_mutex_lock(&lock);
	alias->next = aliases;
	aliases = alias;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

bool rc_alias_is(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	struct alias *alias = aliases;
	while (alias && alias->handle != handle)
		alias = alias->next;
	pthread_mutex_unlock(&lock);
	return alias;
}

/* The first alias of an owner, taken off the list; 0: none is left. */
static uint64_t take(uint64_t owner)
{
	uint64_t handle = 0;
	pthread_mutex_lock(&lock);
	for (struct alias **at = &aliases; *at && !handle; at = &(*at)->next) {
		if ((*at)->owner == owner) {
			handle = (*at)->handle;
			drop(at);
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return handle;
}

void rc_alias_forget(uint64_t owner)
{
	uint64_t handle;
	while ((handle = take(owner))) {
		rc_alias_forget(handle);
		rc_handle_delete(handle);
	}
}
