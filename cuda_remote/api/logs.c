/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver's messages for programs (cuda.h, "Error Log Management Functions"): all errors and warnings that the
 * library logs, whatever HEADRACE_LOG lets it print. The last LOG_BYTES of them are kept.
 */
#include "rdma_channel/base/log.h"

#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES 25600 /* the largest dump that cuLogsDumpToMemory permits */
#define LOST "messages before these are lost\n"
#define LEFT_OUT "messages before these do not fit\n"

/* A message, as it is dumped. */
typedef struct line {
	struct line *next;
	size_t length; /* with the newline, without a NUL */
	char text[];
} line_t;

struct CUlogsCallbackEntry_st {
	struct CUlogsCallbackEntry_st *next;
	CUlogsCallback call;
	void *data;
	unsigned running; /* threads inside */
	bool removed;     /* the last one to leave frees it */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t left; /* a thread has left a callback */
	line_t *first, **end;
	size_t bytes;
	unsigned number;     /* of the first; numbers count from 0 */
	unsigned next;       /* number of the next message; an iterator is such a number */
	struct CUlogsCallbackEntry_st *callbacks;
} logs = { .lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER, .end = &logs.first };

/* The callback that this thread runs. Messages that it logs itself are not passed to callbacks. */
static __thread CUlogsCallbackHandle inside;

static void drop_oldest(void)
{
	line_t *line = logs.first;
	logs.first = line->next;
	if (!logs.first)
		logs.end = &logs.first;
	logs.bytes -= line->length;
	logs.number++;
	free(line);
}

/* With the lock held. If there is no memory for a message, it counts as lost. */
static void keep(enum hr_log_level level, const char *text, size_t length)
{
	const char *kind = level == HR_LOG_ERROR ? "error: " : "warning: ";
	size_t before = strlen(kind);
	logs.next++;
	line_t *line = malloc(sizeof *line + before + length + 1);
	while (logs.first && (!line || logs.bytes + before + length + 1 > LOG_BYTES - sizeof LOST))
		drop_oldest();
	if (!line) {
		logs.number = logs.next;
		return;
	}
	line->next = NULL;
	line->length = before + length + 1;
	memcpy(line->text, kind, before);
	memcpy(line->text + before, text, length);
	line->text[before + length] = '\n';
	*logs.end = line;
	logs.end = &line->next;
	logs.bytes += line->length;
}

/* With the lock held. Frees a removed entry when the last thread leaves it. */
static void leave(struct CUlogsCallbackEntry_st *entry)
{
	pthread_cond_broadcast(&logs.left);
	if (--entry->running || !entry->removed)
		return;
	struct CUlogsCallbackEntry_st **at = &logs.callbacks;
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	free(entry);
}

/*
 * Calls back without the lock. An entry stays in the list while it is being called, even if it was removed, so that its
 * next pointer stays valid. The next entry is entered before this one is left.
 */
static void call_back(enum hr_log_level level, const char *text, size_t length)
{
	char copy[1024];
	size_t size = length < sizeof copy ? length : sizeof copy - 1;
	struct CUlogsCallbackEntry_st *entry = logs.callbacks;
	if (entry)
		entry->running++;
	while (entry) {
		if (!entry->removed) {
			pthread_mutex_unlock(&logs.lock);
			memcpy(copy, text, size);
			copy[size] = '\0';
			inside = entry;
			entry->call(entry->data, level == HR_LOG_ERROR ? CU_LOG_LEVEL_ERROR : CU_LOG_LEVEL_WARNING,
				    copy, size);
			inside = NULL;
			pthread_mutex_lock(&logs.lock);
		}
		struct CUlogsCallbackEntry_st *next = entry->next;
		if (next)
			next->running++;
		leave(entry);
		entry = next;
	}
}

static void tap(enum hr_log_level level, const char *text, size_t length)
{
	pthread_mutex_lock(&logs.lock);
	keep(level, text, length);
	if (!inside)
		call_back(level, text, length);
	pthread_mutex_unlock(&logs.lock);
}

static void lock_logs(void)
{
	pthread_mutex_lock(&logs.lock);
}

static void unlock_logs(void)
{
	pthread_mutex_unlock(&logs.lock);
}

/* In a child of fork only the calling thread goes on: no other thread is in a callback. */
static void forget_others(void)
{
	struct CUlogsCallbackEntry_st **at = &logs.callbacks, *entry;
	while ((entry = *at)) {
		entry->running = entry == inside;
		if (entry->removed && !entry->running) {
			*at = entry->next;
			free(entry);
		} else {
			at = &entry->next;
		}
	}
	/* Threads that waited on it are gone. */
	logs.left = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	unlock_logs();
}

/*
 * Runs when the library is loaded, before any call of the program and any thread of this library. fork waits for the lock,
 * so that a child can log.
 */
__attribute__((constructor)) static void listen_to_log(void)
{
	pthread_atfork(lock_logs, unlock_logs, forget_others);
	hr_log_set_tap(tap);
}

CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle *callback_out)
{
	if (!callbackFunc)
		return CUDA_ERROR_INVALID_VALUE;
	struct CUlogsCallbackEntry_st *entry = calloc(1, sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	entry->call = callbackFunc;
	entry->data = userData;
	pthread_mutex_lock(&logs.lock);
	entry->next = logs.callbacks;
	logs.callbacks = entry;
	pthread_mutex_unlock(&logs.lock);
	if (callback_out)
		*callback_out = entry;
	return CUDA_SUCCESS;
}

/*
 * Returns when no other thread runs the callback. If it is called inside a callback, it does not wait, as the callback may at the
 * same time remove the calling one, and each would wait for the other. Then another thread may still be running the callback.
 */
CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&logs.lock);
	struct CUlogsCallbackEntry_st *entry = logs.callbacks;
	while (entry && entry != callback)
		entry = entry->next;
	if (entry && !entry->removed) {
		result = CUDA_SUCCESS;
		entry->removed = true;
		entry->running++;
		while (!inside && entry->running > 1)
			pthread_cond_wait(&logs.left, &logs.lock);
		leave(entry);
	}
	pthread_mutex_unlock(&logs.lock);
	return result;
}

CUresult cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
	if (!iterator_out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&logs.lock);
	*iterator_out = logs.next;
	pthread_mutex_unlock(&logs.lock);
	return CUDA_SUCCESS;
}

/*
 * Writes the messages from a number on to room bytes; *used becomes the bytes written. With the lock held. False: there
 * are messages, and not even one fits.
 */
static bool dump(unsigned from, char *buffer, size_t room, size_t *used)
{
	const char *notice = from < logs.number ? LOST : NULL;
	const line_t *line = logs.first;
	for (unsigned i = logs.number; i < from && line; i++)
		line = line->next;
	size_t bytes = 0;
	for (const line_t *at = line; at; at = at->next)
		bytes += at->length;
	*used = 0;
	if (!bytes)
		return true;
	if (bytes + (notice ? strlen(notice) : 0) > room)
		notice = LEFT_OUT;
	size_t head = notice ? strlen(notice) : 0;
	for (; line && head + bytes > room; line = line->next)
		bytes -= line->length;
	if (!bytes)
		return false;
	if (notice)
		memcpy(buffer, notice, head);
	for (*used = head; line; line = line->next) {
		memcpy(buffer + *used, line->text, line->length);
		*used += line->length;
	}
	return true;
}

CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	if (!buffer || !size || !*size || flags)
		return CUDA_ERROR_INVALID_VALUE;
	size_t used;
	pthread_mutex_lock(&logs.lock);
	bool done = dump(iterator ? *iterator : 0, buffer, *size - 1, &used);
	if (done && iterator)
		*iterator = logs.next;
	pthread_mutex_unlock(&logs.lock);
	buffer[used] = '\0';
	*size = used;
	return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
	char *text = malloc(LOG_BYTES + 1);
	size_t size = LOG_BYTES + 1;
	CUlogIterator from = iterator ? *iterator : 0;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	if (pathToFile && text && !flags)
		result = cuLogsDumpToMemory(&from, text, &size, 0);
	FILE *file = result ? NULL : fopen(pathToFile, "w");
	if (!result && !file) {
		hr_log(HR_LOG_ERROR, "cuLogsDumpToFile: %s: %s", pathToFile, strerror(errno));
		result = CUDA_ERROR_INVALID_VALUE;
	}
	if (file && (fwrite(text, 1, size, file) != size) | fclose(file))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result && iterator)
		*iterator = from;
	free(text);
	return result;
}
